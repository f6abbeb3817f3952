package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"dts"
)

// createScenario asks how fast tasks are created: one by one, each answered when it is durable, and in bulk.
var createScenario = benchScenario{
	name: "create",
	about: func(o benchOptions) string {
		return fmt.Sprintf("%d tasks by POST /tasks over %d connections, and twice %d by POST /tasks/bulk. "+
			"Ceiling: a server that reads the request and answers 201", o.number("creates"), createConns, o.number("bulk"))
	},
	sizes: []benchSize{
		{flag: "creates", number: 50_000, max: 1_000_000, usage: "create: `N` tasks one by one"},
		{flag: "bulk", number: 100_000, max: 1_000_000, usage: "create: `N` tasks in bulk, of each kind"},
	},
	aims: map[string][]benchAim{
		"one by one":           {{ratio: 0.5}},
		"bulk, at one instant": {{atLeast: 60_000}},
		"bulk, over 30 days":   {{atLeast: 30_000}},
	},
	tcp: true,
	run: func(ctx context.Context, b *bench) ([]benchFigure, error) { return b.create(ctx) },
}

const (
	createConns  = 64
	createWarmUp = 2000
)

func (b *bench) create(ctx context.Context) ([]benchFigure, error) {
	n, bulk := b.number("creates"), b.number("bulk")
	later := dts.Micros(time.Now().Add(24 * time.Hour)) // nothing fires while this is measured
	soon := func(i int) time.Time { return later.Add(time.Duration(i) * time.Millisecond) }
	same := func(int) time.Time { return later }

	// All bodies are made before: their encoding is not what is measured.
	ones := make([][]byte, createWarmUp+n)
	for i := range ones {
		ones[i] = taskBody(nil, i, b.sink.url, soon(i))
	}
	bulkSame, bulkRandom := bulkBodies(bulk, b.sink.url, same), bulkBodies(bulk, b.sink.url, laterBy(later))
	warm, ones := ones[:createWarmUp], ones[createWarmUp:]

	size, err := b.answerSize(ctx, ones[0])
	if err != nil {
		return nil, err
	}
	var one, inBulk, spread float64
	err = b.server.profiled(func() error {
		if one, err = flooded(ctx, b.server.raw, createConns, "/tasks", warm, ones, n); err != nil {
			return err
		}
		if inBulk, err = flooded(ctx, b.server.raw, bulkConns, "/tasks/bulk", nil, bulkSame, bulk); err != nil {
			return err
		}
		spread, err = flooded(ctx, b.server.raw, bulkConns, "/tasks/bulk", nil, bulkRandom, bulk)
		return err
	})
	if err != nil {
		return nil, err
	}
	bare, err := flooded(ctx, b.sink.raw, createConns, fmt.Sprintf("/created/%d", size), warm, ones, n)
	if err != nil {
		return nil, err
	}
	return []benchFigure{
		{"one by one", "tasks/s", one, bare},
		{"bulk, at one instant", "tasks/s", inBulk, 0},
		{"bulk, over 30 days", "tasks/s", spread, 0},
	}, nil
}

// answerSize creates one task and returns how long the answer is.
func (b *bench) answerSize(ctx context.Context, body []byte) (int64, error) {
	c, err := b.server.raw(ctx)
	if err != nil {
		return 0, err
	}
	defer c.close()
	return c.post("/tasks", body, http.StatusCreated)
}

// flooded posts the bodies, which hold so many tasks, and returns how many tasks went in a second. What warm
// holds is posted before.
func flooded(ctx context.Context, dial func(context.Context) (*rawConn, error), conns int, path string, warm, bodies [][]byte, tasks int) (float64, error) {
	post := func(list [][]byte) (time.Duration, error) {
		return rawFlood(ctx, dial, conns, len(list), path, http.StatusCreated, func(i int) []byte { return list[i] })
	}
	if len(warm) > 0 {
		if _, err := post(warm); err != nil {
			return 0, err
		}
	}
	took, err := post(bodies)
	return float64(tasks) / took.Seconds(), err
}

// bulkBodies are the bodies that create n tasks.
func bulkBodies(n int, url string, at func(i int) time.Time) [][]byte {
	var list [][]byte
	for first := 0; first < n; first += dts.MaxBulk {
		list = append(list, bulkBody(first, min(first+dts.MaxBulk, n), url, at))
	}
	return list
}
