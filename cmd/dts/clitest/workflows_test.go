package clitest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// steps reads what became of the steps of a workflow's newest run, as "name: STATUS, attempts, queue", in their order.
func (s *realServer) steps(workflow string) (run, status string, list []string) {
	s.t.Helper()
	type item struct {
		ID       string `json:"task_id"`
		Name     string
		Status   string
		Attempts int
		Queue    string
		Type     string `json:"target_type"`
	}
	var all struct{ Tasks []item }
	s.dts(&all, "ls", "--json")
	i := slices.IndexFunc(all.Tasks, func(k item) bool { return k.Type == "WORKFLOW" && k.Name == workflow })
	if i < 0 {
		s.t.Fatalf("there is no run of %s: %+v", workflow, all)
	}
	var steps struct{ Tasks []item }
	s.dts(&steps, "ls", "--workflow", all.Tasks[i].ID, "--json")
	for _, k := range slices.Backward(steps.Tasks) {
		list = append(list, fmt.Sprintf("%s: %s, %d, %s", k.Name, k.Status, k.Attempts, k.Queue))
	}
	return all.Tasks[i].ID, all.Tasks[i].Status, list
}

// awaitSteps waits until the newest run has a status, and compares its steps.
func (s *realServer) awaitSteps(workflow, status string, want ...string) (run string) {
	s.t.Helper()
	var got string
	var list []string
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if run, got, list = s.steps(workflow); got == status {
			break
		}
	}
	slices.Sort(list)
	if slices.Sort(want); got != status || !slices.Equal(list, want) {
		s.t.Fatalf("the run of %s is %s; want %s\n%s\nwant\n%s", workflow, got, status, lines(list), lines(want))
	}
	return run
}

// apply applies one of the workflows in testdata, with other places than its own, and runs it.
func (s *realServer) apply(file string, replace ...string) {
	s.t.Helper()
	text, err := os.ReadFile("../../../testdata/workflows/" + file)
	if err != nil {
		s.t.Fatal(err)
	}
	name := filepath.Join(s.t.TempDir(), file)
	if err := os.WriteFile(name, []byte(strings.NewReplacer(replace...).Replace(string(text))), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.dts(nil, "check", name)
	s.dts(nil, "apply", name)
	s.dts(nil, "run", strings.TrimSuffix(file, ".yaml"))
}

// calls is a web server that notes what it is asked.
type calls struct {
	mu   sync.Mutex
	list []string
	fail map[string]bool // what it answers with 503, by method and path
}

func (c *calls) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	what := r.Method + " " + r.URL.Path
	c.list = append(c.list, strings.TrimSpace(what+" "+string(body)))
	switch {
	case c.fail[what]:
		w.WriteHeader(503)
	case what == "GET /latest":
		io.WriteString(w, `[{"id":7,"headline":"A quiet day"}]`)
	case what == "POST /articles":
		w.WriteHeader(201)
		io.WriteString(w, "42\n")
	}
}

func (c *calls) set(what string, fails bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail[what] = fails
}

// took returns what it was asked since the last time.
func (c *calls) took() (list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list, c.list = c.list, nil
	return list
}

// A chain of steps backs up a directory; the alarm rings only when there is no backup.
func TestNightlyBackup(t *testing.T) {
	s := newServer(t)
	s.start()
	defer s.stop()
	hooks := &calls{fail: map[string]bool{}}
	site := httptest.NewServer(hooks)
	defer site.Close()
	srv := t.TempDir()
	for _, dir := range []string{"shop", "offsite", "backup"} {
		if err := os.Mkdir(filepath.Join(srv, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for i, text := range []string{"orders", "prices"} {
		if err := os.WriteFile(filepath.Join(srv, "shop", text), []byte(strings.Repeat(text, i+1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 9 { // of earlier nights
		old := filepath.Join(srv, "backup", fmt.Sprintf("shop-2020010%dT013000Z.tar.gz", i+1))
		for _, name := range []string{old, old + ".sha256"} {
			if err := os.WriteFile(name, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			then := time.Date(2020, 1, i+1, 1, 30, 0, 0, time.UTC)
			if err := os.Chtimes(name, then, then); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.apply("nightly-backup.yaml", "/srv/", srv+"/", "https://hooks.example.com", site.URL)
	s.awaitSteps("nightly-backup", "SUCCESS", "pack: SUCCESS, 1, backups", "check: SUCCESS, 1, default", "offsite: SUCCESS, 1, default",
		"rotate: SUCCESS, 1, default", "tell: SUCCESS, 1, default", "alarm: SKIPPED, 0, default")
	kept, _ := filepath.Glob(filepath.Join(srv, "backup", "*"))
	copied, _ := filepath.Glob(filepath.Join(srv, "offsite", "*.tar.gz"))
	if len(kept) != 14 || len(copied) != 1 {
		t.Errorf("kept are %q, and copied %q", kept, copied)
	}
	if got := hooks.took(); len(got) != 1 || !strings.HasPrefix(got[0], `POST /backup {"text": "`) || !strings.HasSuffix(got[0], `.tar.gz"}`) {
		t.Errorf("told was %q", got)
	}

	// Without the place to copy to there is no backup, which is told; and retried it goes on from there.
	offsite := filepath.Join(srv, "offsite")
	if err := os.Rename(offsite, offsite+".gone"); err != nil {
		t.Fatal(err)
	}
	s.dts(nil, "run", "nightly-backup")
	run := s.awaitSteps("nightly-backup", "FAILED", "pack: SUCCESS, 1, backups", "check: SUCCESS, 1, default", "offsite: FAILED, 3, default",
		"rotate: SKIPPED, 0, default", "tell: SKIPPED, 0, default", "alarm: SUCCESS, 1, default")
	if got := hooks.took(); len(got) != 1 || got[0] != "POST /alarm no backup of the shop last night" {
		t.Errorf("told was %q", got)
	}
	if err := os.Rename(offsite+".gone", offsite); err != nil {
		t.Fatal(err)
	}
	s.dts(nil, "retry", run)
	s.awaitSteps("nightly-backup", "SUCCESS", "pack: SUCCESS, 1, backups", "check: SUCCESS, 1, default", "offsite: SUCCESS, 4, default",
		"rotate: SUCCESS, 1, default", "tell: SUCCESS, 1, default", "alarm: SUCCESS, 1, default")
}

// Each step of a publication is in a queue of its own, and what follows gets what was before it. A step that failed is retried, and
// only what comes after it runs again.
func TestPublish(t *testing.T) {
	s := newServer(t)
	s.start()
	defer s.stop()
	cms := &calls{fail: map[string]bool{"POST /articles": true}}
	site := httptest.NewServer(cms)
	defer site.Close()
	s.apply("publish.yaml", "https://agency.example.com", site.URL, "https://cms.example.com", site.URL, "https://moderation.example.com", site.URL)
	s.awaitSteps("publish", "FAILED", "fetch: SUCCESS, 1, fetch", "parse: SUCCESS, 1, parse", "upload: FAILED, 2, upload",
		"moderate: SKIPPED, 0, moderate", "withdraw: SKIPPED, 0, upload")
	cms.took()

	cms.set("POST /articles", false)
	s.dts(nil, "retry", s.step("publish", "upload"))
	s.awaitSteps("publish", "SUCCESS", "fetch: SUCCESS, 1, fetch", "parse: SUCCESS, 1, parse", "upload: SUCCESS, 3, upload",
		"moderate: SUCCESS, 1, moderate", "withdraw: SKIPPED, 0, upload")
	want := []string{`POST /articles {"title": "A quiet day"}`, "PUT /articles/42"}
	if got := cms.took(); !slices.Equal(got, want) {
		t.Errorf("asked was %q, want %q", got, want)
	}

	// What moderation refuses is withdrawn, and the run has failed all the same.
	cms.set("PUT /articles/42", true)
	s.dts(nil, "run", "publish")
	s.awaitSteps("publish", "FAILED", "fetch: SUCCESS, 1, fetch", "parse: SUCCESS, 1, parse", "upload: SUCCESS, 1, upload",
		"moderate: FAILED, 2, moderate", "withdraw: SUCCESS, 1, upload")
	if got := cms.took(); len(got) != 5 || got[4] != "DELETE /articles/42" {
		t.Errorf("asked was %q", got)
	}
}

// step returns the id of a step of a workflow's newest run.
func (s *realServer) step(workflow, name string) string {
	s.t.Helper()
	run, _, _ := s.steps(workflow)
	var steps struct {
		Tasks []struct {
			ID   string `json:"task_id"`
			Name string
		}
	}
	s.dts(&steps, "ls", "--workflow", run, "--json")
	for _, k := range steps.Tasks {
		if k.Name == name {
			return k.ID
		}
	}
	s.t.Fatalf("the run has no step %s", name)
	return ""
}
