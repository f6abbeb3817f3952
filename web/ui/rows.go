package ui

import (
	"context"
	"strconv"
	"time"

	"dts"
	"dts/web/auth"
)

// taskRow is a task in a list.
type taskRow struct {
	*dts.Task
	now      time.Time
	progress *dts.RunProgress // of a run that is under way; nil: not asked for, so that what failed is not known
	Run      *dts.Task        // of which the task is a step; nil: of none, or it is not known
}

// Going reports whether the task is the run of a workflow that has started and not ended. Its state is PENDING then.
func (t taskRow) Going() bool { return t.Status == dts.Pending && t.RunStarted() }

// Overdue reports whether the task should have started by now, and has not.
func (t taskRow) Overdue() bool {
	return t.Status == dts.Pending && !t.Going() && t.now.Sub(t.RunAt) > time.Second
}

// At is the time that matters most for a task: when it is due next, or else when it ran or ended.
func (t taskRow) At() time.Time {
	switch {
	case t.Status == dts.Pending && !t.Going():
		return t.RunAt
	case !t.StartedAt.IsZero():
		return t.StartedAt
	case !t.CompletedAt.IsZero():
		return t.CompletedAt
	default:
		return t.DueAt
	}
}

// Waits is what keeps a PENDING task from starting, or how far the run of a workflow is; or "".
func (t taskRow) Waits() string {
	switch {
	case t.Going() && t.progress != nil:
		return progressText(*t.progress)
	case t.Status != dts.Pending || t.WaitsFor == dts.ReasonPaused || t.Unresolved == 0:
		return waitText(t.WaitsFor)
	case t.Going():
		done, all := t.StepsDone()
		return progressText(dts.RunProgress{Steps: all, Ended: done})
	case t.Unresolved == 1:
		return "waits for another task"
	case t.DependsMode == dts.DependsAny:
		return "waits for one of " + strconv.Itoa(t.Unresolved) + " other tasks"
	}
	return "waits for " + strconv.Itoa(t.Unresolved) + " other tasks"
}

// Timed reports whether it is known how long the task has run: the job of a PING that has reported no start may have taken
// any time.
func (t taskRow) Timed() bool {
	return !t.StartedAt.IsZero() && (t.TargetType != dts.Ping || t.Took() > pingJudged)
}

// pingJudged is what a judgement takes at most.
const pingJudged = 50 * time.Millisecond

// Took is how long the task has run, retries included; 0 when it has not started.
func (t taskRow) Took() time.Duration {
	switch {
	case t.StartedAt.IsZero():
		return 0
	case t.Status == dts.Running || t.Going():
		return max(t.now.Sub(t.StartedAt), 0)
	case t.CompletedAt.IsZero():
		return 0
	default:
		return t.CompletedAt.Sub(t.StartedAt)
	}
}

// complete reads what rows say of workflows: of runs how far they are, of steps of which run they are.
func (h *handler) complete(ctx context.Context, p auth.Principal, rows []taskRow) error {
	var going, runs []string
	for _, t := range rows {
		if t.Going() {
			going = append(going, t.ID)
		}
		if t.WorkflowID != "" {
			runs = append(runs, t.WorkflowID)
		}
	}
	if len(going) > 0 {
		progress, err := h.Store.RunProgress(ctx, p.TenantID, going)
		if err != nil {
			return err
		}
		for i, t := range rows {
			if x, ok := progress[t.ID]; ok {
				rows[i].progress = &x
			}
		}
	}
	if len(runs) > 0 {
		page, err := h.Store.Tasks(ctx, dts.TaskFilter{TenantID: p.TenantID, IDs: runs, Statuses: dts.Statuses, Limit: len(runs)})
		if err != nil {
			return err
		}
		byID := make(map[string]*dts.Task, len(page.Items))
		for _, run := range page.Items {
			byID[run.ID] = run
		}
		for i, t := range rows {
			rows[i].Run = byID[t.WorkflowID]
		}
	}
	return nil
}
