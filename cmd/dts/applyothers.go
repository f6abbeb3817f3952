package main

import (
	"context"
	"fmt"
	"time"

	"dts"
	"dts/cmd/dts/taskfile"
)

// once plans a task that runs once. One that has run is done with: it is not created again, whatever the file says of it.
func (p *applyPlan) once(ctx context.Context, t *taskfile.Task) error {
	q := *t.Once
	p.mark(&q.Spec)
	want, err := q.Task(p.now)
	if err != nil && want != nil && want.RunAt.Before(p.now) {
		want, err = q.Task(want.RunAt)
	}
	if err != nil {
		return err
	}
	for _, there := range p.have.once[p.file.Name] {
		if there.Name == t.Name {
			p.have.kept[there.ID] = true
			return p.changeOnce(there, want)
		}
	}
	done, err := p.done(ctx, want)
	if err != nil {
		return err
	}
	if done != nil {
		if done.Status == dts.Cancelled && want.RunAt.After(p.now) {
			p.notes = append(p.notes, fmt.Sprintf("%s:%d: %q was cancelled, and stays so; dts retry %s runs it now, and with another time here it is a new one",
				p.file.Path, t.Line, t.Name, done.ID))
		}
		p.unchanged++
		return nil
	}
	if want.RunAt.Before(p.now) {
		p.notes = append(p.notes, fmt.Sprintf("%s:%d: the time of %q has passed, and nothing is created", p.file.Path, t.Line, t.Name))
		return nil
	}
	q.DedupeKey, q.DedupePolicy = applyKey(p.file.Name, t.Name, want.RunAt.UTC().Format(time.RFC3339Nano)), dts.DedupeKeepFirst // should another apply it at the same time
	about := "once, at " + want.RunAt.UTC().Format(time.RFC3339) + ": " + clip(target(&q.Spec), 60)
	p.add(&fileChange{Action: "create", Kind: "task", Name: t.Name, about: about,
		do: func(ctx context.Context) error {
			_, err := p.l.CreateTask(ctx, q)
			return err
		}})
	return nil
}

// done returns what has started, or ended, of a task that runs once at a time, or nil.
func (p *applyPlan) done(ctx context.Context, want *dts.Task) (*dts.Task, error) {
	f := dts.TaskFilter{Name: want.Name, Labels: map[string]string{taskfile.Label: p.file.Name}, Limit: 1000}
	for t, err := range p.l.AllTasks(ctx, f) {
		if err != nil || t.RecurringTaskID == "" && t.WorkflowID == "" && (t.ScheduledAt.Equal(want.ScheduledAt) || t.DueAt.Equal(want.DueAt)) {
			return t, err
		}
	}
	return nil, nil
}

// changeOnce plans the change of a task that has not started.
func (p *applyPlan) changeOnce(there, want *dts.Task) error {
	p.queueRetry(&want.Spec)
	diff := taskfile.Compare(taskfile.FieldsOfOnce(there), taskfile.FieldsOfOnce(want))
	if len(diff) == 0 {
		p.unchanged++
		return nil
	}
	if taskfile.Fixed(diff) {
		return failf("%s: the delivery of the task %q cannot be changed; dts cancel %s, and apply again", p.file.Path, want.Name, there.ID)
	}
	patch, err := taskfile.PatchOnce(diff)
	if err != nil {
		return err
	}
	p.add(&fileChange{Action: "change", Kind: "task", Name: want.Name, ID: there.ID, Fields: taskfile.Explain(diff), do: func(ctx context.Context) error {
		_, err := p.l.ModifyTask(ctx, there.ID, patch)
		return err
	}})
	return nil
}

// queue plans the settings of a queue.
func (p *applyPlan) queue(q *taskfile.Queue) error {
	want, err := q.Request.Queue(q.Name)
	if err != nil {
		return err
	}
	put := func(ctx context.Context) error {
		_, err := p.l.PutQueue(ctx, q.Name, q.Request)
		return err
	}
	there := p.have.queues[q.Name]
	if there == nil || there.CreatedAt.IsZero() {
		p.add(&fileChange{Action: "create", Kind: "queue", Name: q.Name, do: put})
		return nil
	}
	p.put("queue", q.Name, taskfile.Compare(taskfile.FieldsOfQueue(there), taskfile.FieldsOfQueue(want)), put)
	return nil
}

// calendar plans a calendar.
func (p *applyPlan) calendar(k *taskfile.Calendar) error {
	q := k.Request
	q.Name = k.Name
	want, err := q.Calendar()
	if err != nil {
		return err
	}
	put := func(ctx context.Context) error {
		_, err := p.l.PutCalendar(ctx, k.Name, q)
		return err
	}
	there := p.have.calendars[k.Name]
	if there == nil {
		p.add(&fileChange{Action: "create", Kind: "calendar", Name: k.Name, about: clean(want.Description), do: put})
		return nil
	}
	p.put("calendar", k.Name, taskfile.Compare(taskfile.FieldsOfCalendar(there), taskfile.FieldsOfCalendar(want)), put)
	return nil
}

func (p *applyPlan) put(kind, name string, diff []taskfile.Difference, do func(ctx context.Context) error) {
	if len(diff) == 0 {
		p.unchanged++
		return
	}
	p.add(&fileChange{Action: "change", Kind: kind, Name: name, Fields: taskfile.Explain(diff), do: do})
}
