package calendar

import (
	"slices"
	"strings"
	"time"
)

// Window is a stretch of time, [From, To), both in UTC.
type Window struct {
	From, To time.Time
	Name     string // what it is: a holiday, an event's summary, a day as it was given, "weekends"
	Calendar string // the name of the calendar
}

// same reports whether two windows have the same reason.
func (w Window) same(o Window) bool { return w.Name == o.Name && w.Calendar == o.Calendar }

// Overlay returns the windows of over, and what is left of under around them. Both must be in order and free of
// overlaps, and so is the result; neighbours with one reason become one.
func Overlay(over, under []Window) []Window {
	if len(under) == 0 {
		return over
	}
	if len(over) == 0 {
		return under
	}
	out := make([]Window, 0, len(over)+len(under))
	i := 0
	for _, u := range under {
		for i < len(over) && !over[i].To.After(u.From) {
			out = appendJoined(out, over[i])
			i++
		}
		for i < len(over) && over[i].From.Before(u.To) {
			if o := over[i]; u.From.Before(o.From) {
				left := u
				left.To = o.From
				out = appendJoined(out, left)
			}
			u.From = over[i].To
			if over[i].To.After(u.To) {
				break // it may cover the next one too
			}
			out = appendJoined(out, over[i])
			i++
		}
		if u.From.Before(u.To) {
			out = appendJoined(out, u)
		}
	}
	for _, o := range over[i:] {
		out = appendJoined(out, o)
	}
	return out
}

// appendJoined appends w, or makes the last window longer when w continues it.
func appendJoined(list []Window, w Window) []Window {
	if n := len(list); n > 0 && list[n-1].To.Equal(w.From) && list[n-1].same(w) {
		list[n-1].To = w.To
		return list
	}
	return append(list, w)
}

// tidy puts windows in order and ends overlaps: what begins first keeps its name. It changes list.
func tidy(list []Window) []Window {
	slices.SortStableFunc(list, func(a, b Window) int { return a.From.Compare(b.From) })
	out := list[:0]
	var end time.Time
	for _, w := range list {
		if len(out) > 0 && w.From.Before(end) {
			w.From = end
		}
		if w.From.Before(w.To) {
			out, end = appendJoined(out, w), w.To
		}
	}
	return out
}

// clip returns the parts of windows that lie in [from, to). It does not change list.
func clip(list []Window, from, to time.Time) []Window {
	if !from.Before(to) {
		return nil
	}
	first, _ := slices.BinarySearchFunc(list, from, func(w Window, t time.Time) int {
		if w.To.After(t) {
			return 1
		}
		return -1
	})
	var out []Window
	for _, w := range list[first:] {
		if !w.From.Before(to) {
			break
		}
		if w.From.Before(from) {
			w.From = from
		}
		if w.To.After(to) {
			w.To = to
		}
		out = append(out, w)
	}
	return out
}

// maxNames is how many names a merged window tells.
const maxNames = 3

// merge makes windows that touch one, which has all their names.
func merge(list []Window) []Window {
	var out []Window
	names := 0
	for _, w := range list {
		if n := len(out); n > 0 && out[n-1].To.Equal(w.From) {
			last := &out[n-1]
			last.To = w.To
			switch {
			case slices.Contains(strings.Split(last.Name, ", "), w.Name):
			case names < maxNames:
				last.Name += ", " + w.Name
				names++
			case names == maxNames:
				last.Name += ", …"
				names++
			}
			continue
		}
		out = append(out, w)
		names = 1
	}
	return out
}
