package ui

import (
	"testing"
	"time"

	"dts"
)

// TestRunOfAWorkflow: the page of a run shows its steps, and that of a step its run.
func TestRunOfAWorkflow(t *testing.T) {
	s := newSite(t)
	step := func(name string, after ...dts.StepDependsOn) dts.Step {
		return dts.Step{Spec: dts.Spec{Name: name, TargetType: dts.Command, TargetConfig: []byte(`{"argv":["true"]}`)}, DependsOn: after}
	}
	w := dts.Workflow{Name: "nightly", Steps: []dts.Step{step("dump"), step("up<load"), step("alarm", dts.StepDependsOn{Step: "dump", Type: dts.MustFail}), step("last")}}
	w.Steps[1].Name = "upload"
	run := s.add(w.Spec(), nil)
	page := s.get("/ui/tasks/"+run.ID, 200)
	page.want("Workflow of 4 steps", "not started")
	if !page.has("do-run-now") {
		t.Error("a run that has not started cannot be run now")
	}

	run.Attempts, run.StartedAt, run.Unresolved = 1, run.DueAt, 3
	steps, err := run.StepTasks(run.DueAt)
	if err != nil {
		t.Fatal(err)
	}
	steps[0].Status, steps[0].StartedAt, steps[0].CompletedAt, steps[0].LastError = dts.Failed, run.DueAt, run.DueAt.Add(90*time.Second), "exit code 3"
	s.fake.tasks = append(s.fake.tasks, steps[:3]...)
	page = s.get("/ui/tasks/"+run.ID, 200)
	table := page.id("steps")
	table.row("dump").want("failed", "1 min 30 s", "exit code 3")
	table.row("alarm").want("pending", "dump fails")
	table.row("last").want("deleted")
	if a := page.id("s-" + steps[1].ID); a.attr("href") != "/ui/tasks/"+steps[1].ID || a.text() != "upload" {
		t.Errorf("the step's link is %s", a.attr("href"))
	}
	for _, id := range []string{"do-run-now", "do-pause", "up", "attempts-title"} {
		if page.has(id) {
			t.Errorf("the page of a run has #%s", id)
		}
	}
	page.id("do-cancel")
	page.want("those that run are stopped")
	s.get("/ui/?status=pending", 200).want("runs, 3 steps to go")
	s.get("/ui/tasks/"+steps[1].ID, 200).want("The step upload of a workflow's run")
}
