package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"dts"
	"dts/store/sqlite"
)

// backups makes copies of the database of a server that runs, one at a time.
type backups struct {
	file    *sqlite.DB // nil: the tasks are in rqlite
	dir     string     // the data directory
	fetched chan struct{}
	copying chan struct{}
}

func newBackups(d *data) *backups {
	return &backups{file: d.file, dir: d.dir, fetched: make(chan struct{}, 1), copying: make(chan struct{}, 1)}
}

var (
	errBackupRqlite = dts.Errorf(dts.ErrConflict, "the tasks are in an rqlite cluster, which makes the backups: curl http://NODE:4001/db/backup -o FILE, or rqlited -auto-backup; see docs/ha.md")
	errBackupBusy   = dts.Errorf(dts.ErrConflict, "another backup is being fetched from this server; try again when it has ended")
)

// write writes a copy of the database to w, after those that others are making. begun is told its size.
func (b *backups) write(ctx context.Context, w io.Writer, begun func(size int64) error) error {
	if b.file == nil {
		return errBackupRqlite
	}
	select {
	case b.copying <- struct{}{}:
		defer func() { <-b.copying }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return b.file.Backup(ctx, w, begun)
}

// Backup implements api.Backups. The copy goes to a file without a name in the data directory, at the pace of the disk,
// since the log grows until it is made; who fetches it may be slower.
func (b *backups) Backup(ctx context.Context) (io.ReadCloser, int64, error) {
	if b.file == nil {
		return nil, 0, errBackupRqlite
	}
	if err := b.turn(ctx); err != nil {
		return nil, 0, err
	}
	s, err := newSpool(b.dir)
	if err != nil {
		<-b.fetched
		return nil, 0, err
	}
	s.release = func() { <-b.fetched }
	ctx, s.cancel = context.WithCancel(ctx)
	size := make(chan int64, 1)
	go func() {
		defer close(s.ended)
		s.finish(b.write(ctx, s, func(n int64) error {
			if err := roomFor(b.dir, n+diskMargin); err != nil {
				return dts.Errorf(dts.CodeOf(err), "%w; without that room a task (dts add --backup DIR), or dts backup where the server is stopped, writes straight to another disk", err)
			}
			size <- n
			return nil
		}))
	}()
	select {
	case n := <-size:
		return s, n, nil
	case <-s.ended:
		if s.err == nil { // a small database is copied before anyone looks here
			return s, <-size, nil
		}
		err := s.err
		s.Close()
		return nil, 0, err
	}
}

// turn takes the one place for a backup that is fetched. Who has just got the last byte of one may ask for the next
// while the server still closes the first.
func (b *backups) turn(ctx context.Context) error {
	soon, cancel := context.WithTimeout(ctx, fetchTurn)
	defer cancel()
	select {
	case b.fetched <- struct{}{}:
		return nil
	case <-soon.Done():
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errBackupBusy
}

// diskMargin is what a backup leaves of the data directory's disk to the server's own writes, in bytes.
const diskMargin = 16 << 20

// fetchTurn is how long a fetch waits for one before it to be over.
const fetchTurn = 2 * time.Second

// roomFor refuses what does not fit into a directory's file system.
func roomFor(dir string, need int64) error {
	free, err := sqlite.FreeBytes(dir)
	if err != nil {
		return err
	}
	if free < need {
		return dts.Errorf(dts.ErrFull, "the backup needs %s, and %s has %s left", size(need), dir, size(free))
	}
	return nil
}

// sameDisk reports whether two directories are in one file system; false where that is not known.
func sameDisk(a, b string) bool {
	var x, y unix.Stat_t
	return unix.Stat(a, &x) == nil && unix.Stat(b, &y) == nil && x.Dev == y.Dev
}

// syncEvery is how much of a copy is written before it is made durable, in bytes. A large part at once would keep the
// server's own small writes waiting on the same disk.
const syncEvery = 4 << 20

// spool is a file without a name that one writes and another reads, from its beginning, as far as it is written.
type spool struct {
	f       *os.File
	cancel  context.CancelFunc // ends the writer
	ended   chan struct{}      // closed when the writer has ended
	release func()

	mu      sync.Mutex
	more    sync.Cond
	written int64
	done    bool
	err     error

	unsynced int   // of the writer
	read     int64 // of the reader
}

func newSpool(dir string) (*spool, error) {
	f, err := os.CreateTemp(dir, "backup-*.tmp")
	if err != nil {
		return nil, fmt.Errorf("make a temporary file: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil { // so that nothing is left, however this process ends
		return nil, errors.Join(err, f.Close())
	}
	s := &spool{f: f, ended: make(chan struct{})}
	s.more.L = &s.mu
	return s, nil
}

// Write implements io.Writer.
func (s *spool) Write(p []byte) (int, error) {
	n, err := s.f.Write(p)
	if s.unsynced += n; err == nil && s.unsynced >= syncEvery {
		s.unsynced, err = 0, s.f.Sync()
	}
	s.mu.Lock()
	s.written += int64(n)
	s.mu.Unlock()
	s.more.Signal()
	return n, err
}

// finish says how the writer has ended.
func (s *spool) finish(err error) {
	s.mu.Lock()
	s.done, s.err = true, err
	s.mu.Unlock()
	s.more.Signal()
}

// Read implements io.Reader. It waits for what is not written yet.
func (s *spool) Read(p []byte) (int, error) {
	s.mu.Lock()
	for s.read == s.written && !s.done {
		s.more.Wait()
	}
	left, err := s.written-s.read, s.err
	s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if left == 0 {
		return 0, io.EOF
	}
	n, err := s.f.ReadAt(p[:min(int64(len(p)), left)], s.read)
	s.read += int64(n)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Close ends the writer and gives the file's room back.
func (s *spool) Close() error {
	s.cancel()
	<-s.ended
	defer s.release()
	return s.f.Close()
}
