package sched

import "time"

const (
	retainEvery = time.Minute
	oldEvery    = time.Hour // what is deleted for its age only, and is not much
	retainChunk = 100
	fullPause   = time.Second // between two attempts to make room
)

// retainLoop deletes old rows in small steps and does the database's housekeeping. When a write finds the disk
// full it makes what room it can, until writes succeed.
func (s *Scheduler) retainLoop() {
	tick := time.NewTicker(retainEvery)
	defer tick.Stop()
	k := &keeper{s: s, rest: mostRest}
	var oldAt time.Time
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
			now := s.clock.now()
			s.retain(k, now, false)
			if !now.Before(oldAt) {
				k.old(now)
				oldAt = now.Add(oldEvery)
			}
		case <-s.keeps:
			s.retain(k, s.clock.now(), false)
		case <-s.full:
			if _, err := s.o.Store.Fault(); err == nil {
				continue
			}
			if s.o.OnFull != nil {
				s.o.OnFull()
			}
			s.retain(k, s.clock.now(), true)
			k.old(s.clock.now()) // also finds out whether there is room again
			select {
			case <-s.ctx.Done():
				return
			case <-time.After(fullPause):
				s.noteFault() // looks again until writes succeed
			}
		}
	}
}

func (s *Scheduler) retain(k *keeper, now time.Time, hurry bool) {
	if s.retains() {
		k.begin(hurry)
		k.look(now)
		k.end()
	} else {
		k.recount = time.Time{} // when it is up to this server again, what it has counted is old
	}
	if err := s.o.Store.Maintain(s.ctx); err != nil {
		s.logStore("maintain the database", err)
	}
}

// retains reports whether it is up to this server to delete what is old. By a wrong clock everything may look old;
// of several servers the holder of the first shard does it.
func (s *Scheduler) retains() bool { return s.clock.held() == "" && s.holds(0) }

// noteFault wakes retainLoop after a write that failed.
func (s *Scheduler) noteFault() {
	select {
	case s.full <- struct{}{}:
	default:
	}
}
