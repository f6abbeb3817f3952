package sched

import (
	"context"
	"slices"
	"strings"
	"time"

	"dts"
	"dts/sched/calendar"
	"dts/sched/timetable"
)

// knownTimes is a tenant's calendars, as far as somebody asked for them, and its blackouts, for those who tell what will
// happen. It is made for one question and not safe for concurrent use.
type knownTimes struct {
	read      func(name string) (*dts.Calendar, error)
	calendars map[string]*calendar.Calendar // nil: there is none of that name
	blackouts []knownBlackout
}

// knownBlackout is a blackout that can be asked about.
type knownBlackout struct {
	*dts.Blackout
	times *calendar.Blackout
}

// knownTimes reads a tenant's blackouts. Calendars are read when they are asked for.
func (s *Scheduler) knownTimes(ctx context.Context, tenant string) (*knownTimes, error) {
	k := newKnownTimes(func(name string) (*dts.Calendar, error) { return s.o.Store.Calendar(ctx, tenant, name) })
	list, err := s.o.Store.Blackouts(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return k, k.add(list)
}

func newKnownTimes(read func(name string) (*dts.Calendar, error)) *knownTimes {
	return &knownTimes{read: read, calendars: map[string]*calendar.Calendar{}}
}

// add makes blackouts known. One that cannot be understood, because another version of dts made it, is left out.
func (k *knownTimes) add(list []*dts.Blackout) error {
	for _, b := range list {
		var cal *calendar.Calendar
		if b.Calendar != "" {
			var err error
			if cal, err = k.calendar(b.Calendar); err != nil {
				return err
			}
		}
		if times, err := calendar.CompileBlackout(b, cal); err == nil {
			k.blackouts = append(k.blackouts, knownBlackout{b, times})
		}
	}
	return nil
}

// calendar returns a calendar; nil where there is none of that name.
func (k *knownTimes) calendar(name string) (*calendar.Calendar, error) {
	if c, known := k.calendars[name]; known {
		return c, nil
	}
	def, err := k.read(name)
	var c *calendar.Calendar
	switch {
	case err == nil:
		if c, err = calendar.Compile(def); err != nil {
			return nil, err
		}
	case dts.CodeOf(err) != dts.ErrNotFound:
		return nil, err
	}
	k.calendars[name] = c
	return c, nil
}

// table compiles a schedule. name is that of the recurring task.
func (k *knownTimes) table(s *dts.Schedule, name string, anchor time.Time) (*timetable.Table, error) {
	for _, c := range s.Calendars() {
		if _, err := k.calendar(c); err != nil {
			return nil, err
		}
	}
	return timetable.Compile(s, timetable.Options{Seed: name, Anchor: anchor, Calendars: k.calendars})
}

// within leaves only the blackouts that are open at some time in [from, to), of one queue if it is named.
func (k *knownTimes) within(from, to time.Time, queue string) *knownTimes {
	n := *k
	n.blackouts = slices.DeleteFunc(slices.Clone(k.blackouts), func(b knownBlackout) bool {
		if queue != "" && b.Queue != "" && b.Queue != queue {
			return true
		}
		begins, _, ok := b.times.Next(from)
		return !ok || !begins.Before(to)
	})
	return &n
}

// barred is what blackouts do to a task that is due.
type barred struct {
	by      []string // the names of those that do something
	until   time.Time
	skipped bool
}

// touching is how many blackouts, each of which begins before the one before ends, are followed.
const touching = 100

// hold tells what becomes of a task of a queue that is due for the first time at an instant; ok is false when no blackout is
// open then.
func (k *knownTimes) hold(at time.Time, queue string) (h barred, ok bool) {
	h.until = at
	for range touching {
		end := h.until
		for _, b := range k.blackouts {
			if b.Queue != "" && b.Queue != queue {
				continue
			}
			until, in := b.times.At(h.until)
			if !in {
				continue
			}
			if b.Action == dts.BlackoutSkip {
				return barred{by: append(h.by, b.Name), until: until, skipped: true}, true
			}
			if until.After(end) {
				end = until
			}
			if !slices.Contains(h.by, b.Name) {
				h.by = append(h.by, b.Name)
			}
		}
		if end.Equal(h.until) {
			break
		}
		h.until = end
	}
	return h, len(h.by) > 0
}

// names writes what holds a task as people write it: the blackout upgrade; the blackouts upgrade and backup.
func (h barred) names() string {
	if len(h.by) == 1 {
		return "the blackout " + h.by[0]
	}
	last := len(h.by) - 1
	return "the blackouts " + strings.Join(h.by[:last], ", ") + " and " + h.by[last]
}
