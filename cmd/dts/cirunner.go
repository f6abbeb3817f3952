package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"dts"
	"dts/exec"
)

// ciRunner runs the attempts of `dts ci`: it prints what they print, and knows which commands run, so that none is left
// behind. It is a dts.Runner.
type ciRunner struct {
	exec    *exec.Runner
	console *console
	slots   chan struct{} // one for each attempt that may run at once; nil: no limit
	label   func(t *dts.Task) label
	say     func(l label, text string) // something about a task

	mu       sync.Mutex
	commands map[*dts.Job]dts.Process // that run
	stopping bool                     // nothing starts any more
}

func (r *ciRunner) Run(ctx context.Context, job dts.Job) dts.Outcome {
	if r.slots != nil {
		select {
		case r.slots <- struct{}{}:
			defer func() { <-r.slots }()
		case <-ctx.Done(): // the runner says what that means
		}
	}
	l := r.label(job.Task)
	out := r.console.lines(l)
	job.Output, job.Exited = out, out.exit
	id, started := &job, job.Started
	job.Started = func(p dts.Process) {
		r.mu.Lock()
		r.commands[id] = p
		r.mu.Unlock()
		if started != nil {
			started(p)
		}
	}
	if r.stops() {
		return dts.Outcome{State: dts.AttemptCancelled, Error: "cancelled before it started"}
	}
	end := r.exec.Run(ctx, job)
	r.mu.Lock()
	delete(r.commands, id)
	r.mu.Unlock()
	out.Close()
	if end.State != dts.AttemptSuccess && !r.stops() {
		attempt := ""
		if job.Task.MaxAttempts > 1 {
			attempt = fmt.Sprintf("attempt %d of %d ", job.Number, job.Task.MaxAttempts)
		}
		verb := map[dts.AttemptState]string{dts.AttemptTimedOut: "timed out", dts.AttemptCancelled: "was cancelled", dts.AttemptLost: "was lost"}[end.State]
		if verb == "" {
			verb = "failed"
		}
		r.say(l, fmt.Sprintf("%s%s: %s", attempt, verb, end.Error))
	}
	return end
}

// stop lets nothing start any more.
func (r *ciRunner) stop() {
	r.mu.Lock()
	r.stopping = true
	r.mu.Unlock()
}

func (r *ciRunner) stops() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopping
}

// sweep kills every process that commands have started and that is still there: what runs, and what was left in the
// background.
func (r *ciRunner) sweep(mark string, limit time.Duration, log *slog.Logger) error {
	q := exec.OrphanQuery{DataDirID: mark, InFlight: func(string, int) bool { return true }}
	r.mu.Lock()
	for _, p := range r.commands {
		q.Processes = append(q.Processes, p)
	}
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	_, err := exec.KillOrphans(ctx, log, q)
	return err
}
