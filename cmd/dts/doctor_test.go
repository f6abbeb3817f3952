package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"dts"
)

// patient is a source of tasks that something is the matter with.
type patient struct {
	recurring []*dts.RecurringTask
	tasks     []*dts.Task
	queues    []*dts.Queue
	failed    int64
}

func (p *patient) RecurringTasks(context.Context, dts.RecurringFilter) (dts.Page[*dts.RecurringTask], error) {
	return dts.Page[*dts.RecurringTask]{Items: p.recurring}, nil
}

func (p *patient) Tasks(_ context.Context, f dts.TaskFilter) (page dts.Page[*dts.Task], err error) {
	for _, t := range p.tasks {
		if f.RecurringTaskID == "" && t.Status == dts.Failed || t.RecurringTaskID == f.RecurringTaskID && slices.Contains(f.Statuses, t.Status) && len(page.Items) < f.Limit {
			page.Items = append(page.Items, t)
		}
	}
	return page, nil
}

func (p *patient) Queues(context.Context) ([]*dts.Queue, error) { return p.queues, nil }

func (p *patient) Counts(context.Context) (*dts.Counts, error) {
	return &dts.Counts{Failed: p.failed, Capped: p.failed == 10_000}, nil
}

// add gives the patient a recurring task with so many runs.
func (p *patient) add(name string, edit func(*dts.RecurringTask), runs int, run func(i int, t *dts.Task)) {
	r := exampleRecurring()
	r.Name, r.ID = name, name
	if edit != nil {
		edit(r)
	}
	p.recurring = append(p.recurring, r)
	for i := range runs {
		t := &dts.Task{Spec: exampleSpec(name), RecurringTaskID: name, Status: dts.Success, SLAMet: ptr(true), LatenessUS: ptr(int64(90))}
		run(i, t)
		p.tasks = append(p.tasks, t)
	}
}

func examine(t *testing.T, a *app, p *patient, s *dts.SchedulerStatus) *report {
	t.Helper()
	d := &doctor{app: a, report: &report{Server: "/var/lib/dts", Level: levelOK}, status: s, source: p, conf: &config{}}
	if s != nil {
		d.checkNodes(s)
		d.checkClock()
		d.checkRetention()
	}
	d.checkTasks(context.Background())
	return d.report
}

func TestDoctorTasks(t *testing.T) {
	p := &patient{failed: 10_000}
	fine := func(int, *dts.Task) {}
	fails := func(n int) func(int, *dts.Task) {
		return func(i int, t *dts.Task) {
			if i < n {
				t.Status, t.LastError = dts.Failed, "exit code 3\nmore"
			}
		}
	}
	late := func(i int, t *dts.Task) { t.SLAMet, t.LatenessUS = ptr(false), ptr(int64(90e6+i)) }
	p.add("fine", nil, 12, fine)
	p.add("fails at times", nil, 12, fails(9))
	p.add("fails always\x1b[2J", nil, 12, fails(10))
	p.add("has failed twice", nil, 2, fails(2))
	p.add("late always", nil, 6, late)
	p.add("late at first", nil, 4, late)
	p.add("at boot", func(r *dts.RecurringTask) { r.Cron, r.NextRunAt = "@reboot", time.Time{} }, 0, nil)
	p.add("never", func(r *dts.RecurringTask) { r.NextRunAt, r.ExcludeCalendars = time.Time{}, []string{"holidays"} }, 0, nil)
	p.add("leap", func(r *dts.RecurringTask) { r.NextRunAt = ago(-1000 * 24 * time.Hour) }, 0, nil)
	p.add("broken", func(r *dts.RecurringTask) { r.Unreadable = "its schedule is no JSON" }, 0, nil)
	pause := func(since, until time.Duration) func(r *dts.RecurringTask) {
		return func(r *dts.RecurringTask) {
			r.Status, r.PausedAt, r.PauseNote = dts.Paused, ago(since), "moving house"
			if until > 0 {
				r.PausedUntil = ago(-until)
			}
		}
	}
	p.add("forgotten", pause(10*24*time.Hour, 0), 0, nil)
	p.add("paused yesterday", pause(24*time.Hour, 0), 0, nil)
	p.add("paused for a while", pause(100*24*time.Hour, time.Hour), 0, nil)
	p.add("paused for ever", pause(time.Hour, 9000*24*time.Hour), 0, nil)
	for i := range 15 {
		p.tasks = append(p.tasks, &dts.Task{Spec: exampleSpec(fmt.Sprintf("dead-%02d", i)), Status: dts.Failed})
	}
	p.queues = []*dts.Queue{
		{Name: "default", QueueState: dts.QueueState{Waiting: 3, OldestAgeSeconds: 60}},
		{Name: "mail", Paused: true, PausedAt: ago(50 * time.Hour), PauseNote: "the server moves", QueueState: dts.QueueState{Waiting: 10_000}},
		{Name: "lunch", Paused: true, PausedAt: ago(time.Hour)},
		{Name: "reports", Concurrency: 2, QueueState: dts.QueueState{Waiting: 700, OldestAgeSeconds: 8000, Suggested: 5}},
	}
	s := &dts.SchedulerStatus{Version: "1.2.3", Now: goldenNow, StartedAt: ago(50 * time.Hour), RetainedAt: ago(3 * time.Hour), Shards: []dts.ShardStatus{{From: 0, To: 63}},
		Clock: &dts.ClockStatus{Alerts: []string{"the clock of server n2 is 2.5 s ahead of this server's"}},
		Nodes: []dts.NodeStatus{{ID: "n1", State: "ALIVE", Version: "1.2.3", Self: true}, {ID: "n2", State: "ALIVE", Version: "1.2.2", Address: "http://b:8420"}, {ID: "n3", State: "DEAD", SeenSecondsAgo: 4000, Address: "http://c:8420"}}}
	golden(t, "doctor", func(a *app) {
		r := examine(t, a, p, s)
		a.printReport(r)
		if r.Problems != 3 || r.Level != levelProblem {
			t.Errorf("%d problems: %s", r.Problems, r.Level)
		}
	})
	golden(t, "doctor-well", func(a *app) {
		well := &patient{failed: 3, queues: p.queues[:1]}
		well.add("fine", nil, 12, fine)
		s := &dts.SchedulerStatus{Now: goldenNow, StartedAt: ago(50 * time.Hour), RetainedAt: ago(time.Minute), Shards: []dts.ShardStatus{{From: 0, To: 63}},
			Clock: &dts.ClockStatus{Synchronised: ptr(true)}}
		a.printReport(examine(t, a, well, s))
		a.printReport(examine(t, a, &patient{}, nil))
	})
}

func TestDoctorRoom(t *testing.T) {
	const gib = 1 << 30
	for _, test := range []struct {
		free, total, inodes, all int64
		want                     level
		text                     string
	}{
		{100 * gib, 200 * gib, 1e6, 2e6, levelOK, "100 GiB of 200 GiB are free"},
		{100 * gib, 200 * gib, 0, 0, levelOK, "free"}, // a file system without inodes
		{500 << 20, 200 * gib, 1e6, 2e6, levelWarning, "500 MiB of 200 GiB are free"},
		{100 << 20, 200 * gib, 1e6, 2e6, levelProblem, "soon nothing can be written"},
		{100 * gib, 200 * gib, 15_000, 2e6, levelWarning, "15000 of 2000000 inodes"},
		{100 * gib, 200 * gib, 500, 2e6, levelProblem, "soon no file can be made"},
	} {
		d := &doctor{dir: t.TempDir(), report: &report{}}
		d.room(test.free, test.total, test.inodes, test.all)
		if f := d.report.Findings[0]; f.Level != test.want || !strings.Contains(f.Text, test.text) {
			t.Errorf("%+v: %+v", test, f)
		}
	}
}

// TestDoctorBackups: backups that have not been made are noticed, whatever has kept them.
func TestDoctorBackups(t *testing.T) {
	daily := func(edit func(*dts.RecurringTask)) func(*dts.RecurringTask) {
		return func(r *dts.RecurringTask) {
			r.TargetType, r.TargetConfig, r.Cron, r.CreatedAt = dts.Backup, []byte(`{"dir":"/backup"}`), "30 3 * * *", ago(100*24*time.Hour)
			if edit != nil {
				edit(r)
			}
		}
	}
	ended := func(hoursAgo int, s dts.Status) func(int, *dts.Task) {
		return func(_ int, t *dts.Task) { t.Status, t.CompletedAt = s, ago(time.Duration(hoursAgo)*time.Hour) }
	}
	a := &app{now: func() time.Time { return goldenNow }}
	for what, tt := range map[string]struct {
		edit  func(*dts.RecurringTask)
		runs  int
		run   func(int, *dts.Task)
		level level
		want  string
	}{
		"well":         {daily(nil), 1, ended(8, dts.Success), levelOK, "the last one was made 8h ago"},
		"one missing":  {daily(nil), 1, ended(32, dts.Success), levelOK, "1d 8h ago"},
		"two missing":  {daily(nil), 1, ended(56, dts.Success), levelWarning, "x: the last one was made 2d 8h ago"},
		"failures":     {daily(nil), 2, ended(8, dts.Failed), levelWarning, "x: none since it was added, 100d ago"},
		"new":          {daily(func(r *dts.RecurringTask) { r.CreatedAt = ago(time.Hour) }), 0, nil, levelOK, "none yet"},
		"paused":       {daily(func(r *dts.RecurringTask) { r.Status, r.PausedAt = dts.Paused, ago(90*time.Hour) }), 1, ended(90, dts.Success), levelWarning, "it is paused"},
		"rare":         {daily(func(r *dts.RecurringTask) { r.Cron = "@monthly" }), 1, ended(28*24, dts.Success), levelOK, "28d ago"},
		"of calendars": {daily(func(r *dts.RecurringTask) { r.RequireCalendars = []string{"office"} }), 1, ended(90, dts.Success), levelOK, "ago"},
		"no backups":   {nil, 1, ended(1, dts.Success), levelOK, "no recurring task makes any"},
	} {
		p := &patient{}
		p.add("x", tt.edit, tt.runs, tt.run)
		var found finding
		for _, f := range examine(t, a, p, nil).Findings {
			if f.Check == "backups" {
				found = f
			}
		}
		if text := found.Text + strings.Join(found.Items, ""); found.Level != tt.level || !strings.Contains(text, tt.want) {
			t.Errorf("%s: %+v", what, found)
		}
	}
	p := &patient{} // rqlite makes its own
	p.add("x", nil, 1, ended(1, dts.Success))
	for _, f := range examine(t, a, p, &dts.SchedulerStatus{Now: goldenNow, Lease: &dts.LeaseStatus{}}).Findings {
		if f.Check == "backups" {
			t.Errorf("in a cluster: %+v", f)
		}
	}
}
