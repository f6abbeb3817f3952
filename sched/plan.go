package sched

import (
	"errors"
	"time"

	"dts"
	"dts/sched/cron"
)

// Planning: how far ahead the occurrences of a recurring task exist as tasks.
const (
	planCount  = 10               // occurrences planned at least; half of them are always there
	planAhead  = 20 * time.Second // and at least this far; half of it is always there
	planAtOnce = 500              // occurrences in one step
	pausedStep = time.Minute      // how often the skips of a paused recurring task are written
)

// Compile makes the schedule of a recurring task. For @reboot it returns cron.ErrReboot.
func Compile(r *dts.RecurringTask) (cron.Schedule, error) {
	loc, err := cron.LoadLocation(r.TimeZone)
	if err != nil {
		return nil, dts.Invalid("time_zone", "%s", err)
	}
	plan := cron.Plan{Expr: r.Cron, Interval: r.Interval(), Anchor: r.CreatedAt, Start: r.StartTime, End: r.EndTime}
	c, err := plan.Schedule(cron.Options{Location: loc, Seed: r.Name})
	if err != nil && !errors.Is(err, cron.ErrReboot) {
		return nil, dts.Invalid("cron", "%s", err)
	}
	return c, err
}

// planInput is what one planning step decides on, beside the recurring task and its schedule.
type planInput struct {
	now      time.Time
	late     []*dts.Task // planned occurrences that were missed, oldest first; nobody runs them meanwhile
	lastSkip *dts.Skip   // the newest, of a paused recurring task
	open     int64       // planned occurrences that have not ended, of a recurring task with max_runs
}

// planner builds one plan. It enumerates only the instants that it inserts, however long the server was down.
type planner struct {
	in   planInput
	c    cron.Schedule
	r    *dts.RecurringTask // as it will be
	plan dts.Plan
}

// makePlan decides one step: what becomes of missed instants, which occurrences to insert, and when to look
// again.
func makePlan(old *dts.RecurringTask, c cron.Schedule, in planInput) dts.Plan {
	r := *old
	b := &planner{in: in, c: c, r: &r, plan: dts.Plan{Old: old, New: &r}}
	if r.Status == dts.Paused {
		if r.PausedUntil.IsZero() || r.PausedUntil.After(in.now) {
			b.paused(in.now)
			return b.plan
		}
		b.paused(r.PausedUntil)
		resume(&r, in.now)
	}
	switch r.Status {
	case dts.Active:
		b.catchUp()
		b.ahead()
	case dts.Completed: // what was planned before may have been missed all the same
		b.catchUp()
	case dts.Ended: // an occurrence ran when it was cancelled, and its result was lost with the server
		for _, t := range in.late {
			b.skipTask(t, dts.ReasonCancelled)
		}
	}
	return b.plan
}

func resume(r *dts.RecurringTask, now time.Time) {
	r.Status, r.PausedAt, r.PausedUntil, r.PauseNote = dts.Active, time.Time{}, time.Time{}, ""
	r.UpdatedAt = dts.Micros(now)
}

// paused records the instants up to until that the pause kept from being planned. A range that directly
// follows the last one makes that one longer.
func (b *planner) paused(until time.Time) {
	r := b.r
	for _, t := range b.in.late {
		b.skipTask(t, dts.ReasonPaused)
	}
	b.in.late = nil
	if n := b.c.Count(r.PlannedThrough, until); n > 0 {
		k := b.skipRange(b.c.Next(r.PlannedThrough), b.c.Prev(until), n, dts.ReasonPaused, r.PauseNote)
		if last := b.in.lastSkip; last != nil && last.Reason == dts.ReasonPaused && last.To.Equal(b.c.Prev(r.PlannedThrough)) && last.Note == r.PauseNote {
			k.From, k.Count = last.From, k.Count+last.Count
		}
		b.plan.Skips = append(b.plan.Skips, k)
	}
	if until.After(r.PlannedThrough) {
		r.PlannedThrough = dts.Micros(until)
	}
	// Look again when the next instant has passed, but not more often than each pausedStep.
	next := b.c.Next(r.PlannedThrough)
	switch {
	case next.IsZero():
		r.PlanAt = time.Time{}
	default:
		r.PlanAt = laterOf(next, b.in.now.Add(pausedStep))
	}
	if !r.PausedUntil.IsZero() && (r.PlanAt.IsZero() || r.PausedUntil.Before(r.PlanAt)) {
		r.PlanAt = r.PausedUntil
	}
}

// catchUp decides about what was missed: occurrences that were planned, and instants that were not even that.
// The instants of the last misfire_after are not missed, only late.
func (b *planner) catchUp() {
	r, cutoff := b.r, b.in.now.Add(-b.r.MisfireAfter())
	missed := int64(0)
	if r.Status == dts.Active {
		missed = b.c.Count(r.PlannedThrough, cutoff)
	}
	run := r.CatchUpMode == dts.RunLatest
	late := b.in.late
	if run && missed == 0 && len(late) > 0 {
		// The newest missed instant is planned already: it runs under its own scheduled_at.
		old := late[len(late)-1]
		n := *old
		n.MissAt = time.Time{}
		b.plan.Changes = append(b.plan.Changes, dts.Change{Old: old, New: &n})
		late = late[:len(late)-1]
	}
	for _, t := range late {
		b.skipTask(t, dts.ReasonCatchUp)
	}
	if missed == 0 {
		return
	}
	first, newest := b.c.Next(r.PlannedThrough), b.c.Prev(cutoff)
	run = run && b.left() != 0 // max_runs may leave none
	if run {
		t := r.Occurrence(newest, dts.OriginSchedule, b.in.now)
		t.MissAt = time.Time{} // decided: it runs, however late
		b.plan.Insert = append(b.plan.Insert, t)
		missed--
	}
	if missed > 0 {
		last := newest
		if run {
			last = b.c.Prev(newest.Add(-time.Microsecond))
		}
		b.plan.Skips = append(b.plan.Skips, b.skipRange(first, last, missed, dts.ReasonCatchUp, ""))
	}
	r.PlannedThrough = newest
}

// ahead plans the coming occurrences and sets when to look again.
func (b *planner) ahead() {
	r, now := b.r, b.in.now
	count := b.c.Count(now, r.PlannedThrough)
	for range planAtOnce {
		if count >= planCount && r.PlannedThrough.After(now.Add(planAhead)) || b.left() == 0 {
			break
		}
		at := b.c.Next(r.PlannedThrough)
		if at.IsZero() {
			break
		}
		b.plan.Insert = append(b.plan.Insert, r.Occurrence(at, dts.OriginSchedule, now))
		r.PlannedThrough = at
		if at.After(now) {
			count++
		}
	}
	over := b.c.Next(r.PlannedThrough).IsZero()
	switch {
	case over && b.c.Count(now, r.PlannedThrough) == 0, r.MaxRuns > 0 && r.RunsCount >= r.MaxRuns:
		r.Status, r.PlanAt = dts.Completed, time.Time{}
		r.UpdatedAt = dts.Micros(now)
	case over:
		r.PlanAt = r.PlannedThrough.Add(time.Second)
	case b.left() == 0:
		// All its runs are planned. When they have ended it is completed, or, if some were skipped, others
		// take their place.
		r.PlanAt = laterOf(r.PlannedThrough, now).Add(5 * time.Second)
	default:
		r.PlanAt = b.lookAgain()
	}
}

// lookAgain is when half of the occurrences, or half of the time, that is planned ahead will be used up.
func (b *planner) lookAgain() time.Time {
	at := b.r.PlannedThrough
	for range planCount/2 - 1 {
		if prev := b.c.Prev(at.Add(-time.Microsecond)); !prev.IsZero() {
			at = prev
		}
	}
	if t := b.r.PlannedThrough.Add(-planAhead / 2); t.Before(at) {
		at = t
	}
	return laterOf(at, b.in.now.Add(time.Second))
}

// left is how many runs max_runs still allows to plan; -1 for no limit.
func (b *planner) left() int64 {
	if b.r.MaxRuns == 0 {
		return -1
	}
	return max(b.r.MaxRuns-b.r.RunsCount-b.in.open-int64(len(b.plan.Insert)), 0)
}

func (b *planner) skipTask(t *dts.Task, reason dts.Reason) {
	n := *t
	n.Status, n.SkipReason, n.CompletedAt = dts.Skipped, reason, dts.Micros(b.in.now)
	b.plan.Changes = append(b.plan.Changes, dts.Change{Old: t, New: &n, Skip: skipOf(t, reason, "")})
	if b.in.open > 0 {
		b.in.open--
	}
}

func (b *planner) skipRange(from, to time.Time, n int64, reason dts.Reason, note string) dts.Skip {
	return dts.Skip{TenantID: b.r.TenantID, RecurringTaskID: b.r.ID, From: from, To: to, Count: n, Reason: reason, Note: note}
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
