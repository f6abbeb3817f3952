package sched

import (
	"slices"
	"time"

	"dts"
	"dts/sched/lanes"
)

// Preemption: while commands of HIGH priority wait and every slot is taken, a running command of LOW priority that allows it
// is stopped (SIGSTOP), and its slot is lent to HIGH. When none of those waits any more it goes on. It stands for
// stopLimit at the latest, even where that means one more command than there are slots, and is then left alone for as
// long: so it gets half of the time at least, whatever else there is. Nothing is stopped while more run than there are
// slots, so at most twice as many do.

const stopLimit = 30 * time.Second

// stoppable is a running command that may be stopped.
type stoppable struct {
	controls dts.Controls
	since    time.Time     // it stands since then; zero: it runs
	until    time.Time     // it is not stopped again before this
	stood    time.Duration // before
}

// mayStop reports whether a task allows to be stopped.
func mayStop(t *dts.Task) bool {
	return t.Preemptible && t.TargetType == dts.Command && t.Priority == dts.Low
}

// controlsFor is what a run is to do with its command's controls; nil where it is not to be stopped.
func (s *Scheduler) controlsFor(it *item, r *run) func(dts.Controls) {
	if !mayStop(r.task) {
		return nil
	}
	return func(c dts.Controls) { s.in.post(func(l *loop) { l.controlled(it, r, c) }) }
}

// controlled takes up how a run can be stopped.
func (l *loop) controlled(it *item, r *run, c dts.Controls) {
	if it.state == running && it.run == r {
		it.gates.hold = &stoppable{controls: c}
		l.stoppables = append(l.stoppables, it)
	}
}

// used is how many slots are taken.
func (p *pool) used() int { return p.running - p.stopped }

// lent is how many slots of commands that stand are free, for HIGH alone.
func (p *pool) lent() int { return max(p.stopped-p.borrowed, 0) }

// highWaits reports whether work of HIGH priority waits for a slot. A queue that has its share of slots counts, because
// what is stopped for it may be its own; one that is at its rate does not.
func (p *pool) highWaits() bool { return p.ready.Waits(lanes.High) || p.satedHigh() != nil }

// satedHigh is a flow that has its share and work of HIGH priority; nil when there is none.
func (p *pool) satedHigh() *poolFlow {
	for _, mine := range p.sated {
		if !mine.flow.throttled && mine.ready.Waits(lanes.High) {
			return mine
		}
	}
	return nil
}

// nextHigh takes the next of HIGH priority, whatever its queue has already: the slot is one that was lent.
func (l *loop) nextHigh(p *pool, now time.Time) (*item, bool) {
	for {
		it, ok := p.ready.PeekFrom(lanes.High)
		mine := p.satedHigh()
		switch {
		case !ok && mine == nil:
			return nil, false
		case ok && l.atRate(it.flow, now), !ok && l.atRate(mine.flow, now):
			continue
		case ok:
			return p.ready.PopFrom(lanes.High)
		}
		return mine.ready.PopFrom(lanes.High)
	}
}

// vacant reports whether a slot is free, or can be made so for HIGH.
func (l *loop) vacant(p *pool, now time.Time) bool {
	l.goOn(p, now)
	return p.used() < p.slots || p.used() == p.slots && p.highWaits() && l.victim(p, now) != nil
}

// next takes what is to have the next slot, which is vacant.
func (l *loop) next(p *pool, now time.Time) (*item, bool) {
	free := p.slots - p.used()
	if free <= 0 || p.lent() > 0 {
		if it, ok := l.nextHigh(p, now); ok {
			it.gates.borrows = true
			return it, true
		}
	}
	if free <= p.lent() {
		return nil, false
	}
	if it := l.admitted(p, now); it != nil {
		it.gates.borrows = false
		return it, true
	}
	for {
		it, ok := p.ready.Peek(now)
		if !ok {
			return nil, false
		}
		if !l.passes(p, it, now) {
			p.ready.Pop(now)
			it.gates.borrows = false
			return it, true
		}
	}
}

// atRate lets a flow be passed over that may not start anything now because of its rate; false when it may.
func (l *loop) atRate(f *flow, now time.Time) bool {
	if f.rate == nil || f.rate.may(now) {
		return false
	}
	l.throttle(f, now)
	l.holdOrResume(f)
	return true
}

// victim is what is stopped next: of those that may be, the one that has stood least, and of equals the youngest; nil when
// there is none.
func (l *loop) victim(p *pool, now time.Time) (v *item) {
	if p.kind != dts.Command {
		return nil
	}
	for _, it := range l.stoppables {
		if h := it.gates.hold; h.since.IsZero() && !now.Before(h.until) && !it.lost && it.run.ctx.Err() == nil && (v == nil || h.stood <= v.gates.hold.stood) {
			v = it
		}
	}
	return v
}

// enteredSlot is called when a run has got its slot. Where that is one too many, a command is stopped for it.
func (l *loop) enteredSlot(it *item, now time.Time) {
	if !it.gates.borrows {
		return
	}
	p := l.pools[poolOf(it.TargetType)]
	p.borrowed++
	for p.used() > p.slots {
		v := l.victim(p, now)
		if v == nil {
			return // they have all just ended: there is a slot in a moment
		}
		h := v.gates.hold
		if err := h.controls.Stop(); err != nil {
			l.s.log.Debug("a command was not stopped", "task", v.TaskID, "err", err)
			l.forgetStoppable(v)
			continue
		}
		h.since = now
		p.stopped++
		v.run.stands(now)
		l.s.m.preempted.Inc()
		l.s.publishRun(dts.EventStopped, v.run, now)
	}
}

// leftSlot is called when a run has left its slot, or has not used it after all.
func (l *loop) leftSlot(it *item) {
	p := l.pools[poolOf(it.TargetType)]
	if it.gates.borrows {
		it.gates.borrows = false
		p.borrowed--
	}
	if h := it.gates.hold; h != nil {
		if !h.since.IsZero() {
			p.stopped--
		}
		l.forgetStoppable(it)
	}
}

func (l *loop) forgetStoppable(it *item) {
	it.gates.hold = nil
	if i := slices.Index(l.stoppables, it); i >= 0 {
		l.stoppables = slices.Delete(l.stoppables, i, i+1)
	}
}

// goOn lets commands go on for which there is a slot that no HIGH waits for, those that have stood longest first.
func (l *loop) goOn(p *pool, now time.Time) {
	for p.stopped > 0 && p.used() < p.slots && !p.highWaits() {
		var first *item
		for _, it := range l.stoppables {
			if since := it.gates.hold.since; !since.IsZero() && (first == nil || since.Before(first.gates.hold.since)) {
				first = it
			}
		}
		l.resume(first, now)
	}
}

// resume lets a command go on. It is not stopped again before it has run for as long as it has just stood.
func (l *loop) resume(it *item, now time.Time) {
	h := it.gates.hold
	stood := now.Sub(h.since)
	h.stood += stood
	h.until = now.Add(stood)
	h.since = time.Time{}
	l.pools[poolOf(it.TargetType)].stopped--
	it.run.goesOn(now)
	h.controls.Continue()
	l.s.publishRun(dts.EventContinued, it.run, now)
}

// checkStopped lets go on what has stood long enough; all, where the server is to stop.
func (l *loop) checkStopped(now time.Time) {
	draining := l.s.draining.Load()
	for _, it := range l.stoppables {
		if h := it.gates.hold; !h.since.IsZero() && (draining || now.Sub(h.since) >= stopLimit || now.Before(h.since)) {
			l.resume(it, now)
		}
	}
}

// stopTimes says when a command goes on, or may be stopped again while HIGH waits.
func (l *loop) stopTimes(now time.Time, sooner func(time.Time)) {
	if len(l.stoppables) == 0 {
		return
	}
	p := l.pools[poolOf(dts.Command)]
	waits := p.used() == p.slots && p.highWaits()
	for _, it := range l.stoppables {
		switch h := it.gates.hold; {
		case !h.since.IsZero():
			sooner(h.since.Add(stopLimit))
		case waits && h.until.After(now):
			sooner(h.until)
		}
	}
}

// stands and goesOn note in a run how long its command is stopped.
func (r *run) stands(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.standsSince = now
}

func (r *run) goesOn(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stood += now.Sub(r.standsSince)
	r.standsSince = time.Time{}
}

// stoodFor is how long the command has been stopped in all. r.mu is held.
func (r *run) stoodFor(now time.Time) time.Duration {
	if r.standsSince.IsZero() {
		return r.stood
	}
	return r.stood + max(now.Sub(r.standsSince), 0)
}

func (s *Scheduler) publishRun(typ dts.EventType, r *run, now time.Time) {
	if !s.bus.listening() {
		return
	}
	e := taskEvent(typ, r.task, now)
	e.Status, e.Attempt = string(dts.Running), r.number
	s.bus.publish(e)
}
