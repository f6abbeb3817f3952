package api

import (
	"time"

	"dts"
)

// How far ahead conflicts are looked for.
const (
	normalConflicts = 7 * 24 * time.Hour
	maxConflicts    = 31 * 24 * time.Hour
)

func (h *Handler) listConflicts(c *call) (any, error) {
	from, to, err := c.window(h.Now(), nil, normalConflicts, maxConflicts)
	if err != nil {
		return nil, err
	}
	list, err := h.Scheduler.Conflicts(c, c.p.TenantID, from, to)
	return Items[dts.Conflict]{nonNil(list)}, err
}

// window reads from and to of the query: by default the normal time from now, and at most the given time. The zone is
// that of local times; where it is nil they need an offset.
func (c *call) window(now time.Time, loc *time.Location, normal, most time.Duration) (from, to time.Time, err error) {
	var f fieldErrors
	from = f.inRange("from", f.time("from", TimeText{Text: c.query.Get("from")}, loc), now)
	to = f.inRange("to", f.time("to", TimeText{Text: c.query.Get("to")}, loc), now)
	if from.IsZero() {
		from = dts.Micros(now)
	}
	if to.IsZero() {
		to = from.Add(normal)
	}
	f.order("to", from, to)
	if to.Sub(from) > most {
		f.add("to", "is more than %d days after from; ask for less at once", most/(24*time.Hour))
	}
	return from, to, f.err()
}
