package cron

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxRule is the longest rule that ParseRule reads, in bytes, and MaxRuleCount its highest COUNT.
const (
	MaxRule      = 2048
	MaxRuleCount = 10_000
)

const noEnd = maxUnix + offsetsAtMost

// freqs names the frequencies, and bounds INTERVAL for each to about a hundred years.
var freqs = [...]struct {
	name, unit  string
	maxInterval int
}{
	{"YEARLY", "year", 100}, {"MONTHLY", "month", 1200}, {"WEEKLY", "week", 5200},
	{"DAILY", "day", 36_500}, {"HOURLY", "hour", 876_000},
}

// ParseRule reads a recurrence rule of RFC 5545, section 3.3.10, such as
// "FREQ=MONTHLY;INTERVAL=2;BYDAY=2TU", with or without "RRULE:" before it. FREQ is HOURLY or
// slower. start is its DTSTART, rounded up to a whole second and read on the wall clock of
// o.Location; what the rule leaves open (the time of day, the day) is taken from it.
//
// Times of day are the zone's: what daylight saving does to them is what it does to an
// expression's, and FREQ=HOURLY counts as an hour that begins with `*`. UNTIL is a date (to its
// end), a local time, or a time in UTC. COUNT, at most [MaxRuleCount], counts instants that run.
//
// A rule that has no instant in the 400 years from start is refused, and COUNT ends there too.
// Errors are *SyntaxError with Rule set, apart from an unknown policy in o and a missing start.
func ParseRule(text string, start time.Time, o Options) (Schedule, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if start.IsZero() || start.Unix() < minUnix || start.Unix() >= maxUnix {
		return nil, errors.New("a rule needs a start between the years 1 and 9999")
	}
	loc := o.Location
	if loc == nil {
		loc = time.UTC
	}
	if whole := start.Truncate(time.Second); !whole.Equal(start) {
		start = whole.Add(time.Second)
	}
	start = start.In(loc)
	p, err := readRule(text)
	if err != nil {
		return nil, err
	}
	r := p.at(start)
	if r.positionsAtMost() == 0 {
		return nil, p.never(start)
	}
	c := &clock{wall: r, loc: loc, elapsed: r.freq == hourly, gap: o.Gap, overlap: o.Overlap, horizon: ruleHorizon}
	end := min(start.Unix()+ruleHorizon, maxUnix)
	if !p.untilUTC.IsZero() {
		end = min(end, p.untilUTC.Unix())
	}
	if _, ok := c.first(start.Unix(), end+1); !ok {
		return nil, p.never(start)
	}
	if p.count > 0 {
		if last, ok := c.nth(int64(p.count), start.Unix()); ok {
			end = last
		}
	} else if p.untilUTC.IsZero() {
		return Bounded(c, start, time.Time{}), nil
	}
	return Bounded(c, start, time.Unix(end, 0)), nil
}

// ruleText is a rule taken apart, before a start is applied.
type ruleText struct {
	rule     rule // without start and base
	text     string
	given    map[string]string
	count    int
	untilUTC time.Time // of an UNTIL in UTC; a local one is in rule
}

// ruleParts are the parts of a rule that are read, in the order in which they are described.
const ruleParts = "FREQ, INTERVAL, COUNT, UNTIL, BYMONTH, BYWEEKNO, BYYEARDAY, BYMONTHDAY, BYDAY, BYHOUR, BYMINUTE, BYSECOND, BYSETPOS or WKST"

func readRule(text string) (*ruleText, error) {
	p := &ruleText{text: text, given: map[string]string{}}
	if bad := p.read(); bad != nil {
		bad.Rule, bad.Expr = true, text[:min(len(text), MaxRule)]
		return nil, bad
	}
	return p, nil
}

// read fills p from its text.
func (p *ruleText) read() *SyntaxError {
	if bad := p.split(); bad != nil {
		return bad
	}
	if bad := p.frequency(); bad != nil {
		return bad
	}
	for _, step := range []func() *SyntaxError{p.ends, p.days, p.byDay, p.timesOfDay, p.setPositions} {
		if bad := step(); bad != nil {
			return bad
		}
	}
	return nil
}

// split puts NAME=VALUE pairs into p.given.
func (p *ruleText) split() *SyntaxError {
	whole := func(format string, args ...any) *SyntaxError {
		return &SyntaxError{Msg: fmt.Sprintf(format, args...)}
	}
	switch {
	case len(p.text) > MaxRule:
		return whole("has %d bytes, the limit is %d", len(p.text), MaxRule)
	case !utf8.ValidString(p.text):
		return whole("is not valid UTF-8")
	}
	text := strings.ToUpper(strings.TrimSpace(p.text))
	for line := range strings.SplitSeq(text, "\n") {
		for _, other := range [][2]string{
			{"DTSTART", "the start is not part of a rule; use start_time"},
			{"DTEND", "a task has no end of its own; leave it out"},
			{"EXDATE", "days to leave out are not part of a rule; use exclude_calendars"},
			{"EXRULE", "days to leave out are not part of a rule; use exclude_calendars"},
			{"RDATE", "further days are not part of a rule; make a second recurring task"},
		} {
			if strings.HasPrefix(strings.TrimSpace(line), other[0]) {
				return &SyntaxError{Field: other[0], Value: cut(strings.TrimSpace(line)), Msg: other[1]}
			}
		}
	}
	text = strings.TrimSpace(strings.TrimPrefix(text, "RRULE:"))
	if text == "" {
		return whole("is empty; it needs FREQ, as in FREQ=WEEKLY;BYDAY=MO")
	}
	if strings.ContainsAny(text, "\r\n") {
		return whole("has several lines; a rule is one line")
	}
	for pair := range strings.SplitSeq(strings.TrimSuffix(text, ";"), ";") {
		name, value, ok := strings.Cut(pair, "=")
		switch {
		case !ok || name == "":
			return whole("%q is not NAME=VALUE", cut(pair))
		case !slices.Contains(strings.Split(strings.ReplaceAll(ruleParts, " or ", ", "), ", "), name):
			return &SyntaxError{Field: cut(name), Value: cut(value), Msg: "is not known; a rule has " + ruleParts}
		case value == "":
			return &SyntaxError{Field: name, Msg: "has no value"}
		}
		if _, twice := p.given[name]; twice {
			return &SyntaxError{Field: name, Value: cut(value), Msg: "is given twice"}
		}
		p.given[name] = value
	}
	return nil
}

// bad makes the error for one part.
func (p *ruleText) bad(name, format string, args ...any) *SyntaxError {
	return &SyntaxError{Field: name, Value: cut(p.given[name]), Msg: fmt.Sprintf(format, args...)}
}

// cut shortens a value that an error quotes.
func cut(s string) string {
	if len(s) <= 80 {
		return s
	}
	return strings.ToValidUTF8(s[:77], "") + "..."
}

// frequency reads FREQ, INTERVAL and WKST.
func (p *ruleText) frequency() *SyntaxError {
	r := &p.rule
	r.interval, r.weekStart = 1, int(time.Monday)
	name, ok := p.given["FREQ"]
	if !ok {
		return &SyntaxError{Field: "FREQ", Msg: "is missing; it must be YEARLY, MONTHLY, WEEKLY, DAILY or HOURLY"}
	}
	switch name {
	case "SECONDLY", "MINUTELY":
		bad := p.bad("FREQ", "is too fine for a rule; use an interval or a cron expression, such as */10 * * * *")
		return bad
	}
	i := 0
	for i < len(freqs) && freqs[i].name != name {
		i++
	}
	if i == len(freqs) {
		return p.bad("FREQ", "must be YEARLY, MONTHLY, WEEKLY, DAILY or HOURLY")
	}
	r.freq = freq(i)
	if text, ok := p.given["INTERVAL"]; ok {
		n, ok := digits(text)
		if !ok || n < 1 || n > freqs[i].maxInterval {
			return p.bad("INTERVAL", "must be 1-%d with FREQ=%s", freqs[i].maxInterval, name)
		}
		r.interval = int64(n)
	}
	if text, ok := p.given["WKST"]; ok {
		if r.weekStart, ok = weekdayOf(text); !ok {
			return p.bad("WKST", "must be one of MO, TU, WE, TH, FR, SA, SU")
		}
	}
	return nil
}

// ends reads COUNT and UNTIL.
func (p *ruleText) ends() *SyntaxError {
	p.rule.until = noEnd
	count, counted := p.given["COUNT"]
	until, ends := p.given["UNTIL"]
	if counted && ends {
		return p.bad("UNTIL", "cannot stand beside COUNT; leave one of them out")
	}
	if counted {
		n, ok := digits(count)
		if !ok || n < 1 || n > MaxRuleCount {
			return p.bad("COUNT", "must be 1-%d", MaxRuleCount)
		}
		p.count = n
	}
	if !ends {
		return nil
	}
	for _, form := range []string{"20060102T150405Z", "20060102T150405", "20060102"} {
		t, err := time.Parse(form, until)
		switch {
		case err != nil || t.Unix() < minUnix:
			continue
		case strings.HasSuffix(form, "Z"):
			p.untilUTC = t
		case len(form) == len("20060102"):
			p.rule.until = t.Unix() + secondsPerDay - 1
		default:
			p.rule.until = t.Unix()
		}
		return nil
	}
	return p.bad("UNTIL", "must be a date (20271231), a local time (20271231T090000) or a time in UTC (20271231T080000Z)")
}

// numbers reads a list of numbers from lo to hi, or from -hi to -lo where negative ones are allowed.
func (p *ruleText) numbers(name string, lo, hi int, negative bool) ([]int, *SyntaxError) {
	text, ok := p.given[name]
	if !ok {
		return nil, nil
	}
	var list []int
	for part := range strings.SplitSeq(text, ",") {
		rest, minus := part, false
		if negative {
			if rest, minus = strings.CutPrefix(part, "-"); !minus {
				rest = strings.TrimPrefix(part, "+")
			}
		}
		n, ok := digits(rest)
		if !ok || n < lo || n > hi {
			want := fmt.Sprintf("%d to %d", lo, hi)
			if negative {
				want += fmt.Sprintf(", or -%d to -%d counted from the end", hi, lo)
			}
			return nil, &SyntaxError{Field: name, Value: cut(part), Msg: "must be " + want}
		}
		if minus {
			n = -n
		}
		list = append(list, n)
	}
	return list, nil
}

// fromEndsOf reads BYYEARDAY or BYWEEKNO.
func (p *ruleText) fromEndsOf(name string, hi int) (*fromEnds, *SyntaxError) {
	list, bad := p.numbers(name, 1, hi, true)
	if bad != nil || list == nil {
		return nil, bad
	}
	f := &fromEnds{}
	for _, n := range list {
		if n > 0 {
			f.first[n] = true
		} else {
			f.last[-n] = true
		}
	}
	return f, nil
}

// days reads BYMONTH, BYWEEKNO, BYYEARDAY and BYMONTHDAY.
func (p *ruleText) days() *SyntaxError {
	r := &p.rule
	months, bad := p.numbers("BYMONTH", 1, 12, false)
	if bad != nil {
		return bad
	}
	r.months = 1<<13 - 2
	if months != nil {
		r.months = maskOf(months)
	}
	_, weeks := p.given["BYWEEKNO"]
	_, yearDays := p.given["BYYEARDAY"]
	_, monthDays := p.given["BYMONTHDAY"]
	switch {
	case weeks && r.freq != yearly:
		return p.bad("BYWEEKNO", "goes with FREQ=YEARLY only")
	case yearDays && r.freq != yearly && r.freq != hourly:
		return p.bad("BYYEARDAY", "goes with FREQ=YEARLY or HOURLY only")
	case monthDays && r.freq == weekly:
		return p.bad("BYMONTHDAY", "does not go with FREQ=WEEKLY; use FREQ=DAILY with BYDAY and BYMONTHDAY")
	}
	if r.weeks, bad = p.fromEndsOf("BYWEEKNO", 53); bad != nil {
		return bad
	}
	if r.yearDays, bad = p.fromEndsOf("BYYEARDAY", 366); bad != nil {
		return bad
	}
	list, bad := p.numbers("BYMONTHDAY", 1, 31, true)
	for _, n := range list {
		if n > 0 {
			r.monthDays.first |= 1 << n
		} else {
			r.monthDays.last |= 1 << -n
		}
	}
	return bad
}

// byDay reads BYDAY.
func (p *ruleText) byDay() *SyntaxError {
	r := &p.rule
	text, ok := p.given["BYDAY"]
	if !ok {
		return nil
	}
	_, byMonth := p.given["BYMONTH"]
	most := 5
	if r.freq == yearly && !byMonth {
		most = 53
	}
	const want = "must be a weekday (MO, TU, WE, TH, FR, SA, SU), with a number before it for the n-th of the month: 2TU, -1FR"
	for part := range strings.SplitSeq(text, ",") {
		bad := func(format string, args ...any) *SyntaxError {
			return &SyntaxError{Field: "BYDAY", Value: cut(part), Msg: fmt.Sprintf(format, args...)}
		}
		if len(part) < 2 {
			return bad(want)
		}
		weekday, ok := weekdayOf(part[len(part)-2:])
		if !ok {
			return bad(want)
		}
		before := part[:len(part)-2]
		if before == "" {
			r.weekdays |= 1 << weekday
			continue
		}
		rest, minus := strings.CutPrefix(before, "-")
		if !minus {
			rest = strings.TrimPrefix(before, "+")
		}
		n, ok := digits(rest)
		_, weeks := p.given["BYWEEKNO"]
		switch {
		case !ok:
			return bad(want)
		case r.freq > monthly:
			return bad("a number goes with FREQ=MONTHLY or YEARLY only; write %s", part[len(part)-2:])
		case weeks:
			return bad("a number does not go with BYWEEKNO; write %s", part[len(part)-2:])
		case n < 1 || n > most:
			return bad("the number must be 1 to %d, or -%d to -1 counted from the end", most, most)
		}
		if minus {
			n = -n
		}
		if by := (nthDay{weekday, n}); !slices.Contains(r.nth, by) {
			r.nth = append(r.nth, by)
		}
	}
	r.inYear = r.freq == yearly && !byMonth && len(r.nth) > 0
	return nil
}

// timesOfDay reads BYHOUR, BYMINUTE and BYSECOND; what is not given stays empty.
func (p *ruleText) timesOfDay() *SyntaxError {
	for _, f := range []struct {
		name string
		hi   int
		to   *uint64
	}{
		{"BYHOUR", 23, &p.rule.times.hours}, {"BYMINUTE", 59, &p.rule.times.minutes}, {"BYSECOND", 59, &p.rule.times.seconds},
	} {
		list, bad := p.numbers(f.name, 0, f.hi, false)
		if bad != nil {
			return bad
		}
		*f.to = maskOf(list)
	}
	return nil
}

// setPositions reads BYSETPOS.
func (p *ruleText) setPositions() *SyntaxError {
	list, bad := p.numbers("BYSETPOS", 1, 366, true)
	if bad != nil || list == nil {
		return bad
	}
	by := false
	for name := range p.given {
		by = by || name != "BYSETPOS" && strings.HasPrefix(name, "BY")
	}
	if !by {
		return p.bad("BYSETPOS", "chooses among the times of the other BY parts; add one, such as BYDAY=MO,TU,WE,TH,FR")
	}
	slices.Sort(list)
	p.rule.positions = slices.Compact(list)
	return nil
}

// at applies a start, and what it says where the rule says nothing.
func (p *ruleText) at(start time.Time) *rule {
	r := p.rule
	r.start = start.Unix() + offsetOf(start)
	_, byMonth := p.given["BYMONTH"]
	byDay := r.weekdays != 0 || len(r.nth) > 0
	switch anyDay := byDay || r.monthDays != (fromEnds32{}) || r.yearDays != nil; {
	case r.freq == weekly && !byDay, r.weeks != nil && !anyDay:
		r.weekdays = 1 << start.Weekday()
	case r.freq == yearly && !anyDay:
		if !byMonth {
			r.months = 1 << start.Month()
		}
		r.monthDays.first = 1 << start.Day()
	case r.freq == monthly && !anyDay:
		r.monthDays.first = 1 << start.Day()
	}
	if r.times.hours == 0 {
		r.times.hours = 1<<24 - 1
		if r.freq != hourly {
			r.times.hours = 1 << start.Hour()
		}
	}
	if r.times.minutes == 0 {
		r.times.minutes = 1 << start.Minute()
	}
	if r.times.seconds == 0 {
		r.times.seconds = 1 << start.Second()
	}
	r.base = r.periodOf(r.start)
	if r.freq == hourly {
		r.times.hours &= reached(r.base, r.interval)
	}
	return &r
}

// positionsAtMost drops the positions that no period has and returns how many are left; without
// BYSETPOS it is 1.
func (r *rule) positionsAtMost() int {
	if len(r.positions) == 0 {
		return 1
	}
	size := r.largest()
	r.positions = slices.DeleteFunc(slices.Clone(r.positions), func(n int) bool { return n > size || -n > size })
	return len(r.positions)
}

// largest returns how many times a period can have.
func (r *rule) largest() int {
	days := [...]int{yearly: 366, monthly: 31, weekly: 7, daily: 1, hourly: 1}[r.freq]
	t := r.times
	if r.freq == hourly {
		t.hours = 1
	}
	if t.hours == 0 {
		return 0
	}
	return days * int(t.perDay())
}

// reached returns the hours of the day that every interval-th hour from base ever falls on.
func reached(base, interval int64) uint64 {
	var set uint64
	for k := range int64(24) {
		set |= 1 << (((base+k*interval)%24 + 24) % 24)
	}
	return set
}

// never explains why a rule has no instants.
func (p *ruleText) never(start time.Time) *SyntaxError {
	bad := &SyntaxError{Rule: true, Expr: p.text, Msg: fmt.Sprintf("has no instant in the 400 years from its start at %s", start.Format(time.RFC3339))}
	r := p.at(start)
	switch {
	case r.until < r.start, !p.untilUTC.IsZero() && p.untilUTC.Before(start):
		bad.Field, bad.Value, bad.Msg = "UNTIL", cut(p.given["UNTIL"]), "is before the start at "+start.Format(time.RFC3339)
	case r.times.hours == 0:
		bad.Field, bad.Value = "BYHOUR", cut(p.given["BYHOUR"])
		bad.Msg = fmt.Sprintf("none of these comes: every %d hours from %02d:00 fall on other hours", r.interval, start.Hour())
	case r.positionsAtMost() == 0:
		bad.Field, bad.Value = "BYSETPOS", cut(p.given["BYSETPOS"])
		bad.Msg = fmt.Sprintf("none of these comes: the times to choose from are at most %d in each %s", r.largest(), freqs[r.freq].unit)
	}
	return bad
}

// weekdayOf reads MO to SU; 0 is Sunday.
func weekdayOf(s string) (int, bool) {
	i := slices.Index([]string{"SU", "MO", "TU", "WE", "TH", "FR", "SA"}, s)
	return i, i >= 0
}

// maskOf is a set of small numbers as bits.
func maskOf(list []int) uint64 {
	var set uint64
	for _, n := range list {
		set |= 1 << n
	}
	return set
}

// digits reads up to six ASCII digits.
func digits(s string) (int, bool) {
	if s == "" || len(s) > 6 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}
