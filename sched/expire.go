package sched

import (
	"time"

	"dts"
)

// A task whose expires_at passes while it waits is skipped within seconds, wherever it waits: for its time after a retry,
// in a line, for a dependency, for a queue that is paused. What is about to start is looked at by dispatch as well.

// expireEvery is how often the store is asked for what has expired.
const expireEvery = 2 * time.Second

func (s *Scheduler) expireLoop() {
	tick := time.NewTicker(expireEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		if s.draining.Load() || s.clock.held() != "" || !s.leased() {
			continue
		}
		if err := s.expire(); err != nil && s.ctx.Err() == nil && !s.o.Refused(err) {
			s.logStore("skip what has expired", err)
		}
	}
}

// expire skips what has expired in the shards of this server, some at a time. Those that somebody else has in his hands just
// then are left to the next look.
func (s *Scheduler) expire() error {
	for after := int64(0); s.ctx.Err() == nil; {
		list, err := s.o.Store.Expired(s.ctx, s.fence().Terms.Held(), s.clock.now(), after, bulkChunk)
		if err != nil || len(list) == 0 {
			return err
		}
		after = list[len(list)-1].Seq
		ids := make([]string, len(list))
		for i, t := range list {
			ids[i] = t.ID
		}
		if err := s.expireThese(ids); err != nil {
			return err
		}
		if len(list) < bulkChunk {
			return nil
		}
	}
	return nil
}

func (s *Scheduler) expireThese(ids []string) (err error) {
	h := s.newHolding(ids, false)
	if err := h.await(s.ctx); err != nil {
		return err
	}
	changed := map[string]*dts.Task{}
	defer func() {
		if unsettled(err) {
			s.settle(nil, h.taken)
			return
		}
		s.release(h.taken, changed)
	}()
	tasks, err := s.o.Store.TasksByID(s.ctx, h.taken) // as they are now that nobody else changes them
	if err != nil {
		return err
	}
	now := s.clock.now()
	var changes []dts.Change
	for _, t := range tasks {
		if t.Status == dts.Pending && !t.ExpiresAt.IsZero() && now.After(t.ExpiresAt) && s.holds(t.Shard) {
			changes = append(changes, skipChange(t, dts.ReasonExpired, expiredNote(t), now))
		}
	}
	if len(changes) == 0 {
		return nil
	}
	if err := s.o.Store.Change(s.ctx, s.fence(), changes, now); err != nil {
		return err
	}
	for _, c := range changes {
		changed[c.New.ID] = c.New
		s.m.skipped.Inc()
		s.bus.publish(taskEvent(dts.EventSkipped, c.New, now))
	}
	return nil
}

func expiredNote(t *dts.Task) string { return "expires_at was " + t.ExpiresAt.Format(time.RFC3339) }

// skipChange makes a task SKIPPED, and records the instant of a planned occurrence as such.
func skipChange(old *dts.Task, reason dts.Reason, note string, now time.Time) dts.Change {
	n := *old
	n.Status, n.SkipReason, n.CompletedAt = dts.Skipped, reason, dts.Micros(now)
	n.WaitsFor = ""
	c := dts.Change{Old: old, New: &n}
	if old.Origin == dts.OriginSchedule {
		c.Skip = skipOf(old, reason, note)
	} else {
		n.LastError = note
	}
	return c
}
