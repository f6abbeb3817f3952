package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"dts"
	"dts/exec"
	pingjudge "dts/exec/pings"
	"dts/sched"
	"dts/store"
	"dts/store/rqlite"
	"dts/web"
	"dts/web/api"
	"dts/web/pings"
	"dts/web/ui"
)

// serverOptions is what `dts serve` runs with.
type serverOptions struct {
	DataDir        string
	Listen         string // TCP address; web.NoListen: none
	SocketPath     string
	RQLite         rqlite.Options // where the cluster is that has the tasks; without addresses they are in DataDir
	Advertise      string         // where the other servers of the cluster reach this one; "": it follows from Listen
	SocketGroup    bool           // members of the data directory's group may use the socket
	AllowedHosts   []string
	PublicURL      string  // with what ping URLs begin; "": with the address at which the server was asked for them
	HTTPSlots      int     // HTTP calls in flight; 0: the default
	CommandSlots   int     // commands at once; 0: the default
	CPUBudget      float64 // cores for tasks that ask for some
	NoHostLimits   bool    // call HTTP hosts as fast as there are slots, however they do
	MemoryBudgetMB int64   // MiB for tasks that ask for some; 0: no limit
	DrainTimeout   time.Duration
	Retention      time.Duration // how long finished tasks are kept
	RetentionRows  int64         // how many finished tasks are kept
	RetentionBytes int64         // how much of them, about; 0: no limit
	TrustClock     bool          // fire although the clock is earlier than the newest time in the store
	Heartbeat      heartbeatOptions
	LogLevel       slog.Level
	LogFormat      string // text or json
	Log            *slog.Logger
	Reload         *reloader // reads the settings again; nil: they stay
	// Ready is called once, when the server answers; url is its TCP address, "" when there is none.
	Ready func(url string)
}

// stopTimeout is how long the HTTP server may take to end its connections, after the runs have ended.
const stopTimeout = 5 * time.Second

// runServer runs a server until ctx is done, then drains it. It returns nil after a clean stop. A second
// signal is the caller's to handle: it exits at once.
func runServer(ctx context.Context, o serverOptions) (err error) {
	data, err := openData(ctx, o.DataDir, o.SocketGroup, o.RQLite, o.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	if err := store.CopyPending(ctx, data.db); err != nil {
		return err
	}

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
	var others *cluster // nil on SQLite: this server is alone
	if data.cluster != nil {
		newRqliteMetrics(registry, data.cluster)
		if others, err = joinCluster(ctx, st, o.Log); err != nil {
			return fmt.Errorf("join the cluster: %w", cause(err))
		}
		defer others.Close()
		if err := shareAdminToken(ctx, st, node.ID, admin); err != nil {
			return fmt.Errorf("share the admin token: %w", cause(err))
		}
		node.Address = o.Advertise
		warnLoopback(node, o.Log)
	}
	keys, err := pingKeys(ctx, st)
	if err != nil {
		return fmt.Errorf("read the secret of ping URLs: %w", cause(err))
	}
	runner := exec.New(exec.Options{Log: o.Log, UserAgent: "dts/" + thisBuild().Version, NodeID: node.ID, DataDirID: node.ID})
	defer runner.Close()
	copies := newBackups(data)
	jobs := &pingjudge.Runner{Store: st, Next: &backupRunner{Runner: runner, backups: copies, now: time.Now}, Now: time.Now}
	options := sched.Options{
		Store: st, Runner: jobs, Log: o.Log, Registry: registry,
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
		Halted: data.Corrupt, Peers: others.peers(),
		Node: node, BootedAt: bootedAt, ClockFloor: clockFloor(), TrustClock: o.TrustClock,
		CPUBudget: o.CPUBudget, MemoryBudgetMB: o.MemoryBudgetMB, NoHostLimits: o.NoHostLimits, Failpoint: data.failpoint,
	}
	o.tune(&options)
	scheduler := sched.New(options)
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
	front, err := others.front(st, scheduler, runner)
	if err != nil {
		return err
	}
	defer front.close()
	reports := pings.New(pings.Options{
		Reports: &pingReports{st: st, scheduler: front.scheduler, log: o.Log, now: time.Now}, Keys: keys, PublicURL: o.PublicURL, Log: o.Log,
	})
	pages, err := ui.New(ui.Options{PingURL: reports.URL, Store: st, Scheduler: front.scheduler, Outputs: front.outputs, Tokens: tokens, Log: o.Log, Version: thisBuild().Version})
	if err != nil {
		return err
	}
	server, err := web.New(web.Options{
		Listen: o.Listen, SocketPath: o.SocketPath, SocketGroup: o.SocketGroup, AllowedHosts: o.AllowedHosts,
		API: api.Options{
			Store: st, Scheduler: front.scheduler, Outputs: front.outputs, Backups: copies, Version: thisBuild().Version,
			Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), Reload: o.Reload.asked(),
		},
		Tokens: tokens, UI: http.Handler(pages), Peers: front.peers, Pings: reports, Log: o.Log,
	})
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	beats := newHeartbeat(scheduler.Ready, o.Log, registry)
	beats.set(o.Heartbeat)
	beating, stopBeats := context.WithCancel(ctx)
	var pings sync.WaitGroup
	pings.Go(func() { beats.run(beating) })
	defer func() { stopBeats(); pings.Wait() }()
	o.Reload.begin(func(n serverOptions) {
		var tuned sched.Options
		n.tune(&tuned)
		scheduler.Tune(tuned)
		server.SetAllowedHosts(n.AllowedHosts)
		beats.set(n.Heartbeat)
	})
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

// tune sets the options of a scheduler that can be changed while it runs.
func (o *serverOptions) tune(s *sched.Options) {
	s.HTTPSlots, s.CommandSlots = o.HTTPSlots, o.CommandSlots
	s.DrainTimeout = max(o.DrainTimeout, 1) // 0 would be the default
	s.Retention, s.RetentionRows, s.RetentionBytes = o.Retention, o.RetentionRows, o.RetentionBytes
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
