package cron

import "time"

// A shift of this many seconds or more is a correction of the zone, not a gap or an overlap: as
// in Debian's cron, every job then simply follows the new clock.
const correction = 3 * 3600

// horizon is how far Next and Prev look: 41 years, in seconds.
const horizon = 41 * 366 * secondsPerDay

// clock is a cron schedule: a set of wall-clock times read in a zone.
type clock struct {
	wall    wall
	loc     *time.Location
	elapsed bool // minute or hour begins with *: follows elapsed time
	gap     GapPolicy
	overlap OverlapPolicy
}

// span is a stretch of time with one offset from UTC, and what the schedule may do in it. The
// instants in it are those whose wall time is in the set and in [wallFrom, wallTo), and gapRun.
type span struct {
	start, end       int64 // Unix seconds, [start, end)
	offset           int64 // wall = Unix + offset
	wallFrom, wallTo int64
	gapRun           int64 // the instant that stands for the times lost in the gap before start; noRun when there is none
}

const noRun = minUnix - 1

// spanAt returns the span that holds the instant t.
func (c *clock) spanAt(t int64) span {
	at := time.Unix(t, 0).In(c.loc)
	s := span{start: minUnix, end: maxUnix + 1, offset: offsetOf(at), gapRun: noRun}
	before, after := s.offset, s.offset
	from, to := at.ZoneBounds()
	if !from.IsZero() && from.Unix() > minUnix {
		s.start = from.Unix()
		before = offsetOf(from.Add(-time.Second))
	}
	if !to.IsZero() && to.Unix() <= t {
		// Past its tables the time package ends a zone's year after 365 days, so on the last day
		// of a leap year the bound lies behind t. No rule moves the clock on that day.
		to = time.Unix((floorDiv(t, secondsPerDay)+1)*secondsPerDay, 0).In(c.loc)
	}
	if !to.IsZero() && to.Unix() <= maxUnix {
		s.end = to.Unix()
		after = offsetOf(to)
	}
	s.wallFrom, s.wallTo = s.start+s.offset, s.end+s.offset
	if back := before - s.offset; back > 0 && back < correction && c.firstPassOnly() {
		s.wallFrom = s.start + before // the previous span has run these
	}
	if back := s.offset - after; back > 0 && back < correction && c.overlap == OverlapSecond {
		s.wallTo = s.end + after // the next span will run these
	}
	if ahead := s.offset - before; ahead > 0 && ahead < correction && !c.elapsed && c.gap != GapSkip {
		if _, lost := c.wall.next(s.start+before, s.start+s.offset); lost {
			s.gapRun = -floorDiv(-(s.start+s.offset), 60)*60 - s.offset // on the whole minute
		}
	}
	return s
}

// firstPassOnly reports whether the second pass of a repeated hour is left out.
func (c *clock) firstPassOnly() bool {
	return c.overlap == OverlapFirst || c.overlap == OverlapDefault && !c.elapsed
}

func offsetOf(t time.Time) int64 {
	_, offset := t.Zone()
	return int64(offset)
}

func (c *clock) Next(after time.Time) time.Time {
	if after.Unix() >= maxUnix {
		return time.Time{}
	}
	from := max(after.Unix()+1, minUnix)
	limit := min(from+horizon, maxUnix+1)
	for from < limit {
		s := c.spanAt(from)
		w, ok := c.wall.next(max(from+s.offset, s.wallFrom), min(limit+s.offset, s.wallTo))
		t := w - s.offset
		if s.gapRun >= from && (!ok || s.gapRun < t) {
			t, ok = s.gapRun, true
		}
		if ok {
			return time.Unix(t, 0).In(c.loc)
		}
		from = s.end
	}
	return time.Time{}
}

func (c *clock) Prev(through time.Time) time.Time {
	if through.Unix() < minUnix {
		return time.Time{}
	}
	to := min(through.Unix(), maxUnix) + 1
	limit := max(to-horizon, minUnix)
	for to > limit {
		s := c.spanAt(to - 1)
		w, ok := c.wall.prev(max(limit+s.offset, s.wallFrom), min(to+s.offset, s.wallTo))
		t := w - s.offset
		if s.gapRun != noRun && s.gapRun < to && (!ok || s.gapRun > t) {
			t, ok = s.gapRun, true
		}
		if ok {
			return time.Unix(t, 0).In(c.loc)
		}
		to = s.start
	}
	return time.Time{}
}

func (c *clock) Count(after, through time.Time) int64 {
	if after.Unix() >= maxUnix || through.Unix() < minUnix {
		return 0
	}
	from := max(after.Unix()+1, minUnix)
	to := min(through.Unix(), maxUnix) + 1
	var n int64
	for from < to {
		s := c.spanAt(from)
		end := min(s.end, to)
		n += c.wall.count(max(from+s.offset, s.wallFrom), min(end+s.offset, s.wallTo))
		if s.gapRun >= from && s.gapRun < end && !c.wall.has(s.gapRun+s.offset) {
			n++
		}
		from = s.end
	}
	return n
}
