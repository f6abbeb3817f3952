package timetable

import (
	"slices"
	"strings"
	"time"

	"dts/sched/calendar"
)

// Excluded is instants of a schedule that calendars took out, Count of them, From the first To the last. None of the
// schedule's own instants between them runs.
type Excluded struct {
	From, To time.Time
	Count    int64
	Calendar string // the calendar; of a range that stands for the rest, all of them
	Name     string // what in it: a holiday, an event, "weekends"; "outside" when the calendar is required

	// Of a single instant that was to be moved: when it runs instead, or else the instant that it coincides with, which
	// runs anyway.
	MovedTo, CoveredBy time.Time
}

// alone reports whether the entry must not become part of a range.
func (e Excluded) alone() bool { return !e.MovedTo.IsZero() || !e.CoveredBy.IsZero() }

// Excluded returns the schedule's own instants in (after, through] that calendars took out, in order. Neighbours in the
// schedule that have the same reason are one range; one that is moved, or dropped because its new place is taken, stands
// alone. Beyond limit entries (at least 1) the last one stands for all the rest.
func (t *Table) Excluded(after, through time.Time, limit int) []Excluded {
	if t.plain() {
		return nil
	}
	l := ledger{t: t, limit: max(limit, 1)}
	t.eachClosed(after, through, func(s stretch) {
		if t.shift == "" {
			l.addRange(s.after, s.through, s.window)
			return
		}
		from := s.after
		for year := from.In(t.loc).Year(); year <= s.through.In(t.loc).Year(); year++ {
			list := t.movesIn(year)
			i, _ := slices.BinarySearchFunc(list, from.Add(1), byTime)
			for ; i < len(list) && !list[i].at.After(s.through); i++ {
				m := list[i]
				l.addRange(from, m.at.Add(-1), s.window)
				l.add(excludedOne(m, s.window))
				from = m.at
			}
		}
		l.addRange(from, s.through, s.window)
	})
	return l.list
}

// ExcludedAt tells of one instant. ok is false when it is not one of the schedule's own, or runs.
func (t *Table) ExcludedAt(at time.Time) (e Excluded, ok bool) {
	if t.plain() || !t.has(at) {
		return Excluded{}, false
	}
	w, closed := t.closedAt(at)
	if !closed {
		return Excluded{}, false
	}
	m := move{at: at.In(t.loc)}
	if t.shift != "" {
		list := t.movesIn(m.at.Year())
		if i, found := slices.BinarySearchFunc(list, at, byTime); found {
			m = list[i]
		}
	}
	return excludedOne(m, w), true
}

func excludedOne(m move, w calendar.Window) Excluded {
	e := Excluded{From: m.at, To: m.at, Count: 1, Calendar: w.Calendar, Name: w.Name}
	if m.covered {
		e.CoveredBy = m.to
	} else {
		e.MovedTo = m.to
	}
	return e
}

// stretch is the part of a closed window that a question is about: (after, through].
type stretch struct {
	after, through time.Time
	window         calendar.Window
}

// eachClosed calls do with each closed window in (after, through], in order. It leaves out the time before the
// schedule's first instant in it and after the last.
func (t *Table) eachClosed(after, through time.Time, do func(stretch)) {
	first, last := t.base.Next(after), t.base.Prev(through)
	if first.IsZero() || last.IsZero() || first.After(last) {
		return
	}
	after, through = first.Add(-1), last
	for year := first.UTC().Year(); year <= last.UTC().Year(); year++ {
		for _, w := range t.closedIn(year) {
			if !w.To.After(first) {
				continue
			}
			if w.From.After(last) {
				return
			}
			s := stretch{w.From.Add(-1), w.To.Add(-1), w}
			if s.after.Before(after) {
				s.after = after
			}
			if s.through.After(through) {
				s.through = through
			}
			do(s)
		}
	}
}

// ledger collects excluded instants, up to a limit.
type ledger struct {
	t     *Table
	limit int
	list  []Excluded
	rest  bool // the last entry stands for all the rest
}

// addRange adds the instants in (after, through], if there are any.
func (l *ledger) addRange(after, through time.Time, w calendar.Window) {
	if n := l.t.base.Count(after, through); n > 0 {
		l.add(Excluded{From: l.t.base.Next(after), To: l.t.base.Prev(through), Count: n, Calendar: w.Calendar, Name: w.Name})
	}
}

func (l *ledger) add(e Excluded) {
	n := len(l.list)
	if n == 0 {
		l.list = append(l.list, e)
		return
	}
	last := &l.list[n-1]
	switch {
	case l.rest:
	case !last.alone() && !e.alone() && last.Calendar == e.Calendar && last.Name == e.Name &&
		l.t.base.Count(last.To, e.From) == 1: // the next one of the schedule
	case n < l.limit:
		l.list = append(l.list, e)
		return
	default:
		l.rest = true
		last.MovedTo, last.CoveredBy = time.Time{}, time.Time{}
	}
	last.To, last.Count = e.To, last.Count+e.Count
	if last.Name != e.Name || last.Calendar != e.Calendar {
		last.Name = ""
	}
	if !slices.Contains(strings.Split(last.Calendar, ", "), e.Calendar) && last.Calendar != e.Calendar {
		last.Calendar += ", " + e.Calendar
	}
}
