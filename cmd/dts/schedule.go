package main

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"dts"
	"dts/sched/cron"
)

// scheduleWords says a schedule in English.
func scheduleWords(s *dts.Schedule) string {
	var d string
	var err error
	switch {
	case s.RRule != "":
		start := s.StartTime
		if loc, err := cron.LoadLocation(s.TimeZone); err == nil && !start.IsZero() {
			start = start.In(loc)
		}
		d, err = cron.DescribeRule(s.RRule, start)
	case s.Cron != "":
		d, err = cron.Describe(s.Cron)
	default:
		return cron.DescribeEvery(s.Interval())
	}
	if err != nil {
		return clean(cmp.Or(s.RRule, s.Cron))
	}
	return clean(d)
}

// scheduleText says a schedule in English, and its expressions: one that is short beside it, others below.
func (a *app) scheduleText(s *dts.Schedule) string {
	expressions := expressionsOf(s)
	text := scheduleWords(s)
	if len(expressions) == 1 && len(expressions[0]) <= 40 {
		return text + "  " + a.dim(expressions[0])
	}
	for _, e := range expressions {
		text += "\n" + a.dim(e)
	}
	return text
}

// expressionsOf returns a schedule's cron expressions or its rule, without blank lines; nothing for an interval.
func expressionsOf(s *dts.Schedule) []string {
	var list []string
	for line := range strings.SplitSeq(cmp.Or(s.Cron, s.RRule), "\n") {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, clean(line))
		}
	}
	return list
}

// shortSchedule is a schedule as it was given, for a table.
func shortSchedule(s *dts.Schedule) string {
	if list := expressionsOf(s); len(list) > 0 {
		return clip(strings.Join(list, "; "), 40)
	}
	return "every " + distance(s.Interval())
}

// zoneMatters reports whether the zone changes when a schedule fires. The days of calendars are those of the zone.
func zoneMatters(s *dts.Schedule) bool {
	if s.RRule != "" || len(s.ExcludeCalendars)+len(s.RequireCalendars) > 0 {
		return true
	}
	if s.Cron == "" || strings.HasPrefix(strings.ToLower(s.Cron), "@reboot") || strings.Contains(s.Cron, "TZ=") {
		return false
	}
	_, every := cron.IntervalOf(s.Cron)
	return !every
}

// compile makes the instants of a schedule, without its calendars; name is the seed of H and ~, and anchor where an
// interval or a rule begins that has no start_time. Of @reboot the error is cron.ErrReboot.
func compile(s *dts.Schedule, name string, anchor time.Time) (cron.Schedule, error) {
	loc, err := cron.LoadLocation(s.TimeZone)
	if err != nil {
		return nil, dts.Invalid("time_zone", "%s", err)
	}
	p := cron.Plan{Expr: s.Cron, Rule: s.RRule, Interval: s.Interval(), Anchor: anchor.In(loc), Start: s.StartTime, End: s.EndTime}
	c, err := p.Schedule(cron.Options{Location: loc, Seed: name, Gap: cron.GapPolicy(s.DSTGap), Overlap: cron.OverlapPolicy(s.DSTOverlap)})
	switch {
	case err == nil || errors.Is(err, cron.ErrReboot):
		return c, err
	case s.RRule != "":
		return nil, dts.Invalid("rrule", "%s", err)
	}
	return nil, dts.Invalid("cron", "%s", err)
}

// nextOf computes the next n instants of a schedule without its calendars, and what the changing of clocks does to
// them. The list is empty for @reboot. name and anchor are those of compile.
func nextOf(s *dts.Schedule, name string, anchor, now time.Time, n int) ([]dts.PreviewInstant, error) {
	c, err := compile(s, name, anchor)
	if errors.Is(err, cron.ErrReboot) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return withEffects(c, upTo(c, now, n), now), nil
}

// upTo returns the next n instants after a time.
func upTo(c cron.Schedule, after time.Time, n int) []time.Time {
	var list []time.Time
	for at := c.Next(after); !at.IsZero() && len(list) < n; at = c.Next(at) {
		list = append(list, at)
	}
	return list
}

// zoneOfTask is the zone in which the instants of a recurring task are shown and read: its own where that matters.
func (a *app) zoneOfTask(r *dts.RecurringTask) *time.Location {
	if loc, err := cron.LoadLocation(r.TimeZone); err == nil && zoneMatters(&r.Schedule) {
		return loc
	}
	return a.loc
}
