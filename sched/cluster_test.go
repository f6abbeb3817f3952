package sched_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dts"
	"dts/migrations"
	"dts/sched"
	"dts/sched/timer"
	"dts/store"
	"dts/store/sqlite"
	"dts/store/sqlite/sqlitetest"
)

// cluster is several servers over one real database, in fake time.
type cluster struct {
	t     *testing.T
	db    *sqlite.DB
	look  *store.Store // of the test itself
	nodes []*member
	mu    sync.Mutex // of nodes, where servers tell each other something
	began time.Time
	deaf  bool                 // servers cannot tell each other anything
	trip  time.Duration        // so long a question and its answer are on their way
	opts  func(*sched.Options) // nil: as they are
}

// member is one server. Its way to the database can be cut.
type member struct {
	*world
	c   *cluster
	id  string
	cut *cuttable
}

// cuttable is a backend that several servers share, as one of them reaches it.
type cuttable struct {
	store.Backend
	off   atomic.Bool
	fates atomic.Pointer[func(batch []store.Stmt) fate] // decides what becomes of each call; nil: it is done
}

// fate is what becomes of one call. The zero value is: it is done.
type fate struct {
	early  time.Duration // so long it is on its way
	cut    bool          // it does not arrive
	silent bool          // it is done, but the answer is lost
	late   time.Duration // so long the answer is on its way
}

// decide sets what becomes of each call from now on.
func (b *cuttable) decide(f func(batch []store.Stmt) fate) { b.fates.Store(&f) }

// of is the fate of calls one of whose statements contains text: f, which is asked for one at a time. Others are done.
func of(text string, f func() fate) func(batch []store.Stmt) fate {
	var mu sync.Mutex
	return func(batch []store.Stmt) fate {
		if slices.ContainsFunc(batch, func(s store.Stmt) bool { return strings.Contains(s.SQL, text) }) {
			mu.Lock()
			defer mu.Unlock()
			return f()
		}
		return fate{}
	}
}

// fate waits as long as the call is on its way: a read's end of ctx ends that, a write goes on.
func (b *cuttable) fate(ctx context.Context, batch ...store.Stmt) (f fate) {
	if decide := b.fates.Load(); decide != nil {
		f = (*decide)(batch)
	}
	if f.early > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(f.early):
		}
	}
	f.cut = f.cut || b.off.Load()
	return f
}

var (
	errCut    = fmt.Errorf("%w: it cannot be reached", store.ErrUnavailable)
	errSilent = fmt.Errorf("%w: no answer came", store.ErrUnknown)
)

func (b *cuttable) Query(ctx context.Context, l store.Level, s store.Stmt) (store.Rows, error) {
	f := b.fate(ctx, s)
	if f.cut || f.silent {
		return nil, errCut
	}
	rows, err := b.Backend.Query(ctx, l, s)
	time.Sleep(f.late)
	return rows, err
}

func (b *cuttable) Apply(ctx context.Context, batch ...store.Stmt) ([]store.Result, error) {
	f := b.fate(context.WithoutCancel(ctx), batch...)
	if f.cut {
		return nil, errCut
	}
	res, err := b.Backend.Apply(ctx, batch...)
	time.Sleep(f.late)
	if f.silent {
		return nil, errSilent
	}
	return res, err
}

func (b *cuttable) Close() error { return nil }

func inCluster(t *testing.T, n int, f func(c *cluster)) {
	t.Helper()
	inClusterWith(t, nil, n, f)
}

func inClusterWith(t *testing.T, opts func(*sched.Options), n int, f func(c *cluster)) {
	t.Helper()
	path := sqlitetest.New(t)
	synctest.Test(t, func(t *testing.T) {
		db, err := sqlite.Open(context.Background(), path, sqlite.Options{Migrations: migrations.FS})
		if err != nil {
			t.Fatal(err)
		}
		c := &cluster{t: t, db: db, look: store.New(&cuttable{Backend: db}, store.Options{}), began: time.Now(), opts: opts}
		for i := range n {
			c.join(fmt.Sprint("node-", i+1))
		}
		f(c)
		for _, m := range c.nodes {
			m.leave()
		}
		if err := errors.Join(c.look.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	})
}

// join starts a server.
func (c *cluster) join(id string, edit ...func(*member)) *member {
	c.t.Helper()
	m := &member{c: c, id: id, cut: &cuttable{Backend: c.db}}
	m.world = &world{t: c.t, run: &scripted{}, ctx: context.Background(), st: store.New(m.cut, store.Options{})}
	for _, f := range edit {
		f(m)
	}
	o := sched.Options{
		Store: m.st, Runner: m.run, Refused: func(err error) bool { return errors.Is(err, store.ErrRefused) },
		NewTimer: func() timer.Timer { return timer.NewPortableClock(m.now) }, Now: m.now,
		Boottime: func() time.Duration { return time.Since(c.began) },
		Node:     dts.Node{ID: id, Address: "http://" + id}, Peers: c,
		Log: slog.New(slog.NewTextHandler(c.t.Output(), &slog.HandlerOptions{Level: slog.LevelError + 1})),
	}
	if c.opts != nil {
		c.opts(&o)
	}
	m.s = sched.New(o)
	if err := m.s.Start(m.ctx); err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes = append(c.nodes, m)
	return m
}

// leave stops a server.
func (m *member) leave() {
	m.t.Helper()
	if err := m.s.Stop(m.ctx); err != nil {
		m.t.Error(err)
	}
	if err := m.st.Close(); err != nil {
		m.t.Error(err)
	}
	m.c.forget(m)
}

// forget lets the others know no more of a server.
func (c *cluster) forget(m *member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes = slices.DeleteFunc(slices.Clone(c.nodes), func(o *member) bool { return o == m })
}

// setDeaf says that servers cannot tell each other anything any more, or can again.
func (c *cluster) setDeaf(deaf bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deaf = deaf
}

func (c *cluster) find(n dts.Node) *member {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.nodes, func(m *member) bool { return m.id == n.ID })
	if i < 0 || c.deaf {
		return nil
	}
	return c.nodes[i]
}

func (c *cluster) Poke(n dts.Node) {
	if m := c.find(n); m != nil {
		m.s.Poke()
	}
}

func (c *cluster) Wake(n dts.Node, ids []string) {
	if m := c.find(n); m != nil {
		m.s.Wake(ids)
	}
}

func (c *cluster) Clock(ctx context.Context, n dts.Node) (time.Time, error) {
	m := c.find(n)
	if m == nil {
		return time.Time{}, errCut
	}
	time.Sleep(c.trip / 2)
	defer time.Sleep(c.trip / 2)
	return m.now(), ctx.Err()
}

// holders returns how many shards each server holds, as the database has it.
func (c *cluster) holders() map[string]int {
	c.t.Helper()
	all, err := c.look.Members(context.Background())
	if err != nil {
		c.t.Fatal(err)
	}
	n := map[string]int{}
	for _, h := range all.Holders {
		n[h.Node]++
	}
	return n
}

// shared wants every shard held, by all the servers that run.
func (c *cluster) shared() {
	c.t.Helper()
	held := c.holders()
	for _, m := range c.nodes {
		if held[m.id] < dts.Shards/len(c.nodes)/2 {
			c.t.Errorf("the shards are not shared fairly: %v", held)
		}
	}
	if len(held) != len(c.nodes) {
		c.t.Errorf("%d servers, and these hold shards: %v", len(c.nodes), held)
	}
}

// starts returns all starts of all servers, in order.
func (c *cluster) starts() []start {
	var list []start
	for _, m := range c.nodes {
		list = append(list, m.run.list()...)
	}
	slices.SortFunc(list, func(a, b start) int { return a.at.Compare(b.at) })
	return list
}

// TestClusterShares: servers that come and go move shards, and no occurrence is lost, doubled or late.
func TestClusterShares(t *testing.T) {
	inCluster(t, 3, func(c *cluster) {
		time.Sleep(12 * time.Second)
		c.shared()
		var made []*dts.RecurringTask
		for i := range 30 {
			made = append(made, c.nodes[i%3].every("* * * * * *", nil))
		}
		gone := c.nodes[0]
		time.Sleep(20*time.Second + time.Second/2)
		before := gone.run.list()
		gone.leave()
		time.Sleep(900 * time.Millisecond)
		c.shared()
		time.Sleep(20 * time.Second)
		c.join("node-4")
		time.Sleep(20 * time.Second)
		synctest.Wait()
		c.shared()
		seen := map[string]int{}
		for _, s := range append(before, c.starts()...) {
			seen[s.id]++
			if late := s.at.Sub(s.due); late > 900*time.Millisecond {
				t.Errorf("an occurrence of %v started %v late", s.due, late)
			}
		}
		for id, n := range seen {
			if n != 1 {
				t.Errorf("task %s ran %d times", id, n)
			}
		}
		for _, r := range made {
			list := c.nodes[0].ledgerOf(c, r.ID)
			if len(list) < 60 || len(slices.Compact(slices.Clone(list))) != len(list) {
				t.Errorf("%d instants in the ledger: %v", len(list), list)
			}
		}
		if len(seen) < 30*60 {
			t.Errorf("%d occurrences ran", len(seen))
		}
	})
}

// ledgerOf reads a ledger past the server's own way to the database.
func (m *member) ledgerOf(c *cluster, id string) []string {
	w := &world{t: m.t, st: c.look, ctx: m.ctx}
	return w.ledger(id)
}

// TestClusterDeath: the others take over from a server that is cut off. It stops starting anything before they
// do, and what it did in the meantime does not count.
func TestClusterDeath(t *testing.T) {
	inCluster(t, 3, func(c *cluster) {
		time.Sleep(12 * time.Second)
		lost := c.nodes[0]
		lost.run.behave(takes(time.Hour))
		long := lost.add(0, nil)
		once := lost.add(0, func(k *dts.Task) { k.Delivery, k.Retry.MaxAttempts = dts.AtMostOnce, 1 })
		time.Sleep(time.Second)
		var mine []*dts.Task
		for i := range 60 {
			lost.run.behave(nil)
			mine = append(mine, lost.add(time.Duration(i)*time.Second+time.Second/2, nil))
		}
		lost.every("* * * * * *", nil) // its occurrences of the next 20 s are in memory
		time.Sleep(time.Second)
		cutAt := time.Now()
		lost.cut.off.Store(true)
		time.Sleep(27 * time.Second)
		c.forget(c.nodes[0])
		c.shared()
		last := lost.run.list()[len(lost.run.list())-1].at
		if d := last.Sub(cutAt); d > 15*time.Second || d < 8*time.Second {
			t.Errorf("the last start of the server that was cut off came after %v", d)
		}
		if k := c.nodes[0].lookAt(c, long.ID); k.Attempts != 2 || k.Status != dts.Success {
			t.Errorf("the task that it was running is %s after %d attempts", k.Status, k.Attempts)
		}
		if k := c.nodes[0].lookAt(c, once.ID); k.Status != dts.Failed || k.LastError != "lost" {
			t.Errorf("the AT_MOST_ONCE task that it was running is %s: %s", k.Status, k.LastError)
		}
		lost.cut.off.Store(false)
		time.Sleep(45 * time.Second)
		c.mu.Lock()
		c.nodes = append(c.nodes, lost)
		c.mu.Unlock()
		c.shared()
		runs := map[string]int{}
		for _, s := range c.starts() {
			runs[s.id]++
		}
		for _, k := range mine {
			now := c.nodes[0].lookAt(c, k.ID)
			if now.Status != dts.Success || now.Attempts != 1 || runs[k.ID] < 1 || runs[k.ID] > 2 {
				t.Errorf("the task due at %v is %s after %d attempts, %d starts", k.RunAt, now.Status, now.Attempts, runs[k.ID])
			}
			if d := now.StartedAt.Sub(now.DueAt); d > 23*time.Second {
				t.Errorf("the task due at %v started %v late", k.RunAt, d)
			}
		}
		if runs[once.ID] != 1 {
			t.Errorf("the AT_MOST_ONCE task ran %d times", runs[once.ID])
		}
	})
}

func (m *member) lookAt(c *cluster, id string) *dts.Task {
	m.t.Helper()
	k, err := c.look.Task(m.ctx, dts.DefaultTenant, id)
	if err != nil {
		m.t.Fatal(err)
	}
	return k
}

// TestClusterRunsOutliveAHandover: what runs while its shard goes to another server ends where it runs; what it
// leaves to do, the new holder does.
func TestClusterRunsOutliveAHandover(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		t.Run(fmt.Sprint("deaf ", deaf), func(t *testing.T) {
			inCluster(t, 1, func(c *cluster) {
				c.setDeaf(deaf)
				time.Sleep(6 * time.Second)
				old := c.nodes[0]
				old.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome {
					time.Sleep(30 * time.Second)
					return fails(ctx, j)
				})
				var ids []string
				for range 40 {
					ids = append(ids, old.add(0, nil).ID)
				}
				never := old.every("* * * * * *", func(r *dts.RecurringTask) { r.OverlapPolicy = dts.OverlapSkip })
				time.Sleep(3*time.Second + time.Millisecond)
				c.join("node-2")
				time.Sleep(12 * time.Second)
				c.shared()
				for _, id := range ids {
					if k := old.lookAt(c, id); k.Status != dts.Running || k.Attempts != 1 {
						t.Fatalf("in mid-run the task is %s after %d attempts", k.Status, k.Attempts)
					}
				}
				time.Sleep(25 * time.Second)
				synctest.Wait()
				by := map[string]int{}
				for _, id := range ids {
					k := old.lookAt(c, id)
					by[k.Node+" "+string(k.Status)]++
					if k.Attempts != 2 {
						t.Errorf("task %s is %s after %d attempts", id, k.Status, k.Attempts)
					}
				}
				if by["node-2 SUCCESS"] < 10 || by["node-1 RUNNING"] < 10 || len(by) != 2 {
					t.Errorf("the second attempts: %v", by)
				}
				runs := runsOf(c.starts(), c, never.ID)
				if next := runs[1].at.Sub(runs[0].at); next < 30*time.Second {
					t.Errorf("of runs that must not overlap, the second started %v after the first, which took 30 s", next)
				}
			})
		})
	}
}

func runsOf(list []start, c *cluster, recurring string) []start {
	return slices.DeleteFunc(list, func(s start) bool { return c.nodes[0].lookAt(c, s.id).RecurringTaskID != recurring })
}

// TestClusterVerbs: each verb is refused where another server is responsible, and done where the task is held, or
// runs.
func TestClusterVerbs(t *testing.T) {
	inCluster(t, 2, func(c *cluster) {
		time.Sleep(12 * time.Second)
		a, b := c.nodes[0], c.nodes[1]
		a.run.behave(takes(time.Hour))
		waits, runs := a.add(time.Hour, nil), a.add(0, nil)
		r := a.every("0 0 1 1 *", nil)
		time.Sleep(time.Second)
		elsewhere := func(what string, err error) {
			t.Helper()
			if dts.CodeOf(err) != dts.ErrElsewhere {
				t.Errorf("%s: %v, want %s", what, err, dts.ErrElsewhere)
			}
		}
		for _, id := range []string{waits.ID, runs.ID} {
			_, err := b.s.DoTask(b.ctx, dts.DefaultTenant, id, dts.Cancel, "me")
			elsewhere("cancel", err)
		}
		_, err := b.s.ModifyTask(b.ctx, dts.DefaultTenant, waits.ID, dts.TaskPatch{})
		elsewhere("modify", err)
		_, err = b.s.PauseRecurring(b.ctx, dts.DefaultTenant, r.ID, time.Time{}, "", "me")
		elsewhere("pause", err)
		_, err = b.s.TriggerRecurring(b.ctx, dts.DefaultTenant, r.ID, "me")
		elsewhere("trigger", err)
		if n, err := b.s.Bulk(b.ctx, dts.BulkChange{Verb: dts.BulkCancel, Filter: dts.TaskFilter{TenantID: dts.DefaultTenant}}); n.Matched != 0 || err != nil {
			t.Errorf("%+v was cancelled from elsewhere, %v", n, err)
		}
		for _, id := range []string{waits.ID, runs.ID} {
			if k := a.do(id, dts.Cancel); k.Status != dts.Cancelled {
				t.Errorf("%s after cancel", k.Status)
			}
		}
		p := a.s.Placement()
		if n, found := p.Node(b.id); !found || n.Address != "http://node-2" || p.Self != a.id {
			t.Errorf("the placement: %+v", p)
		}
		by := map[string]int{}
		for _, id := range p.Holders {
			by[id]++
		}
		if !maps.Equal(by, c.holders()) {
			t.Errorf("the placement says %v, the database %v", by, c.holders())
		}
	})
}

// TestClusterTwoOfOneID: a server whose data directory was copied does not take turns with the original.
func TestClusterTwoOfOneID(t *testing.T) {
	inCluster(t, 1, func(c *cluster) {
		time.Sleep(6 * time.Second)
		first := c.nodes[0]
		copied := c.join("node-1")
		time.Sleep(time.Minute)
		if err := copied.s.Ready(); err != nil {
			t.Errorf("the newer one: %v", err)
		}
		if err := first.s.Ready(); err == nil {
			t.Error("the older one is ready")
		} else {
			t.Log(err)
		}
		k := copied.add(0, nil)
		time.Sleep(time.Second)
		if k = copied.task(k.ID); k.Status != dts.Success {
			t.Errorf("the task is %s", k.Status)
		}
	})
}

// TestClusterOutage: when no server reaches the database for a while, starts stop, and afterwards everything goes on
// where it was: nobody counts as dead who only could not say that it lives.
func TestClusterOutage(t *testing.T) {
	inCluster(t, 3, func(c *cluster) {
		time.Sleep(12 * time.Second)
		before := c.holders()
		r := c.nodes[0].every("* * * * * *", nil)
		time.Sleep(3 * time.Second)
		for _, m := range c.nodes {
			m.cut.off.Store(true)
		}
		time.Sleep(50 * time.Second)
		n := len(c.starts())
		if err := c.nodes[0].s.Ready(); err == nil {
			t.Error("a server is ready although its lease has run out")
		}
		time.Sleep(10 * time.Second)
		if more := len(c.starts()); more != n {
			t.Errorf("%d starts without a lease", more-n)
		}
		for i, m := range c.nodes {
			time.Sleep(time.Duration(i) * time.Second)
			m.cut.off.Store(false)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if after := c.holders(); !maps.Equal(before, after) {
			t.Errorf("the shards moved: %v, then %v", before, after)
		}
		all, err := c.look.Members(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range all.Nodes {
			if n.State != dts.NodeAlive {
				t.Errorf("%s is %s", n.ID, n.State)
			}
		}
		if list := c.nodes[0].ledgerOf(c, r.ID); len(list) < 70 {
			t.Errorf("%d instants are accounted for: %v", len(list), list)
		}
	})
}
