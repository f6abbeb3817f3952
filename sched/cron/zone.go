package cron

import "time"

// A shift of this many seconds or more is a correction of the zone, not a gap or an overlap: as
// in Debian's cron, every job then simply follows the new clock.
const correction = 3 * 3600

// How far Next and Prev look, in seconds: 41 years for an expression, 400 for a rule, after which
// the calendar repeats.
const (
	horizon     = 41 * 366 * secondsPerDay
	ruleHorizon = 400 * 366 * secondsPerDay
)

// No instant is further than this from its reading: more than any zone is from UTC, and a minute
// of rounding after a gap.
const offsetsAtMost = 25 * 3600

// readings is a set of wall-clock times in whole seconds, each counted as if the clock showed UTC.
type readings interface {
	next(from, to int64) (int64, bool) // the first in [from, to)
	prev(from, to int64) (int64, bool) // the last in [from, to)
	count(from, to int64) int64        // how many in [from, to)
}

// clock is a set of wall-clock times read in a zone.
type clock struct {
	wall    readings
	loc     *time.Location
	elapsed bool // follows elapsed time: minute or hour begins with *, or FREQ=HOURLY
	gap     GapPolicy
	overlap OverlapPolicy
	horizon int64 // how far to look, in seconds
}

// span is a stretch of time with one offset from UTC, and what the schedule may do in it. The
// instants in it are those whose wall time is in the set and in [wallFrom, wallTo), and gapRun.
type span struct {
	start, end       int64 // Unix seconds, [start, end)
	offset           int64 // wall = Unix + offset
	before           int64 // the offset until start
	wallFrom, wallTo int64
	gapRun           int64 // the instant that stands for the times lost in the gap before start; noRun when there is none
}

const noRun = minUnix - 1

// spanAt returns the span that holds the instant t.
func (c *clock) spanAt(t int64) span {
	at := time.Unix(t, 0).In(c.loc)
	s := span{start: minUnix, end: maxUnix + 1, offset: offsetOf(at), gapRun: noRun}
	s.before = s.offset
	after := s.offset
	from, to := at.ZoneBounds()
	if !from.IsZero() && from.Unix() > minUnix {
		s.start = from.Unix()
		s.before = offsetOf(from.Add(-time.Second))
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
	if back := s.before - s.offset; back > 0 && back < correction && c.firstPassOnly() {
		s.wallFrom = s.start + s.before // the previous span has run these
	}
	if back := s.offset - after; back > 0 && back < correction && c.overlap == OverlapSecond {
		s.wallTo = s.end + after // the next span will run these
	}
	if ahead := s.offset - s.before; ahead > 0 && ahead < correction && !c.elapsed && c.gap != GapSkip {
		if _, lost := c.wall.next(s.start+s.before, s.start+s.offset); lost {
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
	return c.at(c.first(from, min(from+c.horizon, maxUnix+1)))
}

func (c *clock) Prev(through time.Time) time.Time {
	if through.Unix() < minUnix {
		return time.Time{}
	}
	to := min(through.Unix(), maxUnix) + 1
	return c.at(c.last(max(to-c.horizon, minUnix), to))
}

func (c *clock) at(t int64, ok bool) time.Time {
	if !ok {
		return time.Time{}
	}
	return time.Unix(t, 0).In(c.loc)
}

// first returns the first instant in [from, limit).
func (c *clock) first(from, limit int64) (int64, bool) {
	for from < limit {
		s := c.spanAt(from)
		w, ok := c.wall.next(max(from+s.offset, s.wallFrom), min(limit+s.offset, s.wallTo))
		t := w - s.offset
		if s.gapRun >= from && s.gapRun < limit && (!ok || s.gapRun < t) {
			t, ok = s.gapRun, true
		}
		if ok {
			return t, true
		}
		from = c.skip(s.end, limit)
	}
	return 0, false
}

// skip returns the first instant in [from, limit] that is worth a look. No instant lies further from
// its reading than a zone from UTC, so the spans that hold no reading need none.
func (c *clock) skip(from, limit int64) int64 {
	w, ok := c.wall.next(from-offsetsAtMost, limit+offsetsAtMost)
	if !ok {
		return limit
	}
	return max(from, w-offsetsAtMost)
}

// last returns the last instant in [limit, to).
func (c *clock) last(limit, to int64) (int64, bool) {
	for to > limit {
		s := c.spanAt(to - 1)
		w, ok := c.wall.prev(max(limit+s.offset, s.wallFrom), min(to+s.offset, s.wallTo))
		t := w - s.offset
		if s.gapRun >= limit && s.gapRun < to && (!ok || s.gapRun > t) {
			t, ok = s.gapRun, true
		}
		if ok {
			return t, true
		}
		to = s.start
		w, ok = c.wall.prev(limit-offsetsAtMost, to+offsetsAtMost)
		if !ok {
			return 0, false
		}
		to = min(to, w+offsetsAtMost)
	}
	return 0, false
}

func (c *clock) Count(after, through time.Time) int64 {
	from, to := ends(after, through)
	var n int64
	for from < to {
		s := c.spanAt(from)
		in := c.countIn(s, from, min(s.end, to))
		n += in
		from = s.end
		if in == 0 {
			from = c.skip(from, to)
		}
	}
	return n
}

// ends turns the bounds of a Count into Unix seconds [from, to).
func ends(after, through time.Time) (from, to int64) {
	if after.Unix() >= maxUnix || through.Unix() < minUnix {
		return 0, 0
	}
	return max(after.Unix()+1, minUnix), min(through.Unix(), maxUnix) + 1
}

// countIn returns how many instants lie in [from, to), which is inside s.
func (c *clock) countIn(s span, from, to int64) int64 {
	n := c.wall.count(max(from+s.offset, s.wallFrom), min(to+s.offset, s.wallTo))
	if s.gapRun >= from && s.gapRun < to && c.wall.count(s.gapRun+s.offset, s.gapRun+s.offset+1) == 0 {
		n++
	}
	return n
}

// nth returns the n-th instant at or after from, n being 1 or more, or false when it lies beyond
// the horizon. It looks at stretches that grow, so that the cost follows the answer.
func (c *clock) nth(n, from int64) (int64, bool) {
	limit := min(from+c.horizon, maxUnix+1)
	for stretch := int64(32 * secondsPerDay); from < limit; stretch = min(2*stretch, c.horizon) {
		s := c.spanAt(from)
		end := min(s.end, limit, from+stretch)
		in := c.countIn(s, from, end)
		if in < n {
			n -= in
			from = end
			if in == 0 {
				from = c.skip(from, limit)
			}
			continue
		}
		lo, hi := from, end // the answer is in [lo, hi)
		for hi-lo > 1 {
			mid := lo + (hi-lo)/2
			if in := c.countIn(s, lo, mid); in >= n {
				hi = mid
			} else {
				n, lo = n-in, mid
			}
		}
		return lo, true
	}
	return 0, false
}
