package sched_test

import (
	"context"
	"testing"
	"time"

	"dts"
	"dts/sched"
)

// lateLoads is a store between whose look at what is due and the answer something happens.
type lateLoads struct {
	sched.Store
	meanwhile func(list []dts.Entry)
}

func (s *lateLoads) LoadDue(ctx context.Context, shards dts.ShardSet, queues dts.QueueChoice, after dts.Mark, through time.Time, limit int) ([]dts.Entry, error) {
	list, err := s.Store.LoadDue(ctx, shards, queues, after, through, limit)
	if f := s.meanwhile; f != nil {
		f(list)
	}
	return list, err
}

// TestMoveToAPausedQueueWhileItIsRead: a task that is put into a paused queue just when it was read does not start.
func TestMoveToAPausedQueueWhileItIsRead(t *testing.T) {
	st := &lateLoads{}
	inWorld(t, func(o *sched.Options) { st.Store, o.Store = o.Store, st }, func(w *world) {
		w.pauseQueue("b")
		k := w.add(15*time.Minute, func(k *dts.Task) { k.Queue = "a" })
		st.meanwhile = func(list []dts.Entry) {
			if len(list) > 0 {
				st.meanwhile = nil
				queue := "b"
				if _, err := w.s.ModifyTask(w.ctx, dts.DefaultTenant, k.ID, dts.TaskPatch{TaskTemplatePatch: dts.TaskTemplatePatch{Queue: &queue}}); err != nil {
					t.Error(err)
				}
			}
		}
		w.settle(time.Hour)
		if st.meanwhile != nil {
			t.Fatal("it was not read")
		}
		if n := len(w.run.list()); n != 0 {
			t.Fatalf("%d starts", n)
		}
		w.resumeQueue("b")
		w.settle(time.Second)
		w.late([]*dts.Task{k})
		w.wantAtRest()
	})
}
