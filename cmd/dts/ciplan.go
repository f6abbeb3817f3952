package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"dts"
	"dts/cmd/dts/taskfile"
	"dts/sched/calendar"
	"dts/sched/cron"
	"dts/sched/timetable"
	"dts/web/api"
)

// ciName is what a task of a file is called: its name, or that of its workflow and its own.
type ciName struct {
	workflow string // "" of a task that is not a step
	task     string
	at       int // place in the file
}

func (n ciName) String() string {
	if n.workflow == "" {
		return n.task
	}
	return n.workflow + "/" + n.task
}

// ciPlan is what `dts ci` does with a file.
type ciPlan struct {
	queues    []*dts.Queue
	calendars []*dts.Calendar
	known     map[string]*calendar.Calendar // the same, by their names
	tasks     []*dts.Task                   // that run now, or at a time; those that others depend on come first
	recurring []*dts.RecurringTask          // that fire by their schedules
	names     map[string]ciName             // of both, by their ids; of a step of a scheduled workflow, or of a task that is one, by that of the workflow, / and its name
	needs     map[string][]ciNeed           // likewise
	idle      []ciIdle                      // what has nothing to do
	until     time.Time                     // when schedules end; zero: there are none
}

// ciNeed is what a task depends on.
type ciNeed struct {
	on  string // id of a task, or name of a step of the same run
	typ dts.DependencyType
}

// keyOf is by what the plan knows a task. run is the run of a workflow that it is a step of; nil: it is none.
func keyOf(t, run *dts.Task) string {
	switch {
	case run != nil:
		return cmp.Or(run.RecurringTaskID, run.ID) + "/" + t.Step
	case t.RecurringTaskID != "":
		return t.RecurringTaskID
	}
	return t.ID
}

// ciIdle is what of a file does not run, and why.
type ciIdle struct {
	name   ciName
	reason string
}

// planCI makes the plan for a file that has no problem. only are the names of what is to run, and with it runs what that
// depends on; none: all. window is how long schedules fire; 0: everything runs now, and once.
func planCI(f *taskfile.File, only []string, window time.Duration, now time.Time) (*ciPlan, error) {
	p := &ciPlan{known: map[string]*calendar.Calendar{}, names: map[string]ciName{}, needs: map[string][]ciNeed{}}
	if window > 0 {
		p.until = now.Add(window)
	}
	for _, q := range f.Queues {
		made, err := q.Request.Queue(q.Name)
		if err != nil {
			return nil, err
		}
		if made.Settled() {
			p.queues = append(p.queues, made)
		}
	}
	for _, k := range f.Calendars {
		made, err := k.Request.Calendar()
		if err != nil {
			return nil, err
		}
		p.calendars = append(p.calendars, made)
		if p.known[made.Name], err = calendar.Compile(made); err != nil {
			return nil, fmt.Errorf("calendar %s: %w", made.Name, err)
		}
	}
	wanted, err := chooseCI(f, only)
	if err != nil {
		return nil, err
	}
	at := 0
	err = p.list(f.Tasks, nil, wanted, &at, now)
	for _, w := range f.Workflows {
		switch {
		case err != nil:
		case w.Recurring != nil && window > 0:
			err = p.workflow(w, wanted, &at, now)
		default:
			err = p.list(w.Steps, w, wanted, &at, now)
		}
	}
	return p, err
}

// list adds tasks, or the steps of a workflow.
func (p *ciPlan) list(list []*taskfile.Task, of *taskfile.Workflow, wanted func(*taskfile.Task) bool, at *int, now time.Time) error {
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = dts.NewID(now)
	}
	made := make([]*dts.Task, len(list))
	for i, t := range list {
		*at++
		if !wanted(t) {
			continue
		}
		name := ciName{"", t.Name, *at}
		if of != nil {
			name.workflow = of.Name
		}
		if t.TargetType == dts.Backup || t.TargetType == dts.Ping {
			if slices.ContainsFunc(list, func(o *taskfile.Task) bool { return wanted(o) && dependsOn(o, t.Name) }) {
				return usagef("%s: a %s needs a server, and others depend on it: choose what runs with --only", name, t.TargetType)
			}
			p.idle = append(p.idle, ciIdle{name, "a " + string(t.TargetType) + " needs a server"})
			continue
		}
		if t.Scheduled() && !p.until.IsZero() {
			if err := p.schedule(t, name, at, now); err != nil {
				return err
			}
			continue
		}
		n := &dts.Task{ID: ids[i], Spec: t.Spec, CreatedBy: ciActor, DependsMode: t.DependsMode, OnDependencyFailure: t.OnDependencyFailure, Inputs: t.Inputs}
		if of != nil {
			n.Queue, n.Priority = cmp.Or(n.Queue, of.Queue), cmp.Or(n.Priority, of.Priority)
		}
		for _, d := range t.DependsOn {
			n.DependsOn = append(n.DependsOn, dts.DependsOn{TaskID: ids[d.Index], Type: d.Type})
			p.needs[n.ID] = append(p.needs[n.ID], ciNeed{ids[d.Index], d.Type})
		}
		if err := n.Normalize(now); err != nil {
			return err
		}
		made[i], p.names[n.ID] = n, name
		if err := p.nameSteps(n.ID, &n.Spec, name, at); err != nil {
			return err
		}
	}
	for _, i := range inOrder(list) {
		if made[i] != nil {
			p.tasks = append(p.tasks, made[i])
		}
	}
	return nil
}

func dependsOn(t *taskfile.Task, name string) bool {
	return slices.ContainsFunc(t.DependsOn, func(d taskfile.Dependency) bool { return d.Name == name })
}

// workflow adds a workflow that fires by its schedule.
func (p *ciPlan) workflow(w *taskfile.Workflow, wanted func(*taskfile.Task) bool, at *int, now time.Time) error {
	target, err := w.Spec.Workflow()
	if err != nil {
		return err
	}
	for _, s := range w.Steps {
		if s.TargetType == dts.Backup && wanted(s) {
			return usagef("%s/%s: a BACKUP needs a server: choose what runs with --only", w.Name, s.Name)
		}
	}
	var steps []dts.Step
	made, err := p.recur(w.Recurring, ciName{task: w.Name, at: *at + 1}, now, func(r *dts.RecurringTask) bool {
		for i, s := range w.Steps {
			*at++
			if !wanted(s) {
				continue
			}
			key := r.ID + "/" + s.Name
			p.names[key] = ciName{w.Name, s.Name, *at}
			for _, d := range s.DependsOn {
				p.needs[key] = append(p.needs[key], ciNeed{d.Name, d.Type})
			}
			steps = append(steps, target.Steps[i])
		}
		return len(steps) > 0
	})
	if err != nil || made == nil {
		return err
	}
	made.TargetConfig, err = targetJSON(dts.WorkflowTarget{Steps: steps})
	return err
}

// schedule adds a task that fires by its schedule, or at its time, until the plan ends.
func (p *ciPlan) schedule(t *taskfile.Task, name ciName, at *int, now time.Time) error {
	if t.Once == nil {
		made, err := p.recur(t.Recurring, name, now, func(*dts.RecurringTask) bool { return true })
		if err != nil || made == nil {
			return err
		}
		return p.nameSteps(made.ID, &made.Spec, name, at)
	}
	made, err := t.Once.Task(now)
	if err != nil || made.RunAt.Before(now) || made.RunAt.After(p.until) {
		p.idle = append(p.idle, ciIdle{name, "its time does not come within --for"})
		return nil
	}
	p.tasks, p.names[made.ID] = append(p.tasks, made), name
	return p.nameSteps(made.ID, &made.Spec, name, at)
}

// nameSteps names the steps of a task that is a workflow itself; of another there are none. id is that by which the plan
// knows the task.
func (p *ciPlan) nameSteps(id string, s *dts.Spec, of ciName, at *int) error {
	if s.TargetType != dts.WorkflowRun {
		return nil
	}
	target, err := s.Workflow()
	if err != nil {
		return err
	}
	for _, step := range target.Steps {
		*at++
		key := id + "/" + step.Name
		p.names[key] = ciName{of.task, step.Name, *at}
		for _, d := range step.DependsOn {
			p.needs[key] = append(p.needs[key], ciNeed{d.Step, d.Type})
		}
	}
	return nil
}

// recur adds what fires by a schedule until the plan ends, if wanted says so. nil: it is not wanted, or has no instant
// until then.
func (p *ciPlan) recur(q *api.RecurringRequest, name ciName, now time.Time, wanted func(*dts.RecurringTask) bool) (*dts.RecurringTask, error) {
	r, err := q.RecurringTask(now)
	if err != nil {
		return nil, err
	}
	if !wanted(r) {
		return nil, nil
	}
	if r.Interval() > 0 && r.StartTime.IsZero() {
		r.StartTime = dts.Micros(now.Add(r.Interval())) // so that of --for 4s every 1s has its fourth
	}
	if r.EndTime.IsZero() || r.EndTime.After(p.until) {
		r.EndTime = dts.Micros(p.until)
	}
	reason, err := p.notDue(r, now)
	if err != nil {
		return nil, err
	}
	if reason != "" {
		p.idle = append(p.idle, ciIdle{name, reason})
		return nil, nil
	}
	p.recurring, p.names[r.ID] = append(p.recurring, r), name
	return r, nil
}

// notDue says why a recurring task does not fire until the plan ends; "" where it does.
func (p *ciPlan) notDue(r *dts.RecurringTask, now time.Time) (string, error) {
	for _, name := range r.Calendars() {
		if p.known[name] == nil {
			return "", usagef("%s: the file has no calendar %q, which --for needs", clean(r.Name), name)
		}
	}
	const never = "it is not due within --for"
	if r.StartTime.After(r.EndTime) {
		return never, nil
	}
	t, err := timetable.Compile(&r.Schedule, timetable.Options{Seed: r.Name, Anchor: now, Calendars: p.known})
	switch {
	case errors.Is(err, cron.ErrReboot):
		return "it runs when the machine boots", nil
	case err != nil:
		return "", err
	case t.Base().Next(now).IsZero():
		return never, nil
	case t.Next(now).IsZero():
		return "its calendars exclude every instant within --for", nil
	}
	return "", nil
}

// chooseCI returns what of a file is wanted: what only names, and what that depends on.
func chooseCI(f *taskfile.File, only []string) (func(*taskfile.Task) bool, error) {
	if len(only) == 0 {
		return func(*taskfile.Task) bool { return true }, nil
	}
	wanted := map[*taskfile.Task]bool{}
	var want func(list []*taskfile.Task, i int)
	want = func(list []*taskfile.Task, i int) {
		if wanted[list[i]] {
			return
		}
		wanted[list[i]] = true
		for _, d := range list[i].DependsOn {
			want(list, d.Index)
		}
	}
	for _, name := range only {
		found := false
		for i, t := range f.Tasks {
			if t.Name == name {
				want(f.Tasks, i)
				found = true
			}
		}
		for _, w := range f.Workflows {
			for i, s := range w.Steps {
				if w.Name == name || w.Name+"/"+s.Name == name {
					want(w.Steps, i)
					found = true
				}
			}
		}
		if !found {
			return nil, usagef("--only: the file has no task or workflow %q; a step is WORKFLOW/STEP", clip(clean(name), 60))
		}
	}
	return func(t *taskfile.Task) bool { return wanted[t] }, nil
}

// inOrder returns the indexes of tasks so that each comes after those that it depends on, else in the order of the file.
func inOrder(list []*taskfile.Task) []int {
	var order []int
	done := make([]bool, len(list))
	var visit func(i int)
	visit = func(i int) {
		if done[i] {
			return
		}
		done[i] = true
		for _, d := range list[i].DependsOn {
			visit(d.Index)
		}
		order = append(order, i)
	}
	for i := range list {
		visit(i)
	}
	return order
}

// ciLabels returns what stands before the lines of each task of the plan, by what the plan knows it by.
func (a *app) ciLabels(p *ciPlan) map[string]label {
	widest := 0
	names := map[string]string{}
	for key, n := range p.names {
		names[key] = clip(clean(n.String()), 32)
		widest = max(widest, width(names[key]))
	}
	labels := map[string]label{}
	for key, name := range names {
		text := a.paintTask(name+strings.Repeat(" ", widest-width(name)), p.names[key].at)
		labels[key] = label{text + a.dim(" | "), text + a.dim(" … ")}
	}
	return labels
}
