package store

import (
	"context"
	"time"

	"dts"
)

// LoadDue returns, in the order in which they are due, up to limit tasks in the shards and queues that wait for nothing
// but their time, strictly after the mark and due no later than through.
func (s *Store) LoadDue(ctx context.Context, shards dts.ShardSet, queues dts.QueueChoice, after dts.Mark, through time.Time, limit int) (list []dts.Entry, err error) {
	low, high := halves(shards)
	args := []any{after.RunAt.UnixMicro(), after.Rank, after.Seq, after.RunAt.UnixMicro(), through.UnixMicro(), low, high}
	which := ""
	switch {
	case queues.Only != nil:
		which, args = inQueues, append(args, jsonOf(queueNames(queues.Only)))
	case queues.Except != nil:
		which, args = notInQueues, append(args, jsonOf(queueNames(queues.Except)))
	}
	known := map[string]string{} // few differ: thousands of entries must not each keep their own
	intern := func(text string) string {
		one, is := known[text]
		if !is {
			known[text], one = text, text
		}
		return one
	}
	err = s.query(ctx, "load due tasks", OwnWrites, Stmt{
		`SELECT seq, task_id, run_at, CASE WHEN attempts = 0 THEN miss_at END, priority, shard, target_type, coalesce(recurring_task_id, ''), tenant_id, queue FROM tasks
		WHERE status = 'PENDING' AND unresolved_dependencies_count = 0
		AND (run_at, priority, seq) > (?, ?, ?) AND run_at >= ? AND run_at <= ?` + inShards + which + `
		ORDER BY run_at, priority, seq LIMIT ?`, append(args, limit)},
		func(r scanner) error {
			var e dts.Entry
			var run int64
			var miss nullTime
			err := r.Scan(&e.Seq, &e.TaskID, &run, &miss, &e.Rank, &e.Shard, &e.TargetType, &e.RecurringTaskID, &e.TenantID, &e.Queue)
			e.RunAt, e.MissAt = time.UnixMicro(run).UTC(), miss.time()
			e.TenantID, e.Queue, e.TargetType = intern(e.TenantID), intern(e.Queue), dts.TargetType(intern(string(e.TargetType)))
			list = append(list, e)
			return err
		})
	return list, err
}

// The plus keeps the planner from looking tasks up by their tenant or queue.
const (
	inQueues    = ` AND (+tenant_id, +queue) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))`
	notInQueues = ` AND (+tenant_id, +queue) NOT IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))`
)

func queueNames(keys []dts.QueueKey) [][2]string {
	list := make([][2]string, len(keys))
	for i, k := range keys {
		list[i] = [2]string{k.TenantID, k.Name}
	}
	return list
}

// Load returns those of the tasks that wait for nothing but their time, in no particular order.
func (s *Store) Load(ctx context.Context, ids []string) ([]*dts.Task, error) {
	return s.tasks(ctx, "read due tasks", Stmt{selectTask + `WHERE task_id IN (SELECT value FROM json_each(?))
		AND status = 'PENDING' AND unresolved_dependencies_count = 0`, []any{jsonOf(ids)}})
}

// Write writes starts and ends of attempts. The shards of starts, and of ends whose start was not written, must be
// held at the records' terms. An end whose start was written is accepted from whoever wrote that, also after the
// shard has gone to another server; if the task then waits for its next attempt, Handoffs tells that server of it.
func (s *Store) Write(ctx context.Context, f dts.Fence, recs []*dts.Record) error {
	needed := make([]claim, 0, len(recs))
	batch := make([]Stmt, 1, 1+3*len(recs))
	for _, r := range recs {
		if !r.Shown {
			needed = append(needed, claim{int64(r.Task.Shard), r.Term})
		}
		if standsAlone(r) {
			batch = append(batch, Stmt{endAlone, endArgs(r)}) // all of them together
		}
	}
	for _, r := range recs {
		if !standsAlone(r) {
			batch = appendRecord(batch, f, r)
		}
	}
	batch[0] = fence(f, needed)
	told := endings(recs)
	batch = append(batch, told...)
	res, err := s.apply(ctx, "write attempts", batch...)
	s.rippled(res, len(told), err)
	return err
}

// endings tells the dependents of the tasks that the records end.
func endings(recs []*dts.Record) []Stmt {
	var ids []string
	var at time.Time
	for _, r := range recs {
		if n := r.After; n != nil && n.Status.Terminal() {
			ids = append(ids, r.Task.ID)
			if n.CompletedAt.After(at) {
				at = n.CompletedAt
			}
		}
	}
	if ids == nil {
		return nil
	}
	return ripple(ids, at)
}

// A record changes its task only where that waits for just this attempt, or runs it: what is stale changes
// nothing, and neither does a record that is sent a second time. The other statements of a record follow the
// task's and hang on it by changes(), the number of rows that the statement before has changed.
const (
	startTask = `UPDATE tasks SET status = 'RUNNING', unresolved_dependencies_count = 0, attempts = ?1, term = ?2, node = ?3, picked_at = ?4, started_at = ?5, lateness_us = ?6, sla_met = ?7,
			queued_us = ?9, warnings = ?10
		WHERE task_id = ?8 AND (status = 'PENDING' AND attempts = ?1 - 1 OR status = 'RUNNING' AND attempts = ?1 AND term = ?2)`

	setEnd = `UPDATE tasks SET status = ?1, unresolved_dependencies_count = 0, attempts = ?2, term = 0, node = ?3, picked_at = ?4, started_at = ?5, completed_at = ?6, run_at = ?7,
			next_attempt_at = ?8, lateness_us = ?9, sla_met = ?10, response_status = ?11, exit_code = ?12, last_error = ?13,
			queued_us = ?14, warnings = ?15
		WHERE task_id = ?16 `
	endTask = setEnd + `AND status = 'PENDING' AND attempts = ?2 - 1`
	// The same, for an end on which no other statement hangs, and for many of those: see Many.
	endAlone = setEnd + `AND attempts = ?2 - 1 AND status = 'PENDING'`
	endTasks = `UPDATE tasks SET status = j.value ->> 0, unresolved_dependencies_count = 0, attempts = j.value ->> 1, term = 0, node = j.value ->> 2, picked_at = j.value ->> 3,
			started_at = j.value ->> 4, completed_at = j.value ->> 5, run_at = j.value ->> 6, next_attempt_at = j.value ->> 7, lateness_us = j.value ->> 8,
			sla_met = j.value ->> 9, response_status = j.value ->> 10, exit_code = j.value ->> 11, last_error = j.value ->> 12,
			queued_us = j.value ->> 13, warnings = j.value ->> 14
		FROM json_each(?) AS j WHERE task_id = j.value ->> 15 AND status = 'PENDING' AND attempts = (j.value ->> 1) - 1`
	endShown = setEnd + `AND status = 'RUNNING' AND attempts = ?2 AND node = ?3 AND term = ?17`

	// The end may say when it started: of a PING, as its job has reported.
	insertAttempt = `INSERT INTO attempts (` + attemptColumns + `) SELECT ?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,? WHERE changes() > 0
		ON CONFLICT (task_id, number) DO UPDATE SET state = excluded.state, completed_at = excluded.completed_at,
			duration_us = excluded.duration_us, http_status = excluded.http_status, exit_code = excluded.exit_code,
			started_at = iif(excluded.state = 'RUNNING', attempts.started_at, excluded.started_at),
			error = excluded.error, cpu_us = excluded.cpu_us, max_rss_bytes = excluded.max_rss_bytes, output_bytes = excluded.output_bytes, stopped_us = excluded.stopped_us,
			pgid = coalesce(excluded.pgid, pgid), proc_start = coalesce(excluded.proc_start, proc_start), boot_id = coalesce(excluded.boot_id, boot_id)
		WHERE attempts.state = 'RUNNING'`

	countRun = `UPDATE recurring_tasks SET last_run_at = ?, last_status = ?,
			runs_count = runs_count + ?, completed_count = completed_count + ?
		WHERE recurring_task_id = ? AND changes() > 0`

	insertOutput = `INSERT INTO outputs (tenant_id, task_id, number, head, tail, total)
		SELECT ?, ?, ?, unhex(?), unhex(?), ? WHERE changes() > 0 ON CONFLICT DO NOTHING`

	// Whether the shard has gone is decided here, when the end is applied, and not when it was sent: who takes the shard
	// later reads the task anyway.
	insertHandoff = `INSERT INTO handoffs (tenant_id, task_id, shard) SELECT ?1, ?2, ?3 WHERE changes() > 0
		AND NOT EXISTS (SELECT 1 FROM shards WHERE shard = ?3 AND node_id = ?4 AND term = ?5) ON CONFLICT DO NOTHING`
)

func appendRecord(batch []Stmt, f dts.Fence, r *dts.Record) []Stmt {
	t, a := r.Task, &r.Attempt
	a.Process = r.Process
	n := r.After
	if n == nil {
		return append(batch,
			Stmt{startTask, []any{a.Number, r.Term, a.Node, micros(a.PickedAt), firstStart(r).UnixMicro(), ptr(t.LatenessUS), flagPtr(t.SLAMet), t.ID, orNull(t.QueuedUS), encodeWarnings(t.Warnings)}},
			Stmt{insertAttempt, attemptArgs(a)})
	}
	if r.Shown {
		batch = append(batch, Stmt{endShown, append(endArgs(r), r.Term)})
	} else {
		batch = append(batch, Stmt{endTask, endArgs(r)})
	}
	if !inTask(r) {
		batch = append(batch, Stmt{insertAttempt, attemptArgs(a)})
	}
	if counted(r) {
		batch = append(batch, countEnd(t, n.Status, a.StartedAt))
	}
	if o := &r.Output; o.Total > 0 {
		batch = append(batch, Stmt{insertOutput, []any{t.TenantID, t.ID, a.Number, hexOf(o.Head), hexOf(o.Tail), o.Total}})
	}
	if r.Shown && n.Status == dts.Pending && !f.Alone {
		batch = append(batch, Stmt{insertHandoff, []any{t.TenantID, t.ID, t.Shard, f.Node, f.Term(t.Shard)}})
	}
	if r.Limited {
		batch = append(batch, Stmt{freeSlots, []any{t.ID, a.Number}}) // whatever became of the rest: this attempt is over
	}
	return batch
}

// firstStart is when the first attempt of a record's task started.
func firstStart(r *dts.Record) time.Time {
	if r.Task.StartedAt.IsZero() {
		return r.Attempt.StartedAt
	}
	return r.Task.StartedAt
}

func endArgs(r *dts.Record) []any {
	a, n := &r.Attempt, r.After
	return []any{
		string(n.Status), a.Number, a.Node, micros(a.PickedAt), micros(n.StartedAt), micros(n.CompletedAt), n.RunAt.UnixMicro(),
		micros(n.NextAttemptAt), ptr(n.LatenessUS), flagPtr(n.SLAMet), orNull(n.ResponseStatus), ptr(n.ExitCode), orNull(n.LastError), orNull(n.QueuedUS), encodeWarnings(n.Warnings), r.Task.ID}
}

// counted reports whether a record ends an occurrence, which its recurring task counts.
func counted(r *dts.Record) bool {
	return r.After != nil && r.Task.RecurringTaskID != "" && r.After.Status.Terminal()
}

// countEnd counts the end of an occurrence. The statement before it must be the one that ends it.
func countEnd(t *dts.Task, status dts.Status, started time.Time) Stmt {
	runs, completed := 0, 0
	if t.Origin == dts.OriginSchedule {
		runs = 1
		if status == dts.Success {
			completed = 1
		}
	}
	return Stmt{countRun, []any{micros(started), string(status), runs, completed, t.RecurringTaskID}}
}

// inTask reports whether the end of a task's first attempt needs no row of its own, because the task's row says
// it all; the view all_attempts reads it there. One row less to write, and to delete again, for most runs of all.
func inTask(r *dts.Record) bool {
	a := &r.Attempt
	return r.After != nil && a.Number == 1 && a.State == dts.AttemptSuccess && !r.Shown && r.Task.TargetType == dts.HTTPCallback
}

// standsAlone reports whether a record is an end that changes its task's row and nothing else.
func standsAlone(r *dts.Record) bool { return inTask(r) && !counted(r) && r.Output.Total == 0 }

func hexOf(b []byte) string {
	const digits = "0123456789ABCDEF"
	out := make([]byte, 0, 2*len(b))
	for _, c := range b {
		out = append(out, digits[c>>4], digits[c&15])
	}
	return string(out)
}
