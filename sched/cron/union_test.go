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
)

func TestSeveralExpressions(t *testing.T) {
	for _, tt := range []struct{ expr, start, want, said string }{
		{"0 9 * * 1-5\n0 11 * * 6", "2026-03-06T09:00:00Z", "2026-03-07T11:00:00Z 2026-03-09T09:00:00Z",
			"At 09:00 on Monday to Friday; at 11:00 on Saturday"},
		{"\n0 9 * * *\r\n\n \t\n*/30 9 * * *\n", "2026-03-01T00:00:00Z", "2026-03-01T09:00:00Z 2026-03-01T09:30:00Z 2026-03-02T09:00:00Z",
			"At 09:00 every day; at 09:00 and 09:30 every day"},
		{"0 9 * * *\n", "2026-03-01T00:00:00Z", "2026-03-01T09:00:00Z", "At 09:00 every day"},
		{"@daily\n@weekly", "2026-02-28T12:00:00Z", "2026-03-01T00:00:00Z 2026-03-02T00:00:00Z", "At 00:00 every day; at 00:00 on Sunday"},
	} {
		checkNext(t, "UTC", tt.expr, tt.start, tt.want, Options{})
		if said, err := Describe(tt.expr); err != nil || said != tt.said {
			t.Errorf("Describe(%q) = %q, %v, want %q", tt.expr, said, err, tt.said)
		}
	}
	// Daylight saving is decided for each: the fixed one runs once, the other in both passes.
	checkNext(t, "Europe/Berlin", "30 2 * * *\n*/20 2 * * *", "2026-10-24T12:00:00Z",
		"2026-10-25T02:00:00+02:00 2026-10-25T02:20:00+02:00 2026-10-25T02:30:00+02:00 2026-10-25T02:40:00+02:00 2026-10-25T02:00:00+01:00 2026-10-25T02:20:00+01:00 2026-10-25T02:40:00+01:00", Options{})
	checkNext(t, "Europe/Berlin", "30 2 * * *\n10 2 * * *\n0 3 * * *", "2026-03-28T12:00:00Z",
		"2026-03-29T03:00:00+02:00 2026-03-30T02:10:00+02:00", Options{})
}

func TestSeveralExpressionsRefused(t *testing.T) {
	for _, tt := range []struct{ expr, want string }{
		{"0 9 * * *\n61 9 * * *", `line 2: minute field "61": must be 0-59`},
		{"0 9 * * *\n\n* * *", `line 3: expression "* * *": has 3 fields; it needs 5 (minute hour day-of-month month day-of-week), or 6 with seconds first`},
		{"0 9 * * *\n0 0 30 2 *", `line 2: day-of-month field "30": no such day ever comes in month "2" with day-of-week "*", so this would never run`},
		{"0 9 * * *\n@reboot", `line 2: expression "@reboot": @reboot stands alone: make a recurring task of its own`},
		{"@every 90s\n0 9 * * *", `line 1: expression "@every 90s": @every stands alone: make a recurring task of its own, or write fields such as */15`},
		{"0 9 * * *\nCRON_TZ=Asia/Tokyo 0 9 * * *", `line 2: CRON_TZ field "Asia/Tokyo": several expressions share one zone; use time_zone`},
		{"\n \n", `expression "": is empty; it needs 5 fields: minute hour day-of-month month day-of-week`},
	} {
		_, err := Parse(tt.expr, Options{})
		var bad *SyntaxError
		if !errors.As(err, &bad) || err.Error() != tt.want {
			t.Errorf("Parse(%q)\n got %v\nwant %s", tt.expr, err, tt.want)
		}
		if _, err := Describe(tt.expr); err == nil || err.Error() != tt.want {
			t.Errorf("Describe(%q)\n got %v\nwant %s", tt.expr, err, tt.want)
		}
	}
	many := strings.Repeat("* * * * *\n", MaxExpressions)
	if _, err := Parse(many, Options{}); err != nil {
		t.Errorf("%d expressions: %v", MaxExpressions, err)
	}
	if _, err := Parse(many+"* * * * *", Options{}); err == nil || !strings.Contains(err.Error(), "has 21 expressions, one a line; the limit is 20") {
		t.Errorf("one too many: %v", err)
	}
	if _, err := Parse(many+strings.Repeat("\n", 1<<16), Options{}); err == nil {
		t.Error("64 KB of text: no error")
	}
	if d, ok := IntervalOf("@every 90s\n@every 90s"); ok {
		t.Errorf("IntervalOf two lines = %v", d)
	}
}

// TestUnionAgainstItsParts compares a union with the instants of its expressions, sorted and
// without doubles, around changes of offset.
func TestUnionAgainstItsParts(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	gaps := []GapPolicy{"", GapSkip}
	overlaps := []OverlapPolicy{"", "", "", OverlapFirst, OverlapSecond, OverlapBoth}
	for _, name := range oracleZones {
		loc, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		around := append(transitions(loc, 2015, 2029), time.Date(2027, 6, 1, 0, 0, 0, 0, time.UTC))
		for range 10 {
			at := around[r.IntN(len(around))]
			fine := r.IntN(4) == 0
			width := 5 * 24 * time.Hour
			if fine {
				width = 6 * time.Hour
			}
			o := Options{Location: loc, Gap: gaps[r.IntN(2)], Overlap: overlaps[r.IntN(len(overlaps))]}
			after := at.Add(-time.Duration(r.Int64N(int64(width)))).Truncate(time.Second)
			through := at.Add(time.Duration(r.Int64N(int64(width)))).Truncate(time.Second)
			var lines []string
			seen := map[int64]bool{}
			for range 2 + r.IntN(4) {
				g := randomGuess(r, fine && r.IntN(2) == 0, r.IntN(3) > 0)
				s, err := Parse(g.expr, o)
				if err != nil {
					continue // a date that never comes
				}
				lines = append(lines, g.expr)
				for at := s.Next(after); !at.IsZero() && !at.After(through); at = s.Next(at) {
					seen[at.Unix()] = true
				}
			}
			if len(lines) == 0 {
				continue
			}
			s, err := Parse(strings.Join(lines, "\n"), o)
			if err != nil {
				t.Fatal(err)
			}
			var want, got, back []int64
			for at := range seen {
				want = append(want, at)
			}
			slices.Sort(want)
			for at := s.Next(after); !at.IsZero() && !at.After(through); at = s.Next(at) {
				got = append(got, at.Unix())
			}
			for at := s.Prev(through); !at.IsZero() && at.After(after); at = s.Prev(at.Add(-1)) {
				back = append(back, at.Unix())
			}
			slices.Reverse(back)
			where := fmt.Sprintf("%q in %s, %+v, (%s, %s]", lines, name, o, after, through)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s: Next: %s", where, diff)
			}
			if diff := cmp.Diff(want, back); diff != "" {
				t.Fatalf("%s: Prev: %s", where, diff)
			}
			if n := s.Count(after, through); n != int64(len(want)) {
				t.Fatalf("%s: Count = %d, want %d", where, n, len(want))
			}
		}
	}
}

func TestUnionCountIsFast(t *testing.T) {
	loc, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse("*/2 * * * * *\n1-59/2 * * * * 1-5", Options{Location: loc})
	if err != nil {
		t.Fatal(err)
	}
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, loc)
	began := time.Now()
	n := s.Count(from.Add(-1), from.AddDate(1, 0, 0).Add(-1))
	if took := time.Since(began); took > slower*100*time.Millisecond {
		t.Errorf("counting a year took %v", took)
	}
	const weekdays = 261 // of 2026; both changes are on Sundays, in elapsed time
	if want := int64(365*43200 + weekdays*43200); n != want {
		t.Errorf("Count = %d, want %d", n, want)
	}
}

func BenchmarkUnion(b *testing.B) {
	loc, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		b.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	var two, twenty strings.Builder
	fmt.Fprintln(&two, "*/2 * * * * *\n1-59/2 * * * * 1-5")
	for i := range 20 { // as many different days as can be
		fmt.Fprintf(&twenty, "%d-59 * * %d,%d,L-%d * %d\n", i, i+1, (i*7)%31+1, i+1, i%7)
	}
	for _, bb := range []struct{ name, expr string }{{"two", two.String()}, {"twenty", twenty.String()}} {
		s, err := Parse(bb.expr, Options{Location: loc})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(bb.name+"/Next", func(b *testing.B) {
			for b.Loop() {
				s.Next(at)
			}
		})
		b.Run(bb.name+"/CountYear", func(b *testing.B) {
			for b.Loop() {
				s.Count(at, at.AddDate(1, 0, 0))
			}
		})
	}
	rare := strings.Repeat("0 0 */28 2 1#5\n", 20)
	s, err := Parse(rare, Options{Location: loc})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("rare/Next", func(b *testing.B) {
		for b.Loop() {
			s.Next(time.Date(2072, 3, 1, 0, 0, 0, 0, time.UTC))
		}
	})
}
