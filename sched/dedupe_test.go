package sched_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"dts"
)

func oneOf(policy dts.DedupePolicy) func(*dts.Task) {
	return func(t *dts.Task) { t.DedupeKey, t.DedupePolicy = "k", policy }
}

// create creates a task due in d; unlike add it returns the error.
func (w *world) create(d time.Duration, edit func(*dts.Task)) (*dts.Task, error) {
	t := &dts.Task{Spec: w.spec(), RunAt: w.now().Add(d)}
	edit(t)
	if err := t.Normalize(w.now()); err != nil {
		w.t.Fatal(err)
	}
	made, err := w.s.CreateTasks(w.ctx, []*dts.Task{t})
	if err != nil {
		return nil, err
	}
	return made[0].Item, nil
}

// TestReplace: a task takes the place of the unfinished one with its key, in whatever state that is.
func TestReplace(t *testing.T) {
	for name, c := range map[string]struct {
		due  time.Duration // of the old one
		wait time.Duration // before the new one comes
		runs func(context.Context, dts.Job) dts.Outcome
	}{
		"not due":          {due: time.Hour},
		"claimed":          {due: time.Second},
		"running":          {wait: time.Second, runs: takes(time.Hour)},
		"between attempts": {wait: 100 * time.Millisecond, runs: fails},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				w.run.behave(c.runs)
				old := w.add(c.due, oneOf(""))
				w.settle(c.wait)
				w.run.behave(nil)
				n := w.add(time.Minute, oneOf(dts.DedupeReplace))
				if got := w.task(old.ID); got.Status != dts.Cancelled {
					t.Errorf("the old one is %s", got.Status)
				}
				if _, err := w.s.DoTask(w.ctx, dts.DefaultTenant, old.ID, dts.RetryNow, "me"); dts.CodeOf(err) != dts.ErrConflict || !strings.Contains(err.Error(), n.ID) {
					t.Errorf("a retry of the old one: %v", err)
				}
				w.settle(2 * time.Minute)
				if got := w.task(n.ID); got.Status != dts.Success {
					t.Errorf("the new one is %s", got.Status)
				}
				if got := w.task(old.ID); got.Status != dts.Cancelled {
					t.Errorf("the old one is %s", got.Status)
				}
				w.do(old.ID, dts.RetryNow)
				w.settle(time.Second)
				if got := w.task(old.ID); got.Status != dts.Success {
					t.Errorf("retried when the new one had ended, the old one is %s", got.Status)
				}
				w.atRest()
			})
		})
	}
}

// TestReplaceAgain: the same request again, with its idempotency key, replaces nothing.
func TestReplaceAgain(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		once := func(t *dts.Task) {
			oneOf(dts.DedupeReplace)(t)
			t.IdempotencyKey, t.RequestHash = "i", "h"
		}
		first := w.add(time.Hour, once)
		if again := w.add(time.Hour, once); again.ID != first.ID {
			t.Errorf("%s, want %s", again.ID, first.ID)
		}
		second := w.add(time.Hour, oneOf(dts.DedupeReplace))
		if again := w.add(time.Hour, once); again.ID != first.ID || again.Status != dts.Cancelled {
			t.Errorf("%s %s, want %s CANCELLED", again.ID, again.Status, first.ID)
		}
		if _, err := w.create(time.Hour, func(t *dts.Task) { once(t); t.RequestHash = "other" }); dts.CodeOf(err) != dts.ErrConflict {
			t.Errorf("another request with the key: %v", err)
		}
		if got := w.task(second.ID); got.Status != dts.Pending {
			t.Errorf("the second one is %s", got.Status)
		}
	})
}

// TestReplaceRace: of many that replace each other at once one is left.
func TestReplaceRace(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.run.behave(takes(time.Hour))
		w.add(0, oneOf(""))
		w.settle(time.Second)
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				if _, err := w.create(time.Minute, oneOf(dts.DedupeReplace)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		page, err := w.st.Tasks(w.ctx, dts.TaskFilter{TenantID: dts.DefaultTenant, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		left := 0
		for _, k := range page.Items {
			switch k.Status {
			case dts.Pending:
				left++
			case dts.Cancelled:
			default:
				t.Errorf("one is %s", k.Status)
			}
		}
		if left != 1 {
			t.Errorf("%d are left, want 1", left)
		}
		w.run.behave(nil)
		w.settle(2 * time.Minute)
		w.atRest()
	})
}
