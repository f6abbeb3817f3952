package sim_test

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"dts"
)

// Run is the target. It keeps its own log of starts and holds what a start must never do.
func (p *proc) Run(ctx context.Context, job dts.Job) dts.Outcome {
	p.step("before the target")
	w, d, t := p.w, p.w.db, job.Task
	lost := dts.Outcome{State: dts.AttemptLost, Error: "lost"}
	plan := w.behaviour(t, job.Number)
	d.mu.Lock()
	if p.gone {
		d.mu.Unlock()
		return lost
	}
	w.checkStart(p, t, job.Number)
	r := &liveRun{task: t, number: job.Number, from: time.Now()}
	p.live[t.ID] = r
	if t.TargetType == dts.Command {
		w.groups++
		r.process = &dts.Process{PGID: w.groups, StartTime: 1, BootID: "boot-1"}
	}
	d.mu.Unlock()
	if r.process != nil {
		job.Started(*r.process)
	}

	out := plan.out
	limit := min(plan.takes, t.Timeout())
	if plan.takes > t.Timeout() {
		out = dts.Outcome{State: dts.AttemptTimedOut, Retryable: true, Error: "timeout"}
	}
	if limit > 0 {
		select {
		case <-time.After(limit):
		case <-p.dead:
			return lost
		case <-ctx.Done():
			if out = lost; context.Cause(ctx) == dts.ErrRunCancelled {
				out = dts.Outcome{State: dts.AttemptCancelled, Error: "cancelled"}
			}
		}
	}
	d.mu.Lock()
	if p.gone {
		d.mu.Unlock()
		return lost
	}
	delete(p.live, t.ID)
	w.log(w.name(t), "attempt %d ended %s", job.Number, out.State)
	d.mu.Unlock()
	p.step("after the target")
	return out
}

// conduct is what a target does with an attempt.
type conduct struct {
	takes time.Duration
	out   dts.Outcome
}

// behaviour draws from the seed and from what is run, so that it does not depend on the order of other things.
func (w *world) behaviour(t *dts.Task, number int) conduct {
	h := fnv.New64a()
	_, _ = h.Write([]byte(w.name(t))) // never fails
	r := rand.New(rand.NewPCG(w.seed, h.Sum64()+uint64(number)))
	var c conduct
	switch n := r.IntN(20); {
	case n < 10:
	case n < 13:
		c.takes = time.Duration(r.Int64N(int64(50 * time.Millisecond)))
	case n < 19:
		c.takes = time.Duration(r.Int64N(int64(8 * time.Second)))
	default:
		c.takes = time.Hour // until its timeout
	}
	c.out.State = dts.AttemptSuccess
	if r.IntN(3) == 0 {
		c.out = dts.Outcome{State: dts.AttemptFailed, Retryable: r.IntN(4) > 0, Error: "no"}
		if r.IntN(5) == 0 {
			c.out.RetryAfter = time.Duration(r.IntN(15)) * time.Second
		}
	}
	if r.IntN(4) == 0 {
		c.out.Output = dts.Output{Head: []byte("out"), Total: 3}
	}
	return c
}

// slack is how long after trouble a start may still be late: the portable timer sees a step of the clock after at
// most 30 s, and the store is asked again each half second.
const slack = 35 * time.Second

// checkStart holds what a start must never do. The database's mutex is held.
func (w *world) checkStart(p *proc, t *dts.Task, number int) {
	n, name, wall := w.of(t.ID), w.name(t), w.wall()
	n.starts++
	w.tally[starts]++
	w.log(name, "attempt %d starts", number)
	a := attempt{t.ID, number, p.epoch}
	if w.started[a] {
		w.violate("once", "attempt %d of %s started twice in one process", number, name)
	}
	w.started[a] = true
	if p.live[t.ID] != nil {
		w.violate("once", "two attempts of %s run at a time", name)
	}
	for _, o := range w.orphans {
		if o.task.ID == t.ID {
			w.violate("I10", "%s runs again while what an earlier process started still runs", name)
		}
	}
	if t.Delivery == dts.AtMostOnce && n.starts > 1+n.requeues {
		w.violate("I9", "%s is AT_MOST_ONCE and starts for the %dth time", name, n.starts)
	}
	if n.cancelled {
		w.violate("cancel", "%s starts after a cancel was acknowledged", name)
	}
	if w.newest.Before(t.RunAt) { // a clock that was set back has shown that time already
		w.violate("early", "%s starts %v before its time", name, t.RunAt.Sub(wall))
	}
	first := p.writesFirst(t) // its start was decided on before it was written
	if !first && !t.ExpiresAt.IsZero() && wall.After(t.ExpiresAt) && n.flight == 0 {
		w.violate("expired", "%s starts %v after expires_at", name, wall.Sub(t.ExpiresAt))
	}
	if !first && !p.stopAt.IsZero() && time.Now().After(p.stopAt) {
		w.violate("stop", "%s starts %v after the server began to stop", name, time.Since(p.stopAt))
	}
	w.checkStored(p, t, number, n, wall)
	w.checkRetry(t, number, n)
	w.checkLate(p, t, number, n, wall)
	if t.RecurringTaskID != "" {
		w.checkOccurrence(p, t, number, n)
	}
}

// writesFirst reports whether a start is on the disk before it happens: that of a task which runs at most once, and of one
// of which an earlier process may have died.
func (p *proc) writesFirst(t *dts.Task) bool {
	return t.Delivery == dts.AtMostOnce || t.EligibleAt().Before(p.began)
}

// checkStored compares a start with what is stored.
func (w *world) checkStored(p *proc, t *dts.Task, number int, n *note, wall time.Time) {
	name, s, first := w.name(t), w.db.tasks[t.ID], p.writesFirst(t)
	if n.flight > 0 {
		return // a request may be changing it
	}
	switch {
	case s == nil && n.deletes > 0:
		w.violate("stored", "%s starts though it was deleted", name)
	case s == nil:
		w.violate("stored", "%s starts and is not stored", name)
	case t.Delivery == dts.AtMostOnce && (s.Status != dts.Running || s.Attempts != number):
		w.violate("I9", "%s is AT_MOST_ONCE and attempt %d starts before that is stored: it is %s with %d attempts", name, number, s.Status, s.Attempts)
	case first && (s.Status != dts.Running || s.Attempts != number), !first && (s.Status != dts.Pending || s.Attempts != number-1):
		w.violate("stored", "attempt %d of %s starts, and stored it is %s with %d attempts", number, name, s.Status, s.Attempts)
	case w.newest.Before(s.RunAt):
		w.violate("early", "%s starts %v before the time that is stored", name, s.RunAt.Sub(wall))
	}
}

// checkRetry holds the number of attempts and the delays between them.
func (w *world) checkRetry(t *dts.Task, number int, n *note) {
	s := w.db.tasks[t.ID]
	if number == 1 || s == nil || n.touched {
		return
	}
	name := w.name(t)
	list := w.db.attempts[t.ID]
	if len(list) < number-1 {
		w.violate("attempts", "attempt %d of %s starts and attempt %d is not stored", number, name, number-1)
		return
	}
	last := list[number-2]
	if number > s.MaxAttempts && (last.State != dts.AttemptLost || number > 3) {
		w.violate("attempts", "attempt %d of %s starts and max_attempts is %d", number, name, s.MaxAttempts)
	}
	if last.State == dts.AttemptFailed || last.State == dts.AttemptTimedOut {
		least := delayOf(&t.Retry, number-1)
		if b := w.behaviour(t, number-1); last.State == dts.AttemptFailed {
			least = max(least, b.out.RetryAfter)
		}
		if waited := w.wall().Sub(last.CompletedAt); waited < least && !w.stepped {
			w.violate("retry", "attempt %d of %s starts %v after the one before; the delay is at least %v", number, name, waited, least)
		} else if !w.stepped && s.NextAttemptAt.Sub(last.CompletedAt) > max(least*3, 15*time.Second) {
			w.violate("retry", "attempt %d of %s waits for %v; the delay is %v", number, name, s.NextAttemptAt.Sub(last.CompletedAt), least)
		}
	}
}

// delayOf is the shortest delay that a retry policy asks for after attempt n.
func delayOf(p *dts.Retry, n int) time.Duration {
	ms := p.BaseDelayMS
	switch p.Backoff {
	case dts.Exponential:
		ms = min(ms<<(n-1), p.MaxDelayMS)
	case dts.List:
		ms = p.DelaysMS[min(n, len(p.DelaysMS))-1]
	}
	if p.Jitter == nil || *p.Jitter {
		ms /= 2
	}
	return time.Duration(ms) * time.Millisecond
}

// checkLate holds that nothing is late while nothing is wrong: the simulated machine takes no time.
func (w *world) checkLate(p *proc, t *dts.Task, number int, n *note, wall time.Time) {
	eligible := t.RunAt
	if t.CreatedAt.After(eligible) {
		eligible = t.CreatedAt
	}
	if at := n.touchedAt.Add(w.skew); at.After(eligible) {
		eligible = at
	}
	since := eligible.Add(-w.skew).Add(-slack)
	if w.weather.bad() || since.Before(w.calmFrom) || since.Before(w.busyUntil) || !w.roomy || n.flight > 0 {
		return
	}
	w.tally[punctual]++
	if late := wall.Sub(eligible); late > time.Millisecond {
		w.violate("late", "attempt %d of %s starts %v late and nothing was wrong", number, w.name(t), late)
	}
}

// checkOccurrence holds what a start of an occurrence must not do.
func (w *world) checkOccurrence(p *proc, t *dts.Task, number int, n *note) {
	s, name := w.plans[t.RecurringTaskID], w.name(t)
	if s == nil || t.Origin != dts.OriginSchedule || number > 1 || n.touched {
		return
	}
	if !s.pausedAt.IsZero() && w.roomy && !w.stepped && t.ScheduledAt.After(s.pausedAt) {
		w.violate("pause", "%s starts while it is paused", name)
	}
	if !s.endedAt.IsZero() && t.ScheduledAt.After(s.endedAt) {
		w.violate("cancel", "%s starts after its recurring task was cancelled", name)
	}
	if t.Overlap != dts.OverlapSkip {
		return
	}
	for _, o := range p.live {
		if o.task.RecurringTaskID == t.RecurringTaskID && o.task.ID != t.ID && !w.abreast(o) && !w.later(p, t, o.task) {
			w.violate("overlap", "%s starts while %s runs", name, w.name(o.task))
		}
	}
	if w.roomy && !w.weather.bad() && time.Since(w.calmFrom) > slack && !w.busyUntil.After(time.Now()) && w.db.activeRuns(t.RecurringTaskID, t.ID) > 0 {
		w.violate("overlap", "%s starts while an earlier occurrence has not ended", name)
	}
}

// abreast reports whether a run started at this very instant, so that it may have been decided on after whatever starts
// now: nothing keeps a run that is asked for from starting. A retry had to be known, unless slots are few and the instant
// of what starts now has long passed.
func (w *world) abreast(r *liveRun) bool {
	if !r.from.Equal(time.Now()) {
		return false
	}
	if r.number == 1 || !w.roomy {
		return true
	}
	list := w.db.attempts[r.task.ID] // the attempt before may be of this instant as well
	return len(list) >= r.number-1 && list[r.number-2].CompletedAt.Equal(dts.Micros(w.wall()))
}

// later reports whether o, a run that was asked for, be it a trigger or a retry by hand, may have started while the
// start of t was being written first.
func (w *world) later(p *proc, t, o *dts.Task) bool {
	return p.writesFirst(t) && (o.Origin != dts.OriginSchedule || w.of(o.ID).touched)
}
