// Package cron turns a schedule expression or a recurrence rule (RFC 5545) and a time zone into
// instants, says in English when they fire, and says what daylight saving does to them.
//
// It promises that everything in it is a pure function: no clock is read, nothing is kept
// between calls, and every [Schedule] is safe for concurrent use. An expression of up to
// [MaxExpression] bytes is parsed or refused in well under a millisecond, a rule of up to [MaxRule]
// bytes within a few, and Next and Prev answer within milliseconds, whatever the input.
//
// Day and daylight-saving rules are those of Debian's cron(8) and crontab(5). DESIGN.md in this
// directory says why they are as they are.
package cron

import "time"

// Instants are limited to the years 1 to 9999, which is what RFC 3339 can write.
const (
	minUnix = -62135596800 // 0001-01-01T00:00:00Z
	maxUnix = 253402300799 // 9999-12-31T23:59:59Z
)

// Schedule yields instants. Expressions and rules yield whole seconds, intervals whole microseconds.
// Instants lie in the years 1 to 9999. All methods are pure and safe for concurrent use.
type Schedule interface {
	// Next returns the first instant strictly after `after`, or the zero Time when there is
	// none. Expressions look 41 years ahead, one more than the longest wait for a 29
	// February on a given day of the week; rules look 400 years ahead.
	Next(after time.Time) time.Time
	// Prev returns the last instant at or before `through`, or the zero Time when there is
	// none. Expressions look 41 years back, rules 400.
	Prev(through time.Time) time.Time
	// Count returns the number of instants in (after, through]. It computes whole days and
	// enumerates no instants, so a year of seconds costs microseconds; of several expressions at
	// once, milliseconds.
	Count(after, through time.Time) int64
}

// GapPolicy says what happens to a fixed-time job whose time falls in the gap that a clock
// leaves when it is put forward.
type GapPolicy string

// The gap policies. The empty string means GapRunAfter. Neither applies to jobs whose minute or
// hour begins with `*`: for those the gap does not exist.
const (
	GapRunAfter GapPolicy = "RUN_AFTER" // once, at the end of the gap
	GapSkip     GapPolicy = "SKIP"      // not that day
)

// OverlapPolicy says which pass counts when a clock is put back and an hour comes twice.
type OverlapPolicy string

// The overlap policies. OverlapDefault is Debian's rule: a fixed-time job runs the first time,
// and a job whose minute or hour begins with `*` follows elapsed time, so it runs in both
// passes. The other three apply to every job, whatever its fields.
const (
	OverlapDefault OverlapPolicy = ""
	OverlapFirst   OverlapPolicy = "FIRST"
	OverlapSecond  OverlapPolicy = "SECOND"
	OverlapBoth    OverlapPolicy = "BOTH"
)

// Options is how Parse and ParseRule read. Its zero value works.
type Options struct {
	// Location is the zone the fields are read in; nil is UTC. A CRON_TZ= or TZ= prefix in the
	// expression overrides it.
	Location *time.Location
	// Seed fixes what H and ~ choose. The same seed always gives the same choice; pass a name
	// that does not change.
	Seed string
	// Gap and Overlap say what happens around a daylight-saving change.
	Gap     GapPolicy
	Overlap OverlapPolicy
}

// Bounded limits s to the instants in [start, end]. A zero bound is no bound.
func Bounded(s Schedule, start, end time.Time) Schedule {
	if start.IsZero() && end.IsZero() {
		return s
	}
	return bounded{s, start, end}
}

type bounded struct {
	s          Schedule
	start, end time.Time
}

func (b bounded) Next(after time.Time) time.Time {
	t := b.s.Next(b.raise(after))
	if !b.end.IsZero() && t.After(b.end) {
		return time.Time{}
	}
	return t
}

func (b bounded) Prev(through time.Time) time.Time {
	t := b.s.Prev(b.lower(through))
	if !b.start.IsZero() && t.Before(b.start) {
		return time.Time{}
	}
	return t
}

func (b bounded) Count(after, through time.Time) int64 {
	return b.s.Count(b.raise(after), b.lower(through))
}

// raise moves the open lower end of a question to just before start.
func (b bounded) raise(after time.Time) time.Time {
	if !b.start.IsZero() && after.Before(b.start) {
		return b.start.Add(-1)
	}
	return after
}

// lower moves the closed upper end of a question to end.
func (b bounded) lower(through time.Time) time.Time {
	if !b.end.IsZero() && through.After(b.end) {
		return b.end
	}
	return through
}
