package ui

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"dts"
)

func TestPagesNeedSignIn(t *testing.T) {
	s := newSite(t)
	id := dts.NewID(testNow)
	for _, tt := range []struct{ method, path, location string }{
		{"GET", "/ui/", "/ui/login"},
		{"GET", "/ui/?status=failed", "/ui/login"},
		{"GET", "/ui/new", "/ui/login?next=%2Fui%2Fnew"},
		{"GET", "/ui/tasks/" + id, "/ui/login?next=%2Fui%2Ftasks%2F" + id},
		{"GET", "/ui/recurring/" + id, "/ui/login?next=%2Fui%2Frecurring%2F" + id},
		{"GET", "/ui/dead?queue=a", "/ui/login?next=%2Fui%2Fdead%3Fqueue%3Da"},
		{"GET", "/ui/batches/" + id, "/ui/login?next=%2Fui%2Fbatches%2F" + id},
		{"POST", "/ui/dead/discard", "/ui/login"},
		{"POST", "/ui/batches/" + id + "/cancel", "/ui/login"},
		{"GET", "/ui/nowhere", "/ui/login?next=%2Fui%2Fnowhere"},
		{"POST", "/ui/new", "/ui/login"},
		{"POST", "/ui/preview", "/ui/login"},
		{"POST", "/ui/tasks/" + id + "/cancel", "/ui/login"},
		{"POST", "/ui/recurring/" + id + "/trigger", "/ui/login"},
		{"GET", "/ui/calendars/x", "/ui/login?next=%2Fui%2Fcalendars%2Fx"},
		{"GET", "/ui/blackouts", "/ui/login?next=%2Fui%2Fblackouts"},
		{"POST", "/ui/new-calendar", "/ui/login"},
		{"POST", "/ui/calendars/x", "/ui/login"},
		{"POST", "/ui/calendars/x/delete", "/ui/login"},
		{"POST", "/ui/blackouts", "/ui/login"},
		{"POST", "/ui/blackouts/" + id + "/delete", "/ui/login"},
	} {
		w := s.do(httptest.NewRequest(tt.method, tt.path, nil), nil)
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != tt.location {
			t.Errorf("%s %s: %d to %q, want 303 to %q", tt.method, tt.path, w.Code, w.Header().Get("Location"), tt.location)
		}
	}
	r := httptest.NewRequest("GET", "/ui/", nil)
	r.Header.Set("HX-Request", "true")
	if w := s.do(r, nil); w.Code != http.StatusUnauthorized || w.Header().Get("HX-Redirect") != "/ui/login" {
		t.Errorf("a refresh without a session: %d, HX-Redirect %q", w.Code, w.Header().Get("HX-Redirect"))
	}
}

func TestErrors(t *testing.T) {
	s := newSite(t)
	s.get("/ui/nowhere", 404).want("Not found", "There is no such page")
	s.get("/ui/tasks/x", 404).want("no task")
	s.get("/ui/tasks/"+dts.NewID(testNow), 404)
	s.get("/ui/recurring/x", 404).want("no recurring task")
	s.get("/ui/?status=odd", 404)

	s.storeErr = errors.New("secret detail of the disk")
	d := s.get("/ui/", 500)
	if strings.Contains(d.text(), "secret") {
		t.Errorf("an internal error is shown: %s", d.text())
	}
	s.storeErr = dts.Errorf(dts.ErrFull, "the disk is full")
	s.get("/ui/", 507).want("The disk is full")
}

func TestHeaders(t *testing.T) {
	s := newSite(t)
	w := s.do(httptest.NewRequest("GET", "/ui/", nil), &admin)
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	csp := w.Header().Get("Content-Security-Policy")
	if !strings.Contains(csp, "default-src 'self'") || strings.Contains(csp, "unsafe") {
		t.Errorf("Content-Security-Policy is %q", csp)
	}
}

func TestAssets(t *testing.T) {
	s := newSite(t)
	d := s.get("/ui/", 200)
	var urls []string
	for _, e := range d.all("script", "", "") {
		urls = append(urls, e.attr("src"))
	}
	for _, e := range d.all("link", "", "") {
		urls = append(urls, e.attr("href"))
	}
	if len(urls) != 5 {
		t.Errorf("the page loads %d files, want 5: %v", len(urls), urls)
	}
	for _, u := range urls {
		for _, encoding := range []string{"", "gzip"} {
			r := httptest.NewRequest("GET", u, nil)
			r.Header.Set("Accept-Encoding", encoding)
			w := s.do(r, nil)
			if w.Code != 200 || w.Body.Len() == 0 || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") || w.Header().Get("Content-Encoding") != encoding {
				t.Errorf("GET %s (%q): %d, %d bytes, %v", u, encoding, w.Code, w.Body.Len(), w.Header())
			}
		}
	}
	for _, path := range []string{"/ui/static/", "/ui/static/0000/app.js", "/ui/static/app.js", "/ui/static/../ui.go"} {
		if w := s.do(httptest.NewRequest("GET", path, nil), nil); w.Code == 200 {
			t.Errorf("GET %s: %d", path, w.Code)
		}
	}
}

// The vendored files are those that static/README.md names.
func TestVendoredFiles(t *testing.T) {
	readme, err := os.ReadFile("static/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"htmx.min.js", "pico.min.css"} {
		b, err := staticFiles.ReadFile("static/" + name)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(b)
		if h := hex.EncodeToString(sum[:]); !strings.Contains(string(readme), h) {
			t.Errorf("static/README.md does not name %s with sha256 %s", name, h)
		}
	}
}

func TestProblemsAreShown(t *testing.T) {
	s := newSite(t)
	s.status = dts.SchedulerStatus{Node: "n1", NotReady: []string{"the store is being checked"}}
	s.get("/ui/", 200).want("Not ready: the store is being checked", "dts 1.2.3 · node n1")
	s.status = dts.SchedulerStatus{ClockHeld: "the clock says 1970", NotReady: []string{"clock"}}
	s.get("/ui/new", 200).want("Nothing is fired: the clock says 1970")
	s.status.Clock = &dts.ClockStatus{Alerts: []string{"nothing fires: the clock says 1970", "the clock of server n2 is 150 ms behind"}}
	d := s.get("/ui/new", 200)
	d.want("Nothing is fired: the clock says 1970", "The clock of server n2 is 150 ms behind")
	if strings.Contains(d.text(), "Nothing fires") {
		t.Error("one thing is said twice")
	}
	s.status = dts.SchedulerStatus{Clock: s.status.Clock, NotReady: []string{"the store is being checked"}}
	s.get("/ui/", 200).want("The clock of server n2", "Not ready: the store")
}

func TestNewNeedsItsOptions(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("New without a store: no error")
	}
}
