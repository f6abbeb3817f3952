package cron

import (
	"fmt"
	"strconv"
	"strings"
)

// kind is what one comma-separated item of a field means.
type kind int

const (
	kindRange       kind = iota // lo to hi, every step
	kindSpread                  // H or ~: one stable choice in lo to hi, or a stable start of every step
	kindAny                     // ?: no opinion about the day
	kindLast                    // L-n: n days before the last day of the month
	kindNearest                 // nW: the weekday nearest day n, inside the month
	kindLastWeekday             // LW: the last Monday-to-Friday day of the month
	kindNth                     // d#n: the n-th weekday d of the month
	kindLastDay                 // dL: the last weekday d of the month
)

// item is one element of a field. lo is also the weekday of kindNth and kindLastDay and the day
// of kindNearest; n is the offset of kindLast and the ordinal of kindNth.
type item struct {
	kind         kind
	lo, hi, step int
	n            int
	open         bool // written with *, or as the start of a step with no end
}

// field is one parsed field of an expression.
type field struct {
	form  *form
	text  string
	items []item
}

// star reports whether the field begins with `*`, which is what Debian's rules look at.
// `?` counts as `*`.
func (f field) star() bool { return f.text[0] == '*' || f.text[0] == '?' }

// form describes one of the six kinds of field.
type form struct {
	name   string
	unit   string
	lo, hi int      // what a number may be
	top    int      // the last value of `*`; differs from hi only for day-of-week, where 7 is Sunday again
	spread int      // the last value that H and ~ choose when no range is given
	names  []string // names of lo, lo+1, …
	want   string
}

var (
	formSecond = form{name: "second", unit: "second", hi: 59, top: 59, spread: 59, want: "must be 0-59"}
	formMinute = form{name: "minute", unit: "minute", hi: 59, top: 59, spread: 59, want: "must be 0-59"}
	formHour   = form{name: "hour", unit: "hour", hi: 23, top: 23, spread: 23, want: "must be 0-23"}
	// H and ~ choose one of the 28 days that every month has, so that no month is left out.
	formDom   = form{name: "day-of-month", unit: "day", lo: 1, hi: 31, top: 31, spread: 28, want: "must be 1-31"}
	formMonth = form{name: "month", unit: "month", lo: 1, hi: 12, top: 12, spread: 12, want: "must be 1-12 or jan-dec",
		names: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}}
	formDow = form{name: "day-of-week", unit: "weekday", hi: 7, top: 6, spread: 6, want: "must be 0-7 (0 and 7 are Sunday) or sun-sat",
		names: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}}
)

// size is the number of distinct values.
func (f *form) size() int { return f.top - f.lo + 1 }

func (f *form) isDay() bool { return f == &formDom || f == &formDow }

// bad makes the error for one item; Parse fills in the expression.
func (f *form) bad(value, hint, format string, args ...any) *SyntaxError {
	return &SyntaxError{Field: f.name, Value: value, Msg: fmt.Sprintf(format, args...), Hint: hint}
}

// parse reads one field.
func (f *form) parse(text string) (field, *SyntaxError) {
	out := field{form: f, text: text}
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			return out, f.bad(text, "", "a value is missing beside a comma")
		}
		it, err := f.item(part)
		if err != nil {
			return out, err
		}
		if it.kind == kindAny && part != text {
			return out, f.bad(text, "", "? stands alone")
		}
		out.items = append(out.items, it)
	}
	return out, nil
}

// item reads one element of a list.
func (f *form) item(s string) (item, *SyntaxError) {
	if it, err, ok := f.dayItem(strings.ToUpper(s)); ok {
		return it, err
	}
	base, stepText, stepped := strings.Cut(s, "/")
	it := item{step: 1}
	if stepped {
		n, ok := number(stepText)
		switch {
		case !ok || n < 1:
			return it, f.bad(s, "", "the step after / must be a number from 1 to %d", f.size())
		case n > f.size():
			return it, f.bad(s, f.longStep(base, n), "the step is longer than the field, so this would not mean every %d %ss", n, f.unit)
		}
		it.step = n
	}
	var err *SyntaxError
	switch {
	case base == "*":
		it.lo, it.hi, it.open = f.lo, f.top, true
	case base == "H" || base == "h":
		it.kind, it.lo, it.hi = kindSpread, f.lo, f.spread
	case strings.HasPrefix(base, "H(") || strings.HasPrefix(base, "h("):
		it.kind = kindSpread
		inner, closed := strings.CutSuffix(base[2:], ")")
		a, b, ranged := strings.Cut(inner, "-")
		if !closed || !ranged {
			return it, f.bad(s, "", "H takes a range, as in H(%d-%d)", f.lo, f.spread)
		}
		it.lo, it.hi, err = f.bounds(s, a, b)
	case strings.Contains(base, "~"):
		it.kind = kindSpread
		a, b, _ := strings.Cut(base, "~")
		if a == "" {
			a = strconv.Itoa(f.lo)
		}
		if b == "" {
			b = strconv.Itoa(f.spread)
		}
		it.lo, it.hi, err = f.bounds(s, a, b)
	case strings.Contains(base, "-"):
		a, b, _ := strings.Cut(base, "-")
		it.lo, it.hi, err = f.bounds(s, a, b)
		if err != nil && err.Msg == backward {
			err.Hint = f.forward(it.lo, it.hi, it.step)
		}
	default:
		it.lo, err = f.value(s, base)
		it.hi = it.lo
		if stepped {
			it.hi, it.open = f.top, true
			if it.lo > it.hi { // 7/2: Sunday is the first weekday
				it.lo = 0
			}
		}
	}
	if err != nil {
		return it, err
	}
	if it.kind == kindSpread && it.hi == 7 && f == &formDow && it.lo == 0 {
		it.hi = 6 // 0 and 7 are one day, and should not be twice as likely
	}
	return it, nil
}

const backward = "the range runs backwards"

// bounds reads the two ends of a range. On a backward range it returns the ends with the error.
func (f *form) bounds(s, a, b string) (lo, hi int, err *SyntaxError) {
	if lo, err = f.value(s, a); err != nil {
		return 0, 0, err
	}
	if hi, err = f.value(s, b); err != nil {
		return 0, 0, err
	}
	if lo > hi {
		return lo, hi, f.bad(s, "", backward)
	}
	return lo, hi, nil
}

// value reads a number or a name; s is the item it stands in.
func (f *form) value(s, text string) (int, *SyntaxError) {
	if n, ok := number(text); ok {
		if n < f.lo || n > f.hi {
			return 0, f.bad(s, "", "%s", f.want)
		}
		return n, nil
	}
	lower := strings.ToLower(text)
	for i, name := range f.names {
		if lower == name {
			return f.lo + i, nil
		}
		if len(lower) > 3 && strings.HasPrefix(lower, name) {
			return 0, f.bad(s, name, "%s", f.want)
		}
	}
	return 0, f.bad(s, "", "%s", f.want)
}

// forward writes a backward range as two forward ones, or as a list when it has steps.
func (f *form) forward(lo, hi, step int) string {
	if step > 1 {
		var list []string
		for v := lo; v <= hi+f.size(); v += step {
			list = append(list, strconv.Itoa((v-f.lo)%f.size()+f.lo))
		}
		return strings.Join(list, ",")
	}
	switch {
	case f == &formDow && hi == 0:
		return fmt.Sprintf("%d-7", lo)
	case f == &formDow && lo == 7:
		return run(0, hi)
	}
	return run(lo, f.top) + "," + run(f.lo, hi)
}

// longStep suggests an interval for steps such as */90.
func (f *form) longStep(base string, n int) string {
	switch {
	case base != "*":
		return ""
	case f == &formSecond:
		return fmt.Sprintf("@every %ds instead of the whole expression", n)
	case f == &formMinute:
		return fmt.Sprintf("@every %dm instead of the whole expression", n)
	case f == &formHour:
		return fmt.Sprintf("@every %dh instead of the whole expression", n)
	}
	return ""
}

// dayItem reads the forms that only day fields have; s is in upper case. ok is false when s is
// not one of them.
func (f *form) dayItem(s string) (it item, err *SyntaxError, ok bool) {
	if s == "?" {
		if !f.isDay() {
			return it, f.bad(s, "*", "? belongs in a day field only"), true
		}
		return item{kind: kindAny, lo: f.lo, hi: f.top, step: 1}, nil, true
	}
	switch f {
	case &formDom:
		return f.domItem(s)
	case &formDow:
		return f.dowItem(s)
	}
	return it, nil, false
}

func (f *form) domItem(s string) (it item, err *SyntaxError, ok bool) {
	if s == "L" {
		return item{kind: kindLast}, nil, true
	}
	if s == "LW" || s == "WL" {
		return item{kind: kindLastWeekday}, nil, true
	}
	if rest, found := strings.CutPrefix(s, "L-"); found {
		n, isNum := number(rest)
		if !isNum || n < 1 || n > 30 {
			return it, f.bad(s, "", "the offset after L- must be 1-30"), true
		}
		return item{kind: kindLast, n: n}, nil, true
	}
	if rest, found := strings.CutSuffix(s, "W"); found {
		n, isNum := number(rest)
		if !isNum || n < 1 || n > 31 {
			return it, f.bad(s, "", "W needs one day before it, as in 15W"), true
		}
		return item{kind: kindNearest, lo: n}, nil, true
	}
	if rest := strings.Trim(s, "L"); rest != s {
		if n, isNum := number(rest); isNum && n <= 7 {
			return it, f.bad(s, "", "L is the last day of the month, and L-%d is %d days before it; the last weekday of the month, as in 5L, belongs in day-of-week", max(n, 1), max(n, 1)), true
		}
	}
	return it, nil, false
}

func (f *form) dowItem(s string) (it item, err *SyntaxError, ok bool) {
	if s == "L" {
		return it, f.bad(s, "6 for Saturday, or 5L for the last Friday of the month", "L needs a weekday before it"), true
	}
	if day, nth, found := strings.Cut(s, "#"); found {
		d, err := f.value(s, day)
		if err != nil {
			return it, err, true
		}
		n, isNum := number(nth)
		if !isNum || n < 1 || n > 5 {
			return it, f.bad(s, "", "the number after # must be 1-5"), true
		}
		return item{kind: kindNth, lo: d % 7, n: n}, nil, true
	}
	if day, found := strings.CutSuffix(s, "W"); found {
		if _, isNum := number(day); isNum {
			return it, f.bad(s, "1-5 for Monday to Friday", "W belongs in day-of-month, as in 15W"), true
		}
	}
	if day, found := strings.CutSuffix(s, "L"); found {
		if strings.Contains(day, "-") {
			return it, f.bad(s, "", "L takes one weekday, as in 5L"), true
		}
		d, err := f.value(s, day)
		if err != nil {
			return it, err, true
		}
		return item{kind: kindLastDay, lo: d % 7}, nil, true
	}
	return it, nil, false
}

// number reads up to four ASCII digits: no sign, no space.
func number(s string) (int, bool) {
	if s == "" || len(s) > 4 {
		return 0, false
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, true
}

// run writes a range as cron does.
func run(lo, hi int) string {
	if lo == hi {
		return strconv.Itoa(lo)
	}
	return fmt.Sprintf("%d-%d", lo, hi)
}

// bits is the set of values that the range and spread items of f choose, as a bit for each.
func (f field) bits(seed string) uint64 {
	var set uint64
	for _, it := range f.items {
		switch it.kind {
		case kindRange, kindAny:
			for v := it.lo; v <= it.hi; v += it.step {
				set |= 1 << v
			}
		case kindSpread:
			set |= it.spreadBits(spread(seed, f.form.name))
		}
	}
	if f.form == &formDow && set&(1<<7) != 0 {
		set = set&^(1<<7) | 1
	}
	return set
}

// spreadBits is the choice that hash makes among the item's values: one of them, or with a step
// a start among the first step values and every step from there.
func (it item) spreadBits(hash uint64) uint64 {
	width := it.hi - it.lo + 1
	if it.step == 1 {
		return 1 << (it.lo + int(hash%uint64(width)))
	}
	var set uint64
	for v := it.lo + int(hash%uint64(min(it.step, width))); v <= it.hi; v += it.step {
		set |= 1 << v
	}
	return set
}

// spread hashes seed for one field, so that the fields of one expression choose independently:
// 64-bit FNV-1a, then the finaliser of SplitMix64 because FNV's low bits are weak. What it
// returns must never change: stored tasks depend on it.
func spread(seed, field string) uint64 {
	h := uint64(14695981039346656037)
	for _, s := range []string{field, "\x00", seed} {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * 1099511628211
		}
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
