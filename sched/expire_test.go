package sched_test

import (
	"context"
	"testing"
	"time"

	"dts"
	"dts/sched"
)

// TestExpiresWhileItWaits: wherever a task waits, it is skipped within seconds when its expires_at passes, and never runs.
func TestExpiresWhileItWaits(t *testing.T) {
	const expires = 30 * time.Second
	late := func(t *dts.Task) { t.ExpiresAt = t.RunAt.Add(expires) }
	for _, c := range []struct {
		name string
		opts func(*sched.Options)
		play func(w *world) *dts.Task
		runs int // attempts that it has made
	}{
		{"for a slot", func(o *sched.Options) { o.HTTPSlots = 1 }, func(w *world) *dts.Task {
			w.add(0, nil)
			w.settle(time.Second)
			return w.add(0, late)
		}, 0},
		{"to be claimed", func(o *sched.Options) { o.HTTPSlots, o.ClaimLimit = 1, 4 }, func(w *world) (last *dts.Task) {
			for i := range 20 {
				w.add(time.Duration(i)*time.Millisecond, nil)
			}
			w.settle(time.Second)
			return w.add(0, late)
		}, 0},
		{"in a line", nil, func(w *world) *dts.Task {
			key := func(t *dts.Task) { t.ConcurrencyKey = "k" }
			w.add(0, key)
			w.settle(time.Second)
			return w.add(0, func(t *dts.Task) { key(t); late(t) })
		}, 0},
		{"for the end of a blackout", nil, func(w *world) *dts.Task {
			w.black(0, time.Hour, func(b *dts.Blackout) { b.Action = dts.BlackoutWait })
			return w.add(0, late)
		}, 0},
		{"for a dependency", nil, func(w *world) *dts.Task {
			parent := w.add(time.Hour, nil)
			return w.add(0, func(t *dts.Task) {
				late(t)
				t.DependsOn = []dts.DependsOn{{TaskID: parent.ID}}
			})
		}, 0},
		{"for its next attempt", nil, func(w *world) *dts.Task {
			w.run.behave(fails)
			return w.add(0, func(t *dts.Task) {
				late(t)
				t.Retry = dts.Retry{MaxAttempts: 2, Backoff: dts.Fixed, BaseDelayMS: 3_600_000}
			})
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, c.opts, func(w *world) {
				w.run.behave(takes(2 * time.Hour))
				x := c.play(w)
				child := w.add(0, func(t *dts.Task) { t.DependsOn = []dts.DependsOn{{TaskID: x.ID, Type: dts.MustFinish}} })
				w.settle(expires - time.Second)
				if got := w.task(x.ID); got.Status != dts.Pending {
					t.Errorf("before its time it is %s", got.Status)
				}
				w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome { return dts.Outcome{State: dts.AttemptSuccess} })
				w.settle(6 * time.Second)
				got := w.task(x.ID)
				if got.Status != dts.Skipped || got.SkipReason != dts.ReasonExpired || got.WaitsFor != "" || got.CompletedAt.IsZero() || got.LastError == "" {
					t.Errorf("it is %s %s (%s), waits for %q", got.Status, got.SkipReason, got.LastError, got.WaitsFor)
				}
				if n := len(w.attempts(x.ID)); n != c.runs {
					t.Errorf("it has run %d times", n)
				}
				if c.opts == nil && c.name != "for the end of a blackout" { // there the child waits for the same
					if got := w.task(child.ID); got.Unresolved != 0 {
						t.Errorf("what depends on its end still waits for %d", got.Unresolved)
					}
				}
			})
		})
	}
}
