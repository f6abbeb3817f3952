package store_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"dts"
	"dts/store"
)

func deduped(t *testing.T, policy dts.DedupePolicy, edit func(*dts.Task)) *dts.Task {
	return task(t, func(k *dts.Task) {
		k.DedupeKey, k.DedupePolicy = "backup", policy
		if edit != nil {
			edit(k)
		}
	})
}

// TestDedupe: at most one unfinished task has a dedupe_key, and what a second one is told depends on its policy.
func TestDedupe(t *testing.T) {
	st, _, f := open(t)
	first := deduped(t, dts.DedupeReject, nil)
	insert(t, st, first)
	add := func(k *dts.Task) (*dts.Task, bool, error) {
		made, err := st.InsertTasks(ctx, dts.Fence{Alone: true}, []*dts.Task{k})
		if err != nil {
			return nil, false, err
		}
		return made[0].Item, made[0].Existed, nil
	}
	refused := func(k *dts.Task, by *dts.Task) {
		t.Helper()
		_, _, err := add(k)
		if dup, is := errors.AsType[*dts.Duplicate](err); !is || dup.TaskID != by.ID || dts.CodeOf(err) != dts.ErrConflict || !errors.Is(err, store.ErrRefused) {
			t.Errorf("refused with %v, want a duplicate of %s", err, by.ID)
		}
		if _, err := st.Task(ctx, k.TenantID, k.ID); dts.CodeOf(err) != dts.ErrNotFound {
			t.Errorf("what was refused: %v", err)
		}
	}
	refused(deduped(t, dts.DedupeReject, nil), first)
	refused(deduped(t, dts.DedupeReplace, nil), first) // replacing is what the scheduler does about it
	if got, existed, err := add(deduped(t, dts.DedupeKeepFirst, nil)); err != nil || !existed || got.ID != first.ID {
		t.Errorf("KEEP_FIRST: %v, %v, %v", got, existed, err)
	}
	// Another key, another tenant's, and none are not concerned.
	insert(t, st, deduped(t, dts.DedupeReject, func(k *dts.Task) { k.DedupeKey = "other" }), deduped(t, dts.DedupeReject, func(k *dts.Task) { k.TenantID = "t2" }), task(t, nil))

	// A key and an idempotency key: the same request again is no duplicate of what it made, nor of what that gave way to.
	keyed := deduped(t, dts.DedupeReject, func(k *dts.Task) { k.DedupeKey, k.IdempotencyKey, k.RequestHash = "once", "i1", "h" })
	insert(t, st, keyed)
	if got, existed, err := add(deduped(t, dts.DedupeReject, func(k *dts.Task) { k.DedupeKey, k.IdempotencyKey, k.RequestHash = "once", "i1", "h" })); err != nil || !existed || got.ID != keyed.ID {
		t.Errorf("again: %v, %v, %v", got, existed, err)
	}
	for range 2 {
		if got, existed, err := add(deduped(t, dts.DedupeKeepFirst, func(k *dts.Task) { k.IdempotencyKey, k.RequestHash = "i2", "h" })); err != nil || !existed || got.ID != first.ID {
			t.Errorf("KEEP_FIRST with a key: %v, %v, %v", got, existed, err)
		}
	}
	if _, _, err := add(deduped(t, dts.DedupeKeepFirst, func(k *dts.Task) { k.IdempotencyKey, k.RequestHash = "i2", "h2" })); dts.CodeOf(err) != dts.ErrConflict {
		t.Errorf("the key of another request: %v", err)
	} else if _, is := errors.AsType[*dts.Duplicate](err); is {
		t.Errorf("the key of another request counts as a duplicate: %v", err)
	}

	// Many at once: all or none, and the first of several.
	several := []*dts.Task{task(t, nil), deduped(t, dts.DedupeReject, nil)}
	if _, err := st.InsertTasks(ctx, dts.Fence{Alone: true}, several); dts.CodeOf(err) != dts.ErrConflict {
		t.Errorf("several: %v", err)
	}
	if _, err := st.Task(ctx, dts.DefaultTenant, several[0].ID); dts.CodeOf(err) != dts.ErrNotFound {
		t.Errorf("half of it is there: %v", err)
	}
	several = nil
	for range 3 {
		several = append(several, deduped(t, dts.DedupeKeepFirst, func(k *dts.Task) { k.DedupeKey = "several" }))
	}
	made, err := st.InsertTasks(ctx, dts.Fence{Alone: true}, several)
	if err != nil || made[0].Existed || !made[1].Existed || !made[2].Existed || made[1].Item.ID != several[0].ID || made[2].Item.ID != several[0].ID {
		t.Errorf("KEEP_FIRST of several: %v, %v", made, err)
	}

	// In its place, in one batch.
	now2 := now
	ended := *first
	ended.Status, ended.CompletedAt = dts.Cancelled, now2
	second := deduped(t, dts.DedupeReplace, nil)
	if err := st.Change(ctx, f, []dts.Change{{Old: first, New: &ended, Insert: second}}, now); err != nil {
		t.Fatal(err)
	}
	if got, err := st.Unfinished(ctx, dts.DefaultTenant, "backup"); err != nil || got.ID != second.ID {
		t.Errorf("after the change %v, %v has the key", got, err)
	}
	third := deduped(t, dts.DedupeReplace, func(k *dts.Task) { k.IdempotencyKey, k.RequestHash = "i1", "h" })
	gone := *second
	gone.Status, gone.CompletedAt = dts.Cancelled, now2
	if err := st.Change(ctx, f, []dts.Change{{Old: second, New: &gone, Insert: third}}, now); !errors.Is(err, store.ErrRefused) {
		t.Errorf("the idempotency key is another task's: %v", err)
	}
	// The old one cannot come back while the new one is there.
	back := *first
	back.Status = dts.Pending
	if err := st.Change(ctx, f, []dts.Change{{Old: &ended, New: &back}}, now); !errors.Is(err, store.ErrRefused) {
		t.Errorf("a retry of the old one: %v", err)
	}
	if got, err := st.Task(ctx, dts.DefaultTenant, second.ID); err != nil || got.Status != dts.Pending {
		t.Errorf("the new one: %v, %v", got, err)
	}
	// The end of a task frees its key.
	if err := st.Change(ctx, f, []dts.Change{{Old: second, New: &gone}, {Old: &ended, New: &back}}, now); err != nil {
		t.Error(err)
	}
}

// TestDedupeRace: 64 at once, one task.
func TestDedupeRace(t *testing.T) {
	st, _, _ := open(t)
	for _, policy := range []dts.DedupePolicy{dts.DedupeReject, dts.DedupeKeepFirst} {
		var all sync.WaitGroup
		ids, existed := make([]string, 64), make([]bool, 64)
		for i := range ids {
			k := deduped(t, policy, func(k *dts.Task) { k.DedupeKey = string(policy) })
			all.Go(func() {
				made, err := st.InsertTasks(ctx, dts.Fence{Alone: true}, []*dts.Task{k})
				if err == nil {
					ids[i], existed[i] = made[0].Item.ID, made[0].Existed
				} else if dup, is := errors.AsType[*dts.Duplicate](err); is && policy == dts.DedupeReject {
					ids[i], existed[i] = dup.TaskID, true
				} else {
					t.Error(err)
				}
			})
		}
		all.Wait()
		fresh := 0
		for i := range ids {
			if ids[i] != ids[0] {
				t.Errorf("%s: %s and %s", policy, ids[i], ids[0])
			}
			if !existed[i] {
				fresh++
			}
		}
		if fresh != 1 {
			t.Errorf("%s: %d were created, want 1", policy, fresh)
		}
	}
}

// TestKeyRace: 64 at once with one idempotency key, one task; with another request, none of it.
func TestKeyRace(t *testing.T) {
	st, _, _ := open(t)
	var all sync.WaitGroup
	ids := make([]string, 64)
	for i := range ids {
		k := task(t, func(k *dts.Task) { k.IdempotencyKey, k.RequestHash = "k", fmt.Sprint(i%2) })
		all.Go(func() {
			made, err := st.InsertTasks(ctx, dts.Fence{Alone: true}, []*dts.Task{k})
			if err == nil {
				ids[i] = made[0].Item.ID
			} else if dts.CodeOf(err) != dts.ErrConflict {
				t.Error(err)
			}
		})
	}
	all.Wait()
	winner := 0
	if ids[0] == "" {
		winner = 1
	}
	for i, id := range ids {
		if i%2 == winner && id != ids[winner] || i%2 != winner && id != "" {
			t.Errorf("%d got %q, the first one %q", i, id, ids[winner])
		}
	}
}
