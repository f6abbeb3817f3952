package taskfile

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"dts/sched/cron"
)

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
