package sched

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"dts"
)

// How the clocks of other servers are compared with this one, as NTP does it (RFC 5905, section 10): a server is asked what
// time it is, and the answer is taken to have been given in the middle of the round trip. That is wrong by half of the round
// trip at most, so of the last few answers the one of the shortest counts.
const (
	askClocks   = 10 * time.Second // how often
	clockAnswer = 2 * time.Second  // an answer that takes longer says little
	skewSamples = 6                // answers that are kept
	skewTooOld  = time.Minute      // an answer that counts no more
	skewAlert   = 100 * time.Millisecond
)

// skews is what is known of the other servers' clocks. Its methods may be called concurrently.
type skews struct {
	mu   sync.Mutex
	last map[string][]skewSample // by the id of the server, the newest last
}

// skewSample is one answer of a server that was asked for the time.
type skewSample struct {
	skew  time.Duration // how far its clock is ahead of this server's
	round time.Duration // the round trip; skew is wrong by half of it at most
	at    time.Duration // when it came, by Options.Boottime
}

func newSkews() *skews { return &skews{last: map[string][]skewSample{}} }

// agree reports whether two answers may both be right: otherwise a clock was set between them.
func (a skewSample) agree(b skewSample) bool { return (a.skew - b.skew).Abs() <= a.round/2+b.round/2 }

// add notes an answer. Those before count no more if they contradict it.
func (k *skews) add(id string, s skewSample) {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := slices.DeleteFunc(k.last[id], func(o skewSample) bool { return !o.agree(s) || s.at-o.at > skewTooOld })
	if len(list) == skewSamples {
		list = slices.Delete(list, 0, 1)
	}
	k.last[id] = append(list, s)
}

// best returns what is known of a server's clock at an instant by Options.Boottime.
func (k *skews) best(id string, now time.Duration) (s skewSample, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(k.last[id]), func(o skewSample) bool { return now-o.at > skewTooOld })
	if len(list) == 0 {
		return s, false
	}
	return slices.MinFunc(list, func(a, b skewSample) int { return cmp.Compare(a.round, b.round) }), true
}

// keep forgets all servers but those.
func (k *skews) keep(nodes []dts.Node) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id := range k.last {
		if !slices.ContainsFunc(nodes, func(n dts.Node) bool { return n.ID == id }) {
			delete(k.last, id)
		}
	}
}

// clockLoop looks at this server's clock, and at those of the others.
func (s *Scheduler) clockLoop() {
	every := askClocks
	if s.alone() {
		every = beatEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if !s.alone() {
			s.askClocks(s.ctx)
		}
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
			s.clock.look()
		}
	}
}

// askClocks asks the other servers that live what time it is, all at once.
func (s *Scheduler) askClocks(ctx context.Context) {
	p := s.members.placement.Load()
	s.skews.keep(p.Nodes)
	ctx, cancel := context.WithTimeout(ctx, clockAnswer)
	defer cancel()
	var asked sync.WaitGroup
	for _, n := range p.Nodes {
		if n.ID == p.Self || n.Address == "" {
			continue
		}
		asked.Go(func() {
			before := s.clock.both()
			theirs, err := s.o.Peers.Clock(ctx, n)
			after := s.clock.both()
			if _, stepped := after.apart(before); err != nil || stepped {
				return // a server that does not answer shows in its beats
			}
			round := after.boot - before.boot
			s.skews.add(n.ID, skewSample{skew: theirs.Sub(after.wall.Add(-round / 2)), round: round, at: after.boot})
		})
	}
	asked.Wait()
}

// clockOf is how far a server's clock is ahead, as well as that is known, and by how much that may be wrong. What a server
// that does not answer, or is older, writes with its beats is known as well as the beats are looked at often.
func (m *members) clockOf(id string, seen sighting, now time.Duration) (skew, give time.Duration) {
	if s, known := m.s.skews.best(id, now); known {
		return s.skew, s.round / 2
	}
	return seen.skew, watchEvery
}
