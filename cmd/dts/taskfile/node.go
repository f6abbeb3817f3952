package taskfile

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// putAll adds the members of an object.
func putAll(n *yaml.Node, object json.RawMessage) {
	n.Content = append(n.Content, value(object).Content...)
}

// form writes the fields that are there.
func form(fields []Field) *yaml.Node {
	n := mapping()
	for _, f := range fields {
		if string(f.Value) != "null" {
			putField(n, f)
		}
	}
	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle
	}
	return n
}

// putField adds a field, a number of seconds or milliseconds as a duration with a unit.
func putField(n *yaml.Node, f Field) {
	name, v := f.Name, value(f.Value)
	if other, isSpan := otherName(name); isSpan {
		if s, ok := spanNode(v, strings.HasSuffix(name, "_ms")); ok {
			name, v = other, s
		}
	} else if other != "" {
		name = other
	}
	put(n, name, v)
}

// spanNode writes a number as a duration, or a list of them, where that says exactly the same.
func spanNode(v *yaml.Node, ms bool) (*yaml.Node, bool) {
	if v.Kind == yaml.SequenceNode {
		spans := list(true)
		for _, item := range v.Content {
			s, ok := spanNode(item, ms)
			if !ok {
				return nil, false
			}
			spans.Content = append(spans.Content, s)
		}
		return spans, true
	}
	f, err := strconv.ParseFloat(v.Value, 64)
	if err != nil || v.Tag == "!!str" {
		return nil, false
	}
	if ms {
		f /= 1000
	}
	d := time.Duration(f * float64(time.Second))
	if d.Seconds() != f {
		return nil, false
	}
	return text(spanText(d)), true
}

// spanText is a Go duration without its zeros: 1h30m, not 1h30m0s.
func spanText(d time.Duration) string {
	s := d.String()
	if cut, ok := strings.CutSuffix(s, "m0s"); ok {
		s = cut + "m"
	}
	if cut, ok := strings.CutSuffix(s, "h0m"); ok {
		s = cut + "h"
	}
	return s
}

// expressions writes cron expressions: one as a text, several as a list.
func expressions(v json.RawMessage) *yaml.Node {
	var all string
	_ = json.Unmarshal(v, &all) // it is a text
	if !strings.Contains(all, "\n") {
		return text(all)
	}
	n := list(true)
	for line := range strings.SplitSeq(all, "\n") {
		n.Content = append(n.Content, text(line))
	}
	return n
}

// value writes any JSON.
func value(b json.RawMessage) *yaml.Node {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic("taskfile: " + err.Error()) // of what was just encoded
	}
	return node(v)
}

// node writes JSON whose objects have the names of the API: durations get a unit.
func node(v any) *yaml.Node { return nodeOf(v, false) }

// isFree reports whether the names in a field are anybody's.
func isFree(field string) bool {
	return field == "labels" || field == "env" || field == "headers" || field == "target_config"
}

// nodeOf is node, or, with free, for objects with names of anybody.
func nodeOf(v any, free bool) *yaml.Node {
	switch v := v.(type) {
	case map[string]any:
		n := mapping()
		for _, k := range slices.Sorted(maps.Keys(v)) {
			switch {
			case free || isFree(k):
				put(n, k, nodeOf(v[k], true))
			case k == "retry":
				put(n, k, flow(node(v[k])))
			default:
				putField(n, Field{k, encode(v[k])})
			}
		}
		return n
	case []any:
		flat := !slices.ContainsFunc(v, func(x any) bool {
			_, object := x.(map[string]any)
			return object
		})
		n := list(flat)
		for _, x := range v {
			n.Content = append(n.Content, nodeOf(x, free))
		}
		return n
	case string:
		return text(v)
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.String()}
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v)}
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
}

func mapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode} }

func list(flat bool) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	if flat {
		n.Style = yaml.FlowStyle
	}
	return n
}

// flow puts a mapping on one line.
func flow(n *yaml.Node) *yaml.Node {
	n.Style = yaml.FlowStyle
	return n
}

func put(n *yaml.Node, key string, v *yaml.Node) {
	n.Content = append(n.Content, text(key), v)
}

func putFilled(n *yaml.Node, key string, v *yaml.Node) {
	if len(v.Content) > 0 {
		put(n, key, v)
	}
}

// word is a text that is the same without quotes, whatever YAML makes of numbers, dates and the like.
var word = regexp.MustCompile(`^[A-Za-z_/.][A-Za-z0-9_./@+-]*( [A-Za-z0-9_./@+-]+)*$|^[0-9]+(ms|s|m|h)([0-9]+(m|s))*$`)

// text writes a text so that it is read as it was: several lines as a block, where nothing in it is hard to see.
func text(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Style: yaml.DoubleQuotedStyle}
	switch {
	case word.MatchString(s) && !isSpecial(s):
		n.Style = 0
	case strings.Contains(s, "\n") && isBlock(s):
		n.Style = yaml.LiteralStyle
	}
	return n
}

// isBlock reports whether a text of several lines can be written as a block.
func isBlock(s string) bool {
	if s[0] == ' ' || s[0] == '\n' || strings.HasSuffix(s, "\n\n") {
		return false
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(s, "\n"), "\n") {
		if strings.HasSuffix(line, " ") {
			return false
		}
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r != '\n' && !unicode.IsPrint(r) || r == unicode.ReplacementChar || r == '\ufeff'
	})
}

// isSpecial reports whether YAML, of any version, reads a word as something else than a text.
func isSpecial(s string) bool {
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "y", "n", "null", ".inf", ".nan":
		return true
	}
	return strings.Trim(s, "._") == "" || strings.HasPrefix(s, ".") && strings.Trim(s, ".0123456789eE+-_") == ""
}
