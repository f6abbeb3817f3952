package taskfile

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"dts"
	"dts/web/api"
)

// task reads a task of the file.
func (r *reader) task(n, defaults *yaml.Node, path string) *Task {
	var form taskForm
	before := len(r.problems)
	own := r.form(n, defaults, reflect.ValueOf(&form).Elem(), path, 2)
	t := &Task{Pos: posOf(n), Spec: form.Spec}
	if len(r.problems) > before { // what else could be said may only follow from it
		return t
	}
	r.common(t, &form.targetForm, &form.dependsForm, own, path)
	if len(r.problems) > before {
		return t
	}
	recurring := own["cron"] || own["interval_seconds"] || own["rrule"]
	switch {
	case r.noInterval(&form.RecurringRequest, own, path, t.what()):
		return t
	case recurring && own["run_at"]:
		r.at(path+".run_at", "%s: at is for a task that runs once, and there is a schedule; keep one", t.what())
		return t
	case recurring:
		r.refuse(own, path, t.what(), "is for a task that runs once, with at", "expires_at")
		q := form.RecurringRequest
		q.Spec = t.Spec
		t.Recurring = &q
		// When it was created says only from when on it runs: a file does not become wrong when a schedule has ended.
		_, err := q.RecurringTask(time.Unix(0, 0))
		r.invalid(err, path, t.what())
		return t
	}
	r.refuse(own, path, t.what(), "is for a recurring task, with cron, every or rrule", recurringKeys...)
	if own["run_at"] {
		r.onceAt(t, &form, own, path)
		return t
	}
	r.refuse(own, path, t.what(), "is for a task with a time, and this one has none", "expires_at", "time_zone")
	made := dts.Task{Spec: t.Spec, Inputs: t.Inputs}
	for i := range t.DependsOn {
		made.DependsOn = append(made.DependsOn, dts.DependsOn{TaskID: strconv.Itoa(i)}) // what is in the names is looked at later
	}
	r.invalid(made.Normalize(r.now), path, t.what())
	return t
}

// noInterval refuses an interval of nothing, which in a request is none.
func (r *reader) noInterval(q *api.RecurringRequest, own map[string]bool, path, what string) bool {
	if !own["interval_seconds"] || q.IntervalSeconds != 0 {
		return false
	}
	at := path + ".interval_seconds"
	r.at(at, "%s: %s: is 0; use 1s or more", what, r.marks[at].key)
	return true
}

// recurringKeys are what only a recurring task has, besides its schedule.
var recurringKeys = []string{"dst_gap", "dst_overlap", "start_time", "end_time", "max_runs", "jitter_seconds", "exclude_calendars", "require_calendars",
	"calendar_shift", "catch_up_mode", "misfire_after_seconds", "catch_up_window_seconds", "catch_up_limit", "catch_up_pacing_seconds", "overlap_policy"}

// onceAt is a task that runs once, at a time.
func (r *reader) onceAt(t *Task, form *taskForm, own map[string]bool, path string) {
	q := &api.TaskRequest{Spec: t.Spec, RunAt: form.RunAt, ExpiresAt: form.ExpiresAt, TimeZone: form.TimeZone}
	if !own["time_zone"] && hasOffset(q.RunAt) && (q.ExpiresAt.IsZero() || hasOffset(q.ExpiresAt)) {
		q.TimeZone = ""
	}
	made, err := q.Task(r.now)
	if err != nil && made != nil && made.RunAt.Before(r.now) {
		_, err = q.Task(made.RunAt) // that it is over does not make the file wrong
	}
	r.invalid(err, path, t.what())
	t.Once = q
}

func hasOffset(t api.TimeText) bool {
	_, err := time.Parse(time.RFC3339, strings.ToUpper(t.Text))
	return err == nil
}

// common is what tasks and steps have in common: the target, the dependencies, and what no label may be.
func (r *reader) common(t *Task, target *targetForm, depends *dependsForm, own map[string]bool, path string) {
	if t.Name == "" {
		r.at(path, "name is missing")
	}
	r.ownLabels(path, t.Labels)
	r.target(t, target, own, path)
	t.DependsMode, t.OnDependencyFailure, t.Inputs = depends.DependsMode, depends.OnDependencyFailure, depends.Inputs
	for _, d := range depends.DependsOn {
		name := d.Task
		if name == "" {
			name = d.Step
		}
		if d.Type == "" {
			d.Type = dts.MustSucceed
		}
		t.DependsOn = append(t.DependsOn, Dependency{Pos: d.Pos, Index: -1, Name: name, Type: d.Type})
	}
}

// ownLabels refuses the label that dts apply sets.
func (r *reader) ownLabels(path string, labels map[string]string) {
	if _, ok := labels[Label]; ok {
		r.at(path+".labels."+Label, "the label %s is set by dts apply; leave it out", Label)
	}
}

// target writes out what a task runs.
func (r *reader) target(t *Task, form *targetForm, own map[string]bool, path string) {
	var given []string
	for _, k := range []string{"command", "url", "target_config"} {
		if own[k] {
			given = append(given, k)
		}
	}
	var config any
	switch {
	case len(given) == 0:
		r.at(path, "%s has nothing to run; give it a command or a url", t.what())
		return
	case len(given) > 1:
		r.at(join(path, given[1]), "%s: %s and %s are both given; keep one", t.what(), given[0], given[1])
		return
	case own["target_config"]:
		if t.TargetType == "" {
			r.at(path+".target_config", "%s: target_config needs target_type", t.what())
		}
		r.refuse(own, path, t.what(), "belongs in target_config", slices.Concat(commandKeys, callKeys)...)
		return
	case own["target_type"]:
		r.at(path+".target_type", "%s: target_type is for target_config; %s says what it is", t.what(), given[0])
		return
	case own["command"]:
		r.refuse(own, path, t.what(), "is for a url, and there is a command", callKeys...)
		if own["shell_path"] && form.Command.shell == "" {
			r.at(path+".shell_path", "%s: shell_path is for a command that is one line for the shell", t.what())
		}
		c := dts.CommandTarget{Argv: form.Command.argv, Shell: form.Command.shell, Env: form.Env, Dir: form.Dir, User: form.User, Stdin: form.Stdin}
		if c.Shell != "" {
			c.ShellPath = form.ShellPath
		}
		t.TargetType, config = dts.Command, c
	default:
		r.refuse(own, path, t.what(), "is for a command, and there is a url", commandKeys...)
		t.TargetType = dts.HTTPCallback
		config = dts.HTTPTarget{URL: form.URL, Method: form.Method, Headers: form.Headers, Body: form.Body,
			ExpectStatus: form.ExpectStatus, ExpectBody: form.ExpectBody}
	}
	t.TargetConfig = encode(config)
}

// refuse tells of keys that do not fit the others.
func (r *reader) refuse(own map[string]bool, path, what, why string, keys ...string) {
	for _, k := range keys {
		if own[k] {
			at := join(path, k)
			r.at(at, "%s: %s %s", what, r.marks[at].key, why)
		}
	}
}

// workflow reads a workflow of the file.
func (r *reader) workflow(n, defaults *yaml.Node, path string) *Workflow {
	var form workflowForm
	w := &Workflow{Pos: posOf(n)}
	m, done, ok := r.follow(n, 2)
	defer done()
	if !ok || !r.want(m, yaml.MappingNode, "a mapping") {
		return w
	}
	var steps *yaml.Node
	rest := *m
	rest.Content = nil
	for _, x := range r.members(m, 2) {
		if x.name == "steps" {
			steps = x.value
			r.marks[path+".steps"] = mark{place(x), "steps"}
			continue
		}
		rest.Content = append(rest.Content, x.key, x.value)
	}
	before := len(r.problems)
	own := r.form(&rest, defaults, reflect.ValueOf(&form).Elem(), path, 2)
	w.Spec = form.Spec
	what := "workflow " + quote(w.Name)
	if w.Name == "" {
		r.at(path, "name is missing")
		what = "the workflow"
	}
	r.ownLabels(path, w.Labels)
	r.list(steps, path+".steps", MaxSteps, func(n *yaml.Node, path string) { w.Steps = append(w.Steps, r.step(n, defaults, path)) })
	if len(w.Steps) == 0 && len(r.problems) == before {
		r.at(path, "%s has no steps; give it steps, each with a name and what it runs", what)
	}
	recurring := own["cron"] || own["interval_seconds"] || own["rrule"]
	if !recurring {
		r.refuse(own, path, what, "is for a schedule, with cron, every or rrule", append(recurringKeys, "time_zone")...)
	}
	r.uniqueNames(w.Steps, path+".steps", map[string]Pos{})
	r.resolve(w.Steps, path+".steps", "step", false)
	if len(r.problems) > before || r.noInterval(&form.RecurringRequest, own, path, what) {
		return w
	}
	d := dts.Workflow{}
	for _, s := range w.Steps {
		step := dts.Step{Spec: s.Spec, DependsMode: s.DependsMode, OnDependencyFailure: s.OnDependencyFailure, Inputs: s.Inputs}
		for _, on := range s.DependsOn {
			step.DependsOn = append(step.DependsOn, dts.StepDependsOn{Step: on.Name, Type: on.Type})
		}
		d.Steps = append(d.Steps, step)
	}
	w.TargetType, w.TargetConfig = dts.WorkflowRun, encode(dts.WorkflowTarget{Steps: d.Steps})
	if !recurring {
		s := w.Spec
		r.invalid(s.Normalize(), path, what)
		return w
	}
	q := form.RecurringRequest
	q.Spec = w.Spec
	w.Recurring = &q
	_, err := q.RecurringTask(time.Unix(0, 0))
	r.invalid(err, path, what)
	return w
}

// step reads a step of a workflow.
func (r *reader) step(n, defaults *yaml.Node, path string) *Task {
	var form stepForm
	before := len(r.problems)
	own := r.form(n, defaults, reflect.ValueOf(&form).Elem(), path, 4)
	t := &Task{Pos: posOf(n), Spec: form.Spec}
	if len(r.problems) == before {
		r.common(t, &form.targetForm, &form.dependsForm, own, path)
	}
	if len(r.problems) == before {
		s := t.Spec
		r.invalid(s.Normalize(), path, "step "+quote(t.Name))
	}
	return t
}

// what names a task in a message.
func (t *Task) what() string {
	if t.Name == "" {
		return "the task"
	}
	return quote(t.Name)
}

// commandLine reads a program with its arguments, or a line for the shell.
func (r *reader) commandLine(n *yaml.Node, c *commandLine, path string, depth int) {
	switch {
	case n.Kind == yaml.SequenceNode:
		r.read(n, reflect.ValueOf(&c.argv).Elem(), nil, path, depth)
		if len(c.argv) == 0 {
			r.add(posOf(n), "the command is empty; give the program and its arguments")
		}
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str":
		if c.shell = n.Value; strings.TrimSpace(c.shell) == "" {
			r.add(posOf(n), "the command is empty")
		}
	default:
		r.add(posOf(n), "must be a list of the program and its arguments, or a line for the shell, not %s", kindOf(n))
	}
}

// dependency reads a name, or a name and a type.
func (r *reader) dependency(n *yaml.Node, d *dependency, path string, depth int) {
	d.Pos = posOf(n)
	if n.Kind != yaml.MappingNode {
		r.read(n, reflect.ValueOf(&d.Task).Elem(), nil, path, depth)
		return
	}
	r.object(n, reflect.ValueOf(&d.dependencyForm).Elem(), path, depth)
	if (d.Task == "") == (d.Step == "") {
		r.add(d.Pos, "needs one name: task, or step in a workflow")
	}
}
