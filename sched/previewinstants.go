package sched

import (
	"fmt"
	"slices"
	"time"

	"dts"
	"dts/sched/cron"
)

const (
	previewFar    = 400 * 24 * time.Hour // how far a preview looks for changes of the clock where the schedule ends before
	previewBefore = 1000                 // instants before the first one that are looked at, to see what still runs then
	localTime     = "2006-01-02T15:04:05.999999Z07:00"
)

// instants lists the next instants: those of the schedule, those that others were moved to, and times that the clock skips.
func (in *previewInput) instants() []dts.PreviewInstant {
	list := []dts.PreviewInstant{}
	at, left := in.from, in.runsLeft()
	overlap := in.warmUp()
	for len(list) < in.count && left != 0 {
		if at = in.next(at); at.IsZero() {
			break
		}
		p := in.instant(at, overlap)
		if p.Runs && left > 0 {
			left--
		}
		list = append(list, p)
	}
	through := in.from.Add(previewFar)
	if len(list) == in.count {
		through = list[len(list)-1].UTC
	}
	for _, e := range cron.Effects(in.table.Base(), in.from.Add(time.Microsecond), through) {
		effect := dts.PreviewEffect{Kind: dts.EffectDST, Text: e.Text}
		i, found := slices.BinarySearchFunc(list, e.At, func(p dts.PreviewInstant, at time.Time) int { return p.UTC.Compare(at) })
		switch {
		case found:
			list[i].Effects = append([]dts.PreviewEffect{effect}, list[i].Effects...)
		case !e.Runs && left != 0:
			list = slices.Insert(list, i, dts.PreviewInstant{UTC: e.At.UTC(), Local: in.local(e.At), Effects: []dts.PreviewEffect{effect}})
		}
	}
	return list[:min(len(list), in.count)]
}

func (in *previewInput) local(t time.Time) string {
	return t.In(in.table.Location()).Format(localTime)
}

// runsLeft is how many runs max_runs still allows; -1 for no limit.
func (in *previewInput) runsLeft() int64 {
	if in.r.MaxRuns == 0 {
		return -1
	}
	return max(in.r.MaxRuns-in.r.RunsCount, 0)
}

// next is the next instant after at that runs, or that the schedule has and calendars exclude.
func (in *previewInput) next(at time.Time) time.Time {
	own, runs := in.table.Base().Next(at), in.table.Next(at)
	if own.IsZero() || !runs.IsZero() && runs.Before(own) {
		return runs
	}
	return own
}

// instant tells of one instant, in the order in which things decide about it.
func (in *previewInput) instant(at time.Time, overlap *overlapping) dts.PreviewInstant {
	p := dts.PreviewInstant{UTC: at.UTC(), Local: in.local(at), Runs: true}
	add := func(kind dts.EffectKind, format string, args ...any) {
		p.Effects = append(p.Effects, dts.PreviewEffect{Kind: kind, Text: fmt.Sprintf(format, args...)})
	}
	if text, runs := in.calendars(at); text != "" {
		add(dts.EffectCalendar, "%s", text)
		p.Runs = runs
	}
	if !p.Runs {
		return p
	}
	due := at
	switch jitter := in.r.Jitter(); {
	case in.r.TargetType == dts.Ping:
		due = at.Add(in.r.Delay())
		add(dts.EffectPing, "its job must have reported by %s", in.say(due))
	case in.r.JitterSeconds == 0:
	case in.stored:
		due = at.Add(jitter)
		add(dts.EffectJitter, "it is due %s later: its share of the jitter", sayDuration(jitter))
	default:
		add(dts.EffectJitter, "it is due up to %s later, always by the same time, which its id decides", sayDuration(time.Duration(in.r.JitterSeconds*float64(time.Second))))
	}
	if h, is := in.closed.hold(due, in.r.Queue); is {
		text := ""
		if text, p.Runs = in.blackedOut(at, due, h); p.Runs {
			due = h.until
		}
		add(dts.EffectBlackout, "%s", text)
	}
	if p.Runs {
		text := ""
		if text, p.Runs = overlap.add(at, due); text != "" {
			add(dts.EffectOverlap, "%s", text)
		}
	}
	if !due.Equal(at) {
		p.DueAt = due.UTC()
	}
	return p
}

// calendars says what calendars do to an instant; nothing if they do not touch it.
func (in *previewInput) calendars(at time.Time) (text string, runs bool) {
	e, excluded := in.table.ExcludedAt(at)
	if !excluded {
		if from := in.movedFrom(at); !from.IsZero() {
			return fmt.Sprintf("it is moved here from %s, which a calendar excludes", in.say(from)), true
		}
		return "", true
	}
	text = fmt.Sprintf("the calendar %s excludes it", e.Calendar)
	switch e.Name {
	case "", e.Calendar:
	case "outside":
		text = fmt.Sprintf("it is outside the calendar %s", e.Calendar)
	default:
		text += " (" + e.Name + ")"
	}
	switch {
	case !e.MovedTo.IsZero():
		text += "; it is moved to " + in.say(e.MovedTo)
	case !e.CoveredBy.IsZero():
		text += "; it would be moved to " + in.say(e.CoveredBy) + ", which is an instant already"
	}
	return text, false
}

// movedFrom finds the instant that was moved to this one: one with the same time of another day. It is zero for an instant of
// the schedule itself.
func (in *previewInput) movedFrom(at time.Time) time.Time {
	step := map[dts.CalendarShift]int{dts.ShiftNext: -1, dts.ShiftPrevious: 1}[in.r.CalendarShift]
	base := in.table.Base()
	if step == 0 || base.Count(at.Add(-time.Microsecond), at) > 0 {
		return time.Time{}
	}
	local := at.In(in.table.Location())
	for day := range 366 {
		from := local.AddDate(0, 0, step*(day+1))
		if e, excluded := in.table.ExcludedAt(from); excluded && e.MovedTo.Equal(at) {
			return from
		}
	}
	return time.Time{}
}

// blackedOut says what a blackout does to an instant that is due while it is open.
func (in *previewInput) blackedOut(at, due time.Time, h barred) (text string, runs bool) {
	until := in.say(h.until)
	switch {
	case h.skipped:
		return fmt.Sprintf("%s is open until %s: it is skipped", h.names(), until), false
	case h.until.Sub(due) <= in.r.MisfireAfter():
		return fmt.Sprintf("it waits for %s, until %s", h.names(), until), true
	}
	// It waits for longer than misfire_after_seconds, so at the end the catch-up mode decides.
	later := in.table.Count(at, h.until.Add(-due.Sub(at)))
	mode := in.r.CatchUpMode
	switch {
	case mode == dts.RunLatest && later == 0, mode == dts.RunAllMissed && later < int64(in.r.CatchUpLimit):
		return fmt.Sprintf("it waits for %s, until %s", h.names(), until), true
	case mode == dts.RunOneNow:
		return fmt.Sprintf("%s lasts until %s: then one task makes up for all that were due, as catch_up_mode %s says", h.names(), until, mode), false
	case mode == dts.SkipMissed:
		return fmt.Sprintf("%s lasts until %s, longer than misfire_after_seconds: it is skipped, as catch_up_mode %s says", h.names(), until, mode), false
	}
	return fmt.Sprintf("%s lasts until %s: it is skipped, because later ones wait as well, and catch_up_mode %s runs no more of them", h.names(), until, mode), false
}

// overlapping follows the runs of a recurring task that lasts for some time.
type overlapping struct {
	in   *previewInput
	runs []overlapRun // those that may still run, the newest last
}

type overlapRun struct {
	at time.Time // the instant
	span
}

// warmUp follows the runs before the first instant of the preview.
func (in *previewInput) warmUp() *overlapping {
	o := &overlapping{in: in}
	if in.expected == 0 {
		return o
	}
	var before []time.Time
	for at := in.from; len(before) < previewBefore; {
		if at = in.table.Prev(at); at.IsZero() || at.Before(in.from.Add(-2*in.expected)) {
			break
		}
		before = append(before, at)
		at = at.Add(-time.Microsecond)
	}
	for _, at := range slices.Backward(before) {
		due := at.Add(in.delay())
		h, is := in.closed.hold(due, in.r.Queue)
		if h.skipped {
			continue
		} else if is {
			due = h.until
		}
		o.add(at, due)
	}
	return o
}

func (in *previewInput) delay() time.Duration {
	if in.stored {
		return in.r.Delay()
	}
	return 0
}

// add says what the overlap policy does to a run that is due then; nothing when no other one will be active.
func (o *overlapping) add(at, due time.Time) (text string, runs bool) {
	takes := o.in.expected
	if takes == 0 {
		return "", true
	}
	o.runs = slices.DeleteFunc(o.runs, func(r overlapRun) bool { return !r.to.After(due) })
	begin := due
	if n := len(o.runs); n > 0 {
		last := &o.runs[n-1]
		other := fmt.Sprintf("the run of %s lasts until %s by then", o.in.say(last.at), o.in.say(last.to))
		switch o.in.r.OverlapPolicy {
		case dts.OverlapSkip:
			return other + ": it is skipped", false
		case dts.OverlapBufferOne, dts.OverlapBufferAll:
			waiting := 0
			for _, r := range o.runs {
				if r.from.After(due) {
					waiting++
				}
			}
			if most := map[dts.OverlapPolicy]int{dts.OverlapBufferOne: 1, dts.OverlapBufferAll: dts.MaxBuffered}[o.in.r.OverlapPolicy]; waiting >= most {
				return fmt.Sprintf("the run of %s waits already, and no more than %d may: it is skipped", o.in.say(last.at), most), false
			}
			begin, text = last.to, other+": it waits for its end"
		case dts.OverlapCancel:
			last.to = due
			text = fmt.Sprintf("it stops the run of %s, which would last longer", o.in.say(last.at))
		default:
			text = other + ": both run at once"
		}
	}
	o.runs = append(o.runs, overlapRun{at, span{begin, begin.Add(takes)}})
	return text, true
}
