package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"dts"
)

// These scenarios ask what is left of that on rqlite, with one server and with three that share the tasks.
var (
	rqlite1Scenario = rqliteScenario("rqlite-1", 1, []benchSize{
		{flag: "rqlite-tasks", number: 1000, max: 1_000_000, usage: "rqlite: `N` tasks due evenly over --spread"},
		{flag: "rqlite-drain", number: 20_000, max: 1_000_000, usage: "rqlite: `N` tasks due at one instant"},
		{flag: "rqlite-creates", number: 20_000, max: 1_000_000, usage: "rqlite: `N` tasks created one by one"},
	})
	rqlite3Scenario = rqliteScenario("rqlite-3", 3, nil)
)

// rqliteServers are the numbers of dts servers that share an rqlite cluster.
var rqliteServers = [...]int{1, 3}

func rqliteScenario(name string, nodes int, sizes []benchSize) benchScenario {
	aims := map[string][]benchAim{}
	for _, n := range rqliteServers {
		aims[rqliteFigure(n, "drain, until all is on disk")] = []benchAim{{ratio: 0.5}}
		aims[rqliteFigure(n, "created one by one")] = []benchAim{{ratio: 0.5}}
	}
	return benchScenario{
		name: name,
		about: func(o benchOptions) string {
			return fmt.Sprintf("%d rqlited, with 1 and with 3 dts: %d HTTP tasks evenly over %s, %d due at one instant, %d by POST /tasks over %d connections. "+
				"Ceiling: as many rows, written to the same cluster in batches as large as those of dts", nodes, o.number("rqlite-tasks"), span(o.span("spread")),
				o.number("rqlite-drain"), o.number("rqlite-creates"), createConns)
		},
		sizes: sizes, aims: aims, long: true, runs: 1, rqlited: nodes,
		run: func(ctx context.Context, b *bench) (figures []benchFigure, err error) {
			for _, n := range rqliteServers {
				list, err := b.onRqlite(ctx, nodes, n)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", count(n, "server"), err)
				}
				figures = append(figures, list...)
			}
			return figures, nil
		},
	}
}

func rqliteFigure(servers int, what string) string { return fmt.Sprintf("%d dts: %s", servers, what) }

// onRqlite measures servers that share a cluster of their own.
func (b *bench) onRqlite(ctx context.Context, nodes, servers int) (figures []benchFigure, err error) {
	dir := filepath.Join(b.serve.Dir, fmt.Sprintf("%d-%d", nodes, servers))
	cluster, err := startRqlited(ctx, b.Rqlited, dir, nodes)
	if err != nil {
		return nil, err
	}
	defer cluster.stop()
	group, err := startBenchGroup(ctx, b.sink, cluster, benchServerOptions{Dir: dir, Profile: b.serve.Profile}, servers)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, group.stop()) }()

	perSecond, err := group.warmUp(ctx, drainWarmUp)
	if err != nil {
		return nil, err
	}
	late, err := group.lateness(ctx, b.number("rqlite-tasks"), b.span("spread"))
	if err != nil {
		return nil, err
	}
	drained, err := group.drain(ctx, b.number("rqlite-drain"), perSecond)
	if err != nil {
		return nil, err
	}
	created, err := group.creates(ctx, b.number("rqlite-creates"))
	if err != nil {
		return nil, err
	}
	if err := group.stop(); err != nil { // the ceilings have the machine for themselves
		return nil, err
	}
	raw, err := newRqliteRaw(ctx, cluster, servers)
	if err != nil {
		return nil, err
	}
	inserts, err := raw.inserts(ctx, b.number("rqlite-creates"), created.batch)
	if err != nil {
		return nil, err
	}
	updates, err := raw.updates(ctx, drained.rows, drained.batch)
	if err != nil {
		return nil, err
	}
	perTask := float64(drained.rows) / float64(b.number("rqlite-drain"))
	name := func(what string) string { return rqliteFigure(servers, what) }
	figures = append(figures,
		benchFigure{name("drain, until the last came"), "tasks/s", drained.came, updates / perTask},
		benchFigure{name("drain, until all is on disk"), "tasks/s", drained.written, updates / perTask},
		benchFigure{name("drain, rows a task"), "rows", perTask, 0},
		benchFigure{name("drain, rows a batch"), "rows", float64(drained.batch), 0},
		benchFigure{name("created one by one"), "tasks/s", created.rate, inserts},
		benchFigure{name("created, rows a batch"), "rows", float64(created.batch), 0})
	return append(figures, spreadFigures(name("at the sink"), late, nil)...), nil
}

// lateness runs n tasks, due evenly over d, and returns how late each came to the sink.
func (g *benchGroup) lateness(ctx context.Context, n int, d time.Duration) ([]time.Duration, error) {
	first := dts.Micros(time.Now().Add(latenessLead + time.Duration(n)*time.Second/1000))
	at := func(i int) time.Time { return dts.Micros(first.Add(time.Duration(i) * d / time.Duration(n))) }
	ids, err := g.create(ctx, n, at)
	if err != nil {
		return nil, err
	}
	if time.Until(first) < latenessLead/2 {
		return nil, fmt.Errorf("creating %d tasks took longer than there was time for; give fewer --rqlite-tasks", n)
	}
	if err := sleepUntil(ctx, at(n-1)); err != nil {
		return nil, err
	}
	if err := g.sink.wait(ctx, n, time.Minute); err != nil {
		return nil, err
	}
	came, err := g.sink.arrivals(ctx)
	if err != nil {
		return nil, err
	}
	late := make([]time.Duration, 0, n)
	for i, id := range ids {
		t, ok := came[id]
		if !ok {
			return nil, fmt.Errorf("task %s did not come to the sink", id)
		}
		late = append(late, t.Sub(at(i)))
	}
	if err := g.settled(ctx); err != nil {
		return nil, err
	}
	return late, g.sink.reset(ctx)
}

// groupDrain is how a drain went.
type groupDrain struct {
	came, written float64 // tasks a second, until the last came to the sink, and until all was written
	rows          int     // that were written, all in all
	batch         int     // rows that a commit held, on average
}

// drain runs n tasks that are due at one instant. perSecond is how many a bulk creation makes.
func (g *benchGroup) drain(ctx context.Context, n int, perSecond float64) (d groupDrain, err error) {
	creation := time.Duration(2 * float64(n) / perSecond * float64(time.Second))
	due := dts.Micros(time.Now().Add(creation + drainLead))
	if _, err := g.create(ctx, n, func(int) time.Time { return due }); err != nil {
		return d, err
	}
	if time.Until(due) < drainLead/2 {
		return d, fmt.Errorf("creating %d tasks took longer than the warm-up had let expect; try again on a quieter machine", n)
	}
	before, err := g.commits(ctx)
	if err != nil {
		return d, err
	}
	attempts, err := g.attempts(ctx)
	if err != nil {
		return d, err
	}
	if err := sleepUntil(ctx, due); err != nil {
		return d, err
	}
	var written time.Time
	err = g.servers[0].profiled(func() error {
		if err := g.sink.wait(ctx, n, drainLimit); err != nil {
			return err
		}
		err := g.settled(ctx)
		written = time.Now()
		return err
	})
	if err != nil {
		return d, err
	}
	after, err := g.commits(ctx)
	if err != nil {
		return d, err
	}
	own, err := g.attempts(ctx)
	if err != nil {
		return d, err
	}
	// The end of a short run is one row, its task's. Where the start was written before, that was the task's and one
	// for the attempt, and the end changes both.
	d.rows = n + 3*(own-attempts)
	d.batch = batchOf(d.rows, after-before)
	t, err := g.sink.tally(ctx, true)
	if err != nil {
		return d, err
	}
	if t.Keys != n || t.Requests != n {
		return d, fmt.Errorf("%d requests with %d different keys came of %d tasks", t.Requests, t.Keys, n)
	}
	d.came, d.written = float64(n)/time.Unix(0, t.LastNS).Sub(due).Seconds(), float64(n)/written.Sub(due).Seconds()
	return d, g.sink.reset(ctx)
}

// groupCreates is how fast tasks were created.
type groupCreates struct {
	rate  float64 // tasks a second
	batch int     // tasks that a commit held, on average
}

// creates creates n tasks one by one that do not fire while this runs.
func (g *benchGroup) creates(ctx context.Context, n int) (c groupCreates, err error) {
	later := dts.Micros(time.Now().Add(24 * time.Hour))
	bodies := make([][]byte, n)
	for i := range bodies {
		bodies[i] = taskBody(nil, i, g.sink.url, later.Add(time.Duration(i)*time.Millisecond))
	}
	before, err := g.commits(ctx)
	if err != nil {
		return c, err
	}
	next := 0
	dial := func(ctx context.Context) (*rawConn, error) { // called by one goroutine
		next++
		return g.servers[next%len(g.servers)].raw(ctx)
	}
	err = g.servers[0].profiled(func() (err error) {
		c.rate, err = flooded(ctx, dial, createConns, "/tasks", nil, bodies, n)
		return err
	})
	if err != nil {
		return c, err
	}
	after, err := g.commits(ctx)
	c.batch = batchOf(n, after-before)
	return c, err
}

// batchOf is how many rows a batch held.
func batchOf(rows int, batches float64) int { return max(int(float64(rows)/max(batches, 1)+0.5), 1) }

// benchGroup is servers that share an rqlite cluster.
type benchGroup struct {
	cluster *rqlited
	servers []*benchServer
	sink    *benchSink
	stopped bool
}

// groupLimit is how long the servers may take to share the shards, and to have ended what is due.
const groupLimit = 5 * time.Minute

// startBenchGroup starts n servers, one after the other, each in a directory below that of o, and waits until each
// has its part of the shards. A profile is of the first.
func startBenchGroup(ctx context.Context, sink *benchSink, cluster *rqlited, o benchServerOptions, n int) (_ *benchGroup, err error) {
	g := &benchGroup{sink: sink, cluster: cluster}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.stop())
		}
	}()
	below := o.Dir
	o.Flags = []string{"--rqlite", strings.Join(cluster.urls(), ",")}
	for i := range n {
		o.Dir = filepath.Join(below, fmt.Sprintf("dts-%d", i+1))
		if err := os.Mkdir(o.Dir, 0o700); err != nil {
			return nil, err
		}
		if o.Listen, err = freeAddress(); err != nil {
			return nil, err
		}
		s, err := startBenchServer(ctx, o)
		if err != nil {
			return nil, err
		}
		g.servers = append(g.servers, s)
		o.Profile = ""
	}
	return g, poll(ctx, groupLimit, func() (bool, string, error) {
		held, least := 0, dts.Shards
		for _, s := range g.servers {
			st, err := s.Status(ctx)
			if err != nil {
				return false, "", err
			}
			own := 0
			for _, r := range st.Shards {
				own += r.To - r.From + 1
			}
			held, least = held+own, min(least, own)
		}
		return held == dts.Shards && least >= dts.Shards/n/3, fmt.Sprintf("%d of %d shards are held, by one server %d", held, dts.Shards, least), nil
	})
}

// stop ends all servers. It may be called again.
func (g *benchGroup) stop() (err error) {
	if g.stopped {
		return nil
	}
	g.stopped = true
	for _, s := range g.servers {
		err = errors.Join(err, s.stop())
	}
	return err
}

// create makes n tasks, task i due at at(i) on server i modulo their number, and returns their ids in order.
func (g *benchGroup) create(ctx context.Context, n int, at func(i int) time.Time) ([]string, error) {
	ids := make([]string, n)
	for k, s := range g.servers {
		own := (n - k + len(g.servers) - 1) / len(g.servers)
		made, _, err := s.create(ctx, own, g.sink.url, func(i int) time.Time { return at(i*len(g.servers) + k) })
		if err != nil {
			return nil, err
		}
		for i, id := range made {
			ids[i*len(g.servers)+k] = id
		}
	}
	return ids, nil
}

// settled waits until every server has ended and written everything.
func (g *benchGroup) settled(ctx context.Context) error {
	for _, s := range g.servers {
		if err := s.settled(ctx, groupLimit); err != nil {
			return err
		}
	}
	return nil
}

// warmUp runs n tasks and returns how many tasks were created in a second.
func (g *benchGroup) warmUp(ctx context.Context, n int) (perSecond float64, err error) {
	start := time.Now()
	if _, err := g.create(ctx, n, func(int) time.Time { return start }); err != nil {
		return 0, fmt.Errorf("warm up: %w", err)
	}
	perSecond = float64(n) / time.Since(start).Seconds()
	if err := g.sink.wait(ctx, n, groupLimit); err != nil {
		return 0, fmt.Errorf("warm up: %w", err)
	}
	if err := g.settled(ctx); err != nil {
		return 0, fmt.Errorf("warm up: %w", err)
	}
	return perSecond, g.sink.reset(ctx)
}

// attempts is how many attempts have a row of their own.
func (g *benchGroup) attempts(ctx context.Context) (int, error) {
	return g.cluster.query(ctx, "/db/query?level=strong", [][]any{{`SELECT count(*) FROM attempts`}})
}

// commits is how many batches the servers have written so far.
func (g *benchGroup) commits(ctx context.Context) (n float64, err error) {
	for _, s := range g.servers {
		own, err := s.metric(ctx, "dts_group_commit_seconds_count")
		if err != nil {
			return 0, err
		}
		n += own
	}
	return n, nil
}
