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
		gates := l.gates.parked[0] + l.gates.parked[1] + l.gates.budget.runs + l.gates.budget.waiting() + len(l.gates.hosts.crowded) + len(l.stoppables)
		for _, h := range l.gates.hosts.known {
			gates += h.inflight + len(h.calls)
		}
		for _, p := range l.pools {
			gates += p.stopped + p.borrowed + p.ready.Len() + p.claimed.len()
		}
		for _, f := range l.s.flows.m {
			shelved := 0
			for i, mine := range f.pools {
				if mine == nil {
					continue
				}
				gates += mine.running + mine.ready.Len()
				for rank := range ranks {
					gates += int(f.unstarted[i][rank].Load())
					shelved += mine.shelves[rank].len()
				}
			}
			if shelved != f.waiting {
				odd = append(odd, fmt.Sprintf("queue %s counts %d of %d", f.key.Name, f.waiting, shelved))
			}
		}
		if len(odd) > 0 || unstarted != 0 || running != 0 || gates != 0 || l.unwritten != 0 || len(l.active) != 0 || len(l.buffers) != 0 || len(l.asked) != 0 || len(l.taken) != 0 || len(l.paused) != 0 || l.terms != *s.fence().Terms {
			answer <- fmt.Errorf("%d claimed, %d running, %d at gates and in queues, %d unwritten, active %v, paused %v, shards %x of %x, items %v",
				unstarted, running, gates, l.unwritten, l.active, l.paused, l.terms.Held(), s.fence().Terms.Held(), odd)
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
