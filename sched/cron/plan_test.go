package cron

import (
	"errors"
	"testing"
	"time"
)

func TestPlan(t *testing.T) {
	anchor := time.Date(2026, 3, 1, 0, 0, 7, 0, time.UTC)
	start := anchor.Add(time.Hour + time.Second)
	for _, c := range []struct {
		name string
		plan Plan
		want time.Time // the first instant after anchor
	}{
		{"expression", Plan{Expr: "*/5 * * * *"}, anchor.Add(4*time.Minute + 53*time.Second)},
		{"interval", Plan{Interval: 90 * time.Second, Anchor: anchor}, anchor.Add(90 * time.Second)},
		{"every counts from the anchor, not from the epoch", Plan{Expr: "@every 90s", Anchor: anchor}, anchor.Add(90 * time.Second)},
		{"start is the first", Plan{Expr: "@every 90s", Anchor: anchor, Start: start}, start},
		{"several expressions", Plan{Expr: "0 9 * * *\n0 3 * * *"}, anchor.Add(3*time.Hour - 7*time.Second)},
		{"a rule starts at the anchor", Plan{Rule: "FREQ=DAILY", Anchor: anchor}, anchor.AddDate(0, 0, 1)},
		{"a rule starts at the start", Plan{Rule: "FREQ=DAILY", Anchor: anchor, Start: start}, start},
		{"the end of a rule", Plan{Rule: "FREQ=DAILY", Anchor: anchor, End: start}, time.Time{}},
		{"end", Plan{Interval: time.Hour, Anchor: anchor, End: anchor.Add(time.Minute)}, time.Time{}},
	} {
		s, err := c.plan.Schedule(Options{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if got := s.Next(anchor); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if _, err := (Plan{Rule: "FREQ=DAILY"}).Schedule(Options{}); err == nil {
		t.Error("a rule without a start: no error")
	}
	if _, err := (Plan{Rule: "FREQ=DAILY", Expr: "@daily", Anchor: anchor}).Schedule(Options{}); err == nil {
		t.Error("a rule and an expression: no error")
	}
	tokyo, err := LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		plan Plan
		want string
	}{
		{Plan{Expr: "@daily"}, "At 00:00 every day"},
		{Plan{Interval: 90 * time.Second}, "Every 90 seconds"},
		{Plan{Rule: "FREQ=DAILY", Anchor: anchor}, "Every day, at 09:00:07"},
		{Plan{Rule: "FREQ=DAILY"}, "Every day"},
	} {
		if got, err := c.plan.Describe(tokyo); err != nil || got != c.want {
			t.Errorf("Describe of %+v: %q, %v, want %q", c.plan, got, err, c.want)
		}
	}
	if _, err := (Plan{Expr: "@reboot"}).Schedule(Options{}); !errors.Is(err, ErrReboot) {
		t.Errorf("@reboot: %v", err)
	}
}
