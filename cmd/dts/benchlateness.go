package main

import (
	"context"
	"fmt"
	"time"

	"dts"
)

// latenessScenario asks how late tasks are when there is time for each of them.
var latenessScenario = benchScenario{
	name: "lateness",
	about: func(o benchOptions) string {
		return fmt.Sprintf("%d HTTP tasks, evenly over %s. Ceiling: a loop that waits for a timer and posts", o.number("tasks"), span(o.span("spread")))
	},
	sizes: []benchSize{
		{flag: "tasks", number: 10_000, max: 1_000_000, usage: "lateness: `N` tasks"},
		{flag: "spread", span: 10 * time.Second, usage: "lateness: evenly over a `DURATION`"},
	},
	aims: map[string][]benchAim{
		"at the sink, p50": {{below: 0.25}, {ratioBelow: 1.5}},
		"at the sink, p99": {{below: 2}},
	},
	run: func(ctx context.Context, b *bench) ([]benchFigure, error) { return b.lateness(ctx) },
}

const (
	latenessWarmUp = 200
	latenessLead   = 3 * time.Second        // from the creation of the tasks to the first: more than dts claims ahead
	bareSpread     = 3 * time.Second        // how long the bare loop is measured at most, at the same pace
	bareLead       = 200 * time.Millisecond // before it begins
)

func (b *bench) lateness(ctx context.Context) ([]benchFigure, error) {
	if _, err := b.warmUp(ctx, min(latenessWarmUp, b.number("tasks"))); err != nil {
		return nil, err
	}
	step := b.span("spread") / time.Duration(b.number("tasks"))
	first := dts.Micros(time.Now().Add(latenessLead))
	at := func(i int) time.Time { return dts.Micros(first.Add(time.Duration(i) * step)) }
	ids, batches, err := b.server.create(ctx, b.number("tasks"), b.sink.url, at)
	if err != nil {
		return nil, err
	}
	if time.Until(first) < latenessLead/2 {
		return nil, fmt.Errorf("creating %d tasks took longer than there was time for; give fewer --tasks", b.number("tasks"))
	}
	err = b.server.profiled(func() error {
		select { // no polling while it is measured
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Until(at(b.number("tasks") - 1))):
		}
		return b.sink.wait(ctx, b.number("tasks"), time.Minute)
	})
	if err != nil {
		return nil, err
	}
	came, err := b.sink.arrivals(ctx)
	if err != nil {
		return nil, err
	}
	sink := make([]time.Duration, b.number("tasks"))
	for i, id := range ids {
		t, ok := came[id]
		if !ok {
			return nil, fmt.Errorf("task %s did not come to the sink", id)
		}
		sink[i] = t.Sub(at(i))
	}
	if err := b.server.settled(ctx, time.Minute); err != nil {
		return nil, err
	}
	recorded, err := b.recordedLateness(ctx, batches)
	if err != nil {
		return nil, err
	}
	bareSink, bareWake, err := b.bareLateness(ctx, step)
	if err != nil {
		return nil, err
	}
	return append(spreadFigures("at the sink", sink, bareSink), spreadFigures("recorded start", recorded, bareWake)...), nil
}

// recordedLateness is what dts itself says of the tasks of the batches.
func (b *bench) recordedLateness(ctx context.Context, batches []string) ([]time.Duration, error) {
	list := make([]time.Duration, 0, b.number("tasks"))
	for _, batch := range batches {
		for t, err := range b.server.AllTasks(ctx, dts.TaskFilter{BatchID: batch, Limit: 500}) {
			if err != nil {
				return nil, err
			}
			if t.Status != dts.Success || t.LatenessUS == nil {
				return nil, fmt.Errorf("task %s is %s: %s", t.ID, t.Status, t.LastError)
			}
			list = append(list, time.Duration(*t.LatenessUS)*time.Microsecond)
		}
	}
	if len(list) != b.number("tasks") {
		return nil, fmt.Errorf("the server lists %d tasks, not %d", len(list), b.number("tasks"))
	}
	return list, nil
}

// bareLateness measures the ceiling: how late requests come to the sink, and how late the timer wakes.
func (b *bench) bareLateness(ctx context.Context, step time.Duration) (sink, wake []time.Duration, err error) {
	c := newBareClient(b.sink.url)
	defer c.close()
	if err := c.flood(ctx, bareWorkers); err != nil {
		return nil, nil, err
	}
	if err := b.sink.reset(ctx); err != nil {
		return nil, nil, err
	}
	n := min(b.number("tasks"), max(int(bareSpread/step), 1))
	first := time.Now().Add(bareLead)
	if wake, err = c.pace(ctx, n, first, step); err != nil {
		return nil, nil, err
	}
	came, err := b.sink.arrivals(ctx)
	if err != nil {
		return nil, nil, err
	}
	for i := range n {
		sink = append(sink, came[bareKey(i)].Sub(first.Add(time.Duration(i)*step)))
	}
	return sink, wake, nil
}
