package store

import (
	"context"
	"time"

	"dts"
)

// Begin registers a node and gives it every shard at a new term, which it returns. A server on SQLite holds
// the lock of its data directory, so that nobody else can hold them.
func (s *Store) Begin(ctx context.Context, n dts.Node) (dts.Fence, error) {
	f := dts.Fence{Node: n.ID}
	if _, err := s.one(ctx, "read terms", Stmt{`SELECT coalesce(max(term), 0) FROM shards`, nil}, &f.Term); err != nil {
		return f, err
	}
	f.Term++
	batch := []Stmt{
		{`INSERT INTO tenants (tenant_id, name, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,
			[]any{dts.DefaultTenant, dts.DefaultTenant, n.StartedAt.UnixMicro()}},
		{`INSERT INTO nodes (node_id, tenant_id, incarnation, address, version, boot_id, started_at, seen_at) VALUES (?,?,?,?,?,?,?,?)
			ON CONFLICT (node_id) DO UPDATE SET incarnation = excluded.incarnation, address = excluded.address, version = excluded.version,
				boot_id = excluded.boot_id, started_at = excluded.started_at, seen_at = excluded.seen_at`,
			[]any{n.ID, "system", n.Incarnation, n.Address, n.Version, n.BootID, n.StartedAt.UnixMicro(), n.SeenAt.UnixMicro()}},
	}
	for shard := range dts.Shards {
		batch = append(batch, Stmt{`INSERT INTO shards (shard, tenant_id, node_id, term, beat) VALUES (?, 'system', ?, ?, 0)
			ON CONFLICT (shard) DO UPDATE SET node_id = excluded.node_id, term = excluded.term, beat = 0 WHERE shards.term < excluded.term`,
			[]any{shard, n.ID, f.Term}})
	}
	_, err := s.apply(ctx, "take shards", batch...)
	return f, err
}

// Beat says that the node lives: now, and how many beats it has sent.
func (s *Store) Beat(ctx context.Context, f dts.Fence, beat int64, now time.Time) error {
	_, err := s.apply(ctx, "beat",
		Stmt{`UPDATE nodes SET seen_at = ? WHERE node_id = ?`, []any{now.UnixMicro(), f.Node}},
		Stmt{`UPDATE shards SET beat = ? WHERE node_id = ? AND term = ?`, []any{beat, f.Node, f.Term}})
	return err
}

// Node returns what was last known of a node; found is false when it never registered. SeenAt is the newest
// time in the store.
func (s *Store) Node(ctx context.Context, id string) (n dts.Node, found bool, err error) {
	var started, seen int64
	found, err = s.one(ctx, "read node", Stmt{
		`SELECT node_id, incarnation, address, version, boot_id, started_at, seen_at FROM nodes WHERE node_id = ?`, []any{id}},
		&n.ID, &n.Incarnation, &n.Address, &n.Version, &n.BootID, &started, &seen)
	if found {
		n.StartedAt, n.SeenAt = time.UnixMicro(started).UTC(), time.UnixMicro(seen).UTC()
	}
	return n, found, err
}

// Running returns up to limit tasks whose state is RUNNING under an older term than the fence's, each with
// its running attempt.
func (s *Store) Running(ctx context.Context, f dts.Fence, limit int) ([]dts.Lost, error) {
	tasks, err := s.tasks(ctx, "read running tasks", Stmt{selectTask + `WHERE status = 'RUNNING'
		AND status <> 'PENDING' AND status <> 'SUCCESS' AND term < ? ORDER BY seq LIMIT ?`, []any{f.Term, limit}})
	if err != nil {
		return nil, err
	}
	lost := make([]dts.Lost, 0, len(tasks))
	for _, t := range tasks {
		list, err := s.Attempts(ctx, t.TenantID, t.ID)
		if err != nil {
			return nil, err
		}
		l := dts.Lost{Task: t}
		if n := len(list); n > 0 && list[n-1].State == dts.AttemptRunning {
			l.Attempt = list[n-1]
		}
		lost = append(lost, l)
	}
	return lost, nil
}
