package client

import (
	"context"

	"dts"
)

// Retention returns how long finished tasks are kept.
func (c *Client) Retention(ctx context.Context) (*dts.RetentionState, error) {
	return get[dts.RetentionState](ctx, c, "GET", "/retention", nil, nil)
}

// PutRetention sets how long finished tasks are kept. What is zero is as the server was started with.
func (c *Client) PutRetention(ctx context.Context, r dts.Retention) (*dts.RetentionState, error) {
	return get[dts.RetentionState](ctx, c, "PUT", "/retention", nil, r)
}
