package taskfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"dts"
	"dts/sched/calendar"
	"dts/web/api"
)

// document reads the whole file.
func (r *reader) document(n *yaml.Node, f *File) {
	if !r.want(n, yaml.MappingNode, "a mapping with tasks or workflows") {
		return
	}
	fields := r.fields(reflect.TypeFor[fileForm]())
	parts := map[string]*yaml.Node{}
	for _, m := range r.members(n, 0) {
		if x, _ := find(fields, m.name); x == nil {
			r.unknown(m, reflect.TypeFor[fileForm](), fields)
			continue
		}
		r.marks[m.name] = mark{place(m), m.name}
		parts[m.name] = m.value
	}
	if n := parts["name"]; n != nil {
		r.read(n, reflect.ValueOf(&f.Name).Elem(), nil, "name", 1)
		if !usableName.MatchString(f.Name) {
			r.at("name", "%s cannot be the name of a file; use 1 to 64 letters, digits, '.', '_' and '-', beginning and ending with a letter or digit", quote(f.Name))
		}
	}
	if n := parts["defaults"]; n != nil {
		var d defaultsForm
		r.read(n, reflect.ValueOf(&d).Elem(), nil, "defaults", 1)
		r.ownLabels("defaults", d.Labels)
	}
	r.queues(parts["queues"], f)
	r.calendars(parts["calendars"], f)
	defaults := parts["defaults"]
	r.list(parts["tasks"], "tasks", MaxTasks, func(n *yaml.Node, path string) {
		f.Tasks = append(f.Tasks, r.task(n, defaults, path))
	})
	r.list(parts["workflows"], "workflows", MaxTasks, func(n *yaml.Node, path string) {
		f.Workflows = append(f.Workflows, r.workflow(n, defaults, path))
	})
	if len(f.Tasks)+len(f.Workflows)+len(f.Queues)+len(f.Calendars) == 0 && len(r.problems) == 0 {
		r.add(posOf(n), "declares nothing; it should have tasks or workflows")
	}
	seen := map[string]Pos{}
	r.uniqueNames(f.Tasks, "tasks", seen)
	for i, w := range f.Workflows {
		r.uniqueName(w.Name, "workflows["+strconv.Itoa(i)+"]", w.Pos, seen)
	}
	r.resolve(f.Tasks, "tasks", "task", true)
}

// list calls f with each item of a list of at most limit.
func (r *reader) list(n *yaml.Node, path string, limit int, f func(n *yaml.Node, path string)) {
	if n == nil || isNull(n) {
		return
	}
	n, done, ok := r.follow(n, 1)
	defer done()
	if !ok || !r.want(n, yaml.SequenceNode, "a list") {
		return
	}
	if len(n.Content) > limit {
		r.at(path, "%s has %d entries; at most %d are allowed", path, len(n.Content), limit)
		return
	}
	for i, item := range n.Content {
		at := path + "[" + strconv.Itoa(i) + "]"
		r.marks[at] = mark{posOf(item), ""}
		f(item, at)
	}
}

func (r *reader) queues(n *yaml.Node, f *File) {
	r.each(n, "queues", func(m member, path string) {
		q := &Queue{Pos: posOf(m.key), Name: m.name}
		r.read(m.value, reflect.ValueOf(&q.Request).Elem(), nil, path, 2)
		_, err := q.Request.Queue(q.Name)
		r.invalid(err, path, "queue "+quote(q.Name))
		f.Queues = append(f.Queues, q)
	})
}

func (r *reader) calendars(n *yaml.Node, f *File) {
	r.each(n, "calendars", func(m member, path string) {
		var form calendarForm
		r.read(m.value, reflect.ValueOf(&form).Elem(), nil, path, 2)
		form.Name = m.name
		made, err := form.Calendar()
		if err == nil {
			_, err = calendar.Compile(made)
		}
		r.invalid(err, path, "calendar "+quote(m.name))
		f.Calendars = append(f.Calendars, &Calendar{posOf(m.key), m.name, form.CalendarRequest})
	})
}

// each calls f with each entry of a mapping.
func (r *reader) each(n *yaml.Node, path string, f func(m member, path string)) {
	if n == nil || isNull(n) {
		return
	}
	n, done, ok := r.follow(n, 1)
	defer done()
	if !ok || !r.want(n, yaml.MappingNode, "a mapping by name") {
		return
	}
	for _, m := range r.members(n, 1) {
		at := join(path, m.name)
		r.marks[at] = mark{posOf(m.key), m.name}
		f(m, at)
	}
}

// form fills a form with the defaults of the file, as far as it has them, and then with what is written. own are the keys
// of the latter.
func (r *reader) form(n, defaults *yaml.Node, v reflect.Value, path string, depth int) (own map[string]bool) {
	n, done, ok := r.follow(n, depth)
	defer done()
	if !ok {
		return map[string]bool{}
	}
	if defaults != nil {
		var d defaultsForm
		was := r.muted
		r.muted = true
		given := r.object(resolved(defaults), reflect.ValueOf(&d).Elem(), path, depth)
		r.muted = was
		to := r.fields(v.Type())
		from := r.fields(reflect.TypeFor[defaultsForm]())
		for _, f := range from {
			if x, _ := find(to, f.name); x != nil && given[f.name] {
				v.FieldByIndex(x.index).Set(reflect.ValueOf(&d).Elem().FieldByIndex(f.index))
			}
		}
	}
	return r.object(n, v, path, depth)
}

func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

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
	if len(r.problems) > before {
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

// at tells of the value at a path, or of the nearest one around it.
func (r *reader) at(path, format string, args ...any) { r.add(r.markOf(path).pos, format, args...) }

// markOf returns the mark of a path, or of the nearest path around it that was written.
func (r *reader) markOf(path string) mark {
	for path != "" {
		if m, ok := r.marks[path]; ok {
			return m
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return mark{pos: Pos{1, 1}}
}

// invalid tells what the rules of dts find wrong with what stands at a path.
func (r *reader) invalid(err error, path, what string) {
	if err == nil {
		return
	}
	e, ok := errors.AsType[*dts.Error](err)
	if !ok || len(e.Fields) == 0 {
		r.at(path, "%s: %s", what, err)
		return
	}
	for _, f := range e.Fields {
		at, name := join(path, f.Field), f.Field
		if inner, ok := strings.CutPrefix(f.Field, "target_config.steps"); ok {
			at, name = r.ofStep(path, "steps"+inner)
		} else if inner, ok := strings.CutPrefix(f.Field, "target_config"); ok {
			if _, own := r.marks[path+".target_config"]; !own {
				name = r.short(path, strings.TrimPrefix(inner, "."))
				at = join(path, name)
			}
		}
		if m, there := r.marks[at]; there && m.key != "" {
			name = name[:len(name)-len(lastPart(name))] + m.key
		}
		r.at(at, "%s: %s: %s", what, name, f.Message)
	}
}

// ofStep is where a field of a workflow's step stands, and what it is called there.
func (r *reader) ofStep(path, field string) (at, name string) {
	step, rest, _ := strings.Cut(field, "]")
	step = join(path, step+"]")
	name = strings.TrimPrefix(rest, ".")
	if inner, ok := strings.CutPrefix(name, "target_config"); ok {
		if _, own := r.marks[step+".target_config"]; !own {
			name = r.short(step, strings.TrimPrefix(inner, "."))
		}
	}
	return join(step, name), name
}

// short is what a field of a target_config is called in the file, where there is none.
func (r *reader) short(path, field string) string {
	if field != "argv" && field != "shell" && field != "" {
		return field
	}
	if _, is := r.marks[path+".command"]; is {
		return "command"
	}
	return "url"
}

func lastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

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

// marshal writes JSON as people would, with < and & as they are.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}
