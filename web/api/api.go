// Package api is the REST API of dts: JSON over HTTP, RFC 3339 times, RFC 9457 problems, cursor pages, and
// an OpenAPI 3.1 document at /openapi.json.
//
// It promises that nothing wrong reaches the scheduler (every refusal names the field and says what would
// be right), that no text of an internal error and no submitted value leaves it, and that every body, list
// and stream has a limit. It reads through Store and changes things through Scheduler only, so a change can
// never race a fire. Who asks is decided before: see package auth.
package api

import (
	"context"
	"time"

	"dts"
)

// Store is what the API reads. Everything is limited to one tenant; what belongs to another one is
// dts.ErrNotFound.
type Store interface {
	// Task returns one task, or dts.ErrNotFound.
	Task(ctx context.Context, tenant, id string) (*dts.Task, error)
	// Tasks returns a page of the tasks that match, newest first.
	Tasks(ctx context.Context, f dts.TaskFilter) (dts.Page[*dts.Task], error)
	// Batch counts the tasks of a bulk request, or returns dts.ErrNotFound when none is stored.
	Batch(ctx context.Context, tenant, id string) (*dts.Batch, error)
	// Steps returns the tasks of a workflow's run, in the order of the workflow; none when it has not started.
	Steps(ctx context.Context, tenant, run string) ([]*dts.Task, error)
	// Attempts returns the attempts of a task, first one first.
	Attempts(ctx context.Context, tenant, taskID string) ([]*dts.Attempt, error)
	// Output returns what an attempt that has ended printed, or dts.ErrNotFound when nothing is kept.
	Output(ctx context.Context, tenant, taskID string, number int) (*dts.Output, error)
	// Graph returns what a task depends on and what depends on it, the limit tasks that are nearest, or dts.ErrNotFound.
	Graph(ctx context.Context, tenant, id string, limit int) (*dts.Graph, error)
	// RecurringTask returns one recurring task, or dts.ErrNotFound.
	RecurringTask(ctx context.Context, tenant, id string) (*dts.RecurringTask, error)
	// RecurringTasks returns a page of the recurring tasks that match, newest first.
	RecurringTasks(ctx context.Context, f dts.RecurringFilter) (dts.Page[*dts.RecurringTask], error)
	// Upcoming returns the planned PENDING occurrences, soonest first.
	Upcoming(ctx context.Context, tenant, recurringID string, limit int) ([]*dts.Task, error)
	// Occurrences returns a page of the ledger, newest first.
	Occurrences(ctx context.Context, tenant, recurringID, cursor string, limit int) (dts.Page[dts.Occurrence], error)
	// Pings returns the newest pings of a recurring task, newest first.
	Pings(ctx context.Context, tenant, recurringID string, limit int) ([]*dts.PingRecord, error)
	// Calendar returns one calendar, or dts.ErrNotFound.
	Calendar(ctx context.Context, tenant, name string) (*dts.Calendar, error)
	// Calendars returns all calendars, by name.
	Calendars(ctx context.Context, tenant string) ([]*dts.Calendar, error)
	// Blackout returns one blackout, or dts.ErrNotFound.
	Blackout(ctx context.Context, tenant, id string) (*dts.Blackout, error)
	// Blackouts returns all blackouts, the oldest first.
	Blackouts(ctx context.Context, tenant string) ([]*dts.Blackout, error)
	// Counts returns how many tasks of the tenant are in the states that people watch.
	Counts(ctx context.Context, tenant string) (dts.Counts, error)
}

// Scheduler is how the API changes things: the owner of the tasks' lives. Nil errors mean that the change
// is on disk.
type Scheduler interface {
	// CreateTasks creates all tasks or none. They are normalized already. An idempotency key that was used
	// with another task is dts.ErrConflict.
	CreateTasks(ctx context.Context, tasks []*dts.Task) ([]dts.Created[*dts.Task], error)
	// ModifyTask applies a patch to a pending task.
	ModifyTask(ctx context.Context, tenant, id string, p dts.TaskPatch) (*dts.Task, error)
	// DoTask applies a verb: cancel, retry, force-complete, run-now, pause, resume or delete. A deleted task is returned
	// as it was.
	DoTask(ctx context.Context, tenant, id string, v dts.Verb, actor string) (*dts.Task, error)
	// Bulk does a verb to the tasks that match, or counts them. The result counts what was done also where there is an error.
	Bulk(ctx context.Context, c dts.BulkChange) (dts.BulkResult, error)
	// AddDependencies makes a task that has not started depend on others, normalized already, and returns the graph. A circle,
	// or a task that has started, is dts.ErrConflict.
	AddDependencies(ctx context.Context, tenant, id string, list []dts.DependsOn) (*dts.Graph, error)
	// RemoveDependency lets a task that has not started not depend on another one. dts.ErrNotFound: it does not.
	RemoveDependency(ctx context.Context, tenant, id, parent string) (*dts.Graph, error)
	// CreateRecurring creates a recurring task, normalized already.
	CreateRecurring(ctx context.Context, r *dts.RecurringTask) (dts.Created[*dts.RecurringTask], error)
	// ModifyRecurring applies a patch and replans.
	ModifyRecurring(ctx context.Context, tenant, id string, p dts.RecurringPatch) (*dts.RecurringTask, error)
	// PauseRecurring pauses until it is resumed, or until the given time if that is not zero.
	PauseRecurring(ctx context.Context, tenant, id string, until time.Time, note, actor string) (*dts.RecurringTask, error)
	// ResumeRecurring ends a pause. With catchUp the instants of the pause are made up for, as the catch-up mode says.
	ResumeRecurring(ctx context.Context, tenant, id string, catchUp bool, actor string) (*dts.RecurringTask, error)
	// CancelRecurring removes the upcoming occurrences; the history stays and the status becomes CANCELLED.
	CancelRecurring(ctx context.Context, tenant, id, actor string) (*dts.RecurringTask, error)
	// TriggerRecurring runs the template once, now, beside the schedule.
	TriggerRecurring(ctx context.Context, tenant, id, actor string) (*dts.Task, error)
	// BackfillRecurring makes a task for each instant of a past window, or only says how many there would be.
	BackfillRecurring(ctx context.Context, tenant, id string, q dts.BackfillRequest, actor string) (*dts.BackfillAnswer, error)
	// CreateCalendar creates a calendar, normalized already. dts.ErrConflict: there is one of that name. A day, an
	// expression, a zone or a file that is wrong is a dts.ErrInvalid with fields.
	CreateCalendar(ctx context.Context, c *dts.Calendar) (*dts.Calendar, error)
	// ReplaceCalendar puts a calendar in the place of the one of that name, or returns dts.ErrNotFound, and replans what
	// uses it.
	ReplaceCalendar(ctx context.Context, c *dts.Calendar) (*dts.Calendar, error)
	// DeleteCalendar deletes a calendar. dts.ErrConflict: something uses it.
	DeleteCalendar(ctx context.Context, tenant, name string) error
	// CreateBlackout creates a blackout, normalized already.
	CreateBlackout(ctx context.Context, b *dts.Blackout) (*dts.Blackout, error)
	// ReplaceBlackout puts a blackout in the place of the one with its id, or returns dts.ErrNotFound. Who made it, and
	// when, stays.
	ReplaceBlackout(ctx context.Context, b *dts.Blackout) (*dts.Blackout, error)
	// DeleteBlackout deletes a blackout. What waited for its end is due again.
	DeleteBlackout(ctx context.Context, tenant, id string) error
	// Queues returns the queues that have settings, or tasks that are not finished, by name, and what goes on in them.
	Queues(ctx context.Context, tenant string) ([]*dts.Queue, error)
	// Queue returns one of them, or dts.ErrNotFound.
	Queue(ctx context.Context, tenant, name string) (*dts.Queue, error)
	// PutQueue gives a queue settings in the place of those that it has, and returns the queue as it is then. Whether it
	// is paused stays.
	PutQueue(ctx context.Context, q *dts.Queue) (*dts.Queue, error)
	// PauseQueue lets nothing of a queue start any more.
	PauseQueue(ctx context.Context, tenant, name, note string) (*dts.Queue, error)
	// ResumeQueue ends a pause. dts.ErrConflict: it is not paused.
	ResumeQueue(ctx context.Context, tenant, name string) (*dts.Queue, error)
	// DeleteQueue takes a queue's settings away, or returns dts.ErrNotFound.
	DeleteQueue(ctx context.Context, tenant, name string) error
	// Retention returns how long finished tasks are kept.
	Retention(ctx context.Context, tenant string) (*dts.RetentionState, error)
	// PutRetention sets how long, and returns what holds then. What is zero is as the server was started with.
	PutRetention(ctx context.Context, tenant string, r dts.Retention) (*dts.RetentionState, error)
	// Preview says what a schedule means and will do. The request is checked already, but for its calendars.
	Preview(ctx context.Context, tenant string, q dts.PreviewRequest) (*dts.Preview, error)
	// Conflicts returns the times between from and to in which more tasks will want to run than a limit lets.
	Conflicts(ctx context.Context, tenant string, from, to time.Time) ([]dts.Conflict, error)
	// Why says why a task did or did not run; or, where id is that of a recurring task, an instant of it. The zero time
	// is the latest instant that did not run, else the last one.
	Why(ctx context.Context, tenant, id string, at time.Time) (*dts.Why, error)
	// Status says how this node's scheduler is doing.
	Status() dts.SchedulerStatus
	// Ready returns nil, or why this node does not accept and fire tasks.
	Ready() error
	// Subscribe delivers the tenant's events from now on. The channel is bounded: it is closed when the
	// subscriber is too slow. The function ends the subscription and can be called more than once.
	Subscribe(tenant string) (<-chan dts.Event, func())
}

// Outputs gives access to the output of runs in progress on this node.
type Outputs interface {
	// Tail returns a reader of an attempt's output, and false when the attempt does not run here.
	Tail(taskID string, number int) (dts.Tail, bool)
}
