package cron

import "math/bits"

// times is a set of times of day: every combination of its hours, minutes and seconds, each a bit
// for each value. None of the three is empty.
type times struct {
	seconds, minutes, hours uint64
}

// perDay returns how many times there are.
func (d times) perDay() int64 { return d.countBefore(secondsPerDay) }

// nth returns the k-th time, counted from 0, as a second of the day.
func (d times) nth(k int64) int {
	perMinute := int64(bits.OnesCount64(d.seconds))
	perHour := int64(bits.OnesCount64(d.minutes)) * perMinute
	return member(d.hours, k/perHour)*3600 + member(d.minutes, k%perHour/perMinute)*60 + member(d.seconds, k%perMinute)
}

// nextInDay returns the first second of the day at or after sod.
func (d times) nextInDay(sod int) (int, bool) {
	h, m, s := sod/3600, sod/60%60, sod%60
	if d.hours&(1<<h) != 0 {
		if d.minutes&(1<<m) != 0 {
			if v, ok := atLeast(d.seconds, s); ok {
				return h*3600 + m*60 + v, true
			}
		}
		if v, ok := atLeast(d.minutes, m+1); ok {
			return h*3600 + v*60 + bits.TrailingZeros64(d.seconds), true
		}
	}
	if v, ok := atLeast(d.hours, h+1); ok {
		return v*3600 + bits.TrailingZeros64(d.minutes)*60 + bits.TrailingZeros64(d.seconds), true
	}
	return 0, false
}

// prevInDay returns the last second of the day at or before sod.
func (d times) prevInDay(sod int) (int, bool) {
	h, m, s := sod/3600, sod/60%60, sod%60
	if d.hours&(1<<h) != 0 {
		if d.minutes&(1<<m) != 0 {
			if v, ok := atMost(d.seconds, s); ok {
				return h*3600 + m*60 + v, true
			}
		}
		if v, ok := atMost(d.minutes, m-1); ok {
			return h*3600 + v*60 + bits.Len64(d.seconds) - 1, true
		}
	}
	if v, ok := atMost(d.hours, h-1); ok {
		return v*3600 + (bits.Len64(d.minutes)-1)*60 + bits.Len64(d.seconds) - 1, true
	}
	return 0, false
}

// countBefore returns how many of the times lie before sod.
func (d times) countBefore(sod int) int64 {
	perMinute := int64(bits.OnesCount64(d.seconds))
	perHour := int64(bits.OnesCount64(d.minutes)) * perMinute
	if sod == secondsPerDay {
		return int64(bits.OnesCount64(d.hours)) * perHour
	}
	h, m, s := sod/3600, sod/60%60, sod%60
	n := below(d.hours, h) * perHour
	if d.hours&(1<<h) != 0 {
		n += below(d.minutes, m) * perMinute
		if d.minutes&(1<<m) != 0 {
			n += below(d.seconds, s)
		}
	}
	return n
}

// atLeast returns the smallest member of set that is v or more.
func atLeast(set uint64, v int) (int, bool) {
	set &= ^uint64(0) << v
	return bits.TrailingZeros64(set), set != 0
}

// atMost returns the largest member of set that is v or less.
func atMost(set uint64, v int) (int, bool) {
	set &= 1<<(v+1) - 1
	return bits.Len64(set) - 1, set != 0
}

// below returns how many members of set are less than v.
func below(set uint64, v int) int64 {
	return int64(bits.OnesCount64(set & (1<<v - 1)))
}

// member returns the k-th smallest member of set, counted from 0.
func member(set uint64, k int64) int {
	for ; k > 0; k-- {
		set &= set - 1
	}
	return bits.TrailingZeros64(set)
}
