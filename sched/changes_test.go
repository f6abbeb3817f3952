package sched_test

import (
	"strings"
	"testing"
	"time"

	"dts"
)

// TestCalendarChangesDuringABlackout: what waits for the end of a blackout is decided about once, however often calendars
// are changed meanwhile.
func TestCalendarChangesDuringABlackout(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		b := w.black(0, 6*time.Hour, nil)
		w.calendar("unrelated", func(c *dts.Calendar) { c.Days = []string{"12-20"} })
		r := w.every("*/5 * * * * *", func(r *dts.RecurringTask) { r.MisfireAfterSeconds, r.EndTime = 2, w.now().Add(time.Minute) })
		w.settle(16 * time.Second)
		for _, day := range []string{"12-21", "12-22", "12-23"} {
			w.calendar("unrelated", func(c *dts.Calendar) { c.Days = []string{day} })
			w.settle(11 * time.Second)
		}
		if err := w.s.DeleteBlackout(w.ctx, dts.DefaultTenant, b.ID); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Minute)
		ran := 0
		for _, line := range w.ledger(r.ID) {
			at := line[:8]
			switch {
			case strings.HasSuffix(line, "SUCCESS") && at < "00:00:49": // the blackout ended then
				ran++
			case strings.HasSuffix(line, "SUCCESS"):
			case !strings.HasSuffix(line, "BLACKOUT"):
				t.Errorf("the ledger says %q", line)
			}
		}
		if ran != 1 {
			t.Errorf("%d of the instants that waited ran, want the newest one: %q", ran, w.ledger(r.ID))
		}
	})
}

// TestCalendarThatLeftNothing: instants that a calendar excluded when they came do not run when it is changed, also
// where it excluded everything.
func TestCalendarThatLeftNothing(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.calendar("off", func(c *dts.Calendar) { c.Days = []string{"12-24"} })
		r := w.every("*/5 * * * * *", func(r *dts.RecurringTask) {
			r.ExcludeCalendars, r.MisfireAfterSeconds, r.CatchUpMode = []string{"off"}, 2, dts.RunAllMissed
		})
		w.settle(12 * time.Second)
		w.calendar("off", func(c *dts.Calendar) { c.Weekdays = []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"} })
		w.settle(21 * time.Second)
		w.calendar("off", func(c *dts.Calendar) { c.Days, c.Weekdays = []string{"12-24"}, nil })
		w.settle(12 * time.Second)
		want := "00:00:05 SUCCESS, 00:00:10 SUCCESS, 00:00:15 skipped 4 CALENDAR, 00:00:35 SUCCESS, 00:00:40 SUCCESS, 00:00:45 SUCCESS"
		if got := strings.Join(w.ledger(r.ID), ", "); got != want {
			t.Errorf("the ledger says\n%s, want\n%s", got, want)
		}
	})
}
