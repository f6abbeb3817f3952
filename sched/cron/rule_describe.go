package cron

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"
)

// DescribeRule says in English when a rule fires: "Every 2 months on the second Tuesday, at
// 09:00". start is the rule's DTSTART, read in its own location; what the rule takes from it (the
// day, the time of day) is left out when start is zero. Errors are those of [ParseRule].
func DescribeRule(text string, start time.Time) (string, error) {
	p, err := readRule(text)
	if err != nil {
		return "", err
	}
	r := &p.rule
	if !start.IsZero() {
		if _, err := ParseRule(text, start, Options{Location: start.Location()}); err != nil {
			return "", err // it never fires
		}
		if whole := start.Truncate(time.Second); !whole.Equal(start) {
			start = whole.Add(time.Second)
		}
		r = p.at(start)
		if r.freq == hourly {
			r.times.hours = p.rule.times.hours
		}
	}
	d := ruleWords{p, r}
	s := everyN(r.interval, freqs[r.freq].unit)
	for _, part := range []string{d.chosen(), d.dates(), d.timesOfDay(), d.starting(start), d.ends()} {
		s += part
	}
	return s, nil
}

// ruleWords puts a rule into words. Each method returns "" or a part with what separates it.
type ruleWords struct {
	p *ruleText
	*rule
}

// chosen describes BYSETPOS.
func (d ruleWords) chosen() string {
	if len(d.positions) == 0 {
		return ""
	}
	var first, last []string
	for _, n := range d.positions {
		if n > 0 {
			first = append(first, nth(n))
		}
	}
	for _, n := range slices.Backward(d.positions) {
		if n < 0 {
			last = append(last, nth(n))
		}
	}
	return ", only " + join(limit(append(first, last...)), "and") + " of the times"
}

// dates describes what chooses days.
func (d ruleWords) dates() string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if days := d.weekdayList(); len(days) > 0 {
		add(" on %s", join(limit(days), "and"))
		if d.inYear {
			parts[0] += " of the year"
		}
	}
	of := ""
	months := d.monthList()
	if len(d.weekdayList()) > 0 && d.inYear && len(months) == 0 {
		of = " of the month"
	}
	if b := d.monthDays; b.first|b.last != 0 {
		var list []string
		for n := b.first; n != 0; n &= n - 1 {
			list = append(list, fmt.Sprint(bits.TrailingZeros32(n)))
		}
		if len(list) > 0 {
			unit := "day "
			if len(list) > 1 {
				unit = "days "
			}
			list = []string{unit + join(limit(list), "and")}
		}
		for n := b.last; n != 0; n &= n - 1 {
			list = append(list, nthDayName(-bits.TrailingZeros32(n)))
		}
		if d.freq != monthly && len(months) == 0 || of != "" {
			of = " of the month"
		}
		switch {
		case len(months) == 1:
			of, months = " of "+months[0], nil
		}
		add(d.only(parts)+"%s%s", join(limit(list), "and"), of)
	}
	if d.yearDays != nil {
		add(d.only(parts)+"%s of the year", join(limit(d.yearDays.list("day")), "and"))
	}
	if d.weeks != nil {
		add(" in %s of the year", join(limit(d.weeks.list("week")), "and"))
	}
	if len(months) > 0 {
		add(" in %s", join(months, "and"))
	}
	return strings.Join(parts, "")
}

// only begins a part that narrows what stands before it.
func (d ruleWords) only(before []string) string {
	if len(before) > 0 {
		return ", only if that is "
	}
	return " on "
}

func (d ruleWords) weekdayList() []string {
	list := weekdays(d.weekdays)
	for _, by := range d.rule.nth {
		list = append(list, nth(by.n)+" "+time.Weekday(by.weekday).String())
	}
	return list
}

func (d ruleWords) monthList() []string {
	if d.months == 1<<13-2 {
		return nil
	}
	var list []string
	for set := d.months; set != 0; set &= set - 1 {
		list = append(list, time.Month(bits.TrailingZeros64(set)).String())
	}
	return list
}

// timesOfDay describes the times of day, or for an hourly rule the minutes.
func (d ruleWords) timesOfDay() string {
	t := d.times
	second := ""
	if list := members(t.seconds); len(list) > 1 || len(list) == 1 && list[0] != "0" {
		second = ", at " + units("second", list)
	}
	if d.freq != hourly && t.hours != 0 && t.minutes != 0 && bits.OnesCount64(t.seconds) == 1 &&
		bits.OnesCount64(t.hours)*bits.OnesCount64(t.minutes) <= maxTimes {
		var list []string
		for h := t.hours; h != 0; h &= h - 1 {
			for m := t.minutes; m != 0; m &= m - 1 {
				list = append(list, clockText(int64(bits.TrailingZeros64(h)*3600+bits.TrailingZeros64(m)*60+bits.TrailingZeros64(t.seconds))))
			}
		}
		return ", at " + join(list, "and")
	}
	s := ""
	if t.minutes != 0 && (d.freq != hourly || t.minutes != 1 || t.hours != 0) {
		s = ", at " + units("minute", members(t.minutes))
		if t.hours != 0 {
			s += " of " + units("hour", members(t.hours))
		}
	} else if t.hours != 0 {
		s = ", in " + units("hour", members(t.hours))
	}
	return s + second
}

// starting says from where several periods are counted.
func (d ruleWords) starting(start time.Time) string {
	if start.IsZero() || d.interval == 1 {
		return ""
	}
	return ", from " + start.Format("2006-01-02")
}

// ends describes COUNT and UNTIL.
func (d ruleWords) ends() string {
	switch until := d.p.given["UNTIL"]; {
	case d.p.count == 1:
		return ", once"
	case d.p.count > 1:
		return fmt.Sprintf(", %d times", d.p.count)
	case !d.p.untilUTC.IsZero():
		return ", until " + d.p.untilUTC.Format("2006-01-02 15:04:05") + " UTC"
	case len(until) == len("20060102"):
		return ", until " + time.Unix(d.until, 0).UTC().Format("2006-01-02")
	case until != "":
		return ", until " + time.Unix(d.until, 0).UTC().Format("2006-01-02 15:04:05")
	}
	return ""
}

// nth names a position: "the second", "the last", "the second to last".
func nth(n int) string {
	switch {
	case n == -1:
		return "the last"
	case n < 0:
		return "the " + ordinalWord(-n) + " to last"
	}
	return "the " + ordinalWord(n)
}

// nthDayName names a day of the month counted from the end.
func nthDayName(n int) string { return nth(n) + " day" }

func ordinalWord(n int) string {
	words := [...]string{"first", "second", "third", "fourth", "fifth"}
	if n <= len(words) {
		return words[n-1]
	}
	return ordinal(n)
}

// list names days or weeks of the year.
func (f *fromEnds) list(unit string) []string {
	var first, last []string
	for n := range f.first {
		if f.first[n] {
			first = append(first, fmt.Sprint(n))
		}
		if f.last[n] {
			last = append(last, nth(-n)+" "+unit)
		}
	}
	if len(first) == 0 {
		return last
	}
	return append([]string{units(unit, first)}, last...)
}

// units writes "minute 5" or "minutes 5 and 35".
func units(unit string, list []string) string {
	if len(list) > 1 {
		unit += "s"
	}
	return unit + " " + join(limit(list), "and")
}

// limit shortens a long list.
func limit(list []string) []string {
	const most = 12
	if len(list) <= most {
		return list
	}
	return append(slices.Clone(list[:most]), fmt.Sprintf("%d more", len(list)-most))
}

// members lists a set of small numbers.
func members(set uint64) []string {
	var list []string
	for ; set != 0; set &= set - 1 {
		list = append(list, fmt.Sprint(bits.TrailingZeros64(set)))
	}
	return list
}

// clockText writes a second of the day as 09:00, or 09:00:30.
func clockText(sod int64) string {
	s := fmt.Sprintf("%02d:%02d", sod/3600, sod/60%60)
	if sod%60 != 0 {
		s += fmt.Sprintf(":%02d", sod%60)
	}
	return s
}
