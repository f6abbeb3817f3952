package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"dts"
)

// storedRecurring is the JSON in recurring_tasks.spec: the schedule, the policies and the template.
type storedRecurring struct {
	dts.Spec
	dts.Schedule
	CatchUpMode          dts.CatchUpMode   `json:"catch_up_mode"`
	MisfireAfterSeconds  float64           `json:"misfire_after_seconds"`
	CatchUpWindowSeconds float64           `json:"catch_up_window_seconds,omitempty"`
	CatchUpLimit         int               `json:"catch_up_limit,omitempty"`
	CatchUpPacingSeconds float64           `json:"catch_up_pacing_seconds,omitempty"`
	OverlapPolicy        dts.OverlapPolicy `json:"overlap_policy"`
	PausedBy             string            `json:"paused_by,omitempty"`
}

func encodeRecurring(r *dts.RecurringTask) string {
	return jsonOf(storedRecurring{r.Spec, r.Schedule, r.CatchUpMode, r.MisfireAfterSeconds,
		r.CatchUpWindowSeconds, r.CatchUpLimit, r.CatchUpPacingSeconds, r.OverlapPolicy, r.PausedBy})
}

const recurringColumns = `recurring_task_id, tenant_id, shard, status, name, plan_version, planned_through, plan_at,
	runs_count, completed_count, last_run_at, last_status, paused_at, paused_until, pause_note,
	created_at, created_by, updated_at, idempotency_key, spec, replan`

// The next planned occurrence is looked up where it is read: keeping it in the row would cost a write a run.
const selectRecurring = `SELECT ` + recurringColumns + `,
	(SELECT min(t.scheduled_at) FROM tasks AS t WHERE t.recurring_task_id = recurring_tasks.recurring_task_id
		AND t.status = 'PENDING' AND t.origin = 'SCHEDULE' AND t.attempts = 0 AND t.scheduled_at > ?) FROM recurring_tasks `

const (
	recurringValues      = `?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?`
	insertRecurring      = `INSERT INTO recurring_tasks (` + recurringColumns + `) VALUES (` + recurringValues + `) ON CONFLICT DO NOTHING`
	insertKeyedRecurring = `INSERT INTO recurring_tasks (` + recurringColumns + `) SELECT ` + recurringValues + `
		WHERE EXISTS (SELECT 1 FROM idempotency_keys WHERE tenant_id = ? AND key = ? AND resource_id = ?) ON CONFLICT DO NOTHING`
)

func recurringArgs(r *dts.RecurringTask) []any {
	return []any{
		r.ID, r.TenantID, r.Shard, string(r.Status), r.Name, r.PlanVersion, r.PlannedThrough.UnixMicro(), micros(r.PlanAt),
		r.RunsCount, r.CompletedCount, micros(r.LastRunAt), orNull(string(r.LastStatus)), micros(r.PausedAt), micros(r.PausedUntil), orNull(r.PauseNote),
		r.CreatedAt.UnixMicro(), r.CreatedBy, r.UpdatedAt.UnixMicro(), orNull(r.IdempotencyKey), encodeRecurring(r), r.Replan,
	}
}

func scanRecurring(row scanner) (*dts.RecurringTask, error) {
	var (
		r                                   dts.RecurringTask
		status, spec                        string
		planned, created, updated           int64
		planAt, lastRun, pausedAt, until, n nullTime
		lastStatus, note, key               sql.NullString
	)
	err := row.Scan(&r.ID, &r.TenantID, &r.Shard, &status, &r.Name, &r.PlanVersion, &planned, &planAt,
		&r.RunsCount, &r.CompletedCount, &lastRun, &lastStatus, &pausedAt, &until, &note,
		&created, &r.CreatedBy, &updated, &key, &spec, &r.Replan, &n)
	if err != nil {
		return nil, fmt.Errorf("read recurring task: %w", err)
	}
	var d storedRecurring
	if err := json.Unmarshal([]byte(spec), &d); err != nil {
		d = storedRecurring{Spec: dts.Spec{Name: r.Name}}
		r.Unreadable = "its definition cannot be read: " + err.Error()
	}
	r.Spec, r.Schedule = d.Spec, d.Schedule
	r.CatchUpMode, r.MisfireAfterSeconds, r.OverlapPolicy = d.CatchUpMode, d.MisfireAfterSeconds, d.OverlapPolicy
	r.CatchUpWindowSeconds, r.CatchUpLimit, r.CatchUpPacingSeconds = d.CatchUpWindowSeconds, d.CatchUpLimit, d.CatchUpPacingSeconds
	r.Status, r.PausedBy = dts.RecurringStatus(status), d.PausedBy
	at := func(us int64) time.Time { return time.UnixMicro(us).UTC() }
	r.PlannedThrough, r.CreatedAt, r.UpdatedAt = at(planned), at(created), at(updated)
	r.PlanAt, r.LastRunAt, r.PausedAt, r.PausedUntil, r.NextRunAt = planAt.time(), lastRun.time(), pausedAt.time(), until.time(), n.time()
	r.LastStatus, r.PauseNote, r.IdempotencyKey = dts.Status(lastStatus.String), note.String, key.String
	return &r, nil
}
