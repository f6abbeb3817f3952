package cron

import (
	"strings"
	"testing"
	"time"
)

// The expressions that cost most: dates that come rarely, never or only in a gap, every special
// form at once, and as many fields as fit.
var worstExpressions = []string{
	"0 0 29 2 MON",
	"0 0 */29 2 1",
	"0 0 */28 2 1#5",
	"0 0 */30 2 *",
	"0 0 31W 2,4,6,9,11 ?",
	"0 0 L-29 2 ?",
	"30 2 * 3 7L",
	"30 2 */29 2 */7",
	"* * * L,LW,L-1,L-2,L-3,L-30,1W,2W,15W,30W,31W */12 0L,1L,2L,3L,4L,5L,6L,0#1,1#2,2#3,3#4,4#5,5#5",
	"59 59 23 31 12 ?",
	"59 59 23 */30,L 2 0L",
	strings.TrimSuffix(strings.Repeat("0-59/1,", 70), ",") + " * * * *",
	strings.TrimSuffix(strings.Repeat("H(0-1),", 70), ",") + " * * * *",
	strings.TrimSuffix(strings.Repeat("31W,", 118), ",") + ",* * * 2 1",
	"CRON_TZ=Africa/Casablanca 0 0 */28 2 1#5",
	strings.Repeat("0 0 */28 2 1#5\n", MaxExpressions),
	strings.Repeat("59-59,"+strings.Repeat("1-59/7,", 60)+"0 0 */28 2 1#5\n", MaxExpressions),
}

// TestWorst holds the promises about time: parse under 1 ms (20 expressions are 20 of them), Next and
// Prev under 10 ms, at all ends of time and in zones of all kinds. The best of a few tries counts,
// since the machine may be busy.
func TestWorst(t *testing.T) {
	best := func(f func()) time.Duration {
		least := time.Hour
		for range 5 {
			began := time.Now()
			f()
			least = min(least, time.Since(began))
		}
		return least
	}
	starts := []time.Time{
		{}, time.Unix(minUnix, 0), time.Date(1883, 11, 18, 0, 0, 0, 0, time.UTC), time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2072, 3, 1, 0, 0, 0, 0, time.UTC), time.Date(2096, 3, 1, 0, 0, 0, 0, time.UTC), time.Date(2196, 3, 1, 0, 0, 0, 0, time.UTC),
		time.Date(9960, 3, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 58, 0, time.UTC),
	}
	for _, expr := range worstExpressions {
		limit := slower * time.Millisecond * time.Duration(1+strings.Count(expr, "\n"))
		if took := best(func() { _, _ = Parse(expr, Options{}) }); took > limit { // some are refused
			t.Errorf("Parse(%.40q) took %v", expr, took)
		}
		if took := best(func() { _, _ = Describe(expr) }); took > limit {
			t.Errorf("Describe(%.40q) took %v", expr, took)
		}
		for _, zone := range []string{"UTC", "Europe/Berlin", "Africa/Casablanca", "America/Nuuk", "Pacific/Apia", "Africa/Monrovia"} {
			loc, err := time.LoadLocation(zone)
			if err != nil {
				t.Fatal(err)
			}
			s, err := Parse(expr, Options{Location: loc, Gap: GapSkip})
			if err != nil {
				break
			}
			for _, at := range starts {
				if took := best(func() { s.Next(at) }); took > slower*10*time.Millisecond {
					t.Errorf("%.40q in %s: Next(%v) took %v", expr, zone, at, took)
				}
				if took := best(func() { s.Prev(at) }); took > slower*10*time.Millisecond {
					t.Errorf("%.40q in %s: Prev(%v) took %v", expr, zone, at, took)
				}
			}
		}
	}
	for _, text := range slowRules {
		var s Schedule
		var err error
		start := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
		if took := best(func() { s, err = ParseRule(text, start, Options{}) }); took > slower*5*time.Millisecond {
			t.Errorf("ParseRule(%q) took %v", text, took)
		}
		if err != nil {
			continue
		}
		for _, at := range starts {
			if took := best(func() { s.Next(at); s.Prev(at) }); took > slower*10*time.Millisecond {
				t.Errorf("%q: Next and Prev of %v took %v", text, at, took)
			}
		}
	}
}

func BenchmarkWorst(b *testing.B) {
	loc, err := time.LoadLocation("Africa/Casablanca")
	if err != nil {
		b.Fatal(err)
	}
	for _, expr := range worstExpressions {
		name := strings.ReplaceAll(expr[:min(len(expr), 30)], "\n", "|")
		b.Run(name+"/Parse", func(b *testing.B) {
			for b.Loop() {
				_, _ = Parse(expr, Options{})
			}
		})
		s, err := Parse(expr, Options{Location: loc, Gap: GapSkip})
		if err != nil {
			continue
		}
		at := time.Date(2072, 3, 1, 0, 0, 0, 0, time.UTC)
		b.Run(name+"/Next", func(b *testing.B) {
			for b.Loop() {
				s.Next(at)
			}
		})
	}
}
