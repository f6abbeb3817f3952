package sched

import (
	"context"
	"slices"
	"time"

	"dts"
)

// Dependencies: the store resolves them in the batches that end tasks, whoever writes those, and lists what became ready or
// ended by that for the holders of their shards. A task that waits for others is not in memory.

const (
	cascadeEvery = 5 * time.Second // how often the store is asked whether a server has left something undone
	cascadeAlone = time.Minute     // the same where no other server can have
)

// rippleLoop takes up what the ends of tasks have led to: at once where this server wrote them, else when it looks.
func (s *Scheduler) rippleLoop() {
	look, sweep := handoffEvery, cascadeEvery
	if s.alone() {
		look, sweep = cascadeAlone, cascadeAlone
	}
	tick := time.NewTicker(look)
	defer tick.Stop()
	var swept time.Time
	for {
		err := s.takeUp()
		if now := time.Now(); err == nil && now.Sub(swept) >= sweep {
			if err = s.cascade(); err == nil {
				swept = now
			}
		}
		if err != nil && !s.o.Refused(err) && s.ctx.Err() == nil {
			s.logStore("take up what became of dependencies", err)
		}
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		case <-s.o.Store.Ripples():
			swept = time.Time{}
			s.wakeOthers()
		}
	}
}

// cascade tells the dependents of all that has ended, in as many steps as it takes, and takes up what that leads to.
func (s *Scheduler) cascade() error {
	for more := true; more; {
		var err error
		if more, err = s.o.Store.Cascade(s.ctx, s.fence(), s.clock.now()); err != nil {
			return err
		}
		if more {
			if err := s.takeUp(); err != nil {
				return err
			}
		}
	}
	return s.takeUp()
}

// wakeOthers tells other servers what has just become ready in their shards. What it does not tell, they find themselves.
func (s *Scheduler) wakeOthers() {
	if s.alone() {
		return
	}
	ids, err := s.o.Store.Handoffs(s.ctx, ^s.fence().Terms.Held(), handoffChunk)
	if err != nil || len(ids) == 0 {
		return
	}
	tasks, err := s.o.Store.Load(s.ctx, ids)
	if err != nil {
		return
	}
	byShard := map[int][]string{}
	for _, t := range tasks {
		byShard[t.Shard] = append(byShard[t.Shard], t.ID)
	}
	for shard, ids := range byShard {
		s.wakeHolder(shard, ids...)
	}
}

// endedWaiting reports whether a task is not ready to run, and publishes its end if that is because of what it depends on.
func (s *Scheduler) endedWaiting(t *dts.Task) bool {
	if t.Status == dts.Pending && t.Unresolved == 0 {
		return false
	}
	if t.SkipReason == dts.ReasonDependency && t.Status.Terminal() {
		typ := dts.EventSkipped
		if t.Status == dts.Failed {
			typ = dts.EventFinished
			s.m.failed.Inc()
		} else {
			s.m.skipped.Inc()
		}
		s.bus.publish(taskEvent(typ, t, s.clock.now()))
	}
	return true
}

// AddDependencies makes a task that has not started depend on others, too, and returns the graph as it is then. A circle is
// a dts.ErrConflict that names it; a parent that is not there is a dts.ErrInvalid. The list is normalized already.
func (s *Scheduler) AddDependencies(ctx context.Context, tenant, id string, list []dts.DependsOn) (*dts.Graph, error) {
	return s.redepend(ctx, tenant, id, dts.Change{DependsOn: list})
}

// RemoveDependency lets a task that has not started not depend on another one any more. dts.ErrNotFound: it does not.
func (s *Scheduler) RemoveDependency(ctx context.Context, tenant, id, parent string) (*dts.Graph, error) {
	return s.redepend(ctx, tenant, id, dts.Change{Undepend: parent})
}

func (s *Scheduler) redepend(ctx context.Context, tenant, id string, c dts.Change) (*dts.Graph, error) {
	_, err := s.change(ctx, tenant, id, dts.Modify, func(old *dts.Task) (dts.Change, error) {
		if old.Attempts > 0 {
			return dts.Change{}, dts.Errorf(dts.ErrConflict, "the task %s has started: what it depends on can be changed only before", id)
		}
		if c.Undepend != "" {
			has, err := s.o.Store.DependsOn(ctx, tenant, id, c.Undepend)
			if err != nil {
				return dts.Change{}, err
			}
			if !has {
				return dts.Change{}, dts.Errorf(dts.ErrNotFound, "the task %s does not depend on %s", id, c.Undepend)
			}
		}
		n := *old
		if n.WaitsFor != "" && n.WaitsFor != dts.ReasonPaused { // where it stood, it stands no more; it is decided anew
			n.WaitsFor, n.RunAt = "", n.DueAt
		}
		c.Old, c.New = old, &n
		return c, nil
	})
	if err != nil {
		return nil, err
	}
	return s.o.Store.Graph(ctx, tenant, id, dts.MaxGraph)
}

// recall takes those tasks out of memory that wait again for others, because these are retried by the changes: they may be
// claimed already, or wait for a slot. What somebody else has in his hands is left to him. What runs goes on: it is seen to
// that the store knows it before the others can end, and with that decide about it.
func (s *Scheduler) recall(ctx context.Context, changes ...dts.Change) {
	var retried []string
	for _, c := range changes {
		if c.New != nil && c.Old.Status.Terminal() && c.New.Status == dts.Pending {
			retried = append(retried, c.Old.ID)
		}
	}
	if retried == nil {
		return
	}
	ids, err := s.o.Store.Reopened(ctx, retried)
	if err != nil {
		s.logStore("read what waits again", err)
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(retried, id) }) // those run at once
	if len(ids) == 0 {
		return
	}
	h := s.newHolding(ids, false)
	h.recalls = true
	if h.await(ctx) != nil {
		return // the scheduler ends
	}
	s.awaitDisk(ctx, h.busy)
	changed := map[string]*dts.Task{}
	tasks, err := s.o.Store.TasksByID(ctx, h.taken) // as they are now that nobody else changes them
	if err != nil {
		s.logStore("read what waits again", err)
	}
	for _, t := range tasks {
		changed[t.ID] = t
	}
	s.release(h.taken, changed)
}

// awaitDisk waits until the starts of tasks that run are on the disk, or their ends.
func (s *Scheduler) awaitDisk(ctx context.Context, ids []string) {
	if len(ids) == 0 {
		return
	}
	found := make(chan []<-chan struct{}, 1)
	s.in.post(func(l *loop) {
		var list []<-chan struct{}
		for _, id := range ids {
			switch it := l.items[id]; {
			case it == nil:
			case it.state == running:
				list = append(list, it.run.onDisk())
			case it.state == recording:
				done := make(chan struct{})
				it.waiters = append(it.waiters, func() { close(done) })
				list = append(list, done)
			}
		}
		found <- list
	})
	select {
	case list := <-found:
		for _, done := range list {
			select {
			case <-done:
			case <-ctx.Done():
				return
			case <-s.loopDone:
				return
			}
		}
	case <-s.loopDone:
	}
}
