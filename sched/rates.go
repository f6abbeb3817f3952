package sched

import (
	"time"

	"dts"
)

// Rates: a queue may have a rate at which its attempts start, evenly spread, on all servers together. What was taken of it
// stands in the store. A server takes starts for the next tenth of a second at most, and lets the queue be passed over
// until the instant of the next one.

const (
	wantStarts = 10_000              // starts that are taken at once
	startsGood = 2 * dts.StartsAhead // so long what was taken may be used: what is left then must not come as a burst later
)

// rate is that of a queue, and what this server has taken of it.
type rate struct {
	dts.Rate
	taken  dts.Starts
	used   int       // of those
	until  time.Time // when what is left is no good any more
	asking bool      // the store is being asked
	at     time.Time // while the flow is throttled, unless the store is being asked: when to look again
}

// next is the instant of the next start that was taken; ok is false when none is left.
func (r *rate) next(now time.Time) (at time.Time, ok bool) {
	if r.used >= r.taken.N || !now.Before(r.until) || r.until.Sub(now) > startsGood { // or the clock was set back
		return at, false
	}
	return r.taken.From.Add(r.Span(r.used)), true
}

// may reports whether an attempt may start now.
func (r *rate) may(now time.Time) bool {
	at, ok := r.next(now)
	return ok && !at.After(now)
}

// setRate takes up the rate of a queue.
func (l *loop) setRate(f *flow, to dts.Rate) {
	switch {
	case to == (dts.Rate{}) && f.rate == nil, f.rate != nil && f.rate.Rate == to:
		return
	case to == (dts.Rate{}):
		f.rate = nil
	default:
		f.rate = &rate{Rate: to} // what was taken of the old one is no good
	}
	l.unthrottle(f)
}

// throttle lets a flow wait for its rate.
func (l *loop) throttle(f *flow, now time.Time) {
	f.throttled = true
	l.throttled[f] = struct{}{}
	r := f.rate
	if at, ok := r.next(now); ok {
		l.wakeRate(r, at)
		return
	}
	if r.asking {
		return
	}
	r.asking = true
	r.at = time.Time{}
	want := 0
	for _, mine := range f.pools {
		if mine != nil {
			want += mine.ready.Len()
		}
	}
	want = min(max(want, 1), wantStarts) // one, where all of it was parked until now
	s, key := l.s, f.key
	s.wg.Go(func() {
		got, err := s.o.Store.TakeStarts(s.ctx, key, r.Rate, want, now)
		s.in.post(func(l *loop) { l.tookStarts(f, r, got, now, err) })
	})
}

// tookStarts takes up starts that were taken of a rate.
func (l *loop) tookStarts(f *flow, r *rate, got dts.Starts, asked time.Time, err error) {
	if r.asking = false; f.rate != r {
		return // it was changed meanwhile
	}
	switch {
	case err != nil:
		l.s.logStore("take starts of a rate", err)
		l.wakeRate(r, l.s.clock.now().Add(retryStore))
	case got.N == 0:
		l.wakeRate(r, got.From)
	default:
		now := l.s.clock.now()
		if late := now.Sub(asked); late > dts.StartsAhead { // by the time they could be used up they must not come at once
			got.From = got.From.Add(late)
		}
		r.taken, r.used, r.until = got, 0, now.Add(startsGood)
		l.unthrottle(f)
	}
}

// wakeRate lets the loop look after a rate at an instant.
func (l *loop) wakeRate(r *rate, at time.Time) {
	r.at = at
	if l.rateAt.IsZero() || at.Before(l.rateAt) {
		l.rateAt = at
	}
}

// unthrottle lets a flow try again.
func (l *loop) unthrottle(f *flow) {
	if f.throttled {
		f.throttled = false
		delete(l.throttled, f)
		l.holdOrResume(f)
	}
}

// checkRates lets those flows go on whose next start has come.
func (l *loop) checkRates(now time.Time) {
	if l.rateAt.IsZero() || now.Before(l.rateAt) {
		return
	}
	l.rateAt = time.Time{}
	for f := range l.throttled {
		switch r := f.rate; {
		case r.at.IsZero(): // the store is being asked
		case now.Before(r.at):
			l.wakeRate(r, r.at)
		default:
			l.unthrottle(f)
		}
	}
}
