package main

import (
	"context"
	"fmt"
	"io"
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

	id string
	at int // of its task in the file
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
	ended := map[string]*dts.Task{}
	var tasks []*dts.Task
	for cursor := ""; ; {
		page, err := s.st.Tasks(ctx, dts.TaskFilter{TenantID: dts.DefaultTenant, Cursor: cursor, Limit: 1000})
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, page.Items...)
		for _, t := range page.Items {
			ended[t.ID] = t
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	needs := map[string][]dts.DependsOn{} // the store does not give them back
	for _, t := range p.tasks {
		needs[t.ID] = t.DependsOn
	}
	for _, t := range tasks {
		name, ok := p.names[t.ID]
		if t.RecurringTaskID != "" {
			name, ok = p.names[t.RecurringTaskID]
		}
		if !ok || t.RecurringTaskID != "" && t.StartedAt.IsZero() && t.Status == dts.Cancelled {
			continue // it was to come later
		}
		run := ciRun{Name: name.task, Workflow: name.workflow, at: name.at, id: t.ID, Status: t.Status, Attempts: t.Attempts, DueAt: t.DueAt,
			Started: t.StartedAt, Ended: t.CompletedAt, ExitCode: t.ExitCode, HTTP: t.ResponseStatus}
		if !t.StartedAt.IsZero() {
			run.Seconds = t.CompletedAt.Sub(t.StartedAt).Seconds()
		}
		run.Result, run.Reason = judge(t, needs[t.ID], ended, p, stopped)
		r.Runs = append(r.Runs, run)
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
		if t := ended[run.id]; t != nil && t.RecurringTaskID != "" {
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

// judge says how a task counts, and why. What was skipped because another has failed is not one more failure.
func judge(t *dts.Task, needs []dts.DependsOn, all map[string]*dts.Task, p *ciPlan, stopped *ciStop) (ciResult, string) {
	switch {
	case t.Status == dts.Success:
		return ciPassed, ""
	case t.SkipReason == dts.ReasonDependency:
		var unmet []string
		for _, d := range needs {
			if parent := all[d.TaskID]; parent != nil && d.Type.Outcome(parent.Status) == dts.DependencyFailed {
				unmet = append(unmet, p.names[d.TaskID].String()+", which "+map[dts.Status]string{dts.Success: "has succeeded", dts.Failed: "has failed", dts.Cancelled: "was cancelled", dts.Skipped: "was skipped"}[parent.Status])
			}
		}
		reason := "it needs " + strings.Join(unmet, "; and ")
		if t.Status == dts.Failed {
			return ciFailed, reason
		}
		return ciSkipped, reason
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

// print prints the report as a table with a line below it.
func (r *ciReport) print(a *app) {
	rows := make([][]string, len(r.Runs))
	for i := range r.Runs {
		run := &r.Runs[i]
		took, attempts := "–", "–"
		if !run.Started.IsZero() {
			took, attempts = span(time.Duration(run.Seconds*float64(time.Second))), number(float64(run.Attempts), 0)
		}
		rows[i] = []string{clip(clean(run.title()), 60), a.ciResult(run.Result), took, attempts, clean(run.Reason)}
	}
	if len(rows) > 0 {
		a.printf("\n")
		a.table([]string{"Task", "Result", "Time", "Attempts", "Reason"}, rows, 4)
	}
	end := ""
	if r.Stopped != "" {
		end = "; " + r.Stopped
	}
	a.printf("\n%s in %s%s\n", strings.Join(r.counts(), ", "), span(time.Duration(r.Seconds*float64(time.Second))), end)
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

// writeJUnit writes the report as JUnit XML, with what the runs have printed.
func (s *ciServer) writeJUnit(ctx context.Context, w io.Writer, suite string, r *ciReport) error {
	j := newJUnit(w, junitSuite{Name: suite, At: r.Began, Took: time.Duration(r.Seconds * float64(time.Second)),
		Tests: len(r.Runs), Failed: r.Failed, Skipped: r.Skipped + r.Cancelled})
	for i := range r.Runs {
		run := &r.Runs[i]
		c := junitCase{Class: suite, Name: run.Name, Took: time.Duration(run.Seconds * float64(time.Second)), Result: run.Result, Reason: run.Reason}
		if run.Workflow != "" {
			c.Class += "." + run.Workflow
		}
		if run.Run > 0 {
			c.Name += fmt.Sprintf(" #%d", run.Run)
		}
		var err error
		if c.Output, err = s.outputs(ctx, run); err != nil {
			return err
		}
		j.Case(c)
	}
	return j.End()
}

// outputs reads what the attempts of a run have printed.
func (s *ciServer) outputs(ctx context.Context, run *ciRun) (list []junitOutput, err error) {
	if run.id == "" || run.Attempts == 0 {
		return nil, nil
	}
	attempts, err := s.st.Attempts(ctx, dts.DefaultTenant, run.id)
	if err != nil {
		return nil, err
	}
	for _, a := range attempts {
		o, err := s.st.Output(ctx, dts.DefaultTenant, run.id, a.Number)
		if err != nil && dts.CodeOf(err) != dts.ErrNotFound {
			return nil, err
		}
		title := ""
		if len(attempts) > 1 {
			title = fmt.Sprintf("attempt %d: %s", a.Number, a.State)
			if a.Error != "" {
				title += ": " + a.Error
			}
		}
		if title != "" || o.Total > 0 {
			list = append(list, junitOutput{title, *o})
		}
	}
	return list, nil
}
