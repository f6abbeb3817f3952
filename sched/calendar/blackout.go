package calendar

import (
	"strings"
	"time"

	"dts"
	"dts/sched/cron"
)

// Blackout is a compiled dts.Blackout.
type Blackout struct {
	windows *Calendar
	loc     *time.Location
}

// How far a blackout looks: for the end and the beginning of a window, and for the next one.
const (
	maxBlackout  = 366 * 24 * time.Hour
	nextBlackout = 41 // years, the longest wait for a date
)

// CompileBlackout checks a blackout and makes it answerable. cal is the compiled calendar that b names, or nil when
// it names none. Its error is a *dts.Error.
func CompileBlackout(b *dts.Blackout, cal *Calendar) (*Blackout, error) {
	loc, err := cron.LoadLocation(b.TimeZone)
	if err != nil {
		return nil, dts.Invalid("time_zone", "%s", err)
	}
	hasWindow := b.Window != (dts.Window{})
	switch {
	case b.Calendar != "" && hasWindow:
		return nil, dts.Invalid("calendar", "cannot be set together with start_time, end_time, cron or duration_seconds; make two blackouts")
	case b.Calendar != "" && cal == nil:
		return nil, dts.Invalid("calendar", "%q does not exist", b.Calendar)
	case b.Calendar != "":
		return &Blackout{cal, loc}, nil
	case !hasWindow:
		return nil, dts.Invalid("start_time", "is missing; give start_time and end_time, cron and duration_seconds, or a calendar")
	}
	var bad problems
	c := &Calendar{name: b.Name, loc: loc, cache: map[chunkKey][]Window{}}
	c.addWindow("", b.Window, b.Name, &bad)
	if len(bad) == 0 {
		c.checkRate(&bad)
	}
	for i := range bad {
		bad[i].Field = strings.TrimPrefix(bad[i].Field, "windows[0].") // it has only the one
	}
	if len(bad) > 0 {
		return nil, &dts.Error{Code: dts.ErrInvalid, Message: "the blackout is not valid", Fields: bad}
	}
	return &Blackout{c, loc}, nil
}

// At reports whether t lies in the blackout and when that ends. Windows that touch are one. The end is at most 366
// days away: a blackout that never ends gives that, and whoever waited for it asks again.
func (b *Blackout) At(t time.Time) (until time.Time, in bool) {
	w, in := b.windows.At(t, b.loc)
	if !in {
		return time.Time{}, false
	}
	return b.end(w.To, t.Add(maxBlackout)), true
}

// end follows the windows that touch, from one that ends at t, up to limit.
func (b *Blackout) end(t, limit time.Time) time.Time {
	for t.Before(limit) {
		w, in := b.windows.At(t, b.loc)
		if !in {
			return t
		}
		t = w.To
	}
	return limit
}

// Next returns the first window that ends after t: the one that covers t, or the next. Windows that touch are one,
// as far as 366 days before t and 366 days after its beginning. It looks 41 years ahead.
func (b *Blackout) Next(t time.Time) (from, to time.Time, ok bool) {
	t = t.UTC()
	if until, in := b.At(t); in {
		w, _ := b.windows.At(t, b.loc)
		for limit := t.Add(-maxBlackout); w.From.After(limit); {
			before, in := b.windows.At(w.From.Add(-1), b.loc)
			if !in {
				return w.From, until, true
			}
			w = before
		}
		return t.Add(-maxBlackout), until, true
	}
	for year := max(t.Year(), 1); year <= min(t.Year()+nextBlackout, maxYear); year++ {
		for _, w := range b.windows.chunk(year, b.loc) {
			if w.From.After(t) {
				return w.From, b.end(w.To, w.From.Add(maxBlackout)), true
			}
		}
	}
	return time.Time{}, time.Time{}, false
}
