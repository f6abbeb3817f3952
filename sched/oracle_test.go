package sched_test

import (
	"cmp"
	"slices"
	"time"

	"dts"
)

// The oracle says what must become of the instants of a recurring task, from the rules alone: it knows when the server
// was up, what the clock showed, when it was paused, and how long a run lasts. Times of what happens are since the start
// of the test, by a clock that nobody sets; instants are by the wall clock.

// span is a time in which the server was up and nobody set the clock.
type span struct {
	from, to time.Duration
	skew     time.Duration // of the wall clock, against the time since the start of the test
	stops    bool          // it ended because the server was stopped
}

// pauseOf is a pause of a recurring task.
type pauseOf struct {
	from, to time.Time     // of the instants that it takes out, from not included
	end      time.Duration // when it was resumed by hand
	catchUp  bool          // with catch_up
}

type oracle struct {
	epoch time.Time
	spans []span
	pause *pauseOf
	lasts time.Duration // a run
	drain time.Duration // how long a server that stops lets runs go on
}

// arrival is an occurrence that is to start.
type arrival struct {
	at      time.Duration
	instant time.Time
	origin  dts.Origin
}

// verdict is what became of an arrival.
type verdict struct {
	what  string // a status, or why it was skipped
	began time.Duration
}

func (o *oracle) wall(s span, at time.Duration) time.Time { return o.epoch.Add(at + s.skew) }

// arrivals says which instants of r are to start, and when, and the lines of the ledger for the others.
func (o *oracle) arrivals(r *dts.RecurringTask, first, last time.Time, step time.Duration) (list []arrival, skipped []lineOf) {
	missed := map[int][]time.Time{}
	skip := func(x time.Time, reason dts.Reason) {
		if n := len(skipped); n > 0 && skipped[n-1].what == string(reason) && skipped[n-1].to.Add(step).Equal(x) {
			skipped[n-1].to = x
			skipped[n-1].n++
			return
		}
		skipped = append(skipped, lineOf{from: x, to: x, n: 1, what: string(reason)})
	}
	paused := []time.Time{}
	i := 0
	for x := first; !x.After(last); x = x.Add(step) {
		// The first moment at which a server is up and its clock shows x.
		for i < len(o.spans) && !x.Before(o.wall(o.spans[i], o.spans[i].to)) {
			i++
		}
		if i == len(o.spans) {
			break
		}
		s := o.spans[i]
		at, late := s.from, o.wall(s, s.from).Sub(x)
		if late < 0 {
			at, late = x.Sub(o.epoch)-s.skew, 0
		}
		switch p := o.pause; {
		case p != nil && x.After(p.from) && !x.After(p.to):
			skip(x, dts.ReasonPaused)
			paused = append(paused, x)
		case late > r.MisfireAfter():
			missed[i] = append(missed[i], x)
		default:
			list = append(list, arrival{at: at, instant: x, origin: dts.OriginSchedule})
		}
	}
	for i, all := range missed {
		s := o.spans[i]
		run := o.madeUp(r, all, o.wall(s, s.from))
		kept := map[int64]bool{}
		for n, x := range run {
			if r.CatchUpMode == dts.RunOneNow {
				list = append(list, arrival{at: s.from, instant: x, origin: dts.OriginCatchUp})
				continue
			}
			kept[x.UnixMicro()] = true
			list = append(list, arrival{at: s.from + time.Duration(n)*r.CatchUpPacing(), instant: x, origin: dts.OriginSchedule})
		}
		for _, x := range all {
			if !kept[x.UnixMicro()] {
				skip(x, dts.ReasonCatchUp)
			}
		}
	}
	if p := o.pause; p != nil && p.catchUp {
		now := o.epoch.Add(p.end)
		for _, s := range o.spans {
			if s.from <= p.end && p.end < s.to {
				now = o.wall(s, p.end)
			}
		}
		for n, x := range o.madeUp(r, paused, now) {
			list = append(list, arrival{at: p.end + time.Duration(n)*r.CatchUpPacing(), instant: x, origin: dts.OriginCatchUp})
		}
	}
	slices.SortStableFunc(list, func(a, b arrival) int { return cmp.Or(cmp.Compare(a.at, b.at), a.instant.Compare(b.instant)) })
	return list, skipped
}

// madeUp says which of the instants that were missed run, by the catch-up mode.
func (o *oracle) madeUp(r *dts.RecurringTask, all []time.Time, now time.Time) []time.Time {
	if w := r.CatchUpWindow(); w > 0 {
		all = slices.DeleteFunc(slices.Clone(all), func(x time.Time) bool { return now.Sub(x) > w })
	}
	if len(all) == 0 {
		return nil
	}
	switch r.CatchUpMode {
	case dts.RunLatest:
		return all[len(all)-1:]
	case dts.RunAllMissed:
		return all[max(0, len(all)-r.CatchUpLimit):]
	case dts.RunOneNow:
		return []time.Time{now}
	}
	return nil
}

// ends says when a run that begins at a time ends, which may be after it was lost and began again.
func (o *oracle) ends(begin time.Duration) time.Duration {
	for i, s := range o.spans {
		if begin < s.from || begin >= s.to || !s.stops {
			continue
		}
		if end := begin + o.lasts; end <= s.to+o.drain {
			return end
		}
		if i+1 < len(o.spans) {
			return o.ends(o.spans[i+1].from)
		}
	}
	return begin + o.lasts
}

// free is the first moment from at on in which something may start.
func (o *oracle) free(at time.Duration) time.Duration {
	for i, s := range o.spans {
		if s.stops && at >= s.to && i+1 < len(o.spans) && at < o.spans[i+1].from {
			return o.spans[i+1].from
		}
	}
	return at
}

// overlap says what the policy makes of the arrivals, in their order. Where one arrives at the very moment at which a
// waiting one may start, it may come before it (early) or after.
func (o *oracle) overlap(policy dts.OverlapPolicy, list []arrival, early bool) []verdict {
	out := make([]verdict, len(list))
	var waiting []int
	active, until := -1, time.Duration(0)
	start := func(i int, at time.Duration) {
		out[i] = verdict{what: string(dts.Success), began: at}
		active, until = i, o.ends(at)
	}
	finish := func(now time.Duration) { // what ends up to now
		for active >= 0 && until <= now {
			active = -1
			if at := o.free(until); len(waiting) > 0 && at <= now {
				next := waiting[0]
				waiting = waiting[1:]
				start(next, at)
			}
		}
		if active < 0 && len(waiting) > 0 {
			if at := o.free(until); at <= now {
				next := waiting[0]
				waiting = waiting[1:]
				start(next, at)
			}
		}
	}
	for i, a := range list {
		if policy == dts.OverlapAllow {
			start(i, a.at)
			continue
		}
		if finish(a.at - 1); !early || len(waiting) == 0 {
			finish(a.at)
		}
		switch {
		case active < 0 && len(waiting) == 0:
			start(i, a.at)
		case policy == dts.OverlapSkip,
			policy == dts.OverlapBufferOne && len(waiting) > 0,
			policy == dts.OverlapBufferAll && len(waiting) >= dts.MaxBuffered:
			out[i] = verdict{what: string(dts.ReasonOverlap)}
		case policy == dts.OverlapCancel:
			out[active].what = string(dts.Cancelled)
			start(i, a.at)
		default: // the order of their instants
			at, _ := slices.BinarySearchFunc(waiting, i, func(x, y int) int { return list[x].instant.Compare(list[y].instant) })
			waiting = slices.Insert(waiting, at, i)
		}
	}
	finish(1 << 62)
	return out
}

// lines is the ledger that the verdicts make.
func verdictLines(list []arrival, what []verdict, skipped []lineOf, step time.Duration) []string {
	all := slices.Clone(skipped)
	for i, a := range list {
		l := lineOf{from: a.instant, to: a.instant, n: 1, what: what[i].what, single: true}
		switch {
		case a.origin != dts.OriginSchedule:
			l.what, l.extra = string(a.origin)+" task "+l.what, true
		case l.what == string(dts.ReasonOverlap):
			l.single = false
		}
		all = append(all, l)
	}
	return showLines(all, step)
}

// orders returns the lists that differ in the order of arrivals of one moment.
func orders(list []arrival) [][]arrival {
	out := [][]arrival{nil}
	for i := 0; i < len(list); {
		j := i
		for j < len(list) && list[j].at == list[i].at {
			j++
		}
		var grown [][]arrival
		for _, head := range out {
			for _, tail := range permutations(list[i:j]) {
				grown = append(grown, slices.Concat(head, tail))
			}
		}
		out, i = grown, j
	}
	return out
}

func permutations(list []arrival) [][]arrival {
	if len(list) < 2 {
		return [][]arrival{list}
	}
	var out [][]arrival
	for i := range list {
		rest := slices.Concat(list[:i], list[i+1:])
		for _, p := range permutations(rest) {
			out = append(out, slices.Concat([]arrival{list[i]}, p))
		}
	}
	return out
}
