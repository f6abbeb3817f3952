package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"dts"
	"dts/sched/cron"
)

// fieldErrors collects what is wrong with a request, to tell it all at once.
type fieldErrors struct {
	list []dts.FieldError
}

func (f *fieldErrors) add(field, format string, args ...any) {
	f.list = append(f.list, dts.FieldError{Field: field, Message: fmt.Sprintf(format, args...)})
}

func (f *fieldErrors) err() error {
	if len(f.list) == 0 {
		return nil
	}
	return &dts.Error{Code: dts.ErrInvalid, Message: "the request is not valid", Fields: f.list}
}

// names lists the fields that have an error.
func (f *fieldErrors) names() []string {
	var names []string
	for _, e := range f.list {
		names = append(names, e.Field)
	}
	return names
}

// has reports whether one of the fields has an error.
func (f *fieldErrors) has(fields ...string) bool {
	return slices.ContainsFunc(f.list, func(e dts.FieldError) bool { return slices.Contains(fields, e.Field) })
}

// merge adds the fields of err, a *dts.Error, but those in known: a second error about them would only be
// a consequence of the first.
func (f *fieldErrors) merge(err error, known []string) {
	e, ok := errors.AsType[*dts.Error](err)
	if !ok {
		if err != nil {
			f.add("", "%s", err)
		}
		return
	}
	for _, x := range e.Fields {
		if !slices.Contains(known, x.Field) {
			f.list = append(f.list, x)
		}
	}
}

// zone loads a time zone. It returns nil when none is given or it is not known.
func (f *fieldErrors) zone(field, name string) *time.Location {
	if name == "" {
		return nil
	}
	loc, err := cron.LoadLocation(name)
	if err != nil {
		f.add(field, "%s", err)
		return nil
	}
	return loc
}

// knownZone loads a time zone whose name was checked before. It returns nil as zone does.
func knownZone(name string) *time.Location {
	var checked fieldErrors
	return checked.zone("", name)
}

// time reads a time that may be left out.
func (f *fieldErrors) time(field string, t TimeText, loc *time.Location) time.Time {
	if t.Text == "" {
		return time.Time{}
	}
	at, local, err := parseTime(t.Text, loc)
	if err != nil && local && slices.Contains(f.names(), "time_zone") {
		return time.Time{} // the zone's error says enough
	}
	if err != nil {
		f.add(field, "%s", err)
	}
	return at
}

// patchTime is time for a patch: nil when it is left out, the zero time for null.
func (f *fieldErrors) patchTime(field string, t TimeText, loc *time.Location) *time.Time {
	if t.IsZero() {
		return nil
	}
	at := f.time(field, t, loc)
	return &at
}

// when reads run_at or delay; neither means now.
func (f *fieldErrors) when(runAt TimeText, delay Delay, loc *time.Location, now time.Time) time.Time {
	switch {
	case runAt.Text != "" && delay != "":
		f.add("delay", "cannot be set together with run_at; keep one")
	case delay != "":
		d, err := delay.Duration()
		if err != nil {
			f.add("delay", "%s", err)
			return now
		}
		return now.Add(d)
	case runAt.Text != "":
		return f.time("run_at", runAt, loc)
	}
	return now
}

// zoneUsed refuses a zone that changes nothing, because whoever gave it expected something of it.
func (f *fieldErrors) zoneUsed(field, zone string, times ...TimeText) {
	if zone == "" {
		return
	}
	for _, t := range times {
		if _, local, _ := parseTime(t.Text, time.UTC); local {
			return
		}
	}
	f.add(field, "is for a time without an offset, and there is none; leave it out, or write the time without an offset")
}

// target replaces the error that a target_config could not be decoded by all that is wrong with it.
func (f *fieldErrors) target(kind dts.TargetType, config json.RawMessage) {
	i := slices.IndexFunc(f.list, func(e dts.FieldError) bool { return e.Field == "target_config" })
	if i < 0 || len(config) == 0 {
		return
	}
	t := reflect.TypeFor[dts.HTTPTarget]()
	switch kind {
	case dts.Command:
		t = reflect.TypeFor[dts.CommandTarget]()
	case dts.WorkflowRun:
		t = reflect.TypeFor[dts.WorkflowTarget]()
	case dts.Backup:
		t = reflect.TypeFor[dts.BackupTarget]()
	case dts.Ping:
		t = reflect.TypeFor[dts.PingTarget]()
	}
	var x explainer
	x.value(config, t, "target_config")
	if len(x.list) > 0 {
		f.list = slices.Replace(f.list, i, i+1, x.list...)
	}
}

// inRange returns a time, or zero, that must be from 1970 to 100 years ahead.
func (f *fieldErrors) inRange(field string, at, now time.Time) time.Time {
	if !at.IsZero() && !dts.InRange(at, now) {
		f.add(field, "%s is out of range; use 1970 to 100 years ahead", at.Format(time.RFC3339))
	}
	return at
}

// inPast returns a time, or zero, that must have passed.
func (f *fieldErrors) inPast(field string, at, now time.Time) time.Time {
	if at.After(now) {
		f.add(field, "%s has not passed yet (it is %s now)", at.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
		return at
	}
	return f.inRange(field, at, now)
}

// order refuses a time that is before from, which its message calls by its name. Zero times are not looked at.
func (f *fieldErrors) order(field string, from, to time.Time) {
	if !from.IsZero() && !to.IsZero() && to.Before(from) {
		f.add(field, "%s is before from, %s", to.Format(time.RFC3339), from.Format(time.RFC3339))
	}
}

// schedule checks what dts.RecurringTask.Normalize, whose errors are known, cannot: the cron expressions or the rule,
// the zone, and whether the schedule has an instant at all from now on. The calendars are the scheduler's.
func (f *fieldErrors) schedule(s *dts.Schedule, name string, now time.Time) {
	loc := f.zone("time_zone", s.TimeZone)
	field := "cron"
	switch {
	case f.has("rrule", "dst_gap", "dst_overlap"):
		return
	case s.RRule != "":
		field = "rrule"
	case s.Cron == "" && s.IntervalSeconds < cron.MinInterval.Seconds():
		return // Normalize says so
	}
	c, err := planOf(s, now).Schedule(cron.Options{Location: loc, Seed: name, Gap: cron.GapPolicy(s.DSTGap), Overlap: cron.OverlapPolicy(s.DSTOverlap)})
	switch {
	case errors.Is(err, cron.ErrReboot):
	case err != nil:
		f.add(field, "%s", err)
	default:
		f.instants(c, s, now)
	}
}

func (f *fieldErrors) instants(c cron.Schedule, s *dts.Schedule, now time.Time) {
	from := now
	if s.StartTime.After(now) {
		from = s.StartTime
	}
	if c.Next(from.Add(-1)).IsZero() && !slices.Contains(f.names(), "end_time") {
		f.add("end_time", "the schedule has no instant from now, or from start_time, to then")
	}
}

// planOf is a schedule as the scheduler will plan it when it is saved now.
func planOf(s *dts.Schedule, now time.Time) cron.Plan {
	return cron.Plan{Expr: s.Cron, Rule: s.RRule, Interval: s.Interval(), Anchor: dts.Micros(now), Start: s.StartTime, End: s.EndTime}
}

// indexed is the prefix of the fields of one item of a list.
func indexed(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]." }

func containsFold(list []string, s string) bool {
	return slices.ContainsFunc(list, func(x string) bool { return strings.EqualFold(x, s) })
}
