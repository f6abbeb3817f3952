package main

import (
	"context"
	"fmt"
	"time"

	"dts"
)

// drainScenario asks how fast tasks go that are all due at one instant.
var drainScenario = benchScenario{
	name:  "drain",
	about: func(o benchOptions) string { return aboutDrain(o.number("drain")) },
	sizes: []benchSize{{flag: "drain", number: 40_000, max: 1_000_000, usage: "drain: `N` tasks due at one instant"}},
	aims:  drainAims,
	run:   func(ctx context.Context, b *bench) ([]benchFigure, error) { return b.drain(ctx, b.number("drain")) },
}

// drainLongScenario asks whether that stays so when there are ten times as many.
var drainLongScenario = benchScenario{
	name:  "drain-400k",
	about: func(o benchOptions) string { return aboutDrain(o.number("drain-long")) },
	sizes: []benchSize{{flag: "drain-long", number: 400_000, max: 1_000_000, usage: "drain-400k: `N` tasks due at one instant"}},
	aims:  drainAims,
	long:  true,
	run: func(ctx context.Context, b *bench) ([]benchFigure, error) {
		return b.drain(ctx, b.number("drain-long"))
	},
}

var drainAims = map[string][]benchAim{"until the last came": {{ratio: 0.6}}, "until all is on disk": {{ratio: 0.6}}}

func aboutDrain(n int) string {
	return fmt.Sprintf("%d HTTP tasks due at one instant. Ceiling: a bare net/http client, %d requests in flight", n, bareWorkers)
}

const (
	drainWarmUp = 2000
	drainLead   = 4 * time.Second // from the end of the creation to the instant: more than dts claims ahead
	drainLimit  = 10 * time.Minute
)

func (b *bench) drain(ctx context.Context, n int) ([]benchFigure, error) {
	rate, err := b.warmUp(ctx, drainWarmUp)
	if err != nil {
		return nil, err
	}
	creation := time.Duration(1.5 * float64(n) / rate * float64(time.Second))
	due := dts.Micros(time.Now().Add(creation + drainLead))
	if _, _, err := b.server.create(ctx, n, b.sink.url, func(int) time.Time { return due }); err != nil {
		return nil, err
	}
	if time.Until(due) < drainLead/2 {
		return nil, fmt.Errorf("creating %d tasks took longer than the warm-up had let expect; try again on a quieter machine", n)
	}
	if err := sleepUntil(ctx, due); err != nil {
		return nil, err
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
