package ui

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"dts/web/auth"
)

// testNow is the present in tests that need no browser.
var testNow = time.Date(2026, 3, 4, 10, 30, 0, 0, time.UTC)

// site is the pages with a fake behind them.
type site struct {
	t *testing.T
	*fake
	h      *handler
	routes http.Handler
}

func newSite(t *testing.T) *site {
	t.Helper()
	f := newFake(func() time.Time { return testNow })
	h, err := newHandler(Options{Store: f, Scheduler: f, Outputs: f, Tokens: f, Version: "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	h.now = f.now
	return &site{t, f, h, h.routes()}
}

// do sends one request; signed in unless the principal is nil.
func (s *site) do(r *http.Request, p *auth.Principal) *httptest.ResponseRecorder {
	if p != nil {
		r = r.WithContext(auth.With(r.Context(), *p))
	}
	w := httptest.NewRecorder()
	s.routes.ServeHTTP(w, r)
	return w
}

// get returns a page that a signed-in user gets.
func (s *site) get(path string, status int) doc {
	s.t.Helper()
	path, _, _ = strings.Cut(path, "#")
	w := s.do(httptest.NewRequest("GET", path, nil), &admin)
	if w.Code != status {
		s.t.Fatalf("GET %s: status %d, want %d\n%s", path, w.Code, status, w.Body)
	}
	d := parse(s.t, w.Body.String())
	d.check()
	return d
}

// post sends a form. It returns the answer and, when that is a page, the page.
func (s *site) post(path string, form url.Values) (*httptest.ResponseRecorder, doc) {
	s.t.Helper()
	w := s.do(formRequest(path, form), &admin)
	d := parse(s.t, w.Body.String())
	if w.Code != http.StatusSeeOther {
		d.check()
	}
	return w, d
}

func formRequest(path string, form url.Values) *http.Request {
	r := httptest.NewRequest("POST", path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

// doc is a parsed page, or a part of it.
type doc struct {
	t *testing.T
	*html.Node
}

func parse(t *testing.T, s string) doc {
	t.Helper()
	n, err := html.Parse(strings.NewReader(s))
	if err != nil {
		t.Fatal(err)
	}
	return doc{t, n}
}

// all returns the elements with this tag ("" for any) whose attribute has this value; attr "" is any.
func (d doc) all(tag, attr, value string) []doc {
	var list []doc
	for n := range d.Descendants() {
		e := doc{d.t, n}
		if n.Type == html.ElementNode && (tag == "" || n.Data == tag) && (attr == "" || e.attr(attr) == value) {
			list = append(list, e)
		}
	}
	return list
}

// id returns the element with an id, which must be there.
func (d doc) id(id string) doc {
	d.t.Helper()
	list := d.all("", "id", id)
	if len(list) != 1 {
		d.t.Fatalf("%d elements have the id %q, want 1\n%s", len(list), id, d.text())
	}
	return list[0]
}

func (d doc) has(id string) bool { return len(d.all("", "id", id)) > 0 }

// class returns the elements that have a class.
func (d doc) class(name string) []doc {
	var list []doc
	for _, e := range d.all("", "", "") {
		for c := range strings.FieldsSeq(e.attr("class")) {
			if c == name {
				list = append(list, e)
			}
		}
	}
	return list
}

func (d doc) attr(name string) string {
	for _, a := range d.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func (d doc) hasAttr(name string) bool {
	for _, a := range d.Attr {
		if a.Key == name {
			return true
		}
	}
	return false
}

// text is the text that a reader sees, with single spaces.
func (d doc) text() string {
	var b strings.Builder
	for n := range d.Descendants() {
		if n.Type == html.TextNode && n.Parent.Data != "script" && n.Parent.Data != "noscript" {
			b.WriteString(n.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// want fails the test unless the text holds every part.
func (d doc) want(parts ...string) {
	d.t.Helper()
	text := d.text()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			d.t.Errorf("the page does not say %q:\n%s", p, text)
		}
	}
}

// row returns the first table row whose text holds a part.
func (d doc) row(part string) doc {
	d.t.Helper()
	for _, r := range d.all("tr", "", "") {
		if strings.Contains(r.text(), part) {
			return r
		}
	}
	d.t.Fatalf("no row says %q:\n%s", part, d.text())
	return doc{}
}

// check holds every page to the same rules: nothing that the content security policy would block, ids that
// are unique, labels that are tied to inputs, inputs that have a name, and forms that post, unless they only search.
func (d doc) check() {
	d.t.Helper()
	ids := map[string]bool{}
	for _, e := range d.all("", "", "") {
		if id := e.attr("id"); id != "" {
			if ids[id] {
				d.t.Errorf("the id %q is used twice", id)
			}
			ids[id] = true
		}
		if e.Data == "style" || e.Data == "script" && e.attr("src") == "" {
			d.t.Errorf("the page has an inline %s", e.Data)
		}
		for _, a := range e.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || strings.HasPrefix(strings.TrimSpace(strings.ToLower(a.Val)), "javascript:") {
				d.t.Errorf("<%s> has the attribute %s=%q", e.Data, a.Key, a.Val)
			}
		}
		if e.Data == "form" && e.attr("method") != "post" && e.Parent.Data != "search" {
			d.t.Errorf("the form to %s does not post", e.attr("action"))
		}
	}
	labelled := map[string]bool{}
	for _, l := range d.all("label", "", "") {
		labelled[l.attr("for")] = true
		if f := l.attr("for"); f != "" && !ids[f] {
			d.t.Errorf("a label is for %q, which is not there", f)
		}
	}
	for _, tag := range []string{"input", "textarea", "select"} {
		for _, e := range d.all(tag, "", "") {
			wrapped := e.Parent.Data == "label"
			if e.attr("type") != "hidden" && !wrapped && !labelled[e.attr("id")] {
				d.t.Errorf("the %s %q has no label", tag, e.attr("name"))
			}
			if e.hasAttr("aria-describedby") {
				for id := range strings.FieldsSeq(e.attr("aria-describedby")) {
					if !ids[id] {
						d.t.Errorf("the %s %q is described by %q, which is not there", tag, e.attr("name"), id)
					}
				}
			}
		}
	}
	if len(d.all("h1", "", "")) != 1 {
		d.t.Errorf("the page has %d h1", len(d.all("h1", "", "")))
	}
}
