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
		{flag: "spread", span: 10 * time.Second, longest: time.Hour, usage: "lateness: evenly over a `DURATION`"},
	},
	aims: map[string][]benchAim{
		"at the sink, p50": {{below: 0.25}, {ratioBelow: 1.5}},
		"at the sink, p99": {{below: 2}},
	},
	run: func(ctx context.Context, b *bench) ([]benchFigure, error) { return b.lateness(ctx) },
}

// latenessPendingScenario asks whether that stays so when many other tasks wait.
var latenessPendingScenario = benchScenario{
	name: "lateness-1m",
	about: func(o benchOptions) string {
		return fmt.Sprintf("as lateness, with %d more tasks pending. Ceiling: the same, before those were created", o.number("pending"))
	},
	sizes: []benchSize{{flag: "pending", number: 1_000_000, max: 10_000_000, usage: "lateness-1m: `N` more tasks, pending"}},
	aims:  map[string][]benchAim{"at the sink, p50": {{ratioBelow: 1.5}}, "at the sink, p99": {{ratioBelow: 1.5}}},
	long:  true,
	run:   func(ctx context.Context, b *bench) ([]benchFigure, error) { return b.latenessPending(ctx) },
}

const (
	latenessWarmUp = 200
	latenessLead   = 3 * time.Second        // from the creation of the tasks to the first: more than dts claims ahead
	bareSpread     = 3 * time.Second        // how long the bare loop is measured at most, at the same pace
	bareLead       = 200 * time.Millisecond // before it begins
)

func (b *bench) lateness(ctx context.Context) ([]benchFigure, error) {
	sink, recorded, err := b.measureLateness(ctx)
	if err != nil {
		return nil, err
	}
	bareSink, bareWake, err := b.bareLateness(ctx)
	if err != nil {
		return nil, err
	}
	return append(spreadFigures("at the sink", sink, bareSink), spreadFigures("recorded start", recorded, bareWake)...), nil
}

func (b *bench) latenessPending(ctx context.Context) ([]benchFigure, error) {
	plainSink, plainRecorded, err := b.measureLateness(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.fill(ctx, b.number("pending"), laterBy(time.Now())); err != nil {
		return nil, err
	}
	sink, recorded, err := b.measureLateness(ctx)
	if err != nil {
		return nil, err
	}
	return append(spreadFigures("at the sink", sink, plainSink), spreadFigures("recorded start", recorded, plainRecorded)...), nil
}

// latenessStep is the time from one task to the next.
func (b *bench) latenessStep() time.Duration {
	return b.span("spread") / time.Duration(b.number("tasks"))
}

// measureLateness runs the tasks and returns how late each was: when it came to the sink, and when it was
// started, by dts's own account.
func (b *bench) measureLateness(ctx context.Context) (sink, recorded []time.Duration, err error) {
	n, step := b.number("tasks"), b.latenessStep()
	if _, err := b.warmUp(ctx, min(latenessWarmUp, n)); err != nil {
		return nil, nil, err
	}
	first := dts.Micros(time.Now().Add(latenessLead))
	at := func(i int) time.Time { return dts.Micros(first.Add(time.Duration(i) * step)) }
	ids, batches, err := b.server.create(ctx, n, b.sink.url, at)
	if err != nil {
		return nil, nil, err
	}
	if time.Until(first) < latenessLead/2 {
		return nil, nil, fmt.Errorf("creating %d tasks took longer than there was time for; give fewer --tasks", n)
	}
	err = b.server.profiled(func() error {
		if err := sleepUntil(ctx, at(n-1)); err != nil { // no polling while it is measured
			return err
		}
		return b.sink.wait(ctx, n, time.Minute)
	})
	if err != nil {
		return nil, nil, err
	}
	came, err := b.sink.arrivals(ctx)
	if err != nil {
		return nil, nil, err
	}
	sink = make([]time.Duration, n)
	for i, id := range ids {
		t, ok := came[id]
		if !ok {
			return nil, nil, fmt.Errorf("task %s did not come to the sink", id)
		}
		sink[i] = t.Sub(at(i))
	}
	if err := b.server.settled(ctx, time.Minute); err != nil {
		return nil, nil, err
	}
	recorded, err = b.recordedLateness(ctx, n, batches)
	return sink, recorded, err
}

// recordedLateness is what dts itself says of the n tasks of the batches.
func (b *bench) recordedLateness(ctx context.Context, n int, batches []string) ([]time.Duration, error) {
	list := make([]time.Duration, 0, n)
	for _, batch := range batches {
		ends := min(len(list)+dts.MaxBulk, n) // beyond the batch's last task the list would be searched to its end
		for t, err := range b.server.AllTasks(ctx, dts.TaskFilter{BatchID: batch, Limit: 500}) {
			if err != nil {
				return nil, err
			}
			if t.Status != dts.Success || t.LatenessUS == nil {
				return nil, fmt.Errorf("task %s is %s: %s", t.ID, t.Status, t.LastError)
			}
			list = append(list, time.Duration(*t.LatenessUS)*time.Microsecond)
			if len(list) == ends {
				break
			}
		}
	}
	if len(list) != n {
		return nil, fmt.Errorf("the server lists %d tasks, not %d", len(list), n)
	}
	return list, nil
}

// bareLateness measures the ceiling: how late requests come to the sink, and how late the timer wakes.
func (b *bench) bareLateness(ctx context.Context) (sink, wake []time.Duration, err error) {
	c := newBareClient(b.sink.url)
	defer c.close()
	if err := c.flood(ctx, bareWorkers); err != nil {
		return nil, nil, err
	}
	if err := b.sink.reset(ctx); err != nil {
		return nil, nil, err
	}
	step := b.latenessStep()
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
