package sched

import (
	"slices"
	"time"

	"dts"
)

// Catching up: what becomes of instants that nobody fired in time, because the server was down, the machine slept, the
// clock was set forward, or a blackout lasted.

// catchUp decides about what was missed: occurrences that were planned, and instants that were not even that.
// The instants of the last misfire_after are not missed, only late.
func (b *planner) catchUp() {
	r, now := b.r, b.in.now
	cutoff := now.Add(-r.MisfireAfter() - r.Delay() - 1) // later than that, not as late
	missed := int64(0)
	if r.Status == dts.Active {
		missed = b.c.Count(r.PlannedThrough, cutoff)
	}
	b.thinOut()
	runs := b.mayRun()
	fresh := b.newest(cutoff, min(int64(runs), missed))
	if most := b.left(); most >= 0 && int64(len(fresh)) > most {
		fresh = fresh[int64(len(fresh))-most:]
	}
	late := b.in.late
	old := late[len(late)-min(runs-len(fresh), len(late)):]
	if w := r.CatchUpWindow(); w > 0 {
		old = slices.DeleteFunc(slices.Clone(old), func(t *dts.Task) bool { return t.ScheduledAt.Before(now.Add(-w)) })
	}
	oneNow := r.CatchUpMode == dts.RunOneNow && b.anyWithin(cutoff, missed)
	for _, t := range late[:len(late)-len(old)] {
		if t.WaitsFor == dts.ReasonBlackout {
			b.skipTask(t, dts.ReasonBlackout, "it lasted longer than misfire_after_seconds")
		} else {
			b.skipTask(t, dts.ReasonCatchUp, b.why(t.ScheduledAt))
		}
	}
	at := dts.Micros(now)
	for _, t := range old { // they run under their own scheduled_at, the oldest first
		n := *t
		n.MissAt, n.RunAt, n.WaitsFor = time.Time{}, laterOf(t.RunAt, at), ""
		b.plan.Changes = append(b.plan.Changes, dts.Change{Old: t, New: &n})
		at = at.Add(r.CatchUpPacing())
	}
	if missed > 0 {
		first, last, skipped := b.c.Next(r.PlannedThrough), b.c.Prev(cutoff), missed-int64(len(fresh))
		if skipped > 0 {
			through := last
			if len(fresh) > 0 {
				through = b.c.Prev(fresh[0].Add(-time.Microsecond))
			}
			b.plan.Skips = append(b.plan.Skips, b.skipRange(first, through, skipped, dts.ReasonCatchUp, b.why(through)))
		}
		for _, instant := range fresh {
			t := r.Occurrence(instant, dts.OriginSchedule, now)
			t.MissAt, t.RunAt = time.Time{}, at // decided: it runs, however late
			b.plan.Insert = append(b.plan.Insert, t)
			at = at.Add(r.CatchUpPacing())
		}
		b.advance(last)
	}
	if oneNow {
		b.plan.Insert = append(b.plan.Insert, r.Occurrence(dts.Micros(now), dts.OriginCatchUp, now))
	}
}

// mayRun is how many missed instants the catch-up mode lets run under their own scheduled_at.
func (b *planner) mayRun() int {
	switch b.r.CatchUpMode {
	case dts.RunLatest:
		return 1
	case dts.RunAllMissed:
		return b.r.CatchUpLimit
	}
	return 0
}

// newest returns the newest n instants up to through that are not older than the catch-up window, the oldest first.
func (b *planner) newest(through time.Time, n int64) []time.Time {
	var list []time.Time
	oldest := b.r.PlannedThrough
	if w := b.r.CatchUpWindow(); w > 0 {
		oldest = laterOf(oldest, b.in.now.Add(-w-time.Microsecond))
	}
	for at := b.c.Prev(through); int64(len(list)) < n && at.After(oldest); at = b.c.Prev(at.Add(-time.Microsecond)) {
		list = append(list, at)
	}
	slices.Reverse(list)
	return list
}

// anyWithin reports whether something was missed within the catch-up window.
func (b *planner) anyWithin(cutoff time.Time, missed int64) bool {
	if missed > 0 && len(b.newest(cutoff, 1)) > 0 {
		return true
	}
	w := b.r.CatchUpWindow()
	return slices.ContainsFunc(b.in.late, func(t *dts.Task) bool { return w == 0 || !t.ScheduledAt.Before(b.in.now.Add(-w)) })
}

// thinOut skips occurrences that wait for the end of a blackout, or of the pause of their queue, and would be skipped then:
// those that wait stay few, however long it lasts.
func (b *planner) thinOut() {
	keep := max(b.mayRun(), 1) // one for RUN_ONE_NOW, and to tell at the end that something was missed
	reason := dts.ReasonBlackout
	if b.in.queuePaused {
		reason = dts.ReasonQueue
	}
	for _, t := range b.in.waiting[:max(len(b.in.waiting)-keep, 0)] {
		b.skipTask(t, reason, "a later instant waits as well")
	}
}

// makeUp applies the catch-up mode to the instants of a pause that has ended: they were skipped, and what is made up
// for runs as tasks of origin CATCH_UP.
func (b *planner) makeUp(since time.Time) {
	r, now := b.r, dts.Micros(b.in.now)
	cursor := r.PlannedThrough
	r.PlannedThrough = since // newest looks back as far as that
	var instants []time.Time
	if r.CatchUpMode == dts.RunOneNow {
		if len(b.newest(now, 1)) > 0 {
			instants = []time.Time{now}
		}
	} else {
		instants = b.newest(now, int64(b.mayRun()))
	}
	r.PlannedThrough = cursor
	at := now
	for _, instant := range instants {
		t := r.Occurrence(instant, dts.OriginCatchUp, now)
		t.DueAt, t.RunAt = at, at // it is due because it was asked for
		b.plan.Insert = append(b.plan.Insert, t)
		at = at.Add(r.CatchUpPacing())
	}
}

// why is the note of instants that were missed.
func (b *planner) why(through time.Time) string {
	if b.in.why == nil {
		return ""
	}
	return b.in.why(through)
}
