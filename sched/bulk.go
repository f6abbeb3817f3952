package sched

import (
	"context"
	"slices"

	"dts"
)

// bulkChunk is how many tasks a bulk verb takes at a time: all of them are changed by one batch.
const bulkChunk = 500

// Bulk does a verb to the tasks that a filter selects and that this server is responsible for, the newest first. What
// it had done when an error came stays done, and is counted. A dry run only counts, whoever is responsible.
func (s *Scheduler) Bulk(ctx context.Context, c dts.BulkChange) (sum dts.BulkResult, err error) {
	sum.DryRun = c.DryRun
	if err := c.Normalize(s.clock.now()); err != nil {
		return sum, err
	}
	if c.DryRun {
		sum.Matched, err = s.o.Store.CountTasks(ctx, c.Filter)
		return sum, err
	}
	f := c.Filter
	f.Limit, f.Cursor = bulkChunk, ""
	if len(f.IDs) == 0 {
		return sum, s.bulkPages(ctx, &c, f, &sum)
	}
	for ids := range slices.Chunk(c.Filter.IDs, bulkChunk) {
		f.IDs = ids
		if err := s.bulkPages(ctx, &c, f, &sum); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// bulkPages goes through the pages that a filter lists.
func (s *Scheduler) bulkPages(ctx context.Context, c *dts.BulkChange, f dts.TaskFilter, sum *dts.BulkResult) error {
	for {
		page, err := s.o.Store.Tasks(ctx, f)
		if err != nil {
			return err
		}
		r, err := s.bulkSome(ctx, c, page.Items)
		sum.Matched += r.Matched
		sum.Done += r.Done
		if err != nil || page.Next == "" {
			return err
		}
		f.Cursor = page.Next
	}
}

// bulkSome does a bulk verb to those of the tasks that this server is responsible for.
func (s *Scheduler) bulkSome(ctx context.Context, c *dts.BulkChange, tasks []*dts.Task) (r dts.BulkResult, err error) {
	var ids []string
	for _, t := range tasks {
		if s.responsible(t) {
			ids = append(ids, t.ID)
		}
	}
	if len(ids) == 0 {
		return r, nil
	}
	running, err := s.hold(ctx, ids...)
	if err != nil {
		return r, err
	}
	taken := slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(running, id) })
	again, n, err := s.changeHeld(ctx, c, taken)
	r.Matched, r.Done = n+len(again), n
	if err != nil {
		return r, err
	}
	if c.Verb == dts.BulkCancel {
		s.kill(running) // together: each takes its time to end
	}
	for _, t := range tasks {
		// What was listed as ended, and is busy, has an end that the loop is about to hear of.
		if (c.Verb == dts.BulkCancel || t.Status.Terminal()) && slices.Contains(running, t.ID) {
			r.Matched++
			again = append(again, t.ID)
		}
	}
	for _, id := range again {
		done, err := s.bulkOne(ctx, c, id)
		if err != nil {
			return r, err
		}
		if done {
			r.Done++
		}
	}
	return r, nil
}

// changeHeld does a bulk verb to tasks that are held, in one batch, and gives them back. It returns how many it
// changed; or, where the batch was refused because one of them has changed meanwhile, those that are left to be done one by one.
// Those are also the runs of workflows, whose steps it concerns too.
func (s *Scheduler) changeHeld(ctx context.Context, c *dts.BulkChange, ids []string) (again []string, n int, err error) {
	if len(ids) == 0 {
		return nil, 0, nil
	}
	changed := map[string]*dts.Task{}
	defer func() {
		if unsettled(err) {
			s.settle(nil, ids)
			return
		}
		s.release(ids, changed)
	}()
	// Now that nobody else changes them: are they still what the filter selects?
	f := c.Filter
	f.IDs, f.Limit, f.Cursor = ids, len(ids), ""
	page, err := s.o.Store.Tasks(ctx, f)
	if err != nil {
		return nil, 0, err
	}
	var changes []dts.Change
	for _, t := range page.Items {
		if t.Status == dts.Running || !s.holds(t.Shard) {
			continue // it runs at another server, or has gone there
		}
		effect, err := c.Verb.Verb().Do(t.Status)
		if err != nil {
			continue
		}
		if concernsRun(t, c.Verb.Verb()) {
			again = append(again, t.ID)
			continue
		}
		if x := s.effect(t, effect, c.Actor); x.Old != nil {
			s.unclaim(x.New)
			changes = append(changes, x)
		}
	}
	if len(changes) == 0 {
		return again, 0, nil
	}
	write, err := begun(ctx)
	if err != nil {
		return nil, 0, err
	}
	err = s.o.Store.Change(write, s.fence(), changes, s.clock.now())
	switch {
	case err == nil:
		for _, x := range changes {
			s.changed(x, changed)
		}
		s.recall(write, changes...)
		return again, len(changes), nil
	case s.o.Refused(err):
		for _, x := range changes {
			again = append(again, x.Old.ID)
		}
		return again, 0, nil
	}
	return nil, 0, err
}

// bulkOne does a bulk verb to one task, and reports whether it was done: not where the task's state does not allow it
// any more, or it has gone.
func (s *Scheduler) bulkOne(ctx context.Context, c *dts.BulkChange, id string) (done bool, err error) {
	t, err := s.DoTask(ctx, c.Filter.TenantID, id, c.Verb.Verb(), c.Actor)
	switch dts.CodeOf(err) {
	case "":
		return c.Verb != dts.BulkCancel || t.Status == dts.Cancelled, nil // it may have ended first
	case dts.ErrConflict, dts.ErrNotFound, dts.ErrElsewhere:
		return false, nil
	}
	return false, err
}

// kill stops the runs of tasks, and does not wait for their end.
func (s *Scheduler) kill(ids []string) {
	if len(ids) == 0 {
		return
	}
	s.in.post(func(l *loop) {
		for _, id := range ids {
			if it := l.items[id]; it != nil && it.state == running {
				it.run.cancel(dts.ErrRunCancelled)
			}
		}
	})
}
