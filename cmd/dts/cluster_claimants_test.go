package main_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"dts"
	"dts/migrations"
	"dts/store"
	"dts/store/rqlite"
	"dts/store/rqlite/rqlitetest"
)

// claimShards are the shards that the claimants fight for.
const claimShards = 3

// TestClaims lets three servers' stores take, lose and release shards, declare each other dead, and start and end
// tasks under their fences, on a real cluster whose leader is killed and stopped meanwhile. What they were told is
// checked for linearizability.
func TestClaims(t *testing.T) {
	seed, lasts := clusterSeed(t), 5*time.Second
	switch n := faultsAsked(t); {
	case n >= longFaults:
		lasts = 2 * time.Minute
	case n > 0:
		lasts = 12 * time.Second
	}
	c := rqlitetest.Start(t, rqlitetest.Options{Nodes: 3})
	a := newArena(t, c.URLs(), seed)
	stop := a.fight()
	rng := rand.New(rand.NewPCG(seed, 99))
	faults := map[string]int{}
	for end := time.Now().Add(lasts); time.Now().Before(end); {
		time.Sleep(time.Duration(500+rng.IntN(1500)) * time.Millisecond)
		victim, who := c.Leader(), "leader"
		if rng.IntN(4) == 0 {
			victim, who = c.Followers()[0], "follower"
		}
		away := time.Duration(300+rng.IntN(4000)) * time.Millisecond
		if rng.IntN(2) == 0 {
			faults[who+" killed"]++
			victim.Kill()
			time.Sleep(away)
			victim.Start()
		} else {
			faults[who+" stopped"]++
			victim.Pause()
			time.Sleep(away)
			victim.Continue()
		}
		victim.WaitReady()
	}
	stop()
	a.lastLook()
	t.Logf("rqlite: %v", faults)
	if !checkClaims(t, a.history) {
		t.Errorf("the history is not linearizable; DTS_CLUSTER_SEED=%d makes the same choices again", seed)
	}
}

// TestClaimsPlanted plants a take that does not compare: the checker must find it.
func TestClaimsPlanted(t *testing.T) {
	c := rqlitetest.Start(t, rqlitetest.Options{})
	a := newArena(t, c.URLs(), 1)
	a.planted = true
	stop := a.fight()
	time.Sleep(3 * time.Second)
	stop()
	a.lastLook()
	if checkClaims(t, a.history) {
		t.Error("a take that does not compare was not found")
	}
}

// arena is where claimants meet.
type arena struct {
	t       *testing.T
	began   time.Time
	tasks   [claimShards]*dts.Task
	list    []*claimant
	planted bool // takes do not compare

	mu      sync.Mutex
	history []porcupine.Operation
}

// claimant is one server's store, and what it believes.
type claimant struct {
	a     *arena
	index int
	db    *rqlite.DB
	st    *store.Store
	rng   *rand.Rand

	births  int // incarnations so far
	fence   dts.Fence
	beat    int64
	members dts.Members
	running [claimShards]claimTask // what it started and has not ended
}

func newArena(t *testing.T, urls []string, seed uint64) *arena {
	t.Helper()
	a := &arena{t: t, began: time.Now()}
	for i := range claimants {
		// Each begins with another node of rqlite. A short limit makes many outcomes unknown.
		mine := append(append([]string{}, urls[i%len(urls):]...), urls[:i%len(urls)]...)
		db, err := rqlite.Open(t.Context(), rqlite.Options{URLs: mine, Migrations: migrations.FS, WriteTimeout: 2 * time.Second, ReadTimeout: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		st := store.New(db, store.Options{})
		t.Cleanup(func() { st.Close() })
		a.list = append(a.list, &claimant{a: a, index: i, db: db, st: st, rng: rand.New(rand.NewPCG(seed, uint64(i)))})
	}
	c := a.list[0]
	// A server that is in no history makes the tables' rows.
	maker := dts.Node{ID: "maker", Incarnation: "1", StartedAt: a.began, SeenAt: a.began}
	if err := c.st.Register(t.Context(), maker, false); err != nil {
		t.Fatal(err)
	}
	for i := range a.tasks {
		k := &dts.Task{Spec: commandSpec("true"), RunAt: a.began}
		if err := k.Normalize(a.began); err != nil {
			t.Fatal(err)
		}
		k.Shard = i
		a.tasks[i] = k
		if _, err := c.st.InsertTasks(t.Context(), dts.Fence{Alone: true}, []*dts.Task{k}); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// fight lets all claimants act until the function that it returns is called.
func (a *arena) fight() (stop func()) {
	ctx, cancel := context.WithCancel(a.t.Context())
	var all sync.WaitGroup
	for _, c := range a.list {
		all.Go(func() {
			for ctx.Err() == nil {
				c.act()
				time.Sleep(time.Duration(c.rng.IntN(20)) * time.Millisecond)
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

// lastLook reads everything when all is quiet, so that what is wrong at the end is found too.
func (a *arena) lastLook() {
	a.t.Helper()
	c := a.list[0]
	eventually(a.t, 30*time.Second, "a last look", func() bool {
		ok := c.look()
		for shard := range claimShards {
			ok = ok && c.lookAtTask(shard)
		}
		return ok
	})
}

// id names a claimant in the tables.
func (c *claimant) id() string { return fmt.Sprint("claimant-", c.index) }

// indexOf is the claimant that a name in the tables stands for.
func indexOf(id string) int {
	var n int
	if _, err := fmt.Sscanf(id, "claimant-%d", &n); err != nil {
		return nobody
	}
	return n
}

// record runs an operation and adds it to the history, unless it says that nothing was done.
func (c *claimant) record(o claimOp, do func(context.Context) error) claimAnswer {
	o.by = c.index
	if o.incarnation == 0 {
		o.incarnation = c.births
	}
	call := time.Since(c.a.began).Nanoseconds()
	err := do(context.Background())
	back := time.Since(c.a.began).Nanoseconds()
	var answer claimAnswer
	switch {
	case err == nil:
		answer = claimAnswer{known: true, ok: true}
	case errors.Is(err, store.ErrRefused):
		answer.known = true
	case dts.CodeOf(err) == dts.ErrUnavailable:
		return answer // as if it had never been asked: if that is a lie, others have seen what it did
	default:
		back = time.Hour.Nanoseconds() // it may still happen
	}
	c.add(o, answer, call, back)
	return answer
}

func (c *claimant) add(o claimOp, answer claimAnswer, call, back int64) {
	c.a.mu.Lock()
	defer c.a.mu.Unlock()
	c.a.history = append(c.a.history, porcupine.Operation{ClientId: c.index, Input: o, Call: call, Output: answer, Return: back})
}

// act does one thing.
func (c *claimant) act() {
	if c.births == 0 {
		c.register()
		return
	}
	shard := c.rng.IntN(claimShards)
	switch k := c.rng.IntN(100); {
	case k < 20:
		c.look()
	case k < 30:
		c.sendBeat()
	case k < 33:
		c.declare()
	case k < 50:
		c.take(shard)
	case k < 58:
		c.release(shard)
	case k < 75:
		c.start(shard)
	case k < 92:
		c.end(shard)
	default:
		c.lookAtTask(shard)
	}
}

// register begins a new life.
func (c *claimant) register() {
	n := dts.Node{ID: c.id(), Incarnation: strconv.Itoa(c.births + 1), StartedAt: time.Now(), SeenAt: time.Now()}
	// A number is used once, also when nobody knows what became of it.
	c.births++
	c.record(claimOp{kind: "register", shard: nobody}, func(ctx context.Context) error { return c.st.Register(ctx, n, false) })
	c.fence = dts.Fence{Node: n.ID, Incarnation: n.Incarnation, Terms: &dts.Terms{}}
	c.beat, c.running = 0, [claimShards]claimTask{}
}

// sendBeat beats, and registers anew when that is refused.
func (c *claimant) sendBeat() {
	c.beat++
	a := c.record(claimOp{kind: "beat", shard: nobody, beat: c.beat}, func(ctx context.Context) error { return c.st.Beat(ctx, c.fence, c.beat, time.Now()) })
	if a.known && !a.ok {
		c.register()
	}
}

// look reads the members; false means that it could not.
func (c *claimant) look() bool {
	call := time.Since(c.a.began).Nanoseconds()
	m, err := c.st.Members(context.Background())
	back := time.Since(c.a.began).Nanoseconds()
	if err != nil {
		return false
	}
	c.members = m
	for shard := range claimShards {
		h := m.Holders[shard]
		c.add(claimOp{kind: "see shard", shard: shard}, claimAnswer{known: true, ok: true, holder: indexOf(h.Node), term: h.Term}, call, back)
	}
	for _, n := range m.Nodes {
		if i := indexOf(n.ID); i != nobody {
			c.add(claimOp{kind: "see node", shard: nobody, other: i}, claimAnswer{known: true, ok: true, node: sightOf(n)}, call, back)
		}
	}
	return true
}

func sightOf(n dts.Node) claimNode {
	births, _ := strconv.Atoi(n.Incarnation)
	return claimNode{incarnation: births, alive: n.State.Runs(), beat: n.Beat}
}

// declare declares one of the others dead, as it was last seen.
func (c *claimant) declare() {
	for _, n := range c.members.Nodes {
		i := indexOf(n.ID)
		if i == nobody || i == c.index || !n.State.Runs() || c.rng.IntN(2) == 0 {
			continue
		}
		c.record(claimOp{kind: "declare", shard: nobody, other: i, seen: sightOf(n)}, func(ctx context.Context) error { return c.st.DeclareDead(ctx, c.fence, n) })
		return
	}
}

// take takes a shard as it was last seen.
func (c *claimant) take(shard int) {
	h := c.members.Holders[shard]
	o := claimOp{kind: "take", shard: shard, holder: indexOf(h.Node), term: h.Term}
	a := c.record(o, func(ctx context.Context) error {
		if c.a.planted {
			_, err := c.db.Apply(ctx, store.Stmt{SQL: `UPDATE shards SET node_id = ?, term = term + 1 WHERE shard = ?`, Args: []any{c.fence.Node, shard}})
			return err
		}
		return c.st.TakeShards(ctx, c.fence, []dts.Take{{Shard: shard, From: h}})
	})
	if a.ok {
		c.hold(shard, h.Term+1)
	}
}

func (c *claimant) hold(shard int, term int64) {
	terms := *c.fence.Terms
	terms[shard] = term
	c.fence.Terms = &terms
}

func (c *claimant) release(shard int) {
	term := c.fence.Term(shard)
	if term == 0 {
		return
	}
	c.record(claimOp{kind: "release", shard: shard, term: term}, func(ctx context.Context) error {
		return c.st.ReleaseShards(ctx, c.fence, dts.SetOf(shard))
	})
	if c.rng.IntN(3) > 0 { // else it goes on as if it had not
		c.hold(shard, 0)
	}
}

// attempt is the record of an attempt.
func (c *claimant) attempt(shard, number int, term int64) *dts.Record {
	k := c.a.tasks[shard]
	return &dts.Record{Task: k, Term: term, Attempt: dts.Attempt{TaskID: k.ID, TenantID: k.TenantID, Number: number, State: dts.AttemptRunning, Node: c.id(), StartedAt: time.Now()}}
}

// start starts the next attempt of a shard's task, if this one believes that it holds the shard.
func (c *claimant) start(shard int) {
	term := c.fence.Term(shard)
	if term == 0 {
		return
	}
	number := c.running[shard].attempts + 1
	a := c.record(claimOp{kind: "start", shard: shard, term: term, number: number}, func(ctx context.Context) error {
		return c.st.Write(ctx, c.fence, []*dts.Record{c.attempt(shard, number, term)})
	})
	if a.ok {
		c.running[shard] = claimTask{attempts: number, running: true, term: term}
	}
	c.lookAtTask(shard)
}

// end ends an attempt that was started, whoever holds the shard now.
func (c *claimant) end(shard int) {
	k := c.running[shard]
	if !k.running {
		return
	}
	r := c.attempt(shard, k.attempts, k.term)
	after := *r.Task
	after.Status, after.Attempts, after.NextAttemptAt = dts.Pending, k.attempts, time.Now()
	r.Shown, r.After, r.Attempt.State, r.Attempt.CompletedAt = true, &after, dts.AttemptFailed, time.Now()
	a := c.record(claimOp{kind: "end", shard: shard, term: k.term, number: k.attempts}, func(ctx context.Context) error {
		return c.st.Write(ctx, c.fence, []*dts.Record{r})
	})
	if a.known {
		c.running[shard].running = false
	}
}

// lookAtTask reads a task; false means that it could not.
func (c *claimant) lookAtTask(shard int) bool {
	call := time.Since(c.a.began).Nanoseconds()
	var status, node string
	var k claimTask
	rows, err := c.db.Query(context.Background(), store.Linearizable, store.Stmt{
		SQL: `SELECT status, attempts, coalesce(node, ''), term FROM tasks WHERE task_id = ?`, Args: []any{c.a.tasks[shard].ID}})
	if err != nil {
		return false
	}
	defer rows.Close()
	if !rows.Next() {
		return false
	}
	if err := rows.Scan(&status, &k.attempts, &node, &k.term); err != nil {
		c.a.t.Error(err)
		return false
	}
	back := time.Since(c.a.began).Nanoseconds()
	if status == string(dts.Running) {
		k.running, k.by = true, indexOf(node)
	} else {
		k.term = 0
	}
	// Of a task that another has in hand, the next number is known now.
	if !c.running[shard].running {
		c.running[shard].attempts = k.attempts
	}
	c.add(claimOp{kind: "see task", shard: shard}, claimAnswer{known: true, ok: true, task: k}, call, back)
	return true
}
