package main

import (
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

func TestParseMiB(t *testing.T) {
	for text, want := range map[string]int64{"512M": 512, "2G": 2048, "1.5GiB": 1536, "1t": 1 << 20, "100 KB": 1, "1k": 1,
		"512": 0, "": 0, "M": 0, "-1M": 0, "x": 0, "9999999T": 0, "NaNM": 0, "infM": 0} {
		got, err := parseMiB(text)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d %v, want %d", text, got, err, want)
		}
	}
}
