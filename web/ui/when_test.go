package ui

import (
	"net/url"
	"slices"
	"testing"
	"time"

	"dts"
)

// allRules is a form with every rule of time set.
func allRules() url.Values {
	form := cronForm()
	for k, v := range map[string]string{"cron": "0 9 * * mon-fri\r\n0 11 * * sat", "gap": "SKIP", "twice": "SECOND", "start": "2026-04-01T00:00",
		"end": "2026-12-31T23:59", "max_runs": "100", "jitter": "10m", "shift": "NEXT_BUSINESS_DAY", "missed": "RUN_ALL_MISSED",
		"missed_after": "5m", "window": "2d", "limit": "20", "pacing": "30s", "overlap": "BUFFER_ALL", "outage": "1d", "count": "10"} {
		form.Set(k, v)
	}
	form["exclude"], form["require"] = []string{"holidays", "outing"}, []string{"office"}
	return form
}

func TestAllRules(t *testing.T) {
	s := newSite(t)
	s.calendars = []*dts.Calendar{{Name: "holidays"}, {Name: "office"}, {Name: "outing"}}
	w, d := s.post("/ui/new", allRules())
	if len(s.recurring) != 1 {
		t.Fatalf("%d: %s", w.Code, d.text())
	}
	r := s.recurring[0]
	if r.Cron != "0 9 * * mon-fri\n0 11 * * sat" || r.DSTGap != dts.GapSkip || r.DSTOverlap != dts.OverlapSecond || r.MaxRuns != 100 || r.JitterSeconds != 600 ||
		!r.StartTime.Equal(time.Date(2026, 3, 31, 22, 0, 0, 0, time.UTC)) || !r.EndTime.Equal(time.Date(2026, 12, 31, 22, 59, 0, 0, time.UTC)) ||
		!slices.Equal(r.ExcludeCalendars, []string{"holidays", "outing"}) || !slices.Equal(r.RequireCalendars, []string{"office"}) || r.CalendarShift != dts.ShiftNext {
		t.Errorf("schedule %+v", r.Schedule)
	}
	if r.CatchUpMode != dts.RunAllMissed || r.MisfireAfterSeconds != 300 || r.CatchUpWindowSeconds != 2*86400 || r.CatchUpLimit != 20 ||
		r.CatchUpPacingSeconds != 30 || r.OverlapPolicy != dts.OverlapBufferAll {
		t.Errorf("rules %+v", r)
	}
	s.get("/ui/recurring/"+r.ID, 200).want("At 09:00 on Monday to Friday; at 11:00 on Saturday", "Cron expressions 0 9 * * mon-fri 0 11 * * sat",
		"Not before Wed 1 Apr 2026, 00:00:00 CEST", "Not after Thu 31 Dec 2026, 23:59:00 CET", "At most 100 runs", "Spread by up to 10 min",
		"Not in the days of holidays , outing", "Only in the days of office", "A day that is excluded moves to the next business day",
		"a time that does not exist that day does not run; one that comes twice runs the second time",
		"the newest 20 are made up for, the oldest of them first, 30 s apart; nothing older than 2 d is; later than 5 min counts as missed",
		"While the run before is active the others wait and run one after another")
}

func TestPreviewOfAllRules(t *testing.T) {
	s := newSite(t)
	s.effects = func(p *dts.Preview) {
		p.Instants[0].DueAt = p.Instants[0].UTC.Add(3 * time.Minute)
		p.Instants[0].Effects = []dts.PreviewEffect{{Kind: dts.EffectJitter, Text: "3 min later, its share of the spread"}}
		p.Instants[1].Runs = false
		p.Instants[1].Effects = []dts.PreviewEffect{{Kind: dts.EffectCalendar, Text: "holidays: <b>Karfreitag</b>"}}
	}
	d := s.postPart("/ui/preview", allRules())
	q := s.previews[0]
	if q.Count != 10 || !q.Since.Equal(testNow.Add(-24*time.Hour)) || q.Name != "Nightly backup" || q.OverlapPolicy != dts.OverlapBufferAll || q.CatchUpLimit != 20 ||
		q.CatchUpPacingSeconds != 30 || q.MisfireAfterSeconds != 300 || q.CatchUpWindowSeconds != 2*86400 || q.CatchUpMode != dts.RunAllMissed || q.JitterSeconds != 600 {
		t.Errorf("asked %+v", q)
	}
	items := d.all("li", "", "")
	if len(items) != 10 {
		t.Fatalf("%d instants, want 10: %s", len(items), d.text())
	}
	items[0].want("Thu 5 Mar 2026, 09:00:00 CET", "Thu 08:00:00 UTC", "due 09:03:00 CET", "3 min later")
	items[1].want("does not run", "<b>Karfreitag</b>")
	if items[0].attr("class") == "off" || items[1].attr("class") != "off" {
		t.Error("what does not run is not struck out, or what runs is")
	}
	d.want("After the outage: 12 missed since Tuesday 10:30: would run 1")

	// What is so of each run is said once.
	s.effects = func(p *dts.Preview) {
		for i := range p.Instants {
			p.Instants[i].Effects = []dts.PreviewEffect{{Kind: dts.EffectJitter, Text: "up to 10 m later"}}
		}
		p.Instants[0].Runs, p.Instants[0].Effects = false, nil
		p.Instants[1].Effects = append(p.Instants[1].Effects, dts.PreviewEffect{Kind: dts.EffectDST, Text: "the clocks change"})
	}
	d = s.postPart("/ui/preview", allRules())
	d.want("Each run: up to 10 m later")
	if items := d.all("li", "", ""); len(items[1].class("effect")) != 1 || len(items[2].class("effect")) != 0 {
		t.Errorf("it is said of the single ones too: %s", d.text())
	}

	// A time in UTC is said once.
	form := cronForm()
	form.Set("zone", "")
	s.effects = nil
	s.postPart("/ui/preview", form).all("li", "", "")[0].want("Thu 5 Mar 2026, 02:00:00 UTC in 15 h 30 min")
}

func TestRule(t *testing.T) {
	s := newSite(t)
	form := cronForm()
	form.Set("when", "rule")
	form.Set("rule", "FREQ=MONTHLY;BYDAY=2TU;BYHOUR=9;BYMINUTE=0;BYSECOND=0")
	s.postPart("/ui/preview", form).want("second Tuesday", "Tue 10 Mar 2026, 09:00:00 CET")
	if w, d := s.post("/ui/new", form); w.Code != 303 || s.recurring[0].RRule != form.Get("rule") || s.recurring[0].Cron != "" {
		t.Errorf("%d: %s", w.Code, d.text())
	}
	s.get("/ui/recurring/"+s.recurring[0].ID, 200).want("second Tuesday", "Rule FREQ=MONTHLY")
	form.Set("key", "k2")
	form.Set("rule", "FREQ=SECONDLY")
	_, d := s.post("/ui/new", form)
	d.id("rule-error")
	form.Set("rule", "")
	_, d = s.post("/ui/new", form)
	d.id("rule-error").want("Enter a rule")
}

// The extras are out of the way until one of them is used, or wrong.
func TestExtrasOpen(t *testing.T) {
	s := newSite(t)
	if s.get("/ui/new", 200).id("more-when").hasAttr("open") {
		t.Error("the extras of the empty form are open")
	}
	s.get("/ui/new", 200).want("Add a calendar")
	for _, tt := range []struct{ field, value, want string }{
		{"jitter", "a bit", "must be like"},
		{"jitter", "2d", "The spread is"},
		{"max_runs", "-1", "whole number"},
		{"start", "soon", "must be a date and time"},
		{"missed_after", "1", "needs a unit"},
		{"shift", "NEXT_BUSINESS_DAY", "Choose a calendar too"},
		{"exclude", "No Calendar", "is not a calendar's name"},
		{"overlap", "PANIC", "is not known"},
	} {
		form := cronForm()
		form.Set(tt.field, tt.value)
		w, d := s.post("/ui/new", form)
		if w.Code != 422 {
			t.Errorf("%s=%s: %d", tt.field, tt.value, w.Code)
			continue
		}
		d.id(tt.field + "-error").want(tt.want)
		if !d.id("more-when").hasAttr("open") {
			t.Errorf("%s=%s: the wrong input is hidden", tt.field, tt.value)
		}
	}
	s.calendars = []*dts.Calendar{{Name: "holidays"}}
	form := cronForm()
	form["exclude"] = []string{"holidays", "gone"}
	form.Set("do", "preview")
	_, d := s.post("/ui/new", form)
	if chosen := d.all("input", "name", "exclude"); len(chosen) != 2 || !chosen[0].hasAttr("checked") || !chosen[1].hasAttr("checked") {
		t.Error("what was chosen is forgotten")
	}
}

func TestPreviewFails(t *testing.T) {
	s := newSite(t)
	s.fail = dts.Errorf(dts.ErrUnavailable, "try again later")
	s.postPart("/ui/preview", cronForm()).want("Try again later")
	s.fail = dts.Invalid("exclude_calendars", "there is no calendar %q", "gone")
	_, d := s.post("/ui/new", cronForm())
	d.id("exclude-error").want("There is no calendar")
}
