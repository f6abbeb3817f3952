package sched

import (
	"context"

	"dts"
)

// A verb takes its task out of the loop's hands before it changes the store, and gives it back after: that
// is why a cancel or a modify can never race a fire.

// hold takes tasks out of memory. Those that a runner has stay there: busy lists them. Every other one
// must be given back with release.
func (s *Scheduler) hold(ctx context.Context, ids ...string) (busy []string, err error) {
	type answer struct {
		id      string
		running bool
	}
	answers := make(chan answer, len(ids))
	var take func(l *loop, id string)
	take = func(l *loop, id string) {
		it := l.items[id]
		if it == nil {
			s.strangers.Add(1)
			l.items[id] = &item{Entry: dts.Entry{TaskID: id}, state: held}
			answers <- answer{id, false}
			return
		}
		p := l.pools[poolOf(it.TargetType)]
		switch it.state {
		case waiting:
			p.waiting[it.Rank].remove(it)
		case claimed:
			p.claimed.remove(it)
			l.count(it, -1)
		case ready:
			p.ready.Remove(it.spot)
			l.count(it, -1)
		case running, recording:
			answers <- answer{id, true}
			return
		case inserting, claiming, deciding, held:
			// It comes to rest soon; look again then.
			it.waiters = append(it.waiters, func() { s.in.post(func(l *loop) { take(l, id) }) })
			return
		}
		it.state, it.spot = held, nil
		answers <- answer{id, false}
	}
	s.in.post(func(l *loop) {
		for _, id := range ids {
			take(l, id)
		}
	})
	var taken []string
	for range ids {
		select {
		case a := <-answers:
			if a.running {
				busy = append(busy, a.id)
			} else {
				taken = append(taken, a.id)
			}
		case <-s.loopDone:
			return nil, errStopped
		case <-ctx.Done():
			// What is still taken later must be given back too.
			missing := len(ids) - len(taken) - len(busy)
			s.release(taken, nil)
			s.spawn(func() {
				for range missing {
					select {
					case a := <-answers:
						if !a.running {
							s.release([]string{a.id}, nil)
						}
					case <-s.loopDone:
						return
					}
				}
			})
			return nil, dts.Errorf(dts.ErrUnavailable, "the request was given up before it was done: %w", ctx.Err())
		}
	}
	return busy, nil
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
			n, isChanged := changed[id]
			old := it.task
			l.drop(it)
			switch {
			case isChanged && n == nil:
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
	case !t.PickedAt.IsZero():
		l.add(t.Entry(), t)
	default:
		l.add(t.Entry(), nil)
	}
}
