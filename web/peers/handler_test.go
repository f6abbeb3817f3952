package peers

import (
	"bytes"
	"encoding/gob"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"dts"
)

// Whoever does not know the secret, or speaks otherwise, gets nothing done.
func TestHandlerRefuses(t *testing.T) {
	w, n := servers(t, "n1")
	k := w.task("n1", dts.Pending, "")
	var body bytes.Buffer
	if err := encode(&body, &request{Tenant: tenant, ID: k.ID, Verb: dts.Cancel}, nil); err != nil {
		t.Fatal(err)
	}
	many := bytes.Buffer{}
	gob.NewEncoder(&many).Encode(&request{Count: dts.MaxBulk + 1})
	fewer := bytes.Buffer{}
	gob.NewEncoder(&fewer).Encode(&request{Count: 3})
	chunked := func(n int64) io.Reader {
		return io.MultiReader(bytes.NewReader([]byte{0xfc, 0x7f, 0xff, 0xff, 0xff}), io.LimitReader(zeros{}, n)) // a message of 2 GB, it says
	}
	for _, tt := range []struct {
		name   string
		change func(r *http.Request)
		body   io.Reader
		status int
		says   string
	}{
		{"no secret", func(r *http.Request) { r.Header.Del("Authorization") }, nil, 401, "this needs the cluster's secret"},
		{"a wrong secret", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+secret+"x") }, nil, 401, "secret"},
		{"an empty secret", func(r *http.Request) { r.Header.Set("Authorization", "Bearer ") }, nil, 401, "secret"},
		{"another scheme", func(r *http.Request) { r.SetBasicAuth("", secret) }, nil, 401, "secret"},
		{"GET without the secret", func(r *http.Request) { r.Method = "GET"; r.Header.Del("Authorization") }, nil, 401, "secret"},
		{"GET", func(r *http.Request) { r.Method = "GET" }, nil, 405, "this takes POST"},
		{"another protocol", func(r *http.Request) { r.Header.Set(headerProtocol, "1") }, nil, 400, `version 3 of the protocol between servers, not "1"`},
		{"no protocol", func(r *http.Request) { r.Header.Del(headerProtocol) }, nil, 400, "protocol"},
		{"another server is meant", func(r *http.Request) { r.Header.Set(headerTo, "n2") }, nil, 421, `this is the server n1, not "n2"`},
		{"an unknown method", func(r *http.Request) { r.Header.Set(headerMethod, "Shutdown") }, nil, 404, `does not know the method "Shutdown"`},
		{"no method", func(r *http.Request) { r.Header.Del(headerMethod) }, nil, 404, "method"},
		{"another path", func(r *http.Request) { r.URL.Path = "/cluster/" }, nil, 404, "nothing at this path"},
		{"no body", func(r *http.Request) {}, strings.NewReader(""), 400, "EOF"},
		{"not gob", func(r *http.Request) {}, strings.NewReader(`{"tenant":"default"}`), 400, "cannot be read"},
		{"too many tasks", func(r *http.Request) { r.Header.Set(headerMethod, "CreateTasks") }, &many, 413, "at most 10000"},
		{"too few tasks", func(r *http.Request) { r.Header.Set(headerMethod, "CreateTasks") }, &fewer, 400, "EOF"},
		{"a huge body", func(r *http.Request) { r.ContentLength = maxCall + 1 }, io.LimitReader(zeros{}, maxCall+1), 413, "at most 4194304"},
		{"a huge body of unknown length", func(r *http.Request) { r.ContentLength = -1 }, chunked(maxCall), 413, "too large"},
		{"a huge body for events", func(r *http.Request) { r.URL.Path = eventsPath; r.ContentLength = -1 }, chunked(maxCall), 400, "too large"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.body == nil {
				tt.body = bytes.NewReader(body.Bytes())
			}
			r, err := http.NewRequest("POST", n[0].server.URL+callPath, tt.body)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+secret)
			r.Header.Set(headerProtocol, protocol)
			r.Header.Set(headerTo, "n1")
			r.Header.Set(headerMethod, "DoTask")
			tt.change(r)
			resp, err := n[0].client.http.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if resp.StatusCode != tt.status || !strings.Contains(string(text), tt.says) || err != nil {
				t.Errorf("%d %s %v", resp.StatusCode, text, err)
			}
			if tt.status == 401 && strings.Contains(string(text), "n1") {
				t.Errorf("it tells strangers who it is: %s", text)
			}
		})
	}
	if did := n[0].asked(); len(did) != 0 {
		t.Errorf("it did %v", did)
	}
	if resp := call(t, n[0], "DoTask", &request{Tenant: tenant, ID: k.ID, Verb: dts.Cancel}); resp.Failure != nil || len(n[0].asked()) != 1 {
		t.Errorf("the right call: %+v", resp.Failure)
	}
}

// zeros is a body without an end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func call(t *testing.T, n *node, method string, q *request) *answer {
	t.Helper()
	a, err := n.client.call(ctx, dts.Node{ID: n.id, Address: n.server.URL}, method, q)
	if a == nil {
		t.Fatal(err)
	}
	return a
}

// A server that is asked never asks another one.
func TestHandlerDoesNotForward(t *testing.T) {
	w, n := servers(t, "n1", "n2")
	for i := range w.holders {
		w.holders[i] = "n2"
	}
	k, r := w.task("n2", dts.Pending, ""), w.everyHour("n2")
	for _, tt := range []struct {
		method string
		q      *request
	}{
		{"DoTask", &request{Tenant: tenant, ID: k.ID, Verb: dts.Cancel}},
		{"ModifyTask", &request{Tenant: tenant, ID: k.ID, TaskPatch: &taskPatchForm{}}},
		{"CreateRecurring", &request{Recurring: &recurringForm{}}},
		{"ModifyRecurring", &request{Tenant: tenant, ID: r.ID, RecurringPatch: &recurringPatchForm{}}},
		{"PauseRecurring", &request{Tenant: tenant, ID: r.ID}},
		{"ResumeRecurring", &request{Tenant: tenant, ID: r.ID}},
		{"CancelRecurring", &request{Tenant: tenant, ID: r.ID}},
		{"BackfillRecurring", &request{Tenant: tenant, ID: r.ID}},
		{"TriggerRecurring", &request{Tenant: tenant, ID: r.ID}},
	} {
		if a := call(t, n[0], tt.method, tt.q); a.Failure == nil || a.Failure.Code != dts.ErrElsewhere {
			t.Errorf("%s: %+v", tt.method, a.Failure)
		}
	}
	a, err := n[0].client.call(ctx, w.live[0], "CreateTasks", &request{}, &dts.Task{ID: k.ID})
	if dts.CodeOf(err) != dts.ErrElsewhere {
		t.Errorf("CreateTasks: %+v, %v", a, err)
	}
	if did := n[1].asked(); len(did) != 0 {
		t.Errorf("n2 was asked for %v", did)
	}
	for _, m := range []string{"CreateTasks", "ModifyTask", "CreateRecurring", "ModifyRecurring"} {
		if a := call(t, n[0], m, &request{}); a.Failure == nil || a.Failure.Code != dts.ErrInternal {
			t.Errorf("%s without what it is about: %+v", m, a.Failure)
		}
	}
}

func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"http://10.0.0.1:8420":         "http://10.0.0.1:8420",
		"https://dts-1.example.com/":   "https://dts-1.example.com",
		"http://[fd00::1]:8420":        "http://[fd00::1]:8420",
		"":                             "",
		"127.0.0.1:8420":               "",
		"file:///etc/passwd":           "",
		"ftp://a/":                     "",
		"http://":                      "",
		"http://:80":                   "",
		"http://user:pw@a":             "",
		"http://a/path":                "",
		"http://a?x=1":                 "",
		"http://a#b":                   "",
		"http://a b":                   "",
		"unix:///run/dts/sock":         "",
		"http://a\r\nX-Evil: 1":        "",
		"javascript:alert(1)":          "",
		"gopher://169.254.169.254:80/": "",
	} {
		got, err := baseOf(dts.Node{ID: "n2", Address: address})
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", address, got, err)
		}
	}
}

// A redirect would lead to where no server has registered.
func TestClientFollowsNoRedirect(t *testing.T) {
	w, n := servers(t, "n1", "n2", "n3")
	k := w.task("n2", dts.Pending, "")
	n[1].before = func(rw http.ResponseWriter, r *http.Request) bool {
		http.Redirect(rw, r, n[2].server.URL+r.URL.Path, http.StatusTemporaryRedirect)
		return false
	}
	_, err := n[0].client.call(ctx, w.live[1], "DoTask", &request{Tenant: tenant, ID: k.ID, Verb: dts.Cancel})
	if e, is := err.(*noAnswer); !is || e.maybe || len(n[2].asked()) != 0 {
		t.Error(err)
	}
	if n[0].client.transport.Proxy != nil {
		t.Error("it uses a proxy")
	}
}

// A wrong answer is no answer.
func TestStrangeAnswers(t *testing.T) {
	w, n := servers(t, "n1", "n2")
	for _, tt := range []struct {
		name  string
		serve http.HandlerFunc
		maybe bool
	}{
		{"nothing", func(http.ResponseWriter, *http.Request) {}, true},
		{"text", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }, true},
		{"no end", func(w http.ResponseWriter, _ *http.Request) { io.CopyN(w, zeros{}, 2*maxAnswer) }, true},
		{"half of one", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			gob.NewEncoder(w).Encode("x")
			panic(http.ErrAbortHandler)
		}, true},
		{"a panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true},
		{"500", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, true},
		{"503", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, true},
		{"204", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, true},
		{"404", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, false},
		{"403", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, strings.Repeat("no ", 1e5), http.StatusForbidden)
		}, false},
	} {
		n[1].set(func() {
			n[1].before = func(w http.ResponseWriter, r *http.Request) bool { tt.serve(w, r); return false }
		})
		_, err := n[0].client.call(ctx, w.live[1], "DoTask", &request{})
		if e, is := err.(*noAnswer); !is || e.maybe != tt.maybe || len(err.Error()) > 1000 {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// What is to be told while a call is on its way goes with the next one.
func TestWake(t *testing.T) {
	w, n := servers(t, "n1", "n2")
	held := make(chan struct{})
	var calls int
	n[1].before = func(http.ResponseWriter, *http.Request) bool {
		n[1].set(func() { calls++ })
		<-held
		return true
	}
	var ids []string
	for range 500 {
		id := dts.NewID(time.Now())
		ids = append(ids, id)
		n[0].client.Wake(w.live[1], []string{id, "not an id"})
	}
	for range 100 {
		n[0].client.Poke(w.live[1])
	}
	n[0].client.Wake(w.live[1], nil)
	close(held)
	until(t, "all are told", func() bool {
		n[1].mu.Lock()
		defer n[1].mu.Unlock()
		return len(n[1].woken) == len(ids) && n[1].pokes > 0
	})
	n[1].mu.Lock()
	defer n[1].mu.Unlock()
	if calls > 3 || n[1].pokes > 2 {
		t.Errorf("it took %d calls and %d pokes", calls, n[1].pokes)
	}
	for i, id := range ids {
		if n[1].woken[i] != id {
			t.Fatalf("the ids came in another order, or others")
		}
	}
}

// Servers that hang or are not there delay nobody, and what waits for them is bounded.
func TestWakeOfNobody(t *testing.T) {
	w, n := servers(t, "n1", "n2")
	n[1].before = hang
	begun := time.Now()
	for range 3 * maxNotices / 100 {
		n[0].client.Wake(w.live[1], make([]string, 100))
		n[0].client.Wake(dts.Node{ID: "n9", Address: "http://127.0.0.1:1"}, make([]string, 100))
		n[0].client.Poke(dts.Node{ID: "n8", Address: "nonsense"})
	}
	n[0].client.mu.Lock()
	if wait := n[0].client.notices["n2"]; wait == nil || len(wait.ids) > maxNotices {
		t.Errorf("%d wait", len(wait.ids))
	}
	n[0].client.mu.Unlock()
	n[0].client.Close()
	n[0].client.Close()
	n[0].client.Poke(w.live[1])
	if took := time.Since(begun); took > time.Second {
		t.Errorf("it took %s", took)
	}
}
