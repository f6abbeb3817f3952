package taskfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

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
	if len(tasks.Content)+len(workflows.Content) == 0 {
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
	return forYAML(b.Bytes()), err
}

// forYAML escapes what may stand in JSON as it is and not in YAML, which takes NEL for the end of a line, and refuses other
// characters that cannot be seen. In JSON such characters are in texts only.
func forYAML(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for _, c := range string(b) {
		if c >= 0x7f && c < 0xa0 || c == '\ufeff' || c == '\ufffe' || c == '\uffff' {
			out = fmt.Appendf(out, `\u%04x`, c)
		} else {
			out = utf8.AppendRune(out, c)
		}
	}
	return out
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
