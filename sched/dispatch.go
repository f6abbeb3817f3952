package sched

import (
	"slices"
	"time"

	"dts"
	"dts/sched/lanes"
)

// due takes a claimed task whose instant has come, and decides the policies: blackouts, and those of its recurring task.
func (l *loop) due(it *item, now time.Time) {
	l.see(it, now)
	t := it.task
	planned := t.Origin == dts.OriginSchedule && t.Attempts == 0
	if t.WaitsFor == "" && !t.IsRun() { // else it was counted before it waited
		l.s.loads.arrived(t.TenantID, t.Queue, now)
	}
	switch {
	case t.Unreadable != "":
		l.setAside(it)
	case t.RunStarted():
		l.runStep(it) // its steps have ended: nothing keeps it from being judged
	case planned && !it.MissAt.IsZero() && it.MissAt.Before(now): // the machine slept, or the clock was stepped
		l.count(it, -1)
		l.miss(it)
	case planned && !t.Moved && t.WaitsFor != dts.ReasonOverlap && t.Line() == "" && l.isPaused(t.RecurringTaskID, t.ScheduledAt):
		l.skip(it, dts.ReasonPaused, l.paused[t.RecurringTaskID].Note)
	case it.flow.paused: // it was being read, or let go, when that began
		l.leaveUnstarted(it)
	case l.blackedOut(it, now):
	case overlapOf(t) != dts.OverlapAllow && t.Line() == "": // else it was decided before it stood in line
		l.overlap(it)
	case l.crowded(it):
	default:
		l.toReady(it, now)
	}
}

func (l *loop) toReady(it *item, now time.Time) {
	f := l.flowOf(it)
	if f.paused {
		l.leaveUnstarted(it)
		return
	}
	if it.task.IsRun() {
		if !l.blackedOut(it, now) { // one may have begun while it waited for the run before it
			l.runStep(it)
		}
		return
	}
	it.state = ready
	it.spot = l.pools[poolOf(it.TargetType)].ready.Push(laneOf(it), &f.of(it).ready, now, it)
}

// laneOf is the lane in which an item that is due waits.
func laneOf(it *item) lanes.Lane {
	if it.task.Attempts > 0 {
		return lanes.Retry
	}
	return [...]lanes.Lane{lanes.High, lanes.Medium, lanes.Low}[it.rank()]
}

// dispatch gives free slots to ready tasks.
func (l *loop) dispatch(p *pool, now time.Time) {
	l.unsate(p)
	for l.vacant(p, now) && l.unwritten < maxUnwritten && !l.s.draining.Load() && (l.s.o.Halted == nil || !l.s.o.Halted()) && l.s.leased() {
		it, ok := l.next(p, now)
		if !ok {
			return
		}
		it.spot = nil
		switch t := it.task; {
		case !t.ExpiresAt.IsZero() && now.After(t.ExpiresAt):
			l.skip(it, dts.ReasonExpired, expiredNote(t))
		case l.blackedOut(it, now): // it began while the task waited for a slot
		case overlapOf(t) != dts.OverlapAllow && len(l.active[t.RecurringTaskID]) > 0 && !slices.Contains(l.active[t.RecurringTaskID], it):
			l.collide(it)
		case l.crowded(it):
		case l.gated(it, now):
		default:
			l.start(it, now)
		}
	}
}

// skip makes a task SKIPPED and records its instant as such, however long the store needs.
func (l *loop) skip(it *item, reason dts.Reason, note string) {
	s := l.s
	it.state = deciding
	l.count(it, -1)
	l.endActive(it) // where it waited for a slot
	now := s.clock.now()
	c := skipChange(it.task, reason, note, now)
	n := c.New
	s.wg.Go(func() {
		err := s.persist("skip task", func() error { return s.o.Store.Change(s.ctx, s.fence(), []dts.Change{c}, now) })
		switch {
		case err == nil:
			s.m.skipped.Inc()
			s.bus.publish(taskEvent(dts.EventSkipped, n, now))
		case s.o.Refused(err) && s.alone():
			s.log.Error("a skip was refused", "task", n.ID, "err", err)
		}
		s.in.post(func(l *loop) { l.leave(it) })
	})
}

func skipOf(t *dts.Task, reason dts.Reason, note string) *dts.Skip {
	return &dts.Skip{TenantID: t.TenantID, RecurringTaskID: t.RecurringTaskID,
		From: t.ScheduledAt, To: t.ScheduledAt, Count: 1, Reason: reason, Note: note}
}

// persist repeats an access until it succeeds, is refused, or the scheduler ends. Its error says that it was
// not done.
func (s *Scheduler) persist(op string, write func() error) error {
	for {
		err := write()
		if err == nil || s.o.Refused(err) || s.ctx.Err() != nil {
			return err
		}
		s.logStore(op, err)
		select {
		case <-s.ctx.Done():
			return err
		case <-time.After(retryStore):
		}
	}
}

// start hands a task to its runner.
func (l *loop) start(it *item, now time.Time) {
	t := it.task
	it.state = running
	l.begins(it)
	l.count(it, -1)
	l.addActive(it)
	r := newRun(l.s, t, l.terms[it.Shard])
	r.queued = it.queued(now)
	it.run = r
	l.takeSlots(it, r)
	l.enteredSlot(it, now)
	l.s.wg.Add(1)
	l.s.workers.run(func() {
		defer l.s.wg.Done()
		l.s.execute(it, r)
	})
}

// ended frees the slot of a run. Its result is on its way to the disk.
func (l *loop) ended(it *item) {
	l.stops(it)
	l.leftGates(it)
	it.state = recording
	l.unwritten++
	l.checkIdle()
}

// unstart takes back a task whose start could not be written: it has not run, and is still claimed.
func (l *loop) unstart(it *item) {
	l.stops(it)
	l.leftGates(it)
	l.endActive(it)
	l.freeSlots(it)
	stale := it.run.stale
	it.run = nil
	if it.lost || stale {
		if l.leave(it); stale && !it.lost {
			l.s.readAgain(it.TaskID)
		}
		l.checkIdle()
		return
	}
	now := l.s.clock.now()
	again := *it.task // what was to be written may still be on its way, and refers to the other one
	again.RunAt = now.Add(retryStore)
	it.seen = time.Time{}
	unstarted(&again)
	it.task = &again
	l.count(it, 1)
	l.toClaimed(it, now)
	l.release(it)
	l.checkIdle()
}

// readAgain takes up a task as it is in the store, in a while: that this server has lost its shard, it may not know yet.
func (s *Scheduler) readAgain(id string) {
	s.wg.Go(func() {
		select {
		case <-s.ctx.Done():
		case <-time.After(retryStore):
			s.settle([]string{id}, nil)
		}
	})
}

// written is called when the result of a run is on the disk: the task is over, or waits for its next attempt. nil:
// the result was refused.
func (l *loop) written(it *item, after *dts.Task) {
	l.unwritten--
	l.endActive(it)
	l.freeSlots(it)
	if it.lost || after == nil {
		l.leave(it)
	} else if l.drop(it); after.Status == dts.Pending {
		l.add(after.Entry(), nil)
	}
	l.checkIdle()
}

// drain closes idle when nothing runs and nothing waits to be written.
func (l *loop) drain(idle chan struct{}) {
	l.idle = idle
	l.checkIdle()
}

func (l *loop) checkIdle() {
	if l.pools[0].running > 0 || l.pools[1].running > 0 {
		return
	}
	if l.allEnded != nil {
		close(l.allEnded)
		l.allEnded = nil
	}
	if l.idle != nil && l.unwritten == 0 {
		close(l.idle)
		l.idle = nil
	}
}

// cancelAll stops every run because the server stops, and closes ended when none is left. nil: nobody waits for that.
func (l *loop) cancelAll(ended chan struct{}) {
	l.allEnded = ended
	defer l.checkIdle()
	for _, it := range l.items {
		if it.state == running {
			it.run.cancel(dts.ErrRunLost)
		}
	}
}
