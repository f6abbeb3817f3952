package ui

import (
	"net/url"
	"strings"
	"testing"

	"dts"
)

func newForm(s *site, extra url.Values) url.Values {
	form := url.Values{"key": {dts.NewID(testNow)}, "when": {"cron"}, "cron": {"0 3 * * *"}}
	for k, v := range extra {
		form[k] = v
	}
	return form
}

// TestNewPing: the form makes a task that expects reports. What is hidden then, and was entered before, does not matter.
func TestNewPing(t *testing.T) {
	s := newSite(t)
	d := s.get("/ui/new", 200)
	for _, id := range []string{"grace", "max_runtime", "steps"} {
		d.id(id)
	}
	form := newForm(s, url.Values{"kind": {"PING"}, "name": {"backup of the mail server"}, "grace": {"30m"}, "max_runtime": {"4h"},
		"attempts": {"5"}, "timeout": {"soon"}, "jitter": {"10m"}, "missed": {"RUN_ONE_NOW"}, "shell": {"x"}})
	w, _ := s.post("/ui/new", form)
	if w.Code != 303 || len(s.recurring) != 1 {
		t.Fatalf("%d, %d recurring tasks\n%s", w.Code, len(s.recurring), w.Body)
	}
	rt := s.recurring[0]
	target, err := rt.Ping()
	if err != nil || rt.TargetType != dts.Ping || target.GraceSeconds != 1800 || target.MaxRuntimeSeconds != 4*3600 {
		t.Errorf("it is %+v: %s %s", rt.Spec, rt.TargetConfig, err)
	}
	if rt.CatchUpMode != dts.SkipMissed || rt.JitterSeconds != 0 {
		t.Errorf("what is not asked about a PING was taken from the form: %+v", rt)
	}

	w, d = s.post("/ui/new", newForm(s, url.Values{"kind": {"PING"}, "grace": {"90d"}}))
	if w.Code != 422 {
		t.Errorf("status %d", w.Code)
	}
	d.id("grace-error").want("The time")
	_, d = s.post("/ui/new", newForm(s, url.Values{"kind": {"PING"}, "grace": {"a while"}}))
	if d.id("grace").attr("value") != "a while" || d.id("grace").attr("aria-invalid") != "true" {
		t.Error("what was wrong is forgotten")
	}
	w, d = s.post("/ui/new", newForm(s, url.Values{"kind": {"PING"}, "when": {"once"}}))
	if w.Code != 422 || len(s.recurring) != 1 || len(d.all("input", "value", "PING")) != 1 || !d.all("input", "value", "PING")[0].hasAttr("checked") {
		t.Errorf("status %d, %d tasks", w.Code, len(s.recurring))
	}
	d.id("kind-error").want("choose one, not “Once”")
}

// TestNewWorkflow: the form takes the steps of a workflow in JSON, and says what is wrong with which of them.
func TestNewWorkflow(t *testing.T) {
	s := newSite(t)
	example := form{}.StepsExample()
	w, _ := s.post("/ui/new", newForm(s, url.Values{"kind": {"WORKFLOW"}, "name": {"nightly"}, "steps": {example}, "attempts": {"5"}, "timeout": {"60"}}))
	if w.Code != 303 || len(s.recurring) != 1 {
		t.Fatalf("%d, %d recurring tasks\n%s", w.Code, len(s.recurring), w.Body)
	}
	if flow, err := s.recurring[0].Workflow(); err != nil || len(flow.Steps) != 2 || flow.Steps[1].DependsOn[0].Step != "dump" {
		t.Errorf("it is %s, %v", s.recurring[0].TargetConfig, err)
	}
	tasks := len(s.tasks)
	w, _ = s.post("/ui/new", newForm(s, url.Values{"kind": {"WORKFLOW"}, "when": {"once"}, "steps": {`{"steps": ` + example + `}`}}))
	if w.Code != 303 || len(s.tasks) != tasks+1 || !s.tasks[tasks].IsRun() {
		t.Errorf("once: %d, %d tasks\n%s", w.Code, len(s.tasks)-tasks, w.Body)
	}
	for steps, want := range map[string]string{
		"":                        "Enter the steps",
		"[\n{\"name\": \"a\",\n]": "Line 3 is not JSON",
		`"<script>"`:              "is not a valid WORKFLOW",
		"[]":                      "In steps: is missing; a workflow has 1 to 1000 steps",
		strings.Replace(example, "[\"dump\"]", "[\"dumb\"]", 1): `In steps[1].depends_on[0]: "dumb" is not a step of this workflow`,
		strings.Replace(example, "depends_on", "depend_on", 1):  "depend_on",
	} {
		w, d := s.post("/ui/new", newForm(s, url.Values{"kind": {"WORKFLOW"}, "steps": {steps}}))
		if w.Code != 422 {
			t.Errorf("%s: status %d", steps, w.Code)
			continue
		}
		d.id("steps-error").want(want)
	}
	if len(s.recurring) != 1 {
		t.Errorf("%d recurring tasks", len(s.recurring))
	}
}
