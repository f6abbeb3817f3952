package exec

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dts"
)

// serve starts a server for one test. Handlers that wait end with the test.
func serve(t testing.TB, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func TestHTTPRequest(t *testing.T) {
	var got *http.Request
	var body string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, body = r, string(b)
		io.WriteString(w, "fine")
	})
	r := newRunner(t, Options{UserAgent: "dts/test"})
	job := newJob(t, dts.HTTPTarget{
		URL:     strings.Replace(s.URL, "http://", "http://me:secret@", 1) + "/hook?x=1",
		Body:    `{"a":1}`,
		Headers: map[string]string{"x-mine": "yes", "Host": "example.test"},
	}, 10*time.Second)
	job.Number = 3
	job.Task.ScheduledAt = time.Date(2026, 3, 4, 5, 6, 7, 89_000, time.FixedZone("", 3600))
	out := r.Run(t.Context(), job)
	if out.State != dts.AttemptSuccess || out.HTTPStatus != 200 || text(out) != "fine" || out.Output.Total != 4 {
		t.Fatalf("outcome %+v, output %q", out, text(out))
	}
	if got.Method != "POST" || got.URL.String() != "/hook?x=1" || body != `{"a":1}` || got.Host != "example.test" {
		t.Errorf("%s %s %s %q", got.Method, got.Host, got.URL, body)
	}
	for name, want := range map[string]string{
		"Idempotency-Key":    job.Task.ID,
		"X-DTS-Attempt":      "3",
		"X-DTS-Scheduled-At": "2026-03-04T04:06:07.000089Z",
		"User-Agent":         "dts/test",
		"Content-Type":       "application/json",
		"X-Mine":             "yes",
		"Authorization":      "Basic bWU6c2VjcmV0",
	} {
		if v := got.Header.Get(name); v != want {
			t.Errorf("%s = %q, want %q", name, v, want)
		}
	}
	if v := got.Header.Get("Traceparent"); !strings.Contains(v, "00-"+strings.ReplaceAll(job.Task.ID, "-", "")+"-") {
		t.Errorf("traceparent = %q for task %s", v, job.Task.ID)
	}
}

func TestTraceparent(t *testing.T) {
	form := regexp.MustCompile(`^00-([0-9a-f]{32})-([0-9a-f]{16})-01$`)
	for _, task := range []*dts.Task{
		{ID: dts.NewID(time.Now())},
		{ID: "not a uuid"},
		{ID: dts.NewID(time.Now()), TracingID: "0123456789abcdef0123456789abcdef"},
	} {
		a, b := form.FindStringSubmatch(traceparent(task)), form.FindStringSubmatch(traceparent(task))
		if a == nil || b == nil {
			t.Fatalf("%q is not a traceparent", traceparent(task))
		}
		if a[1] != b[1] || a[2] == b[2] {
			t.Errorf("two attempts: %v and %v; want one trace and two spans", a, b)
		}
		if task.TracingID != "" && a[1] != task.TracingID {
			t.Errorf("trace %s, want %s", a[1], task.TracingID)
		}
	}
}

func TestContentType(t *testing.T) {
	for body, want := range map[string]string{"": "", `[1]`: "application/json", "a=1": "text/plain; charset=utf-8"} {
		job := newJob(t, dts.HTTPTarget{URL: "http://h/", Body: body}, time.Second)
		target, err := newHTTPTarget(&job.Task.Spec, "x")
		if err != nil || target.header.Get("Content-Type") != want {
			t.Errorf("body %q: Content-Type %q, %v; want %q", body, target.header.Get("Content-Type"), err, want)
		}
	}
}

func TestHTTPAnswers(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var code int
		fmt.Sscanf(r.URL.Path, "/%d", &code)
		if after := r.URL.Query().Get("after"); after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(code)
		if code != 204 {
			io.WriteString(w, "status: green")
		}
	})
	r := newRunner(t, Options{})
	for _, c := range []struct {
		path      string
		target    dts.HTTPTarget
		ok, retry bool
		err       string
		after     time.Duration
	}{
		{path: "/200", ok: true},
		{path: "/204", ok: true},
		{path: "/404", err: "answered 404 Not Found"},
		{path: "/404", target: dts.HTTPTarget{ExpectStatus: []int{404}}, ok: true},
		{path: "/200", target: dts.HTTPTarget{ExpectStatus: []int{204}}, retry: true, err: "answered 200 OK, which is not in expect_status"},
		{path: "/408", retry: true, err: "answered 408 Request Timeout"},
		{path: "/425", retry: true, err: "answered 425 Too Early"},
		{path: "/429?after=7", retry: true, err: "answered 429 Too Many Requests", after: 7 * time.Second},
		{path: "/503?after=999999", retry: true, err: "answered 503 Service Unavailable", after: time.Hour},
		{path: "/599", retry: true, err: "answered 599"},
		{path: "/200", target: dts.HTTPTarget{ExpectBody: "green"}, ok: true},
		{path: "/200", target: dts.HTTPTarget{ExpectBody: "red"}, retry: true, err: "answered 200 OK, but the answer does not hold the text in expect_body"},
		{path: "/204", target: dts.HTTPTarget{ExpectBody: "x"}, retry: true, err: "answered 204 No Content, but the answer does not hold the text in expect_body"},
	} {
		c.target.URL = s.URL + c.path
		out := r.Run(t.Context(), newJob(t, c.target, 10*time.Second))
		if (out.State == dts.AttemptSuccess) != c.ok || out.Retryable != c.retry || out.Error != c.err || out.RetryAfter != c.after {
			t.Errorf("%s: %+v", c.path, out)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for v, want := range map[string]time.Duration{
		"": 0, "0": 0, "120": 2 * time.Minute, "-5": 0, "soon": 0, "1e9": 0, "2147483647": time.Hour, "99999999999999999999": time.Hour,
		now.Add(90 * time.Second).Format(http.TimeFormat): 90 * time.Second,
		now.Add(-time.Hour).Format(http.TimeFormat):       0,
		now.Add(48 * time.Hour).Format(http.TimeFormat):   time.Hour,
	} {
		if got := retryAfter(v, now); got != want {
			t.Errorf("retryAfter(%q) = %s, want %s", v, got, want)
		}
	}
}

func TestConnectTimeout(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	r := newRunner(t, Options{ConnectTimeout: time.Nanosecond})
	out := r.Run(t.Context(), newJob(t, dts.HTTPTarget{URL: s.URL}, 10*time.Second))
	if want := "no connection to " + s.Listener.Addr().String() + " within 1ns"; out.State != dts.AttemptFailed || !out.Retryable || out.Error != want {
		t.Errorf("%+v", out)
	}
}

// HTTP/2 where the server speaks it, but not for AT_MOST_ONCE.
func TestProtocol(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.Proto+" "+r.Header.Get("Idempotency-Key"))
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	r := newRunner(t, Options{})
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	r.pooled.TLSClientConfig.RootCAs, r.once.TLSClientConfig.RootCAs = pool, pool
	for delivery, want := range map[dts.Delivery]string{dts.AtLeastOnce: "HTTP/2.0", dts.AtMostOnce: "HTTP/1.1"} {
		job := newJob(t, dts.HTTPTarget{URL: s.URL, Body: "{}"}, 10*time.Second)
		job.Task.Delivery = delivery
		if out := r.Run(t.Context(), job); text(out) != want+" "+job.Task.ID {
			t.Errorf("%s: %+v %q", delivery, out, text(out))
		}
	}
}

// A gzip bomb costs neither memory nor time: reading stops at the limit, counted after decompression.
func TestGzipBomb(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	zeros := make([]byte, 1<<20)
	for range 64 {
		z.Write(zeros)
	}
	z.Close()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(packed.Bytes())
	})
	r := newRunner(t, Options{})
	out := r.Run(t.Context(), newJob(t, dts.HTTPTarget{URL: s.URL}, 30*time.Second))
	note := "\n[dts: stopped reading the answer after 16 MiB]\n"
	if out.State != dts.AttemptSuccess || out.Output.Total != maxBody+int64(len(note)) || !bytes.HasSuffix(out.Output.Tail, []byte(note)) {
		t.Errorf("%s %q, %d bytes", out.State, out.Error, out.Output.Total)
	}
	if len(out.Output.Head) != dts.OutputKept || len(out.Output.Tail) != dts.OutputKept {
		t.Errorf("kept %d + %d", len(out.Output.Head), len(out.Output.Tail))
	}
}

func TestSearchAcrossWrites(t *testing.T) {
	for _, cut := range []int{1, 2, 3, 5, 100} {
		s := search{want: []byte("needle")}
		rest := []byte("hay needl hay needneedle hay")
		for len(rest) > 0 {
			k := min(cut, len(rest))
			s.write(rest[:k])
			rest = rest[k:]
		}
		if !s.found {
			t.Errorf("not found in pieces of %d", cut)
		}
	}
}

// A server that drips is bounded by the task's timeout, and what it sent is kept and can be followed.
func TestDripTimesOut(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			io.WriteString(w, ".")
			w.(http.Flusher).Flush()
			sleep(r.Context(), 5*time.Millisecond)
		}
	})
	r := newRunner(t, Options{})
	job := newJob(t, dts.HTTPTarget{URL: s.URL}, 300*time.Millisecond)
	done := start(t.Context(), r, job)
	readUntil(t, r, job, "..")
	out := <-done
	if out.State != dts.AttemptTimedOut || !out.Retryable || out.Error != "the answer did not end within 300ms" || out.HTTPStatus != 200 || out.Output.Total == 0 {
		t.Errorf("%+v", out)
	}
}

func TestNoAnswer(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // so that the server notices when the client goes
		<-r.Context().Done()
	})
	t.Run("task timeout", func(t *testing.T) {
		r := newRunner(t, Options{})
		out := r.Run(t.Context(), newJob(t, dts.HTTPTarget{URL: s.URL}, 50*time.Millisecond))
		if out.State != dts.AttemptTimedOut || out.Error != "no answer within 50ms" {
			t.Errorf("%+v", out)
		}
	})
	t.Run("header timeout", func(t *testing.T) {
		r := newRunner(t, Options{HeaderTimeout: 50 * time.Millisecond})
		out := r.Run(t.Context(), newJob(t, dts.HTTPTarget{URL: s.URL}, 10*time.Second))
		if out.State != dts.AttemptFailed || !out.Retryable || out.Error != "no answer within 50ms" {
			t.Errorf("%+v", out)
		}
	})
	for cause, want := range map[error]dts.AttemptState{dts.ErrRunCancelled: dts.AttemptCancelled, dts.ErrRunLost: dts.AttemptLost} {
		t.Run(string(want), func(t *testing.T) {
			r := newRunner(t, Options{})
			ctx, cancel := context.WithCancelCause(t.Context())
			done := start(ctx, r, newJob(t, dts.HTTPTarget{URL: s.URL}, 10*time.Second))
			cancel(cause)
			if out := <-done; out.State != want {
				t.Errorf("%+v", out)
			}
		})
	}
}

// raw listens and gives each connection to f.
func raw(t *testing.T, f func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { defer c.Close(); f(c) })
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return l.Addr().String()
}

// readRequest reads one request with its body, or reports false.
func readRequest(c net.Conn) bool {
	var seen []byte
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(buf)
		seen = append(seen, buf[:n]...)
		if bytes.HasSuffix(seen, []byte("\r\n\r\nbody")) {
			return true
		}
		if err != nil {
			return false
		}
	}
}

func TestBrokenAnswers(t *testing.T) {
	reset := raw(t, func(c net.Conn) { readRequest(c); c.(*net.TCPConn).SetLinger(0) })
	closed := raw(t, func(c net.Conn) { readRequest(c) })
	garbage := raw(t, func(c net.Conn) { readRequest(c); io.WriteString(c, "SSH-2.0-x \"secret\"\r\n\r\n") })
	short := raw(t, func(c net.Conn) {
		readRequest(c)
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfive.")
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()
	plain := serve(t, func(http.ResponseWriter, *http.Request) {})
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains of the client that hangs up
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	r := newRunner(t, Options{})
	for _, c := range []struct{ url, want string }{
		{"http://" + reset, "connection reset by " + reset},
		{"http://" + closed, "connection closed by " + closed},
		{"http://" + garbage, garbage + " does not answer in HTTP"},
		{"http://" + short, "answered 200 OK, but the answer broke off: connection closed by " + short},
		{"http://" + nobody, "connection refused by " + nobody},
		{"http://no-such-host.invalid", "no-such-host.invalid"},
		{strings.Replace(plain.URL, "http:", "https:", 1), plain.Listener.Addr().String() + " does not speak TLS"},
		{untrusted.URL, "the certificate of " + untrusted.Listener.Addr().String() + " is not trusted: it is signed by an unknown authority"},
	} {
		url := strings.Replace(c.url, "://", "://me:secret@", 1) + "/?token=secret"
		out := r.Run(t.Context(), newJob(t, dts.HTTPTarget{URL: url, Body: "body"}, 10*time.Second))
		if out.State != dts.AttemptFailed || !out.Retryable || !strings.HasSuffix(out.Error, c.want) || strings.Contains(out.Error, "secret") {
			t.Errorf("%s: %+v; want %q", c.url, out, c.want)
		}
	}
}

func TestErrorsHideSecrets(t *testing.T) {
	text := scrub(`parse "http://u:secret@h/?k=secret": bad; got "a \" secret" from http://x?secret=1 now`)
	if strings.Contains(text, "secret") || !strings.Contains(text, "now") {
		t.Errorf("%q", text)
	}
	r := newRunner(t, Options{})
	for _, target := range []dts.HTTPTarget{
		{URL: "http://h/", Headers: map[string]string{"X-Key": "secret\x01"}},
	} {
		out := r.Run(t.Context(), newJob(t, target, time.Second))
		if out.State != dts.AttemptFailed || out.Retryable || strings.Contains(out.Error, "secret") {
			t.Errorf("%+v", out)
		}
	}
}

// Many runs at a time share few connections: none is opened once each runner has one.
func TestConnectionsAreReused(t *testing.T) {
	const workers, each = 64, 20
	var opened, requests atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, "ok")
	}))
	s.Config.ConnState = func(_ net.Conn, st http.ConnState) {
		if st == http.StateNew {
			opened.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	r := newRunner(t, Options{})
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range each {
				if out := r.Run(t.Context(), newJob(t, dts.HTTPTarget{URL: s.URL, Body: "{}"}, 30*time.Second)); out.State != dts.AttemptSuccess {
					t.Errorf("%+v", out)
				}
			}
		})
	}
	wg.Wait()
	if n := opened.Load(); requests.Load() != workers*each || n > 2*workers {
		t.Errorf("%d connections for %d requests by %d workers", n, requests.Load(), workers)
	}
}
