package cron

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestParseInterval(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want time.Duration
	}{
		{"90s", 90 * time.Second}, {"1h30m", 90 * time.Minute}, {"1d", 24 * time.Hour},
		{"2w", 14 * 24 * time.Hour}, {"1d12h", 36 * time.Hour}, {"1w1d1h", 193 * time.Hour},
		{"PT3H", 3 * time.Hour}, {"P1D", 24 * time.Hour}, {"P2W", 14 * 24 * time.Hour},
		{"P1DT2H3M4.5S", 26*time.Hour + 3*time.Minute + 4500*time.Millisecond}, {"pt90s", 90 * time.Second},
		{"1s", time.Second}, {"3650d", 3650 * 24 * time.Hour}, {"1.5h", 90 * time.Minute}, {"PT120M", 2 * time.Hour},
	} {
		if got, err := ParseInterval(tt.in); err != nil || got != tt.want {
			t.Errorf("ParseInterval(%q) = %v, %v, want %v", tt.in, got, err, tt.want)
		}
	}
	for in, want := range map[string]string{
		"":                      "must be like 90s",
		"90":                    "write 90s for seconds",
		"5x":                    "must be like 90s",
		"d":                     "must be like 90s",
		"-5d":                   "must be like 90s",
		"1d-5h":                 "must be like 90s",
		"-5s":                   "the shortest is 1s",
		"999ms":                 "the shortest is 1s",
		"0s":                    "the shortest is 1s",
		"3651d":                 "the longest is 3650d",
		"9999w9999d2562047h":    "the longest is 3650d",
		"1s1ns":                 "finer than a microsecond",
		"P1M":                   "months and years have no fixed length",
		"P1Y2D":                 "months and years have no fixed length",
		"P":                     "must be like 90s",
		"P1H":                   "must be like 90s",
		"PT1S1MS":               "must be like 90s",
		strings.Repeat("1", 65): "the limit is 64",
	} {
		if got, err := ParseInterval(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseInterval(%q) = %v, %v, want an error with %q", in, got, err, want)
		}
	}
}

func TestEvery(t *testing.T) {
	anchor := time.Date(2026, 3, 1, 0, 0, 0, 250_000_000, time.UTC)
	s := Every(90*time.Second, anchor)
	for _, tt := range []struct{ after, next, prev time.Time }{
		{anchor.Add(-time.Hour), anchor, time.Time{}},
		{anchor.Add(-1), anchor, time.Time{}},
		{anchor, anchor.Add(90 * time.Second), anchor},
		{anchor.Add(1), anchor.Add(90 * time.Second), anchor},
		{anchor.Add(90 * time.Second), anchor.Add(180 * time.Second), anchor.Add(90 * time.Second)},
		{anchor.Add(-200 * 365 * 24 * time.Hour), anchor, time.Time{}},
	} {
		if got := s.Next(tt.after); !got.Equal(tt.next) {
			t.Errorf("Next(%v) = %v, want %v", tt.after, got, tt.next)
		}
		if got := s.Prev(tt.after); !got.Equal(tt.prev) {
			t.Errorf("Prev(%v) = %v, want %v", tt.after, got, tt.prev)
		}
	}
	if n := s.Count(anchor.Add(-1), anchor.Add(180*time.Second)); n != 3 {
		t.Errorf("Count = %d, want 3", n)
	}
	if n := s.Count(anchor, anchor.Add(-time.Hour)); n != 0 {
		t.Errorf("Count backwards = %d, want 0", n)
	}
	for _, none := range []Schedule{Every(0, anchor), Every(-time.Second, anchor), Every(time.Second, time.Unix(1<<60, 0))} {
		if !none.Next(anchor).IsZero() || !none.Prev(anchor).IsZero() || none.Count(anchor, anchor.AddDate(1, 0, 0)) != 0 {
			t.Errorf("%+v has instants", none)
		}
	}
}

func TestIntervalOf(t *testing.T) {
	if d, ok := IntervalOf("CRON_TZ=Europe/Berlin @every 90s"); !ok || d != 90*time.Second {
		t.Errorf("IntervalOf(@every 90s) = %v, %v", d, ok)
	}
	for _, expr := range []string{"* * * * *", "@hourly", "@every x", "@reboot"} {
		if _, ok := IntervalOf(expr); ok {
			t.Errorf("IntervalOf(%q) says it is an interval", expr)
		}
	}
}

func TestBounded(t *testing.T) {
	base := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	at := func(m int) time.Time { return base.Add(time.Duration(m) * time.Minute) }
	s, err := Parse("*/5 * * * *", Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := Bounded(s, at(10), at(20))
	for _, tt := range []struct{ at, next, prev time.Time }{
		{at(0), at(10), time.Time{}},
		{at(10), at(15), at(10)},
		{at(17), at(20), at(15)},
		{at(20), time.Time{}, at(20)},
		{at(99), time.Time{}, at(20)},
	} {
		if got := b.Next(tt.at); !got.Equal(tt.next) {
			t.Errorf("Next(%v) = %v, want %v", tt.at, got, tt.next)
		}
		if got := b.Prev(tt.at); !got.Equal(tt.prev) {
			t.Errorf("Prev(%v) = %v, want %v", tt.at, got, tt.prev)
		}
	}
	if n := b.Count(at(-100), at(100)); n != 3 {
		t.Errorf("Count = %d, want 3", n)
	}
	if n := Bounded(s, time.Time{}, at(20)).Count(at(0), at(100)); n != 4 {
		t.Errorf("Count with an end alone = %d, want 4", n)
	}
	if n := Bounded(s, at(90), time.Time{}).Count(at(0), at(100)); n != 3 {
		t.Errorf("Count with a start alone = %d, want 3", n)
	}
}

func TestLoadLocation(t *testing.T) {
	for _, name := range []string{"", "UTC", "Europe/Berlin", "America/Argentina/Ushuaia", "Etc/GMT+5"} {
		if _, err := LoadLocation(name); err != nil {
			t.Errorf("LoadLocation(%q): %v", name, err)
		}
	}
	for name, hint := range map[string]string{
		"Local": "", "local": "", "europe/berlin": "Europe/Berlin", "Europe/Berln": "Europe/Berlin", "Berlin": "Europe/Berlin",
		"new york": "America/New_York", "PST": "America/Los_Angeles", "Mars/Olympus": "", "../etc/passwd": "",
		"Asia/Calcuta": "", strings.Repeat("x", 100): "",
	} {
		_, err := LoadLocation(name)
		var bad *ZoneError
		if !errors.As(err, &bad) || bad.Hint != hint {
			t.Errorf("LoadLocation(%q): %v, want the hint %q", name, err, hint)
		}
	}
}
