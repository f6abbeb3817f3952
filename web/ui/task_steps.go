package ui

import (
	"context"
	"strconv"
	"time"

	"dts"
	"dts/web/auth"
)

// stepRow is a step on the page of a workflow's run.
type stepRow struct {
	dts.StepState
	now     time.Time
	deleted bool
}

// Deleted reports whether the run has started and the step is not there.
func (s stepRow) Deleted() bool { return s.deleted }

// Took is how long the step has run, retries included; 0 when it has not started.
func (s stepRow) Took() time.Duration {
	switch {
	case s.StartedAt.IsZero():
		return 0
	case s.CompletedAt.IsZero():
		return max(s.now.Sub(s.StartedAt), 0)
	}
	return s.CompletedAt.Sub(s.StartedAt)
}

// Asks says what a step asks of another one that need not succeed.
func (s stepRow) Asks(d dts.StepDependsOn) string {
	switch d.Type {
	case dts.MustFail:
		return "fails"
	case dts.MustFinish:
		return "ends"
	}
	return ""
}

// stepsOf reads the steps of a workflow's run; none of other tasks.
func (h *handler) stepsOf(ctx context.Context, p auth.Principal, t *dts.Task, now time.Time) ([]stepRow, error) {
	if !t.IsRun() {
		return nil, nil
	}
	var tasks []*dts.Task
	if t.RunStarted() {
		var err error
		if tasks, err = h.Store.Steps(ctx, p.TenantID, t.ID); err != nil {
			return nil, err
		}
	}
	run, err := t.RunState(tasks)
	if err != nil {
		return nil, nil // why it cannot be read, the task's last error says
	}
	rows := make([]stepRow, len(run.Steps))
	for i, s := range run.Steps {
		rows[i] = stepRow{s, now, t.RunStarted() && s.TaskID == ""}
	}
	return rows, nil
}

// workflowText says in one line what a run does.
func workflowText(s dts.Spec) string {
	t, err := s.Workflow()
	switch {
	case err != nil:
		return string(s.TargetType)
	case len(t.Steps) == 1:
		return "Workflow of 1 step"
	}
	return "Workflow of " + strconv.Itoa(len(t.Steps)) + " steps"
}
