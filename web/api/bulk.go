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
	for i := range q.Tasks {
		t, err := q.Tasks[i].task(c.p.TenantID, c.p.Name, now)
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

func (h *Handler) cancelTasks(c *call) (any, error) {
	var q BulkCancelRequest
	if err := decode(c.body, &q); err != nil {
		return nil, err
	}
	if len(q.IDs) > dts.MaxBulk {
		return nil, &dts.Error{Code: dts.ErrTooLarge, Message: "there are more than " + strconv.Itoa(dts.MaxBulk) + " ids; send them in several requests"}
	}
	filter, err := q.filter(c.p.TenantID)
	if err != nil {
		return nil, err
	}
	n, err := h.Scheduler.BulkCancel(c, filter, c.p.Name)
	return BulkCancelAnswer{Cancelled: n}, err
}

// filter makes the filter that a request asks for. One that would match every task is refused: it is
// more likely a mistake than a wish.
func (q *BulkCancelRequest) filter(tenant string) (dts.TaskFilter, error) {
	var f fieldErrors
	filter := dts.TaskFilter{TenantID: tenant, IDs: q.IDs}
	for i, id := range q.IDs {
		f.id("ids["+strconv.Itoa(i)+"]", id)
		if id == "" {
			f.add("ids["+strconv.Itoa(i)+"]", "is empty")
		}
	}
	switch x := q.Filter; {
	case len(q.IDs) > 0 && x != nil:
		f.add("filter", "cannot be set together with ids; keep one")
	case len(q.IDs) == 0 && x == nil:
		f.add("ids", "is missing or empty; give ids or filter")
	case x != nil:
		filter.Queue, filter.Name, filter.Labels, filter.CreatedBy = x.Queue, x.Name, x.Labels, x.CreatedBy
		filter.RecurringTaskID = f.id("filter.recurring_task_id", x.RecurringTaskID)
		filter.BatchID = f.id("filter.batch_id", x.BatchID)
		filter.From = f.time("filter.from", x.From, nil)
		filter.To = f.time("filter.to", x.To, nil)
		for _, s := range x.Statuses {
			if s != dts.Pending && s != dts.Running {
				f.add("filter.status", "only PENDING and RUNNING tasks can be cancelled")
				break
			}
		}
		filter.Statuses = x.Statuses
		for k, v := range x.Labels {
			if badText(k) || badText(v) || k == "" {
				f.add("filter.labels", "has a name or value that is empty or holds a NUL byte")
			}
		}
		if badText(x.Queue) || badText(x.Name) || badText(x.CreatedBy) {
			f.add("filter", "holds a NUL byte")
		}
		if filter.Queue == "" && filter.Name == "" && len(filter.Labels) == 0 && filter.CreatedBy == "" && filter.RecurringTaskID == "" &&
			filter.BatchID == "" && filter.From.IsZero() && filter.To.IsZero() && len(filter.Statuses) == 0 && len(f.list) == 0 {
			f.add("filter", "is empty, which would cancel everything; give at least one field, for example status")
		}
	}
	return filter, f.err()
}
