package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"dts"
	"dts/cmd/dts/taskfile"
	"dts/web/api"
)

// applyPlan is what applying one file would do.
type applyPlan struct {
	file      *taskfile.File
	changes   []*fileChange
	unchanged int
	notes     []string

	l    *link
	have *declared
	now  time.Time
}

// planApply compares a file with what the server has. Queues and calendars come first: tasks need them.
func (a *app) planApply(ctx context.Context, l *link, f *taskfile.File, have *declared, prune bool) (*applyPlan, error) {
	p := &applyPlan{file: f, l: l, have: have, now: a.now()}
	for _, q := range f.Queues {
		if err := p.queue(q); err != nil {
			return nil, err
		}
	}
	for _, k := range f.Calendars {
		if err := p.calendar(k); err != nil {
			return nil, err
		}
	}
	kept := map[string]bool{} // ids of what the file has
	for _, t := range f.Tasks {
		var err error
		if t.Once != nil {
			err = p.once(t, kept)
		} else {
			err = p.recurring("task", t.Pos, *t.Recurring, kept)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, w := range f.Workflows {
		if err := p.recurring("workflow", w.Pos, *w.Recurring, kept); err != nil {
			return nil, err
		}
	}
	p.rest(kept, prune)
	return p, nil
}

// apply makes the changes, one after the other. Applying again goes on where one failed.
func (p *applyPlan) apply(ctx context.Context) error {
	for i, ch := range p.changes {
		if err := ch.do(ctx); err != nil {
			text, code := verdict(err)
			if text == "" { // interrupted
				return err
			}
			return &exitError{code, fmt.Sprintf("%s %s: %s; %s before it, and applying again goes on from there",
				ch.Kind, clean(ch.Name), text, plural(i, "change was made", "changes were made"))}
		}
	}
	return nil
}

func (p *applyPlan) add(ch *fileChange) { p.changes = append(p.changes, ch) }

// mark gives a spec the file's label.
func (p *applyPlan) mark(s *dts.Spec) { s.Labels = labelled(s.Labels, p.file.Name) }

// labelled returns a copy of labels with that of a file.
func labelled(labels map[string]string, file string) map[string]string {
	marked := map[string]string{taskfile.Label: file}
	for k, v := range labels {
		marked[k] = v
	}
	return marked
}

// find returns the recurring task that a name in the file means: the one that the file keeps, else the only one of that name
// that no file does, else the only one that another file does.
func (p *applyPlan) find(name string, at taskfile.Pos) (*dts.RecurringTask, error) {
	var own, free, others []*dts.RecurringTask
	for _, r := range p.have.recurring {
		if r.Name != name {
			continue
		}
		switch r.Labels[taskfile.Label] {
		case p.file.Name:
			own = append(own, r)
		case "":
			free = append(free, r)
		default:
			others = append(others, r)
		}
	}
	if len(own) == 0 {
		own = free
	}
	if len(own) == 0 {
		own = others
	}
	switch len(own) {
	case 0:
		return nil, nil
	case 1:
		return own[0], nil
	}
	ids := make([]string, len(own))
	for i, r := range own {
		ids[i] = r.ID
	}
	return nil, failf("%s:%d: there are %d recurring tasks %q, and it is not known which is meant; remove or rename all but one: %s",
		p.file.Path, at.Line, len(own), name, strings.Join(ids, ", "))
}

// recurring plans a recurring task or a workflow.
func (p *applyPlan) recurring(kind string, at taskfile.Pos, q api.RecurringRequest, kept map[string]bool) error {
	there, err := p.find(q.Name, at)
	if err != nil {
		return err
	}
	if there != nil {
		kept[there.ID] = true
	}
	keeper := p.file.Name
	if there != nil {
		keeper = there.Labels[taskfile.Label]
	}
	if keeper == p.file.Name {
		p.mark(&q.Spec)
	}
	want, err := q.RecurringTask(time.Unix(0, 0)) // that a schedule has ended is no reason to complain of it every time
	if err != nil {
		return err
	}
	if there == nil {
		if _, err := q.RecurringTask(p.now); err != nil {
			if want.EndTime.IsZero() && want.RRule == "" {
				return err
			}
			p.notes = append(p.notes, fmt.Sprintf("%s:%d: the schedule of %q has ended, and nothing is created", p.file.Path, at.Line, q.Name))
			return nil
		}
		p.add(&fileChange{Action: "create", Kind: kind, Name: q.Name, about: aboutRecurring(want), do: func(ctx context.Context) error {
			_, err := p.l.CreateRecurring(ctx, q)
			return err
		}})
		return nil
	}
	if want.RetryDefault {
		p.queueRetry(&want.Spec)
	}
	if want.StartTime.IsZero() && want.Cron == "" {
		want.StartTime = there.StartTime // where an interval or a rule begins of which nobody says it is when it was created
	}
	if keeper != p.file.Name && keeper != "" {
		want.Labels = labelled(want.Labels, keeper) // only what else differs is of interest
	}
	diff := taskfile.Compare(taskfile.FieldsOf(there), taskfile.FieldsOf(want))
	switch {
	case len(diff) == 0:
		p.unchanged++
		return nil
	case keeper == "": // it becomes the file's
		p.mark(&q.Spec)
		p.mark(&want.Spec)
		diff = taskfile.Compare(taskfile.FieldsOf(there), taskfile.FieldsOf(want))
	case keeper != p.file.Name:
		return failf("%s:%d: %q is kept by the file %s, and differs from what this one says; change it there, give it another name here, "+
			"or, if this is that file, write name: %s into it", p.file.Path, at.Line, q.Name, clean(keeper), clean(keeper))
	}
	ch := &fileChange{Action: "change", Kind: kind, Name: q.Name, ID: there.ID, Fields: taskfile.Explain(diff)}
	if taskfile.Fixed(diff) {
		ch.about = "is removed and created anew: its delivery cannot be changed"
		ch.Action, ch.do = "replace", func(ctx context.Context) error {
			if _, err := p.l.CreateRecurring(ctx, q); err != nil {
				return err
			}
			_, err := p.l.CancelRecurring(ctx, there.ID)
			return err
		}
		p.add(ch)
		return nil
	}
	patch, err := taskfile.Patch(diff)
	if err != nil {
		return err
	}
	ch.do = func(ctx context.Context) error {
		_, err := p.l.ModifyRecurring(ctx, there.ID, patch)
		return err
	}
	p.add(ch)
	return nil
}

// queueRetry gives a task that has no retries of its own those of its queue, as the server does when it is created.
func (p *applyPlan) queueRetry(s *dts.Spec) {
	if s.Delivery == dts.AtMostOnce {
		return
	}
	for _, q := range p.file.Queues {
		if q.Name == s.Queue {
			if made, err := q.Request.Queue(q.Name); err == nil && made.Retry != nil {
				s.Retry = *made.Retry
			}
			return
		}
	}
	if q := p.have.queues[s.Queue]; q != nil && q.Retry != nil {
		s.Retry = *q.Retry
	}
}

// rest plans what becomes of what the file declared before.
func (p *applyPlan) rest(kept map[string]bool, prune bool) {
	var gone []string
	for _, r := range p.have.recurring {
		if r.Labels[taskfile.Label] != p.file.Name || kept[r.ID] {
			continue
		}
		if !prune {
			gone = append(gone, clean(r.Name))
			continue
		}
		kind := "task"
		if r.TargetType == dts.WorkflowRun {
			kind = "workflow"
		}
		p.add(&fileChange{Action: "remove", Kind: kind, Name: r.Name, ID: r.ID, about: aboutRecurring(r), do: func(ctx context.Context) error {
			_, err := p.l.CancelRecurring(ctx, r.ID)
			return err
		}})
	}
	for _, t := range p.have.once[p.file.Name] {
		if t.Status != dts.Pending || t.Attempts > 0 || kept[t.ID] {
			continue
		}
		if !prune {
			gone = append(gone, clean(t.Name))
			continue
		}
		p.add(&fileChange{Action: "remove", Kind: "task", Name: t.Name, ID: t.ID, about: "once, at " + t.DueAt.UTC().Format(time.RFC3339),
			do: func(ctx context.Context) error {
				_, err := p.l.DoTask(ctx, t.ID, dts.Cancel)
				if dts.CodeOf(err) == dts.ErrNotFound {
					err = nil
				}
				return err
			}})
	}
	if len(gone) > 0 {
		p.notes = append(p.notes, fmt.Sprintf("%s: not declared any more, and left as they are without --prune: %s",
			p.title(), clip(strings.Join(gone, ", "), 200)))
	}
}

// aboutRecurring says when a recurring task runs, and what.
func aboutRecurring(r *dts.RecurringTask) string {
	what := target(&r.Spec)
	if t, err := r.Command(); r.TargetType == dts.Command && err == nil && t.Shell != "" {
		what = t.Shell // its lines as one
	}
	if w, err := r.Workflow(); r.TargetType == dts.WorkflowRun && err == nil {
		what = count(len(w.Steps), "step")
	}
	return scheduleWords(&r.Schedule) + ": " + clip(oneLine(what), 60)
}
