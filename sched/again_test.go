package sched_test

import (
	"context"
	"testing"
	"time"

	"dts"
)

// TestStartKnownAfterDowntime: a task that was due before the server started may have killed the one before within the
// moment in which starts are not yet written. From then on its starts are on the disk before it runs, so that each counts.
func TestStartKnownAfterDowntime(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		k := w.add(time.Minute, nil)
		w.stop()
		time.Sleep(2 * time.Minute)
		seen := make(chan []*dts.Attempt, 1)
		w.run.behave(func(context.Context, dts.Job) dts.Outcome {
			seen <- w.attempts(k.ID)
			return dts.Outcome{State: dts.AttemptSuccess}
		})
		w.start()
		w.settle(time.Second)
		if list := <-seen; len(list) != 1 || list[0].State != dts.AttemptRunning {
			t.Errorf("when it ran, the attempts on the disk were %v; want one that is running", list)
		}
		if got := w.task(k.ID); got.Status != dts.Success || got.Attempts != 1 {
			t.Errorf("it is %s after %d attempts", got.Status, got.Attempts)
		}
	})
}
