package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"dts"
	"dts/web/api"
)

// sustainedScenario asks what goes day and night: recurring tasks that run every second, while what they leave
// behind is deleted.
var sustainedScenario = benchScenario{
	name: "sustained",
	about: func(o benchOptions) string {
		return fmt.Sprintf("%d recurring HTTP tasks, each every second, evenly spread, for %s; finished tasks are kept for a minute. "+
			"Ceiling: a bare net/http client, %d requests in flight", o.number("rate"), distance(o.span("sustain")), bareWorkers)
	},
	sizes: []benchSize{
		{flag: "rate", number: 10_000, max: 100_000, usage: "sustained: `N` tasks a second"},
		{flag: "sustain", span: 5 * time.Minute, longest: 40 * time.Minute, usage: "sustained: for a `DURATION`, in whole seconds"},
	},
	aims: map[string][]benchAim{
		"fires of those asked for":              {{atLeast: 99.9}},
		"at the sink, p99":                      {{below: 100}},
		"occurrences unaccounted for, sink":     {{none: true}},
		"occurrences unaccounted for, recorded": {{none: true}},
	},
	long:  true,
	runs:  1,
	serve: []string{"--keep", "1m"},
	run:   func(ctx context.Context, b *bench) ([]benchFigure, error) { return b.sustained(ctx) },
}

const (
	sustainedLead    = 4 * time.Second      // from the creation to the first instant, at the least
	sustainedEach    = 3 * time.Millisecond // more for each recurring task: what its creation may take
	sustainedConns   = 16                   // over which they are created: as many as the client keeps
	sustainedLimit   = 10 * time.Minute     // for what is left after the last instant
	sustainedCeiling = 10                   // seconds' worth of requests that the bare client posts, at most
)

func (b *bench) sustained(ctx context.Context) ([]benchFigure, error) {
	if b.span("sustain") < time.Second {
		return nil, usagef("--sustain: is %s; use at least 1s", span(b.span("sustain")))
	}
	if _, err := b.warmUp(ctx, drainWarmUp); err != nil {
		return nil, err
	}
	plan := pacedPlan{Tasks: b.number("rate"), Rounds: int(b.span("sustain") / time.Second)}
	start := time.Now().Add(sustainedLead + time.Duration(plan.Tasks)*sustainedEach).Truncate(time.Second)
	plan.StartUS = start.UnixMicro()
	end := start.Add(time.Duration(plan.Rounds) * time.Second)
	if err := b.sink.expect(ctx, plan); err != nil {
		return nil, err
	}
	if err := b.createRecurring(ctx, plan, end); err != nil {
		return nil, err
	}
	if time.Until(start) < sustainedLead/2 {
		return nil, fmt.Errorf("creating %d recurring tasks took longer than there was time for; give a lower --rate", plan.Tasks)
	}
	if err := sleepUntil(ctx, start); err != nil {
		return nil, err
	}
	var before, after processUsage
	usageErr := b.server.profiled(func() (err error) {
		if before, err = b.server.usage(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		if err := sleepUntil(ctx, end); err != nil {
			return err
		}
		after, err = b.server.usage()
		return err
	})
	if usageErr != nil && !errors.Is(usageErr, errors.ErrUnsupported) {
		return nil, usageErr
	}
	if err := b.recurringEnded(ctx); err != nil {
		return nil, err
	}
	came, err := b.sink.paced(ctx)
	if err != nil {
		return nil, err
	}
	if came.Distinct == 0 {
		return nil, errors.New("no request came to the sink")
	}
	ledger, err := b.readLedger(ctx)
	if err != nil {
		return nil, err
	}
	bare, err := b.bareRate(ctx, plan.Tasks*min(sustainedCeiling, plan.Rounds))
	if err != nil {
		return nil, err
	}

	took := max(time.Unix(0, came.LastNS).Sub(start), end.Sub(start)).Seconds()
	rate := float64(came.Distinct) / took
	due := int64(plan.instants())
	count := func(name string, n int64) benchFigure { return benchFigure{name, "", float64(n), 0} }
	figures := []benchFigure{
		{"fires", "tasks/s", rate, bare},
		{"fires of those asked for", "%", 100 * rate / float64(plan.Tasks), 0},
		{"at the sink, p50", "ms", float64(came.P50US) / 1e3, 0},
		{"at the sink, p90", "ms", float64(came.P90US) / 1e3, 0},
		{"at the sink, p99", "ms", float64(came.P99US) / 1e3, 0},
		{"at the sink, p99.9", "ms", float64(came.P999US) / 1e3, 0},
		{"at the sink, max", "ms", float64(came.MaxUS) / 1e3, 0},
		count("occurrences due", due),
		count("occurrences skipped", ledger.skipped),
		count("occurrences unaccounted for, sink", distanceBetween(due, int64(came.Distinct)+ledger.skipped)),
		count("occurrences unaccounted for, recorded", distanceBetween(due, ledger.ran+ledger.skipped)),
		count("requests that came again", int64(came.Requests-came.Distinct-came.Strays)),
		count("requests for no instant of the plan", int64(came.Strays)),
		count("finished tasks deleted meanwhile", ledger.deleted),
	}
	if usageErr == nil {
		figures = append(figures,
			benchFigure{"server, CPU", "% of a core", 100 * (after.CPU - before.CPU).Seconds() / end.Sub(start).Seconds(), 0},
			benchFigure{"server, resident at the end", "MB", megabytes(after.Resident), 0},
			benchFigure{"server, resident at most", "MB", megabytes(after.PeakResident), 0},
		)
	}
	return figures, nil
}

func distanceBetween(a, b int64) int64 { return max(a-b, b-a) }

// createRecurring creates the recurring tasks of a plan. Their last instants are before end.
func (b *bench) createRecurring(ctx context.Context, plan pacedPlan, end time.Time) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range sustainedConns {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < plan.Tasks && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				config, err := json.Marshal(dts.HTTPTarget{URL: b.sink.pacedURL(i), Body: benchBody(i)})
				if err == nil {
					_, err = b.server.CreateRecurring(ctx, api.RecurringRequest{
						Spec:            dts.Spec{Name: fmt.Sprintf("bench-%d", i), TargetType: dts.HTTPCallback, TargetConfig: config},
						IntervalSeconds: 1, StartTime: api.At(plan.first(i)), EndTime: api.At(end.Add(-time.Microsecond)),
					})
				}
				if err != nil {
					cancel(fmt.Errorf("create recurring tasks: %w", err))
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// recurringEnded waits until the recurring tasks have had all their instants and what they spawned has ended.
func (b *bench) recurringEnded(ctx context.Context) error {
	err := pollEach(ctx, time.Second, sustainedLimit, func() (bool, string, error) {
		page, err := b.server.RecurringTasks(ctx, dts.RecurringFilter{Statuses: []dts.RecurringStatus{dts.Active}, Limit: 1})
		return err == nil && len(page.Items) == 0, "the recurring tasks did not come to their end", err
	})
	if err != nil {
		return err
	}
	return b.server.settled(ctx, sustainedLimit)
}

// ledger is what the API says of all recurring tasks together.
type ledger struct {
	ran     int64 // scheduled runs that have ended
	skipped int64 // instants
	deleted int64 // finished tasks, by retention
}

func (b *bench) readLedger(ctx context.Context) (l ledger, err error) {
	rounds := int64(b.span("sustain") / time.Second)
	for r, err := range b.server.AllRecurringTasks(ctx, dts.RecurringFilter{Limit: 1000}) {
		if err != nil {
			return l, err
		}
		l.ran += r.RunsCount
		if r.RunsCount == rounds {
			continue // it has no skips
		}
		for o, err := range b.server.AllOccurrences(ctx, r.ID) {
			if err != nil {
				return l, err
			}
			if o.Skip != nil {
				l.skipped += o.Skip.Count
			}
		}
	}
	deleted, err := b.server.metric(ctx, "dts_tasks_deleted_total")
	l.deleted = int64(deleted)
	return l, err
}
