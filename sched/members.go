package sched

import (
	"context"
	"errors"
	"maps"
	"sync/atomic"
	"time"

	"dts"
)

// Leases. A server says that it lives by beating. Who has watched its beat stand still for deadAfter, by a clock of
// its own, declares it dead and takes its shards at a higher term; the server itself has stopped starting anything
// leaseFor after it sent its last beat that arrived. No two servers' clocks are compared.
const (
	clusterBeat = 5 * time.Second
	watchEvery  = 2 * time.Second // how often the others' beats are looked at
	leaseFor    = 15 * time.Second
	deadAfter   = 20 * time.Second
	leaveWait   = 5 * time.Second // how long the end of a server waits until the others know of it
)

// members is this server's part in a cluster: it beats, watches the others, and takes and hands over shards until
// each is held where it belongs. One goroutine runs it.
type members struct {
	s         *Scheduler
	poke      chan struct{} // capacity 1
	finish    chan struct{} // closed by stop
	left      chan struct{} // closed when the others know that
	seen      map[string]sighting
	asked     string        // the incarnation under which this server has tried to register, without an answer
	beat      int64         // of the last one that was sent: also one without an answer may have been seen
	beatAt    time.Duration // when the last one that arrived was sent, by Options.Boottime; zero: none has yet
	watchedAt time.Duration // when the others were last looked at
	watched   time.Time     // the same, by the wall clock
	leaving   bool
	placement atomic.Pointer[dts.Placement]
	view      atomic.Pointer[view]
	outside   atomic.Pointer[string] // why this server takes no part; nil when it does
}

// view is what members last saw, for those who ask how the cluster is.
type view struct {
	nodes []dts.Node
	seen  map[string]sighting
	held  []string // by shard, who holds it
}

// sighting is the newest that was seen of a server, and when, by Options.Boottime.
type sighting struct {
	incarnation string
	beat        int64
	at          time.Duration
	skew        time.Duration // of its clock against this server's, when it was seen
}

func newMembers(s *Scheduler) *members {
	m := &members{s: s, poke: make(chan struct{}, 1), finish: make(chan struct{}), left: make(chan struct{}), seen: map[string]sighting{}}
	m.placement.Store(&dts.Placement{Self: s.o.Node.ID})
	return m
}

func (m *members) run() {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-m.s.ctx.Done():
			return
		case <-m.poke:
		case <-t.C:
		case <-m.finish:
			m.s.persist("leave the cluster", func() error { return m.s.o.Store.Leave(m.s.ctx, m.s.fence(), true) })
			close(m.left)
			return
		}
		t.Reset(m.round())
	}
}

// stop ends this server's part, when nothing runs any more. The others need not wait for it to count as dead then,
// unless they could not be told within the limit.
func (m *members) stop(limit time.Duration) error {
	close(m.finish)
	select {
	case <-m.left:
		return nil
	case <-time.After(limit):
		return errors.New("the other servers could not be told that this one stops; they take over what it holds when they count it as dead")
	}
}

// look makes the next round come at once.
func (m *members) look() {
	select {
	case m.poke <- struct{}{}:
	default:
	}
}

// round beats, looks at the others and does what follows from that. It returns when to come again.
func (m *members) round() time.Duration {
	s := m.s
	if m.outside.Load() != nil {
		return m.register()
	}
	if s.draining.Load() && !m.leaving {
		err := s.o.Store.Leave(s.ctx, s.fence(), false)
		if s.o.Refused(err) {
			m.expelled()
			return m.register()
		}
		if err != nil {
			s.logStore("leave the cluster", err)
			return retryStore
		}
		m.leaving = true
	}
	if sent := s.o.Boottime(); m.beatAt == 0 || sent-m.beatAt >= clusterBeat {
		m.beat++ // never the same twice: who saw one whose answer was lost counts from then on
		err := s.o.Store.Beat(s.ctx, s.fence(), m.beat, s.clock.newestSeen())
		if s.o.Refused(err) {
			m.expelled()
			return m.register()
		}
		if err != nil {
			s.logStore("beat", err)
			return retryStore
		}
		m.beatAt = sent
		if last := s.lease.Swap(int64(sent + leaseFor)); last < int64(sent) {
			s.in.post(func(*loop) {}) // what was due meanwhile starts now
		}
	}
	all, err := s.o.Store.Members(s.ctx)
	if err != nil {
		s.logStore("read the cluster's members", err)
		return retryStore
	}
	next := m.observe(&all)
	next = min(next, m.arrange(&all), max(m.beatAt+clusterBeat-s.o.Boottime(), 0))
	if err := s.recover(s.ctx, s.fence(), false); err != nil {
		s.logStore("end lost attempts", err)
		return retryStore
	}
	return next
}

// observe notes whose beat has moved, declares dead whose has not for too long, and publishes who lives. It returns
// when to look again.
func (m *members) observe(all *dts.Members) time.Duration {
	s := m.s
	now := s.o.Boottime()
	next := watchEvery
	// While this server saw nothing itself, it cannot tell whether the others beat: perhaps none could.
	if blind := now - m.watchedAt - 2*watchEvery; blind > 0 {
		for id, last := range m.seen {
			last.at += blind
			m.seen[id] = last
		}
	}
	m.watchedAt = now
	wall, before := s.clock.now(), m.watched
	m.watched = wall
	p := &dts.Placement{Self: s.o.Node.ID}
	known := make(map[string]bool, len(all.Nodes))
	for i := range all.Nodes {
		n := &all.Nodes[i]
		known[n.ID] = true
		last, found := m.seen[n.ID]
		if !found || last.incarnation != n.Incarnation || last.beat != n.Beat {
			last = sighting{n.Incarnation, n.Beat, now, skewOf(n.SeenAt, before, wall)}
			m.seen[n.ID] = last
		}
		if n.State.Runs() && n.ID != p.Self && now-last.at >= deadAfter {
			if err := s.o.Store.DeclareDead(s.ctx, s.fence(), *n); err == nil {
				s.log.Warn("a server is dead: it has not beaten for too long", "node", n.ID, "address", n.Address)
				n.State = dts.NodeDead
			} else if !s.o.Refused(err) {
				s.logStore("declare a server dead", err)
			}
		} else if n.State.Runs() && n.ID != p.Self {
			next = min(next, max(last.at+deadAfter-now, time.Millisecond))
		}
		if n.State.Runs() {
			p.Nodes = append(p.Nodes, *n)
		}
	}
	for id := range m.seen {
		if !known[id] {
			delete(m.seen, id)
		}
	}
	for shard, h := range all.Holders {
		if _, lives := p.Node(h.Node); lives {
			p.Holders[shard] = h.Node
		}
	}
	v := view{nodes: all.Nodes, seen: maps.Clone(m.seen)}
	for _, h := range all.Holders {
		v.held = append(v.held, h.Node)
	}
	m.view.Store(&v)
	m.placement.Store(p)
	return next
}

// skewOf tells how far a clock is ahead, which said at when the true time was between before and now; as little as
// possible, where that leaves a choice.
func skewOf(at, before, now time.Time) time.Duration {
	switch {
	case at.After(now):
		return at.Sub(now)
	case !before.IsZero() && at.Before(before):
		return at.Sub(before)
	}
	return 0
}

// expelled is called when the others have declared this server dead: everything that it held or ran is theirs.
func (m *members) expelled() {
	s := m.s
	s.lease.Store(0)
	if held := s.fence().Terms.Held(); held != 0 {
		m.lose(held)
	}
	s.in.post(func(l *loop) { l.cancelAll(nil) })
	why := "this server was declared dead by the others, and has not registered anew yet"
	m.outside.Store(&why)
	s.log.Error("this server was declared dead by the others: it stops what it runs, and registers anew")
}

// register comes back after the server was declared dead, under a new incarnation.
func (m *members) register() time.Duration {
	s := m.s
	last, found, err := s.o.Store.Node(s.ctx, s.o.Node.ID)
	if err != nil {
		s.logStore("read this server's own row", err)
		return retryStore
	}
	if found && last.Incarnation != s.fence().Incarnation && last.Incarnation != m.asked && last.State.Runs() {
		why := "another server runs under this one's id; was the data directory copied? Stop one of them, remove its file node-id and start it again"
		if old := m.outside.Swap(&why); old == nil || *old != why {
			s.log.Error(why)
		}
		return clusterBeat
	}
	if err := s.register(s.ctx); err != nil {
		s.logStore("register", err)
		return retryStore
	}
	m.beat, m.beatAt, m.leaving = 0, 0, false
	m.outside.Store(nil)
	return 0
}

// register makes this server known under a new incarnation, and ends what its earlier ones left in the middle. It
// holds nothing yet. What was left running is killed: by the process before this one, or by runs whose results were
// refused after the others had declared this server dead.
func (s *Scheduler) register(ctx context.Context) error {
	n := s.o.Node
	n.StartedAt, n.SeenAt = s.clock.now(), s.clock.newestSeen()
	if s.members.asked == "" {
		s.members.asked = dts.NewID(n.StartedAt)
	}
	n.Incarnation = s.members.asked
	if err := s.o.Store.Register(ctx, n, s.alone()); err != nil {
		return err
	}
	s.members.asked = ""
	s.held.Store(&dts.Fence{Node: n.ID, Incarnation: n.Incarnation, Terms: &dts.Terms{}, Alone: s.alone()})
	if err := s.killOrphans(ctx); err != nil {
		return err
	}
	return s.recover(ctx, s.fence(), true)
}

// fence is what this server holds now.
func (s *Scheduler) fence() dts.Fence { return *s.held.Load() }

// alone reports whether no other server can share the schedule.
func (s *Scheduler) alone() bool { return s.o.Peers == nil }

// leased reports whether this server may start anything: others may count it as dead soon after it may not.
func (s *Scheduler) leased() bool {
	return s.alone() || int64(s.o.Boottime()) < s.lease.Load()
}

// Poke makes this server look at who holds what at once.
func (s *Scheduler) Poke() { s.members.look() }
