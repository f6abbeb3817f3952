package sched_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dts"
	"dts/sched"
	"dts/sched/timer"
)

// TestTuneSlots gives a scheduler that runs more slots, and then fewer than are in use.
func TestTuneSlots(t *testing.T) {
	few := func(o *sched.Options) { o.HTTPSlots = 1 }
	inWorld(t, few, func(w *world) {
		w.run.behave(takes(100 * time.Second))
		tune := func(slots int) { w.s.Tune(sched.Options{HTTPSlots: slots}); synctest.Wait() }
		running := func() (n int) {
			for _, p := range w.s.Status().Pools {
				if p.TargetType == dts.HTTPCallback {
					n = p.Running
				}
			}
			return n
		}
		for i := range 6 {
			w.add(0, func(t *dts.Task) { t.Queue = "q" + itoa(int64(i)) }) // one queue alone does not get all slots
		}
		w.settle(time.Second)
		if n := running(); n != 1 {
			t.Fatalf("%d run in one slot", n)
		}
		tune(4)
		w.settle(time.Second)
		if n := running(); n != 4 {
			t.Errorf("%d run in 4 slots", n)
		}
		tune(2) // what runs goes on
		w.settle(50 * time.Second)
		if n := running(); n != 4 {
			t.Errorf("%d still run", n)
		}
		w.settle(60 * time.Second) // they have all ended, and so has nothing that came after
		if n := running(); n != 2 {
			t.Errorf("%d run in 2 slots", n)
		}
		w.settle(200 * time.Second)
		if n := len(w.run.list()); n != 6 || running() != 0 {
			t.Errorf("%d of 6 have run, %d run", n, running())
		}
	})
}

// TestTuneRetention lets a scheduler that runs keep less.
func TestTuneRetention(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		task := w.add(0, nil)
		w.settle(10 * time.Minute)
		at := w.s.Status().RetainedAt
		if now := time.Now(); at.IsZero() || now.Sub(at) > 2*time.Minute {
			t.Errorf("retention was done last at %v, and it is %v", at, now)
		}
		w.s.Tune(sched.Options{Retention: time.Minute})
		w.settle(2 * time.Minute)
		if _, err := w.st.Task(w.ctx, dts.DefaultTenant, task.ID); dts.CodeOf(err) != dts.ErrNotFound {
			t.Errorf("it is still there: %v", err)
		}
		r, err := w.s.Retention(w.ctx, dts.DefaultTenant)
		if err != nil || r.Effective != (dts.Retention{Seconds: 60, Rows: 1_000_000}) {
			t.Errorf("%+v %v", r, err)
		}
	})
}

// deaf is a timer that never wakes anybody.
type deaf struct{ timer.Timer }

func (deaf) C() <-chan timer.Wake { return nil }

// TestOverslept: a scheduler whose timer does not wake it does not count as one that fires.
func TestOverslept(t *testing.T) {
	broken := func(o *sched.Options) {
		o.NewTimer = func() timer.Timer { return deaf{timer.NewPortableClock(o.Now)} }
	}
	inWorld(t, broken, func(w *world) {
		if st := w.s.Status(); !st.Ready {
			t.Errorf("at first: %v", st.NotReady)
		}
		w.settle(20 * time.Minute) // it wants to read the store again before that
		const want = "the timer did not wake the scheduler in time"
		if st := w.s.Status(); st.Ready || !slices.Contains(st.NotReady, want) {
			t.Errorf("later: %v", st.NotReady)
		}
	})
	inWorld(t, nil, func(w *world) {
		w.every("0 0 * * *", nil)
		for range 50 {
			w.settle(31 * time.Minute)
			if st := w.s.Status(); !st.Ready {
				t.Fatalf("a timer that works: %v", st.NotReady)
			}
		}
		w.step(5 * time.Hour)
		w.settle(time.Second)
		w.step(-9 * time.Hour)
		w.settle(31 * time.Minute)
		if st := w.s.Status(); !st.Ready {
			t.Errorf("after steps of the clock: %v", st.NotReady)
		}
	})
}

// slowBeats is a store whose beats take long.
type slowBeats struct{ sched.Store }

func (s slowBeats) Beat(ctx context.Context, f dts.Fence, beat int64, now time.Time) error {
	time.Sleep(5 * time.Minute)
	return s.Store.Beat(ctx, f, beat, now)
}

// TestSlowDisk: a database that takes a write and does not come back is noticed, although nothing has failed.
func TestSlowDisk(t *testing.T) {
	slow := func(o *sched.Options) { o.Store = slowBeats{o.Store} }
	inWorld(t, slow, func(w *world) {
		w.settle(90 * time.Second)
		if st := w.s.Status(); !st.Ready {
			t.Errorf("after 30 s of a write: %v", st.NotReady)
		}
		w.settle(20 * time.Second)
		if st := w.s.Status(); st.Ready || !strings.HasPrefix(st.NotReady[0], "the database takes longer than 35") {
			t.Errorf("after 50 s: %v", st.NotReady)
		}
	})
}
