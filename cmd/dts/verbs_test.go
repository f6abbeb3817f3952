package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"dts"
	"dts/web"
	"dts/web/api"
)

// verbServer is a whole server, asked over its socket, and the target of its tasks.
type verbServer struct {
	t      *testing.T
	http   *http.Client
	target *httptest.Server
	n      int // of the states that were made
}

func startVerbServer(t *testing.T) *verbServer {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	socket := filepath.Join(t.TempDir(), "s")
	s := &verbServer{t: t}
	var seen sync.Map
	s.target = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hangs":
			<-r.Context().Done()
		case "/fails-first":
			if _, again := seen.LoadOrStore(r.Header.Get("Idempotency-Key"), true); !again {
				http.Error(w, "not yet", http.StatusServiceUnavailable)
			}
		}
	}))
	t.Cleanup(s.target.Close)
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- runServer(ctx, serverOptions{DataDir: dir, Listen: web.NoListen, SocketPath: socket, DrainTimeout: time.Millisecond,
			Log: slog.New(slog.DiscardHandler), Ready: func(string) { close(ready) }})
	}()
	select {
	case <-ready:
	case err := <-ended:
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.target.CloseClientConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	s.http = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	t.Cleanup(s.http.CloseIdleConnections)
	return s
}

// call asks the API.
func (s *verbServer) call(method, path, body string) (int, []byte) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, "http://localhost"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := s.http.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, b
}

// ask is call for what must succeed.
func ask[T any](s *verbServer, method, path, body string) (v T) {
	s.t.Helper()
	code, b := s.call(method, path, body)
	if code/100 != 2 {
		s.t.Fatalf("%s %s %s: %d %s", method, path, body, code, b)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		s.t.Fatalf("%v in %s", err, b)
	}
	return v
}

func (s *verbServer) add(path, fields string) string {
	s.t.Helper()
	return ask[dts.Task](s, "POST", "/tasks", fmt.Sprintf(`{"target_type":"HTTP_CALLBACK","target_config":{"url":%q}%s}`, s.target.URL+path, fields)).ID
}

// state is a task's state as the table writes it.
func (s *verbServer) state(id string) string {
	s.t.Helper()
	code, b := s.call("GET", "/tasks/"+id, "")
	if code == http.StatusNotFound {
		return "gone"
	}
	return stateOf(s.t, b)
}

func stateOf(t *testing.T, b []byte) string {
	t.Helper()
	var k dts.Task
	if err := json.Unmarshal(b, &k); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	return strings.TrimSpace(string(k.Status) + " " + string(k.WaitsFor))
}

func (s *verbServer) await(id, state string) string {
	s.t.Helper()
	var got string
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if got = s.state(id); got == state {
			break
		}
	}
	return got
}

func (s *verbServer) must(id, state string) string {
	s.t.Helper()
	if got := s.await(id, state); got != state {
		s.t.Fatalf("a task that was to be %s is %s", state, got)
	}
	return id
}

// verbStates makes a task in each state.
var verbStates = map[string]func(s *verbServer) string{
	"not due": func(s *verbServer) string { return s.add("/", `,"delay":"1h"`) },
	"claimed": func(s *verbServer) string {
		id := s.add("/", `,"delay":"1900ms"`)
		if k := ask[dts.Task](s, "GET", "/tasks/"+id, ""); k.PickedAt.IsZero() {
			s.t.Error("what is due soon is not claimed")
		}
		return id
	},
	"waits for a parent": func(s *verbServer) string {
		return s.must(s.add("/", `,"depends_on":[{"task_id":"`+s.add("/", `,"delay":"1h"`)+`"}]`), "PENDING")
	},
	"in line": func(s *verbServer) string {
		s.n++
		key := fmt.Sprintf(`,"concurrency_key":"k%d"`, s.n)
		s.must(s.add("/hangs", key), "RUNNING")
		return s.must(s.add("/", key), "PENDING CONCURRENCY")
	},
	"paused": func(s *verbServer) string {
		id := s.add("/", `,"delay":"1h"`)
		ask[dts.Task](s, "POST", "/tasks/"+id+"/pause", "")
		return s.must(id, "PENDING PAUSED")
	},
	"paused, waits for a parent": func(s *verbServer) string {
		id := s.add("/", `,"depends_on":[{"task_id":"`+s.add("/", `,"delay":"1h"`)+`"}]`)
		ask[dts.Task](s, "POST", "/tasks/"+id+"/pause", "")
		return s.must(id, "PENDING PAUSED")
	},
	"between attempts": func(s *verbServer) string {
		id := s.add("/fails-first", `,"retry":{"max_attempts":2,"backoff":"FIXED","base_delay_ms":3600000,"jitter":false}`)
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			if k := ask[dts.Task](s, "GET", "/tasks/"+id, ""); k.Attempts == 1 && k.Status == dts.Pending {
				return id
			}
		}
		s.t.Fatal("the first attempt has not ended")
		return ""
	},
	"running":   func(s *verbServer) string { return s.must(s.add("/hangs", ""), "RUNNING") },
	"succeeded": func(s *verbServer) string { return s.must(s.add("/", ""), "SUCCESS") },
	"failed": func(s *verbServer) string {
		return s.must(s.add("/fails-first", `,"retry":{"max_attempts":1}`), "FAILED")
	},
	"cancelled": func(s *verbServer) string {
		id := s.add("/", `,"delay":"1h"`)
		ask[dts.Task](s, "POST", "/tasks/"+id+"/cancel", "")
		return s.must(id, "CANCELLED")
	},
	"skipped": func(s *verbServer) string {
		parent := s.add("/", `,"delay":"1h"`)
		ask[dts.Task](s, "POST", "/tasks/"+parent+"/cancel", "")
		return s.must(s.add("/", `,"depends_on":[{"task_id":"`+parent+`"}]`), "SKIPPED")
	},
}

// verbTable is what each verb does in each state: the status of the answer; the state that it shows, or, where it is a
// refusal, what that says; and the state in which the task comes to rest after that. bulk is how many tasks the bulk
// verb by ids changes; -1 where there is none.
var verbTable = []struct {
	state  string
	verb   dts.Verb
	code   int
	answer string
	after  string
	bulk   int
}{
	{"not due", dts.Modify, 200, "PENDING", "PENDING", -1},
	{"not due", dts.Cancel, 200, "CANCELLED", "CANCELLED", 1},
	{"not due", dts.RetryNow, 409, "the task is PENDING: only a FAILED, CANCELLED or SKIPPED task can be retried", "PENDING", 0},
	{"not due", dts.ForceComplete, 200, "SUCCESS", "SUCCESS", -1},
	{"not due", dts.RunNow, 200, "PENDING", "SUCCESS", -1},
	{"not due", dts.PauseTask, 200, "PENDING PAUSED", "PENDING PAUSED", 1},
	{"not due", dts.ResumeTask, 200, "PENDING", "PENDING", 0},
	{"not due", dts.Delete, 200, "PENDING", "gone", 1},

	{"claimed", dts.Modify, 200, "PENDING", "SUCCESS", -1},
	{"claimed", dts.Cancel, 200, "CANCELLED", "CANCELLED", 1},
	{"claimed", dts.RetryNow, 409, "the task is PENDING: only a FAILED, CANCELLED or SKIPPED task can be retried", "SUCCESS", 0},
	{"claimed", dts.ForceComplete, 200, "SUCCESS", "SUCCESS", -1},
	{"claimed", dts.RunNow, 200, "PENDING", "SUCCESS", -1},
	{"claimed", dts.PauseTask, 200, "PENDING PAUSED", "PENDING PAUSED", 1},
	{"claimed", dts.ResumeTask, 200, "PENDING", "SUCCESS", 0},
	{"claimed", dts.Delete, 200, "PENDING", "gone", 1},

	{"waits for a parent", dts.Modify, 200, "PENDING", "PENDING", -1},
	{"waits for a parent", dts.Cancel, 200, "CANCELLED", "CANCELLED", 1},
	{"waits for a parent", dts.RetryNow, 409, "the task is PENDING: only a FAILED, CANCELLED or SKIPPED task can be retried", "PENDING", 0},
	{"waits for a parent", dts.ForceComplete, 200, "SUCCESS", "SUCCESS", -1},
	{"waits for a parent", dts.RunNow, 200, "PENDING", "SUCCESS", -1},
	{"waits for a parent", dts.PauseTask, 200, "PENDING PAUSED", "PENDING PAUSED", 1},
	{"waits for a parent", dts.ResumeTask, 200, "PENDING", "PENDING", 0},
	{"waits for a parent", dts.Delete, 200, "PENDING", "gone", 1},

	{"in line", dts.Modify, 200, "PENDING", "PENDING CONCURRENCY", -1},
	{"in line", dts.Cancel, 200, "CANCELLED", "CANCELLED", 1},
	{"in line", dts.RetryNow, 409, "the task is PENDING: only a FAILED, CANCELLED or SKIPPED task can be retried", "PENDING CONCURRENCY", 0},
	{"in line", dts.ForceComplete, 200, "SUCCESS", "SUCCESS", -1},
	{"in line", dts.RunNow, 200, "PENDING", "PENDING CONCURRENCY", -1},
	{"in line", dts.PauseTask, 200, "PENDING PAUSED", "PENDING PAUSED", 1},
	{"in line", dts.ResumeTask, 200, "PENDING CONCURRENCY", "PENDING CONCURRENCY", 0},
	{"in line", dts.Delete, 200, "PENDING CONCURRENCY", "gone", 1},

	{"paused", dts.Modify, 200, "PENDING PAUSED", "PENDING PAUSED", -1},
	{"paused", dts.Cancel, 200, "CANCELLED", "CANCELLED", 1},
	{"paused", dts.RetryNow, 409, "the task is PENDING: only a FAILED, CANCELLED or SKIPPED task can be retried", "PENDING PAUSED", 0},
	{"paused", dts.ForceComplete, 200, "SUCCESS", "SUCCESS", -1},
	{"paused", dts.RunNow, 200, "PENDING", "SUCCESS", -1},
	{"paused", dts.PauseTask, 200, "PENDING PAUSED", "PENDING PAUSED", 0},
	{"paused", dts.ResumeTask, 200, "PENDING", "PENDING", 1},
	{"paused", dts.Delete, 200, "PENDING PAUSED", "gone", 1},

	{"paused, waits for a parent", dts.Modify, 200, "PENDING PAUSED", "PENDING PAUSED", -1},
	{"paused, waits for a parent", dts.Cancel, 200, "CANCELLED", "CANCELLED", 1},
	{"paused, waits for a parent", dts.RetryNow, 409, "the task is PENDING: only a FAILED, CANCELLED or SKIPPED task can be retried", "PENDING PAUSED", 0},
	{"paused, waits for a parent", dts.ForceComplete, 200, "SUCCESS", "SUCCESS", -1},
	{"paused, waits for a parent", dts.RunNow, 200, "PENDING", "SUCCESS", -1},
	{"paused, waits for a parent", dts.PauseTask, 200, "PENDING PAUSED", "PENDING PAUSED", 0},
	{"paused, waits for a parent", dts.ResumeTask, 200, "PENDING", "PENDING", 1},
	{"paused, waits for a parent", dts.Delete, 200, "PENDING PAUSED", "gone", 1},

	{"between attempts", dts.Modify, 200, "PENDING", "PENDING", -1},
	{"between attempts", dts.Cancel, 200, "CANCELLED", "CANCELLED", 1},
	{"between attempts", dts.RetryNow, 409, "the task is PENDING: only a FAILED, CANCELLED or SKIPPED task can be retried", "PENDING", 0},
	{"between attempts", dts.ForceComplete, 200, "SUCCESS", "SUCCESS", -1},
	{"between attempts", dts.RunNow, 200, "PENDING", "SUCCESS", -1},
	{"between attempts", dts.PauseTask, 200, "PENDING PAUSED", "PENDING PAUSED", 1},
	{"between attempts", dts.ResumeTask, 200, "PENDING", "PENDING", 0},
	{"between attempts", dts.Delete, 200, "PENDING", "gone", 1},

	{"running", dts.Modify, 409, "the task is RUNNING: only a PENDING task can be modified", "RUNNING", -1},
	{"running", dts.Cancel, 200, "CANCELLED", "CANCELLED", 1},
	{"running", dts.RetryNow, 409, "the task is RUNNING: only a FAILED, CANCELLED or SKIPPED task can be retried", "RUNNING", 0},
	{"running", dts.ForceComplete, 409, "the task is RUNNING: cancel the run first, then force-complete it", "RUNNING", -1},
	{"running", dts.RunNow, 409, "the task is RUNNING: only a PENDING task can be run now; retry a finished one", "RUNNING", -1},
	{"running", dts.PauseTask, 409, "the task is RUNNING: only a PENDING task can be paused", "RUNNING", 0},
	{"running", dts.ResumeTask, 409, "the task is RUNNING: only a PENDING task that was paused can be resumed", "RUNNING", 0},
	{"running", dts.Delete, 409, "the task is RUNNING: cancel the run first, then delete it", "RUNNING", 0},

	{"succeeded", dts.Modify, 409, "the task is SUCCESS: only a PENDING task can be modified", "SUCCESS", -1},
	{"succeeded", dts.Cancel, 409, "the task is SUCCESS: only a PENDING or RUNNING task can be cancelled", "SUCCESS", 0},
	{"succeeded", dts.RetryNow, 409, "the task is SUCCESS: only a FAILED, CANCELLED or SKIPPED task can be retried", "SUCCESS", 0},
	{"succeeded", dts.ForceComplete, 200, "SUCCESS", "SUCCESS", -1},
	{"succeeded", dts.RunNow, 409, "the task is SUCCESS: only a PENDING task can be run now; retry a finished one", "SUCCESS", -1},
	{"succeeded", dts.PauseTask, 409, "the task is SUCCESS: only a PENDING task can be paused", "SUCCESS", 0},
	{"succeeded", dts.ResumeTask, 409, "the task is SUCCESS: only a PENDING task that was paused can be resumed", "SUCCESS", 0},
	{"succeeded", dts.Delete, 200, "SUCCESS", "gone", 1},

	{"failed", dts.Modify, 409, "the task is FAILED: only a PENDING task can be modified", "FAILED", -1},
	{"failed", dts.Cancel, 409, "the task is FAILED: only a PENDING or RUNNING task can be cancelled", "FAILED", 0},
	{"failed", dts.RetryNow, 200, "PENDING", "SUCCESS", 1},
	{"failed", dts.ForceComplete, 200, "SUCCESS", "SUCCESS", -1},
	{"failed", dts.RunNow, 409, "the task is FAILED: only a PENDING task can be run now; retry a finished one", "FAILED", -1},
	{"failed", dts.PauseTask, 409, "the task is FAILED: only a PENDING task can be paused", "FAILED", 0},
	{"failed", dts.ResumeTask, 409, "the task is FAILED: only a PENDING task that was paused can be resumed", "FAILED", 0},
	{"failed", dts.Delete, 200, "FAILED", "gone", 1},

	{"cancelled", dts.Modify, 409, "the task is CANCELLED: only a PENDING task can be modified", "CANCELLED", -1},
	{"cancelled", dts.Cancel, 200, "CANCELLED", "CANCELLED", 0},
	{"cancelled", dts.RetryNow, 200, "PENDING", "SUCCESS", 1},
	{"cancelled", dts.ForceComplete, 200, "SUCCESS", "SUCCESS", -1},
	{"cancelled", dts.RunNow, 409, "the task is CANCELLED: only a PENDING task can be run now; retry a finished one", "CANCELLED", -1},
	{"cancelled", dts.PauseTask, 409, "the task is CANCELLED: only a PENDING task can be paused", "CANCELLED", 0},
	{"cancelled", dts.ResumeTask, 409, "the task is CANCELLED: only a PENDING task that was paused can be resumed", "CANCELLED", 0},
	{"cancelled", dts.Delete, 200, "CANCELLED", "gone", 1},

	{"skipped", dts.Modify, 409, "the task is SKIPPED: only a PENDING task can be modified", "SKIPPED", -1},
	{"skipped", dts.Cancel, 409, "the task is SKIPPED: only a PENDING or RUNNING task can be cancelled", "SKIPPED", 0},
	{"skipped", dts.RetryNow, 200, "PENDING", "SUCCESS", 1},
	{"skipped", dts.ForceComplete, 200, "SUCCESS", "SUCCESS", -1},
	{"skipped", dts.RunNow, 409, "the task is SKIPPED: only a PENDING task can be run now; retry a finished one", "SKIPPED", -1},
	{"skipped", dts.PauseTask, 409, "the task is SKIPPED: only a PENDING task can be paused", "SKIPPED", 0},
	{"skipped", dts.ResumeTask, 409, "the task is SKIPPED: only a PENDING task that was paused can be resumed", "SKIPPED", 0},
	{"skipped", dts.Delete, 200, "SKIPPED", "gone", 1},
}

// TestVerbs does every verb to a task in every state, and every bulk verb to another one, through the API of a real server.
func TestVerbs(t *testing.T) {
	s := startVerbServer(t)
	type rest struct{ what, id, after string }
	var rests []rest
	cells := map[string]bool{}
	for _, row := range verbTable {
		what := string(row.verb) + ", " + row.state
		cells[what] = true
		id := s.prompt(row.state, func(id string) {
			code, b := s.do(row.verb, id)
			got := ""
			if code == http.StatusOK {
				got = stateOf(t, b)
			} else {
				var p api.Problem
				if err := json.Unmarshal(b, &p); err != nil {
					t.Fatalf("%v in %s", err, b)
				}
				got = p.Detail
			}
			if code != row.code || got != row.answer {
				t.Errorf("%s: %d %q, want %d %q", what, code, got, row.code, row.answer)
			}
		})
		rests = append(rests, rest{what, id, row.after})
		if row.bulk < 0 {
			continue
		}
		id = s.prompt(row.state, func(id string) {
			body, path := `{"ids":["`+id+`"]`, "/tasks/bulk-"+string(row.verb)
			if r := ask[dts.BulkResult](s, "POST", path, body+`,"dry_run":true}`); r != (dts.BulkResult{Matched: row.bulk, DryRun: true}) {
				t.Errorf("dry run of bulk %s: %+v, want %d", what, r, row.bulk)
			}
			if r := ask[dts.BulkResult](s, "POST", path, body+`}`); r != (dts.BulkResult{Matched: row.bulk, Done: row.bulk}) {
				t.Errorf("bulk %s: %+v, want %d", what, r, row.bulk)
			}
		})
		rests = append(rests, rest{"bulk " + what, id, row.after})
	}
	for _, r := range rests {
		if got := s.await(r.id, r.after); got != r.after {
			t.Errorf("%s: the task is %s at last, want %s", r.what, got, r.after)
		}
	}
	verbs := []dts.Verb{dts.Modify, dts.Cancel, dts.RetryNow, dts.ForceComplete, dts.RunNow, dts.PauseTask, dts.ResumeTask, dts.Delete}
	for state := range verbStates {
		for _, v := range verbs {
			if !cells[string(v)+", "+state] {
				t.Errorf("the table lacks %s, %s", v, state)
			}
		}
	}
}

// prompt makes a task in a state and does something to it; once more where that came so late that what is claimed may have
// started before.
func (s *verbServer) prompt(state string, do func(id string)) (id string) {
	s.t.Helper()
	for try := 0; ; try++ {
		id = verbStates[state](s)
		if state == "claimed" {
			if k := ask[dts.Task](s, "GET", "/tasks/"+id, ""); time.Until(k.DueAt) < time.Second && try < 10 {
				continue // a second is left in any case
			}
		}
		do(id)
		return id
	}
}

func (s *verbServer) do(v dts.Verb, id string) (int, []byte) {
	s.t.Helper()
	switch v {
	case dts.Modify:
		return s.call("PATCH", "/tasks/"+id, `{"name":"changed"}`)
	case dts.Delete:
		return s.call("DELETE", "/tasks/"+id, "")
	}
	return s.call("POST", "/tasks/"+id+"/"+string(v), "")
}

// TestBatch: a bulk request is a batch that says how far it is, and that bulk verbs select.
func TestBatch(t *testing.T) {
	s := startVerbServer(t)
	one := func(path, more string) string {
		return fmt.Sprintf(`{"target_type":"HTTP_CALLBACK","target_config":{"url":%q},"retry":{"max_attempts":1}%s}`, s.target.URL+path, more)
	}
	made := ask[api.BulkAnswer](s, "POST", "/tasks/bulk", `{"tasks":[`+strings.Join([]string{one("/", ""), one("/", ""), one("/fails-first", ""), one("/", `,"delay":"1h"`)}, ",")+`]}`)
	for i, state := range []string{"SUCCESS", "SUCCESS", "FAILED", "PENDING"} {
		s.must(made.Items[i].TaskID, state)
	}
	want := func(w dts.Batch) {
		t.Helper()
		b := ask[dts.Batch](s, "GET", "/batches/"+made.BatchID, "")
		if b.CreatedAt.IsZero() || b.CompletedAt.IsZero() == b.Done {
			t.Errorf("%+v", b)
		}
		b.CreatedAt, b.CompletedAt = time.Time{}, time.Time{}
		if w.ID = made.BatchID; b != w {
			t.Errorf("%+v, want %+v", b, w)
		}
	}
	bulk := func(verb string, n int) {
		t.Helper()
		if r := ask[dts.BulkResult](s, "POST", "/tasks/bulk-"+verb, `{"filter":{"batch_id":"`+made.BatchID+`"}}`); r != (dts.BulkResult{Matched: n, Done: n}) {
			t.Errorf("%s: %+v, want %d", verb, r, n)
		}
	}
	want(dts.Batch{Total: 4, Pending: 1, Success: 2, Failed: 1})
	bulk("retry", 1)
	s.must(made.Items[2].TaskID, "SUCCESS")
	bulk("pause", 1)
	bulk("resume", 1)
	bulk("cancel", 1)
	want(dts.Batch{Total: 4, Success: 3, Cancelled: 1, Done: true})
	bulk("delete", 4)
	if code, b := s.call("GET", "/batches/"+made.BatchID, ""); code != http.StatusNotFound {
		t.Errorf("%d %s", code, b)
	}
}
