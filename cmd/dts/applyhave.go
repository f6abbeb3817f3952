package main

import (
	"context"

	"dts"
	"dts/cmd/dts/taskfile"
)

// declared is what the server has of the kinds that a file declares.
type declared struct {
	recurring []*dts.RecurringTask // not cancelled
	queues    map[string]*dts.Queue
	calendars map[string]*dts.Calendar
	once      map[string][]*dts.Task // tasks that run once, by the file that keeps them, newest first
}

// declared asks for what the files can change.
func (l *link) declared(ctx context.Context, files []*taskfile.File) (*declared, error) {
	have := &declared{queues: map[string]*dts.Queue{}, calendars: map[string]*dts.Calendar{}, once: map[string][]*dts.Task{}}
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
		for _, k := range f.Calendars {
			there, err := l.Calendar(ctx, k.Name)
			switch {
			case err == nil:
				have.calendars[k.Name] = there
			case dts.CodeOf(err) != dts.ErrNotFound:
				return nil, err
			}
		}
		for t, err := range l.AllTasks(ctx, dts.TaskFilter{Labels: map[string]string{taskfile.Label: f.Name}, Limit: 1000}) {
			if err != nil {
				return nil, err
			}
			if t.RecurringTaskID == "" && t.WorkflowID == "" {
				have.once[f.Name] = append(have.once[f.Name], t)
			}
		}
	}
	return have, nil
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
