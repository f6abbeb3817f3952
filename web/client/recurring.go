package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"dts"
	"dts/web/api"
)

// CreateRecurring creates a recurring task. Existed tells that the idempotency key had been used for the
// same one.
func (c *Client) CreateRecurring(ctx context.Context, q api.RecurringRequest) (dts.Created[*dts.RecurringTask], error) {
	var r dts.RecurringTask
	status, err := c.do(ctx, "POST", "/recurring-tasks", nil, q, &r)
	return dts.Created[*dts.RecurringTask]{Item: &r, Existed: status == http.StatusOK}, err
}

// RecurringTask returns a recurring task.
func (c *Client) RecurringTask(ctx context.Context, id string) (*dts.RecurringTask, error) {
	return get[dts.RecurringTask](ctx, c, "GET", recurringPath(id, ""), nil, nil)
}

// ModifyRecurring changes a recurring task and replans it.
func (c *Client) ModifyRecurring(ctx context.Context, id string, p api.RecurringPatch) (*dts.RecurringTask, error) {
	return get[dts.RecurringTask](ctx, c, "PATCH", recurringPath(id, ""), nil, p)
}

// CancelRecurring cancels a recurring task; its history stays.
func (c *Client) CancelRecurring(ctx context.Context, id string) (*dts.RecurringTask, error) {
	return get[dts.RecurringTask](ctx, c, "DELETE", recurringPath(id, ""), nil, nil)
}

// PauseRecurring pauses a recurring task.
func (c *Client) PauseRecurring(ctx context.Context, id string, q api.PauseRequest) (*dts.RecurringTask, error) {
	return get[dts.RecurringTask](ctx, c, "POST", recurringPath(id, "/pause"), nil, q)
}

// Resume ends a pause. With catchUp the instants of the pause are made up for, as the catch-up mode says.
func (c *Client) Resume(ctx context.Context, id string, catchUp bool) (*dts.RecurringTask, error) {
	return get[dts.RecurringTask](ctx, c, "POST", recurringPath(id, "/resume"), nil, api.ResumeRequest{CatchUp: catchUp})
}

// Backfill replays a past window: it makes a task for each instant in it, or only counts them.
func (c *Client) Backfill(ctx context.Context, id string, q api.BackfillRequest) (*dts.BackfillAnswer, error) {
	return get[dts.BackfillAnswer](ctx, c, "POST", recurringPath(id, "/backfill"), nil, q)
}

// WhyInstant says why an instant did or did not run. The zero time is the latest that did not, else the last one.
func (c *Client) WhyInstant(ctx context.Context, id string, at time.Time) (*dts.Why, error) {
	q := url.Values{}
	setTime(q, "at", at)
	return get[dts.Why](ctx, c, "GET", recurringPath(id, "/why"), q, nil)
}

// TriggerRecurring runs the template once, now.
func (c *Client) TriggerRecurring(ctx context.Context, id string) (*dts.Task, error) {
	return get[dts.Task](ctx, c, "POST", recurringPath(id, "/trigger-now"), nil, nil)
}

// RecurringTasks returns one page of the recurring tasks that match. The filter's TenantID is not used.
func (c *Client) RecurringTasks(ctx context.Context, f dts.RecurringFilter) (dts.Page[*dts.RecurringTask], error) {
	q := url.Values{}
	for _, s := range f.Statuses {
		q.Add("status", string(s))
	}
	set(q, "name", f.Name)
	return list[*dts.RecurringTask](ctx, c, "/recurring-tasks", q, f.Cursor, f.Limit)
}

// AllRecurringTasks goes through all recurring tasks that match, page by page. It ends after the first error.
func (c *Client) AllRecurringTasks(ctx context.Context, f dts.RecurringFilter) iter.Seq2[*dts.RecurringTask, error] {
	return pages(f.Cursor, func(cursor string) (dts.Page[*dts.RecurringTask], error) {
		f.Cursor = cursor
		return c.RecurringTasks(ctx, f)
	})
}

// Upcoming returns the planned occurrences, soonest first; limit 0 is the server's choice.
func (c *Client) Upcoming(ctx context.Context, id string, limit int) ([]*dts.Task, error) {
	q := url.Values{}
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return items[*dts.Task](ctx, c, recurringPath(id, "/upcoming"), q)
}

// Pings returns the ping URL of a PING, and what its job has reported, newest first.
func (c *Client) Pings(ctx context.Context, id string) (*api.PingsAnswer, error) {
	return get[api.PingsAnswer](ctx, c, "GET", recurringPath(id, "/pings"), nil, nil)
}

// Occurrences returns one page of the ledger, newest first.
func (c *Client) Occurrences(ctx context.Context, id, cursor string, limit int) (dts.Page[dts.Occurrence], error) {
	return list[dts.Occurrence](ctx, c, recurringPath(id, "/occurrences"), url.Values{}, cursor, limit)
}

// AllOccurrences goes through the whole ledger, newest first. It ends after the first error.
func (c *Client) AllOccurrences(ctx context.Context, id string) iter.Seq2[dts.Occurrence, error] {
	return pages("", func(cursor string) (dts.Page[dts.Occurrence], error) {
		return c.Occurrences(ctx, id, cursor, 0)
	})
}

// Preview describes a schedule and lists its next instants with what becomes of them.
func (c *Client) Preview(ctx context.Context, q api.PreviewRequest) (*dts.Preview, error) {
	return get[dts.Preview](ctx, c, "POST", "/schedules/preview", nil, q)
}

func recurringPath(id, rest string) string { return "/recurring-tasks/" + url.PathEscape(id) + rest }
