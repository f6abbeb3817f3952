package api

import (
	"errors"
	"strconv"

	"dts"
)

func (h *Handler) createTasks(c *call) (any, error) {
	if c.r.Header.Get("Idempotency-Key") != "" {
		return nil, dts.Invalid("Idempotency-Key", "is for a single task; give each task of a bulk request its own idempotency_key")
	}
	var q BulkRequest
	if err := decode(c.body, &q); err != nil {
		return nil, err
	}
	c.body = nil // tens of megabytes that nothing needs any more
	if len(q.Tasks) == 0 {
		return nil, dts.Invalid("tasks", "is missing or empty; it must be an array of 1 to %d tasks", dts.MaxBulk)
	}
	now := h.Now()
	batch := dts.NewID(now)
	tasks := make([]*dts.Task, len(q.Tasks))
	var f fieldErrors
	keys := map[string]int{}
	refs := f.refs(q.Tasks, func() string { return dts.NewID(now) })
	for i := range q.Tasks {
		t, err := q.Tasks[i].task(c.p.TenantID, c.p.Name, now, refs)
		if e, ok := errors.AsType[*dts.Error](err); ok {
			prefix := "tasks[" + strconv.Itoa(i) + "]."
			for _, x := range e.Fields {
				f.add(prefix+x.Field, "%s", x.Message)
			}
			if len(f.list) > maxProblemFields {
				break
			}
		} else if err != nil {
			return nil, err
		}
		f.dedupe(i, t, keys)
		t.BatchID = batch
		tasks[i] = t
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	if err := refuseCircles(tasks, q.Tasks); err != nil {
		return nil, err
	}
	made, err := h.Scheduler.CreateTasks(c, tasks)
	if err != nil {
		return nil, err
	}
	answer := BulkAnswer{BatchID: batch, Items: make([]BulkItem, len(made))}
	existed := 0
	for i, m := range made {
		answer.Items[i] = BulkItem{TaskID: m.Item.ID, Status: m.Item.Status, RunAt: m.Item.RunAt, Existed: m.Existed}
		if m.Existed {
			existed++
		}
	}
	if existed == len(made) {
		c.status = 200
	}
	return answer, nil
}
