package ui

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"dts"
)

func named(name string, s dts.Spec) dts.Spec {
	s.Name = name
	return s
}

// ran makes a task one that has run, some time before now.
func ran(status dts.Status, before, took time.Duration, lateUS int64) func(*dts.Task) {
	return func(t *dts.Task) {
		t.Status = status
		t.StartedAt = testNow.Add(-before)
		t.Attempts = 1
		t.LatenessUS = &lateUS
		if status != dts.Running {
			t.CompletedAt = t.StartedAt.Add(took)
		}
	}
}

func TestOverviewEmpty(t *testing.T) {
	d := newSite(t).get("/ui/", 200)
	d.want("0 pending", "0 running", "0 failed", "Nothing recurs yet", `dts add --cron "*/5 * * * *" -- ./backup.sh`, "Nothing has run yet")
	if len(d.all("table", "", "")) != 0 {
		t.Error("an empty overview has a table")
	}
}

func TestOverview(t *testing.T) {
	s := newSite(t)
	s.add(command("sh", "-c", "echo it's done"), ran(dts.Success, 2*time.Hour, 1500*time.Millisecond, 120))
	s.add(named("report", callback(dts.HTTPTarget{URL: "https://u:pw@example.com/x?token=abc&n=1"})), ran(dts.Failed, 5*time.Minute, 31*time.Second, 12_345))
	s.add(named("sync", command("rsync")), ran(dts.Running, 90*time.Second, 0, 90))
	s.add(named("later", command("true")), func(t *dts.Task) { t.RunAt = testNow.Add(time.Hour) })
	rt := s.addRecurring(named("backup", command("./backup.sh")), dts.Schedule{Cron: "10 3 * * 0", TimeZone: "Europe/Berlin"}, func(r *dts.RecurringTask) {
		r.LastRunAt, r.LastStatus = testNow.Add(-3*24*time.Hour), dts.Success
	})
	s.addRecurring(named("poll", command("./poll.sh")), dts.Schedule{IntervalSeconds: 90}, func(r *dts.RecurringTask) {
		r.Status = dts.Paused
	})

	d := s.get("/ui/", 200)
	d.want("11 pending", "1 running", "1 failed")

	row := d.row("backup")
	row.want("At 03:10 on Sunday", "Europe/Berlin", "in 3 d 15 h", "success", "3 d ago")
	if href := row.id("r-" + rt.ID).attr("href"); href != "/ui/recurring/"+rt.ID {
		t.Errorf("the recurring task links to %s", href)
	}
	d.row("poll").want("Every 90 seconds", "paused", "not yet")

	rows := d.class("tasks")[0].all("tr", "", "")[1:]
	for i, want := range [][]string{
		{"running", "sync", "1 min ago", "0.09 ms late", "1 min 30 s"},
		{"failed", "report", "POST https://u:hidden@example.com/x?token=hidden&n=1", "12 ms late", "31 s"},
		{"success", `sh -c 'echo it'\''s done'`, "0.12 ms late", "1.5 s"},
	} {
		rows[i].want(want...)
	}
	if len(rows) != 3 {
		t.Errorf("the recent tasks have %d rows, want 3: what is planned is not recent", len(rows))
	}
	at := rows[0].all("time", "", "")[0]
	if at.attr("datetime") != "2026-03-04T10:28:30Z" || at.attr("title") != "2026-03-04 10:28:30 UTC" {
		t.Errorf("time is %s, %s", at.attr("datetime"), at.attr("title"))
	}
	if strings.Contains(d.text(), "abc") || strings.Contains(d.text(), "pw@") {
		t.Error("a secret of an address is shown")
	}

	pending := s.get("/ui/?status=pending", 200)
	pending.row("later").want("in 1 h", "pending")
	if c := pending.id("tab-Pending").attr("aria-current"); c != "page" {
		t.Errorf("the tab of the filter is not marked: %q", c)
	}
	s.get("/ui/?status=skipped", 200).want("No task is in this state")
}

func TestOverviewPages(t *testing.T) {
	s := newSite(t)
	for i := range 2*tasksPerPage + 5 {
		s.add(named(fmt.Sprintf("job-%03d", i), command("true")), ran(dts.Failed, time.Hour-time.Duration(i)*time.Second, time.Second, 1))
	}
	seen := map[string]bool{}
	next := "/ui/?status=failed"
	for range 10 {
		d := s.get(next, 200)
		for _, row := range d.class("tasks")[0].all("tr", "", "")[1:] {
			name := row.all("a", "", "")[0].text()
			if seen[name] {
				t.Errorf("%s is listed twice", name)
			}
			seen[name] = true
		}
		if refresh := d.id("live").attr("hx-get"); refresh != strings.TrimSuffix(next, "#tasks") {
			t.Errorf("page %s refreshes itself from %s", next, refresh)
		}
		if !d.has("page-next") {
			break
		}
		next = d.id("page-next").attr("href")
	}
	if len(seen) != 2*tasksPerPage+5 {
		t.Errorf("%d tasks are listed, want %d", len(seen), 2*tasksPerPage+5)
	}
}

func TestOverviewOfEnded(t *testing.T) {
	s := newSite(t)
	s.addRecurring(named("old one", command("true")), dts.Schedule{Cron: "@daily"}, func(r *dts.RecurringTask) { r.Status = dts.Ended })
	s.get("/ui/", 200).want("Nothing recurs yet")
	s.get("/ui/?ended=1", 200).row("old one").want("cancelled", "At 00:00 every day")
}

func TestHostileNames(t *testing.T) {
	s := newSite(t)
	evil := `<script>alert(1)</script><img src=x onerror="alert(2)">`
	task := s.add(named(evil, command(evil, "'; --")), ran(dts.Failed, time.Minute, time.Second, 1))
	task.LastError, task.Description = evil, evil
	task.Labels = map[string]string{evil: evil}
	s.attempts[task.ID] = []*dts.Attempt{{TaskID: task.ID, Number: 1, State: dts.AttemptFailed, Error: evil, StartedAt: testNow, OutputBytes: 9}}
	s.outputs[task.ID] = &dts.Output{Head: []byte(evil + "\x00\x1b[31m\xff</pre>"), Total: 60}
	rt := s.addRecurring(named(evil, callback(dts.HTTPTarget{URL: "https://example.com/" + evil, Body: evil, Headers: map[string]string{"X-A": evil}})),
		dts.Schedule{Cron: "@daily"}, func(r *dts.RecurringTask) { r.PauseNote, r.Status = evil, dts.Paused })
	s.skips[rt.ID] = []dts.Occurrence{{ScheduledAt: testNow, Skip: &dts.Skip{From: testNow, To: testNow, Count: 1, Reason: "PAUSED", Note: evil}}}
	for _, path := range []string{"/ui/", "/ui/tasks/" + task.ID, "/ui/recurring/" + rt.ID, "/ui/?done=" + evil, "/ui/login?next=" + evil} {
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.Path, r.URL.RawQuery, _ = strings.Cut(path, "?")
		w := s.do(r, &admin)
		d := parse(t, w.Body.String())
		if w.Code == 200 {
			d.check() // finds inline scripts and handlers
		}
		for _, img := range d.all("img", "", "") {
			if img.attr("src") == "x" {
				t.Errorf("%s: the name became an element", path)
			}
		}
	}
	s.get("/ui/tasks/"+task.ID, 200).want(evil, "�")
}

func TestOverviewOfACluster(t *testing.T) {
	s := newSite(t)
	if d := s.get("/ui/", 200); len(d.class("servers")) != 0 {
		t.Error("a server that is alone shows a table of servers")
	}
	s.status.Nodes = []dts.NodeStatus{
		{ID: "019ca8f0-0000-7000-8000-0000a1b2c3d4", Address: "http://10.0.0.1:8420", Version: "1.2.3", State: "ALIVE", Shards: 22, SeenSecondsAgo: 1.234, Self: true},
		{ID: "019ca8f0-0000-7000-8000-000099999999", Address: "http://10.0.0.2:8420", Version: "1.2.3", State: "ALIVE", Shards: 42, SeenSecondsAgo: 3.94, ClockSkewMS: -73},
		{ID: "019ca8f0-0000-7000-8000-000055555555", Address: "http://<b>:8420", Version: "1.2.2", State: "DEAD", SeenSecondsAgo: 86400, ClockSkewMS: -90000},
	}
	d := s.get("/ui/", 200)
	d.row("a1b2c3d4").want("this one", "alive", "http://10.0.0.1:8420", "1.2.3", "22", "1.2 s ago")
	d.row("99999999").want("alive", "42", "3.9 s ago", "right")
	d.row("55555555").want("dead", "http://<b>:8420", "1 d ago", "1 min 30 s behind")
}

// A page that was read where the database could not tell what is newest says so.
func TestStalePage(t *testing.T) {
	s := newSite(t)
	hidden := func() bool {
		t.Helper()
		r := httptest.NewRequest("GET", "/ui/", nil)
		ctx, _ := dts.AllowStale(r.Context())
		return parse(t, s.do(r.WithContext(ctx), &admin).Body.String()).id("stale").hasAttr("hidden")
	}
	if !hidden() {
		t.Error("a page says that it is old, but is not")
	}
	s.stale = true
	if hidden() {
		t.Error("an old page does not say so")
	}
}
