// Package timetable says when a schedule with calendars runs, which of its instants the calendars take out, and why.
//
// It promises that a [Table] is a [cron.Schedule] of the instants that run: the schedule's own, less those that
// calendars exclude, plus those that excluded ones were moved to. Every one of the schedule's own instants is
// therefore either one that runs or one that [Table.Excluded] tells of, and none runs twice. What a question costs
// depends on the windows of the calendars, not on the instants in them: a year of seconds takes milliseconds. Nothing
// reads a clock or does I/O, and everything is safe for concurrent use.
//
// DESIGN.md in this directory says why it is as it is.
package timetable

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"dts"
	"dts/sched/calendar"
	"dts/sched/cron"
)

// Options is what Compile needs beside the schedule. Its zero value works for one without calendars.
type Options struct {
	Seed      string                        // fixes what H and ~ choose: a name that does not change
	Anchor    time.Time                     // of a fixed interval or a rule without a start_time
	Calendars map[string]*calendar.Calendar // by name; those that the schedule names must be there
}

// Table is a compiled dts.Schedule.
type Table struct {
	base cron.Schedule
	loc  *time.Location
	what string // the schedule in English, without calendars

	start, end       time.Time
	exclude, require []*calendar.Calendar
	shift            dts.CalendarShift
	weekend          [7]bool

	mu     sync.Mutex
	closed map[int][]calendar.Window // by year in UTC
	raw    map[int][]move            // by year in loc
	moved  map[int][]move            // the same, decided
}

// Compile makes the table of a schedule. Its error is a *dts.Error that names the field; for @reboot it is
// [cron.ErrReboot].
func Compile(s *dts.Schedule, o Options) (*Table, error) {
	loc, err := cron.LoadLocation(s.TimeZone)
	if err != nil {
		return nil, dts.Invalid("time_zone", "%s", err)
	}
	t := &Table{
		loc: loc, start: s.StartTime, end: s.EndTime, shift: s.CalendarShift,
		closed: map[int][]calendar.Window{}, raw: map[int][]move{}, moved: map[int][]move{},
	}
	if err := t.compileBase(s, o); err != nil {
		return nil, err
	}
	if t.exclude, err = named("exclude_calendars", s.ExcludeCalendars, o.Calendars); err != nil {
		return nil, err
	}
	if t.require, err = named("require_calendars", s.RequireCalendars, o.Calendars); err != nil {
		return nil, err
	}
	t.weekend = weekendOf(slices.Concat(t.exclude, t.require))
	return t, nil
}

func (t *Table) compileBase(s *dts.Schedule, o Options) error {
	plan := cron.Plan{Expr: s.Cron, Interval: s.Interval(), Anchor: o.Anchor, Start: s.StartTime, End: s.EndTime, Rule: s.RRule}
	base, err := plan.Schedule(cron.Options{
		Location: t.loc, Seed: o.Seed, Gap: cron.GapPolicy(s.DSTGap), Overlap: cron.OverlapPolicy(s.DSTOverlap),
	})
	switch {
	case errors.Is(err, cron.ErrReboot):
		return cron.ErrReboot
	case err != nil && s.RRule != "":
		return dts.Invalid("rrule", "%s", err)
	case err != nil && s.Cron == "":
		return dts.Invalid("interval_seconds", "%s", err)
	case err != nil:
		return dts.Invalid("cron", "%s", err)
	}
	t.base = base
	switch {
	case s.RRule != "":
		start := s.StartTime
		if start.IsZero() {
			start = o.Anchor
		}
		if t.what, err = cron.DescribeRule(s.RRule, start.In(t.loc)); err != nil {
			return dts.Invalid("rrule", "%s", err)
		}
		return nil
	case s.Cron == "":
		t.what = cron.DescribeEvery(s.Interval())
		return nil
	}
	if t.what, err = cron.Describe(s.Cron); err != nil {
		return dts.Invalid("cron", "%s", err)
	}
	if _, interval := cron.IntervalOf(s.Cron); !interval {
		if first := base.Next(s.StartTime.Add(-1)); !first.IsZero() {
			t.loc = first.Location() // CRON_TZ= in the expression counts before time_zone
		}
	}
	return nil
}

func named(field string, names []string, known map[string]*calendar.Calendar) ([]*calendar.Calendar, error) {
	var list []*calendar.Calendar
	for i, name := range names {
		c := known[name]
		if c == nil {
			return nil, dts.Invalid(fmt.Sprintf("%s[%d]", field, i), "%.64q does not exist; make the calendar first, or name another", name)
		}
		list = append(list, c)
	}
	return list, nil
}

// weekendOf returns the days that are never business days: those that a calendar names itself, or else Saturday and
// Sunday.
func weekendOf(list []*calendar.Calendar) (days [7]bool) {
	own := slices.ContainsFunc(list, (*calendar.Calendar).OwnWeekend)
	days[time.Saturday], days[time.Sunday] = !own, !own
	for _, c := range list {
		for d := range days {
			days[d] = days[d] || c.OwnWeekend() && c.WeekendDay(time.Weekday(d))
		}
	}
	return days
}

// Location returns the zone whose clock the schedule follows.
func (t *Table) Location() *time.Location { return t.loc }

// Describe says the schedule in English, with what its calendars do: "At 09:00, not in holidays-de; then on the next
// business day".
func (t *Table) Describe() string {
	s := t.what
	if len(t.require) > 0 {
		s += ", only in " + join(t.require, " or ")
	}
	if len(t.exclude) > 0 {
		s += ", not in " + join(t.exclude, " or ")
	}
	if !t.plain() {
		switch t.shift {
		case dts.ShiftNext:
			s += "; then on the next business day"
		case dts.ShiftPrevious:
			s += "; then on the business day before"
		}
	}
	return s
}

func join(list []*calendar.Calendar, word string) string {
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = c.Name()
	}
	return strings.Join(names, word)
}

// plain reports whether no calendar has a say.
func (t *Table) plain() bool { return len(t.exclude) == 0 && len(t.require) == 0 }
