package client

import (
	"context"
	"net/url"

	"dts"
	"dts/web/api"
)

// Dependencies returns what a task depends on and what depends on it, directly or not: the nearest dts.MaxGraph tasks.
func (c *Client) Dependencies(ctx context.Context, id string) (*dts.Graph, error) {
	return get[dts.Graph](ctx, c, "GET", taskPath(id, "/dependencies"), nil, nil)
}

// AddDependencies makes a pending task that has not started depend on others, and returns the graph as it is then.
func (c *Client) AddDependencies(ctx context.Context, id string, list []dts.DependsOn) (*dts.Graph, error) {
	return get[dts.Graph](ctx, c, "POST", taskPath(id, "/dependencies"), nil, api.DependenciesRequest{DependsOn: list})
}

// RemoveDependency lets a pending task that has not started not wait for another one, and returns the graph as it is then.
func (c *Client) RemoveDependency(ctx context.Context, id, parent string) (*dts.Graph, error) {
	return get[dts.Graph](ctx, c, "DELETE", taskPath(id, "/dependencies/"+url.PathEscape(parent)), nil, nil)
}
