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
		{"end", Plan{Interval: time.Hour, Anchor: anchor, End: anchor.Add(time.Minute)}, time.Time{}},
	} {
		s, err := c.plan.Schedule(Options{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if got := s.Next(anchor); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if _, err := (Plan{Expr: "@reboot"}).Schedule(Options{}); !errors.Is(err, ErrReboot) {
		t.Errorf("@reboot: %v", err)
	}
}
