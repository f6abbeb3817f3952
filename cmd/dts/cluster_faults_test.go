package main_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"dts/web/client"
)

// TestClusterFaults breaks three dts on three nodes of rqlite while they work, one fault after another and several
// at once, and checks what dts promises of one server: see docs/reliability.md.
//
// DTS_CLUSTER_FAULTS says how often, DTS_CLUSTER_SEED repeats the choices of an earlier test.
func TestClusterFaults(t *testing.T) {
	faults := faultsAsked(t)
	if faults == 0 {
		t.Skip("NO FAULTS OF A CLUSTER ARE TESTED: run make test-cluster")
	}
	seed := clusterSeed(t)
	c := newCluster(t, seed)
	c.replay = func() string {
		return fmt.Sprintf("replay: DTS_CLUSTER_SEED=%d make test-cluster FAULTS=%d", seed, faults)
	}
	c.start()
	c.load.mayFail.Store(false)
	c.addRecurring()
	c.load.mayFail.Store(true)
	stopWatch := c.watch()
	stopLoad := c.work(12)
	begun := time.Now()
	var all sync.WaitGroup
	for _, tr := range newSchedule(seed, faults) {
		time.Sleep(tr.at - time.Since(begun))
		all.Go(func() { c.inflict(tr) })
	}
	all.Wait()
	broke := time.Since(begun)
	stopLoad()
	c.heal()
	c.load.mayFail.Store(false)
	stopLoad = c.work(3) // nothing may fail now
	time.Sleep(3 * time.Second)
	stopLoad()
	c.settle()
	stopWatch()
	c.endAll()
	c.t.Logf("%d faults in %.0f s", faults, broke.Seconds())
	c.checkEnd()
}

// cluster is three dts on three nodes of rqlite.
type cluster struct {
	judge
	seed   uint64
	net    *network
	stores []*rqliteNode
	nodes  []*dtsNode

	storeBusy sync.Mutex // held by whoever does something to rqlite

	mu     sync.Mutex // guards what follows, and judge.counts while faults go on
	kills  []time.Time
	thaws  []time.Time
	sick   []span // in which rqlite had a fault
	deaths []span // from the last that was seen of a server until it counted as dead
	seen   memory
	saved  map[string]string // copies of the databases at the end, by node of rqlite
}

// span is a stretch of time.
type span struct{ from, to time.Time }

func (s span) meets(from, to time.Time) bool { return !s.from.After(to) && !s.to.Before(from) }

// newCluster prepares a cluster; nothing runs yet.
func newCluster(t *testing.T, seed uint64) *cluster {
	t.Helper()
	needLinux(t)
	c := &cluster{
		judge: judge{t: t, target: newTarget(t, seed), runs: newRunLog(t), broken: map[string]int{}, counts: map[string]int{}},
		seed:  seed, net: newNetwork(t), seen: newMemory(), saved: map[string]string{},
	}
	c.replay = func() string { return "" }
	c.stores = newRqlite(t, c.net)
	c.nodes = newNodes(t, buildDTS(t), c.net, c.stores)
	c.disturbed, c.late, c.api = c.mayRepeat, c.thawed, c.anyone
	c.load = newLoad(t, c.anyone, c.target, c.runs)
	c.load.mayFail.Store(true)
	c.load.pause = 300 * time.Millisecond
	t.Cleanup(c.keepEvidence)
	return c
}

// keepEvidence copies the logs and the databases of a test that failed to where they stay.
func (c *cluster) keepEvidence() {
	if !c.t.Failed() {
		return
	}
	dir := filepath.Join("..", "..", ".cache", "test-cluster", fmt.Sprintf("%s-%d", c.t.Name(), c.seed))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		c.t.Error(err)
		return
	}
	keep := func(name, path string) {
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o600)
		}
		if err != nil {
			c.t.Log(err)
		}
	}
	for _, d := range c.nodes {
		keep(d.name+".log", d.logPath)
	}
	for _, r := range c.stores {
		keep(r.name+".log", r.logPath)
		if c.saved[r.name] != "" {
			keep(r.name+".db", c.saved[r.name])
		}
	}
	keep("commands.log", c.runs.path)
	c.t.Logf("the logs and databases are in %s", dir)
}

// needLinux skips the test where there is no /proc.
func needLinux(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/proc/net/tcp"); err != nil {
		t.Skip("SEVERAL SERVERS ARE NOT TESTED: the network between them needs Linux's /proc")
	}
}

// start starts everything and waits until each server holds its shards.
func (c *cluster) start() {
	c.t.Helper()
	for _, r := range c.stores {
		r.launch(c.net)
	}
	for _, r := range c.stores {
		eventually(c.t, 60*time.Second, r.name+" to be ready", r.ready)
	}
	var all sync.WaitGroup
	for _, d := range c.nodes {
		all.Go(func() {
			if !c.launch(d, 60*time.Second) {
				c.t.Errorf("%s did not get ready:\n%s", d.name, d.log())
			}
		})
	}
	all.Wait()
	if c.t.Failed() {
		c.t.FailNow()
	}
	c.awaitBalance()
}

// launch starts a process of a server and waits until it is ready; false means that it has ended, or is not ready
// in time. When it ends without having been told to, the next one is started, as systemd would.
func (c *cluster) launch(d *dtsNode, limit time.Duration) bool {
	d.ended.Store(false)
	d.ready.Store(false)
	d.launch()
	c.net.runs(d.name, d.process.Pid)
	exited := d.exited
	go func() {
		<-exited
		if d.ended.Load() || c.t.Context().Err() != nil {
			return
		}
		d.away.Store(true)
		if now := time.Now(); !d.ready.Load() && c.ill(now.Add(-time.Minute), now) {
			c.count("starts given up while rqlite was ill", 1)
		} else {
			c.found(clean, "%s ended by itself: %s", d.name, d.state)
		}
		d.busy.Lock()
		defer d.busy.Unlock()
		if !d.ended.Load() {
			c.launch(d, limit)
		}
	}()
	return d.awaitReadyOrEnd(limit)
}

// found is violated, while several goroutines may find something.
func (c *cluster) found(rule, format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.violated(rule, format, args...)
}

// anyone returns a client of one of the servers, nearly always of one that should answer.
func (c *cluster) anyone() *client.Client {
	d := c.nodes[rand.IntN(len(c.nodes))]
	for range 5 {
		if !d.away.Load() || rand.IntN(20) == 0 {
			break
		}
		d = c.nodes[rand.IntN(len(c.nodes))]
	}
	return d.api
}

// work begins to add tasks, and returns the function that ends it.
func (c *cluster) work(adders int) (stop func()) {
	ctx, cancel := context.WithCancel(c.t.Context())
	var all sync.WaitGroup
	for i := range adders {
		name, rng := fmt.Sprintf("%d-%d", time.Now().UnixNano(), i), rand.New(rand.NewPCG(c.seed, uint64(i)))
		all.Go(func() { c.load.add(ctx, name, rng) })
	}
	return func() { cancel(); all.Wait() }
}

// awaitBalance waits until three servers live and hold all shards, and each knows it.
func (c *cluster) awaitBalance() {
	c.t.Helper()
	var last string
	end := time.Now().Add(60 * time.Second)
	for ; time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		rows, err := c.ask(`SELECT n.node_id, n.state, (SELECT count(*) FROM shards AS s WHERE s.node_id = n.node_id) FROM nodes AS n ORDER BY 1`)
		last = fmt.Sprint(rows, err)
		held, alive := 0, 0
		for _, row := range rows {
			if n := int(row[2].(float64)); row[1] == "ALIVE" && n > 0 {
				alive++
				held += n
			}
		}
		ready := true
		for _, d := range c.nodes {
			r, err := d.api.Ready(c.t.Context())
			ready = ready && err == nil && r.Ready
			if !ready {
				last += fmt.Sprintf(" %s: %+v, %v", d.name, r, err)
			}
		}
		if err == nil && ready && alive == 3 && held == 64 {
			return
		}
	}
	c.t.Fatalf("three servers do not come to share the shards within a minute: %s", last)
}

// ask reads what the leader of rqlite has, through whichever node answers.
func (c *cluster) ask(sql string) (rows [][]any, err error) {
	for _, i := range rand.Perm(len(c.stores)) {
		if rows, err = c.stores[i].query("weak", sql); err == nil {
			return rows, nil
		}
	}
	return nil, err
}

// mayRepeat reports whether a server was killed, or lost its shards, between two moments.
func (c *cluster) mayRepeat(from, to time.Time) bool {
	slack := 100 * time.Millisecond // a request may be logged after its sender's death
	return slices.ContainsFunc(c.kills, func(at time.Time) bool { return at.After(from.Add(-slack)) && !at.After(to) }) ||
		slices.ContainsFunc(c.deaths, func(s span) bool { return s.meets(from, to) })
}

// thawed reports whether a server that had been stopped went on in the second before.
func (c *cluster) thawed(at time.Time) bool {
	return slices.ContainsFunc(c.thaws, func(thaw time.Time) bool { return !at.Before(thaw) && at.Sub(thaw) < time.Second })
}

// ill reports whether rqlite had a fault between two moments.
func (c *cluster) ill(from, to time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.sick, func(s span) bool { return s.meets(from, to) })
}

// heal waits until every process runs and they share the shards again.
func (c *cluster) heal() {
	c.t.Helper()
	begun := time.Now()
	for _, r := range c.stores {
		eventually(c.t, 60*time.Second, r.name+" to be ready; "+c.replay(), r.ready)
	}
	c.awaitBalance()
	c.t.Logf("healed after %.1f s", time.Since(begun).Seconds())
}

// endAll stops the servers in good order.
func (c *cluster) endAll() {
	c.t.Helper()
	for _, d := range c.nodes {
		d.busy.Lock()
		took, code := d.end(syscall.SIGTERM)
		d.busy.Unlock()
		if code != 0 || took > 10*time.Second {
			c.violated(clean, "at the end %s stopped after %s with exit code %d", d.name, took, code)
		}
	}
}

// count notes that something happened.
func (c *cluster) count(what string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[what] += n
}
