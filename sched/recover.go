package sched

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"dts"
)

// recover deals with what an earlier process of this node left in the middle: it kills commands that outlived
// it, and ends the attempts that were running. Claims of the old term need nothing: they count for nothing now.
func (s *Scheduler) recover(ctx context.Context) error {
	const chunk = 500
	lost, err := s.o.Store.Running(ctx, s.fence, chunk)
	if err != nil {
		return err
	}
	if err := s.killOrphans(ctx, lost); err != nil {
		s.log.Error("commands of the last run may have survived", "err", err)
	}
	for n := 0; len(lost) > 0; {
		recs := make([]*dts.Record, len(lost))
		now := dts.Micros(s.clock.now())
		for i, l := range lost {
			recs[i] = lostRecord(l, now)
		}
		if err := s.o.Store.Write(ctx, s.fence, recs); err != nil {
			return err
		}
		n += len(lost)
		if lost, err = s.o.Store.Running(ctx, s.fence, chunk); err != nil {
			return err
		}
		if len(lost) == 0 {
			s.log.Info("attempts were lost when the server stopped", "attempts", n)
		}
	}
	return nil
}

func lostRecord(l dts.Lost, now time.Time) *dts.Record {
	a := l.Attempt
	if a == nil { // its row is gone; the task still says RUNNING
		a = &dts.Attempt{TaskID: l.Task.ID, TenantID: l.Task.TenantID, Number: l.Task.Attempts, Node: l.Task.Node, StartedAt: now}
	}
	r := &dts.Record{Task: l.Task, Attempt: *a, Process: a.Process}
	r.Attempt.State, r.Attempt.Error, r.Attempt.CompletedAt = dts.AttemptLost, "lost: the server stopped in mid-run", now
	r.After = afterAttempt(l.Task, &r.Attempt, true, 0, rand.Float64())
	return r
}

// killOrphans kills what runs of attempts that had not ended, recorded or not: a command that started just
// before the crash may have been claimed only.
func (s *Scheduler) killOrphans(ctx context.Context, lost []dts.Lost) error {
	if s.o.KillOrphans == nil {
		return nil
	}
	var known []dts.Process
	for _, l := range lost {
		if l.Attempt != nil && l.Attempt.Process != nil {
			known = append(known, *l.Attempt.Process)
		}
	}
	return s.o.KillOrphans(ctx, known, func(taskID string, attempt int) bool {
		page, err := s.o.Store.Tasks(ctx, dts.TaskFilter{TenantID: dts.DefaultTenant, IDs: []string{taskID}, Limit: 1})
		if err != nil {
			s.log.Error("look up the task of a process", "task", taskID, "err", err)
			return false
		}
		// Unfinished, or deleted meanwhile: an attempt beyond those that have ended was in flight.
		return slices.ContainsFunc(page.Items, func(t *dts.Task) bool {
			return t.Status == dts.Running && attempt >= t.Attempts || t.Status == dts.Pending && attempt > t.Attempts
		})
	})
}

// runAtBoot inserts one task for each @reboot, once a boot. sameBoot: this node has run since the boot.
func (s *Scheduler) runAtBoot(ctx context.Context, sameBoot bool) error {
	if sameBoot || s.o.Node.BootID == "" {
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
	_, err = s.o.Store.InsertTasks(ctx, s.fence, tasks)
	return err
}
