package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dts"
	"dts/store"
)

// TestQueueSettings: settings are replaced as a whole, but for the pause, which is changed alone; where the pause was all,
// nothing is left after it.
func TestQueueSettings(t *testing.T) {
	st, _, _ := open(t)
	want := func(list ...*dts.Queue) {
		t.Helper()
		got, err := st.Queues(ctx, dts.DefaultTenant)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(list, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	put := func(q *dts.Queue) *dts.Queue {
		t.Helper()
		if err := q.Normalize(); err != nil {
			t.Fatal(err)
		}
		if err := st.PutQueue(ctx, q, 1); err != nil {
			t.Fatal(err)
		}
		c := *q
		return &c
	}
	full := put(&dts.Queue{Name: "full", Concurrency: 2, Rate: 10, PeriodSeconds: 1.5, Burst: 5, CreatedAt: now, UpdatedAt: now,
		Retry: &dts.Retry{Backoff: dts.List, DelaysMS: []int64{1, 2}}, Retention: &dts.Retention{Seconds: 60, Rows: 10, Bytes: 1000}})
	want(full)
	later := now.Add(time.Hour)
	if err := st.PauseQueue(ctx, dts.DefaultTenant, "full", "repairs", later, 2); err != nil {
		t.Fatal(err)
	}
	full.Paused, full.PausedAt, full.PauseNote, full.UpdatedAt = true, later, "repairs", later
	want(full)
	if err := st.PauseQueue(ctx, dts.DefaultTenant, "full", "still", later.Add(time.Hour), 3); err != nil {
		t.Fatal(err)
	}
	full.PauseNote, full.UpdatedAt = "still", later.Add(time.Hour)
	want(full)
	less := put(&dts.Queue{Name: "full", Rate: 3, CreatedAt: later, UpdatedAt: later})
	less.CreatedAt, less.Paused, less.PausedAt, less.PauseNote = now, true, full.PausedAt, full.PauseNote
	want(less)
	if err := st.ResumeQueue(ctx, dts.DefaultTenant, "full", now, 4); err != nil {
		t.Fatal(err)
	}
	less.Paused, less.PausedAt, less.PauseNote, less.UpdatedAt = false, time.Time{}, "", now
	want(less)
	if err := st.PauseQueue(ctx, dts.DefaultTenant, "bare", "", now, 5); err != nil {
		t.Fatal(err)
	}
	want(&dts.Queue{TenantID: dts.DefaultTenant, Name: "bare", Paused: true, PausedAt: now, CreatedAt: now, UpdatedAt: now}, less)
	if err := st.ResumeQueue(ctx, dts.DefaultTenant, "bare", now, 6); err != nil {
		t.Fatal(err)
	}
	want(less)
	if err := st.DeleteQueue(ctx, dts.DefaultTenant, "full", 7); err != nil {
		t.Fatal(err)
	}
	want()
	if token, err := st.TimeRules(ctx); err != nil || token != "7" {
		t.Errorf("the servers are told %q, %v", token, err)
	}
}

// TestTooManyQueues: so many have settings, and no more; those that have some can be changed.
func TestTooManyQueues(t *testing.T) {
	st := store.New(openSQLite(t), store.Options{})
	t.Cleanup(func() { _ = st.Close() })
	put := func(name string) error {
		return st.PutQueue(ctx, &dts.Queue{TenantID: dts.DefaultTenant, Name: name, Concurrency: 1, CreatedAt: now, UpdatedAt: now}, 1)
	}
	for i := range dts.MaxQueues {
		if err := put(fmt.Sprint("q", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := put("q0"); err != nil {
		t.Error(err)
	}
	if err := st.PauseQueue(ctx, dts.DefaultTenant, "q1", "", now, 8); err != nil {
		t.Error(err)
	}
	if err := st.PauseQueue(ctx, dts.DefaultTenant, "one-more", "", now, 8); dts.CodeOf(err) != dts.ErrConflict {
		t.Errorf("one queue too many: %v", err)
	}
}

// TestQueueStates: what runs and what waits is counted wherever it is: due, in a line of a queue or of a key, or kept by a
// blackout; and what only comes later shows its queue, and no more.
func TestQueueStates(t *testing.T) {
	st, _, f := open(t)
	at := now.Add(time.Hour)
	in := func(queue string, due time.Duration, edit func(*dts.Task)) *dts.Task {
		return task(t, func(k *dts.Task) {
			k.Queue, k.RunAt = queue, now.Add(due)
			if edit != nil {
				edit(k)
			}
		})
	}
	waits := func(reason dts.Reason) func(*dts.Task) {
		return func(k *dts.Task) { k.WaitsFor = reason }
	}
	keyed := func(k *dts.Task) { k.ConcurrencyKey = "k" }
	running := in("a", 0, nil)
	line, key, closed := in("narrow", time.Minute, nil), in("a", 2*time.Minute, keyed), in("b", 3*time.Minute, nil)
	done := in("old", 0, nil)
	insert(t, st, running, in("a", 0, nil), in("a", 10*time.Minute, nil), in("later", 2*time.Hour, nil), line, key, closed, done)
	if err := st.PutQueue(ctx, &dts.Queue{TenantID: dts.DefaultTenant, Name: "narrow", Concurrency: 1, CreatedAt: now, UpdatedAt: now}, 1); err != nil {
		t.Fatal(err)
	}
	var changes []dts.Change
	for _, c := range []struct {
		k      *dts.Task
		reason dts.Reason
	}{{line, dts.ReasonQueue}, {key, dts.ReasonConcurrency}, {closed, dts.ReasonBlackout}} {
		n := *c.k
		waits(c.reason)(&n)
		n.RunAt = at.Add(time.Hour)
		changes = append(changes, dts.Change{Old: c.k, New: &n})
	}
	ended := *done
	ended.Status, ended.CompletedAt = dts.Cancelled, now
	if err := st.Change(ctx, f, append(changes, dts.Change{Old: done, New: &ended}), now); err != nil {
		t.Fatal(err)
	}
	if err := st.Write(ctx, f, []*dts.Record{{Task: running, Term: f.Term(running.Shard),
		Attempt: dts.Attempt{TaskID: running.ID, TenantID: running.TenantID, Number: 1, State: dts.AttemptRunning, Node: "n1", StartedAt: now}}}); err != nil {
		t.Fatal(err)
	}
	want := map[string]dts.QueueState{
		"a":      {Running: 1, Waiting: 3, OldestAgeSeconds: 3600},
		"b":      {Waiting: 1, OldestAgeSeconds: 3600 - 180},
		"narrow": {Waiting: 1, OldestAgeSeconds: 3600 - 60},
	}
	got, err := st.QueueStates(ctx, dts.DefaultTenant, at, false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	list, err := st.QueuesNow(ctx, dts.DefaultTenant, at)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, q := range list {
		names = append(names, q.Name)
		if diff := cmp.Diff(want[q.Name], q.QueueState); diff != "" {
			t.Errorf("%s (-want +got):\n%s", q.Name, diff)
		}
	}
	if fmt.Sprint(names) != "[a b later narrow]" || list[3].Concurrency != 1 {
		t.Errorf("%v %+v", names, list[3])
	}
	if other, err := st.QueuesNow(ctx, "other", at); err != nil || len(other) != 0 {
		t.Errorf("another tenant sees %v, %v", other, err)
	}
	if all, err := st.QueueStates(ctx, "", at, false); err != nil || all["a"].Waiting != 2 || all["a"].Running != 1 || all["b"].Waiting != 1 || all["narrow"].Waiting != 1 {
		t.Errorf("of all tenants: %+v, %v", all, err)
	}
}
