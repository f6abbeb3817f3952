package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"dts"
	"dts/exec"
)

// ciPrefix begins the name of the directory of a `dts ci`; its id and something random follow.
const ciPrefix = "dts-ci-"

// ciLeftAfter is how old a directory must be before it can be what a killed `dts ci` has left: one that has just been made
// is not locked yet.
const ciLeftAfter = time.Minute

// makeCIDir makes the directory of a `dts ci`, for this user alone. It is locked until the process has ended, however
// that comes about.
func makeCIDir(id string) (dir string, lock *os.File, err error) {
	if dir, err = os.MkdirTemp("", ciPrefix+id+"-"); err != nil {
		return "", nil, err
	}
	if lock, err = os.Open(dir); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	_ = lockDir(lock) // where that cannot be, others cannot either, and do not take it for left behind
	return dir, lock, nil
}

// sweepKilled removes what an earlier `dts ci` of this user has left that was killed with SIGKILL: its directory, and the
// processes of its commands. What cannot be removed stays.
func sweepKilled(now time.Time, log *slog.Logger) {
	entries, _ := os.ReadDir(os.TempDir())
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), ciPrefix)
		if at := strings.LastIndexByte(rest, '-'); ours && e.IsDir() && at > 0 && dts.IsID(rest[:at]) {
			sweepDir(filepath.Join(os.TempDir(), e.Name()), rest[:at], now, log)
		}
	}
}

func sweepDir(dir, id string, now time.Time, log *slog.Logger) {
	lock, err := os.Open(dir)
	if err != nil {
		return
	}
	defer lock.Close()
	info, err := lock.Stat()
	if err != nil || now.Sub(info.ModTime()) < ciLeftAfter {
		return
	}
	if of, ok := info.Sys().(*syscall.Stat_t); !ok || int(of.Uid) != os.Getuid() || lockDir(lock) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), ciSweep)
	defer cancel()
	_, _ = exec.KillOrphans(ctx, log, exec.OrphanQuery{DataDirID: id, InFlight: func(string, int) bool { return true }})
	_ = os.RemoveAll(dir)
}

func lockDir(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
