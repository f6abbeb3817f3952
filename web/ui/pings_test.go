package ui

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"dts"
)

// The page of a job that dts does not run has its URL and what it has reported, and no button that would start it.
func TestPings(t *testing.T) {
	s := newSite(t)
	s.h.PingURL = func(_ *http.Request, id string) string { return "https://dts.example.com/ping/KEY-OF-" + id }
	spec := dts.Spec{Name: "nightly-backup", TargetType: dts.Ping, TargetConfig: []byte(`{"grace_seconds":1800,"max_runtime_seconds":14400}`)}
	rt := s.addRecurring(spec, dts.Schedule{Cron: "0 3 * * *", TimeZone: "Europe/Berlin"}, func(r *dts.RecurringTask) { r.CatchUpMode = dts.SkipMissed })
	d := s.get("/ui/recurring/"+rt.ID, 200)
	d.want("Runs nothing: a job elsewhere reports within 30 min after each instant, or within 4 h after it has reported its start.",
		"No report has come yet.", "must report by 03:30:00", "Missed runs are skipped: nobody listened")
	if d.id("ping-url").text() != "https://dts.example.com/ping/KEY-OF-"+rt.ID {
		t.Errorf("the URL is %q", d.id("ping-url").text())
	}
	if d.has("do-trigger") || d.has("do-backfill") {
		t.Error("there is a button that would start the job")
	}
	code := 3
	s.pings = map[string][]*dts.PingRecord{rt.ID: {
		{Kind: dts.PingFailure, ExitCode: &code, ReceivedAt: testNow.Add(-time.Hour), ScheduledAt: testNow.Add(-2 * time.Hour), Source: "192.0.2.7", Body: "<script>no space</script>" + strings.Repeat("x", 5000)},
		{Kind: dts.PingStart, ReceivedAt: testNow.Add(-2 * time.Hour)},
	}}
	d = s.get("/ui/recurring/"+rt.ID, 200)
	row := d.row("192.0.2.7")
	row.want("exit code 3", "<script>no space</script>")
	if n := len(row.text()); n > 500 {
		t.Errorf("a report takes %d bytes of the page", n)
	}
	d.row("no run").want("start")
	run := dts.Task{Spec: spec, Origin: dts.OriginSchedule, Moved: true} // by its ping, which let it be judged at once
	if got := originText(&run); got != "" {
		t.Errorf("its origin is %q", got)
	}
}

// TestPingRun: the page of a run says when its job had to report and what came, and nothing of attempts that dts did not make.
func TestPingRun(t *testing.T) {
	s := newSite(t)
	spec := dts.Spec{Name: "mail-backup", TargetType: dts.Ping, TargetConfig: []byte(`{"grace_seconds":60}`)}
	rt := s.addRecurring(spec, dts.Schedule{Cron: "* * * * *"}, nil)
	run := s.tasks[0]
	run.Status, run.Attempts, run.LastError = dts.Failed, 1, "no ping came"
	late := int64(150)
	run.LatenessUS = &late
	run.ScheduledAt, run.DueAt, run.StartedAt, run.CompletedAt = testNow.Add(-3*time.Minute), testNow.Add(-2*time.Minute), testNow.Add(-2*time.Minute), testNow.Add(-2*time.Minute)
	s.attempts[run.ID] = []*dts.Attempt{{TaskID: run.ID, Number: 1, State: dts.AttemptFailed, StartedAt: run.StartedAt, Error: run.LastError}}
	d := s.get("/ui/tasks/"+run.ID, 200)
	d.want("Must report by 2 min ago", "Judged 2 min ago", "What the job said", "Nothing was sent along.")
	d.id("do-retry").want("Judge again")
	for _, id := range []string{"attempts-title", "went"} {
		if d.has(id) {
			t.Errorf("the page has #%s", id)
		}
	}
	w, _ := s.post("/ui/tasks/"+run.ID+"/retry", nil)
	s.get(w.Header().Get("Location"), 200).want("It is judged again")

	s.pings = map[string][]*dts.PingRecord{rt.ID: {
		{Kind: dts.PingSuccess, ReceivedAt: run.ScheduledAt.Add(61 * time.Second), ScheduledAt: run.ScheduledAt, Source: "192.0.2.7"},
		{Kind: dts.PingSuccess, ReceivedAt: run.ScheduledAt.Add(59 * time.Second), ScheduledAt: run.ScheduledAt, Source: "192.0.2.8"},
	}}
	d = s.get("/ui/recurring/"+rt.ID, 200)
	d.row("192.0.2.7").want("too late")
	if strings.Contains(d.row("192.0.2.8").text(), "late") {
		t.Error("a report in time is called late")
	}
	for _, path := range []string{"/ui/recurring/" + rt.ID, "/ui/?status=failed"} { // how late the judgement was, says nothing of the job
		if strings.Contains(s.get(path, 200).text(), "0.15 ms late") {
			t.Errorf("%s tells how late a judgement was", path)
		}
	}
}
