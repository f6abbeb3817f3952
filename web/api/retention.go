package api

import "dts"

func (h *Handler) getRetention(c *call) (any, error) {
	return h.Scheduler.Retention(c, c.p.TenantID)
}

// putRetention sets all of it: what is left out of the body is as the server was started with.
func (h *Handler) putRetention(c *call) (any, error) {
	var r dts.Retention
	if err := decode(c.body, &r); err != nil {
		return nil, err
	}
	if err := r.Normalize(); err != nil {
		return nil, err
	}
	return h.Scheduler.PutRetention(c, c.p.TenantID, r)
}
