package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"dts"
	"dts/store"
	"dts/web/auth"
)

// tokens knows the credentials: the admin token of the data directory, and those in the store by their hash.
type tokens struct {
	admin string // SHA-256 of the admin token
	st    *store.Store
	now   func() time.Time
}

var _ auth.Tokens = (*tokens)(nil)

// adminToken reads the admin token, or makes it at the first start, and returns its hash. The file is the
// token's only home: removing it and starting again revokes it.
func adminToken(dir string) (hash string, err error) {
	path := filepath.Join(dir, adminTokenFile)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		text := newToken()
		return hashOf(text), writeFile(path, []byte(text+"\n"))
	case err != nil:
		return "", err
	case info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("%s can be read by others (mode %04o): run chmod 0600 %s, or remove it to get a new token", path, info.Mode().Perm(), path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(b))
	if len(text) < 32 {
		return "", fmt.Errorf("%s is too short to be safe (%d characters): remove it to get a new token", path, len(text))
	}
	return hashOf(text), nil
}

// shareAdminToken makes the admin token of this server, by its hash, good on every server of the cluster, in place of
// the one that it had before. It is shared until the file is removed and this server has been started again.
func shareAdminToken(ctx context.Context, st *store.Store, nodeID, hash string) error {
	return st.ReplaceToken(ctx, dts.Token{Hash: hash, TenantID: dts.DefaultTenant, Kind: dts.TokenAPI, Name: store.AdminTokenName(nodeID), Admin: true, CreatedAt: time.Now()})
}

// newToken makes a credential of 256 random bits.
func newToken() string {
	var b [32]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

var errToken = dts.Errorf(dts.ErrUnauthorized, "the token is not known, or has expired")

// Authenticate returns whose token it is.
func (t *tokens) Authenticate(ctx context.Context, token string) (auth.Principal, error) {
	hash := hashOf(token)
	if same(hash, t.admin) {
		return auth.Principal{TenantID: dts.DefaultTenant, Name: adminName, Admin: true}, nil
	}
	k, err := t.find(ctx, hash)
	if err == nil && k.Kind == dts.TokenLink {
		err = errToken
	}
	return principal(k), err
}

func (t *tokens) find(ctx context.Context, hash string) (dts.Token, error) {
	k, found, err := t.st.Token(ctx, hash)
	switch {
	case err != nil:
		return k, err
	case !found && dts.StalenessOf(ctx).Stale(): // it may be a new one
		return k, dts.Errorf(dts.ErrUnavailable, "the database cannot tell now whether the token is known; try again")
	case !found || !same(k.Hash, hash) || !k.ExpiresAt.IsZero() && !t.now().Before(k.ExpiresAt):
		return dts.Token{}, errToken
	}
	return k, nil
}

func principal(k dts.Token) auth.Principal {
	if k.Kind == dts.TokenAPI && k.Admin && strings.HasPrefix(k.Name, store.AdminTokenName("")) {
		k.Name = adminName // as it is called where it comes from
	}
	return auth.Principal{TenantID: k.TenantID, Name: k.Name, Admin: k.Admin}
}

// adminName is what whoever has an admin token is called.
const adminName = "admin"

func (t *tokens) put(ctx context.Context, kind dts.TokenKind, p auth.Principal, ttl time.Duration) (string, error) {
	text, now := newToken(), t.now()
	err := t.st.PutToken(ctx, dts.Token{Hash: hashOf(text), TenantID: p.TenantID, Kind: kind, Name: p.Name, Admin: p.Admin,
		CreatedAt: now, ExpiresAt: now.Add(ttl)})
	return text, err
}

// NewSession starts a session of the page.
func (t *tokens) NewSession(ctx context.Context, p auth.Principal, ttl time.Duration) (string, error) {
	return t.put(ctx, dts.TokenSession, p, ttl)
}

// EndSession ends one.
func (t *tokens) EndSession(ctx context.Context, token string) error {
	_, err := t.st.DeleteToken(ctx, hashOf(token))
	return err
}

// NewLoginLink makes a token that signs in once.
func (t *tokens) NewLoginLink(ctx context.Context, p auth.Principal, ttl time.Duration) (string, error) {
	return t.put(ctx, dts.TokenLink, p, ttl)
}

// RedeemLoginLink spends it.
func (t *tokens) RedeemLoginLink(ctx context.Context, token string) (auth.Principal, error) {
	hash := hashOf(token)
	k, err := t.find(ctx, hash)
	if err != nil {
		return auth.Principal{}, err
	}
	if k.Kind != dts.TokenLink {
		return auth.Principal{}, errToken
	}
	spent, err := t.st.DeleteToken(ctx, hash)
	if err == nil && !spent {
		err = errToken
	}
	return principal(k), err
}
