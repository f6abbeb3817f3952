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
	if b.TenantID != t.TenantID || b.Queue != "" && b.Queue != t.Queue {
		return until, false
	}
	return b.windows.At(now)
}

// blackedOut lets a task that is due wait for the end of a blackout, or skips it; false when there is none.
func (l *loop) blackedOut(it *item, now time.Time) bool {
	var until time.Time
	for _, b := range l.blackouts {
		end, in := b.covers(it.task, now)
		switch {
		case !in:
		case b.Action == dts.BlackoutSkip && it.task.Attempts == 0 && it.task.Origin != dts.OriginTrigger:
			l.skip(it, dts.ReasonBlackout, b.Name)
			return true
		default:
			until = laterOf(until, end)
		}
	}
	if until.IsZero() {
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
	for after := int64(0); ; {
		tasks, err := s.o.Store.Waiting(s.ctx, shards&s.fence().Terms.Held(), dts.ReasonBlackout, after, bulkChunk)
		if err != nil || len(tasks) == 0 {
			return err
		}
		after = tasks[len(tasks)-1].Seq
		for _, t := range tasks {
			_, err := s.change(s.ctx, t.TenantID, t.ID, dts.Modify, func(old *dts.Task) (dts.Change, error) {
				if old.WaitsFor != dts.ReasonBlackout {
					return dts.Change{}, nil
				}
				n := *old
				n.RunAt, n.WaitsFor = old.EligibleAt(), ""
				return dts.Change{Old: old, New: &n}, nil
			})
			if err != nil && s.ctx.Err() != nil {
				return context.Cause(s.ctx)
			}
			if code := dts.CodeOf(err); err != nil && code != dts.ErrConflict && code != dts.ErrNotFound && code != dts.ErrElsewhere {
				return err
			}
		}
	}
}
