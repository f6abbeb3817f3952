package client

import (
	"context"
	"net/url"

	"dts"
	"dts/web/api"
)

// Queues returns the queues that have a limit, by name.
func (c *Client) Queues(ctx context.Context) ([]*dts.Queue, error) {
	return items[*dts.Queue](ctx, c, "/queues", nil)
}

// Queue returns a queue that has a limit.
func (c *Client) Queue(ctx context.Context, name string) (*dts.Queue, error) {
	return get[dts.Queue](ctx, c, "GET", queuePath(name), nil, nil)
}

// PutQueue gives a queue a limit, or changes it.
func (c *Client) PutQueue(ctx context.Context, name string, q api.QueueRequest) (*dts.Queue, error) {
	return get[dts.Queue](ctx, c, "PUT", queuePath(name), nil, q)
}

// DeleteQueue takes a queue's limit away, and returns the queue as it was.
func (c *Client) DeleteQueue(ctx context.Context, name string) (*dts.Queue, error) {
	return get[dts.Queue](ctx, c, "DELETE", queuePath(name), nil, nil)
}

func queuePath(name string) string { return "/queues/" + url.PathEscape(name) }
