package web_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"dts"
	"dts/web"
	"dts/web/client"
)

// peers is what answers other servers.
type peers struct {
	began chan struct{}
	ended chan struct{}
}

func (p *peers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/cluster/wait" {
		io.WriteString(w, r.Method+" "+r.URL.Path+" "+r.Host)
		return
	}
	io.Copy(io.Discard, r.Body)
	close(p.began)
	<-r.Context().Done()
	close(p.ended)
}

// Other servers call by any name, with no token and, were it a browser, from anywhere; but only below /cluster/.
func TestCluster(t *testing.T) {
	p := &peers{make(chan struct{}), make(chan struct{})}
	s := start(t, func(o *web.Options) { o.Peers = p })
	status, _, body := s.call(t, "POST", "/cluster/call", "x", "Host", "dts-2.example.com", "Authorization", "Bearer wrong", "Origin", "https://evil.example.com", "Sec-Fetch-Site", "cross-site")
	if status != 200 || body != "POST /cluster/call dts-2.example.com" {
		t.Errorf("%d %s", status, body)
	}
	if s.tokens.asked > 0 {
		t.Error("a token was looked at")
	}
	for _, path := range []string{"/cluster", "/clusters/", "/v1/cluster/call", "/x/../cluster/call", "//cluster/call"} {
		if status, _, body := s.call(t, "GET", path, ""); status == 200 {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if status, _, _ := s.call(t, "GET", "/tasks", "", "Host", "dts-2.example.com"); status != 421 {
		t.Errorf("the API under another name: %d", status)
	}
	socket := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", s.socket)
	}}}
	defer socket.CloseIdleConnections()
	resp, err := socket.Post("http://dts/cluster/call", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 404 {
		t.Errorf("on the socket: %d", resp.StatusCode)
	}

	// What waits ends when the server stops.
	go func() {
		if resp, err := http.Post("http://"+s.Addr()+"/cluster/wait", "", nil); err == nil {
			resp.Body.Close()
		}
	}()
	<-p.began
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	begun := time.Now()
	if err := s.Stop(ctx); err != nil || time.Since(begun) > 5*time.Second {
		t.Errorf("after %s: %v", time.Since(begun), err)
	}
	<-p.ended
}

func TestNoCluster(t *testing.T) {
	s := start(t, nil)
	if status, _, _ := s.call(t, "POST", "/cluster/call", "x"); status != 404 {
		t.Errorf("%d", status)
	}
	if status, _, _ := s.call(t, "POST", "/cluster/call", "x", "Host", "dts-2.example.com"); status != 421 {
		t.Errorf("%d", status)
	}
}

// Where the database cannot tell what is newest, what is read is marked, and a request that changes something does not
// rely on it.
func TestStale(t *testing.T) {
	s := start(t, func(o *web.Options) {
		o.UI = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if old := dts.StalenessOf(r.Context()); old != nil {
				old.Set()
			}
			io.WriteString(w, "page")
		})
	})
	task := s.add(dts.Pending)
	marked := func(method, path, body string) bool {
		t.Helper()
		status, h, text := s.call(t, method, path, body)
		if status != 200 {
			t.Errorf("%s %s: %d %s", method, path, status, text)
		}
		return h.Get("Dts-Stale") == "true"
	}
	if marked("GET", "/tasks/"+task.ID, "") || marked("HEAD", "/tasks/"+task.ID, "") {
		t.Error("an answer is marked that is not old")
	}
	s.stale = true
	for _, path := range []string{"/tasks/" + task.ID, "/v1/tasks/" + task.ID, "/ui/"} {
		if !marked("GET", path, "") {
			t.Errorf("%s is not marked", path)
		}
	}
	if status, h, _ := s.call(t, "GET", "/tasks/"+dts.NewID(now), ""); status != 404 || h.Get("Dts-Stale") != "true" {
		t.Errorf("what may be there by now: %d, marked %q", status, h.Get("Dts-Stale"))
	}
	for _, tt := range []struct{ method, path, body string }{
		{"POST", "/tasks/" + task.ID + "/cancel", ""}, {"PATCH", "/tasks/" + task.ID, `{"name":"x"}`}, {"DELETE", "/tasks/" + task.ID, ""},
	} {
		status, h, body := s.call(t, tt.method, tt.path, tt.body)
		if status != 503 || h.Get("Retry-After") == "" || h.Get("Dts-Stale") != "" {
			t.Errorf("%s: %d %s", tt.method, status, body)
		}
	}
	// The client tells its user.
	told := 0
	c, err := client.New(client.Options{Server: "http://" + s.Addr(), Token: "right", Stale: func() { told++ }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Task(context.Background(), task.ID); err != nil || told != 1 {
		t.Errorf("told %d times: %v", told, err)
	}
	// A stream that goes on for hours is not begun on what is old.
	status, _, body := s.call(t, "GET", "/tasks/"+task.ID+"/output?follow=1", "")
	if status != 200 || !strings.Contains(body, "event: failed") {
		t.Errorf("a stream: %d %s", status, body)
	}
}
