package calendar

import (
	"slices"
	"time"
)

// A calendar is computed and kept by chunks of one year in UTC.
type chunkKey struct {
	zone string
	year int
}

// The most that is kept: chunks, and windows in all of them.
const (
	maxChunks = 100
	maxCached = 30_000
)

// Windows returns the parts of the calendar's windows that lie in [from, to), in order, made one where they touch.
// Days are read in loc, an IANA zone. Years outside 1 to 9999 have none.
func (c *Calendar) Windows(from, to time.Time, loc *time.Location) []Window {
	return merge(c.Segments(from, to, loc))
}

// Segments is like Windows, but cuts a window where its name changes.
func (c *Calendar) Segments(from, to time.Time, loc *time.Location) []Window {
	from, to = from.UTC(), to.UTC()
	var out []Window
	for year := max(from.Year(), 1); year <= min(to.Year(), maxYear); year++ {
		for _, w := range clip(c.chunk(year, loc), from, to) {
			out = appendJoined(out, w)
		}
	}
	return out
}

// At returns the window that covers t, as Segments has it but cut at the turn of the year in UTC.
func (c *Calendar) At(t time.Time, loc *time.Location) (w Window, ok bool) {
	year := t.UTC().Year()
	if year < 1 || year > maxYear {
		return Window{}, false
	}
	return find(c.chunk(year, loc), t)
}

// find returns the window of an ordered list that covers t.
func find(list []Window, t time.Time) (w Window, ok bool) {
	i, _ := slices.BinarySearchFunc(list, t, func(w Window, t time.Time) int {
		if w.To.After(t) {
			return 1
		}
		return -1
	})
	if i == len(list) || list[i].From.After(t) {
		return Window{}, false
	}
	return list[i], true
}

// chunk returns the windows of a year in UTC. The result is shared: do not change it.
func (c *Calendar) chunk(year int, loc *time.Location) []Window {
	key := chunkKey{loc.String(), year}
	c.mu.Lock()
	list, ok := c.cache[key]
	c.mu.Unlock()
	if ok {
		return list
	}
	list = c.compute(year, loc)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.cache) >= maxChunks || c.cached+len(list) > maxCached {
		clear(c.cache)
		c.cached = 0
	}
	if _, again := c.cache[key]; !again {
		c.cache[key] = list
		c.cached += len(list)
	}
	return list
}

// compute puts the layers of a calendar over each other: what was named by hand tells more than a weekday does.
func (c *Calendar) compute(year int, loc *time.Location) []Window {
	from := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
	to := time.Date(year+1, 1, 1, 0, 0, 0, 0, time.UTC)
	first, last := DayOf(from.In(loc)), DayOf(to.In(loc))
	asWindows := func(list []span) []Window {
		var out []Window
		for _, s := range list {
			if s.last < first || s.first > last {
				continue
			}
			out = append(out, Window{
				From: max(s.first, first-1).Start(loc), To: (min(s.last, last+1) + 1).Start(loc),
				Name: s.name, Calendar: c.name,
			})
		}
		return out
	}

	var byHand, publicly []span
	for _, d := range c.days {
		byHand = d.in(byHand, year-2, year+1)
	}
	if c.holidays != nil {
		publicly = c.holidays.in(nil, year-1, year+1)
	}
	occurring, timed := c.events.in(from, to, first, last)
	windows := slices.Clone(c.fixed)
	for _, r := range c.recurring {
		for t := r.schedule.Next(from.Add(-r.duration)); !t.IsZero() && t.Before(to); t = r.schedule.Next(t) {
			windows = append(windows, Window{From: t.UTC(), To: t.UTC().Add(r.duration), Name: r.name, Calendar: c.name})
		}
	}

	var all []Window
	for _, layer := range [][]Window{
		asWindows(byHand),
		append(asWindows(occurring), timed...),
		asWindows(publicly),
		windows,
		asWindows(c.weekdays.in(nil, first, last)),
	} {
		all = Overlay(all, tidy(layer))
	}
	return clip(all, from, to)
}
