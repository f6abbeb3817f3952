package cron

import (
	"hash/fnv"
	"math"
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

// cost returns how long f takes, as a multiple of about a millisecond: of 16 times a piece of work that is done right
// before it, so that a busy machine, or the race detector, slows both. Of a few tries the best counts, or the first one
// within the limit.
func cost(limit float64, f func()) float64 {
	least := math.Inf(1)
	for range 10 {
		began := time.Now()
		h := fnv.New64a()
		h.Write(measure[:])
		unit := 16 * time.Since(began)
		began = time.Now()
		f()
		if least = min(least, float64(time.Since(began))/float64(unit)); least <= limit {
			break
		}
	}
	return least
}

var measure [1 << 16]byte

// TestWorst holds the promises about time: parse in about a millisecond (20 expressions are 20 of them), Next and
// Prev in ten, at all ends of time and in zones of all kinds; a rule, whose COUNT is walked through, in ten.
func TestWorst(t *testing.T) {
	starts := []time.Time{
		{}, time.Unix(minUnix, 0), time.Date(1883, 11, 18, 0, 0, 0, 0, time.UTC), time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2072, 3, 1, 0, 0, 0, 0, time.UTC), time.Date(2096, 3, 1, 0, 0, 0, 0, time.UTC), time.Date(2196, 3, 1, 0, 0, 0, 0, time.UTC),
		time.Date(9960, 3, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 58, 0, time.UTC),
	}
	for _, expr := range worstExpressions {
		limit := 1 + float64(strings.Count(expr, "\n"))
		if took := cost(limit, func() { _, _ = Parse(expr, Options{}) }); took > limit { // some are refused
			t.Errorf("Parse(%.40q) took %.1f ms, about", expr, took)
		}
		if took := cost(limit, func() { _, _ = Describe(expr) }); took > limit {
			t.Errorf("Describe(%.40q) took %.1f ms, about", expr, took)
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
				if took := cost(10, func() { s.Next(at) }); took > 10 {
					t.Errorf("%.40q in %s: Next(%v) took %.1f ms, about", expr, zone, at, took)
				}
				if took := cost(10, func() { s.Prev(at) }); took > 10 {
					t.Errorf("%.40q in %s: Prev(%v) took %.1f ms, about", expr, zone, at, took)
				}
			}
		}
	}
	for _, text := range slowRules {
		var s Schedule
		var err error
		start := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
		if took := cost(10, func() { s, err = ParseRule(text, start, Options{}) }); took > 10 {
			t.Errorf("ParseRule(%q) took %.1f ms, about", text, took)
		}
		if err != nil {
			continue
		}
		for _, at := range starts {
			if took := cost(10, func() { s.Next(at); s.Prev(at) }); took > 10 {
				t.Errorf("%q: Next and Prev of %v took %.1f ms, about", text, at, took)
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
