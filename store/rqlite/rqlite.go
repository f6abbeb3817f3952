// Package rqlite is store.Backend on an rqlite cluster (https://rqlite.io), through gorqlite.
//
// It promises that a batch whose Apply returned nil is in the logs of a majority of the cluster and was applied
// exactly once, however often it had to be sent; that a batch which was refused, or failed as unavailable,
// left nothing behind and never will; and that a read of the levels above STALE sees every write that was
// acknowledged before it. DESIGN.md beside this file says how, and which traps of rqlite and gorqlite that avoids.
//
// Several processes may use one cluster at the same time.
package rqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"dts/store"
)

// Defaults of Options.
const (
	defaultWriteTimeout = 10 * time.Second
	defaultReadTimeout  = 5 * time.Second
	defaultOpenTimeout  = 30 * time.Second
)

// MaxAnswer bounds the answer to one request, in bytes.
const MaxAnswer = 64 << 20

// Options say where the cluster is. URLs and Migrations are required.
type Options struct {
	// URLs are the HTTP addresses of the cluster's nodes, or of some of them: http or https, optionally with
	// user:password@. The credentials appear in no log and no error.
	URLs       []string
	Migrations fs.FS        // goose SQL files at the root
	Logger     *slog.Logger // discards when nil

	CAFile            string // PEM file with the authorities that sign the nodes' certificates; the system's when empty
	CertFile, KeyFile string // PEM files with the certificate that this client shows, if any

	// WriteTimeout is how long a batch is sent again and again before its outcome is called unknown, or the cluster
	// unavailable. A large batch gets longer. 10 s when zero.
	WriteTimeout time.Duration
	ReadTimeout  time.Duration // the same for a query; 5 s when zero
	OpenTimeout  time.Duration // how long Open waits for a cluster that does not answer yet; 30 s when zero
}

// DB is an open connection to a cluster. It implements store.Backend.
type DB struct {
	o   Options
	log *slog.Logger

	nodes   []*node
	current atomic.Int32  // index of the node that is used
	look    chan struct{} // capacity 1: a reason to look at the nodes now
	schema  atomic.Int64  // the newest schema version that this program knows; 0 before the migrations
	epoch   atomic.Int64  // the epoch that batches are made in; see Maintain
	opKeep  time.Duration // how long an epoch lasts

	// Queries go through database/sql for the sake of its Scan.
	stale, fresh *sql.DB

	mu         sync.Mutex // guards what follows
	closed     bool
	leader     bool          // the cluster had one when it was last looked at
	size       int64         // of the database, then
	troubles   [ways]trouble // what requests meet
	epochSince time.Time     // when epoch was first seen

	work    sync.WaitGroup // everything that Close waits for
	closing chan struct{}  // closed by Close: nothing is sent again
	ctx     context.Context
	cancel  context.CancelFunc

	commits, failures, moves atomic.Int64
}

var _ store.Backend = (*DB)(nil)

// Open finds the cluster and brings its schema up to date, which several processes may do at the same time. A
// cluster that is not ready yet is waited for. A schema newer than o.Migrations is refused.
func Open(ctx context.Context, o Options) (*DB, error) {
	d, err := connect(o)
	if err != nil {
		return nil, fmt.Errorf("open rqlite: %w", err)
	}
	err = d.await(ctx)
	if err == nil {
		err = d.migrate(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("open rqlite: %w", errors.Join(err, d.Close()))
	}
	d.work.Go(d.watch)
	return d, nil
}

// connect makes a DB that has not asked anything yet.
func connect(o Options) (_ *DB, err error) {
	o.WriteTimeout = cmp.Or(o.WriteTimeout, defaultWriteTimeout)
	o.ReadTimeout = cmp.Or(o.ReadTimeout, defaultReadTimeout)
	o.OpenTimeout = cmp.Or(o.OpenTimeout, defaultOpenTimeout)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Migrations == nil {
		return nil, errors.New("no migrations given")
	}
	d := &DB{o: o, log: o.Logger, opKeep: opKeep, look: make(chan struct{}, 1), closing: make(chan struct{})}
	if d.nodes, err = newNodes(o); err != nil {
		return nil, err
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.stale, d.fresh = d.openReads(store.Stale), d.openReads(store.Linearizable)
	return d, nil
}

// Health is how the cluster looks from here.
type Health struct {
	Node    string // address of the node that is used, without credentials
	Leader  bool   // the cluster had a leader when it was last looked at
	Version string // what that node says its version is
	Moves   int64  // times that another node was chosen since Open

	// Err is what reads or writes have met since Since; nil when both go well. It does not show credentials.
	Err   error
	Since time.Time
}

// Health returns how the cluster looks from here. It asks nobody.
func (d *DB) Health() Health {
	n := d.node()
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.trouble()
	return Health{Node: n.address, Leader: d.leader, Version: n.seenVersion(), Moves: d.moves.Load(), Err: t.err, Since: t.since}
}

// Stats implements store.Backend. DBBytes is from the last look at the cluster, at most a few seconds old.
func (d *DB) Stats() store.BackendStats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return store.BackendStats{DBBytes: d.size, Commits: d.commits.Load(), Failures: d.failures.Load(), Reopens: d.moves.Load()}
}

var errClosed = fmt.Errorf("%w: it is closed", store.ErrUnavailable)

// begin registers work that Close waits for. The caller calls d.work.Done.
func (d *DB) begin() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errClosed
	}
	d.work.Add(1)
	return nil
}

// Close waits for the requests under way, sends none again, and closes the connections.
func (d *DB) Close() error {
	d.mu.Lock()
	first := !d.closed
	d.closed = true
	d.mu.Unlock()
	if first {
		close(d.closing)
		d.cancel()
	}
	d.work.Wait()
	if !first {
		return nil
	}
	err := errors.Join(d.stale.Close(), d.fresh.Close())
	for _, n := range d.nodes {
		n.close()
	}
	return err
}
