package sched_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"dts"
	"dts/sched"
	"dts/store"
)

// TestUnreadableIsSetAside: a task that cannot be read never runs, and everything else does; verbs say what is wrong.
func TestUnreadableIsSetAside(t *testing.T) {
	quiet := func(o *sched.Options) { o.Log = slog.New(slog.DiscardHandler) }
	inWorld(t, quiet, func(w *world) {
		soon := w.add(time.Minute, func(t *dts.Task) { t.Description = "x" })
		lined := w.add(time.Minute, func(t *dts.Task) { t.ConcurrencyKey = "k" })
		ranked := w.add(time.Minute, nil)
		below := w.add(time.Minute, nil)
		later := w.add(time.Hour, nil)
		var others []*dts.Task
		for range 20 {
			others = append(others, w.add(time.Minute, func(t *dts.Task) { t.ConcurrencyKey = "k" }))
		}
		for _, id := range []string{soon.ID, lined.ID, later.ID} {
			if _, err := w.db.Apply(w.ctx, store.Stmt{SQL: `UPDATE tasks SET spec = '{' WHERE task_id = ?`, Args: []any{id}}); err != nil {
				t.Fatal(err)
			}
		}
		for id, rank := range map[string]int{ranked.ID: 99, below.ID: -1} {
			if _, err := w.db.Apply(w.ctx, store.Stmt{SQL: `UPDATE tasks SET priority = ? WHERE task_id = ?`, Args: []any{rank, id}}); err != nil {
				t.Fatal(err)
			}
		}
		w.restart(0)
		w.settle(2 * time.Minute)
		for _, x := range []*dts.Task{soon, lined, ranked, below} {
			if got := w.task(x.ID); got.Status != dts.Failed || !strings.Contains(got.LastError, "cannot be read") || got.Attempts != 0 {
				t.Errorf("it is %s after %d attempts: %s", got.Status, got.Attempts, got.LastError)
			}
		}
		for _, x := range others {
			if got := w.task(x.ID); got.Status != dts.Success {
				t.Errorf("another one is %s", got.Status)
			}
		}
		name := "n"
		if _, err := w.s.ModifyTask(w.ctx, dts.DefaultTenant, later.ID, dts.TaskPatch{TaskTemplatePatch: dts.TaskTemplatePatch{Name: &name}}); dts.CodeOf(err) != dts.ErrConflict {
			t.Errorf("modify: %v", err)
		}
		if got := w.do(later.ID, dts.Cancel); got.Status != dts.Cancelled {
			t.Errorf("cancelled, it is %s", got.Status)
		}
		if got := w.do(soon.ID, dts.RetryNow); got.Status != dts.Pending {
			t.Errorf("retried, it is %s", got.Status)
		}
		w.settle(time.Second)
		if got := w.task(soon.ID); got.Status != dts.Failed {
			t.Errorf("retried, it is %s", got.Status)
		}
		w.do(soon.ID, dts.Delete)
		w.atRest()
	})
}

// TestUnreadableRecurring: a recurring task whose definition cannot be read is planned no further, and every other one is;
// it stays as it is stored, and can be cancelled.
func TestUnreadableRecurring(t *testing.T) {
	quiet := func(o *sched.Options) { o.Log = slog.New(slog.DiscardHandler) }
	inWorld(t, quiet, func(w *world) {
		broken, wrong, paused, healthy := w.every("* * * * *", nil), w.every("* * * * *", nil), w.every("* * * * *", nil), w.every("* * * * *", nil)
		if _, err := w.s.PauseRecurring(w.ctx, dts.DefaultTenant, paused.ID, time.Time{}, "", "me"); err != nil {
			t.Fatal(err)
		}
		for id, spec := range map[string]string{broken.ID: `{`, wrong.ID: `{"cron": 5}`, paused.ID: `{`} {
			if _, err := w.db.Apply(w.ctx, store.Stmt{SQL: `UPDATE recurring_tasks SET spec = ? WHERE recurring_task_id = ?`, Args: []any{spec, id}}); err != nil {
				t.Fatal(err)
			}
		}
		w.restart(0)
		w.settle(time.Hour)
		if n := w.recurring(healthy.ID).RunsCount; n < 59 {
			t.Errorf("the healthy one ran %d times", n)
		}
		for _, r := range []*dts.RecurringTask{broken, wrong, paused} {
			got := w.recurring(r.ID)
			if !strings.Contains(got.Unreadable, "cannot be read") || got.RunsCount > 20 || got.Name != r.Name {
				t.Errorf("%q %q ran %d times", got.Name, got.Unreadable, got.RunsCount)
			}
			if _, err := w.s.TriggerRecurring(w.ctx, dts.DefaultTenant, r.ID, "me"); dts.CodeOf(err) != dts.ErrConflict {
				t.Errorf("trigger: %v", err)
			}
			if _, err := w.s.PauseRecurring(w.ctx, dts.DefaultTenant, r.ID, time.Time{}, "", "me"); dts.CodeOf(err) != dts.ErrConflict && got.Status == dts.Active {
				t.Errorf("pause: %v", err)
			}
			if got, err := w.s.CancelRecurring(w.ctx, dts.DefaultTenant, r.ID, "me"); err != nil || got.Status != dts.Ended || got.Unreadable == "" {
				t.Errorf("cancel: %+v, %v", got, err)
			}
		}
		w.settle(time.Hour)
		if n := w.recurring(healthy.ID).RunsCount; n < 118 {
			t.Errorf("the healthy one ran %d times", n)
		}
	})
}
