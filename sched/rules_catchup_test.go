package sched_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"dts"
	"dts/sched"
	"dts/sched/timer"
)

// missing is a recurring task of minutes whose server is down from 00:02:30 on.
func missing(t *testing.T, up time.Duration, edit func(*dts.RecurringTask), then func(w *world, r *dts.RecurringTask)) {
	t.Helper()
	inWorld(t, func(o *sched.Options) { o.Retention = long }, func(w *world) {
		r := w.every("* * * * *", func(r *dts.RecurringTask) {
			r.MisfireAfterSeconds = 20
			edit(r)
		})
		w.settle(150 * time.Second)
		w.restart(up - 150*time.Second)
		w.settle(5 * time.Second)
		then(w, r)
	})
}

// newBegan returns when the runs of instants began that did so after the restart.
func (w *world) newBegan(after time.Duration) (list []string) {
	epoch := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	starts := w.run.list()
	slices.SortStableFunc(starts, func(a, b start) int { return cmp.Or(a.at.Compare(b.at), a.due.Compare(b.due)) })
	for _, s := range starts {
		if at := s.at.Sub(epoch); at >= after {
			list = append(list, fmt.Sprintf("%s at %v", s.due.Format("15:04:05"), at.Truncate(time.Second)))
		}
	}
	return list
}

func TestCatchUpWindow(t *testing.T) {
	for _, c := range []struct {
		mode   dts.CatchUpMode
		window float64
		want   []string
	}{
		{dts.RunAllMissed, 150, []string{"00:09:00 at 10m50s", "00:10:00 at 10m51s"}}, // 00:08:20 and later
		{dts.RunAllMissed, 0, []string{"00:03:00 at 10m50s", "00:04:00 at 10m51s", "00:05:00 at 10m52s", "00:06:00 at 10m53s"}},
		{dts.RunLatest, 60, []string{"00:10:00 at 10m50s"}},
		{dts.RunLatest, 30, nil},
		{dts.RunOneNow, 60, []string{"00:10:50 at 10m50s"}},
		{dts.RunOneNow, 30, nil},
	} {
		t.Run(fmt.Sprintf("%s %v", c.mode, c.window), func(t *testing.T) {
			missing(t, 10*time.Minute+50*time.Second, func(r *dts.RecurringTask) {
				r.CatchUpMode, r.CatchUpWindowSeconds = c.mode, c.window
			}, func(w *world, r *dts.RecurringTask) {
				got := w.newBegan(3 * time.Minute)
				if diff := gocmp.Diff(c.want, got[:min(len(got), max(len(c.want), 4))]); diff != "" && !(c.want == nil && len(got) == 0) {
					t.Errorf("runs (-want +got):\n%s", diff)
				}
				w.book(r.ID, time.Minute)
			})
		})
	}
}

func TestCatchUpLimitAndPacing(t *testing.T) {
	missing(t, 5*time.Hour+30*time.Second, func(r *dts.RecurringTask) {
		r.CatchUpMode, r.CatchUpLimit, r.CatchUpPacingSeconds = dts.RunAllMissed, 3, 9
	}, func(w *world, r *dts.RecurringTask) {
		w.settle(20 * time.Second)
		want := []string{"04:58:00 at 5h0m30s", "04:59:00 at 5h0m39s", "05:00:00 at 5h0m48s"}
		if diff := gocmp.Diff(want, w.newBegan(3*time.Minute)); diff != "" {
			t.Errorf("runs (-want +got):\n%s", diff)
		}
		for _, x := range w.book(r.ID, time.Minute).tasks {
			if x.Status == dts.Success && !x.DueAt.Equal(x.ScheduledAt) {
				t.Errorf("the run of %s says that it was due %s", x.ScheduledAt, x.DueAt)
			}
		}
	})
}

// TestMisfireLimit: what is late by misfire_after exactly is not missed, whether it was planned before or not.
func TestMisfireLimit(t *testing.T) {
	for _, up := range []time.Duration{5*time.Minute + 20*time.Second, 5*time.Hour + 20*time.Second} {
		for late, runs := range map[time.Duration]int{0: 1, time.Microsecond: 0} {
			t.Run(fmt.Sprint(up, late), func(t *testing.T) {
				missing(t, up+late, func(r *dts.RecurringTask) { r.CatchUpMode = dts.SkipMissed }, func(w *world, r *dts.RecurringTask) {
					if got := w.newBegan(3 * time.Minute); len(got) != runs {
						t.Errorf("ran %v, want %d", got, runs)
					}
				})
			})
		}
	}
}

// TestYearOfSeconds: a year without a server is decided about at once, and is one range.
func TestYearOfSeconds(t *testing.T) {
	for _, mode := range allModes {
		t.Run(string(mode), func(t *testing.T) {
			inWorld(t, func(o *sched.Options) { o.Retention = long }, func(w *world) {
				r := w.every("* * * * * *", func(r *dts.RecurringTask) { r.CatchUpMode = mode })
				w.settle(30*time.Second + 500*time.Millisecond)
				w.stop()
				w.step(365 * 24 * time.Hour)
				begin := timer.Boottime() // not the clock of the bubble
				w.start()
				w.settle(time.Millisecond)
				t.Logf("decided in %v", timer.Boottime()-begin)
				if took := timer.Boottime() - begin; took > 20*time.Second { // a machine with much to do; else milliseconds
					t.Errorf("it took %v", took)
				}
				w.settle(200 * time.Second)
				ranges := 0
				for _, k := range w.book(r.ID, time.Second).skips {
					switch {
					case k.Reason != dts.ReasonCatchUp:
						t.Errorf("a skip for %s", k.Reason)
					case k.Count > 1:
						ranges++
					}
				}
				if ranges != 1 {
					t.Errorf("%d ranges, want 1", ranges)
				}
			})
		})
	}
}

func TestMaxRunsInAnOutage(t *testing.T) {
	for mode, want := range map[dts.CatchUpMode]int64{dts.RunLatest: 5, dts.RunOneNow: 5, dts.RunAllMissed: 5, dts.SkipMissed: 5} {
		for _, up := range []time.Duration{4*time.Minute + 40*time.Second, 2*time.Hour + 40*time.Second} {
			t.Run(fmt.Sprint(mode, up), func(t *testing.T) {
				missing(t, up, func(r *dts.RecurringTask) { r.CatchUpMode, r.MaxRuns = mode, 5 }, func(w *world, r *dts.RecurringTask) {
					w.settle(20 * time.Minute)
					if got := w.recurring(r.ID); got.RunsCount != want || got.Status != dts.Completed {
						t.Errorf("%d runs, %s; want %d, COMPLETED", got.RunsCount, got.Status, want)
					}
					w.book(r.ID, time.Minute)
					w.atRest()
				})
			})
		}
	}
}

func TestEndTimeInAnOutage(t *testing.T) {
	for mode, want := range map[dts.CatchUpMode][]string{
		dts.RunLatest:    {"00:05:00 at 1h0m0s"},
		dts.RunAllMissed: {"00:03:00 at 1h0m0s", "00:04:00 at 1h0m1s", "00:05:00 at 1h0m2s"},
		dts.RunOneNow:    {"01:00:00 at 1h0m0s"},
		dts.SkipMissed:   nil,
	} {
		t.Run(string(mode), func(t *testing.T) {
			missing(t, time.Hour, func(r *dts.RecurringTask) {
				r.CatchUpMode, r.EndTime = mode, time.Date(2000, 1, 1, 0, 5, 0, 0, time.UTC)
			}, func(w *world, r *dts.RecurringTask) {
				if diff := gocmp.Diff(want, w.newBegan(3*time.Minute)); diff != "" {
					t.Errorf("runs (-want +got):\n%s", diff)
				}
				w.settle(time.Minute)
				b := w.book(r.ID, time.Minute)
				n := int64(0)
				for _, k := range b.skips {
					n += k.Count
				}
				for _, x := range b.tasks {
					if x.Origin == dts.OriginSchedule && x.Status != dts.Skipped {
						n++
					}
				}
				if got := w.recurring(r.ID); n != 5 || got.Status != dts.Completed {
					t.Errorf("%d instants of 5, %s", n, got.Status)
				}
				w.atRest()
			})
		})
	}
}

func TestJitterRule(t *testing.T) {
	edit := func(r *dts.RecurringTask) { r.JitterSeconds, r.CatchUpMode = 30, dts.SkipMissed }
	var jitter time.Duration
	// Late by less than misfire_after after it was due, and by more; planned before the outage, and not.
	for _, c := range []struct {
		up   time.Duration
		late time.Duration
		runs int
	}{{5 * time.Minute, 19 * time.Second, 1}, {5 * time.Minute, 21 * time.Second, 0}, {5 * time.Hour, 19 * time.Second, 1}, {5 * time.Hour, 21 * time.Second, 0}} {
		t.Run(fmt.Sprint(c.up, c.late), func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				r := w.every("* * * * *", func(r *dts.RecurringTask) {
					r.MisfireAfterSeconds = 20
					edit(r)
				})
				jitter = r.Jitter()
				if jitter < 0 || jitter >= 30*time.Second {
					t.Fatalf("a jitter of %v", jitter)
				}
				w.settle(2*time.Minute + 50*time.Second)
				for _, s := range w.run.list() {
					if x := w.task(s.id); !x.DueAt.Equal(x.ScheduledAt.Add(jitter)) || x.ScheduledAt.Second() != 0 || !s.at.Equal(x.DueAt) {
						t.Errorf("scheduled %s, due %s, began %s; the jitter is %v", x.ScheduledAt, x.DueAt, s.at, jitter)
					}
				}
				n := len(w.run.list())
				if n != 2 {
					t.Errorf("%d runs before the outage", n)
				}
				w.restart(c.up + jitter + c.late - 170*time.Second)
				w.settle(100 * time.Millisecond)
				if got := len(w.run.list()) - n; got != c.runs {
					t.Errorf("%d runs after the outage, want %d", got, c.runs)
				}
				w.settle(time.Minute)
				last := w.run.list()[len(w.run.list())-1]
				if x := w.task(last.id); !x.DueAt.Equal(x.ScheduledAt.Add(jitter)) || !last.at.Equal(x.DueAt) {
					t.Errorf("after the restart: scheduled %s, due %s, began %s; the jitter is %v", x.ScheduledAt, x.DueAt, last.at, jitter)
				}
				w.book(r.ID, time.Minute)
			})
		})
	}
}

// TestBufferAllLimit: a hundred wait, visibly and over a restart; those after are skipped; they run in their order.
func TestBufferAllLimit(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.DrainTimeout = time.Second }, func(w *world) {
		gate := make(chan struct{})
		var open atomic.Bool
		w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome {
			if open.Load() {
				return dts.Outcome{State: dts.AttemptSuccess}
			}
			select {
			case <-gate:
				return dts.Outcome{State: dts.AttemptSuccess}
			case <-ctx.Done():
				return lastsFor(ctx, time.Hour)
			}
		})
		r := w.every("* * * * *", func(r *dts.RecurringTask) {
			r.OverlapPolicy, r.EndTime = dts.OverlapBufferAll, w.now().Add(110*time.Minute)
		})
		w.settle(105*time.Minute + 30*time.Second)
		waiting := func() (n int) {
			for _, x := range w.book(r.ID, time.Minute).tasks {
				if x.Status == dts.Pending && x.Attempts == 0 && x.ScheduledAt.Before(w.now()) {
					if n++; x.WaitsFor != dts.ReasonOverlap {
						t.Errorf("%s waits for %q", x.ScheduledAt, x.WaitsFor)
					}
				}
			}
			return n
		}
		if n := waiting(); n != dts.MaxBuffered {
			t.Errorf("%d wait, want %d", n, dts.MaxBuffered)
		}
		w.restart(10 * time.Second)
		w.settle(time.Second)
		if n := waiting(); n != dts.MaxBuffered {
			t.Errorf("%d wait after a restart, want %d", n, dts.MaxBuffered)
		}
		w.settle(10 * time.Minute)
		before := len(w.run.list())
		open.Store(true)
		close(gate)
		w.settle(time.Minute)
		after := w.run.list()[before:]
		if len(after) != dts.MaxBuffered || !slices.IsSortedFunc(after, func(a, b start) int { return a.due.Compare(b.due) }) {
			t.Errorf("%d ran, or in another order than their instants'", len(after))
		}
		skipped := int64(0)
		for _, k := range w.book(r.ID, time.Minute).skips {
			if skipped += k.Count; k.Reason != dts.ReasonOverlap {
				t.Errorf("a skip for %s", k.Reason)
			}
		}
		if skipped != 9 {
			t.Errorf("%d skipped, want 9", skipped)
		}
		w.atRest()
	})
}

// TestWaitsForIsOver: what ran after it had waited does not say that it waits, neither while it runs, nor between two
// attempts, nor after.
func TestWaitsForIsOver(t *testing.T) {
	no := false
	inWorld(t, nil, func(w *world) {
		w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome {
			out := lastsFor(ctx, 70*time.Second)
			if j.Task.ScheduledAt.Minute() == 2 && j.Number == 1 {
				return fails(ctx, j)
			}
			return out
		})
		r := w.every("* * * * *", func(r *dts.RecurringTask) {
			r.OverlapPolicy, r.EndTime = dts.OverlapBufferOne, w.now().Add(2*time.Minute)
			r.Retry = dts.Retry{MaxAttempts: 2, Backoff: dts.Fixed, BaseDelayMS: 30_000, Jitter: &no}
		})
		up, err := w.st.Upcoming(w.ctx, dts.DefaultTenant, r.ID, 2)
		if err != nil || len(up) != 2 {
			t.Fatal(up, err)
		}
		for _, c := range []struct {
			at     time.Duration
			status dts.Status
			waits  dts.Reason
		}{
			{125 * time.Second, dts.Pending, dts.ReasonOverlap},
			{135 * time.Second, dts.Running, ""},
			{210 * time.Second, dts.Pending, ""}, // between its attempts
			{240 * time.Second, dts.Running, ""},
			{310 * time.Second, dts.Success, ""},
		} {
			w.settle(r.CreatedAt.Add(c.at).Sub(w.now()))
			if x := w.task(up[1].ID); x.Status != c.status || x.WaitsFor != c.waits {
				t.Errorf("after %v it is %s and waits for %q, want %s, %q", c.at, x.Status, x.WaitsFor, c.status, c.waits)
			}
		}
		w.atRest()
	})
}

// TestOverlapAndRetries: between its attempts an occurrence is active, for every policy.
func TestOverlapAndRetries(t *testing.T) {
	no := false
	for policy, want := range map[dts.OverlapPolicy][]string{
		dts.OverlapAllow:     {"00:01:00#1 at 1m0s", "00:02:00#1 at 2m0s", "00:01:00#2 at 2m30s", "00:03:00#1 at 3m0s"},
		dts.OverlapSkip:      {"00:01:00#1 at 1m0s", "00:01:00#2 at 2m30s", "00:03:00#1 at 3m0s"},
		dts.OverlapBufferOne: {"00:01:00#1 at 1m0s", "00:01:00#2 at 2m30s", "00:02:00#1 at 2m30s", "00:03:00#1 at 3m0s"},
		dts.OverlapBufferAll: {"00:01:00#1 at 1m0s", "00:01:00#2 at 2m30s", "00:02:00#1 at 2m30s", "00:03:00#1 at 3m0s"},
		dts.OverlapCancel:    {"00:01:00#1 at 1m0s", "00:02:00#1 at 2m0s", "00:03:00#1 at 3m0s"},
	} {
		t.Run(string(policy), func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome {
					if j.Task.ScheduledAt.Minute() == 1 && j.Number == 1 {
						return fails(ctx, j)
					}
					return dts.Outcome{State: dts.AttemptSuccess}
				})
				r := w.every("* * * * *", func(r *dts.RecurringTask) {
					r.OverlapPolicy, r.EndTime = policy, w.now().Add(3*time.Minute)
					r.Retry = dts.Retry{MaxAttempts: 2, Backoff: dts.Fixed, BaseDelayMS: 90_000, Jitter: &no}
				})
				w.settle(5 * time.Minute)
				var got []string
				for _, s := range w.run.list() {
					got = append(got, fmt.Sprintf("%s#%d at %v", s.due.Format("15:04:05"), s.number, s.at.Sub(r.CreatedAt).Truncate(time.Second)))
				}
				if diff := gocmp.Diff(want, got); diff != "" {
					t.Errorf("runs (-want +got):\n%s", diff)
				}
				if policy == dts.OverlapCancel {
					for _, x := range w.book(r.ID, time.Minute).tasks {
						if x.ScheduledAt.Minute() == 1 && x.Status != dts.Cancelled {
							t.Errorf("what was between two attempts is %s", x.Status)
						}
					}
					if got := w.recurring(r.ID); got.RunsCount != 3 {
						t.Errorf("%d runs are counted of 3", got.RunsCount)
					}
				}
				w.atRest()
			})
		})
	}
}

// TestVerbsOnABufferedRun: a run that waits for another one's end can be changed like any that is PENDING.
func TestVerbsOnABufferedRun(t *testing.T) {
	for _, c := range []struct {
		verb dts.Verb
		want []string // of 00:02:00, and what it becomes
	}{
		{dts.Cancel, []string{"00:01:00 at 1m0s", "00:03:00 at 3m30s"}},
		{dts.Delete, []string{"00:01:00 at 1m0s", "00:03:00 at 3m30s"}},
		{dts.Modify, []string{"00:01:00 at 1m0s", "00:03:00 at 3m30s", "00:02:00 at 10m0s"}},
		{dts.RunNow, []string{"00:01:00 at 1m0s", "00:02:00 at 3m30s", "00:03:00 at 6m0s"}},
		{dts.ForceComplete, []string{"00:01:00 at 1m0s", "00:03:00 at 3m30s"}},
	} {
		t.Run(string(c.verb), func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				w.run.behave(takes(150 * time.Second))
				r := w.every("* * * * *", func(r *dts.RecurringTask) {
					r.OverlapPolicy, r.EndTime = dts.OverlapBufferAll, w.now().Add(3*time.Minute)
				})
				up, err := w.st.Upcoming(w.ctx, dts.DefaultTenant, r.ID, 2)
				if err != nil || len(up) != 2 {
					t.Fatal(up, err)
				}
				w.settle(130 * time.Second)
				if c.verb == dts.Modify {
					at := r.CreatedAt.Add(10 * time.Minute)
					x, err := w.s.ModifyTask(w.ctx, dts.DefaultTenant, up[1].ID, dts.TaskPatch{RunAt: &at})
					if err != nil || x.WaitsFor != "" {
						t.Fatal(x, err)
					}
				} else {
					w.do(up[1].ID, c.verb)
				}
				w.settle(20 * time.Minute)
				if diff := gocmp.Diff(c.want, w.newBegan(0)); diff != "" {
					t.Errorf("runs (-want +got):\n%s", diff)
				}
				w.book(r.ID, time.Minute)
				w.atRest()
			})
		})
	}
}

// TestBufferedRunAndPause: what waits for another one's end came due before the pause: it runs, whether the server was
// started again meanwhile or not.
func TestBufferedRunAndPause(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint(restart), func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome { return lastsFor(ctx, 150*time.Second) })
				r := w.every("* * * * *", func(r *dts.RecurringTask) {
					r.OverlapPolicy, r.EndTime = dts.OverlapBufferAll, w.now().Add(30*time.Minute)
				})
				w.settle(130 * time.Second)
				w.pause(r.ID, time.Time{})
				if restart {
					w.restart(time.Second)
				}
				w.settle(15 * time.Minute)
				if got := w.recurring(r.ID); got.RunsCount != 2 {
					t.Errorf("%d runs, want 2", got.RunsCount)
				}
				w.resume(r.ID, false)
				w.settle(time.Hour)
				w.book(r.ID, time.Minute)
				w.atRest()
			})
		})
	}
}
