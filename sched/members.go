package sched

import (
	"context"
	"errors"
	"hash/fnv"
	"maps"
	"sync/atomic"
	"time"

	"dts"
)

// Leases. A server says that it lives by beating. Who has watched its beat stand still for deadAfter, by a clock of
// its own, declares it dead and takes its shards at a higher term; the server itself has stopped starting anything
// leaseFor after it sent its last beat that arrived. No two servers' clocks are compared.
const (
	clusterBeat  = 5 * time.Second
	watchEvery   = 2 * time.Second // how often the others' beats are looked at
	leaseFor     = 15 * time.Second
	deadAfter    = 20 * time.Second
	handoffEvery = time.Second
	handoffChunk = 1000
	handoverWait = 2 * time.Second // how long a shard waits for the starts of its runs to reach the disk
	leaveWait    = 5 * time.Second // how long the end of a server waits until the others know of it
)

// Peers tells other servers what they would else find out later. Its methods return at once.
type Peers interface {
	// Poke tells a server to look at who holds what: someone has come or gone, or shards were released.
	Poke(n dts.Node)
	// Wake tells a server of tasks that were made ready to run in shards that it holds.
	Wake(n dts.Node, ids []string)
}

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

// arrange lets go of shards that are held no more, takes those that are free and belong here, and hands over those
// that belong elsewhere, also where only the database says that this server holds them: an answer was lost.
func (m *members) arrange(all *dts.Members) time.Duration {
	s := m.s
	p := m.placement.Load()
	f := s.fence()
	var lost, give, stray dts.ShardSet
	var strayTerms dts.Terms
	var takes []dts.Take
	for shard, h := range all.Holders {
		mine := f.Term(shard) != 0
		owner := belongs(shard, p.Nodes)
		goes := m.leaving || owner != p.Self && owner != ""
		switch {
		case mine && (h.Node != p.Self || h.Term != f.Term(shard)):
			lost |= dts.SetOf(shard)
		case mine && goes:
			give |= dts.SetOf(shard)
		case !mine && goes && h.Node == p.Self:
			stray |= dts.SetOf(shard)
			strayTerms[shard] = h.Term
		case !mine && !m.leaving && owner == p.Self && (h.Node == p.Self || p.Holders[shard] == ""):
			takes = append(takes, dts.Take{Shard: shard, From: h})
		}
	}
	if lost != 0 {
		s.log.Error("shards are held by another server", "shards", lost.Len())
		m.lose(lost, true)
	}
	if give|stray != 0 {
		var err error
		if give != 0 {
			err = m.handOver(give)
		}
		if err == nil && stray != 0 {
			err = s.o.Store.ReleaseShards(s.ctx, dts.Fence{Node: f.Node, Incarnation: f.Incarnation, Terms: &strayTerms}, stray)
		}
		if err != nil && !s.o.Refused(err) {
			s.logStore("release shards", err)
			return retryStore
		}
		for _, n := range p.Nodes {
			if n.ID != p.Self && n.State == dts.NodeAlive {
				s.o.Peers.Poke(n)
			}
		}
		m.look() // publish it
	}
	if len(takes) > 0 {
		switch err := s.takeShards(s.ctx, takes); {
		case err == nil:
			m.look()
		case s.o.Refused(err): // someone was faster, or the answer to an earlier try was lost
			return 100 * time.Millisecond
		default:
			s.logStore("take shards", err)
			return retryStore
		}
	}
	return clusterBeat
}

// belongs returns which of the servers a shard belongs to: rendezvous hashing, so that one that comes or goes moves
// no shard between two others. "" when none can take it.
func belongs(shard int, nodes []dts.Node) (id string) {
	var best uint64
	for i := range nodes {
		if nodes[i].State != dts.NodeAlive {
			continue
		}
		h := fnv.New64a()
		h.Write([]byte{byte(shard)})
		h.Write([]byte(nodes[i].ID))
		if score := mix(h.Sum64()); id == "" || score > best {
			id, best = nodes[i].ID, score
		}
	}
	return id
}

// mix spreads a hash whose inputs are alike over all bits (the finalizer of MurmurHash3).
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// takeShards becomes the holder of shards, ends what their former holders left in the middle, and begins to fire.
func (s *Scheduler) takeShards(ctx context.Context, takes []dts.Take) error {
	f := s.fence()
	if err := s.o.Store.TakeShards(ctx, f, takes); err != nil {
		return err
	}
	terms := dts.Terms{}
	if f.Terms != nil {
		terms = *f.Terms
	}
	var set dts.ShardSet
	for _, t := range takes {
		terms[t.Shard] = t.From.Term + 1
		set |= dts.SetOf(t.Shard)
	}
	f.Terms = &terms
	if err := s.recover(ctx, f, false); err != nil {
		return err // the shards are taken again, or released
	}
	// Before anybody can pause or resume something there: what the loop is told of that then comes after what is read here.
	paused, err := s.o.Store.PausedRecurring(ctx, set)
	if err != nil {
		return err
	}
	s.held.Store(&f)
	s.in.post(func(l *loop) { l.gain(set, terms, paused) })
	s.wakePlanner()
	s.log.Info("took shards", "shards", set.Len(), "held", terms.Held().Len())
	return nil
}

// takeAll makes a server that is alone the holder of every shard.
func (s *Scheduler) takeAll(ctx context.Context) error {
	all, err := s.o.Store.Members(ctx)
	if err != nil {
		return err
	}
	takes := make([]dts.Take, dts.Shards)
	for shard, h := range all.Holders {
		takes[shard] = dts.Take{Shard: shard, From: h}
	}
	return s.takeShards(ctx, takes)
}

// handOver lets go of shards so that the next holder needs nothing from this server: nothing starts there any more,
// and what runs is on the disk as RUNNING, so that it can be ended from here.
func (m *members) handOver(set dts.ShardSet) error {
	s := m.s
	runs := m.stopIn(set)
	recorded := make([]<-chan struct{}, len(runs))
	for i, r := range runs {
		recorded[i] = r.handOver()
	}
	limit, cancel := context.WithTimeout(s.ctx, handoverWait)
	defer cancel()
	late := 0
	for i, r := range runs {
		select {
		case <-recorded[i]:
			continue
		case <-limit.Done():
		}
		select {
		case <-recorded[i]:
		default:
			late++
			r.cancel(dts.ErrRunLost)
		}
	}
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if late > 0 {
		s.log.Warn("runs were not recorded in time; they are stopped, and run again elsewhere", "runs", late)
	}
	err := s.o.Store.ReleaseShards(s.ctx, s.fence(), set)
	m.forget(set) // also where the outcome is unknown: what is still held is then a stray
	if err == nil {
		s.log.Info("handed over shards", "shards", set.Len(), "held", s.fence().Terms.Held().Len())
	}
	if s.o.Refused(err) {
		return nil
	}
	return err
}

// stopIn ends the loop's part in shards and returns their runs.
func (m *members) stopIn(set dts.ShardSet) []*run {
	answer := make(chan []*run, 1)
	m.s.in.post(func(l *loop) { answer <- l.lose(set) })
	select {
	case runs := <-answer:
		return runs
	case <-m.s.loopDone:
		return nil
	}
}

// forget takes shards out of the fence.
func (m *members) forget(set dts.ShardSet) {
	f := m.s.fence()
	terms := *f.Terms
	for _, n := range set.List() {
		terms[n] = 0
	}
	f.Terms = &terms
	m.s.held.Store(&f)
}

// lose gives up shards that are lost already. stop also ends their runs: nobody waits for their results.
func (m *members) lose(set dts.ShardSet, stop bool) {
	runs := m.stopIn(set)
	m.forget(set)
	if stop {
		for _, r := range runs {
			r.handOver()
			r.cancel(dts.ErrRunLost)
		}
	}
}

// expelled is called when the others have declared this server dead: everything that it held or ran is theirs.
func (m *members) expelled() {
	s := m.s
	s.lease.Store(0)
	if held := s.fence().Terms.Held(); held != 0 {
		m.lose(held, true)
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
		why := "another server runs under this one's id; was the data directory copied? Stop one of them, remove its file " + nodeIDFile + " and start it again"
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

const nodeIDFile = "node-id"

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

// Placement is who does what, as this server last saw it.
func (s *Scheduler) Placement() dts.Placement {
	p := *s.members.placement.Load()
	held := s.fence().Terms.Held() // newer than what was published
	for shard := range p.Holders {
		switch {
		case held.Has(shard):
			p.Holders[shard] = p.Self
		case p.Holders[shard] == p.Self:
			p.Holders[shard] = ""
		}
	}
	return p
}

// Poke makes this server look at who holds what at once.
func (s *Scheduler) Poke() { s.members.look() }

// Wake takes up tasks that another server has made ready to run in shards that this one holds.
func (s *Scheduler) Wake(ids []string) { s.settle(ids, nil) }

// wakeHolder tells the holder of a shard of tasks that were made ready there.
func (s *Scheduler) wakeHolder(shard int, ids ...string) {
	p := s.Placement()
	if n, found := p.Node(p.Holders[shard]); found && n.ID != p.Self {
		s.o.Peers.Wake(n, ids)
	}
}

// handoffLoop takes up what other servers have made ready to run, where they could not tell.
func (s *Scheduler) handoffLoop() {
	tick := time.NewTicker(handoffEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		held := s.fence().Terms.Held()
		if held == 0 {
			continue
		}
		ids, err := s.o.Store.Handoffs(s.ctx, held, handoffChunk)
		if err == nil && len(ids) > 0 {
			if err = s.takeUp(ids); err == nil {
				err = s.o.Store.DeleteHandoffs(s.ctx, s.fence(), ids)
			}
		}
		if err != nil && !s.o.Refused(err) {
			s.logStore("take up handoffs", err)
		}
	}
}

// takeUp reads tasks and gives the loop those that are its own.
func (s *Scheduler) takeUp(ids []string) error {
	tasks, err := s.o.Store.Load(s.ctx, ids)
	if err != nil {
		return err
	}
	s.in.post(func(l *loop) {
		s.strangers.Add(1)
		for _, t := range tasks {
			l.add(t.Entry(), nil)
		}
	})
	return nil
}

// notMine is the error of a request that another server is responsible for.
func notMine(what, id string) error {
	return dts.Errorf(dts.ErrElsewhere, "another server is responsible for the %s %s", what, id)
}

// holds reports whether this server holds a shard.
func (s *Scheduler) holds(shard int) bool { return s.fence().Term(shard) != 0 }

// place puts new tasks or a recurring task into a shard that this server holds: the one of its id, if it can be.
// false: it holds none.
func (s *Scheduler) place(id string) (shard int, ok bool) {
	shard = dts.ShardOf(id)
	if s.alone() {
		return shard, true
	}
	held := s.fence().Terms.Held()
	if held.Has(shard) {
		return shard, true
	}
	list := held.List()
	if len(list) == 0 {
		return 0, false
	}
	return list[shard%len(list)], true
}
