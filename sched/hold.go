package sched

import (
	"context"
	"slices"

	"dts"
)

// A verb takes its task out of the loop's hands before it changes the store, and gives it back after: that
// is why a cancel or a modify can never race a fire.

// holding is one request for several tasks. It takes them in the order of their ids and waits for one before it takes the
// next: two that want some of the same tasks can then never wait for each other.
type holding struct {
	s       *Scheduler
	ids     []string // still to be taken
	wait    bool     // for what others hold
	taken   []string
	busy    []string      // a runner has them
	others  []string      // others hold them, and it does not wait for those
	over    bool          // given up
	recalls bool          // whoever holds one of the others looks at it anew in the end
	done    chan struct{} // closed when nothing is left to be taken
}

func (s *Scheduler) newHolding(ids []string, wait bool) *holding {
	sorted := slices.Sorted(slices.Values(ids))
	return &holding{s: s, ids: slices.Compact(sorted), wait: wait, done: make(chan struct{})}
}

// take goes on to take tasks until it must wait for one. The loop calls it.
func (h *holding) take(l *loop) {
	for !h.over && len(h.ids) > 0 {
		id := h.ids[0]
		it := l.items[id]
		if it == nil {
			h.s.strangers.Add(1)
			it = &item{Entry: dts.Entry{TaskID: id}}
			l.items[id] = it
		} else {
			p := l.pools[poolOf(it.TargetType)]
			switch it.state {
			case waiting:
				l.unshelve(it)
			case claimed:
				p.claimed.remove(it)
				l.count(it, -1)
			case ready:
				p.ready.Remove(it.spot)
				l.count(it, -1)
				l.endActive(it)
			case parked:
				l.unpark(it)
				l.count(it, -1)
				l.endActive(it)
			case buffered:
				l.unbuffer(it)
			case running, recording:
				h.busy, h.ids = append(h.busy, id), h.ids[1:]
				continue
			case inserting, claiming, deciding, held:
				if it.state == held && !h.wait {
					it.recalls = it.recalls || h.recalls
					h.others, h.ids = append(h.others, id), h.ids[1:]
					continue
				}
				// It comes to rest soon; look again then.
				it.waiters = append(it.waiters, func() { h.s.in.post(h.take) })
				return
			}
		}
		it.state, it.spot = held, nil
		h.taken, h.ids = append(h.taken, id), h.ids[1:]
	}
	if !h.over {
		h.over = true
		close(h.done)
	}
}

// await waits until everything is taken. When it fails, nothing is.
func (h *holding) await(ctx context.Context) error {
	h.s.in.post(h.take)
	select {
	case <-h.done:
		return nil
	case <-h.s.loopDone:
		return errStopped
	case <-ctx.Done():
		h.s.in.post(func(*loop) {
			h.over = true
			h.s.release(h.taken, nil)
		})
		return dts.Errorf(dts.ErrUnavailable, "the request was given up before it was done: %w", ctx.Err())
	}
}

// hold takes tasks out of memory. Those that a runner has stay there: busy lists them. Every other one
// must be given back with release.
func (s *Scheduler) hold(ctx context.Context, ids ...string) (busy []string, err error) {
	h := s.newHolding(ids, true)
	if err := h.await(ctx); err != nil {
		return nil, err
	}
	return h.busy, nil
}

var errStopped = dts.Errorf(dts.ErrUnavailable, "the server is stopping")

// release gives held tasks back. changed holds the new form of those that were changed; one that is mapped to
// nil is gone. The others were left as they were.
func (s *Scheduler) release(ids []string, changed map[string]*dts.Task) {
	s.in.post(func(l *loop) {
		for _, id := range ids {
			it := l.items[id]
			if it == nil || it.state != held {
				continue
			}
			l.noteVerb(id)
			if it.lost {
				l.leave(it)
				continue
			}
			n, isChanged := changed[id]
			old := it.task
			l.drop(it)
			switch {
			case isChanged && n == nil:
			case it.recalls && (!isChanged || n.Status == dts.Pending):
				s.settle([]string{id}, nil) // whether it may run, the store says
			case isChanged && n.Unresolved > 0 && it.freed: // the last one that it waited for has ended meanwhile
				l.add(n.Entry(), nil)
			case isChanged:
				l.take(n)
			case old != nil: // it is still claimed
				l.add(it.Entry, old)
			case it.RunAt.IsZero(): // it was not in memory
			default:
				l.add(it.Entry, nil)
			}
		}
	})
}

// take takes a task as it was just written: claimed, or waiting, or not to be run.
func (l *loop) take(t *dts.Task) {
	switch {
	case t.Status != dts.Pending || t.Unresolved > 0:
		l.promote(t.RecurringTaskID) // it may have been what others wait for
	case !t.PickedAt.IsZero():
		l.add(t.Entry(), t)
	default:
		l.add(t.Entry(), nil)
	}
}
