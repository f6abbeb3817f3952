package store

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"dts"
)

// PingSecret returns that from which ping URLs are made: the proposal if there was none yet, else the one that is there.
func (s *Store) PingSecret(ctx context.Context, proposal string) (secret string, err error) {
	if _, err := s.apply(ctx, "propose the secret of ping URLs", Stmt{
		`INSERT INTO secrets (tenant_id, name, value) VALUES ('system', 'ping', ?) ON CONFLICT DO NOTHING`, []any{proposal}}); err != nil {
		return "", err
	}
	err = s.query(ctx, "read the secret of ping URLs", Linearizable, Stmt{
		`SELECT value FROM secrets WHERE tenant_id = 'system' AND name = 'ping'`, nil},
		func(r scanner) error { return r.Scan(&secret) })
	if err == nil && secret == "" {
		err = dts.Errorf(dts.ErrInternal, "the secret of ping URLs is empty")
	}
	return secret, err
}

// AddPing keeps a ping, and of those of its recurring task the newest dts.MaxPings.
func (s *Store) AddPing(ctx context.Context, p *dts.PingRecord) error {
	var code any
	if p.ExitCode != nil {
		code = *p.ExitCode
	}
	_, err := s.apply(ctx, "store ping",
		Stmt{`INSERT INTO pings (tenant_id, recurring_task_id, received_at, ping_id, kind, exit_code, scheduled_at, source, body, body_bytes)
			VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING`,
			[]any{p.TenantID, p.RecurringTaskID, p.ReceivedAt.UnixMicro(), p.ID, string(p.Kind), code, micros(p.ScheduledAt), p.Source, p.Body, p.BodyBytes}},
		Stmt{`DELETE FROM pings WHERE recurring_task_id = ?1 AND (received_at, ping_id) <= (
			SELECT received_at, ping_id FROM pings WHERE recurring_task_id = ?1 ORDER BY received_at DESC, ping_id DESC LIMIT 1 OFFSET ?2)`,
			[]any{p.RecurringTaskID, dts.MaxPings}})
	return err
}

const selectPing = `SELECT tenant_id, recurring_task_id, received_at, ping_id, kind, exit_code, scheduled_at, source, body, body_bytes FROM pings `

func (s *Store) pings(ctx context.Context, op string, level Level, st Stmt) (list []*dts.PingRecord, err error) {
	err = s.query(ctx, op, level, st, func(r scanner) error {
		var p dts.PingRecord
		var received int64
		var code sql.NullInt64
		var scheduled nullTime
		if err := r.Scan(&p.TenantID, &p.RecurringTaskID, &received, &p.ID, &p.Kind, &code, &scheduled, &p.Source, &p.Body, &p.BodyBytes); err != nil {
			return err
		}
		p.ReceivedAt, p.ScheduledAt = time.UnixMicro(received).UTC(), scheduled.time()
		if code.Valid {
			n := int(code.Int64)
			p.ExitCode = &n
		}
		list = append(list, &p)
		return nil
	})
	return list, err
}

// Pings returns the newest pings of a recurring task, newest first.
func (s *Store) Pings(ctx context.Context, tenant, recurringID string, limit int) ([]*dts.PingRecord, error) {
	return s.pings(ctx, "read pings", OwnWrites, Stmt{selectPing + `WHERE recurring_task_id = ? AND tenant_id = ? ORDER BY received_at DESC, ping_id DESC LIMIT ?`,
		[]any{recurringID, tenant, limit}})
}

// PingsFor returns the pings that count for an instant of a recurring task, the oldest first, also those that another server
// has just taken in.
func (s *Store) PingsFor(ctx context.Context, recurringID string, instant time.Time) ([]*dts.PingRecord, error) {
	list, err := s.pings(ctx, "read pings of a run", Linearizable, Stmt{selectPing + `WHERE recurring_task_id = ? ORDER BY received_at, ping_id LIMIT ?`,
		[]any{recurringID, dts.MaxPings}})
	return slices.DeleteFunc(list, func(p *dts.PingRecord) bool { return !p.ScheduledAt.Equal(instant) }), err
}

// Expected returns the earliest occurrence of a recurring task that has not started, nil when there is none, and the newest
// instant before it, or up to now, that has a task; the zero time when there is none.
func (s *Store) Expected(ctx context.Context, recurringID string, now time.Time) (next *dts.Task, previous time.Time, err error) {
	list, err := s.tasks(ctx, "read what is expected next", Stmt{selectTask + `WHERE recurring_task_id = ? AND status = 'PENDING'
		AND origin = 'SCHEDULE' AND attempts = 0 ORDER BY scheduled_at LIMIT 1`, []any{recurringID}})
	if err != nil {
		return nil, previous, err
	}
	before := now.Add(time.Microsecond)
	if len(list) > 0 {
		next, before = list[0], list[0].ScheduledAt
	}
	var at nullTime
	_, err = s.one(ctx, "read the instant before", Stmt{`SELECT scheduled_at FROM tasks WHERE recurring_task_id = ? AND scheduled_at < ?
		AND origin = 'SCHEDULE' ORDER BY scheduled_at DESC LIMIT 1`,
		[]any{recurringID, before.UnixMicro()}}, &at)
	return next, at.time(), err
}
