package main

import (
	"context"
	"database/sql"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// benchMachine is where a benchmark ran. What cannot be found out is "unknown".
type benchMachine struct {
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"` // that this process may use
	Kernel     string `json:"kernel"`
	FileSystem string `json:"file_system"` // of the data directory
	SQLite     string `json:"sqlite"`
}

func thisMachine(ctx context.Context, dir string) (benchMachine, error) {
	m := benchMachine{CPU: cpuModel(), Cores: runtime.NumCPU(), Kernel: "unknown", FileSystem: fileSystem(dir)}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
	}
	db, err := sql.Open("sqlite", ":memory:") // the driver that store/sqlite registers
	if err != nil {
		return m, fmt.Errorf("ask SQLite's version: %w", err)
	}
	defer db.Close()
	if err := db.QueryRowContext(ctx, `SELECT sqlite_version()`).Scan(&m.SQLite); err != nil {
		return m, fmt.Errorf("ask SQLite's version: %w", err)
	}
	return m, nil
}
