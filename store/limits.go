package store

import (
	"context"
	"errors"

	"dts"
)

// A slot is there exactly while its task is RUNNING at that attempt: both are written in one batch, so nothing is left
// over when a server goes down between the two.
const (
	// A start that is sent again finds its own slot, and is not refused.
	assertSlot = `INSERT INTO batch_assert (tenant_id, ok) SELECT 'system', NULL WHERE
		NOT EXISTS (SELECT 1 FROM slots WHERE tenant_id = ?1 AND line = ?2 AND task_id = ?3 AND number = ?4)
		AND (SELECT count(*) FROM slots WHERE tenant_id = ?1 AND line = ?2 AND task_id <> ?3) >= ?5`

	// As startTask; and the task stands in no line any more. Who was read as the next in line may have been paused since.
	startInLine = `UPDATE tasks SET status = 'RUNNING', unresolved_dependencies_count = 0, attempts = ?1, term = ?2, node = ?3, picked_at = ?4, started_at = ?5, lateness_us = ?6, sla_met = ?7,
			run_at = ?9, waits_for = NULL, line = NULL, queued_us = ?10, warnings = ?11
		WHERE task_id = ?8 AND (status = 'PENDING' AND attempts = ?1 - 1 AND waits_for IS NOT 'PAUSED' OR status = 'RUNNING' AND attempts = ?1 AND term = ?2)`

	assertStarted = `INSERT INTO batch_assert (tenant_id, ok) SELECT 'system', NULL WHERE NOT EXISTS (
		SELECT 1 FROM tasks WHERE task_id = ? AND status = 'RUNNING' AND attempts = ? AND term = ?)`

	takeSlot = `INSERT INTO slots (tenant_id, line, task_id, number) VALUES (?,?,?,?)
		ON CONFLICT (tenant_id, line, task_id) DO UPDATE SET number = excluded.number`

	freeSlots = `DELETE FROM slots WHERE task_id = ? AND number <= ?`
)

// Start writes the start of an attempt that needs slots, and takes them. full is the line of which all are taken, and
// then nothing was written; "" otherwise. ErrRefused means that the shard is not held any more, or that the task is
// not what the caller knew.
func (s *Store) Start(ctx context.Context, f dts.Fence, r *dts.Record, slots []dts.Slot) (full string, err error) {
	t, a := r.Task, &r.Attempt
	batch := make([]Stmt, 1, 4+2*len(slots))
	batch[0] = fence(f, []claim{{int64(t.Shard), r.Term}})
	for _, k := range slots {
		batch = append(batch, Stmt{assertSlot, []any{t.TenantID, k.Line, t.ID, a.Number, k.Limit}})
	}
	a.Process = r.Process
	batch = append(batch,
		Stmt{startInLine, []any{a.Number, r.Term, a.Node, micros(a.PickedAt), firstStart(r).UnixMicro(), ptr(t.LatenessUS), flagPtr(t.SLAMet), t.ID, t.RunAt.UnixMicro(), orNull(t.QueuedUS), encodeWarnings(t.Warnings)}},
		Stmt{insertAttempt, attemptArgs(a)},
		Stmt{assertStarted, []any{t.ID, a.Number, r.Term}})
	for _, k := range slots {
		batch = append(batch, Stmt{takeSlot, []any{t.TenantID, k.Line, t.ID, a.Number}})
	}
	_, err = s.apply(ctx, "write a start with its slots", batch...)
	if refused, is := errors.AsType[*RefusedError](err); is && refused.Index >= 1 && refused.Index <= len(slots) {
		return slots[refused.Index-1].Line, nil
	}
	return "", err
}

// InLine returns the first tasks of a line, up to limit, whatever their shards, and how many slots are taken there. Those
// in paused queues are passed over, and those that wait for others again, which are retried.
func (s *Store) InLine(ctx context.Context, k dts.LineKey, limit int) (tasks []*dts.Task, taken int, err error) {
	tasks, err = s.tasks(ctx, "read who is next in line", Stmt{selectTask + `WHERE tenant_id = ? AND line = ? AND status = 'PENDING' AND unresolved_dependencies_count = 0
		AND NOT EXISTS (SELECT 1 FROM queues AS q WHERE q.tenant_id = tasks.tenant_id AND q.name = tasks.queue AND q.paused_at IS NOT NULL)
		ORDER BY priority, due_at, seq LIMIT ?`, []any{k.TenantID, k.Line, limit}})
	if err != nil {
		return nil, 0, err
	}
	// Read second: a task that has just started is rather counted twice than not at all.
	_, err = s.one(ctx, "count slots", Stmt{`SELECT count(*) FROM slots WHERE tenant_id = ? AND line = ?`, []any{k.TenantID, k.Line}}, &taken)
	return tasks, taken, err
}

// Lines returns the lines in which tasks in the shards wait.
func (s *Store) Lines(ctx context.Context, shards dts.ShardSet) (list []dts.LineKey, err error) {
	low, high := halves(shards)
	err = s.query(ctx, "read lines", OwnWrites, Stmt{`SELECT DISTINCT tenant_id, line FROM tasks WHERE line IS NOT NULL AND status = 'PENDING'` + inShards + `
		ORDER BY tenant_id, line`, []any{low, high}}, func(r scanner) error {
		var k dts.LineKey
		err := r.Scan(&k.TenantID, &k.Line)
		list = append(list, k)
		return err
	})
	return list, err
}

// Taken returns how many slots of each line are taken. Those of which none is are left out.
func (s *Store) Taken(ctx context.Context, keys []dts.LineKey) (map[dts.LineKey]int, error) {
	these := make([][2]string, len(keys))
	for i, k := range keys {
		these[i] = [2]string{k.TenantID, k.Line}
	}
	taken := map[dts.LineKey]int{}
	err := s.query(ctx, "count slots", OwnWrites, Stmt{`SELECT s.tenant_id, s.line, count(*) FROM json_each(?) AS j
		JOIN slots AS s ON s.tenant_id = j.value ->> 0 AND s.line = j.value ->> 1 GROUP BY s.tenant_id, s.line`, []any{jsonOf(these)}}, func(r scanner) error {
		var k dts.LineKey
		var n int
		err := r.Scan(&k.TenantID, &k.Line, &n)
		taken[k] = n
		return err
	})
	return taken, err
}

// SweepSlots gives back slots of attempts that do not run. There should be none.
func (s *Store) SweepSlots(ctx context.Context) (int64, error) {
	res, err := s.apply(ctx, "give back slots", Stmt{`DELETE FROM slots WHERE NOT EXISTS (
		SELECT 1 FROM tasks AS t WHERE t.task_id = slots.task_id AND t.status = 'RUNNING' AND t.attempts = slots.number)`, nil})
	if err != nil {
		return 0, err
	}
	return res[0].RowsAffected, nil
}
