package sched

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"dts"
)

const (
	planBatch   = 256 // recurring tasks that are planned in one round
	replanBatch = 32  // and those that are planned again, because a calendar was changed: a few, so that nobody waits long
)

// planLoop plans recurring tasks when their plan_at comes, and those with missed occurrences. The index on
// plan_at is its queue: nothing about recurring tasks is kept in memory.
func (s *Scheduler) planLoop() {
	t := s.o.NewTimer()
	defer t.Close()
	for {
		next := s.planRound()
		t.Arm(next)
		select {
		case <-s.ctx.Done():
			return
		case <-t.C():
		case <-s.planWake:
		}
	}
}

func (s *Scheduler) wakePlanner() {
	select {
	case s.planWake <- struct{}{}:
	default:
	}
}

// lockPlans keeps others from changing the plans of recurring tasks until unlockPlans; false when ctx was done
// first. A channel, not a mutex: with a store that does not answer, whoever gives up waiting must be able to go.
func (s *Scheduler) lockPlans(ctx context.Context) bool {
	select {
	case s.planning <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Scheduler) unlockPlans() { <-s.planning }

// noteMissed tells the planner of a recurring task with missed occurrences.
func (s *Scheduler) noteMissed(id string) {
	s.keepMissed([]string{id})
	s.wakePlanner()
}

// keepMissed leaves recurring tasks with missed occurrences to the planner's next round, without waking it.
func (s *Scheduler) keepMissed(ids []string) {
	s.missMu.Lock()
	defer s.missMu.Unlock()
	for _, id := range ids {
		s.missed[id] = true
	}
}

// planRound plans what is due and returns when to come again; zero: only when woken.
func (s *Scheduler) planRound() time.Time {
	now := s.clock.now()
	if s.draining.Load() {
		return time.Time{}
	}
	if s.clock.held() != "" {
		return now.Add(time.Second)
	}
	if !s.lockPlans(s.ctx) {
		return time.Time{}
	}
	defer s.unlockPlans()
	held := s.fence().Terms.Held()
	if held == 0 {
		return time.Time{} // whoever takes a shard wakes the planner
	}
	due, next, err := s.o.Store.PlanDue(s.ctx, held, now, planBatch)
	var changed []*dts.RecurringTask
	if err == nil {
		changed, err = s.o.Store.Replans(s.ctx, held, now, replanBatch)
	}
	if err != nil {
		s.logStore("read due plans", err)
		return now.Add(retryStore)
	}
	s.missMu.Lock()
	missed := s.missed
	s.missed = map[string]bool{}
	s.missMu.Unlock()
	if len(missed) > 0 {
		more, err := s.o.Store.RecurringByID(s.ctx, slices.Collect(maps.Keys(missed)))
		if err != nil {
			s.logStore("read missed plans", err)
			s.keepMissed(slices.Collect(maps.Keys(missed)))
			return now.Add(retryStore)
		}
		more = slices.DeleteFunc(more, func(r *dts.RecurringTask) bool { return !held.Has(r.Shard) }) // who holds it reads what is due
		due = slices.DeleteFunc(due, func(r *dts.RecurringTask) bool { return missed[r.ID] })
		due = append(due, more...)
	}
	due, late := apart(due, func(r *dts.RecurringTask) bool { return r.Replan == 0 })
	changed = slices.DeleteFunc(changed, func(r *dts.RecurringTask) bool { return missed[r.ID] })
	changed = append(changed, late...)
	again, soonest := s.planAll(due, missed, now)
	again = append(again, s.replanAll(changed)...)
	for _, r := range late {
		s.keepMissed([]string{r.ID}) // planning again decides only about what is ahead
	}
	if !soonest.IsZero() && (next.IsZero() || soonest.Before(next)) {
		next = soonest
	}
	if len(again) > 0 {
		var ids []string
		for _, r := range again {
			if missed[r.ID] {
				ids = append(ids, r.ID)
			}
		}
		s.keepMissed(ids)
		return s.clock.now().Add(retryStore)
	}
	if len(changed) > 0 {
		return s.clock.now() // to see when they are due next
	}
	return next
}

// apart splits a list into those that satisfy a condition and those that do not.
func apart[T any](list []T, yes func(T) bool) (is, not []T) {
	for _, x := range list {
		if yes(x) {
			is = append(is, x)
		} else {
			not = append(not, x)
		}
	}
	return is, not
}

// replanAll plans what is ahead of recurring tasks again, some of them at the same time, and returns those that must be
// tried again.
func (s *Scheduler) replanAll(changed []*dts.RecurringTask) (again []*dts.RecurringTask) {
	for some := range slices.Chunk(changed, replanBatch) {
		errs := make([]error, len(some))
		var wg sync.WaitGroup
		for i, r := range some {
			wg.Go(func() { errs[i] = s.replan(r) })
		}
		wg.Wait()
		for i, err := range errs {
			if err != nil {
				again = append(again, some[i])
			}
		}
	}
	return again
}

// replan plans what is ahead of a recurring task again, after a calendar that it uses was changed. It holds the plans.
func (s *Scheduler) replan(r *dts.RecurringTask) error {
	_, err := s.changePlanned(s.ctx, r, func(old *dts.RecurringTask, _ time.Time) (change, error) {
		n := *old
		return change{to: &n, replan: true}, nil
	})
	switch {
	case err == nil || s.o.Refused(err):
	case dts.CodeOf(err) == dts.ErrInvalid || r.Unreadable != "": // as it is now it cannot be planned: nothing is, until a calendar or it is changed
		s.log.Error("a recurring task cannot be planned", "recurring_task", r.ID, "err", err)
		p := dts.Plan{Old: r, New: without(r)}
		return s.o.Store.SavePlans(s.ctx, s.fence(), []dts.Plan{p}, s.clock.now())[0]
	default:
		s.logStore("plan again", err)
	}
	return err
}

// planAll plans recurring tasks. It returns those that must be tried again, and when the first of the others
// is due for planning next. missed are those with occurrences that the loop let go of because they were missed.
func (s *Scheduler) planAll(due []*dts.RecurringTask, missed map[string]bool, now time.Time) (again []*dts.RecurringTask, next time.Time) {
	var plans []dts.Plan
	var holds []*lateHold
	for _, r := range due {
		p, h, err := s.prepare(s.ctx, r, missed[r.ID], now)
		if errors.Is(err, errHeld) {
			again = append(again, r)
			continue
		}
		if err != nil {
			s.log.Error("a recurring task cannot be planned", "recurring_task", r.ID, "err", err)
			if dts.CodeOf(err) == dts.ErrInvalid {
				p = dts.Plan{Old: r, New: without(r)}
			} else {
				again = append(again, r)
				continue
			}
		}
		plans, holds = append(plans, p), append(holds, h)
	}
	if len(plans) == 0 {
		return again, next
	}
	s.o.Failpoint("before-plan")
	strangers := s.strangers.Load()
	saved := s.o.Store.SavePlans(s.ctx, s.fence(), plans, now)
	s.o.Failpoint("after-plan")
	for i, err := range saved {
		p := &plans[i]
		switch {
		case err == nil:
			holds[i].release(p)
			s.planned(p, strangers)
			if at := p.New.PlanAt; !at.IsZero() && (next.IsZero() || at.Before(next)) {
				next = at
			}
		default:
			if unsettled(err) {
				s.settlePlan(p, holds[i].held())
			} else {
				holds[i].release(nil)
			}
			if !s.o.Refused(err) { // a refusal: it changed meanwhile, the next round sees how
				s.logStore("plan", err)
			}
			again = append(again, p.Old)
		}
	}
	return again, next
}

// without is a recurring task that the planner leaves alone from now on, because its schedule, stored by
// another version, is not understood. It can be changed by hand.
func without(r *dts.RecurringTask) *dts.RecurringTask {
	n := *r
	n.PlanAt, n.Replan = time.Time{}, 0
	return &n
}

// lateHold is the missed occurrences that a plan decides about, held.
type lateHold struct {
	s   *Scheduler
	ids []string
}

// held returns their ids.
func (h *lateHold) held() []string {
	if h == nil {
		return nil
	}
	return h.ids
}

// release gives them back: as the plan changed them, or as they were.
func (h *lateHold) release(p *dts.Plan) {
	if h == nil || len(h.ids) == 0 {
		return
	}
	changed := map[string]*dts.Task{}
	if p != nil {
		for _, c := range p.Changes {
			changed[c.Old.ID] = nil
			if c.New != nil {
				mine := *c.New
				changed[c.Old.ID] = &mine
			}
		}
	}
	h.s.release(h.ids, changed)
}

// prepare makes the plan of one recurring task. The missed occurrences that it decides about stay held until
// the caller releases them.
func (s *Scheduler) prepare(ctx context.Context, r *dts.RecurringTask, missed bool, now time.Time) (p dts.Plan, h *lateHold, err error) {
	c, err := s.table(ctx, r)
	if err != nil {
		return p, nil, err
	}
	in := planInput{now: now, why: s.whyMissed}
	h = &lateHold{s: s}
	defer func() {
		if err != nil {
			h.release(nil)
		}
	}()
	cutoff := now.Add(-r.MisfireAfter())
	var tasks []*dts.Task
	if missed || r.MaxRuns > 0 || r.Status == dts.Paused || r.PlannedThrough.Before(cutoff) || s.inBlackout(r.TenantID, r.Queue, now) {
		if tasks, err = s.o.Store.Planned(ctx, r.ID); err != nil {
			return p, h, err
		}
	}
	if r.MaxRuns > 0 {
		if r, in.open, err = s.openRuns(ctx, r, len(tasks)); err != nil {
			return p, h, err
		}
	}
	late, err := s.holdLate(ctx, r.ID, tasks, false, h, func(t *dts.Task) bool {
		return t.DueAt.Before(cutoff) || r.Status == dts.Paused && !t.ScheduledAt.After(now)
	})
	if err != nil {
		return p, h, err
	}
	q := s.rules.queue(r.TenantID, r.Queue)
	in.queuePaused = q != nil && q.Paused
	in.waiting, in.late = apart(late, func(t *dts.Task) bool { return in.queuePaused || waitsOn(t, now) })
	if missed {
		s.takeBack(tasks, h.ids)
	}
	if in.kept, err = s.keptBy(ctx, r); err != nil {
		return p, h, err
	}
	if r.Status == dts.Paused {
		if in.lastSkip, err = s.lastRange(ctx, r); err != nil {
			return p, h, err
		}
	}
	return makePlan(r, c, in), h, nil
}

// lastRange returns the newest skip of a recurring task; nil when there is none, and when it is that of an occurrence that
// was planned: the ledger shows it with its task, so it must not become longer.
func (s *Scheduler) lastRange(ctx context.Context, r *dts.RecurringTask) (*dts.Skip, error) {
	k, err := s.o.Store.LastSkip(ctx, r.ID)
	if err != nil || k == nil || k.Count > 1 {
		return k, err
	}
	tasks, _, err := s.o.Store.OccurrenceAt(ctx, r.TenantID, r.ID, k.From)
	if err != nil || slices.ContainsFunc(tasks, func(t *dts.Task) bool { return t.Origin == dts.OriginSchedule }) {
		return nil, err
	}
	return k, nil
}

// keptBy returns the instants ahead of a recurring task's cursor that have a task all the same, because it was moved by
// hand. Only a pause or a calendar could take those out.
func (s *Scheduler) keptBy(ctx context.Context, r *dts.RecurringTask) ([]time.Time, error) {
	if r.Status != dts.Paused && len(r.Calendars()) == 0 {
		return nil, nil
	}
	return s.o.Store.DecidedAfter(ctx, r.ID, r.PlannedThrough)
}

// openRuns returns how many runs of a recurring task with max_runs are planned or under way, and the recurring task
// as it is after that was read: a run that ends meanwhile is counted twice rather than not at all.
func (s *Scheduler) openRuns(ctx context.Context, r *dts.RecurringTask, planned int) (*dts.RecurringTask, int64, error) {
	active, err := s.o.Store.ActiveRuns(ctx, r.ID)
	if err != nil {
		return r, 0, err
	}
	list, err := s.o.Store.RecurringByID(ctx, []string{r.ID})
	if err != nil || len(list) == 0 {
		return r, 0, err // gone: the plan will be refused
	}
	return list[0], int64(planned + active), nil
}

// holdLate takes those of the planned tasks that are late, and may be skipped, out of memory, and returns them as they
// are then: some may have run in the meantime.
func (s *Scheduler) holdLate(ctx context.Context, id string, tasks []*dts.Task, wait bool, h *lateHold, late func(*dts.Task) bool) ([]*dts.Task, error) {
	var ids []string
	for _, t := range tasks {
		if !t.MissAt.IsZero() && late(t) {
			ids = append(ids, t.ID)
		}
	}
	held, err := s.holdPlanned(ctx, id, ids, wait, h)
	// What was moved, or waits for another one's end, in the meantime will run.
	return slices.DeleteFunc(held, func(t *dts.Task) bool { return t.MissAt.IsZero() }), err
}

// waitsOn reports whether an occurrence waits for the end of a blackout that is still to come.
func waitsOn(t *dts.Task, now time.Time) bool {
	return t.WaitsFor == dts.ReasonBlackout && t.RunAt.After(now)
}

// whyMissed says for the ledger why instants up to a time were not fired.
func (s *Scheduler) whyMissed(through time.Time) string {
	switch {
	case !through.Before(s.startedAt):
		return "the machine slept, its clock was set, or the server could not keep up"
	case s.alone():
		return "the server was not running"
	}
	return "no server was running"
}

// holdPlanned holds planned occurrences of a recurring task and returns those that have not started. With wait it waits
// for those that others hold; the planner, which holds those of several recurring tasks, must not: errHeld.
func (s *Scheduler) holdPlanned(ctx context.Context, id string, ids []string, wait bool, h *lateHold) ([]*dts.Task, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	take := s.newHolding(ids, wait)
	if err := take.await(ctx); err != nil {
		return nil, err
	}
	h.ids = append(h.ids, take.taken...)
	if len(take.others) > 0 {
		return nil, errHeld
	}
	tasks, err := s.o.Store.Planned(ctx, id)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(tasks, func(t *dts.Task) bool { return !slices.Contains(h.ids, t.ID) }), nil
}

// errHeld says that a missed occurrence is being changed by a verb: it is planned again soon.
var errHeld = errors.New("an occurrence is being changed")

// takeBack gives the loop the planned tasks that it let go of as missed and that, the clock having been set
// since, are not.
func (s *Scheduler) takeBack(tasks []*dts.Task, late []string) {
	s.in.post(func(l *loop) {
		s.strangers.Add(1)
		for _, t := range tasks {
			if !slices.Contains(late, t.ID) {
				l.add(t.Entry(), nil)
			}
		}
	})
}

// planned tells the loop, and whoever listens, of a plan that was written. strangers is as it was before: where
// one of its tasks may have been found and changed, or even run, already, what is stored counts.
func (s *Scheduler) planned(p *dts.Plan, strangers int64) {
	s.in.post(func(l *loop) { l.setPaused(p.New) })
	s.takePlanned(p, strangers)
	if p.Old.Status != p.New.Status {
		s.bus.publish(recurringEvent(dts.EventChanged, p.New, s.clock.now()))
	}
}

// takePlanned gives the loop the occurrences that a plan has inserted, and counts them and the skips.
func (s *Scheduler) takePlanned(p *dts.Plan, strangers int64) {
	s.m.scheduled.Add(float64(len(p.Insert)))
	skipped := len(p.Skips)
	for i := range p.Changes {
		if p.Changes[i].Skip != nil {
			skipped++
		}
	}
	s.m.skipped.Add(float64(skipped))
	s.in.post(func(l *loop) {
		// Where it was never replanned, no instant after its cursor can have had a task before.
		known := s.strangers.Load() == strangers && p.New.PlanVersion == 1
		var like *dts.Task
		for _, t := range p.Insert {
			l.take(t)
			if t.Origin != dts.OriginSchedule || !t.RunAt.Equal(t.DueAt) {
				continue // made up for: not like those ahead
			}
			if like == nil {
				like = t
			}
			if it := l.items[t.ID]; known && it != nil && it.state == waiting {
				it.like, it.at = like, t.ScheduledAt
			}
		}
	})
}

func (l *loop) setPaused(r *dts.RecurringTask) {
	if r.Status == dts.Paused && l.terms[r.Shard] != 0 {
		l.paused[r.ID] = dts.Pause{Shard: r.Shard, Until: r.PausedUntil, Note: dts.PauseWords(r.PauseNote, r.PausedBy)}
	} else {
		delete(l.paused, r.ID)
	}
}

// isPaused reports whether a pause takes an instant of a recurring task out. One that has ended, although nobody has
// noted that yet, takes out only those before its end.
func (l *loop) isPaused(recurringID string, instant time.Time) bool {
	p, is := l.paused[recurringID]
	return is && (p.Until.IsZero() || !instant.After(p.Until))
}
