package sched

import (
	"context"
	"errors"

	"dts"
)

// replaceAttempts is how often a task is put in another one's place, while new ones come into it. Of those that try at the
// same moment one succeeds each time: so it is enough for as many.
const replaceAttempts = 100

// replace creates a task whose dedupe_policy is REPLACE: what is unfinished with its dedupe_key is cancelled. One that
// waits ends in the batch that inserts the new one; one that runs is killed before, and ctx ends the wait for that. write is
// the context of what is written.
func (s *Scheduler) replace(ctx, write context.Context, t *dts.Task) (made []dts.Created[*dts.Task], err error) {
	for range replaceAttempts {
		made, err = s.insert(write, []*dts.Task{t})
		dup, is := errors.AsType[*dts.Duplicate](err)
		if !is {
			return made, err // there was none, or the idempotency key says which task it is
		}
		if dup.TaskID == "" {
			continue // it has just ended
		}
		done, err := s.replaceOne(ctx, t, dup.TaskID)
		if done {
			return []dts.Created[*dts.Task]{{Item: t}}, err
		}
		if code := dts.CodeOf(err); err != nil && code != dts.ErrConflict && code != dts.ErrNotFound {
			return nil, err
		}
	}
	return nil, err
}

// replaceOne puts a new task in the place of another one. Not done, without an error: look again at who is there.
func (s *Scheduler) replaceOne(ctx context.Context, t *dts.Task, id string) (done bool, err error) {
	other, err := s.o.Store.Task(ctx, t.TenantID, id)
	if err != nil {
		return false, err
	}
	if !s.responsible(other) {
		return false, notMine("task", id)
	}
	if other.RunStarted() && other.Status == dts.Pending {
		_, err := s.DoTask(ctx, t.TenantID, id, dts.Cancel, t.CreatedBy)
		return false, err
	}
	running, err := s.hold(ctx, id)
	if err != nil {
		return false, err
	}
	if len(running) > 0 {
		_, err := s.onRunning(ctx, t.TenantID, id, dts.Cancel)
		return false, err
	}
	changed := map[string]*dts.Task{}
	defer func() {
		if unsettled(err) {
			s.settle([]string{t.ID}, []string{id})
			return
		}
		if !done {
			s.unreserve([]*dts.Task{t})
		}
		s.release([]string{id}, changed)
	}()
	if other, err = s.o.Store.Task(ctx, t.TenantID, id); err != nil {
		return false, err
	}
	if other.Status == dts.Running || !s.holds(other.Shard) {
		return false, notMine("task", id)
	}
	if other.Status != dts.Pending || other.RunStarted() {
		return false, nil
	}
	var placed bool
	if t.Shard, placed = s.place(t.ID); !placed {
		return false, notMine("task", t.ID)
	}
	if ctx, err = begun(ctx); err != nil {
		return false, err
	}
	c := s.effect(other, dts.SetCancel, t.CreatedBy)
	c.New.LastError = "replaced by the task " + t.ID
	c.Insert = t
	s.unclaim(c.New)
	s.reserve([]*dts.Task{t})
	if err := s.o.Store.Change(ctx, s.fence(), []dts.Change{c}, s.clock.now()); err != nil {
		s.noteFault()
		return false, s.changedMeanwhile(err, "task", id, other.Shard)
	}
	s.changed(c, changed)
	return true, nil
}

// duplicated returns the error of a change that gives its task back to the schedule while another one has its dedupe_key;
// nil when none has.
func (s *Scheduler) duplicated(ctx context.Context, c dts.Change, cause error) error {
	if c.New == nil || c.New.DedupeKey == "" || c.New.Status.Terminal() || !s.o.Refused(cause) {
		return nil
	}
	other, err := s.o.Store.Unfinished(ctx, c.New.TenantID, c.New.DedupeKey)
	if err != nil || other == nil || other.ID == c.New.ID {
		return nil // what refused it was something else
	}
	return dts.DuplicateOf(other, cause)
}
