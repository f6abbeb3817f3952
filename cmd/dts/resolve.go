package main

import (
	"context"
	"strings"

	"dts"
)

// thing is what a NAME or ID on the command line means: one of the two.
type thing struct {
	task      *dts.Task
	recurring *dts.RecurringTask
	byName    bool // it was not given by its id
	pingURL   string
}

// what names it for messages.
func (t thing) what() string {
	if t.task != nil {
		return "task " + displayName(&t.task.Spec)
	}
	return "recurring task " + displayName(&t.recurring.Spec)
}

// maxNamed is how many things of one name are looked at.
const maxNamed = 1000

// resolve finds what ref means: an id, else the exact name of a recurring task that is not cancelled, else
// the name of a task, of which the newest unfinished one, or the newest, is meant.
func (l *link) resolve(ctx context.Context, ref string) (thing, error) {
	if dts.IsID(ref) {
		t, err := l.Task(ctx, ref)
		if err == nil {
			return thing{task: t}, nil
		}
		if dts.CodeOf(err) != dts.ErrNotFound {
			return thing{}, err
		}
		r, err := l.RecurringTask(ctx, ref)
		if dts.CodeOf(err) == dts.ErrNotFound {
			return thing{}, failf("there is no task and no recurring task with the id %s", ref)
		}
		return thing{recurring: r}, err
	}
	if ref == "" || len(ref) > dts.MaxName {
		return thing{}, usagef("%q is neither a name nor an id", clip(ref, 60))
	}
	named, err := l.recurringNamed(ctx, ref)
	switch {
	case err != nil:
		return thing{}, err
	case len(named) == 1:
		return thing{recurring: named[0], byName: true}, nil
	case len(named) > 1:
		ids := make([]string, len(named))
		for i, r := range named {
			ids[i] = r.ID
		}
		return thing{}, usagef("%d recurring tasks have the name %q; give one of the ids %s", len(named), ref, strings.Join(ids, ", "))
	}
	t, err := l.taskNamed(ctx, ref)
	if err == nil && t == nil {
		err = failf("there is no task and no recurring task %q; dts ls shows what there is", ref)
	}
	return thing{task: t, byName: true}, err
}

// recurringNamed returns the recurring tasks of a name that are not cancelled.
func (l *link) recurringNamed(ctx context.Context, name string) ([]*dts.RecurringTask, error) {
	var list []*dts.RecurringTask
	f := dts.RecurringFilter{Name: name, Limit: 100, Statuses: []dts.RecurringStatus{dts.Active, dts.Paused, dts.Completed}}
	for r, err := range l.AllRecurringTasks(ctx, f) {
		if err != nil {
			return nil, err
		}
		if list = append(list, r); len(list) == maxNamed {
			break
		}
	}
	return list, nil
}

// taskNamed returns the newest unfinished task of a name, or the newest, or nil.
func (l *link) taskNamed(ctx context.Context, name string) (*dts.Task, error) {
	for _, statuses := range [][]dts.Status{{dts.Running, dts.Pending}, nil} {
		for t, err := range l.AllTasks(ctx, dts.TaskFilter{Name: name, Statuses: statuses, Limit: 1}) {
			return t, err
		}
	}
	return nil, nil
}

// newestRun returns the newest run of a recurring task, one in progress first, or nil when it has not run. In progress is also
// what waits for its next attempt or, as the run of a workflow, for its steps.
func (l *link) newestRun(ctx context.Context, id string) (*dts.Task, error) {
	for _, statuses := range [][]dts.Status{{dts.Running}, {dts.Pending}, {dts.Success, dts.Failed, dts.Cancelled}} {
		var newest *dts.Task
		seen := 0
		for t, err := range l.AllTasks(ctx, dts.TaskFilter{RecurringTaskID: id, Statuses: statuses, Limit: 100}) {
			if err != nil {
				return nil, err
			}
			if !t.StartedAt.IsZero() && (newest == nil || t.StartedAt.After(newest.StartedAt)) {
				newest = t
			}
			if seen++; seen == maxNamed {
				break
			}
			// The list is in order of creation, newest first; what was planned ahead comes before what ran.
			if newest != nil && seen >= 100 {
				break
			}
		}
		if newest != nil {
			return newest, nil
		}
	}
	return nil, nil
}

// resolveRecurring finds the recurring task that ref means; done says what was to happen to it.
func (l *link) resolveRecurring(ctx context.Context, ref, done string) (*dts.RecurringTask, error) {
	x, err := l.resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	if x.recurring == nil {
		return nil, failf("%s runs once; only a recurring task can be %s", x.what(), done)
	}
	return x.recurring, nil
}
