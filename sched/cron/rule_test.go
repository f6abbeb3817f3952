package cron

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/teambition/rrule-go"
	"pgregory.net/rapid"
)

// guessedRule is a random rule: its text, the options of rrule-go, and what the naive evaluator
// below makes of it.
type guessedRule struct {
	o     rrule.ROption
	text  string
	start time.Time
}

var ruleDays = []rrule.Weekday{rrule.MO, rrule.TU, rrule.WE, rrule.TH, rrule.FR, rrule.SA, rrule.SU}

// drawRule makes a rule that RFC 5545 allows. peculiar adds what rrule-go reads otherwise than the
// RFC: see TestRuleAgainstRruleGo.
func drawRule(t *rapid.T, peculiar bool) guessedRule {
	start := time.Unix(rapid.Int64Range(time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), time.Date(2041, 1, 1, 0, 0, 0, 0, time.UTC).Unix()).Draw(t, "start"), 0).UTC()
	o := rrule.ROption{Freq: rrule.Frequency(rapid.IntRange(0, 4).Draw(t, "freq")), Dtstart: start, Wkst: rrule.MO}
	chance := func(name string, one int) bool { return rapid.IntRange(1, one).Draw(t, name) == one }
	list := func(name string, lo, hi, most int, negative bool) []int {
		var out []int
		for range rapid.IntRange(1, most).Draw(t, name+"#") {
			n := rapid.IntRange(lo, hi).Draw(t, name)
			if negative && chance(name+"-", 3) {
				n = -n
			}
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
		return out
	}
	o.Interval = 1
	if chance("interval?", 2) {
		o.Interval = rapid.IntRange(1, []int{3, 14, 9, 40, 100}[o.Freq]).Draw(t, "interval")
	}
	if chance("wkst?", 3) {
		o.Wkst = ruleDays[rapid.IntRange(0, 6).Draw(t, "wkst")]
	}
	if chance("month?", 4) {
		o.Bymonth = list("month", 1, 12, 4, false)
	}
	if o.Freq == rrule.YEARLY && peculiar && chance("week?", 3) {
		o.Byweekno = list("week", 1, 53, 4, true)
	}
	if (o.Freq == rrule.YEARLY || o.Freq == rrule.HOURLY) && chance("yearday?", 5) {
		o.Byyearday = list("yearday", 1, 366, 5, true)
	}
	if o.Freq != rrule.WEEKLY && chance("monthday?", 3) {
		o.Bymonthday = list("monthday", 1, 31, 5, true)
	}
	if chance("day?", 2) {
		numbered := o.Freq <= rrule.MONTHLY && len(o.Byweekno) == 0 && chance("numbered", 2)
		for range rapid.IntRange(1, 4).Draw(t, "days") {
			d := ruleDays[rapid.IntRange(0, 6).Draw(t, "day")]
			if numbered && (!peculiar || chance("this one", 2)) {
				n := rapid.IntRange(1, 5).Draw(t, "n")
				if o.Freq == rrule.YEARLY && len(o.Bymonth) == 0 {
					n = rapid.IntRange(1, 53).Draw(t, "n")
				}
				if chance("last", 3) {
					n = -n
				}
				d = d.Nth(n)
			}
			o.Byweekday = append(o.Byweekday, d)
		}
	}
	if len(o.Byweekno) > 0 && len(o.Byweekday) == 0 && len(o.Bymonthday) == 0 && len(o.Byyearday) == 0 {
		o.Byweekday = []rrule.Weekday{rrule.TH}
	}
	if chance("hour?", 4) {
		o.Byhour = list("hour", 0, 23, 4, false)
		if h := start.Hour(); o.Freq == rrule.HOURLY && !peculiar && !slices.Contains(o.Byhour, h) {
			o.Byhour = append(o.Byhour, h) // else rrule-go may look for ever
		}
	}
	if chance("minute?", 4) {
		o.Byminute = list("minute", 0, 59, 3, false)
	}
	if chance("second?", 8) {
		o.Bysecond = list("second", 0, 59, 3, false)
	}
	any := len(o.Bymonth)+len(o.Byweekno)+len(o.Byyearday)+len(o.Bymonthday)+len(o.Byweekday)+len(o.Byhour)+len(o.Byminute)+len(o.Bysecond) > 0
	if any && (o.Freq != rrule.WEEKLY || peculiar) && chance("setpos?", 4) {
		o.Bysetpos = list("setpos", 1, rapid.SampledFrom([]int{3, 30, 366}).Draw(t, "top"), 3, true)
	}
	return guessedRule{o: o, text: o.RRuleString(), start: start}
}

// naive lists the times of a rule from its start to end, day by day and without BY tricks.
func (g guessedRule) naive(end time.Time) []time.Time {
	o, start := g.o, g.start
	var out []time.Time
	wkst := (o.Wkst.Day() + 1) % 7
	weekOf := func(d time.Time) time.Time { return d.AddDate(0, 0, -((int(d.Weekday()) - wkst + 7) % 7)) }
	oneOf := func(y int) time.Time { return weekOf(time.Date(y, 1, 4, 0, 0, 0, 0, time.UTC)) }
	match := func(d time.Time) bool {
		length := time.Date(d.Year(), d.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day()
		yearLength := time.Date(d.Year(), 12, 31, 0, 0, 0, 0, time.UTC).YearDay()
		is := func(list []int, n, total int) bool {
			return len(list) == 0 || slices.Contains(list, n) || total > 0 && slices.Contains(list, n-total-1)
		}
		year := weekOf(d).AddDate(0, 0, 3).Year()
		total := int(oneOf(year+1).Sub(oneOf(year)).Hours()) / 24 / 7
		week := int(weekOf(d).Sub(oneOf(year)).Hours())/24/7 + 1
		if !is(o.Bymonth, int(d.Month()), 0) || !is(o.Bymonthday, d.Day(), length) || !is(o.Byyearday, d.YearDay(), yearLength) || !is(o.Byweekno, week, total) {
			return false
		}
		if len(o.Byweekday) == 0 {
			switch {
			case len(o.Byweekno)+len(o.Byyearday)+len(o.Bymonthday) > 0 || o.Freq > rrule.WEEKLY:
				return true
			case o.Freq == rrule.WEEKLY:
				return d.Weekday() == start.Weekday()
			case o.Freq == rrule.YEARLY && len(o.Bymonth) == 0 && d.Month() != start.Month():
				return false
			}
			return d.Day() == start.Day()
		}
		at, of := d.Day(), length
		if o.Freq == rrule.YEARLY && len(o.Bymonth) == 0 {
			at, of = d.YearDay(), yearLength
		}
		for _, by := range o.Byweekday {
			if int(d.Weekday()) != (by.Day()+1)%7 {
				continue
			}
			if n := by.N(); n == 0 || n == (at-1)/7+1 || n == -((of-at)/7+1) {
				return true
			}
		}
		return false
	}
	or := func(list []int, v int) []int {
		if len(list) == 0 {
			return []int{v}
		}
		return list
	}
	period := func(d time.Time) (n int) {
		switch o.Freq {
		case rrule.YEARLY:
			return d.Year()
		case rrule.MONTHLY:
			return d.Year()*12 + int(d.Month())
		case rrule.WEEKLY:
			return int(weekOf(d).Unix() / 86400 / 7)
		case rrule.DAILY:
			return int(d.Unix() / 86400)
		}
		return int(d.Unix() / 3600)
	}
	var set []time.Time
	flush := func() {
		slices.SortFunc(set, time.Time.Compare)
		set = slices.CompactFunc(set, time.Time.Equal)
		chosen := set
		if len(o.Bysetpos) > 0 {
			chosen = nil
			for i, t := range set {
				if slices.Contains(o.Bysetpos, i+1) || slices.Contains(o.Bysetpos, i-len(set)) {
					chosen = append(chosen, t)
				}
			}
		}
		for _, t := range chosen {
			if !t.Before(start) && !t.After(end) {
				out = append(out, t)
			}
		}
		set = nil
	}
	first := weekOf(time.Date(start.Year(), 1, 1, 0, 0, 0, 0, time.UTC))
	base, last := period(start), -1
	hours := []int{-1}
	if o.Freq == rrule.HOURLY {
		hours = make([]int, 24)
		for i := range hours {
			hours[i] = i
		}
	}
	for d := first; !d.After(end.AddDate(1, 0, 0)); d = d.AddDate(0, 0, 1) {
		for _, h := range hours {
			p := period(d.Add(time.Duration(max(h, 0)) * time.Hour))
			if p != last {
				flush()
				last = p
			}
			if p < base || (p-base)%o.Interval != 0 || !match(d) {
				continue
			}
			byHour := or(o.Byhour, start.Hour())
			if h >= 0 {
				if len(o.Byhour) > 0 && !slices.Contains(o.Byhour, h) {
					continue
				}
				byHour = []int{h}
			}
			for _, h := range byHour {
				for _, m := range or(o.Byminute, start.Minute()) {
					for _, s := range or(o.Bysecond, start.Second()) {
						set = append(set, d.Add(time.Duration(h*3600+m*60+s)*time.Second))
					}
				}
			}
		}
	}
	flush()
	return out
}

// TestRuleAgainstNaive compares Next, Prev and Count with the naive evaluator over some years, and
// from a start far ahead with themselves.
func TestRuleAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawRule(t, true)
		years := 3
		switch {
		case g.o.Freq <= rrule.MONTHLY:
			years = 8
		case g.o.Freq == rrule.HOURLY:
			years = 1
		}
		want := g.naive(g.start.AddDate(years, 0, 0))
		checkRule(t, g, want, g.start.AddDate(years, 0, 0))
	})
}

// TestRuleAgainstRruleGo compares with another implementation. Left out is what it reads otherwise
// than the RFC: BYDAY with and without numbers (it ANDs them), BYSETPOS in the first week, weeks
// around New Year; and what it never answers.
func TestRuleAgainstRruleGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawRule(t, false)
		end := g.start.AddDate(10, 0, 0)
		if g.o.Freq == rrule.HOURLY {
			end = g.start.AddDate(0, 6, 0)
		}
		s, err := ParseRule(g.text, g.start, Options{})
		if err != nil || s.Next(end).After(end.AddDate(5, 0, 0)) || s.Next(end).IsZero() {
			return // rrule-go would look far for the next, up to the year 9999; the naive evaluator checks these
		}
		o := g.o
		o.Until = end
		other, err := rrule.NewRRule(o)
		if err != nil {
			t.Fatalf("%s: %v", g.text, err)
		}
		checkRule(t, g, other.All(), end)
	})
}

func checkRule(t *rapid.T, g guessedRule, want []time.Time, end time.Time) {
	s, err := ParseRule(g.text, g.start, Options{})
	if err != nil {
		if len(want) > 0 {
			t.Fatalf("%s from %s: %v, but there is %s", g.text, g.start, err, want[0])
		}
		return
	}
	from := g.start.Add(-time.Second)
	if len(want) == 0 {
		want = nil
	}
	if len(want) > 400 { // the rest by number
		if n := s.Count(from, end); n != int64(len(want)) {
			t.Fatalf("%s from %s: Count = %d, want %d", g.text, g.start, n, len(want))
		}
		k := rapid.IntRange(1, len(want)-400).Draw(t, "k")
		from, want, end = want[k-1], want[k:k+400], want[k+399]
	}
	var got, back []time.Time
	for at := s.Next(from); !at.IsZero() && !at.After(end); at = s.Next(at) {
		got = append(got, at)
	}
	for at := s.Prev(end); !at.IsZero() && at.After(from); at = s.Prev(at.Add(-1)) {
		back = append(back, at)
	}
	slices.Reverse(back)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s from %s: Next: %s", g.text, g.start, diff)
	}
	if diff := cmp.Diff(want, back); diff != "" {
		t.Fatalf("%s from %s: Prev: %s", g.text, g.start, diff)
	}
	if n := s.Count(from, end); n != int64(len(want)) {
		t.Fatalf("%s from %s: Count = %d, want %d", g.text, g.start, n, len(want))
	}
	if len(want) > 0 {
		k := rapid.IntRange(1, min(len(want), 400)).Draw(t, "count")
		if from.Before(g.start) {
			counted, err := ParseRule(g.text+fmt.Sprintf(";COUNT=%d", k), g.start, Options{})
			if err != nil {
				t.Fatalf("%s;COUNT=%d: %v", g.text, k, err)
			}
			if last := counted.Prev(end.AddDate(50, 0, 0)); !last.Equal(want[k-1]) {
				t.Fatalf("%s;COUNT=%d from %s ends at %s, want %s", g.text, k, g.start, last, want[k-1])
			}
		}
	}
}

// Every row of RFC 5545 that says something another row does not, and daylight saving.
func TestRule(t *testing.T) {
	const ny = "America/New_York"
	for _, tt := range []struct{ rule, zone, start, want string }{
		{"FREQ=MONTHLY;INTERVAL=2;BYDAY=2TU", "Europe/Berlin", "2026-01-13T09:00:00+01:00", "2026-01-13T09:00:00+01:00 2026-03-10T09:00:00+01:00 2026-05-12T09:00:00+02:00"},
		{" rrule:freq=weekly;byday=mo,we;", "UTC", "2026-03-04T09:00:00.25Z", "2026-03-04T09:00:01Z 2026-03-09T09:00:01Z"},
		{"FREQ=DAILY;COUNT=3", ny, "1997-09-02T09:00:00-04:00", "1997-09-02T09:00:00-04:00 1997-09-03T09:00:00-04:00 1997-09-04T09:00:00-04:00 -"},
		{"FREQ=DAILY;UNTIL=19971027T140000Z", ny, "1997-10-25T09:00:00-04:00", "1997-10-25T09:00:00-04:00 1997-10-26T09:00:00-05:00 1997-10-27T09:00:00-05:00 -"},
		{"FREQ=DAILY;UNTIL=19971027T085959", ny, "1997-10-25T09:00:00-04:00", "1997-10-25T09:00:00-04:00 1997-10-26T09:00:00-05:00 -"},
		{"FREQ=DAILY;UNTIL=19971026", ny, "1997-10-25T09:00:00-04:00", "1997-10-25T09:00:00-04:00 1997-10-26T09:00:00-05:00 -"},
		{"FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO", ny, "1997-08-05T09:00:00-04:00", "1997-08-05T09:00:00-04:00 1997-08-10T09:00:00-04:00 1997-08-19T09:00:00-04:00 1997-08-24T09:00:00-04:00 -"},
		{"FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU", ny, "1997-08-05T09:00:00-04:00", "1997-08-05T09:00:00-04:00 1997-08-17T09:00:00-04:00 1997-08-19T09:00:00-04:00 1997-08-31T09:00:00-04:00 -"},
		{"FREQ=MONTHLY;BYMONTHDAY=-3", ny, "1997-09-28T09:00:00-04:00", "1997-09-28T09:00:00-04:00 1997-10-29T09:00:00-05:00 1997-11-28T09:00:00-05:00"},
		{"FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2", ny, "1997-09-29T09:00:00-04:00", "1997-09-29T09:00:00-04:00 1997-10-30T09:00:00-05:00 1997-11-27T09:00:00-05:00"},
		{"FREQ=YEARLY;BYDAY=20MO", ny, "1997-05-19T09:00:00-04:00", "1997-05-19T09:00:00-04:00 1998-05-18T09:00:00-04:00 1999-05-17T09:00:00-04:00"},
		{"FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", ny, "1997-05-12T09:00:00-04:00", "1997-05-12T09:00:00-04:00 1998-05-11T09:00:00-04:00 1999-05-17T09:00:00-04:00"},
		{"FREQ=YEARLY;BYWEEKNO=20", ny, "1997-05-12T09:00:00-04:00", "1997-05-12T09:00:00-04:00 1998-05-11T09:00:00-04:00"},
		{"FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8", ny, "1996-11-05T09:00:00-05:00", "1996-11-05T09:00:00-05:00 2000-11-07T09:00:00-05:00 2004-11-02T09:00:00-05:00"},
		{"FREQ=HOURLY;INTERVAL=3;UNTIL=19970902T170000", ny, "1997-09-02T09:00:00-04:00", "1997-09-02T09:00:00-04:00 1997-09-02T12:00:00-04:00 1997-09-02T15:00:00-04:00 -"},
		{"FREQ=MONTHLY;BYDAY=MO,2TU", "UTC", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z 2026-03-09T00:00:00Z 2026-03-10T00:00:00Z"},
		{"FREQ=WEEKLY;BYDAY=MO,WE;BYSETPOS=1", "UTC", "2026-03-04T00:00:00Z", "2026-03-09T00:00:00Z"}, // Monday comes first in that week, before the start
		{"FREQ=YEARLY", "UTC", "2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z 2028-02-29T00:00:00Z"},
		{"FREQ=YEARLY;INTERVAL=100;BYMONTH=2;BYMONTHDAY=29", "UTC", "2100-01-01T00:00:00Z", "2400-02-29T00:00:00Z 2800-02-29T00:00:00Z"},
		{"FREQ=YEARLY;INTERVAL=100", "UTC", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z 2126-01-01T00:00:00Z"},

		// Berlin: 2026-03-29 02:00 becomes 03:00, 2026-10-25 03:00 becomes 02:00.
		{"FREQ=DAILY", "Europe/Berlin", "2026-03-28T02:30:00+01:00", "2026-03-28T02:30:00+01:00 2026-03-29T03:00:00+02:00 2026-03-30T02:30:00+02:00"},
		{"FREQ=DAILY", "Europe/Berlin", "2026-10-24T02:30:00+02:00", "2026-10-24T02:30:00+02:00 2026-10-25T02:30:00+02:00 2026-10-26T02:30:00+01:00"},
		{"FREQ=DAILY;COUNT=2", "Europe/Berlin", "2026-10-24T02:30:00+02:00", "2026-10-24T02:30:00+02:00 2026-10-25T02:30:00+02:00 -"},
		{"FREQ=HOURLY;BYMINUTE=30", "Europe/Berlin", "2026-10-25T01:00:00+02:00", "2026-10-25T01:30:00+02:00 2026-10-25T02:30:00+02:00 2026-10-25T02:30:00+01:00 2026-10-25T03:30:00+01:00"},
		{"FREQ=HOURLY", "Europe/Berlin", "2026-03-29T01:30:00+01:00", "2026-03-29T01:30:00+01:00 2026-03-29T03:30:00+02:00"},
		{"FREQ=DAILY", "America/Santiago", "2026-09-05T00:00:00-04:00", "2026-09-05T00:00:00-04:00 2026-09-06T01:00:00-03:00 2026-09-07T00:00:00-03:00"},
	} {
		loc, err := time.LoadLocation(tt.zone)
		if err != nil {
			t.Fatal(err)
		}
		start, err := time.Parse(time.RFC3339Nano, tt.start)
		if err != nil {
			t.Fatal(err)
		}
		s, err := ParseRule(tt.rule, start, Options{Location: loc})
		if err != nil {
			t.Errorf("ParseRule(%q): %v", tt.rule, err)
			continue
		}
		var got []string
		for at := start.Add(-1); len(got) < len(strings.Fields(tt.want)); {
			if at = s.Next(at); at.IsZero() {
				got = append(got, "-")
				break
			}
			got = append(got, at.Format(time.RFC3339))
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s in %s from %s:\n got %s\nwant %s", tt.rule, tt.zone, tt.start, strings.Join(got, " "), tt.want)
		}
	}
}

func TestRulePolicies(t *testing.T) {
	loc, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		o           Options
		rule, start string
		want        string
	}{
		{Options{Gap: GapSkip}, "FREQ=DAILY;COUNT=2", "2026-03-28T02:30:00+01:00", "2026-03-28T02:30:00+01:00 2026-03-30T02:30:00+02:00"},
		{Options{Overlap: OverlapSecond}, "FREQ=DAILY;COUNT=2", "2026-10-24T02:30:00+02:00", "2026-10-24T02:30:00+02:00 2026-10-25T02:30:00+01:00"},
		{Options{Overlap: OverlapBoth}, "FREQ=DAILY;COUNT=3", "2026-10-24T02:30:00+02:00", "2026-10-24T02:30:00+02:00 2026-10-25T02:30:00+02:00 2026-10-25T02:30:00+01:00"},
		{Options{Overlap: OverlapFirst}, "FREQ=HOURLY;COUNT=3", "2026-10-25T01:30:00+02:00", "2026-10-25T01:30:00+02:00 2026-10-25T02:30:00+02:00 2026-10-25T03:30:00+01:00"},
	} {
		start, err := time.Parse(time.RFC3339, tt.start)
		if err != nil {
			t.Fatal(err)
		}
		tt.o.Location = loc
		s, err := ParseRule(tt.rule, start, tt.o)
		if err != nil {
			t.Errorf("ParseRule(%q): %v", tt.rule, err)
			continue
		}
		var got []string
		for at := s.Next(start.Add(-1)); !at.IsZero(); at = s.Next(at) {
			got = append(got, at.Format(time.RFC3339))
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s, %+v:\n got %s\nwant %s", tt.rule, tt.o, strings.Join(got, " "), tt.want)
		}
	}
	for _, o := range []Options{{Gap: "LATER"}, {Overlap: "NEVER"}} {
		if _, err := ParseRule("FREQ=DAILY", time.Now(), o); err == nil {
			t.Errorf("ParseRule with %+v: no error", o)
		}
	}
	if _, err := ParseRule("FREQ=DAILY", time.Time{}, Options{}); err == nil {
		t.Error("ParseRule without a start: no error")
	}
}

// TestRuleAsExpression compares rules with the expressions that say the same, around changes of
// offset: daylight saving means the same to both.
func TestRuleAsExpression(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, name := range oracleZones {
		loc, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range transitions(loc, 2021, 2029) {
			minute, hour := r.IntN(60), r.IntN(4)
			o := Options{Location: loc, Gap: []GapPolicy{"", GapSkip}[r.IntN(2)], Overlap: []OverlapPolicy{"", "", OverlapFirst, OverlapSecond, OverlapBoth}[r.IntN(5)]}
			for _, same := range [][2]string{
				{fmt.Sprintf("%d %d * * *", minute, hour), fmt.Sprintf("FREQ=DAILY;BYHOUR=%d;BYMINUTE=%d;BYSECOND=0", hour, minute)},
				{fmt.Sprintf("%d * * * *", minute), fmt.Sprintf("FREQ=HOURLY;BYMINUTE=%d;BYSECOND=0", minute)},
				{fmt.Sprintf("%d,59 %d,23,0 * * 1-5", minute, hour), fmt.Sprintf("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=%d,23,0;BYMINUTE=%d,59;BYSECOND=0", hour, minute)},
			} {
				from, to := at.AddDate(0, 0, -3), at.AddDate(0, 0, 3)
				expr, err := Parse(same[0], o)
				if err != nil {
					t.Fatal(err)
				}
				rule, err := ParseRule(same[1], from.AddDate(-1, 0, 0), o)
				if err != nil {
					t.Fatal(err)
				}
				n := int64(0)
				for at := from; !at.IsZero() && at.Before(to); n++ {
					a, b := expr.Next(at), rule.Next(at)
					if !a.Equal(b) {
						t.Fatalf("%q and %s in %s, %+v, after %s: %s and %s", same[0], same[1], name, o, at, a, b)
					}
					at = a
				}
				if a, b := expr.Count(from, to), rule.Count(from, to); a != b || a < n-1 {
					t.Fatalf("%q and %s in %s, %+v: Count %d and %d", same[0], same[1], name, o, a, b)
				}
				if a, b := Effects(expr, from, to), Effects(rule, from, to); !slices.EqualFunc(a, b, func(a, b Effect) bool {
					return a.At.Equal(b.At) && a.Runs == b.Runs && a.Text == b.Text
				}) {
					t.Fatalf("%q and %s in %s, %+v: effects %v and %v", same[0], same[1], name, o, a, b)
				}
			}
		}
	}
}

func TestRuleRefused(t *testing.T) {
	start := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ rule, field, want string }{
		{"", "", `rule "": is empty; it needs FREQ, as in FREQ=WEEKLY;BYDAY=MO`},
		{"FREQ", "", `rule "FREQ": "FREQ" is not NAME=VALUE`},
		{"BYDAY=MO", "FREQ", `FREQ "": is missing; it must be YEARLY, MONTHLY, WEEKLY, DAILY or HOURLY`},
		{"FREQ=MINUTELY;INTERVAL=5", "FREQ", `FREQ "MINUTELY": is too fine for a rule; use an interval or a cron expression, such as */10 * * * *`},
		{"FREQ=FORTNIGHTLY", "FREQ", `FREQ "FORTNIGHTLY": must be YEARLY, MONTHLY, WEEKLY, DAILY or HOURLY`},
		{"FREQ=DAILY;FREQ=DAILY", "FREQ", `FREQ "DAILY": is given twice`},
		{"FREQ=DAILY;INTERVAL=0", "INTERVAL", `INTERVAL "0": must be 1-36500 with FREQ=DAILY`},
		{"FREQ=DAILY;COUNT=10001", "COUNT", `COUNT "10001": must be 1-10000`},
		{"FREQ=DAILY;COUNT=3;UNTIL=20270101", "UNTIL", `UNTIL "20270101": cannot stand beside COUNT; leave one of them out`},
		{"FREQ=DAILY;UNTIL=2027-01-01", "UNTIL", `UNTIL "2027-01-01": must be a date (20271231), a local time (20271231T090000) or a time in UTC (20271231T080000Z)`},
		{"FREQ=DAILY;UNTIL=20260228", "UNTIL", `UNTIL "20260228": is before the start at 2026-03-01T09:00:00Z`},
		{"FREQ=DAILY;UNTIL=20260301T085959Z", "UNTIL", `UNTIL "20260301T085959Z": is before the start at 2026-03-01T09:00:00Z`},
		{"FREQ=MONTHLY;BYDAY=6MO", "BYDAY", `BYDAY "6MO": the number must be 1 to 5, or -5 to -1 counted from the end`},
		{"FREQ=MONTHLY;BYDAY=MON", "BYDAY", `BYDAY "MON": must be a weekday (MO, TU, WE, TH, FR, SA, SU), with a number before it for the n-th of the month: 2TU, -1FR`},
		{"FREQ=WEEKLY;BYDAY=2TU", "BYDAY", `BYDAY "2TU": a number goes with FREQ=MONTHLY or YEARLY only; write TU`},
		{"FREQ=YEARLY;BYWEEKNO=2;BYDAY=2TU", "BYDAY", `BYDAY "2TU": a number does not go with BYWEEKNO; write TU`},
		{"FREQ=MONTHLY;BYMONTHDAY=32", "BYMONTHDAY", `BYMONTHDAY "32": must be 1 to 31, or -31 to -1 counted from the end`},
		{"FREQ=WEEKLY;BYMONTHDAY=1", "BYMONTHDAY", `BYMONTHDAY "1": does not go with FREQ=WEEKLY; use FREQ=DAILY with BYDAY and BYMONTHDAY`},
		{"FREQ=MONTHLY;BYWEEKNO=1", "BYWEEKNO", `BYWEEKNO "1": goes with FREQ=YEARLY only`},
		{"FREQ=DAILY;BYYEARDAY=1", "BYYEARDAY", `BYYEARDAY "1": goes with FREQ=YEARLY or HOURLY only`},
		{"FREQ=DAILY;BYHOUR=9,24", "BYHOUR", `BYHOUR "24": must be 0 to 23`},
		{"FREQ=DAILY;BYSECOND=60", "BYSECOND", `BYSECOND "60": must be 0 to 59`},
		{"FREQ=MONTHLY;BYSETPOS=1", "BYSETPOS", `BYSETPOS "1": chooses among the times of the other BY parts; add one, such as BYDAY=MO,TU,WE,TH,FR`},
		{"FREQ=WEEKLY;WKST=1", "WKST", `WKST "1": must be one of MO, TU, WE, TH, FR, SA, SU`},
		{"FREQ=YEARLY;BYEASTER=0", "BYEASTER", `BYEASTER "0": is not known; a rule has ` + ruleParts},
		{"DTSTART:20260301T090000\nRRULE:FREQ=DAILY", "DTSTART", `DTSTART "DTSTART:20260301T090000": the start is not part of a rule; use start_time`},
		{"RRULE:FREQ=DAILY\nEXDATE:20260302T090000", "EXDATE", `EXDATE "EXDATE:20260302T090000": days to leave out are not part of a rule; use exclude_calendars`},
		{"FREQ=DAILY\nFREQ=DAILY", "", `rule "FREQ=DAILY\nFREQ=DAILY": has several lines; a rule is one line`},
		{"FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30", "", `rule "FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30": has no instant in the 400 years from its start at 2026-03-01T09:00:00Z`},
		{"FREQ=HOURLY;INTERVAL=6;BYHOUR=4", "BYHOUR", `BYHOUR "4": none of these comes: every 6 hours from 09:00 fall on other hours`},
		{"FREQ=WEEKLY;BYDAY=MO;BYHOUR=9,10;BYSETPOS=20", "BYSETPOS", `BYSETPOS "20": none of these comes: the times to choose from are at most 14 in each week`},
		{"FREQ=HOURLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYSETPOS=2", "BYSETPOS", `BYSETPOS "2": none of these comes: the times to choose from are at most 1 in each hour`},
		{"FREQ=YEARLY;INTERVAL=2;BYMONTH=2;BYMONTHDAY=29;BYHOUR=1;BYSETPOS=2", "", `rule "FREQ=YEARLY;INTERVAL=2;BYMONTH=2;BYMONTHDAY=29;BYHOUR=1;BYSETPOS=2": has no instant in the 400 years from its start at 2026-03-01T09:00:00Z`},
	} {
		_, err := ParseRule(tt.rule, start, Options{})
		var bad *SyntaxError
		if !errors.As(err, &bad) || err.Error() != tt.want || bad.Field != tt.field || !bad.Rule || bad.Expr != tt.rule {
			t.Errorf("ParseRule(%q)\n got %v\nwant %s", tt.rule, err, tt.want)
		}
	}
	if _, err := ParseRule("FREQ=YEARLY;BYYEARDAY="+strings.Repeat("1,", MaxRule), start, Options{}); err == nil {
		t.Error("a long rule: no error")
	}
}
