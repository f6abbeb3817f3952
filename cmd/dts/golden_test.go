package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dts"
	"dts/web/api"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares what f prints on a terminal of 80 columns, in Berlin at a fixed time, with a file.
func golden(t *testing.T, name string, f func(a *app)) {
	t.Helper()
	var out bytes.Buffer
	f(&app{out: &out, err: &out, loc: berlin(t), zone: "Europe/Berlin", width: 80, now: func() time.Time { return goldenNow }})
	path := filepath.Join("../../testdata/cli/golden", name)
	if *update {
		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

var goldenNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return goldenNow.Add(-d) }

func ptr[T any](v T) *T { return &v }

func exampleSpec(name string) dts.Spec {
	s := dts.Spec{Name: name, TargetType: dts.Command, TargetConfig: []byte(`{"argv":["/srv/run","--all"],"dir":"/srv"}`), Labels: map[string]string{"team": "ops"}}
	if err := s.Normalize(); err != nil {
		panic(err)
	}
	return s
}

func exampleTasks() []*dts.Task {
	return []*dts.Task{
		{ID: "019ca8f0-0000-7000-8000-000000000001", Spec: exampleSpec("index"), Status: dts.Running, StartedAt: ago(95 * time.Second), LatenessUS: ptr(int64(120))},
		{ID: "019ca8f0-0000-7000-8000-000000000002", Spec: exampleSpec("a-name-that-is-much-too-long-for-this-column"), Status: dts.Pending, RunAt: ago(-4 * time.Minute)},
		{ID: "019ca8f0-0000-7000-8000-000000000003", Spec: exampleSpec("backup.sh"), Status: dts.Success, CompletedAt: ago(2 * time.Minute), LatenessUS: ptr(int64(95))},
		{ID: "019ca8f0-0000-7000-8000-000000000004", Spec: exampleSpec("mail\x1b[2J"), Status: dts.Failed, CompletedAt: ago(26 * time.Hour), LatenessUS: ptr(int64(4_200_000))},
		{ID: "019ca8f0-0000-7000-8000-000000000005", Spec: exampleSpec("old"), Status: dts.Skipped, SkipReason: dts.ReasonExpired, RunAt: ago(72 * time.Hour)},
	}
}

func exampleRecurring() *dts.RecurringTask {
	return &dts.RecurringTask{
		ID: "019ca8f0-0000-7000-8000-00000000000a", Spec: exampleSpec("backup.sh"),
		Schedule: dts.Schedule{Cron: "30 2 * * mon-fri", TimeZone: "Europe/Berlin"}, Status: dts.Active,
		CatchUpMode: dts.RunLatest, OverlapPolicy: dts.OverlapSkip, CreatedAt: ago(1000 * time.Hour), CreatedBy: "alice (socket)",
		NextRunAt: ago(-13*time.Hour - 30*time.Minute), LastRunAt: ago(58 * time.Hour), LastStatus: dts.Success, RunsCount: 29, CompletedCount: 28,
	}
}

func TestTables(t *testing.T) {
	golden(t, "tasks", func(a *app) { a.taskTable(exampleTasks()) })
	golden(t, "recurring", func(a *app) {
		active, paused, twin, gone := exampleRecurring(), exampleRecurring(), exampleRecurring(), exampleRecurring()
		paused.Name, paused.Status, paused.PausedUntil = "report", dts.Paused, ago(-2*time.Hour)
		twin.ID = "019ca8f0-0000-7000-8000-00000000000b"
		twin.Cron, twin.IntervalSeconds, twin.LastRunAt = "", 5400, time.Time{}
		gone.Name, gone.Status, gone.LastStatus = "gone", dts.Ended, dts.Failed
		a.recurringTable([]*dts.RecurringTask{active, paused, twin, gone})
	})
	golden(t, "colours", func(a *app) {
		a.colour = true
		a.taskTable(exampleTasks()[:3])
	})
}

func TestShown(t *testing.T) {
	golden(t, "task", func(a *app) {
		task := exampleTasks()[3]
		task.Name, task.MaxAttempts, task.Attempts = "mail", 3, 2
		task.ScheduledAt, task.DueAt, task.StartedAt, task.CreatedAt = ago(27*time.Hour), ago(27*time.Hour), ago(26*time.Hour), ago(30*time.Hour)
		task.SLAMet, task.LastError = ptr(false), "exit code 3"
		a.printTask(task)
		a.attemptTable([]*dts.Attempt{
			{Number: 1, State: dts.AttemptTimedOut, StartedAt: ago(27 * time.Hour), LatenessUS: 95, DurationUS: 300e6, CPUUS: 1500, MaxRSSBytes: 3 << 20, Error: "it took longer than 5m"},
			{Number: 2, State: dts.AttemptFailed, StartedAt: ago(26 * time.Hour), LatenessUS: 120, DurationUS: 910_000, ExitCode: ptr(3)},
		})
		a.outputTail(task, &api.OutputAnswer{Head: "one\r\n\ttwo\x1b[31m\n"})
	})
	golden(t, "recurring-task", func(a *app) {
		r := exampleRecurring()
		r.Cron += "\n0 12 * * sat"
		r.JitterSeconds, r.DSTGap, r.DSTOverlap = 120, dts.GapSkip, dts.OverlapSecond
		r.ExcludeCalendars, r.RequireCalendars, r.CalendarShift = []string{"holidays", "freeze"}, []string{"office"}, dts.ShiftPrevious
		r.CatchUpMode, r.CatchUpLimit, r.CatchUpPacingSeconds, r.CatchUpWindowSeconds, r.MisfireAfterSeconds = dts.RunAllMissed, 10, 5, 86400, 300
		day := 24 * time.Hour
		next := []*dts.Task{{ScheduledAt: r.NextRunAt}, {ScheduledAt: r.NextRunAt.Add(2 * day)}, {ScheduledAt: r.NextRunAt.Add(3 * day)}}
		for _, t := range next {
			t.DueAt = t.ScheduledAt.Add(r.Jitter())
		}
		next[2].DueAt = next[2].DueAt.Add(time.Hour)
		a.printRecurring(r, upcoming(r, next, &dts.Preview{Instants: []dts.PreviewInstant{
			{UTC: r.NextRunAt, Runs: true, Effects: []dts.PreviewEffect{{Kind: dts.EffectDST, Text: "the clock is put forward over 02:30: it runs at the end of the gap"}}},
			{UTC: r.NextRunAt.Add(day), Effects: []dts.PreviewEffect{{Kind: dts.EffectCalendar, Text: "excluded by holidays: \x1b[2JShrove Tuesday"}}},
			{UTC: r.NextRunAt.Add(2 * day), Runs: true},
			{UTC: r.NextRunAt.Add(9 * day)},
		}}))
		ran := exampleTasks()[2]
		ran.StartedAt, ran.Origin = ran.CompletedAt.Add(-910*time.Millisecond), dts.OriginSchedule
		a.ledgerTable([]dts.Occurrence{
			{ScheduledAt: ago(10 * time.Hour), Task: ran},
			{ScheduledAt: ago(34 * time.Hour), Skip: &dts.Skip{From: ago(82 * time.Hour), Count: 3, Reason: dts.ReasonPaused, Note: "moving house"}},
			{ScheduledAt: ago(100 * time.Hour), Skip: &dts.Skip{Count: 1, Reason: dts.ReasonOverlap}},
			{ScheduledAt: ago(101 * time.Hour), Skip: &dts.Skip{Count: 1, Reason: dts.ReasonCalendar, Note: "holidays: Shrove Tuesday; moved to Wed 02:30"}},
			{ScheduledAt: ago(102 * time.Hour), Task: &dts.Task{Status: dts.Skipped, SkipReason: dts.ReasonBlackout, LastError: "database upgrade"}},
			{ScheduledAt: ago(103 * time.Hour), Task: &dts.Task{Status: dts.Skipped, SkipReason: dts.ReasonPaused}, Skip: &dts.Skip{Count: 1, Reason: dts.ReasonPaused, Note: "moving house"}},
			{ScheduledAt: ago(104 * time.Hour), Skip: &dts.Skip{Count: 1, Reason: dts.ReasonCatchUp}},
			{ScheduledAt: ago(time.Hour), Task: &dts.Task{Status: dts.Pending, WaitsFor: dts.ReasonBlackout, RunAt: ago(-90 * time.Minute)}},
			{ScheduledAt: ago(time.Minute), Task: &dts.Task{Status: dts.Pending, WaitsFor: dts.ReasonOverlap, Origin: dts.OriginCatchUp}},
		}, berlin(t))
	})
	golden(t, "status", func(a *app) {
		a.printStatus(&dts.SchedulerStatus{
			Node: "n1", Version: "1.2.3", StartedAt: ago(50 * time.Hour), Now: goldenNow, Timer: "timerfd", Clock: &dts.ClockStatus{Steps: 1, Synchronised: ptr(true), EstimatedErrUS: 1500},
			NotReady: []string{"the disk is full"}, Shards: []dts.ShardStatus{{From: 0, To: 63, Term: 3}}, HeapSize: 12, Claimed: 2, LagUS: 2_500_000,
			NextWakeAt: ago(-4 * time.Minute), Pools: []dts.PoolStatus{{TargetType: dts.HTTPCallback, Slots: 256, Running: 3}, {TargetType: dts.Command, Slots: 64, Running: 64, Ready: 7}},
			UnwrittenRuns: 1, StoreError: "database or disk is full", StoreErrorFrom: ago(time.Minute),
		}, &dts.Counts{Pending: 10000, Running: 3, Failed: 1, Capped: true}, nil)
	})
	golden(t, "status-cluster", func(a *app) {
		s := &dts.SchedulerStatus{
			Node: "019ca8f0-0000-7000-8000-0000a1b2c3d4", Version: "1.2.3", StartedAt: ago(50 * time.Hour), Now: goldenNow, Timer: "timerfd", Ready: true,
			Shards: []dts.ShardStatus{{From: 0, To: 20, Term: 3}, {From: 40, To: 40, Term: 7}}, Lease: &dts.LeaseStatus{SecondsLeft: 12.345},
			Clock: &dts.ClockStatus{Steps: 2, LastStepAt: ago(time.Hour), LastStepMS: -3_600_000, Synchronised: ptr(false), MaxSkewMS: 2500,
				Alerts: []string{"the clock of server dts-3 is 2.5 s ahead of this server's"}},
			Nodes: []dts.NodeStatus{
				{ID: "019ca8f0-0000-7000-8000-0000a1b2c3d4", Address: "http://10.0.0.1:8420", Version: "1.2.3", State: "ALIVE", Shards: 22, SeenSecondsAgo: 1.234, Self: true},
				{ID: "019ca8f0-0000-7000-8000-000099999999", Address: "http://10.0.0.2:8420", Version: "1.2.3", State: "ALIVE", Shards: 42, SeenSecondsAgo: 3.9, ClockSkewMS: -73},
				{ID: "019ca8f0-0000-7000-8000-000077777777", Address: "http://dts-3.example.com:8420\x1b[2J", Version: "1.2.2", State: "LEAVING", SeenSecondsAgo: 0.04, ClockSkewMS: 2500},
				{ID: "019ca8f0-0000-7000-8000-000055555555", Address: "http://10.0.0.4:8420", Version: "1.2.2", State: "DEAD", SeenSecondsAgo: 86400, ClockSkewMS: -90000},
			},
		}
		a.printStatus(s, &dts.Counts{Pending: 1}, nil)
		s.Lease.SecondsLeft = 0
		a.printStatus(s, nil, errors.New("no leader"))
	})
}
