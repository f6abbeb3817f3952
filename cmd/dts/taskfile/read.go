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

	"go.yaml.in/yaml/v4"

	"dts/sched/cron"
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
func (r *reader) syntax(err error) {
	e, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		r.add(Pos{}, "is not valid YAML: %s", strings.TrimPrefix(err.Error(), "go-yaml "))
		return
	}
	text := e.Message
	if e.ContextMsg != "" {
		text = e.ContextMsg + ": " + text
	}
	r.add(Pos{e.Mark.Line, e.Mark.Column}, "is not valid YAML: %s", text)
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

// follow returns the node that an alias stands for, and what to call when it has been read. It refuses a value that
// is nested too deeply, which an alias within itself is, and one too many that is read again.
func (r *reader) follow(n *yaml.Node, depth int) (*yaml.Node, func(), bool) {
	done := func() {}
	if depth > maxDepth {
		r.add(posOf(n), "is nested more than %d deep", maxDepth)
		return n, done, false
	}
	if n.Kind == yaml.AliasNode {
		r.again++
		done = func() { r.again-- }
		n = n.Alias
	}
	if r.again > 0 || r.muted {
		if r.repeats++; r.repeats > maxRepeats {
			if r.repeats == maxRepeats+1 {
				was := r.muted
				r.muted = false
				r.add(posOf(n), "aliases and defaults repeat more than %d values", maxRepeats)
				r.muted = was
			}
			return n, done, false
		}
	}
	return n, done, true
}

// member is one entry of a mapping.
type member struct {
	name  string
	key   *yaml.Node
	value *yaml.Node
}

// members lists the entries of a mapping, each key once: its own, and those that it takes from others by <<.
func (r *reader) members(n *yaml.Node, depth int) []member {
	var list []member
	seen := map[string]Pos{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind == yaml.AliasNode {
			k = k.Alias
		}
		switch {
		case k.Kind != yaml.ScalarNode:
			r.add(posOf(k), "a key must be a text, not %s", kindOf(k))
			continue
		case k.ShortTag() == "!!merge":
			merged = append(merged, v)
			continue
		}
		if first, twice := seen[k.Value]; twice {
			r.add(posOf(k), "%s is there twice, first in line %d", quote(k.Value), first.Line)
			continue
		}
		seen[k.Value] = posOf(k)
		list = append(list, member{k.Value, k, v})
	}
	for _, m := range merged {
		for _, x := range r.mergedMembers(m, depth+1) {
			if _, own := seen[x.name]; !own {
				seen[x.name] = posOf(x.key)
				list = append(list, x)
			}
		}
	}
	return list
}

// mergedMembers lists what << takes over: the entries of a mapping, or of several of which the first counts.
func (r *reader) mergedMembers(n *yaml.Node, depth int) []member {
	n, done, ok := r.follow(n, depth)
	defer done()
	switch {
	case !ok:
		return nil
	case n.Kind == yaml.MappingNode:
		list := r.members(n, depth)
		r.repeats += len(list)
		return list
	case n.Kind == yaml.SequenceNode:
		var all []member
		seen := map[string]bool{}
		for _, item := range n.Content {
			for _, m := range r.mergedMembers(item, depth+1) {
				if !seen[m.name] {
					seen[m.name] = true
					all = append(all, m)
				}
			}
		}
		return all
	}
	r.add(posOf(n), "<< takes over a mapping, and this is %s", kindOf(n))
	return nil
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
	if isNull(n) || !r.want(n, yaml.MappingNode, "a mapping") {
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
	hint := ""
	switch full, _ := find(fieldsOf(reflect.TypeFor[taskForm]()), m.name); {
	case t == reflect.TypeFor[defaultsForm]() && full != nil:
		r.add(posOf(m.key), "%s cannot be a default: give it to each task", m.name)
		return
	case m.name == "argv" || m.name == "shell" || m.name == "run" || m.name == "script":
		hint = "; write command: with a list, or with a line for the shell"
	case m.name == "schedule":
		hint = "; write cron, every, rrule or at"
	case m.name == "needs" || m.name == "after":
		hint = "; did you mean depends_on?"
	default:
		hint = api.DidYouMean(strings.ToLower(m.name), names(fields))
	}
	r.add(posOf(m.key), "%s is not known%s", quote(m.name), hint)
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

// scalar fills a text, a number, or a yes or no.
func (r *reader) scalar(n *yaml.Node, v reflect.Value, enum []string) {
	if isNull(n) {
		r.noValue(n)
		return
	}
	kind := map[reflect.Kind]string{reflect.String: "a text", reflect.Bool: "true or false"}[v.Kind()]
	if kind == "" {
		kind = "a number"
	}
	if !r.want(n, yaml.ScalarNode, kind) {
		return
	}
	tag := n.ShortTag()
	switch v.Kind() {
	case reflect.String:
		if len(enum) > 0 {
			r.word(n, v, enum)
			return
		}
		if tag == "!!binary" {
			r.add(posOf(n), "must be a text, not binary data")
			return
		}
		v.SetString(n.Value)
	case reflect.Bool:
		if n.Value != "true" && n.Value != "false" {
			r.add(posOf(n), "must be true or false, not %s", quote(n.Value))
			return
		}
		v.SetBool(n.Value == "true")
	case reflect.Int, reflect.Int64:
		i, err := strconv.ParseInt(n.Value, 10, 64)
		if err != nil || tag == "!!str" {
			r.add(posOf(n), "must be a whole number, not %s", quote(n.Value))
			return
		}
		v.SetInt(i)
	case reflect.Float64:
		f, err := strconv.ParseFloat(n.Value, 64)
		if err != nil || math.IsInf(f, 0) || math.IsNaN(f) || tag == "!!str" {
			r.add(posOf(n), "must be a number, not %s", quote(n.Value))
			return
		}
		v.SetFloat(f)
	default:
		panic("taskfile: a form has a field of type " + v.Type().String())
	}
}

// word fills in one of a few words, however it is written: HIGH, high, must-finish.
func (r *reader) word(n *yaml.Node, v reflect.Value, enum []string) {
	w := strings.ToUpper(strings.ReplaceAll(n.Value, "-", "_"))
	if slices.Contains(enum, w) {
		v.SetString(w)
		return
	}
	r.add(posOf(n), "%s is not known; use %s", quote(n.Value), either(enum))
}

// spans fills a field whose name ends in a unit from what has units of its own: 30s, or a list of such.
func (r *reader) spans(n *yaml.Node, v reflect.Value, name string, depth int) {
	n, done, ok := r.follow(n, depth)
	defer done()
	if !ok {
		return
	}
	if v.Kind() == reflect.Slice {
		if !r.want(n, yaml.SequenceNode, "a list of durations") {
			return
		}
		list := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
		for i, item := range n.Content {
			r.spans(item, list.Index(i), name, depth+1)
		}
		v.Set(list)
		return
	}
	if !r.want(n, yaml.ScalarNode, "a duration such as 30s") {
		return
	}
	d, err := time.ParseDuration(n.Value)
	if err != nil {
		d, err = cron.ParseInterval(n.Value)
	}
	if err != nil {
		if _, number := strconv.ParseFloat(n.Value, 64); number == nil {
			r.add(posOf(n), "%s needs a unit: write %ss for seconds", quote(n.Value), n.Value)
		} else {
			r.add(posOf(n), "%s is not a duration; write it like 30s, 5m, 1h30m or 2d", quote(n.Value))
		}
		return
	}
	switch {
	case v.Kind() == reflect.Float64:
		v.SetFloat(d.Seconds())
	case strings.HasSuffix(name, "_ms"):
		v.SetInt(d.Milliseconds())
	default:
		panic("taskfile: " + name + " is of type " + v.Type().String())
	}
}

// any reads a value of no certain form, as package json would decode it.
func (r *reader) any(n *yaml.Node, depth int) (any, bool) {
	n, done, ok := r.follow(n, depth)
	defer done()
	if !ok || r.full() {
		return nil, false
	}
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for _, x := range r.members(n, depth) {
			v, ok := r.any(x.value, depth+1)
			if !ok {
				return nil, false
			}
			m[x.name] = v
		}
		return m, true
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			v, ok := r.any(item, depth+1)
			if !ok {
				return nil, false
			}
			list = append(list, v)
		}
		return list, true
	}
	switch n.ShortTag() {
	case "!!null":
		return nil, true
	case "!!bool":
		return n.Value == "true", true
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return json.Number(n.Value), true
		}
		r.add(posOf(n), "the number %s is not written as JSON has numbers; write it so, or quote it", quote(n.Value))
		return nil, false
	case "!!binary":
		r.add(posOf(n), "must be a text, not binary data")
		return nil, false
	}
	return n.Value, true
}

// want refuses a node of another kind than is needed.
func (r *reader) want(n *yaml.Node, kind yaml.Kind, what string) bool {
	if n.Kind != kind {
		r.add(posOf(n), "must be %s, not %s", what, kindOf(n))
	}
	return n.Kind == kind
}

func (r *reader) noValue(n *yaml.Node) {
	r.add(posOf(n), "has no value; give one, or leave the key out")
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	}
	return "a text"
}

// subject puts a value before a message about it that has none.
func subject(n *yaml.Node, message string) string {
	if n.Kind != yaml.ScalarNode || strings.HasPrefix(message, "must ") || strings.Contains(message, strconv.Quote(n.Value)) {
		return message
	}
	return quote(n.Value) + " " + message
}

func encode(v any) json.RawMessage {
	b, err := marshal(v)
	if err != nil {
		panic("taskfile: " + err.Error()) // of maps, lists, texts and checked numbers
	}
	return b
}

// join is the path of a member.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// quote quotes what a user wrote, shortened.
func quote(s string) string {
	const n = 60
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "") + "…"
	}
	return strconv.Quote(s)
}

// either lists words: "A, B or C".
func either(words []string) string {
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "" })
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
