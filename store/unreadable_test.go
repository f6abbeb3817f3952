package store_test

import (
	"strings"
	"testing"
	"time"

	"dts"
	"dts/store"
)

// TestUnreadable: a row that holds something else than JSON is read and listed all the same, keeps no other one from being
// read, found or told of its dependencies, and is left as it is by what changes its state.
func TestUnreadable(t *testing.T) {
	st, db, f := open(t)
	for _, column := range []string{"spec", "labels", "target_config"} {
		t.Run(column, func(t *testing.T) {
			queue := strings.ReplaceAll(column, "_", "-")
			bad := task(t, func(k *dts.Task) {
				k.Queue, k.Labels, k.Description, k.ConcurrencyKey = queue, map[string]string{"a": "b"}, "d", "k"
			})
			good := task(t, func(k *dts.Task) { k.Queue, k.Labels = queue, map[string]string{"a": "b"} })
			parent := task(t, nil)
			insert(t, st, parent)
			bad.DependsOn, bad.Unresolved = []dts.DependsOn{{TaskID: parent.ID, Type: dts.MustFinish}}, 1
			insert(t, st, bad, good)
			const junk = `{"broken`
			if _, err := db.Apply(ctx, store.Stmt{SQL: `UPDATE tasks SET ` + column + ` = ? WHERE task_id = ?`, Args: []any{junk, bad.ID}}); err != nil {
				t.Fatal(err)
			}
			for _, filter := range []dts.TaskFilter{{Queue: queue}, {Queue: queue, Labels: map[string]string{"a": "b"}}, {Queue: queue, ConcurrencyKey: "k"}} {
				filter.TenantID, filter.Limit = dts.DefaultTenant, 10
				if _, err := st.Tasks(ctx, filter); err != nil {
					t.Errorf("list by %+v: %v", filter, err)
				}
			}
			page, err := st.Tasks(ctx, dts.TaskFilter{TenantID: dts.DefaultTenant, Queue: queue, Limit: 10})
			if err != nil || len(page.Items) != 2 {
				t.Fatalf("%d of 2 tasks are listed, %v", len(page.Items), err)
			}
			if _, err := st.PendingOnce(ctx, dts.DefaultTenant, now.Add(-time.Hour), now.Add(time.Hour), 10); err != nil {
				t.Error(err)
			}
			// Its parent ends: it is told, as others are.
			ended := *parent
			ended.Status, ended.CompletedAt = dts.Cancelled, now
			if err := st.Change(ctx, f, []dts.Change{{Old: parent, New: &ended}}, now); err != nil {
				t.Fatal(err)
			}
			list, err := st.Load(ctx, []string{bad.ID, good.ID})
			if err != nil || len(list) != 2 {
				t.Fatalf("%d of 2 tasks are loaded, %v", len(list), err)
			}
			read, err := st.Task(ctx, dts.DefaultTenant, bad.ID)
			if err != nil || !strings.Contains(read.Unreadable, column) || !strings.Contains(read.Unreadable, "cannot be read") || read.LastError != read.Unreadable {
				t.Fatalf("%q, %q, %v", read.Unreadable, read.LastError, err)
			}
			n := *read
			n.Status, n.CompletedAt = dts.Failed, now
			if err := st.Change(ctx, f, []dts.Change{{Old: read, New: &n}}, now); err != nil {
				t.Fatal(err)
			}
			rows, err := db.Query(ctx, store.OwnWrites, store.Stmt{SQL: `SELECT ` + column + `, status FROM tasks WHERE task_id = ?`, Args: []any{bad.ID}})
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			var got, status string
			for rows.Next() {
				if err := rows.Scan(&got, &status); err != nil {
					t.Fatal(err)
				}
			}
			if got != junk || status != "FAILED" {
				t.Errorf("afterwards it is %s with %q", status, got)
			}
			if err := st.Change(ctx, f, []dts.Change{{Old: &n}}, now); err != nil { // and it can be deleted
				t.Error(err)
			}
		})
	}
}
