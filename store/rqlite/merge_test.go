package rqlite

import (
	"context"
	"slices"
	"testing"
	"time"

	"dts"
	"dts/store"
)

// spy is a backend that keeps what it is given.
type spy struct {
	store.Backend
	batch []store.Stmt
}

func (b *spy) Apply(_ context.Context, batch ...store.Stmt) ([]store.Result, error) {
	b.batch = slices.Clone(batch)
	return make([]store.Result, len(batch)), nil
}

func (b *spy) Close() error { return nil }

// texts returns a statement's that can be made one with its neighbours, and one's that is needed once.
func texts(t *testing.T) (many, once string) {
	b := &spy{}
	st := store.New(b, store.Options{})
	defer st.Close()
	k := &dts.Task{Spec: dts.Spec{TargetType: dts.Command, TargetConfig: []byte(`{"argv":["true"]}`)}, RunAt: time.Now()}
	if err := k.Normalize(time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := st.InsertTasks(t.Context(), dts.Fence{Terms: &dts.Terms{1}}, []*dts.Task{k}); err != nil {
		t.Fatal(err)
	}
	for _, s := range b.batch {
		if store.Many(s.SQL) != "" {
			many = s.SQL
		}
		if store.Once(s.SQL) {
			once = s.SQL
		}
	}
	if many == "" || once == "" {
		t.Fatalf("inserting a task makes %v", b.batch)
	}
	return many, once
}

// TestMerge: neighbours that do the same become one statement, what is asserted once is sent once, and each of the
// caller's statements still has a result, and a refusal its place where that is certain.
func TestMerge(t *testing.T) {
	many, once := texts(t)
	row := func(id string) store.Stmt { return store.Stmt{SQL: many, Args: []any{id, 1, nil, 2.5, true}} }
	holds := func(n int) store.Stmt { return store.Stmt{SQL: once, Args: []any{n}} }
	other := store.Stmt{SQL: "DELETE FROM x WHERE id = ?", Args: []any{"<&\u2028>"}}

	m := merge([]store.Stmt{holds(1), row("a"), row("b"), holds(1), row("c"), holds(2), row("d"), other, other})
	want := []struct {
		sql  string
		args []any
		at   int
	}{
		{once, []any{1}, 0},
		{store.Many(many), []any{`[["a",1,null,2.5,true],["b",1,null,2.5,true],["c",1,null,2.5,true]]`}, 1},
		{once, []any{2}, 5},
		{many, row("d").Args, 6},
		{other.SQL, other.Args, 7},
		{other.SQL, other.Args, 8},
	}
	if len(m.stmts) != len(want) {
		t.Fatalf("%d statements: %v", len(m.stmts), m.stmts)
	}
	for i, w := range want {
		if m.stmts[i].SQL != w.sql || !slices.Equal(m.stmts[i].Args, w.args) || m.first[i] != w.at {
			t.Errorf("statement %d is %.40s %v, of %d; want %.40s %v, of %d", i, m.stmts[i].SQL, m.stmts[i].Args, m.first[i], w.sql, w.args, w.at)
		}
	}
	rows := []int64{0, 3, 0, 1, 2, 0}
	var got []int64
	for _, r := range m.results(func(i int) int64 { return rows[i] }) {
		got = append(got, r.RowsAffected)
	}
	if w := []int64{0, 3, 0, 0, 0, 0, 1, 2, 0}; !slices.Equal(got, w) {
		t.Errorf("rows affected %v, want %v", got, w)
	}
	var at []int
	for i := -1; i <= len(m.stmts); i++ {
		at = append(at, m.index(i))
	}
	if w := []int{-1, 0, -1, 5, 6, 7, 8, -1}; !slices.Equal(at, w) {
		t.Errorf("refused at %v, want %v", at, w)
	}
}
