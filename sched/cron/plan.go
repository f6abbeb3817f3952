package cron

import (
	"errors"
	"time"
)

// Plan is a schedule as people give it: an expression or several, one a line, a rule, or a fixed
// interval, between two times. One of Expr, Rule and Interval is set.
type Plan struct {
	Expr       string        // see Parse
	Rule       string        // see ParseRule
	Interval   time.Duration // a fixed one, as @every in Expr also is
	Anchor     time.Time     // of a fixed interval or a rule, when Start is zero
	Start, End time.Time     // zero: unbounded
}

// Schedule makes the instants of a plan. A fixed interval counts from Start, or else from Anchor, and a rule has
// the same as its DTSTART. The errors are those of [Parse] and [ParseRule]; for @reboot it is [ErrReboot].
func (p Plan) Schedule(o Options) (Schedule, error) {
	anchor := p.Start
	if anchor.IsZero() {
		anchor = p.Anchor
	}
	if p.Rule != "" {
		if p.Expr != "" || p.Interval != 0 {
			return nil, errors.New("a schedule has one of an expression, a rule and an interval")
		}
		s, err := ParseRule(p.Rule, anchor, o)
		if err != nil {
			return nil, err
		}
		return Bounded(s, p.Start, p.End), nil
	}
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
	return Bounded(Every(d, anchor), p.Start, p.End), nil
}

// Describe says a plan in English, by [Describe], [DescribeRule] or [DescribeEvery]. What a rule takes from its
// start is read in loc; nil is UTC.
func (p Plan) Describe(loc *time.Location) (string, error) {
	switch {
	case p.Rule != "":
		start := p.Start
		if start.IsZero() {
			start = p.Anchor
		}
		if loc == nil {
			loc = time.UTC
		}
		if !start.IsZero() {
			start = start.In(loc)
		}
		return DescribeRule(p.Rule, start)
	case p.Expr != "":
		return Describe(p.Expr)
	}
	return DescribeEvery(p.Interval), nil
}
