package main_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"dts"
	"dts/web/api"
)

// create adds a task.
func (s *testServer) create(q api.TaskRequest) *dts.Task {
	s.t.Helper()
	made, err := s.api.CreateTask(s.t.Context(), q)
	if err != nil {
		s.t.Fatal(err)
	}
	return made.Item
}

// awaitStarts waits until the commands' log shows n starts.
func (s *testServer) awaitStarts(runs *runLog, n int) {
	s.t.Helper()
	s.eventually(10*time.Second, fmt.Sprintf("%d commands to start", n), func() bool {
		started := 0
		for _, l := range runs.read(s.t) {
			if l.event == "start" {
				started++
			}
		}
		return started >= n
	})
}

// TestDrain stops a server while a command and a request run: both end by themselves and are recorded. A second
// signal does not wait.
func TestDrain(t *testing.T) {
	s := newServer(t, buildDTS(t), filepath.Join(t.TempDir(), "data"))
	tg, runs := newTarget(t, 1), newRunLog(t)
	s.start()
	command := s.create(api.TaskRequest{Spec: commandSpec(runs.argv("1", "none")...)})
	call := s.create(api.TaskRequest{Spec: httpSpec(tg.URL + "/slow")})
	later := s.create(api.TaskRequest{Spec: httpSpec(tg.URL + "/"), Delay: "1h"})
	s.awaitStarts(runs, 1)
	s.eventually(10*time.Second, "the request", func() bool { return len(tg.deliveries()) == 1 })

	begun := time.Now()
	if code := s.stop(10 * time.Second); code != 0 {
		t.Errorf("exit code %d after SIGTERM", code)
	}
	took := time.Since(begun)
	t.Logf("drained in %d ms", took.Milliseconds())
	if took < 500*time.Millisecond || took > 5*time.Second {
		t.Errorf("runs of a second were drained in %s", took)
	}
	db := s.database()
	checkIntegrity(t, db)
	for id, want := range map[string]string{command.ID: "SUCCESS 1", call.ID: "SUCCESS 1", later.ID: "PENDING 0"} {
		var status string
		var attempts int
		if err := db.QueryRow(`SELECT status, attempts FROM tasks WHERE task_id = ?`, id).Scan(&status, &attempts); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(status, " ", attempts); got != want {
			t.Errorf("task %s is %s; want %s", id, got, want)
		}
	}
	if lines := runs.read(t); len(lines) != 2 || lines[1].event != "end" {
		t.Errorf("the command logged %v", lines)
	}

	s.start()
	s.create(api.TaskRequest{Spec: commandSpec(runs.argv("60", "none")...)})
	s.awaitStarts(runs, 2)
	s.process.Signal(syscall.SIGTERM)
	first := time.Now()
	s.process.Signal(syscall.SIGTERM) // as timeout(1) does: that is one still
	s.eventually(5*time.Second, "the drain to begin", func() bool {
		r, err := s.api.Ready(t.Context())
		return err == nil && !r.Ready
	})
	time.Sleep(time.Until(first.Add(1100 * time.Millisecond)))
	if r, err := s.api.Ready(t.Context()); err != nil || r.Ready {
		t.Errorf("after two signals at once: %+v, %v; want it to drain still", r, err)
	}
	begun = time.Now()
	code := s.stop(5 * time.Second)
	if took := time.Since(begun); code != 128+int(syscall.SIGTERM) || took > time.Second {
		t.Errorf("a second SIGTERM: exit code %d after %s; want %d at once", code, took, 128+int(syscall.SIGTERM))
	}
}

// TestRestartSpeed stores 100,000 tasks for next month, kills the server, and looks how soon the next one fires
// what is due, and how much memory it takes.
func TestRestartSpeed(t *testing.T) {
	const tasks, limit = 100_000, 60 << 20
	s := newServer(t, buildDTS(t), filepath.Join(t.TempDir(), "data"))
	tg := newTarget(t, 1)
	s.start()
	begun := time.Now()
	list := make([]api.TaskRequest, dts.MaxBulk)
	month := begun.AddDate(0, 1, 0)
	for n := 0; n < tasks; n += len(list) {
		for i := range list {
			list[i] = api.TaskRequest{Spec: httpSpec(tg.URL + "/"), RunAt: api.At(month.Add(time.Duration(n+i) * time.Second))}
		}
		if _, err := s.api.CreateTasks(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d tasks stored in %d ms", tasks, time.Since(begun).Milliseconds())
	if runtime.GOOS == "linux" {
		t.Logf("resident after that: %.1f MB, at most %.1f MB", megabytes(s.residentBytes("VmRSS")), megabytes(s.residentBytes("VmHWM")))
	}
	first := s.create(api.TaskRequest{Spec: httpSpec(tg.URL + "/"), Delay: "500ms"})
	s.kill()
	time.Sleep(time.Until(first.RunAt)) // due when the next server starts

	s.start()
	ready := time.Since(s.started)
	s.eventually(10*time.Second, "the task that is due", func() bool { return len(tg.deliveries()) > 0 })
	d := tg.deliveries()[0]
	fired := d.at.Sub(s.started)
	t.Logf("ready %d ms after the start of the process, the first task at its target after %d ms", ready.Milliseconds(), fired.Milliseconds())
	if d.run.task != first.ID || fired > time.Second {
		t.Errorf("task %s fired %s after the start; want %s within a second", d.run.task, fired, first.ID)
	}
	if n, err := s.api.Counts(t.Context()); err != nil || !n.Capped {
		t.Errorf("counts: %+v, %v; want more pending than are counted", n, err)
	}
	if runtime.GOOS != "linux" {
		t.Log("RESIDENT MEMORY IS NOT CHECKED: there is no /proc on this system")
		return
	}
	var most int64
	for range 20 { // while what the start does in the background goes on
		time.Sleep(100 * time.Millisecond)
		most = max(most, s.residentBytes("VmRSS"))
	}
	t.Logf("resident with %d tasks pending: %.1f MB, at most %.1f MB", tasks, megabytes(s.residentBytes("VmRSS")), megabytes(s.residentBytes("VmHWM")))
	if most > limit {
		t.Errorf("%.1f MB resident with %d tasks pending; want at most %.1f", megabytes(most), tasks, megabytes(limit))
	}
	if len(tg.deliveries()) != 1 {
		t.Errorf("the target got %d requests; want 1", len(tg.deliveries()))
	}
}

func megabytes(n int64) float64 { return float64(n) / (1 << 20) }
