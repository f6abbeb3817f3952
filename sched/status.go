package sched

import (
	"errors"
	"strings"
	"time"

	"dts"
	"dts/sched/timer"
)

// Status asks the loop how it is. When the loop does not answer within a second, that is the status.
func (s *Scheduler) Status() dts.SchedulerStatus {
	now := s.clock.now()
	st := dts.SchedulerStatus{
		Node: s.o.Node.ID, Version: s.o.Node.Version, StartedAt: s.startedAt.UTC(), Now: dts.Micros(now),
		Draining: s.draining.Load(), ClockSteps: s.clock.stepCount(), ClockHeld: s.clock.held(),
		Shards: shardRuns(s.fence()),
	}
	answer := make(chan dts.SchedulerStatus, 1)
	s.in.post(func(l *loop) {
		c := st
		l.fill(&c, now)
		answer <- c
	})
	select {
	case st = <-answer:
	case <-s.loopDone:
		st.NotReady = append(st.NotReady, "the server is stopping")
	case <-time.After(time.Second):
		st.NotReady = append(st.NotReady, "the scheduler's loop does not answer")
	}
	if why := s.members.outside.Load(); why != nil {
		st.NotReady = append(st.NotReady, *why)
	} else if !s.leased() {
		st.NotReady = append(st.NotReady, "this server has not reached the database for some time; others may do its work by now")
	}
	if !s.alone() {
		s.members.fill(&st)
	}
	st.Clock = s.clockStatus(&st)
	if at := s.retained.Load(); at != nil && s.holds(0) {
		st.RetainedAt = *at
	}
	if began := s.beating.Load(); began != nil && time.Since(*began) > stuckAfter {
		st.NotReady = append(st.NotReady, "the database takes longer than "+sayDuration(stuckAfter)+" for a write")
	}
	if since, err := s.o.Store.Fault(); err != nil {
		st.StoreError, st.StoreErrorFrom = err.Error(), since.UTC()
		st.NotReady = append(st.NotReady, "the database cannot be written: "+firstLine(err))
	}
	if st.ClockHeld != "" {
		st.NotReady = append(st.NotReady, st.ClockHeld)
	}
	if st.Draining {
		st.NotReady = append(st.NotReady, "the server is stopping")
	}
	st.Ready = len(st.NotReady) == 0
	return st
}

// fill adds what this server knows of the cluster.
func (m *members) fill(st *dts.SchedulerStatus) {
	now := m.s.o.Boottime()
	left := max(time.Duration(m.s.lease.Load())-now, 0)
	st.Lease = &dts.LeaseStatus{SecondsLeft: left.Round(time.Millisecond).Seconds()}
	v := m.view.Load()
	if v == nil {
		return
	}
	for _, n := range v.nodes {
		s := v.seen[n.ID]
		skew, _ := m.clockOf(n.ID, s, now)
		ns := dts.NodeStatus{ID: n.ID, Address: n.Address, Version: n.Version, State: string(n.State), Self: n.ID == st.Node,
			SeenSecondsAgo: (now - s.at).Round(time.Millisecond).Seconds(), ClockSkewMS: skew.Milliseconds()}
		for _, id := range v.held {
			if id == n.ID {
				ns.Shards++
			}
		}
		st.Nodes = append(st.Nodes, ns)
	}
}

// shardRuns lists the shards that a fence holds, neighbours of one term together.
func shardRuns(f dts.Fence) []dts.ShardStatus {
	runs := []dts.ShardStatus{}
	for _, n := range f.Terms.Held().List() {
		if last := len(runs) - 1; last >= 0 && runs[last].To == n-1 && runs[last].Term == f.Term(n) {
			runs[last].To = n
			continue
		}
		runs = append(runs, dts.ShardStatus{From: n, To: n, Term: f.Term(n)})
	}
	return runs
}

func firstLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

func (l *loop) fill(st *dts.SchedulerStatus, now time.Time) {
	st.Timer = timer.Kind(l.timer)
	st.HeapSize, st.LastScanAt, st.NextWakeAt = l.heapSize(), l.lastScan.UTC(), l.nextWake.UTC()
	st.Watermark = dts.Micros(l.mark.RunAt)
	if l.overslept() {
		st.NotReady = append(st.NotReady, "the timer did not wake the scheduler in time")
	}
	st.UnwrittenRuns, st.ActivePaused = l.unwritten, len(l.paused)
	st.Resources = l.gates.budget.status()
	st.Hosts, st.HostsBackedOff = l.gates.hosts.status()
	oldest := l.oldestParked()
	sooner := func(at time.Time) {
		if !at.IsZero() && (oldest.IsZero() || at.Before(oldest)) {
			oldest = at
		}
	}
	for i, p := range l.pools {
		st.Claimed -= p.ready.Len() + l.gates.parked[i]
		for rank := range p.waiting {
			st.Claimed += int(l.s.unstarted[i][rank].Load())
		}
		st.Pools = append(st.Pools, dts.PoolStatus{TargetType: p.kind, Slots: p.slots, Running: p.running, Stopped: p.stopped, Ready: p.ready.Len(), Parked: l.gates.parked[i]})
		sooner(topRunAt(&p.claimed))
	}
	for _, f := range l.s.flows.m {
		for _, mine := range f.pools {
			if mine == nil {
				continue
			}
			sooner(mine.ready.Oldest())
			for rank := range ranks {
				sooner(topRunAt(&mine.shelves[rank].dueHeap))
			}
		}
	}
	if !oldest.IsZero() && oldest.Before(now) {
		st.LagUS = now.Sub(oldest).Microseconds()
	}
}

// stuckAfter is from when on what does not come is not waited for as if it would: by far longer than it may take.
const stuckAfter = 35 * time.Second

// overslept reports whether the timer should have woken the loop long ago. Whoever asks has woken it, so it tells of the sleep
// that has just ended.
func (l *loop) overslept() bool {
	return l.armedFor > 0 && time.Since(l.armed) > l.armedFor+stuckAfter
}

func topRunAt(h *dueHeap) time.Time {
	if it := h.top(); it != nil {
		return it.RunAt
	}
	return time.Time{}
}

// Ready returns nil when the scheduler fires and its writes succeed, else why not.
func (s *Scheduler) Ready() error {
	if st := s.Status(); !st.Ready {
		return dts.Errorf(dts.ErrUnavailable, "%s", strings.Join(st.NotReady, "; "))
	}
	return nil
}

// logStore logs a failed access to the store; not when the scheduler is ending, and a full or failing disk only
// once until it recovers.
func (s *Scheduler) logStore(op string, err error) {
	if s.ctx.Err() != nil {
		return
	}
	code := dts.CodeOf(err)
	if code == dts.ErrFull || code == dts.ErrUnavailable {
		s.noteFault()
		since, _ := s.o.Store.Fault()
		if last := s.faultLogged.Swap(since.UnixNano()); last == since.UnixNano() {
			return
		}
	}
	cause := err
	if e, ok := errors.AsType[*dts.Error](err); ok && e.Err != nil {
		cause = e.Err
	}
	s.log.Error(op, "err", cause)
}
