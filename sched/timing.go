package sched

import (
	"time"

	"dts"
)

// Where the time between the instant at which a task was to start and its start goes. From the instant at which the loop has
// it due to the one at which it gets its slot, it waits: for a slot, a limit, a blackout, a gate, or the run before. The rest
// is the scheduler's own.

// heldUp is how late a task must be that this server could have started all the time, for somebody to have kept it: it was
// paused, or its queue. The scheduler itself is never so slow.
const heldUp = 5 * time.Second

// see notes since when a task that is due waits. One whose wait began elsewhere (it stood in a line, it waited before this
// server had it, it was paused, or so many of its kind were claimed that it was not) waits since it could have started.
func (l *loop) see(it *item, now time.Time) {
	if !it.seen.IsZero() {
		return
	}
	it.seen = now
	t := it.task
	since := laterOf(t.EligibleAt(), t.CreatedAt)
	if t.WaitsFor == "" {
		// While nobody had the shard, or this server stood still, it did not wait for others.
		since = laterOf(laterOf(since, l.since[it.Shard]), l.stalled)
		if !l.backlog(it) && now.Sub(since) < heldUp {
			return
		}
	}
	if since.Before(now) {
		it.seen = since
	}
}

// noteStall notes that the loop has come so late that it, or its machine, must have stood still.
func (l *loop) noteStall(now time.Time) {
	wake := laterOf(l.nextWake, l.lookedAt)
	if !l.nextWake.IsZero() && now.Sub(wake) > time.Second {
		l.stalled = now
	}
	l.lookedAt = now
}

// backlog reports whether so many tasks of a kind are claimed and have not started that a task of it may have waited to be
// claimed.
func (l *loop) backlog(it *item) bool {
	return l.s.unstarted[poolOf(it.TargetType)][it.rank()].Load() > int64(l.s.o.ClaimLimit/2)
}

// queued is how long a task has waited that gets its slot now.
func (it *item) queued(now time.Time) time.Duration { return max(now.Sub(it.seen), 0) }

// noteFirst notes in a task what its first start says of it.
func (r *run) noteFirst(now time.Time, late *int64) {
	t := r.task
	met := !now.After(t.DueAt.Add(t.SLA()))
	t.StartedAt, t.LatenessUS, t.SLAMet, t.QueuedUS = now, late, &met, r.queued.Microseconds()
	if w := t.WarnLateSeconds; w > 0 && now.Sub(t.DueAt).Seconds() > w {
		t.Warnings = warned(t.Warnings, dts.WarnLate)
		r.late = true
	}
}
