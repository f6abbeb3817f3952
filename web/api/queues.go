package api

import "dts"

// QueueRequest is the body of PUT /queues/{name}.
type QueueRequest struct {
	Concurrency int `json:"concurrency" doc:"so many of its tasks run at once, on all servers together; 1 to 10,000"`
}

func (h *Handler) listQueues(c *call) (any, error) {
	list, err := h.Store.Queues(c, c.p.TenantID)
	return Items[*dts.Queue]{nonNil(list)}, err
}

func (h *Handler) getQueue(c *call) (any, error) {
	q := dts.Queue{Name: c.r.PathValue("name"), Concurrency: 1}
	if err := q.Normalize(); err != nil {
		return nil, err
	}
	return h.Store.Queue(c, c.p.TenantID, q.Name)
}

func (h *Handler) putQueue(c *call) (any, error) {
	var q QueueRequest
	if err := decode(c.body, &q); err != nil {
		return nil, err
	}
	n := &dts.Queue{TenantID: c.p.TenantID, Name: c.r.PathValue("name"), Concurrency: q.Concurrency}
	if err := n.Normalize(); err != nil {
		return nil, err
	}
	return h.Scheduler.PutQueue(c, n)
}

func (h *Handler) deleteQueue(c *call) (any, error) {
	q, err := h.getQueue(c)
	if err != nil {
		return nil, err
	}
	return q, h.Scheduler.DeleteQueue(c, c.p.TenantID, c.r.PathValue("name"))
}
