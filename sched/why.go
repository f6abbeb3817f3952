package sched

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"dts"
	"dts/sched/cron"
	"dts/sched/timetable"
)

// Why says in a sentence why a task did or did not run, or what it waits for. id is that of a task, or of a recurring task;
// then at is one of its instants. A zero at is the latest instant that did not run or, where all did, the last one.
func (s *Scheduler) Why(ctx context.Context, tenant, id string, at time.Time) (*dts.Why, error) {
	t, err := s.o.Store.Task(ctx, tenant, id)
	if err == nil {
		return s.whyTask(ctx, t, nil, nil)
	}
	if dts.CodeOf(err) != dts.ErrNotFound {
		return nil, err
	}
	r, err := s.o.Store.RecurringTask(ctx, tenant, id)
	if dts.CodeOf(err) == dts.ErrNotFound {
		return nil, dts.Errorf(dts.ErrNotFound, "there is no task and no recurring task %s", id)
	}
	if err != nil {
		return nil, err
	}
	return s.whyInstant(ctx, r, at)
}

// whyInstant answers for an instant of a recurring task.
func (s *Scheduler) whyInstant(ctx context.Context, r *dts.RecurringTask, at time.Time) (*dts.Why, error) {
	now := s.clock.now()
	closed, err := s.closings(ctx, r.TenantID)
	if err != nil {
		return nil, err
	}
	f := instantFacts{r: r, now: now, retention: s.retention(r.TenantID).Age()}
	f.table, err = s.table(ctx, r)
	if err != nil && !errors.Is(err, cron.ErrReboot) {
		return nil, err
	}
	if at.IsZero() {
		if at, err = s.latest(ctx, r, f.table, now); err != nil {
			return nil, err
		}
		if at.IsZero() {
			return &dts.Why{Answer: sentence(f.none())}, nil
		}
	}
	f.at = dts.Micros(wholeSecond(f.table, at))
	tasks, skips, err := s.o.Store.OccurrenceAt(ctx, r.TenantID, r.ID, f.at)
	if err != nil {
		return nil, err
	}
	if len(tasks) > 0 {
		return s.whyTask(ctx, tasks[0], r, exactly(skips, f.at))
	}
	f.skips = skips
	if h, is := closed.hold(f.at.Add(r.Delay()), r.Queue); is {
		f.blackout = &h
	}
	answer, skip := f.answer()
	return &dts.Why{Answer: sentence(answer), Skip: skip, Scheduled: &f.at}, nil
}

// wholeSecond returns the instant that is meant by a time as people read it. Those of an interval can lie within a second,
// and are shown without its fraction.
func wholeSecond(c *timetable.Table, at time.Time) time.Time {
	if c == nil || !at.Equal(at.Truncate(time.Second)) {
		return at
	}
	before, through := at.Add(-1), at.Add(time.Second-1)
	if next := c.Base().Next(before); !next.IsZero() && !next.After(through) {
		return next
	}
	return at
}

// latest is the latest instant that did not run or, where all did, the last one; zero where there was none yet.
func (s *Scheduler) latest(ctx context.Context, r *dts.RecurringTask, c *timetable.Table, now time.Time) (time.Time, error) {
	skip, err := s.o.Store.LastSkipBefore(ctx, r.ID, now)
	switch {
	case err != nil:
		return time.Time{}, err
	case skip != nil && !skip.To.After(now):
		return skip.To, nil
	case skip != nil:
		return skip.From, nil
	case c == nil: // @reboot
		return r.LastRunAt, nil
	}
	if last := c.Prev(now); last.After(r.CreatedAt) {
		return last, nil
	}
	return time.Time{}, nil
}

// exactly returns the skip of just this instant; nil when there is none.
func exactly(skips []*dts.Skip, at time.Time) *dts.Skip {
	for _, k := range skips {
		if k.Count == 1 && k.From.Equal(at) {
			return k
		}
	}
	return nil
}

// instantFacts is what an answer about an instant without a task is made of.
type instantFacts struct {
	r         *dts.RecurringTask
	table     *timetable.Table // nil: @reboot
	at, now   time.Time
	skips     []*dts.Skip // those that reach over it
	blackout  *barred     // what it would meet
	retention time.Duration
}

// say writes an instant in the schedule's zone.
func (f *instantFacts) say(t time.Time) string {
	if f.table == nil {
		return sayTime(t)
	}
	return sayTime(t.In(f.table.Location()))
}

// none is the answer where the recurring task has had no instant.
func (f *instantFacts) none() string {
	if f.table == nil {
		return "it runs at boot, and none has come since it was made"
	}
	if first := f.table.Next(f.r.CreatedAt); !first.IsZero() {
		return fmt.Sprintf("none of its instants has come yet; the first is %s, %s", f.say(first), away(first, f.now))
	}
	if !f.table.Base().Next(f.r.CreatedAt).IsZero() {
		return "its calendars exclude all of its instants"
	}
	return "it has no instants"
}

// answer says what became, or will become, of the instant, and which skip covers it.
func (f *instantFacts) answer() (string, *dts.Skip) {
	if f.table == nil {
		return "it runs at boot, and there was none at " + f.say(f.at), nil
	}
	excluded, closed := f.table.ExcludedAt(f.at)
	runs := f.table.Count(f.at.Add(-time.Microsecond), f.at) > 0
	skip := f.covering(closed)
	switch {
	case closed:
		return f.excluded(excluded), skip
	case !runs && !f.edge(skip):
		return f.stranger(), nil
	case skip != nil:
		return f.skipped(skip), skip
	case f.at.Before(f.r.CreatedAt):
		return fmt.Sprintf("%s was before this recurring task was made, at %s", f.say(f.at), f.say(f.r.CreatedAt)), nil
	}
	return f.unplanned(), nil
}

// covering is the skip that tells most of the instant: that of a calendar, if one excludes it, and else the narrowest.
func (f *instantFacts) covering(closed bool) (best *dts.Skip) {
	for _, k := range f.skips {
		switch byCalendar := k.Reason == dts.ReasonCalendar; {
		case byCalendar != closed && k.Count > 1:
		case best == nil, k.To.Sub(k.From) < best.To.Sub(best.From):
			best = k
		}
	}
	return best
}

// edge reports whether a skip says that the instant was one of the schedule, which may have been another one then.
func (f *instantFacts) edge(k *dts.Skip) bool {
	return k != nil && (k.From.Equal(f.at) || k.To.Equal(f.at))
}

func (f *instantFacts) excluded(e timetable.Excluded) string {
	did, moved := "did not run", "it ran on"
	if f.at.After(f.now) {
		did, moved = "will not run", "it runs on"
	}
	text := fmt.Sprintf("%s %s: the calendar %s excludes it", f.say(f.at), did, e.Calendar)
	switch e.Name {
	case "", e.Calendar:
	case "outside":
		text = fmt.Sprintf("%s %s: it is outside the calendar %s", f.say(f.at), did, e.Calendar)
	default:
		text += " (" + e.Name + ")"
	}
	switch {
	case !e.MovedTo.IsZero():
		text += fmt.Sprintf("; %s %s instead", moved, f.say(e.MovedTo))
	case !e.CoveredBy.IsZero():
		text += fmt.Sprintf("; it would move to %s, which is an instant already", f.say(e.CoveredBy))
	}
	return text
}

func (f *instantFacts) stranger() string {
	text := f.say(f.at) + " is not an instant of this schedule"
	before, after := f.table.Prev(f.at), f.table.Next(f.at)
	switch {
	case !before.IsZero() && !after.IsZero():
		text += fmt.Sprintf("; the ones before and after are %s and %s", f.say(before), f.say(after))
	case !before.IsZero():
		text += "; its last one is " + f.say(before)
	case !after.IsZero():
		text += "; its first one is " + f.say(after)
	}
	return text
}

func (f *instantFacts) skipped(k *dts.Skip) string {
	text := fmt.Sprintf("%s did not run: %s", f.say(f.at), because(k.Reason, f.r))
	if k.Note != "" {
		text += " (" + k.Note + ")"
	}
	if k.Count > 1 {
		text += fmt.Sprintf("; it is one of %d skipped from %s to %s", k.Count, f.say(k.From), f.say(k.To))
	}
	return text
}

// unplanned is the answer for an instant of the schedule that is neither a task nor a skip.
func (f *instantFacts) unplanned() string {
	r := f.r
	switch {
	case r.Status == dts.Ended:
		return f.say(f.at) + " does not run: the recurring task was cancelled"
	case r.Status == dts.Completed && f.at.After(r.PlannedThrough):
		return f.say(f.at) + " does not run: the recurring task is completed, by its end_time or its max_runs"
	case !f.at.After(r.PlannedThrough) && !f.at.After(f.now):
		return fmt.Sprintf("nothing is known of %s any more: finished tasks are kept for %s, and fewer days if there are very many", f.say(f.at), sayDuration(f.retention))
	case !f.at.After(f.now):
		return fmt.Sprintf("%s was due %s ago, and is decided about in a moment, as soon as the server that has it plans it", f.say(f.at), sayDuration(f.now.Sub(f.at)))
	case r.Status == dts.Paused && r.PausedUntil.IsZero():
		return fmt.Sprintf("%s will not run unless the recurring task is resumed before: it is paused", f.say(f.at))
	case r.Status == dts.Paused && f.at.Before(r.PausedUntil):
		return fmt.Sprintf("%s will not run: the recurring task is paused until %s", f.say(f.at), f.say(r.PausedUntil))
	case f.blackout != nil && f.blackout.skipped:
		return fmt.Sprintf("%s will not run: %s is open then", f.say(f.at), f.blackout.names())
	case f.blackout != nil:
		return fmt.Sprintf("%s will run at %s, after %s", f.say(f.at), f.say(f.blackout.until), f.blackout.names())
	case !f.at.After(r.PlannedThrough):
		return f.say(f.at) + " has no task: it was removed, or the schedule was changed in the meantime"
	}
	return fmt.Sprintf("%s will run, %s; it is beyond what is planned yet, up to %s", f.say(f.at), away(f.at, f.now), f.say(r.PlannedThrough))
}

// because says why a skip was made.
func because(reason dts.Reason, r *dts.RecurringTask) string {
	switch reason {
	case dts.ReasonPaused:
		return "the recurring task was paused"
	case dts.ReasonOverlap:
		return "the run before was still active"
	case dts.ReasonCatchUp:
		if r == nil {
			return "it was missed, and the catch-up mode did not make up for it"
		}
		return fmt.Sprintf("no server could start it within %s of its time, and the catch-up mode %s did not make up for it", sayDuration(r.MisfireAfter()), r.CatchUpMode)
	case dts.ReasonExpired:
		return "it could not start before it expired"
	case dts.ReasonRemoved:
		return "someone removed it"
	case dts.ReasonCancelled:
		return "the recurring task was cancelled before"
	case dts.ReasonCalendar:
		return "a calendar excluded it"
	case dts.ReasonBlackout:
		return "a blackout was open"
	case dts.ReasonQueue:
		return "its queue was paused"
	case dts.ReasonDependency:
		return "what it depends on did not end as it must"
	}
	return "the reason is " + string(reason)
}

// whyTask answers for a task. r is its recurring task and skip the skip of its instant, where they were read before.
func (s *Scheduler) whyTask(ctx context.Context, t *dts.Task, r *dts.RecurringTask, skip *dts.Skip) (*dts.Why, error) {
	f := taskFacts{t: t, r: r, skip: skip, now: s.clock.now(), loc: time.UTC}
	w := &dts.Why{Task: t, Skip: skip}
	if t.RecurringTaskID != "" {
		w.Scheduled = &t.ScheduledAt
		if err := s.factsOfRecurring(ctx, &f); err != nil {
			return nil, err
		}
		w.Skip = f.skip
	}
	var err error
	if f.attempts, err = s.o.Store.Attempts(ctx, t.TenantID, t.ID); err != nil {
		return nil, err
	}
	closed, err := s.closings(ctx, t.TenantID)
	if err != nil {
		return nil, err
	}
	if h, is := closed.hold(laterOf(t.DueAt, t.ResolvedAt), t.Queue); is {
		f.blackout = &h
	}
	if !t.Status.Terminal() {
		f.gate = s.factsOfGate(t.ID)
	}
	if t.Unresolved > 0 {
		if f.parents, err = s.openParents(ctx, t); err != nil {
			return nil, err
		}
	}
	switch {
	case t.Status == dts.Pending:
		f.server = s.factsOfServer(t)
	case f.lateBy() > lateEnough && t.Node != "":
		f.server.queue = s.rules.queue(t.TenantID, t.Queue)
		if f.node, _, err = s.o.Store.Node(ctx, f.attempts[0].Node); err != nil {
			return nil, err
		}
	}
	w.Answer = sentence(f.answer())
	return w, nil
}

// factsOfRecurring adds what the recurring task of a task tells.
func (s *Scheduler) factsOfRecurring(ctx context.Context, f *taskFacts) error {
	t := f.t
	if f.r == nil {
		r, err := s.o.Store.RecurringTask(ctx, t.TenantID, t.RecurringTaskID)
		if err != nil && dts.CodeOf(err) != dts.ErrNotFound {
			return err
		}
		f.r = r
	}
	if f.r != nil {
		if loc, err := cron.LoadLocation(f.r.TimeZone); err == nil {
			f.loc = loc
		}
	}
	if t.Status == dts.Skipped && f.skip == nil {
		_, skips, err := s.o.Store.OccurrenceAt(ctx, t.TenantID, t.RecurringTaskID, t.ScheduledAt)
		if err != nil {
			return err
		}
		f.skip = exactly(skips, t.ScheduledAt)
	}
	if buffers(t.Overlap) && t.LatenessUS != nil {
		page, err := s.o.Store.Tasks(ctx, dts.TaskFilter{TenantID: t.TenantID, RecurringTaskID: t.RecurringTaskID, From: t.StartedAt.Add(-7 * 24 * time.Hour), To: t.StartedAt, Limit: 200})
		if err != nil {
			return err
		}
		f.afterRun = slices.ContainsFunc(page.Items, func(o *dts.Task) bool {
			return o.ID != t.ID && o.CompletedAt.After(t.DueAt) && t.StartedAt.Sub(o.CompletedAt).Abs() < time.Second
		})
	}
	return nil
}

func buffers(p dts.OverlapPolicy) bool {
	return p == dts.OverlapBufferOne || p == dts.OverlapBufferAll || p == dts.OverlapCancel
}

// serverFacts is how the server is that starts a task.
type serverFacts struct {
	elsewhere string   // another server starts it; "-": none does now
	notReady  []string // why nothing starts here
	slots     int      // for tasks of its kind
	full      bool
	queue     *dts.Queue // its settings; nil: it has none
	throttled bool       // the queue's rate keeps it from starting now
	share     int        // so many of its queue run, and that is as many as may; 0: more may
}

func (s *Scheduler) factsOfServer(t *dts.Task) serverFacts {
	f := serverFacts{queue: s.rules.queue(t.TenantID, t.Queue)}
	if !s.holds(t.Shard) {
		f.elsewhere = "-"
		if id := s.members.placement.Load().Holders[t.Shard]; id != "" {
			f.elsewhere = id
		}
		return f
	}
	s.factsOfFlow(t, &f)
	st := s.Status()
	f.notReady = st.NotReady
	for _, p := range st.Pools {
		if p.TargetType == t.TargetType {
			f.slots, f.full = p.Slots, p.Running >= p.Slots
		}
	}
	return f
}

// factsOfFlow adds what the loop knows of a task's queue; nothing when the loop does not answer.
func (s *Scheduler) factsOfFlow(t *dts.Task, f *serverFacts) {
	type facts struct {
		throttled bool
		share     int
	}
	answer := make(chan facts, 1)
	s.in.post(func(l *loop) {
		var got facts
		if fl := l.s.flows.get(dts.QueueKey{TenantID: t.TenantID, Name: t.Queue}); fl != nil {
			got.throttled = fl.throttled
			if mine := fl.pools[poolOf(t.TargetType)]; mine != nil && mine.sated {
				got.share = mine.running
			}
		}
		answer <- got
	})
	select {
	case got := <-answer:
		f.throttled, f.share = got.throttled, got.share
	case <-s.loopDone:
	case <-time.After(time.Second):
	}
}
