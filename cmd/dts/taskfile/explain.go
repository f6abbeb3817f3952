package taskfile

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"dts"
)

// None stands for a value that is not there.
const None = "none"

// Line says a difference to people. What may be secret (the values of variables and headers, bodies) is not in it: Note says then
// that it is another.
type Line struct {
	Field string `json:"field"`
	Old   string `json:"old,omitempty"`
	New   string `json:"new,omitempty"`
	Note  string `json:"note,omitempty"`
}

// String is the line as `dts apply` prints it.
func (l Line) String() string {
	if l.Note != "" {
		return l.Field + ": " + l.Note
	}
	return l.Field + ": " + l.Old + " → " + l.New
}

// Explain says differences as the file writes them.
func Explain(list []Difference) []Line {
	kind := slices.ContainsFunc(list, func(d Difference) bool { return d.Field == "target_type" })
	var lines []Line
	for _, d := range list {
		switch d.Field {
		case "target_type":
			lines = append(lines, Line{Field: "target", Old: words("", d.Old), New: words("", d.New)})
		case "target_config":
			if kind {
				lines = append(lines, Line{Field: "target_config", Note: "replaced"})
			} else {
				lines = append(lines, targetLines(members(d.Old), members(d.New))...)
			}
		case "labels":
			lines = append(lines, labelLines(members(d.Old), members(d.New))...)
		default:
			name := d.Field
			if other, span := otherName(name); other != "" && (span || name == "run_at") {
				name = other
			}
			lines = append(lines, Line{Field: name, Old: words(d.Field, d.Old), New: words(d.Field, d.New)})
		}
	}
	return lines
}

// targetLines says what changed in a target of one kind.
func targetLines(from, to map[string]json.RawMessage) []Line {
	if from["steps"] != nil || to["steps"] != nil {
		return stepLines(from["steps"], to["steps"])
	}
	var lines []Line
	command := false
	for _, k := range both(from, to) {
		if string(from[k]) == string(to[k]) {
			continue
		}
		switch k {
		case "argv", "shell":
			if !command {
				command = true
				lines = append(lines, Line{Field: "command", Old: commandWords(from), New: commandWords(to)})
			}
		case "env", "headers":
			lines = append(lines, Line{Field: k, Note: membersChanged(members(from[k]), members(to[k]))})
		case "url":
			lines = append(lines, urlLine(from[k], to[k]))
		case "body", "stdin", "expect_body":
			lines = append(lines, Line{Field: k, Note: changed(from[k], to[k])})
		default:
			lines = append(lines, Line{Field: k, Old: words(k, from[k]), New: words(k, to[k])})
		}
	}
	return lines
}

// urlLine says an address without what is secret in it.
func urlLine(from, to json.RawMessage) Line {
	safe := func(b json.RawMessage) (s string) {
		_ = json.Unmarshal(b, &s) // it is a text
		return dts.SafeURL(s)
	}
	l := Line{Field: "url", Old: safe(from), New: safe(to)}
	if l.Old == l.New {
		return Line{Field: "url", Note: l.New + " with another secret"}
	}
	return l
}

func commandWords(t map[string]json.RawMessage) string {
	if t["shell"] != nil {
		return words("", t["shell"])
	}
	return words("", t["argv"])
}

// stepLines says what is another in the steps of a workflow: of each that stays what it is, as of a task.
func stepLines(from, to json.RawMessage) []Line {
	old, now := stepsByName(from), stepsByName(to)
	var lines []Line
	var parts []string
	for _, name := range both(old, now) {
		switch {
		case old[name] == nil || now[name] == nil:
			parts = append(parts, name+" "+changed(old[name], now[name]))
		case string(old[name]) != string(now[name]):
			lines = append(lines, stepLine(name, members(old[name]), members(now[name]))...)
		}
	}
	if len(parts)+len(lines) == 0 {
		parts = []string{"in another order"}
	}
	if len(parts) > 0 {
		lines = append(lines, Line{Field: "steps", Note: strings.Join(parts, ", ")})
	}
	return lines
}

func stepsByName(b json.RawMessage) map[string]json.RawMessage {
	var list []json.RawMessage
	_ = json.Unmarshal(b, &list) // what is no list has no steps
	m := map[string]json.RawMessage{}
	for _, s := range list {
		var named struct{ Name string }
		_ = json.Unmarshal(s, &named)
		m[named.Name] = s
	}
	return m
}

func stepLine(name string, from, to map[string]json.RawMessage) []Line {
	var differ []Difference
	for _, k := range both(from, to) {
		if string(from[k]) != string(to[k]) {
			differ = append(differ, Difference{k, from[k], to[k]})
		}
	}
	lines := Explain(differ)
	for i := range lines {
		lines[i].Field = "step " + name + ": " + lines[i].Field
	}
	return lines
}

func labelLines(from, to map[string]json.RawMessage) []Line {
	var lines []Line
	for _, k := range both(from, to) {
		if string(from[k]) != string(to[k]) {
			lines = append(lines, Line{Field: "label " + k, Old: words("", from[k]), New: words("", to[k])})
		}
	}
	return lines
}

// membersChanged says which members of an object are others, without what they are.
func membersChanged(from, to map[string]json.RawMessage) string {
	var parts []string
	for _, k := range both(from, to) {
		if string(from[k]) != string(to[k]) {
			parts = append(parts, k+" "+changed(from[k], to[k]))
		}
	}
	return strings.Join(parts, ", ")
}

func changed(from, to json.RawMessage) string {
	switch {
	case from == nil:
		return "added"
	case to == nil:
		return "removed"
	}
	return "changed"
}

func members(b json.RawMessage) map[string]json.RawMessage {
	m := map[string]json.RawMessage{}
	_ = json.Unmarshal(b, &m) // what is no object has no members
	return m
}

// both are the names of two objects, sorted.
func both(a, b map[string]json.RawMessage) []string {
	names := slices.Collect(maps.Keys(a))
	for k := range b {
		if _, there := a[k]; !there {
			names = append(names, k)
		}
	}
	slices.Sort(names)
	return names
}

// words writes a value as a file would: a text as it is, all else on one line.
func words(field string, v json.RawMessage) string {
	switch s := string(v); s {
	case "", "null", `""`, "{}", "[]":
		return None
	}
	if strings.HasSuffix(field, "_seconds") && string(v) == "0" {
		return None
	}
	n := mapping()
	if field == "retry" {
		var r dts.Retry
		if json.Unmarshal(v, &r) == nil {
			v = canonical(short(r, ""))
		}
	}
	if field == "cron" {
		put(n, "x", expressions(v))
	} else {
		putField(n, Field{field, v})
	}
	x := n.Content[1]
	if x.Kind == yaml.ScalarNode {
		return x.Value
	}
	onOneLine(x)
	b, err := yaml.Dump(x, yaml.WithV4Defaults(), yaml.WithLineWidth(-1))
	if err != nil {
		return string(v)
	}
	return strings.TrimSpace(string(b))
}

func onOneLine(n *yaml.Node) {
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Style == yaml.LiteralStyle {
			n.Style = yaml.DoubleQuotedStyle
		}
	default:
		n.Style = yaml.FlowStyle
	}
	for _, x := range n.Content {
		onOneLine(x)
	}
}
