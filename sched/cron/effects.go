package cron

import (
	"fmt"
	"slices"
	"time"
)

// Bounds of Effects: how far it looks, how many changes of offset it looks at, and how many times
// of day it names one by one; more are put together.
const (
	effectChanges = 200
	effectTimes   = 4
)

// Effect is what a change of the clock does to a schedule at one instant.
type Effect struct {
	At   time.Time // the instant it concerns, or where one would have been; of several times put together the first
	Runs bool      // the schedule has an instant at At
	Text string    // one line: "02:30 does not exist on 2027-03-28: the clock goes from 02:00 to 03:00; it runs at 03:00"
}

// Effects says what changes of the clock do to the instants of s in [from, to], in the order of
// time: times that do not exist, and run after the gap or not at all, and times that come twice. It
// asks what decides the instants, so it cannot disagree with Next. It looks 41 years ahead and at
// 200 changes at most. Intervals have no effects.
func Effects(s Schedule, from, to time.Time) []Effect {
	inner := s
	for {
		b, ok := inner.(bounded)
		if !ok {
			break
		}
		if from.Before(b.start) {
			from = b.start
		}
		if !b.end.IsZero() && to.After(b.end) {
			to = b.end
		}
		inner = b.s
	}
	var clocks []*clock
	switch of := inner.(type) {
	case *clock:
		clocks = []*clock{of}
	case union:
		clocks = of
	default:
		return nil
	}
	var all []Effect
	for _, c := range changes(clocks[0], from.Unix(), to.Unix()) {
		c.clocks = clocks
		all = append(all, c.effects()...)
	}
	all = slices.DeleteFunc(all, func(e Effect) bool { return e.At.Before(from) || e.At.After(to) })
	for i := range all {
		all[i].Runs = s.Next(all[i].At.Add(-1)).Equal(all[i].At)
	}
	slices.SortStableFunc(all, func(a, b Effect) int { return a.At.Compare(b.At) })
	return all
}

// change is one change of a zone's offset.
type change struct {
	clocks []*clock
	loc    *time.Location
	at     int64 // Unix seconds
	before int64 // the offset until at
	offset int64 // … and from at
}

// changes lists those that may concern instants in [from, to].
func changes(c *clock, from, to int64) []change {
	from = max(from, minUnix) - offsetsAtMost
	to = min(to, maxUnix, from+horizon) + offsetsAtMost
	var list []change
	for at := max(from, minUnix); at < min(to, maxUnix) && len(list) < effectChanges; {
		s := c.spanAt(at)
		if s.end > to || s.end > maxUnix {
			break
		}
		if next := c.spanAt(s.end); next.offset != s.offset {
			list = append(list, change{loc: c.loc, at: s.end, before: s.offset, offset: next.offset})
		}
		at = s.end
	}
	return list
}

func (c change) effects() []Effect {
	if c.offset > c.before {
		return c.gap()
	}
	return c.overlap()
}

// gap tells of the readings that the clock passes over.
func (c change) gap() []Effect {
	from, to := c.at+c.before, c.at+c.offset
	moved, lost, run := c.lost()
	var out []Effect
	if group := newGroup(moved, nil, from, to); group.total > 0 {
		text := fmt.Sprintf("it runs at %s", c.reading(run+c.offset))
		switch own := has(c.clocks, run+c.offset); {
		case own && group.total == 1:
			text = fmt.Sprintf("it falls together with the run at %s", c.reading(run+c.offset))
		case own:
			text = fmt.Sprintf("they fall together with the run at %s", c.reading(run+c.offset))
		case group.total > 1:
			text = fmt.Sprintf("they run once, at %s", c.reading(run+c.offset))
		}
		out = append(out, c.missing(run, group, text))
	}
	if group := newGroup(lost, moved, from, to); group.total > 0 {
		text := "it does not run"
		if group.total > 1 {
			text = "they do not run"
		}
		out = append(out, c.missing(c.at, group, text))
	}
	return out
}

// lost divides the clocks by what they do about the gap, and returns the instant that stands for
// what the first kind loses.
func (c change) lost() (moved, lost []*clock, run int64) {
	run = noRun
	for _, k := range c.clocks {
		if s := k.spanAt(c.at); s.gapRun != noRun {
			moved, run = append(moved, k), s.gapRun
		} else {
			lost = append(lost, k)
		}
	}
	return moved, lost, run
}

// missing makes the effect for readings that do not exist.
func (c change) missing(at int64, g group, text string) Effect {
	verb := "does"
	if g.total > 1 {
		verb = "do"
	}
	from, to := c.at+c.before, c.at+c.offset
	end := c.reading(to)
	if dateText(from) != dateText(to) {
		end += " on " + dateText(to)
	}
	return Effect{At: time.Unix(at, 0).In(c.loc), Text: fmt.Sprintf("%s %s not exist on %s: the clock goes from %s to %s; %s",
		g.said(), verb, dateText(g.first), c.reading(from), end, text)}
}

// overlap tells of the readings that come twice. Which passes a clock runs in is the same for all of
// them, so there are three kinds of clocks at most.
func (c change) overlap() []Effect {
	from, to := c.at+c.offset, c.at+c.before
	var kinds [4][]*clock // bit 0: the first pass runs, bit 1: the second
	for _, k := range c.clocks {
		kind := 0
		if k.spanAt(c.at-1).wallTo >= to {
			kind |= 1
		}
		if k.spanAt(c.at).wallFrom <= from {
			kind |= 2
		}
		kinds[kind] = append(kinds[kind], k)
	}
	var out []Effect
	both := kinds[3]
	for kind, text := range [4]string{1: "the first time only", 2: "the second time only", 3: "both times"} {
		except := both
		if kind == 3 {
			except = nil
		}
		g := newGroup(kinds[kind], except, from, to)
		if g.total == 0 {
			continue
		}
		parts := []group{g}
		if g.total <= effectTimes {
			parts = g.each()
		}
		for _, part := range parts {
			comes, runs := "comes", "it runs"
			if part.total > 1 {
				comes, runs = "come", "they run"
			}
			said := fmt.Sprintf("%s %s twice on %s: the clock goes back from %s to %s; %s %s",
				part.said(), comes, dateText(part.first), c.reading(to), c.reading(from), runs, text)
			for _, offset := range [2]int64{c.before, c.offset} {
				out = append(out, Effect{At: time.Unix(part.first-offset, 0).In(c.loc), Text: said})
			}
		}
	}
	return out
}

// reading writes the time of day of a reading.
func (c change) reading(w int64) string {
	return clockText(w - floorDiv(w, secondsPerDay)*secondsPerDay)
}

// dateText writes the date of a reading.
func dateText(w int64) string { return time.Unix(w, 0).UTC().Format(time.DateOnly) }

// group is a number of readings to which the same happens.
type group struct {
	first, last int64
	total       int64
	some        []int64 // the first effectTimes of them
}

// newGroup collects the readings in [from, to) of clocks that are none of except's.
func newGroup(clocks, except []*clock, from, to int64) group {
	var g group
	g.total = countAll(append(slices.Clone(clocks), except...), from, to) - countAll(except, from, to)
	if g.total == 0 {
		return g
	}
	for at := from; int64(len(g.some)) < min(effectTimes, g.total); {
		w, _ := nextOf(clocks, at, to)
		if !has(except, w) {
			g.some = append(g.some, w)
		}
		at = w + 1
	}
	g.first = g.some[0]
	for to := to; ; {
		w := from
		for _, k := range clocks {
			if t, ok := k.wall.prev(from, to); ok {
				w = max(w, t)
			}
		}
		if g.last = w; w <= g.first || !has(except, w) {
			return g
		}
		to = w
	}
}

// each divides a group into its readings.
func (g group) each() []group {
	var list []group
	for _, w := range g.some {
		list = append(list, group{first: w, last: w, total: 1, some: []int64{w}})
	}
	return list
}

// said names the readings: "02:00 and 02:30", or "60 times from 02:00 to 02:59".
func (g group) said() string {
	text := func(w int64) string { return clockText(w - floorDiv(w, secondsPerDay)*secondsPerDay) }
	if g.total > effectTimes {
		return fmt.Sprintf("%d times from %s to %s", g.total, text(g.first), text(g.last))
	}
	var list []string
	for _, w := range g.some {
		list = append(list, text(w))
	}
	return join(list, "and")
}

// countAll counts the readings in [from, to) that at least one clock has.
func countAll(clocks []*clock, from, to int64) int64 {
	switch len(clocks) {
	case 0:
		return 0
	case 1:
		return clocks[0].wall.count(from, to)
	}
	open := make([]span, len(clocks))
	for i := range open {
		open[i].wallFrom, open[i].wallTo = from, to
	}
	return newTally(clocks).readings(open, from, to)
}

// has reports whether at least one clock has a reading.
func has(clocks []*clock, w int64) bool {
	for _, k := range clocks {
		if k.wall.count(w, w+1) > 0 {
			return true
		}
	}
	return false
}

// nextOf returns the first reading in [from, to) that at least one clock has.
func nextOf(clocks []*clock, from, to int64) (int64, bool) {
	found := false
	for _, k := range clocks {
		if t, ok := k.wall.next(from, to); ok {
			to, found = t, true
		}
	}
	return to, found
}
