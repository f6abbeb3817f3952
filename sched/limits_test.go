package sched_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dts"
	"dts/sched"
)

// gauge counts what runs at once with each concurrency_key, and in each queue.
type gauge struct {
	mu   sync.Mutex
	now  map[string]int
	most map[string]int
}

func newGauge() *gauge { return &gauge{now: map[string]int{}, most: map[string]int{}} }

func (g *gauge) add(name string, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now[name] += n
	g.most[name] = max(g.most[name], g.now[name])
}

// takes makes runs that last d, or until they are stopped, and counts them.
func (g *gauge) takes(d time.Duration) func(context.Context, dts.Job) dts.Outcome {
	return g.during(takes(d))
}

func (g *gauge) during(f func(context.Context, dts.Job) dts.Outcome) func(context.Context, dts.Job) dts.Outcome {
	return func(ctx context.Context, j dts.Job) dts.Outcome {
		for _, name := range []string{dts.KeyLine(j.Task.ConcurrencyKey), dts.QueueLine(j.Task.Queue)} {
			g.add(name, 1)
			defer g.add(name, -1)
		}
		return f(ctx, j)
	}
}

func (g *gauge) want(t *testing.T, name string, most int) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.most[name] != most {
		t.Errorf("%q: %d ran at once, want %d", name, g.most[name], most)
	}
}

// keyed is what a task with a key has.
func keyed(key string, n int) func(*dts.Task) {
	return func(k *dts.Task) { k.ConcurrencyKey, k.ConcurrencyLimit = key, n }
}

// noSlots wants no slot taken and nobody in line.
func (w *world) noSlots() {
	w.t.Helper()
	synctest.Wait()
	if lines, err := w.st.Lines(w.ctx, dts.AllShards); err != nil || len(lines) > 0 {
		w.t.Errorf("in line: %v, %v", lines, err)
	}
	for _, key := range []string{dts.KeyLine("a"), dts.KeyLine("b"), dts.QueueLine("default"), dts.QueueLine("narrow")} {
		k := dts.LineKey{TenantID: dts.DefaultTenant, Line: key}
		if taken, err := w.st.Taken(w.ctx, []dts.LineKey{k}); err != nil || len(taken) > 0 {
			w.t.Errorf("slots taken: %v, %v", taken, err)
		}
	}
	if n, err := w.st.SweepSlots(w.ctx); err != nil || n != 0 {
		w.t.Errorf("%d slots were held by nothing that runs, %v", n, err)
	}
}

func (w *world) wantAll(tasks []*dts.Task, status dts.Status) {
	w.t.Helper()
	for i, k := range tasks {
		if now := w.task(k.ID); now.Status != status || status == dts.Pending && now.Line() == "" {
			w.t.Errorf("task %d is %s, waits for %q", i, now.Status, now.WaitsFor)
		}
	}
}

// TestLimitKey: so many of a key at once as the limit says, in the order of priority and due time; others do not wait for them.
func TestLimitKey(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		g := newGauge()
		w.run.behave(g.takes(10 * time.Second))
		var all []*dts.Task
		for i := range 6 {
			all = append(all, w.add(time.Duration(i)*time.Millisecond, keyed("a", 1)))
		}
		high := w.add(100*time.Millisecond, func(k *dts.Task) { keyed("a", 1)(k); k.Priority = dts.High })
		for range 20 {
			w.add(0, keyed("b", 3))
		}
		free := w.add(200*time.Millisecond, nil)
		w.settle(time.Second)
		if k := w.task(free.ID); k.Status != dts.Running {
			t.Errorf("a task without a key is %s", k.Status)
		}
		if k := w.task(all[1].ID); k.Status != dts.Pending || k.WaitsFor != dts.ReasonConcurrency || !k.StartedAt.IsZero() {
			t.Errorf("the second is %s, waits for %q, started %v", k.Status, k.WaitsFor, k.StartedAt)
		}
		w.settle(80 * time.Second)
		g.want(t, dts.KeyLine("a"), 1)
		g.want(t, dts.KeyLine("b"), 3)
		var order []string
		for _, s := range w.run.list() {
			if w.task(s.id).ConcurrencyKey == "a" {
				order = append(order, s.id)
			}
		}
		want := []string{all[0].ID, high.ID}
		for _, k := range all[1:] {
			want = append(want, k.ID)
		}
		if !slices.Equal(order, want) {
			t.Errorf("they ran in the order %v, want %v", order, want)
		}
		last := w.task(all[5].ID)
		if d := last.StartedAt.Sub(w.task(all[0].ID).StartedAt); d > 60*time.Second+100*time.Millisecond {
			t.Errorf("six runs of 10 s after each other took until %v", d)
		}
		if last.WaitsFor != "" || !last.RunAt.Equal(last.DueAt) || *last.LatenessUS < 59_000_000 {
			t.Errorf("afterwards: waits for %q, run_at %v, due %v, lateness %d", last.WaitsFor, last.RunAt, last.DueAt, *last.LatenessUS)
		}
		w.noSlots()
	})
}

// TestLimitMany: a long line stays in the store, is worked off without pauses, and leaves no other task waiting.
func TestLimitMany(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.ClaimLimit, o.HeapLimit = 64, 500 }, func(w *world) {
		g := newGauge()
		w.run.behave(g.takes(time.Second))
		var all []*dts.Task
		n := 1500
		if testing.Short() {
			n = 700 // still more than memory holds
		}
		for i := range n {
			all = append(all, w.add(time.Duration(i)*time.Microsecond, keyed("a", 50)))
		}
		w.settle(2 * time.Second)
		free := w.add(0, nil)
		w.settle(100 * time.Millisecond)
		if k := w.task(free.ID); k.Status != dts.Running {
			t.Errorf("a task without a key is %s", k.Status)
		}
		w.settle(30 * time.Second)
		w.wantAll(all, dts.Success)
		g.want(t, dts.KeyLine("a"), 50)
		w.noSlots()
	})
}

// TestLimitsDiffer: each task applies its own limit to the number that runs.
func TestLimitsDiffer(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		g := newGauge()
		w.run.behave(g.takes(10 * time.Second))
		w.add(0, keyed("a", 2))
		w.add(time.Millisecond, keyed("a", 2))
		w.settle(time.Second)
		third := w.add(0, keyed("a", 3))
		w.settle(time.Second)
		if k := w.task(third.ID); k.Status != dts.Running {
			t.Errorf("the third, of three, is %s", k.Status)
		}
		alone := w.add(0, keyed("a", 1))
		w.settle(time.Second)
		behind := w.add(0, keyed("a", 9))
		w.settle(7500 * time.Millisecond)
		w.wantAll([]*dts.Task{alone, behind}, dts.Pending) // who comes first is not overtaken
		w.settle(time.Second)
		if a, b := w.task(alone.ID), w.task(behind.ID); a.Status != dts.Running || b.Status != dts.Running || !b.StartedAt.After(a.StartedAt) && !b.StartedAt.Equal(a.StartedAt) {
			t.Errorf("%s at %v, and behind it %s at %v", a.Status, a.StartedAt, b.Status, b.StartedAt)
		}
		w.settle(30 * time.Second)
		w.noSlots()
	})
}

// TestLimitVerbs: every verb on a task that waits in line, and the end of a running one by cancel.
func TestLimitVerbs(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		g := newGauge()
		w.run.behave(g.takes(time.Hour))
		first := w.add(0, keyed("a", 1))
		w.settle(time.Millisecond)
		var all []*dts.Task
		for range 7 {
			all = append(all, w.add(0, keyed("a", 1)))
			time.Sleep(time.Millisecond)
		}
		w.settle(time.Second)
		w.wantAll(all, dts.Pending)
		if k := w.do(all[0].ID, dts.Cancel); k.Status != dts.Cancelled || k.WaitsFor != "" {
			t.Errorf("cancelled: %s, %q", k.Status, k.WaitsFor)
		}
		w.do(all[1].ID, dts.Delete)
		w.do(all[2].ID, dts.ForceComplete)
		w.do(all[3].ID, dts.RunNow)
		none := ""
		if _, err := w.s.ModifyTask(w.ctx, dts.DefaultTenant, all[4].ID, dts.TaskPatch{TaskTemplatePatch: dts.TaskTemplatePatch{ConcurrencyKey: &none}}); err != nil {
			t.Fatal(err)
		}
		name := "other"
		if _, err := w.s.ModifyTask(w.ctx, dts.DefaultTenant, all[5].ID, dts.TaskPatch{TaskTemplatePatch: dts.TaskTemplatePatch{Name: &name}}); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Second)
		if k := w.task(all[4].ID); k.Status != dts.Running {
			t.Errorf("without its key it is %s", k.Status)
		}
		w.wantAll([]*dts.Task{all[3], all[5], all[6]}, dts.Pending) // the limit holds for run-now as well
		for i, next := range []*dts.Task{all[3], all[5], all[6]} {
			w.do([]*dts.Task{first, all[3], all[5]}[i].ID, dts.Cancel)
			w.settle(10 * time.Millisecond)
			if k := w.task(next.ID); k.Status != dts.Running {
				t.Errorf("number %d is %s, though the one before was cancelled", i, k.Status)
			}
		}
		w.do(all[6].ID, dts.Cancel)
		w.do(all[4].ID, dts.Cancel)
		g.want(t, dts.KeyLine("a"), 1)
		w.settle(time.Second)
		w.noSlots()
	})
}

// TestLimitRetries: between two attempts a task has no slot; AT_MOST_ONCE and failing ones give theirs back.
func TestLimitRetries(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		g := newGauge()
		w.run.behave(g.during(func(ctx context.Context, j dts.Job) dts.Outcome {
			time.Sleep(time.Second)
			return fails(ctx, j)
		}))
		var all []*dts.Task
		for i := range 5 {
			all = append(all, w.add(time.Duration(i), func(k *dts.Task) {
				keyed("a", 1)(k)
				if i == 3 {
					k.Delivery, k.Retry.MaxAttempts = dts.AtMostOnce, 1
				}
			}))
		}
		w.settle(5 * time.Minute)
		w.wantAll(all, dts.Failed)
		if n := len(w.run.list()); n != 13 {
			t.Errorf("%d starts, want 13", n)
		}
		g.want(t, dts.KeyLine("a"), 1)
		w.noSlots()
	})
}

// TestLimitRestart: those that wait run after a restart, and so do those that were stopped.
func TestLimitRestart(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.DrainTimeout = time.Second }, func(w *world) {
		g := newGauge()
		w.run.behave(g.takes(10 * time.Second))
		var all []*dts.Task
		for i := range 5 {
			all = append(all, w.add(time.Duration(i), keyed("a", 2)))
		}
		w.settle(time.Second)
		w.restart(time.Minute)
		w.settle(3 * time.Second)
		running := 0
		for _, k := range all {
			if w.task(k.ID).Status == dts.Running {
				running++
			}
		}
		if running != 2 {
			t.Errorf("%d run after the restart", running)
		}
		w.settle(30 * time.Second)
		w.wantAll(all, dts.Success)
		g.want(t, dts.KeyLine("a"), 2)
		w.noSlots()
	})
}

// TestLimitRecurring: two recurring tasks with one key never run at once, also with overlap policies and in a blackout.
func TestLimitRecurring(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		g := newGauge()
		w.run.behave(g.takes(20 * time.Second))
		key := func(p dts.OverlapPolicy) func(*dts.RecurringTask) {
			return func(r *dts.RecurringTask) { r.ConcurrencyKey, r.OverlapPolicy = "a", p }
		}
		allow, one := w.every("* * * * *", key(dts.OverlapAllow)), w.every("* * * * *", key(dts.OverlapBufferOne))
		w.settle(5*time.Minute + 50*time.Second)
		g.want(t, dts.KeyLine("a"), 1)
		for _, r := range []*dts.RecurringTask{allow, one} {
			if list := w.ledger(r.ID); len(list) != 5 || slices.ContainsFunc(list, func(s string) bool { return s[9:] != "SUCCESS" }) {
				t.Errorf("%v", list)
			}
		}
		// The slot is taken for minutes: SKIP skips while one waits, BUFFER_ONE keeps one more.
		skip := w.every("* * * * *", key(dts.OverlapSkip))
		w.run.behave(g.takes(200 * time.Second))
		w.add(0, func(k *dts.Task) { keyed("a", 1)(k); k.Priority = dts.High })
		w.settle(190 * time.Second)
		w.run.behave(g.takes(time.Second))
		w.settle(25 * time.Second)
		skips := 0
		for _, line := range w.ledger(skip.ID) {
			if line[9:] == "skipped 1 OVERLAP" {
				skips++
			}
		}
		if skips != 3 {
			t.Errorf("while one waited for the slot: %v", w.ledger(skip.ID))
		}
		// What has its turn in a blackout waits for its end, and holds nobody up.
		b, err := w.s.CreateBlackout(w.ctx, &dts.Blackout{Name: "closed", Queue: "narrow", Window: dts.Window{Start: w.now(), End: w.now().Add(time.Hour)}})
		if err != nil {
			t.Fatal(err)
		}
		w.add(0, keyed("b", 1))
		w.run.behave(g.takes(10 * time.Second))
		w.add(time.Millisecond, keyed("b", 1))
		w.settle(1500 * time.Millisecond)
		in := w.add(0, func(k *dts.Task) { keyed("b", 1)(k); k.Queue = "narrow" })
		after := w.add(time.Millisecond, keyed("b", 1))
		w.settle(30 * time.Second)
		if k := w.task(in.ID); k.WaitsFor != dts.ReasonBlackout {
			t.Errorf("in the blackout: %s, %q", k.Status, k.WaitsFor)
		}
		if k := w.task(after.ID); k.Status != dts.Success {
			t.Errorf("behind it: %s, %q", k.Status, k.WaitsFor)
		}
		if err := w.s.DeleteBlackout(w.ctx, dts.DefaultTenant, b.ID); err != nil {
			t.Fatal(err)
		}
		w.settle(20 * time.Second)
		if k := w.task(in.ID); k.Status != dts.Success {
			t.Errorf("after the blackout: %s", k.Status)
		}
		g.want(t, dts.KeyLine("b"), 1)
		g.want(t, dts.KeyLine("a"), 1)
	})
}

// TestLimitQueue: a queue's limit, changed while tasks wait, and taken away.
func TestLimitQueue(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		g := newGauge()
		w.run.behave(g.takes(10 * time.Second))
		set := func(n int) {
			t.Helper()
			if _, err := w.s.PutQueue(w.ctx, &dts.Queue{Name: "narrow", Concurrency: n}); err != nil {
				t.Fatal(err)
			}
		}
		running := func(want int64, waiting int64) {
			t.Helper()
			synctest.Wait()
			if q, err := w.s.Queue(w.ctx, dts.DefaultTenant, "narrow"); err != nil || q.Running != want || q.Waiting != waiting {
				t.Errorf("%+v, %v; want %d running, %d waiting", q, err, want, waiting)
			}
		}
		set(2)
		var all []*dts.Task
		for i := range 200 {
			all = append(all, w.add(time.Duration(i), func(k *dts.Task) {
				if k.Queue = "narrow"; i%10 == 9 {
					keyed("a", 1)(k)
				}
			}))
		}
		w.settle(time.Second)
		running(2, 198)
		set(5)
		w.settle(time.Second)
		running(5, 195)
		set(1)
		w.settle(10 * time.Second)
		running(1, 194)
		if err := w.s.DeleteQueue(w.ctx, dts.DefaultTenant, "narrow"); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Second)
		n := 0
		for _, k := range all {
			if w.task(k.ID).Status == dts.Running {
				n++
			}
		}
		if n < 170 {
			t.Errorf("%d run after the limit was taken away", n)
		}
		w.settle(300 * time.Second)
		w.wantAll(all, dts.Success)
		g.want(t, dts.KeyLine("a"), 1)
		w.noSlots()
	})
}

// TestClusterLimit: a limit holds over three servers, while shards move; nobody starves, and a slot that one gives back
// is taken elsewhere.
func TestClusterLimit(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		t.Run(fmt.Sprint("deaf ", deaf), func(t *testing.T) {
			inCluster(t, 3, func(c *cluster) {
				c.setDeaf(deaf)
				time.Sleep(12 * time.Second)
				g := newGauge()
				for _, m := range c.nodes {
					m.run.behave(g.takes(2 * time.Second))
				}
				if _, err := c.nodes[1].s.PutQueue(c.nodes[1].ctx, &dts.Queue{Name: "narrow", Concurrency: 3}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2100 * time.Millisecond)
				var all []*dts.Task
				for i := range 30 {
					all = append(all, c.nodes[i%3].add(time.Duration(i), keyed("a", 1)))
					all = append(all, c.nodes[i%3].add(time.Duration(i), func(k *dts.Task) { k.Queue = "narrow" }))
				}
				time.Sleep(15 * time.Second)
				c.nodes[0].leave()
				time.Sleep(10 * time.Second)
				c.join("node-4").run.behave(g.takes(2 * time.Second))
				time.Sleep(60 * time.Second)
				if deaf {
					time.Sleep(60 * time.Second)
				}
				synctest.Wait()
				w := &world{t: t, st: c.look, ctx: context.Background()}
				w.wantAll(all, dts.Success)
				g.want(t, dts.KeyLine("a"), 1)
				g.want(t, dts.QueueLine("narrow"), 3)
				if !deaf {
					at := map[int]time.Time{}
					for i, k := range all {
						at[i] = w.task(k.ID).StartedAt
					}
					if d := at[58].Sub(at[0]); d > 75*time.Second {
						t.Errorf("thirty runs of 2 s after each other began within %v", d)
					}
				}
				w.noSlots()
			})
		})
	}
}

// TestClusterLimitDeath: slots of a server that is dead are given back, and what waited there runs elsewhere.
func TestClusterLimitDeath(t *testing.T) {
	inCluster(t, 3, func(c *cluster) {
		time.Sleep(12 * time.Second)
		g, lost := newGauge(), c.nodes[0]
		lost.run.behave(takes(time.Hour))
		for _, m := range c.nodes[1:] {
			m.run.behave(g.takes(time.Second))
		}
		all := []*dts.Task{lost.add(0, keyed("a", 1))}
		time.Sleep(100 * time.Millisecond)
		for i := range 12 {
			all = append(all, c.nodes[i%3].add(0, keyed("a", 1)))
		}
		time.Sleep(time.Second)
		lost.cut.off.Store(true)
		time.Sleep(50 * time.Second)
		w := &world{t: t, st: c.look, ctx: context.Background()}
		w.wantAll(all, dts.Success)
		if k := w.task(all[0].ID); k.Attempts != 2 {
			t.Errorf("what ran at the dead server has %d attempts", k.Attempts)
		}
		g.want(t, dts.KeyLine("a"), 1)
		lost.cut.off.Store(false)
		time.Sleep(30 * time.Second)
		w.noSlots()
	})
}

// TestClusterLimitTurns: a server with a long line of its own does not keep the slot from another one's task that comes
// before.
func TestClusterLimitTurns(t *testing.T) {
	inCluster(t, 2, func(c *cluster) {
		time.Sleep(12 * time.Second)
		g := newGauge()
		for _, m := range c.nodes {
			m.run.behave(g.takes(300 * time.Millisecond))
		}
		for i := range 200 {
			c.nodes[0].add(time.Duration(i)*time.Second/10, keyed("a", 1))
		}
		time.Sleep(10 * time.Second)
		k := c.nodes[1].add(0, func(k *dts.Task) { keyed("a", 1)(k); k.Priority = dts.High })
		time.Sleep(900 * time.Millisecond)
		w := &world{t: t, st: c.look, ctx: context.Background()}
		if k = w.task(k.ID); k.Status != dts.Success {
			t.Errorf("it is %s", k.Status)
		}
		time.Sleep(time.Minute)
		g.want(t, dts.KeyLine("a"), 1)
		w.noSlots()
	})
}

// TestLimitConflicts: what shares a key or a queue is foretold to meet there.
func TestLimitConflicts(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		if _, err := w.s.PutQueue(w.ctx, &dts.Queue{Name: "narrow", Concurrency: 2}); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			w.every("0 3 * * *", func(r *dts.RecurringTask) {
				if r.Queue = "narrow"; i < 2 {
					r.ConcurrencyKey = "a"
				}
			})
		}
		list, err := w.s.Conflicts(w.ctx, dts.DefaultTenant, time.Time{}, time.Time{})
		if err != nil || len(list) != 2 {
			t.Fatalf("%+v, %v", list, err)
		}
		slices.SortFunc(list, func(a, b dts.Conflict) int { return a.Limit - b.Limit })
		if a, b := list[0], list[1]; a.Shared != "concurrency key a" || a.Most != 2 || b.Shared != "queue narrow" || b.Limit != 2 || b.Most != 3 {
			t.Errorf("%+v", list)
		}
	})
}

// TestClusterLimitFaults: starts and ends whose answers are lost, or that do not arrive, leave no slot behind.
func TestClusterLimitFaults(t *testing.T) {
	inCluster(t, 2, func(c *cluster) {
		time.Sleep(12 * time.Second)
		g := newGauge()
		for _, m := range c.nodes {
			m.run.behave(g.takes(time.Second))
			n := 0
			m.cut.decide(of("slots", func() fate {
				n++
				return fate{silent: n%5 == 1, cut: n%5 == 3}
			}))
		}
		var all []*dts.Task
		for i := range 20 {
			all = append(all, c.nodes[i%2].add(time.Second+time.Duration(i), keyed("a", 2))) // none starts, and no answer is lost, while they are created
		}
		time.Sleep(90 * time.Second)
		synctest.Wait()
		w := &world{t: t, st: c.look, ctx: context.Background()}
		w.wantAll(all, dts.Success)
		for i, k := range all {
			if n := w.task(k.ID).Attempts; n != 1 {
				t.Errorf("task %d has %d attempts", i, n)
			}
		}
		g.want(t, dts.KeyLine("a"), 2)
		w.noSlots()
	})
}

// TestLimitConflictsOnce: tasks that run once and share a concurrency key collide as well.
func TestLimitConflictsOnce(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		for range 3 {
			w.add(time.Hour, keyed("a", 2))
		}
		w.add(time.Hour, nil)
		list, err := w.s.Conflicts(w.ctx, dts.DefaultTenant, time.Time{}, time.Time{})
		if err != nil || len(list) != 1 {
			t.Fatalf("%d conflicts, %v; want one", len(list), err)
		}
		if c := list[0]; c.Shared != "concurrency key a" || c.Limit != 2 || c.Most != 3 || len(c.Tasks) != 3 {
			t.Errorf("the conflict is %+v", c)
		}
	})
}
