package store

import (
	"context"
	"time"

	"dts"
)

// Expired returns PENDING tasks in the shards whose expires_at has passed, after the one with the given Seq, oldest first. The
// run of a workflow that waits for its steps has started, and is none.
func (s *Store) Expired(ctx context.Context, shards dts.ShardSet, now time.Time, after int64, limit int) ([]*dts.Task, error) {
	low, high := halves(shards)
	return s.tasks(ctx, "read expired tasks", Stmt{selectTask + `WHERE seq IN (
			SELECT seq FROM tasks WHERE expires_at IS NOT NULL AND status = 'PENDING' AND expires_at < ?)
		AND NOT (target_type = 'WORKFLOW' AND attempts > 0) AND seq > ?` + inShards + `ORDER BY seq LIMIT ?`, []any{now.UnixMicro(), after, low, high, limit}})
}
