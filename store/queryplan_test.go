package store_test

import (
	"context"
	"strings"
	"testing"

	"dts"
	"dts/store"
)

// asked is a backend that keeps the queries that it is asked.
type asked struct {
	store.Backend
	queries []store.Stmt
}

func (a *asked) Query(ctx context.Context, level store.Level, s store.Stmt) (store.Rows, error) {
	a.queries = append(a.queries, s)
	return a.Backend.Query(ctx, level, s)
}

// TestLedgersAreNotSearched: what the planner and the loop ask of a recurring task costs the same however long its
// ledger is.
func TestLedgersAreNotSearched(t *testing.T) {
	db := &asked{Backend: openSQLite(t)}
	st := store.New(db, store.Options{})
	defer st.Close()
	for name, ask := range map[string]func() error{
		"Planned":        func() error { _, err := st.Planned(ctx, "r"); return err },
		"ActiveRuns":     func() error { _, err := st.ActiveRuns(ctx, "r"); return err },
		"ActiveOrInLine": func() error { _, err := st.ActiveOrInLine(ctx, "r"); return err },
		"RecurringByID":  func() error { _, err := st.RecurringByID(ctx, []string{"r"}); return err },
		"PlanDue":        func() error { _, _, err := st.PlanDue(ctx, dts.AllShards, now, 10); return err },
		"Replans":        func() error { _, err := st.Replans(ctx, dts.AllShards, now, 10); return err },
		"Expired":        func() error { _, err := st.Expired(ctx, dts.AllShards, now, 0, 10); return err },
		"Unfinished":     func() error { _, err := st.Unfinished(ctx, dts.DefaultTenant, "d"); return err },
		"RunsUnderWay":   func() error { _, err := st.RunsUnderWay(ctx, dts.DefaultTenant, 10); return err },
		"RunProgress":    func() error { _, err := st.RunProgress(ctx, dts.DefaultTenant, []string{"r"}); return err },
		"Waiting":        func() error { _, err := st.Waiting(ctx, dts.AllShards, dts.ReasonBlackout, 0, 10); return err },
	} {
		db.queries = nil
		if err := ask(); err != nil {
			t.Fatal(err)
		}
		for _, q := range db.queries {
			rows, err := db.Backend.Query(ctx, store.OwnWrites, store.Stmt{SQL: "EXPLAIN QUERY PLAN " + q.SQL, Args: q.Args})
			if err != nil {
				t.Fatal(err)
			}
			for rows.Next() {
				var id, parent, unused int
				var step string
				if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
					t.Fatal(err)
				}
				if strings.Contains(step, "tasks_occurrence") || strings.HasPrefix(step, "SCAN tasks") {
					t.Errorf("%s: %s", name, step)
				}
			}
			if err := rows.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestWhatIsDueIsFoundByItsTime: whatever queues are asked for.
func TestWhatIsDueIsFoundByItsTime(t *testing.T) {
	db := &asked{Backend: openSQLite(t)}
	st := store.New(db, store.Options{})
	defer st.Close()
	some := []dts.QueueKey{{TenantID: dts.DefaultTenant, Name: "q"}}
	for _, queues := range []dts.QueueChoice{{}, {Only: some}, {Except: some}} {
		db.queries = nil
		if _, err := st.LoadDue(ctx, dts.AllShards, queues, dts.Mark{RunAt: now}, now, 10); err != nil {
			t.Fatal(err)
		}
		q := db.queries[0]
		rows, err := db.Backend.Query(ctx, store.OwnWrites, store.Stmt{SQL: "EXPLAIN QUERY PLAN " + q.SQL, Args: q.Args})
		if err != nil {
			t.Fatal(err)
		}
		plan := ""
		for rows.Next() {
			var id, parent, unused int
			var step string
			if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
				t.Fatal(err)
			}
			plan += step + "\n"
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(plan, "tasks USING INDEX tasks_due (") || strings.Contains(plan, "TEMP B-TREE FOR ORDER") || strings.Contains(plan, "CORRELATED") {
			t.Errorf("%+v:\n%s", queues, plan)
		}
	}
}
