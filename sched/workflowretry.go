package sched

import (
	"context"
	"slices"

	"dts"
)

// retrySteps lets a run, which is held, go on from where it failed; with one only from that step.
func (s *Scheduler) retrySteps(ctx context.Context, run *dts.Task, one bool, id, actor string, changed map[string]*dts.Task) (t *dts.Task, err error) {
	steps, err := s.o.Store.Steps(ctx, run.TenantID, run.ID)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, t := range steps {
		if t.Status.Terminal() {
			ids = append(ids, t.ID)
		}
	}
	for busy := ids; len(busy) > 0; {
		if busy, err = s.hold(ctx, ids...); err != nil {
			return nil, err
		}
		if len(busy) == 0 {
			break
		}
		// The loop is about to hear of their ends.
		s.release(slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(busy, id) }), nil)
		for _, id := range busy {
			if err := s.recorded(ctx, id); err != nil {
				return nil, err
			}
		}
	}
	mine := map[string]*dts.Task{}
	defer func() {
		if unsettled(err) {
			s.settle(nil, ids)
			return
		}
		s.release(ids, mine)
	}()
	if steps, err = s.o.Store.Steps(ctx, run.TenantID, run.ID); err != nil {
		return nil, err
	}
	edges, err := s.o.Store.StepEdges(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	held := func(t *dts.Task) bool { return t.Status.Terminal() && slices.Contains(ids, t.ID) }
	if i := slices.IndexFunc(steps, func(t *dts.Task) bool { return t.ID == id }); one && (i < 0 || !held(steps[i])) {
		return nil, dts.Errorf(dts.ErrConflict, "the task %s has changed in the meantime; look at it and try again", id)
	} else if one {
		if _, err := dts.RetryNow.Do(steps[i].Status); err != nil {
			return nil, err
		}
	}
	p := planRetry(steps, edges, func(t *dts.Task) bool {
		if one {
			return t.ID == id
		}
		return badStatus(t) && held(t)
	})
	var changes []dts.Change
	for _, t := range steps {
		if p.again[t.ID] {
			c := s.effect(t, dts.Requeue, actor)
			c.Again, c.New.Unresolved = p.edges(t)
			s.unclaim(c.New)
			changes = append(changes, c)
		}
	}
	if run.Status.Terminal() {
		c := s.effect(run, dts.Requeue, actor)
		c.New.LastError, c.New.MaxAttempts = "", run.MaxAttempts
		c.Again, c.New.Unresolved = p.edges(run)
		s.unclaim(c.New)
		changes = append(changes, c)
	}
	write, err := begun(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.o.Store.Change(write, s.fence(), changes, s.clock.now()); err != nil {
		return nil, s.changedMeanwhile(err, "task", id, run.Shard)
	}
	s.recall(write, changes...)
	for _, c := range changes {
		to := mine
		if c.Old.ID == run.ID {
			to = changed
		}
		if n := s.changed(c, to); n.ID == id {
			t = n
		}
	}
	if t == nil { // the run itself goes on as it was
		return run, nil
	}
	return t, nil
}

// retryPlan is which steps of a run are to run again, and what they wait for.
type retryPlan struct {
	status map[string]dts.Status
	byID   map[string][]dts.Dependency // by the child
	again  map[string]bool
}

// planRetry finds what runs again with some first steps: what was skipped because of them, if it can run now. edges are
// those of the steps and of their run.
func planRetry(steps []*dts.Task, edges []dts.Dependency, first func(*dts.Task) bool) *retryPlan {
	p := &retryPlan{status: map[string]dts.Status{}, byID: map[string][]dts.Dependency{}, again: map[string]bool{}}
	for _, d := range edges {
		p.byID[d.ChildID] = append(p.byID[d.ChildID], d)
	}
	var skipped []*dts.Task
	for _, t := range steps {
		p.status[t.ID] = t.Status
		switch {
		case first(t):
			p.again[t.ID] = true
		case t.SkipReason == dts.ReasonDependency && t.Status.Terminal() && t.Status != dts.Success && t.Attempts == 0:
			skipped = append(skipped, t)
		}
	}
	for more := true; more; {
		more = false
		skipped = slices.DeleteFunc(skipped, func(t *dts.Task) bool {
			// For MUST_FINISH it is not skipped; so what is open now is what it was skipped because of, or that of it.
			if !p.waits(t) || !p.can(t) {
				return false
			}
			p.again[t.ID], more = true, true
			return true
		})
	}
	return p
}

// state is what a dependency is when everything in again is PENDING.
func (p *retryPlan) state(d dts.Dependency) dts.DependencyState {
	status, is := p.status[d.ParentID]
	switch {
	case p.again[d.ParentID]:
		return dts.DependencyOpen
	case !is: // not a step, or deleted: as it was
		return d.State
	}
	return d.Type.Outcome(status)
}

// waits reports whether a task has a dependency that is open again, or is met by now.
func (p *retryPlan) waits(t *dts.Task) bool {
	return slices.ContainsFunc(p.byID[t.ID], func(d dts.Dependency) bool { return p.state(d) != d.State })
}

// can reports whether a task's dependencies can be met.
func (p *retryPlan) can(t *dts.Task) bool {
	failed := func(d dts.Dependency) bool { return p.state(d) == dts.DependencyFailed }
	if t.DependsMode == dts.DependsAny {
		return slices.ContainsFunc(p.byID[t.ID], func(d dts.Dependency) bool { return !failed(d) })
	}
	return !slices.ContainsFunc(p.byID[t.ID], failed)
}

// edges returns what has become of a task's dependencies, and how many it waits for. One that cannot be met is overridden:
// the task was asked for.
func (p *retryPlan) edges(t *dts.Task) (list []dts.Dependency, open int) {
	list = []dts.Dependency{}
	met, can := false, p.can(t)
	for _, d := range p.byID[t.ID] {
		d.State = p.state(d)
		switch {
		case d.State == dts.DependencyFailed && !can:
			d.State = dts.DependencyOverridden
		case d.State == dts.DependencyOpen:
			open++
		case d.State == dts.DependencySatisfied:
			met = true
		}
		list = append(list, d)
	}
	if t.DependsMode == dts.DependsAny && met {
		open = 0
	}
	return list, open
}
