package sched_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dts"
	"dts/sched"
)

// TestTiming: the time until a start is the queue's where the task waited for others, and the scheduler's where it did not.
func TestTiming(t *testing.T) {
	ten := 10 * time.Second
	oneSlot := func(o *sched.Options) { o.HTTPSlots = 1 }
	for _, c := range []struct {
		name  string
		opts  func(*sched.Options)
		play  func(w *world) *dts.Task
		queue time.Duration
		sched time.Duration
	}{
		{"nothing in its way", nil, func(w *world) *dts.Task { return w.add(time.Minute, nil) }, 0, 0},
		{"a slot", oneSlot, func(w *world) *dts.Task {
			w.add(time.Minute, nil)
			w.settle(time.Second)
			return w.add(time.Minute, nil)
		}, 9 * time.Second, 0},
		{"a line", nil, func(w *world) *dts.Task {
			key := func(t *dts.Task) { t.ConcurrencyKey = "k" }
			w.add(time.Minute, key)
			w.settle(time.Second)
			return w.add(time.Minute, key)
		}, 9 * time.Second, 0},
		{"a blackout", nil, func(w *world) *dts.Task {
			w.black(time.Minute, 5*time.Minute, func(b *dts.Blackout) { b.Action = dts.BlackoutWait })
			return w.add(90*time.Second, nil)
		}, 210 * time.Second, 0},
		{"the run before", nil, func(w *world) *dts.Task {
			w.run.behave(takes(90 * time.Second))
			r := w.every("* * * * *", func(r *dts.RecurringTask) { r.OverlapPolicy = dts.OverlapBufferAll })
			w.settle(4*time.Minute + 10*time.Second)
			list, err := w.st.Occurrences(w.ctx, dts.DefaultTenant, r.ID, "", 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range list.Items {
				if o.Task != nil && o.ScheduledAt.Equal(time.Date(2000, 1, 1, 0, 2, 0, 0, time.UTC)) {
					return o.Task
				}
			}
			t.Fatal("there is no second occurrence")
			return nil
		}, 30 * time.Second, 0},
		{"a backlog that is not claimed", func(o *sched.Options) { oneSlot(o); o.ClaimLimit = 4 }, func(w *world) (last *dts.Task) {
			for i := range 31 {
				last = w.add(time.Minute+time.Duration(i)*time.Millisecond, nil)
			}
			return last
		}, 300 * time.Second, 0},
		{"a pause", nil, func(w *world) *dts.Task {
			x := w.add(time.Minute, nil)
			w.do(x.ID, dts.PauseTask)
			w.settle(time.Hour)
			w.do(x.ID, dts.ResumeTask)
			return x
		}, 0, 0}, // it is due anew when it is resumed
		{"a backlog that is not in memory", func(o *sched.Options) { oneSlot(o); o.ClaimLimit, o.HeapLimit = 4, 8 }, func(w *world) (last *dts.Task) {
			for i := range 61 {
				last = w.add(time.Minute+time.Duration(i)*time.Millisecond, nil)
			}
			return last
		}, 600 * time.Second, 0},
		{"a machine that was asleep", nil, func(w *world) *dts.Task {
			x := w.add(time.Minute, nil)
			w.settle(time.Second)
			w.step(time.Hour)
			return x
		}, 0, 59*time.Minute + 30*time.Second}, // the timer of this test looks at the clock each 30 s
		{"a server that was down", nil, func(w *world) *dts.Task {
			x := w.add(time.Minute, nil)
			w.restart(time.Hour)
			return x
		}, 0, 59 * time.Minute},
		{"a server that was down, and a slot", func(o *sched.Options) { oneSlot(o); o.ClaimLimit = 4 }, func(w *world) (last *dts.Task) {
			for range 31 {
				last = w.add(time.Minute, nil)
			}
			w.restart(time.Hour)
			return last
		}, 300 * time.Second, 59 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, c.opts, func(w *world) {
				w.run.behave(takes(ten))
				x := c.play(w)
				w.settle(20 * time.Minute)
				x = w.task(x.ID)
				if x.Status != dts.Success {
					t.Fatalf("it is %s", x.Status)
				}
				got := x.Timing(w.now())
				near := func(us int64, want time.Duration) bool {
					return (time.Duration(us)*time.Microsecond - want).Abs() < 100*time.Millisecond
				}
				if !near(got.QueueUS, c.queue) || !near(got.SchedulerUS, c.sched) || got.ParentUS != 0 {
					t.Errorf("%+v, want queue %s and scheduler %s", got, c.queue, c.sched)
				}
				if a := w.attempts(x.ID); a[0].QueuedUS != x.QueuedUS {
					t.Errorf("the attempt says %d us", a[0].QueuedUS)
				}
			})
		})
	}
}

// TestWarnings: each is told at once, counted, and kept; the run goes on.
func TestWarnings(t *testing.T) {
	for _, c := range []struct {
		name  string
		late  time.Duration // how late it starts
		takes time.Duration
		edit  func(*dts.Task)
		want  []dts.Warning
		at    []time.Duration // of the events, since the start
	}{
		{"none asked for", time.Minute, time.Minute, nil, nil, nil},
		{"none given", 0, 5 * time.Second, func(t *dts.Task) { t.WarnLateSeconds, t.WarnLongerSeconds, t.WarnShorterSeconds = 5, 5.1, 4.9 }, nil, nil},
		{"late", 10 * time.Second, time.Second, func(t *dts.Task) { t.WarnLateSeconds = 5 }, []dts.Warning{dts.WarnLate}, []time.Duration{0}},
		{"long", 0, time.Hour, func(t *dts.Task) { t.WarnLongerSeconds = 60 }, []dts.Warning{dts.WarnLong}, []time.Duration{time.Minute}},
		{"long, but not to be seen", 0, 40 * time.Millisecond, func(t *dts.Task) { t.WarnLongerSeconds = 0.03 }, []dts.Warning{dts.WarnLong}, []time.Duration{30 * time.Millisecond}},
		{"long, at most once", 0, time.Hour, func(t *dts.Task) { t.WarnLongerSeconds, t.Delivery = 60, dts.AtMostOnce }, []dts.Warning{dts.WarnLong}, []time.Duration{time.Minute}},
		{"short", 0, time.Second, func(t *dts.Task) { t.WarnShorterSeconds = 2 }, []dts.Warning{dts.WarnShort}, []time.Duration{time.Second}},
		{"late and short", 10 * time.Second, time.Second, func(t *dts.Task) { t.WarnLateSeconds, t.WarnShorterSeconds = 5, 2 },
			[]dts.Warning{dts.WarnLate, dts.WarnShort}, []time.Duration{0, time.Second}},
	} {
		t.Run(c.name, func(t *testing.T) {
			reg := prometheus.NewRegistry()
			opts := func(o *sched.Options) { o.HTTPSlots, o.Registry = 1, reg }
			inWorld(t, opts, func(w *world) {
				w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome {
					if j.Task.Name == "before" {
						return takes(c.late)(ctx, j)
					}
					return takes(c.takes)(ctx, j)
				})
				if c.late > 0 {
					w.add(time.Minute, func(t *dts.Task) { t.Name = "before" })
				}
				x := w.add(time.Minute, c.edit)
				events, end := w.s.Subscribe(dts.DefaultTenant)
				defer end()
				w.settle(time.Minute + c.late + c.takes/2 + 15*time.Millisecond) // in the middle of it
				if c.takes > time.Second && len(c.want) > 0 {
					if got := w.task(x.ID); got.Status != dts.Running || !slices.Equal(got.Warnings, c.want) {
						t.Errorf("in the middle it is %s with %v, want %v", got.Status, got.Warnings, c.want)
					}
				}
				w.settle(c.takes)
				got := w.task(x.ID)
				if got.Status != dts.Success || !slices.Equal(got.Warnings, c.want) {
					t.Errorf("it is %s with %v, want %v", got.Status, got.Warnings, c.want)
				}
				var told []dts.Warning
				for len(events) > 0 {
					e := <-events
					if e.Type != dts.EventWarning || e.TaskID != x.ID {
						continue
					}
					if since := e.At.Sub(got.StartedAt); (since - c.at[len(told)]).Abs() > 20*time.Millisecond {
						t.Errorf("%s is told %s after the start", e.Warning, since)
					}
					told = append(told, e.Warning)
				}
				if !slices.Equal(told, c.want) {
					t.Errorf("told of %v, want %v", told, c.want)
				}
				families, err := reg.Gather()
				if err != nil {
					t.Fatal(err)
				}
				counted := 0
				for _, f := range families {
					if f.GetName() == "dts_warnings_total" {
						for _, m := range f.GetMetric() {
							counted += int(m.GetCounter().GetValue())
						}
					}
				}
				if counted != len(c.want) {
					t.Errorf("%d were counted, want %d", counted, len(c.want))
				}
				w.atRest()
			})
		})
	}
}

// TestRetryAfter: what the target asks for is waited for, where that is longer than the policy says.
func TestRetryAfter(t *testing.T) {
	for after, want := range map[time.Duration]time.Duration{0: time.Second, 90 * time.Second: 90 * time.Second, 500 * time.Millisecond: time.Second} {
		inWorld(t, nil, func(w *world) {
			w.run.behave(func(_ context.Context, j dts.Job) dts.Outcome {
				return dts.Outcome{State: dts.AttemptFailed, Retryable: true, RetryAfter: after, HTTPStatus: 503}
			})
			no := false
			x := w.add(0, func(t *dts.Task) {
				t.Retry = dts.Retry{MaxAttempts: 2, Backoff: dts.Fixed, BaseDelayMS: 1000, Jitter: &no}
			})
			w.settle(5 * time.Minute)
			a := w.attempts(x.ID)
			if len(a) != 2 || a[1].StartedAt.Sub(a[0].CompletedAt).Round(time.Millisecond) != want {
				t.Errorf("%s: %d attempts, the second %s after the first", after, len(a), a[1].StartedAt.Sub(a[0].CompletedAt))
			}
		})
	}
}

// TestTimingOfRetries: what was tried before is the target's time, also while the next attempt runs, with a limit or without.
func TestTimingOfRetries(t *testing.T) {
	for _, key := range []string{"", "k"} {
		inWorld(t, nil, func(w *world) {
			w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome {
				if j.Number == 1 {
					return fails(ctx, j)
				}
				return takes(time.Minute)(ctx, j)
			})
			x := w.add(time.Minute, func(t *dts.Task) {
				t.ConcurrencyKey, t.Retry = key, dts.Retry{MaxAttempts: 2, Backoff: dts.Fixed, BaseDelayMS: 30_000}
			})
			w.settle(110 * time.Second)
			got := w.task(x.ID)
			if late := got.StartedAt.Sub(x.DueAt); got.Status != dts.Running || got.Attempts != 2 || late < 0 || late > time.Second {
				t.Fatalf("key %q: %s, attempt %d; the first started after %s", key, got.Status, got.Attempts, late)
			}
			if k := got.Timing(w.now()); k.QueueUS+k.SchedulerUS > 1e6 || k.TargetUS < 49e6 {
				t.Errorf("key %q: %+v", key, k)
			}
		})
	}
}
