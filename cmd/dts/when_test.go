package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func berlin(t testing.TB) *time.Location {
	loc, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func TestParseWhen(t *testing.T) {
	loc := berlin(t)
	now := time.Date(2026, 3, 28, 20, 0, 0, 0, loc) // the night before clocks are put forward
	for _, tt := range []struct{ text, want string }{
		{"2026-03-01T08:00:00+01:00", "2026-03-01T08:00:00+01:00"},
		{"2026-03-01t07:00:00z", "2026-03-01T08:00:00+01:00"},
		{"2026-07-01 08:00", "2026-07-01T08:00:00+02:00"},
		{"2026-07-01T08:00:30", "2026-07-01T08:00:30+02:00"},
		{"2026-10-25 02:30", "2026-10-25T02:30:00+02:00"}, // twice: the first
		{"21:00", "2026-03-28T21:00:00+01:00"},
		{"20:00", "2026-03-29T20:00:00+02:00"}, // it is that now, so the next
		{"19:59:59", "2026-03-29T19:59:59+02:00"},
		{"today 08:00", "2026-03-28T08:00:00+01:00"},
		{"Tomorrow  09:00", "2026-03-29T09:00:00+02:00"},
	} {
		got, _, err := parseWhen(tt.text, loc, now)
		if err != nil || got.In(loc).Format(time.RFC3339) != tt.want {
			t.Errorf("%q: %s, %v; want %s", tt.text, got.In(loc).Format(time.RFC3339), err, tt.want)
		}
	}
	for _, text := range []string{"", "soon", "25:00", "tomorrow", "2026-13-01 08:00", "2026-03-29 02:30", "tomorrow 02:30", "yesterday 09:00", strings.Repeat("1", 100)} {
		if at, _, err := parseWhen(text, loc, now); err == nil {
			t.Errorf("%q is accepted as %s", text, at)
		}
	}
}

func TestParsePast(t *testing.T) {
	loc := berlin(t)
	now := time.Date(2026, 3, 30, 1, 30, 0, 0, loc) // the night after clocks were put forward
	for _, tt := range []struct{ text, want string }{
		{"01:00", "2026-03-30T01:00:00+02:00"},
		{"01:30", "2026-03-30T01:30:00+02:00"}, // it is that now
		{"09:00", "2026-03-29T09:00:00+02:00"},
		{"Yesterday  01:15:30", "2026-03-29T01:15:30+01:00"},
		{"2d", "2026-03-28T00:30:00+01:00"},
		{"02:30", "2026-03-29T03:00:00+02:00"}, // it did not exist
		{"yesterday 02:30", "2026-03-29T03:00:00+02:00"},
		{"2026-03-29 02:30", "2026-03-29T03:00:00+02:00"},
		{"90m", "2026-03-30T00:00:00+02:00"},
		{"2026-03-01 08:00", "2026-03-01T08:00:00+01:00"},
		{"2026-03-29T00:30:00Z", "2026-03-29T01:30:00+01:00"},
	} {
		got, err := parsePast("--from", tt.text, loc, now)
		if err != nil || got.In(loc).Format(time.RFC3339) != tt.want {
			t.Errorf("%q: %s, %v; want %s", tt.text, got.In(loc).Format(time.RFC3339), err, tt.want)
		}
	}
	for _, text := range []string{"", "soon", "25:00", "yesterday", "-2h", "5"} {
		if at, err := parsePast("--from", text, loc, now); err == nil {
			t.Errorf("%q is accepted as %s", text, at)
		}
	}
}

func FuzzParseWhen(f *testing.F) {
	for _, s := range []string{"15:04", "tomorrow 09:00", "2026-03-29 02:30", "2026-03-01T08:00:00Z"} {
		f.Add(s)
	}
	loc := berlin(f)
	now := time.Date(2026, 3, 28, 20, 0, 0, 0, loc)
	f.Fuzz(func(t *testing.T, text string) {
		at, _, err := parseWhen(text, loc, now)
		if err == nil && at.IsZero() && !strings.HasPrefix(strings.TrimSpace(text), "0001") {
			t.Errorf("%q: no time and no error", text)
		}
	})
}

func FuzzParsePast(f *testing.F) {
	for _, s := range []string{"15:04", "yesterday 09:00", "yesterday 02:30", "2026-03-29 02:30", "2d", "2026-03-01T08:00:00Z"} {
		f.Add(s)
	}
	loc := berlin(f)
	now := time.Date(2026, 3, 30, 1, 30, 0, 0, loc)
	f.Fuzz(func(t *testing.T, text string) {
		at, err := parsePast("--from", text, loc, now)
		if _, tod := time.Parse("15:04", strings.TrimSpace(text)); err == nil && tod == nil && at.After(now) {
			t.Errorf("%q is %s, which is to come", text, at)
		}
	})
}

func FuzzParseWindow(f *testing.F) {
	for _, s := range []string{"0 9 * * mon-fri for 8h", "*/5 * * * * for 1m", "2026-03-01 08:00/2026-03-01 12:00", "15:00/16:00", " for ", "/"} {
		f.Add(s)
	}
	loc := berlin(f)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, loc)
	f.Fuzz(func(t *testing.T, text string) {
		w, err := parseWindow(text, loc, now)
		if err == nil && (w.Cron == "") == (w.DurationSeconds > 0) {
			t.Errorf("%q: %+v is half of one form", text, w)
		}
		if err == nil && w.Cron == "" && !w.End.After(w.Start) {
			t.Errorf("%q: %+v is empty", text, w)
		}
	})
}

func TestParseSpan(t *testing.T) {
	for text, want := range map[string]time.Duration{"90s": 90 * time.Second, "2d": 48 * time.Hour, "1d12h": 36 * time.Hour, "PT3H": 3 * time.Hour, "50ms": 50 * time.Millisecond} {
		if got, err := parseSpan("--x", text, 0); err != nil || got != want {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "5", "x", "-5s", "3 days"} {
		if got, err := parseSpan("--x", text, 0); err == nil {
			t.Errorf("%q is accepted as %s", text, got)
		}
	}
}

func TestMachineZone(t *testing.T) {
	etc := t.TempDir()
	none := func(string) string { return "" }
	tz := func(v string) func(string) string { return func(string) string { return v } }
	check := func(getenv func(string) string, want string) {
		t.Helper()
		if got := machineZone(getenv, etc); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	check(none, "")
	if err := os.Symlink("/usr/share/zoneinfo/America/New_York", filepath.Join(etc, "localtime")); err != nil {
		t.Fatal(err)
	}
	check(none, "America/New_York")
	if err := os.WriteFile(filepath.Join(etc, "timezone"), []byte("Europe/Berlin\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	check(none, "Europe/Berlin")
	check(tz(":Asia/Tokyo"), "Asia/Tokyo")
	check(tz("CET-1CEST"), "") // a POSIX rule has no name
}
