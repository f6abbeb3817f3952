package sched_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"dts"
	"dts/sched"
)

func TestFiresOnTime(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		due := []time.Duration{0, 10 * time.Millisecond, time.Second, 90 * time.Second, 9 * time.Minute, 3 * time.Hour, 24 * time.Hour}
		ids := map[string]time.Time{}
		for _, d := range due {
			task := w.add(d, nil)
			ids[task.ID] = task.DueAt
		}
		w.settle(25 * time.Hour)
		starts := w.run.list()
		if len(starts) != len(due) {
			t.Fatalf("%d starts, want %d", len(starts), len(due))
		}
		for _, s := range starts {
			if late := s.at.Sub(ids[s.id]); late < 0 || late > time.Millisecond {
				t.Errorf("task due at %v started %v late", ids[s.id], late)
			}
			got := w.task(s.id)
			if got.Status != dts.Success || got.SLAMet == nil || !*got.SLAMet || got.LatenessUS == nil || got.Attempts != 1 || got.CompletedAt.IsZero() {
				t.Errorf("task after its run: %+v", got)
			}
		}
	})
}

func TestRetries(t *testing.T) {
	no := false
	inWorld(t, nil, func(w *world) {
		w.run.behave(fails)
		task := w.add(0, func(t *dts.Task) {
			t.Retry = dts.Retry{MaxAttempts: 4, Backoff: dts.List, DelaysMS: []int64{1000, 60_000, 3_600_000}, Jitter: &no}
		})
		w.settle(2 * time.Hour)
		var gaps []time.Duration
		starts := w.run.list()
		for i := 1; i < len(starts); i++ {
			gaps = append(gaps, starts[i].at.Sub(starts[i-1].at).Round(time.Millisecond))
		}
		if len(gaps) != 3 || gaps[0] != time.Second || gaps[1] != time.Minute || gaps[2] != time.Hour {
			t.Errorf("gaps between attempts: %v", gaps)
		}
		got := w.task(task.ID)
		if got.Status != dts.Failed || got.Attempts != 4 || got.LastError != "answered 500" || got.ResponseStatus != 500 {
			t.Errorf("after the last attempt: %+v", got)
		}
		for i, a := range w.attempts(task.ID) {
			if a.Number != i+1 || a.State != dts.AttemptFailed || a.LatenessUS > 1000 {
				t.Errorf("attempt: %+v", a)
			}
		}
		// A retry by hand allows one more.
		w.run.behave(nil)
		w.do(task.ID, dts.RetryNow)
		w.settle(time.Second)
		if got := w.task(task.ID); got.Status != dts.Success || got.Attempts != 5 || got.LastError != "" {
			t.Errorf("after a retry by hand: %+v", got)
		}
	})
}

// TestVerbs: every verb in every state.
func TestVerbs(t *testing.T) {
	states := map[dts.Status]func(w *world) string{
		dts.Pending: func(w *world) string { return w.add(time.Hour, nil).ID },
		dts.Running: func(w *world) string {
			w.run.behave(takes(10 * time.Minute))
			id := w.add(0, nil).ID
			w.settle(time.Second)
			return id
		},
		dts.Success: func(w *world) string {
			id := w.add(0, nil).ID
			w.settle(time.Second)
			return id
		},
		dts.Failed: func(w *world) string {
			w.run.behave(fails)
			id := w.add(0, func(t *dts.Task) { t.Retry.MaxAttempts = 1 }).ID
			w.settle(time.Second)
			w.run.behave(nil)
			return id
		},
		dts.Cancelled: func(w *world) string {
			id := w.add(time.Hour, nil).ID
			w.do(id, dts.Cancel)
			return id
		},
		dts.Skipped: func(w *world) string {
			// Expires before a slot is free. The times are long because SQLite's waits for a lock, a few
			// seconds at most, take the bubble's time.
			w.run.behave(takes(10 * time.Minute))
			for range 2 {
				w.add(0, nil)
			}
			id := w.add(0, func(t *dts.Task) { t.ExpiresAt = w.now().Add(5 * time.Minute) }).ID
			w.settle(11 * time.Minute)
			w.run.behave(nil)
			w.settle(11 * time.Minute)
			return id
		},
	}
	const refused, gone = dts.Status("refused"), dts.Status("gone")
	want := map[dts.Verb]map[dts.Status]dts.Status{
		dts.Modify:        {dts.Pending: dts.Pending},
		dts.Cancel:        {dts.Pending: dts.Cancelled, dts.Running: dts.Cancelled, dts.Cancelled: dts.Cancelled},
		dts.RetryNow:      {dts.Failed: dts.Success, dts.Cancelled: dts.Success, dts.Skipped: dts.Success},
		dts.ForceComplete: {dts.Pending: dts.Success, dts.Failed: dts.Success, dts.Cancelled: dts.Success, dts.Skipped: dts.Success, dts.Success: dts.Success},
		dts.RunNow:        {dts.Pending: dts.Success},
		dts.Delete:        {dts.Pending: gone, dts.Success: gone, dts.Failed: gone, dts.Cancelled: gone, dts.Skipped: gone},
	}
	for verb, row := range want {
		for state, prepare := range states {
			result := row[state]
			if result == "" {
				result = refused
			}
			t.Run(string(verb)+" "+string(state), func(t *testing.T) {
				inWorld(t, func(o *sched.Options) { o.HTTPSlots = 2 }, func(w *world) {
					id := prepare(w)
					if got := w.task(id).Status; got != state {
						t.Fatalf("prepared a task in state %s", got)
					}
					var err error
					if verb == dts.Modify {
						name := "renamed"
						_, err = w.s.ModifyTask(w.ctx, dts.DefaultTenant, id, dts.TaskPatch{TaskTemplatePatch: dts.TaskTemplatePatch{Name: &name}})
					} else {
						_, err = w.s.DoTask(w.ctx, dts.DefaultTenant, id, verb, "tester")
					}
					w.settle(time.Second)
					if result == refused {
						if dts.CodeOf(err) != dts.ErrConflict {
							t.Fatalf("error %v, want a conflict", err)
						}
						if got := w.task(id).Status; got != state {
							t.Errorf("refused, but the task is %s now", got)
						}
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					got, err := w.st.Task(w.ctx, dts.DefaultTenant, id)
					switch {
					case result == gone:
						if dts.CodeOf(err) != dts.ErrNotFound {
							t.Errorf("the task is still there: %v %v", got, err)
						}
					case err != nil:
						t.Error(err)
					case got.Status != result:
						t.Errorf("the task is %s, want %s", got.Status, result)
					}
					// Whatever was done, other tasks go on.
					other := w.add(time.Second, nil).ID
					w.run.behave(nil)
					w.settle(20 * time.Minute)
					if got := w.task(other).Status; got != dts.Success {
						t.Errorf("another task is %s afterwards", got)
					}
				})
			})
		}
	}
}

func TestModifyMovesTheTime(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		for _, from := range []time.Duration{time.Second, time.Minute, 20 * time.Minute} {
			for _, to := range []time.Duration{0, 2 * time.Second, 5 * time.Minute, 30 * time.Minute} {
				task := w.add(from, nil)
				at, before := w.now().Add(to), len(w.run.list())
				if _, err := w.s.ModifyTask(w.ctx, dts.DefaultTenant, task.ID, dts.TaskPatch{RunAt: &at}); err != nil {
					t.Fatal(err)
				}
				w.settle(time.Hour)
				starts := w.run.list()[before:]
				if len(starts) != 1 || starts[0].at.Sub(at) < 0 || starts[0].at.Sub(at) > time.Millisecond {
					t.Errorf("moved from %v to %v: started %+v, want at %v", from, to, starts, at)
				}
			}
		}
	})
}

func TestSlotsAndPriorities(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.HTTPSlots = 1 }, func(w *world) {
		w.run.behave(takes(time.Second))
		ids := map[string]dts.Priority{}
		for range 9 {
			for _, p := range []dts.Priority{dts.Low, dts.Medium, dts.High} {
				ids[w.add(5*time.Second, func(t *dts.Task) { t.Priority = p }).ID] = p
			}
		}
		w.settle(5*time.Second + 9*time.Second - time.Millisecond)
		got := map[dts.Priority]int{}
		for _, s := range w.run.list() {
			got[ids[s.id]]++
		}
		if got[dts.High] != 5 || got[dts.Medium] != 3 || got[dts.Low] != 1 {
			t.Errorf("of the first nine services: %v, want 5:3:1", got)
		}
		w.settle(time.Minute)
	})
}

func TestIdempotencyKeys(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		key := func(hash string) func(*dts.Task) {
			return func(t *dts.Task) { t.IdempotencyKey, t.RequestHash = "k", hash }
		}
		first := w.add(time.Hour, key("a"))
		if again := w.add(2*time.Hour, key("a")); again.ID != first.ID || !again.RunAt.Equal(first.RunAt) {
			t.Errorf("the same request made %s, want %s", again.ID, first.ID)
		}
		other := &dts.Task{Spec: w.spec()}
		key("b")(other)
		if err := other.Normalize(w.now()); err != nil {
			t.Fatal(err)
		}
		if _, err := w.s.CreateTasks(w.ctx, []*dts.Task{other}); dts.CodeOf(err) != dts.ErrConflict {
			t.Errorf("another request under the key: %v, want a conflict", err)
		}
	})
}

func TestLostRuns(t *testing.T) {
	for _, c := range []struct {
		name     string
		edit     func(*dts.Task)
		status   dts.Status
		attempts int
		err      string
	}{
		{"at least once", nil, dts.Success, 2, ""},
		{"at least once, without retries", func(t *dts.Task) { t.Retry.MaxAttempts = 1 }, dts.Success, 2, ""},
		{"at most once", func(t *dts.Task) { t.Delivery = dts.AtMostOnce }, dts.Failed, 1, "lost"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(o *sched.Options) { o.DrainTimeout = time.Second }, func(w *world) {
				w.run.behave(takes(time.Hour))
				task := w.add(0, c.edit)
				w.settle(time.Second)
				if got := w.task(task.ID); got.Status != dts.Running || got.Attempts != 1 {
					t.Fatalf("not running: %+v", got)
				}
				w.stop() // drains for a second, then the run is lost
				w.run.behave(nil)
				w.start()
				w.settle(time.Second)
				got := w.task(task.ID)
				if got.Status != c.status || got.Attempts != c.attempts || got.LastError != c.err {
					t.Errorf("after the restart: %s, %d attempts, %q", got.Status, got.Attempts, got.LastError)
				}
				if list := w.attempts(task.ID); list[0].State != dts.AttemptLost {
					t.Errorf("first attempt: %+v", list[0])
				}
			})
		})
	}
}

func TestDrain(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.run.behave(takes(10 * time.Second))
		running := w.add(0, nil)
		w.settle(time.Second)
		waiting := w.add(time.Second, nil)
		w.restart(time.Minute)
		if got := w.task(running.ID); got.Status != dts.Success {
			t.Errorf("the run was not let finish: %+v", got)
		}
		w.settle(time.Minute)
		if got := w.task(waiting.ID); got.Status != dts.Success || got.Attempts != 1 {
			t.Errorf("what became due meanwhile: %+v", got)
		}
	})
}

// TestHeapIsBounded: more tasks than the heap holds, inserted and due in random order, all fire on time.
func TestHeapIsBounded(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.HeapLimit, o.ClaimLimit = 40, 20 }, func(w *world) {
		due := map[string]time.Time{}
		for i := range 600 {
			d := time.Duration(i*7919%600) * time.Second
			task := w.add(5*time.Second+d, nil)
			due[task.ID] = task.DueAt
			if n := w.s.Status().HeapSize; n > 81 {
				t.Fatalf("%d entries in the heap", n)
			}
		}
		w.settle(time.Hour)
		starts := w.run.list()
		if len(starts) != 600 {
			t.Errorf("%d starts, want 600", len(starts))
		}
		for _, s := range starts {
			if late := s.at.Sub(due[s.id]); late < 0 || late > time.Millisecond {
				t.Errorf("started %v late", late)
			}
		}
	})
}

func TestContextEndsOnlyTheWait(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.run.behave(takes(time.Minute))
		task := w.add(0, nil)
		w.settle(time.Second)
		w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome { return dts.Outcome{State: dts.AttemptSuccess} })
		ctx, cancel := context.WithCancel(w.ctx)
		cancel()
		if _, err := w.s.DoTask(ctx, dts.DefaultTenant, task.ID, dts.Cancel, "tester"); err == nil {
			t.Error("a request that was given up succeeded")
		}
		w.settle(2 * time.Minute)
		other := w.add(0, nil)
		w.settle(time.Second)
		if got := w.task(other.ID); got.Status != dts.Success {
			t.Errorf("another task is %s", got.Status)
		}
	})
}

// forgetful is a store whose writes take effect and then fail with an unknown outcome, while told to.
type forgetful struct {
	sched.Store
	on *atomic.Bool
}

func (f forgetful) unknown(err error) error {
	if err == nil && f.on.Load() {
		return dts.Errorf(dts.ErrUnknown, "the outcome is unknown")
	}
	return err
}

func (f forgetful) InsertTasks(ctx context.Context, fence dts.Fence, tasks []*dts.Task) ([]dts.Created[*dts.Task], error) {
	made, err := f.Store.InsertTasks(ctx, fence, tasks)
	if err = f.unknown(err); err != nil {
		return nil, err
	}
	return made, nil
}

func (f forgetful) Change(ctx context.Context, fence dts.Fence, changes []dts.Change, now time.Time) error {
	return f.unknown(f.Store.Change(ctx, fence, changes, now))
}

// A write that took effect although it failed is found out: what it stored is run, what it cancelled is not.
func TestUnknownOutcome(t *testing.T) {
	var on atomic.Bool
	inWorld(t, func(o *sched.Options) { o.Store = forgetful{o.Store, &on} }, func(w *world) {
		cancelled, moved := w.add(30*time.Second, nil), w.add(8*time.Minute, nil)
		w.settle(time.Second)
		on.Store(true)
		soon := &dts.Task{Spec: w.spec(), RunAt: w.now().Add(20 * time.Second)}
		later := &dts.Task{Spec: w.spec(), RunAt: w.now().Add(9 * time.Minute)}
		for _, task := range []*dts.Task{soon, later} {
			if err := task.Normalize(w.now()); err != nil {
				t.Fatal(err)
			}
			if _, err := w.s.CreateTasks(w.ctx, []*dts.Task{task}); dts.CodeOf(err) != dts.ErrUnknown {
				t.Fatal(err)
			}
		}
		for id, v := range map[string]dts.Verb{cancelled.ID: dts.Cancel, moved.ID: dts.RunNow} {
			if _, err := w.s.DoTask(w.ctx, dts.DefaultTenant, id, v, "test"); dts.CodeOf(err) != dts.ErrUnknown {
				t.Fatal(err)
			}
		}
		on.Store(false)
		w.settle(time.Minute)
		for id, want := range map[string]dts.Status{soon.ID: dts.Success, moved.ID: dts.Success, cancelled.ID: dts.Cancelled, later.ID: dts.Pending} {
			if got := w.task(id); got.Status != want {
				t.Errorf("task due at %v: %s, want %s", got.RunAt, got.Status, want)
			}
		}
		w.settle(10 * time.Minute)
		if got := w.task(later.ID); got.Status != dts.Success || *got.LatenessUS > 1000 {
			t.Errorf("the later task: %+v", got)
		}
		if n := len(w.run.list()); n != 3 {
			t.Errorf("%d starts, want 3", n)
		}
	})
}
