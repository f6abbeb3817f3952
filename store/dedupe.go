package store

import (
	"context"
	"errors"

	"dts"
)

// At most one unfinished task of a tenant has a dedupe_key: the index tasks_dedupe sees to it, whoever inserts. What
// becomes of a second one is decided in the batch that inserts it.

// isDupe finds the unfinished task with a dedupe_key, through that index.
const isDupe = `tenant_id = ? AND dedupe_key = ? AND (status = 'PENDING' OR status = 'RUNNING') `

const (
	// A task whose idempotency key belongs to another one is not inserted, and duplicates nothing.
	assertNoDupe = `INSERT INTO batch_assert (tenant_id, ok) SELECT 'system', NULL FROM tasks
		WHERE ` + isDupe + `AND task_id <> ?
		AND NOT EXISTS (SELECT 1 FROM idempotency_keys WHERE tenant_id = ? AND key = ? AND resource_id <> ?)`

	// The idempotency key of a task that is not inserted because there is one already is that one's.
	claimKeyOfFirst = `INSERT INTO idempotency_keys (tenant_id, key, request_hash, resource_id, created_at)
		SELECT ?, ?, ?, coalesce((SELECT task_id FROM tasks WHERE ` + isDupe + `), ?), ? WHERE true ON CONFLICT DO NOTHING`
)

// insertTries is how often a task is inserted anew because the one that was before it had ended when it was looked for.
const insertTries = 5

// keepsFirst reports whether a new task gives way to an unfinished one with its dedupe_key; else that one refuses it.
func keepsFirst(t *dts.Task) bool { return t.DedupeKey != "" && t.DedupePolicy == dts.DedupeKeepFirst }

// appendTask appends what inserts a new task.
func appendTask(batch []Stmt, t *dts.Task) []Stmt {
	keyed := t.IdempotencyKey != ""
	switch {
	case keyed && keepsFirst(t):
		batch = append(batch,
			Stmt{claimKeyOfFirst, []any{t.TenantID, t.IdempotencyKey, t.RequestHash, t.TenantID, t.DedupeKey, t.ID, t.CreatedAt.UnixMicro()}},
			claimKey(t.TenantID, t.IdempotencyKey, t.RequestHash, t.ID, t.CreatedAt.UnixMicro())[1])
	case keyed:
		batch = append(batch, claimKey(t.TenantID, t.IdempotencyKey, t.RequestHash, t.ID, t.CreatedAt.UnixMicro())...)
	}
	if t.DedupeKey != "" && !keepsFirst(t) {
		batch = append(batch, Stmt{assertNoDupe, []any{t.TenantID, t.DedupeKey, t.ID, t.TenantID, t.IdempotencyKey, t.ID}})
	}
	if !keyed {
		return append(batch, Stmt{insertTask, newTaskArgs(t)})
	}
	return append(batch, Stmt{insertKeyedTask, append(newTaskArgs(t), t.TenantID, t.IdempotencyKey, t.ID)})
}

// assertInserted asserts that a task is there, and not another one under its idempotency key.
func assertInserted(t *dts.Task) Stmt {
	return Stmt{`INSERT INTO batch_assert (tenant_id, ok) SELECT 'system', NULL WHERE NOT EXISTS (SELECT 1 FROM tasks WHERE task_id = ?)`, []any{t.ID}}
}

// Unfinished returns the unfinished task of a tenant with a dedupe_key; nil when there is none.
func (s *Store) Unfinished(ctx context.Context, tenant, dedupeKey string) (t *dts.Task, err error) {
	err = s.query(ctx, "read the task with a dedupe key", OwnWrites, Stmt{selectTask + `WHERE ` + isDupe, []any{tenant, dedupeKey}},
		func(r scanner) (err error) { t, err = scanTask(r); return err })
	return t, err
}

// duplicate turns the refusal of an insert into the error that names the task which was in its way; nil when none is.
// batch is what was refused.
func (s *Store) duplicate(ctx context.Context, err error, batch []Stmt, tasks []*dts.Task) error {
	refused, is := errors.AsType[*RefusedError](err)
	if !is || refused.Index >= 0 && batch[refused.Index].SQL != assertNoDupe {
		return nil
	}
	for _, t := range tasks {
		if t.DedupeKey == "" || keepsFirst(t) || refused.Index >= 0 && batch[refused.Index].Args[2] != t.ID {
			continue
		}
		other, readErr := s.Unfinished(ctx, t.TenantID, t.DedupeKey)
		switch {
		case readErr != nil:
			return readErr // nothing was inserted
		case other != nil && other.ID != t.ID:
			return dts.DuplicateOf(other, err)
		case refused.Index >= 0:
			e := dts.Errorf(dts.ErrConflict, "another unfinished task had the dedupe_key %q just now; try again", t.DedupeKey)
			e.Err = &dts.Duplicate{Err: err}
			return e
		}
	}
	return nil
}

// firsts finds the tasks to which those of the list gave way that were not inserted, and puts them into out. missing are
// those of which neither is there: what was in their way has ended since.
func (s *Store) firsts(ctx context.Context, tasks []*dts.Task, out []dts.Created[*dts.Task]) (missing []*dts.Task, err error) {
	var ids []string
	for _, t := range tasks {
		if keepsFirst(t) && t.IdempotencyKey == "" {
			ids = append(ids, t.ID)
		}
	}
	if ids == nil {
		return nil, nil
	}
	there := make(map[string]bool, len(ids))
	err = s.query(ctx, "read new tasks", OwnWrites, Stmt{`SELECT task_id FROM tasks WHERE task_id IN (SELECT value FROM json_each(?))`, []any{jsonOf(ids)}},
		func(r scanner) error {
			var id string
			err := r.Scan(&id)
			there[id] = true
			return err
		})
	if err != nil {
		return nil, err
	}
	for i, t := range tasks {
		if !keepsFirst(t) || t.IdempotencyKey != "" || there[t.ID] {
			continue
		}
		first, err := s.Unfinished(ctx, t.TenantID, t.DedupeKey)
		if err != nil {
			return nil, err
		}
		if first == nil {
			missing = append(missing, t)
			continue
		}
		out[i] = dts.Created[*dts.Task]{Item: first, Existed: true}
	}
	return missing, nil
}
