package web_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"dts"
	"dts/web"
	"dts/web/api"
	"dts/web/auth"
	"dts/web/client"
)

func TestAuthentication(t *testing.T) {
	s := start(t, nil)
	for _, tt := range []struct {
		name, method, path string
		header             []string
		status             int
		body               string
	}{
		{"right token", "GET", "/tasks", nil, 200, ""},
		{"lower-case scheme", "GET", "/tasks", []string{"Authorization", "bearer right"}, 200, ""},
		{"no token", "GET", "/tasks", []string{"Authorization", ""}, 401, "this needs a token"},
		{"wrong token", "GET", "/tasks", []string{"Authorization", "Bearer wrong"}, 401, "the token is not valid"},
		{"basic", "GET", "/tasks", []string{"Authorization", "Basic cmlnaHQ="}, 401, "the token is not valid"},
		{"cookie", "GET", "/tasks", []string{"Authorization", "", "Cookie", "dts_session=right"}, 200, ""},
		{"wrong cookie", "GET", "/tasks", []string{"Authorization", "", "Cookie", "dts_session=wrong"}, 401, "the token is not valid"},
		{"metrics", "GET", "/metrics", []string{"Authorization", ""}, 401, "this needs a token"},
		{"openapi", "GET", "/openapi.json", []string{"Authorization", ""}, 401, "this needs a token"},
		{"write", "POST", "/v1/recurring-tasks", []string{"Authorization", ""}, 401, "this needs a token"},
		{"health", "GET", "/health", []string{"Authorization", "Bearer wrong"}, 200, ""},
		{"ready", "GET", "/v1/ready", []string{"Authorization", ""}, 200, ""},
		{"another site's page", "POST", "/tasks", []string{"Origin", "https://evil.example"}, 403, "a page of another site"},
		{"another site's page, told by the browser", "POST", "/tasks", []string{"Sec-Fetch-Site", "cross-site"}, 403, "a page of another site"},
		{"head of a stream", "HEAD", "/events", nil, 405, ""},
		{"another site's link", "GET", "/tasks", []string{"Sec-Fetch-Site", "cross-site"}, 200, ""},
		{"own page", "POST", "/tasks/bulk-cancel", []string{"Sec-Fetch-Site", "same-origin"}, 422, ""},
		{"rebound name", "GET", "/tasks", []string{"Host", "evil.example:8420"}, 421, "DTS_ALLOWED_HOSTS"},
		{"rebound name, open path", "GET", "/health", []string{"Host", "evil.example"}, 421, ""},
		{"localhost", "GET", "/tasks", []string{"Host", "LocalHost:8420"}, 200, ""},
		{"address", "GET", "/tasks", []string{"Host", "[::1]:8420"}, 200, ""},
	} {
		body := ""
		if tt.method == "POST" {
			body = "{}"
		}
		status, h, got := s.call(t, tt.method, tt.path, body, tt.header...)
		if status != tt.status || !strings.Contains(got, tt.body) {
			t.Errorf("%s: %d %s", tt.name, status, got)
		}
		if (status == 401) != (h.Get("WWW-Authenticate") != "") || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: header %v", tt.name, h)
		}
	}
	if strings.Contains(s.logs.String(), "right") || strings.Contains(s.logs.String(), "wrong") {
		t.Error("a token is in the log")
	}
}

func TestAllowedHosts(t *testing.T) {
	s := start(t, func(o *web.Options) { o.AllowedHosts = []string{"Dts.Example.org"} })
	if status, _, _ := s.call(t, "GET", "/health", "", "Host", "dts.example.org:80"); status != 200 {
		t.Error(status)
	}
	if status, _, _ := s.call(t, "GET", "/health", "", "Host", "x.dts.example.org"); status != 421 {
		t.Error(status)
	}
	if name, err := os.Hostname(); err == nil {
		if status, _, _ := s.call(t, "GET", "/health", "", "Host", name); status != 200 {
			t.Error(name, status)
		}
	}
}

func TestSignInLimit(t *testing.T) {
	s := start(t, nil)
	for i := range 10 {
		if status, _, _ := s.call(t, "GET", "/tasks", "", "Authorization", "Bearer wrong"); status != 401 {
			t.Fatalf("attempt %d: %d", i, status)
		}
	}
	asked := s.tokens.asked
	status, h, body := s.call(t, "GET", "/tasks", "", "Authorization", "Bearer wrong")
	if status != 429 || h.Get("Retry-After") == "" || !strings.Contains(body, "too many failed sign-ins") {
		t.Errorf("%d %s", status, body)
	}
	if s.tokens.asked != asked {
		t.Error("the store was asked beyond the limit")
	}
	if status, _, _ := s.call(t, "GET", "/health", ""); status != 200 {
		t.Error("health is limited too")
	}
}

func TestTokensBroken(t *testing.T) {
	s := start(t, nil)
	s.tokens.err = errors.New("hush: disk I/O error")
	status, _, body := s.call(t, "GET", "/tasks", "")
	if status != 500 || strings.Contains(body, "hush") || !strings.Contains(s.logs.String(), "hush") {
		t.Errorf("%d %s", status, body)
	}
}

// TestPages checks what the server does for the pages: it tells them who asks, and limits sign-ins.
func TestPages(t *testing.T) {
	pages := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, ok := auth.From(r.Context())
		switch {
		case r.URL.Path == "/ui/login" && r.Method == "POST":
			w.WriteHeader(http.StatusUnauthorized)
		case ok:
			io.WriteString(w, "hello "+p.Name)
		default:
			io.WriteString(w, "who are you?")
		}
	})
	s := start(t, func(o *web.Options) { o.UI = pages })
	if status, h, _ := s.call(t, "GET", "/", ""); status != 303 || h.Get("Location") != "/ui/" {
		t.Errorf("/: %d %v", status, h)
	}
	for cookie, want := range map[string]string{"dts_session=right": "hello admin", "dts_session=wrong": "who are you?", "a=b": "who are you?"} {
		_, h, body := s.call(t, "GET", "/ui/", "", "Authorization", "", "Cookie", cookie)
		if cleared := strings.Contains(h.Get("Set-Cookie"), "Max-Age=0"); body != want || cleared != (cookie == "dts_session=wrong") {
			t.Errorf("%s: %s %v", cookie, body, h)
		}
	}
	last := 0
	for range 12 {
		last, _, _ = s.call(t, "POST", "/ui/login", "", "Authorization", "")
	}
	if last != 429 {
		t.Errorf("the twelfth wrong sign-in: %d", last)
	}
	if status, _, body := s.call(t, "GET", "/ui/static/x.css", "", "Authorization", "Bearer right"); status != 200 || body != "who are you?" {
		t.Errorf("static: %d %s", status, body)
	}
}

func TestLoginLink(t *testing.T) {
	s := start(t, func(o *web.Options) { o.UI = http.NotFoundHandler() })
	status, _, body := s.call(t, "POST", "/login-links", "")
	l := decodeAs[api.LoginLink](t, body)
	if status != 201 || l.URL != "http://"+s.Addr()+"/ui/link?code=once" || !l.ExpiresAt.After(now) || s.tokens.links["once"].Name != "admin" {
		t.Errorf("%d %s", status, body)
	}
	s = start(t, nil)
	if status, _, body := s.call(t, "POST", "/login-links", ""); status != 409 {
		t.Errorf("without pages: %d %s", status, body)
	}
}

func TestCookie(t *testing.T) {
	rec := httptest.NewRecorder()
	auth.SetCookie(rec, &http.Request{}, "secret", time.Hour)
	if got := rec.Header().Get("Set-Cookie"); got != "dts_session=secret; Path=/; Max-Age=3600; HttpOnly; SameSite=Lax" {
		t.Error(got)
	}
}

func TestSocket(t *testing.T) {
	s := start(t, nil)
	info, err := os.Stat(s.socket)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info, err)
	}
	c, err := client.New(client.Options{Socket: s.socket})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	made, err := c.CreateTask(t.Context(), api.TaskRequest{Spec: dts.Spec{TargetType: dts.Command, TargetConfig: []byte(`{"argv":["x"]}`)}})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(made.Item.CreatedBy, " (socket)") || made.Item.TenantID != dts.DefaultTenant {
		t.Errorf("created by %s for %s", made.Item.CreatedBy, made.Item.TenantID)
	}
	if s.tokens.asked != 0 {
		t.Error("a token was looked for on the socket")
	}
}

func TestSocketOfAnother(t *testing.T) {
	s := start(t, nil)
	_, err := web.New(web.Options{SocketPath: "/tmp/" + strings.Repeat("x", 100), Tokens: s.tokens})
	if err == nil || !strings.Contains(err.Error(), "at most 103") {
		t.Error(err)
	}
	second, err := web.New(web.Options{Listen: web.NoListen, SocketPath: s.socket, Tokens: s.tokens, API: api.Options{Store: s.fake, Scheduler: s.fake, Outputs: s.fake}})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Start(); err == nil || !strings.Contains(err.Error(), "another server listens there") {
		t.Errorf("a second server on one socket: %v", err)
	}

	dir := t.TempDir()
	t.Chdir(dir)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "left", Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close() // as a server that was killed leaves it
	third, err := web.New(web.Options{Listen: web.NoListen, SocketPath: "left", Tokens: s.tokens, API: api.Options{Store: s.fake, Scheduler: s.fake, Outputs: s.fake}})
	if err != nil {
		t.Fatal(err)
	}
	if err := third.Start(); err != nil {
		t.Errorf("a socket left behind: %v", err)
	}
	if err := third.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	os.WriteFile("file", nil, 0o600)
	fourth, _ := web.New(web.Options{Listen: web.NoListen, SocketPath: "file", Tokens: s.tokens, API: api.Options{Store: s.fake, Scheduler: s.fake, Outputs: s.fake}})
	if err := fourth.Start(); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("a file in the way: %v", err)
	}
}
