package store

import (
	"context"
	"time"
)

// DeleteFinished deletes up to limit tasks that ended before the given time, and, while more than keep
// finished tasks are stored, the oldest of them; with their attempts and output. It returns how many went.
func (s *Store) DeleteFinished(ctx context.Context, before time.Time, excess int64, limit int) (int, error) {
	var ids []string
	err := s.query(ctx, "read old tasks", Stale, Stmt{`SELECT task_id, completed_at FROM tasks WHERE completed_at IS NOT NULL
		ORDER BY completed_at LIMIT ?`, []any{limit}}, func(r scanner) error {
		var id string
		var at int64
		err := r.Scan(&id, &at)
		if at < before.UnixMicro() || int64(len(ids)) < excess {
			ids = append(ids, id)
		}
		return err
	})
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	list := jsonOf(ids)
	const these = ` IN (SELECT t.task_id FROM json_each(?) AS j JOIN tasks AS t ON t.task_id = j.value WHERE t.completed_at IS NOT NULL)`
	_, err = s.apply(ctx, "delete old tasks",
		Stmt{`DELETE FROM outputs WHERE task_id` + these, []any{list}},
		Stmt{`DELETE FROM attempts WHERE task_id` + these, []any{list}},
		Stmt{`DELETE FROM dependencies WHERE child_id` + these, []any{list}},
		Stmt{`DELETE FROM tasks WHERE completed_at IS NOT NULL AND task_id IN (SELECT value FROM json_each(?))`, []any{list}})
	return len(ids), err
}

// FinishedCount counts the finished tasks, up to limit.
func (s *Store) FinishedCount(ctx context.Context, limit int64) (n int64, err error) {
	_, err = s.one(ctx, "count finished tasks", Stmt{
		`SELECT count(*) FROM (SELECT 1 FROM tasks WHERE completed_at IS NOT NULL LIMIT ?)`, []any{limit}}, &n)
	return n, err
}

// KeysOutlive is how much longer than tasks idempotency keys are kept.
const KeysOutlive = 7 * 24 * time.Hour

// DeleteOld deletes, each up to limit, the skips recorded before the given time, the idempotency keys that
// are older still by KeysOutlive, recurring tasks that ended before it and have nothing left, tokens that
// expired, and servers that stopped before it. It returns how many rows went.
func (s *Store) DeleteOld(ctx context.Context, before, now time.Time, limit int) (int64, error) {
	res, err := s.apply(ctx, "delete old rows",
		Stmt{`DELETE FROM skips WHERE (recurring_task_id, from_at) IN (
			SELECT recurring_task_id, from_at FROM skips WHERE recorded_at < ? ORDER BY recurring_task_id, from_at LIMIT ?)`,
			[]any{before.UnixMicro(), limit}},
		Stmt{`DELETE FROM idempotency_keys WHERE (tenant_id, key) IN (
			SELECT tenant_id, key FROM idempotency_keys WHERE created_at < ? ORDER BY created_at, tenant_id, key LIMIT ?)`,
			[]any{before.Add(-KeysOutlive).UnixMicro(), limit}},
		Stmt{`DELETE FROM recurring_tasks WHERE recurring_task_id IN (
			SELECT r.recurring_task_id FROM recurring_tasks AS r WHERE r.status IN ('COMPLETED', 'CANCELLED') AND r.updated_at < ?
			AND NOT EXISTS (SELECT 1 FROM tasks AS t WHERE t.recurring_task_id = r.recurring_task_id)
			AND NOT EXISTS (SELECT 1 FROM skips AS k WHERE k.recurring_task_id = r.recurring_task_id)
			ORDER BY r.seq LIMIT ?)`, []any{before.UnixMicro(), limit}},
		Stmt{`DELETE FROM tokens WHERE expires_at < ?`, []any{now.UnixMicro()}},
		Stmt{`DELETE FROM nodes WHERE state IN ('LEFT', 'DEAD') AND seen_at < ?`, []any{before.UnixMicro()}})
	var n int64
	for _, r := range res {
		n += r.RowsAffected
	}
	return n, err
}
