package store

import (
	"database/sql"
	"fmt"
	"time"

	"dts"
)

const attemptColumns = `tenant_id, task_id, number, state, node, picked_at, started_at, completed_at,
	duration_us, lateness_us, http_status, exit_code, error, cpu_us, max_rss_bytes, output_bytes, pgid, proc_start, boot_id, queued_us, stopped_us`

const selectAttempt = `SELECT ` + attemptColumns + ` FROM all_attempts `

func attemptArgs(a *dts.Attempt) []any {
	args := []any{
		a.TenantID, a.TaskID, a.Number, string(a.State), a.Node, micros(a.PickedAt), a.StartedAt.UnixMicro(), micros(a.CompletedAt),
		a.DurationUS, a.LatenessUS, orNull(a.HTTPStatus), ptr(a.ExitCode), orNull(a.Error), a.CPUUS, a.MaxRSSBytes, a.OutputBytes,
	}
	if p := a.Process; p != nil {
		return append(args, p.PGID, int64(p.StartTime), p.BootID, a.QueuedUS, a.StoppedUS)
	}
	return append(args, nil, nil, nil, a.QueuedUS, a.StoppedUS)
}

func scanAttempt(r scanner) (*dts.Attempt, error) {
	var (
		a                  dts.Attempt
		state              string
		started            int64
		picked, completed  nullTime
		status, exit, pgid sql.NullInt64
		text, boot         sql.NullString
		procStart          sql.NullInt64
	)
	err := r.Scan(&a.TenantID, &a.TaskID, &a.Number, &state, &a.Node, &picked, &started, &completed,
		&a.DurationUS, &a.LatenessUS, &status, &exit, &text, &a.CPUUS, &a.MaxRSSBytes, &a.OutputBytes, &pgid, &procStart, &boot, &a.QueuedUS, &a.StoppedUS)
	if err != nil {
		return nil, fmt.Errorf("read attempt: %w", err)
	}
	a.State = dts.AttemptState(state)
	a.PickedAt, a.StartedAt, a.CompletedAt = picked.time(), time.UnixMicro(started).UTC(), completed.time()
	a.HTTPStatus, a.ExitCode, a.Error = int(status.Int64), intPtr(exit), text.String
	if pgid.Valid {
		a.Process = &dts.Process{PGID: int(pgid.Int64), StartTime: uint64(procStart.Int64), BootID: boot.String}
	}
	return &a, nil
}
