package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dts/sched/timer"
)

// benchBody is the body of request i: a small JSON object, no two alike, so that nothing can be kept from one
// request to the next.
func benchBody(i int) string { return `{"n":` + strconv.Itoa(i) + `}` }

// bareClient posts what dts posts, with net/http and nothing else: no store, no schedule, no results. What it
// reaches is the ceiling of dts on this machine.
type bareClient struct {
	url    string
	client *http.Client
}

func newBareClient(url string) *bareClient {
	return &bareClient{url, &http.Client{Transport: &http.Transport{MaxIdleConns: 2048, MaxIdleConnsPerHost: 1024}}}
}

func (c *bareClient) close() { c.client.CloseIdleConnections() }

// post sends request i as dts sends a task's, and reads the answer to its end.
func (c *bareClient) post(ctx context.Context, i int, scheduled string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(benchBody(i)))
	if err != nil {
		return err
	}
	req.Header["User-Agent"] = []string{"dts/bench"}
	req.Header["Content-Type"] = []string{"application/json"}
	req.Header["idempotency-key"] = []string{bareKey(i)}
	req.Header["X-Dts-Attempt"] = []string{"1"}
	req.Header["X-Dts-Scheduled-At"] = []string{scheduled}
	req.Header["Traceparent"] = []string{"00-00000000000070008000000000000000-0000000000000001-01"}
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the sink answered %s", resp.Status)
	}
	return nil
}

// bareWorkers is how many requests the bare client has in flight: as many as dts by default.
const bareWorkers = 256

// flood posts n requests as fast as it can.
func (c *bareClient) flood(ctx context.Context, n int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	scheduled := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00")
	var next atomic.Int64
	var wg sync.WaitGroup
	for range bareWorkers {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && ctx.Err() == nil; i = next.Add(1) - 1 {
				if err := c.post(ctx, int(i), scheduled); err != nil {
					cancel(fmt.Errorf("the bare client: %w", err))
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// pace posts n requests, one every step from first on, each when the timer says that its instant has come.
// It returns how late the timer woke for each.
func (c *bareClient) pace(ctx context.Context, n int, first time.Time, step time.Duration) ([]time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t := timer.New(slog.New(slog.DiscardHandler))
	defer t.Close()
	var wg sync.WaitGroup
	defer wg.Wait()
	late := make([]time.Duration, 0, n)
	for i := range n {
		at := first.Add(time.Duration(i) * step)
		scheduled := at.UTC().Format("2006-01-02T15:04:05.000000Z07:00")
		for now := time.Now(); ; now = time.Now() {
			if !now.Before(at) {
				late = append(late, now.Sub(at))
				break
			}
			t.Arm(at)
			select {
			case <-t.C():
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		wg.Go(func() {
			if err := c.post(ctx, i, scheduled); err != nil {
				cancel(fmt.Errorf("the bare client: %w", err))
			}
		})
	}
	wg.Wait()
	return late, context.Cause(ctx)
}

// bareKey is the key of the bare client's request i.
func bareKey(i int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", i) }
