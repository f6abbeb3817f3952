package main_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"dts"
	"dts/web/api"
)

// descriptors runs a server that may open few files, and asks for more: calls that take long, commands, and
// connections that say nothing. What could not be opened is tried again, nothing is lost or runs twice without an
// attempt of its own, and when the pressure is off everything works without a restart.
func (h *hostile) descriptors(t *testing.T) {
	dir := t.TempDir()
	limited := filepath.Join(dir, "limited")
	if err := os.WriteFile(limited, fmt.Appendf(nil, "#!/bin/sh\nulimit -n 64 && exec %s \"$@\"\n", h.bin), 0o700); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, limited, filepath.Join(dir, "data"))
	var mu sync.Mutex
	calls := map[run]int{}
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n run
		n.task = r.Header.Get("Idempotency-Key")
		fmt.Sscan(r.Header.Get("X-DTS-Attempt"), &n.attempt)
		mu.Lock()
		calls[n]++
		mu.Unlock()
		time.Sleep(300 * time.Millisecond)
	}))
	t.Cleanup(slow.Close)
	s.start()
	var ids []string
	var list []api.TaskRequest
	for i := range 200 {
		q := api.TaskRequest{Spec: httpSpec(slow.URL + "/"), Delay: "300ms"}
		if i%5 == 0 {
			q.Spec = commandSpec("/bin/sh", "-c", "sleep 0.3")
		}
		q.Retry = dts.Retry{MaxAttempts: 50, Backoff: dts.Fixed, BaseDelayMS: 500}
		list = append(list, q)
	}
	made, err := s.api.CreateTasks(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range made.Items {
		ids = append(ids, item.TaskID)
	}

	// Silent connections until the server has no descriptor for another.
	var idle []net.Conn
	for range 100 {
		c, err := net.Dial("unix", filepath.Join(s.data, "dts.sock"))
		if err != nil {
			break
		}
		idle = append(idle, c)
	}
	refused := 0
	for until := time.Now().Add(2500 * time.Millisecond); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		made, err := s.api.CreateTask(ctx, api.TaskRequest{Spec: httpSpec(slow.URL + "/"), Delay: "1s"})
		cancel()
		if err != nil {
			refused++
			continue
		}
		ids = append(ids, made.Item.ID)
	}
	pid := s.process.Pid
	for _, c := range idle {
		c.Close()
	}
	calm := time.Now()
	s.eventually(20*time.Second, "everything to end", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		n, err := s.api.Counts(ctx)
		return err == nil && n.Pending+n.Running == 0
	})
	t.Logf("everything had ended %d ms after the pressure was off", time.Since(calm).Milliseconds())
	reasons := map[string]int{}
	failed := 0
	for _, id := range ids {
		task, err := s.api.Task(t.Context(), id)
		if err != nil || task.Status != dts.Success {
			t.Errorf("task %s: %+v, %v", id, task, err)
			continue
		}
		attempts, err := s.api.Attempts(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range attempts {
			if a.State != dts.AttemptSuccess {
				failed++
				reasons[strings.ReplaceAll(a.Error, slow.Listener.Addr().String(), "H")]++
			}
		}
	}
	t.Logf("%d tasks, %d requests refused, %d attempts failed: %v", len(ids), refused, failed, reasons)
	for reason := range reasons {
		if !strings.Contains(reason, "out of file descriptors") && !strings.Contains(reason, "out of processes, memory or files") {
			t.Errorf("an attempt failed with %q", reason)
		}
	}
	if failed == 0 {
		t.Error("no attempt failed: the limit was not reached")
	}
	mu.Lock()
	for n, times := range calls {
		if times != 1 {
			t.Errorf("task %s, attempt %d: %d calls", n.task, n.attempt, times)
		}
	}
	mu.Unlock()
	if r, err := s.api.Ready(t.Context()); err != nil || !r.Ready || s.process.Pid != pid {
		t.Errorf("ready after the pressure: %+v, %v", r, err)
	}
	if code := s.stop(10 * time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
	checkIntegrity(t, s.database())
}
