package timetable

import (
	"slices"
	"time"

	"dts/sched/calendar"
)

// The most that a table keeps of each kind: years, and what is in them.
const (
	maxYears = 64
	maxKept  = 20_000
)

// outside is what a required calendar's absence is called.
const outside = "outside"

// closedAt returns the stretch of time around at in which the calendars keep the schedule from running, for one
// reason and in one year of UTC.
func (t *Table) closedAt(at time.Time) (w calendar.Window, closed bool) {
	list := t.closedIn(at.UTC().Year())
	i, _ := slices.BinarySearchFunc(list, at, func(w calendar.Window, at time.Time) int {
		if w.To.After(at) {
			return 1
		}
		return -1
	})
	if i == len(list) || list[i].From.After(at) {
		return calendar.Window{}, false
	}
	return list[i], true
}

// closedIn returns all such stretches of a year in UTC, in order. What an excluded calendar says counts before what a
// required one does, and the first named before the others.
func (t *Table) closedIn(year int) []calendar.Window {
	return cached(t, t.closed, year, func() []calendar.Window {
		from := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		to := time.Date(year+1, 1, 1, 0, 0, 0, 0, time.UTC)
		var all []calendar.Window
		for _, c := range t.exclude {
			all = calendar.Overlay(all, c.Segments(from, to, t.loc))
		}
		if len(t.require) == 0 {
			return all
		}
		var open []calendar.Window
		for _, c := range t.require {
			open = calendar.Overlay(open, c.Segments(from, to, t.loc))
		}
		return calendar.Overlay(all, between(open, calendar.Window{From: from, To: to, Name: outside, Calendar: join(t.require, ", ")}))
	})
}

// between returns what windows leave of whole.
func between(windows []calendar.Window, whole calendar.Window) []calendar.Window {
	var out []calendar.Window
	rest := whole
	for _, w := range windows {
		if rest.From.Before(w.From) {
			gap := rest
			gap.To = w.From
			out = append(out, gap)
		}
		rest.From = w.To
	}
	if rest.From.Before(rest.To) {
		out = append(out, rest)
	}
	return out
}

// cached returns kept[year], which it makes when it is not there.
func cached[T any](t *Table, kept map[int][]T, year int, compute func() []T) []T {
	t.mu.Lock()
	list, ok := kept[year]
	t.mu.Unlock()
	if ok {
		return list
	}
	list = compute()
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(list)
	for _, other := range kept {
		n += len(other)
	}
	if len(kept) >= maxYears || n > maxKept {
		clear(kept)
	}
	kept[year] = list
	return list
}
