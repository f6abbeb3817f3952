package sched_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dts"
	"dts/store"
)

// TestWorkflowVerbsAtRandom: whatever is done to runs and their steps at the same time, by several at once and with
// restarts between, every run comes to an end that fits its steps, and what ended stays so.
func TestWorkflowVerbsAtRandom(t *testing.T) {
	for seed := range uint64(8) {
		inWorld(t, nil, func(w *world) {
			random := rand.New(rand.NewPCG(seed, 1))
			w.run.behave(atRandom(3*time.Second, 4))
			var runs []*dts.Task
			for range 4 {
				runs = append(runs, w.addRun("a", "b<a", "c<a?", "d<b,c", "e<b!", "f"))
			}
			names := []string{"a", "b", "c", "d", "e", "f"}
			verbs := []dts.Verb{dts.Cancel, dts.RetryNow, dts.RetryNow, dts.RetryNow, dts.ForceComplete, dts.RunNow, dts.PauseTask, dts.ResumeTask}
			for range 3 {
				var all sync.WaitGroup
				for range 4 {
					moves := rand.New(rand.NewPCG(random.Uint64(), 2))
					all.Go(func() {
						for range 12 {
							time.Sleep(time.Duration(moves.IntN(1500)) * time.Millisecond)
							id := runs[moves.IntN(len(runs))].ID
							if moves.IntN(2) == 0 {
								id = dts.StepID(id, names[moves.IntN(len(names))])
							}
							v := verbs[moves.IntN(len(verbs))]
							switch _, err := w.s.DoTask(w.ctx, dts.DefaultTenant, id, v, "tester"); dts.CodeOf(err) {
							case "", dts.ErrConflict, dts.ErrNotFound:
							default:
								t.Errorf("seed %d: %s: %v", seed, v, err)
							}
						}
					})
				}
				all.Wait()
				if random.IntN(2) == 0 {
					w.restart(time.Second)
				}
			}
			for _, run := range runs { // nothing stays paused
				for _, name := range names {
					_, _ = w.s.DoTask(w.ctx, dts.DefaultTenant, dts.StepID(run.ID, name), dts.ResumeTask, "tester")
				}
			}
			w.settle(time.Hour)
			for _, run := range runs {
				got := w.task(run.ID)
				steps, err := w.st.Steps(w.ctx, dts.DefaultTenant, run.ID)
				if err != nil {
					t.Fatal(err)
				}
				bad, open := false, false
				for _, s := range steps {
					open = open || !s.Status.Terminal()
					bad = bad || s.Status == dts.Failed || s.Status == dts.Cancelled || s.Status == dts.Skipped && s.SkipReason != dts.ReasonDependency
				}
				fits := got.Status == dts.Cancelled || got.Status == dts.Success && (!bad || got.LastError != "") ||
					got.Status == dts.Failed // what failed it may have been completed by hand since
				if open || !fits || got.Unresolved != 0 {
					t.Errorf("seed %d: the run is %s (%q), waits for %d, and its steps are %s", seed, got.Status, got.LastError, got.Unresolved, w.states(run.ID))
				}
			}
		})
	}
}

// TestWorkflowVerbsOverABadNetwork: two servers whose writes come late, or are lost, or whose answers are, and one that cannot
// reach the database for a while: every run comes to an end.
func TestWorkflowVerbsOverABadNetwork(t *testing.T) {
	for seed := range uint64(4) {
		inCluster(t, 2, func(c *cluster) {
			time.Sleep(12 * time.Second)
			random := rand.New(rand.NewPCG(seed, 1))
			var mu sync.Mutex
			bad := func(batch []store.Stmt) fate {
				mu.Lock()
				defer mu.Unlock()
				f := fate{early: time.Duration(random.IntN(150)) * time.Millisecond, late: time.Duration(random.IntN(150)) * time.Millisecond}
				switch random.IntN(60) {
				case 0:
					f.cut = true
				case 1:
					f.silent = true
				}
				return f
			}
			var runs []*dts.Task
			for _, m := range c.nodes {
				m.run.behave(atRandom(2*time.Second, 3))
			}
			for i := range 4 {
				runs = append(runs, c.nodes[i%2].addRun("a", "b<a", "c<a?", "d<b,c", "e<b!", "f", "g<f,b"))
			}
			for _, m := range c.nodes {
				m.cut.decide(bad)
			}
			names := []string{"a", "b", "c", "d", "e", "f", "g"}
			verbs := []dts.Verb{dts.Cancel, dts.RetryNow, dts.RetryNow, dts.RetryNow, dts.RetryNow, dts.RetryNow, dts.RetryNow, dts.ForceComplete, dts.Delete}
			var all sync.WaitGroup
			for i := range 6 {
				moves := rand.New(rand.NewPCG(seed, uint64(i+2)))
				all.Go(func() {
					for range 25 {
						time.Sleep(time.Duration(moves.IntN(800)) * time.Millisecond)
						id := runs[moves.IntN(len(runs))].ID
						v := verbs[moves.IntN(len(verbs))]
						if moves.IntN(3) > 0 || v == dts.Delete {
							id = dts.StepID(id, names[moves.IntN(len(names))])
						}
						if v == dts.Delete && moves.IntN(5) > 0 {
							continue
						}
						m := c.nodes[(i+moves.IntN(2))%2]
						_, _ = m.s.DoTask(m.ctx, dts.DefaultTenant, id, v, "tester")
					}
				})
			}
			all.Go(func() {
				time.Sleep(time.Duration(seed) * time.Second)
				m := c.nodes[seed%2]
				m.cut.off.Store(true)
				time.Sleep(50 * time.Second)
				m.cut.off.Store(false)
			})
			all.Wait()
			for _, m := range c.nodes {
				m.cut.decide(func([]store.Stmt) fate { return fate{} })
			}
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			look := &world{t: t, st: c.look, ctx: c.nodes[0].ctx}
			for _, run := range runs {
				got := look.task(run.ID)
				steps, err := c.look.Steps(look.ctx, dts.DefaultTenant, run.ID)
				if err != nil {
					t.Fatal(err)
				}
				open := false
				for _, s := range steps {
					open = open || !s.Status.Terminal()
				}
				if open || !got.Status.Terminal() || got.Unresolved != 0 {
					t.Errorf("seed %d: the run is %s (%q), waits for %d, and its steps are %s", seed, got.Status, got.LastError, got.Unresolved, look.states(run.ID))
				}
			}
		})
	}
}

// atRandom lets each task take up to a time, and one of so many attempts fail: by its id, always the same.
func atRandom(most time.Duration, one uint64) func(context.Context, dts.Job) dts.Outcome {
	return func(ctx context.Context, j dts.Job) dts.Outcome {
		h := uint64(0)
		for _, c := range j.Task.ID {
			h = h*31 + uint64(c)
		}
		out := takes(time.Duration(h%uint64(most.Milliseconds()))*time.Millisecond)(ctx, j)
		if out.State == dts.AttemptSuccess && (h+uint64(j.Number))%one == 0 {
			return fails(ctx, j)
		}
		return out
	}
}
