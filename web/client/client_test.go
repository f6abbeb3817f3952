package client

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"dts"
)

func TestNoServer(t *testing.T) {
	free := httptest.NewServer(nil)
	free.Close()
	for _, o := range []Options{{Server: free.URL}, {Socket: filepath.Join(t.TempDir(), "none")}} {
		c, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Health(t.Context()); !errors.Is(err, ErrNoServer) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{{}, {Server: "127.0.0.1:8420"}, {Server: "ftp://x"}, {Server: "http://u:p@x"}, {Server: "http://x", Socket: "y"}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

// TestForeignAnswers meets servers that are not dts, or broken.
func TestForeignAnswers(t *testing.T) {
	var answer atomic.Value // of func(http.ResponseWriter)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("User-Agent") != "dts/1.2" || r.Header.Get("Authorization") != "Bearer tok" {
			t.Errorf("header %v", r.Header)
		}
		answer.Load().(func(http.ResponseWriter))(w)
	}))
	defer srv.Close()
	c, err := New(Options{Server: srv.URL + "/", Token: "tok", Version: "1.2"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		answer func(http.ResponseWriter)
		code   dts.Code
		text   string
	}{
		{"a proxy's page", func(w http.ResponseWriter) { http.Error(w, "no upstream", http.StatusBadGateway) }, dts.ErrUnavailable, "502 Bad Gateway: no upstream"},
		{"a proxy's HTML", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(413)
			io.WriteString(w, "<html>")
		}, dts.ErrTooLarge, "the server answered 413 Request Entity Too Large"},
		{"a redirect", func(w http.ResponseWriter) { w.Header().Set("Location", "http://evil.example"); w.WriteHeader(302) }, dts.ErrInternal, "302 Found"},
		{"not JSON", func(w http.ResponseWriter) { io.WriteString(w, "hello") }, dts.ErrUnavailable, "could not be read"},
		{"cut off", func(w http.ResponseWriter) { w.Header().Set("Content-Length", "100"); io.WriteString(w, "{") }, dts.ErrUnavailable, "could not be read"},
		{"no answer", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, dts.ErrUnavailable, "did not answer"},
	} {
		answer.Store(tt.answer)
		_, err := c.Status(t.Context())
		if dts.CodeOf(err) != tt.code || !strings.Contains(fmt.Sprint(err), tt.text) {
			t.Errorf("%s: %v (%s)", tt.name, err, dts.CodeOf(err))
		}
	}
	if _, err := c.TriggerRecurring(t.Context(), "x"); dts.CodeOf(err) != dts.ErrUnknown {
		t.Errorf("a change without an answer: %v", err)
	}
	answer.Store(func(w http.ResponseWriter) { io.WriteString(w, "event: output\ndata: {\"text\":\"a\"}\n\n") })
	var last error
	for _, err := range c.FollowOutput(t.Context(), "x", 0) {
		last = err
	}
	if dts.CodeOf(last) != dts.ErrUnavailable || !strings.Contains(last.Error(), "ended") {
		t.Errorf("a stream cut off: %v", last)
	}
	answer.Store(func(w http.ResponseWriter) { io.WriteString(w, "data: "+strings.Repeat("x", maxLine+1)) })
	for _, err := range c.Events(t.Context(), "", "") {
		last = err
	}
	if !strings.Contains(last.Error(), "too long") {
		t.Errorf("an endless line: %v", last)
	}
}

func TestLimitedReader(t *testing.T) {
	b, err := io.ReadAll(&limitedReader{r: strings.NewReader("0123456789"), left: 4})
	if string(b) != "0123" || err == nil {
		t.Errorf("%q %v", b, err)
	}
}
