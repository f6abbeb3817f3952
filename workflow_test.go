package dts_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"dts"
)

func parseSteps(t *testing.T, text string) []dts.Step {
	t.Helper()
	var steps []dts.Step
	if err := json.Unmarshal([]byte(text), &steps); err != nil {
		t.Fatal(err)
	}
	return steps
}

// wf makes steps of which each runs true: "a", "b<a", "c<a,b" is c after a and b.
func wf(defs ...string) []dts.Step {
	var steps []dts.Step
	for _, d := range defs {
		name, parents, _ := strings.Cut(d, "<")
		s := dts.Step{Spec: dts.Spec{Name: name, TargetType: dts.Command, TargetConfig: json.RawMessage(`{"argv":["true"]}`)}}
		for p := range strings.SplitSeq(parents, ",") {
			if p != "" {
				s.DependsOn = append(s.DependsOn, dts.StepDependsOn{Step: p})
			}
		}
		steps = append(steps, s)
	}
	return steps
}

func TestWorkflowNormalize(t *testing.T) {
	with := func(steps []dts.Step, change func(s []dts.Step)) []dts.Step { change(steps); return steps }
	many := make([]string, dts.MaxSteps+1)
	for i := range many {
		many[i] = fmt.Sprintf("s%d", i)
	}
	for _, c := range []struct {
		what  string
		steps []dts.Step
		want  string // in the error; "": none
	}{
		{"one step", wf("a"), ""},
		{"a diamond", wf("a", "b<a", "c<a", "d<b,c"), ""},
		{"in any order", wf("d<b,c", "c<a", "b<a", "a"), ""},
		{"as many as may be", wf(many[1:]...), ""},
		{"none", nil, "steps: is missing; a workflow has 1 to 1000 steps"},
		{"too many", wf(many...), "steps: has 1001 entries; at most 1000 are allowed"},
		{"no name", wf(""), "steps[0].name: is missing"},
		{"a bad name", wf("a b"), `steps[0].name: "a b" is not a name of a step`},
		{"twice", wf("a", "b", "a"), `steps[2].name: "a" is there twice, as steps[0] too`},
		{"unknown", wf("a", "b<c"), `steps[1].depends_on[0]: "c" is not a step of this workflow`},
		{"twice on one", wf("a", "b<a,a"), `steps[1].depends_on[1]: "a" is there twice`},
		{"itself", wf("a<a"), "steps: go round, so that every step waits for the next: a → a"},
		{"round", wf("x", "a<c", "b<a", "c<b,x"), "a → b → c → a"},
		{"a bad type", with(wf("a", "b<a"), func(s []dts.Step) { s[1].DependsOn[0].Type = "MAY" }), `has the type "MAY"`},
		{"a bad target", with(wf("a"), func(s []dts.Step) { s[0].TargetConfig = json.RawMessage(`{}`) }), "steps[0].target_config: needs argv"},
		{"inputs of a parent", with(wf("a", "b<a"), func(s []dts.Step) { s[1].Inputs = []string{"a"} }), ""},
		{"inputs of its parent", with(wf("a", "b<a", "c<b"), func(s []dts.Step) { s[2].Inputs = []string{"a", "b"} }), ""},
		{"inputs of another", with(wf("a", "b"), func(s []dts.Step) { s[1].Inputs = []string{"a"} }), `steps[1].inputs[0]: the step "a" does not end before this one starts`},
		{"inputs of nobody", with(wf("a", "b<a"), func(s []dts.Step) { s[1].Inputs = []string{"x"} }), `steps[1].inputs[0]: "x" is not a step`},
		{"a hole in a command", parseSteps(t, `[{"name":"a-b","target_type":"COMMAND","target_config":{"argv":["x"]}},
			{"name":"b","target_type":"COMMAND","target_config":{"shell":"upload {{outputs.a-b}} {{.Other}}"},"depends_on":["a-b"],"inputs":["a-b"]}]`), `steps[1].target_config: {{outputs.a-b}} is for requests; a command finds that output in $DTS_OUTPUT_A_B`},
		{"another's hole in a command", parseSteps(t, `[{"name":"a","target_type":"COMMAND","target_config":{"argv":["x"]}},
			{"name":"b","target_type":"COMMAND","target_config":{"argv":["helm","{{outputs.x}}"]},"depends_on":["a"],"inputs":["a"]}]`), ""},
		{"inputs that are one variable", with(wf("a.b", "a-b", "c<a.b,a-b"), func(s []dts.Step) { s[2].Inputs = []string{"a.b", "a-b"} }), "are both DTS_OUTPUT_A_B"},
		{"a workflow in it", with(wf("a"), func(s []dts.Step) { s[0].TargetType = dts.WorkflowRun }), "a step cannot be a workflow itself"},
		{"a step that expects a ping", parseSteps(t, `[{"name":"a","target_type":"PING","target_config":{}}]`), `steps[0].target_type: PING is for recurring tasks`},
		{"holes without inputs", parseSteps(t, `[{"name":"a","target_type":"HTTP_CALLBACK","target_config":{"url":"http://h/","body":"{{outputs.x}}"}}]`), ""},
		{"a hole that is no input", parseSteps(t, `[{"name":"a","target_type":"COMMAND","target_config":{"argv":["true"]}},
			{"name":"b","target_type":"HTTP_CALLBACK","target_config":{"url":"http://h/","body":"{{ outputs.x }}"},"depends_on":["a"],"inputs":["a"]}]`), `steps[1].target_config.body: {{ outputs.x }} names an output that is not among the inputs`},
		{"a hole of another form", parseSteps(t, `[{"name":"a","target_type":"COMMAND","target_config":{"argv":["true"]}},
			{"name":"b","target_type":"HTTP_CALLBACK","target_config":{"url":"http://h/?{{outputs.a|base64}}"},"depends_on":["a"],"inputs":["a"]}]`), `only json is known`},
	} {
		w := dts.Workflow{Name: "w", Steps: c.steps}
		switch err := w.Normalize(); {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.what, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %s", c.what, err, c.want)
		}
	}
}

func TestWorkflowTakesNoFieldsOfSteps(t *testing.T) {
	w := dts.Workflow{Name: "w", Steps: wf("a")}
	s := w.Spec()
	s.ConcurrencyKey, s.Delivery, s.Retry = "k", dts.AtMostOnce, dts.Retry{MaxAttempts: 1}
	err := s.Normalize()
	for _, field := range []string{"concurrency_key", "delivery"} {
		if err == nil || !strings.Contains(err.Error(), field+": is for the steps of a workflow") {
			t.Errorf("%v says nothing of %s", err, field)
		}
	}
	again := w.Spec()
	for range 2 { // what is normalized can be normalized again
		if err := again.Normalize(); err != nil {
			t.Fatal(err)
		}
	}
	if again.Retry.MaxAttempts != 1 {
		t.Errorf("a run would make %d attempts", again.Retry.MaxAttempts)
	}
}

func TestStepDependsOnJSON(t *testing.T) {
	steps := parseSteps(t, `[{"name":"a","target_type":"COMMAND","target_config":{},"depends_on":["x",{"step":"y","type":"MUST_FAIL"},{"step":"z"}]}]`)
	want := []dts.StepDependsOn{{Step: "x"}, {Step: "y", Type: dts.MustFail}, {Step: "z"}}
	if !slices.Equal(steps[0].DependsOn, want) {
		t.Errorf("read %v, want %v", steps[0].DependsOn, want)
	}
	b, err := json.Marshal(steps[0].DependsOn)
	if err != nil || string(b) != `["x",{"step":"y","type":"MUST_FAIL"},"z"]` {
		t.Errorf("wrote %s, %v", b, err)
	}
	var d dts.StepDependsOn
	if err := json.Unmarshal([]byte(`{"step":"a","kind":"x"}`), &d); err == nil || !strings.Contains(err.Error(), "kind") {
		t.Errorf("an unknown field: %v", err)
	}
}

func TestStepTasks(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	w := dts.Workflow{Name: "w", Queue: "night", Priority: dts.High, Steps: wf("a", "b<a")}
	w.Steps[1].Queue = "own"
	run := &dts.Task{Spec: w.Spec(), CreatedBy: "ann"}
	if err := run.Normalize(now); err != nil {
		t.Fatal(err)
	}
	first, err := run.StepTasks(now)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := run.StepTasks(now.Add(time.Hour))
	for i, s := range first {
		if s.ID != again[i].ID || !dts.IsID(s.ID) || s.ID <= run.ID {
			t.Errorf("step %s has the id %s, then %s; its run %s", s.Step, s.ID, again[i].ID, run.ID)
		}
		if s.WorkflowID != run.ID || s.Shard != run.Shard || s.CreatedBy != "ann" || s.Priority != dts.High {
			t.Errorf("step %+v", s)
		}
	}
	a, b := first[0], first[1]
	if a.Queue != "night" || b.Queue != "own" || a.Unresolved != 0 || b.Unresolved != 1 || b.DependsOn[0].TaskID != a.ID || b.DependsOn[0].Type != dts.MustSucceed {
		t.Errorf("steps %+v, %+v", a, b)
	}
}

func TestFillInputs(t *testing.T) {
	inputs := map[string]string{"a": "x \"y\"\n", "b-c": "1"}
	for _, c := range [][2]string{
		{"plain", "plain"}, {"{{outputs.b-c}}", "1"}, {"{{ outputs.b-c }}/{{outputs.a}}", "1/x \"y\"\n"},
		{`{"v": {{outputs.a | json}}}`, `{"v": "x \"y\"\n"}`}, {"{{outputs.a|json}}", `"x \"y\"\n"`},
		{"{{outputs.z}} {{other}} {{", "{{outputs.z}} {{other}} {{"},
	} {
		if got := dts.FillInputs(c[0], inputs, nil); got != c[1] {
			t.Errorf("%s becomes %s, want %s", c[0], got, c[1])
		}
	}
	if v := dts.InputVariable("größe-2.x"); v != "DTS_OUTPUT_GR__E_2_X" {
		t.Error(v)
	}
}
