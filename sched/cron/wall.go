package cron

import "math/bits"

const secondsPerDay = 86400

// wall is the set of wall-clock times that the fields name, without a zone. A wall time is
// counted in seconds as if the clock showed UTC.
type wall struct {
	times
	months uint64
	days   days
}

func (e *expression) wall(seed string) *wall {
	return &wall{
		times:  times{e.second.bits(seed), e.minute.bits(seed), e.hour.bits(seed)},
		months: e.month.bits(seed),
		days:   newDays(e.dom, e.dow, seed),
	}
}

// fires reports whether any day is ever picked. It tries the fourteen kinds of year there are:
// leap or not, beginning on each weekday.
func (w *wall) fires() bool {
	for weekday := range 7 {
		for _, year := range [2]int{2000, 2001} {
			m := newMonth(year, 1, int64(weekday))
			for range 12 {
				if w.pick(m) != 0 {
					return true
				}
				m = m.next()
			}
		}
	}
	return false
}

// pick returns the picked days of m, bit 1 being the first.
func (w *wall) pick(m month) uint32 {
	if w.months&(1<<m.month) == 0 {
		return 0
	}
	return w.days.in(m)
}

// next returns the first time in [from, to).
func (w *wall) next(from, to int64) (int64, bool) {
	if from >= to {
		return 0, false
	}
	first, last := floorDiv(from, secondsPerDay), floorDiv(to-1, secondsPerDay)
	sod := int(from - first*secondsPerDay)
	for day, ok := w.nextDay(first, last); ok; day, ok = w.nextDay(day+1, last) {
		if day != first {
			sod = 0
		}
		if s, ok := w.nextInDay(sod); ok {
			t := day*secondsPerDay + int64(s)
			return t, t < to
		}
	}
	return 0, false
}

// prev returns the last time in [from, to).
func (w *wall) prev(from, to int64) (int64, bool) {
	if from >= to {
		return 0, false
	}
	first, last := floorDiv(from, secondsPerDay), floorDiv(to-1, secondsPerDay)
	sod := int(to - 1 - last*secondsPerDay)
	for day, ok := w.prevDay(last, first); ok; day, ok = w.prevDay(day-1, first) {
		if day != last {
			sod = secondsPerDay - 1
		}
		if s, ok := w.prevInDay(sod); ok {
			t := day*secondsPerDay + int64(s)
			return t, t >= from
		}
	}
	return 0, false
}

// count returns how many times lie in [from, to).
func (w *wall) count(from, to int64) int64 {
	if from >= to {
		return 0
	}
	first, last := floorDiv(from, secondsPerDay), floorDiv(to, secondsPerDay)
	n := w.countDays(first, last) * w.countBefore(secondsPerDay)
	if w.countDays(first, first+1) == 1 {
		n -= w.countBefore(int(from - first*secondsPerDay))
	}
	if w.countDays(last, last+1) == 1 {
		n += w.countBefore(int(to - last*secondsPerDay))
	}
	return n
}

// nextDay returns the first picked day in [from, last].
func (w *wall) nextDay(from, last int64) (int64, bool) {
	if from > last {
		return 0, false
	}
	m := monthOf(from)
	mask := w.pick(m) & (^uint32(0) << (from - m.first + 1))
	for {
		if mask != 0 {
			day := m.first + int64(bits.TrailingZeros32(mask)) - 1
			return day, day <= last
		}
		if m = m.next(); m.first > last {
			return 0, false
		}
		mask = w.pick(m)
	}
}

// prevDay returns the last picked day in [first, from].
func (w *wall) prevDay(from, first int64) (int64, bool) {
	if from < first {
		return 0, false
	}
	m := monthOf(from)
	mask := w.pick(m) & uint32(uint64(1)<<(from-m.first+2)-1)
	for {
		if mask != 0 {
			day := m.first + int64(bits.Len32(mask)) - 2
			return day, day >= first
		}
		if m.first <= first {
			return 0, false
		}
		m = m.prev()
		mask = w.pick(m)
	}
}

// countDays returns how many picked days lie in [from, to).
func (w *wall) countDays(from, to int64) int64 {
	var n int64
	if from >= to {
		return 0
	}
	m := monthOf(from)
	mask := w.pick(m) & (^uint32(0) << (from - m.first + 1))
	for m.first+int64(m.days) <= to {
		n += int64(bits.OnesCount32(mask))
		m = m.next()
		mask = w.pick(m)
		if m.first >= to {
			return n
		}
	}
	return n + int64(bits.OnesCount32(mask&uint32(uint64(1)<<(to-m.first+1)-1)))
}

// floorDiv divides rounding down, so that times before 1970 land in the right day.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
