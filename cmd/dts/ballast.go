package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"dts/store"
)

// ballast is a file that takes room on the disk for nothing. When the disk is full it is deleted, so that
// results can still be written and retention can delete; when there is room again it comes back.
type ballast struct {
	path string
	log  *slog.Logger
	mu   sync.Mutex
}

const (
	ballastBytes = 8 << 20
	ballastFree  = 16 * ballastBytes // what must be free before it takes its part
)

func newBallast(dir string, log *slog.Logger) *ballast {
	return &ballast{path: filepath.Join(dir, ballastFile), log: log}
}

// release gives the room to those who need it.
func (b *ballast) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch err := os.Remove(b.path); {
	case err == nil:
		b.log.Error("the disk is full: the ballast was deleted to finish what runs; make room", "bytes", int64(ballastBytes))
	case !errors.Is(err, os.ErrNotExist):
		b.log.Error("delete the ballast", "err", err)
	}
}

// restore takes the room, if there is plenty.
func (b *ballast) restore() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if info, err := os.Stat(b.path); err == nil && info.Size() == ballastBytes {
		return
	}
	var fs unix.Statfs_t
	if unix.Statfs(filepath.Dir(b.path), &fs) != nil || uint64(fs.Bavail)*uint64(fs.Bsize) < ballastFree {
		return
	}
	f, err := os.OpenFile(b.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		chunk := make([]byte, 64<<10)
		for n := 0; n < ballastBytes && err == nil; n += len(chunk) { // written, not left as a hole
			_, err = f.Write(chunk)
		}
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		b.log.Warn("write the ballast", "err", err)
		os.Remove(b.path)
	}
}

// keep restores the ballast once writes succeed again, until ctx is done.
func (b *ballast) keep(ctx context.Context, st *store.Store) {
	go func() {
		tick := time.NewTicker(time.Minute)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if _, err := st.Fault(); err == nil {
					b.restore()
				}
			}
		}
	}()
}
