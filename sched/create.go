package sched

import (
	"context"
	"time"

	"dts"
)

// CreateTasks inserts normalized tasks, all or none, and takes those that are due soon. Under an idempotency
// key that the same request used before, or a dedupe_key with KEEP_FIRST, it returns what exists. The policy REPLACE is for
// a single task; among several it is as REJECT.
func (s *Scheduler) CreateTasks(ctx context.Context, tasks []*dts.Task) ([]dts.Created[*dts.Task], error) {
	caller := ctx
	ctx, err := begun(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range tasks {
		if err := s.refuseBackup(&t.Spec); err != nil {
			return nil, err
		}
		s.queueRetry(t.TenantID, &t.Spec)
		t.MaxAttempts = t.Retry.MaxAttempts
	}
	var made []dts.Created[*dts.Task]
	if len(tasks) == 1 && tasks[0].DedupePolicy == dts.DedupeReplace {
		made, err = s.replace(caller, ctx, tasks[0])
	} else {
		made, err = s.insert(ctx, tasks)
	}
	if err != nil {
		return nil, err
	}
	fresh, existed := make([]*dts.Task, 0, len(tasks)), []*dts.Task(nil)
	for i, c := range made {
		if c.Existed {
			existed = append(existed, tasks[i])
		} else {
			fresh = append(fresh, c.Item)
		}
	}
	s.unreserve(existed)
	s.m.scheduled.Add(float64(len(fresh)))
	s.takeNew(fresh)
	return made, nil
}

// insert inserts tasks into shards that this server holds, and keeps places for those that are due soon.
func (s *Scheduler) insert(ctx context.Context, tasks []*dts.Task) ([]dts.Created[*dts.Task], error) {
	for try := 0; ; try++ {
		for _, t := range tasks {
			var ok bool
			if t.Shard, ok = s.place(t.ID); !ok {
				return nil, notMine("task", t.ID)
			}
		}
		s.reserve(tasks)
		f := s.fence()
		made, err := s.o.Store.InsertTasks(ctx, f, tasks)
		if err == nil {
			return made, nil
		}
		if moved := s.moved(err); !moved || try == insertTries {
			s.noteFault()
			s.insertFailed(tasks, err)
			if moved {
				return nil, notMine("task", tasks[0].ID)
			}
			return nil, err
		}
		// A shard has just gone to another server.
		s.unreserve(tasks)
		s.awaitFence(ctx, f)
	}
}

// moved reports whether an insert was refused because shards have gone to another server. An idempotency key that is
// taken refuses it, too.
func (s *Scheduler) moved(err error) bool {
	return s.o.Refused(err) && !s.alone() && dts.CodeOf(err) != dts.ErrConflict
}

// insertTries is how often an insert is tried again while shards move.
const insertTries = 5

// awaitFence waits until this server knows that what it holds has changed since f, but not for long.
func (s *Scheduler) awaitFence(ctx context.Context, f dts.Fence) {
	s.members.look()
	for range 20 {
		if now := s.fence(); now.Incarnation != f.Incarnation || *now.Terms != *f.Terms {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-s.ctx.Done():
			return
		case <-time.After(25 * time.Millisecond):
		}
	}
}

// reserve claims those of the tasks, which are about to be inserted, that are due so soon that they would be read
// back at once anyway. From here on the loop keeps a place for them: a scan of the store that finds one does not
// start it, and a verb waits until it is inserted.
func (s *Scheduler) reserve(tasks []*dts.Task) {
	var list []dts.Entry
	for _, t := range tasks {
		if s.claimNow(t); !t.PickedAt.IsZero() {
			list = append(list, t.Entry())
		}
	}
	if list == nil {
		return
	}
	s.in.post(func(l *loop) {
		for _, e := range list {
			if l.items[e.TaskID] == nil {
				l.items[e.TaskID] = &item{Entry: e, state: inserting}
			}
		}
	})
}

// claimNow claims a task that is about to be written, if it is due within what is claimed ahead.
func (s *Scheduler) claimNow(t *dts.Task) {
	now := s.clock.now()
	kind, rank := poolOf(t.TargetType), t.Priority.Rank()
	limit := s.claimLimit(kind, rank)
	if !t.RunAt.After(now) {
		limit *= 2 // it need not wait until others, due later, have started
	}
	if s.draining.Load() || s.clock.held() != "" || t.Unresolved > 0 || t.RunAt.After(now.Add(claimAhead)) {
		return
	}
	if f := s.flows.get(dts.QueueKey{TenantID: t.TenantID, Name: t.Queue}); f != nil && f.unstarted[kind][rank].Load() >= limit {
		return
	}
	t.Node, t.PickedAt = s.o.Node.ID, dts.Micros(now)
}

// takeNew tells the loop, and whoever listens, of tasks that were just inserted.
func (s *Scheduler) takeNew(tasks []*dts.Task) {
	if len(tasks) == 0 {
		return
	}
	s.in.post(func(l *loop) {
		for _, t := range tasks {
			place := l.items[t.ID]
			if place == nil || place.state != inserting {
				if t.Status == dts.Pending && t.Unresolved == 0 {
					l.add(t.Entry(), nil) // is read when it is claimed
				}
				continue
			}
			if place.lost {
				l.leave(place)
				continue
			}
			delete(l.items, t.ID)
			c := *t // the loop's runs note their start in it
			l.take(&c)
			l.release(place)
		}
	})
	if s.bus.listening() {
		now := s.clock.now()
		for _, t := range tasks {
			s.bus.publish(taskEvent(dts.EventCreated, t, now))
		}
	}
}

// unreserve gives up the places of tasks that were not inserted.
func (s *Scheduler) unreserve(tasks []*dts.Task) {
	if len(tasks) == 0 {
		return
	}
	s.in.post(func(l *loop) {
		for _, t := range tasks {
			l.dropPlace(t.ID)
		}
	})
}

func (l *loop) dropPlace(id string) {
	if it := l.items[id]; it != nil && it.state == inserting {
		l.drop(it) // what came of it, the caller finds out
	}
}

// insertFailed gives up the places, or finds out whether the tasks are there all the same.
func (s *Scheduler) insertFailed(tasks []*dts.Task, err error) {
	if code := dts.CodeOf(err); code == dts.ErrFull || code == dts.ErrUnavailable || s.o.Refused(err) { // nothing was inserted
		s.unreserve(tasks)
		return
	}
	ids := make([]string, len(tasks))
	for i, t := range tasks {
		ids[i] = t.ID
	}
	s.settle(ids, nil)
}
