package store

import (
	"context"
	"errors"
	"time"

	"dts"
)

// PutToken stores a credential.
func (s *Store) PutToken(ctx context.Context, t dts.Token) error {
	_, err := s.apply(ctx, "store token", putToken(t))
	return err
}

func putToken(t dts.Token) Stmt {
	return Stmt{`INSERT INTO tokens (token_hash, tenant_id, kind, name, admin, created_at, expires_at) VALUES (?,?,?,?,?,?,?) ON CONFLICT DO NOTHING`,
		[]any{t.Hash, t.TenantID, string(t.Kind), t.Name, flag(t.Admin), t.CreatedAt.UnixMicro(), micros(t.ExpiresAt)}}
}

// AdminTokenName is what the admin token of a server is called that its cluster knows. Copy leaves those out: a
// server makes its own known when it joins.
func AdminTokenName(node string) string { return "admin of " + node }

const isAdminToken = `(kind = 'api' AND name GLOB 'admin of *')`

// ReplaceToken stores a credential in place of those of the same tenant, kind and name.
func (s *Store) ReplaceToken(ctx context.Context, t dts.Token) error {
	_, err := s.apply(ctx, "replace token",
		Stmt{`DELETE FROM tokens WHERE tenant_id = ? AND kind = ? AND name = ? AND token_hash <> ?`, []any{t.TenantID, string(t.Kind), t.Name, t.Hash}},
		putToken(t))
	return err
}

// Token returns the credential with this hash; found is false when there is none.
func (s *Store) Token(ctx context.Context, hash string) (t dts.Token, found bool, err error) {
	var created int64
	var expires nullTime
	var admin int64
	found, err = s.one(ctx, "read token", Stmt{
		`SELECT token_hash, tenant_id, kind, name, admin, created_at, expires_at FROM tokens WHERE token_hash = ?`, []any{hash}},
		&t.Hash, &t.TenantID, &t.Kind, &t.Name, &admin, &created, &expires)
	if found {
		t.Admin, t.CreatedAt, t.ExpiresAt = admin != 0, time.UnixMicro(created).UTC(), expires.time()
	}
	return t, found, err
}

// DeleteToken removes a credential. A link can be spent once: of two callers one is told true.
func (s *Store) DeleteToken(ctx context.Context, hash string) (bool, error) {
	_, err := s.apply(ctx, "delete token",
		Stmt{`INSERT INTO batch_assert (tenant_id, ok) SELECT 'system', NULL WHERE NOT EXISTS (SELECT 1 FROM tokens WHERE token_hash = ?)`, []any{hash}},
		Stmt{`DELETE FROM tokens WHERE token_hash = ?`, []any{hash}})
	if errors.Is(err, ErrRefused) {
		return false, nil
	}
	return err == nil, err
}
