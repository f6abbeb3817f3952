package ui

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"dts"
	"dts/sched/cron"
)

// What the form calls the four ways to say when.
const (
	whenCron  = "cron"
	whenEvery = "every"
	whenRule  = "rule"
	whenOnce  = "once"
)

// timing is the part of the form that says when, as text.
type timing struct {
	When                        string
	Cron, Every, Rule, At, Zone string

	// The rest is for recurring tasks alone.
	Gap, Twice          string // a dts.DSTGap and a dts.DSTOverlap
	Start, End          string // wall-clock times in the zone
	MaxRuns, Jitter     string
	Exclude, Require    []string
	Shift               string // a dts.CalendarShift
	Missed              string // a dts.CatchUpMode
	MissedAfter, Window string
	Limit, Pacing       string
	Overlap             string // a dts.OverlapPolicy
	Outage              string `json:"-"` // of the preview: how long the server is imagined to have been down
	Count               string `json:"-"` // of the preview: how many instants
}

func readTiming(v url.Values) timing {
	one := func(k string) string { return strings.TrimSpace(v.Get(k)) }
	many := func(k string) []string {
		list := slices.DeleteFunc(slices.Clone(v[k]), func(s string) bool { return s == "" })
		return list[:min(len(list), dts.MaxCalendarsUsed+1)]
	}
	return timing{
		When: one("when"), Cron: lines(one("cron")), Every: one("every"), Rule: lines(one("rule")), At: one("at"), Zone: one("zone"),
		Gap: one("gap"), Twice: one("twice"), Start: one("start"), End: one("end"), MaxRuns: one("max_runs"), Jitter: one("jitter"),
		Exclude: many("exclude"), Require: many("require"), Shift: one("shift"),
		Missed: one("missed"), MissedAfter: one("missed_after"), Window: one("window"), Limit: one("limit"), Pacing: one("pacing"),
		Overlap: one("overlap"), Outage: one("outage"), Count: one("count"),
	}
}

// recurring reports whether the form describes a recurring task.
func (f timing) recurring() bool { return f.When != whenOnce }

// empty reports whether nothing says yet when a recurring task runs.
func (f timing) empty() bool {
	switch f.When {
	case whenEvery:
		return f.Every == ""
	case whenRule:
		return f.Rule == ""
	case whenOnce:
		return false
	default:
		return f.Cron == ""
	}
}

// Extras reports whether something is set that most recurring tasks leave as it is.
func (f timing) Extras() bool {
	for _, s := range [...]string{f.Gap, f.Twice, f.Start, f.End, f.MaxRuns, f.Jitter, f.Shift, f.MissedAfter, f.Window,
		f.Limit, f.Pacing, f.Outage} {
		if s != "" {
			return true
		}
	}
	return len(f.Exclude)+len(f.Require) > 0 ||
		f.Missed != "" && f.Missed != string(dts.RunLatest) || f.Overlap != "" && f.Overlap != string(dts.OverlapAllow)
}

// extraInputs are the inputs that are hidden until they are asked for, unless one of them is wrong.
var extraInputs = [...]string{"gap", "twice", "start", "end", "max_runs", "jitter", "exclude", "require", "shift", "missed",
	"missed_after", "window", "limit", "pacing", "overlap"}

// Extras reports whether one of the inputs that are hidden at first is wrong.
func (e formErrors) Extras() bool {
	return slices.ContainsFunc(extraInputs[:], func(input string) bool { return e[input] != "" })
}

// rules reads when a recurring task runs, and what becomes of the instants that it cannot keep.
func (f timing) rules(e formErrors) dts.RecurringTask {
	var r dts.RecurringTask
	r.Schedule = f.schedule(e)
	r.OverlapPolicy = dts.OverlapPolicy(f.Overlap)
	r.CatchUpMode = dts.CatchUpMode(f.Missed)
	r.MisfireAfterSeconds = e.interval("missed_after", f.MissedAfter)
	if r.CatchUpMode != dts.SkipMissed {
		r.CatchUpWindowSeconds = e.interval("window", f.Window)
	}
	if r.CatchUpMode == dts.RunAllMissed {
		r.CatchUpLimit = int(e.number("limit", f.Limit))
		r.CatchUpPacingSeconds = e.interval("pacing", f.Pacing)
	}
	return r
}

// schedule reads when a recurring task runs.
func (f timing) schedule(e formErrors) dts.Schedule {
	s := dts.Schedule{TimeZone: f.Zone, DSTGap: dts.DSTGap(f.Gap), DSTOverlap: dts.DSTOverlap(f.Twice),
		ExcludeCalendars: f.Exclude, RequireCalendars: f.Require, CalendarShift: dts.CalendarShift(f.Shift)}
	switch f.When {
	case whenEvery:
		if s.IntervalSeconds = e.interval("every", f.Every); f.Every == "" {
			e.add("every", "Enter an interval, such as 90s, 15m, 1h30m or 1d")
		}
	case whenRule:
		if s.RRule = f.Rule; f.Rule == "" {
			e.add("rule", "Enter a rule, such as FREQ=MONTHLY;BYDAY=2TU")
		}
	default:
		if s.Cron = f.Cron; f.Cron == "" {
			e.add("cron", "Enter a cron expression, such as */5 * * * *")
		}
	}
	if f.Shift != "" && len(f.Exclude)+len(f.Require) == 0 {
		e.add("shift", "Choose a calendar too: this moves the runs that it excludes")
	}
	s.MaxRuns = e.number("max_runs", f.MaxRuns)
	s.JitterSeconds = e.interval("jitter", f.Jitter)
	if f.Start == "" && f.End == "" {
		return s
	}
	loc, _ := zoneOf(s) // that the zone is wrong is told of the zone
	s.StartTime = e.wall("start", f.Start, loc)
	s.EndTime = e.wall("end", f.End, loc)
	return s
}

// runAt reads when a one-time task runs; empty means now.
func (f timing) runAt(e formErrors, now time.Time) time.Time {
	loc, err := cron.LoadLocation(f.Zone)
	if err != nil {
		e.add("zone", sentence("", err.Error()))
		return now
	}
	if f.At == "" {
		return now
	}
	if at := e.wall("at", f.At, loc); !at.IsZero() {
		return at
	}
	return now
}

// interval reads a length of time in seconds; empty is 0.
func (e formErrors) interval(input, s string) float64 {
	if s == "" {
		return 0
	}
	d, err := cron.ParseInterval(s)
	if err != nil {
		e.add(input, sentence("", err.Error()))
	}
	return d.Seconds()
}

// number reads a number of runs; empty is 0.
func (e formErrors) number(input, s string) int64 {
	if s == "" {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 1 {
		e.add(input, "Enter a whole number of at least 1, or nothing")
		return 0
	}
	return n
}

// wall reads a date and time as a clock in loc shows it; empty is zero.
func (e formErrors) wall(input, s string, loc *time.Location) time.Time {
	if s == "" {
		return time.Time{}
	}
	at, ok := parseWall(s, loc)
	if !ok {
		e.add(input, "The time must be a date and time such as 2030-01-31T08:00")
	}
	return at
}

// choice is one entry of a list to choose from.
type choice struct{ Key, Text string }

// GapChoices and the other methods like it are the lists of the form. The first of each is what happens if nothing
// is said.
func (timing) GapChoices() []choice {
	return []choice{{"", "Run right after the gap"}, {string(dts.GapSkip), "Do not run on that day"}}
}

func (timing) TwiceChoices() []choice {
	return []choice{{"", "Run the first time; both times if its minute or hour begins with *"}, {string(dts.OverlapFirst), "Run the first time"},
		{string(dts.OverlapSecond), "Run the second time"}, {string(dts.OverlapBoth), "Run both times"}}
}

func (timing) ShiftChoices() []choice {
	return []choice{{"", "Is left out"}, {string(dts.ShiftNext), "Moves to the next business day"},
		{string(dts.ShiftPrevious), "Moves to the business day before"}}
}

func (timing) MissedChoices() []choice {
	return []choice{{"", "Make up for the newest one"}, {string(dts.RunOneNow), "Make up for all of them with one run at once"},
		{string(dts.RunAllMissed), "Make up for each of them, one after another"}, {string(dts.SkipMissed), "Skip all of them"}}
}

func (timing) OverlapChoices() []choice {
	return []choice{{"", "Run both side by side"}, {string(dts.OverlapSkip), "Skip the new run"},
		{string(dts.OverlapBufferOne), "Let one wait, skip those after"}, {string(dts.OverlapBufferAll), "Let them wait, run one after another"},
		{string(dts.OverlapCancel), "Stop the old run"}}
}

func (timing) OutageChoices() []choice {
	return []choice{{"", "Do not show"}, {"1h", "1 hour"}, {"1d", "1 day"}, {"7d", "7 days"}}
}
