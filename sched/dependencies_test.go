package sched_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"dts"
)

// after makes a task depend on others, with the given type or MUST_SUCCEED.
func after(parents ...*dts.Task) func(*dts.Task) {
	return func(t *dts.Task) {
		for _, p := range parents {
			t.DependsOn = append(t.DependsOn, dts.DependsOn{TaskID: p.ID})
		}
	}
}

// order is the tasks that started, by their names.
func (w *world) order() (names []string) {
	for _, s := range w.run.list() {
		names = append(names, w.task(s.id).Name)
	}
	return names
}

func named(name string, edits ...func(*dts.Task)) func(*dts.Task) {
	return func(t *dts.Task) {
		t.Name = name
		for _, f := range edits {
			f(t)
		}
	}
}

// TestDependencyChain: each task starts when the one before has ended, not at its own time, and says how long that took.
func TestDependencyChain(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.run.behave(takes(time.Minute))
		a := w.add(0, named("a"))
		b := w.add(0, named("b", after(a)))
		c := w.add(3*time.Minute, named("c", after(b)))
		d := w.add(0, named("d", after(a, c)))
		w.settle(30 * time.Second)
		if got := w.task(d.ID); got.Unresolved != 2 || got.Status != dts.Pending {
			t.Errorf("%s, waits for %d", got.Status, got.Unresolved)
		}
		w.settle(10 * time.Minute)
		if got := w.order(); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
			t.Error(got)
		}
		for _, k := range []*dts.Task{a, b, c, d} {
			got := w.task(k.ID)
			if got.Status != dts.Success || *got.LatenessUS > 100 {
				t.Errorf("%s: %s, %d µs late", got.Name, got.Status, *got.LatenessUS)
			}
		}
		if got := w.task(b.ID); got.StartedAt.Sub(a.DueAt) != time.Minute || got.Timing(w.now()).ParentUS != time.Minute.Microseconds() {
			t.Errorf("b started after %v: %+v", got.StartedAt.Sub(a.DueAt), got.Timing(w.now()))
		}
		if got := w.task(c.ID); got.StartedAt.Sub(c.DueAt) != 0 {
			t.Errorf("c started %v after it was due", got.StartedAt.Sub(c.DueAt))
		}
	})
}

// TestDependencyFails: who waits for what fails is skipped, and so on, and watchers are told; run-now and retry run it.
func TestDependencyFails(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		events, stop := w.s.Subscribe(dts.DefaultTenant)
		defer stop()
		w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome {
			if j.Task.Name == "bad" {
				return fails(ctx, j)
			}
			return dts.Outcome{State: dts.AttemptSuccess}
		})
		once := func(t *dts.Task) { t.Retry.MaxAttempts = 1 }
		bad := w.add(time.Hour, named("bad", once))
		last := bad
		var list []*dts.Task
		for i := range 200 {
			last = w.add(0, named(fmt.Sprint("n", i), after(last)))
			list = append(list, last)
		}
		clean := w.add(0, named("clean", after(last), func(t *dts.Task) { t.DependsOn[0].Type = dts.MustFinish }))
		fail := w.add(0, named("fail", after(bad), func(t *dts.Task) { t.OnDependencyFailure = dts.FailOnFailure }))
		hurry := w.add(0, named("hurry", after(bad)))
		w.settle(time.Minute)
		w.do(hurry.ID, dts.RunNow)
		w.settle(2 * time.Hour)
		if got := w.task(hurry.ID); got.Status != dts.Success || got.Unresolved != 0 || *got.LatenessUS > 100 {
			t.Errorf("run-now: %+v", got)
		}
		for _, k := range list {
			if got := w.task(k.ID); got.Status != dts.Skipped || got.SkipReason != dts.ReasonDependency || got.LastError == "" || got.CompletedAt.IsZero() {
				t.Fatalf("%s: %s %q", got.Name, got.Status, got.LastError)
			}
		}
		if got := w.task(clean.ID); got.Status != dts.Success {
			t.Errorf("who must only wait for the end: %s", got.Status)
		}
		if got := w.task(fail.ID); got.Status != dts.Failed || got.SkipReason != dts.ReasonDependency {
			t.Errorf("who is to fail: %s", got.Status)
		}
		w.do(list[0].ID, dts.RetryNow)
		w.settle(time.Minute)
		if got := w.task(list[0].ID); got.Status != dts.Success || got.SkipReason != "" {
			t.Errorf("retried: %s %q", got.Status, got.LastError)
		}
		if got := w.task(list[1].ID); got.Status != dts.Skipped {
			t.Errorf("what was skipped because of it stays so: %s", got.Status)
		}
		skipped, failed := 0, 0
		for len(events) > 0 {
			switch e := <-events; {
			case e.Type == dts.EventSkipped:
				skipped++
			case e.TaskID == fail.ID && e.Type == dts.EventFinished:
				failed++
			}
		}
		if skipped != len(list) || failed != 1 {
			t.Errorf("told of %d that were skipped and %d that failed", skipped, failed)
		}
		late := w.add(0, named("late", after(bad)))
		if late.Status != dts.Skipped {
			t.Errorf("a new task whose parent has failed: %s", late.Status)
		}
	})
}

// TestDependencyAdded: what a task depends on changes while it waits, also where it is about to start.
func TestDependencyAdded(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.run.behave(takes(time.Minute))
		long := w.add(0, named("long"))
		x := w.add(time.Second, named("x")) // claimed already
		far := w.add(2*time.Hour, named("far"))
		w.settle(100 * time.Millisecond)
		one := []dts.DependsOn{{TaskID: long.ID, Type: dts.MustSucceed}}
		for _, k := range []*dts.Task{x, far} {
			g, err := w.s.AddDependencies(w.ctx, dts.DefaultTenant, k.ID, one)
			if err != nil || len(g.Tasks) < 2 || g.Tasks[0].Unresolved != 1 {
				t.Fatalf("%+v, %v", g, err)
			}
		}
		if _, err := w.s.AddDependencies(w.ctx, dts.DefaultTenant, long.ID, one); dts.CodeOf(err) != dts.ErrConflict {
			t.Errorf("a task that runs: %v", err)
		}
		w.settle(30 * time.Second)
		if got := w.order(); !slices.Equal(got, []string{"long"}) {
			t.Fatal(got)
		}
		if _, err := w.s.RemoveDependency(w.ctx, dts.DefaultTenant, x.ID, long.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := w.s.RemoveDependency(w.ctx, dts.DefaultTenant, far.ID, x.ID); dts.CodeOf(err) != dts.ErrNotFound {
			t.Errorf("one that was never there is removed: %v", err)
		}
		w.settle(time.Second)
		if got := w.order(); !slices.Equal(got, []string{"long", "x"}) {
			t.Fatal(got)
		}
		w.settle(time.Hour)
		w.modify(far.ID, 10*time.Minute)
		w.settle(5 * time.Minute)
		if got := w.order(); len(got) != 2 {
			t.Fatal(got)
		}
		w.settle(time.Hour)
		if got := w.task(far.ID); got.Status != dts.Success || *got.LatenessUS > 100 {
			t.Errorf("%+v", got)
		}
	})
}

func (w *world) modify(id string, in time.Duration) {
	w.t.Helper()
	at := w.now().Add(in)
	if _, err := w.s.ModifyTask(w.ctx, dts.DefaultTenant, id, dts.TaskPatch{RunAt: &at}); err != nil {
		w.t.Fatal(err)
	}
}

// TestDependencyRace: a verb holds a task in the very moment in which its last parent ends. It runs all the same, once.
func TestDependencyRace(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.run.behave(takes(time.Second))
		var children []*dts.Task
		for range 50 {
			p := w.add(0, nil)
			children = append(children, w.add(0, after(p)))
		}
		time.Sleep(time.Second - time.Millisecond)
		for i, k := range children {
			go func() {
				time.Sleep(time.Duration(i) * 40 * time.Microsecond)
				name := "changed"
				w.s.ModifyTask(w.ctx, dts.DefaultTenant, k.ID, dts.TaskPatch{TaskTemplatePatch: dts.TaskTemplatePatch{Name: &name}})
			}()
		}
		w.settle(time.Minute)
		for _, k := range children {
			if got := w.task(k.ID); got.Status != dts.Success || got.Attempts != 1 {
				t.Errorf("%s, %d attempts", got.Status, got.Attempts)
			}
		}
	})
}

// TestDependencyRestart: a server stops while tasks wait, and while some have been skipped and others not told of it. The next
// one goes on.
func TestDependencyRestart(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		a := w.add(time.Hour, named("a"))
		b := w.add(0, named("b", after(a)))
		bad := w.add(0, named("bad", func(t *dts.Task) { t.Retry.MaxAttempts, t.RunAt = 1, t.RunAt.Add(time.Hour) }))
		skip := w.add(0, named("skip", after(bad)))
		far := w.add(0, named("far", after(skip)))
		w.restart(time.Minute)
		// Its own cascade has only begun when the server stops: it does here what a crash leaves behind.
		w.s.Stop(w.ctx)
		f := w.fence()
		at := w.now()
		ended := *bad
		ended.Status, ended.CompletedAt = dts.Cancelled, at
		if err := w.st.Change(w.ctx, f, []dts.Change{{Old: bad, New: &ended}}, at); err != nil {
			t.Fatal(err)
		}
		if got := w.task(far.ID); got.Status != dts.Pending || got.Unresolved != 1 {
			t.Fatalf("%s", got.Status)
		}
		if err := w.st.Close(); err != nil {
			t.Fatal(err)
		}
		w.start()
		w.settle(time.Second)
		for _, k := range []*dts.Task{skip, far} {
			if got := w.task(k.ID); got.Status != dts.Skipped {
				t.Errorf("%s: %s", got.Name, got.Status)
			}
		}
		w.settle(2 * time.Hour)
		for _, k := range []*dts.Task{a, b} {
			if got := w.task(k.ID); got.Status != dts.Success {
				t.Errorf("%s: %s", got.Name, got.Status)
			}
		}
	})
}

// fence is what the server that has just stopped was.
func (w *world) fence() dts.Fence {
	w.t.Helper()
	m, err := w.st.Members(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	f := dts.Fence{Node: m.Nodes[0].ID, Incarnation: m.Nodes[0].Incarnation, Terms: &dts.Terms{}, Alone: true}
	for i, h := range m.Holders {
		f.Terms[i] = h.Term
	}
	return f
}

// TestDependencyParentAgain: a parent that is retried makes those wait again that have not started.
func TestDependencyParentAgain(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		a := w.add(0, named("a"))
		b := w.add(time.Hour, named("b", after(a), func(t *dts.Task) { t.DependsOn[0].Type = dts.MustFinish }))
		w.settle(time.Minute)
		w.run.behave(takes(2 * time.Hour))
		a2 := w.task(a.ID)
		if a2.Status != dts.Success {
			t.Fatal(a2.Status)
		}
		w.do(a.ID, dts.ForceComplete) // nothing
		c := w.add(0, named("c", func(t *dts.Task) { t.Retry.MaxAttempts = 1 }))
		d := w.add(time.Hour, named("d", after(c), func(t *dts.Task) { t.DependsOn[0].Type = dts.MustFinish }))
		w.settle(time.Second)
		w.do(c.ID, dts.Cancel)
		w.settle(time.Second)
		if got := w.task(d.ID); got.Unresolved != 0 {
			t.Fatal(got.Unresolved)
		}
		w.do(c.ID, dts.RetryNow) // two hours from now
		w.settle(90 * time.Minute)
		if got := w.task(d.ID); got.Status != dts.Pending || got.Unresolved != 1 || !got.StartedAt.IsZero() {
			t.Errorf("%s, waits for %d", got.Status, got.Unresolved)
		}
		w.settle(time.Hour)
		if got := w.task(d.ID); got.Status != dts.Running && got.Status != dts.Success {
			t.Errorf("%s, waits for %d", got.Status, got.Unresolved)
		}
		if got := w.task(b.ID); got.StartedAt.IsZero() {
			t.Errorf("%s", got.Status)
		}
		w.settle(5 * time.Hour)
	})
}

// TestDependencyStartedJustNow: what has started a moment before its parent is retried goes on, whatever becomes of the parent: also
// where its start, or its end, is not on the disk yet.
func TestDependencyStartedJustNow(t *testing.T) {
	for _, bulk := range []bool{false, true} {
		for _, lasts := range []time.Duration{10 * time.Millisecond, 5 * time.Second} {
			inWorld(t, nil, func(w *world) {
				w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome {
					if j.Task.Name == "parent" {
						return fails(ctx, j)
					}
					return takes(lasts)(ctx, j)
				})
				parent := w.add(0, named("parent", func(t *dts.Task) { t.Retry.MaxAttempts = 1 }))
				w.settle(time.Second)
				child := w.add(time.Minute, named("child", after(parent), func(t *dts.Task) {
					t.DependsOn[0].Type = dts.MustFail
				}))
				w.settle(time.Minute + 10*time.Millisecond)
				w.run.behave(takes(0))
				if bulk {
					if _, err := w.s.Bulk(w.ctx, dts.BulkChange{Verb: dts.BulkRetry, Filter: dts.TaskFilter{TenantID: dts.DefaultTenant, IDs: []string{parent.ID}}}); err != nil {
						t.Fatal(err)
					}
				} else {
					w.do(parent.ID, dts.RetryNow)
				}
				w.settle(time.Minute)
				if p, c := w.task(parent.ID), w.task(child.ID); p.Status != dts.Success || c.Status != dts.Success || c.Attempts != 1 {
					t.Errorf("bulk %v, lasts %v: the parent is %s, the child %s (%s) after %d attempts", bulk, lasts, p.Status, c.Status, c.SkipReason, c.Attempts)
				}
			})
		}
	}
}

// TestDependencyAcrossServers: a parent at one server, its child at another: it starts at once when it is told, and within a
// second when not; what is skipped is told where it lies.
func TestDependencyAcrossServers(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		inCluster(t, 2, func(c *cluster) {
			c.setDeaf(deaf)
			time.Sleep(30 * time.Second)
			one, two := c.nodes[0], c.nodes[1]
			one.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome {
				if j.Task.Name == "bad" {
					return fails(ctx, j)
				}
				return takes(10*time.Second)(ctx, j)
			})
			parent := one.add(0, named("parent"))
			bad := one.add(0, named("bad", func(t *dts.Task) { t.Retry.MaxAttempts, t.RunAt = 1, t.RunAt.Add(10*time.Second) }))
			child := two.add(0, named("child", after(parent)))
			skipped := two.add(0, named("skipped", after(bad)))
			deep := one.add(0, named("deep", after(skipped)))
			events, stop := two.s.Subscribe(dts.DefaultTenant)
			defer stop()
			time.Sleep(9 * time.Second)
			if got := one.task(child.ID); got.Unresolved != 1 || got.Status != dts.Pending {
				t.Fatalf("%s, waits for %d", got.Status, got.Unresolved)
			}
			time.Sleep(4 * time.Second)
			got := one.task(child.ID)
			limit := 100 * time.Millisecond
			if deaf {
				limit = 1100 * time.Millisecond
			}
			if got.Status != dts.Success || got.Node != two.id || time.Duration(*got.LatenessUS)*time.Microsecond > limit {
				t.Errorf("deaf %v: %s at %s", deaf, got.Status, got.Node)
				if got.LatenessUS != nil {
					t.Errorf("%d µs late", *got.LatenessUS)
				}
			}
			for _, k := range []*dts.Task{skipped, deep} {
				if got := one.task(k.ID); got.Status != dts.Skipped {
					t.Errorf("%s: %s", got.Name, got.Status)
				}
			}
			told := false
			for len(events) > 0 {
				e := <-events
				told = told || e.Type == dts.EventSkipped && e.TaskID == skipped.ID
			}
			if !told {
				t.Error("nobody was told of what was skipped")
			}
			if parent.Shard == child.Shard {
				t.Error("both lie in one shard")
			}
		})
	}
}

// TestDependencyServerDies: the server that has ended a parent dies before it could tell anybody. Another one goes on.
func TestDependencyServerDies(t *testing.T) {
	inCluster(t, 2, func(c *cluster) {
		time.Sleep(30 * time.Second)
		one, two := c.nodes[0], c.nodes[1]
		one.run.behave(fails)
		bad := one.add(0, named("bad", func(t *dts.Task) { t.Retry.MaxAttempts, t.RunAt = 1, t.RunAt.Add(10*time.Second) }))
		last := bad
		var list []*dts.Task
		for range 5 {
			last = two.add(0, after(last))
			list = append(list, last)
		}
		var cut sync.Once
		one.cut.decide(of("INSERT INTO attempts", func() fate { // it is written, and nobody hears of it
			cut.Do(func() { time.AfterFunc(time.Millisecond, func() { one.cut.off.Store(true) }) })
			return fate{silent: true}
		}))
		time.Sleep(2 * time.Minute)
		for i, k := range list {
			if got := two.task(k.ID); got.Status != dts.Skipped {
				t.Errorf("%d: %s", i, got.Status)
			}
		}
		one.cut.fates.Store(nil)
		one.cut.off.Store(false)
		time.Sleep(time.Minute)
	})
}

// TestLineOfWhatWaitsAgain: what stands in a line when a task that it depends on is retried does not have its turn before
// that has ended.
func TestLineOfWhatWaitsAgain(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		if _, err := w.s.PutQueue(w.ctx, &dts.Queue{Name: "q", Concurrency: 1}); err != nil {
			t.Fatal(err)
		}
		w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome {
			if j.Task.Queue != "q" && j.Number == 1 {
				return dts.Outcome{State: dts.AttemptFailed, Error: "exit 1"}
			}
			return takes(time.Minute)(ctx, j)
		})
		first := w.add(0, func(k *dts.Task) { k.Queue = "q" })
		parent := w.add(0, func(k *dts.Task) { k.Retry.MaxAttempts = 1 })
		w.settle(time.Second)
		child := w.add(0, func(k *dts.Task) {
			k.Queue, k.DependsOn = "q", []dts.DependsOn{{TaskID: parent.ID, Type: dts.MustFinish}}
		})
		w.settle(30 * time.Second)
		w.do(parent.ID, dts.RetryNow)
		w.settle(50 * time.Second) // first has ended, and parent runs
		if got := w.task(child.ID); got.Status != dts.Pending {
			t.Fatalf("%s while what it depends on runs", got.Status)
		}
		w.settle(3 * time.Minute)
		w.late([]*dts.Task{first, child})
		w.wantAtRest()
	})
}
