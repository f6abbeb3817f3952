package main_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dts"
	"dts/web/api"
)

// smallDisk mounts a file system of size bytes in memory.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := mountSmall(t, dir, size); err != nil {
		t.Skipf("A FULL DISK IS NOT TESTED: %v", err)
	}
	return dir
}

// TestFullDisk fills the disk while tasks run: writes are refused, nothing that was acknowledged is lost, what
// runs is recorded later, and the server goes on by itself when there is room. The disk is large enough for the
// ballast, so that is used up too.
func TestFullDisk(t *testing.T) {
	disk := smallDisk(t, "160m")
	s := newServer(t, buildDTS(t), filepath.Join(disk, "data"))
	tg, runs := newTarget(t, 1), newRunLog(t)
	s.start()
	pid := s.process.Pid
	if _, err := os.Stat(filepath.Join(s.data, "ballast")); err != nil {
		t.Errorf("no ballast: %v", err)
	}
	want := map[string]string{} // what is acknowledged: path or command
	add := func(q api.TaskRequest, n int) {
		for range n {
			want[s.create(q).ID] = string(q.TargetType)
		}
	}
	add(api.TaskRequest{Spec: commandSpec(runs.argv("1", "none")...)}, 10)
	add(api.TaskRequest{Spec: httpSpec(tg.URL + "/slow")}, 10)
	add(api.TaskRequest{Spec: httpSpec(tg.URL + "/"), Delay: "1500ms"}, 10)
	s.awaitStarts(runs, 10)
	s.eventually(5*time.Second, "10 requests", func() bool { return len(tg.deliveries()) >= 10 })
	empty := fill(t, disk)

	// The ballast may let a few through before there is really no room.
	refusals := 0
	s.eventually(20*time.Second, "writes to be refused", func() bool {
		made, err := s.api.CreateTask(t.Context(), api.TaskRequest{Spec: func() dts.Spec {
			q := httpSpec(tg.URL + "/")
			q.Name = "on a full disk"
			return q
		}()})
		switch {
		case err == nil:
			want[made.Item.ID] = "HTTP_CALLBACK"
			refusals = 0
		case dts.CodeOf(err) == dts.ErrFull:
			refusals++
		default:
			t.Fatalf("a write on a full disk: %v", err)
		}
		return refusals == 10
	})
	if status := rawStatus(t, s, tg); status != http.StatusInsufficientStorage {
		t.Errorf("a write on a full disk is answered with %d; want 507", status)
	}
	s.eventually(10*time.Second, "the commands to end", func() bool {
		ends := 0
		for _, l := range runs.read(t) {
			if l.event == "end" {
				ends++
			}
		}
		return ends == 10
	})
	time.Sleep(2 * time.Second) // past the time of what was due on the full disk, and some tries to write
	if err := s.api.Health(t.Context()); err != nil {
		t.Errorf("health on a full disk: %v", err)
	}
	for id := range want {
		if _, err := s.api.Task(t.Context(), id); err != nil {
			t.Errorf("a read on a full disk: %v", err)
		}
	}
	if st, err := s.api.Status(t.Context()); err != nil || st.StoreError == "" {
		t.Errorf("the status on a full disk: %+v, %v; want a store error", st, err)
	}

	empty()
	room := time.Now()
	s.eventually(10*time.Second, "writes to be taken again", func() bool {
		made, err := s.api.CreateTask(t.Context(), api.TaskRequest{Spec: httpSpec(tg.URL + "/")})
		if err == nil {
			want[made.Item.ID] = "HTTP_CALLBACK"
		}
		return err == nil
	})
	t.Logf("writes were taken again %d ms after there was room", time.Since(room).Milliseconds())
	s.eventually(20*time.Second, "everything to end", func() bool {
		n, err := s.api.Counts(t.Context())
		return err == nil && n.Pending == 0 && n.Running == 0
	})
	t.Logf("everything had ended %d ms after there was room", time.Since(room).Milliseconds())
	if s.process.Pid != pid || s.stop(15*time.Second) != 0 {
		t.Errorf("the server did not live on and stop cleanly: exit code %d", s.state.ExitCode())
	}
	checkAfterFull(t, s, tg, runs, want)
}

// checkAfterFull checks that what was acknowledged ran once, and that there is nothing else.
func checkAfterFull(t *testing.T, s *testServer, tg *target, runs *runLog, want map[string]string) {
	t.Helper()
	db := s.database()
	checkIntegrity(t, db)
	ran := map[string]int{}
	for _, d := range tg.deliveries() {
		ran[d.run.task]++
	}
	for _, l := range runs.read(t) {
		if l.event == "start" {
			ran[l.run.task]++
		}
	}
	for id, n := range ran {
		if want[id] == "" || n != 1 {
			t.Errorf("task %s (%q) ran %d times", id, want[id], n)
		}
	}
	var stored int
	if err := db.QueryRow(`SELECT count(*) FROM tasks`).Scan(&stored); err != nil || stored != len(want) {
		t.Errorf("%d tasks are stored, %v; %d were acknowledged", stored, err, len(want))
	}
	for id := range want {
		var status string
		var attempts int
		err := db.QueryRow(`SELECT status, attempts FROM tasks WHERE task_id = ?`, id).Scan(&status, &attempts)
		if err != nil || status != string(dts.Success) || attempts != 1 {
			t.Errorf("task %s: %s after %d attempts, %v", id, status, attempts, err)
		}
	}
}

// rawStatus is the HTTP status that a new task is answered with.
func rawStatus(t *testing.T, s *testServer, tg *target) int {
	t.Helper()
	hc := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(s.data, "dts.sock"))
	}}}
	body := `{"target_type": "HTTP_CALLBACK", "target_config": {"url": "` + tg.URL + `/"}}`
	resp, err := hc.Post("http://dts/tasks", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}
