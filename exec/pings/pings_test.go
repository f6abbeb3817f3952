package pings_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dts"
	"dts/exec/pings"
)

var three = time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)

// report is a ping so many minutes after three.
func report(minutes int, kind dts.PingKind, code int, body string) *dts.PingRecord {
	p := &dts.PingRecord{Kind: kind, ReceivedAt: three.Add(time.Duration(minutes) * time.Minute), Body: body, BodyBytes: int64(len(body))}
	if code >= 0 {
		p.ExitCode = &code
	}
	return p
}

func TestJudge(t *testing.T) {
	start := func(m int) *dts.PingRecord { return report(m, dts.PingStart, -1, "") }
	success := func(m int) *dts.PingRecord { return report(m, dts.PingSuccess, -1, "done") }
	for _, x := range []struct {
		name  string
		list  []*dts.PingRecord
		limit float64
		state dts.AttemptState
		took  time.Duration
		says  string
	}{
		{"nothing", nil, 0, dts.AttemptFailed, 0, "no ping came by 2026-03-01 03:10:00 UTC"},
		{"a success", []*dts.PingRecord{success(1)}, 0, dts.AttemptSuccess, 0, ""},
		{"with its start", []*dts.PingRecord{start(-2), success(5)}, 0, dts.AttemptSuccess, 7 * time.Minute, ""},
		{"the last start counts", []*dts.PingRecord{start(0), start(2), success(5)}, 0, dts.AttemptSuccess, 3 * time.Minute, ""},
		{"a start without an end", []*dts.PingRecord{start(0)}, 0, dts.AttemptFailed, 0, "started at 2026-03-01 03:00:00 UTC, and no success ping came by 2026-03-01 03:10:00 UTC"},
		{"a start without an end in time", []*dts.PingRecord{start(0)}, 600, dts.AttemptFailed, 0, "max_runtime_seconds is 600"},
		{"too long", []*dts.PingRecord{start(0), success(5)}, 60, dts.AttemptFailed, 5 * time.Minute, "the job took 5m0s; max_runtime_seconds is 60"},
		{"a failure", []*dts.PingRecord{start(0), report(5, dts.PingFailure, -1, "")}, 0, dts.AttemptFailed, 5 * time.Minute, "reported a failure at 2026-03-01 03:05:00 UTC"},
		{"an exit code", []*dts.PingRecord{report(5, dts.PingFailure, 75, "\n  no space left\nmore")}, 0, dts.AttemptFailed, 0, "exit code 75 at 2026-03-01 03:05:00 UTC: no space left"},
		{"exit code 0", []*dts.PingRecord{report(5, dts.PingSuccess, 0, "")}, 0, dts.AttemptSuccess, 0, ""},
		{"it was tried again", []*dts.PingRecord{report(1, dts.PingFailure, 1, ""), start(2), success(4)}, 0, dts.AttemptSuccess, 2 * time.Minute, ""},
		{"it failed after all", []*dts.PingRecord{success(1), report(2, dts.PingFailure, 1, "")}, 0, dts.AttemptFailed, 0, "exit code 1"},
		{"the next one has begun", []*dts.PingRecord{success(1), start(9)}, 0, dts.AttemptSuccess, 0, ""},
		{"a long line", []*dts.PingRecord{report(1, dts.PingFailure, 1, strings.Repeat("é", 1000))}, 0, dts.AttemptFailed, 0, "é…"},
	} {
		out := pings.Judge(dts.PingTarget{MaxRuntimeSeconds: x.limit}, x.list, three.Add(10*time.Minute))
		if out.State != x.state || out.Ended.Sub(out.Began) != x.took || !strings.Contains(out.Error, x.says) || (x.says == "") != (out.Error == "") {
			t.Errorf("%s: %s after %s, %q; want %s after %s, %q", x.name, out.State, out.Ended.Sub(out.Began), out.Error, x.state, x.took, x.says)
		}
		if len(out.Error) > 400 {
			t.Errorf("%s: an error of %d bytes", x.name, len(out.Error))
		}
	}
	out := pings.Judge(dts.PingTarget{}, []*dts.PingRecord{success(1)}, three)
	if string(out.Output.Head) != "done" || out.Output.Total != 4 {
		t.Errorf("the output is %q of %d bytes", out.Output.Head, out.Output.Total)
	}
}

type flaky struct{ fails int }

func (f *flaky) PingsFor(context.Context, string, time.Time) ([]*dts.PingRecord, error) {
	if f.fails--; f.fails >= 0 {
		return nil, errors.New("the database does not answer")
	}
	return []*dts.PingRecord{report(1, dts.PingSuccess, -1, "")}, nil
}

type next struct{ ran int }

func (n *next) Run(context.Context, dts.Job) dts.Outcome {
	n.ran++
	return dts.Outcome{State: dts.AttemptSuccess}
}

// A database that does not answer is no reason to say that a job has failed.
func TestRunWaitsForTheDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &next{}
		r := &pings.Runner{Store: &flaky{fails: 3}, Next: n, Now: time.Now}
		job := dts.Job{Task: &dts.Task{Spec: dts.Spec{TargetType: dts.Ping, TargetConfig: []byte(`{}`)}}, Number: 1}
		if out := r.Run(t.Context(), job); out.State != dts.AttemptSuccess {
			t.Errorf("%s: %s", out.State, out.Error)
		}
		for cause, state := range map[error]dts.AttemptState{dts.ErrRunCancelled: dts.AttemptCancelled, dts.ErrRunLost: dts.AttemptLost} {
			ctx, cancel := context.WithCancelCause(t.Context())
			r.Store = &flaky{fails: 1 << 30}
			time.AfterFunc(5*time.Second, func() { cancel(cause) })
			if out := r.Run(ctx, job); out.State != state {
				t.Errorf("%v: %s", cause, out.State)
			}
		}
		if n.ran > 0 {
			t.Error("a PING was handed on")
		}
		job.Task.TargetType = dts.Command
		if r.Run(t.Context(), job); n.ran != 1 {
			t.Error("a command was not handed on")
		}
	})
}
