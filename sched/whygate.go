package sched

import (
	"fmt"
	"time"
)

// gateFacts are the parts of an answer that say what a task waits for at the gates of this server, and that its command
// stands. They are empty where that is not so, or the loop does not answer within a second.
type gateFacts struct{ waits, stands string }

func (s *Scheduler) factsOfGate(id string) gateFacts {
	c := make(chan gateFacts, 1)
	s.in.post(func(l *loop) {
		it := l.items[id]
		switch {
		case it == nil:
			c <- gateFacts{}
		case it.state == parked && it.gates.host != nil:
			c <- gateFacts{waits: it.gates.host.why()}
		case it.state == parked:
			c <- gateFacts{waits: l.gates.budget.why(it, l.s.clock.now())}
		case it.state == running && it.gates.hold != nil && !it.gates.hold.since.IsZero():
			c <- gateFacts{stands: fmt.Sprintf("its command stands for %s now, because work of high priority needs its slot; it goes on after %s at the latest",
				sayDuration(l.s.clock.now().Sub(it.gates.hold.since)), sayDuration(stopLimit))}
		default:
			c <- gateFacts{}
		}
	})
	select {
	case f := <-c:
		return f
	case <-s.loopDone:
	case <-time.After(time.Second):
	}
	return gateFacts{}
}

func (h *host) why() string {
	because := "is slow"
	if h.reason == reasonRefused {
		because = "refuses calls, or does not answer"
	}
	if !h.limited() {
		return fmt.Sprintf("waits for %s: its calls to that host are next", h.name)
	}
	return fmt.Sprintf("waits for %s, which %s: for now this server has at most %s of the queue %q to it in flight", h.name, because, count(h.allowed(), "call"), h.queue.Name)
}

func (b *budget) why(it *item, now time.Time) string {
	n, _ := b.needOf(it.task)
	text := "waits for resources: it asks for " + sayNeed(n, b.whole)
	if n.alone {
		return text + ", more than this server has, so it runs when no other task with resources does"
	}
	text += fmt.Sprintf(", and of the %s that this server has %s are in use", sayNeed(b.whole, b.whole), sayNeed(b.used, b.whole))
	if w := b.waitedLong(now); w != nil && w != it {
		text += fmt.Sprintf("; task %s has waited longer, and goes first", w.TaskID)
	}
	return text
}

// sayNeed writes resources, those of which there is a limit: 1.5 cores and 512 MiB.
func sayNeed(n, whole need) string {
	cores := fmt.Sprintf("%g cores", float64(n.cpu)/1000)
	if n.cpu == 1000 {
		cores = "1 core"
	}
	memory := fmt.Sprintf("%d MiB", n.memory)
	switch {
	case whole.memory == 0:
		return cores
	case whole.cpu == 0:
		return memory
	}
	return cores + " and " + memory
}
