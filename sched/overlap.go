package sched

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"dts"
)

// Overlap: what happens when an occurrence comes due while an earlier one of the same recurring task is active. It is
// decided at the instant, by whoever holds the shard that all of them share.

// bufferCheck is how often waiting occurrences look whether the store still has an active one, where this server runs
// none: it may be between two attempts, or run at the server that held the shard before.
const bufferCheck = 5 * time.Second

// buffer is the occurrences of one recurring task that wait for the active one to end: in the order of their instants, but
// those of a backfill after the others, so that a long one does not hold up the schedule.
type buffer struct {
	items  []*item
	asking bool // the store is being asked whether one is active
}

// overlapOf is the policy that decides about a task that is due. A retry belongs to a run that is active already; what
// is run by hand runs beside it; and a backfill runs one after another, however many there are.
func overlapOf(t *dts.Task) dts.OverlapPolicy {
	switch {
	case t.Overlap == "" || t.Overlap == dts.OverlapAllow || t.Attempts > 0 || t.Origin == dts.OriginTrigger:
		return dts.OverlapAllow
	case t.Origin == dts.OriginBackfill:
		return dts.OverlapBufferAll
	}
	return t.Overlap
}

// exclusive reports whether the runs of a task count as active for later occurrences.
func exclusive(t *dts.Task) bool { return t.Overlap != "" && t.Overlap != dts.OverlapAllow }

// overlap decides about an occurrence that is due and may not run beside another one.
func (l *loop) overlap(it *item) {
	rec := it.task.RecurringTaskID
	asked, asking := l.asked[rec]
	switch {
	case it.task.WaitsFor == dts.ReasonOverlap: // it has waited before this server had it: it keeps its place
		l.await(it)
	case asking:
		it.state = deciding
		l.asked[rec] = append(asked, it)
	case len(l.active[rec]) > 0 || l.buffers[rec] != nil:
		l.collide(it)
	default: // an earlier one may be between two attempts: only the store knows
		it.state = deciding
		l.asked[rec] = []*item{it}
		l.askActive(rec, func(l *loop, active bool) { l.answered(rec, active) })
	}
}

// answered decides about the occurrences of a recurring task for which the store was asked whether another one is
// active, in the order of their instants.
func (l *loop) answered(rec string, active bool) {
	list := l.asked[rec]
	delete(l.asked, rec)
	slices.SortStableFunc(list, func(a, b *item) int { return a.task.ScheduledAt.Compare(b.task.ScheduledAt) })
	for _, it := range list {
		switch {
		case it.lost:
			l.count(it, -1)
			l.leave(it)
			continue
		case active || len(l.active[rec]) > 0 || l.buffers[rec] != nil:
			l.collide(it)
		default:
			l.toReady(it, l.s.clock.now()) // of several the first one starts, and the next one meets it there
		}
		l.release(it)
	}
}

// askActive asks the store whether an occurrence of a recurring task is active, or waits for a slot, and calls then on
// the loop; not at all when the scheduler ends meanwhile.
func (l *loop) askActive(recurring string, then func(l *loop, active bool)) {
	s := l.s
	s.wg.Go(func() {
		n := 0
		err := s.persist("count active runs", func() (err error) {
			n, err = s.o.Store.ActiveOrInLine(s.ctx, recurring)
			return err
		})
		if err == nil {
			s.in.post(func(l *loop) { then(l, n > 0) })
		}
	})
}

// collide applies the policy to an occurrence that is due while another one is active, or waits before it.
func (l *loop) collide(it *item) {
	t := it.task
	waiting := 0 // of those that the policy counts
	if b := l.buffers[t.RecurringTaskID]; b != nil {
		for _, other := range b.items {
			if other.task.Origin != dts.OriginBackfill {
				waiting++
			}
		}
	}
	switch policy := overlapOf(t); {
	case policy == dts.OverlapSkip:
		l.skip(it, dts.ReasonOverlap, "")
	case policy == dts.OverlapBufferOne && waiting > 0:
		l.skip(it, dts.ReasonOverlap, "another one waits already")
	case policy == dts.OverlapBufferAll && waiting >= dts.MaxBuffered && t.Origin != dts.OriginBackfill:
		l.skip(it, dts.ReasonOverlap, "as many as may wait, wait already")
	case policy == dts.OverlapCancel:
		l.supersede(it)
		l.await(it)
	default:
		l.await(it)
	}
}

// supersede stops the active occurrence of a recurring task in favour of a newer one, and skips those that waited for
// its end, or for a slot, before. What is left of a backfill goes on waiting: it was asked for.
func (l *loop) supersede(it *item) {
	rec := it.task.RecurringTaskID
	if b := l.buffers[rec]; b != nil {
		for _, older := range slices.Clone(b.items) {
			if older.state == buffered && older.task.Origin != dts.OriginBackfill {
				l.unbuffer(older)
				l.count(older, 1)
				l.skip(older, dts.ReasonOverlap, "a newer one took its place")
			}
		}
	}
	var starting []string
	for _, run := range slices.Clone(l.active[rec]) {
		switch {
		case run.state == running:
			run.run.cancel(dts.ErrRunReplaced)
		case run.task.Origin == dts.OriginBackfill:
		case run.task.IsRun():
			starting = append(starting, run.TaskID) // its steps are being made: it is not to be told from one that waits
		case run.state == ready:
			l.pools[poolOf(run.TargetType)].ready.Remove(run.spot)
			run.spot = nil
			l.skip(run, dts.ReasonOverlap, "a newer one took its place")
		case run.state == parked:
			l.unpark(run)
			l.skip(run, dts.ReasonOverlap, "a newer one took its place")
		}
	}
	s, tenant := l.s, it.task.TenantID
	s.wg.Go(func() { s.cancelBetween(tenant, rec, it.TaskID, starting) })
}

// cancelBetween cancels occurrences of a recurring task that are between two attempts, and those that are starting. Those that
// run here are being stopped; one that runs at the server that held the shard before is waited for.
func (s *Scheduler) cancelBetween(tenant, recurring, except string, starting []string) {
	page, err := s.o.Store.Tasks(s.ctx, dts.TaskFilter{TenantID: tenant, RecurringTaskID: recurring, Statuses: []dts.Status{dts.Pending}, Limit: bulkChunk})
	if err != nil {
		s.logStore("read what is to be replaced", err)
		return
	}
	for _, t := range page.Items {
		if t.Attempts == 0 && t.Line() == "" && !slices.Contains(starting, t.ID) || t.ID == except {
			continue
		}
		if _, err := s.DoTask(s.ctx, tenant, t.ID, dts.Cancel, "the next run, which was due"); err != nil && s.ctx.Err() == nil {
			s.log.Warn("a run could not be replaced", "task", t.ID, "err", err)
		}
	}
}

// await lets an occurrence wait until no other one is active. That it waits, and that it will run however late, is
// written first.
func (l *loop) await(it *item) {
	l.endTurn(it)
	rec := it.task.RecurringTaskID
	l.count(it, -1)
	b := l.buffers[rec]
	if b == nil {
		b = &buffer{}
		l.buffers[rec] = b
		if len(l.buffers) == 1 {
			l.bufferAt = l.s.clock.now().Add(bufferCheck)
		}
	}
	i, _ := slices.BinarySearchFunc(b.items, it, func(a, b *item) int {
		if back := a.task.Origin == dts.OriginBackfill; back != (b.task.Origin == dts.OriginBackfill) {
			if back {
				return 1
			}
			return -1
		}
		return cmp.Or(a.task.ScheduledAt.Compare(b.task.ScheduledAt), strings.Compare(a.TaskID, b.TaskID))
	})
	b.items = slices.Insert(b.items, i, it)
	if it.task.WaitsFor == dts.ReasonOverlap && it.task.MissAt.IsZero() {
		it.state = buffered
		l.promote(rec)
		return
	}
	n := *it.task
	n.WaitsFor, n.MissAt, n.PickedAt = dts.ReasonOverlap, time.Time{}, time.Time{}
	l.rewrite(it, &n, func(l *loop, ok bool) {
		if !ok {
			l.unbuffer(it)
			l.leave(it)
			return
		}
		it.task, it.MissAt, it.state = &n, time.Time{}, buffered
		l.release(it)
		l.promote(rec)
	})
}

// rewrite writes the new form of a task that the loop has, however long the store needs. Then it calls then; not ok: it was
// refused, or the shard was lost meanwhile.
func (l *loop) rewrite(it *item, n *dts.Task, then func(l *loop, ok bool)) {
	it.state = deciding
	s, c, now := l.s, dts.Change{Old: it.task, New: n}, l.s.clock.now()
	s.wg.Go(func() {
		err := s.persist("let a task wait", func() error { return s.o.Store.Change(s.ctx, s.fence(), []dts.Change{c}, now) })
		if err != nil && s.ctx.Err() != nil {
			return // the scheduler ends
		}
		if err == nil {
			s.bus.publish(taskEvent(dts.EventChanged, n, now))
		} else if s.alone() {
			s.log.Error("a wait was refused", "task", n.ID, "err", err)
		}
		s.in.post(func(l *loop) { then(l, err == nil && !it.lost) })
	})
}

// unbuffer takes an occurrence out of those that wait.
func (l *loop) unbuffer(it *item) {
	rec := it.task.RecurringTaskID
	b := l.buffers[rec]
	if b == nil {
		return
	}
	if i := slices.Index(b.items, it); i >= 0 {
		b.items = slices.Delete(b.items, i, i+1)
	}
	if len(b.items) == 0 && !b.asking {
		delete(l.buffers, rec)
	}
}

// promote lets the first waiting occurrence of a recurring task go when none is active any more.
func (l *loop) promote(rec string) {
	b := l.buffers[rec]
	if b == nil || b.asking || len(l.active[rec]) > 0 || len(b.items) == 0 {
		return
	}
	b.asking = true
	l.askActive(rec, func(l *loop, active bool) {
		b.asking = false
		if len(b.items) == 0 {
			if l.buffers[rec] == b {
				delete(l.buffers, rec)
			}
			return
		}
		it := b.items[0]
		if active || len(l.active[rec]) > 0 || it.state != buffered {
			return // its end, or the next look, comes here again
		}
		l.unbuffer(it)
		l.count(it, 1)
		l.addActive(it) // from here on: nothing may go before it while it waits for a slot
		l.toReady(it, l.s.clock.now())
	})
}

// checkBuffers looks again after those that wait.
func (l *loop) checkBuffers(now time.Time) {
	if len(l.buffers) == 0 || now.Before(l.bufferAt) {
		return
	}
	l.bufferAt = now.Add(bufferCheck)
	for rec := range l.buffers {
		l.promote(rec)
	}
}

// addActive counts an occurrence as active, once.
func (l *loop) addActive(it *item) {
	rec := it.task.RecurringTaskID
	if rec != "" && exclusive(it.task) && !slices.Contains(l.active[rec], it) {
		l.active[rec] = append(l.active[rec], it)
	}
}

// endActive ends a run's part in the overlap check, and lets the next one go. Between two attempts the store tells.
func (l *loop) endActive(it *item) {
	if it.task == nil {
		return
	}
	rec := it.task.RecurringTaskID
	i := slices.Index(l.active[rec], it)
	if i < 0 {
		return
	}
	if l.active[rec] = slices.Delete(l.active[rec], i, i+1); len(l.active[rec]) == 0 {
		delete(l.active, rec)
		l.promote(rec)
	}
}
