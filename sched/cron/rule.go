package cron

import (
	"math/bits"
	"slices"
)

// freq is the FREQ of a rule, from the longest period to the shortest.
type freq int

const (
	yearly freq = iota
	monthly
	weekly
	daily
	hourly
)

// rule is the set of wall-clock times that an RRULE names, its DTSTART applied. A rule looks at
// periods: the years, months, weeks, days or hours that are a multiple of interval from the one
// that holds start. What it costs to find a time therefore does not grow with the distance from
// start.
type rule struct {
	freq         freq
	interval     int64
	weekStart    int   // 0 is Sunday
	start, until int64 // wall seconds; both may be in the set
	base         int64 // the number of the period that holds start
	months       uint64
	monthDays    fromEnds32 // BYMONTHDAY
	weekdays     uint64     // BYDAY without numbers
	nth          []nthDay   // BYDAY with numbers
	inYear       bool       // nth counts in the year, not in the month
	yearDays     *fromEnds  // BYYEARDAY; nil: not given
	weeks        *fromEnds  // BYWEEKNO; nil: not given
	times        times
	positions    []int // BYSETPOS
}

// fromEnds32 is a set of days of a month: bit n is the n-th from the first, or from the last.
type fromEnds32 struct{ first, last uint32 }

// fromEnds is the same of days or weeks of a year.
type fromEnds struct{ first, last [370]bool }

// nthDay is a numbered BYDAY: n is -1 for the last.
type nthDay struct{ weekday, n int }

// periodOf returns the number of the period that holds wall time t.
func (r *rule) periodOf(t int64) int64 {
	day := floorDiv(t, secondsPerDay)
	switch r.freq {
	case yearly:
		return int64(monthOf(day).year)
	case monthly:
		m := monthOf(day)
		return int64(m.year)*12 + int64(m.month) - 1
	case weekly:
		return floorDiv(day+4-int64(r.weekStart), 7) // 1970-01-01 was a Thursday
	case daily:
		return day
	}
	return floorDiv(t, 3600)
}

// firstOf returns the wall time at which period p begins.
func (r *rule) firstOf(p int64) int64 {
	switch r.freq {
	case yearly:
		return newYear(p) * secondsPerDay
	case monthly:
		return monthOfNumber(p).first * secondsPerDay
	case weekly:
		return (p*7 - 4 + int64(r.weekStart)) * secondsPerDay
	case daily:
		return p * secondsPerDay
	}
	return p * 3600
}

// up returns the first of the rule's periods that is p or later.
func (r *rule) up(p int64) int64 {
	if p <= r.base {
		return r.base
	}
	return r.base - floorDiv(r.base-p, r.interval)*r.interval
}

// down returns the last of the rule's periods that is p or earlier; below base there is none.
func (r *rule) down(p int64) int64 {
	return r.base + floorDiv(p-r.base, r.interval)*r.interval
}

// next returns the first time in [from, to).
func (r *rule) next(from, to int64) (int64, bool) {
	from, to = max(from, r.start), min(to, r.until+1)
	if from >= to {
		return 0, false
	}
	s := scan{rule: r}
	for p := r.up(r.periodOf(from)); r.firstOf(p) < to; {
		s.load(p)
		if t, ok := s.atLeast(from); ok {
			return t, t < to
		}
		p = max(p+r.interval, r.up(s.skipTo))
	}
	return 0, false
}

// prev returns the last time in [from, to).
func (r *rule) prev(from, to int64) (int64, bool) {
	from, to = max(from, r.start), min(to, r.until+1)
	if from >= to {
		return 0, false
	}
	s := scan{rule: r}
	for p := r.down(r.periodOf(to - 1)); p >= r.base; {
		s.load(p)
		if t, ok := s.below(to); ok {
			return t, t >= from
		}
		if r.firstOf(p) <= from {
			break
		}
		p = min(p-r.interval, r.down(s.skipBack))
	}
	return 0, false
}

// count returns how many times lie in [from, to).
func (r *rule) count(from, to int64) int64 {
	from, to = max(from, r.start), min(to, r.until+1)
	if from >= to {
		return 0
	}
	var n int64
	s := scan{rule: r}
	for p := r.up(r.periodOf(from)); r.firstOf(p) < to; {
		s.load(p)
		n += s.before(to) - s.before(from)
		p = max(p+r.interval, r.up(s.skipTo))
	}
	return n
}

// scan walks the periods of a rule and remembers the month and the year it is in.
type scan struct {
	rule *rule

	// The period loaded last: days first+i for each bit i of days, each with times.
	first int64
	days  yearSet
	times times
	size  int64 // how many times the period has, before BYSETPOS

	// The next period that is worth a look when this one is empty, and the one before.
	skipTo, skipBack int64

	month    month
	inMonth  uint32 // the days of month that pass
	year     int
	inYear   yearSet // the days of year that pass the parts that look at the year
	haveYear bool
	list     []int64 // the times of the period that BYSETPOS chooses
}

// load reads period p.
func (s *scan) load(p int64) {
	r := s.rule
	s.days, s.times, s.list = yearSet{}, r.times, s.list[:0]
	s.skipTo, s.skipBack = p, p
	at := r.firstOf(p)
	s.first = floorDiv(at, secondsPerDay)
	switch r.freq {
	case yearly:
		m := newMonth(int(p), 1, s.first)
		for range 12 {
			s.days.put(s.pick(m), int(m.first-s.first))
			m = m.next()
		}
	case monthly:
		s.days.put(s.pick(monthOfNumber(p)), 0)
	case weekly:
		for i := range 7 {
			if s.picks(s.first + int64(i)) {
				s.days[0] |= 1 << i
			}
		}
	default:
		if s.picks(s.first) {
			s.days[0] = 1
		}
		hour := int(floorDiv(at, 3600) - s.first*24)
		if r.freq == hourly {
			s.times.hours &= 1 << hour
		}
		s.skip(hour)
	}
	s.size = 0
	if s.times.hours != 0 {
		s.size = s.days.count() * s.times.perDay()
	}
	if len(r.positions) > 0 {
		s.choose()
	}
}

// skip passes over months, days and hours of which a daily or hourly rule picks nothing.
func (s *scan) skip(hour int) {
	from, to := s.first*24, s.first*24+24 // hours [from, to) have nothing
	switch {
	case s.inMonth == 0:
		from, to = s.month.first*24, (s.month.first+int64(s.month.days))*24
	case s.days[0] == 0:
	case s.times.hours == 0:
		if h, ok := atLeast(s.rule.times.hours, hour); ok {
			to = s.first*24 + int64(h)
		}
		if h, ok := atMost(s.rule.times.hours, hour); ok {
			from = s.first*24 + int64(h) + 1
		}
	default:
		return
	}
	s.skipTo, s.skipBack = s.rule.periodOf(to*3600), s.rule.periodOf(from*3600-1)
}

// choose fills list with the times that BYSETPOS names.
func (s *scan) choose() {
	perDay := int64(1)
	if s.size > 0 {
		perDay = s.times.perDay()
	}
	for _, pos := range s.rule.positions {
		k := int64(pos) - 1
		if pos < 0 {
			k = s.size + int64(pos)
		}
		if k < 0 || k >= s.size {
			continue
		}
		day := s.first + int64(s.days.nth(k/perDay))
		s.list = append(s.list, day*secondsPerDay+int64(s.times.nth(k%perDay)))
	}
	slices.Sort(s.list)
	s.list = slices.Compact(s.list)
}

// atLeast returns the first time of the period at or after t.
func (s *scan) atLeast(t int64) (int64, bool) {
	if len(s.rule.positions) > 0 {
		i, _ := slices.BinarySearch(s.list, t)
		if i == len(s.list) {
			return 0, false
		}
		return s.list[i], true
	}
	if s.size == 0 {
		return 0, false
	}
	at := floorDiv(t, secondsPerDay)
	if i := at - s.first; i >= 0 && s.days.has(i) {
		if sod, ok := s.times.nextInDay(int(t - at*secondsPerDay)); ok {
			return at*secondsPerDay + int64(sod), true
		}
	}
	i, ok := s.days.atLeast(max(at-s.first+1, 0))
	if t < s.first*secondsPerDay {
		i, ok = s.days.atLeast(0)
	}
	if !ok {
		return 0, false
	}
	sod, _ := s.times.nextInDay(0)
	return (s.first+int64(i))*secondsPerDay + int64(sod), true
}

// below returns the last time of the period before t.
func (s *scan) below(t int64) (int64, bool) {
	if len(s.rule.positions) > 0 {
		i, _ := slices.BinarySearch(s.list, t)
		if i == 0 {
			return 0, false
		}
		return s.list[i-1], true
	}
	if s.size == 0 {
		return 0, false
	}
	at := floorDiv(t-1, secondsPerDay)
	if i := at - s.first; i >= 0 && s.days.has(i) {
		if sod, ok := s.times.prevInDay(int(t - 1 - at*secondsPerDay)); ok {
			return at*secondsPerDay + int64(sod), true
		}
	}
	i, ok := s.days.atMost(at - s.first - 1)
	if !ok {
		return 0, false
	}
	sod, _ := s.times.prevInDay(secondsPerDay - 1)
	return (s.first+int64(i))*secondsPerDay + int64(sod), true
}

// before returns how many times of the period lie before t.
func (s *scan) before(t int64) int64 {
	if len(s.rule.positions) > 0 {
		i, _ := slices.BinarySearch(s.list, t)
		return int64(i)
	}
	if s.size == 0 || t <= s.first*secondsPerDay {
		return 0
	}
	day := floorDiv(t, secondsPerDay)
	n := s.days.below(day-s.first) * s.times.perDay()
	if s.days.has(day - s.first) {
		n += s.times.countBefore(int(t - day*secondsPerDay))
	}
	return n
}

// yearSet is a set of up to 366 days, counted from the first day of a period.
type yearSet [6]uint64

// put adds days of a month, bit 1 being the first, which is day at.
func (y *yearSet) put(days uint32, at int) {
	d := uint64(days >> 1)
	y[at/64] |= d << (at % 64)
	if at%64 > 32 && at/64 < 5 {
		y[at/64+1] |= d >> (64 - at%64)
	}
}

// month returns the 31 days from day at, as bits 1 to 31.
func (y *yearSet) month(at int) uint32 {
	d := y[at/64] >> (at % 64)
	if at%64 > 32 && at/64 < 5 {
		d |= y[at/64+1] << (64 - at%64)
	}
	return uint32(d << 1)
}

func (y *yearSet) has(i int64) bool {
	return i >= 0 && i < 384 && y[i/64]&(1<<(i%64)) != 0
}

func (y *yearSet) count() int64 { return y.below(384) }

// below returns how many days come before day i.
func (y *yearSet) below(i int64) int64 {
	var n int
	for k, word := range y {
		left := i - int64(k)*64
		if left <= 0 {
			break
		}
		if left < 64 {
			word &= 1<<left - 1
		}
		n += bits.OnesCount64(word)
	}
	return int64(n)
}

// nth returns the k-th day, counted from 0.
func (y *yearSet) nth(k int64) int {
	for i, word := range y {
		if n := int64(bits.OnesCount64(word)); k >= n {
			k -= n
			continue
		}
		return i*64 + member(word, k)
	}
	return 0
}

// atLeast returns the first day that is i or later.
func (y *yearSet) atLeast(i int64) (int, bool) {
	for k := i / 64; k < 6; k++ {
		word := y[k]
		if k == i/64 {
			word &= ^uint64(0) << (i % 64)
		}
		if word != 0 {
			return int(k)*64 + bits.TrailingZeros64(word), true
		}
	}
	return 0, false
}

// atMost returns the last day that is i or earlier.
func (y *yearSet) atMost(i int64) (int, bool) {
	if i < 0 {
		return 0, false
	}
	i = min(i, 383)
	for k := i / 64; k >= 0; k-- {
		word := y[k]
		if k == i/64 {
			word &= ^uint64(0) >> (63 - i%64)
		}
		if word != 0 {
			return int(k)*64 + bits.Len64(word) - 1, true
		}
	}
	return 0, false
}
