package web_test

import (
	"strings"
	"testing"

	"dts"
	"dts/web/api"
)

const twoSteps = `{"name":"w","steps":[{"name":"a","target_type":"COMMAND","target_config":{"argv":["x"]}},
	{"name":"b","target_type":"HTTP_CALLBACK","target_config":{"url":"http://h/?q={{outputs.a}}"},"depends_on":[{"step":"a","type":"MUST_FINISH"}],"inputs":["a"]}]`

// TestWorkflows: a run is created as a task, and answered with its steps, before it starts and after.
func TestWorkflows(t *testing.T) {
	s := start(t, nil)
	status, _, body := s.call(t, "POST", "/workflows", twoSteps+`,"delay":"1h","labels":{"team":"ops"},"idempotency_key":"k"}`)
	made := decodeAs[dts.RunState](t, body)
	if status != 201 || made.Run.TargetType != dts.WorkflowRun || made.Run.Name != "w" || made.Run.Labels["team"] != "ops" || !made.Run.RunAt.After(now) ||
		len(made.Steps) != 2 || made.Steps[1].Name != "b" || made.Steps[1].TaskID != "" || made.Steps[1].DependsOn[0] != (dts.StepDependsOn{Step: "a", Type: dts.MustFinish}) {
		t.Fatalf("%d %s", status, body)
	}
	if status, _, again := s.call(t, "POST", "/workflows", twoSteps+`,"delay":"1h","labels":{"team":"ops"},"idempotency_key":"k"}`); status != 200 || decodeAs[dts.RunState](t, again).Run.ID != made.Run.ID {
		t.Errorf("again: %d %s", status, again)
	}
	run := s.fake.tasks[len(s.fake.tasks)-1]
	if status, _, body := s.call(t, "POST", "/workflows", twoSteps+`,"delay":"1h","dedupe_key":"d","dedupe_policy":"REPLACE"}`); status != 201 ||
		decodeAs[dts.RunState](t, body).Run.DedupeKey != "d" || s.fake.tasks[len(s.fake.tasks)-1].DedupePolicy != dts.DedupeReplace {
		t.Errorf("with a dedupe key: %d %s", status, body)
	}
	run.Attempts = 1
	steps, err := run.StepTasks(now)
	if err != nil {
		t.Fatal(err)
	}
	s.fake.tasks = append(s.fake.tasks, steps[0]) // the other one was deleted
	status, _, body = s.call(t, "GET", "/workflows/"+run.ID, "")
	if got := decodeAs[dts.RunState](t, body); status != 200 || got.Steps[0].TaskID != steps[0].ID || got.Steps[0].Status != dts.Pending || got.Steps[1].TaskID != "" {
		t.Errorf("%d %s", status, body)
	}
	if status, _, body := s.call(t, "GET", "/workflows/"+steps[0].ID, ""); status != 404 || !strings.Contains(body, "that is the step a of the run "+run.ID) {
		t.Errorf("of a step: %d %s", status, body)
	}
	s.call(t, "GET", "/tasks?workflow_id="+run.ID, "")
	if s.fake.filter.WorkflowID != run.ID {
		t.Errorf("the filter is %+v", s.fake.filter)
	}
	status, _, body = s.call(t, "POST", "/recurring-tasks", `{"target_type":"WORKFLOW","target_config":{"steps":[{"name":"a","target_type":"COMMAND","target_config":{"argv":["x"]}}]},"cron":"@daily"}`)
	if r := decodeAs[dts.RecurringTask](t, body); status != 201 || r.TargetType != dts.WorkflowRun {
		t.Errorf("recurring: %d %s", status, body)
	}
}

// TestWorkflowsThatAreWrong: what is wrong is named by its place in the request.
func TestWorkflowsThatAreWrong(t *testing.T) {
	s := start(t, nil)
	step := func(more string) string {
		return `{"steps":[{"name":"a","target_type":"COMMAND","target_config":{"argv":["x"]}` + more + `}]}`
	}
	for body, want := range map[string]string{
		`{}`:                               `"field":"steps","message":"is missing`,
		`{"steps":[{}]}`:                   `"field":"steps[0].name"`,
		step(`,"depends_on":["b"]`):        `"field":"steps[0].depends_on[0]"`,
		step(`,"depends_on":["a"]`):        `a → a`,
		step(`,"depends_on":[{"x":1}]`):    `"field":"steps[0].depends_on[0]"`,
		step(`,"run_at":"x"`):              `"field":"steps[0].run_at"`,
		step(`,"inputs":["a"]`):            `"field":"steps[0].inputs[0]"`,
		step(`,"timeout_seconds":-1`):      `"field":"steps[0].timeout_seconds"`,
		`{"steps":[],"queue":"A B"}`:       `"field":"queue"`,
		`{"steps":[],"retry":{}}`:          `"field":"retry"`,
		`{"steps":[],"concurrency_key":1}`: `"field":"concurrency_key"`,
	} {
		if status, _, got := s.call(t, "POST", "/workflows", body); status != 422 || !strings.Contains(got, want) {
			t.Errorf("%s: %d %s, want %s", body, status, got, want)
		}
	}
	if status, _, got := s.call(t, "POST", "/tasks", `{"target_type":"WORKFLOW","target_config":{"steps":[{"name":"a","target_type":"COMMAND","target_config":{"argv":["x"]},"depend_on":[]}]}}`); status != 422 ||
		!strings.Contains(got, "target_config.steps[0].depend_on") || !strings.Contains(got, "did you mean depends_on?") {
		t.Errorf("%d %s", status, got)
	}
	if status, _, got := s.call(t, "POST", "/tasks", httpTask+`,"inputs":["a"]}`); status != 422 || !strings.Contains(got, `"field":"inputs"`) {
		t.Errorf("%d %s", status, got)
	}
}

func TestClientWorkflows(t *testing.T) {
	s := start(t, nil)
	c := s.client(t)
	made, err := c.CreateWorkflow(t.Context(), api.WorkflowRequest{Workflow: dts.Workflow{Name: "w", Steps: []dts.Step{{
		Spec: dts.Spec{Name: "a", TargetType: dts.Command, TargetConfig: []byte(`{"argv":["x"]}`)}}}}})
	if err != nil || made.Existed || len(made.Item.Steps) != 1 {
		t.Fatalf("%+v, %v", made, err)
	}
	got, err := c.Workflow(t.Context(), made.Item.Run.ID)
	if err != nil || got.Run.ID != made.Item.Run.ID {
		t.Errorf("%+v, %v", got, err)
	}
}
