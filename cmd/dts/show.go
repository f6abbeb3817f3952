package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"dts"
	"dts/web/api"
)

// What `dts show` shows at most.
const (
	shownNext   = 5
	shownLedger = 10
	shownLines  = 10 // the last ones of the output
)

func (a *app) showCommand() *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "show a task with its attempts, or a recurring task with what ran and what did not", ArgsUsage: "NAME|ID", Category: "Tasks",
		Flags:  withConnection(jsonFlag()),
		Action: a.show,
	}
}

func (a *app) show(c *cli.Context) error {
	ref, err := oneArg(c, "NAME or ID")
	if err != nil {
		return err
	}
	return a.withServer(c, func(l *link) error {
		x, err := l.resolve(c.Context, ref)
		if err != nil {
			return err
		}
		if x.task != nil && x.byName { // a list does not say where the time went
			if x.task, err = l.Task(c.Context, x.task.ID); err != nil {
				return err
			}
		}
		if x.task != nil {
			return a.showTask(c.Context, l, x.task, c.Bool("json"))
		}
		return a.showRecurring(c.Context, l, x.recurring, c.Bool("json"))
	})
}

func (a *app) showTask(ctx context.Context, l *link, t *dts.Task, asJSON bool) error {
	attempts, err := l.Attempts(ctx, t.ID)
	if err != nil {
		return err
	}
	graph, err := l.Dependencies(ctx, t.ID)
	if err != nil {
		return err
	}
	var run *dts.RunState
	if t.IsRun() {
		if run, err = l.Workflow(ctx, t.ID); err != nil {
			return err
		}
	}
	if asJSON {
		out := struct {
			Task         *dts.Task       `json:"task"`
			Attempts     []*dts.Attempt  `json:"attempts"`
			Dependencies *dts.Graph      `json:"dependencies"`
			Steps        []dts.StepState `json:"steps,omitempty"`
		}{Task: t, Attempts: append([]*dts.Attempt{}, attempts...), Dependencies: graph}
		if run != nil {
			out.Steps = run.Steps
		}
		return a.printJSON(out)
	}
	a.printTask(t)
	if run != nil {
		a.stepTable(run)
	}
	if len(graph.Dependencies) > 0 && !t.RunStarted() { // else that is its steps, which stand there already
		a.printf("\n")
		if left := a.printGraph(graph, t.DependsMode, nearTree); left > 0 {
			a.printf("%s\n", a.dim("There is more: dts deps "+t.ID))
		}
	}
	if len(attempts) == 0 {
		return nil
	}
	a.attemptTable(attempts)
	out, err := l.Output(ctx, t.ID, 0)
	if err != nil {
		return err
	}
	a.outputTail(t, out)
	return nil
}

func (a *app) printTask(t *dts.Task) {
	now := a.now()
	status := a.status(string(t.Status))
	switch {
	case t.Status == dts.Skipped:
		status += ": " + reason(t.SkipReason)
	case waits(t) != "":
		status += ", " + waits(t)
	case t.Status == dts.Pending && t.Attempts > 0:
		status += ", waits for another attempt"
	}
	a.printf("%s  %s\n", a.bold(displayName(&t.Spec)), status)
	list := append([]fact{{"Id", t.ID}, {"About", clean(t.Description)}, {"Runs", target(&t.Spec)}}, details(&t.Spec)...)
	list = append(list, fact{"Due", clock(t.DueAt, a.loc) + a.dim("  "+relative(t.DueAt, now))})
	if !t.DueAt.Equal(t.ScheduledAt) {
		list = append(list, fact{"Was planned", clock(t.ScheduledAt, a.loc)})
	}
	if t.WaitsFor == dts.ReasonBlackout && t.RunAt.After(now) {
		list = append(list, fact{"Blackout until", clock(t.RunAt, a.loc) + a.dim("  "+relative(t.RunAt, now))})
	}
	if t.Status == dts.Pending && !t.NextAttemptAt.IsZero() && !t.RunStarted() {
		list = append(list, fact{"Next attempt", clock(t.NextAttemptAt, a.loc) + a.dim("  "+relative(t.NextAttemptAt, now))})
	}
	if !t.StartedAt.IsZero() {
		text := clock(t.StartedAt, a.loc)
		if t.LatenessUS != nil {
			text += ", " + late(*t.LatenessUS)
		}
		if t.SLAMet != nil && !*t.SLAMet {
			text += ", missed its SLA of " + span(t.SLA())
		}
		list = append(list, fact{"Started", text})
	}
	if !t.CompletedAt.IsZero() {
		list = append(list, fact{"Ended", clock(t.CompletedAt, a.loc) + a.dim("  "+relative(t.CompletedAt, now))})
	}
	list = append(list, fact{"Time went", timingWords(t.Breakdown)}, fact{"Warning", a.warned(warningWords(t))})
	if !t.ExpiresAt.IsZero() {
		list = append(list, fact{"Expires", clock(t.ExpiresAt, a.loc)})
	}
	if t.RecurringTaskID != "" {
		list = append(list, fact{"Recurring task", t.RecurringTaskID + " (" + originWords(t.Origin) + ")"})
	}
	list = append(list, fact{"Step", stepWords(t)}, fact{"Gets output of", clean(strings.Join(t.Inputs, ", "))})
	list = append(list, specFacts(&t.Spec)...)
	list = append(list, fact{"Dedupe key", clean(t.DedupeKey)}, fact{"Batch", t.BatchID})
	list = append(list, fact{"Limits", limits(&t.Spec, t.MaxAttempts)},
		fact{"Added", clock(t.CreatedAt, a.loc) + by(t.CreatedBy)}, fact{"Error", clean(t.LastError)})
	a.facts(list)
}

// specFacts are those that most tasks leave at their defaults.
func specFacts(s *dts.Spec) []fact {
	var list []fact
	if s.Queue != "default" {
		list = append(list, fact{"Queue", s.Queue})
	}
	if s.ConcurrencyKey != "" {
		list = append(list, fact{"Concurrency", fmt.Sprintf("at most %d at once with the key %s", s.ConcurrencyLimit, clean(s.ConcurrencyKey))})
	}
	if s.Priority != dts.Medium {
		list = append(list, fact{"Priority", strings.ToLower(string(s.Priority))})
	}
	if s.Delivery == dts.AtMostOnce {
		list = append(list, fact{"Delivery", "at most once"})
	}
	if s.Preemptible {
		list = append(list, fact{"Preemptible", "it may be stopped while work of high priority waits"})
	}
	list = append(list, fact{"Takes", resourceWords(s.Resources)}, fact{"Warns", warnLimits(s)}, fact{"Tries again", retryOnFact(s.Retry.On)})
	var labels []string
	for _, k := range slices.Sorted(maps.Keys(s.Labels)) {
		labels = append(labels, clean(k+"="+s.Labels[k]))
	}
	return append(list, fact{"Labels", strings.Join(labels, ", ")})
}

func by(who string) string {
	if who == "" {
		return ""
	}
	return " by " + clean(who)
}

func (a *app) attemptTable(attempts []*dts.Attempt) {
	var rows [][]string
	for _, t := range attempts {
		took := "–"
		if t.State != dts.AttemptRunning {
			took = span(time.Duration(t.DurationUS) * time.Microsecond)
		}
		result := clean(t.Error)
		switch {
		case result != "":
		case t.ExitCode != nil:
			result = fmt.Sprintf("exit code %d", *t.ExitCode)
		case t.HTTPStatus != 0:
			result = fmt.Sprintf("HTTP %d", t.HTTPStatus)
		}
		rows = append(rows, []string{fmt.Sprint(t.Number), a.status(string(t.State)), t.StartedAt.In(a.loc).Format("01-02 15:04:05"),
			span(time.Duration(max(t.LatenessUS, 0)) * time.Microsecond), took, used(t), result})
	}
	a.printf("\n")
	a.table([]string{"#", "STATE", "STARTED", "LATE", "TOOK", "CPU, MEMORY", "RESULT"}, rows, 6)
}

func used(t *dts.Attempt) string {
	if t.CPUUS == 0 && t.MaxRSSBytes == 0 {
		return "–"
	}
	return span(time.Duration(t.CPUUS)*time.Microsecond) + ", " + size(t.MaxRSSBytes)
}

// outputTail prints the end of an output.
func (a *app) outputTail(t *dts.Task, out *api.OutputAnswer) {
	text := strings.TrimRight(out.Head+out.Tail, "\n")
	if text == "" {
		a.printf("\n%s\n", a.dim("It printed nothing."))
		return
	}
	lines := strings.Split(text, "\n")
	title := "Output"
	if len(lines) > shownLines {
		title = fmt.Sprintf("The last %d lines of its output; all of it: dts logs %s", shownLines, t.ID)
		lines = lines[len(lines)-shownLines:]
	}
	a.printf("\n%s\n", a.dim(title))
	for _, line := range lines {
		a.printf("  %s\n", clean(strings.ReplaceAll(strings.TrimSuffix(line, "\r"), "\t", "    ")))
	}
}

// reason says in words why an instant did not run.
func reason(r dts.Reason) string {
	switch r {
	case dts.ReasonPaused:
		return "it was paused"
	case dts.ReasonOverlap:
		return "the run before was not over"
	case dts.ReasonCatchUp:
		return "missed, and not made up for"
	case dts.ReasonExpired:
		return "it had expired"
	case dts.ReasonRemoved:
		return "someone removed it"
	case dts.ReasonCancelled:
		return "the recurring task was removed"
	case dts.ReasonCalendar:
		return "a calendar excludes it"
	case dts.ReasonBlackout:
		return "there was a blackout"
	case dts.ReasonQueue:
		return "its queue was paused"
	case dts.ReasonDependency:
		return "what it depends on did not end as it must"
	}
	return clean(strings.ToLower(string(r)))
}
