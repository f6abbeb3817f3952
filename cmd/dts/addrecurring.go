package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"dts"
	"dts/sched/cron"
	"dts/web/api"
)

// The words for the choices that a recurring task has.
var (
	catchUpWords = map[string]dts.CatchUpMode{
		"latest": dts.RunLatest, "one-now": dts.RunOneNow, "all": dts.RunAllMissed, "skip": dts.SkipMissed,
	}
	overlapWords = map[string]dts.OverlapPolicy{
		"allow": dts.OverlapAllow, "skip": dts.OverlapSkip, "buffer-one": dts.OverlapBufferOne,
		"buffer-all": dts.OverlapBufferAll, "cancel": dts.OverlapCancel,
	}
	gapWords        = map[string]dts.DSTGap{"run-after": dts.GapRunAfter, "skip": dts.GapSkip}
	dstOverlapWords = map[string]dts.DSTOverlap{"first": dts.OverlapFirst, "second": dts.OverlapSecond, "both": dts.OverlapBoth}
	shiftWords      = map[string]dts.CalendarShift{"next": dts.ShiftNext, "previous": dts.ShiftPrevious}
)

const catchUpUsage = "of what an outage made it miss, `M`: latest runs the newest instant, one-now runs once at once, all runs each of them, skip none"

// dstFlags say what happens when clocks change.
func dstFlags(category string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "dst-gap", Category: category, Usage: "when the clock is put forward over its time, `M`: run-after runs at the end of the gap, skip does not run; default: run-after"},
		&cli.StringFlag{Name: "dst-overlap", Category: category, Usage: "when the clock is put back and its time comes twice, `M` is first, second or both; default: first, or both if its minute or hour begins with *"},
	}
}

// recurringFlags are those of `dts add` that only a recurring task has.
func recurringFlags() []cli.Flag {
	const recurring, calendars, missed = "For a recurring task", "When it must not run", "When it could not run in time"
	list := []cli.Flag{
		&cli.StringFlag{Name: "start", Category: recurring, Usage: "not before `TIME`; an interval and a rule begin there"},
		&cli.StringFlag{Name: "end", Category: recurring, Usage: "not after `TIME`"},
		&cli.Int64Flag{Name: "max-runs", Category: recurring, DefaultText: "no limit", Usage: "at most `N` scheduled runs"},
		&cli.StringFlag{Name: "jitter", Category: recurring, Usage: "start up to a `DURATION` later, always by the same share of it, so that tasks of one time spread"},
	}
	list = append(list, dstFlags(recurring)...)
	return append(list,
		&cli.StringSliceFlag{Name: "exclude-calendar", Category: calendars, Usage: "not in the days and windows of the calendar `NAME`; can be repeated"},
		&cli.StringSliceFlag{Name: "require-calendar", Category: calendars, Usage: "only in those of the calendar `NAME`; can be repeated"},
		&cli.StringFlag{Name: "shift", Category: calendars, Usage: "but then at the same time of the `next` or previous business day; default: not at all"},
		&cli.StringFlag{Name: "overlap", Category: calendars, Usage: "while the run before lasts, `M`: allow runs beside it, skip does not run, buffer-one and buffer-all wait for it, cancel stops it; default: allow"},

		&cli.StringFlag{Name: "catch-up", Category: missed, Usage: catchUpUsage + "; default: latest"},
		&cli.StringFlag{Name: "misfire-after", Category: missed, Usage: "missed is what is a `DURATION` late; default: 1m"},
		&cli.StringFlag{Name: "catch-up-window", Category: missed, Usage: "make up for nothing that was missed more than a `DURATION` ago; default: no limit"},
		&cli.IntFlag{Name: "catch-up-limit", Category: missed, DefaultText: "100", Usage: "with all: run the newest `N`"},
		&cli.StringFlag{Name: "catch-up-pacing", Category: missed, Usage: "with all: start them a `DURATION` apart; default: 1s"},
	)
}

// onlyRecurring are the names of those flags.
func onlyRecurring() []string {
	var names []string
	for _, f := range recurringFlags() {
		names = append(names, f.Names()[0])
	}
	return append(names, backupFlags...)
}

func (a *app) recurringRequest(c *cli.Context, spec dts.Spec, n *addition) (*api.RecurringRequest, error) {
	q := &api.RecurringRequest{Spec: spec, MaxRuns: c.Int64("max-runs"), IdempotencyKey: c.String("idempotency-key"),
		ExcludeCalendars: c.StringSlice("exclude-calendar"), RequireCalendars: c.StringSlice("require-calendar")}
	if err := repeats(c, q); err != nil {
		return nil, err
	}
	for _, x := range []struct {
		flag string
		to   *api.TimeText
	}{{"start", &q.StartTime}, {"end", &q.EndTime}} {
		if !c.IsSet(x.flag) {
			continue
		}
		at, local, err := parseWhen(c.String(x.flag), n.zone.loc, a.now())
		if err != nil {
			return nil, usagef("--%s: %s", x.flag, err)
		}
		n.zoneSaid = n.zoneSaid || local
		*x.to = api.At(at)
	}
	var err error
	if q.DSTGap, err = choice(c, "dst-gap", gapWords); err != nil {
		return nil, err
	}
	if q.DSTOverlap, err = choice(c, "dst-overlap", dstOverlapWords); err != nil {
		return nil, err
	}
	if q.CalendarShift, err = choice(c, "shift", shiftWords); err != nil {
		return nil, err
	}
	if q.OverlapPolicy, err = choice(c, "overlap", overlapWords); err != nil {
		return nil, err
	}
	if err := missedRules(c, q); err != nil {
		return nil, err
	}
	if s := scheduleOf(q); zoneMatters(&s) {
		q.TimeZone, n.zoneSaid = n.zone.name, true
	} else if c.IsSet("dst-gap") || c.IsSet("dst-overlap") {
		return nil, usagef("--dst-gap and --dst-overlap: are for a schedule at times of day; this one does not look at the clock on the wall")
	}
	return q, nil
}

// repeats reads --cron, --every or --rrule.
func repeats(c *cli.Context, q *api.RecurringRequest) error {
	switch {
	case c.IsSet("every"):
		d, err := cron.ParseInterval(c.String("every"))
		if err != nil {
			return usagef("--every: %s", err)
		}
		q.IntervalSeconds = api.Interval(d.Seconds())
	case c.IsSet("rrule"):
		if q.RRule = strings.TrimSpace(c.String("rrule")); q.RRule == "" {
			return usagef("--rrule: is empty; write a rule such as FREQ=MONTHLY;BYDAY=2TU")
		}
	default:
		for _, e := range c.StringSlice("cron") {
			if strings.TrimSpace(e) == "" {
				return usagef("--cron: is empty; it needs 5 fields: minute hour day-of-month month day-of-week")
			}
		}
		q.Cron = api.Expressions(strings.Join(c.StringSlice("cron"), "\n"))
	}
	return nil
}

// missedRules reads what happens to instants that could not run in time.
func missedRules(c *cli.Context, q *api.RecurringRequest) error {
	var err error
	if q.CatchUpMode, err = choice(c, "catch-up", catchUpWords); err != nil {
		return err
	}
	for _, x := range []struct {
		flag string
		low  time.Duration
		to   *float64
	}{
		{"jitter", 0, &q.JitterSeconds},
		{"misfire-after", time.Second, &q.MisfireAfterSeconds},
		{"catch-up-window", 0, &q.CatchUpWindowSeconds},
		{"catch-up-pacing", time.Millisecond, &q.CatchUpPacingSeconds},
	} {
		if !c.IsSet(x.flag) {
			continue
		}
		d, err := parseSpan("--"+x.flag, c.String(x.flag), x.low)
		if err != nil {
			return err
		}
		*x.to = d.Seconds()
	}
	if c.IsSet("catch-up-limit") {
		q.CatchUpLimit = c.Int("catch-up-limit")
		if q.CatchUpLimit < 1 || q.CatchUpLimit > dts.MaxCatchUp {
			return usagef("--catch-up-limit: is %d; use 1 to %d", q.CatchUpLimit, dts.MaxCatchUp)
		}
	}
	for _, f := range []string{"catch-up-limit", "catch-up-pacing"} {
		if c.IsSet(f) && q.CatchUpMode != dts.RunAllMissed {
			return usagef("--%s: is for --catch-up all; the others run one at most", f)
		}
	}
	return nil
}

// scheduleOf is the schedule of a request without its start and end.
func scheduleOf(q *api.RecurringRequest) dts.Schedule {
	return dts.Schedule{
		Cron: string(q.Cron), IntervalSeconds: float64(q.IntervalSeconds), RRule: q.RRule, TimeZone: q.TimeZone, MaxRuns: q.MaxRuns,
		DSTGap: q.DSTGap, DSTOverlap: q.DSTOverlap, JitterSeconds: q.JitterSeconds,
		ExcludeCalendars: q.ExcludeCalendars, RequireCalendars: q.RequireCalendars, CalendarShift: q.CalendarShift,
	}
}

// oneOf says which words a choice has: "a, b or c".
func oneOf[T any](words map[string]T) string {
	known := slices.Sorted(maps.Keys(words))
	return fmt.Sprintf("%s or %s", strings.Join(known[:len(known)-1], ", "), known[len(known)-1])
}
