package sched

import "dts"

// setAside ends a task of which a part cannot be read, when it is due: nobody knows what it was to do. It stays, for those
// who want to look, and keeps nothing else from running.
func (l *loop) setAside(it *item) {
	s := l.s
	it.state = deciding
	l.count(it, -1)
	l.endActive(it)
	now := s.clock.now()
	n := *it.task
	n.Status, n.CompletedAt, n.WaitsFor = dts.Failed, dts.Micros(now), ""
	n.LastError = clean(n.Unreadable)
	c := dts.Change{Old: it.task, New: &n}
	s.log.Error("a task cannot be read and is set aside", "task", n.ID, "reason", n.Unreadable)
	s.wg.Go(func() {
		err := s.persist("set a task aside", func() error { return s.o.Store.Change(s.ctx, s.fence(), []dts.Change{c}, now) })
		if err == nil {
			s.bus.publish(taskEvent(dts.EventFinished, &n, now))
		}
		s.in.post(func(l *loop) { l.leave(it) })
	})
}
