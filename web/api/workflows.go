package api

import (
	"strings"

	"dts"
)

// WorkflowRequest is the body of POST /workflows: the workflow, and when to run it.
type WorkflowRequest struct {
	dts.Workflow
	RunAt          TimeText `json:"run_at,omitzero" doc:"when to run; default: now. Without an offset it is local time in time_zone"`
	Delay          Delay    `json:"delay,omitempty" doc:"how long from now, in place of run_at"`
	TimeZone       string   `json:"time_zone,omitempty" doc:"IANA name, for times without an offset"`
	ExpiresAt      TimeText `json:"expires_at,omitzero" doc:"do not start it after this"`
	IdempotencyKey string   `json:"idempotency_key,omitempty" doc:"the same key and body again: 200 and the first run; another body: 409"`
	DedupeKey      string   `json:"dedupe_key,omitempty" doc:"at most one unfinished task or run of a tenant has it"`

	DedupePolicy dts.DedupePolicy `json:"dedupe_policy,omitempty" enum:"REJECT,KEEP_FIRST,REPLACE" doc:"when there is one: 409; 200 and that one; or that one is cancelled, with its steps. Default: REJECT"`

	TracingID string `json:"tracing_id,omitempty" doc:"32 hexadecimal digits: the trace id of traceparent, in all steps"`
}

// Task is the request as one for a task: the run.
func (q *WorkflowRequest) Task() TaskRequest {
	return TaskRequest{Spec: q.Spec(), RunAt: q.RunAt, Delay: q.Delay, TimeZone: q.TimeZone, ExpiresAt: q.ExpiresAt,
		IdempotencyKey: q.IdempotencyKey, DedupeKey: q.DedupeKey, DedupePolicy: q.DedupePolicy, TracingID: q.TracingID}
}

func (h *Handler) createWorkflow(c *call) (any, error) {
	var q WorkflowRequest
	if err := decode(c.body, &q); err != nil {
		return nil, err
	}
	if err := c.idempotencyKey(&q.IdempotencyKey); err != nil {
		return nil, err
	}
	request := q.Task()
	t, err := request.task(c.p.TenantID, c.p.Name, h.Now(), nil)
	if err != nil {
		if e, is := err.(*dts.Error); is {
			for i := range e.Fields {
				e.Fields[i].Field = strings.TrimPrefix(e.Fields[i].Field, "target_config.")
			}
		}
		return nil, err
	}
	made, err := h.Scheduler.CreateTasks(c, []*dts.Task{t})
	if err != nil {
		return nil, err
	}
	if first := made[0].Item; made[0].Existed {
		if !first.IsRun() {
			return nil, dts.Errorf(dts.ErrConflict, "the unfinished task %s has the dedupe_key %q, and is not the run of a workflow; use another key", first.ID, first.DedupeKey)
		}
		c.status = 200
	}
	return h.runState(c, made[0].Item)
}

func (h *Handler) getWorkflow(c *call) (any, error) {
	id, err := c.id()
	if err != nil {
		return nil, err
	}
	t, err := h.Store.Task(c, c.p.TenantID, id)
	switch {
	case err != nil:
		return nil, err
	case !t.IsRun() && t.WorkflowID != "":
		return nil, dts.Errorf(dts.ErrNotFound, "there is no run %s of a workflow: that is the step %s of the run %s", id, t.Step, t.WorkflowID)
	case !t.IsRun():
		return nil, dts.Errorf(dts.ErrNotFound, "there is no run %s of a workflow: that is a task", id)
	}
	return h.runState(c, t)
}

func (h *Handler) runState(c *call, t *dts.Task) (any, error) {
	var steps []*dts.Task
	if t.RunStarted() {
		var err error
		if steps, err = h.Store.Steps(c, c.p.TenantID, t.ID); err != nil {
			return nil, err
		}
	}
	return t.RunState(steps)
}
