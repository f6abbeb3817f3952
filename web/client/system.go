package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"dts"
	"dts/web/api"
)

// Health returns nil when a dts server answers.
func (c *Client) Health(ctx context.Context) error {
	h, err := get[api.Health](ctx, c, "GET", "/health", nil, nil)
	if err == nil && h.Status != "ok" {
		err = errors.New("what listens there is not dts")
	}
	return err
}

// Ready says whether the server takes and fires tasks, and if not, why.
func (c *Client) Ready(ctx context.Context) (*api.Readiness, error) {
	r, err := get[api.Readiness](ctx, c, "GET", "/ready", nil, nil)
	if e, ok := errors.AsType[*notReady](err); ok {
		return &e.Readiness, nil
	}
	return r, err
}

// Status says how the server's scheduler is doing.
func (c *Client) Status(ctx context.Context) (*dts.SchedulerStatus, error) {
	return get[dts.SchedulerStatus](ctx, c, "GET", "/scheduler/status", nil, nil)
}

// Conflicts returns when more tasks will want to run than a limit lets. Zero times are the server's choice.
func (c *Client) Conflicts(ctx context.Context, from, to time.Time) ([]dts.Conflict, error) {
	q := url.Values{}
	setTime(q, "from", from)
	setTime(q, "to", to)
	return items[dts.Conflict](ctx, c, "/scheduler/conflicts", q)
}

// Counts returns how many tasks are in which state.
func (c *Client) Counts(ctx context.Context) (*dts.Counts, error) {
	return get[dts.Counts](ctx, c, "GET", "/stats", nil, nil)
}

// Metrics writes the server's Prometheus metrics to w.
func (c *Client) Metrics(ctx context.Context, w io.Writer) error {
	resp, err := c.send(ctx, http.MethodGet, "/metrics", nil, "text/plain", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(w, &limitedReader{r: resp.Body, left: maxAnswer})
	return err
}

// Reload lets the server read its settings again, and says what has changed.
func (c *Client) Reload(ctx context.Context) (*api.Reloaded, error) {
	return get[api.Reloaded](ctx, c, "POST", "/reload", nil, nil)
}

// LoginLink makes a link that signs a browser in, once.
func (c *Client) LoginLink(ctx context.Context) (*api.LoginLink, error) {
	return get[api.LoginLink](ctx, c, "POST", "/login-links", nil, nil)
}

// notReady is the answer of /ready with the status 503.
type notReady struct{ api.Readiness }

func (*notReady) Error() string { return "the server is not ready" }
