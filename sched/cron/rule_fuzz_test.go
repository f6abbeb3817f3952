package cron

import (
	"strings"
	"testing"
	"time"
)

// The slowest rules that could be thought of: they look at as many periods as can be.
var slowRules = []string{
	"FREQ=YEARLY;BYYEARDAY=366;BYWEEKNO=9;BYDAY=MO",
	"FREQ=YEARLY;BYWEEKNO=53,-53;BYDAY=MO;BYSETPOS=366,-366",
	"FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29,-29;BYDAY=5MO;BYSETPOS=5",
	"FREQ=YEARLY;BYHOUR=0,1,2,3,4,5,6,7;BYMINUTE=0,1,2,3,4,5;BYSECOND=0,1,2,3,4;BYDAY=MO,TU,WE,TH,FR,SA,SU,1MO;BYSETPOS=366,365,364,-366,-365,1,2,3",
	"FREQ=MONTHLY;BYMONTHDAY=31;BYDAY=MO;BYSETPOS=2",
	"FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30",
	"FREQ=WEEKLY;BYMONTH=2;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYSETPOS=8",
	"FREQ=DAILY;BYMONTHDAY=31;BYDAY=MO;BYSETPOS=2",
	"FREQ=DAILY;BYMONTHDAY=1,2,3,4,5,6,7,8,9,10;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYSETPOS=2",
	"FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO",
	"FREQ=HOURLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYSETPOS=2",
	"FREQ=HOURLY;BYYEARDAY=366;BYDAY=MO;BYHOUR=3",
	"FREQ=HOURLY;INTERVAL=7;BYYEARDAY=366;BYDAY=MO;BYHOUR=3;BYSETPOS=2",
	"FREQ=HOURLY;INTERVAL=876000",
	"FREQ=DAILY;INTERVAL=7;BYDAY=MO",
	"FREQ=DAILY;COUNT=10000;BYMONTH=2;BYMONTHDAY=29",
	"FREQ=YEARLY;COUNT=10000",
	"FREQ=HOURLY;COUNT=10000;BYHOUR=2",
	"FREQ=HOURLY;COUNT=10000",
	"FREQ=HOURLY;COUNT=1",
	"FREQ=HOURLY;COUNT=10000;BYDAY=1,MO",
	"FREQ=HOURLY;COUNT=10000;BYMINUTE=0,1,2;BYSETPOS=1,2,3,4,5,-1,-2,-3,-4,-5;BYMONTH=2;BYMONTHDAY=29",
}

func BenchmarkRule(b *testing.B) {
	loc, err := time.LoadLocation("Africa/Casablanca")
	if err != nil {
		b.Fatal(err)
	}
	start := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	for _, text := range slowRules {
		b.Run(text+"/Parse", func(b *testing.B) {
			for b.Loop() {
				_, _ = ParseRule(text, start, Options{Location: loc}) // many are refused: that is what takes long
			}
		})
		s, err := ParseRule(text, start, Options{Location: loc})
		if err != nil {
			continue
		}
		b.Run(text+"/Next", func(b *testing.B) {
			for b.Loop() {
				s.Next(start.AddDate(1000, 0, 0))
			}
		})
		b.Run(text+"/Prev", func(b *testing.B) {
			for b.Loop() {
				s.Prev(start.AddDate(1000, 0, 0))
			}
		})
		b.Run(text+"/CountYear", func(b *testing.B) {
			for b.Loop() {
				s.Count(start, start.AddDate(1, 0, 0))
			}
		})
	}
}

func FuzzRule(f *testing.F) {
	for _, text := range slowRules {
		f.Add(text, int64(1772355600), int64(1772355600), "", "", "Europe/Berlin")
	}
	for _, text := range []string{"RRULE:FREQ=MONTHLY;INTERVAL=2;BYDAY=2TU", "FREQ=WEEKLY;WKST=SU;BYDAY=MO,FR;UNTIL=20280101", "FREQ=YEARLY;BYDAY=-53SU,+1MO",
		"FREQ=HOURLY;BYMINUTE=0,30;COUNT=7", "DTSTART:20260101T000000\nFREQ=DAILY", "FREQ=DAILY;UNTIL=99991231T235959Z"} {
		f.Add(text, int64(1772355600), int64(4102444800), "SKIP", "SECOND", "America/Santiago")
	}
	f.Fuzz(func(t *testing.T, text string, start, at int64, gap, overlap, zone string) {
		loc, err := LoadLocation(zone)
		if err != nil {
			return
		}
		o := Options{Location: loc, Gap: GapPolicy(gap), Overlap: OverlapPolicy(overlap)}
		dtstart, after := time.Unix(start, 0).In(loc), time.Unix(at, 0)
		began := time.Now()
		s, err := ParseRule(text, dtstart, o)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("ParseRule(%q): the error has more than one line: %q", text, err)
			}
			return
		}
		if said, err := DescribeRule(text, dtstart); err != nil || said == "" {
			t.Fatalf("DescribeRule(%q) = %q, %v", text, said, err)
		}
		var n int64
		for at := after; n < 50; n++ {
			next := s.Next(at)
			if next.IsZero() {
				break
			}
			if !next.After(at) || next.Before(dtstart) {
				t.Fatalf("%q from %v: Next(%v) = %v", text, dtstart, at, next)
			}
			if prev := s.Prev(next); !prev.Equal(next) {
				t.Fatalf("%q from %v: Prev(%v) = %v", text, dtstart, next, prev)
			}
			if prev := s.Prev(next.Add(-1)); prev.After(at) {
				t.Fatalf("%q from %v: Prev just before %v = %v, which Next(%v) passed over", text, dtstart, next, prev, at)
			}
			if c := s.Count(after, next); c != n+1 {
				t.Fatalf("%q from %v: Count(%v, %v) = %d, want %d", text, dtstart, after, next, c, n+1)
			}
			at = next
		}
		if prev := s.Prev(after); prev.After(after) {
			t.Fatalf("%q from %v: Prev(%v) = %v", text, dtstart, after, prev)
		}
		if took := time.Since(began); took > slower*time.Second {
			t.Fatalf("%q took %v", text, took)
		}
	})
}
