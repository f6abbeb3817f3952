package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dts"
	"dts/store"
)

func TestBatch(t *testing.T) {
	st, _, f := open(t)
	id, other := dts.NewID(now), dts.NewID(now)
	ended := now.Add(time.Hour)
	var all []*dts.Task
	for i, s := range []dts.Status{dts.Pending, dts.Success, dts.Success, dts.Failed, dts.Cancelled, dts.Skipped} {
		all = append(all, task(t, func(k *dts.Task) { k.BatchID, k.CreatedAt = id, now.Add(time.Duration(i)*time.Second) }))
		all[i].Status = s
	}
	insert(t, st, all...)
	insert(t, st, task(t, func(k *dts.Task) { k.BatchID = other }), task(t, nil))
	set := func(k *dts.Task, s dts.Status, at time.Time) {
		t.Helper()
		old, err := st.Task(ctx, k.TenantID, k.ID)
		if err != nil {
			t.Fatal(err)
		}
		n := *old
		n.Status, n.CompletedAt = s, at
		if err := st.Change(ctx, f, []dts.Change{{Old: old, New: &n}}, now); err != nil {
			t.Fatal(err)
		}
	}
	for i, k := range all[1:] {
		set(k, k.Status, ended.Add(-time.Duration(i)*time.Minute))
	}
	want := dts.Batch{ID: id, Total: 6, Pending: 1, Success: 2, Failed: 1, Cancelled: 1, Skipped: 1, CreatedAt: all[0].CreatedAt}
	if b, err := st.Batch(ctx, dts.DefaultTenant, id); err != nil || *b != want {
		t.Errorf("%+v, %v; want %+v", b, err, want)
	}
	set(all[0], dts.Cancelled, ended)
	want.Pending, want.Cancelled, want.Done, want.CompletedAt = 0, 2, true, ended
	if b, err := st.Batch(ctx, dts.DefaultTenant, id); err != nil || *b != want {
		t.Errorf("%+v, %v; want %+v", b, err, want)
	}
	for tenant, id := range map[string]string{"another": id, dts.DefaultTenant: dts.NewID(now)} {
		if _, err := st.Batch(ctx, tenant, id); dts.CodeOf(err) != dts.ErrNotFound {
			t.Errorf("%v", err)
		}
	}
}

// TestTaskFilters: each field selects what it says, in lists, in counts, and beside others.
func TestTaskFilters(t *testing.T) {
	st, db, f := open(t)
	batch := dts.NewID(now)
	plain := task(t, func(k *dts.Task) { k.Name = "plain" })
	odd := task(t, func(k *dts.Task) { k.Name, k.Labels = "50%_off\\x", map[string]string{"a": "b"} })
	keyed := task(t, func(k *dts.Task) {
		k.Name, k.DedupeKey, k.ConcurrencyKey, k.ConcurrencyLimit, k.BatchID = "50", "d", "c", 1, batch
	})
	paused := task(t, func(k *dts.Task) { k.Name = "paused" })
	failed := task(t, func(k *dts.Task) { k.Name = "failed" })
	all := []*dts.Task{plain, odd, keyed, paused, failed}
	insert(t, st, all...)
	change := func(k *dts.Task, edit func(*dts.Task)) {
		t.Helper()
		old, err := st.Task(ctx, k.TenantID, k.ID)
		if err != nil {
			t.Fatal(err)
		}
		n := *old
		edit(&n)
		if err := st.Change(ctx, f, []dts.Change{{Old: old, New: &n}}, now); err != nil {
			t.Fatal(err)
		}
	}
	change(paused, func(n *dts.Task) { n.WaitsFor, n.RunAt = dts.ReasonPaused, now.Add(dts.FutureAllowed) })
	change(keyed, func(n *dts.Task) { n.WaitsFor, n.RunAt = dts.ReasonConcurrency, now.Add(time.Hour) })
	change(failed, func(n *dts.Task) {
		n.Status, n.LastError, n.CompletedAt = dts.Failed, `answered 503: 100% of "Ärger_" \ here`, now.Add(time.Minute)
	})
	for _, tt := range []struct {
		f    dts.TaskFilter
		want string
	}{
		{dts.TaskFilter{}, "failed paused 50 50%_off\\x plain"},
		{dts.TaskFilter{NamePrefix: "50"}, "50 50%_off\\x"},
		{dts.TaskFilter{NamePrefix: "50%_"}, "50%_off\\x"},
		{dts.TaskFilter{NamePrefix: "P"}, ""},
		{dts.TaskFilter{Error: "ANSWERED 5"}, "failed"},
		{dts.TaskFilter{Error: `100% of "Ärger_" \`}, "failed"},
		{dts.TaskFilter{Error: "1%0"}, ""},
		{dts.TaskFilter{Error: "answered_503"}, ""},
		{dts.TaskFilter{DedupeKey: "d"}, "50"},
		{dts.TaskFilter{ConcurrencyKey: "c"}, "50"},
		{dts.TaskFilter{ConcurrencyKey: "d"}, ""},
		{dts.TaskFilter{BatchID: batch}, "50"},
		{dts.TaskFilter{BatchID: batch, Name: "plain"}, ""},
		{dts.TaskFilter{WaitsFor: dts.ReasonPaused}, "paused"},
		{dts.TaskFilter{WaitsFor: dts.ReasonConcurrency}, "50"},
		{dts.TaskFilter{WaitsFor: dts.ReasonConcurrency, BatchID: batch}, "50"},
		{dts.TaskFilter{NotPaused: true, Statuses: []dts.Status{dts.Pending}}, "50 50%_off\\x plain"},
		{dts.TaskFilter{From: now, To: now.Add(time.Minute)}, "failed paused 50%_off\\x plain"},
		{dts.TaskFilter{EndedBefore: now.Add(time.Minute)}, ""},
		{dts.TaskFilter{EndedBefore: now.Add(2 * time.Minute), Statuses: []dts.Status{dts.Failed}}, "failed"},
		{dts.TaskFilter{Labels: map[string]string{"a": "b"}}, "50%_off\\x"},
		{dts.TaskFilter{IDs: []string{plain.ID, paused.ID, dts.NewID(now)}}, "paused plain"},
		{dts.TaskFilter{IDs: []string{plain.ID, paused.ID}, NotPaused: true}, "plain"},
		{dts.TaskFilter{TenantID: "another"}, ""},
	} {
		if tt.f.TenantID == "" {
			tt.f.TenantID = dts.DefaultTenant
		}
		tt.f.Limit = 10
		page, err := st.Tasks(ctx, tt.f)
		var got []string
		for _, k := range page.Items {
			got = append(got, k.Name)
		}
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("%+v: %q, %v; want %q", tt.f, got, err, tt.want)
		}
		if n, err := st.CountTasks(ctx, tt.f); err != nil || n != len(strings.Fields(tt.want)) {
			t.Errorf("%+v: counted %d, %v", tt.f, n, err)
		}
	}
	// It has started since, and waits for its second attempt: nothing but its time keeps it.
	if _, err := db.Apply(ctx, store.Stmt{SQL: `UPDATE tasks SET attempts = 1, next_attempt_at = run_at WHERE task_id = ?`, Args: []any{keyed.ID}}); err != nil {
		t.Fatal(err)
	}
	if n, err := st.CountTasks(ctx, dts.TaskFilter{TenantID: dts.DefaultTenant, WaitsFor: dts.ReasonConcurrency}); err != nil || n != 0 {
		t.Errorf("%d, %v", n, err)
	}
}

// TestCountManyTasks: a count goes through as many windows as it needs.
func TestCountManyTasks(t *testing.T) {
	db := openSQLite(t)
	st := store.New(db, store.Options{})
	defer st.Close()
	batch := dts.NewID(now)
	_, err := db.Apply(ctx, store.Stmt{SQL: `INSERT INTO tasks (task_id, tenant_id, shard, status, priority, queue, name, scheduled_at, due_at, run_at, term, attempts,
			max_attempts, unresolved_dependencies_count, step, plan_version, moved, created_at, created_by, target_type, target_config, spec, batch_id, completed_at)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 45000)
		SELECT 't' || i, ?1, 3, CASE WHEN i % 3 = 0 THEN 'FAILED' ELSE 'PENDING' END, 1, 'q' || (i % 2), 'n', 1, 2, 3, 0, 0,
			3, 0, '', 0, 0, 1, 'me', 'COMMAND', '{}', '', CASE WHEN i % 2 = 0 THEN ?2 END, CASE WHEN i % 3 = 0 THEN 5 END FROM n`,
		Args: []any{dts.DefaultTenant, batch}}, store.Stmt{SQL: `DELETE FROM tasks WHERE seq BETWEEN 10000 AND 34999`})
	if err != nil {
		t.Fatal(err)
	}
	left := 0
	for i := 1; i <= 45000; i++ {
		if i < 10000 || i > 34999 {
			left++
		}
	}
	for i, want := range []int{left, left / 2, left / 3, left / 2} {
		f := []dts.TaskFilter{{}, {Queue: "q1"}, {Statuses: []dts.Status{dts.Failed}}, {BatchID: batch}}[i]
		f.TenantID = dts.DefaultTenant
		if n, err := st.CountTasks(ctx, f); err != nil || n < want-1 || n > want+1 {
			t.Errorf("%+v: %d, %v; want %d", f, n, err, want)
		}
	}
}

// TestBatchesAreFound: nothing but the index finds the tasks of a batch, and those that are paused.
func TestBatchesAreFound(t *testing.T) {
	db := &asked{Backend: openSQLite(t)}
	st := store.New(db, store.Options{})
	defer st.Close()
	for _, f := range []func() error{
		func() error { _, err := st.CountTasks(ctx, dts.TaskFilter{TenantID: "t", BatchID: "b"}); return err },
		func() error {
			_, err := st.Tasks(ctx, dts.TaskFilter{TenantID: "t", BatchID: "b", Limit: 1})
			return err
		},
		func() error {
			_, err := st.Tasks(ctx, dts.TaskFilter{TenantID: "t", WaitsFor: dts.ReasonPaused, Limit: 1})
			return err
		},
		func() error {
			if _, err := st.Batch(ctx, "t", "b"); dts.CodeOf(err) != dts.ErrNotFound {
				return fmt.Errorf("a batch that never was: %w", err)
			}
			return nil
		},
	} {
		db.queries = nil
		if err := f(); err != nil {
			t.Fatal(err)
		}
		for _, q := range db.queries {
			plan := explain(t, db.Backend, q)
			if !strings.Contains(plan, "tasks_batch") && !strings.Contains(plan, "tasks_waiting") || strings.Contains(plan, "SCAN tasks") {
				t.Errorf("%s:\n%s", q.SQL, plan)
			}
		}
	}
}

func explain(t *testing.T, db store.Backend, q store.Stmt) string {
	t.Helper()
	rows, err := db.Query(ctx, store.OwnWrites, store.Stmt{SQL: "EXPLAIN QUERY PLAN " + q.SQL, Args: q.Args})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var b strings.Builder
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		b.WriteString(step + "\n")
	}
	return b.String()
}
