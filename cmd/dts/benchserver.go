package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dts"
	"dts/web/api"
	"dts/web/client"
)

// benchServer is the server that is measured: `dts serve` in a process of its own.
type benchServer struct {
	*client.Client
	PID     int
	cmd     *exec.Cmd
	options benchServerOptions
	filled  bool           // there are tasks that are not to run while this server does
	orders  io.WriteCloser // its standard input: see profileOnOrder
	ended   chan struct{}
	err     error // why it ended; set before ended is closed
}

// benchServerOptions say how to start a server.
type benchServerOptions struct {
	Dir     string   // holds its data directory and its configuration
	Listen  string   // TCP address, or web.NoListen
	Flags   []string // more flags of `dts serve`
	Profile string   // file for a CPU profile; "": none
}

// benchStop is how long a server may take to stop before it is killed.
const benchStop = 10 * time.Second

// startBenchServer starts a server and waits until it is ready. It runs with nothing but defaults and o: no
// settings of the user or the machine.
func startBenchServer(ctx context.Context, o benchServerOptions) (*benchServer, error) {
	data, config := filepath.Join(o.Dir, "data"), filepath.Join(o.Dir, "dts.toml")
	cl, err := client.New(client.Options{Socket: socketPath(data), Version: thisBuild().Version})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	flags := []string{"serve", "--data", data, "--config", config, "--listen", o.Listen, "--quiet", "--log-level", "warn"}
	s := &benchServer{Client: cl, options: o, ended: make(chan struct{})}
	if s.cmd, err = self(append(flags, o.Flags...)...); err != nil {
		return nil, err
	}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "DTS_") {
			s.cmd.Env = append(s.cmd.Env, v)
		}
	}
	if o.Profile != "" {
		s.cmd.Env = append(s.cmd.Env, profileVariable+"="+o.Profile)
		if s.orders, err = s.cmd.StdinPipe(); err != nil {
			return nil, fmt.Errorf("start the server: %w", err)
		}
	}
	var text bytes.Buffer
	s.cmd.Stdout, s.cmd.Stderr = &text, &text
	s.cmd.WaitDelay = time.Second
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	s.PID = s.cmd.Process.Pid
	go func() {
		defer close(s.ended)
		if err := s.cmd.Wait(); err != nil {
			s.err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(text.Bytes()))
		}
	}()
	err = poll(ctx, 30*time.Second, func() (bool, string, error) {
		select {
		case <-s.ended:
			return false, "", fmt.Errorf("the server ended: %w", s.err)
		default:
		}
		r, err := cl.Ready(ctx)
		return err == nil && r.Ready, "the server was not ready", nil
	})
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// stop ends the server and waits for that. An error says that it did not end well. It may be called again.
func (s *benchServer) stop() error {
	s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(benchStop):
		s.cmd.Process.Kill()
		<-s.ended
	}
	s.Close()
	if s.err != nil {
		return fmt.Errorf("stop the server: %w", s.err)
	}
	return nil
}

// profiled runs f, with a CPU profile of the server where one is asked for.
func (s *benchServer) profiled(f func() error) (err error) {
	if s.orders == nil {
		return f()
	}
	if _, err := io.WriteString(s.orders, profileStart); err != nil {
		return fmt.Errorf("profile the server: %w", err)
	}
	err = f()
	if _, orderErr := io.WriteString(s.orders, profileStop); orderErr != nil {
		err = errors.Join(err, fmt.Errorf("profile the server: %w", orderErr))
	}
	return err
}

// usage says what the server has used of the machine so far.
func (s *benchServer) usage() (processUsage, error) { return usageOf(s.PID) }

// freeAddress returns a TCP address of this machine on which nothing listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// create makes n tasks that post to url, due at the instants that at returns, and returns their ids and the
// batches that they came in.
func (s *benchServer) create(ctx context.Context, n int, url string, at func(i int) time.Time) (ids, batches []string, err error) {
	for made := 0; made < n; {
		list := make([]api.TaskRequest, min(n-made, dts.MaxBulk))
		for i := range list {
			config, err := json.Marshal(dts.HTTPTarget{URL: url, Body: benchBody(made + i)})
			if err != nil {
				return nil, nil, err
			}
			list[i] = api.TaskRequest{Spec: dts.Spec{TargetType: dts.HTTPCallback, TargetConfig: config}, RunAt: api.At(at(made + i))}
		}
		answer, err := s.CreateTasks(ctx, list)
		if err != nil {
			return nil, nil, fmt.Errorf("create tasks: %w", err)
		}
		for _, item := range answer.Items {
			ids = append(ids, item.TaskID)
		}
		batches = append(batches, answer.BatchID)
		made += len(list)
	}
	return ids, batches, nil
}

// settled waits until no task is running, or pending but for those of fill, and every result is on the disk.
// After a fill it cannot tell tasks that are due from the others before they are ready: what is to run has to
// have come to the sink.
func (s *benchServer) settled(ctx context.Context, limit time.Duration) error {
	return poll(ctx, limit, func() (bool, string, error) {
		st, err := s.Status(ctx)
		if err != nil || st.UnwrittenRuns > 0 {
			return false, "the results were not written", err
		}
		for _, p := range st.Pools {
			if p.Running > 0 || p.Ready > 0 {
				return false, "the tasks did not end", nil
			}
		}
		if s.filled {
			return true, "", nil
		}
		n, err := s.Counts(ctx)
		return err == nil && n.Pending == 0 && n.Running == 0, "the tasks did not end", err
	})
}

// metric returns the value of one of the server's metrics, one without labels.
func (s *benchServer) metric(ctx context.Context, name string) (float64, error) {
	var b bytes.Buffer
	if err := s.Metrics(ctx, &b); err != nil {
		return 0, err
	}
	for line := range strings.Lines(b.String()) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(text), 64)
		}
	}
	return 0, fmt.Errorf("the server has no metric %s", name)
}

// warmUp runs n tasks that are due at once, so that code, caches and connections are in the state of every
// day. It returns how many tasks were created in a second.
func (b *bench) warmUp(ctx context.Context, n int) (perSecond float64, err error) {
	start := time.Now()
	if _, _, err := b.server.create(ctx, n, b.sink.url, func(int) time.Time { return start }); err != nil {
		return 0, err
	}
	took := time.Since(start)
	if err := b.sink.wait(ctx, n, time.Minute); err != nil {
		return 0, fmt.Errorf("warm up: %w", err)
	}
	if err := b.server.settled(ctx, time.Minute); err != nil {
		return 0, fmt.Errorf("warm up: %w", err)
	}
	return float64(n) / took.Seconds(), b.sink.reset(ctx)
}

// self makes a command that runs this program.
func self(args ...string) (*exec.Cmd, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return &exec.Cmd{Path: path, Args: append([]string{"dts"}, args...)}, nil
}
