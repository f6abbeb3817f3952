package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// figures is what the metrics of a server said at one moment: counters, and a histogram of how late attempts started.
type figures struct {
	at       time.Time // by the clock of whoever asked
	counters map[string]float64
	late     []bucket // by upper bound
}

// bucket counts the observations up to an upper bound in seconds.
type bucket struct{ upTo, count float64 }

// The metrics that a screen is made of.
const (
	startedMetric   = "dts_attempts_started_total"
	succeededMetric = "dts_attempts_succeeded_total"
	failedMetric    = "dts_attempts_failed_total"
	latenessMetric  = "dts_lateness_seconds"
)

// readFigures asks a server for its metrics.
func readFigures(ctx context.Context, l *link, now time.Time) (*figures, error) {
	r, w := io.Pipe()
	go func() { w.CloseWithError(l.Metrics(ctx, w)) }()
	defer r.Close()
	return parseFigures(r, now)
}

// parseFigures reads what it needs of Prometheus's text format.
func parseFigures(r io.Reader, now time.Time) (*figures, error) {
	f := &figures{at: now, counters: map[string]float64{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		cut := strings.LastIndexByte(line, ' ')
		if cut < 0 {
			continue
		}
		name := line[:cut]
		le, isBucket := strings.CutPrefix(name, latenessMetric+`_bucket{le="`)
		if !isBucket && name != startedMetric && name != succeededMetric && name != failedMetric {
			continue
		}
		v, err := strconv.ParseFloat(line[cut+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("metrics: %s has the value %q", clip(clean(name), 60), clip(clean(line[cut+1:]), 20))
		}
		if !isBucket {
			f.counters[name] = v
			continue
		}
		upTo, err := strconv.ParseFloat(strings.TrimSuffix(le, `"}`), 64) // +Inf too
		if err != nil {
			return nil, fmt.Errorf("metrics: %s has no bound", clip(clean(name), 60))
		}
		f.late = append(f.late, bucket{upTo, v})
	}
	return f, lines.Err()
}

// rates is what happened between two looks at a server's metrics.
type rates struct {
	Seconds   float64  `json:"seconds"` // from one look to the other
	Started   float64  `json:"started_per_second"`
	Succeeded float64  `json:"succeeded_per_second"`
	Failed    float64  `json:"failed_per_second"`
	Starts    int64    `json:"starts"`
	P50       *float64 `json:"lateness_p50_seconds,omitempty"` // absent when nothing started; about, from a histogram
	P99       *float64 `json:"lateness_p99_seconds,omitempty"`
}

// since returns the rates from an earlier look on; nil where there is nothing to tell, as after a restart in between.
func (f *figures) since(old *figures) *rates {
	r := &rates{Seconds: f.at.Sub(old.at).Seconds()}
	if r.Seconds <= 0 || len(f.late) != len(old.late) || f.counters[startedMetric] < old.counters[startedMetric] {
		return nil
	}
	per := func(name string) float64 { return max(f.counters[name]-old.counters[name], 0) / r.Seconds }
	r.Started, r.Succeeded, r.Failed = per(startedMetric), per(succeededMetric), per(failedMetric)
	diff := make([]bucket, len(f.late))
	for i, b := range f.late {
		if b.upTo != old.late[i].upTo {
			return nil
		}
		diff[i] = bucket{b.upTo, b.count - old.late[i].count}
	}
	if n := len(diff); n > 0 && diff[n-1].count > 0 {
		p50, p99 := quantile(diff, 0.5), quantile(diff, 0.99)
		r.Starts, r.P50, r.P99 = int64(diff[n-1].count), &p50, &p99
	}
	return r
}

// quantile says, as Prometheus's histogram_quantile does, below which value a share of the observations lies: inside a
// bucket they are taken to be spread evenly.
func quantile(list []bucket, share float64) float64 {
	rank := share * list[len(list)-1].count
	var below bucket
	for _, b := range list {
		if b.count >= rank {
			if math.IsInf(b.upTo, 1) || b.count == below.count {
				break
			}
			return below.upTo + (b.upTo-below.upTo)*(rank-below.count)/(b.count-below.count)
		}
		below = b
	}
	return below.upTo
}
