package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dts"
	"dts/store"
)

// family is tasks by their names, over a store.
type family struct {
	*testing.T
	st   *store.Store
	f    dts.Fence
	id   map[string]string
	when time.Time
}

func newFamily(t *testing.T, st *store.Store, f dts.Fence) *family {
	return &family{T: t, st: st, f: f, id: map[string]string{}, when: now}
}

// later is a new instant with each call.
func (k *family) later() time.Time {
	k.when = k.when.Add(time.Second)
	return k.when
}

// make makes a task that depends on others: "p", or "p:MUST_FAIL".
func (k *family) make(name string, edit func(*dts.Task), parents ...string) *dts.Task {
	k.Helper()
	n := task(k.T, func(n *dts.Task) {
		n.Name = name
		n.DependsOn = k.edges(parents...)
		if edit != nil {
			edit(n)
		}
	})
	if _, err := k.st.InsertTasks(ctx, k.f, []*dts.Task{n}); err != nil {
		k.Fatalf("%s: %v", name, err)
	}
	k.id[name] = n.ID
	return n
}

func (k *family) edges(parents ...string) (list []dts.DependsOn) {
	for _, p := range parents {
		name, typ, _ := strings.Cut(p, ":")
		list = append(list, dts.DependsOn{TaskID: k.id[name], Type: dts.DependencyType(typ)})
	}
	dts.NormalizeDependsOn(list, func(field, format string, args ...any) { k.Fatalf("%s "+format, append([]any{field}, args...)...) })
	return list
}

func (k *family) get(name string) *dts.Task {
	k.Helper()
	n, err := k.st.Task(ctx, dts.DefaultTenant, k.id[name])
	if err != nil {
		k.Fatal(err)
	}
	return n
}

// record is the end of a first attempt.
func (k *family) record(n *dts.Task, status dts.Status) *dts.Record {
	at := k.later()
	after := *n
	after.Status, after.Attempts, after.StartedAt, after.CompletedAt = status, n.Attempts+1, at, at
	state := map[dts.Status]dts.AttemptState{dts.Success: dts.AttemptSuccess, dts.Failed: dts.AttemptFailed, dts.Cancelled: dts.AttemptCancelled}[status]
	return &dts.Record{Task: n, Term: k.f.Term(n.Shard), After: &after, Attempt: dts.Attempt{TaskID: n.ID, TenantID: n.TenantID, Number: n.Attempts + 1,
		State: state, Node: k.f.Node, StartedAt: at, CompletedAt: at}}
}

// end lets tasks run and end.
func (k *family) end(status dts.Status, names ...string) {
	k.Helper()
	var recs []*dts.Record
	for _, name := range names {
		recs = append(recs, k.record(k.get(name), status))
	}
	if err := k.st.Write(ctx, k.f, recs); err != nil {
		k.Fatal(err)
	}
}

// change does what a verb does to a task's row.
func (k *family) change(name string, edit func(n *dts.Task)) error {
	old := k.get(name)
	n := *old
	at := k.later()
	c := dts.Change{Old: old, New: &n}
	if edit == nil {
		c.New = nil
	} else {
		edit(&n)
		if n.Status.Terminal() {
			n.CompletedAt = at
		}
	}
	return k.st.Change(ctx, k.f, []dts.Change{c}, at)
}

func (k *family) do(name string, edit func(n *dts.Task)) {
	k.Helper()
	if err := k.change(name, edit); err != nil {
		k.Fatal(err)
	}
}

func retried(n *dts.Task) {
	n.Status, n.SkipReason, n.CompletedAt, n.MaxAttempts = dts.Pending, "", time.Time{}, n.Attempts+1
}

// depend changes what a task depends on.
func (k *family) depend(name string, parents ...string) error {
	old := k.get(name)
	return k.st.Change(ctx, k.f, []dts.Change{{Old: old, New: old, DependsOn: k.edges(parents...)}}, k.later())
}

func (k *family) undepend(name, parent string) error {
	old := k.get(name)
	return k.st.Change(ctx, k.f, []dts.Change{{Old: old, New: old, Undepend: k.id[parent]}}, k.later())
}

// settle finishes cascades.
func (k *family) settle() {
	k.Helper()
	for {
		more, err := k.st.Cascade(ctx, k.f, k.later())
		if err != nil {
			k.Fatal(err)
		}
		if !more {
			return
		}
	}
}

// is compares tasks with what they should be, as "a PENDING 2".
func (k *family) is(want ...string) {
	k.Helper()
	for _, w := range want {
		name, _, _ := strings.Cut(w, " ")
		n := k.get(name)
		if got := fmt.Sprintf("%s %s %d", name, n.Status, n.Unresolved); got != w {
			k.Errorf("%s, want %s (%s)", got, w, n.LastError)
		}
		ended := n.SkipReason == dts.ReasonDependency
		if skipped := n.Status == dts.Skipped || n.Status == dts.Failed && n.Attempts == 0; ended != skipped || ended && n.CompletedAt.IsZero() {
			k.Errorf("%s: reason %q, completed at %v", name, n.SkipReason, n.CompletedAt)
		}
	}
}

// handed returns, and forgets, what holders are told of, by name.
func (k *family) handed() (names []string) {
	k.Helper()
	ids, err := k.st.Handoffs(ctx, dts.AllShards, 100_000)
	if err != nil {
		k.Fatal(err)
	}
	if err := k.st.DeleteHandoffs(ctx, k.f, ids); err != nil {
		k.Fatal(err)
	}
	for name, id := range k.id {
		if slices.Contains(ids, id) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (k *family) told(want ...string) {
	k.Helper()
	if got := k.handed(); !slices.Equal(got, want) {
		k.Errorf("told of %q, want %q", got, want)
	}
}

// TestDependencyTypes: what each end of a parent means for each type, in the batch that ends it.
func TestDependencyTypes(t *testing.T) {
	st, _, f := open(t)
	k := newFamily(t, st, f)
	for _, end := range []dts.Status{dts.Success, dts.Failed, dts.Cancelled, dts.Skipped} {
		for _, typ := range []dts.DependencyType{dts.MustSucceed, dts.MustFinish, dts.MustFail} {
			for _, fails := range []dts.DependencyFailure{"", dts.FailOnFailure} {
				parent, child := fmt.Sprint("p", end, typ, fails), fmt.Sprint("c", end, typ, fails)
				k.make(parent, nil)
				k.make(child, func(n *dts.Task) { n.OnDependencyFailure = fails }, parent+":"+string(typ))
				k.is(child + " PENDING 1")
				switch end {
				case dts.Skipped:
					k.do(parent, func(n *dts.Task) { n.Status, n.SkipReason = dts.Skipped, dts.ReasonDependency })
				default:
					k.end(end, parent)
				}
				want := dts.Pending
				if typ.Outcome(end) == dts.DependencyFailed {
					if want = dts.Skipped; fails != "" {
						want = dts.Failed
					}
				}
				k.is(fmt.Sprintf("%s %s 0", child, want))
				c := k.get(child)
				if want == dts.Pending && (c.ResolvedAt.IsZero() || c.LastError != "") {
					t.Errorf("%s: resolved at %v, %q", child, c.ResolvedAt, c.LastError)
				}
				if text := fmt.Sprintf("it depends on %s (%s), which ended as %s", parent, k.id[parent], end); want != dts.Pending && c.LastError != text {
					t.Errorf("%s: %q, want %q", child, c.LastError, text)
				}
				k.told(child)
			}
		}
	}
}

// TestDependencyAll: a task that needs all starts after the last, and ends with the first that fails.
func TestDependencyAll(t *testing.T) {
	st, _, f := open(t)
	k := newFamily(t, st, f)
	for _, p := range []string{"a", "b", "c"} {
		k.make(p, nil)
	}
	k.make("all", nil, "a", "b", "c")
	k.make("two", nil, "a", "b")
	k.end(dts.Success, "a", "b")
	k.is("all PENDING 1", "two PENDING 0")
	k.told("two")
	k.end(dts.Failed, "c")
	k.is("all SKIPPED 0")
	k.told("all")
	k.make("late", nil, "a")
	k.make("lost", nil, "a", "c")
	k.make("mixed", func(n *dts.Task) { n.DependsMode = dts.DependsAny }, "c", "b")
	k.is("late PENDING 0", "lost SKIPPED 0", "mixed PENDING 0")
}

// TestDependencyAny: a task that needs one starts after the first, and ends only when all have failed.
func TestDependencyAny(t *testing.T) {
	st, _, f := open(t)
	k := newFamily(t, st, f)
	either := func(n *dts.Task) { n.DependsMode = dts.DependsAny }
	for _, p := range []string{"a", "b", "c", "d"} {
		k.make(p, nil)
	}
	k.make("one", either, "a", "b")
	k.make("other", either, "b", "c")
	k.make("none", either, "a", "c")
	k.end(dts.Failed, "a")
	k.is("one PENDING 1", "other PENDING 2", "none PENDING 1")
	k.end(dts.Success, "b")
	k.is("one PENDING 0", "other PENDING 0", "none PENDING 1")
	k.told("one", "other")
	k.end(dts.Failed, "c")
	k.is("one PENDING 0", "other PENDING 0", "none SKIPPED 0")
	k.told("none")
	k.make("stuck", either, "a", "d")
	if err := k.undepend("stuck", "d"); dts.CodeOf(err) != dts.ErrConflict {
		t.Errorf("the last hope was taken away: %v", err)
	}
	k.is("stuck PENDING 1")
}

// TestDependencyDeep: who is skipped takes along what depends on it, and so on.
func TestDependencyDeep(t *testing.T) {
	st, db, f := open(t)
	k := newFamily(t, st, f)
	k.make("root", nil)
	const deep = 300
	last := "root"
	for i := range deep {
		name := fmt.Sprint("n", i)
		k.make(name, nil, last)
		last = name
	}
	k.make("after", nil, last+":MUST_FINISH")
	k.end(dts.Failed, "root")
	k.is("n0 SKIPPED 0", "n1 PENDING 1")
	// The server stops here: another one, over the same database, goes on.
	again := store.New(db, store.Options{})
	k.st = again
	k.settle()
	k.is(last+" SKIPPED 0", "after PENDING 0")
	if n := k.get(last); !strings.Contains(n.LastError, fmt.Sprint("n", deep-2)) {
		t.Error(n.LastError)
	}
	if got := k.handed(); len(got) != deep+1 {
		t.Errorf("told of %d, want %d", len(got), deep+1)
	}
}

// TestDependencyVerbs: what verbs on parents and children mean.
func TestDependencyVerbs(t *testing.T) {
	st, _, f := open(t)
	k := newFamily(t, st, f)
	for _, p := range []string{"a", "b", "c", "d", "e"} {
		k.make(p, nil)
	}
	k.make("x", nil, "a", "b")
	k.do("a", nil) // deleted
	k.is("x SKIPPED 0")
	if got := k.get("x").LastError; got != "it depends on "+k.id["a"]+", which was deleted" {
		t.Error(got)
	}
	k.do("x", retried)
	k.is("x PENDING 0")

	k.make("y", nil, "b", "c")
	k.do("y", func(n *dts.Task) { n.Unresolved = 0 }) // run-now
	k.is("y PENDING 0")
	k.end(dts.Failed, "b")
	k.is("y PENDING 0")

	k.make("z", nil, "c", "d")
	k.do("z", func(n *dts.Task) { n.Status = dts.Cancelled })
	k.is("z CANCELLED 0")
	k.end(dts.Success, "c")
	k.is("z CANCELLED 0")
	k.do("z", retried)
	k.is("z PENDING 0")
	k.end(dts.Failed, "d")
	k.is("z PENDING 0")
	k.handed()

	// A parent runs once more: who has not started waits for it again.
	k.make("v", nil, "c", "e")
	k.make("w", func(n *dts.Task) { n.DependsMode = dts.DependsAny }, "c", "e")
	k.make("u", nil, "d:MUST_FAIL")
	k.is("v PENDING 1", "w PENDING 0", "u PENDING 0")
	k.do("c", func(n *dts.Task) { n.Status = dts.Failed }) // as force-complete would turn it about; then retried
	k.do("c", retried)
	k.do("d", retried)
	k.is("v PENDING 2", "w PENDING 2", "u PENDING 1", "x PENDING 0")
	k.end(dts.Success, "e")
	k.is("v PENDING 1", "w PENDING 0")
	k.end(dts.Success, "c", "d")
	k.is("v PENDING 0", "w PENDING 0", "u SKIPPED 0")

	// A child that started counts nothing, whatever its parents do.
	k.end(dts.Success, "v")
	k.do("e", func(n *dts.Task) { n.Status = dts.Failed })
	k.do("e", retried)
	k.is("v SUCCESS 0", "w PENDING 0")
	k.do("u", nil)
	if g, err := st.Graph(ctx, dts.DefaultTenant, k.id["d"], 1000); err != nil || len(g.Tasks) != 2 { // z
		t.Errorf("a deleted child is still there: %+v, %v", g, err)
	}
}

// TestDependencyChanges: dependencies come and go while a task waits.
func TestDependencyChanges(t *testing.T) {
	st, _, f := open(t)
	k := newFamily(t, st, f)
	for _, p := range []string{"a", "b", "c", "x", "done", "failed"} {
		k.make(p, nil)
	}
	k.end(dts.Success, "done")
	k.end(dts.Failed, "failed")
	for _, err := range []error{k.depend("x", "a", "b"), k.depend("x", "b:MUST_FAIL", "done")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	k.is("x PENDING 2")
	if err := k.undepend("x", "a"); err != nil {
		t.Fatal(err)
	}
	k.is("x PENDING 1")
	k.told()
	k.end(dts.Failed, "b")
	k.is("x PENDING 0")
	k.told("x")
	if err := k.depend("x", "c", "failed"); err != nil {
		t.Fatal(err)
	}
	k.is("x SKIPPED 0")
	k.told("x")
	if err := k.depend("x", "a"); !errors.Is(err, store.ErrRefused) && err != nil { // the caller looks at the state
		t.Errorf("%v", err)
	}
	old := k.get("a")
	err := st.Change(ctx, f, []dts.Change{{Old: old, New: old, DependsOn: []dts.DependsOn{{TaskID: dts.NewID(now), Type: dts.MustSucceed}}}}, k.later())
	if dts.CodeOf(err) != dts.ErrInvalid || !strings.Contains(err.Error(), "depends_on[0].task_id") {
		t.Errorf("a parent that is not there: %v", err)
	}
	bad := task(t, func(n *dts.Task) {
		n.DependsOn = append(k.edges("c"), dts.DependsOn{TaskID: dts.NewID(now), Type: dts.MustSucceed})
	})
	if _, err := st.InsertTasks(ctx, f, []*dts.Task{bad}); dts.CodeOf(err) != dts.ErrInvalid || !strings.Contains(err.Error(), "depends_on[1].task_id") {
		t.Errorf("a parent that is not there: %v", err)
	}
}

// TestDependencyCircles: a circle is refused, named, and cannot be closed by two at once.
func TestDependencyCircles(t *testing.T) {
	st, db, f := open(t)
	k := newFamily(t, st, f)
	k.make("a", nil)
	k.make("b", nil, "a")
	k.make("c", nil, "b")
	k.make("x", nil)
	k.make("y", nil)
	err := k.depend("a", "x", "c")
	if want := fmt.Sprintf("a (%s) → c (%s) → b (%s) → a (%s)", k.id["a"], k.id["c"], k.id["b"], k.id["a"]); dts.CodeOf(err) != dts.ErrConflict || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if err := k.depend("a", "a"); dts.CodeOf(err) != dts.ErrConflict {
		t.Errorf("a task that waits for itself: %v", err)
	}
	k.is("a PENDING 0", "b PENDING 1", "c PENDING 1")

	second := store.New(db, store.Options{}) // another server's
	x, y := k.get("x"), k.get("y")
	var errs [2]error
	var both sync.WaitGroup
	both.Go(func() {
		errs[0] = st.Change(ctx, f, []dts.Change{{Old: x, New: x, DependsOn: []dts.DependsOn{{TaskID: y.ID, Type: dts.MustSucceed}}}}, now)
	})
	both.Go(func() {
		errs[1] = second.Change(ctx, f, []dts.Change{{Old: y, New: y, DependsOn: []dts.DependsOn{{TaskID: x.ID, Type: dts.MustSucceed}}}}, now)
	})
	both.Wait()
	if (errs[0] == nil) == (errs[1] == nil) || dts.CodeOf(errors.Join(errs[0], errs[1])) != dts.ErrConflict {
		t.Errorf("two that close a circle: %v", errs)
	}
}

// TestDependencyKeys: a task of a bulk request depends on one that was there before, under its idempotency key.
func TestDependencyKeys(t *testing.T) {
	st, _, f := open(t)
	k := newFamily(t, st, f)
	keyed := func(n *dts.Task) { n.IdempotencyKey, n.RequestHash = "k", "h" }
	first := k.make("first", keyed)
	bulk := func() []dts.Created[*dts.Task] {
		again := task(t, keyed)
		also := task(t, nil)
		child := task(t, func(n *dts.Task) {
			n.DependsOn = []dts.DependsOn{{TaskID: again.ID, Type: dts.MustSucceed}, {TaskID: also.ID, Type: dts.MustSucceed}}
			n.IdempotencyKey, n.RequestHash = "child", "h"
		})
		k.id["also"] = also.ID
		made, err := st.InsertTasks(ctx, f, []*dts.Task{again, also, child})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	made := bulk()
	k.id["child"] = made[2].Item.ID
	if !made[0].Existed || made[0].Item.ID != first.ID || made[2].Item.Unresolved != 2 {
		t.Errorf("%+v, waits for %d", made[0], made[2].Item.Unresolved)
	}
	k.end(dts.Success, "first", "also")
	k.is("child PENDING 0")
	if made := bulk(); !made[2].Existed || made[2].Item.ID != k.id["child"] {
		t.Errorf("the same again: %+v", made[2])
	}
	k.is("child PENDING 0")
}

// TestDependencyRetention: what the past says of a parent outlives it.
func TestDependencyRetention(t *testing.T) {
	st, _, f := open(t)
	k := newFamily(t, st, f)
	k.make("p", nil)
	k.make("open", nil)
	k.make("child", nil, "p", "open")
	k.end(dts.Success, "p")
	if d, err := st.DeleteFinished(ctx, dts.Cut{TenantID: dts.DefaultTenant, Before: now.Add(time.Hour), Through: now.Add(time.Hour)}, now, 10); len(d.Deleted) != 1 || err != nil {
		t.Fatal(d, err)
	}
	k.is("child PENDING 1")
	g, err := st.Graph(ctx, dts.DefaultTenant, k.id["child"], 1000)
	if err != nil || len(g.Tasks) != 3 || len(g.Dependencies) != 2 {
		t.Fatalf("%+v, %v", g, err)
	}
	for _, n := range g.Tasks {
		if n.ID == k.id["p"] && n.Status != "" {
			t.Errorf("%+v", n)
		}
	}
	k.end(dts.Success, "open")
	k.is("child PENDING 0")
}

// TestGraph: what is near comes first, and of too much the rest is left out.
func TestGraph(t *testing.T) {
	st, _, f := open(t)
	k := newFamily(t, st, f)
	k.make("a", nil)
	k.make("b", nil, "a")
	k.make("c", nil, "b")
	k.make("d", nil, "c:MUST_FINISH")
	k.make("e", nil, "d", "a")
	k.end(dts.Success, "a")
	g, err := st.Graph(ctx, dts.DefaultTenant, k.id["c"], 1000)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range g.Tasks {
		names = append(names, n.Name)
	}
	if got := strings.Join(names, ""); got != "cbdae" && got != "cbdea" || len(g.Dependencies) != 5 || g.Truncated {
		t.Errorf("%s, %+v", got, g.Dependencies)
	}
	if g, err := st.Graph(ctx, dts.DefaultTenant, k.id["c"], 3); err != nil || !g.Truncated || len(g.Tasks) != 3 || len(g.Dependencies) != 2 {
		t.Errorf("%+v, %v", g, err)
	}
	if _, err := st.Graph(ctx, "another", k.id["c"], 3); dts.CodeOf(err) != dts.ErrNotFound {
		t.Error(err)
	}
}
