package sched

import "time"

const (
	retainEvery = time.Minute
	retainChunk = 500
	retainPause = 20 * time.Millisecond // between two chunks, so that fires go first
)

// retainLoop deletes old rows in small steps, does the database's housekeeping, and, while the disk is full,
// makes what room it can.
func (s *Scheduler) retainLoop() {
	tick := time.NewTicker(retainEvery)
	defer tick.Stop()
	full := time.NewTicker(time.Second)
	defer full.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
			s.retain()
		case <-full.C:
			if err, _ := s.o.Store.Fault(); err != nil && s.o.OnFull != nil {
				s.o.OnFull()
				s.retain()
			}
		}
	}
}

func (s *Scheduler) retain() {
	now := s.clock.now()
	if s.clock.held() != "" {
		return // by a wrong clock everything may look old
	}
	before := now.Add(-s.o.Retention)
	stored, err := s.o.Store.FinishedCount(s.ctx, s.o.RetentionRows+1_000_000)
	if err != nil {
		s.logStore("count finished tasks", err)
		return
	}
	for excess := stored - s.o.RetentionRows; s.ctx.Err() == nil; {
		n, err := s.o.Store.DeleteFinished(s.ctx, before, excess, retainChunk)
		if err != nil {
			s.logStore("delete old tasks", err)
			return
		}
		s.m.deleted.Add(float64(n))
		if excess -= int64(n); n < retainChunk {
			break
		}
		time.Sleep(retainPause)
	}
	if _, err := s.o.Store.DeleteOld(s.ctx, before, now, retainChunk); err != nil {
		s.logStore("delete old rows", err)
	}
	if err := s.o.Store.Maintain(s.ctx); err != nil {
		s.logStore("maintain the database", err)
	}
}
