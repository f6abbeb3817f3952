package exec

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dts"
)

// dropSecond answers the first request of each connection and hangs up after reading the second, as a server
// does that dies in mid-request or whose keep-alive runs out. It counts the requests it has read.
func dropSecond(t *testing.T, count *atomic.Int64) string {
	return raw(t, func(c net.Conn) {
		for i := range 2 {
			if !readRequest(c) {
				return
			}
			count.Add(1)
			if i == 0 {
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
		}
	})
}

// A POST that was written to a kept connection is not written again behind the scheduler's back.
func TestNoHiddenResend(t *testing.T) {
	var count atomic.Int64
	addr := dropSecond(t, &count)
	r := newRunner(t, Options{})
	target := dts.HTTPTarget{URL: "http://" + addr, Body: "body", Headers: map[string]string{"X-Idempotency-Key": "mine"}}
	if out := r.Run(t.Context(), newJob(t, target, 10*time.Second)); out.State != dts.AttemptSuccess {
		t.Fatalf("first: %+v", out)
	}
	out := r.Run(t.Context(), newJob(t, target, 10*time.Second))
	if out.State != dts.AttemptFailed || !out.Retryable || out.Error != "connection closed by "+addr {
		t.Errorf("second: %+v", out)
	}
	if n := count.Load(); n != 2 {
		t.Errorf("the server saw %d requests for 2 attempts", n)
	}
}

// The same through net/http with the usual spelling of the header: this is what dts avoids. If it fails, Go
// has changed, and the lower-case name in setHeaders is no longer needed.
func TestNetHTTPResendsByKey(t *testing.T) {
	var count atomic.Int64
	addr := dropSecond(t, &count)
	transport := newTransport(&Options{})
	defer transport.CloseIdleConnections()
	for range 2 {
		job := newJob(t, dts.HTTPTarget{URL: "http://" + addr, Body: "body"}, 10*time.Second)
		target, err := newHTTPTarget(&job.Task.Spec, "x")
		if err != nil {
			t.Fatal(err)
		}
		req := target.request(t.Context(), &job, true)
		req.Header.Set("Idempotency-Key", job.Task.ID)
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	if n := count.Load(); n != 3 {
		t.Errorf("the server saw %d requests for 2 round trips; expected net/http to send the second twice", n)
	}
}

// closeSignal tells when the client has let go of a connection.
type closeSignal struct {
	net.Conn
	closed chan<- struct{}
	once   *sync.Once
}

func (c closeSignal) Close() error {
	defer c.once.Do(func() { c.closed <- struct{}{} })
	return c.Conn.Close()
}

// A kept connection that the server has closed meanwhile costs no attempt: nothing is written to it.
func TestClosedIdleConnection(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") })
	r := newRunner(t, Options{})
	closed := make(chan struct{}, 1)
	dial := r.pooled.DialContext
	r.pooled.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		return closeSignal{c, closed, new(sync.Once)}, err
	}
	for i := range 5 {
		out := r.Run(t.Context(), newJob(t, dts.HTTPTarget{URL: s.URL, Body: "body"}, 10*time.Second))
		if out.State != dts.AttemptSuccess {
			t.Fatalf("run %d: %+v", i, out)
		}
		s.CloseClientConnections()
		<-closed
	}
}

// An AT_MOST_ONCE run uses a connection of its own, once, and takes a redirect as the answer.
func TestAtMostOnce(t *testing.T) {
	var count, opened atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count.Add(1)
		switch r.URL.Path {
		case "/go":
			w.Header().Set("Location", "/there")
			w.WriteHeader(307)
		case "/drop":
			c, _, _ := http.NewResponseController(w).Hijack()
			c.Close()
		}
	}))
	s.Config.ConnState = func(_ net.Conn, st http.ConnState) {
		if st == http.StateNew {
			opened.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	r := newRunner(t, Options{})
	for _, c := range []struct {
		method, path, err string
		expect            []int
	}{
		{method: "POST", path: "/"},
		{method: "GET", path: "/"},
		{method: "POST", path: "/go", err: "answered 307 Temporary Redirect; the redirect was not followed"},
		{method: "POST", path: "/go", expect: []int{307}},
		{method: "GET", path: "/drop", err: "connection closed by " + s.Listener.Addr().String()},
		{method: "POST", path: "/drop", err: "connection closed by " + s.Listener.Addr().String()},
	} {
		job := newJob(t, dts.HTTPTarget{URL: s.URL + c.path, Method: c.method, ExpectStatus: c.expect}, 10*time.Second)
		job.Task.Delivery = dts.AtMostOnce
		before := count.Load()
		out := r.Run(t.Context(), job)
		if out.Error != c.err || (out.State == dts.AttemptSuccess) != (c.err == "") {
			t.Errorf("%s %s: %+v", c.method, c.path, out)
		}
		if n := count.Load() - before; n != 1 {
			t.Errorf("%s %s: the server saw %d requests", c.method, c.path, n)
		}
	}
	if opened.Load() != count.Load() {
		t.Errorf("%d connections for %d requests", opened.Load(), count.Load())
	}
}
