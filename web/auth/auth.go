// Package auth says who asks: the principal of a request, how it travels in a context, the session cookie,
// and what the web needs of whoever keeps the tokens.
//
// It promises nothing about storage: package web decides when a credential is needed and asks Tokens.
package auth

import (
	"context"
	"net/http"
	"time"
)

// Principal is who asks.
type Principal struct {
	TenantID string
	Name     string // for created_by and the log, for example "admin" or "alice (socket)"
	Admin    bool   // may do everything in every tenant
}

// Tokens knows the credentials. Its implementation compares hashes in constant time and never logs a token.
type Tokens interface {
	// Authenticate returns the principal of an API token or of a session's token. A token that is unknown,
	// revoked or expired is dts.ErrUnauthorized; any other error means that it could not be checked.
	Authenticate(ctx context.Context, token string) (Principal, error)
	// NewSession starts a session, for the page's cookie, that ends after ttl.
	NewSession(ctx context.Context, p Principal, ttl time.Duration) (token string, err error)
	// EndSession ends a session. Ending one that does not exist is not an error.
	EndSession(ctx context.Context, token string) error
	// NewLoginLink makes a token that RedeemLoginLink accepts once, within ttl.
	NewLoginLink(ctx context.Context, p Principal, ttl time.Duration) (token string, err error)
	// RedeemLoginLink spends a login link's token. One that is unknown, spent or expired is
	// dts.ErrUnauthorized.
	RedeemLoginLink(ctx context.Context, token string) (Principal, error)
}

// Cookie is the name of the session cookie.
const Cookie = "dts_session"

// SessionTTL is how long a session of the page lasts.
const SessionTTL = 30 * 24 * time.Hour

// LinkTTL is how long a login link can be redeemed.
const LinkTTL = 5 * time.Minute

type contextKey struct{}

// With returns a context that carries the principal.
func With(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// From returns the principal of a request's context. It is false for a request that nobody signed in for.
func From(ctx context.Context) (Principal, bool) {
	p, ok := ctx.Value(contextKey{}).(Principal)
	return p, ok
}

// SetCookie puts a session's token into the response's cookie, out of reach of scripts and of other sites.
func SetCookie(w http.ResponseWriter, r *http.Request, token string, ttl time.Duration) {
	http.SetCookie(w, cookie(r, token, int(ttl/time.Second)))
}

// ClearCookie removes the session cookie from the browser.
func ClearCookie(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, cookie(r, "", -1))
}

func cookie(r *http.Request, token string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: Cookie, Value: token, Path: "/", MaxAge: maxAge,
		HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteLaxMode,
	}
}
