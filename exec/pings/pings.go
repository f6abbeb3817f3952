// Package pings judges the runs of jobs that dts does not run, by what they have reported.
//
// It promises that a judgement takes no longer than reading the reports, so that nothing waits here, and that a database
// that cannot be read fails no run: the judgement is made when it can be.
package pings

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"dts"
)

// Store is what a judgement is made from.
type Store interface {
	// PingsFor returns the pings that count for an instant of a recurring task, the oldest first.
	PingsFor(ctx context.Context, recurringID string, instant time.Time) ([]*dts.PingRecord, error)
}

// Runner judges each PING, and hands other tasks on. It is a dts.Runner.
type Runner struct {
	Store Store
	Next  dts.Runner
	Now   func() time.Time
}

// again is how long after a read that failed the next one begins.
const again = time.Second

// Run implements dts.Runner.
func (r *Runner) Run(ctx context.Context, job dts.Job) dts.Outcome {
	if job.Task.TargetType != dts.Ping {
		return r.Next.Run(ctx, job)
	}
	target, err := job.Task.Ping()
	if err != nil {
		return dts.Outcome{State: dts.AttemptFailed, Error: "the target_config is not a PING's: " + err.Error()}
	}
	for {
		list, err := r.Store.PingsFor(ctx, job.Task.RecurringTaskID, job.Task.ScheduledAt)
		if err == nil {
			return Judge(target, list, r.Now())
		}
		select {
		case <-ctx.Done():
			return stopped(ctx)
		case <-time.After(again):
		}
	}
}

// stopped is the outcome of a judgement that was ended before it was made.
func stopped(ctx context.Context) dts.Outcome {
	cause := context.Cause(ctx)
	if errors.Is(cause, dts.ErrRunCancelled) || errors.Is(cause, dts.ErrRunReplaced) {
		return dts.Outcome{State: dts.AttemptCancelled, Error: cause.Error()}
	}
	return dts.Outcome{State: dts.AttemptLost, Retryable: true, Error: dts.ErrRunLost.Message}
}

// Judge says what became of a run whose pings, the oldest first, are these. The last report of an end decides, whatever has
// begun since; how long the job took is the time from the last start before that.
func Judge(target dts.PingTarget, list []*dts.PingRecord, now time.Time) dts.Outcome {
	var start, begun, end *dts.PingRecord // begun: the start that end belongs to
	for _, p := range list {
		if p.Kind == dts.PingStart {
			start = p
			continue
		}
		end, begun, start = p, start, nil
	}
	switch {
	case end == nil && start != nil:
		return notEnded(target, start, now)
	case end == nil:
		return dts.Outcome{State: dts.AttemptFailed, Error: "no ping came by " + say(now)}
	}
	out := dts.Outcome{State: dts.AttemptSuccess, ExitCode: end.ExitCode, Output: dts.Output{Head: []byte(end.Body), Total: max(end.BodyBytes, int64(len(end.Body)))}}
	out.Began, out.Ended = end.ReceivedAt, end.ReceivedAt
	if begun != nil {
		out.Began = begun.ReceivedAt
	}
	if end.Kind == dts.PingSuccess {
		if took, limit := out.Ended.Sub(out.Began), target.MaxRuntime(); limit > 0 && took > limit {
			out.State, out.Error = dts.AttemptFailed, fmt.Sprintf("the job took %s; max_runtime_seconds is %v", took.Round(time.Millisecond), target.MaxRuntimeSeconds)
		}
		return out
	}
	out.State = dts.AttemptFailed
	out.Error = "the job reported a failure at " + say(end.ReceivedAt)
	if end.ExitCode != nil {
		out.Error = fmt.Sprintf("the job reported exit code %d at %s", *end.ExitCode, say(end.ReceivedAt))
	}
	if line := firstLine(end.Body); line != "" {
		out.Error += ": " + line
	}
	return out
}

func notEnded(target dts.PingTarget, start *dts.PingRecord, now time.Time) dts.Outcome {
	text := fmt.Sprintf("the job started at %s, and no success ping came by %s", say(start.ReceivedAt), say(now))
	if limit := target.MaxRuntime(); limit > 0 {
		text += fmt.Sprintf("; max_runtime_seconds is %v", target.MaxRuntimeSeconds)
	}
	return dts.Outcome{State: dts.AttemptFailed, Error: text}
}

func say(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }

// maxLine is how much of a report's first line is part of an error, in bytes.
const maxLine = 200

// firstLine is the first line of a text that says anything.
func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if len(line) > maxLine {
			line = strings.ToValidUTF8(line[:maxLine], "") + "…"
		}
		return line
	}
	return ""
}
