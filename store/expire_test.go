package store_test

import (
	"testing"
	"time"

	"dts"
)

func TestExpired(t *testing.T) {
	st, _, f := open(t)
	at := func(d time.Duration) func(*dts.Task) {
		return func(k *dts.Task) { k.ExpiresAt = now.Add(d) }
	}
	a, b, later, over := task(t, at(time.Second)), task(t, at(2*time.Second)), task(t, at(time.Hour)), task(t, at(time.Second))
	insert(t, st, a, task(t, nil), b, later, over)
	ended := *over
	ended.Status, ended.CompletedAt = dts.Cancelled, now
	if err := st.Change(ctx, f, []dts.Change{{Old: over, New: &ended}}, now); err != nil {
		t.Fatal(err)
	}
	ask := func(shards dts.ShardSet, after int64, limit int) (ids []string) {
		t.Helper()
		list, err := st.Expired(ctx, shards, now.Add(time.Minute), after, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range list {
			ids = append(ids, k.ID)
		}
		return ids
	}
	if got := ask(dts.AllShards, 0, 10); len(got) != 2 || got[0] != a.ID || got[1] != b.ID {
		t.Errorf("expired: %v, want %s and %s", got, a.ID, b.ID)
	}
	first, err := st.Task(ctx, a.TenantID, a.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(dts.AllShards, first.Seq, 10); len(got) != 1 || got[0] != b.ID {
		t.Errorf("after the first: %v", got)
	}
	if got := ask(dts.AllShards, 0, 1); len(got) != 1 || got[0] != a.ID {
		t.Errorf("one of them: %v", got)
	}
	if got := ask(0, 0, 10); got != nil {
		t.Errorf("in no shard: %v", got)
	}
}
