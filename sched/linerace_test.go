package sched_test

import (
	"context"
	"testing"
	"time"

	"dts"
	"dts/sched"
)

// lateAnswers is a store between whose look at a line and the answer something happens.
type lateAnswers struct {
	sched.Store
	meanwhile func(tasks []*dts.Task, taken int) ([]*dts.Task, int) // what is answered
}

func (s *lateAnswers) InLine(ctx context.Context, k dts.LineKey, limit int) ([]*dts.Task, int, error) {
	tasks, taken, err := s.Store.InLine(ctx, k, limit)
	if f := s.meanwhile; f != nil {
		tasks, taken = f(tasks, taken)
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
				st.meanwhile = func(tasks []*dts.Task, taken int) ([]*dts.Task, int) {
					if len(tasks) > 0 && w.task(first.ID).Status == dts.Success {
						st.meanwhile = nil
						w.do(second.ID, verb)
					}
					return tasks, taken
				}
				w.settle(time.Minute)
				if st.meanwhile != nil {
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
		st.meanwhile = func(tasks []*dts.Task, taken int) ([]*dts.Task, int) {
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
		w.settle(2 * time.Minute)
		if answers == 0 {
			t.Fatal("the line was not read")
		}
		w.late(all)
		w.wantAtRest()
	})
}
