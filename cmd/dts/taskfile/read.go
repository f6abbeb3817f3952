package taskfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"dts"
	"dts/web/api"
)

const (
	maxDepth   = 64
	maxRepeats = 1_000_000 // values that are read again, through aliases and defaults
)

// reader fills forms from the nodes of a YAML document, and remembers where everything stood.
type reader struct {
	file     string
	now      time.Time
	problems []Problem
	marks    map[string]mark // by path: tasks[0].retry.max_attempts, with the API's names
	repeats  int             // values that were read again
	again    int             // > 0: what is read now was read before
	muted    bool            // what is wrong here was told before
	types    map[reflect.Type][]field
}

// mark is where a value stands, and how its key was written.
type mark struct {
	pos Pos
	key string
}

func posOf(n *yaml.Node) Pos { return Pos{n.Line, n.Column} }

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func (r *reader) add(at Pos, format string, args ...any) {
	if r.muted || len(r.problems) > MaxProblems {
		return
	}
	p := Problem{File: r.file, Pos: at, Message: fmt.Sprintf(format, args...)}
	if len(r.problems) == MaxProblems {
		p = Problem{File: r.file, Pos: Pos{math.MaxInt32, 1}, Message: "there is more than " + strconv.Itoa(MaxProblems) + " problems"}
	}
	r.problems = append(r.problems, p)
}

// full: more need not be looked for.
func (r *reader) full() bool { return len(r.problems) > MaxProblems || r.repeats > maxRepeats }

// syntax tells why a file is not YAML.
func (r *reader) syntax(src []byte, err error) {
	e, ok := errors.AsType[*yaml.LoadError](err)
	switch at, what := badCharacter(src); {
	case ok && e.Mark.Line > 0:
		text := e.Message
		if e.ContextMsg != "" {
			text = e.ContextMsg + ": " + text
		}
		r.add(Pos{e.Mark.Line, e.Mark.Column}, "is not valid YAML: %s", text)
	case what != "":
		r.add(at, "is not valid YAML: %s", what)
	default:
		r.add(Pos{}, "is not valid YAML: %s", strings.TrimPrefix(err.Error(), "go-yaml "))
	}
}

// badCharacter finds the first character that YAML does not allow: the library does not say where it is. what is "" for none.
func badCharacter(src []byte) (at Pos, what string) {
	at = Pos{1, 1}
	for i := 0; i < len(src); {
		c, size := utf8.DecodeRune(src[i:])
		switch {
		case c == utf8.RuneError && size == 1:
			return at, fmt.Sprintf("the byte %#02x is no character; save the file as UTF-8", src[i])
		case c < ' ' && c != '\t' && c != '\n' && c != '\r':
			return at, fmt.Sprintf(`a control character is not allowed; in double quotes it can be written "\x%02x"`, c)
		}
		if i += size; c == '\n' {
			at = Pos{at.Line + 1, 1}
		} else {
			at.Column++
		}
	}
	return Pos{}, ""
}

// fields is fieldsOf, once for each type.
func (r *reader) fields(t reflect.Type) []field {
	list, ok := r.types[t]
	if !ok {
		if r.types == nil {
			r.types = map[reflect.Type][]field{}
		}
		list = fieldsOf(t)
		r.types[t] = list
	}
	return list
}

// read fills a value of any type that a form has. enum are the words that it may be.
func (r *reader) read(n *yaml.Node, v reflect.Value, enum []string, path string, depth int) {
	n, done, ok := r.follow(n, depth)
	defer done()
	if !ok || r.full() {
		return
	}
	if r.special(n, v, path, depth) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if isNull(n) {
			return
		}
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		r.read(n, v.Elem(), enum, path, depth+1)
	case reflect.Struct:
		r.object(n, v, path, depth)
	case reflect.Map:
		r.mapping(n, v, path, depth)
	case reflect.Slice:
		if isNull(n) || !r.want(n, yaml.SequenceNode, "a list") {
			return
		}
		list := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
		for i, item := range n.Content {
			at := path + "[" + strconv.Itoa(i) + "]"
			r.marks[at] = mark{posOf(item), ""}
			r.read(item, list.Index(i), enum, at, depth+1)
		}
		v.Set(list)
	default:
		r.scalar(n, v, enum)
	}
}

// special reads what has a form of its own.
func (r *reader) special(n *yaml.Node, v reflect.Value, path string, depth int) bool {
	switch x := v.Addr().Interface().(type) {
	case *commandLine:
		r.commandLine(n, x, path, depth)
	case *dependency:
		r.dependency(n, x, path, depth)
	case *json.RawMessage:
		if value, ok := r.any(n, depth); ok {
			*x = encode(value)
		}
	case json.Unmarshaler:
		if isNull(n) {
			r.noValue(n)
			return true
		}
		value, ok := r.any(n, depth)
		if !ok {
			return true
		}
		if err := x.UnmarshalJSON(encode(value)); err != nil {
			r.add(posOf(n), "%s", subject(n, err.Error()))
		}
	default:
		return false
	}
	return true
}

// object fills a struct, and returns the keys that were given, under the API's names.
func (r *reader) object(n *yaml.Node, v reflect.Value, path string, depth int) (given map[string]bool) {
	given = map[string]bool{}
	what := "a mapping"
	if v.Type() == reflect.TypeFor[dts.Retry]() {
		what = "a mapping such as {max_attempts: 3}"
	}
	if isNull(n) || !r.want(n, yaml.MappingNode, what) {
		return given
	}
	fields := r.fields(v.Type())
	for _, m := range r.members(n, depth) {
		f, spelled := find(fields, m.name)
		switch {
		case f == nil:
			r.unknown(m, v.Type(), fields)
			continue
		case given[f.name]:
			r.add(posOf(m.key), "%s and %s are both given; keep one", f.other, f.name)
			continue
		}
		given[f.name] = true
		at := join(path, f.name)
		r.marks[at] = mark{place(m), m.name}
		into := v.FieldByIndex(f.index)
		if spelled && f.span {
			r.spans(m.value, into, f.name, depth+1)
			continue
		}
		r.read(m.value, into, f.enum, at, depth+1)
	}
	return given
}

// place is where to look for the value of a key: at a word, or at the key of a longer thing.
func place(m member) Pos {
	if m.value.Kind == yaml.ScalarNode && m.value.Line == m.key.Line {
		return posOf(m.value)
	}
	return posOf(m.key)
}

// unknown refuses a key that a form does not have.
func (r *reader) unknown(m member, t reflect.Type, fields []field) {
	if t == reflect.TypeFor[fileForm]() && strings.HasPrefix(m.name, "x-") {
		return // for anchors, as in other tools' files
	}
	full, _ := find(r.fields(reflect.TypeFor[taskForm]()), m.name)
	switch {
	case t == reflect.TypeFor[defaultsForm]() && full != nil:
		r.add(posOf(m.key), "%s cannot be a default: give it to each task", m.name)
		return
	case t == reflect.TypeFor[stepForm]() && full != nil:
		r.add(posOf(m.key), "%s is not for a step: give it to the workflow", m.name)
		return
	case t == reflect.TypeFor[workflowForm]() && full != nil:
		r.add(posOf(m.key), "%s is not for a workflow: give it to its steps", m.name)
		return
	}
	hint := ""
	for _, x := range habits {
		if f, _ := find(fields, x.key); f != nil && slices.Contains(x.wrong, strings.ToLower(m.name)) {
			hint = "; write " + x.right
		}
	}
	if hint == "" {
		hint = api.DidYouMean(strings.ToLower(m.name), names(fields))
	}
	r.add(posOf(m.key), "%s is not known%s", quote(m.name), hint)
}

// habits are what people write who know other tools' files, and what stands for it here, in forms that have its key.
var habits = []struct {
	key   string
	wrong []string
	right string
}{
	{"command", []string{"argv", "shell", "run", "script", "cmd", "exec"}, "command: with a list, or with a line for the shell"},
	{"cron", []string{"schedule", "when"}, "cron, every, rrule or at"},
	{"every", []string{"interval"}, "every: 5m"},
	{"depends_on", []string{"needs", "after"}, "depends_on: with a list of names"},
	{"retry", []string{"retries", "attempts", "max_attempts", "max_retries"}, "retry: {max_attempts: 3}"},
	{"overlap_policy", []string{"overlap", "concurrency_policy", "concurrencypolicy"}, "overlap_policy"},
	{"env", []string{"environment", "variables"}, "env"},
	{"dir", []string{"cwd", "workdir", "working_dir", "working_directory"}, "dir"},
	{"time_zone", []string{"tz"}, "time_zone"},
	{"steps", []string{"tasks", "jobs"}, "steps"},
	{"tasks", []string{"jobs"}, "tasks"},
}

// mapping fills a map. What is there already stays where the file says nothing else.
func (r *reader) mapping(n *yaml.Node, v reflect.Value, path string, depth int) {
	if isNull(n) || !r.want(n, yaml.MappingNode, "a mapping") {
		return
	}
	m := reflect.MakeMap(v.Type())
	for it := v.MapRange(); it.Next(); {
		m.SetMapIndex(it.Key(), it.Value())
	}
	for _, x := range r.members(n, depth) {
		at := join(path, x.name)
		r.marks[at] = mark{place(x), x.name}
		item := reflect.New(v.Type().Elem()).Elem()
		r.read(x.value, item, nil, at, depth+1)
		m.SetMapIndex(reflect.ValueOf(x.name), item)
	}
	v.Set(m)
}
