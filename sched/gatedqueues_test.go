package sched_test

import (
	"context"
	"testing"
	"time"

	"dts"
	"dts/sched"
)

func (w *world) pauseQueue(name string) {
	w.t.Helper()
	if _, err := w.s.PauseQueue(w.ctx, dts.DefaultTenant, name, ""); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) resumeQueue(name string) {
	w.t.Helper()
	if _, err := w.s.ResumeQueue(w.ctx, dts.DefaultTenant, name); err != nil {
		w.t.Fatal(err)
	}
}

// TestPauseQueueAtGates: what is parked at a gate when its queue is paused does not start when the gate opens, keeps nothing
// else from starting, and starts when the queue is resumed.
func TestPauseQueueAtGates(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.CPUBudget = 2 }, func(w *world) {
		w.run.behave(takes(15 * time.Second))
		in := func(queue string, cpu float64) *dts.Task {
			return w.add(0, func(k *dts.Task) { k.Queue = queue; asks(cpu, 0)(k) })
		}
		first := in("other", 2)
		w.settle(100 * time.Millisecond)
		parked := in("q", 2)
		w.settle(12 * time.Second)
		w.pauseQueue("q")
		last := in("other", 1)
		w.settle(30 * time.Second)
		w.late([]*dts.Task{first, last})
		if n := len(w.run.list()); n != 2 {
			t.Fatalf("%d starts, of which one should not be", n)
		}
		w.wantAtRest()
		w.resumeQueue("q")
		w.settle(30 * time.Second)
		w.late([]*dts.Task{parked})
		w.wantAtRest()
	})
}

// TestRateAtGates: what was parked keeps to the rate of its queue when the gate opens.
func TestRateAtGates(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.CPUBudget = 2 }, func(w *world) {
		w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome {
			if j.Task.Queue == "q" {
				return takes(time.Millisecond)(ctx, j)
			}
			return takes(5*time.Second)(ctx, j)
		})
		r := putRate(t, w.s, 10, 1)
		first := w.add(0, asks(2, 0))
		w.settle(100 * time.Millisecond)
		all := w.addMany(30, 0, func(_ int, k *dts.Task) { k.Queue = "q"; asks(1, 0)(k) })
		w.settle(20 * time.Second)
		w.late(append(all, first))
		pace(t, w.run.list()[1:], r)
		w.wantAtRest()
	})
}

// TestShareAtGates: what was parked does not take more than the share of its queue when the gate opens.
func TestShareAtGates(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.CPUBudget, o.HTTPSlots = 100, 16 }, func(w *world) {
		w.run.behave(byQueue(map[string]func(context.Context, dts.Job) dts.Outcome{
			"first": takes(time.Second), "q": takes(time.Hour), "other": takes(time.Millisecond)}))
		w.add(0, func(k *dts.Task) { k.Queue = "first"; asks(100, 0)(k) })
		w.settle(100 * time.Millisecond)
		w.addMany(40, 0, func(_ int, k *dts.Task) { k.Queue = "q"; asks(1, 0)(k) })
		w.settle(5 * time.Second)
		other := w.add(0, func(k *dts.Task) { k.Queue = "other" })
		w.settle(time.Second)
		if late := w.late([]*dts.Task{other}); late > 10*time.Millisecond {
			t.Errorf("beside what was parked a task started %v late", late)
		}
	})
}

// TestNewerTakesThePlaceOfWhatIsParked: an occurrence that is parked at a gate when a newer one is due gives way to it.
func TestNewerTakesThePlaceOfWhatIsParked(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.CPUBudget = 1 }, func(w *world) {
		w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome {
			out := takes(30*time.Minute)(ctx, j)
			if context.Cause(ctx) == dts.ErrRunReplaced {
				out.State = dts.AttemptCancelled
			}
			return out
		})
		r := w.every("* * * * *", func(r *dts.RecurringTask) {
			r.OverlapPolicy, r.Resources = dts.OverlapCancel, &dts.Resources{CPU: 1}
		})
		w.settle(90 * time.Second)
		w.add(0, func(k *dts.Task) { k.Priority = dts.High; asks(1, 0)(k) })
		w.settle(2 * time.Minute) // 00:03:30
		list := w.ledger(r.ID)
		if len(list) < 2 || list[1] != "00:02:00 skipped 1 OVERLAP" {
			t.Errorf("ledger %q", list)
		}
	})
}
