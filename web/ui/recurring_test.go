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
