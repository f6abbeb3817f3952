package taskfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v4"

	"dts"
	"dts/web/api"
)

// Content is what Encode writes. Names must be unique, of tasks and recurring tasks together, and not empty.
type Content struct {
	Name      string
	Queues    []*dts.Queue
	Calendars []*dts.Calendar
	Recurring []*dts.RecurringTask
	Once      []*dts.Task // that have not started
	// QueueRetries are the retries of the server's queues, by name: what a task has in common with its queue is not written.
	QueueRetries map[string]*dts.Retry
}

// Encode writes a file from which Parse reads the same. What is a default is left out.
func Encode(c Content) ([]byte, error) {
	top := mapping()
	if c.Name != "" {
		put(top, "name", text(c.Name))
	}
	queues := mapping()
	for _, q := range c.Queues {
		put(queues, q.Name, form(FieldsOfQueue(q)))
	}
	putFilled(top, "queues", queues)
	calendars := mapping()
	for _, k := range c.Calendars {
		put(calendars, k.Name, form(FieldsOfCalendar(k)))
	}
	putFilled(top, "calendars", calendars)
	tasks, workflows := list(false), list(false)
	for _, r := range c.Recurring {
		n, err := recurring(r, c.QueueRetries[r.Queue])
		if err != nil {
			return nil, err
		}
		if r.TargetType == dts.WorkflowRun {
			workflows.Content = append(workflows.Content, n)
		} else {
			tasks.Content = append(tasks.Content, n)
		}
	}
	for _, t := range c.Once {
		n, err := onceNode(t, c.QueueRetries[t.Queue])
		if err != nil {
			return nil, err
		}
		tasks.Content = append(tasks.Content, n)
	}
	putFilled(top, "tasks", tasks)
	putFilled(top, "workflows", workflows)
	if len(top.Content) == 0 {
		put(top, "tasks", list(true))
	}
	return yaml.Dump(top, yaml.WithV4Defaults(), yaml.WithCompactSeqIndent(false), yaml.WithLineWidth(-1))
}

// EncodeRequests writes a file of recurring tasks that are not on a server.
func EncodeRequests(name string, requests []api.RecurringRequest) ([]byte, error) {
	c := Content{Name: name}
	for i := range requests {
		r, err := requests[i].RecurringTask(time.Unix(0, 0))
		if err != nil {
			return nil, err
		}
		c.Recurring = append(c.Recurring, r)
	}
	return Encode(c)
}

// JSON is a file as JSON, with the keys of each mapping in order.
func JSON(src []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Load(src, &doc); err != nil {
		return nil, err
	}
	r := &reader{}
	v, ok := r.any(doc.Content[0], 0)
	if !ok {
		return nil, errors.New(r.problems[0].Message)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}

// recurring writes a recurring task, or a workflow.
func recurring(r *dts.RecurringTask, queue *dts.Retry) (*yaml.Node, error) {
	plain := &dts.RecurringTask{Schedule: dts.Schedule{Cron: r.Cron, IntervalSeconds: r.IntervalSeconds, RRule: r.RRule}, CatchUpMode: r.CatchUpMode}
	plain.Spec = scaffold(&r.Spec)
	if err := plain.Normalize(); err != nil {
		return nil, fmt.Errorf("%s: %w", r.Name, err)
	}
	n := mapping()
	return n, task(n, FieldsOf(r), FieldsOf(plain), &r.Spec, queue)
}

// onceNode writes a task that runs once.
func onceNode(t *dts.Task, queue *dts.Retry) (*yaml.Node, error) {
	plain := &dts.Task{Spec: scaffold(&t.Spec)}
	if err := plain.Spec.Normalize(); err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	n := mapping()
	return n, task(n, FieldsOfOnce(t), FieldsOfOnce(plain), &t.Spec, queue)
}

// scaffold is a spec that has only what the defaults of other fields follow from.
func scaffold(s *dts.Spec) dts.Spec {
	return dts.Spec{Name: s.Name, TargetType: s.TargetType, TargetConfig: s.TargetConfig, Delivery: s.Delivery, ConcurrencyKey: s.ConcurrencyKey}
}

// task writes the fields that are not as in plain.
func task(n *yaml.Node, have, plain []Field, s *dts.Spec, queue *dts.Retry) error {
	put(n, "name", text(s.Name))
	late, steps := mapping(), mapping() // what to run and when stand at the beginning, and what is long at the end
	for i, f := range have {
		same := bytes.Equal(f.Value, plain[i].Value)
		switch f.Name {
		case "name", "target_type":
		case "target_config":
			to := n
			if s.TargetType == dts.WorkflowRun {
				to = steps
			}
			if err := target(to, s); err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
		case "retry":
			if wanted := s.Retry; s.TargetType != dts.WorkflowRun && (queue == nil && !same || queue != nil && !bytes.Equal(canonical(normal(*queue)), f.Value)) {
				put(late, "retry", flow(value(canonical(short(wanted, s.Delivery)))))
			}
		case "labels":
			labels := maps.Clone(s.Labels)
			delete(labels, Label)
			if len(labels) > 0 {
				putAll(late, canonical(map[string]any{"labels": labels}))
			}
		case "cron":
			if !bytes.Equal(f.Value, []byte(`""`)) {
				put(n, "cron", expressions(f.Value))
			}
		case "interval_seconds", "rrule", "run_at":
			if string(f.Value) != "0" && string(f.Value) != `""` {
				putField(n, f)
			}
		case "delivery", "concurrency_key", "catch_up_mode":
			if string(f.Value) != `""` && f.Name != "" && !isDefault(f) {
				putField(late, f)
			}
		case "description", "time_zone", "start_time", "end_time":
			if !same {
				putField(n, f)
			}
		default:
			if !same {
				putField(late, f)
			}
		}
	}
	n.Content = slices.Concat(n.Content, late.Content, steps.Content)
	return nil
}

// isDefault is for the fields that others follow from, and that plain has in common with what is written.
func isDefault(f Field) bool {
	return slices.Contains([]string{`"AT_LEAST_ONCE"`, `"RUN_LATEST"`}, string(f.Value))
}

// normal is a retry with its defaults.
func normal(r dts.Retry) dts.Retry {
	s := dts.Spec{Retry: r, TargetType: dts.Command, TargetConfig: json.RawMessage(`{"argv":["a"]}`)}
	_ = s.Normalize() // what the server has is valid
	return s.Retry
}

// short is a retry without what would be the same by default. It is never empty.
func short(r dts.Retry, d dts.Delivery) dts.Retry {
	full := func(r dts.Retry) string {
		s := dts.Spec{Retry: r, Delivery: d, TargetType: dts.Command, TargetConfig: json.RawMessage(`{"argv":["a"]}`)}
		if s.Normalize() != nil {
			return ""
		}
		return string(canonical(s.Retry))
	}
	want := full(r)
	for _, drop := range []func(*dts.Retry){
		func(r *dts.Retry) { r.MaxDelayMS = 0 },
		func(r *dts.Retry) { r.BaseDelayMS = 0 },
		func(r *dts.Retry) { r.Backoff = "" },
	} {
		x := r
		if drop(&x); full(x) == want {
			r = x
		}
	}
	return r
}

// target writes what a task runs.
func target(n *yaml.Node, s *dts.Spec) error {
	switch s.TargetType {
	case dts.Command:
		t, err := s.Command()
		if err != nil {
			return err
		}
		if t.Shell != "" {
			put(n, "command", text(t.Shell))
		} else {
			put(n, "command", value(canonical(t.Argv)))
		}
		t.Argv, t.Shell = nil, ""
		putAll(n, canonical(t))
	case dts.HTTPCallback:
		t, err := s.HTTP()
		if err != nil {
			return err
		}
		put(n, "url", text(t.URL))
		m := map[string]any{}
		if err := json.Unmarshal(encode(t), &m); err != nil {
			return err
		}
		delete(m, "url")
		putAll(n, canonical(m))
	case dts.WorkflowRun:
		t, err := s.Workflow()
		if err != nil {
			return err
		}
		steps := list(false)
		for i := range t.Steps {
			step, err := stepNode(&t.Steps[i])
			if err != nil {
				return err
			}
			steps.Content = append(steps.Content, step)
		}
		put(n, "steps", steps)
	default:
		put(n, "target_type", text(string(s.TargetType)))
		putAll(n, canonical(map[string]any{"target_config": s.TargetConfig}))
	}
	return nil
}

// stepNode writes a step, which has no defaults filled in.
func stepNode(s *dts.Step) (*yaml.Node, error) {
	n := mapping()
	put(n, "name", text(s.Name))
	if err := target(n, &s.Spec); err != nil {
		return nil, err
	}
	rest := *s
	rest.Name = ""
	m := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(encode(rest)))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		return nil, err
	}
	delete(m, "target_type")
	delete(m, "target_config")
	putAll(n, encode(m))
	return n, nil
}

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
