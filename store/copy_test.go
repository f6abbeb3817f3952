package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dts"
	"dts/migrations"
	"dts/store"
	"dts/store/sqlite"
	"dts/store/sqlite/sqlitetest"
	"dts/store/storetest"
)

func openDB(t *testing.T) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(ctx, sqlitetest.New(t), sqlite.Options{Migrations: migrations.FS})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func apply(t *testing.T, b store.Backend, sql string, args ...any) {
	t.Helper()
	if _, err := b.Apply(ctx, store.Stmt{SQL: sql, Args: args}); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// texts returns the first column of the answer.
func texts(t *testing.T, b store.Backend, sql string, args ...any) (list []string) {
	t.Helper()
	rows, err := b.Query(ctx, store.OwnWrites, store.Stmt{SQL: sql, Args: args})
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// fill makes rows of every kind, and of one table more than two pages.
func fill(t *testing.T, b store.Backend, seed uint64) {
	t.Helper()
	storetest.Fill(t, b, seed, 300)
	apply(t, b, `INSERT INTO tenants (tenant_id, name, created_at)
		WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 2500) SELECT 'many ' || value, '', 0 FROM n`)
}

// tablesOf returns the tables that the migrations make.
func tablesOf(t *testing.T, b store.Backend) []string {
	return texts(t, b, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'goose%' AND name NOT LIKE 'sqlite%' ORDER BY name`)
}

// copyAll copies and returns what was said of each table.
func copyAll(from, to store.Backend) ([]store.CopiedTable, error) {
	var list []store.CopiedTable
	err := store.Copy(ctx, store.CopyOptions{From: from, To: to, Source: "sqlite:/here", Now: now, Done: func(c store.CopiedTable) { list = append(list, c) }})
	return list, err
}

// wantSame fails the test unless every table that is copied is row by row the same, by SQLite's own account.
func wantSame(t *testing.T, from, to *sqlite.DB, tables []store.CopiedTable) {
	t.Helper()
	if err := store.CopyPending(ctx, to); err != nil {
		t.Error(err)
	}
	apply(t, from, `ATTACH ? AS other`, to.Path())
	defer apply(t, from, `DETACH other`)
	for _, c := range tables {
		for _, order := range [][2]string{{"main", "other"}, {"other", "main"}} {
			sql := fmt.Sprintf(`INSERT INTO batch_assert (tenant_id, ok) SELECT 'system', NULL WHERE EXISTS (SELECT * FROM %s."%s" EXCEPT SELECT * FROM %s."%[2]s")`, order[0], c.Name, order[1])
			if _, err := from.Apply(ctx, store.Stmt{SQL: sql}); err != nil {
				t.Errorf("the table %s differs: %v", c.Name, err)
			}
		}
	}
}

func TestCopy(t *testing.T) {
	from, to := openDB(t), openDB(t)
	fill(t, from, 1)
	apply(t, from, `INSERT INTO nodes (node_id, tenant_id, incarnation, address, version, boot_id, started_at, seen_at, state, beat) VALUES ('n', 'system', '', '', '', '', 0, 0, 'ALIVE', 7)`)
	// A server has run on the destination, and left little behind.
	apply(t, to, `INSERT INTO tenants (tenant_id, name, created_at) VALUES ('default', 'other', 1)`)
	apply(t, to, `INSERT INTO shards (shard, tenant_id, node_id, term) VALUES (3, 'system', 'old', 5000), (4, 'system', 'old', -1)`)
	apply(t, to, `INSERT INTO settings (tenant_id, name, value) VALUES ('system', 'secret', 'its own')`)
	list, err := copyAll(from, to)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, from, to, list)
	for _, c := range list {
		n := texts(t, from, `SELECT count(*) FROM "`+c.Name+`"`)
		if fmt.Sprint(c.Rows) != n[0] || c.Rows < 30 || len(c.SHA256) != 64 {
			t.Errorf("%+v, and there are %s", c, n[0])
		}
	}
	const terms = `SELECT term FROM shards ORDER BY shard`
	want := texts(t, from, terms)
	want[3] = "5000"
	if got := texts(t, to, terms); !slices.Equal(got, want) {
		t.Errorf("terms %v, want %v: no less than on either side", got, want)
	}
	if got := texts(t, to, `SELECT node_id FROM shards GROUP BY node_id`); !slices.Equal(got, []string{""}) {
		t.Errorf("shards are held by %q", got)
	}
	if got := texts(t, to, `SELECT node_id FROM nodes`); len(got) > 0 {
		t.Errorf("nodes %q came along", got)
	}
	if got := texts(t, to, `SELECT value FROM settings`); !slices.Equal(got, []string{"its own"}) {
		t.Errorf("settings %q", got)
	}
	// And back, into a third one. The admin tokens of servers stay on their side.
	back := openDB(t)
	for _, db := range []*sqlite.DB{to, back} {
		apply(t, db, `INSERT INTO tokens (token_hash, tenant_id, kind, name, admin, created_at) VALUES (?, 'default', 'api', ?, 1, 0)`, "zz "+db.Path(), store.AdminTokenName("n"))
	}
	again, err := copyAll(to, back)
	if err != nil || !slices.Equal(again, list) {
		t.Errorf("back: %v, %v; want %v", again, err, list)
	}
	if got := texts(t, back, `SELECT token_hash FROM tokens WHERE name = ?`, store.AdminTokenName("n")); !slices.Equal(got, []string{"zz " + back.Path()}) {
		t.Errorf("admin tokens of servers are %q", got)
	}
}

// TestCopyCoversTheSchema: a new table has to be copied, or to stand here.
func TestCopyCoversTheSchema(t *testing.T) {
	left := map[string]string{
		"nodes":         "the servers of the source are not those of the destination",
		"handoffs":      "a server that takes shards over reads all that is due in them anyway",
		"settings":      "they belong to the cluster",
		"shards":        "only their terms are carried on",
		"batch_assert":  "always empty",
		"applied_batch": "the backend's own",
	}
	from, to := openDB(t), openDB(t)
	list, err := copyAll(from, to)
	if err != nil {
		t.Fatal(err)
	}
	var covered []string
	for name := range left {
		covered = append(covered, name)
	}
	for _, c := range list {
		covered = append(covered, c.Name)
	}
	slices.Sort(covered)
	if all := tablesOf(t, from); !slices.Equal(all, covered) {
		t.Errorf("the schema has %v, and covered are %v", all, covered)
	}
}

// broken is a backend whose writes fail from some moment on, as they do when a process is killed: the last one may
// have been applied.
type broken struct {
	store.Backend
	left    int
	applied bool
}

var errBroken = fmt.Errorf("%w: broken", store.ErrUnavailable)

func (b *broken) Apply(ctx context.Context, batch ...store.Stmt) ([]store.Result, error) {
	if b.left--; b.left >= 0 {
		return b.Backend.Apply(ctx, batch...)
	}
	if b.left == -1 && b.applied {
		b.Backend.Apply(ctx, batch...)
	}
	return nil, errBroken
}

func TestCopyGoesOn(t *testing.T) {
	from := openDB(t)
	fill(t, from, 2)
	changes := []string{ // of the source, between one try and the next
		``,
		`UPDATE tasks SET name = 'changed' WHERE seq = (SELECT min(seq) FROM tasks)`,
		`DELETE FROM tasks WHERE seq = (SELECT min(seq) FROM tasks)`,
		`DELETE FROM recurring_tasks WHERE seq = (SELECT max(seq) FROM recurring_tasks)`,
		`INSERT INTO tenants (tenant_id, name, created_at) VALUES ('', '', 0)`,
	}
	rng := rand.New(rand.NewPCG(3, 0))
	for i, change := range changes {
		to := openDB(t)
		for range 3 {
			b := &broken{to, 1 + rng.IntN(3), rng.IntN(2) == 0}
			if _, err := copyAll(from, b); !errors.Is(err, store.ErrUnavailable) {
				t.Fatalf("%d: %v", i, err)
			}
			if err := store.CopyPending(ctx, to); dts.CodeOf(err) != dts.ErrConflict || !strings.Contains(err.Error(), "the copy of sqlite:/here into this database, begun at 2026-03-01T12:00:00Z, is not complete") {
				t.Fatalf("%d: a part of a copy can be used: %v", i, err)
			}
		}
		if change != "" {
			apply(t, from, change)
		}
		list, err := copyAll(from, to)
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		wantSame(t, from, to, list)
	}
}

func TestCopyRefuses(t *testing.T) {
	node := func(id string) string {
		return `INSERT INTO nodes (node_id, tenant_id, incarnation, address, version, boot_id, started_at, seen_at, state, beat) VALUES ('` + id + `', 'system', '', '', '', '', 0, 0, 'LEFT', 0)`
	}
	for name, c := range map[string]struct {
		prepare func(from, to *sqlite.DB)
		during  func(from, to *sqlite.DB)
		want    string
		pending bool
	}{
		"it holds a task": {
			prepare: func(_, to *sqlite.DB) {
				st := store.New(to, store.Options{})
				insert(t, st, task(t, nil))
			},
			want: "it holds tasks already",
		},
		"another schema": {
			prepare: func(_, to *sqlite.DB) { apply(t, to, `ALTER TABLE skips ADD COLUMN more INTEGER`) },
			want:    "the table skips has other columns",
		},
		"a type that is not known": {
			prepare: func(from, _ *sqlite.DB) { apply(t, from, `ALTER TABLE skips ADD COLUMN more REAL`) },
			want:    "column more has the type REAL",
		},
		"a server begins on the source": {
			during:  func(from, _ *sqlite.DB) { apply(t, from, node("a")) },
			want:    "a server has begun to run on the source",
			pending: true,
		},
		"a server begins on the destination": {
			during:  func(_, to *sqlite.DB) { apply(t, to, node("b")) },
			want:    "a server has begun to run on the destination",
			pending: true,
		},
		"someone writes to the destination": {
			during:  func(_, to *sqlite.DB) { apply(t, to, `UPDATE tasks SET name = name || 'x'`) },
			want:    "copy the table tasks: it came out different: 50 rows with the checksum ",
			pending: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := openDB(t), openDB(t)
			storetest.Fill(t, from, 4, 50)
			if c.prepare != nil {
				c.prepare(from, to)
			}
			before := texts(t, to, `SELECT count(*) FROM tasks`)
			err := store.Copy(ctx, store.CopyOptions{From: from, To: to, Progress: func(p store.CopyProgress) {
				if c.during != nil && p.Table == "tasks" && !p.Compare {
					c.during(from, to)
				}
			}})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if err := store.CopyPending(ctx, to); (err != nil) != c.pending {
				t.Errorf("pending: %v", err)
			}
			if after := texts(t, to, `SELECT count(*) FROM tasks`); !c.pending && !slices.Equal(before, after) {
				t.Errorf("%s tasks became %s", before, after)
			}
		})
	}
}

// TestCopyIsBounded: neither many rows nor large ones make a batch large.
func TestCopyIsBounded(t *testing.T) {
	from, to := openDB(t), &measured{Backend: openDB(t)}
	fill(t, from, 5)
	for i := range 8 {
		apply(t, from, `INSERT INTO outputs (tenant_id, task_id, number, head, tail, total) VALUES ('t', ?, 1, zeroblob(600000), zeroblob(300000), 0)`, fmt.Sprint("zz", i))
	}
	var last store.CopyProgress
	err := store.Copy(ctx, store.CopyOptions{From: from, To: to, Progress: func(p store.CopyProgress) {
		if p.Rows > p.Of || p.Table == last.Table && p.Compare == last.Compare && p.Rows < last.Rows {
			t.Errorf("%+v after %+v", p, last)
		}
		last = p
	}})
	if err != nil {
		t.Fatal(err)
	}
	if to.rows != 1000 || to.bytes < 1<<20 || to.bytes > 5<<19 {
		t.Errorf("at most %d statements and %d bytes in a batch", to.rows, to.bytes)
	}
	if last.Table != "outputs" || !last.Compare || last.Rows != last.Of {
		t.Errorf("the last progress is %+v", last)
	}
}

// measured notes how large batches are.
type measured struct {
	store.Backend
	rows, bytes int
}

func (m *measured) Apply(ctx context.Context, batch ...store.Stmt) ([]store.Result, error) {
	bytes := 0
	for _, s := range batch {
		for _, a := range s.Args {
			if text, ok := a.(string); ok {
				bytes += len(text)
			}
		}
	}
	m.rows, m.bytes = max(m.rows, len(batch)), max(m.bytes, bytes)
	return m.Backend.Apply(ctx, batch...)
}

// TestCopyChecksum: every single value counts, with its kind and its column.
func TestCopyChecksum(t *testing.T) {
	db := openDB(t)
	sum := func() string {
		t.Helper()
		list, err := copyAll(db, openDB(t))
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(list, func(c store.CopiedTable) bool { return c.Name == "recurring_tasks" })
		return list[i].SHA256
	}
	storetest.Fill(t, db, 6, 20)
	seen := map[string]string{sum(): "as it was"}
	for _, set := range []string{
		`last_status = NULL, pause_note = NULL, last_run_at = NULL`, `last_status = ''`, `last_status = 'NULL'`, `last_status = '0'`, `last_run_at = 0`, `last_run_at = 1`,
		`last_status = 'ab', pause_note = 'c'`, `last_status = 'a', pause_note = 'bc'`, `last_status = NULL, pause_note = 'abc'`, `last_status = 'abc', pause_note = NULL`,
		`runs_count = 1, completed_count = 2`, `runs_count = 2, completed_count = 1`, `seq = 1000000`,
	} {
		apply(t, db, `UPDATE recurring_tasks SET `+set+` WHERE seq = (SELECT max(seq) FROM recurring_tasks)`)
		s := sum()
		if same, ok := seen[s]; ok {
			t.Errorf("%q has the same checksum as %q", set, same)
		}
		seen[s] = set
	}
}

func TestLive(t *testing.T) {
	db := openDB(t)
	look := func(watch time.Duration, want string) {
		t.Helper()
		if server, err := store.Live(ctx, db, watch); err != nil || server != want {
			t.Errorf("%q, %v; want %q", server, err, want)
		}
	}
	look(time.Hour, "")
	node := func(id, address, state string) {
		apply(t, db, `INSERT INTO nodes (node_id, tenant_id, incarnation, address, version, boot_id, started_at, seen_at, state, beat) VALUES (?, 'system', 'i', ?, '', '', 0, 0, ?, 0)`, id, address, state)
	}
	node("gone", "", "LEFT")
	node("dead", "", "DEAD")
	look(time.Hour, "")
	node("killed", "", "ALIVE")
	look(time.Millisecond, "")
	node("works", "http://h:1", "LEAVING")
	var wg sync.WaitGroup
	defer wg.Wait()
	beating, stop := context.WithCancel(ctx)
	defer stop()
	wg.Go(func() {
		for beating.Err() == nil {
			apply(t, db, `UPDATE nodes SET beat = beat + 1 WHERE node_id = 'works'`)
			time.Sleep(10 * time.Millisecond)
		}
	})
	look(time.Hour, "works at http://h:1")
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := store.Live(cancelled, db, time.Hour); err == nil {
		t.Error("a cancelled look found nothing wrong")
	}
}
