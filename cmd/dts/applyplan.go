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
		return failf("%s:%d: %q is kept by the file %s, and differs from what this one says; change it there, give it another name here, or, if this is that file, write name: %s into it",
			p.file.Path, at.Line, q.Name, clean(keeper), clean(keeper))
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

// once plans a task that runs once. One that has run is done with: it is not created again, whatever the file says of it.
func (p *applyPlan) once(t *taskfile.Task, kept map[string]bool) error {
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
		if there.Name != t.Name {
			continue
		}
		if there.Status == dts.Pending && there.Attempts == 0 {
			kept[there.ID] = true
			return p.changeOnce(there, want)
		}
		if there.ScheduledAt.Equal(want.ScheduledAt) || there.DueAt.Equal(want.DueAt) {
			p.unchanged++
			return nil
		}
	}
	if want.RunAt.Before(p.now) {
		p.notes = append(p.notes, fmt.Sprintf("%s:%d: the time of %q has passed, and nothing is created", p.file.Path, t.Line, t.Name))
		return nil
	}
	p.add(&fileChange{Action: "create", Kind: "task", Name: t.Name, about: "once, at " + want.RunAt.UTC().Format(time.RFC3339) + ": " + clip(target(&q.Spec), 60),
		do: func(ctx context.Context) error {
			_, err := p.l.CreateTask(ctx, q)
			return err
		}})
	return nil
}

// changeOnce plans the change of a task that has not started.
func (p *applyPlan) changeOnce(there, want *dts.Task) error {
	if want.RetryDefault {
		p.queueRetry(&want.Spec)
	}
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
		p.notes = append(p.notes, fmt.Sprintf("%s: not declared any more, and left as they are without --prune: %s", p.title(), clip(strings.Join(gone, ", "), 200)))
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
