package cron

import (
	"testing"
	"time"
)

// FuzzNext asks a schedule for what comes before, after and between instants, in zones and under policies.
func FuzzNext(f *testing.F) {
	zones := []string{"UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/Santiago", "Africa/Cairo", "Pacific/Apia",
		"Africa/Monrovia", "Antarctica/Casey", "Antarctica/Troll", "Asia/Pyongyang", "Asia/Kathmandu", "Europe/Amsterdam"}
	gaps := []GapPolicy{"", GapRunAfter, GapSkip}
	overlaps := []OverlapPolicy{OverlapDefault, OverlapFirst, OverlapSecond, OverlapBoth}
	for i, row := range nextRows {
		at, err := time.Parse(time.RFC3339Nano, row.start)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(row.expr, uint8(i), uint8(i/3), uint8(i/5), at.Unix(), int64(at.Nanosecond()), uint32(i*1000))
	}
	f.Fuzz(func(t *testing.T, expr string, zone, gap, overlap uint8, unix, nano int64, width uint32) {
		name := zones[int(zone)%len(zones)]
		loc, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		s, err := Parse(expr, Options{Location: loc, Gap: gaps[int(gap)%len(gaps)], Overlap: overlaps[int(overlap)%len(overlaps)]})
		if err != nil {
			return
		}
		from := time.Unix(unix, nano%1e9)
		to := from.Add(time.Duration(width) * time.Millisecond * 100) // up to 13 years
		checkSteps(t, s, from, to)
		if p := s.Prev(from); !p.IsZero() && p.After(from) {
			t.Errorf("%q in %s: Prev(%v) = %v", expr, name, from, p)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("%q in %s from %v: took %v", expr, name, from, took)
		}
	})
}

// checkSteps walks from one instant to another, at most 50 steps, forwards and back, and counts.
func checkSteps(t *testing.T, s Schedule, from, to time.Time) {
	t.Helper()
	at, n := from, int64(0)
	for ; n < 50; n++ {
		next := s.Next(at)
		if next.IsZero() || next.After(to) {
			if got := s.Count(from, to); got != n {
				t.Errorf("Count(%v, %v) = %d, but Next finds %d", from, to, got, n)
			}
			break
		}
		if !next.After(at) || next.Year() > 9999 {
			t.Fatalf("Next(%v) = %v", at, next)
		}
		if got := s.Prev(next); !got.Equal(next) {
			t.Fatalf("Prev(%v) = %v, but Next(%v) is the former", next, got, at)
		}
		if got := s.Prev(next.Add(-1)); n > 0 && !got.Equal(at) || !got.IsZero() && got.After(at) {
			t.Fatalf("Prev just before %v = %v, want %v", next, got, at)
		}
		if got := s.Count(at, next); got != 1 {
			t.Fatalf("Count(%v, %v) = %d, but Next goes from one to the other", at, next, got)
		}
		at = next
	}
	if n == 50 {
		if got := s.Count(from, at); got != n {
			t.Errorf("Count(%v, %v) = %d, but Next finds %d", from, at, got, n)
		}
	}
}
