package sched

import (
	"context"
	"errors"
	"slices"

	"dts"
)

// Verbs on the run of a workflow that has started concern its steps, too. Whoever changes several tasks of a run holds the
// run first, whose id sorts before those of its steps: so two that do cannot wait for each other.

// errOfRun says that a verb is not for the one task alone.
var errOfRun = errors.New("it concerns the run of a workflow and its steps")

// concernsRun reports whether a verb on a task is one for doRun.
func concernsRun(t *dts.Task, v dts.Verb) bool {
	return t.RunStarted() || v == dts.RetryNow && t.WorkflowID != ""
}

// runTries is how often the steps of a run are looked at until none is left to be stopped.
const runTries = 100

// doRun does a verb other than modify to the run of a workflow that has started, or retries a step of one.
func (s *Scheduler) doRun(ctx context.Context, tenant, id string, v dts.Verb, actor string) (t *dts.Task, err error) {
	t, err = s.o.Store.Task(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	if v == dts.RetryNow && t.RunStarted() && t.Status == dts.Pending {
		return nil, dts.Errorf(dts.ErrConflict, "the run still goes on: retry the steps of it that have failed, or wait for its end")
	}
	effect, err := v.Do(t.Status)
	if err != nil {
		return nil, err
	}
	run := t
	if t.WorkflowID != "" {
		run, err = s.o.Store.Task(ctx, tenant, t.WorkflowID)
		if dts.CodeOf(err) == dts.ErrNotFound {
			return nil, dts.Errorf(dts.ErrConflict, "the run %s, of which this is the step %s, was deleted; a step cannot be retried without it", t.WorkflowID, t.Step)
		} else if err != nil {
			return nil, err
		}
	}
	if !s.holds(run.Shard) {
		return nil, notMine("task", id)
	}
	switch effect {
	case dts.Nothing:
		return t, nil
	case dts.Unsuspend:
		return t, nil // it is not paused: what has started cannot be
	case dts.FireNow, dts.Suspend:
		return nil, dts.Errorf(dts.ErrConflict, "the run has started and waits for its steps: %s those", v)
	}
	held := []string{run.ID}
	if _, err := s.hold(ctx, held...); err != nil {
		return nil, err
	}
	changed := map[string]*dts.Task{}
	defer func() {
		if unsettled(err) {
			s.settle(nil, held)
			return
		}
		s.release(held, changed)
	}()
	if run, err = s.o.Store.Task(ctx, tenant, run.ID); err != nil {
		return nil, err
	}
	if !s.holds(run.Shard) {
		return nil, notMine("task", id)
	}
	if effect == dts.Requeue {
		return s.retrySteps(ctx, run, t.WorkflowID != "", id, actor, changed)
	}
	if effect, err = v.Do(run.Status); err != nil || effect == dts.Nothing {
		return run, err
	}
	return s.finishRun(ctx, run, effect, actor, changed)
}

// finishRun ends what is left of a run, which is held, and then the run itself, as an effect says. It does so too when the
// caller goes while steps are being stopped: else the run would end as one that has failed.
func (s *Scheduler) finishRun(ctx context.Context, run *dts.Task, effect dts.Effect, actor string, changed map[string]*dts.Task) (*dts.Task, error) {
	ctx, err := begun(ctx)
	if err != nil {
		return nil, err
	}
	steps, err := s.endSteps(ctx, run, actor)
	if err != nil {
		return nil, err
	}
	c := s.effect(run, effect, actor)
	changes := []dts.Change{c}
	if effect == dts.Remove {
		for _, t := range steps {
			changes = append(changes, dts.Change{Old: t})
		}
	}
	if err := s.o.Store.Change(ctx, s.fence(), changes, s.clock.now()); err != nil {
		return nil, s.changedMeanwhile(err, "task", run.ID, run.Shard)
	}
	for _, x := range changes[1:] {
		s.changed(x, map[string]*dts.Task{})
	}
	return s.changed(c, changed), nil
}

// endSteps cancels all steps of a run that have not ended, those that run too, and returns the steps then. What was done
// before an error stays done.
func (s *Scheduler) endSteps(ctx context.Context, run *dts.Task, actor string) ([]*dts.Task, error) {
	for range runTries {
		steps, err := s.o.Store.Steps(ctx, run.TenantID, run.ID)
		if err != nil {
			return nil, err
		}
		var open []string
		for _, t := range steps {
			switch {
			case t.Status.Terminal():
			case !s.responsible(t):
				return nil, dts.Errorf(dts.ErrUnavailable, "the step %s still runs at another server, %s; try again", t.Step, t.Node)
			default:
				open = append(open, t.ID)
			}
		}
		if open == nil {
			return steps, nil
		}
		if err := s.cancelSteps(ctx, open, actor); err != nil {
			return nil, err
		}
	}
	return nil, dts.Errorf(dts.ErrUnavailable, "the steps of the run %s do not come to their end; try again", run.ID)
}

// cancelSteps cancels tasks that wait, in one batch, and then stops those that run, and waits for their end.
func (s *Scheduler) cancelSteps(ctx context.Context, ids []string, actor string) (err error) {
	busy, err := s.hold(ctx, ids...)
	if err != nil {
		return err
	}
	taken := slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(busy, id) })
	if err := s.cancelHeld(ctx, taken, actor); err != nil {
		return err
	}
	ended := make(chan struct{})
	s.in.post(func(l *loop) {
		left := 1
		one := func() {
			if left--; left == 0 {
				close(ended)
			}
		}
		for _, id := range busy {
			it := l.items[id]
			if it == nil || it.state != running && it.state != recording {
				continue
			}
			left++
			it.waiters = append(it.waiters, one)
			if it.state == running {
				it.run.cancel(dts.ErrRunCancelled)
			}
		}
		one()
	})
	select {
	case <-ended:
		return nil
	case <-s.loopDone:
		return errStopped
	}
}

// cancelHeld cancels those of the tasks, which are held, that are PENDING, and gives them all back.
func (s *Scheduler) cancelHeld(ctx context.Context, ids []string, actor string) (err error) {
	changed := map[string]*dts.Task{}
	defer func() {
		if unsettled(err) {
			s.settle(nil, ids)
			return
		}
		s.release(ids, changed)
	}()
	tasks, err := s.o.Store.TasksByID(ctx, ids)
	if err != nil {
		return err
	}
	var changes []dts.Change
	for _, t := range tasks {
		if t.Status == dts.Pending {
			changes = append(changes, s.effect(t, dts.SetCancel, actor))
		}
	}
	if changes == nil {
		return nil
	}
	err = s.o.Store.Change(ctx, s.fence(), changes, s.clock.now())
	switch {
	case err == nil:
		for _, c := range changes {
			s.changed(c, changed)
		}
	case s.o.Refused(err) && s.alone():
		return nil // one has changed meanwhile: they are looked at again
	case s.o.Refused(err):
		return s.changedMeanwhile(err, "task", tasks[0].WorkflowID, tasks[0].Shard)
	}
	return err
}
