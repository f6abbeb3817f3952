package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dts"
	"dts/store"
)

// finish makes tasks that ended one after the other, an hour apart, in the queues that are named, and returns how they
// are called: "0 a" is the first one, in the queue a.
func finish(t *testing.T, st *store.Store, f dts.Fence, queues ...string) {
	t.Helper()
	var tasks []*dts.Task
	var ends []dts.Change
	for i, queue := range queues {
		k := task(t, func(k *dts.Task) {
			k.Queue, k.Name, k.IdempotencyKey = queue, fmt.Sprint(i, " ", queue), fmt.Sprint("key ", i)
		})
		n := *k
		n.Status, n.CompletedAt, n.LastError = dts.Cancelled, now.Add(time.Duration(i)*time.Hour), strings.Repeat("é", 500)
		tasks, ends = append(tasks, k), append(ends, dts.Change{Old: k, New: &n})
	}
	insert(t, st, tasks...)
	if err := st.Change(ctx, f, ends, now); err != nil {
		t.Fatal(err)
	}
}

// left returns the tasks that there are, the oldest first.
func left(t *testing.T, st *store.Store) string {
	t.Helper()
	page, err := st.Tasks(ctx, dts.TaskFilter{TenantID: dts.DefaultTenant, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, k := range page.Items {
		names = append([]string{k.Name}, names...)
	}
	return strings.Join(names, ", ")
}

// TestRetention: what has not ended stays; else the oldest go first, as far as the limit asks, and of the tenant and the
// queue that it is for. A step looks at so many tasks and no more, and the next one goes on behind it.
func TestRetention(t *testing.T) {
	st, _, f := open(t)
	insert(t, st, task(t, func(k *dts.Task) { k.Name = "unfinished" }))
	finish(t, st, f, "a", "b", "a", "a", "b", "a", "b", "a")
	end := now.Add(100 * time.Hour)
	counts := map[string]dts.Finished{}
	for at, calls := (time.Time{}), 0; at.Before(end); calls++ {
		list, next, err := st.CountFinished(ctx, at, end, 3)
		if err != nil || !next.After(at) || calls > 3 {
			t.Fatal(list, next, err)
		}
		at = next
		for _, n := range list {
			sum := counts[n.Queue]
			counts[n.Queue] = dts.Finished{TenantID: n.TenantID, Queue: n.Queue, Rows: sum.Rows + n.Rows, Bytes: sum.Bytes + n.Bytes}
		}
	}
	a := counts["a"]
	if a.Rows != 5 || counts["b"].Rows != 3 || a.Bytes < 5*1400 || a.Bytes > 5*2000 {
		t.Errorf("%+v", counts)
	}
	size := a.Bytes / 5
	var marks = map[string]dts.FinishedMark{}
	cut := func(c dts.Cut, limit int, more bool, want string) {
		t.Helper()
		c.TenantID, c.After = dts.DefaultTenant, marks[c.Queue]
		if c.Through.IsZero() {
			c.Through = end
		}
		d, err := st.DeleteFinished(ctx, c, now, limit)
		if err != nil || d.More != more {
			t.Errorf("%+v, %v", d, err)
		}
		marks[c.Queue] = d.Next
		if got := left(t, st); got != strings.TrimSuffix("unfinished, "+want, ", ") {
			t.Errorf("%s are left, want %s", got, want)
		}
	}
	cut(dts.Cut{}, 10, false, "0 a, 1 b, 2 a, 3 a, 4 b, 5 a, 6 b, 7 a")
	cut(dts.Cut{Rows: 5, Through: now}, 10, false, "0 a, 1 b, 2 a, 3 a, 4 b, 5 a, 6 b, 7 a")
	cut(dts.Cut{Before: now.Add(90 * time.Minute), Queue: "b"}, 10, false, "0 a, 2 a, 3 a, 4 b, 5 a, 6 b, 7 a")
	cut(dts.Cut{Rows: 1}, 10, false, "2 a, 3 a, 4 b, 5 a, 6 b, 7 a")
	cut(dts.Cut{Before: end, Queue: "b"}, 1, true, "2 a, 3 a, 4 b, 5 a, 6 b, 7 a")
	cut(dts.Cut{Before: end, Queue: "b"}, 2, true, "2 a, 3 a, 5 a, 6 b, 7 a")
	cut(dts.Cut{Bytes: size + 1, Queue: "a"}, 10, false, "5 a, 6 b, 7 a")
	cut(dts.Cut{Before: end}, 1, true, "6 b, 7 a")
	cut(dts.Cut{Before: end}, 10, false, "")
	d, err := st.DeleteFinished(ctx, dts.Cut{TenantID: "other", Before: end, Through: end}, now, 10)
	if err != nil || d.More || d.Deleted != nil {
		t.Errorf("another tenant's: %+v, %v", d, err)
	}
}

// TestRetentionOfTenants: what is set is there, and taken away by nothing.
func TestRetentionOfTenants(t *testing.T) {
	st, _, _ := open(t)
	for _, r := range []dts.Retention{{Seconds: 90}, {Rows: 5, Bytes: 1 << 40}, {}} {
		if err := st.PutRetention(ctx, "t", r, now, 7); err != nil {
			t.Fatal(err)
		}
		want := map[string]dts.Retention{"t": r}
		if r == (dts.Retention{}) {
			want = map[string]dts.Retention{}
		}
		got, err := st.Retentions(ctx)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	if token, err := st.TimeRules(ctx); err != nil || token != "7" {
		t.Errorf("the servers are told %q, %v", token, err)
	}
}

// TestKeysOutlive: an idempotency key stays for a week after its task was deleted, by retention or by hand, however long ago
// it was first used; and as long as the task is there.
func TestKeysOutlive(t *testing.T) {
	st, _, f := open(t)
	finish(t, st, f, "a", "a", "a")
	page, err := st.Tasks(ctx, dts.TaskFilter{TenantID: dts.DefaultTenant, Limit: 10})
	if err != nil || len(page.Items) != 3 {
		t.Fatal(page, err)
	}
	kept, byHand := page.Items[0], page.Items[1]
	gone := now.Add(1000 * time.Hour)
	if err := st.Change(ctx, f, []dts.Change{{Old: byHand}}, gone); err != nil {
		t.Fatal(err)
	}
	if d, err := st.DeleteFinished(ctx, dts.Cut{TenantID: dts.DefaultTenant, Rows: 1, Through: gone}, gone, 10); err != nil || len(d.Deleted) != 1 {
		t.Fatal(d, err)
	}
	old := func(at time.Time) {
		t.Helper()
		if more, err := st.DeleteOld(ctx, at, at, 10); err != nil || more {
			t.Error(more, err)
		}
	}
	use := func(key string) error {
		k := task(t, func(k *dts.Task) { k.IdempotencyKey = key })
		made, err := st.InsertTasks(ctx, dts.Fence{Alone: true}, []*dts.Task{k})
		if err == nil && made[0].Existed && made[0].Item.ID != kept.ID {
			t.Errorf("%q is the key of %s", key, made[0].Item.ID)
		}
		return err
	}
	old(gone.Add(store.KeysOutlive))
	for _, key := range []string{"key 0", "key 1"} {
		if err := use(key); dts.CodeOf(err) != dts.ErrConflict {
			t.Errorf("%s, a week after its task: %v", key, err)
		}
	}
	if err := use("key 2"); err != nil {
		t.Error(err)
	}
	old(gone.Add(store.KeysOutlive + time.Hour))
	for _, key := range []string{"key 0", "key 1", "key 2"} {
		if err := use(key); err != nil {
			t.Errorf("%s, later: %v", key, err)
		}
	}
}

// TestOldSkips: skips go by the age that their tenant sets, a page at a time.
func TestOldSkips(t *testing.T) {
	st, _, f := open(t)
	for i, tenant := range []string{"a", "b", "a"} {
		r := &dts.RecurringTask{ID: dts.NewID(now), TenantID: tenant, Spec: task(t, nil).Spec, Schedule: dts.Schedule{Cron: "@daily"}, Status: dts.Active, CreatedAt: now, UpdatedAt: now, PlannedThrough: now}
		if err := r.Normalize(); err != nil {
			t.Fatal(err)
		}
		r.Shard = dts.ShardOf(r.ID)
		p := dts.Plan{New: r}
		for n := range 3 {
			at := now.Add(time.Duration(n) * time.Hour)
			p.Skips = append(p.Skips, dts.Skip{TenantID: tenant, RecurringTaskID: r.ID, From: at, To: at, Count: 1, Reason: dts.ReasonPaused, Note: fmt.Sprint(i)})
		}
		if _, err := st.InsertRecurring(ctx, f, p); err != nil {
			t.Fatal(err)
		}
	}
	sweep := func(before map[string]time.Time, other time.Time) (steps int) {
		t.Helper()
		for mark := (dts.SkipMark{}); steps < 20; {
			next, err := st.DeleteSkips(ctx, mark, before, other, 2)
			if err != nil {
				t.Fatal(err)
			}
			if steps++; next == (dts.SkipMark{}) {
				break
			}
			mark = next
		}
		return steps
	}
	recorded := func(want int64) {
		t.Helper()
		var n int64
		page, err := st.RecurringTasks(ctx, dts.RecurringFilter{TenantID: "a", Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		other, err := st.RecurringTasks(ctx, dts.RecurringFilter{TenantID: "b", Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range append(page.Items, other.Items...) {
			list, err := st.SkipsAfter(ctx, r.ID, now.Add(-time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			n += int64(len(list))
		}
		if n != want {
			t.Errorf("%d skips are left, want %d", n, want)
		}
	}
	recorded(9)
	if n := sweep(nil, now); n != 5 {
		t.Errorf("%d steps", n)
	}
	recorded(9)
	sweep(map[string]time.Time{"a": now.AddDate(-1, 0, 0)}, now.AddDate(0, 0, 1))
	recorded(6)
	sweep(map[string]time.Time{"a": now.AddDate(0, 0, 1)}, now.AddDate(-1, 0, 0))
	recorded(0)
}
