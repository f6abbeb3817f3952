package store_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"dts"
	"dts/migrations"
	"dts/store"
	"dts/store/sqlite"
	"dts/store/sqlite/sqlitetest"
)

var ctx = context.Background()

// open opens an empty store with one server that holds every shard: on SQLite, or, inside TestOnRqlite, on rqlite.
func open(t *testing.T) (*store.Store, store.Backend, dts.Fence) {
	t.Helper()
	var db store.Backend
	if c := clusterOf(t); c != nil {
		db = openRqlite(t, c)
	} else {
		db = openSQLite(t)
	}
	st := store.New(db, store.Options{})
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st, db, begin(t, st, "n1")
}

func openSQLite(t testing.TB) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(ctx, sqlitetest.New(t), sqlite.Options{Migrations: migrations.FS})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// begin starts a server that is alone, and gives it every shard at a new term.
func begin(t testing.TB, st *store.Store, id string) dts.Fence {
	t.Helper()
	n := dts.Node{ID: id, Incarnation: dts.NewID(time.Now()), StartedAt: now, SeenAt: now}
	if err := st.Register(ctx, n, true); err != nil {
		t.Fatal(err)
	}
	all, err := st.Members(ctx)
	if err != nil {
		t.Fatal(err)
	}
	f := dts.Fence{Node: n.ID, Incarnation: n.Incarnation, Terms: &dts.Terms{}, Alone: true}
	var takes []dts.Take
	for shard, h := range all.Holders {
		takes = append(takes, dts.Take{Shard: shard, From: h})
		f.Terms[shard] = h.Term + 1
	}
	if err := st.TakeShards(ctx, f, takes); err != nil {
		t.Fatal(err)
	}
	return f
}

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func task(t *testing.T, edit func(*dts.Task)) *dts.Task {
	t.Helper()
	k := &dts.Task{Spec: dts.Spec{TargetType: dts.Command, TargetConfig: []byte(`{"argv":["true"]}`)}, RunAt: now}
	if edit != nil {
		edit(k)
	}
	if err := k.Normalize(now); err != nil {
		t.Fatal(err)
	}
	return k
}

func insert(t *testing.T, st *store.Store, tasks ...*dts.Task) {
	t.Helper()
	if _, err := st.InsertTasks(ctx, dts.Fence{Alone: true}, tasks); err != nil {
		t.Fatal(err)
	}
}

// TestMigrateTasks: tasks of a database that an older dts wrote are read as they were.
func TestMigrateTasks(t *testing.T) {
	first, err := fs.ReadFile(migrations.FS, "00001_init.sql")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "dts.db")
	db, err := sqlite.Open(ctx, path, sqlite.Options{Migrations: fstest.MapFS{"00001_init.sql": {Data: first}}})
	if err != nil {
		t.Fatal(err)
	}
	const columns = `task_id, tenant_id, shard, status, priority, queue, name, scheduled_at, due_at, run_at, claim_token, claim_term, claim_node, attempts,
		max_attempts, unresolved_dependencies_count, step, plan_version, moved, created_at, created_by, target_type, spec`
	_, err = db.Apply(ctx, store.Stmt{SQL: `INSERT INTO tasks (` + columns + `) VALUES ('t1', ?, 3, 'RUNNING', 1, 'default', 'n', 1, 2, 3, 44, 5, 'node', 1,
		3, 0, '', 0, 0, 1, 'me', 'COMMAND', '{"description":"d","target_config":{"argv":["a b","é"]},"retry":{"max_attempts":3},"delivery":"AT_LEAST_ONCE","timeout_seconds":1.5,"sla_seconds":30}')`,
		Args: []any{dts.DefaultTenant}})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	db, err = sqlite.Open(ctx, path, sqlite.Options{Migrations: migrations.FS})
	if err != nil {
		t.Fatal(err)
	}
	st := store.New(db, store.Options{})
	defer st.Close()
	got, err := st.Task(ctx, dts.DefaultTenant, "t1")
	if err != nil {
		t.Fatal(err)
	}
	if string(got.TargetConfig) != `{"argv":["a b","é"]}` || got.Description != "d" || got.TimeoutSeconds != 1.5 || got.Term != 5 || got.Node != "node" || got.Retry.MaxAttempts != 3 {
		t.Errorf("%+v", got)
	}
}

func TestEveryTableCarriesTheTenant(t *testing.T) {
	_, db, _ := open(t)
	rows, err := db.Query(ctx, store.OwnWrites, store.Stmt{SQL: `SELECT m.name FROM sqlite_master AS m WHERE m.type = 'table'
		AND m.name NOT LIKE 'goose%' AND m.name NOT LIKE 'sqlite%' AND m.name NOT LIKE 'rqlite%'
		AND NOT EXISTS (SELECT 1 FROM pragma_table_info(m.name) AS c WHERE c.name = 'tenant_id')`})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		t.Errorf("table %s has no tenant_id", name)
	}
	if err := rows.Err(); err != nil {
		t.Error(err)
	}
}

// TestStaleAttempts: what a node whose term is over writes is refused, and what comes twice or too late changes
// nothing.
func TestStaleAttempts(t *testing.T) {
	st, _, old := open(t)
	k := task(t, func(k *dts.Task) { k.RecurringTaskID, k.Origin = "r1", dts.OriginTrigger })
	insert(t, st, k)
	f := begin(t, st, "n1")
	begin := func(number int) *dts.Record {
		return &dts.Record{Task: k, Term: f.Term(k.Shard),
			Attempt: dts.Attempt{TaskID: k.ID, TenantID: k.TenantID, Number: number, State: dts.AttemptRunning, Node: "n1", StartedAt: now}}
	}
	end := func(number int, to dts.Status, shown bool) *dts.Record {
		r := begin(number)
		r.Shown = shown
		after := *k
		after.Status, after.Attempts, after.CompletedAt = to, number, now
		r.After, r.Attempt.State, r.Attempt.CompletedAt = &after, dts.AttemptFailed, now
		r.Output = dts.Output{Head: []byte("x"), Total: 1}
		return r
	}
	write := func(f dts.Fence, r *dts.Record, wantStatus dts.Status, wantAttempts, wantRows int) {
		t.Helper()
		if err := st.Write(ctx, f, []*dts.Record{r}); err != nil {
			t.Fatal(err)
		}
		got, err := st.Task(ctx, k.TenantID, k.ID)
		if err != nil || got.Status != wantStatus || got.Attempts != wantAttempts {
			t.Errorf("the task is %s after %d attempts, want %s after %d; %v", got.Status, got.Attempts, wantStatus, wantAttempts, err)
		}
		if list, err := st.Attempts(ctx, k.TenantID, k.ID); err != nil || len(list) != wantRows {
			t.Errorf("%d attempts are recorded, want %d; %v", len(list), wantRows, err)
		}
	}
	for _, r := range []*dts.Record{begin(1), end(1, dts.Success, false), end(1, dts.Success, true)} {
		if err := st.Write(ctx, old, []*dts.Record{r}); !errors.Is(err, store.ErrRefused) {
			t.Errorf("a write of the earlier start of the server: %v, want a refusal", err)
		}
		if r = clone(r); r.Shown {
			continue
		}
		r.Term--
		if err := st.Write(ctx, f, []*dts.Record{r}); !errors.Is(err, store.ErrRefused) {
			t.Errorf("a write at the old term: %v, want a refusal", err)
		}
	}
	write(f, begin(2), dts.Pending, 0, 0) // not its turn
	write(f, end(2, dts.Success, false), dts.Pending, 0, 0)
	write(f, end(1, dts.Success, true), dts.Pending, 0, 0) // its start was refused
	for range 2 {
		write(f, begin(1), dts.Running, 1, 1)
	}
	withProcess := begin(1)
	withProcess.Process = &dts.Process{PGID: 7, StartTime: 8, BootID: "b"}
	write(f, withProcess, dts.Running, 1, 1)
	if list, _ := st.Attempts(ctx, k.TenantID, k.ID); list[0].Process == nil || list[0].Process.PGID != 7 {
		t.Errorf("the process is not recorded: %+v", list[0])
	}
	write(f, end(1, dts.Success, false), dts.Running, 1, 1)
	elsewhere, before := end(1, dts.Success, true), end(1, dts.Success, true)
	elsewhere.Attempt.Node, before.Term = "n2", before.Term-1
	write(f, elsewhere, dts.Running, 1, 1)
	write(f, before, dts.Running, 1, 1)
	for range 2 {
		write(f, end(1, dts.Pending, true), dts.Pending, 1, 1)
	}
	write(f, begin(1), dts.Pending, 1, 1)
	for range 2 {
		write(f, end(2, dts.Failed, false), dts.Failed, 2, 2) // its start was never written
	}
	write(f, end(3, dts.Success, false), dts.Failed, 2, 2)
	if list, err := st.Load(ctx, []string{k.ID}); err != nil || len(list) != 0 {
		t.Errorf("a finished task is loaded to be run: %v, %v", list, err)
	}
}

func clone[T any](p *T) *T { c := *p; return &c }

// TestShortAttempt: the attempt that has no row of its own reads like any other.
func TestShortAttempt(t *testing.T) {
	st, db, f := open(t)
	end := func(k *dts.Task, number int, state dts.AttemptState, to dts.Status) *dts.Record {
		late, met := int64(70), true
		a := dts.Attempt{TaskID: k.ID, TenantID: k.TenantID, Number: number, State: state, Node: "n1", PickedAt: now,
			StartedAt: now.Add(time.Millisecond), CompletedAt: now.Add(3 * time.Millisecond), DurationUS: 2000, LatenessUS: late, HTTPStatus: 204, OutputBytes: 5}
		after := *k
		after.Status, after.Attempts, after.StartedAt, after.CompletedAt, after.ResponseStatus = to, number, a.StartedAt, a.CompletedAt, a.HTTPStatus
		after.LatenessUS, after.SLAMet = &late, &met
		return &dts.Record{Task: k, Term: f.Term(k.Shard), Attempt: a, After: &after, Output: dts.Output{Head: []byte("hello"), Total: 5}}
	}
	call := func(k *dts.Task) {
		k.TargetType, k.TargetConfig = dts.HTTPCallback, []byte(`{"url":"http://127.0.0.1/"}`)
	}
	short, shown, twice, command := task(t, call), task(t, call), task(t, call), task(t, nil)
	insert(t, st, short, shown, twice, command)
	begin := end(shown, 1, dts.AttemptRunning, dts.Running)
	begin.After, begin.Attempt.CompletedAt = nil, time.Time{}
	long := end(shown, 1, dts.AttemptSuccess, dts.Success)
	long.Shown = true
	for _, r := range []*dts.Record{end(short, 1, dts.AttemptSuccess, dts.Success), begin, long,
		end(twice, 1, dts.AttemptFailed, dts.Pending), end(twice, 2, dts.AttemptSuccess, dts.Success), end(command, 1, dts.AttemptSuccess, dts.Success)} {
		if err := st.Write(ctx, f, []*dts.Record{r}); err != nil {
			t.Fatal(err)
		}
	}
	rows := 0
	for _, c := range []struct {
		name string
		k    *dts.Task
		n    int
	}{{"short", short, 1}, {"shown", shown, 1}, {"twice", twice, 2}, {"command", command, 1}} {
		list, err := st.Attempts(ctx, c.k.TenantID, c.k.ID)
		if err != nil || len(list) != c.n {
			t.Fatalf("%s: %d attempts, %v; want %d", c.name, len(list), err, c.n)
		}
		for i, a := range list {
			want := end(c.k, i+1, a.State, dts.Success).Attempt
			if a.Process != nil || *a != want {
				t.Errorf("%s: attempt %d reads %+v, want %+v", c.name, i+1, *a, want)
			}
		}
		if list[c.n-1].State != dts.AttemptSuccess {
			t.Errorf("%s: the last attempt is %s", c.name, list[c.n-1].State)
		}
	}
	r, err := db.Query(ctx, store.OwnWrites, store.Stmt{SQL: `SELECT count(*) FROM attempts`})
	if err != nil || !r.Next() || r.Scan(&rows) != nil || rows != 4 {
		t.Errorf("%d attempts have a row of their own, want 4; %v", rows, err)
	}
	r.Close()
}

func TestListPages(t *testing.T) {
	st, db, _ := open(t)
	var tasks []*dts.Task
	for i := range 250 {
		tasks = append(tasks, task(t, func(k *dts.Task) {
			k.Name = fmt.Sprint("n", i)
			k.Queue = []string{"a", "b"}[i%2]
			k.Labels = map[string]string{"mod": fmt.Sprint(i % 5)}
			k.RunAt = now.Add(time.Duration(i) * time.Second)
			if i == 3 {
				k.TenantID = "other"
			}
		}))
	}
	insert(t, st, tasks...)
	count := func(f dts.TaskFilter) (n int) {
		f.TenantID, f.Limit = dts.DefaultTenant, 20
		seen := map[string]bool{}
		for {
			page, err := st.Tasks(ctx, f)
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range page.Items {
				if seen[k.ID] {
					t.Errorf("%s is on two pages", k.Name)
				}
				seen[k.ID] = true
			}
			if f.Cursor = page.Next; f.Cursor == "" {
				return len(seen)
			}
		}
	}
	cases := []struct {
		name string
		f    dts.TaskFilter
		want int
	}{
		{"all of the tenant", dts.TaskFilter{}, 249},
		{"queue", dts.TaskFilter{Queue: "a"}, 125},
		{"label", dts.TaskFilter{Labels: map[string]string{"mod": "3"}}, 49},
		{"label and queue", dts.TaskFilter{Labels: map[string]string{"mod": "2"}, Queue: "b"}, 25},
		{"time", dts.TaskFilter{From: now.Add(10 * time.Second), To: now.Add(20 * time.Second)}, 10},
		{"name", dts.TaskFilter{Name: "n17"}, 1},
		{"status", dts.TaskFilter{Statuses: []dts.Status{dts.Pending}}, 249},
		{"rare status", dts.TaskFilter{Statuses: []dts.Status{dts.Failed}}, 0},
		{"ids", dts.TaskFilter{IDs: []string{tasks[0].ID, tasks[3].ID, tasks[9].ID, "none"}}, 2},
	}
	for _, gap := range []string{"", "with a gap: "} {
		for _, c := range cases {
			if got := count(c.f); got != c.want {
				t.Errorf("%s%s: %d tasks, want %d", gap, c.name, got, c.want)
			}
		}
		// Retention leaves gaps, far wider than what one page looks at.
		if _, err := db.Apply(ctx, store.Stmt{SQL: `UPDATE tasks SET seq = seq + 1000000 WHERE seq > 100`}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := st.Tasks(ctx, dts.TaskFilter{TenantID: dts.DefaultTenant, Limit: 10, Cursor: "!"}); dts.CodeOf(err) != dts.ErrInvalid {
		t.Errorf("a wrong cursor: %v", err)
	}
}

// TestCounts: each tenant counts its own.
func TestCounts(t *testing.T) {
	st, db, f := open(t)
	var tasks []*dts.Task
	var failed []dts.Change
	for i := range 9 {
		k := task(t, func(k *dts.Task) { k.TenantID = []string{dts.DefaultTenant, "other"}[i%2] })
		tasks = append(tasks, k)
		if i < 3 {
			n := *k
			n.Status, n.CompletedAt = dts.Failed, now
			failed = append(failed, dts.Change{Old: k, New: &n})
		}
	}
	if _, err := db.Apply(ctx, store.Stmt{SQL: `INSERT INTO tenants (tenant_id, name, created_at) VALUES ('other', 'other', 1)`}); err != nil {
		t.Fatal(err)
	}
	insert(t, st, tasks...)
	if err := st.Change(ctx, f, failed, now); err != nil {
		t.Fatal(err)
	}
	for tenant, want := range map[string]dts.Counts{dts.DefaultTenant: {Pending: 3, Failed: 2}, "other": {Pending: 3, Failed: 1}} {
		if got, err := st.Counts(ctx, tenant); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", tenant, got, err, want)
		}
	}
}

// TestLedgerPages: what shares an instant comes on one page, however short the pages are.
func TestLedgerPages(t *testing.T) {
	st, _, f := open(t)
	now := dts.Micros(time.Now())
	r := &dts.RecurringTask{ID: dts.NewID(now), Spec: task(t, nil).Spec, Schedule: dts.Schedule{Cron: "* * * * *"}, Status: dts.Active, CreatedAt: now, UpdatedAt: now, PlannedThrough: now}
	if err := r.Normalize(); err != nil {
		t.Fatal(err)
	}
	r.Shard = dts.ShardOf(r.ID)
	p := dts.Plan{New: r, Skips: []dts.Skip{{TenantID: r.TenantID, RecurringTaskID: r.ID, From: now, To: now.Add(time.Hour), Count: 2, Reason: dts.ReasonCatchUp}}}
	for i := range 3 {
		for _, origin := range []dts.Origin{dts.OriginSchedule, dts.OriginTrigger, dts.OriginCatchUp, dts.OriginBackfill} {
			p.Insert = append(p.Insert, r.Occurrence(now.Add(time.Duration(i)*time.Minute), origin, now))
		}
	}
	if _, err := st.InsertRecurring(ctx, f, p); err != nil {
		t.Fatal(err)
	}
	for limit := 1; limit < 15; limit++ {
		n, cursor := 0, ""
		for {
			page, err := st.Occurrences(ctx, r.TenantID, r.ID, cursor, limit)
			if err != nil {
				t.Fatal(err)
			}
			n += len(page.Items)
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		if n != 13 {
			t.Errorf("with pages of %d there are %d lines, want 13", limit, n)
		}
	}
}
