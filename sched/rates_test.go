package sched_test

import (
	"context"
	"testing"
	"time"

	"dts"
	"dts/sched"
)

// slowRates is a store that takes its time to answer TakeStarts.
type slowRates struct {
	sched.Store
	by time.Duration
}

func (s slowRates) TakeStarts(ctx context.Context, k dts.QueueKey, r dts.Rate, want int, now time.Time) (dts.Starts, error) {
	time.Sleep(s.by)
	return s.Store.TakeStarts(ctx, k, r, want, now)
}

// TestRateOfSlowStore: starts that the store gives late are used all the same, and as evenly spread.
func TestRateOfSlowStore(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.Store = slowRates{o.Store, 300 * time.Millisecond} }, func(w *world) {
		r := putRate(t, w.s, 100, 1)
		all := w.addMany(40, 0, queued("q"))
		w.settle(10 * time.Second)
		w.late(all)
		pace(t, w.run.list(), r)
	})
}

// TestRateAfterClockWasSetBack: a queue with a rate goes on at once.
func TestRateAfterClockWasSetBack(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		putRate(t, w.s, 1, 1)
		all := w.addMany(10, 0, queued("q"))
		w.settle(2500 * time.Millisecond)
		w.step(-time.Hour)
		w.settle(20 * time.Second)
		w.late(all)
	})
}
