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
	elsewhere []string // what another file keeps, and is as here
	notes     []string

	l    *link
	have *declared
	now  time.Time
}

// planApply compares a file with what the server has.
func (a *app) planApply(ctx context.Context, l *link, f *taskfile.File, have *declared) (*applyPlan, error) {
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
	for _, t := range f.Tasks {
		var err error
		if t.Once != nil {
			err = p.once(ctx, t)
		} else {
			err = p.recurring("task", t.Pos, *t.Recurring)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, w := range f.Workflows {
		if err := p.recurring("workflow", w.Pos, *w.Recurring); err != nil {
			return nil, err
		}
	}
	if len(p.elsewhere) > 0 {
		p.notes = append(p.notes, fmt.Sprintf("%s: as they are here, but kept by another file, which may change or remove them: %s",
			p.title(), clip(strings.Join(p.elsewhere, ", "), 200)))
	}
	return p, nil
}

// applyPlans makes the changes, one after the other: queues and calendars first, because tasks of any file may need them. Applying
// again goes on where one failed.
func applyPlans(ctx context.Context, plans []*applyPlan) error {
	made := 0
	for _, settings := range []bool{true, false} {
		for _, p := range plans {
			for _, ch := range p.changes {
				if settings != (ch.Kind == "queue" || ch.Kind == "calendar") {
					continue
				}
				if err := ch.do(ctx); err != nil {
					text, code := verdict(err)
					if text == "" { // interrupted
						return err
					}
					return &exitError{code, fmt.Sprintf("%s %s: %s; %s before it, and applying again goes on from there",
						ch.Kind, clean(ch.Name), text, plural(made, "change was made", "changes were made"))}
				}
				made++
			}
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
	own = p.unfinished(own)
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
func (p *applyPlan) recurring(kind string, at taskfile.Pos, q api.RecurringRequest) error {
	there, err := p.find(q.Name, at)
	if err != nil {
		return err
	}
	keeper := p.file.Name
	if there != nil {
		p.have.kept[there.ID] = true
		if keeper = there.Labels[taskfile.Label]; p.have.isOne(keeper) {
			keeper = p.file.Name // it has moved here from another file of this run, which does not declare it any more
		}
	}
	if keeper == p.file.Name {
		p.mark(&q.Spec)
	}
	want, err := q.RecurringTask(time.Unix(0, 0)) // that a schedule has ended is no reason to complain of it every time
	if err != nil {
		return err
	}
	for _, name := range want.Calendars() {
		if !p.have.calendar(name) {
			return usagef("%s:%d: %q: there is no calendar %q; declare it in calendars, or make it with dts calendar add; nothing is applied",
				p.file.Path, at.Line, q.Name, name)
		}
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
			_, err := p.create(ctx, q, nil)
			return err
		}})
		return nil
	}
	p.queueRetry(&want.Spec)
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
		if keeper != p.file.Name && keeper != "" {
			p.elsewhere = append(p.elsewhere, fmt.Sprintf("%s (%s)", clean(q.Name), clean(keeper)))
		}
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
	switch {
	case there.Status == dts.Completed:
		if _, err := q.RecurringTask(p.now); err != nil || !taskfile.Reschedules(diff) {
			p.notes = append(p.notes, fmt.Sprintf("%s:%d: the schedule of %q has ended, and it is left as it is", p.file.Path, at.Line, q.Name))
			p.unchanged++
			return nil
		}
		ch.about = "had ended: is removed and created anew, and its runs are counted anew"
	case taskfile.Fixed(diff):
		ch.about = "is removed and created anew: its delivery cannot be changed"
	}
	if ch.about != "" {
		ch.Action, ch.do = "replace", func(ctx context.Context) error { return p.replace(ctx, there, q) }
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
	if r := p.have.retry(s.Queue); r != nil && s.RetryDefault && s.Delivery != dts.AtMostOnce {
		s.Retry = *r
	}
}

// rest plans what becomes of what the file declared before.
func (p *applyPlan) rest(prune bool) {
	var gone []string
	before, left := len(p.changes), false
	for _, r := range p.have.recurring {
		if r.Labels[taskfile.Label] != p.file.Name {
			continue
		}
		if p.have.kept[r.ID] {
			left = true
			continue
		}
		if !prune {
			gone = append(gone, clean(r.Name))
			continue
		}
		p.add(&fileChange{Action: "remove", Kind: kindOf(r), Name: r.Name, ID: r.ID, about: aboutRecurring(r), do: func(ctx context.Context) error {
			_, err := p.l.CancelRecurring(ctx, r.ID)
			return err
		}})
	}
	for _, t := range p.have.once[p.file.Name] {
		if p.have.kept[t.ID] {
			left = true
			continue
		}
		if !prune {
			gone = append(gone, clean(t.Name))
			continue
		}
		p.add(&fileChange{Action: "remove", Kind: "task", Name: t.Name, ID: t.ID, about: "once, at " + t.DueAt.UTC().Format(time.RFC3339),
			do: func(ctx context.Context) error {
				_, err := p.l.DoTask(ctx, t.ID, dts.Delete) // not cancelled: that would look as if someone did not want it
				if dts.CodeOf(err) == dts.ErrNotFound {
					err = nil
				}
				return err
			}})
	}
	if declares := len(p.file.Tasks) + len(p.file.Workflows); !left && declares > 0 && len(p.changes) > before && p.file.Name == taskfile.NameOf(p.file.Path) {
		p.notes = append(p.notes, fmt.Sprintf("%s: everything that the file %s declared before goes; if that is another file of this name, write a name: of its own into each",
			p.title(), p.file.Name))
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
