package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"dts"
)

// KeysOutlive is how much longer than what they have made idempotency keys are kept.
const KeysOutlive = 7 * 24 * time.Hour

// Retentions returns how long finished tasks are kept, by tenant; of those for which that was set.
func (s *Store) Retentions(ctx context.Context) (map[string]dts.Retention, error) {
	all := map[string]dts.Retention{}
	err := s.query(ctx, "read retentions", OwnWrites, Stmt{`SELECT tenant_id, spec FROM retentions ORDER BY tenant_id`, nil}, func(r scanner) error {
		var tenant, spec string
		if err := r.Scan(&tenant, &spec); err != nil {
			return err
		}
		var k dts.Retention
		if err := json.Unmarshal([]byte(spec), &k); err != nil {
			return fmt.Errorf("read the retention of tenant %q: %w", tenant, err)
		}
		all[tenant] = k
		return nil
	})
	return all, err
}

// PutRetention sets how long finished tasks of a tenant are kept. The zero Retention takes the setting away.
func (s *Store) PutRetention(ctx context.Context, tenant string, r dts.Retention, now time.Time, token int64) error {
	set := Stmt{`DELETE FROM retentions WHERE tenant_id = ?`, []any{tenant}}
	if r != (dts.Retention{}) {
		set = Stmt{`INSERT INTO retentions (tenant_id, spec, updated_at) VALUES (?,?,?)
			ON CONFLICT (tenant_id) DO UPDATE SET spec = excluded.spec, updated_at = excluded.updated_at`, []any{tenant, jsonOf(r), now.UnixMicro()}}
	}
	_, err := s.apply(ctx, "set a retention", set, changedRules(token))
	return err
}

// taskSize is about what a task takes, with its output: 400 bytes are its row and what is indexed of it.
const taskSize = `400 + octet_length(target_config) + octet_length(spec) + coalesce(octet_length(last_error), 0) + coalesce(octet_length(labels), 0)
	+ coalesce((SELECT sum(length(o.head) + length(o.tail)) FROM outputs AS o WHERE o.task_id = tasks.task_id), 0)`

// CountFinished counts the tasks that ended after one time and until another one, by tenant and queue: the first limit of
// them, and those that ended together with the last of these. It returns until when it has counted.
func (s *Store) CountFinished(ctx context.Context, after, through time.Time, limit int) (counted []dts.Finished, next time.Time, err error) {
	us := sinceEpoch(through)
	err = s.query(ctx, "count finished tasks", Stale, Stmt{`WITH cut (at) AS (SELECT coalesce((
			SELECT completed_at FROM tasks WHERE completed_at > ?1 AND completed_at <= ?2 ORDER BY completed_at LIMIT 1 OFFSET ?3), ?2))
		SELECT tenant_id, queue, count(*), sum(` + taskSize + `), (SELECT at FROM cut) FROM tasks
		WHERE completed_at > ?1 AND completed_at <= (SELECT at FROM cut) GROUP BY tenant_id, queue`,
		[]any{sinceEpoch(after), us, limit - 1}}, func(r scanner) error {
		var f dts.Finished
		err := r.Scan(&f.TenantID, &f.Queue, &f.Rows, &f.Bytes, &us)
		counted = append(counted, f)
		return err
	})
	return counted, time.UnixMicro(us).UTC(), err
}

// DeleteFinished deletes tasks of a tenant, or of one of its queues, that ended after the mark, the oldest first, with their
// attempts and output: those that ended before a time and, beyond that, as many as are too many, or too large. It looks at no
// more than limit tasks, those of others included.
func (s *Store) DeleteFinished(ctx context.Context, c dts.Cut, now time.Time, limit int) (d dts.Deletion, err error) {
	through := c.Through
	if c.Rows <= 0 && c.Bytes <= 0 && c.Before.Before(through) {
		through = c.Before
	}
	d.Next = c.After
	var list []*ended
	// A step goes with its run, which looks at it in the end and shows it.
	const mine = `tenant_id = ?1 AND (?2 = '' OR queue = ?2) AND (workflow_id IS NULL OR NOT EXISTS (SELECT 1 FROM tasks AS r WHERE r.task_id = tasks.workflow_id))`
	err = s.query(ctx, "read old tasks", Stale, Stmt{`SELECT seq, completed_at, task_id, queue, idempotency_key IS NOT NULL, target_type = 'WORKFLOW', ` + mine + `,
			CASE WHEN ` + mine + ` THEN ` + taskSize + ` ELSE 0 END FROM tasks
		WHERE completed_at >= ?3 AND (completed_at, seq) > (?3, ?4) AND completed_at < ?5 ORDER BY completed_at, seq LIMIT ?6`,
		[]any{c.TenantID, c.Queue, sinceEpoch(c.After.At), c.After.Seq, sinceEpoch(through), limit}}, func(r scanner) error {
		e := &ended{rows: 1}
		list = append(list, e)
		return r.Scan(&e.seq, &e.at, &e.id, &e.queue, &e.keyed, &e.run, &e.mine, &e.size)
	})
	if err == nil {
		err = s.withSteps(ctx, list)
	}
	if err != nil {
		return dts.Deletion{Next: c.After}, err
	}
	d.More = len(list) == limit
	var ids []string
	var rows, bytes int64
	keyed, before := false, sinceEpoch(c.Before)
	for _, e := range list {
		if e.mine {
			if e.at >= before && rows >= c.Rows && bytes >= c.Bytes {
				d.More = false // enough
				break
			}
			if rows > 0 && rows+e.rows > int64(limit) {
				d.More = true // the next step goes on with it
				break
			}
			ids = append(append(ids, e.id), e.steps...)
			rows, bytes, keyed = rows+e.rows, bytes+e.size, keyed || e.keyed
			d.Deleted = append(append(d.Deleted, dts.Finished{TenantID: c.TenantID, Queue: e.queue, Rows: 1, Bytes: e.size - e.ofSteps}), e.deleted...)
		}
		d.Next = dts.FinishedMark{At: time.UnixMicro(e.at).UTC(), Seq: e.seq}
	}
	if len(ids) == 0 {
		return d, nil
	}
	if err := s.deleteFinished(ctx, ids, keyed, now); err != nil {
		return dts.Deletion{Next: c.After}, err
	}
	return d, nil
}

// ended is a task that retention looks at, with the steps that go with it where it is the run of a workflow.
type ended struct {
	seq, at          int64
	id, queue        string
	keyed, run, mine bool
	rows, size       int64 // of all of it
	ofSteps          int64 // of the size
	steps            []string
	deleted          []dts.Finished // the steps
}

// withSteps reads the steps that go with runs.
func (s *Store) withSteps(ctx context.Context, list []*ended) error {
	runs := map[string]*ended{}
	for _, e := range list {
		if e.run && e.mine {
			runs[e.id] = e
		}
	}
	if len(runs) == 0 {
		return nil
	}
	return s.query(ctx, "read old steps", Stale, Stmt{`SELECT workflow_id, task_id, tenant_id, queue, ` + taskSize + ` FROM tasks
		WHERE workflow_id IN (SELECT value FROM json_each(?)) AND completed_at IS NOT NULL`, []any{jsonOf(slices.Collect(maps.Keys(runs)))}}, func(r scanner) error {
		var run, id string
		f := dts.Finished{Rows: 1}
		err := r.Scan(&run, &id, &f.TenantID, &f.Queue, &f.Bytes)
		e := runs[run]
		e.rows, e.size, e.ofSteps = e.rows+1, e.size+f.Bytes, e.ofSteps+f.Bytes
		e.steps, e.deleted = append(e.steps, id), append(e.deleted, f)
		return err
	})
}

// sinceEpoch is a time in microseconds, and 0 for the zero one, which is too far from 1970 for rqlite.
func sinceEpoch(t time.Time) int64 { return max(t.UnixMicro(), 0) }

func (s *Store) deleteFinished(ctx context.Context, ids []string, keyed bool, now time.Time) error {
	list := jsonOf(ids)
	// What was retried meanwhile stays, and the steps of a run that was.
	const (
		still = `t.completed_at IS NOT NULL AND (t.workflow_id IS NULL OR NOT EXISTS (SELECT 1 FROM tasks AS r WHERE r.task_id = t.workflow_id AND r.completed_at IS NULL))`
		these = ` IN (SELECT t.task_id FROM json_each(?) AS j JOIN tasks AS t ON t.task_id = j.value WHERE ` + still + `)`
	)
	var batch []Stmt
	if keyed {
		batch = append(batch, Stmt{`UPDATE idempotency_keys SET gone_at = ? WHERE gone_at IS NULL AND (tenant_id, key) IN (
			SELECT t.tenant_id, t.idempotency_key FROM json_each(?) AS j JOIN tasks AS t ON t.task_id = j.value
			WHERE t.completed_at IS NOT NULL AND t.idempotency_key IS NOT NULL)`, []any{now.UnixMicro(), list}})
	}
	_, err := s.apply(ctx, "delete old tasks", append(batch,
		Stmt{`DELETE FROM outputs WHERE task_id` + these, []any{list}},
		Stmt{`DELETE FROM attempts WHERE task_id` + these, []any{list}},
		Stmt{`DELETE FROM dependencies WHERE child_id` + these, []any{list}},
		Stmt{`DELETE FROM tasks AS t WHERE ` + still + ` AND task_id IN (SELECT value FROM json_each(?))`, []any{list}})...)
	return err
}

// keyGone says of a task's idempotency key that the task is deleted.
func keyGone(t *dts.Task, now time.Time) Stmt {
	return Stmt{`UPDATE idempotency_keys SET gone_at = ? WHERE tenant_id = ? AND key = ? AND resource_id = ? AND gone_at IS NULL`,
		[]any{now.UnixMicro(), t.TenantID, t.IdempotencyKey, t.ID}}
}

// DeleteSkips deletes, of the next limit skips after the mark, those that were recorded before the time given for their
// tenant, or else before the other one. It returns the mark of the last that it has looked at, or the zero one at the end.
func (s *Store) DeleteSkips(ctx context.Context, after dts.SkipMark, before map[string]time.Time, other time.Time, limit int) (next dts.SkipMark, err error) {
	times := make(map[string]int64, len(before))
	for tenant, at := range before {
		times[tenant] = at.UnixMicro()
	}
	var old [][2]any
	looked := 0
	err = s.query(ctx, "read old skips", Stale, Stmt{`SELECT recurring_task_id, from_at, tenant_id, recorded_at FROM skips
		WHERE (recurring_task_id, from_at) > (?, ?) ORDER BY recurring_task_id, from_at LIMIT ?`, []any{after.RecurringTaskID, after.From, limit}}, func(r scanner) error {
		var tenant string
		var recorded int64
		err := r.Scan(&next.RecurringTaskID, &next.From, &tenant, &recorded)
		limit, is := times[tenant]
		if !is {
			limit = other.UnixMicro()
		}
		if looked++; recorded < limit {
			old = append(old, [2]any{next.RecurringTaskID, next.From})
		}
		return err
	})
	if err != nil {
		return after, err
	}
	if looked < limit {
		next = dts.SkipMark{}
	}
	if old == nil {
		return next, nil
	}
	_, err = s.apply(ctx, "delete old skips", Stmt{`DELETE FROM skips WHERE (recurring_task_id, from_at) IN (
		SELECT value ->> 0, value ->> 1 FROM json_each(?))`, []any{jsonOf(old)}})
	return next, err
}

// DeleteOld deletes, each up to limit, the idempotency keys of what has been gone for KeysOutlive, recurring tasks that
// ended before the given time and have nothing left, tokens that expired, and servers that stopped before it. It returns
// whether there may be more.
func (s *Store) DeleteOld(ctx context.Context, before, now time.Time, limit int) (more bool, err error) {
	var ended []string
	err = s.query(ctx, "read old recurring tasks", Stale, Stmt{`SELECT r.recurring_task_id FROM recurring_tasks AS r
		WHERE r.status IN ('COMPLETED', 'CANCELLED') AND r.updated_at < ?
		AND NOT EXISTS (SELECT 1 FROM tasks AS t WHERE t.recurring_task_id = r.recurring_task_id)
		AND NOT EXISTS (SELECT 1 FROM skips AS k WHERE k.recurring_task_id = r.recurring_task_id)
		ORDER BY r.seq LIMIT ?`, []any{before.UnixMicro(), limit}}, func(r scanner) error {
		var id string
		err := r.Scan(&id)
		ended = append(ended, id)
		return err
	})
	if err != nil {
		return false, err
	}
	var batch []Stmt
	if ended != nil {
		list := jsonOf(ended)
		batch = []Stmt{
			{`UPDATE idempotency_keys SET gone_at = ? WHERE gone_at IS NULL AND (tenant_id, key) IN (
				SELECT r.tenant_id, r.idempotency_key FROM json_each(?) AS j JOIN recurring_tasks AS r ON r.recurring_task_id = j.value
				WHERE r.idempotency_key IS NOT NULL)`, []any{now.UnixMicro(), list}},
			{`DELETE FROM pings WHERE recurring_task_id IN (
				SELECT r.recurring_task_id FROM json_each(?) AS j JOIN recurring_tasks AS r ON r.recurring_task_id = j.value WHERE r.status IN ('COMPLETED', 'CANCELLED'))`, []any{list}},
			{`DELETE FROM recurring_tasks WHERE status IN ('COMPLETED', 'CANCELLED') AND recurring_task_id IN (SELECT value FROM json_each(?))`, []any{list}},
		}
	}
	res, err := s.apply(ctx, "delete old rows", append(batch,
		Stmt{`DELETE FROM idempotency_keys WHERE (tenant_id, key) IN (
			SELECT tenant_id, key FROM idempotency_keys WHERE gone_at < ? ORDER BY gone_at, tenant_id, key LIMIT ?)`,
			[]any{now.Add(-KeysOutlive).UnixMicro(), limit}},
		Stmt{`DELETE FROM tokens WHERE expires_at < ?`, []any{now.UnixMicro()}},
		Stmt{`DELETE FROM nodes WHERE state IN ('LEFT', 'DEAD') AND seen_at < ?`, []any{before.UnixMicro()}})...)
	if err != nil {
		return false, err
	}
	return len(ended) == limit || res[len(batch)].RowsAffected == int64(limit), nil
}
