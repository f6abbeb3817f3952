package calendar

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// span is a run of days, both ends included.
type span struct {
	first, last Day
	name        string
}

// days is one entry of dts.Calendar.Days: fixed days, or days of every year.
type days struct {
	span     // of fixed days; the name of both kinds
	yearly   bool
	from, to time.Time // of yearly ones, in a leap year; only month and day count
	leap     bool      // 29 February alone
}

const wantDays = "must be a day such as 2026-12-25, a day of every year such as 12-25, or a range such as 2026-12-24/2027-01-02"

// The years that days may name: those before have no schedule to exclude from.
const (
	minYear = 1900
	maxYear = 9999
)

func parseDays(s string) (days, error) {
	first, last, isRange := strings.Cut(s, "/")
	if !isRange {
		last = first
	}
	d := days{span: span{name: s}}
	var err error
	switch {
	case len(s) > 32:
		return d, fmt.Errorf("%.32q… %s", s, wantDays)
	case len(first) == len("12-25") && len(last) == len("12-25"):
		d.yearly = true
		if d.from, err = time.Parse(time.DateOnly, "2000-"+first); err == nil {
			d.to, err = time.Parse(time.DateOnly, "2000-"+last)
		}
		if err != nil {
			return d, fmt.Errorf("%q: no such day; it %s", s, wantDays)
		}
		d.leap = !isRange && first == "02-29"
		if isRange && (first == "02-29" || last == "02-29") {
			return d, fmt.Errorf("%q: a range of every year cannot begin or end on 29 February; use 02-28 or 03-01", s)
		}
		return d, nil
	}
	if d.first, err = parseDay(first); err == nil {
		d.last, err = parseDay(last)
	}
	switch {
	case err != nil:
		return d, fmt.Errorf("%q: %s", s, err)
	case d.last < d.first:
		return d, fmt.Errorf("%q ends before it begins; write %s/%s", s, last, first)
	}
	return d, nil
}

func parseDay(s string) (Day, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		if len(s) == len(time.DateOnly) && s[4] == '-' && s[7] == '-' {
			return 0, fmt.Errorf("no such day; it %s", wantDays)
		}
		return 0, fmt.Errorf("%s", wantDays)
	}
	if t.Year() < minYear {
		return 0, fmt.Errorf("the year must be %d or later", minYear)
	}
	return DayOf(t), nil
}

// in appends the spans that begin in the civil years [from, to], and for fixed days the span itself.
func (d days) in(list []span, from, to int) []span {
	if !d.yearly {
		return append(list, d.span)
	}
	for year := from; year <= to; year++ {
		if d.leap && !leapYear(year) {
			continue
		}
		end := year
		if d.to.Before(d.from) {
			end++ // over the turn of the year
		}
		list = append(list, span{
			first: dayOfDate(year, d.from.Month(), d.from.Day()),
			last:  dayOfDate(end, d.to.Month(), d.to.Day()),
			name:  d.name,
		})
	}
	return list
}

// covers reports whether day is one of these.
func (d days) covers(day Day) bool {
	if !d.yearly {
		return d.first <= day && day <= d.last
	}
	year, _, _ := day.Date()
	return slices.ContainsFunc(d.in(nil, year-1, year), func(s span) bool { return s.first <= day && day <= s.last })
}

func leapYear(y int) bool { return y%4 == 0 && (y%100 != 0 || y%400 == 0) }

// weekdays is a set of days of the week, bit 0 being Sunday.
type weekdays uint8

const everyWeekday weekdays = 1<<7 - 1

const weekdayNames = "SUN MON TUE WED THU FRI SAT"

func parseWeekdays(list []string) (set weekdays, index int, err error) {
	for i, s := range list {
		n := slices.Index(strings.Fields(weekdayNames), strings.ToUpper(s))
		if n < 0 {
			return 0, i, fmt.Errorf("%.32q must be one of %s", s, strings.ReplaceAll(weekdayNames, " ", ", "))
		}
		set |= 1 << n
	}
	return set, 0, nil
}

func (w weekdays) has(d time.Weekday) bool { return w&(1<<d) != 0 }

// String names the set: "weekends", "Mondays, Fridays".
func (w weekdays) String() string {
	switch w {
	case 1<<time.Saturday | 1<<time.Sunday:
		return "weekends"
	case everyWeekday:
		return "every day"
	}
	var names []string
	for d := time.Sunday; d <= time.Saturday; d++ {
		if w.has(d) {
			names = append(names, d.String()+"s")
		}
	}
	return strings.Join(names, ", ")
}

// in appends the runs of these weekdays in [first, last].
func (w weekdays) in(list []span, first, last Day) []span {
	if w == 0 {
		return list
	}
	name := w.String()
	if w == everyWeekday {
		return append(list, span{first, last, name})
	}
	for d := first; d <= last; d++ {
		if !w.has(d.Weekday()) {
			continue
		}
		s := span{d, d, name}
		for s.last < last && w.has((s.last + 1).Weekday()) {
			s.last++
		}
		list = append(list, s)
		d = s.last
	}
	return list
}
