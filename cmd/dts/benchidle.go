package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"dts"
	"dts/web/api"
)

// idleScenario asks what a server costs that has much to keep and little to do.
var idleScenario = benchScenario{
	name: "idle",
	about: func(o benchOptions) string {
		return fmt.Sprintf("%d hourly recurring tasks, watched for %s: none due; then spread over the hour, so that %.1f a second are",
			o.number("hourly"), span(o.span("idle")), float64(o.number("hourly"))/3600)
	},
	sizes: []benchSize{
		{flag: "hourly", number: 10_000, max: 1_000_000, usage: "idle: `N` recurring tasks"},
		{flag: "idle", span: time.Minute, longest: maxIdle, usage: "idle: watched for a `DURATION`, twice"},
	},
	aims: map[string][]benchAim{"none due, CPU": {{below: 0.2}}},
	run:  func(ctx context.Context, b *bench) ([]benchFigure, error) { return b.idle(ctx) },
}

const (
	idleClients = 16
	idleCalm    = 30 * time.Second // after the creation: what it leaves behind is written and given back
	idleGap     = 5 * time.Minute  // none of the first schedules fires within this
	maxIdle     = idleGap - 2*time.Minute
)

func (b *bench) idle(ctx context.Context) ([]benchFigure, error) {
	ids := make([]string, b.number("hourly"))
	start := time.Now()
	err := b.manyAtOnce(ctx, func(ctx context.Context, i int) error {
		made, err := b.server.CreateRecurring(ctx, api.RecurringRequest{
			Spec: dts.Spec{TargetType: dts.HTTPCallback, TargetConfig: httpTarget(b.sink.url, i)},
			Cron: api.Expressions(hourly(start.Add(idleGap), time.Hour-2*idleGap, i, b.number("hourly"))), // and none was due just before
		})
		if err == nil {
			ids[i] = made.Item.ID
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("create recurring tasks: %w", err)
	}
	rate := float64(b.number("hourly")) / time.Since(start).Seconds()
	quiet, fired, err := b.watchIdle(ctx)
	if err != nil {
		return nil, err
	}
	if fired > 0 {
		return nil, fmt.Errorf("%d tasks fired although none was due", fired)
	}
	err = b.manyAtOnce(ctx, func(ctx context.Context, i int) error {
		cron := api.Expressions(hourly(start, time.Hour, i, b.number("hourly")))
		_, err := b.server.ModifyRecurring(ctx, ids[i], api.RecurringPatch{Cron: &cron})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("modify recurring tasks: %w", err)
	}
	busy, fired, err := b.watchIdle(ctx)
	if err != nil {
		return nil, err
	}
	figures := []benchFigure{{"recurring tasks created", "a second", rate, 0}}
	figures = append(figures, b.idleFigures("none due", quiet)...)
	figures = append(figures, benchFigure{"spread over the hour, fired", "a second", float64(fired) / b.span("idle").Seconds(), 0})
	return append(figures, b.idleFigures("spread over the hour", busy)...), nil
}

// idleFigures shows what the server used while it was watched; nothing where the system does not tell.
func (b *bench) idleFigures(what string, used processUsage) []benchFigure {
	if used.Resident == 0 {
		return nil
	}
	seconds := b.span("idle").Seconds()
	return []benchFigure{
		{what + ", CPU", "% of a core", 100 * used.CPU.Seconds() / seconds, 0},
		{what + ", context switches", "a second", float64(used.Switches) / seconds, 0},
		{what + ", resident", "MB", megabytes(used.Resident), 0},
	}
}

// hourly returns a schedule that fires once an hour: the i-th of n that are spread evenly over a part of the
// hour that begins at from.
func hourly(from time.Time, over time.Duration, i, n int) string {
	at := from.Add(over * time.Duration(i) / time.Duration(n)).UTC()
	return fmt.Sprintf("%d %d * * * *", at.Second(), at.Minute())
}

// watchIdle lets the server come to rest and watches it, without a request, for the time asked for.
func (b *bench) watchIdle(ctx context.Context) (used processUsage, fired int, err error) {
	if err := sleepUntil(ctx, time.Now().Add(min(idleCalm, b.span("idle")))); err != nil {
		return used, 0, err
	}
	if err := b.sink.reset(ctx); err != nil {
		return used, 0, err
	}
	err = b.server.profiled(func() error {
		before, err := b.server.usageIfKnown()
		if err != nil {
			return err
		}
		if err := sleepUntil(ctx, time.Now().Add(b.span("idle"))); err != nil {
			return err
		}
		used, err = b.server.usageIfKnown()
		used.CPU -= before.CPU
		used.Switches -= before.Switches
		return err
	})
	if err != nil {
		return used, 0, err
	}
	t, err := b.sink.tally(ctx, false)
	return used, t.Requests, err
}

// manyAtOnce calls do for each recurring task, from several goroutines.
func (b *bench) manyAtOnce(ctx context.Context, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range idleClients {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < b.number("hourly") && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
