package client

import (
	"context"
	"net/http"
	"net/url"

	"dts"
	"dts/web/api"
)

// CreateWorkflow runs a workflow. Existed tells that the idempotency key had been used for the same run.
func (c *Client) CreateWorkflow(ctx context.Context, q api.WorkflowRequest) (dts.Created[*dts.RunState], error) {
	var r dts.RunState
	status, err := c.do(ctx, "POST", "/workflows", nil, q, &r)
	return dts.Created[*dts.RunState]{Item: &r, Existed: status == http.StatusOK}, err
}

// Workflow returns a run of a workflow and its steps.
func (c *Client) Workflow(ctx context.Context, id string) (*dts.RunState, error) {
	return get[dts.RunState](ctx, c, "GET", "/workflows/"+url.PathEscape(id), nil, nil)
}
