package store

import (
	"context"
	"fmt"
	"time"

	"dts"
)

// Register makes a server known, alive under a new incarnation: what an earlier one writes is refused from then on.
// Of a server that is alone, the others count as dead: whoever calls this knows that they do not run.
func (s *Store) Register(ctx context.Context, n dts.Node, alone bool) error {
	batch := []Stmt{
		{`INSERT INTO tenants (tenant_id, name, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,
			[]any{dts.DefaultTenant, dts.DefaultTenant, n.StartedAt.UnixMicro()}},
		{`INSERT INTO nodes (node_id, tenant_id, incarnation, address, version, boot_id, started_at, seen_at, state, beat) VALUES (?,'system',?,?,?,?,?,?,'ALIVE',0)
			ON CONFLICT (node_id) DO UPDATE SET incarnation = excluded.incarnation, address = excluded.address, version = excluded.version,
				boot_id = excluded.boot_id, started_at = excluded.started_at, seen_at = excluded.seen_at, state = 'ALIVE', beat = 0
			WHERE nodes.incarnation <> excluded.incarnation`,
			[]any{n.ID, n.Incarnation, n.Address, n.Version, n.BootID, n.StartedAt.UnixMicro(), n.SeenAt.UnixMicro()}},
	}
	if alone {
		batch = append(batch, Stmt{`UPDATE nodes SET state = 'DEAD' WHERE node_id <> ? AND state IN ('ALIVE', 'LEAVING')`, []any{n.ID}})
	}
	for shard := range dts.Shards {
		batch = append(batch, Stmt{`INSERT INTO shards (shard, tenant_id, node_id, term) VALUES (?, 'system', '', 0) ON CONFLICT DO NOTHING`, []any{shard}})
	}
	return s.direct(ctx, "register", batch...)
}

// Beat says that the server lives: now, by its clock, and how many beats it has sent. ErrRefused means that it was
// declared dead, or that another one registered under its id.
func (s *Store) Beat(ctx context.Context, f dts.Fence, beat int64, now time.Time) error {
	return s.direct(ctx, "beat", fence(f, nil),
		Stmt{`UPDATE nodes SET beat = ?, seen_at = ? WHERE node_id = ?`, []any{beat, now.UnixMicro(), f.Node}})
}

// Leave says that the server stops: with over, that it has stopped. Its shards have been released before that.
func (s *Store) Leave(ctx context.Context, f dts.Fence, over bool) error {
	state := dts.NodeLeaving
	if over {
		state = dts.NodeLeft
	}
	return s.direct(ctx, "leave", fence(f, nil), Stmt{`UPDATE nodes SET state = ? WHERE node_id = ?`, []any{string(state), f.Node}})
}

// DeclareDead ends what another server may do, if its last beat is still the one that was seen. ErrRefused means
// that it has beaten since, or that somebody else was faster.
func (s *Store) DeclareDead(ctx context.Context, f dts.Fence, n dts.Node) error {
	return s.direct(ctx, "declare a server dead", fence(f, nil),
		Stmt{`INSERT INTO batch_assert (tenant_id, ok) SELECT 'system', NULL WHERE NOT EXISTS (
			SELECT 1 FROM nodes WHERE node_id = ? AND incarnation = ? AND beat = ? AND state = ?)`, []any{n.ID, n.Incarnation, n.Beat, string(n.State)}},
		Stmt{`UPDATE nodes SET state = 'DEAD' WHERE node_id = ?`, []any{n.ID}})
}

// TakeShards makes the server the holder of shards, all or none, each at the term after the one it has. ErrRefused
// means that one of them is not as From says, or belongs to another server that lives.
func (s *Store) TakeShards(ctx context.Context, f dts.Fence, takes []dts.Take) error {
	list := make([][3]any, len(takes))
	for i, t := range takes {
		list[i] = [3]any{t.Shard, t.From.Node, t.From.Term}
	}
	these := jsonOf(list)
	return s.direct(ctx, "take shards", fence(f, nil),
		Stmt{`INSERT INTO batch_assert (tenant_id, ok) SELECT 'system', NULL WHERE EXISTS (
			SELECT 1 FROM json_each(?1) AS j LEFT JOIN shards AS s ON s.shard = j.value ->> 0
			WHERE s.node_id IS NOT j.value ->> 1 OR s.term IS NOT j.value ->> 2
			OR EXISTS (SELECT 1 FROM nodes AS n WHERE n.node_id = s.node_id AND n.state IN ('ALIVE', 'LEAVING') AND n.node_id <> ?2))`, []any{these, f.Node}},
		Stmt{`UPDATE shards SET node_id = ?2, term = (SELECT j.value ->> 2 FROM json_each(?1) AS j WHERE j.value ->> 0 = shards.shard) + 1
			WHERE shard IN (SELECT j.value ->> 0 FROM json_each(?1) AS j)`, []any{these, f.Node}})
}

// ReleaseShards lets go of shards that the fence holds: the next one who takes them need not wait.
func (s *Store) ReleaseShards(ctx context.Context, f dts.Fence, shards dts.ShardSet) error {
	list := shards.List()
	return s.direct(ctx, "release shards", fence(f, claims(f, list...)),
		Stmt{`UPDATE shards SET node_id = '' WHERE shard IN (SELECT value FROM json_each(?))`, []any{jsonOf(list)}})
}

// Members returns all servers and the holders of all shards. The shards are read first: a holder is among the nodes.
func (s *Store) Members(ctx context.Context) (m dts.Members, err error) {
	err = s.query(ctx, "read shards", Linearizable, Stmt{`SELECT shard, node_id, term FROM shards ORDER BY shard`, nil}, func(r scanner) error {
		var shard int
		var h dts.Holder
		if err := r.Scan(&shard, &h.Node, &h.Term); err != nil {
			return err
		}
		if shard < 0 || shard >= dts.Shards {
			return fmt.Errorf("the table of shards holds a number %d", shard)
		}
		m.Holders[shard] = h
		return nil
	})
	if err != nil {
		return m, err
	}
	err = s.query(ctx, "read nodes", Linearizable, Stmt{selectNode + `ORDER BY node_id`, nil}, func(r scanner) error {
		n, err := scanNode(r)
		m.Nodes = append(m.Nodes, n)
		return err
	})
	return m, err
}

const selectNode = `SELECT node_id, incarnation, address, version, boot_id, state, beat, started_at, seen_at FROM nodes `

func scanNode(r scanner) (n dts.Node, err error) {
	var started, seen int64
	err = r.Scan(&n.ID, &n.Incarnation, &n.Address, &n.Version, &n.BootID, &n.State, &n.Beat, &started, &seen)
	n.StartedAt, n.SeenAt = time.UnixMicro(started).UTC(), time.UnixMicro(seen).UTC()
	return n, err
}

// Node returns what was last known of a server; found is false when it never registered.
func (s *Store) Node(ctx context.Context, id string) (n dts.Node, found bool, err error) {
	err = s.query(ctx, "read node", OwnWrites, Stmt{selectNode + `WHERE node_id = ?`, []any{id}}, func(r scanner) (err error) {
		found = true
		n, err = scanNode(r)
		return err
	})
	return n, found, err
}

// Lost returns up to limit tasks, each with its running attempt, that say RUNNING although nobody runs them any more:
// those in the shards whose server does not live, and with own also, in whatever shard, those of the fence's server
// itself, which then has only just started.
func (s *Store) Lost(ctx context.Context, f dts.Fence, shards dts.ShardSet, own bool, limit int) ([]dts.Lost, error) {
	low, high := halves(shards)
	tasks, err := s.tasks(ctx, "read running tasks", Stmt{selectTask + `WHERE status = 'RUNNING' AND status <> 'PENDING' AND status <> 'SUCCESS'
		AND (? AND node = ? OR NOT EXISTS (SELECT 1 FROM nodes AS n WHERE n.node_id = tasks.node AND n.state IN ('ALIVE', 'LEAVING'))` + inShards + `)
		ORDER BY seq LIMIT ?`, []any{flag(own), f.Node, low, high, limit}})
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

// Handoffs returns the tasks in the shards that other servers have made ready to run, up to limit.
func (s *Store) Handoffs(ctx context.Context, shards dts.ShardSet, limit int) (ids []string, err error) {
	low, high := halves(shards)
	err = s.query(ctx, "read handoffs", OwnWrites, Stmt{`SELECT task_id FROM handoffs WHERE true` + inShards + `ORDER BY task_id LIMIT ?`, []any{low, high, limit}},
		func(r scanner) error {
			var id string
			err := r.Scan(&id)
			ids = append(ids, id)
			return err
		})
	return ids, err
}

// DeleteHandoffs forgets handoffs of tasks that were taken up.
func (s *Store) DeleteHandoffs(ctx context.Context, f dts.Fence, ids []string) error {
	_, err := s.apply(ctx, "delete handoffs", fence(f, nil), Stmt{`DELETE FROM handoffs WHERE task_id IN (SELECT value FROM json_each(?))`, []any{jsonOf(ids)}})
	return err
}
