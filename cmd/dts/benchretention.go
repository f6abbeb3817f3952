package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dts"
)

// latenessRetentionScenario asks whether tasks are later while retention deletes.
var latenessRetentionScenario = benchScenario{
	name: "lateness-retention",
	about: func(o benchOptions) string {
		return fmt.Sprintf("as lateness, while retention deletes %d finished tasks. Ceiling: the same before that", o.number("finished"))
	},
	sizes: []benchSize{{flag: "finished", number: 60_000, max: 10_000_000, usage: "lateness-retention: `N` finished tasks, to be deleted"}},
	aims: map[string][]benchAim{
		"at the sink, p99":     {{below: 2}},
		"deleted by retention": {{atLeast: 1}},
	},
	long: true,
	run:  func(ctx context.Context, b *bench) ([]benchFigure, error) { return b.latenessRetention(ctx) },
}

// retentionSettles is how long after its end retention does not look at a task.
const retentionSettles = 12 * time.Second

// retentionCounts is how long it may count before it deletes; it then does the rest beside that.
const retentionCounts = 20 * time.Second

func (b *bench) latenessRetention(ctx context.Context) ([]benchFigure, error) {
	if err := b.restart(ctx); err != nil {
		return nil, err
	}
	if _, err := b.warmUp(ctx, b.number("finished")); err != nil {
		return nil, err
	}
	deletable := time.Now().Add(retentionSettles)
	plainSink, plainRecorded, err := b.measureLateness(ctx)
	if err != nil {
		return nil, err
	}
	before, err := b.server.metric(ctx, deletedMetric)
	if err != nil {
		return nil, err
	}
	if err := sleepUntil(ctx, deletable); err != nil {
		return nil, err
	}
	// A limit that deletes nothing lets it count what there is.
	if _, err := b.server.PutRetention(ctx, dts.Retention{Rows: int64(10 * b.number("finished"))}); err != nil {
		return nil, err
	}
	if err := sleepUntil(ctx, time.Now().Add(retentionCounts)); err != nil {
		return nil, err
	}
	kept := make(chan error, 1)
	setting, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		err := sleepUntil(setting, time.Now().Add(latenessLead-time.Second)) // it looks what there is before it deletes
		if err == nil {
			// What is measured is not deleted before it is read.
			_, err = b.server.PutRetention(setting, dts.Retention{Rows: int64(2 * b.number("tasks"))})
		}
		kept <- err
	}()
	sink, recorded, err := b.measureLateness(ctx)
	if err != nil {
		return nil, err
	}
	if err := <-kept; err != nil {
		return nil, err
	}
	after, err := b.server.metric(ctx, deletedMetric)
	if err != nil {
		return nil, err
	}
	if after == before {
		return nil, errors.New("retention deleted nothing meanwhile; give more --finished, or a longer --spread")
	}
	figures := append(spreadFigures("at the sink", sink, plainSink), spreadFigures("recorded start", recorded, plainRecorded)...)
	return append(figures, benchFigure{"deleted by retention", "tasks", after - before, 0}), nil
}
