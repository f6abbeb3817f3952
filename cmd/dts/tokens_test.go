package main

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"dts"
	"dts/migrations"
	"dts/store"
	"dts/store/sqlite"
)

// leaderless answers no read but those that may be stale, while away is true.
type leaderless struct {
	store.Backend
	away bool
}

func (b *leaderless) Query(ctx context.Context, level store.Level, s store.Stmt) (store.Rows, error) {
	if b.away && level != store.Stale {
		return nil, fmt.Errorf("%w: there is no leader", store.ErrUnavailable)
	}
	return b.Backend.Query(ctx, level, s)
}

// twoServers are the credentials as two servers of a cluster know them: one database, an admin token each.
func twoServers(t *testing.T) (a, b *tokens, db *leaderless) {
	t.Helper()
	file, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "dts.db"), sqlite.Options{Migrations: migrations.FS})
	if err != nil {
		t.Fatal(err)
	}
	db = &leaderless{Backend: file}
	st := store.New(db, store.Options{})
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return &tokens{admin: hashOf("token of a"), st: st, now: time.Now}, &tokens{admin: hashOf("token of b"), st: st, now: time.Now}, db
}

func TestAdminTokenOnEveryServer(t *testing.T) {
	ctx := t.Context()
	a, b, _ := twoServers(t)
	if _, err := b.Authenticate(ctx, "token of a"); dts.CodeOf(err) != dts.ErrUnauthorized {
		t.Errorf("before it is shared: %v", err)
	}
	for range 2 { // as after a restart
		if err := shareAdminToken(ctx, a.st, "node-a", a.admin); err != nil {
			t.Fatal(err)
		}
	}
	if err := shareAdminToken(ctx, b.st, "node-b", b.admin); err != nil {
		t.Fatal(err)
	}
	for _, server := range []*tokens{a, b} {
		for _, token := range []string{"token of a", "token of b"} {
			p, err := server.Authenticate(ctx, token)
			if err != nil || !p.Admin || p.Name != "admin" || p.TenantID != dts.DefaultTenant {
				t.Errorf("%s: %+v, %v", token, p, err)
			}
		}
	}

	// The file of a was removed, and a started again.
	if err := shareAdminToken(ctx, a.st, "node-a", hashOf("new token of a")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Authenticate(ctx, "token of a"); dts.CodeOf(err) != dts.ErrUnauthorized {
		t.Errorf("the old one: %v", err)
	}
	for _, token := range []string{"new token of a", "token of b"} {
		if _, err := b.Authenticate(ctx, token); err != nil {
			t.Errorf("%s: %v", token, err)
		}
	}
}

// Where the database cannot tell what is newest, a token that it knows is good, one that it does not know may be new,
// and nothing is let in that was not known before.
func TestTokensWithoutALeader(t *testing.T) {
	a, b, db := twoServers(t)
	if err := shareAdminToken(t.Context(), a.st, "node-a", a.admin); err != nil {
		t.Fatal(err)
	}
	db.away = true
	for _, tt := range []struct {
		token string
		stale bool
		want  dts.Code
	}{
		{"token of b", false, ""}, // its own: the file tells
		{"token of a", false, dts.ErrUnavailable},
		{"token of a", true, ""},
		{"unknown", false, dts.ErrUnavailable},
		{"unknown", true, dts.ErrUnavailable},
	} {
		ctx := t.Context()
		if tt.stale {
			ctx, _ = dts.AllowStale(ctx)
		}
		if p, err := b.Authenticate(ctx, tt.token); dts.CodeOf(err) != tt.want || p.Admin != (tt.want == "") {
			t.Errorf("%s, stale %t: %+v, %v", tt.token, tt.stale, p, err)
		}
	}
	ctx, _ := dts.AllowStale(t.Context())
	if _, err := b.RedeemLoginLink(ctx, "token of a"); dts.CodeOf(err) != dts.ErrUnauthorized {
		t.Errorf("an API token as a link: %v", err)
	}
}
