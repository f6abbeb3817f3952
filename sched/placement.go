package sched

import (
	"context"
	"hash/fnv"
	"time"

	"dts"
)

// Which server holds which shard, and how a shard goes from one to another.

// handoverWait is how long a shard waits for the starts of its runs to reach the disk.
const handoverWait = 2 * time.Second

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
		m.lose(lost)
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
	if n, err := s.o.Store.SweepSlots(ctx); err != nil {
		return err
	} else if n > 0 {
		s.log.Warn("slots were held by nothing that runs, and are given back", "slots", n)
	}
	// Before anybody can pause or resume something there: what the loop is told of that then comes after what is read here.
	paused, err := s.o.Store.PausedRecurring(ctx, set)
	if err != nil {
		return err
	}
	s.held.Store(&f)
	s.in.post(func(l *loop) { l.gain(set, terms, paused) })
	s.wakePlanner()
	if !s.alone() {
		s.spawn(func() { _ = s.review(set) }) // while they were nobody's a blackout may have been deleted
		s.log.Info("took shards", "shards", set.Len(), "held", terms.Held().Len())
	}
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

// lose gives up shards that are lost already, and ends their runs: nobody waits for their results.
func (m *members) lose(set dts.ShardSet) {
	runs := m.stopIn(set)
	m.forget(set)
	for _, r := range runs {
		r.handOver()
		r.cancel(dts.ErrRunLost)
	}
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
