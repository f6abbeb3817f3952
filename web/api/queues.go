package api

import "dts"

// QueueRequest is the body of PUT /queues/{name}: all the settings that the queue is to have.
type QueueRequest struct {
	Concurrency   int            `json:"concurrency,omitempty" doc:"so many of its tasks run at once, on all servers together; 0: no limit"`
	Rate          int            `json:"rate,omitempty" doc:"so many of its attempts start in a period, evenly spread, on all servers together; 0: no limit"`
	PeriodSeconds Interval       `json:"period_seconds,omitempty" doc:"of rate; default 1"`
	Burst         int            `json:"burst,omitempty" doc:"after a rest, so many may start at once, where rate is set; default 1"`
	Retry         *dts.Retry     `json:"retry,omitempty" doc:"of tasks that are created in it without a retry of their own"`
	Retention     *dts.Retention `json:"retention,omitempty" doc:"of its finished tasks, where it is less than that of the tenant"`
}

// QueuePauseRequest is the body of POST /queues/{name}/pause.
type QueuePauseRequest struct {
	Note string `json:"note,omitempty" doc:"why; shown with the queue"`
}

func (h *Handler) listQueues(c *call) (any, error) {
	list, err := h.Scheduler.Queues(c, c.p.TenantID)
	return Items[*dts.Queue]{nonNil(list)}, err
}

func (h *Handler) getQueue(c *call) (any, error) {
	name, err := c.queueName()
	if err != nil {
		return nil, err
	}
	return h.Scheduler.Queue(c, c.p.TenantID, name)
}

func (h *Handler) putQueue(c *call) (any, error) {
	var q QueueRequest
	if err := decode(c.body, &q); err != nil {
		return nil, err
	}
	n := &dts.Queue{TenantID: c.p.TenantID, Name: c.r.PathValue("name"), Concurrency: q.Concurrency,
		Rate: q.Rate, PeriodSeconds: float64(q.PeriodSeconds), Burst: q.Burst, Retry: q.Retry, Retention: q.Retention}
	if err := n.Normalize(); err != nil {
		return nil, err
	}
	return h.Scheduler.PutQueue(c, n)
}

func (h *Handler) pauseQueue(c *call) (any, error) {
	var q QueuePauseRequest
	if err := decode(c.body, &q); err != nil {
		return nil, err
	}
	n := dts.Queue{Name: c.r.PathValue("name"), PauseNote: q.Note}
	if err := n.Normalize(); err != nil {
		return nil, err
	}
	return h.Scheduler.PauseQueue(c, c.p.TenantID, n.Name, n.PauseNote)
}

func (h *Handler) resumeQueue(c *call) (any, error) {
	name, err := c.queueName()
	if err != nil {
		return nil, err
	}
	return h.Scheduler.ResumeQueue(c, c.p.TenantID, name)
}

// deleteQueue answers with the queue as it was.
func (h *Handler) deleteQueue(c *call) (any, error) {
	q, err := h.getQueue(c)
	if err != nil {
		return nil, err
	}
	return q, h.Scheduler.DeleteQueue(c, c.p.TenantID, c.r.PathValue("name"))
}

// queueName is the {name} of the path, checked.
func (c *call) queueName() (string, error) {
	q := dts.Queue{Name: c.r.PathValue("name")}
	return q.Name, q.Normalize()
}
