package difftest

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// The six fields, in the order in which they are written.
const (
	second = iota
	minute
	hour
	dom
	month
	dow
)

// limits are the values of each field. 7 is a weekday too, but only as a single value or the end of a range.
var limits = [6]struct{ lo, hi int }{{0, 59}, {0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 6}}

var names = map[int][]string{
	month: {"", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"},
	dow:   {"sun", "mon", "tue", "wed", "thu", "fri", "sat"},
}

// form is one way to write an element of a field.
type form int

const (
	star     form = iota // * or */step
	anyDay               // ?
	value                // lo
	from                 // lo/step
	span                 // lo-hi or lo-hi/step
	last                 // L or L-n
	nearest              // nW
	lastWork             // LW
	nth                  // lo#n
	lastOf               // loL
)

// part is an element of a field: what it means, and how it was written.
type part struct {
	form            form
	lo, hi, step, n int
	text            string
	quirk           string // what croner reads differently: sevenStep or toSunday
}

// The ways of writing weekdays that croner reads differently.
const (
	sevenStep = "7/n"
	toSunday  = "n-sun"
)

// spec is an expression: the parts of its fields.
type spec struct {
	fields  [6][]part
	six     bool   // seconds are written
	nick    string // the @ form that it is written as, if any
	minutes [60]bool
	seconds [60]bool
	hours   [24]bool
	months  [13]bool
}

// text is how the field is written.
func text(parts []part) string {
	list := make([]string, len(parts))
	for i, p := range parts {
		list[i] = p.text
	}
	return strings.Join(list, ",")
}

func (s *spec) String() string {
	if s.nick != "" {
		return s.nick
	}
	var list []string
	for i, f := range s.fields {
		if i > second || s.six {
			list = append(list, text(f))
		}
	}
	return strings.Join(list, " ")
}

// begins reports whether a field begins with * or ?.
func (s *spec) begins(i int) bool {
	return s.fields[i][0].form == star || s.fields[i][0].form == anyDay
}

// holds reports whether a plain part has v. For weekdays v is 0 to 6.
func (p part) holds(field, v int) bool {
	switch p.form {
	case anyDay:
		return true
	case star, value, from, span:
	default:
		return false
	}
	for x := p.lo; x <= p.hi; x += p.step {
		if x == v || field == dow && x == 7 && v == 0 {
			return true
		}
	}
	return false
}

func has(parts []part, field, v int) bool {
	for _, p := range parts {
		if p.holds(field, v) {
			return true
		}
	}
	return false
}

// finish works out the sets that are looked at most.
func (s *spec) finish() *spec {
	for v := range 60 {
		s.seconds[v], s.minutes[v] = has(s.fields[second], second, v), has(s.fields[minute], minute, v)
	}
	for v := range 24 {
		s.hours[v] = has(s.fields[hour], hour, v)
	}
	for v := range 13 {
		s.months[v] = has(s.fields[month], month, v)
	}
	return s
}

// date is a day on a calendar.
type date struct{ year, month, day, weekday, length int }

// working reports whether a day of d's month is Monday to Friday.
func (d date) working(day int) bool {
	wd := ((d.weekday+day-d.day)%7 + 7) % 7
	return wd != 0 && wd != 6
}

func (s *spec) byDom(d date) bool {
	for _, p := range s.fields[dom] {
		switch p.form {
		case last:
			if d.day == d.length-p.n {
				return true
			}
		case lastWork:
			day := d.length
			for !d.working(day) {
				day--
			}
			if d.day == day {
				return true
			}
		case nearest:
			for _, off := range []int{0, -1, 1, -2, 2} {
				if day := p.lo + off; p.lo <= d.length && day >= 1 && day <= d.length && d.working(day) {
					if d.day == day {
						return true
					}
					break
				}
			}
		}
	}
	return has(s.fields[dom], dom, d.day)
}

func (s *spec) byDow(d date) bool {
	for _, p := range s.fields[dow] {
		switch {
		case p.form == nth && p.lo%7 == d.weekday && (d.day-1)/7+1 == p.n:
			return true
		case p.form == lastOf && p.lo%7 == d.weekday && d.day+7 > d.length:
			return true
		}
	}
	return has(s.fields[dow], dow, d.weekday)
}

// randomSpec makes an expression. Few months and days make it rare.
func randomSpec(r *rand.Rand, six, rare bool) *spec {
	if !six && r.IntN(50) == 0 {
		return randomNick(r)
	}
	s := &spec{six: six}
	s.fields[second] = []part{{form: value, step: 1, text: "0"}}
	if six {
		s.fields[second] = randomField(r, second, 3)
	}
	s.fields[minute] = randomField(r, minute, 5)
	s.fields[hour] = randomField(r, hour, 3)
	for _, f := range []int{dom, month, dow} {
		odds := 2
		if !rare {
			odds = 1
		}
		s.fields[f] = []part{wildcard(r, f)}
		if r.IntN(3) < odds {
			s.fields[f] = randomField(r, f, 8)
		}
	}
	if rare && r.IntN(8) == 0 { // the rarest days there are
		s.fields[dom] = []part{{form: value, lo: 29, hi: 29, step: 1, text: "29"}}
		s.fields[month] = []part{{form: value, lo: 2, hi: 2, step: 1, text: "2"}}
	}
	return s.finish()
}

func randomNick(r *rand.Rand) *spec {
	fixed := func(v int) []part { return []part{{form: value, lo: v, hi: v, step: 1, text: fmt.Sprint(v)}} }
	every := func(f int) []part {
		return []part{{form: star, lo: limits[f].lo, hi: limits[f].hi, step: 1, text: "*"}}
	}
	s := &spec{fields: [6][]part{fixed(0), fixed(0), fixed(0), every(dom), every(month), every(dow)}}
	list := []string{"@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"}
	switch s.nick = list[r.IntN(len(list))]; s.nick {
	case "@hourly":
		s.fields[hour] = every(hour)
	case "@weekly":
		s.fields[dow] = fixed(0)
	case "@monthly":
		s.fields[dom] = fixed(1)
	case "@yearly", "@annually":
		s.fields[dom], s.fields[month] = fixed(1), fixed(1)
	}
	return s.finish()
}

func wildcard(r *rand.Rand, f int) part {
	p := part{form: star, lo: limits[f].lo, hi: limits[f].hi, step: 1, text: "*"}
	if (f == dom || f == dow) && r.IntN(6) == 0 {
		p.form, p.text = anyDay, "?"
	}
	return p
}

// randomField makes a field: a wildcard once in odds times, else one to three parts.
func randomField(r *rand.Rand, f, odds int) []part {
	if r.IntN(odds) == 0 {
		return []part{wildcard(r, f)}
	}
	parts := []part{randomPart(r, f)}
	for r.IntN(3) == 0 && len(parts) < 3 {
		parts = append(parts, randomPart(r, f))
	}
	return parts
}

func randomPart(r *rand.Rand, f int) part {
	lo, hi := limits[f].lo, limits[f].hi
	if f == dom && r.IntN(3) == 0 {
		return randomDom(r)
	}
	if f == dow && r.IntN(3) == 0 {
		return randomDow(r)
	}
	size := hi - lo + 1
	p := part{form: value, step: 1, lo: lo + r.IntN(size)}
	p.hi = p.lo
	step := 1 + r.IntN(size)
	if r.IntN(2) == 0 {
		step = 1 + r.IntN(min(size, 12))
	}
	switch r.IntN(6) {
	case 0:
		p.form, p.lo, p.hi, p.step = star, lo, hi, step
		p.text = fmt.Sprintf("*/%d", step)
	case 1:
		p.form, p.hi, p.step = from, hi, step
		p.text = fmt.Sprintf("%s/%d", write(r, f, p.lo), step)
		if f == dow && p.lo == 0 && r.IntN(2) == 0 {
			p.text, p.quirk = fmt.Sprintf("7/%d", step), sevenStep
		}
	case 2, 3:
		top := hi
		if f == dow {
			top = 7
		}
		p.form, p.hi = span, p.lo+r.IntN(top-p.lo+1)
		p.text = write(r, f, p.lo) + "-" + write(r, f, p.hi)
		if f == dow && strings.HasSuffix(strings.ToLower(p.text), "-sun") {
			p.quirk = toSunday
		}
		if r.IntN(2) == 0 {
			p.step = step
			p.text += fmt.Sprintf("/%d", step)
		}
	default:
		p.text = write(r, f, p.lo)
		if f == dow && p.lo == 0 && r.IntN(2) == 0 {
			p.lo, p.hi, p.text = 7, 7, "7"
		}
	}
	return p
}

// write writes a value as a number, with or without a leading zero, or as a name in any case.
func write(r *rand.Rand, f, v int) string {
	if list := names[f]; list != nil && v < len(list) && r.IntN(3) == 0 {
		s := list[v]
		switch r.IntN(3) {
		case 0:
			return strings.ToUpper(s)
		case 1:
			return strings.ToUpper(s[:1]) + s[1:]
		}
		return s
	}
	if f <= dom && r.IntN(8) == 0 {
		return fmt.Sprintf("%02d", v)
	}
	return fmt.Sprint(v)
}

func randomDom(r *rand.Rand) part {
	n := 1 + r.IntN(31)
	if r.IntN(3) == 0 {
		n = []int{1, 2, 28, 29, 30, 31}[r.IntN(6)]
	}
	switch r.IntN(4) {
	case 0:
		return part{form: last, text: "L"}
	case 1:
		n = 1 + (n-1)%30
		return part{form: last, n: n, text: fmt.Sprintf("L-%d", n)}
	case 2:
		return part{form: lastWork, text: "LW"}
	}
	return part{form: nearest, lo: n, text: fmt.Sprintf("%dW", n)}
}

func randomDow(r *rand.Rand) part {
	d, n := r.IntN(8), 1+r.IntN(5)
	if r.IntN(2) == 0 {
		return part{form: lastOf, lo: d, text: write(r, dow, d) + "L"}
	}
	return part{form: nth, lo: d, n: n, text: fmt.Sprintf("%s#%d", write(r, dow, d), n)}
}
