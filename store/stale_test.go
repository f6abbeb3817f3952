package store_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"dts"
	"dts/migrations"
	"dts/store"
	"dts/store/rqlite"
	"dts/store/rqlite/rqlitetest"
	"dts/store/sqlite"
)

// leaderless is a database whose cluster has no leader: only stale reads are answered.
type leaderless struct {
	store.Backend
	away  bool
	asked []store.Level
}

func (b *leaderless) Query(ctx context.Context, level store.Level, s store.Stmt) (store.Rows, error) {
	b.asked = append(b.asked, level)
	if b.away && level != store.Stale {
		return nil, fmt.Errorf("%w: there is no leader", store.ErrUnavailable)
	}
	return b.Backend.Query(ctx, level, s)
}

func TestStaleReads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dts.db")
	synctest.Test(t, func(t *testing.T) {
		db, err := sqlite.Open(ctx, path, sqlite.Options{Migrations: migrations.FS})
		if err != nil {
			t.Fatal(err)
		}
		b := &leaderless{Backend: db}
		st := store.New(b, store.Options{})
		defer st.Close()
		k := task(t, nil)
		insert(t, st, k)
		read := func(ctx context.Context) ([]store.Level, error) {
			b.asked = nil
			got, err := st.Task(ctx, k.TenantID, k.ID)
			if err == nil && got.ID != k.ID {
				t.Errorf("read %s", got.ID)
			}
			return b.asked, err
		}

		allowed, old := dts.AllowStale(ctx)
		if asked, err := read(allowed); err != nil || old.Stale() || !slices.Equal(asked, []store.Level{store.OwnWrites}) {
			t.Errorf("with a leader: %v, asked %v, stale %t", err, asked, old.Stale())
		}
		b.away = true
		if asked, err := read(ctx); dts.CodeOf(err) != dts.ErrUnavailable || len(asked) != 1 {
			t.Errorf("not allowed: %v, asked %v", err, asked)
		}
		if asked, err := read(dts.RefuseStale(allowed)); dts.CodeOf(err) != dts.ErrUnavailable || len(asked) != 1 {
			t.Errorf("refused again: %v, asked %v", err, asked)
		}
		if asked, err := read(allowed); err != nil || !old.Stale() || !slices.Equal(asked, []store.Level{store.OwnWrites, store.Stale}) {
			t.Errorf("allowed: %v, asked %v, stale %t", err, asked, old.Stale())
		}
		second, also := dts.AllowStale(ctx)
		if asked, err := read(second); err != nil || !also.Stale() || !slices.Equal(asked, []store.Level{store.Stale}) {
			t.Errorf("the next request: %v, asked %v, stale %t", err, asked, also.Stale())
		}
		b.away = false // the leader is back, in the middle of a request
		time.Sleep(3 * time.Second)
		if asked, err := read(allowed); err != nil || !slices.Equal(asked, []store.Level{store.Stale}) {
			t.Errorf("in the same request: %v, asked %v", err, asked)
		}
		again, fresh := dts.AllowStale(ctx)
		if asked, err := read(again); err != nil || fresh.Stale() || !slices.Equal(asked, []store.Level{store.OwnWrites}) {
			t.Errorf("later: %v, asked %v, stale %t", err, asked, fresh.Stale())
		}
	})
}

// A real cluster that has lost its majority still tells what it knows, to those who may read what is old.
func TestStaleReadsOfRqlite(t *testing.T) {
	c := rqlitetest.Start(t, rqlitetest.Options{Nodes: 3})
	db, err := rqlite.Open(ctx, rqlite.Options{URLs: c.URLs(), Migrations: migrations.FS})
	if err != nil {
		t.Fatal(err)
	}
	st := store.New(db, store.Options{})
	defer st.Close()
	begin(t, st, "n1")
	k := task(t, nil)
	if _, err := st.InsertTasks(ctx, dts.Fence{Node: "n1", Alone: true}, []*dts.Task{k}); err != nil {
		t.Fatal(err)
	}
	leader := c.Leader()
	for _, n := range c.Followers() {
		if n != leader {
			n.Kill()
		}
	}
	limited, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	for { // its lease lasts for a moment
		if _, err := st.Task(limited, k.TenantID, k.ID); dts.CodeOf(err) == dts.ErrUnavailable {
			break
		} else if limited.Err() != nil {
			t.Fatalf("a cluster without a majority answers: %v", err)
		}
	}
	begun := time.Now()
	allowed, old := dts.AllowStale(limited)
	if got, err := st.Task(allowed, k.TenantID, k.ID); err != nil || got.ID != k.ID || !old.Stale() {
		t.Errorf("%v, %v, stale %t", got, err, old.Stale())
	}
	first := time.Since(begun)
	begun = time.Now()
	if _, err := st.Tasks(allowed, dts.TaskFilter{TenantID: k.TenantID, Limit: 10}); err != nil {
		t.Error(err)
	}
	again, also := dts.AllowStale(limited)
	if _, err := st.Task(again, k.TenantID, k.ID); err != nil || !also.Stale() {
		t.Errorf("the next request: %v, stale %t", err, also.Stale())
	}
	t.Logf("the first read took %s, the two after it %s", first, time.Since(begun))
}
