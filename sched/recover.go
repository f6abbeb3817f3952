package sched

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"dts"
)

const lostChunk = 500 // attempts that are ended at once

// recover ends the attempts in the fence's shards that nobody runs any more. With own it ends those, in whatever
// shard, that an earlier process of this server left in the middle. Its claims need nothing: they count for nothing now.
func (s *Scheduler) recover(ctx context.Context, f dts.Fence, own bool) error {
	held := f.Terms.Held()
	lost, err := s.o.Store.Lost(ctx, f, held, own, lostChunk)
	if err != nil {
		return err
	}
	for n := 0; len(lost) > 0; {
		recs := make([]*dts.Record, len(lost))
		now := dts.Micros(s.clock.now())
		for i, l := range lost {
			recs[i] = lostRecord(l, now)
		}
		if err := s.o.Store.Write(ctx, f, recs); err != nil {
			return err
		}
		s.lost(recs)
		n += len(lost)
		if lost, err = s.o.Store.Lost(ctx, f, held, own, lostChunk); err != nil {
			return err
		}
		if len(lost) == 0 {
			s.log.Info("attempts were lost when their server stopped", "attempts", n)
		}
	}
	return nil
}

func lostRecord(l dts.Lost, now time.Time) *dts.Record {
	a := l.Attempt
	if a == nil { // its row is gone; the task still says RUNNING
		a = &dts.Attempt{TaskID: l.Task.ID, TenantID: l.Task.TenantID, Number: l.Task.Attempts, Node: l.Task.Node, StartedAt: now}
	}
	r := &dts.Record{Task: l.Task, Attempt: *a, Process: a.Process, Term: l.Task.Term, Shown: true, Limited: true}
	r.Attempt.State, r.Attempt.Error, r.Attempt.CompletedAt = dts.AttemptLost, "lost: the server stopped in mid-run", now
	r.After = afterAttempt(l.Task, &r.Attempt, true, 0, rand.Float64())
	return r
}

// lost takes up what has become of attempts that were lost, or tells who holds their shards.
func (s *Scheduler) lost(recs []*dts.Record) {
	var ids []string
	for _, r := range recs {
		switch {
		case s.alone(): // read when it begins to fire
			return
		case r.After.Status != dts.Pending:
		case s.holds(r.Task.Shard):
			ids = append(ids, r.Task.ID)
		default:
			s.wakeHolder(r.Task.Shard, r.Task.ID)
		}
	}
	s.settle(ids, nil)
}

// killOrphans kills what runs of attempts that had not ended, recorded or not: a command that started just
// before the crash may have been claimed only.
func (s *Scheduler) killOrphans(ctx context.Context) error {
	if s.o.KillOrphans == nil {
		return nil
	}
	where := dts.ShardSet(0)
	if s.alone() {
		where = dts.AllShards
	}
	lost, err := s.o.Store.Lost(ctx, s.fence(), where, true, lostChunk)
	if err != nil {
		return err
	}
	var known []dts.Process
	for _, l := range lost {
		if l.Attempt != nil && l.Attempt.Process != nil {
			known = append(known, *l.Attempt.Process)
		}
	}
	err = s.o.KillOrphans(ctx, known, func(taskID string, attempt int) bool {
		page, err := s.o.Store.Tasks(ctx, dts.TaskFilter{TenantID: dts.DefaultTenant, IDs: []string{taskID}, Limit: 1})
		if err != nil {
			s.log.Error("look up the task of a process", "task", taskID, "err", err)
			return false
		}
		// Unfinished, or deleted meanwhile: an attempt beyond those that have ended was in flight.
		return slices.ContainsFunc(page.Items, func(t *dts.Task) bool {
			return t.Status == dts.Running && attempt >= t.Attempts || t.Status == dts.Pending && attempt > t.Attempts
		}) || !s.alone() && s.takenOver(ctx, taskID, attempt)
	})
	if err != nil {
		s.log.Error("commands of the last run may have survived", "err", err)
	}
	return nil
}

// takenOver reports whether the other servers have ended an attempt of this one as LOST, or had one of that number run
// elsewhere.
func (s *Scheduler) takenOver(ctx context.Context, taskID string, attempt int) bool {
	list, err := s.o.Store.Attempts(ctx, dts.DefaultTenant, taskID)
	if err != nil {
		s.log.Error("look up the attempts of a process's task", "task", taskID, "err", err)
		return false
	}
	return slices.ContainsFunc(list, func(a *dts.Attempt) bool {
		return a.Number == attempt && (a.State == dts.AttemptLost || a.Node != s.o.Node.ID)
	})
}

// runAtBoot inserts one task for each @reboot, once a boot; in a cluster, which may have some from before it was one,
// none. sameBoot: this node has run since the boot.
func (s *Scheduler) runAtBoot(ctx context.Context, sameBoot bool) error {
	if sameBoot || !s.alone() || s.o.Node.BootID == "" {
		return nil
	}
	list, err := s.o.Store.BootRecurring(ctx)
	if err != nil {
		return err
	}
	now := s.clock.now()
	var tasks []*dts.Task
	for _, r := range list {
		if r.CreatedAt.After(s.o.BootedAt) {
			continue // added since: its first run is at the next boot
		}
		t := r.Occurrence(dts.Micros(now), dts.OriginSchedule, now)
		t.MissAt = time.Time{}
		// A server that dies right here starts it once all the same.
		t.IdempotencyKey, t.RequestHash = "boot/"+r.ID+"/"+s.o.Node.BootID, s.o.Node.BootID
		tasks = append(tasks, t)
	}
	if len(tasks) == 0 {
		return nil
	}
	_, err = s.o.Store.InsertTasks(ctx, s.fence(), tasks)
	return err
}
