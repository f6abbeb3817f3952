package store

import (
	"context"
	"time"

	"dts"
)

// Batch counts the tasks of one bulk request that are still stored; ErrNotFound when there is none.
func (s *Store) Batch(ctx context.Context, tenant, id string) (*dts.Batch, error) {
	b := dts.Batch{ID: id}
	err := s.query(ctx, "read batch", OwnWrites, Stmt{`SELECT status, count(*), min(created_at), max(completed_at) FROM tasks
		WHERE batch_id = ? AND tenant_id = ? GROUP BY status`, []any{id, tenant}}, func(r scanner) error {
		var status string
		var n int
		var created, completed nullTime
		if err := r.Scan(&status, &n, &created, &completed); err != nil {
			return err
		}
		b.Total += n
		switch dts.Status(status) {
		case dts.Pending:
			b.Pending = n
		case dts.Running:
			b.Running = n
		case dts.Success:
			b.Success = n
		case dts.Failed:
			b.Failed = n
		case dts.Cancelled:
			b.Cancelled = n
		case dts.Skipped:
			b.Skipped = n
		}
		if at := created.time(); b.CreatedAt.IsZero() || at.Before(b.CreatedAt) {
			b.CreatedAt = at
		}
		if at := completed.time(); at.After(b.CompletedAt) {
			b.CompletedAt = at
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if b.Total == 0 {
		return nil, dts.Errorf(dts.ErrNotFound, "there is no task of a batch %s: it never was, or all its tasks have been deleted", id)
	}
	if b.Done = b.Pending+b.Running == 0; !b.Done {
		b.CompletedAt = time.Time{}
	}
	return &b, nil
}
