package sched

import (
	"maps"
	"slices"
	"strings"
	"time"

	"dts"
	"dts/sched/lanes"
)

// Hosts: how many calls to one host may be in flight follows how it does: see hostLimit. What would be too many is parked
// at the host, in lanes of its own. Each queue is judged by itself: what one of them does to a host, or asks of it, holds up no
// other.

const (
	maxHosts   = 4096 // that are remembered, apart from those that are called or waited for
	hostEvict  = 16   // looked at to find one that can be forgotten
	hostsShown = 100
	hostPardon = time.Minute // one that is backed off is forgotten after so long without a call
)

// hostKey names a host, as the tasks of one queue call it.
type hostKey struct {
	queue dts.QueueKey
	name  string // scheme://host:port
}

// host is what the loop knows of an HTTP host.
type host struct {
	hostLimit
	hostKey
	calls   map[*item]call
	waiting *lanes.Queue[*item]
	flow    lanes.Flow[*item] // the only one
	listed  bool              // in hosts.open
}

// hosts are those that were called lately.
type hosts struct {
	slots   int
	off     bool // no host is ever held back
	known   map[hostKey]*host
	crowded map[*host]bool // those for which something is parked
	open    []*host        // of those, in turn, the ones that may have room
	lookAt  time.Time      // when the limits of the crowded are decided anew
}

func newHosts(slots int, off bool) hosts {
	return hosts{slots: slots, off: off, known: map[hostKey]*host{}, crowded: map[*host]bool{}}
}

// of returns the host that a task calls, and the URL without its query; nil for what is not an HTTP call.
func (hs *hosts) of(it *item, now time.Time) (*host, string) {
	if hs.off || it.TargetType != dts.HTTPCallback {
		return nil, ""
	}
	name, url := targetOf(it.task.TargetConfig)
	if name == "" {
		return nil, ""
	}
	key := hostKey{dts.QueueKey{TenantID: it.TenantID, Name: it.Queue}, name}
	h := hs.known[key]
	if h == nil {
		hs.evict(now)
		key.name = strings.Clone(name)
		h = &host{hostKey: key, hostLimit: newHostLimit(hs.slots, now), calls: map[*item]call{}, waiting: lanes.New[*item](lanes.Options{})}
		hs.known[key] = h
	}
	return h, url
}

// evict forgets a host that is idle, if there are too many.
func (hs *hosts) evict(now time.Time) {
	if len(hs.known) < maxHosts {
		return
	}
	looked := 0
	for key, h := range hs.known {
		if h.inflight == 0 && h.waiting.Len() == 0 && (!h.limited() || now.Sub(h.began) > hostPardon) {
			delete(hs.known, key)
			return
		}
		if looked++; looked == hostEvict {
			return
		}
	}
}

// admits reports whether another call may start. Nobody overtakes what is parked there but whose turn has come.
func (h *host) admits(turn bool) bool {
	return h.inflight < h.allowed() && (turn || h.waiting.Len() == 0)
}

// begin counts a call that starts.
func (h *host) begin(it *item, url string, now time.Time) {
	h.look(now, maps.Values(h.calls))
	h.calls[it] = call{route: h.start(url), began: now}
}

// forget counts the end of a call of which nothing was learnt.
func (h *host) forget(it *item) {
	if c, is := h.calls[it]; is {
		delete(h.calls, it)
		h.end(c, 0, verdictNone)
	}
}

// callEnded takes up how a call has ended.
func (l *loop) callEnded(it *item, a *dts.Attempt) {
	h := it.gates.calls
	if h == nil {
		return
	}
	v := verdictAnswer
	switch {
	case a.State == dts.AttemptCancelled || a.State == dts.AttemptLost:
		v = verdictNone
	case a.State == dts.AttemptTimedOut, a.HTTPStatus == 0 && a.State != dts.AttemptSuccess,
		a.HTTPStatus == 429, a.HTTPStatus == 503, a.HTTPStatus == 504:
		v = verdictRefusal
	}
	c := h.calls[it]
	delete(h.calls, it)
	h.end(c, time.Duration(a.DurationUS)*time.Microsecond, v)
	was := h.limited()
	h.look(l.s.clock.now(), maps.Values(h.calls))
	if h.limited() && !was {
		l.s.log.Info("a host is backed off", "host", h.name, "queue", h.queue.Name, "reason", h.reason, "calls", h.allowed())
	}
	it.gates.calls = nil
	l.gates.hosts.reopen(h)
}

func (hs *hosts) park(h *host, it *item, now time.Time) {
	if len(hs.crowded) == 0 {
		hs.lookAt = now.Add(hostWindow)
	}
	hs.crowded[h] = true
	it.gates.host = h
	it.spot = h.waiting.Push(laneOf(it), &h.flow, it.gates.since, it)
}

// remove takes a parked item out.
func (hs *hosts) remove(it *item) {
	h := it.gates.host
	h.waiting.Remove(it.spot) // not there any more, where next has taken it
	it.gates.host, it.spot = nil, nil
	if h.waiting.Len() == 0 {
		delete(hs.crowded, h)
	}
}

// reopen lists a host that may have room.
func (hs *hosts) reopen(h *host) {
	if !h.listed && h.waiting.Len() > 0 && h.inflight < h.allowed() {
		h.listed = true
		hs.open = append(hs.open, h)
	}
}

// next takes the next item whose host has room, one host after the other.
func (hs *hosts) next(now time.Time) *item {
	for len(hs.open) > 0 {
		h := hs.open[0]
		hs.open = slices.Delete(hs.open, 0, 1)
		h.listed = false
		if h.inflight >= h.allowed() {
			continue
		}
		if it, ok := h.waiting.Pop(now); ok {
			hs.reopen(h)
			return it
		}
	}
	return nil
}

// check decides the limits of hosts anew for which something is parked: no call may end for long.
func (hs *hosts) check(now time.Time) {
	if len(hs.crowded) == 0 || now.Before(hs.lookAt) {
		return
	}
	hs.lookAt = now.Add(hostWindow)
	for h := range hs.crowded {
		h.look(now, maps.Values(h.calls))
		hs.reopen(h)
	}
}

// status lists those that are backed off, the most crowded first.
func (hs *hosts) status() (list []dts.HostStatus, all int) {
	for _, h := range hs.known {
		if !h.limited() {
			continue
		}
		all++
		list = append(list, dts.HostStatus{Host: h.name, Queue: h.queue.Name, Limit: h.allowed(), Running: h.inflight, Waiting: h.waiting.Len(), Since: dts.Micros(h.since), Reason: h.reason})
	}
	slices.SortFunc(list, func(a, b dts.HostStatus) int {
		if a.Waiting != b.Waiting {
			return b.Waiting - a.Waiting
		}
		return strings.Compare(a.Host, b.Host)
	})
	return list[:min(len(list), hostsShown)], all
}
