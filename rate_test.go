package dts_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"dts"
)

// TestRateHolds: whoever takes however many, in no time are more starts given than the rate has room for, and who always
// wants more gets all of them.
func TestRateHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := dts.Rate{
			N:      rapid.IntRange(1, 5000).Draw(t, "n"),
			Period: time.Duration(rapid.IntRange(1, 3600).Draw(t, "period")) * time.Second,
			Burst:  rapid.IntRange(1, 50).Draw(t, "burst"),
		}
		begin := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		now, greedy := begin, rapid.Bool().Draw(t, "greedy")
		var through time.Time
		var given []time.Time
		for range 200 {
			want := 1 << 20
			if !greedy {
				want = rapid.IntRange(0, 100).Draw(t, "want")
			}
			s, after := r.Take(through, now, want)
			if s.N > want || after.Before(through) {
				t.Fatalf("got %d of %d, and the mark went from %v to %v", s.N, want, through, after)
			}
			through = after
			for k := range s.N {
				at := s.From.Add(r.Span(k))
				if at.After(now.Add(dts.StartsAhead)) {
					t.Fatalf("a start at %v was given at %v", at, now)
				}
				if at.Before(now) {
					at = now
				}
				given = append(given, at)
			}
			step := time.Duration(rapid.Int64Range(0, int64(2*dts.StartsAhead)).Draw(t, "step"))
			if greedy {
				step = dts.StartsAhead / 2
			}
			now = now.Add(step)
		}
		for i := range given {
			// From start i to start i+Burst and more, at least the span between those that are not of the burst.
			for _, k := range []int{r.Burst, 2*r.Burst + 3, 100} {
				if i+k < len(given) && given[i+k].Sub(given[i]) < r.Span(k-r.Burst+1)-time.Duration(k)*time.Microsecond {
					t.Fatalf("%d starts in %v, from %v on", k+1, given[i+k].Sub(given[i]), given[i])
				}
			}
		}
		if room := float64(now.Sub(begin)) / float64(r.Period) * float64(r.N); greedy && float64(len(given)) < 0.99*room {
			t.Fatalf("%d starts in %v at %+v", len(given), now.Sub(begin), r)
		}
	})
}

func TestRateAfterAnotherOne(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	r := dts.Rate{N: 10, Period: time.Second, Burst: 1}
	if s, _ := r.Take(now.Add(24*time.Hour), now, 1); s.N != 1 || !s.From.Equal(now) {
		t.Errorf("after a rate of one a day, or a clock that was a day ahead, got %+v", s)
	}
	if s, _ := r.Take(now.Add(time.Second), now, 1); s.N != 0 || !s.From.Equal(now.Add(time.Second)) {
		t.Errorf("where another server took a second, got %+v", s)
	}
	if s, _ := (dts.Rate{N: dts.MaxRate, Period: dts.MaxRatePeriod, Burst: dts.MaxRate}).Take(time.Time{}, now, 5000); s.N != 5000 {
		t.Errorf("of the greatest burst got %+v", s)
	}
}
