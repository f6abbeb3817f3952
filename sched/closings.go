package sched

import (
	"context"
	"slices"
	"strings"
	"time"

	"dts"
)

// closings is a tenant's blackouts, those that are over too, for those who tell what will happen or why something did not.
type closings []*blackout

// closings reads a tenant's blackouts. One that cannot be understood, because another version of dts made it, is left out.
func (s *Scheduler) closings(ctx context.Context, tenant string) (closings, error) {
	all, err := s.o.Store.Blackouts(ctx, tenant)
	if err != nil {
		return nil, err
	}
	var list closings
	for _, b := range all {
		switch w, err := s.compileBlackout(ctx, b); {
		case err == nil:
			list = append(list, &blackout{b, w})
		case dts.CodeOf(err) != dts.ErrInvalid && dts.CodeOf(err) != dts.ErrInternal:
			return nil, err
		}
	}
	return list, nil
}

// within leaves only the blackouts that are open at some time in [from, to).
func (k closings) within(from, to time.Time) closings {
	return slices.DeleteFunc(slices.Clone(k), func(b *blackout) bool {
		begins, _, ok := b.windows.Next(from)
		return !ok || !begins.Before(to)
	})
}

// barred is what blackouts do to a task that is due.
type barred struct {
	by      []string // the names of those that do something
	until   time.Time
	skipped bool
}

// touching is how many blackouts, each of which begins before the one before ends, are followed.
const touching = 100

// hold tells what becomes of a task of a queue that is due for the first time at an instant; ok is false when no blackout is
// open then.
func (k closings) hold(at time.Time, queue string) (h barred, ok bool) {
	h.until = at
	for range touching {
		end := h.until
		for _, b := range k {
			if b.Queue != "" && b.Queue != queue {
				continue
			}
			until, in := b.windows.At(h.until)
			if !in {
				continue
			}
			if b.Action == dts.BlackoutSkip {
				return barred{by: append(h.by, b.Name), until: until, skipped: true}, true
			}
			if until.After(end) {
				end = until
			}
			if !slices.Contains(h.by, b.Name) {
				h.by = append(h.by, b.Name)
			}
		}
		if end.Equal(h.until) {
			break
		}
		h.until = end
	}
	return h, len(h.by) > 0
}

// names writes what holds a task as people write it: the blackout upgrade; the blackouts upgrade and backup.
func (h barred) names() string {
	if len(h.by) == 1 {
		return "the blackout " + h.by[0]
	}
	last := len(h.by) - 1
	return "the blackouts " + strings.Join(h.by[:last], ", ") + " and " + h.by[last]
}
