package calendar

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"dts"
	"dts/sched/cron"
)

// events are what an iCalendar file says, RFC 5545.
type events struct {
	days      []span   // whole days that come once
	windows   []Window // what has a time of day and comes once
	recurring []event
	calendar  string
}

// event is a VEVENT that recurs.
type event struct {
	line     int
	name     string
	date     bool           // whole days; its instants are midnights in UTC
	loc      *time.Location // otherwise: whose clock it follows
	length   length
	schedule []cron.Schedule
	except   map[int64]bool // Unix seconds of instants that do not take place
}

// maxRecurringLength is the longest that an event that recurs may take, with what [length.atMost] adds.
const maxRecurringLength = (365*24 + 26) * time.Hour

// readICS reads a file. Local times without a zone are read in floating. Events that recur are expanded when they are
// asked for, not here.
func readICS(text string, floating *time.Location, calendar string) (events, error) {
	e := events{calendar: calendar}
	if len(text) > dts.MaxICS {
		return e, fmt.Errorf("has %d bytes, the limit is %d", len(text), dts.MaxICS)
	}
	root, err := readComponents(text)
	if err != nil {
		return e, err
	}
	z := newZones(root, floating)
	var list []*component
	for _, cal := range root.inside {
		for _, c := range cal.inside {
			if c.name == "VEVENT" {
				list = append(list, c)
			}
		}
	}
	if len(list) > MaxEvents {
		return e, fmt.Errorf("has %d events, the limit is %d", len(list), MaxEvents)
	}
	replaced, err := z.replaced(list)
	if err != nil {
		return e, err
	}
	for _, c := range list {
		if err := e.add(c, z, replaced); err != nil {
			return e, err
		}
	}
	slices.SortStableFunc(e.windows, func(a, b Window) int { return a.From.Compare(b.From) })
	return e, nil
}

// replaced returns, by UID, the instances for which there is an event of its own: one with a RECURRENCE-ID. Those do not
// take place as the rule says.
func (z *zones) replaced(list []*component) (map[string][]moment, error) {
	out := map[string][]moment{}
	for _, c := range list {
		id := c.first("RECURRENCE-ID")
		if id == nil {
			continue
		}
		if strings.EqualFold(id.params["RANGE"], "THISANDFUTURE") {
			return nil, fmt.Errorf("line %d: RECURRENCE-ID with RANGE=THISANDFUTURE is not supported; end the event there and make a second one", id.line)
		}
		at, err := z.moments(id)
		if err != nil {
			return nil, err
		}
		if of := uid(c); of != "" { // without a UID it stands for no other event
			out[of] = append(out[of], at[0].moment)
		}
	}
	return out, nil
}

func uid(c *component) string {
	if p := c.first("UID"); p != nil {
		return p.value
	}
	return ""
}

// add reads one VEVENT.
func (e *events) add(c *component, z *zones, replaced map[string][]moment) error {
	if p := c.first("STATUS"); p != nil && strings.EqualFold(p.value, "CANCELLED") {
		return nil
	}
	begin := c.first("DTSTART")
	if begin == nil {
		return fmt.Errorf("line %d: the event has no DTSTART", c.line)
	}
	starts, err := z.moments(begin)
	if err != nil {
		return err
	}
	start := starts[0].moment
	ev := event{line: c.line, name: c.first("SUMMARY").text(), date: start.date, loc: time.UTC}
	if ev.name == "" {
		ev.name = "event"
	}
	if !start.date && !strings.HasSuffix(begin.value, "Z") {
		ev.loc = z.floating
		if id := begin.params["TZID"]; id != "" {
			if ev.loc, err = z.load(id); err != nil {
				return fmt.Errorf("line %d: %w", begin.line, err)
			}
		}
	}
	if ev.length, err = z.lengthOf(c, start); err != nil {
		return fmt.Errorf("line %d: %w", c.line, err)
	}
	if p := c.first("EXRULE"); p != nil {
		return fmt.Errorf("line %d: EXRULE is not supported; list the exceptions as EXDATE", p.line)
	}
	if c.first("RECURRENCE-ID") != nil {
		e.once(ev, start.at, ev.length) // it stands for one instance, whatever rule it repeats
		return nil
	}
	if ev.except, err = z.exceptions(c, ev, replaced); err != nil {
		return err
	}
	more, err := z.more(c, ev)
	if err != nil {
		return err
	}
	for _, p := range append(more, period{moment: start}) {
		if !ev.skips(p.at) {
			l := ev.length
			if p.own {
				l = p.length
			}
			e.once(ev, p.at, l)
		}
	}
	for _, rule := range c.properties["RRULE"] {
		s, err := cron.ParseRule(rule.value, start.at, cron.Options{Location: ev.loc})
		if err != nil {
			return fmt.Errorf("line %d: %w", rule.line, err)
		}
		ev.schedule = append(ev.schedule, s)
	}
	if len(ev.schedule) > 0 {
		if ev.length.atMost() > maxRecurringLength {
			return fmt.Errorf("line %d: an event that recurs takes more than 365 days; make one without a rule", c.line)
		}
		if e.recurring = append(e.recurring, ev); len(e.recurring) > MaxRecurring {
			return fmt.Errorf("line %d: more than %d events recur, the limit; list their days instead", c.line, MaxRecurring)
		}
	}
	return nil
}

// lengthOf returns how long an event takes. Without an end a whole-day event takes its day, and another no time.
func (z *zones) lengthOf(c *component, start moment) (length, error) {
	if p := c.first("DTEND"); p != nil {
		ends, err := z.moments(p)
		if err != nil {
			return length{}, err
		}
		end := ends[0].moment
		if end.date != start.date {
			return length{}, errors.New("DTSTART and DTEND must both be dates, or both be times")
		}
		l := length{exact: end.at.Sub(start.at)}
		if l.exact < 0 {
			return length{}, errBackwards
		}
		return l, l.check()
	}
	if p := c.first("DURATION"); p != nil {
		return parseLength(p.value)
	}
	return length{}, nil
}

// exceptions returns the instants of an event that do not take place.
func (z *zones) exceptions(c *component, ev event, replaced map[string][]moment) (map[int64]bool, error) {
	out := map[int64]bool{}
	for _, m := range replaced[uid(c)] {
		out[ev.exceptionKey(m, z.floating)] = true
	}
	for _, p := range c.properties["EXDATE"] {
		list, err := z.moments(&p)
		if err != nil {
			return nil, err
		}
		for _, m := range list {
			out[ev.exceptionKey(m.moment, z.floating)] = true
		}
	}
	return out, nil
}

// exceptionKey is how an exception is looked up. A date excepts what begins on that day, and a time excepts the whole
// day where the event is of whole days.
func (ev *event) exceptionKey(m moment, floating *time.Location) int64 {
	switch {
	case m.date == ev.date:
		return m.at.Unix()
	case ev.date:
		return int64(DayOf(m.at.In(floating))) * secondsPerDay
	}
	return exceptDay(DayOf(m.at))
}

// exceptDay is the key of a whole day on which an event with a time of day does not take place. It is no instant of the
// years that are read.
func exceptDay(d Day) int64 { return int64(d) - 1<<40 }

// skips reports whether the instance that begins at t does not take place.
func (ev *event) skips(t time.Time) bool {
	return ev.except[t.Unix()] || !ev.date && ev.except[exceptDay(DayOf(t.In(ev.loc)))]
}

// more returns the instances that RDATE adds.
func (z *zones) more(c *component, ev event) ([]period, error) {
	var out []period
	for _, p := range c.properties["RDATE"] {
		list, err := z.moments(&p)
		if err != nil {
			return nil, err
		}
		for _, m := range list {
			if m.date != ev.date {
				return nil, fmt.Errorf("line %d: RDATE and DTSTART must both be dates, or both be times", p.line)
			}
			out = append(out, m)
		}
	}
	return out, nil
}

// once adds one instance.
func (e *events) once(ev event, at time.Time, l length) {
	if ev.date {
		e.days = append(e.days, ev.span(at, l))
	} else if w := e.window(ev, at, l); w.From.Before(w.To) {
		e.windows = append(e.windows, w)
	}
}

func (ev *event) span(at time.Time, l length) span {
	first := DayOf(at.UTC())
	return span{first, first + Day(l.wholeDays()) - 1, ev.name}
}

func (e *events) window(ev event, at time.Time, l length) Window {
	return Window{From: at.UTC(), To: l.from(at, ev.loc).UTC(), Name: ev.name, Calendar: e.calendar}
}

// in returns what takes place in [from, to), or on the days [first, last], and some of what lies around.
func (e *events) in(from, to time.Time, first, last Day) (days []span, windows []Window) {
	days = slices.Clone(e.days)
	for _, w := range e.windows {
		if w.To.After(from) && w.From.Before(to) {
			windows = append(windows, w)
		}
	}
	for _, ev := range e.recurring {
		begin, end := from.Add(-ev.length.atMost()), to
		if ev.date {
			begin = first.Start(time.UTC).AddDate(0, 0, -ev.length.wholeDays())
			end = (last + 1).Start(time.UTC)
		}
		for _, s := range ev.schedule {
			for t := s.Next(begin); !t.IsZero() && t.Before(end); t = s.Next(t) {
				switch {
				case ev.skips(t):
				case ev.date:
					days = append(days, ev.span(t, ev.length))
				default:
					if w := e.window(ev, t, ev.length); w.From.Before(w.To) {
						windows = append(windows, w)
					}
				}
			}
		}
	}
	return days, windows
}

// exceeds reports whether the events recur more often than limit in the first year of each, and at which line that
// becomes too much.
func (e *events) exceeds(limit int64) (line int, over bool) {
	for _, ev := range e.recurring {
		for _, s := range ev.schedule {
			first := s.Next(time.Time{})
			if limit -= s.Count(first.Add(-1), first.AddDate(1, 0, 0)); limit < 0 {
				return ev.line, true
			}
		}
	}
	return 0, false
}
