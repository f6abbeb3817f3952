package sched

import (
	"context"
	"time"

	"dts"
	"dts/sched/calendar"
)

// Blackouts: times in which nothing starts, in one queue or in all. They are looked up at the instant.

// blackout is one that is in force, as the loop sees it.
type blackout struct {
	*dts.Blackout
	windows *calendar.Blackout
}

// covers reports whether a task may not start now, and until when.
func (b *blackout) covers(t *dts.Task, now time.Time) (until time.Time, in bool) {
	if b.TenantID != t.TenantID || b.Queue != "" && b.Queue != t.Queue || !b.End.IsZero() && !now.Before(b.End) {
		return until, false
	}
	return b.windows.At(now)
}

// bar is what blackouts do to a task that is due: one skips it, or it waits until a time; neither when none is open.
func bar(list []*blackout, t *dts.Task, now time.Time) (skip *blackout, until time.Time) {
	for _, b := range list {
		end, in := b.covers(t, now)
		switch {
		case !in:
		case b.Action == dts.BlackoutSkip && t.Attempts == 0 && t.Origin != dts.OriginTrigger:
			return b, time.Time{}
		default:
			until = laterOf(until, end)
		}
	}
	return nil, until
}

// blackedOut lets a task that is due wait for the end of a blackout, or skips it; false when there is none.
func (l *loop) blackedOut(it *item, now time.Time) bool {
	skip, until := bar(l.blackouts, it.task, now)
	switch {
	case skip != nil:
		l.skip(it, dts.ReasonBlackout, skip.Name)
		return true
	case until.IsZero():
		return false
	}
	n := *it.task
	n.RunAt, n.WaitsFor, n.PickedAt = until, dts.ReasonBlackout, time.Time{}
	l.count(it, -1)
	l.endActive(it)
	l.rewrite(it, &n, func(l *loop, ok bool) {
		if !ok {
			l.leave(it)
			return
		}
		l.drop(it)
		l.add(n.Entry(), nil)
	})
	return true
}

// reviewWaiting lets tasks in the shards that wait for the end of a blackout be decided about anew, after blackouts
// were changed.
func (s *Scheduler) reviewWaiting(shards dts.ShardSet) error {
	for after, more := int64(0), true; more; {
		if !s.lockPlans(s.ctx) { // so that the planner sees what waited together together
			return context.Cause(s.ctx)
		}
		tasks, err := s.o.Store.Waiting(s.ctx, shards&s.fence().Terms.Held(), dts.ReasonBlackout, after, bulkChunk)
		if more = len(tasks) > 0; more {
			after = tasks[len(tasks)-1].Seq
			err = s.reviewTasks(tasks)
		}
		s.unlockPlans()
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Scheduler) reviewTasks(tasks []*dts.Task) error {
	now, list := s.clock.now(), s.rules.all()
	for _, t := range tasks {
		if skip, until := bar(list, t, now); skip == nil && until.Equal(t.RunAt) || !t.RunAt.After(now) {
			continue // nothing has changed for it, or it is due anyway
		}
		_, err := s.change(s.ctx, t.TenantID, t.ID, dts.Modify, func(old *dts.Task) (dts.Change, error) {
			if old.WaitsFor != dts.ReasonBlackout {
				return dts.Change{}, nil
			}
			n := *old
			n.RunAt = old.EligibleAt() // what it has waited for stays: if that was too long, the ledger says so
			return dts.Change{Old: old, New: &n}, nil
		})
		if err != nil && s.ctx.Err() != nil {
			return context.Cause(s.ctx)
		}
		if code := dts.CodeOf(err); err != nil && code != dts.ErrConflict && code != dts.ErrNotFound && code != dts.ErrElsewhere {
			return err
		}
	}
	return nil
}
