package calendar

import "time"

const secondsPerDay = 86400

// Day is a day on the wall clock, without a zone: the number of days since 1970-01-01.
type Day int64

// DayOf returns the day that t's location shows at t.
func DayOf(t time.Time) Day {
	year, month, day := t.Date()
	return dayOfDate(year, month, day)
}

func dayOfDate(year int, month time.Month, day int) Day {
	return Day(floorDiv(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix(), secondsPerDay))
}

// Date returns the year, month and day of the month.
func (d Day) Date() (year int, month time.Month, day int) {
	return time.Unix(int64(d)*secondsPerDay, 0).UTC().Date()
}

// Weekday returns the day of the week; 1970-01-01 was a Thursday.
func (d Day) Weekday() time.Weekday { return time.Weekday(((int64(d)+4)%7 + 7) % 7) }

// String returns the day as 2006-01-02.
func (d Day) String() string {
	return time.Unix(int64(d)*secondsPerDay, 0).UTC().Format(time.DateOnly)
}

// Start returns the first instant of the day in loc. Where the clock skips midnight that is the end of the gap.
func (d Day) Start(loc *time.Location) time.Time { return d.At(0, loc) }

// At returns the first instant of the day at which the clock in loc shows sinceMidnight or, where the clock skips
// that reading, the end of the gap.
func (d Day) At(sinceMidnight time.Duration, loc *time.Location) time.Time {
	wall := int64(d)*secondsPerDay + int64(sinceMidnight/time.Second)
	from := wall - 15*3600 // no zone is more than 14 hours ahead of UTC, so the clock shows less than wall here
	for {
		t := time.Unix(from, 0).In(loc)
		_, offset := t.Zone()
		_, end := t.ZoneBounds()
		next := end.Unix()
		if !end.IsZero() && next <= from {
			// Past its tables the time package ends a zone's year after 365 days, so on the last day of a leap
			// year the bound lies behind t. No rule moves the clock on that day.
			next = (floorDiv(from, secondsPerDay) + 1) * secondsPerDay
		}
		at := wall - int64(offset)
		switch {
		case at < from:
			return t.UTC() // the clock has jumped over the reading
		case end.IsZero() || at < next:
			return time.Unix(at, int64(sinceMidnight%time.Second)).UTC()
		}
		from = next
	}
}

// Clock returns what the clock of t's location shows at t, since midnight.
func Clock(t time.Time) time.Duration {
	h, m, s := t.Clock()
	return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(s)*time.Second + time.Duration(t.Nanosecond())
}

// floorDiv divides rounding down, so that times before 1970 land in the right day.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
