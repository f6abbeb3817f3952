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
