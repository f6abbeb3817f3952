package sched

import (
	"math"
	"time"
)

// How the limit of an HTTP host follows what the host does. See DESIGN.md, "Gates".
const (
	hostWindow    = time.Second           // the limit is decided anew this often
	hostWindowMax = 5 * time.Second       // where fewer than hostSamples calls end in a window, it goes on so long
	hostSamples   = 5                     // fewer say nothing about a host that is not backed off
	hostFloor     = 50 * time.Millisecond // what is faster counts as so fast: there is nothing to gain
	hostSlow      = 2.0                   // an answer is slow that takes so many times as long as is usual
	hostOutlier   = 10.0                  // and counts as at most so many
	hostLong      = time.Minute           // what takes longer is work, and says nothing
	hostLeast     = 8.0                   // slowness alone does not bring the limit below this
	hostRefusals  = 0.1                   // the share of refused calls from which the limit falls
	hostFall      = 0.5                   // it falls to this share of what was in flight, at most, in a window
	hostRoutes    = 32                    // URLs of a host whose usual times are kept apart
	hostForgive   = 60                    // windows that a host without calls is forgiven at once
)

// Why a limit fell last, as dts.HostStatus shows it.
const (
	reasonSlow    = "slow"
	reasonRefused = "refused"
)

// verdict is what the end of a call says about its host.
type verdict uint8

const (
	verdictNone    verdict = iota // nothing: the run was cancelled, for example
	verdictAnswer                 // it answered; how long it took counts
	verdictRefusal                // 429, 503, 504, no answer, or none in time
)

// hostLimit is how many calls to a host may be in flight. At first that is max, which is no limit. It falls with
// refusals, and when answers take longer than is usual for their URL; else it grows. It is never below 1, and slowness
// alone does not bring it below hostLeast: some calls just take longer than others.
type hostLimit struct {
	max      int
	limit    float64
	inflight int

	began    time.Time // of the window
	peak     int       // calls in flight in it
	answers  int
	refusals int
	routes   map[string]*route

	since  time.Time // it has been below max since then
	reason string    // why it fell last
}

// route is what is known of the calls to one URL, the query left out.
type route struct {
	usual time.Duration // how long an answer takes; 0: not known
	sum   time.Duration // of the answers of this window
	least time.Duration
	n     int
}

// call is one that is in flight.
type call struct {
	route string
	began time.Time
}

func newHostLimit(most int, now time.Time) hostLimit {
	return hostLimit{max: most, limit: float64(most), began: now, routes: map[string]*route{}}
}

// allowed is how many calls may be in flight.
func (h *hostLimit) allowed() int { return max(int(h.limit), 1) }

// limited reports whether the host is backed off.
func (h *hostLimit) limited() bool { return h.limit < float64(h.max) }

// start counts a call that begins, and returns the name under which its time is kept.
func (h *hostLimit) start(url string) string {
	h.inflight++
	h.peak = max(h.peak, h.inflight)
	if _, is := h.routes[url]; !is {
		if len(h.routes) >= hostRoutes {
			url = ""
		}
		if h.routes[url] == nil {
			h.routes[url] = &route{}
		}
	}
	return url
}

// end counts the end of a call that took so long.
func (h *hostLimit) end(c call, took time.Duration, v verdict) {
	h.inflight--
	switch v {
	case verdictRefusal:
		h.refusals++
	case verdictAnswer:
		h.answers++
		if took > hostLong {
			return
		}
		r := h.routes[c.route]
		if r.usual > 0 {
			took = min(took, time.Duration(hostOutlier*float64(max(r.usual, hostFloor))))
		}
		if r.n == 0 || took < r.least {
			r.least = took
		}
		r.sum += took
		r.n++
	}
}

// due is when the limit is decided next.
func (h *hostLimit) due() time.Time {
	if h.answers+h.refusals+h.inflight >= hostSamples {
		return h.began.Add(hostWindow)
	}
	return h.began.Add(hostWindowMax)
}

// look decides the limit anew, if it is time. calls goes through what is in flight.
func (h *hostLimit) look(now time.Time, calls func(yield func(call) bool)) {
	if now.Before(h.began) {
		h.began = now // the clock was set back
	}
	if now.Before(h.due()) {
		return
	}
	slowness, n := h.slowness(now, calls)
	if n < hostSamples && !h.limited() {
		slowness = 0
	}
	refused := float64(h.refusals) / float64(max(h.answers+h.refusals, 1))
	if h.answers+h.refusals < hostSamples && !h.limited() {
		refused = 0
	}
	weight := 0.1
	switch {
	case h.limit <= hostLeast:
		weight = 0.5
	case h.limited():
		weight = 0.002
	}
	if slowness > hostSlow || refused > hostRefusals {
		h.fall(now, slowness, refused)
	} else if h.refusals == 0 {
		h.grow()
	}
	for _, r := range h.routes {
		r.learn(weight)
	}
	if h.inflight == 0 { // for a while nothing was called: with time it is forgiven
		for range min(max(now.Sub(h.began)-hostWindowMax, 0)/hostWindow, hostForgive) {
			h.grow()
		}
	}
	h.began, h.peak, h.answers, h.refusals = now, h.inflight, 0, 0
}

// slowness is how many times as long as usual answers take. What is in flight for longer than is usual counts as well:
// from a host that hangs no answers come.
func (h *hostLimit) slowness(now time.Time, calls func(yield func(call) bool)) (x float64, n int) {
	sum := 0.0
	for _, r := range h.routes {
		if r.n > 0 {
			usual := r.usual
			if usual == 0 {
				usual = r.least
			}
			sum += float64(r.sum) / float64(max(usual, hostFloor))
			n += r.n
		}
	}
	for c := range calls {
		if r := h.routes[c.route]; r.usual > 0 {
			age := now.Sub(c.began)
			if x := float64(age) / float64(max(r.usual, hostFloor)); x > 1 && age <= hostLong {
				sum += min(x, hostOutlier)
				n++
			}
		}
	}
	return sum / float64(max(n, 1)), n
}

func (h *hostLimit) fall(now time.Time, slowness, refused float64) {
	factor := 1 - refused*(1-hostFall)
	reason := reasonRefused
	if slowness > hostSlow && hostSlow/slowness < factor {
		factor, reason = hostSlow/slowness, reasonSlow
	}
	if !h.limited() {
		h.since = now
	}
	h.reason = reason
	least := 1.0
	if refused <= hostRefusals {
		least = hostLeast
	}
	h.limit = min(h.limit, max(min(h.limit, float64(h.peak))*max(factor, hostFall), least))
}

func (h *hostLimit) grow() {
	if h.limit += math.Sqrt(h.limit); h.limit >= float64(h.max) {
		h.limit = float64(h.max)
	}
}

// learn takes up how long the answers of a window took, with this weight where that is longer than usual. While the host
// is backed off it is next to nothing, else what is slow would soon be usual; but where few calls are let through they are
// not the cause, and the host is just like that.
func (r *route) learn(weight float64) {
	if r.n == 0 {
		return
	}
	mean := r.sum / time.Duration(r.n)
	switch {
	case r.usual == 0:
		r.usual = r.least
	case mean < r.usual:
		r.usual -= (r.usual - mean) / 2
	default:
		r.usual += time.Duration(weight * float64(mean-r.usual))
	}
	r.sum, r.least, r.n = 0, 0, 0
}
