package api

import (
	"time"

	"dts"
)

// BlackoutRequest is the body of POST /blackouts and PUT /blackouts/{id}: when is start_time and end_time, cron and
// duration_seconds, or a calendar.
type BlackoutRequest struct {
	Name   string             `json:"name" doc:"for people, such as database upgrade"`
	Note   string             `json:"note,omitempty"`
	Queue  string             `json:"queue,omitempty" doc:"default: every queue"`
	Action dts.BlackoutAction `json:"action,omitempty" enum:"WAIT,SKIP" doc:"default: WAIT"`
	WindowRequest
	Calendar string `json:"calendar,omitempty" doc:"the windows and days of a calendar, in place of a window"`
	TimeZone string `json:"time_zone,omitempty" doc:"IANA name, of local times, cron and a calendar's days; default: UTC"`
}

func (h *Handler) listBlackouts(c *call) (any, error) {
	list, err := h.Store.Blackouts(c, c.p.TenantID)
	return Items[*dts.Blackout]{nonNil(list)}, err
}

func (h *Handler) getBlackout(c *call) (any, error) {
	id, err := c.id()
	if err != nil {
		return nil, err
	}
	return h.Store.Blackout(c, c.p.TenantID, id)
}

func (h *Handler) createBlackout(c *call) (any, error) {
	var q BlackoutRequest
	if err := decode(c.body, &q); err != nil {
		return nil, err
	}
	b, err := q.blackout(c.p.TenantID, h.Now())
	if err != nil {
		return nil, err
	}
	b.CreatedBy = c.p.Name
	return h.Scheduler.CreateBlackout(c, b)
}

func (h *Handler) replaceBlackout(c *call) (any, error) {
	id, err := c.id()
	if err != nil {
		return nil, err
	}
	var q BlackoutRequest
	if err := decode(c.body, &q); err != nil {
		return nil, err
	}
	b, err := q.blackout(c.p.TenantID, h.Now())
	if err != nil {
		return nil, err
	}
	b.ID = id
	return h.Scheduler.ReplaceBlackout(c, b)
}

func (h *Handler) deleteBlackout(c *call) (any, error) {
	b, err := h.getBlackout(c)
	if err != nil {
		return nil, err
	}
	return b, h.Scheduler.DeleteBlackout(c, c.p.TenantID, c.r.PathValue("id"))
}

// blackout makes the blackout that a request asks for. Its expression and its calendar are the scheduler's to check.
func (q *BlackoutRequest) blackout(tenant string, now time.Time) (*dts.Blackout, error) {
	var f fieldErrors
	f.zone("time_zone", q.TimeZone)
	b := &dts.Blackout{TenantID: tenant, Name: q.Name, Note: q.Note, Queue: q.Queue, Action: q.Action,
		Window: q.window(&f, "", q.TimeZone), Calendar: q.Calendar, TimeZone: q.TimeZone}
	f.merge(b.Normalize(now), f.names())
	return b, f.err()
}
