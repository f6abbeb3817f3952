package main

import (
	"context"
	"slices"

	"dts"
	"dts/cmd/dts/taskfile"
	"dts/web/api"
)

// declared is what the server has of the kinds that files declare, and the files of this run.
type declared struct {
	files     []*taskfile.File
	recurring []*dts.RecurringTask // not cancelled
	queues    map[string]*dts.Queue
	calendars map[string]*dts.Calendar
	once      map[string][]*dts.Task // tasks that run once and have not started, by the file that keeps them, newest first

	kept map[string]bool // ids of what one of the files declares
}

// declared asks for what the files can change.
func (l *link) declared(ctx context.Context, files []*taskfile.File) (*declared, error) {
	have := &declared{files: files, queues: map[string]*dts.Queue{}, calendars: map[string]*dts.Calendar{},
		once: map[string][]*dts.Task{}, kept: map[string]bool{}}
	var err error
	if have.recurring, err = l.notCancelled(ctx); err != nil {
		return nil, err
	}
	queues, err := l.Queues(ctx)
	if err != nil {
		return nil, err
	}
	for _, q := range queues {
		have.queues[q.Name] = q
	}
	for _, f := range files {
		for _, name := range calendarsOf(f) {
			there, err := l.Calendar(ctx, name)
			switch {
			case err == nil:
				have.calendars[name] = there
			case dts.CodeOf(err) != dts.ErrNotFound:
				return nil, err
			}
		}
		// Only what is pending: runs carry the labels of their recurring task, and there may be a million of them.
		pending := dts.TaskFilter{Labels: map[string]string{taskfile.Label: f.Name}, Statuses: []dts.Status{dts.Pending}, Limit: 1000}
		for t, err := range l.AllTasks(ctx, pending) {
			if err != nil {
				return nil, err
			}
			if t.RecurringTaskID == "" && t.WorkflowID == "" && t.Attempts == 0 {
				have.once[f.Name] = append(have.once[f.Name], t)
			}
		}
	}
	return have, nil
}

// calendarsOf are the names of the calendars that a file declares or uses.
func calendarsOf(f *taskfile.File) []string {
	var names []string
	for _, k := range f.Calendars {
		names = append(names, k.Name)
	}
	use := func(q *api.RecurringRequest) {
		if q != nil {
			names = append(names, slices.Concat(q.ExcludeCalendars, q.RequireCalendars)...)
		}
	}
	for _, t := range f.Tasks {
		use(t.Recurring)
	}
	for _, w := range f.Workflows {
		use(w.Recurring)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// isOne reports whether one of the files has a name.
func (d *declared) isOne(name string) bool {
	return slices.ContainsFunc(d.files, func(f *taskfile.File) bool { return f.Name == name })
}

// calendar reports whether there is a calendar, or will be.
func (d *declared) calendar(name string) bool {
	return d.calendars[name] != nil || slices.ContainsFunc(d.files, func(f *taskfile.File) bool {
		return slices.ContainsFunc(f.Calendars, func(k *taskfile.Calendar) bool { return k.Name == name })
	})
}

// retry is what tasks of a queue have that have no retry of their own; nil is the server's default.
func (d *declared) retry(queue string) *dts.Retry {
	for _, f := range d.files {
		for _, q := range f.Queues {
			if q.Name != queue {
				continue
			}
			made, err := q.Request.Queue(q.Name)
			if err != nil {
				return nil
			}
			return made.Retry
		}
	}
	if q := d.queues[queue]; q != nil {
		return q.Retry
	}
	return nil
}

// notCancelled returns the recurring tasks that are there and can be read.
func (l *link) notCancelled(ctx context.Context) ([]*dts.RecurringTask, error) {
	var list []*dts.RecurringTask
	f := dts.RecurringFilter{Limit: 1000, Statuses: []dts.RecurringStatus{dts.Active, dts.Paused, dts.Completed}}
	for r, err := range l.AllRecurringTasks(ctx, f) {
		if err != nil {
			return nil, err
		}
		if r.Unreadable == "" {
			list = append(list, r)
		}
	}
	return list, nil
}
