package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"dts"
	"dts/web/api"
)

// herdScenario asks who waits how long when far more is due within one second than can be run in it.
var herdScenario = benchScenario{
	name: "herd",
	about: func(o benchOptions) string {
		return fmt.Sprintf("%d HTTP tasks due within one second, a third of each priority; then as many, of which %d %% are HIGH. Ceiling: a bare net/http client",
			o.number("herd"), 100/herdRareHigh)
	},
	sizes: []benchSize{{flag: "herd", number: 100_000, max: 1_000_000, usage: "herd: `N` tasks due within one second, twice"}},
	aims: map[string][]benchAim{
		"mean wait, MEDIUM / HIGH":    {{atLeast: 1}},
		"mean wait, LOW / MEDIUM":     {{atLeast: 1}},
		"shares, farthest from 5:3:1": {{below: 15}},
		"sla met":                     {{atLeast: 100}},
		"memory, peak":                {{below: 256}},
		"4 % HIGH: wait of HIGH, p99": {{below: 50}},
	},
	run: func(ctx context.Context, b *bench) ([]benchFigure, error) { return b.herd(ctx) },
}

const (
	herdSpread   = time.Second
	herdLead     = 3 * time.Second // from the end of the creation to the first: more than dts claims ahead
	herdRareHigh = 25              // one in so many is HIGH in the second part
)

var priorities = [...]dts.Priority{dts.High, dts.Medium, dts.Low}

// herdTask is what became of one task of a herd.
type herdTask struct {
	rank       int
	due, start time.Time
	slaMet     bool
}

func (b *bench) herd(ctx context.Context) ([]benchFigure, error) {
	rate, err := b.warmUp(ctx, min(drainWarmUp, b.number("herd")))
	if err != nil {
		return nil, err
	}
	equal, created, err := b.runHerd(ctx, rate, func(i int) int { return i % 3 })
	if err != nil {
		return nil, err
	}
	rare, _, err := b.runHerd(ctx, rate, func(i int) int {
		if i%herdRareHigh == 0 {
			return 0
		}
		return 1 + i%2
	})
	if err != nil {
		return nil, err
	}
	used, err := b.server.usageIfKnown()
	if err != nil {
		return nil, err
	}
	bare, err := b.bareRate(ctx, b.number("herd"))
	if err != nil {
		return nil, err
	}
	means := meanWaits(equal)
	figures := []benchFigure{{"until the last started", "tasks/s", perSecondOf(equal), bare}}
	for rank, p := range priorities {
		figures = append(figures, benchFigure{"mean wait, " + string(p), "ms", means[rank], 0})
	}
	shares := herdShares(equal)
	figures = append(figures,
		benchFigure{"mean wait, MEDIUM / HIGH", "times", means[1] / means[0], 0},
		benchFigure{"mean wait, LOW / MEDIUM", "times", means[2] / means[1], 0})
	for rank, p := range priorities {
		figures = append(figures, benchFigure{"share of nine, " + string(p), "starts", shares[rank], 0})
	}
	figures = append(figures,
		benchFigure{"shares, farthest from 5:3:1", "%", farthest(shares), 0},
		benchFigure{"sla met", "%", slaMet(slices.Concat(equal, rare)), 0})
	if used.PeakResident > 0 {
		figures = append(figures,
			benchFigure{"memory, peak while they were created", "MB", megabytes(created.PeakResident), 0},
			benchFigure{"memory, peak", "MB", megabytes(used.PeakResident), 0})
	}
	return append(figures, spreadFigures("4 % HIGH: wait of HIGH", waitsOf(rare, 0), nil)...), nil
}

// runHerd runs one herd; rank says each task's priority. Created is what the server has used when all tasks were
// created and none has run.
func (b *bench) runHerd(ctx context.Context, rate float64, rank func(i int) int) (herd []herdTask, created processUsage, err error) {
	n := b.number("herd")
	if err := b.sink.reset(ctx); err != nil {
		return nil, created, err
	}
	creation := time.Duration(1.5 * float64(n) / rate * float64(time.Second))
	first := dts.Micros(time.Now().Add(creation + herdLead))
	at := func(i int) time.Time { return dts.Micros(first.Add(time.Duration(i) * herdSpread / time.Duration(n))) }
	ids, err := b.server.createAll(ctx, n, func(i int) api.TaskRequest {
		return api.TaskRequest{Spec: dts.Spec{TargetType: dts.HTTPCallback, TargetConfig: httpTarget(b.sink.url, i), Priority: priorities[rank(i)]},
			RunAt: api.At(at(i))}
	})
	if err != nil {
		return nil, created, err
	}
	if time.Until(first) < herdLead/2 {
		return nil, created, fmt.Errorf("creating %d tasks took longer than the warm-up had let expect; try again on a quieter machine", n)
	}
	if created, err = b.server.usageIfKnown(); err != nil {
		return nil, created, err
	}
	if err := sleepUntil(ctx, first); err != nil {
		return nil, created, err
	}
	err = b.server.profiled(func() error {
		if err := b.sink.wait(ctx, n, drainLimit); err != nil {
			return err
		}
		return b.server.settled(ctx, drainLimit)
	})
	if err != nil {
		return nil, created, err
	}
	herd = make([]herdTask, n)
	err = b.server.finished(ctx, ids, func(i int, t *dts.Task) {
		herd[i] = herdTask{rank(i), t.DueAt, t.StartedAt, t.SLAMet != nil && *t.SLAMet}
	})
	return herd, created, err
}

// waitsOf returns how long each task of a priority waited from when it was due until it started.
func waitsOf(herd []herdTask, rank int) (waits []time.Duration) {
	for _, t := range herd {
		if t.rank == rank {
			waits = append(waits, t.start.Sub(t.due))
		}
	}
	return waits
}

// meanWaits returns the mean wait of each priority in milliseconds.
func meanWaits(herd []herdTask) (means [len(priorities)]float64) {
	for rank := range means {
		var sum time.Duration
		waits := waitsOf(herd, rank)
		for _, w := range waits {
			sum += w
		}
		means[rank] = milliseconds(sum / time.Duration(max(len(waits), 1)))
	}
	return means
}

// herdShares counts the starts of each priority while all of them had work waiting: from when the last task
// was due until the last start of the priority that ran dry first. The three make nine together.
func herdShares(herd []herdTask) (shares [len(priorities)]float64) {
	var from time.Time
	var last [len(priorities)]time.Time
	for _, t := range herd {
		if t.due.After(from) {
			from = t.due
		}
		if t.start.After(last[t.rank]) {
			last[t.rank] = t.start
		}
	}
	to := slices.MinFunc(last[:], time.Time.Compare)
	sum := 0.0
	for _, t := range herd {
		if t.start.After(from) && t.start.Before(to) {
			shares[t.rank]++
			sum++
		}
	}
	for rank := range shares {
		if sum > 0 {
			shares[rank] *= 9 / sum
		}
	}
	return shares
}

// farthest returns how far the share that is farthest from its part of 5:3:1 is from it, in percent.
func farthest(shares [len(priorities)]float64) float64 {
	worst := 0.0
	for rank, want := range [...]float64{5, 3, 1} {
		worst = max(worst, 100*math.Abs(shares[rank]-want)/want)
	}
	return worst
}

// slaMet returns how many percent started in time.
func slaMet(herd []herdTask) float64 {
	met := 0
	for _, t := range herd {
		if t.slaMet {
			met++
		}
	}
	return 100 * float64(met) / float64(len(herd))
}

// perSecondOf returns how many tasks started in a second, from when the first was due.
func perSecondOf(herd []herdTask) float64 {
	first, last := herd[0].due, herd[0].start
	for _, t := range herd {
		if t.due.Before(first) {
			first = t.due
		}
		if t.start.After(last) {
			last = t.start
		}
	}
	return float64(len(herd)) / last.Sub(first).Seconds()
}
