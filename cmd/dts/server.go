package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"dts"
	"dts/exec"
	"dts/migrations"
	"dts/sched"
	"dts/store"
	"dts/store/sqlite"
	"dts/web"
	"dts/web/api"
	"dts/web/ui"
)

// serverOptions is what `dts serve` runs with.
type serverOptions struct {
	DataDir       string
	Listen        string // TCP address; web.NoListen: none
	SocketPath    string
	SocketGroup   bool // members of the data directory's group may use the socket
	AllowedHosts  []string
	HTTPSlots     int // HTTP calls in flight; 0: the default
	CommandSlots  int // commands at once; 0: the default
	DrainTimeout  time.Duration
	Retention     time.Duration // how long finished tasks are kept
	RetentionRows int64         // how many finished tasks are kept
	TrustClock    bool          // fire although the clock is earlier than the newest time in the store
	Log           *slog.Logger
	// Ready is called once, when the server answers; url is its TCP address, "" when there is none.
	Ready func(url string)
}

// stopTimeout is how long the HTTP server may take to end its connections, after the runs have ended.
const stopTimeout = 5 * time.Second

// runServer runs a server until ctx is done, then drains it. It returns nil after a clean stop. A second
// signal is the caller's to handle: it exits at once.
func runServer(ctx context.Context, o serverOptions) (err error) {
	data, err := openData(ctx, o.DataDir, o.SocketGroup, o.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()

	admin, err := adminToken(o.DataDir)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	st := store.New(data.db, store.Options{OnCommit: newStoreMetrics(registry, data.db)})
	data.st = st
	room := newBallast(o.DataDir, o.Log)
	room.restore()

	node, bootedAt, err := data.node(o.Listen)
	if err != nil {
		return err
	}
	runner := exec.New(exec.Options{Log: o.Log, UserAgent: "dts/" + thisBuild().Version, NodeID: node.ID, DataDirID: node.ID})
	defer runner.Close()
	scheduler := sched.New(sched.Options{
		Store: st, Runner: runner, Log: o.Log, Registry: registry,
		Refused: func(err error) bool { return errors.Is(err, store.ErrRefused) },
		KillOrphans: func(ctx context.Context, known []dts.Process, inFlight func(string, int) bool) error {
			killed, err := exec.KillOrphans(ctx, o.Log, exec.OrphanQuery{Processes: known, DataDirID: node.ID, InFlight: inFlight})
			if killed > 0 {
				o.Log.Warn("killed what commands of the last run had left behind", "processes", killed)
			}
			return err
		},
		OnFull: func() {
			if _, err := st.Fault(); errors.Is(err, store.ErrFull) {
				room.release()
			}
		},
		Halted: data.db.Corrupt,
		Node:   node, BootedAt: bootedAt, ClockFloor: clockFloor(), TrustClock: o.TrustClock,
		HTTPSlots: o.HTTPSlots, CommandSlots: o.CommandSlots, DrainTimeout: o.DrainTimeout,
		Retention: o.Retention, RetentionRows: o.RetentionRows, Failpoint: data.failpoint,
	})
	err = scheduler.Start(ctx)
	if dts.CodeOf(err) == dts.ErrFull {
		room.release()
		err = scheduler.Start(ctx)
	}
	if err != nil {
		return fmt.Errorf("start the scheduler: %w", cause(err))
	}
	stopped := false
	defer func() {
		if !stopped {
			err = errors.Join(err, scheduler.Stop(context.Background()))
		}
	}()

	tokens := &tokens{admin: admin, st: st, now: time.Now}
	pages, err := ui.New(ui.Options{Store: st, Scheduler: scheduler, Outputs: runner, Tokens: tokens, Log: o.Log, Version: thisBuild().Version})
	if err != nil {
		return err
	}
	server, err := web.New(web.Options{
		Listen: o.Listen, SocketPath: o.SocketPath, SocketGroup: o.SocketGroup, AllowedHosts: o.AllowedHosts,
		API: api.Options{
			Store: st, Scheduler: scheduler, Outputs: runner, Version: thisBuild().Version,
			Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		},
		Tokens: tokens, UI: http.Handler(pages), Log: o.Log,
	})
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	if o.Ready != nil {
		o.Ready(server.URL())
	}
	room.keep(ctx, st)
	keepMemorySmall(ctx)

	select {
	case <-ctx.Done():
		o.Log.Info("stopping: runs may finish", "limit", o.DrainTimeout)
	case err = <-server.Failed():
		o.Log.Error("the HTTP server failed", "err", err)
	}
	// The scheduler stops first: while its runs finish they can still be watched.
	stopped = true
	err = errors.Join(err, scheduler.Stop(context.Background()))
	stopCtx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return errors.Join(err, server.Stop(stopCtx))
}

// clockFloor is when this program was made: the clock cannot be right before that.
func clockFloor() time.Time {
	at, err := time.Parse(time.RFC3339, thisBuild().Date)
	if err != nil {
		return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return at
}

// cause is the technical reason of an error whose text was made for the users of an API.
func cause(err error) error {
	if e, ok := errors.AsType[*dts.Error](err); ok && e.Err != nil {
		return e.Err
	}
	return err
}

// data is an open data directory, locked for this process.
type data struct {
	dir  string
	lock *sqlite.DirLock
	db   *sqlite.DB
	st   *store.Store // nil until one is made; it closes db

	failpoint func(name string) // nil but in a build for crash tests
}

// openData makes the data directory if it is not there, locks it and opens the database.
func openData(ctx context.Context, dir string, group bool, log *slog.Logger) (*data, error) {
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
	path := filepath.Join(dir, "dts.db")
	if err := checkNotEmptied(path); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	db, err := sqlite.Open(ctx, path, sqlite.Options{
		Migrations: migrations.FS, Logger: log, Failpoint: failpoint,
		OnCorrupt: func(err error) {
			log.Error("the database is damaged: nothing is written or fired any more; see docs/operations.md", "err", err)
		},
	})
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &data{dir: dir, lock: lock, db: db, failpoint: failpoint}, nil
}

// checkNotEmptied refuses a database file without a byte in a directory that was in use: it is no new database,
// something has emptied it. The node's id is made after the first database.
func checkNotEmptied(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Size() > 0 {
		return nil // sqlite.Open says what is wrong
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), nodeIDFile)); err != nil {
		return nil
	}
	return fmt.Errorf("open database %s: the database is damaged: the file is empty, but it was in use. To restore a backup, copy it to %[1]s; to begin anew without what was there, remove the file", path)
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

func (d *data) Close() error {
	var err error
	if d.st != nil {
		err = d.st.Close()
	} else {
		err = d.db.Close()
	}
	return errors.Join(err, d.lock.Close())
}

const nodeIDFile = "node-id"

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
