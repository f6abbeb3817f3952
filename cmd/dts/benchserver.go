package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"sync"
	"syscall"
	"time"

	"dts"
	"dts/web"
	"dts/web/api"
	"dts/web/client"
)

// benchServer is the server that is measured: `dts serve` in a process of its own, or, to be profiled, in this
// process.
type benchServer struct {
	*client.Client
	profile string // file; "": none
	end     func() // ends the server
	ended   chan struct{}
	err     error // why it ended; set before ended is closed
	stopped sync.Once
}

// benchStop is how long a server may take to stop before it is killed.
const benchStop = 10 * time.Second

func startBenchServer(ctx context.Context, dir, profile string) (*benchServer, error) {
	data := filepath.Join(dir, "data")
	cl, err := client.New(client.Options{Socket: socketPath(data), Version: thisBuild().Version})
	if err != nil {
		return nil, err
	}
	s := &benchServer{Client: cl, profile: profile, ended: make(chan struct{})}
	if profile != "" {
		s.startHere(data)
	} else if err := s.startProcess(dir, data); err != nil {
		return nil, err
	}
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

// startProcess starts the server with nothing but defaults: no settings of the user or the machine.
func (s *benchServer) startProcess(dir, data string) error {
	config := filepath.Join(dir, "dts.toml")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	cmd, err := self("serve", "--data", data, "--config", config, "--listen", web.NoListen, "--quiet", "--log-level", "warn")
	if err != nil {
		return err
	}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "DTS_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	go func() {
		defer close(s.ended)
		if err := cmd.Wait(); err != nil {
			s.err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(text.Bytes()))
		}
	}()
	s.end = func() {
		cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-s.ended:
		case <-time.After(benchStop):
			cmd.Process.Kill()
		}
	}
	return nil
}

// startHere runs the server in this process.
func (s *benchServer) startHere(data string) {
	ctx, cancel := context.WithCancel(context.Background())
	s.end = cancel
	go func() {
		defer close(s.ended)
		s.err = runServer(ctx, serverOptions{
			DataDir: data, SocketPath: socketPath(data), Listen: web.NoListen, DrainTimeout: benchStop,
			Retention: 30 * 24 * time.Hour, RetentionRows: 1_000_000, Log: slog.New(slog.DiscardHandler),
		})
	}()
}

// stop ends the server and waits for that.
func (s *benchServer) stop() {
	s.stopped.Do(func() {
		s.end()
		<-s.ended
		s.Close()
	})
}

// profiled runs f, with a CPU profile where one is asked for.
func (s *benchServer) profiled(f func() error) (err error) {
	if s.profile == "" {
		return f()
	}
	out, err := os.Create(s.profile)
	if err != nil {
		return fmt.Errorf("write the profile: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := pprof.StartCPUProfile(out); err != nil {
		return fmt.Errorf("write the profile: %w", err)
	}
	defer pprof.StopCPUProfile()
	return f()
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

// settled waits until no task is pending or running and every result is on the disk.
func (s *benchServer) settled(ctx context.Context, limit time.Duration) error {
	return poll(ctx, limit, func() (bool, string, error) {
		st, err := s.Status(ctx)
		if err != nil || st.UnwrittenRuns > 0 {
			return false, "the results were not written", err
		}
		n, err := s.Counts(ctx)
		return err == nil && n.Pending == 0 && n.Running == 0, "the tasks did not end", err
	})
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
