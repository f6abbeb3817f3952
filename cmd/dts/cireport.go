package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fatih/color"

	"dts"
)

// ciResult is how a run counts.
type ciResult string

const (
	ciPassed  ciResult = "PASSED"
	ciFailed  ciResult = "FAILED"
	ciSkipped ciResult = "SKIPPED"
	// ciCancelled: it was stopped, or kept from starting, for a reason that is not its own.
	ciCancelled ciResult = "CANCELLED"
)

// ciReport is what became of a file. Its JSON is what --json prints.
type ciReport struct {
	File      string    `json:"file"`
	Result    ciResult  `json:"result"` // PASSED or FAILED
	Began     time.Time `json:"started_at"`
	Seconds   float64   `json:"duration_seconds"`
	Passed    int       `json:"passed"`
	Failed    int       `json:"failed"`
	Skipped   int       `json:"skipped"`
	Cancelled int       `json:"cancelled"`
	Stopped   string    `json:"stopped,omitempty"` // why it was ended early
	Runs      []ciRun   `json:"runs"`
}

// ciRun is a run of a task, or why there is none.
type ciRun struct {
	Name     string     `json:"name"`
	Workflow string     `json:"workflow,omitempty"`
	Run      int        `json:"run,omitempty"` // of a schedule: its number
	Result   ciResult   `json:"result"`
	Status   dts.Status `json:"status,omitempty"` // of the task; absent where there was none
	Reason   string     `json:"reason,omitempty"`
	Attempts int        `json:"attempts"`
	Seconds  float64    `json:"duration_seconds"` // from its first start to its end
	DueAt    time.Time  `json:"due_at,omitzero"`
	Started  time.Time  `json:"started_at,omitzero"`
	Ended    time.Time  `json:"completed_at,omitzero"`
	ExitCode *int       `json:"exit_code,omitempty"`
	HTTP     int        `json:"response_status,omitempty"`

	id     string
	at     int  // of its task in the file
	recurs bool // it is one of several
}

// title is what the run is called in the summary.
func (r *ciRun) title() string {
	s := ciName{workflow: r.Workflow, task: r.Name}.String()
	if r.Run > 0 {
		s += fmt.Sprintf(" #%d", r.Run)
	}
	return s
}

// report reads what became of the plan.
func (s *ciServer) report(ctx context.Context, p *ciPlan, stopped *ciStop) (*ciReport, error) {
	r := &ciReport{Runs: []ciRun{}}
	if stopped != nil {
		r.Stopped = stopped.text
	}
	all, err := s.all(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range all.list {
		run := all.byID[t.WorkflowID]
		key := keyOf(t, run)
		name, ok := p.names[key]
		if !ok || t.IsRun() && all.steps[t.ID] != nil || t.RecurringTaskID != "" && t.Status == dts.Cancelled && t.DueAt.After(t.CompletedAt) {
			continue // its steps tell, or it was to come later
		}
		row := ciRun{Name: name.task, Workflow: name.workflow, at: name.at, id: t.ID, Status: t.Status, Attempts: t.Attempts, DueAt: t.DueAt,
			Started: t.StartedAt, Ended: t.CompletedAt, ExitCode: t.ExitCode, HTTP: t.ResponseStatus, recurs: t.RecurringTaskID != "" || run != nil && run.RecurringTaskID != ""}
		if !t.StartedAt.IsZero() && !t.CompletedAt.IsZero() {
			row.Seconds = t.CompletedAt.Sub(t.StartedAt).Seconds()
		}
		row.Result, row.Reason = judge(t, all, p, stopped)
		r.Runs = append(r.Runs, row)
	}
	for _, i := range p.idle {
		r.Runs = append(r.Runs, ciRun{Name: i.name.task, Workflow: i.name.workflow, at: i.name.at, Result: ciSkipped, Reason: i.reason})
	}
	slices.SortStableFunc(r.Runs, func(a, b ciRun) int {
		if a.at != b.at {
			return a.at - b.at
		}
		return a.DueAt.Compare(b.DueAt)
	})
	number := map[int]int{}
	for i := range r.Runs {
		run := &r.Runs[i]
		if run.recurs {
			number[run.at]++
			run.Run = number[run.at]
		}
		switch run.Result {
		case ciPassed:
			r.Passed++
		case ciFailed:
			r.Failed++
		case ciCancelled:
			r.Cancelled++
		default:
			r.Skipped++
		}
	}
	r.Result = ciPassed
	if r.Failed > 0 || stopped != nil && (stopped.failure || stopped.signal != nil) {
		r.Result = ciFailed
	}
	return r, nil
}

// ciTasks are all tasks that the store has.
type ciTasks struct {
	list  []*dts.Task
	byID  map[string]*dts.Task
	steps map[string]map[string]*dts.Task // by the run of the workflow and by name
}

func (s *ciServer) all(ctx context.Context) (ciTasks, error) {
	all := ciTasks{byID: map[string]*dts.Task{}, steps: map[string]map[string]*dts.Task{}}
	for cursor := ""; ; {
		page, err := s.st.Tasks(ctx, dts.TaskFilter{TenantID: dts.DefaultTenant, Cursor: cursor, Limit: 1000})
		if err != nil {
			return all, err
		}
		all.list = append(all.list, page.Items...)
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	for _, t := range all.list {
		all.byID[t.ID] = t
		if t.WorkflowID == "" {
			continue
		}
		if all.steps[t.WorkflowID] == nil {
			all.steps[t.WorkflowID] = map[string]*dts.Task{}
		}
		all.steps[t.WorkflowID][t.Step] = t
	}
	return all, nil
}

// ended says how a task has ended, behind its name.
var ended = map[dts.Status]string{dts.Success: "succeeded", dts.Failed: "failed", dts.Cancelled: "was cancelled", dts.Skipped: "was skipped"}

// unmet says which of its dependencies have kept a task from running.
func (all *ciTasks) unmet(t *dts.Task, p *ciPlan) string {
	run := all.byID[t.WorkflowID]
	var list []string
	for _, n := range p.needs[keyOf(t, run)] {
		parent := all.byID[n.on]
		if run != nil {
			parent = all.steps[run.ID][n.on]
		}
		if parent != nil && n.typ.Outcome(parent.Status) == dts.DependencyFailed {
			list = append(list, p.names[keyOf(parent, run)].task+" "+ended[parent.Status])
		}
	}
	return strings.Join(list, ", ")
}

// judge says how a task counts, and why. What was skipped because another has failed is not one more failure.
func judge(t *dts.Task, all ciTasks, p *ciPlan, stopped *ciStop) (ciResult, string) {
	switch {
	case t.Status == dts.Success:
		return ciPassed, ""
	case t.SkipReason == dts.ReasonDependency && t.Status == dts.Failed:
		return ciFailed, all.unmet(t, p)
	case t.SkipReason == dts.ReasonDependency:
		return ciSkipped, all.unmet(t, p)
	case t.Status == dts.Failed:
		return ciFailed, t.LastError
	case t.Status == dts.Skipped:
		return ciSkipped, map[dts.Reason]string{
			dts.ReasonOverlap: "the run before it had not ended", dts.ReasonExpired: "it could not start before it expired",
			dts.ReasonBlackout: "a blackout", dts.ReasonCalendar: "a calendar",
		}[t.SkipReason]
	case t.Status == dts.Cancelled && (stopped == nil || t.LastError == dts.ErrRunReplaced.Error()):
		return ciCancelled, t.LastError // by the next run, which was due
	}
	reason := "it did not end" // only where the store has failed
	if stopped != nil {
		reason = stopped.text
	}
	if stopped == nil || stopped.failure {
		return ciFailed, reason
	}
	return ciCancelled, reason
}

// code is the exit code: how many have failed, at most 100.
func (r *ciReport) code(stopped *ciStop) int {
	if r.Failed == 0 && r.Result == ciFailed {
		return 1 // it was stopped before something failed
	}
	return min(r.Failed, maxCIFailures)
}

// maxCIFailures is the highest exit code that is a number of failures: above are those of signals and of what goes wrong.
const maxCIFailures = 100

// print prints the report as a table with a line below it. below: there is something above.
func (r *ciReport) print(a *app, below bool) {
	rows := make([][]string, len(r.Runs))
	for i := range r.Runs {
		run := &r.Runs[i]
		took, attempts := "–", "–"
		if !run.Started.IsZero() {
			took, attempts = span(time.Duration(run.Seconds*float64(time.Second))), number(float64(run.Attempts), 0)
		}
		rows[i] = []string{clip(clean(run.title()), 60), a.ciResult(run.Result), took, attempts, clean(run.Reason)}
	}
	if below {
		a.printf("\n")
	}
	if len(rows) > 0 {
		a.table([]string{"Task", "Result", "Time", "Attempts", "Reason"}, rows, 4)
		a.printf("\n")
	}
	end := ""
	if r.Stopped != "" {
		end = "; " + r.Stopped
	}
	a.printf("%s in %s%s\n", strings.Join(r.counts(), ", "), span(time.Duration(r.Seconds*float64(time.Second))), end)
}

func (r *ciReport) counts() []string {
	list := []string{fmt.Sprintf("%d passed", r.Passed)}
	if r.Failed > 0 {
		list = append(list, fmt.Sprintf("%d failed", r.Failed))
	}
	if r.Skipped > 0 {
		list = append(list, fmt.Sprintf("%d skipped", r.Skipped))
	}
	if r.Cancelled > 0 {
		list = append(list, fmt.Sprintf("%d cancelled", r.Cancelled))
	}
	return list
}

// ciResult writes a result in its colour.
func (a *app) ciResult(r ciResult) string {
	switch text := strings.ToLower(string(r)); r {
	case ciPassed:
		return a.paint(text, color.FgGreen)
	case ciFailed:
		return a.paint(text, color.FgRed)
	default:
		return a.paint(text, color.FgYellow)
	}
}
