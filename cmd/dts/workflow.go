package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"dts"
	"dts/web/api"
)

// runWords says how far the run of a workflow is, which is PENDING while its steps run.
func runWords(t *dts.Task) string {
	switch {
	case t.Status != dts.Pending || !t.RunStarted():
		return ""
	case t.Unresolved == 0:
		return "its steps have ended"
	}
	done, all := t.StepsDone()
	return fmt.Sprintf("runs, %d of %s done", done, count(all, "step"))
}

// stepWords names the step that a task is.
func stepWords(t *dts.Task) string {
	if t.WorkflowID == "" {
		return ""
	}
	return clean(t.Step) + " of the run " + t.WorkflowID
}

// stepTable prints the steps of a run.
func (a *app) stepTable(run *dts.RunState) {
	now := a.now()
	var rows [][]string
	var wrong []fact
	for i := range run.Steps {
		s := &run.Steps[i]
		var after []string
		for _, d := range s.DependsOn {
			after = append(after, clean(d.Step)+typeMark(d.Type))
		}
		took, status := "–", a.status(string(s.Status))
		switch {
		case !s.StartedAt.IsZero() && !s.CompletedAt.IsZero():
			took = span(s.CompletedAt.Sub(s.StartedAt))
		case !s.StartedAt.IsZero():
			took = span(max(now.Sub(s.StartedAt), 0).Round(time.Second))
		}
		if s.Attempts > 1 { // the time between them counts, too
			took += fmt.Sprintf(" in %d attempts", s.Attempts)
		}
		if s.TaskID == "" {
			status = a.dim("not started")
			if run.Run.RunStarted() {
				status = "deleted"
			}
		}
		rows = append(rows, []string{clean(s.Name), status, took, dash(s.TaskID), dash(strings.Join(after, ", "))})
		switch {
		case s.LastError == "" || s.SkipReason == dts.ReasonDependency: // in the latter case another step is to blame
		case s.Status == dts.Running:
			wrong = append(wrong, fact{clean(s.Name), clean("the attempt before: " + s.LastError)})
		default:
			wrong = append(wrong, fact{clean(s.Name), clean(s.LastError)})
		}
	}
	a.printf("\n")
	a.table([]string{"STEP", "STATUS", "TOOK", "TASK", "AFTER"}, rows, 4)
	a.facts(wrong)
}

// typeMark says what a step asks of another one that need not succeed.
func typeMark(t dts.DependencyType) string {
	switch t {
	case dts.MustFail:
		return " (fails)"
	case dts.MustFinish:
		return " (ends)"
	}
	return ""
}

func dash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

// runLogs prints what the steps of a run have printed, one after the other, each under its name.
func (a *app) runLogs(ctx context.Context, l *link, id string, asJSON bool) error {
	run, err := l.Workflow(ctx, id)
	if err != nil {
		return err
	}
	type stepOutput struct {
		Step   string            `json:"step"`
		TaskID string            `json:"task_id"`
		Output *api.OutputAnswer `json:"output,omitempty"`
	}
	list := []stepOutput{}
	printed := 0
	for i := range run.Steps {
		s := &run.Steps[i]
		if s.TaskID == "" || s.Attempts == 0 && s.Status != dts.Running {
			continue // it has not run
		}
		if !asJSON {
			if printed++; printed > 1 {
				a.printf("\n")
			}
			a.printf("%s\n", a.dim(fmt.Sprintf("==> %s, %s <==", clean(s.Name), s.Status)))
			if err := l.WriteOutput(ctx, a.out, s.TaskID, 0); err != nil {
				return err
			}
			continue
		}
		out, err := l.Output(ctx, s.TaskID, 0)
		if err != nil {
			return err
		}
		list = append(list, stepOutput{s.Name, s.TaskID, out})
	}
	if asJSON {
		return a.printJSON(struct {
			Steps []stepOutput `json:"steps"`
		}{list})
	}
	if printed == 0 {
		a.notef("no step of it has run yet")
	}
	return nil
}

// runMeant finds the run of a workflow that a name or id means: of a recurring task the newest.
func (l *link) runMeant(ctx context.Context, ref string) (*dts.Task, error) {
	x, err := l.resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	t := x.task
	if t == nil {
		if x.recurring.TargetType != dts.WorkflowRun {
			return nil, failf("%s runs no workflow", x.what())
		}
		if t, err = l.newestRun(ctx, x.recurring.ID); err != nil {
			return nil, err
		}
		if t == nil {
			return nil, failf("%s has not run yet", x.what())
		}
	}
	if !t.IsRun() {
		return nil, failf("%s is not the run of a workflow", x.what())
	}
	return t, nil
}
