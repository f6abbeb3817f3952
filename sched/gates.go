package sched

import (
	"slices"
	"time"
)

// Gates: what this server alone decides about a start, after the policies, and after the limits that all servers share. A
// task whose turn it is and for which a gate is closed is parked: it stays claimed, and its slot goes to the next one.
// When the gate opens it starts before what still waits in the lanes, because it has had its turn there; but its queue must
// not be paused by then, nor at its rate or share.

// gates is the loop's part of them.
type gates struct {
	budget budget
	hosts  hosts
	parked [pools]int // items that are set aside
}

func newGates(o *Options) gates {
	return gates{budget: newBudget(o.CPUBudget, o.MemoryBudgetMB), hosts: newHosts(o.HTTPSlots, o.NoHostLimits)}
}

// atGates is what an item waits for, or has got, at the gates.
type atGates struct {
	since    time.Time // when it was parked first since it was due; zero: it was not
	turn     bool      // a gate has opened for it
	inBudget bool      // it is parked until the budget has room
	host     *host     // it is parked for this host

	has     *need // of the budget, while it runs
	calls   *host // while it runs
	borrows bool  // its slot is, or is to be, that of a command that was stopped
	hold    *stoppable
}

// gated parks a task that is ready while a gate of this server is closed to it; false when it may start. Then it must: it
// has what it needs.
func (l *loop) gated(it *item, now time.Time) bool {
	g := &it.gates
	turn := g.turn
	g.turn = false
	h, url := l.gates.hosts.of(it, now)
	if h != nil && !h.admits(turn) {
		l.park(it, now)
		l.gates.hosts.park(h, it, now)
		return true
	}
	if n, asks := l.gates.budget.needOf(it.task); asks {
		if !l.gates.budget.admits(n, g.since, now) {
			l.park(it, now)
			l.gates.budget.park(it)
			return true
		}
		l.gates.budget.take(n)
		g.has = &n
	}
	if h != nil {
		h.begin(it, url, now)
		g.calls = h
	}
	g.since = time.Time{}
	return false
}

func (l *loop) park(it *item, now time.Time) {
	it.state = parked
	l.gates.parked[poolOf(it.TargetType)]++
	if it.gates.since.IsZero() {
		it.gates.since = now
	}
}

// unpark takes a parked item away, because a gate is open or because something else becomes of it.
func (l *loop) unpark(it *item) {
	l.gates.parked[poolOf(it.TargetType)]--
	if it.gates.inBudget {
		l.gates.budget.remove(it)
	}
	if it.gates.host != nil {
		l.gates.hosts.remove(it)
	}
}

// parkedOf lists what is parked of a flow. What waits at a host is taken out there already; the rest unpark does.
func (g *gates) parkedOf(f *flow) (list []*item) {
	for _, some := range g.budget.parked {
		for _, it := range some {
			if it.flow == f {
				list = append(list, it)
			}
		}
	}
	for h := range g.hosts.crowded {
		if h.queue == f.key {
			h.flow.Drain(func(it *item) { list = append(list, it) })
		}
	}
	return list
}

// admitted returns the next parked item of a pool whose gate is open and which its queue may start, which is parked no
// more; nil when there is none. What its queue may not start now waits for that before all else of the queue.
func (l *loop) admitted(p *pool, now time.Time) *item {
	var back []*item
	defer func() {
		for _, it := range slices.Backward(back) { // so they keep their order
			it.state = ready
			it.spot = p.ready.PushFront(laneOf(it), &it.flow.of(it).ready, it.gates.since, it)
		}
	}()
	for l.gates.parked[poolOf(p.kind)] > 0 {
		it := l.gates.budget.next(p, now)
		if it == nil && p.kind == l.pools[0].kind {
			it = l.gates.hosts.next(now)
		}
		if it == nil {
			break
		}
		l.unpark(it)
		it.gates.turn = true
		if !l.passes(p, it, now) {
			return it
		}
		back = append(back, it)
	}
	return nil
}

// leftGates gives back what a run had of this server when it has ended, or has not begun after all.
func (l *loop) leftGates(it *item) {
	g := &it.gates
	if g.has != nil {
		l.gates.budget.give(*g.has)
		g.has = nil
	}
	if g.calls != nil {
		g.calls.forget(it)
		l.gates.hosts.reopen(g.calls)
		g.calls = nil
	}
	l.leftSlot(it)
}

// checkGates does what is due at the gates, and gateTimes says when something will be.
func (l *loop) checkGates(now time.Time) {
	l.gates.hosts.check(now)
	l.checkStopped(now)
}

func (l *loop) gateTimes(now time.Time, sooner func(time.Time)) {
	if hs := &l.gates.hosts; len(hs.crowded) > 0 {
		sooner(hs.lookAt)
	}
	l.stopTimes(now, sooner)
}

// oldestParked is when what has been set aside longest was due; zero when nothing is.
func (l *loop) oldestParked() (at time.Time) {
	older := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	if it := l.gates.budget.first(); it != nil {
		older(it.RunAt)
	}
	for h := range l.gates.hosts.crowded {
		older(h.waiting.Oldest())
	}
	return at
}
