package main

import (
	"testing"
	"time"

	"dts"
	"dts/web/api"
)

func TestShownTime(t *testing.T) {
	const day = 24 * time.Hour
	at := time.Date(2026, 3, 28, 1, 30, 0, 0, time.UTC)
	golden(t, "preview", func(a *app) {
		r := exampleRecurring()
		r.Status, r.PausedUntil = dts.Paused, goldenNow.Add(day)
		a.printPreview(r, &dts.Preview{
			Description: "At 02:30 on Monday to Friday, not in holidays", TimeZone: "Europe/Berlin",
			Instants: []dts.PreviewInstant{
				{UTC: at, Runs: true},
				{UTC: at.Add(day - 30*time.Minute), Runs: true, DueAt: at.Add(day),
					Effects: []dts.PreviewEffect{{Kind: dts.EffectDST, Text: "02:30 does not exist on this day"}, {Kind: dts.EffectBlackout, Text: "waits for the end of upgrade"}}},
				{UTC: at.Add(2*day - time.Hour), Effects: []dts.PreviewEffect{{Kind: dts.EffectCalendar, Text: "holidays: Easter Monday\x1b[2J"}}},
			},
			Missed: &dts.MissedPreview{Text: "12 missed since Friday 17:00: would run 1"},
		}, 10, berlin(t))
	})
	golden(t, "backfill", func(a *app) {
		r := exampleRecurring()
		q := dts.BackfillRequest{From: at, To: at.Add(9 * day)}
		w := &dts.BackfillAnswer{Count: 7, First: at, Last: at.Add(8 * day)}
		a.printBackfill(r, dts.BackfillRequest{DryRun: true}, w, berlin(t))
		w.Created = 7
		a.printBackfill(r, q, w, berlin(t))
		r.OverlapPolicy = dts.OverlapAllow
		a.printBackfill(r, q, w, berlin(t))
		a.printBackfill(r, q, &dts.BackfillAnswer{Count: 1, Created: 1, First: at, Last: at}, berlin(t))
		a.printBackfill(r, q, &dts.BackfillAnswer{}, berlin(t))
	})
	golden(t, "conflicts", func(a *app) {
		a.printConflicts([]dts.Conflict{
			{From: at, To: at.Add(10 * time.Minute), Shared: "queue reports", Limit: 2, Most: 3, Times: 7,
				Tasks: []dts.ConflictTask{{Name: "backup.sh", Seconds: 600}, {Name: "index", Seconds: 12.34}, {Name: "mail\x1b[2J", Seconds: 1}}},
			{From: at.Add(day), To: at.Add(day + time.Second), Shared: "concurrency key db", Limit: 1, Most: 2, Times: 1, Tasks: []dts.ConflictTask{{Name: "a"}, {Name: "b"}}},
		}, 7)
		a.printConflicts(nil, 1)
	})
}

func TestShownCalendars(t *testing.T) {
	const day = 24 * time.Hour
	christmas := time.Date(2026, 12, 24, 23, 0, 0, 0, time.UTC)
	golden(t, "calendar", func(a *app) {
		a.printCalendar(&dts.Calendar{
			Name: "holidays", Description: "when the office is closed", TimeZone: "Europe/Berlin",
			Holidays: &dts.Holidays{Country: "de", Region: "by", Add: []string{"12-24", "12-31"}, Remove: []string{"08-15"}},
			Days:     []string{"2026-05-15", "2026-06-05", "2026-12-27/2026-12-30", "2027-01-02", "2027-01-04"},
			Weekdays: []string{"SAT", "SUN"}, Weekend: []string{"FRI", "SAT"},
			Windows: []dts.Window{{Start: christmas, End: christmas.Add(time.Hour)}, {Cron: "0 22 * * mon-fri", DurationSeconds: 7200}},
			ICS:     "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n", CreatedAt: ago(day), UpdatedAt: ago(time.Hour),
		})
		a.printWindows([]api.CalendarWindow{
			{Start: ago(time.Hour), End: ago(-time.Hour), Name: "now"}, {Start: christmas, End: christmas.Add(day), Name: "Christmas Day\x1b[2J"},
		}, "in the coming year")
		a.printWindows(nil, "in the coming year")
	})
	golden(t, "blackouts", func(a *app) {
		a.blackoutTable([]*dts.Blackout{
			{Name: "upgrade", Window: dts.Window{Start: ago(time.Hour), End: ago(-time.Hour)}, Action: dts.BlackoutWait, Note: "new database"},
			{Name: "old", Window: dts.Window{Start: ago(2 * day), End: ago(day)}, Action: dts.BlackoutSkip, Queue: "reports"},
			{Name: "nightly", Window: dts.Window{Cron: "0 3 * * *", DurationSeconds: 3600}, TimeZone: "Europe/Berlin", Action: dts.BlackoutWait},
			{ID: "019ca8f0-0000-7000-8000-000000000001", Name: "freeze", Calendar: "freeze", TimeZone: "UTC", Action: dts.BlackoutSkip},
			{ID: "019ca8f0-0000-7000-8000-000000000002", Name: "freeze", Calendar: "other", TimeZone: "UTC", Action: dts.BlackoutSkip},
		})
	})
}

func TestCalendarWords(t *testing.T) {
	for want, c := range map[string]*dts.Calendar{
		"holidays of DE-BY, 1 more, without 2": {Holidays: &dts.Holidays{Country: "de", Region: "by", Add: []string{"12-24"}, Remove: []string{"01-06", "08-15"}}},
		"12-25":                                {Days: []string{"12-25"}},
		"an .ics file":                         {},
	} {
		if got := calendarWords(c); len(got) != 1 || got[0] != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := weekdayWords([]string{"sat,Sunday", "MON", "x"}); len(got) != 4 || got[0] != "SAT" || got[1] != "SUN" || got[2] != "MON" || got[3] != "X" {
		t.Errorf("weekdays: %q", got)
	}
}
