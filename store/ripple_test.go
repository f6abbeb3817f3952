package store_test

import (
	"context"
	"strings"
	"testing"

	"dts"
	"dts/store"
)

// TestRipplesReadLittle: what a batch that ends tasks asks of those that depend on them costs the same however many tasks
// there are.
func TestRipplesReadLittle(t *testing.T) {
	db := &applied{Backend: openSQLite(t)}
	st := store.New(db, store.Options{})
	defer st.Close()
	k := newFamily(t, st, begin(t, st, "n1"))
	k.make("a", nil)
	db.batch = nil
	k.make("b", nil, "a")
	k.make("c", nil)
	if err := k.depend("c", "b"); err != nil {
		t.Fatal(err)
	}
	k.end(dts.Success, "a")
	k.do("a", func(n *dts.Task) { n.Status = dts.Failed })
	k.do("a", retried)
	k.settle()
	for _, q := range db.batch {
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
			for _, table := range []string{"tasks", "t", "p", "dependencies", "d", "e"} {
				if step == "SCAN "+table || strings.HasPrefix(step, "SCAN "+table+" ") {
					t.Errorf("%s: %s", step, q.SQL)
				}
			}
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// applied is a backend that keeps what it is given to write.
type applied struct {
	store.Backend
	batch []store.Stmt
}

func (a *applied) Apply(ctx context.Context, batch ...store.Stmt) ([]store.Result, error) {
	a.batch = append(a.batch, batch...)
	return a.Backend.Apply(ctx, batch...)
}

// TestRippleIsOneBatch: the end of a task tells all that depend on it in a batch of as many statements as for one, and a chain
// is told in as few batches as it takes.
func TestRippleIsOneBatch(t *testing.T) {
	db := &applied{Backend: openSQLite(t)}
	st := store.New(db, store.Options{})
	defer st.Close()
	k := newFamily(t, st, begin(t, st, "n1"))
	statements := func(f func()) int {
		db.batch = nil
		f()
		return len(db.batch)
	}
	k.make("p", nil)
	k.make("child", nil, "p")
	one := statements(func() { k.end(dts.Success, "p") })
	k.make("q", nil)
	var wide []*dts.Task
	for range 2000 {
		wide = append(wide, task(t, func(n *dts.Task) { n.DependsOn = k.edges("q") }))
	}
	if _, err := st.InsertTasks(ctx, k.f, wide); err != nil {
		t.Fatal(err)
	}
	many := statements(func() { k.end(dts.Failed, "q") })
	last, err := st.Task(ctx, dts.DefaultTenant, wide[len(wide)-1].ID)
	if err != nil || last.Status != dts.Skipped || many != one {
		t.Errorf("%d statements for one, %d for 2000: %s, %v", one, many, last.Status, err)
	}
	k.make("r", nil)
	deep := []*dts.Task{task(t, func(n *dts.Task) { n.DependsOn = k.edges("r") })}
	for range 1000 {
		deep = append(deep, task(t, func(n *dts.Task) { n.DependsOn = []dts.DependsOn{{TaskID: deep[len(deep)-1].ID}} }))
	}
	if _, err := st.InsertTasks(ctx, k.f, deep); err != nil {
		t.Fatal(err)
	}
	k.end(dts.Failed, "r")
	batches := 0
	for more := true; more; batches++ {
		if more, err = st.Cascade(ctx, k.f, k.later()); err != nil {
			t.Fatal(err)
		}
	}
	if batches > 8 {
		t.Errorf("%d batches for a chain of 1000", batches)
	}
	last, err = st.Task(ctx, dts.DefaultTenant, deep[len(deep)-1].ID)
	if err != nil || last.Status != dts.Skipped {
		t.Errorf("%v, %v", last, err)
	}
}
