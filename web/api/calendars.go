package api

import (
	"strings"

	"dts"
)

// calendarType is the media type of an iCalendar file, RFC 5545.
const calendarType = "text/calendar"

// CalendarRequest is the body of POST /calendars and PUT /calendars/{name}.
type CalendarRequest struct {
	Name        string          `json:"name,omitempty" doc:"unique; 1 to 64 of a-z, 0-9, '.', '_', '-'. In a PUT it can be left out"`
	Description string          `json:"description,omitempty"`
	TimeZone    string          `json:"time_zone,omitempty" doc:"IANA name, of windows and of an .ics file's local times; default: UTC. Days are those of the recurring task's zone"`
	Days        []string        `json:"days,omitempty" doc:"2026-12-25, 12-25 (every year), or 2026-12-24/2027-01-02 (both included)"`
	Weekdays    []string        `json:"weekdays,omitempty" doc:"days of every week: SUN, MON, TUE, WED, THU, FRI, SAT"`
	Windows     []WindowRequest `json:"windows,omitempty"`
	ICS         string          `json:"ics,omitempty" doc:"the text of an iCalendar file, RFC 5545: whole-day events are days, others windows"`
	Holidays    *dts.Holidays   `json:"holidays,omitempty"`
	Weekend     []string        `json:"weekend,omitempty" doc:"weekdays that are never business days; default: SAT and SUN"`
}

// WindowRequest is a stretch of time: start_time and end_time, or cron and duration_seconds.
type WindowRequest struct {
	StartTime       TimeText `json:"start_time,omitzero"`
	EndTime         TimeText `json:"end_time,omitzero" doc:"not included"`
	Cron            string   `json:"cron,omitempty" doc:"begins at each of its instants"`
	DurationSeconds Interval `json:"duration_seconds,omitempty" doc:"and lasts so long; up to 31 days"`
}

func (h *Handler) listCalendars(c *call) (any, error) {
	list, err := h.Store.Calendars(c, c.p.TenantID)
	if err != nil {
		return nil, err
	}
	items := make([]dts.Calendar, len(list))
	for i, k := range list {
		items[i] = *k
		items[i].ICS = "" // up to a megabyte each
	}
	return Items[dts.Calendar]{items}, nil
}

func (h *Handler) getCalendar(c *call) (any, error) {
	name, err := c.name()
	if err != nil {
		return nil, err
	}
	return h.Store.Calendar(c, c.p.TenantID, name)
}

func (h *Handler) createCalendar(c *call) (any, error) {
	var q CalendarRequest
	if err := decode(c.body, &q); err != nil {
		return nil, err
	}
	k, err := q.calendar(c.p.TenantID)
	if err != nil {
		return nil, err
	}
	return h.Scheduler.CreateCalendar(c, k)
}

// putCalendar puts a calendar in the place of the one of that name, or creates it. Somebody else can create or delete
// it meanwhile, so it is tried more than once.
func (h *Handler) putCalendar(c *call) (any, error) {
	q, err := c.calendarRequest()
	if err != nil {
		return nil, err
	}
	k, err := q.calendar(c.p.TenantID)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		made, err := h.Scheduler.ReplaceCalendar(c, k)
		if dts.CodeOf(err) != dts.ErrNotFound {
			return made, err
		}
		made, err = h.Scheduler.CreateCalendar(c, k)
		if err == nil {
			c.status = 201
			return made, nil
		}
		if _, gone := h.Store.Calendar(c, c.p.TenantID, k.Name); dts.CodeOf(err) != dts.ErrConflict || gone != nil || try == 3 {
			return nil, err
		}
	}
}

// calendarRequest reads the body of a PUT: JSON, or the file alone.
func (c *call) calendarRequest() (*CalendarRequest, error) {
	name := c.r.PathValue("name")
	if c.media == calendarType {
		return &CalendarRequest{Name: name, ICS: string(c.body), TimeZone: c.query.Get("time_zone"), Description: c.query.Get("description")}, nil
	}
	var q CalendarRequest
	if err := decode(c.body, &q); err != nil {
		return nil, err
	}
	var f fieldErrors
	for _, p := range calendarFileParams {
		if c.query.Get(p.name) != "" {
			f.add(p.name, "is for a body of type text/calendar; put it into the body")
		}
	}
	if q.Name != "" && q.Name != name {
		f.add("name", "is not that of the path; leave it out")
	}
	q.Name = name
	return &q, f.err()
}

func (h *Handler) deleteCalendar(c *call) (any, error) {
	k, err := h.getCalendar(c)
	if err != nil {
		return nil, err
	}
	return k, h.Scheduler.DeleteCalendar(c, c.p.TenantID, c.r.PathValue("name"))
}

// calendar makes the calendar that a request asks for. What is in its days, expressions and file is the scheduler's to
// check.
func (q *CalendarRequest) calendar(tenant string) (*dts.Calendar, error) {
	var f fieldErrors
	k := &dts.Calendar{TenantID: tenant, Name: q.Name, Description: q.Description, TimeZone: q.TimeZone, Days: q.Days,
		Weekdays: q.Weekdays, ICS: q.ICS, Holidays: q.Holidays, Weekend: q.Weekend}
	f.zone("time_zone", q.TimeZone)
	if len(q.Windows) <= dts.MaxWindows {
		for i, w := range q.Windows {
			k.Windows = append(k.Windows, w.window(&f, indexed("windows", i), q.TimeZone))
		}
	} else {
		k.Windows = make([]dts.Window, len(q.Windows)) // Normalize refuses it
	}
	f.merge(k.Normalize(), f.names())
	return k, f.err()
}

// window reads a window. Its local times are in the zone; "" is none.
func (q *WindowRequest) window(f *fieldErrors, prefix, zone string) dts.Window {
	loc := knownZone(zone)
	return dts.Window{
		Start: f.time(prefix+"start_time", q.StartTime, loc), End: f.time(prefix+"end_time", q.EndTime, loc),
		Cron: q.Cron, DurationSeconds: float64(q.DurationSeconds),
	}
}

// name is the {name} of the path. What cannot be one does not exist, so it is not looked for.
func (c *call) name() (string, error) {
	name := c.r.PathValue("name")
	if len(name) > 64 || badText(name) {
		return "", dts.Errorf(dts.ErrNotFound, "there is no calendar %q", clip(strings.ToValidUTF8(name, "\uFFFD")))
	}
	return name, nil
}
