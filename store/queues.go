package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"dts"
)

// PutQueue gives a queue settings, or puts others in their place; its CreatedAt, and whether it is paused, count only
// where it had none. A dts.ErrConflict: there are too many.
func (s *Store) PutQueue(ctx context.Context, q *dts.Queue, token int64) error {
	return s.putQueue(ctx, q, `concurrency = excluded.concurrency, rate = excluded.rate, period_us = excluded.period_us,
		burst = excluded.burst, retry = excluded.retry, retention = excluded.retention, updated_at = excluded.updated_at`, token,
		Stmt{`DELETE FROM queue_rates WHERE tenant_id = ?1 AND name = ?2 AND NOT EXISTS (
			SELECT 1 FROM queues WHERE tenant_id = ?1 AND name = ?2 AND rate = ?3 AND period_us = ?4 AND burst = ?5)`,
			[]any{q.TenantID, q.Name, q.Rate, int64(q.PeriodSeconds * 1e6), q.Burst}}) // what was taken of another rate means nothing
}

// putQueue inserts the settings of a queue, or changes some of those that it has. before goes before that, in the same batch.
func (s *Store) putQueue(ctx context.Context, q *dts.Queue, change string, token int64, before ...Stmt) error {
	_, err := s.apply(ctx, "set up a queue", append(before,
		Stmt{`INSERT INTO batch_assert (tenant_id, ok) SELECT 'system', NULL WHERE (
			SELECT count(*) FROM queues WHERE tenant_id = ? AND name <> ?) >= ?`, []any{q.TenantID, q.Name, dts.MaxQueues}},
		Stmt{`INSERT INTO queues (` + queueColumns + `) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)
			ON CONFLICT (tenant_id, name) DO UPDATE SET ` + change, queueArgs(q)},
		changedRules(token))...)
	if errors.Is(err, ErrRefused) {
		return dts.Errorf(dts.ErrConflict, "there are %d queues with settings already, which is the most", dts.MaxQueues)
	}
	return err
}

// PauseQueue pauses a queue, or changes the note, with settings of their own where it had none. A dts.ErrConflict: there
// are too many queues with settings.
func (s *Store) PauseQueue(ctx context.Context, tenant, name, note string, now time.Time, token int64) error {
	q := dts.Queue{TenantID: tenant, Name: name, PausedAt: now, PauseNote: note, CreatedAt: now, UpdatedAt: now}
	return s.putQueue(ctx, &q, `paused_at = coalesce(paused_at, excluded.paused_at), pause_note = excluded.pause_note, updated_at = excluded.updated_at`, token)
}

// ResumeQueue ends a queue's pause, and takes its settings away where the pause was all of them.
func (s *Store) ResumeQueue(ctx context.Context, tenant, name string, now time.Time, token int64) error {
	_, err := s.apply(ctx, "resume a queue",
		Stmt{`UPDATE queues SET paused_at = NULL, pause_note = NULL, updated_at = ? WHERE tenant_id = ? AND name = ? AND paused_at IS NOT NULL`, []any{now.UnixMicro(), tenant, name}},
		Stmt{`DELETE FROM queues WHERE tenant_id = ? AND name = ? AND paused_at IS NULL AND concurrency = 0 AND rate = 0 AND retry IS NULL AND retention IS NULL`, []any{tenant, name}},
		changedRules(token))
	return err
}

// DeleteQueue takes a queue's settings away, if it has any, and with them its pause.
func (s *Store) DeleteQueue(ctx context.Context, tenant, name string, token int64) error {
	_, err := s.apply(ctx, "delete the settings of a queue",
		Stmt{`DELETE FROM queues WHERE tenant_id = ? AND name = ?`, []any{tenant, name}},
		Stmt{`DELETE FROM queue_rates WHERE tenant_id = ? AND name = ?`, []any{tenant, name}},
		changedRules(token))
	return err
}

const queueColumns = `tenant_id, name, concurrency, rate, period_us, burst, paused_at, pause_note, retry, retention, created_at, updated_at`

func queueArgs(q *dts.Queue) []any {
	args := []any{q.TenantID, q.Name, q.Concurrency, q.Rate, int64(q.PeriodSeconds * 1e6), q.Burst, micros(q.PausedAt), orNull(q.PauseNote), nil, nil,
		q.CreatedAt.UnixMicro(), q.UpdatedAt.UnixMicro()}
	if q.Retry != nil {
		args[8] = jsonOf(q.Retry)
	}
	if q.Retention != nil {
		args[9] = jsonOf(q.Retention)
	}
	return args
}

func (s *Store) queues(ctx context.Context, where string, args ...any) (list []*dts.Queue, err error) {
	err = s.query(ctx, "read queues", OwnWrites, Stmt{`SELECT ` + queueColumns + ` FROM queues ` + where, args}, func(r scanner) error {
		q, err := scanQueue(r)
		list = append(list, q)
		return err
	})
	return list, err
}

func scanQueue(r scanner) (*dts.Queue, error) {
	var q dts.Queue
	var period, created, updated int64
	var paused nullTime
	var note, retry, retention sql.NullString
	err := r.Scan(&q.TenantID, &q.Name, &q.Concurrency, &q.Rate, &period, &q.Burst, &paused, &note, &retry, &retention, &created, &updated)
	if err != nil {
		return nil, err
	}
	q.PeriodSeconds = float64(period) / 1e6
	q.PausedAt, q.PauseNote = paused.time(), note.String
	q.Paused = !q.PausedAt.IsZero()
	q.CreatedAt, q.UpdatedAt = time.UnixMicro(created).UTC(), time.UnixMicro(updated).UTC()
	for _, part := range []struct {
		text sql.NullString
		into any
	}{{retry, &q.Retry}, {retention, &q.Retention}} {
		if !part.text.Valid {
			continue
		}
		if err := json.Unmarshal([]byte(part.text.String), part.into); err != nil {
			return nil, fmt.Errorf("read the settings of queue %q: %w", q.Name, err)
		}
	}
	return &q, nil
}

// Queue returns the settings of a queue, or dts.ErrNotFound where it has none. What goes on in it: see QueueStates.
func (s *Store) Queue(ctx context.Context, tenant, name string) (*dts.Queue, error) {
	list, err := s.queues(ctx, `WHERE tenant_id = ? AND name = ?`, tenant, name)
	if err == nil && len(list) == 0 {
		err = dts.Errorf(dts.ErrNotFound, "the queue %q has no settings", name)
	}
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// Queues returns the settings of a tenant's queues that have any, by name.
func (s *Store) Queues(ctx context.Context, tenant string) ([]*dts.Queue, error) {
	return s.queues(ctx, `WHERE tenant_id = ? ORDER BY name`, tenant)
}

// AllQueues returns the settings of the queues of all tenants.
func (s *Store) AllQueues(ctx context.Context) ([]*dts.Queue, error) {
	return s.queues(ctx, `ORDER BY tenant_id, name`)
}
