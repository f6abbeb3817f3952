package rqlite

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"dts/migrations"
	"dts/store"
	"dts/store/rqlite/rqlitetest"
	"dts/store/sqlite"
)

// TestMigrateAtOnce: of several programs that start at the same time, each finds the schema as it should be.
func TestMigrateAtOnce(t *testing.T) {
	c := rqlitetest.Start(t, rqlitetest.Options{})
	for range 4 {
		c.Clear()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				d, err := Open(context.Background(), Options{URLs: c.URLs(), Migrations: testMigrations(5)})
				if err != nil {
					t.Error(err)
					return
				}
				defer d.Close()
				if _, err := d.Apply(context.Background(), store.Stmt{SQL: `UPDATE t SET c5 = c4 WHERE c2 IS NULL`}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		d := openTest(t, Options{URLs: c.URLs(), Migrations: testMigrations(5)})
		if n := value[int64](t, d, `SELECT count(*) FROM rqlite_schema`); n != 6 {
			t.Errorf("%d versions are recorded, want 0 to 5", n)
		}
		d.Close()
	}
}

// TestMigrateFails: a migration that fails leaves nothing behind, and those before it stay.
func TestMigrateFails(t *testing.T) {
	c := rqlitetest.Start(t, rqlitetest.Options{})
	m := testMigrations(2)
	for name, bad := range map[string]string{
		"at its end":   "-- +goose Up\nCREATE TABLE u (id INTEGER) STRICT;\nINSERT INTO no_such_table (id) VALUES (1);\n",
		"in between":   "-- +goose Up\nCREATE TABLE u (id INTEGER) STRICT;\nTHIS IS NOT SQL;\nCREATE TABLE v (id INTEGER) STRICT;\n",
		"on a row":     "-- +goose Up\nCREATE TABLE u (id INTEGER NOT NULL) STRICT;\nINSERT INTO u (id) VALUES (NULL);\nCREATE TABLE v (id INTEGER) STRICT;\n",
		"of its style": "-- +goose NO TRANSACTION\n-- +goose Up\nCREATE TABLE u (id INTEGER) STRICT;\n",
	} {
		m["00003_bad.sql"] = &fstest.MapFile{Data: []byte(bad)}
		if d, err := Open(t.Context(), Options{URLs: c.URLs(), Migrations: m}); err == nil {
			d.Close()
			t.Errorf("%s: a bad migration succeeded", name)
		}
		d := openTest(t, Options{URLs: c.URLs(), Migrations: testMigrations(2)})
		if n := value[int64](t, d, `SELECT count(*) FROM sqlite_master WHERE name IN ('u', 'v')`); n != 0 {
			t.Errorf("%s: %d tables of a migration that failed are there", name, n)
		}
		mustApply(t, d, store.Stmt{SQL: `UPDATE t SET c2 = 'x'`})
	}
}

// TestNewerSchema: a program never writes to a schema that it does not know, whenever that came.
func TestNewerSchema(t *testing.T) {
	c := rqlitetest.Start(t, rqlitetest.Options{})
	before := openTest(t, Options{URLs: c.URLs(), Migrations: testMigrations(1)})
	mustApply(t, before, put(1, "a"))
	newer := openTest(t, Options{URLs: c.URLs(), Migrations: testMigrations(3)})
	mustApply(t, newer, put(2, "b"))
	if _, err := before.Apply(t.Context(), put(3, "c")); !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "a newer dts has changed the schema") {
		t.Errorf("the older program's write: %v", err)
	}
	if n := value[int64](t, newer, `SELECT count(*) FROM t`); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
	d, err := Open(t.Context(), Options{URLs: c.URLs(), Migrations: testMigrations(2)})
	if err == nil {
		d.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "the schema has version 3, and this program knows up to 2") {
		t.Errorf("opening it with an older program: %v", err)
	}
}

// TestSameSchema: the migrations make the same schema on SQLite and on rqlite.
func TestSameSchema(t *testing.T) {
	c := rqlitetest.Start(t, rqlitetest.Options{})
	d := openTest(t, Options{URLs: c.URLs(), Migrations: migrations.FS})
	s, err := sqlite.Open(t.Context(), t.TempDir()+"/dts.db", sqlite.Options{Migrations: migrations.FS})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	schema := func(b store.Backend) (list [][4]string) {
		rows, err := b.Query(t.Context(), store.Linearizable, store.Stmt{SQL: `SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master
			WHERE tbl_name NOT LIKE 'goose%' AND tbl_name NOT LIKE 'rqlite%' AND tbl_name <> 'sqlite_sequence' ORDER BY type, name`})
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var l [4]string
			if err := rows.Scan(&l[0], &l[1], &l[2], &l[3]); err != nil {
				t.Fatal(err)
			}
			list = append(list, l)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return list
	}
	want := schema(s)
	if diff := cmp.Diff(want, schema(d)); diff != "" || len(want) < 20 {
		t.Errorf("of %d things (-SQLite +rqlite):\n%s", len(want), diff)
	}
	// Defaults that are expressions, and triggers, are computed on each node for itself.
	for _, l := range want {
		if l[0] == "trigger" || strings.Contains(strings.ToUpper(l[3]), "DEFAULT (") || strings.Contains(strings.ToUpper(l[3]), "DEFAULT CURRENT") {
			t.Errorf("%s %s: replicas would differ: %s", l[0], l[1], l[3])
		}
	}
}
