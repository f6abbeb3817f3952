package ui

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"dts"
)

func TestRecurring(t *testing.T) {
	s := newSite(t)
	rt := s.addRecurring(named("backup", command("./backup.sh", "--full")), dts.Schedule{Cron: "0 9 * * mon-fri", TimeZone: "Europe/Berlin", MaxRuns: 100},
		func(r *dts.RecurringTask) { r.RunsCount, r.CompletedCount, r.OverlapPolicy = 7, 6, dts.OverlapSkip })
	s.add(command("true"), func(t *dts.Task) {
		ran(dts.Failed, 26*time.Hour, 2*time.Second, 4_500_000)(t)
		t.RecurringTaskID, t.ScheduledAt, t.LastError = rt.ID, testNow.Add(-26*time.Hour), "exit code 2"
	})
	s.add(command("true"), func(t *dts.Task) {
		ran(dts.Success, time.Hour, 2*time.Second, 80)(t)
		t.RecurringTaskID, t.ScheduledAt, t.Origin = rt.ID, testNow.Add(-time.Hour), dts.OriginTrigger
	})
	skip := func(before time.Duration, n int64, why dts.Reason, note string) {
		from := testNow.Add(-before)
		s.skips[rt.ID] = append(s.skips[rt.ID], dts.Occurrence{ScheduledAt: from,
			Skip: &dts.Skip{From: from, To: from.Add(time.Duration(n-1) * 24 * time.Hour), Count: n, Reason: why, Note: note}})
	}
	skip(50*time.Hour, 1, dts.ReasonOverlap, "")
	skip(200*time.Hour, 3, dts.ReasonPaused, "moving house")

	d := s.get("/ui/recurring/"+rt.ID, 200)
	d.want("backup", "At 09:00 on Monday to Friday", "Europe/Berlin", "./backup.sh --full", "7 ended, 6 succeeded",
		"At most 100 runs", "While the run before is active the next one is skipped", "0 9 * * mon-fri")
	rows := d.class("upcoming")[0].all("tr", "", "")[1:]
	if len(rows) != 5 {
		t.Fatalf("%d upcoming runs, want 5", len(rows))
	}
	rows[0].want("Thu 5 Mar 2026, 09:00:00 CET", "in 21 h 30 min")
	rows[2].want("Mon 9 Mar 2026")
	d.row("exit code 2").want("failed", "4.5 s late", "2 s")
	d.row("by hand").want("success", "0.08 ms late")
	d.row("the run before was still active").want("skipped")
	d.row("moving house").want("skipped × 3", "the schedule was paused: moving house")
	if history := d.id("ledger").Parent; strings.Count(doc{t, history}.text(), "pending") > 0 {
		t.Error("the history lists what has not come yet")
	}
}

func TestRecurringActions(t *testing.T) {
	s := newSite(t)
	rt := s.addRecurring(named("backup", command("true")), dts.Schedule{Cron: "@hourly", TimeZone: "America/New_York"}, nil)
	path := "/ui/recurring/" + rt.ID

	_, d := s.post(path+"/pause", url.Values{"until": {"2020-01-01T00:00"}, "note": {"because"}})
	d.id("until-error").want("The time is in the past")
	if d.id("note").attr("value") != "because" || d.id("until").attr("value") != "2020-01-01T00:00" {
		t.Error("a refused pause forgets what was entered")
	}
	_, d = s.post(path+"/pause", url.Values{"until": {"soon"}})
	d.id("until-error").want("is not a date and time")

	w, _ := s.post(path+"/pause", url.Values{"until": {"2026-03-05T08:00"}, "note": {"because"}})
	if w.Code != 303 || w.Header().Get("Location") != path+"?done=pause" {
		t.Errorf("pause: %d to %s", w.Code, w.Header().Get("Location"))
	}
	if want := time.Date(2026, 3, 5, 13, 0, 0, 0, time.UTC); len(s.paused) != 1 || !s.paused[0].until.Equal(want) || s.paused[0].note != "because" {
		t.Errorf("paused %v, want until %v in New York", s.paused, want)
	}
	d = s.get(path, 200)
	d.want("Paused now", "because", "recorded as skipped")
	if !d.has("do-resume") || d.has("do-pause") {
		t.Error("a paused schedule must offer to resume, not to pause")
	}
	if w, _ = s.post(path+"/resume", nil); w.Code != 303 {
		t.Errorf("resume: %d", w.Code)
	}
	w, _ = s.post(path+"/trigger", nil)
	if w.Code != 303 || !strings.HasPrefix(w.Header().Get("Location"), "/ui/tasks/") {
		t.Errorf("trigger: %d to %s", w.Code, w.Header().Get("Location"))
	}
	if w, _ = s.post(path+"/remove", nil); w.Code != 303 {
		t.Errorf("remove: %d", w.Code)
	}
	if d = s.get(path, 200); d.has("do-trigger") || d.has("do-remove") {
		t.Error("a removed schedule still has actions")
	}
	if w, _ = s.post(path+"/explode", nil); w.Code != 404 {
		t.Errorf("an unknown action: %d", w.Code)
	}
	s.fail = dts.Errorf(dts.ErrConflict, "the recurring task is CANCELLED: it cannot be resumed")
	if w, d = s.post(path+"/resume", nil); w.Code != 409 {
		t.Errorf("a refused resume: %d", w.Code)
	}
	d.want("it cannot be resumed", "History")
}

// The coming instants say what becomes of them, and what calendars exclude is among them, not in the history.
func TestUpcomingEffects(t *testing.T) {
	s := newSite(t)
	rt := s.addRecurring(named("backup", command("true")), dts.Schedule{Cron: "0 9 * * *", TimeZone: "Europe/Berlin", JitterSeconds: 600}, nil)
	waiting, skipped := s.tasks[0], s.tasks[3]
	waiting.ScheduledAt, waiting.RunAt, waiting.WaitsFor = testNow.Add(-time.Minute), testNow.Add(-time.Minute), dts.ReasonOverlap
	s.tasks[4].Moved = true
	s.tasks[4].RunAt = s.tasks[4].ScheduledAt.Add(time.Hour)
	gap := s.tasks[1].ScheduledAt.Add(24 * time.Hour)
	s.tasks = append(s.tasks[:2:2], s.tasks[3:]...)
	exclude := func(from time.Time, n int64) {
		to := from.Add(time.Duration(n-1) * 24 * time.Hour)
		s.skips[rt.ID] = append(s.skips[rt.ID], dts.Occurrence{ScheduledAt: from,
			Skip: &dts.Skip{From: from, To: to, Count: n, Reason: dts.ReasonCalendar, Note: "holidays, Karfreitag"}})
	}
	exclude(gap, 1)
	exclude(testNow.Add(200*24*time.Hour), 3) // too far away to be shown
	exclude(testNow.Add(-50*time.Hour), 2)
	s.effects = func(p *dts.Preview) {
		for i := range p.Instants {
			if x := &p.Instants[i]; x.UTC.Equal(skipped.ScheduledAt) {
				x.Runs, x.Effects = false, []dts.PreviewEffect{{Kind: dts.EffectBlackout, Text: "is skipped by the blackout Upgrade"}}
			}
		}
	}
	d := s.get("/ui/recurring/"+rt.ID, 200)
	rows := d.class("upcoming")[0].all("tr", "", "")[1:]
	if len(rows) != 5 {
		t.Fatalf("%d rows, want 5: %s", len(rows), d.class("upcoming")[0].text())
	}
	rows[0].want("waits for the run before it", "1 min ago")
	rows[1].want("Fri 6 Mar 2026, 09:00:00 CET", "starts 09:0", "its share of the spread")
	rows[2].want("Sat 7 Mar 2026, 09:00:00 CET", "will not run", "a calendar excludes it: holidays, Karfreitag")
	rows[3].want("Sun 8 Mar 2026, 09:00:00 CET", "will not run", "is skipped by the blackout Upgrade")
	rows[4].want("Mon 9 Mar 2026, 10:00:00 CET", "moved by hand")
	history := doc{t, d.id("ledger").Parent}
	history.row("Karfreitag").want("skipped × 2")
	if n := strings.Count(history.text(), "Karfreitag"); n != 1 {
		t.Errorf("the history tells of %d exclusions, want 1", n)
	}

	// Without an answer to what becomes of them, the page shows what is planned.
	s.effects = nil
	s.fail = dts.Errorf(dts.ErrUnavailable, "try again later")
	s.get("/ui/recurring/"+rt.ID, 200).want("Sun 8 Mar 2026, 09:00:00 CET")
}

func TestReasons(t *testing.T) {
	s := newSite(t)
	rt := s.addRecurring(named("backup", command("true")), dts.Schedule{Cron: "0 9 * * *"}, nil)
	for i, tt := range []struct {
		reason dts.Reason
		note   string
		want   string
	}{
		{dts.ReasonCalendar, "holidays; moved to Mon 9 Mar", "a calendar excludes it: holidays; moved to Mon 9 Mar"},
		{dts.ReasonBlackout, "Upgrade", "there was a blackout: Upgrade"},
		{dts.ReasonOverlap, "", "the run before was still active"},
		{dts.ReasonPaused, "admin", "the schedule was paused: admin"},
		{dts.ReasonCatchUp, "older than 1 d", "missed, and not made up for: older than 1 d"},
	} {
		from := testNow.Add(-time.Duration(i+1) * 24 * time.Hour)
		s.skips[rt.ID] = []dts.Occurrence{{ScheduledAt: from, Skip: &dts.Skip{From: from, To: from, Count: 1, Reason: tt.reason, Note: tt.note}}}
		row := s.get("/ui/recurring/"+rt.ID, 200).row("skipped")
		row.want(tt.want)
		ask := row.class("ask")[0].attr("href")
		s.why = map[string]string{rt.ID + " " + from.Format(time.RFC3339): "Because of this and that."}
		d := s.get(ask, 200)
		d.id("why").want("Because of this and that.")
		if self := d.id("live").attr("hx-get"); !strings.Contains(self, "why=") {
			t.Errorf("a refresh of %s forgets the question", self)
		}
	}
	// A skipped task has the note of its skip.
	from := testNow.Add(-24 * time.Hour)
	task := s.add(command("true"), func(t *dts.Task) { t.Status, t.SkipReason = dts.Skipped, dts.ReasonBlackout })
	s.skips[rt.ID] = []dts.Occurrence{{ScheduledAt: from, Task: task, Skip: &dts.Skip{From: from, To: from, Count: 1, Note: "Upgrade"}}}
	s.get("/ui/recurring/"+rt.ID, 200).row("skipped").want("there was a blackout: Upgrade", "why?")
	s.why = nil
	s.get("/ui/recurring/"+rt.ID+"?why=junk", 200)
	if s.get("/ui/recurring/"+rt.ID+"?why="+from.Format(time.RFC3339), 200).has("why") {
		t.Error("an answer without an answer")
	}
}

func TestResumeCatchUp(t *testing.T) {
	s := newSite(t)
	rt := s.addRecurring(named("backup", command("true")), dts.Schedule{Cron: "@hourly"}, func(r *dts.RecurringTask) {
		r.Status, r.PausedAt = dts.Paused, testNow.Add(-12*time.Hour)
	})
	path := "/ui/recurring/" + rt.ID
	d := s.get(path, 200)
	d.want("Make up for what was missed", "12 missed since Tuesday 10:30: would run 1.")
	if last := s.previews[len(s.previews)-1]; !last.Since.Equal(rt.PausedAt) || last.RecurringTaskID != rt.ID {
		t.Errorf("asked %+v", last)
	}
	if w, _ := s.post(path+"/resume", url.Values{"catch_up": {"1"}}); w.Code != 303 || w.Header().Get("Location") != path+"?done=resume-catch-up" {
		t.Errorf("%d to %s", w.Code, w.Header().Get("Location"))
	}
	s.get(path+"?done=resume-catch-up", 200).want("What was missed is made up for")
	s.post(path+"/resume", nil)
	if len(s.resumed) != 2 || !s.resumed[0] || s.resumed[1] {
		t.Errorf("resumed %v, want with and without making up", s.resumed)
	}
}

func TestBackfill(t *testing.T) {
	s := newSite(t)
	rt := s.addRecurring(named("backup", command("true")), dts.Schedule{Cron: "0 9 * * *", TimeZone: "America/New_York"}, nil)
	path := "/ui/recurring/" + rt.ID + "/backfill"
	first, last := time.Date(2026, 3, 1, 14, 0, 0, 0, time.UTC), time.Date(2026, 3, 3, 14, 0, 0, 0, time.UTC)
	s.answer = &dts.BackfillAnswer{Count: 3, First: first, Last: last}
	form := url.Values{"from": {"2026-03-01T00:00"}, "to": {"2026-03-03T12:00"}}
	w, d := s.post(path, form)
	if w.Code != 200 || len(s.backfills) != 1 || !s.backfills[0].DryRun || !s.backfills[0].From.Equal(time.Date(2026, 3, 1, 5, 0, 0, 0, time.UTC)) {
		t.Fatalf("%d, asked %+v", w.Code, s.backfills)
	}
	d.id("backfill-count").want("This adds 3 runs , for Sun 1 Mar 2026, 09:00:00 EST to Tue 3 Mar 2026, 09:00:00 EST")
	yes := d.id("yes-backfill")
	form = url.Values{"do": {yes.attr("value")}}
	for _, in := range (doc{t, yes.Parent}).all("input", "type", "hidden") {
		form.Set(in.attr("name"), in.attr("value"))
	}
	w, _ = s.post(path, form)
	if w.Code != 303 || len(s.backfills) != 2 || s.backfills[1].DryRun || !s.backfills[1].To.Equal(time.Date(2026, 3, 3, 17, 0, 0, 0, time.UTC)) {
		t.Errorf("%d, asked %+v", w.Code, s.backfills)
	}
	s.get(w.Header().Get("Location"), 200).want("The runs were added.")

	s.answer = &dts.BackfillAnswer{}
	form.Del("do")
	if _, d = s.post(path, form); d.has("yes-backfill") {
		t.Error("nothing can be added")
	}
	d.id("backfill-count").want("nothing to replay")
	w, d = s.post(path, url.Values{"from": {"soon"}})
	if w.Code != 422 || len(s.backfills) != 3 {
		t.Errorf("%d, %d asked", w.Code, len(s.backfills))
	}
	d.id("from-error").want("must be a date and time")
	d.id("to-error").want("Enter the last time")
	s.fail = dts.Invalid("to", "is in the future")
	_, d = s.post(path, form)
	d.id("to-error").want("The time is in the future")
	s.fail = dts.Errorf(dts.ErrConflict, "the recurring task was removed")
	if w, d = s.post(path, form); w.Code != 409 {
		t.Errorf("status %d", w.Code)
	}
	d.want("The recurring task was removed")
}
