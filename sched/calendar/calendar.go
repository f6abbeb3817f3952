// Package calendar makes definitions of calendars and blackouts answerable: which windows of time do they cover?
//
// It promises that Compile refuses what it cannot mean, naming the field and what would be right; that nothing in
// it reads a clock or does I/O; and that a question about a year costs milliseconds at most, the next one about the
// same year microseconds. Everything is safe for concurrent use.
//
// The rules:
//   - A day is a day on the wall clock of the zone that the question names. It begins at its first instant, which
//     is 01:00 where the clock skips midnight.
//   - Windows by time, and events with a time of day, are absolute: they are the same in every zone.
//   - A public holiday that is moved because it falls on a weekend covers both the day itself and the day off.
//   - An event counts whether or not it is marked as busy (TRANSP): exports of holidays are mostly marked as free.
//     A cancelled one does not count, and one that takes no time covers nothing.
package calendar

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"dts"
	"dts/sched/cron"
)

// Limits that Compile holds a definition to, beside those of package dts.
const (
	MaxWindowsAYear = 10_000 // of recurring windows and events together
	MaxEvents       = 10_000 // in an iCalendar file
	MaxRecurring    = 1_000  // of these, those that recur

	maxDuration = 31 * 24 * time.Hour // of a window by cron
)

// Calendar is a compiled dts.Calendar.
type Calendar struct {
	name       string
	loc        *time.Location // of windows by cron and of local times
	days       []days
	weekdays   weekdays
	fixed      []Window
	recurring  []recurring
	events     events
	holidays   *holidays
	weekend    weekdays
	ownWeekend bool

	mu     sync.Mutex
	cache  map[chunkKey][]Window
	cached int // windows in cache
}

// recurring is a window that begins at each instant of a schedule.
type recurring struct {
	schedule cron.Schedule
	duration time.Duration
	name     string
}

// Compile checks a definition and makes it answerable. Its error is a *dts.Error that names all the wrong fields.
func Compile(def *dts.Calendar) (*Calendar, error) {
	var bad problems
	c := &Calendar{name: def.Name, cache: map[chunkKey][]Window{}}
	loc, err := cron.LoadLocation(def.TimeZone)
	if err != nil {
		bad.add("time_zone", "%s", err)
		loc = time.UTC
	}
	c.loc = loc
	c.days = compileDays("days", def.Days, &bad)
	c.weekdays = compileWeekdays("weekdays", def.Weekdays, &bad)
	for i, w := range def.Windows {
		c.addWindow(fmt.Sprintf("windows[%d].", i), w, def.Name, &bad)
	}
	slices.SortStableFunc(c.fixed, func(a, b Window) int { return a.From.Compare(b.From) })
	c.holidays = compileHolidays(def.Holidays, &bad)
	c.weekend = 1<<time.Saturday | 1<<time.Sunday
	if len(def.Weekend) > 0 {
		c.weekend, c.ownWeekend = compileWeekdays("weekend", def.Weekend, &bad), true
		if c.weekend == everyWeekday {
			bad.add("weekend", "leaves no business day; name at most six weekdays")
		}
	}
	if def.ICS != "" {
		if c.events, err = readICS(def.ICS, loc, c.name); err != nil {
			bad.add("ics", "%s", err)
		}
	}
	if len(bad) == 0 {
		c.checkRate(&bad)
	}
	if len(bad) > 0 {
		return nil, &dts.Error{Code: dts.ErrInvalid, Message: "the calendar is not valid", Fields: bad}
	}
	return c, nil
}

// Name returns the calendar's name.
func (c *Calendar) Name() string { return c.name }

// WeekendDay reports whether a weekday is never a business day.
func (c *Calendar) WeekendDay(d time.Weekday) bool { return c.weekend.has(d) }

// OwnWeekend reports whether the definition names its weekend; otherwise it is Saturday and Sunday.
func (c *Calendar) OwnWeekend() bool { return c.ownWeekend }

// problems are the fields that are wrong.
type problems []dts.FieldError

func (p *problems) add(field, format string, args ...any) {
	*p = append(*p, dts.FieldError{Field: field, Message: fmt.Sprintf(format, args...)})
}

func compileDays(field string, list []string, bad *problems) []days {
	out := make([]days, 0, len(list))
	for i, s := range list {
		d, err := parseDays(s)
		if err != nil {
			bad.add(fmt.Sprintf("%s[%d]", field, i), "%s", err)
			continue
		}
		out = append(out, d)
	}
	return out
}

func compileWeekdays(field string, list []string, bad *problems) weekdays {
	set, i, err := parseWeekdays(list)
	if err != nil {
		bad.add(fmt.Sprintf("%s[%d]", field, i), "%s", err)
	}
	return set
}

// addWindow compiles a window. Prefix is that of its fields' names.
func (c *Calendar) addWindow(prefix string, w dts.Window, seed string, bad *problems) {
	switch {
	case w.Cron == "" && w.DurationSeconds != 0:
		bad.add(prefix+"cron", "is missing: duration_seconds needs the cron expression that it begins at")
	case w.Cron == "" && (w.Start.IsZero() || w.End.IsZero()):
		field := "start_time"
		if !w.Start.IsZero() {
			field = "end_time"
		}
		bad.add(prefix+field, "is missing; give start_time and end_time, or cron and duration_seconds")
	case w.Cron != "" && !(w.Start.IsZero() && w.End.IsZero()):
		bad.add(prefix+"cron", "cannot be set together with start_time or end_time; make two windows")
	case w.Cron == "" && !w.Start.Before(w.End):
		bad.add(prefix+"end_time", "%s is not after start_time, %s", w.End.Format(time.RFC3339), w.Start.Format(time.RFC3339))
	case w.Cron == "":
		name := w.Start.UTC().Format(time.RFC3339) + "/" + w.End.UTC().Format(time.RFC3339)
		c.fixed = append(c.fixed, Window{From: w.Start.UTC(), To: w.End.UTC(), Name: name, Calendar: c.name})
	default:
		d := time.Duration(math.Round(w.DurationSeconds * float64(time.Second)))
		if !(w.DurationSeconds > 0) || w.DurationSeconds > maxDuration.Seconds() || d < time.Microsecond {
			bad.add(prefix+"duration_seconds", "%.10g must be more than 0 and at most %d, which is 31 days", w.DurationSeconds, int(maxDuration.Seconds()))
		}
		s, err := cron.Parse(w.Cron, cron.Options{Location: c.loc, Seed: seed})
		if _, interval := cron.IntervalOf(w.Cron); interval {
			err = errors.New("an interval does not say when it begins; use fields, such as 0 */4 * * *")
		} else if errors.Is(err, cron.ErrReboot) {
			err = errors.New("@reboot has no time; use fields, such as 30 1 * * SUN")
		}
		if err != nil {
			bad.add(prefix+"cron", "%s", err)
			return
		}
		c.recurring = append(c.recurring, recurring{s, d, w.Cron})
	}
}

// checkRate refuses more recurring windows in a year than may be asked about at once.
func (c *Calendar) checkRate(bad *problems) {
	total := int64(0)
	leap := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, r := range c.recurring {
		if total += r.schedule.Count(leap.Add(-1), leap.AddDate(1, 0, 0)); total > MaxWindowsAYear {
			bad.add(fmt.Sprintf("windows[%d].cron", i), "makes more than %d windows a year, the limit; use fewer and longer ones", MaxWindowsAYear)
			return
		}
	}
	if line, over := c.events.exceeds(MaxWindowsAYear - total); over {
		bad.add("ics", "line %d: the events recur more than %d times a year, the limit; use fewer and longer ones", line, MaxWindowsAYear)
	}
}
