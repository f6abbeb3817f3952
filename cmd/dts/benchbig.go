package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"dts"
	"dts/web/api"
)

// bigScenario asks what it costs that very many tasks are pending.
var bigScenario = benchScenario{
	name: "big",
	long: true,
	about: func(o benchOptions) string {
		return fmt.Sprintf("%d tasks pending, due at random over 30 days; then the server starts again", o.number("big"))
	},
	runs:  1,
	sizes: []benchSize{{flag: "big", number: 10_000_000, max: 100_000_000, usage: "big: `N` tasks pending"}},
	aims: map[string][]benchAim{
		"resident after the start":    {{below: 150}},
		"process start to first fire": {{below: 1}},
		"on disk, a task":             {{below: 500}},
	},
	run: func(ctx context.Context, b *bench) ([]benchFigure, error) { return b.big(ctx) },
}

const (
	bigStep  = 500_000          // tasks between two words on how far it is
	bigLead  = 3 * time.Second  // from the creation of the task that fires first to the end of the server
	bigStart = 10 * time.Minute // limit of the start
	bigCalm  = 2 * time.Second  // from the first fire until memory is looked at
	bigPages = 200              // pages of each list that are measured
	bigSkip  = 200              // pages of 1,000 between the first ones and the deep ones
)

func (b *bench) big(ctx context.Context) ([]benchFigure, error) {
	started := time.Now()
	if err := b.createPending(ctx, b.number("big")); err != nil {
		return nil, err
	}
	rate := float64(b.number("big")) / time.Since(started).Seconds()

	// One task comes due while no server runs: it fires as soon as the next one is up.
	if err := b.sink.reset(ctx); err != nil {
		return nil, err
	}
	due := dts.Micros(time.Now().Add(bigLead))
	_, err := b.server.createAll(ctx, 1, func(int) api.TaskRequest {
		return api.TaskRequest{Spec: dts.Spec{TargetType: dts.HTTPCallback, TargetConfig: httpTarget(b.sink.url, 0)}, RunAt: api.At(due)}
	})
	if err != nil {
		return nil, err
	}
	before, err := b.server.databaseBytes()
	if err != nil {
		return nil, err
	}
	if err := b.server.stop(); err != nil {
		return nil, err
	}
	if err := sleepUntil(ctx, due); err != nil {
		return nil, err
	}
	t, err := b.sink.tally(ctx, false)
	if err != nil {
		return nil, err
	}
	if t.Requests > 0 {
		return nil, fmt.Errorf("the server took longer than %s to stop, and a task fired meanwhile", bigLead)
	}
	restarted := time.Now()
	if err := b.restart(ctx); err != nil {
		return nil, err
	}
	if err := b.sink.wait(ctx, 1, bigStart); err != nil {
		return nil, err
	}
	if t, err = b.sink.tally(ctx, false); err != nil {
		return nil, err
	}
	if err := sleepUntil(ctx, time.Now().Add(bigCalm)); err != nil {
		return nil, err
	}
	used, err := b.server.usageIfKnown()
	if err != nil {
		return nil, err
	}
	after, err := b.server.databaseBytes()
	if err != nil {
		return nil, err
	}
	figures := []benchFigure{
		{"created", "tasks/s", rate, 0},
		{"process start to first fire", "s", time.Unix(0, t.LastNS).Sub(restarted).Seconds(), 0},
		{"on disk, a task", "bytes", float64(max(before, after)) / float64(b.number("big")), 0},
	}
	resident := func(when string) {
		if used.Resident > 0 {
			figures = append(figures, benchFigure{"resident after the " + when, "MB", megabytes(used.Resident), 0})
		}
	}
	resident("start")
	var lists []benchFigure
	err = b.server.profiled(func() error {
		lists, err = b.bigLists(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	if used, err = b.server.usageIfKnown(); err != nil {
		return nil, err
	}
	figures = append(figures, lists...)
	resident("lists")
	return figures, nil
}

// createPending creates n tasks and says from time to time how far it is.
func (b *bench) createPending(ctx context.Context, n int) error {
	later := laterBy(time.Now())
	for made := 0; made < n; {
		k := min(n-made, bigStep)
		if err := b.fill(ctx, k, func(i int) time.Time { return later(made + i) }); err != nil {
			return err
		}
		made += k
		b.notef("%d of %d tasks created", made, n)
	}
	return nil
}

// bigLists measures pages of lists: the first ones, ones far below, and ones by status, which have to look for
// their tasks.
func (b *bench) bigLists(ctx context.Context) ([]benchFigure, error) {
	r := newRawAPI(b.server, 1)
	defer r.close()
	var figures []benchFigure
	list := func(name, path string, cursor string) (string, error) {
		took, cursor, err := r.pages(ctx, path, cursor, bigPages)
		if err == nil {
			figures = append(figures, spreadFigures(name, took, nil)...)
		}
		return cursor, err
	}
	cursor, err := list("next page", "/tasks?limit=100", "")
	if err != nil {
		return nil, err
	}
	if _, cursor, err = r.pages(ctx, "/tasks?limit=1000", cursor, bigSkip); err != nil {
		return nil, err
	}
	for _, l := range []struct{ name, path, cursor string }{
		{"next page, far below", "/tasks?limit=100", cursor},
		{"next page of PENDING", "/tasks?limit=100&status=PENDING", ""},
		{"next page of SUCCESS", "/tasks?limit=100&status=SUCCESS", ""},
		{"next page of FAILED", "/tasks?limit=100&status=FAILED", ""},
	} {
		if _, err := list(l.name, l.path, l.cursor); err != nil {
			return nil, err
		}
	}
	return figures, nil
}

// pages gets up to n pages, one after the other, from a cursor on. It returns how long each took, and the
// cursor of the page after the last; where the list ends, the beginning's.
func (r *rawAPI) pages(ctx context.Context, path, cursor string, n int) (took []time.Duration, next string, err error) {
	for range n {
		start := time.Now()
		answer, err := r.do(ctx, "GET", path+"&cursor="+cursor, nil)
		if err != nil {
			return nil, "", err
		}
		took = append(took, time.Since(start))
		var page struct {
			Next string `json:"next_cursor"`
		}
		if err := json.Unmarshal(answer, &page); err != nil {
			return nil, "", fmt.Errorf("GET %s: %w", path, err)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	return took, cursor, nil
}

// databaseBytes is how many bytes the database's files take: the database itself and its log.
func (s *benchServer) databaseBytes() (int64, error) {
	var sum int64
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(s.database() + suffix)
		if errors.Is(err, fs.ErrNotExist) && suffix != "" {
			continue // it is empty
		}
		if err != nil {
			return 0, err
		}
		sum += info.Size()
	}
	return sum, nil
}
