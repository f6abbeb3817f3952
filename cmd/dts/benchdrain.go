package main

import (
	"context"
	"fmt"
	"time"

	"dts"
)

// drainScenario asks how fast tasks go that are all due at one instant.
var drainScenario = benchScenario{
	name: "drain",
	about: func(o benchOptions) string {
		return fmt.Sprintf("%d HTTP tasks due at one instant. Ceiling: a bare net/http client, %d requests in flight", o.Drain, bareWorkers)
	},
	aims: map[string]benchAim{"until the last came": {ratio: 0.4}},
	run:  func(ctx context.Context, b *bench) ([]benchFigure, error) { return b.drain(ctx) },
}

const (
	drainWarmUp = 2000
	drainLead   = 4 * time.Second // from the end of the creation to the instant: more than dts claims ahead
	drainLimit  = 10 * time.Minute
)

func (b *bench) drain(ctx context.Context) ([]benchFigure, error) {
	rate, err := b.warmUp(ctx, drainWarmUp)
	if err != nil {
		return nil, err
	}
	n := b.Drain
	creation := time.Duration(1.5 * float64(n) / rate * float64(time.Second))
	due := dts.Micros(time.Now().Add(creation + drainLead))
	if _, _, err := b.server.create(ctx, n, b.sink.url, func(int) time.Time { return due }); err != nil {
		return nil, err
	}
	if time.Until(due) < drainLead/2 {
		return nil, fmt.Errorf("creating %d tasks took longer than the warm-up had let expect; try again on a quieter machine", n)
	}
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(time.Until(due)):
	}
	var written time.Time
	err = b.server.profiled(func() error {
		if err := b.sink.wait(ctx, n, drainLimit); err != nil {
			return err
		}
		err := b.server.settled(ctx, drainLimit)
		written = time.Now()
		return err
	})
	if err != nil {
		return nil, err
	}
	t, err := b.sink.tally(ctx, true)
	if err != nil {
		return nil, err
	}
	if t.Keys != n || t.Requests != n {
		return nil, fmt.Errorf("%d requests with %d different keys came of %d tasks", t.Requests, t.Keys, n)
	}
	bare, err := b.bareRate(ctx, n)
	if err != nil {
		return nil, err
	}
	perSecond := func(end time.Time) float64 { return float64(n) / end.Sub(due).Seconds() }
	return []benchFigure{
		{"until the last came", "tasks/s", perSecond(time.Unix(0, t.LastNS)), bare},
		{"until all is on disk", "tasks/s", perSecond(written), bare},
	}, nil
}

// bareRate measures the ceiling, in requests a second.
func (b *bench) bareRate(ctx context.Context, n int) (float64, error) {
	c := newBareClient(b.sink.url)
	defer c.close()
	if err := c.flood(ctx, drainWarmUp); err != nil {
		return 0, err
	}
	if err := b.sink.reset(ctx); err != nil {
		return 0, err
	}
	start := time.Now()
	if err := c.flood(ctx, n); err != nil {
		return 0, err
	}
	t, err := b.sink.tally(ctx, false)
	if err != nil {
		return 0, err
	}
	return float64(n) / time.Unix(0, t.LastNS).Sub(start).Seconds(), nil
}
