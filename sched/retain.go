package sched

import "time"

const (
	retainEvery = time.Minute
	oldEvery    = time.Hour // what is deleted for its age only, and is not much
	retainChunk = 500
	retainPause = 20 * time.Millisecond // between two chunks, so that fires go first
	fullPause   = time.Second           // between two attempts to make room
)

// retainLoop deletes old rows in small steps and does the database's housekeeping. When a write finds the disk
// full it makes what room it can, until writes succeed.
func (s *Scheduler) retainLoop() {
	tick := time.NewTicker(retainEvery)
	defer tick.Stop()
	var oldAt time.Time
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
			now := s.clock.now()
			s.retain(now)
			if !now.Before(oldAt) {
				s.deleteOld(now)
				oldAt = now.Add(oldEvery)
			}
		case <-s.full:
			if _, err := s.o.Store.Fault(); err == nil {
				continue
			}
			if s.o.OnFull != nil {
				s.o.OnFull()
			}
			s.retain(s.clock.now())
			s.deleteOld(s.clock.now()) // also finds out whether there is room again
			select {
			case <-s.ctx.Done():
				return
			case <-time.After(fullPause):
				s.noteFault() // looks again until writes succeed
			}
		}
	}
}

func (s *Scheduler) retain(now time.Time) {
	if s.retains() {
		s.deleteFinished(now)
	}
	if err := s.o.Store.Maintain(s.ctx); err != nil {
		s.logStore("maintain the database", err)
	}
}

// retains reports whether it is up to this server to delete what is old. By a wrong clock everything may look old;
// of several servers the holder of the first shard does it.
func (s *Scheduler) retains() bool { return s.clock.held() == "" && s.holds(0) }

func (s *Scheduler) deleteFinished(now time.Time) {
	stored, err := s.o.Store.FinishedCount(s.ctx, s.o.RetentionRows+1_000_000)
	if err != nil {
		s.logStore("count finished tasks", err)
		return
	}
	for excess := stored - s.o.RetentionRows; s.ctx.Err() == nil; {
		n, err := s.o.Store.DeleteFinished(s.ctx, now.Add(-s.o.Retention), excess, retainChunk)
		if err != nil {
			s.logStore("delete old tasks", err)
			return
		}
		s.m.deleted.Add(float64(n))
		if excess -= int64(n); n < retainChunk {
			break
		}
		select {
		case <-s.ctx.Done():
		case <-time.After(retainPause):
		}
	}
}

func (s *Scheduler) deleteOld(now time.Time) {
	if !s.retains() {
		return
	}
	if _, err := s.o.Store.DeleteOld(s.ctx, now.Add(-s.o.Retention), now, retainChunk); err != nil {
		s.logStore("delete old rows", err)
	}
}

// noteFault wakes retainLoop after a write that failed.
func (s *Scheduler) noteFault() {
	select {
	case s.full <- struct{}{}:
	default:
	}
}
