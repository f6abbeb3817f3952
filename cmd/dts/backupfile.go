package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"dts/store"
	"dts/store/sqlite"
)

// backupFile is a backup that is being written. Until it is complete, durable and checked it has another name, so
// nothing that ends it leaves half a backup under its own.
type backupFile struct {
	path     string
	force    bool // another file may be there, and gives way
	f        *os.File
	unsynced int
}

// partSuffix is what its name ends with until then.
const partSuffix = ".part"

// createBackup begins a backup file. What an earlier one that was killed has left is removed; what another process
// writes is not.
func createBackup(path string, force bool) (*backupFile, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	b := &backupFile{path: path, force: force}
	if err := b.free(); err != nil {
		return nil, err
	}
	if dir := filepath.Dir(path); !exists(dir) {
		return nil, usagef("there is no directory %s", dir)
	}
	part := path + partSuffix
	b.f, err = newPart(part)
	if errors.Is(err, fs.ErrExist) {
		if err = removeAbandoned(part); err == nil {
			b.f, err = newPart(part)
		}
	}
	if errors.Is(err, errPartBusy) || errors.Is(err, fs.ErrExist) {
		return nil, failf("another process is writing a backup to %s", path)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

var errPartBusy = errors.New("another process writes it")

// newPart makes a file that nobody else has open, and locks it. The lock ends with the process, however it ends.
func newPart(part string) (*os.File, error) {
	f, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockPart(f, part); err != nil && !errors.Is(err, errors.ErrUnsupported) { // as on some network file systems
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// lockPart takes the lock of a file that still has its name. errPartBusy: somebody else has it.
func lockPart(f *os.File, part string) error {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return errPartBusy
		}
		return fmt.Errorf("lock %s: %w", part, err)
	}
	mine, err := f.Stat()
	if err != nil {
		return err
	}
	if named, err := os.Lstat(part); err != nil || !os.SameFile(mine, named) {
		return errPartBusy
	}
	return nil
}

// removeAbandoned removes what a backup that was killed has left: who writes one holds its lock. It is not used again,
// since somebody may have it open to read.
func removeAbandoned(part string) error {
	info, err := os.Lstat(part)
	if err == nil && !info.Mode().IsRegular() {
		return usagef("%s is there, and is no ordinary file; remove it", part)
	}
	f, err := os.OpenFile(part, os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has just gone
	}
	if err != nil {
		return err
	}
	defer f.Close() // and not before it is removed
	if err := lockPart(f, part); err != nil {
		return err
	}
	return os.Remove(part)
}

// free refuses a name that is in use.
func (b *backupFile) free() error {
	if ofDataDir(b.path) {
		return usagef("%s is a name that the data directory needs itself; give another directory", b.path)
	}
	info, err := os.Lstat(b.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return usagef("%s is a directory; give the name of a file in it", b.path)
	case !info.Mode().IsRegular():
		return usagef("%s is there, and is no ordinary file; give another name", b.path)
	case !b.force:
		return failf("%s exists already; give another name, or --force to replace it", b.path)
	case exists(b.path+"-wal") || exists(b.path+"-journal"):
		return failf("%s is a database in use: it has a log beside it; give another name", b.path)
	}
	return nil
}

// ofDataDir reports whether a path is that of a file which a server has in its data directory, or may look for there.
func ofDataDir(path string) bool {
	dir, name := filepath.Split(path)
	if !exists(filepath.Join(dir, sqlite.LockFile)) {
		return false
	}
	return strings.HasPrefix(name, databaseFile) || slices.Contains([]string{sqlite.LockFile, adminTokenFile, nodeIDFile, rqliteFile, ballastFile}, name)
}

// Write implements io.Writer.
func (b *backupFile) Write(p []byte) (int, error) {
	n, err := b.f.Write(p)
	if b.unsynced += n; err == nil && b.unsynced >= syncEvery {
		b.unsynced, err = 0, b.f.Sync()
	}
	return n, err
}

// finish makes it durable, checks it, and gives it its name.
func (b *backupFile) finish(ctx context.Context) (store.Held, error) {
	if err := b.f.Sync(); err != nil {
		return store.Held{}, err
	}
	held, err := inspect(ctx, b.path+partSuffix, false)
	if err != nil {
		return held, fmt.Errorf("check the backup: %w", err)
	}
	if err := b.free(); err != nil {
		return held, err
	}
	if err := os.Rename(b.path+partSuffix, b.path); err != nil {
		return held, err
	}
	return held, errors.Join(syncDir(filepath.Dir(b.path)), b.f.Close())
}

// discard removes what there is of it.
func (b *backupFile) discard() {
	os.Remove(b.path + partSuffix) // while it is locked: it can only be ours
	b.f.Close()
}

// inspect checks a database file that nobody uses, and says what it holds. With full each index is compared with its
// table, in about three times the time.
func inspect(ctx context.Context, path string, full bool) (held store.Held, err error) {
	db, err := sqlite.OpenAlone(path, false)
	if err != nil {
		return held, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := sqlite.CheckAlone(ctx, db, full); err != nil {
		return held, err
	}
	return store.Inspect(ctx, db)
}

// syncDir makes a name that was changed in a directory durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
