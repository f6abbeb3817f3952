package sched

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"dts"
)

// run is one attempt under way.
type run struct {
	s      *Scheduler
	task   *dts.Task
	number int
	slots  []dts.Slot    // that it needs
	inLine bool          // its task stands in a line, as far as the store knows
	stale  bool          // its start was refused: the task is not what it was thought to be
	turn   dts.LineKey   // the line from which it came
	term   int64         // at which the task's shard was held when it began
	queued time.Duration // how long the task waited for its slot
	late   bool          // it starts later than was asked for
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu          sync.Mutex
	rec         dts.Record  // of the start
	show        *time.Timer // writes the start, if the run takes that long
	long        *time.Timer // warns, if the run takes longer than was asked for; nil: nothing was
	warnedLong  bool
	process     *dts.Process
	shown       bool // the start is written, or about to be
	ended       bool
	stood       time.Duration // its command was stopped, in all; see preempt.go
	standsSince time.Time     // it is stopped since then
	away        bool          // its shard goes, or has gone, to another server: its start is written at once
	// What handOver waits for; nil when nobody does.
	onStart, onEnd chan struct{}
	startOn, endOn bool // the start, the end is on the disk, or was refused
}

func newRun(s *Scheduler, t *dts.Task, term int64) *run {
	r := &run{s: s, task: t, number: t.Attempts + 1, term: term}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	return r
}

// execute makes the attempt and sends what became of it to the writer.
func (s *Scheduler) execute(it *item, r *run) {
	defer r.cancel(nil)
	s.o.Failpoint("before-start")
	began, full := r.begin()
	if !began {
		r.written(nil)
		s.in.post(func(l *loop) {
			if full != "" {
				l.refusedSlot(it, full)
			} else {
				l.unstart(it)
			}
		})
		return
	}
	if r.turn != (dts.LineKey{}) { // the next one may go
		s.in.post(func(l *loop) { l.ask(l.lines[r.turn]) })
	}
	s.o.Failpoint("before-run")
	start := time.Now() // for the monotonic duration; the wall clock is begin's
	var out dts.Outcome
	if inputs, bad := s.inputs(r); bad != nil {
		out = *bad
	} else {
		out = s.o.Runner.Run(r.ctx, dts.Job{Task: r.task, Number: r.number, Inputs: inputs, Started: r.started, Controls: s.controlsFor(it, r)})
	}
	s.o.Failpoint("after-run")
	rec := r.end(out, time.Since(start))
	s.in.post(func(l *loop) { l.callEnded(it, &rec.Attempt); l.ended(it) })
	s.writer.add(pendingRecord{it: it, run: r, rec: rec})
}

// begin fills in the start. For AT_MOST_ONCE, where the run needs slots and where it may have been started before, it is on the
// disk before begin returns true; false means that it could not be written and nothing may run, full that it is for want of a slot in that line.
func (r *run) begin() (began bool, full string) {
	s, t := r.s, r.task
	if !s.leased() {
		return false, "" // this server was stopped, or cut off, just now
	}
	now := dts.Micros(s.clock.now())
	late := max(now.Sub(t.EligibleAt()), 0).Microseconds()
	first := t.Delivery == dts.AtMostOnce || r.limited() || r.maybeAgain()
	rec := dts.Record{Task: t, Term: r.term, Limited: r.limited(), Attempt: dts.Attempt{
		TaskID: t.ID, TenantID: t.TenantID, Number: r.number, State: dts.AttemptRunning, Node: s.o.Node.ID,
		PickedAt: t.PickedAt, StartedAt: now, LatenessUS: late, QueuedUS: r.queued.Microseconds(),
	}}
	if t.StartedAt.IsZero() {
		r.noteFirst(now, &late)
	}
	if first {
		if full, err := r.writeFirst(rec); full != "" || err != nil {
			return false, full
		}
		t.WaitsFor = ""
	}
	r.mu.Lock()
	r.rec, r.shown = rec, first
	show := startShown
	if r.away || r.onStart != nil {
		show = 0
	}
	r.show = time.AfterFunc(show, r.writeStart)
	r.watch()
	r.mu.Unlock()
	if first {
		r.written(&rec)
	}
	s.m.started.Inc()
	s.m.lateness.Observe(float64(late) / 1e6)
	if s.bus.listening() {
		e := taskEvent(dts.EventStarted, t, now)
		e.Status, e.Attempt, e.LatenessUS = string(dts.Running), r.number, late
		s.bus.publish(e)
	}
	if r.late {
		r.tell(t, dts.WarnLate)
	}
	return true, ""
}

// limited reports whether the start concerns slots or a line.
func (r *run) limited() bool { return len(r.slots) > 0 || r.inLine }

// maybeAgain reports whether a process before this one may have started the attempt already and crashed before that was on
// the disk, perhaps because of it. Were it written behind again, a task that kills its server at once would do so for ever.
func (r *run) maybeAgain() bool { return r.task.EligibleAt().Before(r.s.startedAt) }

// writeFirst writes the start before anything runs. Its error means that the start is not on the disk: while that
// is unknown it asks again, because a task that shows RUNNING must run. full: there was no slot in that line.
func (r *run) writeFirst(first dts.Record) (full string, err error) {
	s := r.s
	for unknown := false; ; {
		rec := first
		if r.limited() {
			full, err = s.o.Store.Start(s.ctx, s.fence(), &rec, r.slots)
		} else {
			err = s.o.Store.Write(s.ctx, s.fence(), []*dts.Record{&rec})
		}
		if err == nil {
			return full, nil
		}
		s.logStore("write start", err)
		if unknown && s.o.Refused(err) {
			r.neverRan(first)
		}
		r.stale = s.o.Refused(err)
		unknown = unknown || dts.CodeOf(err) == dts.ErrUnknown
		if !unknown || s.o.Refused(err) || s.ctx.Err() != nil {
			return "", err
		}
		select {
		case <-s.ctx.Done():
		case <-time.After(retryStore):
		}
	}
}

// neverRan ends an attempt whose start may be on the disk although nothing runs: it was written without an answer, and
// the shard has gone since. Where it is not there, this changes nothing.
func (r *run) neverRan(start dts.Record) {
	end := lostRecord(dts.Lost{Task: r.task, Attempt: &start.Attempt}, dts.Micros(r.s.clock.now()))
	end.Term = r.term
	r.s.writer.add(pendingRecord{run: r, rec: end})
}

// started is told of a command's process, so that an orphan can be found after a crash.
func (r *run) started(p dts.Process) {
	r.mu.Lock()
	r.process = &p
	r.mu.Unlock()
}

// writeStart shows the run as RUNNING, and records a command's process.
func (r *run) writeStart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	rec := r.rec
	rec.Process = r.process
	r.shown = true
	r.s.writer.add(pendingRecord{run: r, rec: &rec})
}

// handOver makes a run ready to be ended after its shard has gone to another server: its start must be on the disk
// before that, or its end, if it has ended. The channel is closed when that is so.
func (r *run) handOver() <-chan struct{} {
	r.mu.Lock()
	r.away = true
	r.mu.Unlock()
	return r.onDisk()
}

// onDisk has the start of a run written now. The channel is closed when that is done; of a run that has ended, when its end is.
func (r *run) onDisk() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.endOn || r.startOn && !r.ended {
		done := make(chan struct{})
		close(done)
		return done
	}
	on := &r.onStart
	if r.ended {
		on = &r.onEnd
	}
	if *on == nil {
		*on = make(chan struct{})
	}
	if !r.ended && r.show != nil && !r.shown {
		r.show.Reset(0)
	}
	return *on
}

// written is told what of the run is on the disk, or was refused for good. nil: it has not begun, after all.
func (r *run) written(rec *dts.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.startOn = true
	r.endOn = rec == nil || rec.After != nil
	for _, wait := range []struct {
		on bool
		c  *chan struct{}
	}{{r.startOn, &r.onStart}, {r.endOn, &r.onEnd}} {
		if wait.on && *wait.c != nil {
			close(*wait.c)
			*wait.c = nil
		}
	}
}

// end makes the record of the attempt's end.
func (r *run) end(out dts.Outcome, took time.Duration) *dts.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	r.show.Stop()
	reported := took
	if !out.Ended.IsZero() {
		reported = out.Ended.Sub(out.Began)
	}
	r.warnEnd(out.State, reported)
	rec := r.rec
	rec.Process, rec.Output, rec.Shown = r.process, out.Output, r.shown
	a := &rec.Attempt
	a.State, a.Error = out.State, clean(out.Error)
	a.DurationUS = reported.Microseconds()
	a.StoppedUS = r.stoodFor(r.s.clock.now()).Microseconds()
	a.CompletedAt = dts.Micros(a.StartedAt.Add(took))
	if !out.Ended.IsZero() {
		a.StartedAt, a.CompletedAt = dts.Micros(out.Began), dts.Micros(out.Ended)
	}
	a.HTTPStatus, a.ExitCode, a.CPUUS, a.MaxRSSBytes, a.OutputBytes = out.HTTPStatus, out.ExitCode, out.CPU.Microseconds(), out.MaxRSSBytes, out.Output.Total
	rec.After = afterAttempt(rec.Task, a, out.Retryable, out.RetryAfter, rand.Float64())
	if !out.Ended.IsZero() {
		rec.After.StartedAt = a.StartedAt
	}
	r.s.m.observe(&rec)
	r.s.loads.ended(r.task.TenantID, r.task.Queue, a.CompletedAt, took)
	return &rec
}

// lostAttempts is how often a task whose attempts are lost with their server may start, even where
// max_attempts is smaller: at least once is promised, and a task that brings its server down must not do so
// for ever.
const lostAttempts = 3

// afterAttempt is what becomes of a task when attempt a of it has ended. jitter is uniform in [0, 1).
func afterAttempt(t *dts.Task, a *dts.Attempt, retryable bool, retryAfter time.Duration, jitter float64) *dts.Task {
	n := *t
	n.Attempts, n.ResponseStatus, n.ExitCode, n.LastError = a.Number, a.HTTPStatus, a.ExitCode, a.Error
	n.NextAttemptAt = time.Time{}
	again := func(delay time.Duration) {
		n.Status = dts.Pending
		n.NextAttemptAt = dts.Micros(a.CompletedAt.Add(delay))
		n.RunAt = n.NextAttemptAt
	}
	finish := func(s dts.Status) {
		n.Status, n.CompletedAt = s, a.CompletedAt
	}
	switch a.State {
	case dts.AttemptSuccess:
		n.LastError = ""
		finish(dts.Success)
	case dts.AttemptCancelled:
		finish(dts.Cancelled)
	case dts.AttemptLost:
		switch {
		case t.Delivery == dts.AtMostOnce:
			n.LastError = "lost"
			finish(dts.Failed)
		case a.Number < max(t.MaxAttempts, lostAttempts):
			again(0)
		default:
			finish(dts.Failed)
		}
	default:
		if !retryable || a.Number >= t.MaxAttempts || t.Delivery == dts.AtMostOnce {
			finish(dts.Failed)
		} else {
			again(t.Retry.Delay(a.Number, jitter, retryAfter))
		}
	}
	return &n
}
