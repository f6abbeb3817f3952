package storetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dts/store"
)

func testScanNull(t *testing.T, h Harness) {
	apply(t, h.Backend, store.Stmt{SQL: `INSERT INTO suite_thing (id) VALUES ('null')`})
	var (
		n sql.NullInt64
		s *string
		f sql.Null[float64]
		v any = "left over"
	)
	one(t, h.Backend, `SELECT n, s, f, b FROM suite_thing WHERE id = 'null'`, nil, &n, &s, &f, &v)
	if n.Valid || s != nil || f.Valid || v != nil {
		t.Errorf("NULL came back as %v, %v, %v, %v", n, s, f, v)
	}
	rows, err := h.Backend.Query(t.Context(), store.Stale, store.Stmt{SQL: `SELECT n FROM suite_thing`})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plain int64 = 7
	if !rows.Next() || rows.Scan(&plain) == nil {
		t.Error("NULL into an int64 must be an error, not a value left as it was")
	}
}

func testReadLevels(t *testing.T, h Harness) {
	for i := range 20 {
		id := fmt.Sprint(i)
		apply(t, h.Backend, insert(id, int64(i)))
		for _, level := range []store.Level{store.OwnWrites, store.Linearizable} {
			if n, ok := number(t, h.Backend, level, sqlN, id); !ok || n != int64(i) {
				t.Fatalf("%v does not see the write before it", level)
			}
		}
	}
	// A stale read may lag, but arrives.
	deadline := time.Now().Add(10 * time.Second)
	for {
		if n, _ := number(t, h.Backend, store.Stale, sqlCount); n == 20 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("a stale read did not catch up in 10 s")
		}
	}
}

func testQueryCannotWrite(t *testing.T, h Harness) {
	rows, err := h.Backend.Query(t.Context(), store.OwnWrites, insert("sneaky", 1))
	if err == nil {
		for rows.Next() {
		}
		err = errors.Join(rows.Err(), rows.Close())
	}
	if err == nil {
		t.Error("Query ran an INSERT without an error")
	}
	wantCount(t, h.Backend, 0)
}

func testTotalOrder(t *testing.T, h Harness) {
	var batch []store.Stmt
	for i := range 100 {
		batch = append(batch, insert(fmt.Sprintf("%03d", (i*37)%100), int64(i%5)))
	}
	apply(t, h.Backend, batch...)
	rows, err := h.Backend.Query(t.Context(), store.OwnWrites,
		store.Stmt{SQL: `SELECT n, id FROM suite_thing WHERE n >= ? ORDER BY n, id LIMIT ?`, Args: []any{1, 50}})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var got int
	lastN, lastID := int64(-1), ""
	for rows.Next() {
		var n int64
		var id string
		if err := rows.Scan(&n, &id); err != nil {
			t.Fatal(err)
		}
		if n < lastN || n == lastN && id <= lastID {
			t.Fatalf("(%d, %s) after (%d, %s)", n, id, lastN, lastID)
		}
		lastN, lastID = n, id
		got++
	}
	if err := rows.Err(); err != nil || got != 50 {
		t.Errorf("%d rows, %v; want 50", got, err)
	}
}

func testManyStatements(t *testing.T, h Harness) {
	var batch []store.Stmt
	for i := range 3000 {
		batch = append(batch, insert(fmt.Sprintf("%05d", i), int64(i)))
	}
	apply(t, h.Backend, batch...)
	wantCount(t, h.Backend, 3000)
	// More different texts than any cache of statements holds, in one batch and as queries.
	batch = batch[:0]
	for i := range 600 {
		batch = append(batch, store.Stmt{SQL: fmt.Sprintf(`UPDATE suite_thing SET n = n WHERE n = %d`, i)})
	}
	for _, r := range apply(t, h.Backend, batch...) {
		if r.RowsAffected != 1 {
			t.Fatal("an update was lost")
		}
	}
	for i := range 600 {
		if n, _ := number(t, h.Backend, store.Stale, fmt.Sprintf(`SELECT %d`, i)); n != int64(i) {
			t.Fatalf("SELECT %d gave %d", i, n)
		}
	}
}

func testConcurrentWriters(t *testing.T, h Harness) {
	apply(t, h.Backend, insert("counter", 0))
	var wg sync.WaitGroup
	var won atomic.Int64
	for w := range 8 {
		wg.Go(func() {
			for i := range 25 {
				n, _ := number(t, h.Backend, store.Linearizable, sqlN, "counter")
				_, err := h.Backend.Apply(t.Context(), assertN("counter", n), // compare and set
					store.Stmt{SQL: `UPDATE suite_thing SET n = ? WHERE id = 'counter'`, Args: []any{n + 1}},
					insert(fmt.Sprintf("%d.%d", w, i), n))
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, store.ErrRefused):
					t.Errorf("apply: %v", err)
				}
			}
		})
	}
	wg.Wait()
	n, _ := number(t, h.Backend, store.Linearizable, sqlN, "counter")
	if n != won.Load() || n == 0 {
		t.Errorf("the counter is %d after %d successful compare-and-sets", n, won.Load())
	}
	wantCount(t, h.Backend, n+1)
}

func testReplay(t *testing.T, h Harness) {
	for range 3 {
		apply(t, h.Backend, once("a", 1), once("b", 2),
			store.Stmt{SQL: `UPDATE suite_thing SET n = ? WHERE id = ?`, Args: []any{3, "a"}})
	}
	wantCount(t, h.Backend, 2)
}

// testFailedCommit: whatever Apply says about a commit that failed, it is true, and the same batch
// sent again leaves exactly one effect.
func testFailedCommit(t *testing.T, h Harness) {
	for i, tookEffect := range []bool{false, true, true, false} {
		id := fmt.Sprint(i)
		h.FailNextCommit(tookEffect)
		res, err := h.Backend.Apply(t.Context(), once(id, 1), once(id+"b", 1))
		_, there := number(t, h.Backend, store.Linearizable, sqlN, id)
		switch {
		case err == nil:
			if !there {
				t.Errorf("took effect %v: acknowledged, but not there", tookEffect)
			}
			if len(res) != 2 {
				t.Errorf("took effect %v: %d results", tookEffect, len(res))
			}
		case errors.Is(err, store.ErrUnknown):
		case errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrFull):
			if there {
				t.Errorf("took effect %v: %v, but it was applied", tookEffect, err)
			}
		default:
			t.Errorf("took effect %v: err = %v", tookEffect, err)
		}
		apply(t, h.Backend, once(id, 1), once(id+"b", 1))
		wantCount(t, h.Backend, int64(2*(i+1)))
	}
}

func testFailedCommitInGroup(t *testing.T, h Harness) {
	g := store.NewGroup(h.Backend, store.GroupOptions{})
	defer g.Close()
	for i, tookEffect := range []bool{true, false, true} {
		h.FailNextCommit(tookEffect)
		var wg sync.WaitGroup
		for j := range 20 {
			wg.Go(func() {
				s := once(fmt.Sprintf("%d.%d", i, j), 1)
				_, err := g.Apply(t.Context(), s)
				if err != nil {
					if tookEffect || errors.Is(err, store.ErrRefused) {
						t.Errorf("took effect %v: %v", tookEffect, err)
					}
					_, err = g.Apply(t.Context(), s) // as a client would
				}
				if err != nil {
					t.Errorf("second time: %v", err)
				}
			})
		}
		wg.Wait()
		wantCount(t, h.Backend, int64(20*(i+1)))
	}
}

func testGroupRefusal(t *testing.T, h Harness) {
	g := store.NewGroup(h.Backend, store.GroupOptions{})
	defer g.Close()
	apply(t, h.Backend, insert("taken", 0))
	var wg sync.WaitGroup
	for i := range 200 {
		batch := []store.Stmt{insert(fmt.Sprintf("a%03d", i), 1), insert(fmt.Sprintf("b%03d", i), 1)}
		bad := i%7 == 3
		if bad {
			batch[1] = insert("taken", 1)
		}
		wg.Add(1)
		g.ApplyAsync(batch, func(res []store.Result, err error) {
			defer wg.Done()
			if bad {
				wantRefused(t, err, 1)
			} else if err != nil || len(res) != 2 || res[0].RowsAffected != 1 {
				t.Errorf("batch %d: %v, %v", i, res, err)
			}
		})
	}
	wg.Wait()
	wantCount(t, h.Backend, 1+2*(200-29))
}

func testGroupMany(t *testing.T, h Harness) {
	var commits atomic.Int64
	g := store.NewGroup(h.Backend, store.GroupOptions{
		OnCommit: func(int, int, time.Duration, error) { commits.Add(1) },
	})
	var wg sync.WaitGroup
	for w := range 20 {
		wg.Go(func() {
			for i := range 50 {
				if _, err := g.Apply(t.Context(), insert(fmt.Sprintf("%d.%d", w, i), 1)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	g.Close()
	wantCount(t, h.Backend, 1000)
	if commits.Load() >= 1000 {
		t.Errorf("%d commits for 1,000 batches: nothing was grouped", commits.Load())
	}
}

func testContext(t *testing.T, h Harness) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := h.Backend.Apply(ctx, insert("a", 1))
	if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("apply with a context that is done: %v", err)
	}
	wantCount(t, h.Backend, 0)
	if rows, err := h.Backend.Query(ctx, store.Stale, store.Stmt{SQL: sqlCount}); err == nil {
		rows.Close()
		t.Error("query with a context that is done succeeded")
	}
}

func testDurable(t *testing.T, h Harness) {
	apply(t, h.Backend, insert("a", 1))
	b := h.Reopen(t)
	defer b.Close()
	if n, ok := number(t, b, store.Linearizable, sqlN, "a"); !ok || n != 1 {
		t.Error("an acknowledged write is gone after reopening")
	}
	apply(t, b, insert("b", 1))
}

func testCheckAndMaintain(t *testing.T, h Harness) {
	before := h.Backend.Stats().Commits
	for i := range 10 {
		apply(t, h.Backend, insert(fmt.Sprint(i), 1))
		if err := h.Backend.Maintain(t.Context()); err != nil {
			t.Fatalf("maintain: %v", err)
		}
	}
	if err := h.Backend.Check(t.Context()); err != nil {
		t.Errorf("check: %v", err)
	}
	if s := h.Backend.Stats(); s.Commits < before+10 || s.Corrupt {
		t.Errorf("stats %+v after %d and 10 commits", s, before)
	}
}

// testCloseWhileBusy: every call returns, with success or a clean error, and what was acknowledged
// is there after reopening.
func testCloseWhileBusy(t *testing.T, h Harness) {
	var wg sync.WaitGroup
	var acked atomic.Int64
	started := make(chan struct{}, 8)
	for w := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				_, err := h.Backend.Apply(context.Background(), insert(fmt.Sprintf("%d.%d", w, i), 1))
				if err != nil {
					if !errors.Is(err, store.ErrUnavailable) {
						t.Errorf("apply during Close: %v", err)
					}
					return
				}
				if acked.Add(1) == 20 {
					started <- struct{}{}
				}
			}
		})
		wg.Go(func() {
			for {
				rows, err := h.Backend.Query(context.Background(), store.Stale, store.Stmt{SQL: sqlCount})
				if err != nil {
					return
				}
				for rows.Next() {
				}
				rows.Close()
			}
		})
	}
	<-started
	b := h.Reopen(t) // closes
	defer b.Close()
	wg.Wait()
	wantCount(t, b, acked.Load())
	if err := h.Backend.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if _, err := h.Backend.Query(t.Context(), store.Stale, store.Stmt{SQL: sqlCount}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("query after Close: %v", err)
	}
	if err := h.Backend.Maintain(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("maintain after Close: %v", err)
	}
}
