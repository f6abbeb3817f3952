//go:build linux || darwin

package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrLocked is matched by LockDir's error when another process holds the lock.
var ErrLocked = errors.New("the data directory is in use")

// LockFile is the name of the lock in a data directory.
const LockFile = "dts.lock"

// DirLock is an exclusive lock on a data directory. The kernel releases it when the process ends,
// however it ends.
type DirLock struct{ f *os.File }

// LockDir takes flock(2) on <dir>/dts.lock and writes this process's id into it. It does not wait: if
// another process holds the lock, the error matches ErrLocked and names it.
func LockDir(dir string) (*DirLock, error) {
	name := filepath.Join(dir, LockFile)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	if err := flock(f); err != nil {
		defer f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock data directory: flock %s: %w", name, err)
		}
		buf := make([]byte, 32)
		n, _ := f.ReadAt(buf, 0) // a short read at the end is normal; the pid is only for people
		pid := strings.TrimSpace(string(buf[:n]))
		if pid == "" {
			pid = "unknown"
		}
		return nil, fmt.Errorf("%w: %s is locked by process %s", ErrLocked, dir, pid)
	}
	err = ownedAsDir(f, dir)
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	}
	if err != nil && !errors.Is(err, unix.ENOSPC) { // the lock holds without the pid
		return nil, errors.Join(fmt.Errorf("lock data directory: %w", err), f.Close())
	}
	return &DirLock{f}, nil
}

// ownedAsDir gives a lock that root has made to the owner of the directory: a server that runs as that user must be
// able to take it later.
func ownedAsDir(f *os.File, dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	var d, l unix.Stat_t
	if err := errors.Join(unix.Stat(dir, &d), unix.Fstat(int(f.Fd()), &l)); err != nil {
		return err
	}
	if l.Uid != 0 || d.Uid == 0 {
		return nil
	}
	return f.Chown(int(d.Uid), int(d.Gid))
}

func flock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// lockedByOther reports whether another process has the lock on f. It takes a shared one for a moment to find out.
func lockedByOther(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// Close releases the lock. The file stays: removing it would let two processes lock two files.
func (l *DirLock) Close() error { return l.f.Close() }

// FreeBytes is how much this user can still write on dir's file system.
func FreeBytes(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("statfs %s: %w", dir, err)
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}
