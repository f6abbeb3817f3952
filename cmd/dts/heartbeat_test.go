package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestHeartbeat lets a heartbeat go on for hours, well and not, with a listener that answers and one that does not.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const secret = "https://hc.example/5f0a-secret"
		var log bytes.Buffer
		var ill, refused error
		status, pings := 200, 0
		registry := prometheus.NewRegistry()
		h := newHeartbeat(func() error { return ill }, slog.New(slog.NewTextHandler(&log, nil)), registry)
		h.client.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodGet || r.URL.String() != secret {
				t.Errorf("%s %s", r.Method, r.URL)
			}
			if refused != nil {
				return nil, refused
			}
			pings++
			return &http.Response{StatusCode: status, Header: http.Header{"Location": {"https://other.example/"}}, Body: io.NopCloser(strings.NewReader("OK")), Request: r}, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); h.run(ctx) }()
		expect := func(what string, d time.Duration, want int, lines ...string) {
			t.Helper()
			pings = 0
			time.Sleep(d)
			synctest.Wait()
			if pings != want {
				t.Errorf("%s: %d pings, want %d", what, pings, want)
			}
			got := strings.TrimSpace(log.String())
			log.Reset()
			if n := len(strings.Split(got, "\n")); len(lines) == 0 && got != "" || len(lines) > 0 && n != len(lines) {
				t.Errorf("%s: log %q", what, got)
			}
			for _, l := range lines {
				if !strings.Contains(got, l) {
					t.Errorf("%s: log %q has no %q", what, got, l)
				}
			}
			if strings.Contains(got, "secret") {
				t.Errorf("%s: the URL is in the log: %s", what, got)
			}
		}
		expect("no URL", time.Hour, 0)
		h.set(heartbeatOptions{URL: secret, Every: time.Minute})
		expect("at once, and each minute", time.Hour-time.Second, 60)
		ill = errors.New("the disk is full")
		expect("not ready", time.Hour, 0, `msg="the heartbeat is withheld: this server is not ready" to=https://hc.example/… reason="the disk is full"`)
		ill = nil
		expect("ready again", time.Hour, 60, "the heartbeat arrives again")
		status = 500
		expect("an error", time.Hour, 60, "it answered 500")
		status = 302
		expect("a redirect", time.Hour, 60) // the trouble is the same
		status = 204
		expect("well", time.Hour, 60, "arrives again")
		refused = errors.New("dial " + secret + ": no such host")
		expect("no answer", time.Hour, 0, "dial https://hc.example/…: no such host")
		refused = nil
		h.set(heartbeatOptions{URL: secret, Every: time.Hour})
		expect("seldom", 2*time.Hour-time.Second, 2, "arrives again")
		h.set(heartbeatOptions{Every: time.Hour})
		expect("no URL any more", 3*time.Hour, 0)
		cancel()
		<-done
		families, err := registry.Gather()
		if err != nil || len(families) != 1 {
			t.Fatal(families, err)
		}
		withheld := families[0].GetMetric()[2] // by label: failed, sent, withheld
		if n := withheld.GetCounter().GetValue(); n != 60 {
			t.Errorf("%v were withheld: %v", n, families[0])
		}
	})
}

// TestHeartbeatOfHangingURL changes the URL of a listener that never answers: the new one is asked for at once.
func TestHeartbeatOfHangingURL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var asked []string
		h := newHeartbeat(func() error { return nil }, slog.New(slog.NewTextHandler(&log, nil)), prometheus.NewRegistry())
		h.client.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			asked = append(asked, r.URL.Path)
			if r.URL.Path == "/hangs" {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("OK")), Request: r}, nil
		})
		h.set(heartbeatOptions{URL: "https://a.example/first", Every: time.Minute})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); h.run(ctx) }()
		time.Sleep(time.Second)
		h.set(heartbeatOptions{URL: "https://a.example/hangs", Every: time.Minute})
		time.Sleep(time.Second)
		h.set(heartbeatOptions{URL: "https://a.example/answers", Every: time.Minute})
		time.Sleep(time.Second)
		if got := strings.Join(asked, " "); got != "/first /hangs /answers" || log.Len() > 0 {
			t.Errorf("asked for %s; log %s", got, log.String())
		}
		h.set(heartbeatOptions{URL: "https://a.example/hangs", Every: time.Minute})
		time.Sleep(time.Second)
		cancel() // a stop does not wait for it either
		<-done
		if log.Len() > 0 {
			t.Errorf("log %s", log.String())
		}
	})
}

func TestHeartbeatOptions(t *testing.T) {
	for _, url := range []string{"hc-ping.com/secret", "ftp://x/secret", "https:///secret", "http://%zz/secret"} {
		if err := (heartbeatOptions{URL: url}).check(); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
	if got := (heartbeatOptions{URL: "https://user:secret@hc-ping.com:8000/secret?secret"}).where(); got != "https://hc-ping.com:8000/…" {
		t.Error(got)
	}
}
