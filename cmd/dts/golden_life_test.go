package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"dts"
)

// exampleWaiter is a task that waited for others, then for a slot, and ran late.
func exampleWaiter() *dts.Task {
	t := exampleTasks()[2]
	t.Name, t.Queue = "report", "reports"
	t.Retry.On = &dts.RetryOn{ExitCodes: []string{"75", "100-110"}, Errors: []dts.RetryFailure{dts.FailureTimeout}}
	t.Resources, t.Preemptible, t.Priority = &dts.Resources{CPU: 2, MemoryMB: 1536}, true, dts.Low
	t.WarnLateSeconds, t.WarnLongerSeconds, t.WarnShorterSeconds = 60, 600, 1
	t.DedupeKey, t.BatchID = "report\x1b[2J", "019ca8f0-0000-7000-8000-0000000000b0"
	t.MaxAttempts, t.Attempts = 3, 1
	t.ScheduledAt, t.DueAt, t.CreatedAt = ago(10*time.Minute), ago(10*time.Minute), ago(time.Hour)
	t.ResolvedAt, t.StartedAt, t.QueuedUS = ago(8*time.Minute), ago(6*time.Minute), 119_900_000
	t.LatenessUS, t.SLAMet, t.Warnings = ptr(int64(120e6)), ptr(false), []dts.Warning{dts.WarnLate}
	t.CompletedAt = ago(4 * time.Minute)
	t.Breakdown = t.Timing(goldenNow)
	return t
}

func TestShownLife(t *testing.T) {
	golden(t, "task-life", func(a *app) {
		task := exampleWaiter()
		a.printTask(task)
		waiting := exampleTasks()[1]
		waiting.MaxAttempts, waiting.Unresolved = 3, 2
		waiting.ScheduledAt, waiting.DueAt, waiting.CreatedAt = ago(time.Minute), ago(time.Minute), ago(time.Hour)
		a.printTask(waiting)
		waiting.DependsMode = dts.DependsAny
		a.printTask(waiting)
		waiting.WaitsFor = dts.ReasonPaused
		a.printTask(waiting)
		waiting.WaitsFor, waiting.Status, waiting.SkipReason = "", dts.Skipped, dts.ReasonDependency
		waiting.LastError = "it needs load (019ca8f0-0000-7000-8000-000000000004), which is FAILED"
		a.printTask(waiting)
	})
	golden(t, "dead", func(a *app) {
		list := []*dts.Task{exampleTasks()[3], exampleTasks()[3]}
		list[0].Attempts, list[0].LastError = 3, "exit code 3\nand more"
		list[1].Attempts, list[1].LastError, list[1].Name = 1, "the answer was 503 Service Unavailable, and a long page with it: \x1b[2J<html>", "a-name-that-is-much-too-long-for-this-column"
		a.deadTable(list)
	})
}

func exampleGraph() *dts.Graph {
	id := func(n int) string { return fmt.Sprintf("019ca8f0-0000-7000-8000-00000000000%d", n) }
	g := &dts.Graph{Tasks: []dts.GraphTask{
		{ID: id(1), Name: "report", Status: dts.Pending, Unresolved: 2},
		{ID: id(2), Name: "load-a", Status: dts.Success},
		{ID: id(3), Name: "load-b\x1b[2J", Status: dts.Running},
		{ID: id(4), Name: "fetch", Status: dts.Success},
		{ID: id(5), Status: dts.Failed},
		{ID: id(7), Name: "mail", Status: dts.Pending, Unresolved: 1},
		{ID: id(8), Name: "alarm", Status: dts.Pending, Unresolved: 1},
	}}
	for _, e := range []struct {
		child, parent int
		t             dts.DependencyType
		s             dts.DependencyState
	}{
		{1, 2, dts.MustSucceed, dts.DependencySatisfied}, {1, 3, dts.MustSucceed, dts.DependencyOpen}, {1, 6, dts.MustFinish, dts.DependencyOpen},
		{2, 4, dts.MustSucceed, dts.DependencySatisfied}, {3, 4, dts.MustSucceed, dts.DependencySatisfied}, {4, 5, dts.MustFail, dts.DependencySatisfied},
		{3, 5, dts.MustSucceed, dts.DependencyOverridden}, {7, 1, dts.MustSucceed, dts.DependencyOpen}, {8, 1, dts.MustFail, dts.DependencyFailed}, {8, 7, dts.MustFail, dts.DependencyOpen},
	} {
		g.Dependencies = append(g.Dependencies, dts.Dependency{ChildID: id(e.child), ParentID: id(e.parent), Type: e.t, State: e.s})
	}
	return g
}

func TestDeps(t *testing.T) {
	golden(t, "deps", func(a *app) {
		g := exampleGraph()
		for _, show := range []func() error{
			func() error { return a.graph(g, dts.DependsAny, false) },
			func() error { return a.graph(&dts.Graph{Tasks: g.Tasks[1:2]}, "", false) },
		} {
			if err := show(); err != nil {
				t.Error(err)
			}
			a.printf("\n")
		}
		a.printf("%d edges are behind it\n", a.printGraph(g, "", nearTree))
	})
}

// A chain of 1,000 and a fan of 1,000 are cut.
func TestLongDeps(t *testing.T) {
	chain := &dts.Graph{Truncated: true}
	fan := &dts.Graph{}
	for i := range 1000 {
		name := fmt.Sprint(i)
		for _, g := range []*dts.Graph{chain, fan} {
			g.Tasks = append(g.Tasks, dts.GraphTask{ID: name, Name: name, Status: dts.Pending})
		}
		if i > 0 {
			chain.Dependencies = append(chain.Dependencies, dts.Dependency{ChildID: fmt.Sprint(i - 1), ParentID: name})
			fan.Dependencies = append(fan.Dependencies, dts.Dependency{ChildID: "0", ParentID: name})
		}
	}
	for _, tt := range []struct {
		g     *dts.Graph
		lines int
		last  string
	}{{chain, 15, "There is more: these are of the nearest 1000 tasks."}, {fan, 203, "There is more, further away: --json shows all 1000 tasks."}} {
		var out bytes.Buffer
		a := &app{out: &out, now: time.Now}
		if err := a.graph(tt.g, "", false); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != tt.lines || lines[len(lines)-1] != tt.last {
			t.Errorf("%d lines, the last %q; want %d, %q", len(lines), lines[len(lines)-1], tt.lines, tt.last)
		}
	}
}

func TestShownBatch(t *testing.T) {
	golden(t, "batch", func(a *app) {
		b := &dts.Batch{ID: "019ca8f0-0000-7000-8000-0000000000b0", Total: 10_000, Pending: 2000, Running: 12, Success: 7980, Failed: 8, CreatedAt: ago(time.Hour)}
		a.printBatch(b)
		b = &dts.Batch{ID: b.ID, Total: 3, Success: 1, Cancelled: 1, Skipped: 1, Done: true, CreatedAt: ago(time.Hour), CompletedAt: ago(time.Minute)}
		a.printBatch(b)
	})
}

func TestSelected(t *testing.T) {
	a := &app{loc: berlin(t), now: func() time.Time { return goldenNow }}
	f := dts.TaskFilter{Statuses: []dts.Status{dts.Failed}, Queue: "mail", Name: "a\x1b", BatchID: "b", Labels: map[string]string{"y": "2", "x": "1"}, From: ago(time.Hour), To: goldenNow}
	want := "2 FAILED tasks named a\uFFFD of the queue mail of the batch b with x=1, y=2 due since Sun 2026-03-01 12:00:00 CET due before Sun 2026-03-01 13:00:00 CET"
	if got := a.selected(2, f); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for n, want := range map[int]string{0: "no PENDING or RUNNING task", 1: "1 PENDING or RUNNING task"} {
		if got := a.selected(n, dts.TaskFilter{Statuses: []dts.Status{dts.Pending, dts.Running}}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestSuffixes(t *testing.T) {
	for text, want := range map[string]dts.DependsOn{
		"load": {TaskID: "load"}, "load:must-fail": {TaskID: "load", Type: dts.MustFail}, "load:MUST_FINISH": {TaskID: "load", Type: dts.MustFinish},
		"host:8080": {TaskID: "host:8080"}, "a:b:must_succeed": {TaskID: "a:b", Type: dts.MustSucceed}, ":must-fail": {TaskID: ":must-fail"},
	} {
		if ref, typ := cutType(text); ref != want.TaskID || typ != want.Type {
			t.Errorf("%q: %q %q", text, ref, typ)
		}
	}
	for text, want := range map[string]dts.Task{
		"k": {DedupeKey: "k"}, "k:replace": {DedupeKey: "k", DedupePolicy: dts.DedupeReplace}, "a:b": {DedupeKey: "a:b"},
		"a:KEEP_FIRST": {DedupeKey: "a", DedupePolicy: dts.DedupeKeepFirst}, "a:keep-first": {DedupeKey: "a", DedupePolicy: dts.DedupeKeepFirst},
		"a:replace:reject": {DedupeKey: "a:replace", DedupePolicy: dts.DedupeReject},
	} {
		if key, p := cutPolicy(text); key != want.DedupeKey || p != want.DedupePolicy {
			t.Errorf("%q: %q %q", text, key, p)
		}
	}
}

func TestParseMiB(t *testing.T) {
	for text, want := range map[string]int64{"512M": 512, "2G": 2048, "1.5GiB": 1536, "1t": 1 << 20, "100 KB": 1, "1k": 1,
		"512": 0, "": 0, "M": 0, "-1M": 0, "x": 0, "9999999T": 0, "NaNM": 0, "infM": 0} {
		got, err := parseMiB(text)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d %v, want %d", text, got, err, want)
		}
	}
}
