package api

import (
	"cmp"
	"time"
)

// whyTask says why a task did or did not run.
func (h *Handler) whyTask(c *call) (any, error) {
	id, err := c.id()
	if err != nil {
		return nil, err
	}
	if _, err := h.Store.Task(c, c.p.TenantID, id); err != nil {
		return nil, err // the scheduler takes a recurring task's id too
	}
	return h.Scheduler.Why(c, c.p.TenantID, id, time.Time{})
}

// whyInstant says why an instant of a recurring task did or did not run.
func (h *Handler) whyInstant(c *call) (any, error) {
	id, err := c.id()
	if err != nil {
		return nil, err
	}
	r, err := h.Store.RecurringTask(c, c.p.TenantID, id)
	if err != nil {
		return nil, err
	}
	var f fieldErrors
	loc := knownZone(cmp.Or(r.TimeZone, "UTC"))
	at := f.inRange("at", f.time("at", TimeText{Text: c.query.Get("at")}, loc), h.Now())
	if err := f.err(); err != nil {
		return nil, err
	}
	return h.Scheduler.Why(c, c.p.TenantID, id, at)
}
