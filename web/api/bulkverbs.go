package api

import (
	"slices"
	"strconv"

	"dts"
)

// BulkVerbRequest is the body of POST /tasks/bulk-cancel and its like: ids or filter.
type BulkVerbRequest struct {
	IDs    []string    `json:"ids,omitempty" doc:"at most 10000"`
	Filter *TaskFilter `json:"filter,omitempty" doc:"at least one field"`
	DryRun bool        `json:"dry_run,omitempty" doc:"only count them"`
}

// BulkCancelAnswer answers POST /tasks/bulk-cancel.
type BulkCancelAnswer struct {
	dts.BulkResult
	Cancelled int `json:"cancelled" doc:"the same as done"`
}

// TaskFilter selects tasks. All fields that are given must match.
type TaskFilter struct {
	Statuses        []dts.Status      `json:"status,omitempty" enum:"PENDING,RUNNING,SUCCESS,FAILED,CANCELLED,SKIPPED" doc:"one of these; default: what the verb is for"`
	Queue           string            `json:"queue,omitempty"`
	Name            string            `json:"name,omitempty" doc:"exact"`
	NamePrefix      string            `json:"name_prefix,omitempty" doc:"the name begins so"`
	Error           string            `json:"error,omitempty" doc:"last_error contains this; a to z match A to Z"`
	Labels          map[string]string `json:"labels,omitempty"`
	CreatedBy       string            `json:"created_by,omitempty"`
	RecurringTaskID string            `json:"recurring_task_id,omitempty"`
	BatchID         string            `json:"batch_id,omitempty"`
	WorkflowID      string            `json:"workflow_id,omitempty" doc:"steps of this run of a workflow"`
	DedupeKey       string            `json:"dedupe_key,omitempty"`
	ConcurrencyKey  string            `json:"concurrency_key,omitempty"`
	WaitsFor        dts.Reason        `json:"waits_for,omitempty" enum:"OVERLAP,BLACKOUT,CONCURRENCY,QUEUE,PAUSED" doc:"PENDING tasks that this keeps from starting"`
	From            TimeText          `json:"from,omitzero" doc:"run_at at or after this; due_at of a task that is paused"`
	To              TimeText          `json:"to,omitzero" doc:"run_at before this; due_at of a task that is paused"`
}

// waits lists what can keep a PENDING task from starting.
var waits = []dts.Reason{dts.ReasonOverlap, dts.ReasonBlackout, dts.ReasonConcurrency, dts.ReasonQueue, dts.ReasonPaused}

// doTasks serves a verb on many tasks.
func (h *Handler) doTasks(v dts.BulkVerb) func(*call) (any, error) {
	return func(c *call) (any, error) {
		var q BulkVerbRequest
		if err := decode(c.body, &q); err != nil {
			return nil, err
		}
		if len(q.IDs) > dts.MaxBulk {
			return nil, &dts.Error{Code: dts.ErrTooLarge, Message: "there are more than " + strconv.Itoa(dts.MaxBulk) + " ids; send them in several requests"}
		}
		filter, err := q.filter(c.p.TenantID, v)
		if err != nil {
			return nil, err
		}
		change := dts.BulkChange{Verb: v, Filter: filter, DryRun: q.DryRun, Actor: c.p.Name}
		if err := change.Normalize(h.Now()); err != nil {
			return nil, err
		}
		r, err := h.Scheduler.Bulk(c, change)
		if v == dts.BulkCancel {
			return BulkCancelAnswer{r, r.Done}, err
		}
		return r, err
	}
}

// filter makes the filter that a request asks for. One that would match every task is refused: it is
// more likely a mistake than a wish.
func (q *BulkVerbRequest) filter(tenant string, v dts.BulkVerb) (dts.TaskFilter, error) {
	var f fieldErrors
	for i, id := range q.IDs {
		f.id("ids["+strconv.Itoa(i)+"]", id)
		if id == "" {
			f.add("ids["+strconv.Itoa(i)+"]", "is empty")
		}
	}
	filter := dts.TaskFilter{TenantID: tenant, IDs: q.IDs}
	switch {
	case len(q.IDs) > 0 && q.Filter != nil:
		f.add("filter", "cannot be set together with ids; keep one")
	case len(q.IDs) == 0 && q.Filter == nil:
		f.add("ids", "is missing or empty; give ids or filter")
	case q.Filter != nil:
		filter = q.Filter.filter(&f)
		filter.TenantID = tenant
		if !filter.Selects() && len(f.list) == 0 {
			f.add("filter", "is empty, which would %s everything; give at least one field, for example status", v)
		}
	}
	return filter, f.err()
}

func (x *TaskFilter) filter(f *fieldErrors) dts.TaskFilter {
	for _, s := range x.Statuses {
		if !slices.Contains(dts.Statuses, s) {
			f.add("filter.status", "%q is not known; use %s", clip(string(s)), oneOf(dts.Statuses))
			break
		}
	}
	if x.WaitsFor != "" && !slices.Contains(waits, x.WaitsFor) {
		f.add("filter.waits_for", "%q is not known; use %s", clip(string(x.WaitsFor)), oneOf(waits))
	}
	for k, v := range x.Labels {
		if badText(k) || badText(v) || k == "" {
			f.add("filter.labels", "has a name or value that is empty or holds a NUL byte")
		}
	}
	if slices.ContainsFunc([]string{x.Queue, x.Name, x.NamePrefix, x.Error, x.CreatedBy, x.DedupeKey, x.ConcurrencyKey}, badText) {
		f.add("filter", "holds a NUL byte")
	}
	return dts.TaskFilter{
		Statuses: x.Statuses, Queue: x.Queue, Name: x.Name, NamePrefix: x.NamePrefix, Error: x.Error, Labels: x.Labels, CreatedBy: x.CreatedBy,
		RecurringTaskID: f.id("filter.recurring_task_id", x.RecurringTaskID), BatchID: f.id("filter.batch_id", x.BatchID), WorkflowID: f.id("filter.workflow_id", x.WorkflowID),
		DedupeKey: x.DedupeKey, ConcurrencyKey: x.ConcurrencyKey, WaitsFor: x.WaitsFor,
		From: f.time("filter.from", x.From, nil), To: f.time("filter.to", x.To, nil),
	}
}

func (h *Handler) getBatch(c *call) (any, error) {
	id, err := c.id()
	if err != nil {
		return nil, err
	}
	return h.Store.Batch(c, c.p.TenantID, id)
}
