package main

import (
	"cmp"
	"strings"
	"time"

	"dts"
	"dts/cmd/dts/taskfile"
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
	tasks     []*dts.Task          // that run now, or at a time; those that others depend on come first
	recurring []*dts.RecurringTask // that fire by their schedules
	names     map[string]ciName    // of both, by their ids
	idle      []ciIdle             // what has nothing to do
	until     time.Time            // when schedules end; zero: there are none
}

// ciIdle is what of a file does not run, and why.
type ciIdle struct {
	name   ciName
	reason string
}

// planCI makes the plan for a file that has no problem. only are the names of what is to run, and with it runs what that
// depends on; none: all. window is how long schedules fire; 0: everything runs now, and once.
func planCI(f *taskfile.File, only []string, window time.Duration, now time.Time) (*ciPlan, error) {
	p := &ciPlan{names: map[string]ciName{}}
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
	}
	wanted, err := chooseCI(f, only)
	if err != nil {
		return nil, err
	}
	at := 0
	err = p.list(f.Tasks, nil, wanted, &at, now)
	for _, w := range f.Workflows {
		if err == nil {
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
		if t.Scheduled() && !p.until.IsZero() {
			if err := p.schedule(t, name, now); err != nil {
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
		}
		if err := n.Normalize(now); err != nil {
			return err
		}
		made[i], p.names[n.ID] = n, name
	}
	for _, i := range inOrder(list) {
		if made[i] != nil {
			p.tasks = append(p.tasks, made[i])
		}
	}
	return nil
}

// schedule adds a task that fires by its schedule, or at its time, until the plan ends.
func (p *ciPlan) schedule(t *taskfile.Task, name ciName, now time.Time) error {
	idle := func(reason string) error {
		p.idle = append(p.idle, ciIdle{name, reason})
		return nil
	}
	if t.Once != nil {
		made, err := t.Once.Task(now)
		if err != nil || made.RunAt.Before(now) || made.RunAt.After(p.until) {
			return idle("its time does not come within --for")
		}
		p.tasks, p.names[made.ID] = append(p.tasks, made), name
		return nil
	}
	made, err := t.Recurring.RecurringTask(now)
	if err == nil && (made.EndTime.IsZero() || made.EndTime.After(p.until)) {
		made.EndTime = p.until
	}
	if err == nil && strings.TrimSpace(made.Cron) == "@reboot" {
		return idle("it runs when the machine boots")
	}
	if err == nil && made.StartTime.After(made.EndTime) {
		return idle("no instant comes within --for")
	}
	if err != nil {
		return err
	}
	p.recurring, p.names[made.ID] = append(p.recurring, made), name
	return nil
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

// ciLabels returns what stands before the lines of each task of the plan, by its id or that of its recurring task.
func (a *app) ciLabels(p *ciPlan) func(t *dts.Task) label {
	widest := 0
	names := map[string]string{}
	for id, n := range p.names {
		names[id] = clip(clean(n.String()), 32)
		widest = max(widest, width(names[id]))
	}
	made := map[string]label{}
	for id, name := range names {
		text := name + strings.Repeat(" ", widest-width(name))
		made[id] = label{a.paintTask(text, p.names[id].at) + a.dim(" | "), a.paintTask(text, p.names[id].at) + a.dim(" … ")}
	}
	return func(t *dts.Task) label {
		if l, ok := made[t.ID]; ok {
			return l
		}
		return made[t.RecurringTaskID]
	}
}
