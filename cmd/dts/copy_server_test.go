package main_test

import (
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dts"
	"dts/store/rqlite/rqlitetest"
	"dts/web/api"
)

// TestCopyServer moves a killed server's work to another database, and lets a server go on with it there: what ran is
// ended as LOST and runs again, and all else is as it was.
func TestCopyServer(t *testing.T) {
	t.Parallel()
	bin := buildDTS(t)
	old := newServer(t, bin, filepath.Join(t.TempDir(), "old"))
	old.start()
	running, err := old.api.CreateTask(t.Context(), api.TaskRequest{Spec: commandSpec("sleep", "300")})
	if err != nil {
		t.Fatal(err)
	}
	done, err := old.api.CreateTask(t.Context(), api.TaskRequest{Spec: commandSpec("echo", "é", "$HOME")})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		q := api.TaskRequest{Spec: httpSpec("http://127.0.0.1:9/"), Delay: "48h", IdempotencyKey: dts.NewID(time.Now())}
		if _, err := old.api.CreateTask(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	hourly, err := old.api.CreateRecurring(t.Context(), api.RecurringRequest{Spec: commandSpec("true"), Cron: "@hourly"})
	if err != nil {
		t.Fatal(err)
	}
	old.eventually(20*time.Second, "one to run, one to be done", func() bool {
		attempts, err := old.api.Attempts(t.Context(), running.Item.ID)
		task, taskErr := old.api.Task(t.Context(), done.Item.ID)
		return err == nil && len(attempts) == 1 && taskErr == nil && task.Status == dts.Success
	})
	want, err := old.tasksOf()
	if err != nil {
		t.Fatal(err)
	}
	delete(want, running.Item.ID)
	old.kill()
	for name, there := range map[string]func(t *testing.T, data string) (to string, args []string){
		"sqlite": func(_ *testing.T, data string) (string, []string) { return "sqlite:" + data, nil },
		"rqlite": func(t *testing.T, _ string) (string, []string) {
			url := rqlitetest.Start(t, rqlitetest.Options{}).URLs()[0]
			return "rqlite:" + url, []string{"--rqlite", url, "--advertise", "http://127.0.0.1:1"} // nobody else is there to call it
		},
	} {
		t.Run(name, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "new")
			to, args := there(t, data)
			if out, err := exec.Command(bin, "copy", "--from", "sqlite:"+old.data, "--to", to).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			s := newServer(t, bin, data, args...)
			s.start()
			var attempts []*dts.Attempt
			s.eventually(20*time.Second, "the task to run again", func() bool {
				attempts, err = s.api.Attempts(t.Context(), running.Item.ID)
				return err == nil && len(attempts) == 2
			})
			if attempts[0].State != dts.AttemptLost || attempts[1].State != dts.AttemptRunning || attempts[1].Node == attempts[0].Node {
				t.Errorf("the attempts are %+v and %+v", *attempts[0], *attempts[1])
			}
			got, err := s.tasksOf()
			if err != nil {
				t.Fatal(err)
			}
			delete(got, running.Item.ID)
			if !maps.Equal(got, want) {
				t.Errorf("%d tasks, want %d as they were:\n%v\n%v", len(got), len(want), got, want)
			}
			out, err := s.api.Output(t.Context(), done.Item.ID, 1)
			if err != nil || strings.TrimSpace(out.Head) != "é $HOME" {
				t.Errorf("the output is %+v, %v", out, err)
			}
			next, err := s.api.Upcoming(t.Context(), hourly.Item.ID, 10)
			if err != nil || len(next) < 5 || !slices.IsSortedFunc(next, func(a, b *dts.Task) int { return a.DueAt.Compare(b.DueAt) }) {
				t.Errorf("upcoming are %d, %v", len(next), err)
			}
			if _, err := s.api.DoTask(t.Context(), running.Item.ID, dts.Cancel); err != nil {
				t.Error(err)
			}
			// While the server runs there is no copying from there; afterwards there is, at once.
			copyBack := func() ([]byte, error) {
				return exec.Command(bin, "copy", "--from", to, "--to", "sqlite:"+filepath.Join(filepath.Dir(data), "back")).CombinedOutput()
			}
			if out, err := copyBack(); err == nil || !strings.Contains(string(out), "stop ") {
				t.Errorf("%v: %s", err, out)
			}
			if code := s.stop(20 * time.Second); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if out, err := copyBack(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
