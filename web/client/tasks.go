package client

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"dts"
	"dts/web/api"
)

// CreateTask creates a task. Existed tells that the idempotency key had been used for the same task.
func (c *Client) CreateTask(ctx context.Context, q api.TaskRequest) (dts.Created[*dts.Task], error) {
	var t dts.Task
	status, err := c.do(ctx, "POST", "/tasks", nil, q, &t)
	return dts.Created[*dts.Task]{Item: &t, Existed: status == http.StatusOK}, err
}

// CreateTasks creates up to dts.MaxBulk tasks, all or none.
func (c *Client) CreateTasks(ctx context.Context, tasks []api.TaskRequest) (*api.BulkAnswer, error) {
	return get[api.BulkAnswer](ctx, c, "POST", "/tasks/bulk", nil, api.BulkRequest{Tasks: tasks})
}

// Bulk does a verb to the tasks that a filter selects, by its IDs or by its other fields, or counts them. The filter's TenantID
// and the Actor are not used.
func (c *Client) Bulk(ctx context.Context, b dts.BulkChange) (dts.BulkResult, error) {
	q := api.BulkVerbRequest{IDs: b.Filter.IDs, DryRun: b.DryRun}
	if f := &b.Filter; len(f.IDs) == 0 {
		q.Filter = &api.TaskFilter{Statuses: f.Statuses, Queue: f.Queue, Name: f.Name, NamePrefix: f.NamePrefix, Error: f.Error, Labels: f.Labels,
			CreatedBy: f.CreatedBy, RecurringTaskID: f.RecurringTaskID, BatchID: f.BatchID, WorkflowID: f.WorkflowID, DedupeKey: f.DedupeKey, ConcurrencyKey: f.ConcurrencyKey,
			WaitsFor: f.WaitsFor, From: timeText(f.From), To: timeText(f.To)}
	}
	var r dts.BulkResult
	_, err := c.do(ctx, "POST", "/tasks/bulk-"+string(b.Verb), nil, q, &r)
	return r, err
}

func timeText(at time.Time) (t api.TimeText) {
	if !at.IsZero() {
		t.Text = at.UTC().Format(time.RFC3339Nano)
	}
	return t
}

// Batch counts the tasks of a bulk request.
func (c *Client) Batch(ctx context.Context, id string) (*dts.Batch, error) {
	return get[dts.Batch](ctx, c, "GET", "/batches/"+url.PathEscape(id), nil, nil)
}

// Task returns a task.
func (c *Client) Task(ctx context.Context, id string) (*dts.Task, error) {
	return get[dts.Task](ctx, c, "GET", taskPath(id, ""), nil, nil)
}

// ModifyTask changes a pending task.
func (c *Client) ModifyTask(ctx context.Context, id string, p api.TaskPatch) (*dts.Task, error) {
	return get[dts.Task](ctx, c, "PATCH", taskPath(id, ""), nil, p)
}

// DoTask applies a verb but Modify. A deleted task is returned as it was.
func (c *Client) DoTask(ctx context.Context, id string, v dts.Verb) (*dts.Task, error) {
	if v == dts.Delete {
		return get[dts.Task](ctx, c, "DELETE", taskPath(id, ""), nil, nil)
	}
	return get[dts.Task](ctx, c, "POST", taskPath(id, "/"+string(v)), nil, nil)
}

// WhyTask says why a task did or did not run.
func (c *Client) WhyTask(ctx context.Context, id string) (*dts.Why, error) {
	return get[dts.Why](ctx, c, "GET", taskPath(id, "/why"), nil, nil)
}

// Tasks returns one page of the tasks that match. The filter's TenantID, IDs, NotPaused and EndedBefore are not used.
func (c *Client) Tasks(ctx context.Context, f dts.TaskFilter) (dts.Page[*dts.Task], error) {
	q := url.Values{}
	for _, s := range f.Statuses {
		q.Add("status", string(s))
	}
	for k, v := range f.Labels {
		q.Add("label", k+"="+v)
	}
	set(q, "queue", f.Queue)
	set(q, "name", f.Name)
	set(q, "name_prefix", f.NamePrefix)
	set(q, "error", f.Error)
	set(q, "created_by", f.CreatedBy)
	set(q, "recurring_task_id", f.RecurringTaskID)
	set(q, "batch_id", f.BatchID)
	set(q, "workflow_id", f.WorkflowID)
	set(q, "dedupe_key", f.DedupeKey)
	set(q, "concurrency_key", f.ConcurrencyKey)
	set(q, "waits_for", string(f.WaitsFor))
	setTime(q, "from", f.From)
	setTime(q, "to", f.To)
	return list[*dts.Task](ctx, c, "/tasks", q, f.Cursor, f.Limit)
}

// AllTasks goes through all tasks that match, page by page. It ends after the first error.
func (c *Client) AllTasks(ctx context.Context, f dts.TaskFilter) iter.Seq2[*dts.Task, error] {
	return pages(f.Cursor, func(cursor string) (dts.Page[*dts.Task], error) {
		f.Cursor = cursor
		return c.Tasks(ctx, f)
	})
}

// Attempts returns a task's attempts, first one first.
func (c *Client) Attempts(ctx context.Context, id string) ([]*dts.Attempt, error) {
	return items[*dts.Attempt](ctx, c, taskPath(id, "/attempts"), nil)
}

// Output returns what an attempt has printed, as text; attempt 0 is the newest.
func (c *Client) Output(ctx context.Context, id string, attempt int) (*api.OutputAnswer, error) {
	return get[api.OutputAnswer](ctx, c, "GET", taskPath(id, "/output"), attemptQuery(attempt), nil)
}

// WriteOutput writes what an attempt has printed to w, byte by byte; attempt 0 is the newest. Where the
// middle is not kept, a line says how much is missing.
func (c *Client) WriteOutput(ctx context.Context, w io.Writer, id string, attempt int) error {
	resp, err := c.send(ctx, "GET", taskPath(id, "/output"), attemptQuery(attempt), "text/plain", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(w, &limitedReader{r: resp.Body, left: maxAnswer})
	return err
}

func taskPath(id, rest string) string { return "/tasks/" + url.PathEscape(id) + rest }

func attemptQuery(attempt int) url.Values {
	q := url.Values{}
	if attempt > 0 {
		q.Set("attempt", strconv.Itoa(attempt))
	}
	return q
}

// get sends a request and returns its decoded answer.
func get[T any](ctx context.Context, c *Client, method, path string, q url.Values, in any) (*T, error) {
	var out T
	if _, err := c.do(ctx, method, path, q, in, &out); err != nil {
		return nil, err
	}
	return &out, nil
}

// list gets one page.
func list[T any](ctx context.Context, c *Client, path string, q url.Values, cursor string, limit int) (dts.Page[T], error) {
	set(q, "cursor", cursor)
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	p, err := get[api.Page[T]](ctx, c, "GET", path, q, nil)
	if err != nil {
		return dts.Page[T]{}, err
	}
	return dts.Page[T]{Items: p.Items, Next: p.NextCursor}, nil
}

// items gets a list that comes whole.
func items[T any](ctx context.Context, c *Client, path string, q url.Values) ([]T, error) {
	l, err := get[api.Items[T]](ctx, c, "GET", path, q, nil)
	if err != nil {
		return nil, err
	}
	return l.Items, nil
}

// pages yields the items of one page after the other.
func pages[T any](cursor string, next func(cursor string) (dts.Page[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			p, err := next(cursor)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range p.Items {
				if !yield(item, nil) {
					return
				}
			}
			if cursor = p.Next; cursor == "" {
				return
			}
		}
	}
}

func set(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}

func setTime(q url.Values, name string, at time.Time) {
	if !at.IsZero() {
		q.Set(name, at.UTC().Format(time.RFC3339Nano))
	}
}
