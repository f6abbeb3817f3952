package cron

// picks reports whether the rule picks a day, by all the parts that look at days.
func (s *scan) picks(day int64) bool {
	if i := day - s.month.first; i < 0 || i >= int64(s.month.days) {
		s.pick(monthOf(day))
	}
	return s.inMonth&(2<<(day-s.month.first)) != 0
}

// pick returns the days of m that the rule picks, bit 1 being the first, and remembers them.
func (s *scan) pick(m month) uint32 {
	s.month, s.inMonth = m, 0
	r := s.rule
	if r.months&(1<<m.month) == 0 {
		return 0
	}
	days := uint32(1)<<(m.days+1) - 2
	if b := r.monthDays; b.first|b.last != 0 {
		var set uint32
		for i := 1; i <= m.days; i++ {
			if b.first&(1<<i) != 0 || b.last&(1<<(m.days-i+1)) != 0 {
				set |= 1 << i
			}
		}
		days &= set
	}
	if !r.inYear && (r.weekdays != 0 || len(r.nth) > 0) {
		days &= r.byWeekday(m)
	}
	if r.yearDays != nil || r.weeks != nil || r.inYear {
		s.loadYear(m)
		days &= s.inYear.month(int(m.first - newYear(int64(m.year))))
	}
	s.inMonth = days
	return days
}

// byWeekday returns the days of m that BYDAY names, its numbers counted in the month.
func (r *rule) byWeekday(m month) uint32 {
	d := days{dow: uint32(r.weekdays)}
	set := d.byDow(m)
	for _, by := range r.nth {
		first := 1 + (by.weekday-m.weekday+7)%7
		day := first + 7*(by.n-1)
		if by.n < 0 {
			day = first + (m.days-first)/7*7 + 7*(by.n+1)
		}
		if day >= 1 && day <= m.days {
			set |= 1 << day
		}
	}
	return set
}

// loadYear finds the days of m's year that BYYEARDAY, BYWEEKNO and a BYDAY that counts in the year
// let pass.
func (s *scan) loadYear(m month) {
	if s.haveYear && s.year == m.year {
		return
	}
	s.haveYear, s.year, s.inYear = true, m.year, yearSet{}
	r := s.rule
	first := newYear(int64(m.year))
	length := int(newYear(int64(m.year)+1) - first)
	start := newMonth(m.year, 1, first).weekday
	var numbered yearSet
	for _, by := range r.nth {
		at := (by.weekday-start+7)%7 + 7*(by.n-1)
		if by.n < 0 {
			at = length - 1 - (start+length-1-by.weekday+7)%7 + 7*(by.n+1)
		}
		if at >= 0 && at < length {
			numbered[at/64] |= 1 << (at % 64)
		}
	}
	week := r.weekNumbers(m.year)
	for i := range length {
		switch {
		case r.yearDays != nil && !r.yearDays.has(i+1, length):
		case r.weeks != nil && !week(first+int64(i)):
		case r.inYear && !numbered.has(int64(i)) && r.weekdays&(1<<((start+i)%7)) == 0:
		default:
			s.inYear[i/64] |= 1 << (i % 64)
		}
	}
}

// has reports whether the n-th of total is in the set.
func (f *fromEnds) has(n, total int) bool {
	return f.first[n] || f.last[total-n+1]
}

// weekNumbers returns a function that reports whether a day of the year lies in a week that
// BYWEEKNO names. Week 1 is the first with four days or more in the year; the days around New Year
// may lie in a week of the year before or after.
func (r *rule) weekNumbers(year int) func(day int64) bool {
	if r.weeks == nil {
		return nil
	}
	var ones [4]int64 // of the year before, this year, and the two after
	for i := range ones {
		ones[i] = r.weekOne(int64(year - 1 + i))
	}
	return func(day int64) bool {
		i := 0
		for day >= ones[i+1] {
			i++
		}
		return r.weeks.has(int(day-ones[i])/7+1, int(ones[i+1]-ones[i])/7)
	}
}

// weekOne returns the first day of week 1 of a year.
func (r *rule) weekOne(year int64) int64 {
	fourth := newYear(year) + 3
	return fourth - (fourth+4-int64(r.weekStart)+7*1e6)%7
}

// newYear returns the number of 1 January of a year, counted from 1970-01-01.
func newYear(year int64) int64 {
	y := year - 1
	return y*365 + floorDiv(y, 4) - floorDiv(y, 100) + floorDiv(y, 400) - 719162
}

// monthOfNumber returns a month by its number, which is 12 times the year plus 0 for January.
func monthOfNumber(n int64) month {
	year := floorDiv(n, 12)
	before := [...]int64{0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334} // days of an ordinary year
	first := newYear(year) + before[n-year*12]
	if n-year*12 >= 2 && newYear(year+1)-newYear(year) == 366 {
		first++
	}
	return newMonth(int(year), int(n-year*12)+1, first)
}
