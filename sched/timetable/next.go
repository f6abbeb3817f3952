package timetable

import (
	"time"
)

// horizon is how many years Next and Prev look beyond the schedule's own next or previous instant.
const horizon = 10

// Next returns the first instant that runs after `after`, or the zero Time when there is none, or calendars leave none
// for 10 years.
func (t *Table) Next(after time.Time) time.Time {
	if t.plain() {
		return t.base.Next(after)
	}
	limit := after.Add(shiftReach) // of instants that were moved here from before
	first := t.base.Next(after)
	own := first
	if !first.IsZero() {
		limit = first.AddDate(horizon, 0, 0)
		own = t.nextOpen(first, limit)
	}
	if t.shift == "" {
		return own
	}
	if !own.IsZero() {
		limit = own
	}
	if moved := t.nextMoved(after, limit); !moved.IsZero() {
		return moved
	}
	return own
}

// nextOpen returns x, an instant of the schedule, or the first one after it that is not excluded, up to limit.
func (t *Table) nextOpen(x, limit time.Time) time.Time {
	for !x.IsZero() && !x.After(limit) {
		w, closed := t.closedAt(x)
		if !closed {
			return x
		}
		x = t.base.Next(w.To.Add(-1))
	}
	return time.Time{}
}

// Prev returns the last instant that runs at or before `through`, or the zero Time when there is none, or calendars
// leave none for 10 years.
func (t *Table) Prev(through time.Time) time.Time {
	if t.plain() {
		return t.base.Prev(through)
	}
	limit := through.Add(-shiftReach)
	last := t.base.Prev(through)
	own := last
	if !last.IsZero() {
		limit = last.AddDate(-horizon, 0, 0)
		own = t.prevOpen(last, limit)
	}
	if t.shift == "" {
		return own
	}
	if !own.IsZero() {
		limit = own
	}
	if moved := t.prevMoved(through, limit); !moved.IsZero() {
		return moved
	}
	return own
}

func (t *Table) prevOpen(x, limit time.Time) time.Time {
	for !x.IsZero() && !x.Before(limit) {
		w, closed := t.closedAt(x)
		if !closed {
			return x
		}
		x = t.base.Prev(w.From.Add(-1))
	}
	return time.Time{}
}

// Count returns the number of instants in (after, through] that run. It costs a little for each window of the
// calendars and each instant that is moved.
func (t *Table) Count(after, through time.Time) int64 {
	n := t.base.Count(after, through)
	if t.plain() {
		return n
	}
	if n > 0 {
		t.eachClosed(after, through, func(s stretch) { n -= t.base.Count(s.after, s.through) })
	}
	if t.shift != "" {
		n += t.countMoved(after, through)
	}
	return n
}

// has reports whether x is one of the schedule's own instants.
func (t *Table) has(x time.Time) bool { return t.base.Count(x.Add(-1), x) > 0 }
