package cron

import (
	"math/bits"
	"time"
)

// month is one calendar month: the day number of its first day (days since 1970-01-01), its
// length, and the weekday of the first, Sunday being 0.
type month struct {
	year, month int
	first       int64
	days        int
	weekday     int
}

// monthOf returns the month that holds a day.
func monthOf(day int64) month {
	y, m, d := time.Unix(day*secondsPerDay, 0).UTC().Date()
	return newMonth(y, int(m), day-int64(d-1))
}

func newMonth(year, m int, first int64) month {
	days := 30 + (m+m>>3)&1
	if m == 2 {
		days = 28
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			days = 29
		}
	}
	return month{year, m, first, days, int(((first+4)%7 + 7) % 7)} // 1970-01-01 was a Thursday
}

func (m month) next() month {
	first := m.first + int64(m.days)
	if m.month == 12 {
		return newMonth(m.year+1, 1, first)
	}
	return newMonth(m.year, m.month+1, first)
}

func (m month) prev() month {
	if m.month == 1 {
		return newMonth(m.year-1, 12, m.first-31)
	}
	p := newMonth(m.year, m.month-1, 0)
	return newMonth(p.year, p.month, m.first-int64(p.days))
}

// days says which days of a month a schedule picks. Bits are days of the month (1 to 31) or
// weekdays (0 to 6).
type days struct {
	dom         uint32   // plain days
	near        uint32   // nW
	last        uint32   // bit n is L-n
	lastWeekday bool     // LW
	dow         uint32   // plain weekdays
	lastDow     uint32   // dL
	nth         [7]uint8 // for each weekday, bit n is #n
	and         bool     // both fields must agree; else either will do
}

func newDays(dom, dow field, seed string) days {
	d := days{
		dom: uint32(dom.bits(seed)),
		dow: uint32(dow.bits(seed)),
		and: dom.star() || dow.star(),
	}
	for _, it := range dom.items {
		switch it.kind {
		case kindLast:
			d.last |= 1 << it.n
		case kindNearest:
			d.near |= 1 << it.lo
		case kindLastWeekday:
			d.lastWeekday = true
		}
	}
	for _, it := range dow.items {
		switch it.kind {
		case kindLastDay:
			d.lastDow |= 1 << it.lo
		case kindNth:
			d.nth[it.lo] |= 1 << it.n
		}
	}
	return d
}

// in returns the days of m that are picked, bit 1 being the first.
func (d *days) in(m month) uint32 {
	a, b := d.byDom(m), d.byDow(m)
	if d.and {
		return a & b
	}
	return a | b
}

func (d *days) byDom(m month) uint32 {
	set := d.dom
	for rest := d.last; rest != 0; rest &= rest - 1 {
		if day := m.days - bits.TrailingZeros32(rest); day >= 1 {
			set |= 1 << day
		}
	}
	for rest := d.near; rest != 0; rest &= rest - 1 {
		if day := bits.TrailingZeros32(rest); day <= m.days {
			set |= 1 << m.nearestWeekday(day)
		}
	}
	if d.lastWeekday {
		set |= 1 << m.nearestWeekday(m.days)
	}
	return set & (1<<(m.days+1) - 2)
}

func (d *days) byDow(m month) uint32 {
	var set uint32
	for wd := range 7 {
		first := 1 + (wd-m.weekday+7)%7
		if d.dow&(1<<wd) != 0 {
			set |= 0x10204081 << first // every seventh day
		}
		if d.lastDow&(1<<wd) != 0 {
			set |= 1 << (first + (m.days-first)/7*7)
		}
		for rest := d.nth[wd]; rest != 0; rest &= rest - 1 {
			set |= 1 << (first + 7*(bits.TrailingZeros8(rest)-1))
		}
	}
	return set & (1<<(m.days+1) - 2)
}

// nearestWeekday returns the Monday-to-Friday day nearest to day, without leaving the month.
func (m month) nearestWeekday(day int) int {
	switch (m.weekday + day - 1) % 7 {
	case 6: // Saturday
		if day == 1 {
			return 3
		}
		return day - 1
	case 0: // Sunday
		if day == m.days {
			return day - 2
		}
		return day + 1
	}
	return day
}
