package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Checkpoint policy, in bytes of log. See DESIGN.md.
const (
	walCopyAt     = 4 << 20  // copy to the database, beside the writer
	walRestartAt  = 16 << 20 // then also make the writer begin the log anew
	walTruncateAt = 64 << 20 // then also give the file's space back
	walKeep       = 16 << 20 // journal_size_limit: what the file shrinks to when the log begins anew

	checkpointEvery = 100 * time.Millisecond // at most this often
	checkpointRetry = 2 * time.Second        // after one that failed, or that a long read kept from a reset
	checkpointWait  = 20 * time.Millisecond  // that a reset waits for readers, the writer waiting with it

	vacuumStep  = 64 // pages moved in one step of the vacuum
	vacuumSteps = 32 // steps in one Maintain
	vacuumFloor = 1024
)

// checkpointer moves the log into the database on its own connection, off the hot path: the writer
// does not checkpoint.
type checkpointer struct {
	d    *DB
	wake chan struct{}
	last atomic.Int64 // Unix µs when the whole log was in the database

	mu   sync.Mutex
	w    *writer
	page int64 // page size in bytes
}

func openCheckpointer(ctx context.Context, d *DB) (*checkpointer, error) {
	w, err := openWriter(ctx, dsn(d.path, checkpointWait, d.synchronous(), "wal_autocheckpoint(0)", cacheSize(128)))
	if err != nil {
		return nil, err
	}
	c := &checkpointer{d: d, w: w, wake: make(chan struct{}, 1)}
	if err := w.ints(`PRAGMA page_size`, &c.page); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return c, nil
}

func (c *checkpointer) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.w.close()
}

// poke says that the log has grown.
func (c *checkpointer) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// run looks at the log after commits, until the DB closes.
func (c *checkpointer) run() {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-c.wake:
		case <-c.d.ctx.Done():
			return
		}
		pause := checkpointEvery
		if busy, err := c.checkpoint(false); err != nil {
			c.d.log.Error("checkpoint", "err", err)
			pause = checkpointRetry
		} else if busy {
			c.d.log.Debug("a long read keeps the log from being reset")
			pause = checkpointRetry
		}
		t.Reset(pause)
		select {
		case <-t.C:
		case <-c.d.ctx.Done():
			return
		}
	}
}

// wal runs PRAGMA wal_checkpoint in a mode and returns the bytes of log in use and those of them
// that the database does not have yet.
func (c *checkpointer) wal(mode string) (used, behind int64, busy bool, err error) {
	var b, frames, done int64
	if err := c.w.ints(`PRAGMA wal_checkpoint(`+mode+`)`, &b, &frames, &done); err != nil {
		return 0, 0, false, fmt.Errorf("checkpoint %s: %w", mode, c.d.classify(err, -1))
	}
	if frames >= 0 && frames == done {
		c.last.Store(time.Now().UnixMicro())
	}
	return frames * c.page, (frames - done) * c.page, b != 0, nil
}

// checkpoint does what the sizes call for; all copies what there is, whatever its size. busy reports
// that the log should have begun anew and that a long read was in the way.
func (c *checkpointer) checkpoint(all bool) (busy bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	used, behind, _, err := c.wal("NOOP")
	if err != nil {
		return false, err
	}
	if behind >= walCopyAt || used >= walRestartAt || all && behind > 0 {
		if used, _, _, err = c.wal("PASSIVE"); err != nil {
			return false, err
		}
	}
	file := fileSize(c.d.path + "-wal")
	if used < walRestartAt && file < walTruncateAt {
		return false, nil
	}
	// Under a steady load the writer is always a few frames ahead, and the log never begins anew. So
	// the writer is held while the last frames are copied; most went with the passive pass.
	mode := "RESTART"
	if file >= walTruncateAt {
		mode = "TRUNCATE"
	}
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	_, _, busy, err = c.wal(mode)
	return busy, err
}

// Maintain implements store.Backend: it copies the log into the database, and if more than a quarter
// of the file is free pages, gives some back to the file system in short steps between which batches
// run. When nothing was written since the last time, the writer's page cache is given back as well.
// Call it every minute or so.
func (d *DB) Maintain(ctx context.Context) error {
	ctx, end, err := d.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if d.findGone(); d.Corrupt() {
		return nil // what is there is left as it is, to be looked at
	}
	if _, err := d.ckpt.checkpoint(true); err != nil {
		return err
	}
	for range vacuumSteps {
		if err := ctx.Err(); err != nil {
			return err
		}
		more, err := d.vacuum()
		if err != nil {
			return fmt.Errorf("incremental vacuum: %w", err)
		}
		if !more {
			break
		}
	}
	return d.shrink()
}

// shrink frees the writer's page cache if there was no commit since the last call.
func (d *DB) shrink() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.commits.Load()
	idle := n == d.shrunkAt
	d.shrunkAt = n
	if !idle || d.w == nil {
		return nil
	}
	if _, err := d.w.exec(`PRAGMA shrink_memory`); err != nil {
		return fmt.Errorf("shrink memory: %w", d.classify(err, -1))
	}
	return nil
}

// vacuum does one step and reports whether another is worth it.
func (d *DB) vacuum() (more bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.writable(); err != nil {
		return false, err
	}
	var pages, free int64
	if err := errors.Join(d.w.ints(`PRAGMA page_count`, &pages), d.w.ints(`PRAGMA freelist_count`, &free)); err != nil {
		return false, d.classify(err, -1)
	}
	if free < vacuumFloor || free < pages/4 {
		return false, nil
	}
	if _, err := d.w.exec(fmt.Sprintf(`PRAGMA incremental_vacuum(%d)`, vacuumStep)); err != nil {
		return false, d.classify(err, -1)
	}
	d.ckpt.poke()
	return true, nil
}
