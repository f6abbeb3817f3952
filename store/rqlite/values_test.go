package rqlite

import (
	"database/sql"
	"math"
	"strings"
	"testing"
	"time"

	"dts/store"
	"dts/store/rqlite/rqlitetest"
)

// TestBlobLookalikes: rqlite takes a text like x'00' for a blob; it arrives as text nevertheless, wherever the
// parameter stands.
func TestBlobLookalikes(t *testing.T) {
	c := rqlitetest.Start(t, rqlitetest.Options{})
	d := openTest(t, Options{URLs: c.URLs()})
	for i, s := range []string{"x'00'", "X'C3BC'", "x''", " x'00' ", "\tx'ab'\n", "x'0'", "x'zz'", "x'Grüße'", "x'00' and more", `x"00"`, "'"} {
		id := int64(i)
		mustApply(t, d, store.Stmt{SQL: `INSERT INTO t (id, s) SELECT ?2, ?1 WHERE ?1 = ?3 /* ? */ -- ?
			AND '?' = '?'`, Args: []any{s, id, s}})
		if got := value[string](t, d, `SELECT s FROM t WHERE s = ? AND id = ?`, s, id); got != s {
			t.Errorf("%q came back as %q", s, got)
		}
		if kind := value[string](t, d, `SELECT typeof(s) FROM t WHERE id = ?`, id); kind != "text" {
			t.Errorf("%q was stored as %s", s, kind)
		}
	}
}

// TestScan: values arrive as from database/sql.
func TestScan(t *testing.T) {
	c := rqlitetest.Start(t, rqlitetest.Options{})
	d := openTest(t, Options{URLs: c.URLs()})
	type name string
	type count int
	rows, err := d.Query(t.Context(), store.Stale, store.Stmt{SQL: `SELECT 'n', 7, 7.0, 1e300, NULL, 1, 'é', 9007199254740991, 0.1, NULL, NULL`})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var (
		n     name
		k     count
		f     float64
		huge  any
		null  sql.NullString
		flag  bool
		bytes []byte
		big   int64
		tenth float64
		ptr   *int64
		v     any = 1
	)
	if !rows.Next() {
		t.Fatal(rows.Err())
	}
	if err := rows.Scan(&n, &k, &f, &huge, &null, &flag, &bytes, &big, &tenth, &ptr, &v); err != nil {
		t.Fatal(err)
	}
	if n != "n" || k != 7 || f != 7 || huge != 1e300 || null.Valid || !flag || string(bytes) != "é" ||
		big != maxExact-1 || tenth != 0.1 || ptr != nil || v != nil {
		t.Error(n, k, f, huge, null, flag, bytes, big, tenth, ptr, v)
	}
	for _, q := range []string{`SELECT 9007199254740992`, `SELECT NULL`, `SELECT 'x'`} {
		rows, err := d.Query(t.Context(), store.Stale, store.Stmt{SQL: q})
		if err == nil {
			var n int64
			if rows.Next() && rows.Scan(&n) == nil {
				t.Errorf("%s gave %d", q, n)
			}
			rows.Close()
		}
	}
}

// TestRefusedStatements: what rqlite would not roll back, or not store as it is, does not reach it.
func TestRefusedStatements(t *testing.T) {
	for want, s := range map[string]store.Stmt{
		"RETURNING":       {SQL: "INSERT INTO t (id) VALUES (1)\n\tReturning id"},
		"empty statement": {SQL: " \n"},
		"finite number":   {SQL: `SELECT ?`, Args: []any{math.NaN()}},
		"finite":          {SQL: `SELECT ?`, Args: []any{math.Inf(-1)}},
		"[]uint8":         {SQL: `SELECT ?`, Args: []any{[]byte("x")}},
		"time.Time":       {SQL: `SELECT ?`, Args: []any{time.Now()}},
		"uint64":          {SQL: `SELECT ?`, Args: []any{uint64(1)}},
	} {
		if err := checkBatch([]store.Stmt{{SQL: `SELECT 1`}, s}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "statement 1") {
			t.Errorf("want a refusal of statement 1 with %q: %v", want, err)
		}
	}
}

func TestCastParams(t *testing.T) {
	for _, tt := range []struct {
		sql  string
		cast []int
		want string
	}{
		{`VALUES (?,?,?)`, []int{2}, `VALUES (?,CAST(? AS TEXT),?)`},
		{`VALUES (?1, ?2, ?1)`, []int{1}, `VALUES (CAST(?1 AS TEXT), ?2, CAST(?1 AS TEXT))`},
		{`VALUES (?2, ?, ?)`, []int{3}, `VALUES (?2, CAST(? AS TEXT), ?)`},
		{`SELECT '?''?', "?""?", [?], ` + "`?`" + `, ? -- ?` + "\n" + `/* ? */ , ?`, []int{2}, `SELECT '?''?', "?""?", [?], ` + "`?`" + `, ? -- ?` + "\n" + `/* ? */ , CAST(? AS TEXT)`},
		{`SELECT '?`, []int{1}, `SELECT '?`},
		{``, []int{1}, ``},
	} {
		numbers := map[int]bool{}
		for _, n := range tt.cast {
			numbers[n] = true
		}
		if got := castParams(tt.sql, numbers); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.sql, got, tt.want)
		}
	}
}

func FuzzCastParams(f *testing.F) {
	f.Add(`SELECT '?''?', "?", ?1 -- ?`, 1)
	f.Add(`/* ? */ ?, ?3, [?`, 3)
	f.Fuzz(func(t *testing.T, sql string, n int) {
		if got := castParams(sql, nil); got != sql {
			t.Errorf("%q became %q", sql, got)
		}
		got := castParams(sql, map[int]bool{n: true})
		if back := strings.ReplaceAll(strings.ReplaceAll(got, "CAST(", ""), " AS TEXT)", ""); !strings.Contains(sql, "CAST(") && !strings.Contains(sql, " AS TEXT)") && back != sql {
			t.Errorf("%q became %q", sql, got)
		}
	})
}
