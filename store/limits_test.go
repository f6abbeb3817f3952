package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"dts"
	"dts/store"
)

// TestSlots: so many at once as the limit says, for each who wants to start by his own; a slot goes with the end of its
// attempt, however that comes, and what is sent twice counts once.
func TestSlots(t *testing.T) {
	db := openDB(t)
	st := store.New(db, store.Options{})
	t.Cleanup(func() { _ = st.Close() })
	f := begin(t, st, "n1")
	slots := func(limit int) []dts.Slot { return []dts.Slot{{Line: dts.KeyLine("k"), Limit: limit}} }
	line := dts.LineKey{TenantID: dts.DefaultTenant, Line: dts.KeyLine("k")}
	insert := func() *dts.Task {
		k := task(t, func(k *dts.Task) { k.ConcurrencyKey, k.ConcurrencyLimit = "k", 1 })
		if _, err := st.InsertTasks(ctx, f, []*dts.Task{k}); err != nil {
			t.Fatal(err)
		}
		return k
	}
	start := func(k *dts.Task, number, limit int) (string, error) {
		a := dts.Attempt{TaskID: k.ID, TenantID: k.TenantID, Number: number, State: dts.AttemptRunning, Node: "n1", StartedAt: now}
		return st.Start(ctx, f, &dts.Record{Task: k, Term: f.Term(k.Shard), Attempt: a}, slots(limit))
	}
	want := func(k *dts.Task, number, limit int, full string) {
		t.Helper()
		if got, err := start(k, number, limit); err != nil || got != full {
			t.Errorf("start: %q, %v; want %q", got, err, full)
		}
	}
	taken := func(n int) {
		t.Helper()
		if _, got, err := st.InLine(ctx, line, 1); err != nil || got != n {
			t.Errorf("%d slots are taken, %v; want %d", got, err, n)
		}
		if n, err := st.SweepSlots(ctx); err != nil || n != 0 {
			t.Errorf("%d slots were held by nothing, %v", n, err)
		}
	}
	a, b, c := insert(), insert(), insert()
	want(a, 1, 1, "")
	want(a, 1, 1, "")
	want(b, 1, 1, line.Line)
	want(b, 1, 2, "")
	want(a, 1, 1, "") // sent again, when another one with a higher limit has come
	want(c, 1, 2, line.Line)
	taken(2)
	if now, err := st.Task(ctx, a.TenantID, c.ID); err != nil || now.Status != dts.Pending {
		t.Errorf("what got no slot is %v, %v", now.Status, err)
	}
	end := func(k *dts.Task, number int, to dts.Status) {
		t.Helper()
		before, after := clone(k), clone(k)
		before.Attempts, after.Attempts, after.Status, after.CompletedAt = number-1, number, to, now.Add(time.Second)
		if to == dts.Pending {
			after.CompletedAt = time.Time{}
		}
		err := st.Write(ctx, f, []*dts.Record{{Task: before, Term: f.Term(k.Shard), Shown: true, Limited: true, After: after,
			Attempt: dts.Attempt{TaskID: k.ID, TenantID: k.TenantID, Number: number, State: dts.AttemptFailed, Node: "n1", StartedAt: now, CompletedAt: now}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	end(a, 1, dts.Pending)
	taken(1)
	end(b, 1, dts.Failed)
	taken(0)
	want(a, 2, 1, "")
	end(a, 1, dts.Pending) // late, and of the attempt before
	taken(1)
	if _, err := start(b, 1, 5); !errors.Is(err, store.ErrRefused) {
		t.Errorf("the start of what has ended: %v", err)
	}
	taken(1)
	apply(t, db, `INSERT INTO slots (tenant_id, line, task_id, number) VALUES ('default', 'key k', 'gone', 1), ('default', 'key k', ?, 7)`, c.ID)
	if n, err := st.SweepSlots(ctx); err != nil || n != 2 {
		t.Errorf("%d were swept, %v", n, err)
	}
	taken(1)
}

// TestLineIsIndexed: who is next in a line, and how many run, is found without looking at other tasks.
func TestLineIsIndexed(t *testing.T) {
	db := openDB(t)
	for sql, index := range map[string]string{
		`SELECT task_id FROM tasks WHERE tenant_id = ? AND line = ? AND status = 'PENDING' ORDER BY priority, due_at, seq LIMIT 1`: "tasks_line",
		`DELETE FROM slots WHERE task_id = ? AND number <= ?`:                                                                      "slots_task",
		`SELECT count(*) FROM slots WHERE tenant_id = ? AND line = ?`:                                                              "PRIMARY KEY",
	} {
		var plan []string
		rows, err := db.Query(ctx, store.OwnWrites, store.Stmt{SQL: `EXPLAIN QUERY PLAN ` + sql, Args: []any{"", ""}[:strings.Count(sql, "?")]})
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var a, b, c int
			var text string
			if err := rows.Scan(&a, &b, &c, &text); err != nil {
				t.Fatal(err)
			}
			plan = append(plan, text)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(plan, "; "); !strings.Contains(text, index) || strings.Contains(text, "TEMP B-TREE") || strings.Contains(text, "SCAN") {
			t.Errorf("%s: %s", sql, text)
		}
	}
}
