package store_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"dts"
	"dts/store"
)

// addRun inserts a run of a workflow of three steps, each after the one before, and starts it.
func addRun(t *testing.T, st *store.Store, f dts.Fence) (run *dts.Task, steps []*dts.Task) {
	t.Helper()
	w := dts.Workflow{Name: "run", Steps: make([]dts.Step, 3)}
	for i, name := range []string{"a", "b", "c"} {
		w.Steps[i].Spec = dts.Spec{Name: name, TargetType: dts.Command, TargetConfig: []byte(`{"argv":["true"]}`)}
		if i > 0 {
			w.Steps[i].DependsOn = []dts.StepDependsOn{{Step: w.Steps[i-1].Name}}
		}
	}
	return startRun(t, st, f, w)
}

func startRun(t *testing.T, st *store.Store, f dts.Fence, w dts.Workflow) (run *dts.Task, steps []*dts.Task) {
	t.Helper()
	run = task(t, func(k *dts.Task) { k.Spec = w.Spec() })
	insert(t, st, run)
	steps, err := run.StepTasks(now)
	if err != nil {
		t.Fatal(err)
	}
	n := *run
	n.StartedAt = now
	if err := st.StartRun(ctx, f, run, &n, steps); err != nil {
		t.Fatal(err)
	}
	if err := st.StartRun(ctx, f, run, &n, steps); !errors.Is(err, store.ErrRefused) {
		t.Errorf("started twice: %v", err)
	}
	return run, steps
}

func read(t *testing.T, st *store.Store, id string) *dts.Task {
	t.Helper()
	k, err := st.Task(ctx, dts.DefaultTenant, id)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// end makes tasks that wait CANCELLED at a time.
func end(t *testing.T, st *store.Store, f dts.Fence, at time.Time, ids ...string) {
	t.Helper()
	for _, id := range ids {
		k := read(t, st, id)
		n := *k
		n.Status, n.CompletedAt, n.Unresolved = dts.Cancelled, at, 0
		if err := st.Change(ctx, f, []dts.Change{{Old: k, New: &n}}, at); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRunWaitsForItsSteps: for all of them, and again for one that is retried, also when it could end.
func TestRunWaitsForItsSteps(t *testing.T) {
	st, _, f := open(t)
	run, steps := addRun(t, st, f)
	if got := read(t, st, run.ID); got.Unresolved != 3 || got.Attempts != 1 || !got.StartedAt.Equal(now) {
		t.Errorf("it waits for %d, %+v", got.Unresolved, got)
	}
	if got := read(t, st, steps[1].ID); got.Unresolved != 1 || got.WorkflowID != run.ID || got.Step != "b" {
		t.Errorf("a step is %+v", got)
	}
	end(t, st, f, now, steps[2].ID, steps[1].ID, steps[0].ID)
	ready := read(t, st, run.ID)
	if ready.Unresolved != 0 || ready.Status != dts.Pending {
		t.Errorf("it waits for %d and is %s", ready.Unresolved, ready.Status)
	}
	a := read(t, st, steps[0].ID)
	again := *a
	again.Status, again.CompletedAt = dts.Pending, time.Time{}
	if err := st.Change(ctx, f, []dts.Change{{Old: a, New: &again, Again: []dts.Dependency{}}}, now); err != nil {
		t.Fatal(err)
	}
	over := *ready
	over.Status, over.CompletedAt = dts.Failed, now
	if err := st.Change(ctx, f, []dts.Change{{Old: ready, New: &over, Resolved: true}}, now); !errors.Is(err, store.ErrRefused) {
		t.Errorf("a run that waits for a step again was ended: %v", err)
	}
	if got := read(t, st, run.ID); got.Unresolved != 1 || got.Status != dts.Pending {
		t.Errorf("it waits for %d and is %s", got.Unresolved, got.Status)
	}
}

// TestRetryPlannedBeforeAnEnd: a step that is to wait again for another one does not wait for ever where that has ended, or was
// deleted, between the plan and its write.
func TestRetryPlannedBeforeAnEnd(t *testing.T) {
	for name, during := range map[string]struct {
		to   dts.Status // "": deleted
		want dts.Status
	}{
		"done":      {dts.Success, dts.Pending},
		"cancelled": {dts.Cancelled, dts.Skipped},
		"deleted":   {"", dts.Skipped},
	} {
		t.Run(name, func(t *testing.T) {
			st, _, f := open(t)
			w := dts.Workflow{Name: "run", Steps: make([]dts.Step, 3)}
			for i, name := range []string{"a", "b", "c"} {
				w.Steps[i].Spec = dts.Spec{Name: name, TargetType: dts.Command, TargetConfig: []byte(`{"argv":["true"]}`)}
			}
			w.Steps[2].DependsOn = []dts.StepDependsOn{{Step: "a"}, {Step: "b"}}
			_, steps := startRun(t, st, f, w)
			a, b, c := steps[0].ID, steps[1].ID, steps[2].ID
			end(t, st, f, now, b)
			if got := read(t, st, c); got.Status != dts.Skipped {
				t.Fatalf("the child of a step that was cancelled is %s", got.Status)
			}
			retry := []dts.Change{
				{Old: read(t, st, b), Again: []dts.Dependency{}},
				{Old: read(t, st, c), Again: []dts.Dependency{{ChildID: c, ParentID: a, State: dts.DependencyOpen}, {ChildID: c, ParentID: b, State: dts.DependencyOpen}}},
			}
			for i := range retry {
				n := *retry[i].Old
				n.Status, n.SkipReason, n.CompletedAt, n.Unresolved = dts.Pending, "", time.Time{}, len(retry[i].Again)
				retry[i].New = &n
			}
			ending := dts.Change{Old: read(t, st, a)}
			if during.to != "" {
				n := *ending.Old
				n.Status, n.CompletedAt = during.to, now
				ending.New = &n
			}
			if err := st.Change(ctx, f, []dts.Change{ending}, now); err != nil {
				t.Fatal(err)
			}
			if err := st.Change(ctx, f, retry, now); err != nil {
				t.Fatal(err)
			}
			k := read(t, st, b)
			n := *k
			n.Status, n.CompletedAt = dts.Success, now
			if err := st.Change(ctx, f, []dts.Change{{Old: k, New: &n}}, now); err != nil {
				t.Fatal(err)
			}
			if got := read(t, st, c); got.Status != during.want || got.Unresolved != 0 {
				t.Errorf("the step is %s and waits for %d", got.Status, got.Unresolved)
			}
		})
	}
}

// TestRetentionOfRuns: steps stay as long as their run, and go with it, as many rows as they are.
func TestRetentionOfRuns(t *testing.T) {
	st, _, f := open(t)
	first, steps := addRun(t, st, f)
	end(t, st, f, now, steps[2].ID, steps[1].ID, steps[0].ID)
	second, others := addRun(t, st, f)
	end(t, st, f, now, others[2].ID, others[1].ID, others[0].ID)
	all := dts.Cut{TenantID: dts.DefaultTenant, Before: now.Add(time.Hour), Through: now.Add(time.Hour)}
	d, err := st.DeleteFinished(ctx, all, now, 10)
	if err != nil || d.Deleted != nil || left(t, st) != "run, a, b, c, run, a, b, c" {
		t.Errorf("%+v, %v: %s", d, err, left(t, st))
	}
	end(t, st, f, now.Add(time.Minute), first.ID, second.ID)
	few := all
	few.Before, few.Rows = time.Time{}, 2
	if d, err = st.DeleteFinished(ctx, few, now, 10); err != nil || len(d.Deleted) != 4 || left(t, st) != "run, a, b, c" {
		t.Errorf("%+v, %v: %s", d, err, left(t, st))
	}
	for _, k := range d.Deleted {
		if k.Rows != 1 || k.Bytes < 400 || k.Bytes > 1500 {
			t.Errorf("%+v", k)
		}
	}
	if d, err = st.DeleteFinished(ctx, all, now, 10); err != nil || len(d.Deleted) != 4 || left(t, st) != "" {
		t.Errorf("%+v, %v: %s", d, err, left(t, st))
	}
}

// TestStepsAreFoundByTheirRun, and not by looking through all tasks.
func TestStepsAreFoundByTheirRun(t *testing.T) {
	db := &asked{Backend: openSQLite(t)}
	st := store.New(db, store.Options{})
	defer st.Close()
	k := &dts.Task{ID: "k", TenantID: dts.DefaultTenant, WorkflowID: "r", Inputs: []string{"a"}}
	for name, ask := range map[string]func() error{
		"Steps":     func() error { _, err := st.Steps(ctx, dts.DefaultTenant, "r"); return err },
		"StepEdges": func() error { _, err := st.StepEdges(ctx, "r"); return err },
		"Inputs":    func() error { _, err := st.Inputs(ctx, k, 10); return err },
		"Tasks": func() error {
			_, err := st.Tasks(ctx, dts.TaskFilter{TenantID: dts.DefaultTenant, WorkflowID: "r", Limit: 10})
			return err
		},
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
				if step == "SCAN tasks" || strings.HasPrefix(step, "SCAN p") || strings.HasPrefix(step, "SCAN d") {
					t.Errorf("%s: %s", name, step)
				}
			}
			if err := rows.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestRunsUnderWay: a run is under way from its start to its judgement, also while none of its steps is RUNNING.
func TestRunsUnderWay(t *testing.T) {
	st, _, f := open(t)
	under := func() (ids []string) {
		t.Helper()
		list, err := st.RunsUnderWay(ctx, dts.DefaultTenant, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range list {
			ids = append(ids, k.ID)
		}
		return ids
	}
	if got := under(); got != nil {
		t.Errorf("of nothing, %v are under way", got)
	}
	run, steps := addRun(t, st, f)
	second, _ := addRun(t, st, f)
	insert(t, st, task(t, func(k *dts.Task) { k.Spec = run.Spec })) // a run that has not started
	if got := under(); !slices.Equal(got, []string{second.ID, run.ID}) {
		t.Errorf("%v are under way, want %s and %s", got, second.ID, run.ID)
	}
	if list, err := st.RunsUnderWay(ctx, "another", 10); err != nil || len(list) > 0 {
		t.Errorf("another tenant sees %d, %v", len(list), err)
	}

	end(t, st, f, now, steps[0].ID, steps[2].ID)
	b := read(t, st, steps[1].ID)
	n := *b
	n.Status, n.Attempts, n.CompletedAt, n.Unresolved = dts.Failed, 1, now, 0
	if err := st.Change(ctx, f, []dts.Change{{Old: b, New: &n}}, now); err != nil {
		t.Fatal(err)
	}
	got, err := st.RunProgress(ctx, dts.DefaultTenant, []string{run.ID, second.ID})
	want := map[string]dts.RunProgress{run.ID: {Steps: 3, Ended: 3, Failed: 1, FailedStep: "b"}, second.ID: {Steps: 3}}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	if got, err := st.RunProgress(ctx, "another", []string{run.ID}); err != nil || len(got) > 0 {
		t.Errorf("another tenant sees %v, %v", got, err)
	}
	ready := read(t, st, run.ID)
	over := *ready
	over.Status, over.CompletedAt = dts.Failed, now
	if err := st.Change(ctx, f, []dts.Change{{Old: ready, New: &over, Resolved: true}}, now); err != nil {
		t.Fatal(err)
	}
	if got := under(); !slices.Equal(got, []string{second.ID}) {
		t.Errorf("%v are under way, want %s", got, second.ID)
	}
}
