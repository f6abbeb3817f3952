package client

import (
	"context"
	"net/url"

	"dts"
	"dts/web/api"
)

// Queues returns the queues that have settings, or tasks that are not finished, by name.
func (c *Client) Queues(ctx context.Context) ([]*dts.Queue, error) {
	return items[*dts.Queue](ctx, c, "/queues", nil)
}

// Queue returns a queue: its settings, and what goes on in it.
func (c *Client) Queue(ctx context.Context, name string) (*dts.Queue, error) {
	return get[dts.Queue](ctx, c, "GET", queuePath(name), nil, nil)
}

// PutQueue gives a queue settings, in the place of those that it has. Whether it is paused stays.
func (c *Client) PutQueue(ctx context.Context, name string, q api.QueueRequest) (*dts.Queue, error) {
	return get[dts.Queue](ctx, c, "PUT", queuePath(name), nil, q)
}

// DeleteQueue takes a queue's settings away, and returns the queue as it was.
func (c *Client) DeleteQueue(ctx context.Context, name string) (*dts.Queue, error) {
	return get[dts.Queue](ctx, c, "DELETE", queuePath(name), nil, nil)
}

// PauseQueue lets nothing of a queue start any more.
func (c *Client) PauseQueue(ctx context.Context, name, note string) (*dts.Queue, error) {
	return get[dts.Queue](ctx, c, "POST", queuePath(name)+"/pause", nil, api.QueuePauseRequest{Note: note})
}

// ResumeQueue ends a pause.
func (c *Client) ResumeQueue(ctx context.Context, name string) (*dts.Queue, error) {
	return get[dts.Queue](ctx, c, "POST", queuePath(name)+"/resume", nil, nil)
}

func queuePath(name string) string { return "/queues/" + url.PathEscape(name) }
