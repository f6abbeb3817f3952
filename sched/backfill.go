package sched

import (
	"context"
	"errors"
	"time"

	"dts"
	"dts/sched/cron"
)

// backfillChunk is how many tasks of a backfill are inserted at once.
const backfillChunk = 500

// BackfillRecurring replays the instants of a past window: it makes a task of origin BACKFILL for each, due now. They run
// one after another, unless overlap_policy is ALLOW. An instant that was replayed before is not replayed again, so the
// request can be sent again.
func (s *Scheduler) BackfillRecurring(ctx context.Context, tenant, id string, q dts.BackfillRequest, actor string) (*dts.BackfillAnswer, error) {
	r, err := s.o.Store.RecurringTask(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	if !s.holds(r.Shard) {
		return nil, notMine("recurring task", id)
	}
	now := dts.Micros(s.clock.now())
	from, to := dts.Micros(q.From), dts.Micros(q.To)
	switch {
	case from.IsZero() || to.IsZero():
		return nil, dts.Invalid("from", "and to must both be given")
	case to.Before(from):
		return nil, dts.Invalid("to", "is before from")
	case to.After(now):
		return nil, dts.Invalid("to", "is in the future; what is still to come runs by itself")
	case r.Status == dts.Ended:
		return nil, dts.Errorf(dts.ErrConflict, "the recurring task is CANCELLED: it cannot be replayed")
	case r.TargetType == dts.Ping:
		return nil, dts.Errorf(dts.ErrConflict, "dts does not run this job, so it cannot replay it")
	}
	table, err := s.table(ctx, r)
	if errors.Is(err, cron.ErrReboot) {
		return nil, dts.Invalid("from", "@reboot has no instants to replay")
	}
	if err != nil {
		return nil, err
	}
	before := from.Add(-time.Microsecond)
	total := table.Count(before, to)
	if total > dts.MaxBackfill {
		return nil, dts.Invalid("to", "leaves %d instants since from; at most %d can be replayed at once, so take a shorter window", total, dts.MaxBackfill)
	}
	done, err := s.o.Store.CountOccurrences(ctx, id, dts.OriginBackfill, from, to)
	if err != nil {
		return nil, err
	}
	a := &dts.BackfillAnswer{Count: max(total-done, 0)}
	if total > 0 {
		a.First, a.Last = table.Next(before), table.Prev(to)
	}
	if q.DryRun || a.Count == 0 {
		return a, nil
	}
	var tasks []*dts.Task
	for at := a.First; !at.IsZero() && !at.After(to); at = table.Next(at) {
		t := r.Occurrence(at, dts.OriginBackfill, now)
		t.CreatedBy, t.DueAt, t.RunAt = actor, now, now
		if tasks = append(tasks, t); len(tasks) == backfillChunk {
			if err := s.insertBackfill(ctx, tasks); err != nil {
				return nil, err
			}
			tasks = nil
		}
	}
	if err := s.insertBackfill(ctx, tasks); err != nil {
		return nil, err
	}
	all, err := s.o.Store.CountOccurrences(ctx, id, dts.OriginBackfill, from, to)
	if err != nil {
		return nil, dts.Errorf(dts.ErrUnknown, "the tasks were made, but how many could not be read: %w", err)
	}
	a.Created = all - done
	return a, nil
}

// insertBackfill inserts tasks of which some may be there already, and gives the loop those that are new.
func (s *Scheduler) insertBackfill(ctx context.Context, tasks []*dts.Task) error {
	if len(tasks) == 0 {
		return nil
	}
	ids := make([]string, len(tasks))
	for i, t := range tasks {
		ids[i] = t.ID
	}
	write, err := begun(ctx)
	if err != nil {
		return err
	}
	_, err = s.o.Store.InsertTasks(write, s.fence(), tasks)
	if err == nil || unsettled(err) {
		s.settle(ids, nil)
	}
	if err == nil {
		s.m.scheduled.Add(float64(len(tasks)))
	}
	if s.moved(err) {
		return notMine("recurring task", tasks[0].RecurringTaskID)
	}
	return err
}
