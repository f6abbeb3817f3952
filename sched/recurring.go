package sched

import (
	"context"
	"errors"
	"strings"
	"time"

	"dts"
	"dts/sched/calendar"
	"dts/sched/cron"
	"dts/sched/timetable"
)

// CreateRecurring inserts a normalized recurring task with its first occurrences.
func (s *Scheduler) CreateRecurring(ctx context.Context, r *dts.RecurringTask) (dts.Created[*dts.RecurringTask], error) {
	var made dts.Created[*dts.RecurringTask]
	calendars, err := s.calendars(ctx, r.TenantID, r.Calendars())
	if err != nil {
		return made, err
	}
	s.queueRetry(r.TenantID, &r.Spec)
	p, err := FirstPlan(r, calendars, s.clock.now())
	if err == nil {
		err = errors.Join(s.refuseBoot(p.New), s.refuseBackup(&p.New.Spec))
	}
	if err != nil {
		return made, err
	}
	if ctx, err = begun(ctx); err != nil {
		return made, err
	}
	var strangers int64
	for try := 0; ; try++ {
		shard, ok := s.place(p.New.ID)
		if !ok {
			return made, notMine("recurring task", p.New.ID)
		}
		p.New.Shard = shard
		for _, t := range p.Insert {
			t.Shard = shard
		}
		strangers = s.strangers.Load()
		f := s.fence()
		made, err = s.o.Store.InsertRecurring(ctx, f, p)
		if !s.moved(err) || try == insertTries {
			break
		}
		s.awaitFence(ctx, f) // the shard has just gone to another server
	}
	switch {
	case unsettled(err):
		s.settlePlan(&p, nil)
	case s.moved(err):
		return made, notMine("recurring task", p.New.ID)
	}
	if err != nil || made.Existed {
		return made, err
	}
	s.takePlanned(&p, strangers) // whether it is paused is not told: somebody may have done that already
	s.wakePlanner()
	s.bus.publish(recurringEvent(dts.EventCreated, p.New, s.clock.now()))
	return made, nil
}

// refuseBoot refuses @reboot where several servers share the schedule: whose boot would it be?
func (s *Scheduler) refuseBoot(r *dts.RecurringTask) error {
	if s.alone() || !isBoot(r) {
		return nil
	}
	return dts.Invalid("cron", "cannot be @reboot in a cluster: its servers boot at different times; use a schedule, or @reboot in that machine's crontab")
}

// refuseBackup refuses to make backups where there is no database of the server's own.
func (s *Scheduler) refuseBackup(spec *dts.Spec) error {
	if s.alone() || spec.TargetType != dts.Backup {
		return nil
	}
	return dts.Invalid("target_type", "cannot be BACKUP in a cluster: rqlite makes the backups; let a COMMAND fetch one with curl, or use rqlited -auto-backup")
}

// isBoot reports whether a recurring task runs at every boot.
func isBoot(r *dts.RecurringTask) bool { return strings.TrimSpace(r.Cron) == "@reboot" }

// beginning is where a rule without a start_time begins: at the next whole minute, because what it does not say of the
// time of day it takes from there.
func beginning(now time.Time) time.Time {
	return now.Add(time.Minute - time.Microsecond).Truncate(time.Minute)
}

// FirstPlan makes a new recurring task ready to be inserted, with its first occurrences. calendars are those that it
// uses.
func FirstPlan(r *dts.RecurringTask, calendars map[string]*calendar.Calendar, now time.Time) (dts.Plan, error) {
	n := *r
	now = dts.Micros(now)
	if n.ID == "" {
		n.ID = dts.NewID(now)
	}
	n.Shard, n.Status, n.CreatedAt, n.UpdatedAt = dts.ShardOf(n.ID), dts.Active, now, now
	n.PlannedThrough, n.PlanVersion = now, 1 // instants before it was asked for are not due
	if n.Interval() > 0 && n.StartTime.IsZero() {
		n.StartTime = now.Add(n.Interval()).Truncate(time.Microsecond) // kept, so that the phase never moves
	}
	if n.RRule != "" && n.StartTime.IsZero() {
		n.StartTime = beginning(now) // likewise: a rule counts from its beginning
	}
	c, err := Compile(&n, calendars)
	if errors.Is(err, cron.ErrReboot) {
		return dts.Plan{Old: &n, New: &n}, nil
	}
	if err != nil {
		return dts.Plan{}, err
	}
	first := c.Next(n.PlannedThrough)
	if first.IsZero() {
		return dts.Plan{}, dts.Invalid(whenField(&n.Schedule), "never fires: %s", whyNever(&n, c, now))
	}
	p := makePlan(&n, c, planInput{now: now})
	p.New.NextRunAt = first
	return p, nil
}

// whenField is the field that says when a schedule fires.
func whenField(s *dts.Schedule) string {
	switch {
	case s.RRule != "":
		return "rrule"
	case s.Cron == "":
		return "interval_seconds"
	}
	return "cron"
}

// whyNever says why a schedule has no instant any more.
func whyNever(r *dts.RecurringTask, c *timetable.Table, now time.Time) string {
	if !c.Base().Next(now).IsZero() {
		return "its calendars exclude every instant of the coming years"
	}
	return "no instant is left between start_time and end_time, as seen from now"
}

// change is what an edit makes of a recurring task.
type change struct {
	to     *dts.RecurringTask // nil: nothing changes
	replan bool               // the upcoming occurrences must go
	note   string             // why those go whose instant has come
	makeUp bool               // for what a pause that ends has kept from running
}

// changeRecurring runs a change of a recurring task.
func (s *Scheduler) changeRecurring(ctx context.Context, tenant, id string, edit func(r *dts.RecurringTask, now time.Time) (change, error)) (*dts.RecurringTask, error) {
	if !s.lockPlans(ctx) {
		return nil, dts.Errorf(dts.ErrUnavailable, "the request was given up before it was done: %w", ctx.Err())
	}
	defer s.unlockPlans()
	old, err := s.o.Store.RecurringTask(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	return s.changePlanned(ctx, old, edit)
}

// unreadable is the error of what cannot be done to a recurring task whose stored definition cannot be read.
func unreadable(r *dts.RecurringTask) error {
	return dts.Errorf(dts.ErrConflict, "the recurring task %s: %s; cancel it, and make it anew", r.ID, r.Unreadable)
}

// changePlanned does that for a caller who holds the plans.
func (s *Scheduler) changePlanned(ctx context.Context, old *dts.RecurringTask, edit func(r *dts.RecurringTask, now time.Time) (change, error)) (*dts.RecurringTask, error) {
	tenant, id := old.TenantID, old.ID
	if !s.holds(old.Shard) {
		return nil, notMine("recurring task", id)
	}
	now := dts.Micros(s.clock.now())
	e, err := edit(old, now)
	if err != nil || e.to == nil {
		return old, err
	}
	n, boot := e.to, isBoot(e.to)
	if old.Unreadable != "" && n.Status != dts.Ended {
		return nil, unreadable(old)
	}
	if boot && n.Cron != old.Cron {
		if err := s.refuseBoot(n); err != nil {
			return nil, err
		}
	}
	if n.TargetType != old.TargetType {
		if err := s.refuseBackup(&n.Spec); err != nil {
			return nil, err
		}
	}
	n.UpdatedAt, n.Replan = now, 0
	p := dts.Plan{Old: old, New: n}
	h := &lateHold{s: s}
	if e.replan {
		if h, err = s.unplan(ctx, &p, e.note, now); err != nil {
			return nil, err
		}
	}
	if boot || old.Unreadable != "" {
		p.New.PlanAt = time.Time{}
	} else if err := s.planChange(ctx, &p, e, h, now); err != nil {
		h.release(nil)
		return nil, err
	}
	strangers := s.strangers.Load()
	write, err := begun(ctx)
	if err == nil {
		err = s.o.Store.SavePlans(write, s.fence(), []dts.Plan{p}, now)[0]
	}
	switch {
	case unsettled(err):
		s.settlePlan(&p, h.ids)
		return nil, err
	case err != nil:
		h.release(nil)
		return nil, s.changedMeanwhile(err, "recurring task", id, old.Shard)
	}
	h.release(&p)
	s.planned(&p, strangers)
	s.wakePlanner()
	if p.Old.Status == p.New.Status {
		s.bus.publish(recurringEvent(dts.EventChanged, p.New, now))
	}
	if r, err := s.o.Store.RecurringTask(ctx, tenant, id); err == nil {
		return r, nil
	}
	return p.New, nil // it is written, whatever can be read
}

// planChange adds to the plan of a change what is ahead from now on, and, while it is paused, what the pause has taken out
// so far.
func (s *Scheduler) planChange(ctx context.Context, p *dts.Plan, e change, h *lateHold, now time.Time) error {
	n := p.New
	c, err := s.table(ctx, n)
	if err != nil {
		return err
	}
	in := planInput{now: now, makeUp: e.makeUp, why: s.whyMissed}
	var list []*dts.Task
	paused := p.Old.Status == dts.Paused && n.Status == dts.Paused
	if n.Status != dts.Ended && (n.MaxRuns > 0 || paused) {
		if list, err = s.o.Store.Planned(ctx, n.ID); err != nil {
			return err
		}
	}
	if in.kept, err = s.keptBy(ctx, n); err != nil {
		return err
	}
	if n.Status != dts.Ended && n.MaxRuns > 0 {
		fresh, open, err := s.openRuns(ctx, p.Old, len(list)-len(p.Changes))
		if err != nil {
			return err
		}
		in.open, n.RunsCount = open, fresh.RunsCount
	}
	if paused && !e.replan {
		late, err := s.holdLate(ctx, n.ID, list, true, h, func(t *dts.Task) bool { return !t.ScheduledAt.After(now) })
		if err != nil {
			return err
		}
		in.waiting, in.late = apart(late, func(t *dts.Task) bool { return waitsOn(t, now) })
	}
	if e.replan {
		if in.removed, err = s.removed(ctx, p, c, now); err != nil {
			return err
		}
	}
	if e.replan && n.Status == dts.Active && c.Next(n.PlannedThrough).IsZero() && p.Old.Replan == 0 {
		return dts.Invalid(whenField(&n.Schedule), "never fires again: %s; cancel the recurring task instead", whyNever(n, c, now))
	}
	more := makePlan(n, c, in)
	p.New, p.Insert = more.New, more.Insert
	p.Changes, p.Skips = append(p.Changes, more.Changes...), append(p.Skips, more.Skips...)
	return nil
}

// unplan adds to the plan the removal of the upcoming occurrences that were not moved by hand, and sets the
// cursor back to now. One whose instant has come but that has not started is recorded as a skip.
func (s *Scheduler) unplan(ctx context.Context, p *dts.Plan, note string, now time.Time) (*lateHold, error) {
	n := p.New
	h := &lateHold{s: s}
	tasks, err := s.o.Store.Planned(ctx, n.ID)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, t := range tasks {
		if n.Status == dts.Ended || !t.Moved && t.ScheduledAt.After(now) {
			ids = append(ids, t.ID)
		}
	}
	if tasks, err = s.holdPlanned(ctx, n.ID, ids, true, h); err != nil {
		h.release(nil)
		return nil, err
	}
	for _, t := range tasks {
		c := dts.Change{Old: t}
		if !t.ScheduledAt.After(now) {
			c.Skip = skipOf(t, dts.ReasonCancelled, note)
		}
		p.Changes = append(p.Changes, c)
	}
	n.PlanVersion = p.Old.PlanVersion + 1
	if n.PlannedThrough.After(now) {
		n.PlannedThrough = now
	}
	if err := s.unskip(ctx, p, now); err != nil {
		h.release(nil)
		return nil, err
	}
	return h, nil
}

// removed returns the instants ahead that somebody has removed and that the new schedule still has. Those that it does
// not have any more are forgotten.
func (s *Scheduler) removed(ctx context.Context, p *dts.Plan, c *timetable.Table, now time.Time) (list []time.Time, err error) {
	ahead, err := s.o.Store.SkipsAfter(ctx, p.Old.ID, now)
	for _, k := range ahead {
		switch {
		case k.Reason != dts.ReasonRemoved || !k.From.After(now):
		case c.Count(k.From.Add(-time.Microsecond), k.From) > 0:
			list = append(list, k.From)
		default:
			p.Unskip = append(p.Unskip, k.From)
		}
	}
	return list, err
}

// unskip adds to the plan the removal of skips that are still to come: what calendars were to exclude.
func (s *Scheduler) unskip(ctx context.Context, p *dts.Plan, now time.Time) error {
	if isBoot(p.Old) {
		return nil
	}
	ahead, err := s.o.Store.SkipsAfter(ctx, p.Old.ID, now)
	if err != nil || len(ahead) == 0 {
		return err
	}
	plain := *p.Old
	plain.ExcludeCalendars, plain.RequireCalendars, plain.CalendarShift = nil, nil, ""
	c, err := Compile(&plain, nil)
	if err != nil {
		return err
	}
	for _, k := range ahead {
		if k.Reason != dts.ReasonCalendar {
			continue // what somebody removed stays removed
		}
		p.Unskip = append(p.Unskip, k.From)
		if k.From.After(now) {
			continue
		}
		part := *k // it has begun: what has come of it stays
		part.To = laterOf(k.From, c.Prev(now))
		part.Count = min(k.Count, c.Count(k.From.Add(-time.Microsecond), part.To))
		p.Skips = append(p.Skips, part)
	}
	return nil
}

// ModifyRecurring changes a recurring task and replans its upcoming occurrences.
func (s *Scheduler) ModifyRecurring(ctx context.Context, tenant, id string, patch dts.RecurringPatch) (*dts.RecurringTask, error) {
	return s.changeRecurring(ctx, tenant, id, func(old *dts.RecurringTask, now time.Time) (change, error) {
		if old.Status == dts.Ended || old.Status == dts.Completed {
			return change{}, dts.Errorf(dts.ErrConflict, "the recurring task is %s: only an ACTIVE or PAUSED one can be modified", old.Status)
		}
		n, err := patch.Apply(old)
		if err != nil {
			return change{}, err
		}
		if n.Interval() > 0 && n.StartTime.IsZero() {
			n.StartTime = now.Add(n.Interval())
		}
		if n.RRule != "" && n.StartTime.IsZero() {
			n.StartTime = beginning(now)
		}
		return change{to: n, replan: true}, nil
	})
}

// PauseRecurring pauses a recurring task: its instants are recorded as skipped until it is resumed, or until
// the given time. Pausing a paused one changes the time and the note.
func (s *Scheduler) PauseRecurring(ctx context.Context, tenant, id string, until time.Time, note, actor string) (*dts.RecurringTask, error) {
	return s.changeRecurring(ctx, tenant, id, func(old *dts.RecurringTask, now time.Time) (change, error) {
		switch {
		case old.Status != dts.Active && old.Status != dts.Paused:
			return change{}, dts.Errorf(dts.ErrConflict, "the recurring task is %s: only an ACTIVE one can be paused", old.Status)
		case !until.IsZero() && !until.After(now):
			return change{}, dts.Invalid("until", "%s is not in the future", until.Format(time.RFC3339))
		}
		n := *old
		if old.Status == dts.Active {
			n.PausedAt = now
		}
		n.Status, n.PausedUntil = dts.Paused, dts.Micros(until)
		n.PausedBy, n.PauseNote = actor, note
		return change{to: &n}, nil
	})
}

// ResumeRecurring lets a paused recurring task run again. With catchUp its catch-up mode applies to the instants of the
// pause. Resuming an active one changes nothing.
func (s *Scheduler) ResumeRecurring(ctx context.Context, tenant, id string, catchUp bool, actor string) (*dts.RecurringTask, error) {
	return s.changeRecurring(ctx, tenant, id, func(old *dts.RecurringTask, now time.Time) (change, error) {
		switch old.Status {
		case dts.Active:
			return change{}, nil
		case dts.Paused:
			n := *old
			n.PausedUntil = now // the pause ends now; planning does the rest
			return change{to: &n, makeUp: catchUp}, nil
		}
		return change{}, dts.Errorf(dts.ErrConflict, "the recurring task is %s: only a PAUSED one can be resumed", old.Status)
	})
}

// CancelRecurring ends a recurring task: its upcoming occurrences go, its history stays. What runs goes on.
func (s *Scheduler) CancelRecurring(ctx context.Context, tenant, id, actor string) (*dts.RecurringTask, error) {
	return s.changeRecurring(ctx, tenant, id, func(old *dts.RecurringTask, now time.Time) (change, error) {
		if old.Status == dts.Ended {
			return change{}, nil
		}
		n := *old
		n.Status, n.PlanAt = dts.Ended, time.Time{}
		n.PausedUntil = time.Time{}
		return change{to: &n, replan: true, note: "removed by " + actor}, nil
	})
}

// TriggerRecurring runs a recurring task once, now, whatever its schedule says.
func (s *Scheduler) TriggerRecurring(ctx context.Context, tenant, id, actor string) (*dts.Task, error) {
	r, err := s.o.Store.RecurringTask(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	if !s.holds(r.Shard) {
		return nil, notMine("recurring task", id)
	}
	if r.Status == dts.Ended {
		return nil, dts.Errorf(dts.ErrConflict, "the recurring task is CANCELLED: it cannot be triggered")
	}
	if r.Unreadable != "" {
		return nil, unreadable(r)
	}
	if r.TargetType == dts.Ping {
		return nil, dts.Errorf(dts.ErrConflict, "dts does not run this job, so it cannot start it now; the job reports to its ping URL")
	}
	t := r.Occurrence(dts.Micros(s.clock.now()), dts.OriginTrigger, s.clock.now())
	t.CreatedBy = actor
	for range 10 {
		write, err := begun(ctx)
		if err != nil {
			return nil, err
		}
		s.reserve([]*dts.Task{t})
		if _, err := s.o.Store.InsertTasks(write, s.fence(), []*dts.Task{t}); err != nil {
			s.insertFailed([]*dts.Task{t}, err)
			if s.moved(err) {
				return nil, notMine("recurring task", id)
			}
			return nil, err
		}
		switch _, err := s.o.Store.Task(write, tenant, t.ID); {
		case err == nil:
			s.m.scheduled.Inc()
			s.takeNew([]*dts.Task{t})
			return t, nil
		case dts.CodeOf(err) != dts.ErrNotFound:
			s.settle([]string{t.ID}, nil)
			return nil, dts.Errorf(dts.ErrUnknown, "the run was asked for, but whether it is there could not be read: %w", err)
		}
		// Another trigger took the same microsecond.
		s.unreserve([]*dts.Task{t})
		at := t.ScheduledAt.Add(time.Microsecond)
		t.ScheduledAt, t.DueAt, t.RunAt = at, at, at
	}
	return nil, dts.Errorf(dts.ErrUnavailable, "too many triggers at the same instant; try again")
}
