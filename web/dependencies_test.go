package web_test

import (
	"fmt"
	"strings"
	"testing"

	"dts"
)

// TestCreateDependent: what a new task depends on reaches the scheduler, and what is wrong with it is named.
func TestCreateDependent(t *testing.T) {
	s := start(t, nil)
	parent := dts.NewID(now)
	status, _, body := s.call(t, "POST", "/tasks", httpTask+`,"depends_on":[{"task_id":"`+parent+`"},{"task_id":"`+dts.NewID(now)+`","type":"MUST_FAIL"}],"depends_mode":"ANY","on_dependency_failure":"FAIL"}`)
	task := decodeAs[dts.Task](t, body)
	kept := s.fake.tasks[len(s.fake.tasks)-1]
	if status != 201 || task.Unresolved != 2 || task.DependsMode != dts.DependsAny || task.OnDependencyFailure != dts.FailOnFailure ||
		len(kept.DependsOn) != 2 || kept.DependsOn[0] != (dts.DependsOn{TaskID: parent, Type: dts.MustSucceed}) || kept.DependsOn[1].Type != dts.MustFail {
		t.Errorf("%d %s, %+v", status, body, kept.DependsOn)
	}
	for fields, want := range map[string]string{
		`"depends_on":[{"task_id":"x"}]`:                                              `"field":"depends_on[0].task_id"`,
		`"depends_on":[{}]`:                                                           `"field":"depends_on[0].task_id","message":"is missing"`,
		`"depends_on":[{"ref":"a"}]`:                                                  `is for POST /tasks/bulk`,
		`"depends_on":[{"task_id":"` + parent + `","ref":"a"}]`:                       `keep one`,
		`"depends_on":[{"task_id":"` + parent + `","type":"MUST"}]`:                   `use MUST_SUCCEED, MUST_FINISH or MUST_FAIL`,
		`"depends_on":[{"task_id":"` + parent + `"},{"task_id":"` + parent + `"}]`:    `is there twice`,
		`"depends_mode":"SOME"`:                                                       `use ALL or ANY`,
		`"on_dependency_failure":"RUN"`:                                               `use SKIP or FAIL`,
		`"ref":"a"`:                                                                   `"field":"ref"`,
		`"depends_on":[` + strings.Repeat(`{"task_id":"x"},`, 10_000) + `{"ref":""}]`: `at most 10000 are allowed`,
	} {
		if status, _, body := s.call(t, "POST", "/tasks", httpTask+","+fields+"}"); status != 422 || !strings.Contains(body, want) {
			t.Errorf("%.80s: %d %.300s, want %s", fields, status, body, want)
		}
	}
}

// TestBulkRefs: tasks of one request depend on each other by their refs, in any order; a circle is refused by name.
func TestBulkRefs(t *testing.T) {
	s := start(t, nil)
	bulk := func(tasks ...string) string {
		list := make([]string, len(tasks))
		for i, x := range tasks {
			list[i] = httpTask + "," + x + "}"
		}
		return `{"tasks":[` + strings.Join(list, ",") + `]}`
	}
	body := bulk(`"depends_on":[{"ref":"b","type":"MUST_FINISH"}]`, `"ref":"b","idempotency_key":"k","depends_on":[{"ref":"c"}]`, `"ref":"c"`)
	var hash string
	for range 2 {
		status, _, answer := s.call(t, "POST", "/tasks/bulk", body)
		n := len(s.fake.tasks)
		if status != 201 || n < 3 {
			t.Fatalf("%d %s", status, answer)
		}
		a, b, c := s.fake.tasks[n-3], s.fake.tasks[n-2], s.fake.tasks[n-1]
		if a.DependsOn[0].TaskID != b.ID || a.DependsOn[0].Type != dts.MustFinish || b.DependsOn[0].TaskID != c.ID || a.Unresolved != 1 {
			t.Errorf("%+v of %s, %+v of %s", a.DependsOn, b.ID, b.DependsOn, c.ID)
		}
		if hash != "" && b.RequestHash != hash {
			t.Error("the same request has another hash: its idempotency key would be refused")
		}
		hash = b.RequestHash
		s.fake.tasks = nil
	}
	long := make([]string, 3000)
	for i := range long {
		long[i] = fmt.Sprintf(`"ref":"r%d","depends_on":[{"ref":"r%d"}]`, i, (i+1)%len(long))
	}
	for _, tt := range []struct {
		body   string
		status int
		want   string
	}{
		{bulk(`"depends_on":[{"ref":"x"}]`), 422, `"field":"tasks[0].depends_on[0].ref"`},
		{bulk(`"ref":"a"`, `"ref":"a"`), 422, `"field":"tasks[1].ref"`},
		{bulk(`"ref":"a","depends_on":[{"ref":"a"}]`), 409, `a → a`},
		{bulk(`"ref":"a","depends_on":[{"ref":"b"}]`, `"ref":"b","depends_on":[{"ref":"c"},{"ref":"d"}]`, `"ref":"c"`, `"ref":"d","depends_on":[{"ref":"b"}]`), 409, `b → d → b`},
		{bulk(long...), 409, `(2961 more) → r2981 →`},
	} {
		if status, _, body := s.call(t, "POST", "/tasks/bulk", tt.body); status != tt.status || !strings.Contains(body, tt.want) {
			t.Errorf("%.200s: %d %s, want %s", tt.body, status, body, tt.want)
		}
	}
}

// TestDependencies: the graph of a task, and what changes it.
func TestDependencies(t *testing.T) {
	s := start(t, nil)
	_, _, body := s.call(t, "POST", "/tasks", httpTask+`,"name":"x"}`)
	id, parent := decodeAs[dts.Task](t, body).ID, dts.NewID(now)
	path := "/tasks/" + id + "/dependencies"
	for _, tt := range []struct {
		method, path, body string
		status, edges      int
	}{
		{"GET", path, "", 200, 0},
		{"POST", path, `{"depends_on":[{"task_id":"` + parent + `"}]}`, 200, 1},
		{"GET", path, "", 200, 1},
		{"POST", path, `{"depends_on":[]}`, 422, 0},
		{"POST", path, `{"depends_on":[{"ref":"a"}]}`, 422, 0},
		{"DELETE", path + "/" + parent, "", 200, 0},
		{"DELETE", path + "/" + parent, "", 404, 0},
		{"DELETE", path + "/x", "", 404, 0},
		{"GET", "/tasks/" + parent + "/dependencies", "", 404, 0},
	} {
		status, _, body := s.call(t, tt.method, tt.path, tt.body)
		if status != tt.status {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, status, body)
		}
		if status != 200 {
			continue
		}
		g := decodeAs[dts.Graph](t, body)
		if len(g.Tasks) != 1 || g.Tasks[0].Name != "x" || len(g.Dependencies) != tt.edges || g.Truncated {
			t.Errorf("%s %s: %s", tt.method, tt.path, body)
		}
	}
	if len(s.fake.edges[id]) != 0 {
		t.Errorf("%+v", s.fake.edges)
	}
}
