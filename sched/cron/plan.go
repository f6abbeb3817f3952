package cron

import "time"

// Plan is a schedule as people give it: an expression or a fixed interval, between two times.
type Plan struct {
	Expr       string        // empty: Interval counts
	Interval   time.Duration // a fixed one, as @every in Expr also is
	Anchor     time.Time     // of a fixed interval, when Start is zero
	Start, End time.Time     // zero: unbounded
}

// Schedule makes the instants of a plan. A fixed interval counts from Start, or else from Anchor. The errors
// are Parse's; for @reboot it is [ErrReboot].
func (p Plan) Schedule(o Options) (Schedule, error) {
	d := p.Interval
	if p.Expr != "" {
		d, _ = IntervalOf(p.Expr)
	}
	if d == 0 {
		s, err := Parse(p.Expr, o)
		if err != nil {
			return nil, err
		}
		return Bounded(s, p.Start, p.End), nil
	}
	anchor := p.Start
	if anchor.IsZero() {
		anchor = p.Anchor
	}
	return Bounded(Every(d, anchor), p.Start, p.End), nil
}
