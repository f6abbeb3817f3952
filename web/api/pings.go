package api

import "dts"

// PingsAnswer answers GET /recurring-tasks/{id}/pings.
type PingsAnswer struct {
	URL   string            `json:"url" doc:"what the job calls; whoever knows it can report in its name"`
	Items []*dts.PingRecord `json:"items" doc:"the newest 100 at most, newest first"`
}

func (h *Handler) listPings(c *call) (any, error) {
	id, err := c.id()
	if err != nil {
		return nil, err
	}
	r, err := h.Store.RecurringTask(c, c.p.TenantID, id)
	if err != nil {
		return nil, err
	}
	if r.TargetType != dts.Ping {
		return nil, dts.Errorf(dts.ErrConflict, "the recurring task is a %s, which dts runs itself; only a PING has a ping URL", r.TargetType)
	}
	list, err := h.Store.Pings(c, c.p.TenantID, id, dts.MaxPings)
	if err != nil {
		return nil, err
	}
	return PingsAnswer{URL: h.PingURL(c.r, id), Items: append([]*dts.PingRecord{}, list...)}, nil
}
