package taskfile

import (
	"reflect"
	"strconv"

	"go.yaml.in/yaml/v4"

	"dts"
	"dts/sched/calendar"
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
	if parts["tasks"] == nil && parts["workflows"] == nil && parts["queues"] == nil && parts["calendars"] == nil && len(r.problems) == 0 {
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
		made, err := q.Request.Queue(q.Name)
		if err == nil && !made.Settled() {
			err = dts.Invalid("concurrency", "is missing, and so are rate, retry and retention; a queue needs one of them, or need not be declared")
		}
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
