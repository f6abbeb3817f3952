package sched_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"dts"
	"dts/sched"
)

// bulk does a bulk verb as the API asks for it.
func (w *world) bulk(v dts.BulkVerb, f dts.TaskFilter) dts.BulkResult {
	w.t.Helper()
	f.TenantID = dts.DefaultTenant
	r, err := w.s.Bulk(w.ctx, dts.BulkChange{Verb: v, Filter: f, Actor: "tester"})
	if err != nil {
		w.t.Fatalf("bulk %s: %v", v, err)
	}
	return r
}

func (w *world) wantBulk(v dts.BulkVerb, f dts.TaskFilter, n int) {
	w.t.Helper()
	f.TenantID = dts.DefaultTenant
	dry, err := w.s.Bulk(w.ctx, dts.BulkChange{Verb: v, Filter: f, DryRun: true})
	if err != nil || dry != (dts.BulkResult{Matched: n, DryRun: true}) {
		w.t.Errorf("dry run of %s: %+v, %v; want %d", v, dry, err, n)
	}
	if r := w.bulk(v, f); r != (dts.BulkResult{Matched: n, Done: n}) {
		w.t.Errorf("%s: %+v, want %d", v, r, n)
	}
}

func (w *world) count(s dts.Status) (n int) {
	w.t.Helper()
	n, err := w.st.CountTasks(w.ctx, dts.TaskFilter{TenantID: dts.DefaultTenant, Statuses: []dts.Status{s}})
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

func TestBulkCancel(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.HTTPSlots = 3 }, func(w *world) {
		w.run.behave(takes(time.Hour))
		for i := range 700 {
			w.add(time.Duration(i%3)*time.Minute, func(t *dts.Task) { t.Queue = "q" })
		}
		keep := w.add(time.Hour, nil)
		w.settle(time.Second)
		w.wantBulk(dts.BulkCancel, dts.TaskFilter{Queue: "q"}, 700)
		w.settle(time.Hour)
		w.run.behave(nil)
		w.settle(2 * time.Hour)
		if got := w.task(keep.ID); got.Status != dts.Success {
			t.Errorf("the task outside the filter is %s", got.Status)
		}
		if n := len(w.run.list()); n != 4 {
			t.Errorf("%d starts, want 3 before the cancel and 1 after", n)
		}
	})
}

// TestBulkCancelStopsRunsTogether: runs that take their time to end do so at the same time.
func TestBulkCancelStopsRunsTogether(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.run.behave(func(ctx context.Context, _ dts.Job) dts.Outcome {
			<-ctx.Done()
			time.Sleep(10 * time.Second)
			return dts.Outcome{State: dts.AttemptCancelled, Error: "cancelled"}
		})
		for range 50 {
			w.add(0, nil)
		}
		w.settle(time.Second)
		began := time.Now()
		w.wantBulk(dts.BulkCancel, dts.TaskFilter{Statuses: []dts.Status{dts.Running}}, 50)
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("it took %s to stop 50 runs that need 10 s each", took)
		}
		if n := w.count(dts.Cancelled); n != 50 {
			t.Errorf("%d are cancelled", n)
		}
	})
}

// TestBulkRetry: the dead letters run once more, each once, also those that fail again at once; and only they.
func TestBulkRetry(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.run.behave(fails)
		once := func(queue string) func(k *dts.Task) {
			return func(k *dts.Task) { k.Queue, k.Retry.MaxAttempts = queue, 1 }
		}
		for i := range 1200 {
			w.add(0, once([]string{"a", "b"}[i%2]))
		}
		cancelled := w.do(w.add(time.Hour, once("a")).ID, dts.Cancel)
		w.settle(time.Second)
		if n := w.count(dts.Failed); n != 1200 {
			t.Fatalf("%d failed", n)
		}
		w.wantBulk(dts.BulkRetry, dts.TaskFilter{Queue: "a", Error: "Answered 5"}, 600)
		w.wantBulk(dts.BulkRetry, dts.TaskFilter{Error: "answered 6"}, 0)
		w.settle(time.Second)
		if n := len(w.run.list()); n != 1800 {
			t.Errorf("%d starts, want 1200 and 600", n)
		}
		if n := w.count(dts.Failed); n != 1200 {
			t.Errorf("%d have failed again, or still", n)
		}
		w.run.behave(nil)
		w.wantBulk(dts.BulkRetry, dts.TaskFilter{IDs: []string{cancelled.ID, dts.NewID(time.Now())}}, 1)
		w.wantBulk(dts.BulkRetry, dts.TaskFilter{}, 1200)
		w.settle(time.Second)
		if n := w.count(dts.Success); n != 1201 {
			t.Errorf("%d have succeeded now", n)
		}
	})
}

func TestBulkDelete(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome {
			if j.Task.Name == "runs" {
				return takes(time.Hour)(ctx, j)
			}
			return dts.Outcome{State: dts.AttemptSuccess}
		})
		named := func(name string) func(*dts.Task) { return func(k *dts.Task) { k.Name = name } }
		for range 600 {
			w.add(0, named("done"))
		}
		runs, waits := w.add(0, named("runs")), w.add(time.Hour, named("waits"))
		w.settle(time.Second)
		w.wantBulk(dts.BulkDelete, dts.TaskFilter{NamePrefix: "do"}, 600)
		w.wantBulk(dts.BulkDelete, dts.TaskFilter{Queue: "default"}, 0) // neither what runs nor, unless asked for, what waits
		w.wantBulk(dts.BulkDelete, dts.TaskFilter{IDs: []string{runs.ID}}, 0)
		w.wantBulk(dts.BulkDelete, dts.TaskFilter{Statuses: []dts.Status{dts.Pending}}, 1)
		if _, err := w.st.Task(w.ctx, dts.DefaultTenant, waits.ID); dts.CodeOf(err) != dts.ErrNotFound {
			t.Error(err)
		}
		if got := w.task(runs.ID); got.Status != dts.Running {
			t.Errorf("what runs is %s", got.Status)
		}
		w.settle(2 * time.Hour)
		if n := len(w.run.list()); n != 601 {
			t.Errorf("%d starts", n)
		}
	})
}

// TestBulkPause: what is paused by a filter of times is found by the same filter again, and starts when it is resumed,
// each at its time.
func TestBulkPause(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		var all []*dts.Task
		for i := range 600 {
			all = append(all, w.add(time.Duration(i)*time.Second, nil))
		}
		late := w.add(time.Hour, nil)
		w.settle(500 * time.Millisecond)
		soon := dts.TaskFilter{From: all[1].RunAt, To: all[599].RunAt.Add(time.Second)}
		w.wantBulk(dts.BulkPause, soon, 599)
		w.wantBulk(dts.BulkPause, soon, 0)
		w.wantBulk(dts.BulkPause, dts.TaskFilter{Queue: "default"}, 1) // the one that is not paused yet
		w.bulk(dts.BulkResume, dts.TaskFilter{IDs: []string{late.ID}})
		w.settle(5 * time.Minute)
		if n := len(w.run.list()); n != 1 {
			t.Fatalf("%d starts while they are paused", n)
		}
		w.restart(time.Second)
		w.wantBulk(dts.BulkResume, soon, 599)
		w.settle(time.Second)
		if n := len(w.run.list()); n < 300 || n > 310 {
			t.Errorf("%d starts when they were resumed after 5 minutes", n)
		}
		w.settle(2 * time.Hour)
		if n := w.count(dts.Success); n != 601 {
			t.Errorf("%d have succeeded", n)
		}
		starts := map[string]int{}
		for _, x := range w.run.list() {
			if starts[x.id]++; starts[x.id] > 1 {
				t.Errorf("task %s has started %d times", x.id, starts[x.id])
			}
		}
		for _, k := range all[1:] {
			if got := w.task(k.ID); got.LatenessUS == nil || *got.LatenessUS > 1000 || got.WaitsFor != "" {
				t.Fatalf("the pause counts as lateness: %+v", got)
			}
		}
	})
}

// TestPause: a pause keeps a task from starting wherever it waits, and what ends it starts it in time.
func TestPause(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome {
			if j.Task.Name == "fails" && j.Number == 1 {
				return fails(ctx, j)
			}
			return takes(10*time.Minute)(ctx, j)
		})
		started := func(k *dts.Task) bool {
			return slices.ContainsFunc(w.run.list(), func(s start) bool { return s.id == k.ID })
		}
		first := w.add(0, keyed("k", 1))
		inLine := w.add(0, keyed("k", 1))
		behind := w.add(0, keyed("k", 1))
		soon := w.add(1500*time.Millisecond, nil) // claimed
		retried := w.add(0, func(k *dts.Task) {
			k.Name, k.Retry = "fails", dts.Retry{MaxAttempts: 2, Backoff: dts.Fixed, BaseDelayMS: 60_000}
		})
		w.settle(time.Second)
		for _, k := range []*dts.Task{inLine, soon, retried} {
			p := w.do(k.ID, dts.PauseTask)
			if p.Status != dts.Pending || p.WaitsFor != dts.ReasonPaused || !p.DueAt.Equal(k.DueAt) {
				t.Errorf("paused: %+v", p)
			}
			if again := w.do(k.ID, dts.PauseTask); again.WaitsFor != dts.ReasonPaused || !again.RunAt.Equal(p.RunAt) {
				t.Errorf("paused again: %+v", again)
			}
		}
		if why, err := w.s.Why(w.ctx, dts.DefaultTenant, soon.ID, time.Time{}); err != nil || !strings.HasPrefix(why.Answer, "It is paused: ") {
			t.Errorf("%+v, %v", why, err)
		}
		w.settle(time.Hour)
		if started(inLine) || started(soon) || len(w.attempts(retried.ID)) != 1 {
			t.Error("a paused task has started")
		}
		if !started(behind) || w.task(first.ID).Status != dts.Success {
			t.Error("a paused task holds up those behind it")
		}
		at := w.now().Add(time.Minute)
		moved, err := w.s.ModifyTask(w.ctx, dts.DefaultTenant, soon.ID, dts.TaskPatch{RunAt: &at})
		if err != nil || moved.WaitsFor != dts.ReasonPaused || !moved.DueAt.Equal(at) {
			t.Errorf("moved while it is paused: %+v, %v", moved, err)
		}
		w.do(inLine.ID, dts.ResumeTask)
		if got := w.do(soon.ID, dts.ResumeTask); !got.RunAt.Equal(at) || got.WaitsFor != "" {
			t.Errorf("resumed before it is due: %+v", got)
		}
		w.do(retried.ID, dts.RunNow)
		w.settle(time.Second)
		if !started(inLine) || started(soon) || len(w.attempts(retried.ID)) != 2 {
			t.Errorf("after the resume: %v %v %d", started(inLine), started(soon), len(w.attempts(retried.ID)))
		}
		w.settle(time.Minute)
		if !started(soon) {
			t.Error("it has not started when it was due")
		}
		paused := w.do(w.add(time.Minute, nil).ID, dts.PauseTask)
		if got := w.do(paused.ID, dts.Cancel); !got.RunAt.Equal(paused.DueAt) || got.WaitsFor != "" {
			t.Errorf("cancelled while it was paused: %+v", got)
		}
		if _, err := w.s.DoTask(w.ctx, dts.DefaultTenant, soon.ID, dts.PauseTask, "me"); dts.CodeOf(err) != dts.ErrConflict {
			t.Errorf("pause of a running one: %v", err)
		}
	})
}

// TestPauseOccurrence: an occurrence that is paused outlives a change of the schedule, is not missed, and does not
// keep the others.
func TestPauseOccurrence(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		r := w.every("*/10 * * * *", nil)
		w.settle(time.Second)
		list, err := w.st.Planned(w.ctx, r.ID)
		if err != nil || len(list) < 3 {
			t.Fatal(len(list), err)
		}
		w.do(list[1].ID, dts.PauseTask)
		name := "other"
		if _, err := w.s.ModifyRecurring(w.ctx, dts.DefaultTenant, r.ID, dts.RecurringPatch{TaskTemplatePatch: dts.TaskTemplatePatch{Name: &name}}); err != nil {
			t.Fatal(err)
		}
		w.settle(45 * time.Minute)
		if got := w.task(list[1].ID); got.Status != dts.Pending || got.WaitsFor != dts.ReasonPaused {
			t.Errorf("%+v", got)
		}
		if n := len(w.run.list()); n != 3 {
			t.Errorf("%d runs beside it: %v", n, w.ledger(r.ID))
		}
		w.do(list[1].ID, dts.ResumeTask)
		w.settle(time.Second)
		if got := w.task(list[1].ID); got.Status != dts.Success || !got.ScheduledAt.Equal(list[1].ScheduledAt) {
			t.Errorf("resumed: %+v", got)
		}
	})
}

// TestBulkBesideOthers: bulk verbs, verbs and fires at once neither hang nor start anything twice.
func TestBulkBesideOthers(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.HTTPSlots = 20 }, func(w *world) {
		w.run.behave(takes(50 * time.Millisecond))
		var ids []string
		for i := range 300 {
			ids = append(ids, w.add(time.Duration(i)*20*time.Millisecond, nil).ID)
		}
		done := make(chan error)
		for i, v := range []dts.BulkVerb{dts.BulkPause, dts.BulkResume, dts.BulkPause, dts.BulkResume, dts.BulkCancel, dts.BulkRetry} {
			go func() {
				var err error
				for round := 0; round < 20 && err == nil; round++ {
					time.Sleep(time.Duration(i*7+round) * 13 * time.Millisecond)
					part := slices.Clone(ids[(i*37+round*11)%200:][:100])
					_, err = w.s.Bulk(w.ctx, dts.BulkChange{Verb: v, Filter: dts.TaskFilter{TenantID: dts.DefaultTenant, IDs: part}, Actor: "me"})
				}
				done <- err
			}()
		}
		for range 6 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		w.settle(time.Minute)
		w.bulk(dts.BulkResume, dts.TaskFilter{WaitsFor: dts.ReasonPaused})
		w.settle(time.Minute)
		for _, s := range []dts.Status{dts.Pending, dts.Running, dts.Failed} {
			if n := w.count(s); n != 0 {
				t.Errorf("%d are %s", n, s)
			}
		}
		seen := map[string]bool{}
		for _, x := range w.run.list() {
			key := fmt.Sprint(x.id, x.number)
			if seen[key] {
				t.Errorf("attempt %d of %s has started twice", x.number, x.id)
			}
			seen[key] = true
		}
	})
}
