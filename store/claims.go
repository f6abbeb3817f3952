package store

import (
	"context"
	"time"

	"dts"
)

// LoadDue returns, in the order in which they are due, up to limit tasks that wait for nothing but their
// time, strictly after the mark and due no later than through. Whether someone has claimed them is not
// looked at: a claim of an older term counts for nothing.
func (s *Store) LoadDue(ctx context.Context, after dts.Mark, through time.Time, limit int) (list []dts.Entry, err error) {
	err = s.query(ctx, "load due tasks", OwnWrites, Stmt{
		`SELECT seq, task_id, run_at, CASE WHEN attempts = 0 THEN miss_at END, priority, shard, target_type, coalesce(recurring_task_id, '') FROM tasks
		WHERE status = 'PENDING' AND unresolved_dependencies_count = 0
		AND (run_at, priority, seq) > (?, ?, ?) AND run_at >= ? AND run_at <= ?
		ORDER BY run_at, priority, seq LIMIT ?`,
		[]any{after.RunAt.UnixMicro(), after.Rank, after.Seq, after.RunAt.UnixMicro(), through.UnixMicro(), limit}},
		func(r scanner) error {
			var e dts.Entry
			var run int64
			var miss nullTime
			err := r.Scan(&e.Seq, &e.TaskID, &run, &miss, &e.Rank, &e.Shard, &e.TargetType, &e.RecurringTaskID)
			e.RunAt, e.MissAt = time.UnixMicro(run).UTC(), miss.time()
			list = append(list, e)
			return err
		})
	return list, err
}

// Claim takes those of the tasks that are pending and not claimed at this term, stamps them with the
// token, and returns them. token is a random number that no other claim uses.
func (s *Store) Claim(ctx context.Context, f dts.Fence, shards []int, ids []string, token int64, now time.Time) ([]*dts.Task, error) {
	list := jsonOf(ids)
	_, err := s.apply(ctx, "claim tasks", fence(f, shards...), Stmt{
		`UPDATE tasks SET claim_token = ?, claim_term = ?, claim_node = ?, picked_at = ?
		WHERE task_id IN (SELECT value FROM json_each(?))
		AND status = 'PENDING' AND unresolved_dependencies_count = 0 AND claim_term < ?`,
		[]any{token, f.Term, f.Node, now.UnixMicro(), list, f.Term}})
	if err != nil {
		return nil, err
	}
	return s.tasks(ctx, "read claimed tasks", Stmt{
		selectTask + `WHERE task_id IN (SELECT value FROM json_each(?)) AND claim_token = ?`, []any{list, token}})
}

// Write writes starts and ends of attempts. Each is fenced by its task's claim: one whose claim is no longer
// there changes nothing.
func (s *Store) Write(ctx context.Context, f dts.Fence, recs []*dts.Record) error {
	shards := make([]int, 0, len(recs))
	batch := make([]Stmt, 1, 1+3*len(recs))
	for _, r := range recs {
		shards = append(shards, r.Task.Shard)
		batch = appendRecord(batch, r)
	}
	batch[0] = fence(f, shards...)
	_, err := s.apply(ctx, "write attempts", batch...)
	return err
}

// The guard comes before the update of the task, which ends the claim: sent twice, a record does nothing
// the second time.
const claimHolds = `EXISTS (SELECT 1 FROM tasks WHERE task_id = ? AND claim_token = ?)`

const (
	insertAttempt = `INSERT INTO attempts (` + attemptColumns + `)
		SELECT ?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,? WHERE ` + claimHolds + `
		ON CONFLICT (task_id, number) DO UPDATE SET state = excluded.state, completed_at = excluded.completed_at,
			duration_us = excluded.duration_us, http_status = excluded.http_status, exit_code = excluded.exit_code,
			error = excluded.error, cpu_us = excluded.cpu_us, max_rss_bytes = excluded.max_rss_bytes, output_bytes = excluded.output_bytes,
			pgid = coalesce(excluded.pgid, pgid), proc_start = coalesce(excluded.proc_start, proc_start), boot_id = coalesce(excluded.boot_id, boot_id)
		WHERE attempts.state = 'RUNNING'`

	insertOutput = `INSERT INTO outputs (tenant_id, task_id, number, head, tail, total)
		SELECT ?, ?, ?, unhex(?), unhex(?), ? WHERE ` + claimHolds + ` ON CONFLICT DO NOTHING`

	countRun = `UPDATE recurring_tasks SET last_run_at = ?, last_status = ?,
			runs_count = runs_count + ?, completed_count = completed_count + ?
		WHERE recurring_task_id = ? AND ` + claimHolds

	startTask = `UPDATE tasks SET status = 'RUNNING', attempts = ?, started_at = ?, lateness_us = ?, sla_met = ?
		WHERE task_id = ? AND claim_token = ? AND status = 'PENDING'`

	endTask = `UPDATE tasks SET status = ?, attempts = ?, started_at = ?, completed_at = ?, run_at = ?, next_attempt_at = ?,
			lateness_us = ?, sla_met = ?, response_status = ?, exit_code = ?, last_error = ?, claim_token = 0, claim_term = 0
		WHERE task_id = ? AND claim_token = ?`
)

func appendRecord(batch []Stmt, r *dts.Record) []Stmt {
	t, a := r.Task, &r.Attempt
	a.Process = r.Process
	batch = append(batch, Stmt{insertAttempt, append(attemptArgs(a), t.ID, t.ClaimToken)})
	n := r.After
	if n == nil {
		return append(batch, Stmt{startTask, []any{a.Number, a.StartedAt.UnixMicro(), ptr(t.LatenessUS), flagPtr(t.SLAMet), t.ID, t.ClaimToken}})
	}
	if o := &r.Output; o.Total > 0 {
		batch = append(batch, Stmt{insertOutput, []any{t.TenantID, t.ID, a.Number, hexOf(o.Head), hexOf(o.Tail), o.Total, t.ID, t.ClaimToken}})
	}
	if t.RecurringTaskID != "" && n.Status.Terminal() {
		runs, completed := 0, 0
		if t.Origin == dts.OriginSchedule {
			runs = 1
			if n.Status == dts.Success {
				completed = 1
			}
		}
		batch = append(batch, Stmt{countRun, []any{a.StartedAt.UnixMicro(), string(n.Status), runs, completed, t.RecurringTaskID, t.ID, t.ClaimToken}})
	}
	return append(batch, Stmt{endTask, []any{
		string(n.Status), n.Attempts, micros(n.StartedAt), micros(n.CompletedAt), n.RunAt.UnixMicro(), micros(n.NextAttemptAt),
		ptr(n.LatenessUS), flagPtr(n.SLAMet), orNull(n.ResponseStatus), ptr(n.ExitCode), orNull(n.LastError), t.ID, t.ClaimToken}})
}

func hexOf(b []byte) string {
	const digits = "0123456789ABCDEF"
	out := make([]byte, 0, 2*len(b))
	for _, c := range b {
		out = append(out, digits[c>>4], digits[c&15])
	}
	return string(out)
}
