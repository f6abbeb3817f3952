package sched

import (
	"sync"
	"sync/atomic"
	"time"

	"dts"
)

// subscriberBuffer is how many events may wait for a subscriber before it is cut off.
const subscriberBuffer = 1024

// bus tells subscribers what happens. Publishing never blocks; without subscribers it costs one load.
type bus struct {
	n    atomic.Int32
	mu   sync.Mutex
	subs map[*subscriber]bool
}

type subscriber struct {
	tenant string
	c      chan dts.Event
}

func newBus() *bus { return &bus{subs: map[*subscriber]bool{}} }

func (b *bus) listening() bool { return b.n.Load() > 0 }

func (b *bus) publish(e dts.Event) {
	if !b.listening() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for sub := range b.subs {
		if sub.tenant != e.TenantID {
			continue
		}
		select {
		case sub.c <- e:
		default: // too slow: a closed channel says that events were missed
			b.remove(sub)
		}
	}
}

func (b *bus) remove(sub *subscriber) {
	if b.subs[sub] {
		delete(b.subs, sub)
		b.n.Add(-1)
		close(sub.c)
	}
}

func (b *bus) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for sub := range b.subs {
		b.remove(sub)
	}
}

// Subscribe returns a channel of the tenant's events, and what ends it. The channel is closed when the
// subscriber is too slow or the scheduler ends.
func (s *Scheduler) Subscribe(tenant string) (<-chan dts.Event, func()) {
	sub := &subscriber{tenant, make(chan dts.Event, subscriberBuffer)}
	b := s.bus
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subs[sub] = true
	b.n.Add(1)
	return sub.c, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.remove(sub)
	}
}

func taskEvent(typ dts.EventType, t *dts.Task, now time.Time) dts.Event {
	return dts.Event{Type: typ, At: dts.Micros(now), TenantID: t.TenantID, TaskID: t.ID, RecurringTaskID: t.RecurringTaskID,
		Name: t.Name, Status: string(t.Status), Attempt: t.Attempts, Error: t.LastError}
}

func recurringEvent(typ dts.EventType, r *dts.RecurringTask, now time.Time) dts.Event {
	return dts.Event{Type: typ, At: dts.Micros(now), TenantID: r.TenantID, RecurringTaskID: r.ID, Name: r.Name, Status: string(r.Status)}
}
