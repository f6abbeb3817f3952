package sched_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dts"
	"dts/sched"
)

// TestBackfillAndNewerRuns: an occurrence that comes due while a backfill goes on stops the run, or waits for its end, but
// not for the rest of the backfill, which goes on after it.
func TestBackfillAndNewerRuns(t *testing.T) {
	for policy, want := range map[dts.OverlapPolicy][]string{
		dts.OverlapCancel:    {"01:00:00 at 3h45m0s", "04:00:00 at 4h0m0s", "02:00:00 at 4h20m0s", "03:00:00 at 4h40m0s"},
		dts.OverlapBufferOne: {"01:00:00 at 3h45m0s", "04:00:00 at 4h5m0s", "02:00:00 at 4h25m0s", "03:00:00 at 4h45m0s"},
	} {
		t.Run(string(policy), func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome { return lastsFor(ctx, 20*time.Minute) })
				begin := w.now()
				r := w.every("0 * * * *", func(r *dts.RecurringTask) { r.OverlapPolicy, r.EndTime = policy, begin.Add(4*time.Hour) })
				w.settle(3*time.Hour + 45*time.Minute)
				q := dts.BackfillRequest{From: begin.Add(time.Hour), To: begin.Add(3 * time.Hour)}
				if _, err := w.s.BackfillRecurring(w.ctx, dts.DefaultTenant, r.ID, q, "tester"); err != nil {
					t.Fatal(err)
				}
				w.settle(5 * time.Hour)
				if diff := cmp.Diff(want, w.newBegan(3*time.Hour+30*time.Minute)); diff != "" {
					t.Errorf("runs (-want +got):\n%s", diff)
				}
				w.atRest()
			})
		})
	}
}

// TestCancelRunningWhileWaitingForASlot: what is next, but has no slot yet, is replaced by a newer one as well.
func TestCancelRunningWhileWaitingForASlot(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.HTTPSlots = 1 }, func(w *world) {
		w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome {
			if j.Task.RecurringTaskID == "" {
				return lastsFor(ctx, 10*time.Minute)
			}
			return lastsFor(ctx, 90*time.Second)
		})
		w.every("* * * * *", func(r *dts.RecurringTask) { r.OverlapPolicy, r.EndTime = dts.OverlapCancel, w.now().Add(4*time.Minute) })
		w.add(70*time.Second, nil) // has the slot when the first run is stopped
		w.settle(time.Hour)
		want := []string{"00:01:00 at 1m0s", "00:01:10 at 2m0s", "00:04:00 at 12m0s"}
		if diff := cmp.Diff(want, w.newBegan(0)); diff != "" {
			t.Errorf("runs (-want +got):\n%s", diff)
		}
		w.atRest()
	})
}
