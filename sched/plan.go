package sched

import (
	"slices"
	"time"

	"dts"
	"dts/sched/calendar"
	"dts/sched/timetable"
)

// Planning: how far ahead the occurrences of a recurring task exist as tasks.
const (
	planCount      = 10               // occurrences planned at least; half of them are always there
	planAhead      = 20 * time.Second // and at least this far; half of it is always there
	planAtOnce     = 500              // occurrences in one step
	excludedAtOnce = 100              // ranges of excluded instants that one step of the cursor records; what is more is one
	excludedAhead  = 48 * time.Hour   // how far it is recorded that calendars exclude everything
	pausedStep     = time.Minute      // how often the skips of a paused recurring task are written
)

// Compile makes the instants of a recurring task. calendars are those that it uses. For @reboot the error is
// cron.ErrReboot.
func Compile(r *dts.RecurringTask, calendars map[string]*calendar.Calendar) (*timetable.Table, error) {
	return timetable.Compile(&r.Schedule, timetable.Options{Seed: r.Name, Anchor: r.CreatedAt, Calendars: calendars})
}

// planInput is what one planning step decides on, beside the recurring task and its schedule.
type planInput struct {
	now         time.Time
	late        []*dts.Task // planned occurrences that were missed, or that a pause takes out, oldest first; nobody runs them meanwhile
	waiting     []*dts.Task // those that will be missed when the blackout ends that they wait for, or the pause of their queue; likewise
	kept        []time.Time // instants ahead that have a task all the same, because it was moved by hand, or a skip because it was removed, in order; of one that is paused or has calendars
	lastSkip    *dts.Skip   // the newest, of a paused recurring task
	open        int64       // planned occurrences that have not ended, of a recurring task with max_runs
	queuePaused bool
	// makeUp says that the catch-up mode applies to the instants of the pause that ends.
	makeUp  bool
	removed []time.Time // instants ahead that somebody has removed, in order; of one that is planned again
	// why says what kept the server from firing instants up to a time, for the ledger.
	why func(through time.Time) string
}

// planner builds one plan. It enumerates only the instants that it inserts, however long the server was down.
type planner struct {
	in   planInput
	c    *timetable.Table
	r    *dts.RecurringTask // as it will be
	plan dts.Plan
}

// makePlan decides one step: what becomes of missed instants, which occurrences to insert, and when to look
// again.
func makePlan(old *dts.RecurringTask, c *timetable.Table, in planInput) dts.Plan {
	r := *old
	b := &planner{in: in, c: c, r: &r, plan: dts.Plan{Old: old, New: &r}}
	if r.Status == dts.Paused {
		if r.PausedUntil.IsZero() || r.PausedUntil.After(in.now) {
			b.paused(in.now)
			return b.plan
		}
		since := r.PausedAt
		b.paused(r.PausedUntil)
		resume(&r, in.now)
		if in.makeUp {
			b.makeUp(since)
		}
	}
	switch r.Status {
	case dts.Active:
		b.catchUp()
		b.ahead()
	case dts.Completed: // what was planned before may have been missed all the same
		b.catchUp()
	case dts.Ended: // an occurrence ran when it was cancelled, and its result was lost with the server
		for _, t := range in.late {
			b.skipTask(t, dts.ReasonCancelled, "")
		}
	}
	return b.plan
}

// advance moves the cursor, and records what calendars exclude on the way.
func (b *planner) advance(to time.Time) {
	r := b.r
	if !to.After(r.PlannedThrough) {
		return
	}
	b.between(r.PlannedThrough, to, b.excluded)
	r.PlannedThrough = dts.Micros(to)
}

// between calls f for the stretches after from, up to to, that lie between the instants that are kept.
func (b *planner) between(from, to time.Time, f func(from, to time.Time)) {
	for _, at := range b.in.kept {
		if at.After(from) && !at.After(to) {
			f(from, at.Add(-time.Microsecond))
			from = at
		}
	}
	f(from, to)
}

// excluded records what calendars exclude after from, up to to.
func (b *planner) excluded(from, to time.Time) {
	for _, x := range b.c.Excluded(from, to, excludedAtOnce) {
		note := x.Calendar
		if x.Name != "" && x.Name != x.Calendar {
			note += ": " + x.Name
		}
		if !x.MovedTo.IsZero() {
			note += "; moved to " + x.MovedTo.In(b.c.Location()).Format("Mon 2006-01-02 15:04:05 MST")
		}
		b.plan.Skips = append(b.plan.Skips, b.skipRange(x.From, x.To, x.Count, dts.ReasonCalendar, note))
	}
}

func resume(r *dts.RecurringTask, now time.Time) {
	r.Status, r.PausedAt, r.PausedUntil, r.PausedBy, r.PauseNote = dts.Active, time.Time{}, time.Time{}, "", ""
	r.UpdatedAt = dts.Micros(now)
}

// paused records the instants up to until that the pause kept from being planned. A range that directly
// follows the last one makes that one longer.
func (b *planner) paused(until time.Time) {
	r := b.r
	in, after := apart(b.in.late, func(t *dts.Task) bool { return !t.ScheduledAt.After(until) })
	for _, t := range in {
		b.skipTask(t, dts.ReasonPaused, dts.PauseWords(r.PauseNote, r.PausedBy))
	}
	b.in.late = slices.DeleteFunc(after, func(t *dts.Task) bool { return !t.MissAt.Before(b.in.now) }) // missed after its end
	b.between(r.PlannedThrough, until, b.pausedRange)
	b.advance(until)
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

// pausedRange records the instants after from, up to to, as PAUSED.
func (b *planner) pausedRange(from, to time.Time) {
	n := b.c.Count(from, to)
	if n == 0 {
		return
	}
	k := b.skipRange(b.c.Next(from), b.c.Prev(to), n, dts.ReasonPaused, dts.PauseWords(b.r.PauseNote, b.r.PausedBy))
	if last := b.in.lastSkip; last != nil && last.Reason == dts.ReasonPaused && last.To.Equal(b.c.Prev(from)) && last.Note == k.Note {
		k.From, k.Count = last.From, k.Count+last.Count
	}
	b.plan.Skips = append(b.plan.Skips, k)
}

// ahead plans the coming occurrences and sets when to look again.
func (b *planner) ahead() {
	r, now := b.r, b.in.now
	count := b.c.Count(now, r.PlannedThrough)
	for range planAtOnce {
		if count >= planCount && r.PlannedThrough.After(now.Add(planAhead)) && !b.removedAhead() || b.left() == 0 {
			break
		}
		at := b.c.Next(r.PlannedThrough)
		if at.IsZero() {
			break
		}
		if !slices.ContainsFunc(b.in.removed, at.Equal) {
			b.plan.Insert = append(b.plan.Insert, r.Occurrence(at, dts.OriginSchedule, now))
		}
		b.advance(at)
		if at.After(now) {
			count++
		}
	}
	over := b.c.Next(r.PlannedThrough).IsZero()
	if over {
		b.advance(now) // what calendars exclude after the last one
	}
	switch {
	case over && !b.c.Base().Next(r.PlannedThrough).IsZero():
		// Calendars leave nothing for years. What they exclude of the next time is recorded ahead, so that it is decided
		// when they are changed.
		b.advance(now.Add(excludedAhead))
		r.PlanAt = now.Add(excludedAhead / 2)
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

// removedAhead reports whether an instant that somebody has removed is still to be passed: no later step would know
// of it.
func (b *planner) removedAhead() bool {
	n := len(b.in.removed)
	return n > 0 && b.in.removed[n-1].After(b.r.PlannedThrough)
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
	n := b.r.MaxRuns - b.r.RunsCount - b.in.open
	for _, t := range b.plan.Insert {
		if t.Origin == dts.OriginSchedule {
			n--
		}
	}
	return max(n, 0)
}

func (b *planner) skipTask(t *dts.Task, reason dts.Reason, note string) {
	n := *t
	n.Status, n.SkipReason, n.CompletedAt, n.WaitsFor = dts.Skipped, reason, dts.Micros(b.in.now), ""
	b.plan.Changes = append(b.plan.Changes, dts.Change{Old: t, New: &n, Skip: skipOf(t, reason, note)})
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
