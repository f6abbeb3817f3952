package pings_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"dts"
	"dts/web/pings"
)

// reports keeps what came in.
type reports struct {
	list []*dts.PingRecord
	ids  []string
	err  error
}

func (r *reports) Report(_ context.Context, id string, p *dts.PingRecord) error {
	if r.err == nil {
		r.list, r.ids = append(r.list, p), append(r.ids, id)
	}
	return r.err
}

func TestKeys(t *testing.T) {
	keys := pings.NewKeys("secret")
	id := dts.NewID(time.Now())
	key := keys.Key(id)
	if len(key) != 43 || keys.Key(id) != key {
		t.Fatalf("the key %q", key)
	}
	if got, ok := keys.ID(key); !ok || got != id {
		t.Errorf("the key of %s is that of %q, %v", id, got, ok)
	}
	if _, ok := pings.NewKeys("another").ID(key); ok {
		t.Error("another secret takes the key")
	}
	wrong := []string{"", "x", key[:42], key + "A", strings.ToUpper(key), key[:22] + strings.Repeat("A", 21), " " + key, key + "\n", "ключ"}
	for i := range key { // any other letter in any place
		for _, c := range []byte{'A', 'z', '-', '=', '+'} {
			if other := key[:i] + string(c) + key[i+1:]; other != key {
				wrong = append(wrong, other)
			}
		}
	}
	for range 1000 {
		wrong = append(wrong, (rand.Text() + rand.Text())[:43])
	}
	for _, k := range wrong {
		if id, ok := keys.ID(k); ok {
			t.Errorf("%q is taken for the key of %s", k, id)
		}
	}
	if keys.Key("no id") != "" {
		t.Error("what is not an id has a key")
	}
}

func TestReports(t *testing.T) {
	keys, id := pings.NewKeys("secret"), dts.NewID(time.Now())
	path := pings.Prefix + keys.Key(id)
	long := strings.Repeat("é\xff", dts.MaxPingBody)
	for _, x := range []struct {
		method, path, body string
		status             int
		kind               dts.PingKind
		code               int // -1: none
	}{
		{"GET", path, "", 200, dts.PingSuccess, -1},
		{"HEAD", path, "", 200, dts.PingSuccess, -1},
		{"POST", path, "all\x00 good", 200, dts.PingSuccess, -1},
		{"POST", path, long, 200, dts.PingSuccess, -1},
		{"GET", path + "/start", "", 200, dts.PingStart, -1},
		{"POST", path + "/fail", "no space left", 200, dts.PingFailure, -1},
		{"GET", path + "/0", "", 200, dts.PingSuccess, 0},
		{"POST", path + "/255", "", 200, dts.PingFailure, 255},
		{"PUT", path, "", 405, "", 0},
		{"DELETE", path + "/fail", "", 405, "", 0},
		{"POST", path + "/", "", 404, "", 0}, // the exit code of a script that has lost it
		{"GET", path + "/256", "", 404, "", 0},
		{"GET", path + "/-1", "", 404, "", 0},
		{"GET", path + "/success", "", 404, "", 0},
		{"GET", path + "/start/now", "", 404, "", 0},
		{"GET", path + "x", "", 404, "", 0},
		{"GET", pings.Prefix, "", 404, "", 0},
		{"PUT", pings.Prefix + "x", "", 404, "", 0},
	} {
		var got reports
		h := pings.New(pings.Options{Reports: &got, Keys: keys})
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(x.method, x.path, strings.NewReader(x.body)))
		name := x.method + " " + strings.Replace(x.path, keys.Key(id), "KEY", 1)
		if w.Code != x.status {
			t.Errorf("%s: %d, want %d", name, w.Code, x.status)
			continue
		}
		if x.status != 200 {
			if len(got.list) > 0 {
				t.Errorf("%s: it was taken in", name)
			}
			continue
		}
		p := got.list[0]
		if got.ids[0] != id || p.Kind != x.kind || (p.ExitCode == nil) != (x.code < 0) || p.ExitCode != nil && *p.ExitCode != x.code || p.Source != "192.0.2.1" {
			t.Errorf("%s: %+v", name, p)
		}
		if p.BodyBytes != int64(len(x.body)) || len(p.Body) > dts.MaxPingBody || strings.ContainsRune(p.Body, 0) || strings.ToValidUTF8(p.Body, "") != p.Body {
			t.Errorf("%s: %d bytes of %d are kept", name, len(p.Body), p.BodyBytes)
		}
	}
}

// A flood of one key is refused before it costs a write, and keeps no other key from being heard.
func TestFlood(t *testing.T) {
	keys, got, now := pings.NewKeys("secret"), &reports{}, time.Now()
	h := pings.New(pings.Options{Reports: got, Keys: keys, Now: func() time.Time { return now }})
	ask := func(id string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", pings.Prefix+keys.Key(id), nil))
		return w
	}
	a, b := dts.NewID(now), dts.NewID(now)
	for range 10_000 {
		ask(a)
	}
	if n := len(got.list); n != 20 {
		t.Errorf("%d of 10,000 at once were kept", n)
	}
	if w := ask(a); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("the flood is answered with %d", w.Code)
	}
	if w := ask(b); w.Code != 200 {
		t.Errorf("another key is answered with %d", w.Code)
	}
	for range 60 {
		now = now.Add(time.Second)
		for range 100 {
			ask(a)
		}
	}
	if n := len(got.list); n != 20+1+60 {
		t.Errorf("%d were kept after a minute, want one a second more", n)
	}
}

// What cannot be kept is not acknowledged, and no answer or log line has a key in it.
func TestNotKept(t *testing.T) {
	keys, id := pings.NewKeys("secret"), dts.NewID(time.Now())
	for _, x := range []struct {
		err    error
		status int
	}{
		{dts.Errorf(dts.ErrNotFound, "gone"), 404}, {dts.Errorf(dts.ErrUnavailable, "the database does not answer"), 503},
		{dts.Errorf(dts.ErrFull, "the disk is full"), 503}, {context.DeadlineExceeded, 500},
	} {
		var log strings.Builder
		h := pings.New(pings.Options{Reports: &reports{err: x.err}, Keys: keys, Log: slog.New(slog.NewTextHandler(&log, nil))})
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", pings.Prefix+keys.Key(id), nil))
		if w.Code != x.status {
			t.Errorf("%v: %d, want %d", x.err, w.Code, x.status)
		}
		if strings.Contains(log.String()+w.Body.String(), keys.Key(id)) {
			t.Errorf("%v: the key is in the log or the answer", x.err)
		}
	}
}
