package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"dts"
)

func exampleFigures(t *testing.T, at time.Time, started, quick, slow string) *figures {
	t.Helper()
	f, err := parseFigures(strings.NewReader(`# HELP dts_attempts_started_total Attempts started.
# TYPE dts_attempts_started_total counter
dts_attempts_started_total `+started+`
dts_attempts_succeeded_total 10
dts_attempts_failed_total{queue="a"} 99
dts_lateness_seconds_bucket{le="0.001"} `+quick+`
dts_lateness_seconds_bucket{le="0.01"} `+slow+`
dts_lateness_seconds_bucket{le="+Inf"} `+slow+`
dts_lateness_seconds_sum 1e-05
`), at)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestRates(t *testing.T) {
	old := exampleFigures(t, ago(10*time.Second), "100", "100", "100")
	r := exampleFigures(t, goldenNow, "300", "150", "300").since(old)
	if r == nil || r.Started != 20 || r.Succeeded != 0 || r.Failed != 0 || r.Starts != 200 || r.Seconds != 10 {
		t.Fatalf("%+v", r)
	}
	if math.Abs(*r.P50-0.004) > 1e-9 || math.Abs(*r.P99-0.00988) > 1e-9 { // 50 below 1 ms, and 150 spread from there to 10 ms
		t.Errorf("p50 %v, p99 %v", *r.P50, *r.P99)
	}
	if r := exampleFigures(t, goldenNow, "100", "100", "100").since(old); r == nil || r.P50 != nil {
		t.Errorf("nothing has started: %+v", r)
	}
	if r := exampleFigures(t, goldenNow, "3", "3", "3").since(old); r != nil {
		t.Errorf("over a restart: %+v", r)
	}
	if got := quantile([]bucket{{0.1, 1}, {math.Inf(1), 100}}, 0.99); got != 0.1 {
		t.Errorf("beyond the last bound: %v", got)
	}
}

// A server that was started anew counts from nothing, and soon has counted more than the one before: the two are not compared.
func TestRatesOverRestart(t *testing.T) {
	w := &watcher{}
	w.compare(exampleFigures(t, ago(20*time.Second), "3", "3", "3"), "first")
	if r := w.compare(exampleFigures(t, ago(10*time.Second), "23", "3", "23"), "first"); r == nil || r.Started != 2 {
		t.Errorf("%+v", r)
	}
	if r := w.compare(exampleFigures(t, ago(5*time.Second), "10", "10", "10"), "second"); r != nil {
		t.Errorf("over a restart: %+v", r)
	}
	if r := w.compare(exampleFigures(t, goldenNow, "15", "10", "15"), "second"); r == nil || r.Started != 1 || r.Seconds != 5 {
		t.Errorf("after it: %+v", r)
	}
}

func TestWatchFrame(t *testing.T) {
	tasks := exampleTasks()
	s := &dts.SchedulerStatus{Node: "n1", Version: "1.2.3", StartedAt: ago(50 * time.Hour), Now: goldenNow, Ready: true, LagUS: 2_500_000,
		Pools: []dts.PoolStatus{{TargetType: dts.HTTPCallback, Slots: 364, Running: 3}, {TargetType: dts.Command, Slots: 91, Running: 91, Ready: 7}}}
	again := *tasks[0]
	again.Name, again.Attempts, again.PickedAt = "生命 report", 2, ago(3*time.Second)
	tasks[3].LastError = "exit code 3\nand \x1b[2J more that is too long for a line of eighty columns to hold it all"
	seen := &watched{At: goldenNow, Status: s, Counts: &dts.Counts{Pending: 10000, Running: 2, Failed: 1, Capped: true},
		Rates:   &rates{Seconds: 59.8, Started: 12.04, Succeeded: 11, Failed: 0.5, Starts: 720, P50: ptr(0.00012), P99: ptr(0.0042)},
		Running: []*dts.Task{tasks[0], &again},
		Next:    []upNext{{"backup.sh", ago(-4 * time.Second), "default", "1"}, {"mail\x1b[2J", ago(-26 * time.Hour), "mail", "2"}},
		Queues: []*dts.Queue{{Name: "default"}, {Name: "mail", Concurrency: 4, Paused: true, PauseNote: "moving house", QueueState: dts.QueueState{Running: 4, Waiting: 10000, OldestAgeSeconds: 90}},
			{Name: "reports", QueueState: dts.QueueState{Running: 1}}},
		Failures: []*dts.Task{tasks[3]}}
	show := func(a *app, lines []string) { a.printf("%s\n%s\n", strings.Join(lines, "\n"), strings.Repeat("=", 80)) }
	golden(t, "watch", func(a *app) {
		show(a, a.frame(seen, "", 80, 30))
		empty := *seen
		empty.Running, empty.Next, empty.Queues, empty.Failures, empty.Rates = nil, nil, nil, nil, nil
		show(a, a.frame(&empty, "", 80, 24))
		many := *seen
		for range 50 {
			many.Running = append(many.Running, tasks[0])
		}
		down := *s
		down.Ready, down.NotReady = false, []string{"the disk is full"}
		many.Status = &down
		show(a, a.frame(&many, "", 60, 24))
		show(a, a.frame(seen, "since 12:00: no dts server listens there", 40, 6))
		wide := *tasks[0]
		wide.Name = strings.Repeat("生命", 20)
		many.Running = append([]*dts.Task{&wide}, many.Running...)
		show(a, a.frame(&many, "", 40, 10))
		unread := (&watched{At: goldenNow, Status: &down, Error: "the database does not answer"}).after(seen)
		show(a, a.frame(unread, "", 80, 24))
	})
	for _, size := range [][2]int{{80, 24}, {40, 10}, {20, 10}, {1, 1}, {200, 2}, {3, 3}, {30, 0}} {
		a := &app{loc: time.UTC, colour: true, now: func() time.Time { return goldenNow }}
		lines := a.frame(seen, "", size[0], size[1])
		if len(lines) != max(size[1], 1) {
			t.Errorf("%v: %d lines", size, len(lines))
		}
		for _, l := range lines {
			if width(l) > size[0] || strings.Contains(l, "\n") || strings.Contains(l, "\x1b[2J") {
				t.Errorf("%v: %q", size, l)
			}
		}
	}
}
