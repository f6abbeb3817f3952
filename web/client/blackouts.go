package client

import (
	"context"
	"net/url"

	"dts"
	"dts/web/api"
)

// Blackouts returns the blackouts, the oldest first.
func (c *Client) Blackouts(ctx context.Context) ([]*dts.Blackout, error) {
	return items[*dts.Blackout](ctx, c, "/blackouts", nil)
}

// Blackout returns a blackout.
func (c *Client) Blackout(ctx context.Context, id string) (*dts.Blackout, error) {
	return get[dts.Blackout](ctx, c, "GET", blackoutPath(id), nil, nil)
}

// CreateBlackout creates a blackout.
func (c *Client) CreateBlackout(ctx context.Context, q api.BlackoutRequest) (*dts.Blackout, error) {
	return get[dts.Blackout](ctx, c, "POST", "/blackouts", nil, q)
}

// ReplaceBlackout replaces all of a blackout but who made it, and when.
func (c *Client) ReplaceBlackout(ctx context.Context, id string, q api.BlackoutRequest) (*dts.Blackout, error) {
	return get[dts.Blackout](ctx, c, "PUT", blackoutPath(id), nil, q)
}

// DeleteBlackout deletes a blackout, and returns it as it was.
func (c *Client) DeleteBlackout(ctx context.Context, id string) (*dts.Blackout, error) {
	return get[dts.Blackout](ctx, c, "DELETE", blackoutPath(id), nil, nil)
}

func blackoutPath(id string) string { return "/blackouts/" + url.PathEscape(id) }
