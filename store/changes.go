package store

import (
	"context"
	"errors"
	"time"

	"dts"
)

// Change applies changes to tasks that no runner has, all or none. ErrRefused means that one of them is no
// longer what the caller knew. What a task cannot depend on is a dts.Error that says why.
func (s *Store) Change(ctx context.Context, f dts.Fence, changes []dts.Change, now time.Time) error {
	var shards []int
	var fresh []*dts.Task
	batch := make([]Stmt, 1, 1+3*len(changes))
	for i := range changes {
		shards = append(shards, changes[i].Old.Shard)
		batch = appendChange(batch, &changes[i], now)
		if n := changes[i].Insert; n != nil {
			shards = append(shards, n.Shard)
			batch = append(appendTask(batch, n), assertInserted(n))
			fresh = append(fresh, n)
		}
	}
	if len(changes) > 1 { // what is retried runs, also where what it depends on is retried with it
		for i := range changes {
			if c := &changes[i]; c.New != nil && c.Old.Status.Terminal() && c.New.Status == dts.Pending && c.Again == nil {
				batch = appendOverride(batch, c.New.ID, true, now)
			}
		}
	}
	batch[0] = fence(f, claims(f, shards...))
	edges, rippling := newEdges(fresh)
	told := changeRipple(changes, now)
	batch = append(append(batch, edges...), told...)
	res, err := s.apply(ctx, "change tasks", batch...)
	s.rippled(res, len(told)+rippling, err)
	if err == nil && edges != nil {
		if err := s.readResolved(ctx, fresh); err != nil {
			return writtenUnread(err)
		}
	}
	if errors.Is(err, ErrRefused) {
		if missing := s.missingParent(ctx, fresh); missing != nil {
			return missing
		}
		for i := range changes {
			if c := &changes[i]; c.DependsOn != nil || c.Undepend != "" {
				return s.refusedEdges(ctx, c, err)
			}
		}
	}
	return err
}

// changeRipple tells the dependents of the tasks that changes end or delete. What is to wait again for others is told, too,
// of those that have ended since that was decided.
func changeRipple(changes []dts.Change, now time.Time) []Stmt {
	var ids []string
	waves := false
	for i := range changes {
		c := &changes[i]
		if c.New == nil || c.New.Status.Terminal() {
			ids = append(ids, c.Old.ID)
		}
		for _, d := range c.Again {
			if d.State == dts.DependencyOpen {
				ids = append(ids, d.ParentID)
			}
		}
		waves = waves || c.DependsOn != nil || c.Undepend != ""
	}
	if ids == nil && !waves {
		return nil
	}
	return ripple(ids, now)
}

const (
	assertTask = `INSERT INTO batch_assert (tenant_id, ok) SELECT 'system', NULL WHERE NOT EXISTS (
		SELECT 1 FROM tasks WHERE task_id = ? AND tenant_id = ? AND status = ? AND attempts = ? AND plan_version = ?)`

	assertResolved = `INSERT INTO batch_assert (tenant_id, ok) SELECT 'system', NULL FROM tasks WHERE task_id = ? AND unresolved_dependencies_count > 0`

	updateTask = `UPDATE tasks SET status = ?, priority = ?, queue = ?, name = ?, due_at = ?, run_at = ?, miss_at = ?, expires_at = ?,
			completed_at = ?, next_attempt_at = ?, max_attempts = ?, last_error = ?, skip_reason = ?, plan_version = ?, moved = ?,
			labels = ?, target_type = ?, target_config = ?, spec = ?, node = ?, picked_at = ?, waits_for = ?, line = ?,
			unresolved_dependencies_count = iif(?, unresolved_dependencies_count, 0)
		WHERE task_id = ?`
)

func appendChange(batch []Stmt, c *dts.Change, now time.Time) []Stmt {
	o := c.Old
	batch = append(batch, Stmt{assertTask, []any{o.ID, o.TenantID, string(o.Status), o.Attempts, o.PlanVersion}})
	if c.Skip != nil {
		batch = append(batch, skipStmt(c.Skip, now))
	}
	if c.Resolved {
		batch = append(batch, Stmt{assertResolved, []any{o.ID}})
	}
	if n := c.New; n != nil {
		batch = append(batch, updateStmt(n))
		if o.Status == dts.Pending && o.Attempts > 0 && o.RecurringTaskID != "" && n.Status.Terminal() { // a run that ends between two attempts
			batch = append(batch, countEnd(o, n.Status, n.StartedAt))
		}
		switch {
		case o.Status.Terminal() && n.Status == dts.Pending && c.Again != nil:
			batch = appendReopen(appendAgain(batch, n.ID, c.Again), n.ID)
		case o.Status.Terminal() && n.Status == dts.Pending:
			batch = appendReopen(appendOverride(batch, n.ID, true, now), n.ID)
		case o.Unresolved > 0 && n.Unresolved == 0 && n.Status == dts.Pending:
			batch = appendOverride(batch, n.ID, false, now)
		}
		if c.DependsOn != nil || c.Undepend != "" {
			batch = appendEdges(batch, c, now)
		}
		return batch
	}
	if o.IdempotencyKey != "" {
		batch = append(batch, keyGone(o, now))
	}
	return append(batch, deleteTask(o.ID)...)
}

func deleteTask(id string) []Stmt {
	return []Stmt{
		{`DELETE FROM outputs WHERE task_id = ?`, []any{id}},
		{`DELETE FROM attempts WHERE task_id = ?`, []any{id}},
		{`DELETE FROM dependencies WHERE child_id = ?`, []any{id}},
		{`DELETE FROM tasks WHERE task_id = ?`, []any{id}},
	}
}

// skipStmt records skipped instants. A range that begins where one was recorded before replaces it: it is
// the same range grown longer, or the same batch sent again.
func skipStmt(k *dts.Skip, now time.Time) Stmt {
	return Stmt{`INSERT INTO skips (tenant_id, recurring_task_id, from_at, to_at, count, reason, note, recorded_at) VALUES (?,?,?,?,?,?,?,?)
		ON CONFLICT (recurring_task_id, from_at) DO UPDATE SET to_at = excluded.to_at, count = excluded.count, recorded_at = excluded.recorded_at
		WHERE excluded.to_at > skips.to_at`,
		[]any{k.TenantID, k.RecurringTaskID, k.From.UnixMicro(), k.To.UnixMicro(), k.Count, string(k.Reason), k.Note, now.UnixMicro()}}
}
