package taskfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"dts"
	"dts/web/api"
)

// Field is a part of a definition, under the API's name, with its default where nothing else was said. Its value is JSON in one
// form: what is equal has equal bytes.
type Field struct {
	Name  string
	Value json.RawMessage
}

// Difference is a field that has another value than a file says.
type Difference struct {
	Field    string
	Old, New json.RawMessage
}

// FieldsOf lists what a file can say of a recurring task that Normalize has accepted, in the order of a file. What the server
// keeps about it (states, counts, who made it) is no part of it.
func FieldsOf(r *dts.RecurringTask) []Field {
	return slices.Concat(specFields(&r.Spec), fields(
		"cron", lines(r.Cron), "interval_seconds", r.IntervalSeconds, "rrule", strings.TrimSpace(r.RRule),
		"time_zone", cmp.Or(r.TimeZone, "UTC"), "start_time", instant(r.StartTime), "end_time", instant(r.EndTime), "max_runs", r.MaxRuns,
		"dst_gap", cmp.Or(r.DSTGap, dts.GapRunAfter), "dst_overlap", r.DSTOverlap, "jitter_seconds", r.JitterSeconds,
		"exclude_calendars", append([]string{}, r.ExcludeCalendars...), "require_calendars", append([]string{}, r.RequireCalendars...),
		"calendar_shift", r.CalendarShift, "overlap_policy", r.OverlapPolicy, "catch_up_mode", r.CatchUpMode,
		"misfire_after_seconds", r.MisfireAfterSeconds, "catch_up_window_seconds", r.CatchUpWindowSeconds,
		"catch_up_limit", r.CatchUpLimit, "catch_up_pacing_seconds", r.CatchUpPacingSeconds))
}

// FieldsOfOnce lists what a file can say of a task that runs once.
func FieldsOfOnce(t *dts.Task) []Field {
	return slices.Concat(specFields(&t.Spec), fields("run_at", instant(t.DueAt), "expires_at", instant(t.ExpiresAt)))
}

func specFields(s *dts.Spec) []Field {
	resources := dts.Resources{}
	if s.Resources != nil {
		resources = *s.Resources
	}
	labels := s.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	return fields("name", s.Name, "description", s.Description, "labels", labels, "target_type", s.TargetType, "target_config", targetOf(s),
		"queue", s.Queue, "priority", s.Priority, "delivery", s.Delivery, "retry", s.Retry, "timeout_seconds", s.TimeoutSeconds,
		"sla_seconds", s.SLASeconds, "concurrency_key", s.ConcurrencyKey, "concurrency_limit", s.ConcurrencyLimit,
		"preemptible", s.Preemptible, "resources", resources, "warn_late_seconds", s.WarnLateSeconds,
		"warn_longer_seconds", s.WarnLongerSeconds, "warn_shorter_seconds", s.WarnShorterSeconds)
}

// targetOf is a target_config in the one form that equal ones have.
func targetOf(s *dts.Spec) any {
	var into any
	switch s.TargetType {
	case dts.HTTPCallback:
		into = &dts.HTTPTarget{}
	case dts.Command:
		into = &dts.CommandTarget{}
	case dts.WorkflowRun:
		into = &dts.WorkflowTarget{}
	default:
		return s.TargetConfig
	}
	if json.Unmarshal(s.TargetConfig, into) != nil {
		return s.TargetConfig
	}
	if w, ok := into.(*dts.WorkflowTarget); ok {
		for i := range w.Steps {
			step := &w.Steps[i]
			step.TargetConfig = canonical(targetOf(&step.Spec))
		}
	}
	return into
}

// lines are cron expressions, one a line, without what does not matter.
func lines(text string) string {
	var list []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return strings.Join(list, "\n")
}

// instant is a time as a patch has it: null for none.
func instant(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// fields makes a list of names and values.
func fields(pairs ...any) []Field {
	list := make([]Field, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, Field{pairs[i].(string), canonical(pairs[i+1])})
	}
	return list
}

// canonical is the JSON of a value, with the members of objects in order.
func canonical(v any) json.RawMessage {
	b := encode(v)
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var plain any
	if d.Decode(&plain) != nil {
		return b
	}
	return encode(plain)
}

// Compare lists the fields of want that have is different in. Both have the same fields in the same order.
func Compare(have, want []Field) []Difference {
	var list []Difference
	for i, w := range want {
		if h := have[i]; !bytes.Equal(h.Value, w.Value) {
			list = append(list, Difference{w.Name, h.Value, w.Value})
		}
	}
	return list
}

// Patch makes the patch that makes the differences, apart from those that no patch can make: see Fixed.
func Patch(differences []Difference) (api.RecurringPatch, error) {
	var p api.RecurringPatch
	return p, patch(differences, &p)
}

// PatchOnce is Patch for a task that runs once.
func PatchOnce(differences []Difference) (api.TaskPatch, error) {
	var p api.TaskPatch
	return p, patch(differences, &p)
}

// Fixed reports whether one of the differences is in a field that cannot be changed.
func Fixed(differences []Difference) bool {
	return slices.ContainsFunc(differences, func(d Difference) bool { return d.Field == "delivery" })
}

// Reschedules reports whether one of the differences is in when a recurring task runs.
func Reschedules(differences []Difference) bool {
	return slices.ContainsFunc(differences, func(d Difference) bool {
		return slices.Contains([]string{"cron", "interval_seconds", "rrule", "time_zone", "start_time", "end_time", "max_runs"}, d.Field)
	})
}

func patch(differences []Difference, p any) error {
	m := map[string]json.RawMessage{}
	for _, d := range differences {
		switch d.Field {
		case "cron", "interval_seconds", "rrule":
			if string(d.New) == `""` || string(d.New) == "0" {
				continue // another of them takes its place
			}
		}
		m[d.Field] = d.New
	}
	d := json.NewDecoder(bytes.NewReader(encode(m)))
	d.DisallowUnknownFields()
	return d.Decode(p)
}

// FieldsOfQueue lists the settings of a queue.
func FieldsOfQueue(q *dts.Queue) []Field {
	return formFields(reflect.TypeFor[api.QueueRequest](), api.QueueRequest{Concurrency: q.Concurrency, Rate: q.Rate,
		PeriodSeconds: api.Interval(q.PeriodSeconds), Burst: q.Burst, Retry: q.Retry, Retention: q.Retention})
}

// FieldsOfCalendar lists what a calendar is made of.
func FieldsOfCalendar(c *dts.Calendar) []Field {
	return formFields(reflect.TypeFor[calendarForm](), CalendarRequest(c))
}

// CalendarRequest is the request that makes a calendar.
func CalendarRequest(c *dts.Calendar) api.CalendarRequest {
	q := api.CalendarRequest{Name: c.Name, Description: c.Description, TimeZone: c.TimeZone, Days: c.Days, Weekdays: c.Weekdays,
		ICS: c.ICS, Holidays: c.Holidays, Weekend: c.Weekend}
	for _, w := range c.Windows {
		x := api.WindowRequest{Cron: w.Cron, DurationSeconds: api.Interval(w.DurationSeconds)}
		if !w.Start.IsZero() {
			x.StartTime = api.At(w.Start)
		}
		if !w.End.IsZero() {
			x.EndTime = api.At(w.End)
		}
		q.Windows = append(q.Windows, x)
	}
	return q
}

// formFields lists the fields that a request has, null where it leaves one out.
func formFields(form reflect.Type, request any) []Field {
	m := map[string]json.RawMessage{}
	if err := json.Unmarshal(encode(request), &m); err != nil {
		panic("taskfile: " + err.Error()) // of what was just encoded
	}
	var list []Field
	for _, f := range fieldsOf(form) {
		value := m[f.name]
		if value == nil {
			value = json.RawMessage("null")
		}
		list = append(list, Field{f.name, canonical(value)})
	}
	return list
}
