package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dts"
)

// scanLimit is how many rows one page of a list may look at.
const scanLimit = 20_000

// InsertTasks inserts new tasks, all or none. A task whose idempotency key is taken by the same request is
// answered with the task that exists; by another request, the whole call is an ErrConflict. A task whose dedupe_key an
// unfinished task has is answered with that one where its policy is KEEP_FIRST; else the whole call is an ErrConflict that
// wraps a *dts.Duplicate. The fence must hold the shards: of a server that is alone only those of tasks that it has
// claimed (PickedAt is set). What one depends on must be there, or be among the tasks, else it is a dts.ErrInvalid; of
// those that depend on something it sets what became of them at once.
func (s *Store) InsertTasks(ctx context.Context, f dts.Fence, tasks []*dts.Task) ([]dts.Created[*dts.Task], error) {
	out := make([]dts.Created[*dts.Task], len(tasks))
	for i, t := range tasks {
		out[i] = dts.Created[*dts.Task]{Item: t}
	}
	for try, left := 1, tasks; ; try++ {
		if err := s.insertAll(ctx, f, left); err != nil {
			return nil, err
		}
		missing, err := s.firsts(ctx, tasks, out)
		switch {
		case err != nil:
			return nil, writtenUnread(err)
		case len(missing) > 0 && try == insertTries:
			return nil, dts.Errorf(dts.ErrUnknown, "tasks with the dedupe_key %q come and go; ask again", missing[0].DedupeKey)
		case len(missing) > 0:
			left = missing
			continue
		}
		break
	}
	for i, t := range tasks {
		if t.IdempotencyKey == "" {
			continue
		}
		owner, err := s.keyOwner(ctx, t.TenantID, t.IdempotencyKey)
		if err != nil {
			return nil, writtenUnread(err)
		}
		if owner == t.ID {
			continue
		}
		first, err := s.Task(ctx, t.TenantID, owner)
		if err != nil {
			return nil, keyOutlived(err, t.IdempotencyKey)
		}
		out[i] = dts.Created[*dts.Task]{Item: first, Existed: true}
	}
	return out, nil
}

func (s *Store) insertAll(ctx context.Context, f dts.Fence, tasks []*dts.Task) error {
	batch := make([]Stmt, 0, len(tasks)+1)
	var fenced []int
	if !f.Alone {
		fenced = f.Terms.Held().List() // all of them: so the fences of many callers are one
	}
	var keys []string
	for _, t := range tasks {
		if !t.PickedAt.IsZero() || !f.Alone && f.Term(t.Shard) == 0 {
			fenced = append(fenced, t.Shard)
		}
		if t.IdempotencyKey != "" {
			keys = append(keys, t.IdempotencyKey)
		}
		batch = appendTask(batch, t)
	}
	edges, rippling := newEdges(tasks)
	batch = append(batch, edges...)
	if fenced != nil {
		batch = append(batch, fence(f, claims(f, fenced...)))
		if rippling > 0 {
			rippling++
		}
	}
	res, err := s.apply(ctx, "insert tasks", batch...)
	s.rippled(res, rippling, err)
	if err == nil {
		if err = s.readResolved(ctx, tasks); err != nil {
			return writtenUnread(err)
		}
		return nil
	}
	if !refusedBefore(err, len(batch)-1, fenced == nil) {
		return err
	}
	if dup := s.duplicate(ctx, err, batch, tasks); dup != nil {
		return dup
	}
	if edges != nil {
		if missing := s.missingParent(ctx, tasks); missing != nil {
			return missing
		}
	}
	if len(keys) > 0 {
		return keyConflict(err, keys)
	}
	return err
}

// refusedBefore reports whether a batch was refused by another statement than its last, the fence, if it had one.
func refusedBefore(err error, last int, unfenced bool) bool {
	refused, is := errors.AsType[*RefusedError](err)
	return is && (unfenced || refused.Index != last)
}

// claimKey takes an idempotency key for a resource, and asserts that it is not taken by another request.
func claimKey(tenant, key, hash, id string, now int64) []Stmt {
	return []Stmt{
		{`INSERT INTO idempotency_keys (tenant_id, key, request_hash, resource_id, created_at) VALUES (?,?,?,?,?)
			ON CONFLICT DO NOTHING`, []any{tenant, key, hash, id, now}},
		{`INSERT INTO batch_assert (tenant_id, ok) SELECT tenant_id, NULL FROM idempotency_keys
			WHERE tenant_id = ? AND key = ? AND request_hash <> ?`, []any{tenant, key, hash}},
	}
}

func (s *Store) keyOwner(ctx context.Context, tenant, key string) (id string, err error) {
	_, err = s.one(ctx, "read idempotency key", Stmt{
		`SELECT resource_id FROM idempotency_keys WHERE tenant_id = ? AND key = ?`, []any{tenant, key}}, &id)
	return id, err
}

// writtenUnread is the error of a write that was applied when it cannot be read whose key won: to the caller, its
// outcome is unknown.
func writtenUnread(err error) error {
	e := dts.Errorf(dts.ErrUnknown, "the outcome of the write is unknown: ask again with the same idempotency key")
	e.Err = err
	return e
}

func keyConflict(err error, keys []string) error {
	e := dts.Errorf(dts.ErrConflict, "the idempotency key %s was used before with another request", quoteSome(keys))
	e.Err = err
	return e
}

func keyOutlived(err error, key string) error {
	if dts.CodeOf(err) == dts.ErrNotFound {
		return dts.Errorf(dts.ErrConflict, "the idempotency key %q was used before, and what it made has been deleted since", key)
	}
	return writtenUnread(err)
}

func quoteSome(keys []string) string {
	if len(keys) == 1 {
		return strconv.Quote(keys[0])
	}
	return fmt.Sprintf("of at least one of %d tasks", len(keys))
}

// Task returns one task, or ErrNotFound.
func (s *Store) Task(ctx context.Context, tenant, id string) (*dts.Task, error) {
	var t *dts.Task
	err := s.query(ctx, "read task", OwnWrites, Stmt{selectTask + `WHERE task_id = ? AND tenant_id = ?`, []any{id, tenant}},
		func(r scanner) (err error) { t, err = scanTask(r); return err })
	if err == nil && t == nil {
		err = dts.Errorf(dts.ErrNotFound, "there is no task %s", id)
	}
	return t, err
}

// TasksByID returns those of the tasks that exist, in no particular order.
func (s *Store) TasksByID(ctx context.Context, ids []string) ([]*dts.Task, error) {
	return s.tasks(ctx, "read tasks", Stmt{selectTask + `WHERE task_id IN (SELECT value FROM json_each(?))`, []any{jsonOf(ids)}})
}

func (s *Store) tasks(ctx context.Context, op string, st Stmt) (list []*dts.Task, err error) {
	err = s.query(ctx, op, OwnWrites, st, func(r scanner) error {
		t, err := scanTask(r)
		list = append(list, t)
		return err
	})
	return list, err
}

// Tasks lists tasks, newest first. A page looks at a bounded number of rows, so it can be short, even
// empty, and still have a Next.
func (s *Store) Tasks(ctx context.Context, f dts.TaskFilter) (dts.Page[*dts.Task], error) {
	var page dts.Page[*dts.Task]
	before, err := parseCursor(f.Cursor)
	if err != nil {
		return page, err
	}
	window, args := narrow(f, before)
	if window == "" {
		return s.newestTasks(ctx, f, before)
	}
	list, err := s.filterTasks(ctx, f, `seq IN (`+window+`)`, args)
	if err != nil || len(list) > f.Limit {
		return fullPage(list, f.Limit), err
	}
	page.Items = list
	if len(f.IDs) > 0 {
		return page, nil
	}
	// Did the window end before the table did?
	var n, last int64
	if _, err := s.one(ctx, "list tasks", Stmt{`SELECT count(*), coalesce(min(seq), 0) FROM (` + window + `)`, args}, &n, &last); err != nil {
		return page, err
	}
	if n == scanLimit {
		page.Next = formatCursor(last)
	}
	return page, nil
}

// narrow returns a query for the next scanLimit rows, as seq, that an index finds for a filter: its window. The filter
// applies inside it. "" where no index fits.
func narrow(f dts.TaskFilter, before int64) (window string, args []any) {
	switch {
	case len(f.IDs) > 0:
		return `SELECT seq FROM tasks WHERE task_id IN (SELECT value FROM json_each(?)) AND seq < ?`, []any{jsonOf(f.IDs), before}
	case f.BatchID != "":
		return `SELECT seq FROM tasks WHERE batch_id = ? AND seq < ? ORDER BY seq DESC LIMIT ?`, []any{f.BatchID, before, scanLimit}
	case f.WorkflowID != "":
		return `SELECT seq FROM tasks WHERE workflow_id = ? AND seq < ? ORDER BY seq DESC LIMIT ?`, []any{f.WorkflowID, before, scanLimit}
	case f.RecurringTaskID != "":
		return `SELECT seq FROM tasks WHERE recurring_task_id = ? AND seq < ? ORDER BY seq DESC LIMIT ?`, []any{f.RecurringTaskID, before, scanLimit}
	case f.WaitsFor != "":
		return `SELECT seq FROM tasks WHERE waits_for = ? AND status = 'PENDING' AND seq < ? ORDER BY seq DESC LIMIT ?`, []any{string(f.WaitsFor), before, scanLimit}
	case len(f.Statuses) == 1 && rare(f.Statuses[0]):
		return `SELECT seq FROM tasks WHERE status = ? AND status <> 'PENDING' AND status <> 'SUCCESS' AND seq < ? ORDER BY seq DESC LIMIT ?`,
			[]any{string(f.Statuses[0]), before, scanLimit}
	}
	return "", nil
}

// CountTasks counts the tasks that a filter selects, looking at a bounded number of rows at a time.
func (s *Store) CountTasks(ctx context.Context, f dts.TaskFilter) (count int, err error) {
	where, more := taskWhere(f)
	for before := maxSeq; ; {
		window, args := narrow(f, before)
		if window == "" {
			var newest int64
			if _, err := s.one(ctx, "count tasks", Stmt{`SELECT coalesce(max(seq), 0) FROM tasks WHERE seq < ?`, []any{before}}, &newest); err != nil || newest == 0 {
				return count, err
			}
			window, args = `SELECT seq FROM tasks WHERE seq > ? AND seq <= ?`, []any{newest - scanLimit, newest}
		}
		var n int
		var seen, last int64
		if _, err := s.one(ctx, "count tasks", Stmt{`WITH w AS MATERIALIZED (` + window + `)
			SELECT (SELECT count(*) FROM tasks WHERE seq IN (SELECT seq FROM w)` + where + `), (SELECT count(*) FROM w), (SELECT coalesce(min(seq), 0) FROM w)`,
			slices.Concat(args, more)}, &n, &seen, &last); err != nil {
			return count, err
		}
		count += n
		if seen == 0 || len(f.IDs) > 0 {
			return count, nil
		}
		before = last
	}
}

// newestTasks lists tasks that no index finds. Its window is a range of seq, which holds at most as many rows as
// it is wide: the read then ends with the page, where a window of rows would first be read whole.
func (s *Store) newestTasks(ctx context.Context, f dts.TaskFilter, before int64) (page dts.Page[*dts.Task], err error) {
	var newest int64
	if _, err := s.one(ctx, "list tasks", Stmt{`SELECT coalesce(max(seq), 0) FROM tasks WHERE seq < ?`, []any{before}}, &newest); err != nil {
		return page, err
	}
	end := newest - scanLimit
	list, err := s.filterTasks(ctx, f, `seq > ? AND seq <= ?`, []any{end, newest})
	if err != nil || len(list) > f.Limit {
		return fullPage(list, f.Limit), err
	}
	page.Items = list
	var more bool
	if _, err := s.one(ctx, "list tasks", Stmt{`SELECT EXISTS (SELECT 1 FROM tasks WHERE seq <= ?)`, []any{end}}, &more); err != nil {
		return page, err
	}
	if more {
		page.Next = formatCursor(end + 1)
	}
	return page, nil
}

// filterTasks lists the tasks in a window that match, one more than the page holds.
func (s *Store) filterTasks(ctx context.Context, f dts.TaskFilter, window string, args []any) ([]*dts.Task, error) {
	where, more := taskWhere(f)
	args = append(slices.Clone(args), more...)
	return s.tasks(ctx, "list tasks", Stmt{selectTask + `WHERE ` + window + where + ` ORDER BY seq DESC LIMIT ?`, append(args, f.Limit+1)})
}

// fullPage makes a page of a list that holds more than that.
func fullPage(list []*dts.Task, limit int) (page dts.Page[*dts.Task]) {
	if len(list) > limit {
		page.Items, page.Next = list[:limit], formatCursor(list[limit-1].Seq)
	}
	return page
}

func rare(s dts.Status) bool { return s != dts.Pending && s != dts.Success }

// likeEscaper makes a text of a LIKE pattern with ESCAPE '\' mean itself.
var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// taskWhere is the filter as conditions. Its text depends only on which fields are set.
func taskWhere(f dts.TaskFilter) (where string, args []any) {
	var b strings.Builder
	and := func(cond string, a ...any) {
		b.WriteString(" AND ")
		b.WriteString(cond)
		args = append(args, a...)
	}
	and("tenant_id = ?", f.TenantID)
	if len(f.Statuses) > 0 {
		and("status IN (SELECT value FROM json_each(?))", jsonOf(f.Statuses))
	}
	if f.Queue != "" {
		and("queue = ?", f.Queue)
	}
	if f.Name != "" {
		and("name = ?", f.Name)
	}
	if f.NamePrefix != "" {
		and("substr(name, 1, length(?)) = ?", f.NamePrefix, f.NamePrefix)
	}
	if f.Error != "" {
		and(`last_error LIKE ? ESCAPE '\'`, "%"+likeEscaper.Replace(f.Error)+"%")
	}
	if f.CreatedBy != "" {
		and("created_by = ?", f.CreatedBy)
	}
	if f.RecurringTaskID != "" {
		and("recurring_task_id = ?", f.RecurringTaskID)
	}
	if f.BatchID != "" {
		and("batch_id = ?", f.BatchID)
	}
	if f.WorkflowID != "" {
		and("workflow_id = ?", f.WorkflowID)
	}
	if f.NoSteps {
		and("(workflow_id IS NULL OR NOT EXISTS (SELECT 1 FROM tasks AS r WHERE r.task_id = tasks.workflow_id))")
	}
	if f.DedupeKey != "" {
		and("dedupe_key = ?", f.DedupeKey)
	}
	if f.ConcurrencyKey != "" {
		and("CASE WHEN json_valid(spec) THEN spec ->> '$.concurrency_key' END = ?", f.ConcurrencyKey)
	}
	if f.WaitsFor != "" { // what has started since still has it: see scanTask
		and("waits_for = ? AND status = 'PENDING' AND (attempts = 0 OR run_at IS NOT next_attempt_at)", string(f.WaitsFor))
	}
	if f.NotPaused {
		and("(waits_for IS NOT 'PAUSED' OR status <> 'PENDING')")
	}
	const at = "CASE WHEN waits_for IS 'PAUSED' THEN due_at ELSE run_at END"
	if !f.From.IsZero() {
		and(at+" >= ?", f.From.UnixMicro())
	}
	if !f.To.IsZero() {
		and(at+" < ?", f.To.UnixMicro())
	}
	if !f.EndedBefore.IsZero() {
		and("completed_at < ?", f.EndedBefore.UnixMicro())
	}
	if len(f.Labels) > 0 {
		and(`NOT EXISTS (SELECT 1 FROM json_each(?) AS want WHERE NOT EXISTS (
			SELECT 1 FROM json_each(iif(json_valid(tasks.labels), tasks.labels, '{}')) AS has WHERE has.key = want.key AND has.value = want.value))`, jsonOf(f.Labels))
	}
	return b.String(), args
}

const maxSeq = int64(1) << 53

func parseCursor(c string) (int64, error) {
	if c == "" {
		return maxSeq, nil
	}
	n, err := strconv.ParseInt(c, 36, 64)
	if err != nil || n < 0 || n > maxSeq {
		return 0, dts.Invalid("cursor", "is not one that a page gave as next_cursor")
	}
	return n, nil
}

func formatCursor(seq int64) string { return strconv.FormatInt(seq, 36) }

// ofTenant is the condition that a task is of tenant ?1. Where there is one tenant only, as on most servers, the row
// is not fetched to see it: the index alone answers.
const ofTenant = `((SELECT count(*) FROM (SELECT 1 FROM tenants LIMIT 2)) < 2 OR tenant_id = ?1)`

// Counts counts a tenant's unfinished and failed tasks, each up to 10,000.
func (s *Store) Counts(ctx context.Context, tenant string) (dts.Counts, error) {
	const limit = 10_000
	var c dts.Counts
	_, err := s.one(ctx, "count tasks", Stmt{`SELECT
		(SELECT count(*) FROM (SELECT 1 FROM tasks WHERE status = 'PENDING' AND unresolved_dependencies_count = 0 AND ` + ofTenant + ` LIMIT ?2)),
		(SELECT count(*) FROM (SELECT 1 FROM tasks WHERE status = 'RUNNING' AND status <> 'PENDING' AND status <> 'SUCCESS' AND ` + ofTenant + ` LIMIT ?2)),
		(SELECT count(*) FROM (SELECT 1 FROM tasks WHERE status = 'FAILED' AND status <> 'PENDING' AND status <> 'SUCCESS' AND ` + ofTenant + ` LIMIT ?2))`,
		[]any{tenant, limit}}, &c.Pending, &c.Running, &c.Failed)
	c.Capped = max(c.Pending, c.Running, c.Failed) == limit
	return c, err
}

// Attempts returns a task's attempts, the first one first.
func (s *Store) Attempts(ctx context.Context, tenant, taskID string) (list []*dts.Attempt, err error) {
	err = s.query(ctx, "read attempts", OwnWrites, Stmt{selectAttempt + `WHERE task_id = ? AND tenant_id = ? ORDER BY number`, []any{taskID, tenant}},
		func(r scanner) error {
			a, err := scanAttempt(r)
			list = append(list, a)
			return err
		})
	return list, err
}

// Output returns what an attempt printed; ErrNotFound when nothing was kept.
func (s *Store) Output(ctx context.Context, tenant, taskID string, number int) (*dts.Output, error) {
	var o dts.Output
	found, err := s.one(ctx, "read output", Stmt{
		`SELECT head, tail, total FROM outputs WHERE task_id = ? AND number = ? AND tenant_id = ?`, []any{taskID, number, tenant}},
		&o.Head, &o.Tail, &o.Total)
	if err == nil && !found {
		err = dts.Errorf(dts.ErrNotFound, "attempt %d of task %s has no output", number, taskID)
	}
	return &o, err
}
