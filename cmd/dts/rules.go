package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"dts"
)

// ruleFacts says what a recurring task does about clocks, calendars, outages and runs that last.
func ruleFacts(r *dts.RecurringTask) []fact {
	var clocks []string
	if r.DSTGap == dts.GapSkip {
		clocks = append(clocks, "on a day when clocks are put forward over its time it does not run")
	}
	switch r.DSTOverlap {
	case dts.OverlapFirst:
		clocks = append(clocks, "when its time comes twice it runs the first time")
	case dts.OverlapSecond:
		clocks = append(clocks, "when its time comes twice it runs the second time")
	case dts.OverlapBoth:
		clocks = append(clocks, "when its time comes twice it runs both times")
	}
	jitter := ""
	if r.JitterSeconds > 0 {
		jitter = jitterRule(r)
	}
	overlap := ""
	if r.TargetType != dts.Ping { // a judgement takes no time
		overlap = overlapRule(r.OverlapPolicy)
	}
	return []fact{
		{"Changing clocks", strings.Join(clocks, ";\n")}, {"Calendars", calendarRule(&r.Schedule)}, {"Jitter", jitter},
		{"When missed", missedRule(r)}, {"When it overlaps", overlap},
	}
}

// chosenRules are those facts that are not what every recurring task has unless it is told otherwise.
func chosenRules(r *dts.RecurringTask) []fact {
	usual := dts.RecurringTask{CatchUpMode: dts.RunLatest, MisfireAfterSeconds: 60, OverlapPolicy: dts.OverlapAllow}
	if r.TargetType == dts.Ping {
		usual.TargetType, usual.CatchUpMode = dts.Ping, dts.SkipMissed
	}
	return slices.DeleteFunc(ruleFacts(r), func(f fact) bool { return slices.Contains(ruleFacts(&usual), f) })
}

// jitterRule says how much later than its instants a recurring task is due.
func jitterRule(r *dts.RecurringTask) string {
	return "each run is due " + span(r.Jitter()) + " after its instant, of at most " + span(secondsOf(r.JitterSeconds))
}

// calendarRule says what calendars do to a schedule.
func calendarRule(s *dts.Schedule) string {
	var parts []string
	if len(s.ExcludeCalendars) > 0 {
		parts = append(parts, "not in "+strings.Join(s.ExcludeCalendars, ", "))
	}
	if len(s.RequireCalendars) > 0 {
		parts = append(parts, "only in "+strings.Join(s.RequireCalendars, ", "))
	}
	text := strings.Join(parts, "; ")
	switch s.CalendarShift {
	case dts.ShiftNext:
		text += "; then on the next business day"
	case dts.ShiftPrevious:
		text += "; then on the business day before"
	}
	return clean(text)
}

// missedRule says what happens to instants that were missed.
func missedRule(r *dts.RecurringTask) string {
	var text string
	switch r.CatchUpMode {
	case dts.SkipMissed:
		text = "what is missed does not run"
		if r.TargetType == dts.Ping {
			text = "it is skipped: nobody listened"
		}
	case dts.RunOneNow:
		text = "it runs once at once for all that was missed"
	case dts.RunAllMissed:
		text = fmt.Sprintf("the newest %d missed instants run, %s apart", r.CatchUpLimit, span(r.CatchUpPacing()))
		if r.CatchUpLimit == 1 {
			text = "the newest missed instant runs"
		}
	default:
		text = "the newest missed instant runs"
	}
	if w := r.CatchUpWindow(); w > 0 && r.CatchUpMode != dts.SkipMissed {
		text += ", unless older than " + span(w)
	}
	if m := r.MisfireAfter(); m > 0 && m != time.Minute {
		text += ";\nmissed is what is " + span(m) + " late"
	}
	return text
}

// overlapRule says what happens at an instant while the run before lasts.
func overlapRule(p dts.OverlapPolicy) string {
	switch p {
	case dts.OverlapSkip:
		return "while a run lasts, the next does not run"
	case dts.OverlapBufferOne:
		return "while a run lasts, one more waits for its end; others do not run"
	case dts.OverlapBufferAll:
		return fmt.Sprintf("while a run lasts, up to %d more wait for its end", dts.MaxBuffered)
	case dts.OverlapCancel:
		return "while a run lasts, the next stops it and takes its place"
	}
	return "a run may go on beside the one before"
}

// waits says what keeps a task that is due from starting, or "".
func waits(t *dts.Task) string {
	switch {
	case t.Status != dts.Pending:
		return ""
	case t.RunStarted():
		return runWords(t)
	case t.WaitsFor == dts.ReasonPaused:
		return "paused"
	case t.Unresolved > 1 && t.DependsMode == dts.DependsAny:
		return fmt.Sprintf("waits for one of %d other tasks", t.Unresolved)
	case t.Unresolved == 1:
		return "waits for another task"
	case t.Unresolved > 1:
		return fmt.Sprintf("waits for %d other tasks", t.Unresolved)
	}
	switch t.WaitsFor {
	case dts.ReasonOverlap:
		return "waits for the run before"
	case dts.ReasonBlackout:
		return "waits for the end of a blackout"
	case dts.ReasonConcurrency:
		return "waits for others with its concurrency key"
	case dts.ReasonQueue:
		return "waits for others of its queue"
	}
	return ""
}
