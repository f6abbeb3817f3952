package main

import (
	"context"
	"slices"
	"testing"

	"dts"
)

// Queues and calendars of all files come before tasks, and a failure says how many changes all files together had made.
func TestApplyPlans(t *testing.T) {
	var done []string
	change := func(kind, name string, err error) *fileChange {
		return &fileChange{Kind: kind, Name: name, do: func(context.Context) error {
			done = append(done, name)
			return err
		}}
	}
	plans := []*applyPlan{
		{changes: []*fileChange{change("queue", "q", nil), change("task", "a", nil)}},
		{changes: []*fileChange{change("calendar", "c", nil), change("workflow", "b", dts.Errorf(dts.ErrConflict, "no")), change("task", "d", nil)}},
	}
	err := applyPlans(t.Context(), plans)
	if want := "workflow b: no; 3 changes were made before it, and applying again goes on from there"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if want := []string{"q", "c", "a", "b"}; !slices.Equal(done, want) {
		t.Errorf("done: %v, want %v", done, want)
	}
}

// What was replaced by a run that was cut off before it could cancel the old one is known, and cancelled by the next.
func TestApplyUnfinished(t *testing.T) {
	old := &dts.RecurringTask{ID: "1", Spec: dts.Spec{Name: "a"}}
	made := &dts.RecurringTask{ID: "2", Spec: dts.Spec{Name: "a"}, IdempotencyKey: replaceKey(old)}
	third := &dts.RecurringTask{ID: "3", Spec: dts.Spec{Name: "a"}}
	p := &applyPlan{have: &declared{kept: map[string]bool{}}}
	list := []*dts.RecurringTask{made, old, third}
	if left := p.unfinished(list); !slices.Equal(left, []*dts.RecurringTask{made, third}) || list[1] != old {
		t.Errorf("left %v of %v", left, list)
	}
	if len(p.changes) != 1 || p.changes[0].ID != "1" || p.changes[0].Action != "remove" || !p.have.kept["1"] {
		t.Errorf("%+v", p.changes)
	}
}
