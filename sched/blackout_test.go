package sched_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dts"
	"dts/sched"
)

// black makes a blackout that begins and ends at times since the start of the test.
func (w *world) black(from, to time.Duration, edit func(*dts.Blackout)) *dts.Blackout {
	w.t.Helper()
	epoch := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	b := &dts.Blackout{TenantID: dts.DefaultTenant, Name: "upgrade", Window: dts.Window{Start: epoch.Add(from), End: epoch.Add(to)}}
	if edit != nil {
		edit(b)
	}
	made, err := w.s.CreateBlackout(w.ctx, b)
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

func TestBlackoutOfOneTimeTasks(t *testing.T) {
	for _, c := range []struct {
		action dts.BlackoutAction
		queue  string // of the blackout
		status dts.Status
		began  []string
	}{
		{dts.BlackoutWait, "", dts.Success, []string{"00:01:30 at 5m0s"}},
		{dts.BlackoutWait, "default", dts.Success, []string{"00:01:30 at 5m0s"}},
		{dts.BlackoutWait, "other", dts.Success, []string{"00:01:30 at 1m30s"}},
		{dts.BlackoutSkip, "", dts.Skipped, nil},
		{dts.BlackoutSkip, "other", dts.Success, []string{"00:01:30 at 1m30s"}},
	} {
		t.Run(fmt.Sprint(c.action, c.queue), func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				w.black(time.Minute, 5*time.Minute, func(b *dts.Blackout) { b.Action, b.Queue = c.action, c.queue })
				x := w.add(90*time.Second, nil)
				w.settle(2 * time.Minute)
				if got := w.task(x.ID); c.began != nil && c.queue != "other" && (got.Status != dts.Pending || got.WaitsFor != dts.ReasonBlackout) {
					t.Errorf("in the blackout it is %s and waits for %q", got.Status, got.WaitsFor)
				}
				w.settle(10 * time.Minute)
				if diff := cmp.Diff(c.began, w.newBegan(0)); diff != "" {
					t.Errorf("runs (-want +got):\n%s", diff)
				}
				got := w.task(x.ID)
				if got.Status != c.status || got.WaitsFor != "" || c.status == dts.Skipped && got.SkipReason != dts.ReasonBlackout {
					t.Errorf("it is %s %s and waits for %q, want %s", got.Status, got.SkipReason, got.WaitsFor, c.status)
				}
				w.atRest()
			})
		})
	}
}

// TestBlackoutOfRetries: what has begun waits, whatever the action; so does what was asked for by hand.
func TestBlackoutOfRetriesAndTriggers(t *testing.T) {
	no := false
	for _, action := range []dts.BlackoutAction{dts.BlackoutWait, dts.BlackoutSkip} {
		t.Run(string(action), func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome {
					if j.Number == 1 && j.Task.RecurringTaskID == "" {
						return fails(ctx, j)
					}
					return dts.Outcome{State: dts.AttemptSuccess}
				})
				w.black(time.Minute, 5*time.Minute, func(b *dts.Blackout) { b.Action = action })
				x := w.add(50*time.Second, func(x *dts.Task) {
					x.Retry = dts.Retry{MaxAttempts: 2, Backoff: dts.Fixed, BaseDelayMS: 30_000, Jitter: &no}
				})
				r := w.every("0 0 1 1 *", nil)
				w.settle(2 * time.Minute)
				if _, err := w.s.TriggerRecurring(w.ctx, dts.DefaultTenant, r.ID, "tester"); err != nil {
					t.Fatal(err)
				}
				w.settle(time.Minute)
				if got := w.task(x.ID); got.WaitsFor != dts.ReasonBlackout || got.Status != dts.Pending {
					t.Errorf("the retry is %s, waits for %q", got.Status, got.WaitsFor)
				}
				w.settle(10 * time.Minute)
				want := []string{"00:00:50 at 50s", "00:00:50 at 5m0s", "00:02:00 at 5m0s"}
				if diff := cmp.Diff(want, w.newBegan(0)); diff != "" {
					t.Errorf("runs (-want +got):\n%s", diff)
				}
				w.atRest()
			})
		})
	}
}

// TestBlackoutAndCatchUp: instants that waited longer than misfire_after follow the catch-up mode; a restart during the
// blackout changes nothing.
func TestBlackoutAndCatchUp(t *testing.T) {
	for _, restart := range []bool{false, true} {
		for _, c := range []struct {
			mode    dts.CatchUpMode
			misfire float64
			action  dts.BlackoutAction
			want    []string // of what began after 00:05:30
			ran     int64
		}{
			{dts.RunLatest, 20, "", []string{"00:20:00 at 20m30s", "00:21:00 at 21m0s"}, 7},
			{dts.RunLatest, 60, "", []string{"00:19:00 at 20m30s", "00:20:00 at 20m30s", "00:21:00 at 21m0s"}, 8},
			{dts.RunAllMissed, 20, "", []string{"00:18:00 at 20m30s", "00:19:00 at 20m35s", "00:20:00 at 20m40s", "00:21:00 at 21m0s"}, 9},
			{dts.RunOneNow, 20, "", []string{"00:20:30 at 20m30s", "00:21:00 at 21m0s"}, 6},
			{dts.SkipMissed, 20, "", []string{"00:21:00 at 21m0s"}, 6},
			{dts.SkipMissed, 60, "", []string{"00:20:00 at 20m30s", "00:21:00 at 21m0s"}, 7},
			{dts.RunLatest, 20, dts.BlackoutSkip, []string{"00:21:00 at 21m0s"}, 6},
			{dts.RunAllMissed, 20, dts.BlackoutSkip, []string{"00:21:00 at 21m0s"}, 6},
		} {
			t.Run(fmt.Sprintf("%s %v %s restart %v", c.mode, c.misfire, c.action, restart), func(t *testing.T) {
				inWorld(t, nil, func(w *world) {
					r := w.every("* * * * *", func(r *dts.RecurringTask) {
						r.CatchUpMode, r.MisfireAfterSeconds = c.mode, c.misfire
						if c.mode == dts.RunAllMissed {
							r.CatchUpLimit, r.CatchUpPacingSeconds = 3, 5
						}
					})
					w.black(5*time.Minute+30*time.Second, 20*time.Minute+30*time.Second, func(b *dts.Blackout) { b.Action = c.action })
					w.settle(10*time.Minute + 10*time.Second)
					if restart {
						w.restart(5 * time.Second)
						w.settle(5 * time.Minute)
						w.restart(5 * time.Second)
					}
					w.settle(r.CreatedAt.Add(21*time.Minute + 10*time.Second).Sub(w.now()))
					got := w.newBegan(5*time.Minute + 30*time.Second)
					if diff := cmp.Diff(c.want, got); diff != "" {
						t.Errorf("runs (-want +got):\n%s", diff)
					}
					w.book(r.ID, time.Minute)
					skipped := int64(0)
					for _, k := range w.book(r.ID, time.Minute).skips {
						if skipped += k.Count; k.Reason != dts.ReasonBlackout && !restart {
							t.Errorf("%d from %s are skipped for %s", k.Count, k.From, k.Reason)
						}
					}
					if got := w.recurring(r.ID); got.RunsCount != c.ran || got.RunsCount+skipped != 21 {
						t.Errorf("%d ran and %d are skipped, of 21; want %d to run", got.RunsCount, skipped, c.ran)
					}
					w.atRest()
				})
			})
		}
	}
}

// TestBlackoutThatChanges: what waits starts at once when the blackout is deleted, and at the new end when it is changed.
func TestBlackoutThatChanges(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world, b *dts.Blackout) error
		want   string
	}{
		"deleted": {func(w *world, b *dts.Blackout) error { return w.s.DeleteBlackout(w.ctx, b.TenantID, b.ID) }, "00:01:30 at 2m0s"},
		"shorter": {func(w *world, b *dts.Blackout) error {
			b.End = b.Start.Add(2 * time.Minute)
			_, err := w.s.ReplaceBlackout(w.ctx, b)
			return err
		}, "00:01:30 at 3m0s"},
		"longer": {func(w *world, b *dts.Blackout) error {
			b.End = b.Start.Add(30 * time.Minute)
			_, err := w.s.ReplaceBlackout(w.ctx, b)
			return err
		}, "00:01:30 at 31m0s"},
		"another queue's": {func(w *world, b *dts.Blackout) error {
			b.Queue = "other"
			_, err := w.s.ReplaceBlackout(w.ctx, b)
			return err
		}, "00:01:30 at 2m0s"},
		"begins later": {func(w *world, b *dts.Blackout) error {
			b.Start = b.Start.Add(5 * time.Minute)
			_, err := w.s.ReplaceBlackout(w.ctx, b)
			return err
		}, "00:01:30 at 2m0s"},
		"one more": {func(w *world, b *dts.Blackout) error {
			w.black(2*time.Minute, 20*time.Minute, nil)
			return nil
		}, "00:01:30 at 20m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				b := w.black(time.Minute, 10*time.Minute, nil)
				w.add(90*time.Second, nil)
				w.settle(2 * time.Minute)
				if err := c.change(w, b); err != nil {
					t.Fatal(err)
				}
				w.settle(time.Hour)
				if diff := cmp.Diff([]string{c.want}, w.newBegan(0)); diff != "" {
					t.Errorf("runs (-want +got):\n%s", diff)
				}
				w.atRest()
			})
		})
	}
}

// TestBlackoutOfSeconds: while an hour's blackout lasts, few occurrences of an every-second task wait.
func TestBlackoutOfSeconds(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		r := w.every("* * * * * *", nil)
		w.black(time.Minute, 61*time.Minute, nil)
		w.settle(61*time.Minute - time.Second)
		waiting, err := w.st.Waiting(w.ctx, dts.AllShards, dts.ReasonBlackout, 0, 10_000)
		if err != nil || len(waiting) == 0 || len(waiting) > 100 {
			t.Errorf("%d wait, %v", len(waiting), err)
		}
		before := len(w.run.list())
		w.settle(20 * time.Second)
		if n := len(w.run.list()) - before; n < 60 || n > 100 { // those of the last minute are not missed
			t.Errorf("%d began after it", n)
		}
		w.book(r.ID, time.Second)
	})
}

// TestBlackoutByCalendar: the days and windows of a calendar.
func TestBlackoutByCalendar(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		c := &dts.Calendar{TenantID: dts.DefaultTenant, Name: "freeze", Windows: []dts.Window{{Cron: "10 * * * *", DurationSeconds: 300}}}
		if _, err := w.s.CreateCalendar(w.ctx, c); err != nil {
			t.Fatal(err)
		}
		if _, err := w.s.CreateBlackout(w.ctx, &dts.Blackout{TenantID: dts.DefaultTenant, Name: "b", Calendar: "no-such"}); dts.CodeOf(err) != dts.ErrInvalid {
			t.Errorf("a blackout by a calendar that does not exist: %v", err)
		}
		b := &dts.Blackout{TenantID: dts.DefaultTenant, Name: "b", Calendar: "freeze"}
		if _, err := w.s.CreateBlackout(w.ctx, b); err != nil {
			t.Fatal(err)
		}
		w.add(12*time.Minute, nil)
		w.add(72*time.Minute, nil)
		w.add(80*time.Minute, nil)
		w.settle(73 * time.Minute)
		if err := w.s.DeleteCalendar(w.ctx, dts.DefaultTenant, "freeze"); dts.CodeOf(err) != dts.ErrConflict {
			t.Errorf("a calendar that a blackout uses is deleted: %v", err)
		}
		c.Windows[0].DurationSeconds = 1200
		if _, err := w.s.ReplaceCalendar(w.ctx, c); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Hour)
		want := []string{"00:12:00 at 15m0s", "01:12:00 at 1h30m0s", "01:20:00 at 1h30m0s"}
		if diff := cmp.Diff(want, w.newBegan(0)); diff != "" {
			t.Errorf("runs (-want +got):\n%s", diff)
		}
	})
}

// TestBlackoutWhileWaitingForASlot: a task that came due before the blackout, but has no slot until it has begun, waits.
func TestBlackoutWhileWaitingForASlot(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.HTTPSlots = 1 }, func(w *world) {
		w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome { return lastsFor(ctx, 30*time.Second) })
		w.black(time.Minute, 5*time.Minute, nil)
		w.add(50*time.Second, nil)
		w.add(55*time.Second, nil)
		r := w.every("* * * * *", func(r *dts.RecurringTask) {
			r.OverlapPolicy, r.EndTime = dts.OverlapBufferAll, w.now().Add(time.Minute)
		})
		w.settle(20 * time.Minute)
		want := []string{"00:00:50 at 50s", "00:00:55 at 5m0s", "00:01:00 at 5m30s"}
		got := w.newBegan(0)
		if len(got) == 3 && got[1] > got[2] {
			want = []string{"00:00:50 at 50s", "00:01:00 at 5m0s", "00:00:55 at 5m30s"}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("runs (-want +got):\n%s", diff)
		}
		w.book(r.ID, time.Minute)
		w.atRest()
	})
}

// TestBlackoutAndOverlap: a run that waits for another one's end waits for the blackout after that; and those that wait
// for the blackout are one at a time after it, in their order.
func TestBlackoutAndOverlap(t *testing.T) {
	for policy, want := range map[dts.OverlapPolicy][]string{
		dts.OverlapSkip:      {"00:01:00 at 1m0s", "00:03:00 at 4m30s"},
		dts.OverlapBufferAll: {"00:01:00 at 1m0s", "00:02:00 at 4m30s", "00:03:00 at 6m0s", "00:04:00 at 7m30s"},
		dts.OverlapAllow:     {"00:01:00 at 1m0s", "00:02:00 at 2m0s", "00:03:00 at 4m30s", "00:04:00 at 4m30s"},
	} {
		t.Run(string(policy), func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				var now, most atomic.Int64
				w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome {
					if n := now.Add(1); n > most.Load() {
						most.Store(n)
					}
					defer now.Add(-1)
					return lastsFor(ctx, 90*time.Second)
				})
				r := w.every("* * * * *", func(r *dts.RecurringTask) {
					r.OverlapPolicy, r.MisfireAfterSeconds, r.EndTime = policy, 600, w.now().Add(4*time.Minute)
				})
				w.black(2*time.Minute+20*time.Second, 4*time.Minute+30*time.Second, nil)
				w.settle(30 * time.Minute)
				if diff := cmp.Diff(want, w.newBegan(0)); diff != "" {
					t.Errorf("runs (-want +got):\n%s", diff)
				}
				if policy != dts.OverlapAllow && most.Load() > 1 {
					t.Errorf("%d at once", most.Load())
				}
				w.book(r.ID, time.Minute)
				w.atRest()
			})
		})
	}
}
