package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"dts"
	"dts/web/api"
	"dts/web/auth"
	"dts/web/pings"
)

// handler is everything that a request passes on its way, outermost first.
func (s *Server) handler(apiHandler http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", s.authenticated(apiHandler))
	if s.o.UI != nil {
		mux.Handle("/ui/", s.pages(s.o.UI))
		mux.Handle("GET /{$}", http.RedirectHandler("/ui/", http.StatusSeeOther))
	}
	return s.recovered(s.clustered(s.pinged(s.hosted(s.sameOrigin(mux)))))
}

// pinged lets reports of jobs in: their URL is all that they need, and may have any host in it, such as a proxy's.
func (s *Server) pinged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.o.Pings != nil && isPing(r) {
			s.o.Pings.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isPing reports whether a request's path has a key in it.
func isPing(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, pings.Prefix) }

// loggedPath is a request's path without the key of a ping URL, also of one that is not quite right: behind a proxy's prefix, or
// with a slash too many.
func loggedPath(r *http.Request) string {
	path, n := r.URL.Path, len(pings.Prefix)
	for i := range path {
		if path[i] == '/' && len(path) >= i+n && strings.EqualFold(path[i:i+n], pings.Prefix) {
			return path[:i] + pings.Prefix + "…"
		}
	}
	return path
}

// clustered lets other servers in, before anything is checked that is for people and their programs. What they wait for
// ends when this server stops: they ask another one then.
func (s *Server) clustered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.o.Peers == nil || fromSocket(r.Context()) || !strings.HasPrefix(r.URL.Path, "/cluster/") {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(s.stopping, cancel)()
		s.o.Peers.ServeHTTP(w, r.WithContext(ctx))
	})
}

// recovered logs each request at debug level, and answers 500 where a handler panics.
func (s *Server) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		rec := &recorder{ResponseWriter: w}
		defer func() {
			v := recover()
			if v == http.ErrAbortHandler {
				panic(v) // net/http's own way to end a connection
			}
			if v != nil {
				s.log.Error("handler panicked", "method", r.Method, "path", loggedPath(r), "panic", v, "stack", string(debug.Stack()))
				if rec.status != 0 {
					panic(http.ErrAbortHandler) // half an answer must not look like a whole one
				}
				api.WriteProblem(rec, errors.New("panic"))
			}
			s.log.Debug("request", "method", r.Method, "path", loggedPath(r), "status", rec.status, "duration", time.Since(start))
		}()
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if (r.Method == http.MethodGet || r.Method == http.MethodHead) && !isPing(r) { // which changes something all the same
			var ctx context.Context
			ctx, rec.old = dts.AllowStale(r.Context())
			r = r.WithContext(ctx)
		}
		next.ServeHTTP(rec, r)
	})
}

// recorder remembers the status of an answer, and marks one that may be old.
type recorder struct {
	http.ResponseWriter
	status int
	old    *dts.Staleness
}

func (r *recorder) begin(status int) {
	if r.status != 0 {
		return
	}
	r.status = status
	if r.old.Stale() {
		r.Header().Set(api.HeaderStale, "true")
	}
}

func (r *recorder) WriteHeader(status int) {
	r.begin(status)
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	r.begin(http.StatusOK)
	return r.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// hosted refuses requests for a name that is not this server's.
func (s *Server) hosted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !fromSocket(r.Context()) && !s.hosts.Load().allowed(r.Host) {
			s.log.Debug("host refused", "host", r.Host)
			http.Error(w, "This server does not answer to that host name. To allow it, add the name to DTS_ALLOWED_HOSTS\n"+
				"(or serve --allowed-host NAME) and restart dts.", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// sameOrigin refuses requests that change something and that a page of another site has sent.
func (s *Server) sameOrigin(next http.Handler) http.Handler {
	p := http.NewCrossOriginProtection()
	p.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api.WriteProblem(w, dts.Errorf(dts.ErrForbidden, "a page of another site has sent this request; only this server's own pages, and programs, may change something"))
	}))
	return p.Handler(next)
}

// authenticated finds out who asks and hands on to the API, which decides what that needs.
func (s *Server) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !open(r.URL.Path) {
			p, ok, err := s.principal(r)
			if err != nil {
				s.refuse(w, r, err)
				return
			}
			if ok {
				r = r.WithContext(auth.With(r.Context(), p))
			}
		}
		next.ServeHTTP(w, r)
	})
}

// open reports whether a path needs no credential, so that a wrong one does not matter.
func open(path string) bool {
	path = strings.TrimPrefix(path, "/v1")
	return path == "/health" || path == "/ready"
}

// pages finds out who asks and hands on to the pages, which send to the sign-in page who has to. A wrong
// cookie is like none there. Sign-ins are limited: those that the pages answer with 401 have failed.
func (s *Server) pages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/ui/static/") {
			next.ServeHTTP(w, r)
			return
		}
		signIn := r.URL.Path == "/ui/login" && r.Method == http.MethodPost || r.URL.Path == "/ui/link"
		if signIn && !s.limiter.Allowed(network(r.RemoteAddr), time.Now()) {
			api.WriteProblem(w, errTooMany)
			return
		}
		switch p, ok, err := s.principal(r); {
		case err == errTooMany:
		case dts.CodeOf(err) == dts.ErrUnauthorized:
			auth.ClearCookie(w, r) // or each of the page's requests would count as a failure
		case err != nil:
			s.refuse(w, r, err)
			return
		case ok:
			r = r.WithContext(auth.With(r.Context(), p))
		}
		rec := &recorder{ResponseWriter: w}
		next.ServeHTTP(rec, r)
		if signIn && rec.status == http.StatusUnauthorized {
			s.limiter.Used(network(r.RemoteAddr), time.Now())
		}
	})
}

// principal returns who asks. ok is false when no credential came.
func (s *Server) principal(r *http.Request) (p auth.Principal, ok bool, err error) {
	if fromSocket(r.Context()) {
		p, err = peerOf(r.Context())
		return p, err == nil, err
	}
	token, found := bearer(r)
	if !found {
		return p, false, nil
	}
	now := time.Now()
	if !s.limiter.Allowed(network(r.RemoteAddr), now) {
		return p, false, errTooMany
	}
	p, err = s.o.Tokens.Authenticate(r.Context(), token)
	if err == nil {
		return p, true, nil
	}
	if dts.CodeOf(err) == dts.ErrUnauthorized {
		s.limiter.Used(network(r.RemoteAddr), now)
		err = dts.Errorf(dts.ErrUnauthorized, "the token is not valid; it is unknown, revoked or has expired")
	}
	return p, false, err
}

// maxToken is how long a token may be, in bytes.
const maxToken = 512

// bearer returns the token of the header Authorization, else that of the session cookie.
func bearer(r *http.Request) (token string, found bool) {
	if h := r.Header.Get("Authorization"); h != "" {
		scheme, token, _ := strings.Cut(h, " ")
		if !strings.EqualFold(scheme, "Bearer") || len(token) > maxToken {
			return "", true // a credential that cannot be right
		}
		return strings.TrimSpace(token), true
	}
	if c, err := r.Cookie(auth.Cookie); err == nil && c.Value != "" && len(c.Value) <= maxToken {
		return c.Value, true
	}
	return "", false
}

// errTooMany says that an address has failed to sign in too often.
var errTooMany = api.WithStatus(http.StatusTooManyRequests,
	dts.Errorf(dts.ErrUnauthorized, "too many failed sign-ins from this address; wait some seconds"))

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if status := api.WriteProblem(w, err); status >= http.StatusInternalServerError && r.Context().Err() == nil {
		s.unchecked.Write(r.Context(), s.log, slog.LevelError, "sign-in could not be checked", "error", err)
	}
}

type connKey struct{}

// peer is the other end of a Unix socket: who it is, or why it may not be.
type peer struct {
	p   auth.Principal
	err error
}

func fromSocket(ctx context.Context) bool {
	_, ok := ctx.Value(connKey{}).(peer)
	return ok
}

func peerOf(ctx context.Context) (auth.Principal, error) {
	p, _ := ctx.Value(connKey{}).(peer)
	return p.p, p.err
}
