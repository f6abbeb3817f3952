package cron

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Describe says in English when an expression fires: "Every 5 minutes", "At 03:10 on Sunday".
// Several are joined: "At 09:00 on Monday to Friday; at 11:00 on Saturday". H and ~ are described
// as stable choices, because what they choose depends on a seed. A zone given by CRON_TZ= follows
// in parentheses. Errors are those of Parse.
func Describe(expr string) (string, error) {
	all, err := readLines(expr)
	if err != nil {
		return "", err
	}
	said := make([]string, len(all))
	for i := range all {
		if said[i], err = all[i].describe(); err != nil {
			return "", err
		}
		if i > 0 {
			said[i] = strings.ToLower(said[i][:1]) + said[i][1:]
		}
	}
	return strings.Join(said, "; "), nil
}

func (e *expression) describe() (string, error) {
	switch {
	case e.reboot:
		return "Once after each boot", nil
	case e.every > 0:
		return DescribeEvery(e.every), nil
	}
	if !e.dom.spreads() && !e.month.spreads() && !e.dow.spreads() {
		if _, err := e.clock(Options{}); err != nil {
			return "", err // a date that never comes
		}
	}
	s := e.times() + e.dates()
	if e.zone != "" {
		s += " (" + e.zone + ")"
	}
	return s, nil
}

// DescribeEvery says an interval in English, in the largest unit that divides it: "Every 90
// seconds", "Every 3 hours", "Every day".
func DescribeEvery(d time.Duration) string {
	for _, u := range []struct {
		name   string
		length time.Duration
	}{
		{"day", day}, {"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second},
		{"millisecond", time.Millisecond}, {"microsecond", time.Microsecond},
	} {
		if d >= u.length && d%u.length == 0 {
			return everyN(int64(d/u.length), u.name)
		}
	}
	return "Every " + d.String()
}

func everyN(n int64, unit string) string {
	if n == 1 {
		return "Every " + unit
	}
	return fmt.Sprintf("Every %d %ss", n, unit)
}

// maxTimes is how many times of day are listed one by one.
const maxTimes = 6

// times describes the second, minute and hour fields.
func (e *expression) times() string {
	if list, ok := e.timesOfDay(); ok {
		return "At " + join(list, "and")
	}
	if sec, one := e.second.single(); !one || sec != 0 {
		s := e.second.head()
		if !e.second.every() || !e.minute.all() || !e.hour.all() {
			s += " of " + e.minute.tail()
		}
		if !e.hour.all() || !e.minute.all() && !e.minute.every() {
			s += " of " + e.hour.tail()
		}
		return s
	}
	minute, one := e.minute.single()
	switch {
	case one && minute == 0 && e.hour.every():
		return e.hour.head()
	case e.minute.every() && e.hour.all():
		return e.minute.head()
	case e.minute.every():
		if lo, hi, ok := e.hour.interval(); ok {
			return fmt.Sprintf("%s from %02d:00 to %02d:59", e.minute.head(), lo, hi)
		}
	}
	return e.minute.head() + " of " + e.hour.tail()
}

// timesOfDay lists the times of day when they are few and the same for every seed.
func (e *expression) timesOfDay() ([]string, bool) {
	second, one := e.second.single()
	if !one || e.minute.spreads() || e.hour.spreads() || e.hour.all() {
		return nil, false
	}
	hours, minutes := e.hour.bits(""), e.minute.bits("")
	if bits.OnesCount64(hours)*bits.OnesCount64(minutes) > maxTimes {
		return nil, false
	}
	if minutes == 1 && e.hour.every() && bits.OnesCount64(hours) > 2 {
		return nil, false // "Every 6 hours" says it better
	}
	var list []string
	for h := hours; h != 0; h &= h - 1 {
		for m := minutes; m != 0; m &= m - 1 {
			s := fmt.Sprintf("%02d:%02d", bits.TrailingZeros64(h), bits.TrailingZeros64(m))
			if second != 0 {
				s += fmt.Sprintf(":%02d", second)
			}
			list = append(list, s)
		}
	}
	return list, true
}

// all reports whether the field allows every value, however it is written.
func (f field) all() bool {
	return !f.spreads() && !f.special() && bits.OnesCount64(f.bits("")) == f.form.size()
}

// every reports whether the field reads as "every n units": `*`, or `*/n` where n divides the
// field evenly.
func (f field) every() bool {
	it := f.items[0]
	return len(f.items) == 1 && it.open && it.lo == f.form.lo && f.form.size()%it.step == 0
}

// single returns the field's one value.
func (f field) single() (int, bool) {
	set := f.bits("")
	return bits.TrailingZeros64(set), !f.spreads() && !f.special() && bits.OnesCount64(set) == 1
}

// interval returns the bounds when the field is one unbroken stretch of values.
func (f field) interval() (lo, hi int, ok bool) {
	set := f.bits("")
	lo, hi = bits.TrailingZeros64(set), bits.Len64(set)-1
	return lo, hi, !f.spreads() && !f.special() && bits.OnesCount64(set) == hi-lo+1
}

// spreads reports whether H or ~ is in the field.
func (f field) spreads() bool {
	for _, it := range f.items {
		if it.kind == kindSpread {
			return true
		}
	}
	return false
}

// special reports whether an item means days that no fixed set of values can say.
func (f field) special() bool {
	for _, it := range f.items {
		switch it.kind {
		case kindLast, kindNearest, kindLastWeekday, kindNth, kindLastDay:
			return true
		}
	}
	return false
}

// head describes the finest field that matters, at the start of a sentence.
func (f field) head() string {
	if f.every() {
		return everyN(int64(f.items[0].step), f.form.unit)
	}
	if s := f.tail(); strings.HasPrefix(s, "every ") {
		return "E" + s[1:]
	}
	return "At " + f.tail()
}

// tail describes a field after "of": "every hour", "every 3rd hour", "hours 9 and 17".
func (f field) tail() string {
	if f.all() {
		return "every " + f.form.unit
	}
	var plain []string // values and ranges, which share one "hours"
	var others []string
	plural := false
	for _, it := range f.items {
		switch {
		case it.kind == kindSpread:
			others = append(others, f.spreadPhrase(it))
		case it.step > 1 && it.hi-it.lo >= it.step:
			s := fmt.Sprintf("every %s %s", ordinal(it.step), f.form.unit)
			if !f.every() {
				s += fmt.Sprintf(" from %d to %d", it.lo, it.hi)
			}
			others = append(others, s)
		case it.lo == it.hi || it.step > 1:
			plain = append(plain, strconv.Itoa(it.lo))
		default:
			plain, plural = append(plain, fmt.Sprintf("%d to %d", it.lo, it.hi)), true
		}
	}
	if len(plain) > 0 {
		unit := f.form.unit + " "
		if plural || len(plain) > 1 {
			unit = f.form.unit + "s "
		}
		others = append([]string{unit + join(plain, "and")}, others...)
	}
	return join(others, "and")
}

func (f field) spreadPhrase(it item) string {
	whole := it.lo == f.form.lo && it.hi == f.form.spread
	s := "a stable " + f.form.unit
	if it.step > 1 {
		s = fmt.Sprintf("every %s %s from a stable start", ordinal(it.step), f.form.unit)
	}
	if !whole {
		s += fmt.Sprintf(" between %d and %d", it.lo, it.hi)
	}
	return s
}

// join writes a list with its last two elements joined by word.
func join(list []string, word string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	last := len(list) - 1
	return strings.Join(list[:last], ", ") + " " + word + " " + list[last]
}

// ordinal writes 3 as 3rd.
func ordinal(n int) string {
	suffix := "th"
	if n/10%10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}
