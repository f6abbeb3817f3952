package sched

import (
	"fmt"
	"strings"

	"dts"
)

// Workflows. A run is a task that makes no attempts. When it is due, one batch creates its steps and lets it depend on them;
// from then on it is PENDING with one attempt, like a task between two attempts, and so counts as active. When the last
// step has ended it is ready once more, and one change judges it. Whatever crashes in between, the store is before such a
// batch or after it, and both are states in which it goes on.

// runStep does what is next for the run of a workflow that is due.
func (l *loop) runStep(it *item) {
	s, t := l.s, it.task
	now := s.clock.now()
	if t.Attempts == 0 && !t.ExpiresAt.IsZero() && now.After(t.ExpiresAt) {
		l.skip(it, dts.ReasonExpired, expiredNote(t))
		return
	}
	it.state = deciding
	l.count(it, -1)
	if t.Attempts > 0 {
		s.wg.Go(func() { s.judgeRun(it) })
		return
	}
	l.addActive(it)
	queued := it.queued(now)
	s.wg.Go(func() {
		n := *t
		n.Attempts, n.WaitsFor, n.Node, n.QueuedUS = 1, "", s.o.Node.ID, queued.Microseconds()
		s.startRun(it, &n)
	})
}

// startRun creates the steps of a run, however long the store needs. n is the run as it becomes.
func (s *Scheduler) startRun(it *item, n *dts.Task) {
	t := it.task
	now := dts.Micros(s.clock.now())
	steps, err := t.StepTasks(now)
	if err != nil { // it was right when it was created; these rules are newer
		s.endRun(it, dts.Failed, err.Error())
		return
	}
	for _, step := range steps {
		s.queueRetry(step.TenantID, &step.Spec)
		step.MaxAttempts = step.Retry.MaxAttempts
	}
	late, met := max(now.Sub(t.EligibleAt()), 0).Microseconds(), !now.After(t.DueAt.Add(t.SLA()))
	n.StartedAt, n.LatenessUS, n.SLAMet = now, &late, &met
	tooLate := t.WarnLateSeconds > 0 && now.Sub(t.DueAt).Seconds() > t.WarnLateSeconds
	if tooLate {
		n.Warnings = warned(n.Warnings, dts.WarnLate)
	}
	s.o.Failpoint("before-start")
	err = s.persist("start a workflow", func() error { return s.o.Store.StartRun(s.ctx, s.fence(), t, n, steps) })
	switch {
	case err == nil:
		n.Unresolved = len(steps)
		s.m.scheduled.Add(float64(len(steps)))
		s.m.lateness.Observe(float64(late) / 1e6)
		if tooLate {
			s.m.warnings.WithLabelValues(string(dts.WarnLate)).Inc()
			e := taskEvent(dts.EventWarning, n, now)
			e.Warning = dts.WarnLate
			s.bus.publish(e)
		}
		e := taskEvent(dts.EventStarted, n, now)
		e.LatenessUS = late
		s.bus.publish(e)
		s.in.post(func(l *loop) { l.leaveRun(it) })
		s.takeNew(steps)
	case s.ctx.Err() != nil: // the scheduler ends
	default: // it is not what it was, or it was started by a write whose answer was lost
		ids := []string{t.ID}
		for _, step := range steps {
			ids = append(ids, step.ID)
		}
		s.in.post(func(l *loop) { l.leaveRun(it) })
		s.settle(ids, nil)
	}
}

// judgeRun ends a run whose steps have ended.
func (s *Scheduler) judgeRun(it *item) {
	t := it.task
	var steps []*dts.Task
	err := s.persist("read the steps of a workflow", func() (err error) {
		steps, err = s.o.Store.Steps(s.ctx, t.TenantID, t.ID)
		return err
	})
	if err != nil {
		return // the scheduler ends
	}
	if bad := badSteps(t, steps); bad != nil {
		s.endRun(it, dts.Failed, bad.String())
		return
	}
	s.endRun(it, dts.Success, "")
}

// endRun ends a run. It changes nothing where the run waits for a step again, because that was retried meanwhile.
func (s *Scheduler) endRun(it *item, status dts.Status, text string) {
	t := it.task
	now := s.clock.now()
	n := *t
	n.Status, n.CompletedAt, n.LastError, n.WaitsFor = status, dts.Micros(now), clean(text), ""
	if n.StartedAt.IsZero() {
		n.StartedAt = n.CompletedAt
	}
	c := dts.Change{Old: t, New: &n, Resolved: true}
	err := s.persist("end a workflow", func() error { return s.o.Store.Change(s.ctx, s.fence(), []dts.Change{c}, now) })
	switch {
	case err == nil:
		s.bus.publish(taskEvent(dts.EventFinished, &n, now))
		s.in.post(func(l *loop) { l.leaveRun(it) })
	case s.ctx.Err() != nil:
	default:
		s.in.post(func(l *loop) { l.leaveRun(it) })
		s.readAgain(t.ID)
	}
}

// leaveRun lets go of a run that waits for its steps, or has ended. The next occurrence may go, if the store says so.
func (l *loop) leaveRun(it *item) {
	l.endActive(it)
	l.leave(it)
	l.promote(it.task.RecurringTaskID)
}

// shortfall is the steps of a run that ended badly, in the order of the workflow.
type shortfall struct {
	total int
	steps []badStep
}

type badStep struct{ name, what, why string }

// badSteps returns the steps that keep a run from being a success; nil when there are none. What was skipped because of
// another step is that one's fault, or was meant to be.
func badSteps(run *dts.Task, steps []*dts.Task) *shortfall {
	w, err := run.Workflow()
	if err != nil {
		return &shortfall{steps: []badStep{{"", "its target_config cannot be read", err.Error()}}}
	}
	byName := make(map[string]*dts.Task, len(steps))
	for _, t := range steps {
		byName[t.Step] = t
	}
	v := &shortfall{total: len(w.Steps)}
	for i := range w.Steps {
		name := w.Steps[i].Name
		switch t := byName[name]; {
		case t == nil:
			v.steps = append(v.steps, badStep{name, "was deleted", ""})
		case badStatus(t):
			v.steps = append(v.steps, badStep{name, string(t.Status), t.LastError})
		}
	}
	if v.steps == nil {
		return nil
	}
	return v
}

// badStatus reports whether a step has ended in a way that fails its run.
func badStatus(t *dts.Task) bool {
	switch t.Status {
	case dts.Failed, dts.Cancelled:
		return true
	case dts.Skipped:
		return t.SkipReason != dts.ReasonDependency
	}
	return false
}

// String names the steps: "the step load FAILED: exit code 1", "2 of 5 steps did not succeed: load FAILED, report CANCELLED".
func (v *shortfall) String() string {
	const shown = 10
	if len(v.steps) == 1 {
		b := v.steps[0]
		text := strings.TrimSpace(fmt.Sprintf("the step %s %s", b.name, b.what))
		if b.why != "" {
			text += ": " + b.why
		}
		return text
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d steps did not succeed: ", len(v.steps), v.total)
	for i, s := range v.steps {
		if i == shown {
			fmt.Fprintf(&b, " and %d more", len(v.steps)-shown)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(s.name + " " + s.what)
	}
	return b.String()
}
