package api

import (
	"time"

	"dts"
)

// RecurringTask is the recurring task that the request asks for, with its defaults, as POST /recurring-tasks would make it at a
// time; its error is the one that it would answer. What only a server knows is not checked: whether its calendars exist.
func (q *RecurringRequest) RecurringTask(now time.Time) (*dts.RecurringTask, error) {
	return q.recurringTask(dts.DefaultTenant, "", now)
}

// Task is the task that the request asks for, with its defaults, as POST /tasks would make it at a time; its error is the one
// that it would answer.
func (q *TaskRequest) Task(now time.Time) (*dts.Task, error) {
	return q.task(dts.DefaultTenant, "", now, nil)
}

// Calendar is the calendar that the request asks for. What is in its days, expressions and file is not checked.
func (q *CalendarRequest) Calendar() (*dts.Calendar, error) { return q.calendar(dts.DefaultTenant) }

// Queue is the queue of a name that the request asks for, with its defaults.
func (q *QueueRequest) Queue(name string) (*dts.Queue, error) {
	n := &dts.Queue{TenantID: dts.DefaultTenant, Name: name, Concurrency: q.Concurrency,
		Rate: q.Rate, PeriodSeconds: float64(q.PeriodSeconds), Burst: q.Burst, Retry: q.Retry, Retention: q.Retention}
	return n, n.Normalize()
}

// DidYouMean suggests the name that is close to a wrong one: "; did you mean queue?", or "" where none is.
func DidYouMean(wrong string, names []string) string { return didYouMean(wrong, names) }
