package rqlite

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"dts/migrations"
	"dts/store"
	"dts/store/rqlite/rqlitetest"
	"dts/store/storetest"
)

// testMigrations make a table t, in n versions.
func testMigrations(n int) fstest.MapFS {
	m := fstest.MapFS{"00001_init.sql": {Data: []byte("-- +goose Up\nCREATE TABLE t (id INTEGER PRIMARY KEY, s TEXT) STRICT;\n")}}
	for v := 2; v <= n; v++ {
		m[fmt.Sprintf("%05d_more.sql", v)] = &fstest.MapFile{Data: fmt.Appendf(nil, "-- +goose Up\nALTER TABLE t ADD COLUMN c%d TEXT;\n", v)}
	}
	return m
}

func openTest(t testing.TB, o Options) *DB {
	t.Helper()
	if o.Migrations == nil {
		o.Migrations = testMigrations(1)
	}
	d, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func put(id int64, s string) store.Stmt {
	return store.Stmt{SQL: `INSERT INTO t (id, s) VALUES (?, ?)`, Args: []any{id, s}}
}

func mustApply(t testing.TB, d *DB, batch ...store.Stmt) []store.Result {
	t.Helper()
	res, err := d.Apply(t.Context(), batch...)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// value answers a query of one value.
func value[T any](t testing.TB, d *DB, q string, args ...any) (v T) {
	t.Helper()
	rows, err := d.Query(t.Context(), store.OwnWrites, store.Stmt{SQL: q, Args: args})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	if !rows.Next() {
		t.Fatalf("%s: no row (%v)", q, rows.Err())
	}
	if err := rows.Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// proxy stands before a node and can swallow a request that writes, or its answer.
type proxy struct {
	url    string
	next   atomic.Pointer[func(w http.ResponseWriter, r *http.Request, forward func())]
	writes atomic.Int64
}

func newProxy(t testing.TB, target string) *proxy {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{url: "http://" + l.Addr().String()}
	forward := httputil.NewSingleHostReverseProxy(u)
	forward.ErrorLog = log.New(io.Discard, "", 0) // clients that go away are part of the tests
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/db/execute" {
			forward.ServeHTTP(w, r)
			return
		}
		p.writes.Add(1)
		if f := p.next.Swap(nil); f != nil {
			(*f)(w, r, func() { forward.ServeHTTP(discard{http.Header{}}, r) })
			return
		}
		forward.ServeHTTP(w, r)
	})}
	var wg sync.WaitGroup
	wg.Go(func() { srv.Serve(l) })
	t.Cleanup(func() { srv.Close(); wg.Wait() })
	return p
}

// failNext makes the next write end without an answer, after or before it took effect.
func (p *proxy) failNext(tookEffect bool) {
	f := func(_ http.ResponseWriter, _ *http.Request, forward func()) {
		if tookEffect {
			forward()
		}
		panic(http.ErrAbortHandler) // closes the connection
	}
	p.next.Store(&f)
}

// discard takes an answer that nobody is to see.
type discard struct{ h http.Header }

func (d discard) Header() http.Header       { return d.h }
func (discard) Write(b []byte) (int, error) { return io.Discard.Write(b) }
func (discard) WriteHeader(int)             {}

func TestConformance(t *testing.T) {
	c := rqlitetest.Start(t, rqlitetest.Options{})
	for name, m := range map[string]fs.FS{"real schema": migrations.FS, "small schema": testMigrations(1)} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) storetest.Harness {
				c.Clear()
				p := newProxy(t, c.URLs()[0])
				o := Options{URLs: []string{p.url}, Migrations: m}
				d := openTest(t, o)
				return storetest.Harness{
					Backend:        d,
					FailNextCommit: p.failNext,
					Reopen: func(t *testing.T) store.Backend {
						if err := d.Close(); err != nil {
							t.Error(err)
						}
						return openTest(t, o)
					},
				}
			})
		})
	}
}
