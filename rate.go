package dts

import (
	"sort"
	"time"
)

// StartsAhead is how far ahead of their instants starts are taken from a rate. The price of a rate that is held on all
// servers together is a write for each of them in that time.
const StartsAhead = 100 * time.Millisecond

// rateSlack is how far the clocks of servers may differ before what one of them took counts as nonsense to another.
const rateSlack = 30 * time.Second

// Rate is how many attempts may start: N in each Period, evenly spread; after a rest, Burst at once. The zero Rate is none.
type Rate struct {
	N      int
	Period time.Duration
	Burst  int
}

// StartRate is the rate of a queue; the zero Rate where it has none.
func (q *Queue) StartRate() Rate {
	if q.Rate <= 0 {
		return Rate{}
	}
	return Rate{q.Rate, time.Duration(q.PeriodSeconds * float64(time.Second)), max(q.Burst, 1)}
}

// Starts are instants at which attempts may start.
type Starts struct {
	// N is how many there are. The first is From, and each next one is later by the rate: see Rate.Span. With N 0, From is
	// when to ask again.
	N    int
	From time.Time
}

// Span is the time from one start to the kth after it, where they are evenly spread. It is rounded up to microseconds.
func (r Rate) Span(k int) time.Duration {
	us := r.Period.Microseconds()
	return time.Duration((int64(k)*us+int64(r.N)-1)/int64(r.N)) * time.Microsecond
}

// Take takes up to want starts from a rate, of those within StartsAhead. through is what was taken before: in terms of the
// generic cell rate algorithm (ITU-T I.371) the theoretical arrival time of the next one; zero is none. The second result is
// the new one.
func (r Rate) Take(through, now time.Time, want int) (Starts, time.Time) {
	rest := r.Span(r.Burst - 1)
	if through.After(now.Add(rest + r.Span(1) + StartsAhead + rateSlack)) {
		through = now // by another rate, or a clock that was wrong
	}
	if through.Before(now) {
		through = now
	}
	from := through.Add(-rest)
	left := now.Add(StartsAhead).Sub(from)
	n := sort.Search(want, func(k int) bool { return r.Span(k) > left })
	return Starts{N: n, From: from}, through.Add(r.Span(n))
}
