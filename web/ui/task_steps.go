package ui

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dts"
	"dts/web/auth"
)

// stepsView is the steps of a workflow: of a run, or, where nothing has come of them yet, of what it is made from.
type stepsView struct {
	Rows     []stepRow
	Run      bool // it is the run of a workflow
	Going    bool // which has started and not ended
	Progress dts.RunProgress
	All      string // address of the page with all of them; empty: they are
}

// stepsShown is how many steps a page shows unless it is asked for all.
const stepsShown = 100

// cut leaves out of many steps those that matter least: self is the page, which gets ?steps=all to show them.
func (v *stepsView) cut(r *http.Request, self *string) {
	switch {
	case v == nil || len(v.Rows) <= stepsShown:
	case r.URL.Query().Get("steps") == "all":
		*self = withQuery(*self, "steps", "all")
	default:
		slices.SortStableFunc(v.Rows, func(a, b stepRow) int { return a.rank() - b.rank() })
		v.Rows, v.All = v.Rows[:stepsShown], withQuery(*self, "steps", "all")+"#steps"
	}
}

// stepRow is a step of a workflow.
type stepRow struct {
	dts.StepState
	What    string // what it runs, in a line
	Queue   string
	Because string // why it was skipped: what the steps before it did
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

// Waits is what keeps a step from starting that waits for no other one, or "".
func (s stepRow) Waits() string {
	switch {
	case s.Status != dts.Pending || s.Unresolved > 0:
		return ""
	case s.Attempts > 0:
		return "is tried again"
	}
	return waitText(s.WaitsFor)
}

// Wrong is the step's last error, if it still matters.
func (s stepRow) Wrong() string {
	if s.Status == dts.Success || s.Because != "" || unmade(s.Status, s.Attempts) {
		return ""
	}
	return s.LastError
}

// Retryable reports whether a run can go on from this step. What was skipped because of others goes on with those.
func (s stepRow) Retryable() bool {
	return s.TaskID != "" && (s.Status == dts.Failed || s.Status == dts.Cancelled)
}

// rank orders steps by how much they matter to who looks at a run.
func (s stepRow) rank() int {
	switch {
	case s.Wrong() != "" || s.Retryable():
		return 0
	case s.Status == dts.Running:
		return 1
	case s.Status == dts.Pending && s.Unresolved == 0:
		return 2
	}
	return 3
}

// stepsOf reads the steps of a workflow's run; nil of other tasks.
func (h *handler) stepsOf(ctx context.Context, p auth.Principal, t *dts.Task, now time.Time) (*stepsView, error) {
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
	v := newSteps(t, tasks, now)
	if v != nil {
		v.Run, v.Going = true, t.RunStarted() && !t.Status.Terminal()
	}
	return v, nil
}

// newSteps puts the steps of a workflow together with the tasks that its run has made of them. nil where the workflow cannot be
// read: of a run, its last error says why.
func newSteps(t *dts.Task, tasks []*dts.Task, now time.Time) *stepsView {
	w, err := t.Workflow()
	if err != nil {
		return nil
	}
	run, err := t.RunState(tasks)
	if err != nil {
		return nil
	}
	v := &stepsView{Progress: dts.RunProgress{Steps: len(run.Steps)}}
	states := make(map[string]dts.Status, len(run.Steps))
	for _, s := range run.Steps {
		states[s.Name] = s.Status
	}
	for i, s := range run.Steps {
		row := stepRow{StepState: s, What: targetSummary(w.Steps[i].Spec), Queue: w.Steps[i].Queue, now: now, deleted: t.RunStarted() && s.TaskID == ""}
		if row.Queue == "" {
			row.Queue = t.Queue
		}
		if s.Status == dts.Skipped && s.SkipReason == dts.ReasonDependency {
			row.Because = because(s, states)
		}
		v.Rows = append(v.Rows, row)
		switch {
		case s.Status == dts.Failed:
			v.Progress.Failed++
			v.Progress.FailedStep = s.Name
		case s.Status == dts.Running:
			v.Progress.Running++
		}
		if s.Status.Terminal() || row.deleted {
			v.Progress.Ended++
		}
	}
	return v
}

// because says which steps before one have not ended as it asks.
func because(s dts.StepState, states map[string]dts.Status) string {
	var list []string
	for _, d := range s.DependsOn {
		status := states[d.Step]
		switch {
		case d.Type == dts.MustFinish, d.Type == dts.MustFail && status == dts.Failed, d.Type != dts.MustFail && status == dts.Success:
			continue
		}
		if words := endWords[status]; words != "" {
			list = append(list, d.Step+" "+words)
		}
	}
	return strings.Join(list, ", ")
}

// endWords say how a task ended, after its name.
var endWords = map[dts.Status]string{dts.Success: "succeeded", dts.Failed: "failed", dts.Cancelled: "was cancelled", dts.Skipped: "was skipped"}

// progressText says how far a run is.
func progressText(p dts.RunProgress) string {
	text := strconv.Itoa(p.Ended) + " of " + strconv.Itoa(p.Steps) + " steps done"
	if p.Steps == 1 {
		text = strconv.Itoa(p.Ended) + " of 1 step done"
	}
	switch {
	case p.Failed == 1:
		text += ", " + p.FailedStep + " failed"
	case p.Failed > 1:
		text += ", " + strconv.Itoa(p.Failed) + " failed"
	}
	return text
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
