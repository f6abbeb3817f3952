package sched

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dts"
	"dts/sched/lanes"
)

// Fairness: what belongs to one queue of a tenant is a flow. In memory flows get equal room, slots are given to them in turn,
// and none can have all slots. So what is slow, or very much, in one queue does not delay another.

// flow is what the loop knows of a queue. One of which nothing is in memory, and that has no settings, is forgotten.
type flow struct {
	key   dts.QueueKey
	pools [pools]*poolFlow // made when something of that kind comes
	gone  bool             // forgotten: who still has it must look it up again

	waiting int // entries in its shelves
	kept    int // as many as there were when it was last read, or cut
	// Where behind is set, only what is due up to mark is in memory: see behind.go.
	behind  bool
	mark    dts.Mark
	reading bool // the store is being read for it; mark is raised already

	paused    bool
	rate      *rate // nil: it has none
	throttled bool  // by its rate: see rates.go

	unstarted [pools][ranks]atomic.Int64 // claimed or ready, by kind and priority
}

// poolFlow is what of a flow is of one kind.
type poolFlow struct {
	flow    *flow
	shelves [ranks]shelf // by priority: what waits for its time
	ready   lanes.Flow[*item]
	running int
	sated   bool // it runs as many as it may, for the time being: see share
}

// flows are those that the loop knows. The loop changes them; claimNow looks one up.
type flows struct {
	mu      sync.RWMutex
	m       map[dts.QueueKey]*flow
	sweepAt int // how many there are when those that are not needed are forgotten
}

// minFlows is how many flows are kept in any case.
const minFlows = 1024

// get returns a flow; nil when it is not known.
func (fs *flows) get(k dts.QueueKey) *flow {
	fs.mu.RLock()
	defer fs.mu.RUnlock()
	return fs.m[k]
}

// flowNamed returns a flow, known from now on if need be.
func (l *loop) flowNamed(k dts.QueueKey) *flow {
	fs := &l.s.flows
	if f := fs.m[k]; f != nil {
		return f
	}
	f := &flow{key: k}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if len(fs.m) >= fs.sweepAt {
		for k, old := range fs.m {
			if old.idle() {
				old.gone = true
				delete(fs.m, k)
			}
		}
		fs.sweepAt = max(minFlows, 2*len(fs.m))
	}
	fs.m[k] = f
	return f
}

// idle reports whether nothing hangs on the flow.
func (f *flow) idle() bool {
	for i, p := range f.pools {
		if p != nil && (p.running > 0 || p.ready.Len() > 0 || p.sated) {
			return false
		}
		for rank := range ranks {
			if f.unstarted[i][rank].Load() != 0 {
				return false
			}
		}
	}
	return f.waiting == 0 && !f.behind && !f.paused && f.rate == nil
}

// flowOf is the flow of an item.
func (l *loop) flowOf(it *item) *flow {
	if it.flow == nil || it.flow.gone {
		it.flow = l.flowNamed(dts.QueueKey{TenantID: it.TenantID, Name: it.Queue})
		it.TenantID, it.Queue = it.flow.key.TenantID, it.flow.key.Name // one string for all
	}
	return it.flow
}

// of is what of the flow is of an item's kind.
func (f *flow) of(it *item) *poolFlow {
	p := &f.pools[poolOf(it.TargetType)]
	if *p == nil {
		*p = &poolFlow{flow: f}
		for rank := range ranks {
			(*p).shelves[rank] = shelf{flow: f, place: -1}
		}
	}
	return *p
}

// share is how many runs one queue may have: three times as many as slots are free. So a queue alone gets three quarters
// of them; of n that want more than there are, each gets 3 of 3n+1; and one that had nothing to do finds some free. A
// sixteenth is kept for queues of which nothing runs: else some that hang and came one after the other would have all.
// Choudhury and Hahne, Dynamic queue length thresholds for shared-memory packet switches, 1998.
func (p *pool) share() int {
	if p.whole {
		return p.slots
	}
	return max(3*(p.slots-p.slots/16-p.used()), 1)
}

// passes lets a flow be passed over that may not start anything now; false when it may.
func (l *loop) passes(p *pool, it *item, now time.Time) bool {
	f := it.flow
	switch mine := f.of(it); {
	case mine.running >= p.share():
		if !mine.sated {
			mine.sated = true
			p.sated = append(p.sated, mine)
		}
	case f.rate != nil && !f.rate.may(now):
		l.throttle(f, now)
	default:
		return false
	}
	l.holdOrResume(f)
	return true
}

// unsate lets those flows go on that have less than their share again.
func (l *loop) unsate(p *pool) {
	if len(p.sated) == 0 || p.used() >= p.slots {
		return
	}
	share := p.share()
	p.sated = slices.DeleteFunc(p.sated, func(mine *poolFlow) bool {
		if mine.running >= share {
			return false
		}
		mine.sated = false
		l.holdOrResume(mine.flow)
		return true
	})
}

// holdOrResume lets the lanes know whether a flow is to be passed over.
func (l *loop) holdOrResume(f *flow) {
	for i, mine := range f.pools {
		switch {
		case mine == nil:
		case mine.sated || f.throttled:
			l.pools[i].ready.Hold(&mine.ready)
		default:
			l.pools[i].ready.Resume(&mine.ready)
		}
	}
}

// begins and stops count a run of an item.
func (l *loop) begins(it *item) {
	l.pools[poolOf(it.TargetType)].running++
	f := l.flowOf(it)
	f.of(it).running++
	if f.rate != nil {
		f.rate.used++
	}
}

func (l *loop) stops(it *item) {
	l.pools[poolOf(it.TargetType)].running--
	it.flow.of(it).running--
}

// setQueues takes up changed settings of queues.
func (l *loop) setQueues(settings map[dts.QueueKey]*dts.Queue) {
	limits, resumed := map[dts.LineKey]int{}, false
	for k, q := range settings {
		if q.Concurrency > 0 {
			limits[dts.LineKey{TenantID: q.TenantID, Line: dts.QueueLine(q.Name)}] = q.Concurrency
		}
		resumed = l.setQueue(l.flowNamed(k), q) || resumed // at once: a flow that has nothing yet may be forgotten for the next one
	}
	for k, f := range l.s.flows.m {
		if settings[k] == nil {
			resumed = l.setQueue(f, &dts.Queue{}) || resumed
		}
	}
	l.setQueueLimits(limits)
	if resumed {
		l.readLines(l.terms.Held()) // a line in which only tasks of paused queues stand is not known
	}
}

// setQueue takes up the settings of one queue, and reports whether it is paused no more.
func (l *loop) setQueue(f *flow, q *dts.Queue) (resumed bool) {
	l.setRate(f, q.StartRate())
	switch {
	case q.Paused && !f.paused:
		l.pause(f)
	case !q.Paused && f.paused:
		f.paused = false // what it has is read: see refill
		l.thirsty, resumed = true, true
	}
	return resumed
}

// pause lets all of a flow leave memory that has not started. What is under way in other ways, such as a task that a
// verb holds, does so when it comes to rest.
func (l *loop) pause(f *flow) {
	f.paused, f.mark = true, dts.Mark{}
	l.setBehind(f, true)
	l.cut(f, 0)
	for i, mine := range f.pools {
		if mine == nil {
			continue
		}
		claimed := &l.pools[i].claimed
		for _, it := range slices.Clone(claimed.list) {
			if it.flow == f {
				claimed.remove(it)
				l.leaveUnstarted(it)
			}
		}
		mine.ready.Drain(func(it *item) {
			it.spot = nil
			l.leaveUnstarted(it)
		})
	}
	for _, it := range l.gates.parkedOf(f) {
		l.unpark(it)
		l.leaveUnstarted(it)
	}
}

// leaveUnstarted lets a claimed task leave memory that does not start now.
func (l *loop) leaveUnstarted(it *item) {
	l.count(it, -1)
	l.endActive(it)
	l.drop(it)
}
