package main_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"dts"
	"dts/migrations"
	"dts/web/api"
)

// oldTask is a task as an old version left it.
type oldTask struct {
	id, name, recurring, status string
	attempts                    int
	dueAt                       int64
}

// TestUpgrade starts the program on the database that each earlier schema's program left behind when it was killed.
// Everything is there, what ran is shown as it was, what was cut off is made good, and what is due fires.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../testdata/databases/v*.sql")
	if err != nil || len(files) == 0 || filepath.Base(files[0]) != "v1.sql" {
		t.Fatalf("the old databases are %v, %v; the first one is missing", files, err)
	}
	bin := buildDTS(t)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".sql")
		version, err := strconv.ParseInt(name[1:], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upgrade(t, bin, file, version)
		})
	}
}

// upgrade starts the program on one old database.
func upgrade(t *testing.T, bin, file string, version int64) {
	data := filepath.Join(t.TempDir(), "data")
	before := loadOld(t, file, filepath.Join(data, "dts.db"), version)
	s := newServer(t, bin, data, "--keep", "3650d", "--keep-rows", "1000000") // nothing of the old history goes
	s.start()

	latest, err := migrations.Latest()
	if err != nil {
		t.Fatal(err)
	}
	copied := fmt.Sprintf("%s/dts.db.before-v%d", data, version+1)
	if _, err := os.Stat(copied); (err == nil) != (version < latest) {
		t.Errorf("a copy from before the schema's version %d: %v", version+1, err)
	}
	ids := map[string]string{} // of tasks, by name
	recurring := map[string]string{}
	for _, old := range before {
		if old.recurring != "" {
			recurring[old.name] = old.recurring
		} else {
			ids[old.name] = old.id
		}
		s.sameAsBefore(t, old)
	}
	s.checkHistory(t, ids)
	s.checkCutOff(t, ids)
	s.checkSchedules(t, recurring)
	for _, old := range before { // a workflow's run that was cut off goes on to its end
		if old.name == "chain" && old.status == "PENDING" && old.attempts > 0 {
			s.eventually(30*time.Second, "the run of chain to end", func() bool {
				got, err := s.api.Task(t.Context(), old.id)
				return err == nil && got.Status == dts.Success
			})
		}
	}

	// What an old version has promised for a key holds.
	q := api.TaskRequest{Spec: commandSpec("echo", "other"), IdempotencyKey: "order-1"}
	if _, err := s.api.CreateTask(t.Context(), q); dts.CodeOf(err) != dts.ErrConflict {
		t.Errorf("another task under a key that an old version has seen: %v, want %s", err, dts.ErrConflict)
	}
	if code := s.stop(20 * time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
	var check string
	if err := s.database().QueryRow("PRAGMA integrity_check").Scan(&check); err != nil || check != "ok" {
		t.Errorf("integrity_check: %q, %v", check, err)
	}
}

// loadOld makes a database from a dump, checks its version, and returns its tasks.
func loadOld(t *testing.T, dump, path string, version int64) []oldTask {
	t.Helper()
	text, err := os.ReadFile(dump)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; " + string(text)); err != nil {
		t.Fatalf("%s: %v", dump, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	var got int64
	if err := db.QueryRow("SELECT max(version_id) FROM goose_db_version").Scan(&got); err != nil || got != version {
		t.Fatalf("%s has schema version %d, %v", dump, got, err)
	}
	rows, err := db.Query("SELECT task_id, name, coalesce(recurring_task_id, ''), status, attempts, due_at FROM tasks")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var list []oldTask
	for rows.Next() {
		var o oldTask
		if err := rows.Scan(&o.id, &o.name, &o.recurring, &o.status, &o.attempts, &o.dueAt); err != nil {
			t.Fatal(err)
		}
		list = append(list, o)
	}
	if err := rows.Err(); err != nil || len(list) < 40 {
		t.Fatalf("%s has %d tasks, want at least 40; %v", dump, len(list), err)
	}
	return list
}

// sameAsBefore: a task that had ended is as it was, and any other is there, unless it was one of a schedule whose turn
// was missed: then the ledger says so.
func (s *testServer) sameAsBefore(t *testing.T, old oldTask) {
	t.Helper()
	got, err := s.api.Task(t.Context(), old.id)
	ended := old.status != "PENDING" && old.status != "RUNNING"
	switch {
	case err != nil && dts.CodeOf(err) == dts.ErrNotFound && old.recurring != "" && old.status == "PENDING":
		why, err := s.api.WhyInstant(t.Context(), old.recurring, time.UnixMicro(old.dueAt))
		if err != nil || why.Skip == nil {
			t.Errorf("%s at %s is not there, and nothing says why: %v", old.name, time.UnixMicro(old.dueAt).UTC(), err)
		}
	case err != nil:
		t.Errorf("%s (%s) is not there: %v", old.name, old.status, err)
	case ended && (string(got.Status) != old.status || got.Attempts != old.attempts):
		t.Errorf("%s is %s after %d attempts; it was %s after %d", old.name, got.Status, got.Attempts, old.status, old.attempts)
	case ended && got.Attempts > 0 && got.TargetType != dts.WorkflowRun: // a workflow's run makes no attempts of its own
		if list, err := s.api.Attempts(t.Context(), old.id); err != nil || len(list) != old.attempts {
			t.Errorf("%s has %d attempts on record, want %d; %v", old.name, len(list), old.attempts, err)
		}
	}
}

// checkHistory: outputs, codes and reasons are shown as they were, and what is far ahead stays there.
func (s *testServer) checkHistory(t *testing.T, ids map[string]string) {
	t.Helper()
	if out, err := s.api.Output(t.Context(), ids["done"], 1); err != nil || out.Head != "héllo from an old version\n" {
		t.Errorf("the output of done is %+v, %v", out, err)
	}
	task := func(name string) *dts.Task {
		got, err := s.api.Task(t.Context(), ids[name])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return got
	}
	if got := task("done"); got.Description != "one line of output" || got.Labels["team"] != "ops" || len(got.TargetConfig) == 0 {
		t.Errorf("done has lost what it was given: %+v", got)
	}
	if got := task("failed"); got.ExitCode == nil || *got.ExitCode != 7 {
		t.Errorf("failed has exit code %v, want 7", got.ExitCode)
	}
	if got := task("url"); got.ResponseStatus != 200 {
		t.Errorf("url has status %d, want 200", got.ResponseStatus)
	}
	if got := task("expired"); got.SkipReason != dts.ReasonExpired {
		t.Errorf("expired was skipped for %q", got.SkipReason)
	}
	at := time.Date(2090, 1, 1, 12, 0, 0, 0, time.UTC)
	if got := task("later"); !got.RunAt.Equal(at) || got.Status != dts.Pending || got.Queue != "reports" || got.Priority != dts.High {
		t.Errorf("later is %+v", got)
	}
}

// checkCutOff: what was due fires, what ran when the old server was killed runs again or fails, as it asks.
func (s *testServer) checkCutOff(t *testing.T, ids map[string]string) {
	t.Helper()
	ends := func(name string, status dts.Status, states ...dts.AttemptState) {
		t.Helper()
		s.eventually(30*time.Second, name+" to end", func() bool {
			got, err := s.api.Task(t.Context(), ids[name])
			return err == nil && got.Status == status
		})
		list, err := s.api.Attempts(t.Context(), ids[name])
		if err != nil || len(list) != len(states) {
			t.Fatalf("%s has %d attempts, want %v; %v", name, len(list), states, err)
		}
		for i, a := range list {
			if a.State != states[i] {
				t.Errorf("attempt %d of %s is %s, want %s", a.Number, name, a.State, states[i])
			}
		}
	}
	ends("soon", dts.Success, dts.AttemptSuccess)
	ends("running", dts.Success, dts.AttemptLost, dts.AttemptSuccess)
	ends("once", dts.Failed, dts.AttemptLost)
	s.eventually(30*time.Second, "the second attempt of what is tried again", func() bool {
		list, err := s.api.Attempts(t.Context(), ids["retrying"])
		return err == nil && len(list) >= 2 && list[1].State == dts.AttemptFailed
	})
}

// checkSchedules: recurring tasks go on, and what was paused stays so.
func (s *testServer) checkSchedules(t *testing.T, ids map[string]string) {
	t.Helper()
	names := []string{"tick", "slow"}
	if ids["chain"] != "" { // a workflow, which version 8 is the first to have here
		names = append(names, "chain")
	}
	for _, name := range names {
		s.eventually(30*time.Second, name+" to go on", func() bool {
			ledger, err := s.api.Occurrences(t.Context(), ids[name], "", 20)
			if err != nil {
				return false
			}
			for _, o := range ledger.Items {
				if o.Task != nil && o.Task.Status == dts.Success && o.Task.StartedAt.After(s.started) {
					return true
				}
			}
			return false
		})
	}
	r, err := s.api.RecurringTask(t.Context(), ids["hourly"])
	if err != nil || r.Status != dts.Paused || r.PauseNote != "until the disk is replaced" {
		t.Errorf("hourly is %+v, %v", r, err)
	}
	next, err := s.api.Upcoming(t.Context(), ids["nightly"], 5)
	if err != nil || len(next) < 5 {
		t.Errorf("of nightly %d runs are planned, %v", len(next), err)
	}
	for _, task := range next {
		berlin, err := time.LoadLocation("Europe/Berlin")
		if err != nil {
			t.Fatal(err)
		}
		if at := task.DueAt.In(berlin).Format("15:04"); at != "02:30" || task.DueAt.Before(time.Now()) {
			t.Errorf("nightly is to run at %s", task.DueAt.In(berlin))
		}
	}
}

// TestDowngrade: dts serve refuses a schema that is newer than the program, says what to do, and changes nothing.
func TestDowngrade(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	path := filepath.Join(data, "dts.db")
	loadOld(t, "../../testdata/databases/v1.sql", path, 1)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)"); err != nil {
		t.Fatal(err)
	}
	db.Close()
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t, buildDTS(t), data)
	s.launch()
	if code := s.exitCode(20 * time.Second); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	latest, err := migrations.Latest()
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("the schema has version 9999, and this program knows up to %d: a newer dts wrote it; use that one, or restore a backup made before version %d", latest, latest+1)
	if log := s.log(); !strings.Contains(log, want) {
		t.Errorf("it says\n%s\nwant %s", log, want)
	}
	after, err := os.ReadFile(path)
	if err != nil || string(after) != string(before) {
		t.Errorf("the database was changed; %v", err)
	}
}
