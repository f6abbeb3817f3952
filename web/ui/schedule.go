package ui

import (
	"errors"
	"strings"
	"time"

	"dts"
	"dts/sched/cron"
)

// describe says a schedule in words: "At 03:10 on Sunday". The zone is said beside it.
func describe(s dts.Schedule) string {
	if s.Cron == "" {
		return cron.DescribeEvery(s.Interval())
	}
	text, err := cron.Describe(s.Cron)
	if err != nil {
		return s.Cron // it was accepted once, so show it as it is
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
	if err != nil || name == "" {
		return time.UTC, "UTC"
	}
	return loc, name
}

// ahead is how many instants are shown before a schedule is saved.
const ahead = 5

// instants returns the next instants of a schedule after now, at most ahead of them. The seed is what
// fixes the H and ~ of the expression. An error is about the cron expression or the zone, as a field error.
func instants(s dts.Schedule, seed string, now time.Time) ([]time.Time, error) {
	loc, err := cron.LoadLocation(s.TimeZone)
	if err != nil {
		return nil, dts.Invalid("time_zone", "%s", err)
	}
	plan, err := planOf(s, seed, loc, now)
	if errors.Is(err, cron.ErrReboot) {
		return nil, nil
	}
	if err != nil {
		return nil, dts.Invalid("cron", "%s", err)
	}
	var list []time.Time
	for at := now; len(list) < ahead; {
		if at = plan.Next(at); at.IsZero() {
			break
		}
		list = append(list, at)
	}
	if len(list) == 0 {
		return nil, dts.Invalid("cron", "never fires again after now")
	}
	return list, nil
}

func planOf(s dts.Schedule, seed string, loc *time.Location, now time.Time) (cron.Schedule, error) {
	plan := cron.Plan{Expr: s.Cron, Interval: s.Interval(), Anchor: now} // an interval counts from when it is saved
	return plan.Schedule(cron.Options{Location: loc, Seed: seed})
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
