package ui

import (
	"strings"
	"time"

	"dts"
	"dts/sched/cron"
)

// describe says a schedule in words: "At 03:10 on Sunday". The zone is said beside it. What a rule leaves open is
// that of its start, or else of when it was created.
func describe(s dts.Schedule, created time.Time) string {
	loc, _ := zoneOf(s)
	given, describe := s.Cron, cron.Describe
	switch {
	case s.RRule != "":
		start := s.StartTime
		if start.IsZero() {
			start = created
		}
		given, describe = s.RRule, func(rule string) (string, error) { return cron.DescribeRule(rule, start.In(loc)) }
	case s.Cron == "":
		return cron.DescribeEvery(s.Interval())
	}
	text, err := describe(given)
	if err != nil {
		return given // it was accepted once, so show it as it is
	}
	return text
}

// zoneOf is the zone in which a schedule's times are read, and its name.
func zoneOf(s dts.Schedule) (*time.Location, string) {
	name := s.TimeZone
	if rest, ok := strings.CutPrefix(strings.TrimSpace(s.Cron), "CRON_TZ="); ok {
		name, _, _ = strings.Cut(rest, " ")
	} else if rest, ok := strings.CutPrefix(strings.TrimSpace(s.Cron), "TZ="); ok {
		name, _, _ = strings.Cut(rest, " ")
	}
	loc, err := cron.LoadLocation(name)
	if err != nil || name == "" || name == "Etc/UTC" { // the same by another name
		return time.UTC, "UTC"
	}
	return loc, name
}

// ahead is how many instants are shown before a schedule is saved.
const ahead = 5

// wallClock writes an instant as a clock on the wall of its zone shows it.
func wallClock(t time.Time) string { return t.Format("Mon 2 Jan 2006, 15:04:05 MST") }

// wallTime writes an instant like wallClock, without the day where that is the day of near.
func wallTime(t, near time.Time) string {
	if t.Format(time.DateOnly) == near.Format(time.DateOnly) {
		return t.Format("15:04:05 MST")
	}
	return wallClock(t)
}

// wallForms are how a browser writes a local date and time.
var wallForms = [...]string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02 15:04:05"}

// parseWall reads a date and time as a clock in loc shows it.
func parseWall(s string, loc *time.Location) (time.Time, bool) {
	for _, form := range wallForms {
		if t, err := time.ParseInLocation(form, s, loc); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
