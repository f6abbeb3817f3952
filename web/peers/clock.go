package peers

import (
	"context"
	"time"

	"dts"
)

// Clock asks a server what time it is, by its wall clock. The answer is as exact as the round trip is short: the server
// reads its clock once, between what it receives and what it sends.
func (c *Client) Clock(ctx context.Context, n dts.Node) (time.Time, error) {
	a, err := c.call(ctx, n, "Clock", &request{})
	if err != nil {
		return time.Time{}, err
	}
	return a.Now, nil
}

func (h *Handler) clock(context.Context, *request, []*dts.Task) (*answer, error) {
	return &answer{Now: h.Now()}, nil
}
