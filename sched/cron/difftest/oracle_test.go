package difftest

import "time"

// rules is what the oracle applies to the readings that match. Those of dts are dtsRules; the others' differ.
type rules struct {
	elapsed bool // the job follows elapsed time: no run stands for lost readings, and both passes count
	and     bool // both day fields must agree
	gap     string
	overlap string
	// A shift of so many seconds or more is a correction; longGap 0: there is no such thing.
	longGap, longOverlap int64
	sameDay              bool // a run at the end of a gap must have the date of the lost reading
	forward              bool // a reading counts only if it is later than that of the run before, or of start
	oneLongPass          bool // an overlap of more than 3 hours is one in its first 3 hours; of the rest, the second pass alone counts, where it is later than what the run before showed
}

const threeHours = 3 * 3600

// dtsRules are the rules as docs/time.md says them.
func dtsRules(s *spec) rules {
	return rules{
		elapsed: s.begins(minute) || s.begins(hour),
		and:     s.begins(dom) || s.begins(dow),
		longGap: threeHours, longOverlap: threeHours,
	}
}

// watch looks at a zone's clock, second by second.
type watch struct {
	z    *zone
	s    *spec
	r    rules
	days map[int64]bool
}

func newWatch(s *spec, z *zone, r rules) *watch { return &watch{z, s, r, map[int64]bool{}} }

// offset is how far the clock is ahead of UTC at the instant t.
func (w *watch) offset(t int64) int64 { return w.z.offset(t) }

func floor(a, b int64) int64 {
	if a%b < 0 {
		return a/b - 1
	}
	return a / b
}

// day reports whether the date fields match a day, which is counted since 1970-01-01.
func (w *watch) day(n int64) bool {
	ok, known := w.days[n]
	if !known {
		t := time.Unix(n*86400, 0).UTC()
		d := date{t.Year(), int(t.Month()), t.Day(), int(t.Weekday()), time.Date(t.Year(), t.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day()}
		a, b := w.s.byDom(d), w.s.byDow(d)
		ok = w.s.months[d.month] && (a && b || !w.r.and && (a || b))
		w.days[n] = ok
	}
	return ok
}

// match reports whether a reading, in seconds as if the clock showed UTC, is in the fields.
func (w *watch) match(reading int64) bool {
	n := floor(reading, 86400)
	s := reading - n*86400
	return w.s.seconds[s%60] && w.s.minutes[s/60%60] && w.s.hours[s/3600] && w.day(n)
}

// twins returns how far before and after t another instant has the reading of t, if it is nearer than limit; else 0.
func (w *watch) twins(t, limit int64) (before, after int64) {
	own := w.offset(t)
	for d := -limit; d <= limit; d += 900 {
		o := w.offset(t + d)
		other := t + own - o
		switch {
		case o == own || w.offset(other) != o:
		case other < t && t-other < limit:
			before = t - other
		case other > t && other-t < limit:
			after = other - t
		}
	}
	return before, after
}

// longTwin reports whether the reading of t comes twice because of a shift of more than 3 hours, and whether its second
// time is in the first 3 hours after that.
func (w *watch) longTwin(t int64) (long, early bool) {
	if !w.r.oneLongPass {
		return false, false
	}
	before, after := w.twins(t, 26*3600)
	second := t + after
	return max(before, after) > threeHours, w.offset(second-threeHours) != w.offset(second)
}

// runs reports whether the job runs at t by a reading of t itself; previous is when it ran before, or where the question
// starts.
func (w *watch) runs(t, previous int64) bool {
	reading := t + w.offset(t)
	if !w.match(reading) {
		return false
	}
	if long, twice := w.longTwin(t); w.r.oneLongPass && long {
		_, after := w.twins(t, 26*3600)
		_, again := w.longTwin(previous)
		seen := reading <= previous+w.offset(previous)
		return !twice && after == 0 && !seen || twice && (after > 0 || w.r.elapsed && (!seen || again))
	}
	before, after := w.twins(t, w.r.longOverlap)
	switch w.r.overlap {
	case "BOTH":
		return true
	case "SECOND":
		return after == 0
	case "FIRST":
		return before == 0
	}
	return w.r.elapsed || before == 0
}

// lost reports whether the clock jumps over a reading of the job at t.
func (w *watch) lost(t, tick int64) bool {
	before, own := w.offset(t-1), w.offset(t)
	ahead := own - before
	if ahead <= 0 || w.r.longGap != 0 && ahead >= w.r.longGap || w.r.elapsed || w.r.gap == "SKIP" {
		return false
	}
	for k := int64(0); k < ahead; k += tick {
		reading := t + before + k
		if w.match(reading) && (!w.r.sameDay || floor(reading, 86400) == floor(t+own, 86400)) {
			return true
		}
	}
	return false
}

// next returns up to count instants after start, none later than until. It looks at every tick, but passes over half
// days that are far from any date of the fields.
func (w *watch) next(start time.Time, until int64, count int) []int64 {
	tick := int64(60)
	if w.s.six || start.Unix() < w.z.oddUntil {
		tick = 1
	}
	var out []int64
	previous := start.Unix()
	owed := int64(-1 << 62) // a run at the whole minute after a gap
	for t := floor(start.Unix()-120, 60) * 60; t <= until && len(out) < count; t += tick {
		if n := floor(t+w.offset(t), 86400); !w.day(n-1) && !w.day(n) && !w.day(n+1) && !w.day(n+2) {
			t += 43200 - tick
			continue
		}
		if w.lost(t, tick) {
			owed = t - floor(-(t+w.offset(t)), 60)*60 - (t + w.offset(t))
		}
		if t > start.Unix() && (t == owed || w.runs(t, previous)) {
			if !w.r.forward || t+w.offset(t) > previous+w.offset(previous) {
				out, previous = append(out, t), t
			}
		}
	}
	return out
}
