package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"dts"
)

const conflict = http.StatusConflict

// routes is every path of the API.
func (h *Handler) routes() []route {
	task, recurring, calendar, blackout, queue := dts.Task{}, dts.RecurringTask{}, dts.Calendar{}, dts.Blackout{}, dts.Queue{}
	return []route{
		{method: "POST", path: "/tasks", id: "create-task", tag: "tasks", summary: "Create a task",
			params: keyParam, body: TaskRequest{}, status: 201, also: 200, answer: task, errors: []int{conflict}, serve: h.createTask},
		{method: "GET", path: "/tasks", id: "list-tasks", tag: "tasks", summary: "List tasks, newest first",
			params: taskListParams, answer: Page[dts.Task]{}, serve: h.listTasks},
		{method: "POST", path: "/tasks/bulk", id: "create-tasks", tag: "tasks", summary: "Create up to 10000 tasks, all or none",
			body: BulkRequest{}, limit: MaxBulkBody, status: 201, also: 200, answer: BulkAnswer{}, errors: []int{conflict}, serve: h.createTasks},
		{method: "POST", path: "/tasks/bulk-cancel", id: "cancel-tasks", tag: "tasks", summary: "Cancel tasks by id or by filter",
			body: BulkVerbRequest{}, answer: BulkCancelAnswer{}, serve: h.doTasks(dts.BulkCancel)},
		{method: "POST", path: "/tasks/bulk-retry", id: "retry-tasks", tag: "tasks", summary: "Run finished tasks once more, now, by id or by filter; by a filter without status those that FAILED",
			body: BulkVerbRequest{}, answer: dts.BulkResult{}, serve: h.doTasks(dts.BulkRetry)},
		{method: "POST", path: "/tasks/bulk-delete", id: "delete-tasks", tag: "tasks", summary: "Delete tasks that do not run, by id or by filter; by a filter without status those that have ended",
			body: BulkVerbRequest{}, answer: dts.BulkResult{}, serve: h.doTasks(dts.BulkDelete)},
		{method: "POST", path: "/tasks/bulk-pause", id: "pause-tasks", tag: "tasks", summary: "Pause pending tasks by id or by filter",
			body: BulkVerbRequest{}, answer: dts.BulkResult{}, serve: h.doTasks(dts.BulkPause)},
		{method: "POST", path: "/tasks/bulk-resume", id: "resume-tasks", tag: "tasks", summary: "Resume paused tasks by id or by filter",
			body: BulkVerbRequest{}, answer: dts.BulkResult{}, serve: h.doTasks(dts.BulkResume)},
		{method: "GET", path: "/batches/{id}", id: "get-batch", tag: "tasks", summary: "How far the tasks of a bulk request are", answer: dts.Batch{}, serve: h.getBatch},
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
		{method: "POST", path: "/tasks/{id}/pause", id: "pause-task", tag: "tasks", summary: "Pause a pending task: it does not start until it is resumed",
			answer: task, errors: []int{conflict}, serve: h.doTask(dts.PauseTask)},
		{method: "POST", path: "/tasks/{id}/resume", id: "resume-task", tag: "tasks", summary: "Resume a paused task: it starts when it is due, or now when that has passed",
			answer: task, errors: []int{conflict}, serve: h.doTask(dts.ResumeTask)},
		{method: "GET", path: "/tasks/{id}/attempts", id: "list-attempts", tag: "tasks", summary: "List a task's attempts, first one first",
			answer: Items[dts.Attempt]{}, serve: h.listAttempts},
		{method: "GET", path: "/tasks/{id}/output", id: "get-output", tag: "tasks", summary: "What an attempt has printed, or the body that a server answered. Streamed as events output, then end, or failed",
			params: outputParams, answer: OutputAnswer{}, media: "text/plain",
			events: []any{OutputChunk{}, OutputEnd{}, Problem{}}, stream: h.output},
		{method: "GET", path: "/tasks/{id}/dependencies", id: "get-dependencies", tag: "tasks", summary: "What a task depends on and what depends on it, directly or not: the nearest 1000 tasks",
			answer: dts.Graph{}, serve: h.getDependencies},
		{method: "POST", path: "/tasks/{id}/dependencies", id: "add-dependencies", tag: "tasks", summary: "Make a pending task that has not started depend on others; answers with the graph. A circle is refused and named",
			body: DependenciesRequest{}, answer: dts.Graph{}, errors: []int{conflict}, serve: h.addDependencies},
		{method: "DELETE", path: "/tasks/{id}/dependencies/{parent}", id: "remove-dependency", tag: "tasks", summary: "Let a pending task that has not started not wait for another one; answers with the graph",
			answer: dts.Graph{}, errors: []int{conflict}, serve: h.removeDependency},
		{method: "GET", path: "/tasks/{id}/why", id: "why-task", tag: "tasks", summary: "Why it did or did not run, in a sentence",
			answer: dts.Why{}, serve: h.whyTask},

		{method: "POST", path: "/workflows", id: "create-workflow", tag: "workflows", summary: "Run a workflow, now or at a time; answers with the run, which is a task too, and its steps",
			params: keyParam, body: WorkflowRequest{}, status: 201, also: 200, answer: dts.RunState{}, errors: []int{conflict}, serve: h.createWorkflow},
		{method: "GET", path: "/workflows/{id}", id: "get-workflow", tag: "workflows", summary: "Get a run of a workflow and what has become of its steps",
			answer: dts.RunState{}, serve: h.getWorkflow},

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
			body: ResumeRequest{}, bodyOptional: true, answer: recurring, errors: []int{conflict}, serve: h.resumeRecurring},
		{method: "POST", path: "/recurring-tasks/{id}/trigger-now", id: "trigger-recurring-task", tag: "recurring tasks", summary: "Run it once, now, beside its schedule",
			status: 201, answer: task, errors: []int{conflict}, serve: h.triggerRecurring},
		{method: "POST", path: "/recurring-tasks/{id}/backfill", id: "backfill-recurring-task", tag: "recurring tasks", summary: "Replay a past window: a task for each instant of the schedule in it",
			body: BackfillRequest{}, answer: dts.BackfillAnswer{}, errors: []int{conflict}, serve: h.backfill},
		{method: "GET", path: "/recurring-tasks/{id}/upcoming", id: "list-upcoming", tag: "recurring tasks", summary: "List the planned occurrences, soonest first",
			params: []param{limitParam(10)}, answer: Items[dts.Task]{}, serve: h.listUpcoming},
		{method: "GET", path: "/recurring-tasks/{id}/pings", id: "list-pings", tag: "recurring tasks", summary: "The ping URL of a PING, and what its job has reported, newest first",
			answer: PingsAnswer{}, errors: []int{conflict}, serve: h.listPings},
		{method: "GET", path: "/recurring-tasks/{id}/occurrences", id: "list-occurrences", tag: "recurring tasks", summary: "List every instant, newest first: the task it became, or why it was skipped",
			params: []param{limitParam(100), cursorParam}, answer: Page[dts.Occurrence]{}, serve: h.listOccurrences},
		{method: "GET", path: "/recurring-tasks/{id}/why", id: "why-instant", tag: "recurring tasks", summary: "Why an instant did or did not run, in a sentence",
			params: whyParams, answer: dts.Why{}, serve: h.whyInstant},

		{method: "POST", path: "/schedules/preview", id: "preview-schedule", tag: "schedules", summary: "Describe a schedule and list its next instants with what becomes of them, without saving it",
			body: PreviewRequest{}, answer: dts.Preview{}, errors: []int{404}, serve: h.preview},
		{method: "GET", path: "/scheduler/conflicts", id: "list-conflicts", tag: "schedules", summary: "When more tasks will want to run than a limit lets",
			params: conflictParams, answer: Items[dts.Conflict]{}, serve: h.listConflicts},

		{method: "GET", path: "/calendars", id: "list-calendars", tag: "calendars", summary: "List the calendars by name, without the text of their .ics files",
			answer: Items[dts.Calendar]{}, serve: h.listCalendars},
		{method: "POST", path: "/calendars", id: "create-calendar", tag: "calendars", summary: "Create a calendar",
			body: CalendarRequest{}, status: 201, answer: calendar, errors: []int{conflict}, serve: h.createCalendar},
		{method: "GET", path: "/calendars/{name}", id: "get-calendar", tag: "calendars", summary: "Get a calendar", answer: calendar, serve: h.getCalendar},
		{method: "PUT", path: "/calendars/{name}", id: "put-calendar", tag: "calendars", summary: "Create a calendar (201), or replace it (200) and plan what uses it anew; from JSON, or from an .ics file",
			params: calendarFileParams, body: CalendarRequest{}, bodyMedia: calendarType, also: 201, answer: calendar, errors: []int{conflict}, serve: h.putCalendar},
		{method: "DELETE", path: "/calendars/{name}", id: "delete-calendar", tag: "calendars", summary: "Delete a calendar that nothing uses; answers with what it was",
			answer: calendar, errors: []int{conflict}, serve: h.deleteCalendar},
		{method: "GET", path: "/calendars/{name}/windows", id: "list-calendar-windows", tag: "calendars", summary: "List the stretches of time that a calendar covers, in order",
			params: windowParams, answer: Items[CalendarWindow]{}, serve: h.listWindows},

		{method: "GET", path: "/blackouts", id: "list-blackouts", tag: "blackouts", summary: "List the blackouts, the oldest first",
			answer: Items[dts.Blackout]{}, serve: h.listBlackouts},
		{method: "POST", path: "/blackouts", id: "create-blackout", tag: "blackouts", summary: "Create a blackout: meanwhile no task starts",
			body: BlackoutRequest{}, status: 201, answer: blackout, errors: []int{conflict}, serve: h.createBlackout},
		{method: "GET", path: "/blackouts/{id}", id: "get-blackout", tag: "blackouts", summary: "Get a blackout", answer: blackout, serve: h.getBlackout},
		{method: "PUT", path: "/blackouts/{id}", id: "replace-blackout", tag: "blackouts", summary: "Replace a blackout",
			body: BlackoutRequest{}, answer: blackout, serve: h.replaceBlackout},
		{method: "DELETE", path: "/blackouts/{id}", id: "delete-blackout", tag: "blackouts", summary: "Delete a blackout; answers with what it was",
			answer: blackout, serve: h.deleteBlackout},

		{method: "GET", path: "/queues", id: "list-queues", tag: "queues", summary: "List the queues that have settings, or tasks that are not finished, by name",
			answer: Items[dts.Queue]{}, serve: h.listQueues},
		{method: "GET", path: "/queues/{name}", id: "get-queue", tag: "queues", summary: "Get a queue: its settings, and what goes on in it", answer: queue, serve: h.getQueue},
		{method: "PUT", path: "/queues/{name}", id: "put-queue", tag: "queues", summary: "Give a queue settings, in the place of those that it has; whether it is paused stays",
			body: QueueRequest{}, answer: queue, errors: []int{conflict}, serve: h.putQueue},
		{method: "DELETE", path: "/queues/{name}", id: "delete-queue", tag: "queues", summary: "Take a queue's settings away, its pause too: what waits for them starts; answers with what it was",
			answer: queue, serve: h.deleteQueue},
		{method: "POST", path: "/queues/{name}/pause", id: "pause-queue", tag: "queues", summary: "Pause a queue: nothing of it starts; what runs goes on",
			body: QueuePauseRequest{}, bodyOptional: true, answer: queue, errors: []int{conflict}, serve: h.pauseQueue},
		{method: "POST", path: "/queues/{name}/resume", id: "resume-queue", tag: "queues", summary: "Resume a queue after a pause",
			answer: queue, errors: []int{conflict}, serve: h.resumeQueue},

		{method: "GET", path: "/retention", id: "get-retention", tag: "system", summary: "How long finished tasks are kept",
			answer: dts.RetentionState{}, serve: h.getRetention},
		{method: "PUT", path: "/retention", id: "put-retention", tag: "system", summary: "Set how long finished tasks are kept; what is left out is as the server was started with",
			body: dts.Retention{}, answer: dts.RetentionState{}, serve: h.putRetention},

		{method: "GET", path: "/events", id: "watch-events", tag: "system", summary: "Events as they happen: created, changed, started, warning, finished, skipped, deleted (each an Event)",
			params: eventParams, events: []any{dts.Event{}}, errors: []int{503}, stream: h.events},
		{method: "GET", path: "/backup", id: "get-backup", tag: "system", summary: "A copy of the whole database as of now, a SQLite file; needs an admin's token",
			media: backupType, errors: []int{403, conflict, 503, 507}, stream: h.backup},
		{method: "POST", path: "/login-links", id: "create-login-link", tag: "system", summary: "Make a link that signs a browser in, once",
			status: 201, answer: LoginLink{}, serve: h.createLoginLink},
		{method: "POST", path: "/reload", id: "reload", tag: "system", summary: "Let this node read its settings again; answers with what has changed. Settings with a mistake change nothing",
			answer: Reloaded{}, errors: []int{conflict}, serve: h.reload},
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
		{"name_prefix", "query", "the name begins so", text("")},
		{"error", "query", "last_error contains this; a to z match A to Z", text("")},
		{"label", "query", "name=value; repeat it to ask for several", text("")},
		{"created_by", "query", "", text("")},
		{"recurring_task_id", "query", "", text("")},
		{"batch_id", "query", "", text("")},
		{"workflow_id", "query", "steps of this run of a workflow", text("")},
		{"dedupe_key", "query", "", text("")},
		{"concurrency_key", "query", "", text("")},
		{"waits_for", "query", "PENDING tasks that this keeps from starting: OVERLAP, BLACKOUT, CONCURRENCY, QUEUE or PAUSED", text("")},
		{"from", "query", "run_at at or after this; due_at of a task that is paused", instant},
		{"to", "query", "run_at before this; due_at of a task that is paused", instant},
		limitParam(100), cursorParam,
	}
	recurringListParams = []param{
		{"status", "query", "one or more of ACTIVE, PAUSED, COMPLETED, CANCELLED, with commas or repeated", text("")},
		{"name", "query", "exact", text("")},
		limitParam(100), cursorParam,
	}
	whyParams      = []param{{"at", "query", "the instant; without an offset it is local time of the schedule. Default: the latest that did not run, else the last", text("")}}
	conflictParams = []param{{"from", "query", "default: now", instant}, {"to", "query", "default: 7 days after from; at most 31", instant}}
	windowParams   = []param{
		{"from", "query", "default: now; without an offset it is local time in time_zone", text("")},
		{"to", "query", "default: 31 days after from; at most 366", text("")},
		{"time_zone", "query", "IANA name, in which days are read; default: that of the calendar", text("")},
	}
	calendarFileParams = []param{
		{"time_zone", "query", "with an .ics file: the zone of its local times", text("")},
		{"description", "query", "with an .ics file", text("")},
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
