package ui

import (
	"strconv"
	"strings"
	"time"

	"dts"
)

// reasonText says why an instant did not run.
func reasonText(r dts.Reason) string {
	switch r {
	case dts.ReasonPaused:
		return "the schedule was paused"
	case dts.ReasonOverlap:
		return "the run before was still active"
	case dts.ReasonCatchUp:
		return "missed, and not made up for"
	case dts.ReasonExpired:
		return "its expiry time had passed"
	case dts.ReasonRemoved:
		return "someone cancelled this run"
	case dts.ReasonCancelled:
		return "the schedule was removed"
	case dts.ReasonCalendar:
		return "a calendar excludes it"
	case dts.ReasonBlackout:
		return "there was a blackout"
	case dts.ReasonQueue:
		return "its queue was paused"
	case dts.ReasonDependency:
		return "what it depends on did not end as it must"
	case "":
		return ""
	default:
		return statusWord(r)
	}
}

// withNote adds who or what caused it.
func withNote(text, note string) string {
	if note == "" {
		return text
	}
	return text + ": " + note
}

// waitText says what keeps a task that is due from starting.
func waitText(r dts.Reason) string {
	switch r {
	case dts.ReasonOverlap:
		return "waits for the run before it"
	case dts.ReasonBlackout:
		return "waits for the end of a blackout"
	case dts.ReasonConcurrency:
		return "waits until others with its concurrency key have ended"
	case dts.ReasonQueue:
		return "waits until others of its queue have ended"
	case dts.ReasonPaused:
		return "is paused, and does not start until it is resumed"
	default:
		return ""
	}
}

// recurringFacts are the settings of a recurring task in words. The calendars are beside them, with links.
func recurringFacts(rt *dts.RecurringTask) []pair {
	var list []pair
	add := func(name, value string) {
		if value != "" {
			list = append(list, pair{name, value})
		}
	}
	switch n := strings.Count(rt.Cron, "\n"); {
	case n > 0:
		add("Cron expressions", rt.Cron)
	default:
		add("Cron expression", rt.Cron)
	}
	add("Rule", rt.RRule)
	loc, zone := zoneOf(rt.Schedule)
	if !rt.StartTime.IsZero() {
		add("Not before", wallClock(rt.StartTime.In(loc)))
	}
	if !rt.EndTime.IsZero() {
		add("Not after", wallClock(rt.EndTime.In(loc)))
	}
	if rt.MaxRuns > 0 {
		add("At most", strconv.FormatInt(rt.MaxRuns, 10)+" runs")
	}
	if rt.JitterSeconds > 0 {
		add("Spread", "by up to "+seconds(rt.JitterSeconds)+"; this one starts "+duration(rt.Jitter())+" later than scheduled")
	}
	if rt.IntervalSeconds == 0 && (zone != "UTC" || rt.DSTGap != "" || rt.DSTOverlap != "") {
		add("When the clocks change", gapText(rt.DSTGap)+"; "+twiceText(rt.DSTOverlap))
	}
	add("A day that is excluded", shiftText(rt.Schedule))
	add("Missed runs", missedText(rt))
	if rt.TargetType != dts.Ping {
		add("While the run before is active", overlapText(rt.OverlapPolicy))
	}
	list = append(list, specFacts(rt.Spec)...)
	add("Created by", rt.CreatedBy)
	return list
}

// seconds writes a length of time that is kept in seconds.
func seconds(f float64) string { return duration(time.Duration(f * float64(time.Second))) }

// gapText says what happens on the day when the clock is put forward over the time.
func gapText(g dts.DSTGap) string {
	if g == dts.GapSkip {
		return "a time that does not exist that day does not run"
	}
	return "a time that does not exist that day runs right after the gap"
}

// twiceText says what happens on the day when the clock is put back and the time comes twice.
func twiceText(o dts.DSTOverlap) string {
	switch o {
	case dts.OverlapFirst:
		return "one that comes twice runs the first time"
	case dts.OverlapSecond:
		return "one that comes twice runs the second time"
	case dts.OverlapBoth:
		return "one that comes twice runs both times"
	default:
		return "one that comes twice runs the first time, or both if its minute or hour begins with *"
	}
}

func shiftText(s dts.Schedule) string {
	switch {
	case s.CalendarShift == dts.ShiftNext:
		return "moves to the next business day"
	case s.CalendarShift == dts.ShiftPrevious:
		return "moves to the business day before"
	case len(s.ExcludeCalendars)+len(s.RequireCalendars) > 0:
		return "is left out"
	default:
		return ""
	}
}

// missedText says when an instant counts as missed, and what happens then.
func missedText(rt *dts.RecurringTask) string {
	var s string
	switch rt.CatchUpMode {
	case dts.SkipMissed:
		s = "are skipped"
		if rt.TargetType == dts.Ping {
			s = "are skipped: nobody listened"
		}
	case dts.RunOneNow:
		s = "one run at once makes up for all of them"
	case dts.RunAllMissed:
		s = "the newest " + strconv.Itoa(rt.CatchUpLimit) + " are made up for, the oldest of them first, " + seconds(rt.CatchUpPacingSeconds) + " apart"
	default:
		s = "the newest one is made up for"
	}
	if rt.CatchUpWindowSeconds > 0 && rt.CatchUpMode != dts.SkipMissed {
		s += "; nothing older than " + seconds(rt.CatchUpWindowSeconds) + " is"
	}
	return s + "; later than " + seconds(rt.MisfireAfterSeconds) + " counts as missed"
}

func overlapText(o dts.OverlapPolicy) string {
	switch o {
	case dts.OverlapSkip:
		return "the next one is skipped"
	case dts.OverlapBufferOne:
		return "one waits for it, those after are skipped"
	case dts.OverlapBufferAll:
		return "the others wait and run one after another"
	case dts.OverlapCancel:
		return "it is stopped, and the next one runs"
	default:
		return "they run side by side"
	}
}
