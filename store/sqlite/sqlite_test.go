package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"dts/migrations"
	"dts/store"
	"dts/store/storetest"
)

// testMigrations make what this package needs and a table t, in n versions.
func testMigrations(n int) fstest.MapFS {
	m := fstest.MapFS{"00001_init.sql": {Data: []byte(`-- +goose Up
CREATE TABLE applied_batch (id INTEGER NOT NULL PRIMARY KEY, tenant_id TEXT NOT NULL, token INTEGER NOT NULL) STRICT;
CREATE TABLE t (id INTEGER PRIMARY KEY, s TEXT) STRICT;
`)}}
	for v := 2; v <= n; v++ {
		m[fmt.Sprintf("%05d_more.sql", v)] = &fstest.MapFile{Data: fmt.Appendf(nil, "-- +goose Up\nALTER TABLE t ADD COLUMN c%d TEXT;\n", v)}
	}
	return m
}

func openTest(t testing.TB, path string, o Options) *DB {
	t.Helper()
	if o.Migrations == nil {
		o.Migrations = testMigrations(1)
	}
	d, err := Open(context.Background(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func testPath(t testing.TB) string { return filepath.Join(t.TempDir(), "a b?c#d%20é.db") }

func put(id int64, s string) store.Stmt {
	return store.Stmt{SQL: `INSERT INTO t (id, s) VALUES (?, ?) ON CONFLICT (id) DO NOTHING`, Args: []any{id, s}}
}

func mustApply(t testing.TB, d *DB, batch ...store.Stmt) {
	t.Helper()
	if _, err := d.Apply(t.Context(), batch...); err != nil {
		t.Fatal(err)
	}
}

// value answers a query of one value through the readers.
func value[T any](t testing.TB, d *DB, q string, args ...any) (v T) {
	t.Helper()
	rows, err := d.Query(t.Context(), store.OwnWrites, store.Stmt{SQL: q, Args: args})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	if !rows.Next() {
		t.Fatalf("%s: no row (%v)", q, rows.Err())
	}
	if err := rows.Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestConformance(t *testing.T) {
	for name, m := range map[string]fs.FS{"real schema": migrations.FS, "small schema": testMigrations(1)} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) storetest.Harness {
				path := testPath(t)
				d := openTest(t, path, Options{Migrations: m})
				return storetest.Harness{
					Backend:        d,
					FailNextCommit: func(tookEffect bool) { d.failNextCommit(tookEffect, errors.New("test: the disk failed")) },
					Reopen: func(t *testing.T) store.Backend {
						if err := d.Close(); err != nil {
							t.Error(err)
						}
						return openTest(t, path, Options{Migrations: m})
					},
				}
			})
		})
	}
}

// failNextCommit arms the hooks for one commit.
func (d *DB) failNextCommit(tookEffect bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	once := func(hook *func() error) func() error {
		return func() error { *hook = nil; return err }
	}
	if tookEffect {
		d.test.afterCommit = once(&d.test.afterCommit)
	} else {
		d.test.beforeCommit = once(&d.test.beforeCommit)
	}
}

func TestOpenSettings(t *testing.T) {
	path := testPath(t)
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	d := openTest(t, path, Options{})
	mustApply(t, d, put(1, "x"))
	for _, name := range []string{path, path + "-wal", path + "-shm", path + ".running"} {
		fi, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if fi.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", name, fi.Mode())
		}
	}
	check := func(who, pragma string, got, want int64) {
		if got != want {
			t.Errorf("%s: %s = %d, want %d", who, pragma, got, want)
		}
	}
	d.ckpt.mu.Lock() // its goroutine runs
	defer d.ckpt.mu.Unlock()
	ints := func(w *writer, pragma string) (n int64) {
		if err := w.ints("PRAGMA "+pragma, &n); err != nil {
			t.Fatal(pragma, err)
		}
		return n
	}
	for pragma, want := range map[string]int64{"auto_vacuum": 2, "synchronous": 2, "busy_timeout": 5000, "foreign_keys": 0,
		"temp_store": 2, "cache_size": -4096, "wal_autocheckpoint": 0, "journal_size_limit": walKeep} {
		check("writer", pragma, ints(d.w, pragma), want)
	}
	for pragma, want := range map[string]int64{"busy_timeout": checkpointWait.Milliseconds(), "synchronous": 2, "wal_autocheckpoint": 0} {
		check("checkpointer", pragma, ints(d.ckpt.w, pragma), want)
	}
	for pragma, want := range map[string]int64{"query_only": 1, "temp_store": 1, "busy_timeout": 5000, "cache_size": -1024} {
		check("reader", pragma, value[int64](t, d, "PRAGMA "+pragma), want)
	}
	if mode := value[string](t, d, "PRAGMA journal_mode"); mode != "wal" {
		t.Errorf("journal mode %q", mode)
	}
	if err := checkVersion(value[string](t, d, "SELECT sqlite_version()")); err != nil {
		t.Error(err)
	}
}

func TestVersionFloor(t *testing.T) {
	for v, ok := range map[string]bool{"3.51.3": true, "3.51.10": true, "3.52.0": true, "4.0": true, "3.54.1": true,
		"3.51.2": false, "3.51": false, "3.50.4": false, "2.99.99": false, "": false, "x.y": false} {
		if err := checkVersion(v); (err == nil) != ok {
			t.Errorf("%q: %v", v, err)
		}
	}
}

func TestMigrations(t *testing.T) {
	path := testPath(t)
	d := openTest(t, path, Options{})
	mustApply(t, d, put(1, "kept"))
	d.Close()
	if m, _ := filepath.Glob(filepath.Dir(path) + "/*before*"); len(m) != 0 {
		t.Errorf("a new database was copied: %v", m)
	}

	// A migration that fails leaves the schema as it was, and the copy.
	broken := testMigrations(3)
	broken["00004_broken.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\nCREATE TABLE half (x);\nINSERT INTO no_such_table VALUES (1);\n")}
	if _, err := Open(t.Context(), path, Options{Migrations: broken}); err == nil || !strings.Contains(err.Error(), "from version 1 to 4") {
		t.Errorf("err = %v, want a failed migration from 1 to 4", err)
	}
	d = openTest(t, path, Options{Migrations: testMigrations(3)})
	if d.Unclean() {
		t.Error("a failed Open counts as an unclean stop")
	}
	if got := value[string](t, d, `SELECT coalesce(c3, s) FROM t`); got != "kept" {
		t.Errorf("data after the migration: %q", got)
	}
	if n := value[int](t, d, `SELECT count(*) FROM sqlite_schema WHERE name = 'half'`); n != 0 {
		t.Error("half of a failed migration stayed")
	}
	d.Close()

	// The copy opens with the old program and has the old schema.
	copied := path + ".before-v2"
	fi, err := os.Stat(copied)
	if err != nil || fi.Mode().Perm() != 0o600 {
		t.Fatalf("the copy: %v, %v", fi, err)
	}
	d = openTest(t, copied, Options{})
	if got := value[string](t, d, `SELECT s FROM t`); got != "kept" {
		t.Errorf("data in the copy: %q", got)
	}
	d.Close()

	// An older program refuses the newer schema, and says which.
	_, err = Open(t.Context(), path, Options{Migrations: testMigrations(2)})
	if err == nil || !strings.Contains(err.Error(), "version 3") || !strings.Contains(err.Error(), "up to 2") {
		t.Errorf("err = %v, want both versions", err)
	}
	if _, err := os.Stat(path + ".running"); err == nil {
		t.Error("a refused Open left the running mark")
	}
}

func TestMigrationsLatest(t *testing.T) {
	n, err := migrations.Latest()
	if err != nil || n < 1 {
		t.Fatalf("latest = %d, %v", n, err)
	}
	d := openTest(t, testPath(t), Options{Migrations: migrations.FS})
	if got := value[int64](t, d, `SELECT max(version_id) FROM goose_db_version`); got != n {
		t.Errorf("the schema has version %d, Latest says %d", got, n)
	}
}

func TestRefusesWhatIsNoDatabase(t *testing.T) {
	path := testPath(t)
	if err := os.WriteFile(path, []byte(strings.Repeat("this is not a database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), path, Options{Migrations: testMigrations(1)})
	if err == nil || !strings.Contains(err.Error(), "not a database") || !strings.Contains(err.Error(), "restore") {
		t.Errorf("err = %v", err)
	}
	if _, err := Open(t.Context(), filepath.Join(t.TempDir(), "no", "dir"), Options{Migrations: testMigrations(1)}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing directory: %v", err)
	}
}

// TestUnknownOutcome: while the write connection cannot be opened again, the outcome is unknown, and
// the group finds it out by sending the batch again.
func TestUnknownOutcome(t *testing.T) {
	for _, tookEffect := range []bool{false, true} {
		d := openTest(t, testPath(t), Options{})
		d.failNextCommit(tookEffect, errors.New("test: the disk failed"))
		tries := 0
		d.test.reopen = func() error {
			if tries++; tries < 3 {
				return errors.New("test: cannot open")
			}
			return nil
		}
		if _, err := d.Apply(t.Context(), put(1, "x")); !errors.Is(err, store.ErrUnknown) {
			t.Errorf("err = %v, want unknown", err)
		}
		if _, err := d.Apply(t.Context(), put(2, "x")); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("err = %v, want unavailable", err)
		}
		mustApply(t, d, put(1, "x"))
		if n := value[int](t, d, `SELECT count(*) FROM t`); n != 1 {
			t.Errorf("%d rows, want 1", n)
		}

		tries = 0
		d.failNextCommit(tookEffect, errors.New("test: the disk failed"))
		g := store.NewGroup(d, store.GroupOptions{})
		if _, err := g.Apply(t.Context(), put(3, "y")); err != nil {
			t.Errorf("through the group: %v", err)
		}
		g.Close()
		if n := value[int](t, d, `SELECT count(*) FROM t WHERE id = 3`); n != 1 {
			t.Errorf("%d rows, want 1", n)
		}
	}
}

// TestFailedStatementKeepsConnection: a refusal costs a rollback, not a new connection.
func TestFailedStatementKeepsConnection(t *testing.T) {
	d := openTest(t, testPath(t), Options{})
	for range 3 {
		if _, err := d.Apply(t.Context(), put(1, "x"), store.Stmt{SQL: `INSERT INTO t (id) VALUES ('no integer')`}); !errors.Is(err, store.ErrRefused) {
			t.Fatal(err)
		}
	}
	// A statement that ends the transaction itself costs a new one, and leaves nothing open.
	mustApply(t, d, put(1, "x"))
	if _, err := d.Apply(t.Context(), put(2, "x"), store.Stmt{SQL: `INSERT OR ROLLBACK INTO t (id) VALUES (1)`}); !errors.Is(err, store.ErrRefused) {
		t.Fatal(err)
	}
	if n := d.Stats().Reopens; n != 1 {
		t.Errorf("%d reopens, want 1", n)
	}
	mustApply(t, d, put(3, "x"))
	if n := value[int](t, d, `SELECT count(*) FROM t`); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
}

func TestOptions(t *testing.T) {
	if _, err := Open(t.Context(), testPath(t), Options{}); err == nil {
		t.Error("Open without migrations succeeded")
	}
	var r store.Rows = (*sql.Rows)(nil) // the seam stays what database/sql gives
	_ = r
}
