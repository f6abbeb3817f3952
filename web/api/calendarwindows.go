package api

import (
	"cmp"
	"time"

	"dts"
	"dts/sched/calendar"
)

// How far the windows of a calendar are listed.
const (
	normalWindows = 31 * 24 * time.Hour
	maxWindows    = 366 * 24 * time.Hour
)

// CalendarWindow is a stretch of time that a calendar covers.
type CalendarWindow struct {
	Start time.Time `json:"start_time"`
	End   time.Time `json:"end_time" doc:"not included"`
	Name  string    `json:"name,omitempty" doc:"what it is: a holiday, an event's summary, a day as it was given"`
}

// listWindows says what a calendar covers. Its days are read in a zone that can be given, as they are in that of the
// recurring task that uses it.
func (h *Handler) listWindows(c *call) (any, error) {
	name, err := c.name()
	if err != nil {
		return nil, err
	}
	var f fieldErrors
	zone := c.query.Get("time_zone")
	loc := f.zone("time_zone", zone)
	if err := f.err(); err != nil {
		return nil, err
	}
	def, err := h.Store.Calendar(c, c.p.TenantID, name)
	if err != nil {
		return nil, err
	}
	if loc == nil {
		loc = knownZone(cmp.Or(def.TimeZone, "UTC"))
	}
	from, to, err := c.window(h.Now(), loc, normalWindows, maxWindows)
	if err != nil {
		return nil, err
	}
	k, err := calendar.Compile(def)
	if err != nil {
		return nil, dts.Errorf(dts.ErrInternal, "the calendar %q, which was stored by another version, is not understood: %v", name, err)
	}
	items := []CalendarWindow{}
	for _, w := range k.Segments(from, to, loc) {
		items = append(items, CalendarWindow{w.From, w.To, w.Name})
	}
	return Items[CalendarWindow]{items}, nil
}
