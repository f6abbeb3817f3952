package cron

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestEffects(t *testing.T) {
	for _, tt := range []struct {
		zone, expr, from string // an expression, or a rule that starts at from
		days             int
		o                Options
		want             string
	}{
		// Berlin: 2027-03-28 02:00 becomes 03:00, 2026-10-25 03:00 becomes 02:00.
		{"Europe/Berlin", "30 2 * * *", "2027-03-27T00:00:00Z", 3, Options{},
			"2027-03-28T03:00:00+02:00 true 02:30 does not exist on 2027-03-28: the clock goes from 02:00 to 03:00; it runs at 03:00"},
		{"Europe/Berlin", "30 2 * * *", "2027-03-27T00:00:00Z", 3, Options{Gap: GapSkip},
			"2027-03-28T03:00:00+02:00 false 02:30 does not exist on 2027-03-28: the clock goes from 02:00 to 03:00; it does not run"},
		{"Europe/Berlin", "10,20,30 2 * * *", "2027-03-27T00:00:00Z", 3, Options{},
			"2027-03-28T03:00:00+02:00 true 02:10, 02:20 and 02:30 do not exist on 2027-03-28: the clock goes from 02:00 to 03:00; they run once, at 03:00"},
		{"Europe/Berlin", "0 2,3 * * *", "2027-03-27T00:00:00Z", 3, Options{},
			"2027-03-28T03:00:00+02:00 true 02:00 does not exist on 2027-03-28: the clock goes from 02:00 to 03:00; it falls together with the run at 03:00"},
		{"Europe/Berlin", "*/5 * * * *", "2027-03-27T00:00:00Z", 3, Options{},
			"2027-03-28T03:00:00+02:00 true 12 times from 02:00 to 02:55 do not exist on 2027-03-28: the clock goes from 02:00 to 03:00; they do not run"},
		{"Europe/Berlin", "15 */2 * * *", "2027-03-27T00:00:00Z", 3, Options{},
			"2027-03-28T03:00:00+02:00 false 02:15 does not exist on 2027-03-28: the clock goes from 02:00 to 03:00; it does not run"},
		{"Europe/Berlin", "30 2 * * *", "2026-10-24T00:00:00Z", 3, Options{},
			"2026-10-25T02:30:00+02:00 true 02:30 comes twice on 2026-10-25: the clock goes back from 03:00 to 02:00; it runs the first time only\n" +
				"2026-10-25T02:30:00+01:00 false 02:30 comes twice on 2026-10-25: the clock goes back from 03:00 to 02:00; it runs the first time only"},
		{"Europe/Berlin", "30 2 * * *", "2026-10-24T00:00:00Z", 3, Options{Overlap: OverlapSecond},
			"2026-10-25T02:30:00+02:00 false 02:30 comes twice on 2026-10-25: the clock goes back from 03:00 to 02:00; it runs the second time only\n" +
				"2026-10-25T02:30:00+01:00 true 02:30 comes twice on 2026-10-25: the clock goes back from 03:00 to 02:00; it runs the second time only"},
		{"Europe/Berlin", "30 * * * *", "2026-10-24T00:00:00Z", 3, Options{},
			"2026-10-25T02:30:00+02:00 true 02:30 comes twice on 2026-10-25: the clock goes back from 03:00 to 02:00; it runs both times\n" +
				"2026-10-25T02:30:00+01:00 true 02:30 comes twice on 2026-10-25: the clock goes back from 03:00 to 02:00; it runs both times"},
		{"Europe/Berlin", "* * * * * *", "2026-10-24T00:00:00Z", 3, Options{Overlap: OverlapFirst},
			"2026-10-25T02:00:00+02:00 true 3600 times from 02:00 to 02:59:59 come twice on 2026-10-25: the clock goes back from 03:00 to 02:00; they run the first time only\n" +
				"2026-10-25T02:00:00+01:00 false 3600 times from 02:00 to 02:59:59 come twice on 2026-10-25: the clock goes back from 03:00 to 02:00; they run the first time only"},
		{"Europe/Berlin", "30 4 * * *", "2026-01-01T00:00:00Z", 700, Options{}, ""},

		// Several expressions: what one leaves out, another may run.
		{"Europe/Berlin", "30 2 * * *\n*/30 2 * * *\n45 2 * * *", "2026-10-24T00:00:00Z", 3, Options{},
			"2026-10-25T02:00:00+02:00 true 02:00 comes twice on 2026-10-25: the clock goes back from 03:00 to 02:00; it runs both times\n" +
				"2026-10-25T02:30:00+02:00 true 02:30 comes twice on 2026-10-25: the clock goes back from 03:00 to 02:00; it runs both times\n" +
				"2026-10-25T02:45:00+02:00 true 02:45 comes twice on 2026-10-25: the clock goes back from 03:00 to 02:00; it runs the first time only\n" +
				"2026-10-25T02:00:00+01:00 true 02:00 comes twice on 2026-10-25: the clock goes back from 03:00 to 02:00; it runs both times\n" +
				"2026-10-25T02:30:00+01:00 true 02:30 comes twice on 2026-10-25: the clock goes back from 03:00 to 02:00; it runs both times\n" +
				"2026-10-25T02:45:00+01:00 false 02:45 comes twice on 2026-10-25: the clock goes back from 03:00 to 02:00; it runs the first time only"},
		{"Europe/Berlin", "30 2 * * *\n10 2 * * *", "2027-03-27T00:00:00Z", 3, Options{},
			"2027-03-28T03:00:00+02:00 true 02:10 and 02:30 do not exist on 2027-03-28: the clock goes from 02:00 to 03:00; they run once, at 03:00"},

		// New York, Lord Howe (half an hour), Santiago and Cairo (midnight).
		{"America/New_York", "30 2 * * *", "2027-03-13T00:00:00Z", 3, Options{},
			"2027-03-14T03:00:00-04:00 true 02:30 does not exist on 2027-03-14: the clock goes from 02:00 to 03:00; it runs at 03:00"},
		{"Australia/Lord_Howe", "15 2 * * *", "2026-10-02T00:00:00Z", 4, Options{},
			"2026-10-04T02:30:00+11:00 true 02:15 does not exist on 2026-10-04: the clock goes from 02:00 to 02:30; it runs at 02:30"},
		{"Australia/Lord_Howe", "45 1 * * *", "2026-04-03T00:00:00Z", 4, Options{},
			"2026-04-05T01:45:00+11:00 true 01:45 comes twice on 2026-04-05: the clock goes back from 02:00 to 01:30; it runs the first time only\n" +
				"2026-04-05T01:45:00+10:30 false 01:45 comes twice on 2026-04-05: the clock goes back from 02:00 to 01:30; it runs the first time only"},
		{"America/Santiago", "0 0 * * *", "2026-09-05T00:00:00Z", 3, Options{},
			"2026-09-06T01:00:00-03:00 true 00:00 does not exist on 2026-09-06: the clock goes from 00:00 to 01:00; it runs at 01:00"},
		{"Africa/Cairo", "30 0 * * 5", "2026-04-23T00:00:00Z", 3, Options{},
			"2026-04-24T01:00:00+03:00 true 00:30 does not exist on 2026-04-24: the clock goes from 00:00 to 01:00; it runs at 01:00"},
		{"Africa/Cairo", "30 23 * * *", "2026-10-28T00:00:00Z", 4, Options{},
			"2026-10-29T23:30:00+03:00 true 23:30 comes twice on 2026-10-29: the clock goes back from 00:00 to 23:00; it runs the first time only\n" +
				"2026-10-29T23:30:00+02:00 false 23:30 comes twice on 2026-10-29: the clock goes back from 00:00 to 23:00; it runs the first time only"},

		// Rules, and a correction of a whole day.
		{"Europe/Berlin", "FREQ=DAILY;BYHOUR=2;BYMINUTE=30", "2027-03-27T00:00:00Z", 3, Options{},
			"2027-03-28T03:00:00+02:00 true 02:30 does not exist on 2027-03-28: the clock goes from 02:00 to 03:00; it runs at 03:00"},
		{"Europe/Berlin", "FREQ=HOURLY", "2026-10-24T00:00:00Z", 3, Options{},
			"2026-10-25T02:00:00+02:00 true 02:00 comes twice on 2026-10-25: the clock goes back from 03:00 to 02:00; it runs both times\n" +
				"2026-10-25T02:00:00+01:00 true 02:00 comes twice on 2026-10-25: the clock goes back from 03:00 to 02:00; it runs both times"},
		{"Pacific/Apia", "0 3 * * *", "2011-12-29T00:00:00Z", 4, Options{},
			"2011-12-31T00:00:00+14:00 false 03:00 does not exist on 2011-12-30: the clock goes from 00:00 to 00:00 on 2011-12-31; it does not run"},
	} {
		loc, err := time.LoadLocation(tt.zone)
		if err != nil {
			t.Fatal(err)
		}
		from, err := time.Parse(time.RFC3339, tt.from)
		if err != nil {
			t.Fatal(err)
		}
		tt.o.Location = loc
		plan := Plan{Expr: tt.expr}
		if strings.HasPrefix(tt.expr, "FREQ") {
			plan = Plan{Rule: tt.expr, Anchor: from}
		}
		s, err := plan.Schedule(tt.o)
		if err != nil {
			t.Errorf("%q: %v", tt.expr, err)
			continue
		}
		var got []string
		for _, e := range Effects(s, from, from.AddDate(0, 0, tt.days)) {
			got = append(got, fmt.Sprintf("%s %t %s", e.At.Format(time.RFC3339), e.Runs, e.Text))
		}
		if strings.Join(got, "\n") != tt.want {
			t.Errorf("%s %q %+v:\n got %s\nwant %s", tt.zone, tt.expr, tt.o, strings.Join(got, "\n     "), tt.want)
		}
	}
}

// TestEffectsBounds looks at what is outside: other bounds, other schedules, far times.
func TestEffectsBounds(t *testing.T) {
	loc, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse("30 2 * * *", Options{Location: loc})
	if err != nil {
		t.Fatal(err)
	}
	first := time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC)
	second := first.Add(time.Hour)
	if got := Effects(s, second, second); len(got) != 1 || !got[0].At.Equal(second) {
		t.Errorf("the second pass alone: %+v", got)
	}
	if got := Effects(Bounded(s, first, first), first.Add(-day), second.Add(day)); len(got) != 1 || !got[0].At.Equal(first) || !got[0].Runs {
		t.Errorf("a schedule that ends with the first pass: %+v", got)
	}
	if got := Effects(Every(time.Hour, first), first.Add(-day), second.Add(day)); got != nil {
		t.Errorf("an interval: %+v", got)
	}
	began := time.Now()
	for _, to := range []time.Time{time.Unix(1<<60, 0), time.Unix(-1<<60, 0), {}} {
		for _, from := range []time.Time{first, time.Unix(1<<60, 0), time.Unix(-1<<60, 0), {}} {
			if got := Effects(s, from, to); len(got) > 3*effectChanges {
				t.Errorf("Effects(%v, %v) has %d", from, to, len(got))
			}
		}
	}
	if took := time.Since(began); took > slower*time.Second {
		t.Errorf("far bounds took %v", took)
	}
}

// TestEffectsAgree checks, over random expressions and zones, that a day with a change differs from
// what the readings say only where there is an effect.
func TestEffectsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, name := range oracleZones {
		loc, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		around := transitions(loc, 2015, 2029)
		if len(around) == 0 {
			continue
		}
		for range 30 {
			at := around[r.IntN(len(around))]
			g := randomGuess(r, false, true)
			o := Options{Location: loc, Gap: []GapPolicy{"", GapSkip}[r.IntN(2)],
				Overlap: []OverlapPolicy{"", "", OverlapFirst, OverlapSecond, OverlapBoth}[r.IntN(5)]}
			s, err := Parse(g.expr, o)
			if err != nil {
				t.Fatal(err)
			}
			from, to := at.Add(-4*time.Hour), at.Add(4*time.Hour)
			effects := Effects(s, from, to)
			for _, e := range effects {
				if e.Runs != s.Next(e.At.Add(-1)).Equal(e.At) {
					t.Fatalf("%q in %s, %+v: %+v, but Next says otherwise", g.expr, name, o, e)
				}
			}
			// Each instant is a reading of its own, or the end of a gap with an effect that runs; each
			// reading runs, or is left out with an effect that does not.
			said := func(at time.Time, runs bool) bool {
				for _, e := range effects {
					if e.At.Equal(at) && e.Runs == runs || strings.Contains(e.Text, " times from ") {
						return true
					}
				}
				return false
			}
			for minute := from; !minute.After(to); minute = minute.Add(time.Minute) {
				runs, own := s.Next(minute.Add(-1)).Equal(minute), g.match(read6(minute.In(loc)))
				if runs != own && !said(minute, runs) {
					t.Fatalf("%q in %s, %+v: at %s runs is %t, the reading says %t, and no effect says why: %+v", g.expr, name, o, minute.In(loc), runs, own, effects)
				}
			}
		}
	}
}

func BenchmarkEffects(b *testing.B) {
	loc, err := time.LoadLocation("Africa/Casablanca")
	if err != nil {
		b.Fatal(err)
	}
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, expr := range []string{"30 2 * * *", "* * * * * *", strings.Repeat("* * * * * *\n* 0-5 2-3 * * *\n", 10)} {
		s, err := Parse(expr, Options{Location: loc})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("%.12q", expr), func(b *testing.B) {
			for b.Loop() {
				Effects(s, from, from.AddDate(2, 0, 0))
			}
		})
	}
}
