package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"dts"
)

const conflict = http.StatusConflict

// routes is every path of the API.
func (h *Handler) routes() []route {
	task, recurring := dts.Task{}, dts.RecurringTask{}
	return []route{
		{method: "POST", path: "/tasks", id: "create-task", tag: "tasks", summary: "Create a task",
			params: keyParam, body: TaskRequest{}, status: 201, also: 200, answer: task, errors: []int{conflict}, serve: h.createTask},
		{method: "GET", path: "/tasks", id: "list-tasks", tag: "tasks", summary: "List tasks, newest first",
			params: taskListParams, answer: Page[dts.Task]{}, serve: h.listTasks},
		{method: "POST", path: "/tasks/bulk", id: "create-tasks", tag: "tasks", summary: "Create up to 10000 tasks, all or none",
			body: BulkRequest{}, limit: MaxBulkBody, status: 201, also: 200, answer: BulkAnswer{}, errors: []int{conflict}, serve: h.createTasks},
		{method: "POST", path: "/tasks/bulk-cancel", id: "cancel-tasks", tag: "tasks", summary: "Cancel tasks by id or by filter",
			body: BulkCancelRequest{}, answer: BulkCancelAnswer{}, serve: h.cancelTasks},
		{method: "GET", path: "/tasks/{id}", id: "get-task", tag: "tasks", summary: "Get a task", answer: task, serve: h.getTask},
		{method: "PATCH", path: "/tasks/{id}", id: "modify-task", tag: "tasks", summary: "Modify a pending task",
			body: TaskPatch{}, answer: task, errors: []int{conflict}, serve: h.modifyTask},
		{method: "DELETE", path: "/tasks/{id}", id: "delete-task", tag: "tasks", summary: "Delete a task that does not run, with its attempts and output; answers with what it was",
			answer: task, errors: []int{conflict}, serve: h.doTask(dts.Delete)},
		{method: "POST", path: "/tasks/{id}/cancel", id: "cancel-task", tag: "tasks", summary: "Cancel a pending task, or kill a running one",
			answer: task, errors: []int{conflict}, serve: h.doTask(dts.Cancel)},
		{method: "POST", path: "/tasks/{id}/retry", id: "retry-task", tag: "tasks", summary: "Run a failed, cancelled or skipped task once more, now",
			answer: task, errors: []int{conflict}, serve: h.doTask(dts.RetryNow)},
		{method: "POST", path: "/tasks/{id}/force-complete", id: "force-complete-task", tag: "tasks", summary: "Make a task that does not run a success, without a run",
			answer: task, errors: []int{conflict}, serve: h.doTask(dts.ForceComplete)},
		{method: "POST", path: "/tasks/{id}/run-now", id: "run-task-now", tag: "tasks", summary: "Run a pending task now",
			answer: task, errors: []int{conflict}, serve: h.doTask(dts.RunNow)},
		{method: "GET", path: "/tasks/{id}/attempts", id: "list-attempts", tag: "tasks", summary: "List a task's attempts, first one first",
			answer: Items[dts.Attempt]{}, serve: h.listAttempts},
		{method: "GET", path: "/tasks/{id}/output", id: "get-output", tag: "tasks", summary: "What an attempt has printed, or the body that a server answered. Streamed as events output, then end, or failed",
			params: outputParams, answer: OutputAnswer{}, media: "text/plain",
			events: []any{OutputChunk{}, OutputEnd{}, Problem{}}, stream: h.output},

		{method: "POST", path: "/recurring-tasks", id: "create-recurring-task", tag: "recurring tasks", summary: "Create a recurring task",
			params: keyParam, body: RecurringRequest{}, status: 201, also: 200, answer: recurring, errors: []int{conflict}, serve: h.createRecurring},
		{method: "GET", path: "/recurring-tasks", id: "list-recurring-tasks", tag: "recurring tasks", summary: "List recurring tasks, newest first",
			params: recurringListParams, answer: Page[dts.RecurringTask]{}, serve: h.listRecurring},
		{method: "GET", path: "/recurring-tasks/{id}", id: "get-recurring-task", tag: "recurring tasks", summary: "Get a recurring task",
			answer: recurring, serve: h.getRecurring},
		{method: "PATCH", path: "/recurring-tasks/{id}", id: "modify-recurring-task", tag: "recurring tasks", summary: "Modify a recurring task and plan its upcoming occurrences anew",
			body: RecurringPatch{}, answer: recurring, errors: []int{conflict}, serve: h.modifyRecurring},
		{method: "DELETE", path: "/recurring-tasks/{id}", id: "cancel-recurring-task", tag: "recurring tasks", summary: "Cancel a recurring task: upcoming occurrences are removed, its history stays",
			answer: recurring, serve: h.cancelRecurring},
		{method: "POST", path: "/recurring-tasks/{id}/pause", id: "pause-recurring-task", tag: "recurring tasks", summary: "Pause: instants are recorded as skipped until it is resumed",
			body: PauseRequest{}, bodyOptional: true, answer: recurring, errors: []int{conflict}, serve: h.pauseRecurring},
		{method: "POST", path: "/recurring-tasks/{id}/resume", id: "resume-recurring-task", tag: "recurring tasks", summary: "Resume after a pause",
			answer: recurring, errors: []int{conflict}, serve: h.resumeRecurring},
		{method: "POST", path: "/recurring-tasks/{id}/trigger-now", id: "trigger-recurring-task", tag: "recurring tasks", summary: "Run it once, now, beside its schedule",
			status: 201, answer: task, errors: []int{conflict}, serve: h.triggerRecurring},
		{method: "GET", path: "/recurring-tasks/{id}/upcoming", id: "list-upcoming", tag: "recurring tasks", summary: "List the planned occurrences, soonest first",
			params: []param{limitParam(10)}, answer: Items[dts.Task]{}, serve: h.listUpcoming},
		{method: "GET", path: "/recurring-tasks/{id}/occurrences", id: "list-occurrences", tag: "recurring tasks", summary: "List every instant, newest first: the task it became, or why it was skipped",
			params: []param{limitParam(100), cursorParam}, answer: Page[dts.Occurrence]{}, serve: h.listOccurrences},

		{method: "POST", path: "/schedules/preview", id: "preview-schedule", tag: "schedules", summary: "Describe a schedule and list its next instants, without saving it",
			body: PreviewRequest{}, answer: Preview{}, serve: h.preview},

		{method: "GET", path: "/events", id: "watch-events", tag: "system", summary: "Events as they happen: created, changed, started, finished, skipped, deleted (each an Event)",
			params: eventParams, events: []any{dts.Event{}}, errors: []int{503}, stream: h.events},
		{method: "POST", path: "/login-links", id: "create-login-link", tag: "system", summary: "Make a link that signs a browser in, once",
			status: 201, answer: LoginLink{}, serve: h.createLoginLink},
		{method: "GET", path: "/stats", id: "get-stats", tag: "system", summary: "How many tasks are in which state",
			answer: dts.Counts{}, serve: h.stats},
		{method: "GET", path: "/scheduler/status", id: "get-scheduler-status", tag: "system", summary: "How this node's scheduler is doing",
			answer: dts.SchedulerStatus{}, serve: h.schedulerStatus},
		{method: "GET", path: "/health", id: "get-health", tag: "system", summary: "Whether the process is alive",
			answer: Health{}, open: true, serve: h.health},
		{method: "GET", path: "/ready", id: "get-ready", tag: "system", summary: "Whether this node takes and fires tasks; 503 when it does not",
			answer: Readiness{}, also: 503, open: true, serve: h.ready},
		{method: "GET", path: "/metrics", id: "get-metrics", tag: "system", summary: "Prometheus metrics",
			media: "text/plain", stream: h.metrics},
		{method: "GET", path: "/openapi.json", id: "get-openapi", tag: "system", summary: "This document",
			media: "application/openapi+json", stream: h.openAPI},
	}
}

func text(doc string) *huma.Schema { return &huma.Schema{Type: huma.TypeString, Description: doc} }

var (
	one, most, mostAttempts = 1.0, float64(maxPage), 1e6

	instant  = &huma.Schema{Type: huma.TypeString, Format: "date-time"}
	keyParam = []param{{"Idempotency-Key", "header", "the same as idempotency_key in the body", text("")}}

	cursorParam = param{"cursor", "query", "next_cursor of the page before", text("")}

	taskListParams = []param{
		{"status", "query", "one or more of PENDING, RUNNING, SUCCESS, FAILED, CANCELLED, SKIPPED, with commas or repeated", text("")},
		{"queue", "query", "", text("")},
		{"name", "query", "exact", text("")},
		{"label", "query", "name=value; repeat it to ask for several", text("")},
		{"created_by", "query", "", text("")},
		{"recurring_task_id", "query", "", text("")},
		{"batch_id", "query", "", text("")},
		{"from", "query", "run_at at or after this", instant},
		{"to", "query", "run_at before this", instant},
		limitParam(100), cursorParam,
	}
	recurringListParams = []param{
		{"status", "query", "one or more of ACTIVE, PAUSED, COMPLETED, CANCELLED, with commas or repeated", text("")},
		{"name", "query", "exact", text("")},
		limitParam(100), cursorParam,
	}
	outputParams = []param{
		{"attempt", "query", "default: the newest", &huma.Schema{Type: huma.TypeInteger, Minimum: &one, Maximum: &mostAttempts}},
		{"follow", "query", "1: stream it as it is written", &huma.Schema{Type: huma.TypeString, Enum: []any{"0", "1"}}},
	}
	eventParams = []param{
		{"task_id", "query", "only events of this task", text("")},
		{"recurring_task_id", "query", "only events of this recurring task and its tasks", text("")},
	}
)

func limitParam(normal int) param {
	return param{"limit", "query", "", &huma.Schema{Type: huma.TypeInteger, Minimum: &one, Maximum: &most, Default: normal}}
}
