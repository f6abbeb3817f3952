// Package storetest is the conformance suite that every store.Backend passes unchanged. It promises
// that a backend which passes can carry package store: atomic batches, asserts in SQL, group commit,
// outcomes that are unknown and are resolved by sending the same batch again.
package storetest

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"dts/store"
)

// Harness is one fresh, empty database and what the suite must be able to do to it.
type Harness struct {
	Backend store.Backend

	// FailNextCommit makes the next commit of Backend report a failure as a broken disk or network
	// would: after it took effect, or before and without effect.
	FailNextCommit func(tookEffect bool)

	// Reopen closes Backend and opens the same database again. The test closes what it returns.
	Reopen func(t *testing.T) store.Backend
}

// Run runs the suite. open is called once for each test and registers its own cleanup; Backend may be
// closed by the test before that.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	tests := []struct {
		name string
		f    func(*testing.T, Harness)
	}{
		{"Atomicity", testAtomicity},
		{"Assert", testAssert},
		{"BadStatements", testBadStatements},
		{"Results", testResults},
		{"Values", testValues},
		{"ScanNull", testScanNull},
		{"ReadLevels", testReadLevels},
		{"QueryCannotWrite", testQueryCannotWrite},
		{"TotalOrder", testTotalOrder},
		{"ManyStatements", testManyStatements},
		{"ConcurrentWriters", testConcurrentWriters},
		{"ReplayOfTheSameBatch", testReplay},
		{"FailedCommit", testFailedCommit},
		{"FailedCommitInGroup", testFailedCommitInGroup},
		{"GroupRefusal", testGroupRefusal},
		{"GroupMany", testGroupMany},
		{"Context", testContext},
		{"Durable", testDurable},
		{"CheckAndMaintain", testCheckAndMaintain},
		{"CloseWhileBusy", testCloseWhileBusy},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := open(t)
			apply(t, h.Backend,
				store.Stmt{SQL: `CREATE TABLE suite_thing (id TEXT PRIMARY KEY, n INTEGER, s TEXT, f REAL, b BLOB)`},
				store.Stmt{SQL: `CREATE TABLE suite_assert (ok INTEGER NOT NULL)`})
			tt.f(t, h)
		})
	}
}

const (
	sqlInsert = `INSERT INTO suite_thing (id, n) VALUES (?, ?)`
	sqlOnce   = `INSERT INTO suite_thing (id, n) VALUES (?, ?) ON CONFLICT (id) DO NOTHING`
	sqlCount  = `SELECT count(*) FROM suite_thing`
	sqlN      = `SELECT n FROM suite_thing WHERE id = ?`
)

// assertN refuses the batch unless the row has this n.
func assertN(id string, n int64) store.Stmt {
	return store.Stmt{SQL: `INSERT INTO suite_assert (ok) SELECT NULL
		WHERE NOT EXISTS (SELECT 1 FROM suite_thing WHERE id = ? AND n = ?)`, Args: []any{id, n}}
}

func insert(id string, n int64) store.Stmt { return store.Stmt{SQL: sqlInsert, Args: []any{id, n}} }
func once(id string, n int64) store.Stmt   { return store.Stmt{SQL: sqlOnce, Args: []any{id, n}} }

func apply(t *testing.T, b store.Backend, batch ...store.Stmt) []store.Result {
	t.Helper()
	res, err := b.Apply(t.Context(), batch...)
	if err != nil {
		t.Fatalf("apply: %v", err)
	}
	if len(res) != len(batch) {
		t.Fatalf("%d results for %d statements", len(res), len(batch))
	}
	return res
}

// number answers a query of one integer; ok is false without a row.
func number(t *testing.T, b store.Backend, level store.Level, sql string, args ...any) (n int64, ok bool) {
	t.Helper()
	rows, err := b.Query(t.Context(), level, store.Stmt{SQL: sql, Args: args})
	if err != nil {
		t.Fatalf("query %s: %v", sql, err)
	}
	defer rows.Close()
	if rows.Next() {
		ok = true
		if err := rows.Scan(&n); err != nil {
			t.Fatalf("scan %s: %v", sql, err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("query %s: %v", sql, err)
	}
	return n, ok
}

func wantCount(t *testing.T, b store.Backend, want int64) {
	t.Helper()
	if n, _ := number(t, b, store.Linearizable, sqlCount); n != want {
		t.Errorf("%d rows, want %d", n, want)
	}
}

// wantRefused wants a refusal, and where the backend says which statement it was, the right one.
func wantRefused(t *testing.T, err error, index int) {
	t.Helper()
	var r *store.RefusedError
	switch {
	case !errors.Is(err, store.ErrRefused) || !errors.As(err, &r):
		t.Errorf("err = %v, want a *RefusedError", err)
	case errors.Is(err, store.ErrUnknown) || errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrFull):
		t.Errorf("err = %v matches more than ErrRefused", err)
	case r.Index != index && r.Index != -1:
		t.Errorf("refused at %d, want %d or -1", r.Index, index)
	}
}

func testAtomicity(t *testing.T, h Harness) {
	apply(t, h.Backend, insert("taken", 1))
	for at := range 3 {
		batch := []store.Stmt{insert("a", 1), insert("b", 2), insert("c", 3)}
		batch[at] = insert("taken", 9)
		_, err := h.Backend.Apply(t.Context(), batch...)
		wantRefused(t, err, at)
		wantCount(t, h.Backend, 1)
	}
	apply(t, h.Backend, insert("a", 1), insert("b", 2), insert("c", 3))
	wantCount(t, h.Backend, 4)
}

func testAssert(t *testing.T, h Harness) {
	apply(t, h.Backend, insert("x", 1))
	set := store.Stmt{SQL: `UPDATE suite_thing SET n = 2 WHERE id = ? AND n = 1`, Args: []any{"x"}}
	apply(t, h.Backend, assertN("x", 1), set)
	_, err := h.Backend.Apply(t.Context(), insert("y", 1), assertN("x", 1), set)
	wantRefused(t, err, 1)
	wantCount(t, h.Backend, 1)
	// An assert sees the statements before it in its own batch.
	apply(t, h.Backend, insert("z", 5), assertN("z", 5))
	if n, _ := number(t, h.Backend, store.OwnWrites, `SELECT count(*) FROM suite_assert`); n != 0 {
		t.Errorf("asserts left %d rows", n)
	}
}

func testBadStatements(t *testing.T, h Harness) {
	for _, bad := range []store.Stmt{
		{SQL: `INSERT INTO no_such_table (id) VALUES (?)`, Args: []any{"x"}},
		{SQL: `THIS IS NOT SQL`},
		{SQL: sqlInsert, Args: []any{"blob", []byte("x")}},
		{SQL: sqlInsert, Args: []any{"time", time.Now()}},
		{SQL: sqlInsert, Args: []any{"missing"}},
		{SQL: `INSERT INTO suite_thing (id, n) VALUES (?, json_extract('{', '$.x'))`, Args: []any{"json"}},
	} {
		_, err := h.Backend.Apply(t.Context(), insert("a", 1), bad, insert("b", 1))
		wantRefused(t, err, 1)
		wantCount(t, h.Backend, 0)
	}
	if rows, err := h.Backend.Query(t.Context(), store.Stale, store.Stmt{SQL: `SELECT * FROM no_such_table`}); err == nil {
		rows.Close()
		t.Error("a query of a missing table succeeded")
	}
	if res, err := h.Backend.Apply(t.Context()); err != nil || len(res) != 0 {
		t.Errorf("empty batch: %v, %v", res, err)
	}
	apply(t, h.Backend, insert("a", 1)) // and nothing is stuck
}

func testResults(t *testing.T, h Harness) {
	apply(t, h.Backend, insert("a", 1), insert("b", 1), insert("c", 2))
	res := apply(t, h.Backend,
		store.Stmt{SQL: `UPDATE suite_thing SET n = 7 WHERE n = ?`, Args: []any{1}},
		once("a", 1),
		assertN("a", 7),
		store.Stmt{SQL: `DELETE FROM suite_thing WHERE n = ?`, Args: []any{int64(2)}})
	want := []store.Result{{RowsAffected: 2}, {}, {}, {RowsAffected: 1}}
	for i := range want {
		if res[i] != want[i] {
			t.Errorf("statement %d: %+v, want %+v", i, res[i], want[i])
		}
	}
}

func testValues(t *testing.T, h Harness) {
	b := h.Backend
	const insertAll = `INSERT INTO suite_thing (id, n, s, f, b) VALUES (?, ?, ?, ?, unhex(?))`
	// Integers up to 2^53, which Unix microseconds stay within until the year 2255.
	for i, n := range []int64{0, 1, -1, 1_800_000_000_123_457, -1_800_000_000_123_457, 1<<53 - 1, -(1<<53 - 1)} {
		id := fmt.Sprint("int", i)
		apply(t, b, store.Stmt{SQL: insertAll, Args: []any{id, n, nil, nil, nil}})
		if got, ok := number(t, b, store.OwnWrites, sqlN, id); !ok || got != n {
			t.Errorf("integer %d came back as %d", n, got)
		}
	}
	for i, s := range []string{"", "plain", "Grüße, 世界 🕰️", "a'b\"c`d;--", "line\nfeed\ttab\r", "\u202e\u200b\ufeff", strings.Repeat("long ", 20_000), "1234", "1e5", "null", "true"} {
		id := fmt.Sprint("text", i)
		apply(t, b, store.Stmt{SQL: insertAll, Args: []any{id, nil, s, nil, nil}})
		var got string
		one(t, b, `SELECT s FROM suite_thing WHERE id = ?`, []any{id}, &got)
		if got != s {
			t.Errorf("text %.40q came back as %.40q", s, got)
		}
	}
	for i, f := range []float64{0, -0.5, 1.0 / 3, 1e300, math.SmallestNonzeroFloat64, 3} {
		id := fmt.Sprint("real", i)
		apply(t, b, store.Stmt{SQL: insertAll, Args: []any{id, nil, nil, f, nil}})
		var got float64
		one(t, b, `SELECT f FROM suite_thing WHERE id = ?`, []any{id}, &got)
		if got != f {
			t.Errorf("real %v came back as %v", f, got)
		}
	}
	// Blobs travel as hex text, both ways, NUL bytes included.
	for i, hex := range []string{"", "00", "000102FF", "C3BC00C3", strings.Repeat("00FF", 50_000)} {
		id := fmt.Sprint("blob", i)
		apply(t, b, store.Stmt{SQL: insertAll, Args: []any{id, nil, nil, nil, hex}})
		var got, kind string
		var size int
		one(t, b, `SELECT hex(b), typeof(b), length(b) FROM suite_thing WHERE id = ?`, []any{id}, &got, &kind, &size)
		if got != hex || kind != "blob" || size != len(hex)/2 {
			t.Errorf("blob %.20s came back as %.20s, a %s of %d bytes", hex, got, kind, size)
		}
	}
	for i, v := range []bool{false, true} {
		id := fmt.Sprint("bool", i)
		apply(t, b, store.Stmt{SQL: insertAll, Args: []any{id, v, nil, nil, nil}})
		var got bool
		one(t, b, sqlN, []any{id}, &got)
		if n, _ := number(t, b, store.OwnWrites, sqlN, id); got != v || n != int64(i) {
			t.Errorf("bool %v came back as %v and %d", v, got, n)
		}
	}
}

func one(t *testing.T, b store.Backend, sql string, args []any, dest ...any) {
	t.Helper()
	rows, err := b.Query(t.Context(), store.OwnWrites, store.Stmt{SQL: sql, Args: args})
	if err != nil {
		t.Fatalf("query: %v", err)
	}
	defer rows.Close()
	if !rows.Next() {
		t.Fatalf("no row from %s %.40v: %v", sql, args, rows.Err())
	}
	if err := rows.Scan(dest...); err != nil {
		t.Fatalf("scan: %v", err)
	}
	if rows.Next() {
		t.Fatalf("more than one row from %s", sql)
	}
	if err := errors.Join(rows.Err(), rows.Close(), rows.Close()); err != nil {
		t.Fatal(err)
	}
}
