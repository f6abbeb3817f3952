package ui

import (
	"net/url"
	"testing"
	"time"

	"dts"
)

func TestBlackouts(t *testing.T) {
	s := newSite(t)
	s.get("/ui/blackouts", 200).want("There is none.")
	s.calendars = []*dts.Calendar{{Name: "outing", Days: []string{"2026-04-06"}}}
	add := func(name string, b dts.Blackout) {
		b.Name = name
		if err := b.Normalize(testNow); err != nil {
			t.Fatal(err)
		}
		s.blackouts = append(s.blackouts, &b)
	}
	hours := func(from, to int) dts.Window {
		return dts.Window{Start: testNow.Add(time.Duration(from) * time.Hour), End: testNow.Add(time.Duration(to) * time.Hour)}
	}
	add("past", dts.Blackout{Window: hours(-3, -2)})
	add("outing", dts.Blackout{Calendar: "outing", TimeZone: "Europe/Berlin"})
	add("lost", dts.Blackout{Calendar: "gone"})
	add("weekly", dts.Blackout{Window: dts.Window{Cron: "0 11 * * wed", DurationSeconds: 3600}, Queue: "reports", Action: dts.BlackoutSkip})
	add("open", dts.Blackout{Window: dts.Window{Cron: "0 10 * * *", DurationSeconds: 3600}, Note: "every morning"})
	add("upgrade", dts.Blackout{Window: hours(-1, 2), TimeZone: "Asia/Tokyo"})

	d := s.get("/ui/blackouts", 200)
	d.row("past").want("over")
	d.row("outing").want("in 32 days", "In the days and windows of outing", "Europe/Berlin")
	d.row("lost").want("does not exist")
	d.row("weekly").want("in 30 min", "At 11:00 on Wednesday, for 1 h", "reports", "tasks are skipped")
	d.row("open").want("now", "every morning", "all", "tasks wait until it ends", "11:00:00 UTC")
	d.row("upgrade").want("now", "Wed 4 Mar 2026, 18:30:00 JST to 21:30:00 JST")
	rows := d.all("tr", "", "")[1:]
	if first, last := rows[0].text(), rows[len(rows)-1].text(); first[:3] != "now" || last[:4] != "over" {
		t.Errorf("the order is wrong: %q … %q", first, last)
	}
	if w, _ := s.post("/ui/blackouts/"+s.blackouts[0].ID+"/delete", nil); w.Code != 303 || len(s.blackouts) != 5 {
		t.Errorf("delete: %d", w.Code)
	}
	if w, _ := s.post("/ui/blackouts/x/delete", nil); w.Code != 404 {
		t.Errorf("delete of what cannot be: %d", w.Code)
	}
}

func TestAddBlackout(t *testing.T) {
	s := newSite(t)
	base := url.Values{"name": {"Upgrade"}, "note": {"see the wiki"}, "queue": {"reports"}, "action": {"SKIP"}, "zone": {"Asia/Tokyo"}}
	with := func(set map[string]string) url.Values {
		form := url.Values{}
		for k, v := range base {
			form[k] = v
		}
		for k, v := range set {
			form.Set(k, v)
		}
		return form
	}
	if w, d := s.post("/ui/blackouts", with(map[string]string{"when": "once", "start": "2026-03-05T09:00", "end": "2026-03-05T10:00"})); w.Code != 303 {
		t.Fatalf("%d: %s", w.Code, d.text())
	}
	b := s.blackouts[0]
	if b.Name != "Upgrade" || b.Note != "see the wiki" || b.Queue != "reports" || b.Action != dts.BlackoutSkip || b.CreatedBy != "admin" ||
		!b.Start.Equal(time.Date(2026, 3, 5, 0, 0, 0, 0, time.UTC)) || b.End.Sub(b.Start) != time.Hour {
		t.Errorf("added %+v", b)
	}
	s.post("/ui/blackouts", with(map[string]string{"when": "cron", "cron": "0 22 * * fri", "duration": "8h", "start": "junk"}))
	s.post("/ui/blackouts", with(map[string]string{"when": "calendar", "calendar": "outing", "cron": "junk"}))
	if len(s.blackouts) != 3 || s.blackouts[1].Cron != "0 22 * * fri" || s.blackouts[1].DurationSeconds != 8*3600 || s.blackouts[2].Calendar != "outing" {
		t.Errorf("added %+v", s.blackouts)
	}

	for _, tt := range []struct {
		set         map[string]string
		field, want string
	}{
		{map[string]string{"when": "once"}, "start", "Enter when it begins"},
		{map[string]string{"when": "once", "start": "2026-03-05T09:00"}, "end", "Enter when it ends"},
		{map[string]string{"when": "once", "start": "2026-03-05T09:00", "end": "2026-03-05T08:00"}, "end", "not after the beginning"},
		{map[string]string{"when": "once", "start": "soon", "end": "later"}, "start", "must be a date and time"},
		{map[string]string{"when": "cron", "duration": "1h"}, "cron", "Enter a cron expression"},
		{map[string]string{"when": "cron", "cron": "0 25 * * *", "duration": "1h"}, "cron", "25"},
		{map[string]string{"when": "cron", "cron": "0 22 * * *"}, "duration", "Enter how long"},
		{map[string]string{"when": "cron", "cron": "0 22 * * *", "duration": "60d"}, "duration", "31 days"},
		{map[string]string{"when": "calendar"}, "calendar", "Choose a calendar"},
		{map[string]string{"name": "", "when": "calendar", "calendar": "outing"}, "name", "The name is missing"},
		{map[string]string{"when": "calendar", "calendar": "outing", "queue": "No Queue"}, "queue", "is not a queue name"},
		{map[string]string{"when": "calendar", "calendar": "outing", "zone": "Mars/Base"}, "zone", "Mars/Base"},
	} {
		w, d := s.post("/ui/blackouts", with(tt.set))
		if w.Code != 422 || len(s.blackouts) != 3 {
			t.Errorf("%v: status %d", tt.set, w.Code)
			continue
		}
		d.id(tt.field + "-error").want(tt.want)
		if tt.set["name"] == "" && d.id("note").attr("value") != "see the wiki" {
			t.Error("what was entered is forgotten")
		}
	}
	s.fail = dts.Invalid("calendar", "%q does not exist", "outing")
	_, d := s.post("/ui/blackouts", with(map[string]string{"when": "calendar", "calendar": "outing"}))
	d.id("calendar-error").want("does not exist")
	s.fail = dts.Errorf(dts.ErrFull, "the disk is full; nothing was changed")
	if w, d := s.post("/ui/blackouts", with(map[string]string{"when": "calendar", "calendar": "outing"})); w.Code != 507 {
		t.Errorf("status %d", w.Code)
	} else {
		d.id("errors").want("The disk is full")
	}
}
