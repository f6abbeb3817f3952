package main

import (
	"testing"
	"time"

	"dts"
)

func TestShownWorkflow(t *testing.T) {
	golden(t, "workflow", func(a *app) {
		step := func(name string, after ...dts.StepDependsOn) dts.Step {
			return dts.Step{Spec: dts.Spec{Name: name, TargetType: dts.Command, TargetConfig: []byte(`{"argv":["true"]}`)}, DependsOn: after}
		}
		w := dts.Workflow{Name: "nightly", Steps: []dts.Step{step("dump"), step("load", dts.StepDependsOn{Step: "dump"}),
			step("report", dts.StepDependsOn{Step: "load", Type: dts.MustFinish}, dts.StepDependsOn{Step: "dump"}), step("alarm", dts.StepDependsOn{Step: "load", Type: dts.MustFail}), step("gone")}}
		run := &dts.Task{ID: "019ca8f0-0000-7000-8000-0000000000c0", Spec: w.Spec(), CreatedBy: "alice (socket)"}
		if err := run.Normalize(ago(10 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		show := func(steps ...*dts.Task) {
			state, err := run.RunState(steps)
			if err != nil {
				t.Fatal(err)
			}
			a.printTask(run)
			a.stepTable(state)
			a.printf("\n")
		}
		show()
		run.Attempts, run.Unresolved, run.StartedAt, run.LatenessUS = 1, 3, run.DueAt, ptr(int64(900))
		steps, err := run.StepTasks(run.DueAt)
		if err != nil {
			t.Fatal(err)
		}
		steps[0].Status, steps[0].StartedAt, steps[0].CompletedAt = dts.Success, ago(10*time.Minute), ago(8*time.Minute)
		steps[1].Status, steps[1].StartedAt = dts.Running, ago(8*time.Minute)
		show(steps[:4]...)
		a.taskTable([]*dts.Task{run, steps[1]})
		steps[1].Status, steps[1].CompletedAt, steps[1].LastError = dts.Failed, ago(time.Minute), "exit code 3"
		run.Unresolved, run.Status, run.CompletedAt, run.LastError = 0, dts.Failed, ago(time.Minute), "the step load FAILED: exit code 3"
		a.printf("\n")
		show(steps[:4]...)
		a.printf("\n")
		run.Unresolved, run.Status, run.CompletedAt, run.LastError, run.NextAttemptAt = 1, dts.Pending, time.Time{}, "", ago(time.Minute)
		steps[1].Status, steps[1].Attempts, steps[1].CompletedAt = dts.Running, 2, time.Time{}
		show(steps[:4]...)
		steps[3].Inputs = []string{"load"}
		a.printTask(steps[3])
	})
}
