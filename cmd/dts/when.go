package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"dts/sched/cron"
)

// localForms are the ways to write a date and a time of day without an offset.
var localForms = [...]string{"2006-01-02 15:04", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02T15:04:05"}

// clockForms are the ways to write a time of day.
var clockForms = [...]string{"15:04", "15:04:05"}

const whenHelp = `write it like 2026-03-01T08:00:00+01:00, "2026-03-01 08:00", 15:04 or "tomorrow 09:00"`

// parseWhen reads an instant: RFC 3339; a local date and time in loc; a time of day, which is the next one
// of that name; or `today` or `tomorrow` with a time of day. local reports whether loc mattered.
func parseWhen(text string, loc *time.Location, now time.Time) (at time.Time, local bool, err error) {
	s := strings.TrimSpace(text)
	if len(s) > 64 {
		return at, false, fmt.Errorf("is %d bytes long, which no time is; %s", len(s), whenHelp)
	}
	if at, err := time.Parse(time.RFC3339, strings.ToUpper(s)); err == nil {
		return at, false, nil
	}
	for _, form := range localForms {
		if wall, err := time.Parse(form, s); err == nil {
			at, err := resolveLocal(wall, loc)
			return at, true, err
		}
	}
	day, clock, ok := strings.Cut(strings.ToLower(s), " ")
	if !ok {
		day, clock = "", day
	}
	add := 0
	switch day {
	case "", "today":
	case "tomorrow":
		add = 1
	default:
		return at, false, fmt.Errorf("%q is not a time; %s", s, whenHelp)
	}
	for _, form := range clockForms {
		tod, err := time.Parse(form, strings.TrimSpace(clock))
		if err != nil {
			continue
		}
		y, m, d := now.In(loc).Date()
		wall := time.Date(y, m, d+add, tod.Hour(), tod.Minute(), tod.Second(), 0, time.UTC)
		at, err := resolveLocal(wall, loc)
		if day == "" && (err != nil || !at.After(now)) {
			at, err = resolveLocal(wall.AddDate(0, 0, 1), loc)
		}
		return at, true, err
	}
	return at, false, fmt.Errorf("%q is not a time; %s", s, whenHelp)
}

// parsePast reads an instant that is over, for a flag: what parseWhen reads, where a time of day is the last one of
// that name; `yesterday` with a time of day; or a duration, which is so long ago. Of a time that clocks are put forward over the end of
// that gap is meant: what was to run in it runs there.
func parsePast(flag, text string, loc *time.Location, now time.Time) (time.Time, error) {
	s := strings.ToLower(strings.TrimSpace(text))
	if d, err := parseSpan(flag, s, 1); err == nil {
		return now.Add(-d), nil
	}
	tod, yesterday := strings.CutPrefix(s, "yesterday ")
	for _, form := range clockForms {
		at, err := time.Parse(form, strings.TrimSpace(tod))
		if err != nil {
			continue
		}
		y, m, d := now.In(loc).Date()
		wall := time.Date(y, m, d, at.Hour(), at.Minute(), at.Second(), 0, time.UTC)
		if today, err := resolveLocal(wall, loc); err == nil && !yesterday && !today.After(now) {
			return today, nil
		}
		past, err := resolveLocal(wall.AddDate(0, 0, -1), loc)
		if gap, ok := errors.AsType[*gapError](err); ok {
			return gap.end, nil
		}
		return past, err
	}
	at, _, err := parseWhen(text, loc, now)
	if gap, ok := errors.AsType[*gapError](err); ok {
		return gap.end, nil
	}
	if err != nil {
		return at, usagef("%s: %s, or a duration such as 2h", flag, err)
	}
	return at, nil
}

// resolveLocal returns the first instant at which clocks in loc show wall, which is given in UTC. Where they
// were put forward over it there is none.
func resolveLocal(wall time.Time, loc *time.Location) (time.Time, error) {
	_, before := wall.Add(-36 * time.Hour).In(loc).Zone()
	_, after := wall.Add(36 * time.Hour).In(loc).Zone()
	for _, offset := range []int{max(before, after), min(before, after)} {
		at := wall.Add(-time.Duration(offset) * time.Second).In(loc)
		if _, there := at.Zone(); there == offset {
			return at, nil
		}
	}
	end, _ := wall.Add(-time.Duration(before) * time.Second).In(loc).ZoneBounds()
	return time.Time{}, &gapError{wall, loc, end}
}

// gapError says that a local time does not exist.
type gapError struct {
	wall time.Time // in UTC
	loc  *time.Location
	end  time.Time // when clocks were put forward over it
}

func (e *gapError) Error() string {
	return fmt.Sprintf("%s does not exist in %s: clocks are put forward over it; choose a time outside that gap, or give an offset",
		e.wall.Format("2006-01-02 15:04:05"), e.loc)
}

// parseSpan reads a duration for a flag: a Go duration, or weeks and days as in 2w, 1d12h and PT3H. low is
// the least that is allowed.
func parseSpan(flag, text string, low time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		if d, err = cron.ParseInterval(text); err != nil {
			if _, bad := strconv.ParseFloat(text, 64); bad == nil {
				return 0, usagef("%s: %q needs a unit: write %ss for seconds", flag, text, text)
			}
			return 0, usagef("%s: %q is not a duration; write it like 30s, 5m, 1h30m or 2d", flag, clip(text, 60))
		}
	}
	if d < low || d == math.MaxInt64 {
		return 0, usagef("%s: %s is too short; the least is %s", flag, text, span(low))
	}
	return d, nil
}
