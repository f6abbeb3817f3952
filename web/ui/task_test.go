package ui

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"dts"
)

func TestTask(t *testing.T) {
	s := newSite(t)
	one := 1
	task := s.add(callback(dts.HTTPTarget{URL: "https://example.com/hook", Method: "PUT", Body: `{"a":1}`,
		Headers: map[string]string{"Authorization": "Bearer s3cret", "X-Api-Key": "s3cret", "Cookie": "s3cret", "Accept": "text/plain"}}),
		ran(dts.Failed, 4*time.Minute, 61*time.Second, 250))
	task.LastError = "the answer was 503"
	task.Attempts = 2
	s.attempts[task.ID] = []*dts.Attempt{
		{TaskID: task.ID, Number: 1, State: dts.AttemptTimedOut, StartedAt: testNow.Add(-4 * time.Minute), DurationUS: 60e6, LatenessUS: 250, Error: "no answer within 60 s"},
		{TaskID: task.ID, Number: 2, State: dts.AttemptFailed, StartedAt: testNow.Add(-3 * time.Minute), DurationUS: 1_200, LatenessUS: 90, HTTPStatus: 503, OutputBytes: 200_000},
		{TaskID: task.ID, Number: 3, State: dts.AttemptFailed, StartedAt: testNow.Add(-2 * time.Minute), DurationUS: 1e6, ExitCode: &one, CPUUS: 40_000, MaxRSSBytes: 5 << 20},
	}
	s.outputs[task.ID] = &dts.Output{Head: []byte("begin "), Tail: []byte(" end"), Total: 200_000}

	d := s.get("/ui/tasks/"+task.ID, 200)
	d.want("PUT https://example.com/hook", "Last error: the answer was 503", "2 of 3", "0.25 ms late", "took 1 min 1 s",
		"Authorization "+dts.Masked, "X-Api-Key "+dts.Masked, "Cookie "+dts.Masked, "Accept text/plain", `{"a":1}`, "3 attempts, from 1 s, doubling")
	if strings.Contains(d.text(), "s3cret") {
		t.Error("a secret header is shown")
	}
	d.row("timed out").want("1", "1 min", "0.25 ms late", "no answer within 60 s")
	d.row("HTTP 503").want("2", "1.2 ms")
	d.row("exit 1").want("40 ms", "5 MiB")
	d.id("output").want("begin", "195.3 KiB not kept", "end", "of attempt 3")
	s.get("/ui/tasks/"+task.ID+"?attempt=2", 200).id("output").want("Answer", "of attempt 2")
	s.get("/ui/tasks/"+task.ID+"?attempt=9", 200).id("output").want("of attempt 3")
}

func TestTaskWithoutOutput(t *testing.T) {
	s := newSite(t)
	task := s.add(command("true"), ran(dts.Success, time.Minute, time.Second, 10))
	a := &dts.Attempt{TaskID: task.ID, Number: 1, State: dts.AttemptSuccess, StartedAt: testNow}
	s.attempts[task.ID] = []*dts.Attempt{a}
	s.get("/ui/tasks/"+task.ID, 200).id("output").want("It printed nothing")
	a.OutputBytes = 10
	s.get("/ui/tasks/"+task.ID, 200).id("output").want("no longer kept")
	pending := s.add(command("true"), func(t *dts.Task) { t.RunAt = testNow.Add(time.Minute) })
	s.get("/ui/tasks/"+pending.ID, 200).want("None yet: it starts in 1 min")
}

func TestRunningTask(t *testing.T) {
	s := newSite(t)
	task := s.add(command("make"), ran(dts.Running, 5*time.Second, 0, 10))
	s.attempts[task.ID] = []*dts.Attempt{{TaskID: task.ID, Number: 1, State: dts.AttemptRunning, StartedAt: testNow.Add(-5 * time.Second)}}
	live := newLiveOutput()
	live.write("compiling <stdio.h>\n", false)
	s.tails[task.ID] = live

	d := s.get("/ui/tasks/"+task.ID, 200)
	pre := d.id("output").all("pre", "", "")[0]
	pre.want("compiling <stdio.h>")
	if to := pre.attr("data-follow"); to != "/tasks/"+task.ID+"/output?follow=1&attempt=1" {
		t.Errorf("follows %s", to)
	}
	if a, b := d.id("state").attr("data-output"), d.id("output").attr("data-output"); a != b || a != "1-RUNNING" {
		t.Errorf("the two output keys are %q and %q", a, b)
	}
	d.row("running").want("5 s")
}

func TestActionsFitTheState(t *testing.T) {
	for status, want := range map[dts.Status][]string{
		dts.Pending:   {"run-now", "pause", "force-complete", "cancel", "delete"},
		dts.Running:   {"cancel"},
		dts.Success:   {"delete"},
		dts.Failed:    {"retry", "force-complete", "delete"},
		dts.Cancelled: {"retry", "force-complete", "delete"},
		dts.Skipped:   {"retry", "force-complete", "delete"},
	} {
		s := newSite(t)
		task := s.add(command("true"), func(t *dts.Task) { t.Status = status })
		d := s.get("/ui/tasks/"+task.ID, 200)
		var got []string
		for _, f := range d.all("form", "", "") {
			if verb, ok := strings.CutPrefix(f.attr("action"), "/ui/tasks/"+task.ID+"/"); ok {
				got = append(got, verb)
				asks := f.Parent.Data == "details"
				if destroys := verb == "cancel" || verb == "delete" || verb == "force-complete"; destroys != asks {
					t.Errorf("%s %s: asks first: %v", status, verb, asks)
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: actions %v, want %v", status, got, want)
		}
	}
}

func TestDoTask(t *testing.T) {
	s := newSite(t)
	task := s.add(command("true"), func(t *dts.Task) { t.RunAt = testNow.Add(time.Hour) })
	path := "/ui/tasks/" + task.ID
	w, _ := s.post(path+"/run-now", nil)
	if w.Code != 303 || w.Header().Get("Location") != path+"?done=run-now" {
		t.Errorf("run now: %d to %s", w.Code, w.Header().Get("Location"))
	}
	s.get(path+"?done=run-now", 200).want("It runs now.")

	// What the state does not allow is told on the task's page.
	w, d := s.post(path+"/retry", nil)
	if w.Code != 409 {
		t.Errorf("retry of a pending task: %d", w.Code)
	}
	d.want("only a FAILED, CANCELLED or SKIPPED task can be retried", "Attempts")

	w, _ = s.post(path+"/delete", nil)
	if w.Code != 303 || w.Header().Get("Location") != "/ui/?done=delete" {
		t.Errorf("delete: %d to %s", w.Code, w.Header().Get("Location"))
	}
	s.get(path, 404)
	if !slices.Equal(s.done, []string{"run-now", "delete"}) {
		t.Errorf("done %v", s.done)
	}
	if w, _ := s.post(path+"/explode", nil); w.Code != 404 {
		t.Errorf("an unknown verb: %d", w.Code)
	}
	if w, _ := s.post(path+"/modify", nil); w.Code != 404 {
		t.Errorf("modify is not a button: %d", w.Code)
	}
}

func TestSkipOneOccurrence(t *testing.T) {
	s := newSite(t)
	rt := s.addRecurring(named("backup", command("true")), dts.Schedule{Cron: "@hourly"}, nil)
	up, _ := s.Upcoming(t.Context(), dts.DefaultTenant, rt.ID, 1)
	w, _ := s.post("/ui/tasks/"+up[0].ID+"/cancel", url.Values{"from": {"recurring"}})
	if w.Code != 303 || w.Header().Get("Location") != "/ui/recurring/"+rt.ID+"?done=skip" {
		t.Errorf("skip: %d to %s", w.Code, w.Header().Get("Location"))
	}
	s.get("/ui/tasks/"+up[0].ID, 200).want("One run of backup")
}

func TestTaskWhy(t *testing.T) {
	s := newSite(t)
	task := s.add(command("true"), func(t *dts.Task) { t.Status, t.SkipReason = dts.Skipped, dts.ReasonBlackout })
	if d := s.get("/ui/tasks/"+task.ID, 200); d.has("why") {
		t.Error("an answer without an answer")
	} else {
		d.want("Skipped: there was a blackout.")
	}
	s.why = map[string]string{task.ID: "It was skipped because of the blackout <Upgrade>."}
	d := s.get("/ui/tasks/"+task.ID, 200)
	d.id("why").want("It was skipped because of the blackout <Upgrade>.")
	if strings.Contains(d.text(), "Skipped: there") {
		t.Error("the reason is told twice")
	}
	waiting := s.add(command("true"), func(t *dts.Task) { t.Unresolved = 1 })
	s.why[waiting.ID] = "It waits for 1 task that it depends on: load (RUNNING)."
	if d := s.get("/ui/tasks/"+waiting.ID, 200); d.has("waits") || d.id("why").attr("class") != "why note warn" {
		t.Error("what it waits for is told twice, or hardly seen")
	}
	expired := s.add(command("true"), func(t *dts.Task) {
		t.Status, t.SkipReason, t.LastError = dts.Skipped, dts.ReasonExpired, "expires_at was 2026-03-01T08:00:00Z"
	})
	s.why[expired.ID] = "It was skipped: it could not start before it expired, at Sun 2026-03-01 08:00:00 UTC."
	if d := s.get("/ui/tasks/"+expired.ID, 200); strings.Contains(d.text(), "Last error") {
		t.Error("the expiry is told twice")
	}
	failed := s.add(command("true"), func(t *dts.Task) { t.Status, t.LastError = dts.Failed, "exit code 2" })
	s.get("/ui/tasks/"+failed.ID, 200).want("Last error: exit code 2")
	s.why[failed.ID] = "It failed: exit code 2."
	if d := s.get("/ui/tasks/"+failed.ID, 200); strings.Contains(d.text(), "Last error") {
		t.Error("the error is told twice")
	}
	for reason, want := range map[dts.Reason]string{dts.ReasonOverlap: "This run waits for the run before it.", dts.ReasonBlackout: "This run waits for the end of a blackout."} {
		waiting := s.add(command("true"), func(t *dts.Task) { t.WaitsFor = reason })
		s.get("/ui/tasks/"+waiting.ID, 200).id("waits").want(want)
	}
	s.get("/ui/?status=pending", 200).want("waits for the run before it", "waits for the end of a blackout")
}

// TestOverdueTask: what should have started says so; its queue may be paused.
func TestOverdueTask(t *testing.T) {
	s := newSite(t)
	late := s.add(command("true"), func(t *dts.Task) { t.RunAt = testNow.Add(-38 * time.Minute) })
	s.why = map[string]string{late.ID: "The queue is paused."}
	d := s.get("/ui/tasks/"+late.ID, 200)
	d.want("None yet: it was due 38 min ago.")
	if !strings.Contains(d.id("why").attr("class"), "warn") {
		t.Error("the reason does not stand out")
	}
	soon := s.add(command("true"), func(t *dts.Task) { t.RunAt = testNow.Add(time.Minute) })
	s.get("/ui/tasks/"+soon.ID, 200).want("None yet: it starts in 1 min.")
}
