package calendar

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// moment is a DATE or a DATE-TIME. A date is its midnight in UTC.
type moment struct {
	at   time.Time
	date bool
}

// moments reads the values of a property: dates, times, and, for an RDATE, periods.
func (z *zones) moments(p *property) (list []period, err error) {
	if p.params["VALUE"] == "PERIOD" && p.name != "RDATE" {
		return nil, fmt.Errorf("line %d: %s cannot be a period", p.line, p.name)
	}
	for s := range strings.SplitSeq(p.value, ",") {
		begin, end, isPeriod := strings.Cut(strings.TrimSpace(s), "/")
		var v period
		if v.moment, err = z.moment(p, begin); err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", p.line, p.name, err)
		}
		if isPeriod {
			if v.length, err = z.periodLength(p, v.moment, end); err != nil {
				return nil, fmt.Errorf("line %d: %s: %w", p.line, p.name, err)
			}
			v.own = true
		}
		list = append(list, v)
	}
	return list, nil
}

// period is a moment that may have its own length.
type period struct {
	moment
	own    bool
	length length
}

func (z *zones) periodLength(p *property, from moment, end string) (length, error) {
	if strings.HasPrefix(end, "P") || strings.HasPrefix(end, "+P") {
		return parseLength(end)
	}
	to, err := z.moment(p, end)
	switch {
	case err != nil:
		return length{}, err
	case to.date != from.date || to.at.Before(from.at):
		return length{}, fmt.Errorf("the period %.40q ends before it begins", p.value)
	}
	return length{exact: to.at.Sub(from.at)}, nil
}

// moment reads one value of a property: 20261225, 20261225T090000Z, or 20261225T090000 in the zone of the property's
// TZID, or else in the calendar's.
func (z *zones) moment(p *property, s string) (moment, error) {
	switch {
	case len(s) == len("20060102") && p.params["VALUE"] != "DATE-TIME":
		t, err := time.Parse("20060102", s)
		return moment{t, true}, z.check(t, s, err)
	case len(s) == len("20060102T150405Z"):
		t, err := time.Parse("20060102T150405Z", s)
		return moment{t, false}, z.check(t, s, err)
	case len(s) == len("20060102T150405"):
		wall, err := time.Parse("20060102T150405", s)
		if err := z.check(wall, s, err); err != nil {
			return moment{}, err
		}
		loc := z.floating
		if id := p.params["TZID"]; id != "" {
			if loc, err = z.load(id); err != nil {
				return moment{}, err
			}
		}
		return moment{DayOf(wall).At(Clock(wall), loc), false}, nil
	}
	return moment{}, fmt.Errorf("%.40q is neither a date, such as 20261225, nor a time, such as 20261225T090000", s)
}

func (z *zones) check(t time.Time, s string, err error) error {
	if err != nil {
		return fmt.Errorf("%.40q: there is no such day or time", s)
	}
	if t.Year() < minYear || t.Year() >= maxYear {
		return fmt.Errorf("%.40q: the year must be from %d to %d", s, minYear, maxYear-1)
	}
	return nil
}

// length is how long an event takes: days on the wall clock, then an exact time.
type length struct {
	days  int
	exact time.Duration
}

// maxLength is the longest that one event may take, in days.
const maxLength = 3660

// parseLength reads a DURATION, RFC 5545, section 3.3.6. It must not be negative.
func parseLength(s string) (length, error) {
	parts := durationForm.FindStringSubmatch(s)
	if parts == nil || strings.HasSuffix(s, "P") || strings.HasSuffix(s, "T") {
		return length{}, fmt.Errorf("the duration %.40q is not like P1D or PT1H30M", s)
	}
	var n [5]int
	for i, part := range parts[2:] {
		if part == "" {
			continue
		}
		v, err := strconv.Atoi(part[:len(part)-1])
		if err != nil {
			return length{}, fmt.Errorf("the duration %.40q is too long", s)
		}
		n[i] = v
	}
	l := length{
		days:  7*n[0] + n[1],
		exact: time.Duration(n[2])*time.Hour + time.Duration(n[3])*time.Minute + time.Duration(n[4])*time.Second,
	}
	if parts[1] == "-" && l != (length{}) {
		return length{}, fmt.Errorf("the duration %.40q is negative", s)
	}
	return l, l.check()
}

// durationForm takes at most six digits a part, so that no sum overflows.
var durationForm = regexp.MustCompile(`^([+-]?)P(\d{1,6}W)?(\d{1,6}D)?(?:T(\d{1,6}H)?(\d{1,6}M)?(\d{1,6}S)?)?$`)

func (l length) check() error {
	if l.days > maxLength || l.exact > maxLength*24*time.Hour {
		return fmt.Errorf("takes more than %d days; make several events", maxLength)
	}
	return nil
}

// wholeDays returns how many days a whole-day event takes: at least one.
func (l length) wholeDays() int {
	return max(1, l.days+int((l.exact+24*time.Hour-1)/(24*time.Hour)))
}

// from returns when what begins at t ends.
func (l length) from(t time.Time, loc *time.Location) time.Time {
	if l.days != 0 {
		local := t.In(loc)
		t = (DayOf(local) + Day(l.days)).At(Clock(local), loc)
	}
	return t.Add(l.exact)
}

// atMost returns a time that the length is never longer than.
func (l length) atMost() time.Duration {
	return time.Duration(l.days)*24*time.Hour + l.exact + 26*time.Hour // days of a zone that changes sides of the date line
}

var errBackwards = errors.New("the event ends before it begins")
