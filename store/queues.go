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

// PutQueue gives a queue settings, or changes them; its CreatedAt counts only where it had none. A dts.ErrConflict: there
// are too many.
func (s *Store) PutQueue(ctx context.Context, q *dts.Queue, token int64) error {
	_, err := s.apply(ctx, "set up a queue",
		Stmt{`INSERT INTO batch_assert (tenant_id, ok) SELECT 'system', NULL WHERE (
			SELECT count(*) FROM queues WHERE tenant_id = ? AND name <> ?) >= ?`, []any{q.TenantID, q.Name, dts.MaxQueues}},
		Stmt{`INSERT INTO queues (` + queueColumns + `) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)
			ON CONFLICT (tenant_id, name) DO UPDATE SET concurrency = excluded.concurrency, rate = excluded.rate, period_us = excluded.period_us,
				burst = excluded.burst, paused_at = excluded.paused_at, pause_note = excluded.pause_note, retry = excluded.retry,
				retention = excluded.retention, updated_at = excluded.updated_at`, queueArgs(q)},
		changedRules(token))
	if errors.Is(err, ErrRefused) {
		return dts.Errorf(dts.ErrConflict, "there are %d queues with settings already, which is the most", dts.MaxQueues)
	}
	return err
}

// DeleteQueue takes a queue's settings away, if it has any.
func (s *Store) DeleteQueue(ctx context.Context, tenant, name string, token int64) error {
	_, err := s.apply(ctx, "delete the settings of a queue", Stmt{`DELETE FROM queues WHERE tenant_id = ? AND name = ?`, []any{tenant, name}}, changedRules(token))
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

const selectQueue = `SELECT ` + queueColumns + `,
	(SELECT count(*) FROM slots AS s WHERE s.tenant_id = q.tenant_id AND s.line = 'queue ' || q.name),
	(SELECT count(*) FROM tasks AS t WHERE t.tenant_id = q.tenant_id AND t.line = 'queue ' || q.name AND t.status = 'PENDING') FROM queues AS q `

func (s *Store) queues(ctx context.Context, where string, args ...any) (list []*dts.Queue, err error) {
	err = s.query(ctx, "read queues", OwnWrites, Stmt{selectQueue + where, args}, func(r scanner) error {
		var q dts.Queue
		var period, created, updated int64
		var paused nullTime
		var note, retry, retention sql.NullString
		err := r.Scan(&q.TenantID, &q.Name, &q.Concurrency, &q.Rate, &period, &q.Burst, &paused, &note, &retry, &retention, &created, &updated, &q.Running, &q.Waiting)
		if err != nil {
			return err
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
				return fmt.Errorf("read the settings of queue %q: %w", q.Name, err)
			}
		}
		list = append(list, &q)
		return nil
	})
	return list, err
}

// Queue returns a queue that has settings, or dts.ErrNotFound.
func (s *Store) Queue(ctx context.Context, tenant, name string) (*dts.Queue, error) {
	list, err := s.queues(ctx, `WHERE q.tenant_id = ? AND q.name = ?`, tenant, name)
	if err == nil && len(list) == 0 {
		err = dts.Errorf(dts.ErrNotFound, "the queue %q has no settings", name)
	}
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// Queues returns a tenant's queues that have settings, by name.
func (s *Store) Queues(ctx context.Context, tenant string) ([]*dts.Queue, error) {
	return s.queues(ctx, `WHERE q.tenant_id = ? ORDER BY q.name`, tenant)
}

// QueueLimits returns the limits of the queues of all tenants, by their lines.
func (s *Store) QueueLimits(ctx context.Context) (map[dts.LineKey]int, error) {
	limits := map[dts.LineKey]int{}
	err := s.query(ctx, "read the limits of queues", OwnWrites, Stmt{`SELECT tenant_id, name, concurrency FROM queues WHERE concurrency > 0`, nil}, func(r scanner) error {
		var k dts.LineKey
		var n int
		err := r.Scan(&k.TenantID, &k.Line, &n)
		k.Line = dts.QueueLine(k.Line)
		limits[k] = n
		return err
	})
	return limits, err
}
