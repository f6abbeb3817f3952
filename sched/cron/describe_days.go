package cron

import (
	"fmt"
	"math/bits"
	"time"
)

// dates describes the day and month fields, with a leading space, or returns "" when every day is
// meant and the times already say so.
func (e *expression) dates() string {
	and := e.dom.star() || e.dow.star()
	anyDom, anyDow := e.dom.all(), e.dow.all()
	if !and && (anyDom || anyDow) {
		anyDom, anyDow = true, true // ORed with every day
	}
	of, in := "of the month", ""
	months := e.months()
	switch {
	case len(months) == 1:
		of, in = "of "+months[0], " in "+months[0]
	case len(months) > 1:
		in = " in " + join(months, "and")
	}
	if lo, hi, ok := e.month.interval(); ok && hi-lo >= 2 && hi-lo < 11 {
		in = fmt.Sprintf(" from %s to %s", time.Month(lo), time.Month(hi))
	}
	if e.month.spreads() {
		of, in = "of a stable month", " in a stable month"
	}
	usesMonth := in != "" && of != "of the month" // "of January" makes "in January" superfluous
	switch {
	case anyDom && anyDow:
		if _, listed := e.timesOfDay(); listed {
			return " every day" + in
		}
		return in
	case anyDow:
		if usesMonth {
			in = ""
		}
		return " on " + e.domPhrase(of) + in
	case anyDom:
		if usesMonth && e.dow.special() {
			in = ""
		}
		return " on " + e.dowPhrase(of, "and") + in
	case and:
		if usesMonth {
			in = ""
		}
		return fmt.Sprintf(" on %s, only if that is %s%s", e.domPhrase(of), e.dowPhrase(of, "or"), in)
	}
	return fmt.Sprintf(" on %s or on %s%s", e.domPhrase(of), e.dowPhrase(of, "and"), in)
}

// months lists the names of the months, or nothing when all are meant or a seed decides.
func (e *expression) months() []string {
	if e.month.all() || e.month.spreads() {
		return nil
	}
	var list []string
	for set := e.month.bits(""); set != 0; set &= set - 1 {
		list = append(list, time.Month(bits.TrailingZeros64(set)).String())
	}
	return list
}

// domPhrase describes the day-of-month field; of is "of the month" or "of January".
func (e *expression) domPhrase(of string) string {
	plain := field{form: e.dom.form, text: e.dom.text}
	var list []string
	for _, it := range e.dom.items {
		switch it.kind {
		case kindLast:
			switch it.n {
			case 0:
				list = append(list, "the last day")
			case 1:
				list = append(list, "the day before the last day")
			default:
				list = append(list, fmt.Sprintf("the day %d days before the last day", it.n))
			}
		case kindLastWeekday:
			list = append(list, "the last working day (Monday to Friday)")
		case kindNearest:
			list = append(list, fmt.Sprintf("the working day nearest day %d", it.lo))
		default:
			plain.items = append(plain.items, it)
		}
	}
	if len(plain.items) > 0 {
		s := plain.tail()
		if it := plain.items[0]; len(plain.items) == 1 && it.kind == kindRange && it.open && it.lo == 1 && it.step > 1 {
			s = fmt.Sprintf("every %s day from day 1", ordinal(it.step)) // */2 counts afresh each month
		}
		list = append([]string{s}, list...)
	}
	return join(list, "and") + " " + of
}

// dowPhrase describes the day-of-week field; word joins its parts.
func (e *expression) dowPhrase(of, word string) string {
	plain := field{form: e.dow.form, text: e.dow.text}
	var list []string
	for _, it := range e.dow.items {
		switch it.kind {
		case kindSpread:
			list = append(list, "a stable weekday")
		case kindLastDay:
			list = append(list, fmt.Sprintf("the last %s %s", time.Weekday(it.lo), of))
		case kindNth:
			nth := [...]string{"first", "second", "third", "fourth", "fifth"}[it.n-1]
			list = append(list, fmt.Sprintf("the %s %s %s", nth, time.Weekday(it.lo), of))
		default:
			plain.items = append(plain.items, it)
		}
	}
	if len(plain.items) > 0 {
		list = append(weekdays(plain.bits("")), list...)
	}
	return join(list, word)
}

// weekdays names a set of weekdays in the order Monday to Sunday; three or more in a row become
// a range.
func weekdays(set uint64) []string {
	var list []string
	for i := 0; i < 7; i++ {
		from := (i + 1) % 7
		if set&(1<<from) == 0 {
			continue
		}
		n := 1
		for i+n < 7 && set&(1<<((i+n+1)%7)) != 0 {
			n++
		}
		if n >= 3 {
			list = append(list, time.Weekday(from).String()+" to "+time.Weekday((i+n)%7).String())
			i += n - 1
			continue
		}
		list = append(list, time.Weekday(from).String())
	}
	return list
}
