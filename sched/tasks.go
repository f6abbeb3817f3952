package sched

import (
	"context"
	"time"

	"dts"
)

// ModifyTask changes a pending task.
func (s *Scheduler) ModifyTask(ctx context.Context, tenant, id string, p dts.TaskPatch) (*dts.Task, error) {
	return s.change(ctx, tenant, id, dts.Modify, func(old *dts.Task) (dts.Change, error) {
		if old.Unreadable != "" {
			return dts.Change{}, dts.Errorf(dts.ErrConflict, "%s; cancel or delete the task, and create it anew", old.Unreadable)
		}
		if old.RunStarted() {
			return dts.Change{}, dts.Errorf(dts.ErrConflict, "the run has started: what it does can be changed only before; modify its steps")
		}
		n, err := p.Apply(old, s.clock.now())
		if err != nil {
			return dts.Change{}, err
		}
		if err := s.refuseBackup(&n.Spec); err != nil {
			return dts.Change{}, err
		}
		n.MaxAttempts = max(n.MaxAttempts, old.Attempts+1)
		return dts.Change{Old: old, New: n}, nil
	})
}

// DoTask applies a verb other than modify. Of a deleted task it returns what it was.
func (s *Scheduler) DoTask(ctx context.Context, tenant, id string, v dts.Verb, actor string) (*dts.Task, error) {
	t, err := s.change(ctx, tenant, id, v, func(old *dts.Task) (dts.Change, error) {
		if concernsRun(old, v) {
			return dts.Change{}, errOfRun
		}
		effect, err := v.Do(old.Status)
		if err != nil {
			return dts.Change{}, err
		}
		return s.effect(old, effect, actor), nil
	})
	if err == errOfRun {
		return s.doRun(ctx, tenant, id, v, actor)
	}
	return t, err
}

// pausedFor is how far ahead the run_at of a paused task is: as far as a time can be. It is out of the loop's sight until
// somebody resumes it.
const pausedFor = dts.FutureAllowed

// effect makes the change that an effect means; the zero Change where there is nothing to do.
func (s *Scheduler) effect(old *dts.Task, effect dts.Effect, actor string) dts.Change {
	now := dts.Micros(s.clock.now())
	n := *old
	c := dts.Change{Old: old, New: &n}
	planned := old.Origin == dts.OriginSchedule && old.Status == dts.Pending && old.Attempts == 0
	paused := old.Status == dts.Pending && old.WaitsFor == dts.ReasonPaused
	if paused {
		n.RunAt = old.EligibleAt() // not that of the pause, whatever becomes of it
	}
	switch effect {
	case dts.SetCancel:
		n.Status, n.CompletedAt, n.LastError, n.WaitsFor = dts.Cancelled, now, "cancelled by "+actor, ""
		n.Unresolved = 0
		if planned {
			c.Skip = skipOf(old, dts.ReasonRemoved, "cancelled by "+actor)
		}
	case dts.SetSuccess:
		n.Status, n.CompletedAt, n.LastError, n.WaitsFor = dts.Success, now, "force-completed by "+actor, ""
		n.Unresolved = 0
	case dts.Requeue:
		n.Status, n.SkipReason = dts.Pending, ""
		n.CompletedAt, n.MissAt = time.Time{}, time.Time{}
		n.MaxAttempts = max(old.MaxAttempts, old.Attempts+1)
		n.RunAt, n.NextAttemptAt = now, now
		if n.ExpiresAt.Before(now) {
			n.ExpiresAt = time.Time{} // asked for by hand: it may run
		}
	case dts.FireNow:
		n.RunAt, n.MissAt, n.WaitsFor = now, time.Time{}, ""
		if now.Before(n.DueAt) {
			n.DueAt = now
		}
		if old.Attempts > 0 {
			n.NextAttemptAt = now
		}
		n.Moved = n.RecurringTaskID != ""
		if n.Unresolved > 0 {
			n.Unresolved, n.ResolvedAt = 0, now // whatever it depends on
		}
	case dts.Suspend:
		if paused {
			return dts.Change{}
		}
		n.RunAt, n.MissAt, n.WaitsFor = dts.Micros(now.Add(pausedFor)), time.Time{}, dts.ReasonPaused
		n.Moved = n.RecurringTaskID != "" // somebody has decided about it: a new plan leaves it alone
	case dts.Unsuspend:
		if !paused {
			return dts.Change{}
		}
		n.WaitsFor = ""
		switch { // how long it was paused is nobody's lateness
		case n.RunAt.After(now):
		case old.Attempts > 0:
			n.RunAt, n.NextAttemptAt = now, now
		default:
			n.RunAt, n.DueAt = now, now
		}
	case dts.Remove:
		c.New = nil
		if planned {
			c.Skip = skipOf(old, dts.ReasonRemoved, "removed by "+actor)
		}
	case dts.Nothing:
		c = dts.Change{}
	}
	return c
}

// change runs a verb: it holds the task, decides, writes, and gives the task back.
func (s *Scheduler) change(ctx context.Context, tenant, id string, v dts.Verb, decide func(old *dts.Task) (dts.Change, error)) (t *dts.Task, err error) {
	found, err := s.o.Store.Task(ctx, tenant, id)
	if err != nil { // do not hold what is not there, or another tenant's
		return nil, err
	}
	if !s.responsible(found) {
		return nil, notMine("task", id)
	}
	running, err := s.hold(ctx, id)
	if err == nil && len(running) > 0 && found.Status.Terminal() {
		if err = s.recorded(ctx, id); err == nil {
			running, err = s.hold(ctx, id)
		}
	}
	if err != nil {
		return nil, err
	}
	if len(running) > 0 {
		return s.onRunning(ctx, tenant, id, v)
	}
	changed := map[string]*dts.Task{}
	defer func() {
		if unsettled(err) {
			s.settle(nil, []string{id})
			return
		}
		s.release([]string{id}, changed)
	}()
	old, err := s.o.Store.Task(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	if old.Status == dts.Running || !s.holds(old.Shard) {
		return nil, notMine("task", id) // it runs at another server, or has run here until now
	}
	if v == dts.Modify {
		if _, err := v.Do(old.Status); err != nil {
			return nil, err
		}
	}
	c, err := decide(old)
	if err != nil {
		return nil, err
	}
	if c.Old == nil {
		return old, nil
	}
	if ctx, err = begun(ctx); err != nil {
		return nil, err
	}
	if s.unclaim(c.New); c.DependsOn != nil || c.Undepend != "" {
		c.New.PickedAt = time.Time{} // the store says whether it may start
	}
	if err := s.o.Store.Change(ctx, s.fence(), []dts.Change{c}, s.clock.now()); err != nil {
		if dup := s.duplicated(ctx, c, err); dup != nil {
			return nil, dup
		}
		return nil, s.changedMeanwhile(err, "task", id, old.Shard)
	}
	s.recall(ctx, c)
	if c.DependsOn != nil || c.Undepend != "" {
		if c.New, err = s.o.Store.Task(ctx, tenant, id); err != nil {
			return nil, &dts.Error{Code: dts.ErrUnknown, Message: "the dependencies were changed, but what that has led to could not be read", Err: err}
		}
	}
	return s.changed(c, changed), nil
}

// unclaim frees a changed task of its old claim, and claims it anew if it is to run at once.
func (s *Scheduler) unclaim(t *dts.Task) {
	if t == nil {
		return
	}
	t.PickedAt = time.Time{}
	if t.Status == dts.Pending {
		s.claimNow(t)
	}
}

// changed notes a change that was written, for release, and publishes it.
func (s *Scheduler) changed(c dts.Change, m map[string]*dts.Task) *dts.Task {
	typ, t := dts.EventChanged, c.New
	if t == nil {
		m[c.Old.ID] = nil
		typ, t = dts.EventDeleted, c.Old
	} else {
		mine := *t
		m[t.ID] = &mine
	}
	if c.Skip != nil {
		s.m.skipped.Inc()
	}
	s.bus.publish(taskEvent(typ, t, s.clock.now()))
	return t
}

// responsible reports whether this server decides about a task: it holds the shard, or runs the task.
func (s *Scheduler) responsible(t *dts.Task) bool {
	if t.Status == dts.Running && t.Node != "" {
		return t.Node == s.o.Node.ID
	}
	return s.holds(t.Shard)
}

func (s *Scheduler) changedMeanwhile(err error, what, id string, shard int) error {
	if s.o.Refused(err) && !s.alone() {
		f := s.fence()
		if s.awaitFence(s.ctx, f); !s.holds(shard) || s.fence().Term(shard) != f.Term(shard) {
			return notMine(what, id)
		}
	}
	if s.o.Refused(err) {
		e := dts.Errorf(dts.ErrConflict, "the %s %s has changed in the meantime; look at it and try again", what, id)
		e.Err = err
		return e
	}
	return err
}

// recorded waits until the loop knows of the end of a run that the store has already.
func (s *Scheduler) recorded(ctx context.Context, id string) error {
	known := make(chan struct{})
	s.in.post(func(l *loop) {
		if it := l.items[id]; it != nil && it.state == recording {
			it.waiters = append(it.waiters, func() { close(known) })
			return
		}
		close(known)
	})
	select {
	case <-known:
		return nil
	case <-s.loopDone:
		return errStopped
	case <-ctx.Done():
		return dts.Errorf(dts.ErrUnavailable, "the request was given up before it was done: %w", ctx.Err())
	}
}

// onRunning does a verb to a task that a runner has: a cancel kills it and waits for the end.
func (s *Scheduler) onRunning(ctx context.Context, tenant, id string, v dts.Verb) (*dts.Task, error) {
	if effect, err := v.Do(dts.Running); err != nil || effect != dts.Kill {
		return nil, err
	}
	ended := make(chan struct{})
	s.in.post(func(l *loop) {
		it := l.items[id]
		if it == nil || it.state != running && it.state != recording {
			close(ended)
			return
		}
		it.waiters = append(it.waiters, func() { close(ended) })
		if it.state == running {
			it.run.cancel(dts.ErrRunCancelled)
		}
	})
	select {
	case <-ended:
		t, err := s.o.Store.Task(ctx, tenant, id)
		if err != nil {
			return nil, err
		}
		if t.Status != dts.Pending {
			if _, err := v.Do(t.Status); err != nil { // it ended by itself before
				return nil, err
			}
			return t, nil
		}
		// It failed by itself just then and waits for its next attempt.
		return s.DoTask(ctx, tenant, id, v, "")
	case <-s.loopDone:
		return nil, errStopped
	case <-ctx.Done():
		return nil, dts.Errorf(dts.ErrUnavailable, "the run is being stopped, but has not ended yet: %w", ctx.Err())
	}
}
