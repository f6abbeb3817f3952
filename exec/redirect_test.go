package exec

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dts"
)

func TestRedirectCircle(t *testing.T) {
	var hops atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		hops.Add(1)
		http.Redirect(w, r, "/again", http.StatusFound)
	})
	r := newRunner(t, Options{})
	out := r.Run(t.Context(), newJob(t, dts.HTTPTarget{URL: s.URL}, 10*time.Second))
	if out.State != dts.AttemptFailed || out.Retryable || out.Error != "more than 5 redirects" || out.HTTPStatus != 302 {
		t.Errorf("%+v", out)
	}
	if hops.Load() != 1+maxRedirects {
		t.Errorf("%d requests", hops.Load())
	}
}

// A 307 sends the body again, with the task's headers on the same host, and without any that may be a
// credential on another; once dropped they stay dropped.
func TestRedirectHeaders(t *testing.T) {
	type seen struct {
		path, body string
		header     http.Header
	}
	var log []seen
	var first, second string
	handler := func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		log = append(log, seen{r.URL.Path, string(b), r.Header})
		next := map[string]string{"/a": "/b", "/b": second + "/c", "/c": first + "/d"}[r.URL.Path]
		if next != "" {
			w.Header().Set("Location", next)
			w.WriteHeader(http.StatusTemporaryRedirect)
		}
	}
	first, second = serve(t, handler).URL, serve(t, handler).URL
	r := newRunner(t, Options{})
	job := newJob(t, dts.HTTPTarget{
		URL:  strings.Replace(first, "://", "://me:pw@", 1) + "/a?token=t",
		Body: "body",
		Headers: map[string]string{
			"Cookie": "c=1", "X-Api-Key": "k", "Accept": "text/html", "X-Idempotency-Key": "i",
		},
	}, 10*time.Second)
	if out := r.Run(t.Context(), job); out.State != dts.AttemptSuccess {
		t.Fatalf("%+v", out)
	}
	if len(log) != 4 {
		t.Fatalf("%d requests", len(log))
	}
	for i, s := range log {
		if s.body != "body" || s.header.Get("Idempotency-Key") != job.Task.ID || s.header.Get("X-DTS-Attempt") != "1" || s.header.Get("Accept") != "text/html" || s.header.Get("User-Agent") != "dts" {
			t.Errorf("%s: %q %v", s.path, s.body, s.header)
		}
		if s.header.Get("Referer") != "" {
			t.Errorf("%s: Referer %s", s.path, s.header.Get("Referer"))
		}
		for _, name := range []string{"Authorization", "Cookie", "X-Api-Key", "X-Idempotency-Key"} {
			if has := s.header.Get(name) != ""; has != (i < 2) {
				t.Errorf("%s: %s there: %v", s.path, name, has)
			}
		}
	}
}

func TestRedirectElsewhere(t *testing.T) {
	var to string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusMovedPermanently)
	})
	r := newRunner(t, Options{})
	for _, c := range []struct{ to, err string }{
		{"file:///etc/passwd", "redirected to a URL that is neither http nor https"},
		{"http://[bad?token=secret", "redirected to something that is not a URL"},
		{"", "answered 301 Moved Permanently"},
	} {
		to = c.to
		out := r.Run(t.Context(), newJob(t, dts.HTTPTarget{URL: s.URL}, 10*time.Second))
		if out.State != dts.AttemptFailed || out.Retryable || !strings.Contains(out.Error, c.err) || strings.Contains(out.Error, "secret") {
			t.Errorf("to %q: %+v", c.to, out)
		}
	}
}
