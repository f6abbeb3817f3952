package sched

import (
	"time"

	"dts"
)

// Where the time between the instant at which a task was to start and its start goes. From the instant at which the loop has
// it due to the one at which it gets its slot, it waits: for a slot, a limit, a blackout, a gate, or the run before. The rest
// is the scheduler's own.

// see notes since when a task that is due waits. One whose wait began elsewhere (it stood in a line, it waited before this
// server had it, or so many of its kind were claimed that it was not) waits since it could have started.
func (l *loop) see(it *item, now time.Time) {
	if !it.seen.IsZero() {
		return
	}
	it.seen = now
	t := it.task
	if t.WaitsFor == "" && !l.backlog(it) {
		return
	}
	since := laterOf(t.EligibleAt(), t.CreatedAt)
	if t.WaitsFor == "" {
		since = laterOf(since, l.since[it.Shard]) // while nobody had the shard, it did not wait for others
	}
	if since.Before(now) {
		it.seen = since
	}
}

// backlog reports whether so many tasks of a kind are claimed and have not started that a task of it may have waited to be
// claimed.
func (l *loop) backlog(it *item) bool {
	return l.s.unstarted[poolOf(it.TargetType)][it.Rank].Load() > int64(l.s.o.ClaimLimit/2)
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
