package ui

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"dts/web/auth"
)

func (s *site) postLogin(form url.Values) *httptest.ResponseRecorder {
	return s.do(formRequest("/ui/login", form), nil)
}

func TestLogin(t *testing.T) {
	s := newSite(t)
	w := s.do(httptest.NewRequest("GET", "/ui/login?next=/ui/new", nil), nil)
	d := parse(t, w.Body.String())
	d.check()
	d.want("admin.token", "dts ui")
	if next := d.all("input", "name", "next")[0].attr("value"); next != "/ui/new" {
		t.Errorf("next is %q", next)
	}

	w = s.postLogin(url.Values{"token": {"nonsense-token"}, "next": {"/ui/new"}})
	d = parse(t, w.Body.String())
	if w.Code != http.StatusUnauthorized || w.Header().Get("Set-Cookie") != "" {
		t.Errorf("a wrong token: %d, cookie %q", w.Code, w.Header().Get("Set-Cookie"))
	}
	d.id("token-error").want("not known")
	if strings.Contains(w.Body.String(), "nonsense-token") {
		t.Error("the wrong token is in the page")
	}

	w = s.postLogin(url.Values{"token": {"  " + goodToken + "\n"}, "next": {"/ui/new"}})
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/ui/new" {
		t.Errorf("a good token: %d to %q", w.Code, w.Header().Get("Location"))
	}
	c := w.Result().Cookies()[0]
	if c.Name != auth.Cookie || c.Value != session || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode {
		t.Errorf("cookie %v", c)
	}
}

func TestLoginGoesOnlyToItself(t *testing.T) {
	for _, next := range []string{"https://evil.example/", "//evil.example/ui/", "/\\evil.example", "/ui/\\evil", "/tasks", "javascript:alert(1)", "", "http:/ui/"} {
		s := newSite(t)
		w := s.postLogin(url.Values{"token": {goodToken}, "next": {next}})
		if to := w.Header().Get("Location"); to != "/ui/" {
			t.Errorf("next %q leads to %q", next, to)
		}
	}
}

func TestLoginLink(t *testing.T) {
	s := newSite(t)
	if w := s.do(httptest.NewRequest("HEAD", "/ui/link?code="+goodLink, nil), nil); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("HEAD: %d", w.Code)
	}
	w := s.do(httptest.NewRequest("GET", "/ui/link?code="+goodLink, nil), nil)
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/ui/" || len(w.Result().Cookies()) != 1 {
		t.Errorf("link: %d to %q, %v", w.Code, w.Header().Get("Location"), w.Result().Cookies())
	}
	w = s.do(httptest.NewRequest("GET", "/ui/link?code="+goodLink, nil), nil)
	if w.Code != http.StatusUnauthorized || len(w.Result().Cookies()) != 0 {
		t.Errorf("the link a second time: %d", w.Code)
	}
	parse(t, w.Body.String()).want("has been used or is too old")
}

func TestLogout(t *testing.T) {
	s := newSite(t)
	s.sessions[session] = true
	r := httptest.NewRequest("POST", "/ui/logout", nil)
	r.AddCookie(&http.Cookie{Name: auth.Cookie, Value: session})
	w := s.do(r, &admin)
	if w.Code != http.StatusSeeOther || s.sessions[session] || w.Result().Cookies()[0].MaxAge >= 0 {
		t.Errorf("sign out: %d, sessions %v, cookies %v", w.Code, s.sessions, w.Result().Cookies())
	}
}
