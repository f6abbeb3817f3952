package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"dts"
	"dts/exec"
	"dts/migrations"
	"dts/store"
	"dts/store/rqlite"
	"dts/store/sqlite"
)

// Files of the data directory, beside the lock, the socket and what other files name.
const (
	databaseFile = "dts.db"
	nodeIDFile   = "node-id"
	ballastFile  = "ballast"
	// adminTokenFile holds the token that the first start has made.
	adminTokenFile = "admin.token"
	// rqliteFile is there when the tasks of the directory are in an rqlite cluster, so that nobody begins a
	// database of their own here by mistake.
	rqliteFile = "rqlite"
)

// data is an open data directory, locked for this process, and where its tasks are.
type data struct {
	dir     string
	lock    *sqlite.DirLock
	db      store.Backend
	cluster *rqlite.DB   // db, when that is an rqlite cluster; else nil
	file    *sqlite.DB   // db, when that is a file; else nil
	st      *store.Store // nil until one is made; it closes db

	failpoint func(name string) // nil but in a build for crash tests
}

// openData makes the data directory if it is not there, locks it and opens the database: in it, or, with addresses,
// the cluster's.
func openData(ctx context.Context, dir string, group bool, cluster rqlite.Options, log *slog.Logger) (*data, error) {
	mode := os.FileMode(0o700)
	if group {
		mode = 0o750
	}
	if err := os.MkdirAll(dir, mode); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	if err := checkDataDir(dir, group); err != nil {
		return nil, err
	}
	failpoint, err := failpoint()
	if err != nil {
		return nil, err
	}
	lock, err := sqlite.LockDir(dir)
	if err != nil {
		return nil, err
	}
	d := &data{dir: dir, lock: lock, failpoint: failpoint}
	if len(cluster.URLs) > 0 {
		cluster.Migrations, cluster.Logger = migrations.FS, log
		d.cluster, err = openCluster(ctx, dir, cluster, log)
		d.db = d.cluster
	} else {
		d.file, err = openDatabase(ctx, dir, failpoint, log)
		d.db = d.file
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return d, nil
}

// openDatabase opens the SQLite database in the data directory.
func openDatabase(ctx context.Context, dir string, failpoint func(string), log *slog.Logger) (*sqlite.DB, error) {
	path := filepath.Join(dir, databaseFile)
	if err := checkNotEmptied(path); err != nil {
		return nil, err
	}
	if mark := filepath.Join(dir, rqliteFile); exists(mark) && !exists(path) {
		return nil, fmt.Errorf("the tasks of %s are in an rqlite cluster: start its server with --rqlite. To begin without them in this directory, remove %s", dir, mark)
	}
	return sqlite.Open(ctx, path, sqlite.Options{
		Migrations: migrations.FS, Logger: log, Failpoint: failpoint,
		OnCorrupt: func(err error) {
			log.Error("the database is damaged: nothing is written or fired any more; see docs/operations.md", "err", err)
		},
	})
}

// openCluster opens the rqlite cluster, and marks the data directory.
func openCluster(ctx context.Context, dir string, o rqlite.Options, log *slog.Logger) (*rqlite.DB, error) {
	if path := filepath.Join(dir, databaseFile); exists(path) {
		log.Warn("the data directory has a database of its own, which is not used: the tasks are in rqlite", "database", path)
	}
	db, err := rqlite.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	const text = "The tasks of this directory's server are in an rqlite cluster.\n"
	if mark := filepath.Join(dir, rqliteFile); !exists(mark) {
		if err := writeFile(mark, []byte(text)); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return db, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// checkNotEmptied refuses a database file without a byte in a directory that was in use: it is no new database,
// something has emptied it. The node's id is made after the first database. It also refuses what a restore has left
// that was killed before the backup had its name: nobody who restores wants to begin with nothing.
func checkNotEmptied(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && exists(path+restoreSuffix) {
		return fmt.Errorf("open database %s: a restore was interrupted and there is no database: run dts restore again; to begin without a task instead, remove %s", path, path+restoreSuffix)
	}
	if err != nil || info.Size() > 0 {
		return nil // sqlite.Open says what is wrong
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), nodeIDFile)); err != nil {
		return nil
	}
	return fmt.Errorf("open database %s: the database is damaged: the file is empty, but it was in use. To restore a backup: dts restore BACKUP --force --data %s; to begin anew without what was there, remove the file", path, filepath.Dir(path))
}

// checkDataDir refuses a directory that others can read: its mode is the credential for the socket.
func checkDataDir(dir string, group bool) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	mode := info.Mode().Perm()
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case mode&0o007 != 0:
		return fmt.Errorf("%s is open to every user (mode %04o): run chmod 0700 %s, or 0750 with --socket-group", dir, mode, dir)
	case mode&0o070 != 0 && !group:
		return fmt.Errorf("%s is open to its group (mode %04o): run chmod 0700 %s, or start with --socket-group", dir, mode, dir)
	case mode&0o020 != 0:
		return fmt.Errorf("%s can be written by its group (mode %04o): run chmod 0750 %s", dir, mode, dir)
	}
	return nil
}

// Corrupt reports that the database was found to be damaged; it is asked before each start. An rqlite node that finds its copy damaged leaves the
// others to work.
func (d *data) Corrupt() bool { return d.file != nil && d.file.Corrupt() }

// Close gives back the database and the directory.
func (d *data) Close() error {
	var err error
	if d.st != nil {
		err = d.st.Close()
	} else {
		err = d.db.Close()
	}
	return errors.Join(err, d.lock.Close())
}

// node describes this server. Its id is kept in a file beside the database and not inside, so that a copy of
// the database is not taken for the same server.
func (d *data) node(address string) (dts.Node, time.Time, error) {
	path := filepath.Join(d.dir, nodeIDFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		b = []byte(dts.NewID(time.Now()))
		err = writeFile(path, b)
	}
	if err != nil {
		return dts.Node{}, time.Time{}, err
	}
	id := strings.TrimSpace(string(b))
	if !dts.IsID(id) {
		return dts.Node{}, time.Time{}, fmt.Errorf("%s does not hold an id; remove it and a new one is made", path)
	}
	boot, bootedAt := exec.Boot()
	return dts.Node{ID: id, Address: address, Version: thisBuild().Version, BootID: boot}, bootedAt, nil
}

// writeFile writes a small private file so that a crash leaves either all of it or none.
func writeFile(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err = f.Write(b); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(f.Name(), path)
}
