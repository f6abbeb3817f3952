package sched_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"dts"
	"dts/sched"
)

// lateAnswers is a store between whose look at a line and the answer something happens.
type lateAnswers struct {
	sched.Store
	meanwhile atomic.Pointer[func(tasks []*dts.Task, taken int) ([]*dts.Task, int)] // what is answered
}

func (s *lateAnswers) InLine(ctx context.Context, k dts.LineKey, limit int) ([]*dts.Task, int, error) {
	tasks, taken, err := s.Store.InLine(ctx, k, limit)
	if f := s.meanwhile.Load(); f != nil {
		tasks, taken = (*f)(tasks, taken)
	}
	return tasks, taken, err
}

// TestVerbWhileALineIsRead: what somebody does to a task just when it was read as the next in line is not undone, and the
// loop does not keep what the task was.
func TestVerbWhileALineIsRead(t *testing.T) {
	for _, verb := range []dts.Verb{dts.PauseTask, dts.Cancel, dts.Delete} {
		t.Run(string(verb), func(t *testing.T) {
			st := &lateAnswers{}
			inWorld(t, func(o *sched.Options) { st.Store, o.Store = o.Store, st }, func(w *world) {
				if _, err := w.s.PutQueue(w.ctx, &dts.Queue{Name: "q", Concurrency: 1}); err != nil {
					t.Fatal(err)
				}
				w.run.behave(takes(10 * time.Second))
				first := w.add(0, func(k *dts.Task) { k.Queue = "q" })
				w.settle(time.Second)
				second := w.add(0, func(k *dts.Task) { k.Queue = "q" })
				w.settle(8 * time.Second)
				meanwhile := func(tasks []*dts.Task, taken int) ([]*dts.Task, int) {
					if len(tasks) > 0 && w.task(first.ID).Status == dts.Success {
						st.meanwhile.Store(nil)
						w.do(second.ID, verb)
					}
					return tasks, taken
				}
				st.meanwhile.Store(&meanwhile)
				w.settle(time.Minute)
				if st.meanwhile.Load() != nil {
					t.Fatal("the line was not read")
				}
				if n := len(w.run.list()); n != 1 {
					t.Errorf("%d starts", n)
				}
				if verb == dts.PauseTask {
					if got := w.task(second.ID); got.WaitsFor != dts.ReasonPaused {
						t.Fatalf("it waits for %q", got.WaitsFor)
					}
					w.do(second.ID, dts.ResumeTask)
					w.settle(time.Minute)
					w.late([]*dts.Task{first, second})
				}
				w.wantAtRest()
			})
		})
	}
}

// TestEndWhileALineIsRead: what has run by the time that it is answered as the next in line does not run again, and keeps
// nobody from running.
func TestEndWhileALineIsRead(t *testing.T) {
	st := &lateAnswers{}
	inWorld(t, func(o *sched.Options) { st.Store, o.Store = o.Store, st }, func(w *world) {
		if _, err := w.s.PutQueue(w.ctx, &dts.Queue{Name: "q", Concurrency: 1}); err != nil {
			t.Fatal(err)
		}
		w.run.behave(takes(10 * time.Second))
		var all []*dts.Task
		for range 2 {
			all = append(all, w.add(0, func(k *dts.Task) { k.Queue = "q" }))
			w.settle(time.Second)
		}
		var old *dts.Task
		answers := 0
		meanwhile := func(tasks []*dts.Task, taken int) ([]*dts.Task, int) {
			if len(tasks) > 0 && tasks[0].ID == all[1].ID {
				was := *tasks[0]
				old = &was
			} else if old != nil && w.task(old.ID).Status == dts.Running && answers == 0 {
				answers++
				time.Sleep(15 * time.Second)
				return []*dts.Task{old}, 0
			}
			return tasks, taken
		}
		st.meanwhile.Store(&meanwhile)
		w.settle(2 * time.Minute)
		if answers == 0 {
			t.Fatal("the line was not read")
		}
		w.late(all)
		w.wantAtRest()
	})
}

// lateChanges is a store in which something happens just before a change of a task.
type lateChanges struct {
	sched.Store
	before func(c dts.Change)
}

func (s *lateChanges) Change(ctx context.Context, f dts.Fence, changes []dts.Change, now time.Time) error {
	if b := s.before; b != nil {
		b(changes[0])
	}
	return s.Store.Change(ctx, f, changes, now)
}

// TestRetryOfAParentWhileAVerbHasTheChild: the child waits again, also where a verb had it just then.
func TestRetryOfAParentWhileAVerbHasTheChild(t *testing.T) {
	st := &lateChanges{}
	inWorld(t, func(o *sched.Options) { st.Store, o.Store = o.Store, st }, func(w *world) {
		w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome {
			if j.Task.Queue == "parent" && j.Number == 1 {
				return dts.Outcome{State: dts.AttemptFailed, Error: "exit 1"}
			}
			return takes(time.Minute)(ctx, j)
		})
		parent := w.add(0, func(k *dts.Task) { k.Queue, k.Retry.MaxAttempts = "parent", 1 })
		w.settle(time.Second)
		child := w.add(10*time.Second, func(k *dts.Task) { k.DependsOn = []dts.DependsOn{{TaskID: parent.ID, Type: dts.MustFinish}} })
		w.settle(9 * time.Second)
		st.before = func(c dts.Change) {
			if c.Old.ID == child.ID {
				st.before = nil
				w.do(parent.ID, dts.RetryNow)
			}
		}
		name := "renamed"
		if _, err := w.s.ModifyTask(w.ctx, dts.DefaultTenant, child.ID, dts.TaskPatch{TaskTemplatePatch: dts.TaskTemplatePatch{Name: &name}}); err != nil {
			t.Fatal(err)
		}
		w.settle(30 * time.Second)
		if got := w.task(child.ID); got.Status != dts.Pending || got.Unresolved != 1 {
			t.Errorf("the child is %s and waits for %d", got.Status, got.Unresolved)
		}
		w.settle(2 * time.Minute)
		w.late([]*dts.Task{child})
		w.wantAtRest()
	})
}

// lateLoads is a store between whose look at what is due and the answer something happens.
type lateLoads struct {
	sched.Store
	meanwhile atomic.Pointer[func(list []dts.Entry)]
}

func (s *lateLoads) LoadDue(ctx context.Context, shards dts.ShardSet, queues dts.QueueChoice, after dts.Mark, through time.Time, limit int) ([]dts.Entry, error) {
	list, err := s.Store.LoadDue(ctx, shards, queues, after, through, limit)
	if f := s.meanwhile.Load(); f != nil {
		(*f)(list)
	}
	return list, err
}

// TestMoveToAPausedQueueWhileItIsRead: a task that is put into a paused queue just when it was read does not start.
func TestMoveToAPausedQueueWhileItIsRead(t *testing.T) {
	st := &lateLoads{}
	inWorld(t, func(o *sched.Options) { st.Store, o.Store = o.Store, st }, func(w *world) {
		w.pauseQueue("b")
		k := w.add(15*time.Minute, func(k *dts.Task) { k.Queue = "a" })
		meanwhile := func(list []dts.Entry) {
			if len(list) > 0 {
				st.meanwhile.Store(nil)
				queue := "b"
				if _, err := w.s.ModifyTask(w.ctx, dts.DefaultTenant, k.ID, dts.TaskPatch{TaskTemplatePatch: dts.TaskTemplatePatch{Queue: &queue}}); err != nil {
					t.Error(err)
				}
			}
		}
		st.meanwhile.Store(&meanwhile)
		w.settle(time.Hour)
		if st.meanwhile.Load() != nil {
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
