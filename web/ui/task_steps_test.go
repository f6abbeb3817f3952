package ui

import (
	"net/url"
	"strconv"
	"strings"
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
	table.row("dump").want("failed", "1 min 30 s", "default", "exit code 3", "Retry from here")
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
	page.want("those that run are stopped", "2 of 4 steps done, dump failed")
	page.id("progress")
	page.id("state").want("under way")
	for _, list := range []string{"", "?status=pending", "?status=running"} {
		row := s.get("/ui/"+list, 200).id("t-" + run.ID).Parent.Parent
		doc{t, row}.want("under way", "1 of 3 steps done, dump failed", "nightly")
	}
	step1 := s.get("/ui/tasks/"+steps[1].ID, 200)
	step1.want("The step upload of nightly , a workflow’s run")
	s.get("/ui/?status=pending", 200).want("nightly › upload")
	if step1.has("down") {
		t.Error("the page of a step shows its run among what needs it")
	}

	// The run goes on from a step that failed, and from there back to the run.
	form := doc{t, page.id("retry-" + steps[0].ID).Parent}
	if form.attr("action") != "/ui/tasks/"+steps[0].ID+"/retry" || page.has("retry-"+steps[1].ID) {
		t.Errorf("the retry goes to %s", form.attr("action"))
	}
	w2, _ := s.post(form.attr("action"), url.Values{"from": {"run"}})
	if to := w2.Header().Get("Location"); w2.Code != 303 || to != "/ui/tasks/"+run.ID+"?done=retry-step" {
		t.Errorf("%d to %s", w2.Code, to)
	}
	s.get("/ui/tasks/"+run.ID+"?done=retry-step", 200).want("It goes on from this step.")

	steps[0].Status = dts.Failed
	doc{t, s.get("/ui/dead", 200).id("t-" + steps[0].ID).Parent}.want("nightly › dump")

	// What was skipped says because of what, and only that.
	steps[0].Status = dts.Failed
	steps[1].Status, steps[1].SkipReason, steps[1].LastError = dts.Skipped, dts.ReasonDependency, "it depends on dump ("+steps[0].ID+"), which ended as FAILED"
	s.fake.tasks[len(s.fake.tasks)-2].DependsOn = nil
	w.Steps[1].DependsOn = []dts.StepDependsOn{{Step: "dump"}}
	run.Spec = w.Spec()
	row := s.get("/ui/tasks/"+run.ID, 200).id("steps").row("upload")
	row.want("skipped", "dump failed")
	if strings.Contains(row.text(), steps[0].ID) {
		t.Errorf("the reason has ids in it: %s", row.text())
	}
	s.get("/ui/tasks/"+steps[1].ID, 200).id("do-retry").want("Run all the same")
	steps[1].Status, steps[1].SkipReason = dts.Pending, ""
	for _, path := range []string{run.ID, steps[1].ID} {
		if d := s.get("/ui/tasks/"+path, 200); strings.Contains(d.text(), "it depends on dump") {
			t.Errorf("a step that runs all the same still tells why it was skipped: %s", d.text())
		}
	}
}

// TestStepsOfARecurringWorkflow: its page shows what its runs are made of.
func TestStepsOfARecurringWorkflow(t *testing.T) {
	s := newSite(t)
	w := dts.Workflow{Name: "publish", Queue: "slow", Steps: []dts.Step{
		{Spec: dts.Spec{Name: "fetch", Queue: "fetch", TargetType: dts.Command, TargetConfig: []byte(`{"argv":["fetch","it"]}`)}},
		{Spec: dts.Spec{Name: "parse", TargetType: dts.Command, TargetConfig: []byte(`{"argv":["parse"]}`)}, DependsOn: []dts.StepDependsOn{{Step: "fetch"}}},
	}}
	rt := s.addRecurring(w.Spec(), dts.Schedule{Cron: "@hourly"}, nil)
	run := s.tasks[0]
	run.Attempts, run.StartedAt, run.ScheduledAt, run.Unresolved = 1, testNow.Add(-time.Minute), testNow.Add(-time.Minute), 2
	steps, err := run.StepTasks(testNow)
	if err != nil {
		t.Fatal(err)
	}
	s.fake.tasks = append(s.fake.tasks, steps...)
	d := s.get("/ui/recurring/"+rt.ID, 200)
	d.id("steps").row("fetch").want("fetch it", "fetch")
	d.id("steps").row("parse").want("slow", "fetch")
	if d.has("progress") {
		t.Error("what is not a run has come nowhere")
	}
	doc{t, d.id("o-" + run.ID).Parent.Parent}.want("under way", "0 of 2 steps done", "1 min")
}

// TestManySteps: of many steps a page shows those that matter, unless it is asked for all.
func TestManySteps(t *testing.T) {
	s := newSite(t)
	var w dts.Workflow
	for i := range 150 {
		w.Steps = append(w.Steps, dts.Step{Spec: dts.Spec{Name: "s" + strconv.Itoa(i), TargetType: dts.Command, TargetConfig: []byte(`{"argv":["true"]}`)}})
	}
	run := s.add(w.Spec(), nil)
	run.Attempts, run.StartedAt, run.Unresolved = 1, run.DueAt, 1
	steps, err := run.StepTasks(run.DueAt)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range steps {
		x.Status = dts.Success
	}
	steps[120].Status, steps[140].Status = dts.Running, dts.Failed
	s.fake.tasks = append(s.fake.tasks, steps...)
	d := s.get("/ui/tasks/"+run.ID, 200)
	rows := d.id("steps").all("tr", "", "")
	if len(rows) != 101 {
		t.Fatalf("%d rows, want 100 and the heads", len(rows))
	}
	rows[1].want("s140", "failed")
	rows[2].want("s120", "running")
	rows[3].want("s0")
	d.want("149 of 150 steps done, s140 failed")
	d = s.get(d.id("steps-all").attr("href"), 200)
	if n := len(d.id("steps").all("tr", "", "")); n != 151 || d.has("steps-all") || !strings.Contains(d.id("live").attr("hx-get"), "steps=all") {
		t.Errorf("%d rows; a refresh asks for %s", n, d.id("live").attr("hx-get"))
	}
}
