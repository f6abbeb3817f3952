package timetable

import (
	"slices"
	"time"

	"dts"
	"dts/sched/calendar"
)

const (
	maxShiftDays = 366 // how far a business day is looked for
	maxShifted   = 100 // instants of a day, to be moved
	shiftReach   = (maxShiftDays + 2) * 24 * time.Hour
)

// move is an excluded instant of a schedule that shifts, and what becomes of it. An instant without a business day
// within reach has none: it is only excluded.
type move struct {
	at time.Time
	to time.Time // its time on the business day, in the table's zone
	// covered: at `to` the schedule runs anyway, by itself or because another instant was moved there, so this one is
	// dropped.
	covered bool
}

// lands reports whether the move makes an instant that runs.
func (m move) lands() bool { return !m.covered }

// movesIn returns the moves of the instants of a year in the table's zone, decided and in order. When several come to
// one place, the earliest takes it.
func (t *Table) movesIn(year int) []move {
	return cached(t, t.moved, year, func() []move {
		raw := t.rawMovesIn(year)
		if len(raw) == 0 {
			return nil
		}
		taken := map[time.Time]bool{}
		for _, m := range t.rawMovesIn(year - 1) { // those that come to one place lie less than a year apart
			taken[m.to] = true
		}
		list := make([]move, len(raw))
		for i, m := range raw {
			m.covered = taken[m.to] || t.has(m.to)
			taken[m.to] = true
			list[i] = m
		}
		return list
	})
}

// rawMovesIn returns the moves of a year, in order, before it is known which of them are covered.
func (t *Table) rawMovesIn(year int) []move {
	return cached(t, t.raw, year, func() []move {
		first := calendar.DayOf(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC))
		last := calendar.DayOf(time.Date(year, 12, 31, 0, 0, 0, 0, time.UTC))
		from, to := first.Start(t.loc), (last + 1).Start(t.loc)
		if !t.opens(from.Add(-shiftReach), to.Add(shiftReach)) {
			return nil
		}
		var days []calendar.Day
		t.eachClosed(from.Add(-1), to.Add(-1), func(s stretch) {
			d := calendar.DayOf(s.after.Add(1).In(t.loc))
			if n := len(days); n > 0 && d <= days[n-1] {
				d = days[n-1] + 1
			}
			for end := calendar.DayOf(s.through.In(t.loc)); d <= end; d++ {
				days = append(days, d)
			}
		})
		if t.shift == dts.ShiftNext {
			slices.Reverse(days) // so that the business day is known of the days between
		}
		var list []move
		known := map[wallTime]time.Time{}
		for _, d := range days {
			start, end := d.Start(t.loc), (d + 1).Start(t.loc)
			if n := t.base.Count(start.Add(-1), end.Add(-1)); n == 0 || n > maxShifted {
				continue
			}
			for x := t.base.Next(start.Add(-1)); !x.IsZero() && x.Before(end); x = t.base.Next(x) {
				if _, closed := t.closedAt(x); !closed {
					continue
				}
				if to := t.target(wallTime{d, calendar.Clock(x.In(t.loc))}, known); !to.IsZero() {
					list = append(list, move{at: x, to: to})
				}
			}
		}
		slices.SortFunc(list, func(a, b move) int { return a.at.Compare(b.at) })
		return list
	})
}

// opens reports whether the calendars leave any time in [from, to].
func (t *Table) opens(from, to time.Time) bool {
	for from.Before(to) {
		w, closed := t.closedAt(from)
		if !closed {
			return true
		}
		from = w.To
	}
	return false
}

// wallTime is a time of a day, without a zone.
type wallTime struct {
	day   calendar.Day
	clock time.Duration
}

// target returns the same time on the next or the previous business day, or the zero Time. It remembers its answers in
// known.
func (t *Table) target(w wallTime, known map[wallTime]time.Time) time.Time {
	step := calendar.Day(1)
	if t.shift == dts.ShiftPrevious {
		step = -1
	}
	var found time.Time
	for n := range calendar.Day(maxShiftDays) {
		day := w.day + (n+1)*step
		if x, ok := t.business(day, w.clock); ok {
			found = x
			break
		}
		if x, ok := known[wallTime{day, w.clock}]; ok {
			if !x.IsZero() && (calendar.DayOf(x.In(t.loc))-w.day)*step <= maxShiftDays {
				found = x
			}
			break
		}
	}
	known[w] = found
	if !found.IsZero() && (!t.start.IsZero() && found.Before(t.start) || !t.end.IsZero() && found.After(t.end)) {
		return time.Time{}
	}
	return found
}

// business returns the instant at which the clock shows a time of a business day. ok is false when the day is none at
// that time.
func (t *Table) business(day calendar.Day, clock time.Duration) (x time.Time, ok bool) {
	if t.weekend[day.Weekday()] {
		return time.Time{}, false
	}
	x = day.At(clock, t.loc).In(t.loc)
	if calendar.DayOf(x) != day {
		return time.Time{}, false // the zone left that day out
	}
	if x.Year() < 1 || x.Year() > 9999 {
		return time.Time{}, false
	}
	_, closed := t.closedAt(x)
	return x, !closed
}

// nextMoved returns the first instant after `after` and at or before limit that an excluded one was moved to.
func (t *Table) nextMoved(after, limit time.Time) time.Time {
	var best time.Time
	first, last := t.sources(after, limit)
	for year := first; year <= last; year++ {
		if bound, _ := t.landing(year); !best.IsZero() && bound.After(best) {
			break
		}
		for _, m := range t.movesIn(year) {
			if m.lands() && m.to.After(after) && !m.to.After(limit) && (best.IsZero() || m.to.Before(best)) {
				best = m.to
			}
		}
	}
	return best
}

// prevMoved returns the last instant at or before through and after limit that an excluded one was moved to.
func (t *Table) prevMoved(through, limit time.Time) time.Time {
	var best time.Time
	first, last := t.sources(limit, through)
	for year := last; year >= first; year-- {
		if _, bound := t.landing(year); !best.IsZero() && bound.Before(best) {
			break
		}
		for _, m := range t.movesIn(year) {
			if m.lands() && !m.to.After(through) && m.to.After(limit) && m.to.After(best) {
				best = m.to
			}
		}
	}
	return best
}

// countMoved returns how many instants in (after, through] excluded ones were moved to.
func (t *Table) countMoved(after, through time.Time) (n int64) {
	first, last := t.sources(after, through)
	for year := first; year <= last; year++ {
		for _, m := range t.movesIn(year) {
			if m.lands() && m.to.After(after) && !m.to.After(through) {
				n++
			}
		}
	}
	return n
}

// sources returns the years whose excluded instants may be moved into (after, through]: those within reach in which the
// schedule has instants.
func (t *Table) sources(after, through time.Time) (first, last int) {
	if t.shift == dts.ShiftNext {
		after = after.Add(-shiftReach)
	} else {
		through = through.Add(shiftReach)
	}
	a, b := t.base.Next(after), t.base.Prev(through)
	if a.IsZero() || b.IsZero() {
		return 0, -1
	}
	return a.In(t.loc).Year(), b.In(t.loc).Year()
}

// landing returns the times between which the excluded instants of a year may be moved to.
func (t *Table) landing(year int) (from, to time.Time) {
	from = time.Date(year, 1, 1, 0, 0, 0, 0, t.loc).AddDate(0, 0, -1)
	to = time.Date(year, 12, 31, 0, 0, 0, 0, t.loc).AddDate(0, 0, 2)
	if t.shift == dts.ShiftPrevious {
		return from.Add(-shiftReach), to
	}
	return from, to.Add(shiftReach)
}

// byTime compares a move's own time.
func byTime(m move, at time.Time) int { return m.at.Compare(at) }
