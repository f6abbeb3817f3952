package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"dts"
	"dts/sched/timer"
	"dts/web/api"
)

// rawAPI talks to a server's socket without decoding the answers, so that what is measured is the server and
// not the decoder of this process.
type rawAPI struct{ client *http.Client }

// newRawAPI keeps up to conns connections open; more requests at a time wait for one.
func newRawAPI(s *benchServer, conns int) *rawAPI {
	socket := socketPath(filepath.Join(s.options.Dir, "data"))
	var d net.Dialer
	return &rawAPI{&http.Client{Timeout: 5 * time.Minute, Transport: &http.Transport{
		MaxConnsPerHost: conns, MaxIdleConnsPerHost: conns, DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "unix", socket) },
	}}}
}

func (r *rawAPI) close() { r.client.CloseIdleConnections() }

// do sends a request and returns the answer, read to its end. An answer that is no success is an error.
func (r *rawAPI) do(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://dts"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, clip(string(answer), 300))
	}
	return answer, nil
}

// restart stops the server and starts it again, with the same data and with what b.serve says now.
func (b *bench) restart(ctx context.Context) error {
	if err := b.server.stop(); err != nil {
		return err
	}
	server, err := startBenchServer(ctx, b.serve)
	if err != nil {
		return err // the old one stays in its place: it can be stopped again
	}
	b.server = server
	return nil
}

// httpTarget is the target_config of request i to url.
func httpTarget(url string, i int) json.RawMessage {
	b := make([]byte, 0, 80)
	b = append(b, `{"url":`...)
	b = strconv.AppendQuote(b, url)
	b = append(b, `,"body":`...)
	b = strconv.AppendQuote(b, benchBody(i))
	return append(b, '}')
}

// createAll creates n tasks in bulk and returns their ids in order.
func (s *benchServer) createAll(ctx context.Context, n int, task func(i int) api.TaskRequest) ([]string, error) {
	ids := make([]string, 0, n)
	for len(ids) < n {
		list := make([]api.TaskRequest, min(n-len(ids), dts.MaxBulk))
		for i := range list {
			list[i] = task(len(ids) + i)
		}
		answer, err := s.CreateTasks(ctx, list)
		if err != nil {
			return nil, fmt.Errorf("create tasks: %w", err)
		}
		for _, item := range answer.Items {
			ids = append(ids, item.TaskID)
		}
	}
	return ids, nil
}

// finished calls each for every one of the tasks, which must have succeeded; i is its place in ids.
func (s *benchServer) finished(ctx context.Context, ids []string, each func(i int, t *dts.Task)) error {
	missing := make(map[string]int, len(ids))
	for i, id := range ids {
		missing[id] = i
	}
	for t, err := range s.AllTasks(ctx, dts.TaskFilter{Limit: 1000}) {
		if err != nil {
			return err
		}
		i, ok := missing[t.ID]
		if !ok {
			continue
		}
		if t.Status != dts.Success || t.LatenessUS == nil {
			return fmt.Errorf("task %s is %s: %s", t.ID, t.Status, t.LastError)
		}
		each(i, t)
		if delete(missing, t.ID); len(missing) == 0 {
			return nil
		}
	}
	return fmt.Errorf("the server does not list %d of %d tasks", len(missing), len(ids))
}

// usageIfKnown is what the server has used so far, all zero on systems that do not tell.
func (s *benchServer) usageIfKnown() (processUsage, error) {
	u, err := s.usage()
	if errors.Is(err, errors.ErrUnsupported) {
		return processUsage{}, nil
	}
	return u, err
}

// database is the path of the server's database.
func (s *benchServer) database() string { return filepath.Join(s.options.Dir, "data", "dts.db") }

// wallTimer waits for instants as exactly as dts does.
type wallTimer struct{ timer.Timer }

func newWallTimer() wallTimer { return wallTimer{timer.New(slog.New(slog.DiscardHandler))} }

func (t wallTimer) close() { t.Timer.Close() }

func (t wallTimer) until(ctx context.Context, at time.Time) error {
	for time.Now().Before(at) {
		t.Arm(at)
		select {
		case <-t.C():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// openLoop calls do n times, one call every step from first on, whether earlier ones have returned or not. It
// returns how long after its instant each call had returned: who comes while the server is busy waits, and
// the wait counts.
func openLoop(ctx context.Context, n int, first time.Time, step time.Duration, do func(ctx context.Context, i int) error) ([]time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	clock := newWallTimer()
	defer clock.close()
	var wg sync.WaitGroup
	took := make([]time.Duration, n)
	for i := range n {
		at := first.Add(time.Duration(i) * step)
		if clock.until(ctx, at) != nil {
			break
		}
		wg.Go(func() {
			if err := do(ctx, i); err != nil {
				cancel(err)
			}
			took[i] = time.Since(at)
		})
	}
	wg.Wait()
	return took, context.Cause(ctx)
}
