package ui

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"dts"
	"dts/web/auth"
)

type taskPage struct {
	shared
	taskRow
	Target    targetView
	Why       string             // why it did or did not run, in a sentence
	Error     string             // the last one, if it still matters
	Warnings  []string           // what of the run was not as was asked for
	Went      *breakdown         // where its time went; nil before it starts
	Up, Down  graphView          // what it depends on, and what depends on it
	Truncated bool               // there are more of these than are read
	Recurring *dts.RecurringTask // what spawned it; nil for a one-time task
	Facts     []pair
	Actions   []action
	Steps     *stepsView // of a workflow's run
	Attempts  []attemptRow
	Output    outputView
	Self      string // address of this page, to refresh it
}

// Ping reports whether a job elsewhere does the work, so that there are no attempts to show.
func (d taskPage) Ping() bool { return d.TargetType == dts.Ping }

type attemptRow struct {
	*dts.Attempt
	now      time.Time
	Selected bool // its output is shown
}

// Wrong is the attempt's error, where that says more than its exit code.
func (a attemptRow) Wrong() string {
	if a.ExitCode != nil && a.Error == "exit code "+strconv.Itoa(*a.ExitCode) {
		return ""
	}
	return a.Error
}

// Took is how long the attempt has run.
func (a attemptRow) Took() time.Duration {
	if a.State == dts.AttemptRunning {
		return max(a.now.Sub(a.StartedAt), 0)
	}
	return time.Duration(a.DurationUS) * time.Microsecond
}

// action is a button that changes something.
type action struct {
	Verb, Label string
	Confirm     string // asked before; empty: done at once
	Yes         string // the label of the button that confirms
	Danger      bool
}

// taskActions are the buttons for a task's verbs, in the order in which they are shown.
var taskActions = [...]struct {
	verb dts.Verb
	action
}{
	{dts.RunNow, action{Label: "Run now"}},
	{dts.RetryNow, action{Label: "Retry"}},
	{dts.PauseTask, action{Label: "Pause"}},
	{dts.ResumeTask, action{Label: "Resume"}},
	{dts.ForceComplete, action{Label: "Mark as done", Confirm: "Count this task as a success without a run?", Yes: "Yes, mark as done"}},
	{dts.Cancel, action{Label: "Cancel", Confirm: "Cancel this task? A run in progress is stopped.", Yes: "Yes, cancel it", Danger: true}},
	{dts.Delete, action{Label: "Delete", Confirm: "Delete this task with its attempts and output? This cannot be undone.", Yes: "Yes, delete it", Danger: true}},
}

// runConfirms are the questions about the run of a workflow that has started.
var runConfirms = map[dts.Verb]string{
	dts.ForceComplete: "Count this run as a success? Its steps that have not ended are cancelled.",
	dts.Cancel:        "Cancel this run? Its steps that have not ended are cancelled, and those that run are stopped.",
	dts.Delete:        "Delete this run with its steps and what they printed? What runs of it is stopped. This cannot be undone.",
}

// actionsOf are the verbs that do something to a task as it is.
func actionsOf(t *dts.Task) []action {
	var list []action
	paused := t.WaitsFor == dts.ReasonPaused
	for _, a := range taskActions {
		if a.verb == dts.PauseTask && paused || a.verb == dts.ResumeTask && !paused {
			continue
		}
		if t.RunStarted() && (a.verb == dts.RunNow || a.verb == dts.PauseTask) {
			continue // it waits for its steps
		}
		if effect, err := a.verb.Do(t.Status); err == nil && effect != dts.Nothing {
			a.Verb = string(a.verb)
			if text := runConfirms[a.verb]; text != "" && t.RunStarted() {
				a.Confirm = text
			}
			if a.verb == dts.RetryNow {
				a.Label = retryLabel(t)
			}
			list = append(list, a.action)
		}
	}
	return list
}

// retryLabel says what a retry of a task does.
func retryLabel(t *dts.Task) string {
	switch {
	case t.RunStarted():
		return "Retry what failed"
	case t.WorkflowID != "" && t.SkipReason == dts.ReasonDependency:
		return "Run all the same" // although what it depends on has not ended as it asks
	case t.WorkflowID != "":
		return "Retry from here"
	case t.TargetType == dts.Ping:
		return "Judge again"
	}
	return "Retry"
}

// task shows one task.
func (h *handler) task(w http.ResponseWriter, r *http.Request, p auth.Principal) error {
	return h.showTask(w, r, p, http.StatusOK, "")
}

func (h *handler) showTask(w http.ResponseWriter, r *http.Request, p auth.Principal, status int, alert string) error {
	ctx := r.Context()
	id := r.PathValue("id")
	t, err := h.findTask(ctx, p, id)
	if err != nil {
		return err
	}
	attempts, err := h.Store.Attempts(ctx, p.TenantID, id)
	if err != nil {
		return err
	}
	d := taskPage{shared: h.shared(r, ""), Target: viewTarget(t.Spec), Facts: taskFacts(t), Actions: actionsOf(t),
		Warnings: warningTexts(t), Self: "/ui/tasks/" + id}
	if t.TargetType != dts.Ping { // whose job ran elsewhere
		d.Went = newBreakdown(t, d.Now)
	}
	if d.Up, d.Down, d.Truncated, err = h.graphOf(ctx, p, id); err != nil {
		return err
	}
	if d.Steps, err = h.stepsOf(ctx, p, t, d.Now); err != nil {
		return err
	}
	d.Steps.cut(r, &d.Self)
	if t.RunStarted() {
		d.Up = graphView{} // those are its steps
	}
	row := []taskRow{{Task: t, now: d.Now}}
	if d.Steps != nil {
		row[0].progress = &d.Steps.Progress
	}
	if t.WorkflowID != "" {
		if err := h.complete(ctx, p, row); err != nil {
			return err
		}
		d.Down.drop(t.WorkflowID) // the page says of which run it is a step
	}
	d.taskRow = row[0]
	d.Alert = alert
	if t.RecurringTaskID != "" {
		d.Recurring, err = h.Store.RecurringTask(ctx, p.TenantID, t.RecurringTaskID)
		if err != nil && dts.CodeOf(err) != dts.ErrNotFound {
			return err
		}
	}
	d.Why = h.why(r, p, id, time.Time{})
	d.Error = t.LastError
	if t.Status == dts.Success || unmade(t.Status, t.Attempts) || strings.Contains(d.Why, t.LastError) || t.SkipReason == dts.ReasonExpired && d.Why != "" {
		d.Error = "" // it is past, or was said
	}
	selected := len(attempts)
	if n, err := strconv.Atoi(r.URL.Query().Get("attempt")); err == nil && n >= 1 && n <= len(attempts) {
		selected = n
		d.Self = withQuery(d.Self, "attempt", strconv.Itoa(n))
	}
	for i, a := range attempts {
		d.Attempts = append(d.Attempts, attemptRow{a, d.Now, i+1 == selected})
	}
	if selected > 0 {
		if d.Output, err = h.output(ctx, p, attempts[selected-1]); err != nil {
			return err
		}
		d.Output.Unanswered = attempts[selected-1].HTTPStatus == 0
		d.Output.HTTP, d.Output.Ping = t.TargetType == dts.HTTPCallback, t.TargetType == dts.Ping
	}
	return h.render(w, status, "task", d)
}

// unmade reports whether a task has still to make its first attempt: an error that it has is of what it was before, such as skipped.
func unmade(s dts.Status, attempts int) bool { return s == dts.Pending && attempts == 0 }

// findTask reads a task. An id in another form than ours cannot exist.
func (h *handler) findTask(ctx context.Context, p auth.Principal, id string) (*dts.Task, error) {
	if !dts.IsID(id) {
		return nil, dts.Errorf(dts.ErrNotFound, "there is no task %q", clip(id, 40))
	}
	return h.Store.Task(ctx, p.TenantID, id)
}

// outputView is the output of one attempt.
type outputView struct {
	Number     int
	State      dts.AttemptState
	Follow     string // address of the live output; empty when the attempt has ended
	Head, Tail string
	Dropped    int64 // bytes between the two that were not kept
	Total      int64
	HTTP       bool // it is the body of an answer
	Unanswered bool // and there was none
	Ping       bool // it is what a job elsewhere has sent along
	Missing    bool // there was output, and it is no longer kept
}

// Key changes when the pane must be loaded again.
func (o outputView) Key() string { return strconv.Itoa(o.Number) + "-" + string(o.State) }

// Empty reports whether there is nothing to show.
func (o outputView) Empty() bool { return o.Head == "" && o.Tail == "" }

// output reads what an attempt printed: from the store when it has ended, else from the run itself.
func (h *handler) output(ctx context.Context, p auth.Principal, a *dts.Attempt) (outputView, error) {
	v := outputView{Number: a.Number, State: a.State, Total: a.OutputBytes}
	if a.State == dts.AttemptRunning {
		v.Follow = "/tasks/" + url.PathEscape(a.TaskID) + "/output?follow=1&attempt=" + strconv.Itoa(a.Number)
		v.Head = h.soFar(ctx, a)
		return v, nil
	}
	out, err := h.Store.Output(ctx, p.TenantID, a.TaskID, a.Number)
	if dts.CodeOf(err) == dts.ErrNotFound {
		v.Missing = a.OutputBytes > 0
		return v, nil
	}
	if err != nil {
		return v, err
	}
	v.Head, v.Tail, v.Total = text(out.Head), text(out.Tail), out.Total
	if out.Truncated() {
		v.Dropped = out.Total - int64(len(out.Head)+len(out.Tail))
	}
	return v, nil
}

// soFarWait is how long a page waits for the output of a run. What is there already comes at once.
const soFarWait = 20 * time.Millisecond

// soFar returns what a run has printed until now, for readers without JavaScript.
func (h *handler) soFar(ctx context.Context, a *dts.Attempt) string {
	tail, ok := h.Outputs.Tail(a.TaskID, a.Number)
	if !ok {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, soFarWait)
	defer cancel()
	var b strings.Builder
	for offset := int64(0); b.Len() < 2*dts.OutputKept; {
		chunk, next, done, err := tail.Read(ctx, offset)
		b.Write(chunk)
		if done || err != nil || next <= offset {
			break
		}
		offset = next
	}
	return text([]byte(b.String()))
}

// text makes output fit for a page: valid UTF-8, and without the control characters that a terminal would
// obey and a page cannot show.
func text(b []byte) string {
	s := strings.ToValidUTF8(string(b), "\uFFFD")
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' && r != '\r' || r == 0x7f {
			return '\uFFFD'
		}
		return r
	}, s)
}

// doTask applies a verb to a task.
func (h *handler) doTask(w http.ResponseWriter, r *http.Request, p auth.Principal) error {
	id, verb := r.PathValue("id"), dts.Verb(r.PathValue("verb"))
	if err := r.ParseForm(); err != nil {
		return badForm(err)
	}
	if !isTaskAction(verb) {
		return dts.Errorf(dts.ErrNotFound, "there is no such action")
	}
	t, err := h.findTask(r.Context(), p, id)
	if err != nil {
		return err
	}
	if _, err := h.Scheduler.DoTask(r.Context(), p.TenantID, id, verb, p.Name); err != nil {
		status, message := h.explain(r, err)
		return h.showTask(w, r, p, status, sentence("", message))
	}
	to, done := "/ui/tasks/"+id, string(verb)
	from, err := url.Parse(r.PostForm.Get("from"))
	switch {
	case r.PostForm.Get("from") == "recurring" && t.RecurringTaskID != "":
		to, done = "/ui/recurring/"+t.RecurringTaskID, "skip"
	case verb == dts.RetryNow && err == nil && from.Path == "/ui/dead":
		to, done = readDeadFilter(from.Query()).url(from.Query().Get("cursor")), "retry-dead"
	case verb == dts.RetryNow && r.PostForm.Get("from") == "run" && t.WorkflowID != "":
		to, done = "/ui/tasks/"+t.WorkflowID, "retry-step"
	case verb == dts.RetryNow && t.WorkflowID != "":
		done = "retry-step"
	case verb == dts.RetryNow && t.RunStarted():
		done = "retry-run"
	case verb == dts.RetryNow && t.TargetType == dts.Ping:
		done = "judge"
	case verb == dts.PauseTask || verb == dts.ResumeTask:
		done += "-task"
	case verb == dts.Delete && t.RecurringTaskID != "":
		to = "/ui/recurring/" + t.RecurringTaskID
	case verb == dts.Delete:
		to = "/ui/"
	}
	http.Redirect(w, r, withQuery(to, "done", done), http.StatusSeeOther)
	return nil
}

func isTaskAction(v dts.Verb) bool {
	for _, a := range taskActions {
		if a.verb == v {
			return true
		}
	}
	return false
}
