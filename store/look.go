package store

import (
	"context"
	"time"

	"dts"
)

// What the scheduler reads to say what will happen, or why something did not.

// lookedAt is how many rows of one recurring task a question looks at.
const lookedAt = 10_000

// RunTimes returns how long the last runs of recurring tasks took, at most n of each: from the start of the first attempt to
// the end of the last one, of those that succeeded or failed.
func (s *Store) RunTimes(ctx context.Context, ids []string, n int) (map[string][]time.Duration, error) {
	times := make(map[string][]time.Duration, len(ids))
	// Those that are planned come first in this order, then the newest ones: enough of them have ended.
	err := s.query(ctx, "read run times", OwnWrites, Stmt{`SELECT r.value, t.completed_at - t.started_at FROM json_each(?) AS r JOIN tasks AS t ON t.seq IN (
			SELECT seq FROM (SELECT seq, status, started_at FROM tasks WHERE recurring_task_id = r.value ORDER BY scheduled_at DESC LIMIT 1000)
			WHERE status IN ('SUCCESS', 'FAILED') AND started_at IS NOT NULL LIMIT ?)
		WHERE t.completed_at >= t.started_at`, []any{jsonOf(ids), n}}, func(r scanner) error {
		var id string
		var took int64
		err := r.Scan(&id, &took)
		times[id] = append(times[id], time.Duration(took)*time.Microsecond)
		return err
	})
	return times, err
}

// PendingOnce returns tasks that belong to no recurring task and are due in [from, to), soonest first, at most limit: of each
// what it is called, where it runs and what it shares with others, but not what it does.
func (s *Store) PendingOnce(ctx context.Context, tenant string, from, to time.Time, limit int) (list []*dts.Task, err error) {
	err = s.query(ctx, "read pending tasks", OwnWrites, Stmt{`SELECT task_id, name, queue, target_type, shard, run_at,
			coalesce(iif(json_valid(spec), spec ->> '$.concurrency_key', NULL), ''), coalesce(iif(json_valid(spec), spec ->> '$.concurrency_limit', NULL), 0) FROM tasks
		WHERE status = 'PENDING' AND unresolved_dependencies_count = 0 AND run_at >= ? AND run_at < ? AND recurring_task_id IS NULL AND tenant_id = ?
		ORDER BY run_at LIMIT ?`, []any{from.UnixMicro(), to.UnixMicro(), tenant, limit}}, func(r scanner) error {
		t := dts.Task{TenantID: tenant, Status: dts.Pending}
		var run int64
		err := r.Scan(&t.ID, &t.Name, &t.Queue, &t.TargetType, &t.Shard, &run, &t.ConcurrencyKey, &t.ConcurrencyLimit)
		t.RunAt = time.UnixMicro(run).UTC()
		list = append(list, &t)
		return err
	})
	return list, err
}

// OccurrenceAt returns the tasks of a recurring task at an instant, the planned one first, and the skipped ranges that
// reach over it, the latest beginning first.
func (s *Store) OccurrenceAt(ctx context.Context, tenant, id string, at time.Time) (tasks []*dts.Task, skips []*dts.Skip, err error) {
	tasks, err = s.tasks(ctx, "read occurrence", Stmt{selectTask + `WHERE recurring_task_id = ? AND scheduled_at = ? AND tenant_id = ?
		ORDER BY origin <> 'SCHEDULE', seq LIMIT 100`, []any{id, at.UnixMicro(), tenant}})
	if err != nil {
		return nil, nil, err
	}
	skips, err = s.skips(ctx, `SELECT tenant_id, recurring_task_id, from_at, to_at, count, reason, note, recorded_at FROM (
			SELECT * FROM skips WHERE recurring_task_id = ? AND from_at <= ? ORDER BY from_at DESC LIMIT ?)
		WHERE to_at >= ? AND tenant_id = ? ORDER BY from_at DESC LIMIT 100`, id, at.UnixMicro(), lookedAt, at.UnixMicro(), tenant)
	return tasks, skips, err
}

// LastSkipBefore returns the newest skipped range of a recurring task that begins at an instant or before; nil when there
// is none.
func (s *Store) LastSkipBefore(ctx context.Context, id string, at time.Time) (*dts.Skip, error) {
	list, err := s.skips(ctx, selectSkip+`WHERE recurring_task_id = ? AND from_at <= ? ORDER BY from_at DESC LIMIT 1`, id, at.UnixMicro())
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0], nil
}

func (s *Store) skips(ctx context.Context, query string, args ...any) (list []*dts.Skip, err error) {
	err = s.query(ctx, "read skips", OwnWrites, Stmt{query, args}, func(r scanner) error {
		k, err := scanSkip(r)
		list = append(list, k)
		return err
	})
	return list, err
}
