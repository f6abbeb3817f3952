package sched

import "fmt"

// AtRest returns an error where a scheduler that has nothing to do and nothing to wait for still counts something.
func (s *Scheduler) AtRest() error {
	answer := make(chan error, 1)
	s.in.post(func(l *loop) {
		var odd []string
		for _, it := range l.items {
			if it.state != waiting || it.lost {
				odd = append(odd, fmt.Sprintf("%s state %d lost %v", it.TaskID, it.state, it.lost))
			}
		}
		unstarted := int64(0)
		for i := range s.unstarted {
			for j := range s.unstarted[i] {
				unstarted += s.unstarted[i][j].Load()
			}
		}
		running := l.pools[0].running + l.pools[1].running
		if len(odd) > 0 || unstarted != 0 || running != 0 || l.unwritten != 0 || len(l.active) != 0 || len(l.buffers) != 0 || len(l.asked) != 0 || len(l.taken) != 0 || len(l.paused) != 0 || l.terms != *s.fence().Terms {
			answer <- fmt.Errorf("%d claimed, %d running, %d unwritten, active %v, paused %v, shards %x of %x, items %v",
				unstarted, running, l.unwritten, l.active, l.paused, l.terms.Held(), s.fence().Terms.Held(), odd)
			return
		}
		answer <- nil
	})
	select {
	case err := <-answer:
		return err
	case <-s.loopDone:
		return nil
	}
}
