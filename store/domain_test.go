package store_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"dts"
	"dts/migrations"
	"dts/store"
	"dts/store/sqlite"
)

var ctx = context.Background()

func open(t *testing.T) (*store.Store, *sqlite.DB, dts.Fence) {
	t.Helper()
	db, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "dts.db"), sqlite.Options{Migrations: migrations.FS})
	if err != nil {
		t.Fatal(err)
	}
	st := store.New(db, store.Options{})
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	f, err := st.Begin(ctx, dts.Node{ID: "n1", StartedAt: now, SeenAt: now})
	if err != nil {
		t.Fatal(err)
	}
	return st, db, f
}

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func task(t *testing.T, edit func(*dts.Task)) *dts.Task {
	t.Helper()
	k := &dts.Task{Spec: dts.Spec{TargetType: dts.Command, TargetConfig: []byte(`{"argv":["true"]}`)}, RunAt: now}
	if edit != nil {
		edit(k)
	}
	if err := k.Normalize(now); err != nil {
		t.Fatal(err)
	}
	return k
}

func insert(t *testing.T, st *store.Store, tasks ...*dts.Task) {
	t.Helper()
	if _, err := st.InsertTasks(ctx, dts.Fence{}, tasks); err != nil {
		t.Fatal(err)
	}
}

func TestEveryTableCarriesTheTenant(t *testing.T) {
	_, db, _ := open(t)
	rows, err := db.Query(ctx, store.OwnWrites, store.Stmt{SQL: `SELECT m.name FROM sqlite_master AS m WHERE m.type = 'table'
		AND m.name NOT LIKE 'goose%' AND m.name NOT LIKE 'sqlite%'
		AND NOT EXISTS (SELECT 1 FROM pragma_table_info(m.name) AS c WHERE c.name = 'tenant_id')`})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		t.Errorf("table %s has no tenant_id", name)
	}
	if err := rows.Err(); err != nil {
		t.Error(err)
	}
}

// TestStaleClaims: what an older term claimed can neither be started nor ended by its holder any more.
func TestStaleClaims(t *testing.T) {
	st, _, old := open(t)
	k := task(t, nil)
	insert(t, st, k)
	claimed, err := st.Claim(ctx, old, []int{k.Shard}, []string{k.ID}, 7, now)
	if err != nil || len(claimed) != 1 {
		t.Fatalf("claimed %d, %v", len(claimed), err)
	}
	if again, err := st.Claim(ctx, old, []int{k.Shard}, []string{k.ID}, 8, now); err != nil || len(again) != 0 {
		t.Fatalf("claimed twice at one term: %d, %v", len(again), err)
	}
	f, err := st.Begin(ctx, dts.Node{ID: "n1", StartedAt: now, SeenAt: now})
	if err != nil {
		t.Fatal(err)
	}
	end := func(c *dts.Task) *dts.Record {
		after := *c
		after.Status, after.Attempts, after.CompletedAt = dts.Success, 1, now
		return &dts.Record{Task: c, After: &after, Attempt: dts.Attempt{TaskID: c.ID, TenantID: c.TenantID, Number: 1, State: dts.AttemptSuccess, StartedAt: now, CompletedAt: now}}
	}
	if err := st.Write(ctx, old, []*dts.Record{end(claimed[0])}); !errors.Is(err, store.ErrRefused) {
		t.Errorf("a write at the old term: %v, want a refusal", err)
	}
	if _, err := st.Claim(ctx, old, []int{k.Shard}, []string{k.ID}, 9, now); !errors.Is(err, store.ErrRefused) {
		t.Errorf("a claim at the old term: %v, want a refusal", err)
	}
	mine, err := st.Claim(ctx, f, []int{k.Shard}, []string{k.ID}, 10, now)
	if err != nil || len(mine) != 1 {
		t.Fatalf("the new term claimed %d, %v", len(mine), err)
	}
	// Even under the new fence, the old claim's token changes nothing.
	if err := st.Write(ctx, f, []*dts.Record{end(claimed[0])}); err != nil {
		t.Fatal(err)
	}
	if got, _ := st.Task(ctx, k.TenantID, k.ID); got.Status != dts.Pending || got.Attempts != 0 {
		t.Errorf("a stale attempt was accepted: %+v", got)
	}
	if list, _ := st.Attempts(ctx, k.TenantID, k.ID); len(list) != 0 {
		t.Errorf("a stale attempt was recorded: %+v", list[0])
	}
	// A record that is sent twice counts once.
	for range 2 {
		if err := st.Write(ctx, f, []*dts.Record{end(mine[0])}); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := st.Task(ctx, k.TenantID, k.ID); got.Status != dts.Success {
		t.Errorf("after its end: %+v", got)
	}
}

func TestListPages(t *testing.T) {
	st, _, _ := open(t)
	var tasks []*dts.Task
	for i := range 250 {
		tasks = append(tasks, task(t, func(k *dts.Task) {
			k.Name = fmt.Sprint("n", i)
			k.Queue = []string{"a", "b"}[i%2]
			k.Labels = map[string]string{"mod": fmt.Sprint(i % 5)}
			k.RunAt = now.Add(time.Duration(i) * time.Second)
			if i == 3 {
				k.TenantID = "other"
			}
		}))
	}
	insert(t, st, tasks...)
	count := func(f dts.TaskFilter) (n int) {
		f.TenantID, f.Limit = dts.DefaultTenant, 20
		seen := map[string]bool{}
		for {
			page, err := st.Tasks(ctx, f)
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range page.Items {
				if seen[k.ID] {
					t.Errorf("%s is on two pages", k.Name)
				}
				seen[k.ID] = true
			}
			if f.Cursor = page.Next; f.Cursor == "" {
				return len(seen)
			}
		}
	}
	for _, c := range []struct {
		name string
		f    dts.TaskFilter
		want int
	}{
		{"all of the tenant", dts.TaskFilter{}, 249},
		{"queue", dts.TaskFilter{Queue: "a"}, 125},
		{"label", dts.TaskFilter{Labels: map[string]string{"mod": "3"}}, 49},
		{"label and queue", dts.TaskFilter{Labels: map[string]string{"mod": "2"}, Queue: "b"}, 25},
		{"time", dts.TaskFilter{From: now.Add(10 * time.Second), To: now.Add(20 * time.Second)}, 10},
		{"name", dts.TaskFilter{Name: "n17"}, 1},
		{"status", dts.TaskFilter{Statuses: []dts.Status{dts.Pending}}, 249},
		{"rare status", dts.TaskFilter{Statuses: []dts.Status{dts.Failed}}, 0},
		{"ids", dts.TaskFilter{IDs: []string{tasks[0].ID, tasks[3].ID, tasks[9].ID, "none"}}, 2},
	} {
		if got := count(c.f); got != c.want {
			t.Errorf("%s: %d tasks, want %d", c.name, got, c.want)
		}
	}
	if _, err := st.Tasks(ctx, dts.TaskFilter{TenantID: dts.DefaultTenant, Limit: 10, Cursor: "!"}); dts.CodeOf(err) != dts.ErrInvalid {
		t.Errorf("a wrong cursor: %v", err)
	}
}

// TestRetention: retention never takes a task that has not ended, and takes the oldest first.
func TestRetention(t *testing.T) {
	st, _, f := open(t)
	var done []dts.Change
	var tasks []*dts.Task
	for i := range 30 {
		k := task(t, nil)
		tasks = append(tasks, k)
		if i >= 10 {
			n := *k
			n.Status, n.CompletedAt = dts.Cancelled, now.Add(time.Duration(i)*time.Hour)
			done = append(done, dts.Change{Old: k, New: &n})
		}
	}
	insert(t, st, tasks...)
	if err := st.Change(ctx, f, done, now); err != nil {
		t.Fatal(err)
	}
	left := func() int {
		page, err := st.Tasks(ctx, dts.TaskFilter{TenantID: dts.DefaultTenant, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		return len(page.Items)
	}
	if n, err := st.DeleteFinished(ctx, now.Add(15*time.Hour), 0, 100); err != nil || n != 5 || left() != 25 {
		t.Errorf("by age: %d deleted, %v, %d left", n, err, left())
	}
	if n, err := st.DeleteFinished(ctx, now, 7, 100); err != nil || n != 7 || left() != 18 {
		t.Errorf("by count: %d deleted, %v, %d left", n, err, left())
	}
	if n, err := st.DeleteFinished(ctx, now.Add(1000*time.Hour), 0, 100); err != nil || n != 8 || left() != 10 {
		t.Errorf("all: %d deleted, %v, %d left", n, err, left())
	}
}
