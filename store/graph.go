package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"dts"
)

// graphEdges is how many dependencies a graph shows for each of its tasks, on average.
const graphEdges = 10

// Graph returns what a task depends on, and what depends on it, directly or not: the limit tasks that are nearest.
// dts.ErrNotFound: there is no such task.
func (s *Store) Graph(ctx context.Context, tenant, id string, limit int) (*dts.Graph, error) {
	if _, err := s.Task(ctx, tenant, id); err != nil {
		return nil, err
	}
	// A recursion takes what it found first first, so it comes to what is near before what is far.
	ids := []string{id}
	seen := map[string]bool{id: true}
	for _, walk := range [...]string{
		`WITH RECURSIVE near (id) AS (SELECT ?1 UNION SELECT d.parent_id FROM near CROSS JOIN dependencies AS d ON d.child_id = near.id LIMIT ?2) SELECT id FROM near`,
		`WITH RECURSIVE near (id) AS (SELECT ?1 UNION SELECT d.child_id FROM near CROSS JOIN dependencies AS d ON d.parent_id = near.id LIMIT ?2) SELECT id FROM near`,
	} {
		err := s.query(ctx, "walk dependencies", OwnWrites, Stmt{walk, []any{id, limit + 1}}, func(r scanner) error {
			var at string
			err := r.Scan(&at)
			if !seen[at] {
				seen[at] = true
				ids = append(ids, at)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	g := &dts.Graph{Dependencies: []dts.Dependency{}}
	err := s.query(ctx, "read dependencies", OwnWrites, Stmt{`SELECT d.child_id, d.parent_id, d.type, d.resolved FROM json_each(?1) AS j CROSS JOIN dependencies AS d ON d.child_id = j.value
		WHERE d.parent_id IN (SELECT value FROM json_each(?1)) ORDER BY d.child_id, d.parent_id LIMIT ?2`, []any{jsonOf(ids), limit*graphEdges + 1}}, func(r scanner) error {
		var d dts.Dependency
		var resolved int
		err := r.Scan(&d.ChildID, &d.ParentID, &d.Type, &resolved)
		d.State = dependencyState(resolved)
		g.Dependencies = append(g.Dependencies, d)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(g.Dependencies) > limit*graphEdges {
		g.Dependencies, g.Truncated = g.Dependencies[:limit*graphEdges], true
	}
	ids = nearest(id, ids, g.Dependencies)
	if len(ids) > limit {
		ids, g.Truncated = ids[:limit], true
		kept := map[string]bool{}
		for _, id := range ids {
			kept[id] = true
		}
		g.Dependencies = slices.DeleteFunc(g.Dependencies, func(d dts.Dependency) bool { return !kept[d.ChildID] || !kept[d.ParentID] })
	}
	if g.Tasks, err = s.graphTasks(ctx, tenant, ids); err != nil {
		return nil, err
	}
	return g, nil
}

func dependencyState(resolved int) dts.DependencyState {
	switch resolved {
	case 1:
		return dts.DependencySatisfied
	case 2:
		return dts.DependencyFailed
	case 3:
		return dts.DependencyOverridden
	}
	return dts.DependencyOpen
}

// nearest sorts tasks by how many dependencies lie between them and the one that was asked about.
func nearest(id string, ids []string, edges []dts.Dependency) []string {
	next := map[string][]string{}
	for _, e := range edges {
		next[e.ChildID] = append(next[e.ChildID], e.ParentID)
		next[e.ParentID] = append(next[e.ParentID], e.ChildID)
	}
	far := map[string]int{id: 0}
	for queue := []string{id}; len(queue) > 0; queue = queue[1:] {
		for _, to := range next[queue[0]] {
			if _, seen := far[to]; !seen {
				far[to] = far[queue[0]] + 1
				queue = append(queue, to)
			}
		}
	}
	at := func(id string) int {
		if d, seen := far[id]; seen {
			return d
		}
		return len(ids)
	}
	slices.SortStableFunc(ids, func(a, b string) int { return cmp.Compare(at(a), at(b)) })
	return ids
}

// graphTasks reads the tasks of a graph, in the order of the ids. One that was deleted is there with its id.
func (s *Store) graphTasks(ctx context.Context, tenant string, ids []string) (list []dts.GraphTask, err error) {
	err = s.query(ctx, "read the tasks of a graph", OwnWrites, Stmt{`SELECT j.value, t.name, t.status, t.skip_reason, t.last_error, t.due_at, t.completed_at, t.unresolved_dependencies_count
		FROM json_each(?) AS j LEFT JOIN tasks AS t ON t.task_id = j.value AND t.tenant_id = ? ORDER BY j.key`, []any{jsonOf(ids), tenant}}, func(r scanner) error {
		var t dts.GraphTask
		var name, status, reason, text sql.NullString
		var due, completed nullTime
		var open sql.NullInt64
		err := r.Scan(&t.ID, &name, &status, &reason, &text, &due, &completed, &open)
		t.Name, t.Status, t.SkipReason, t.LastError = name.String, dts.Status(status.String), dts.Reason(reason.String), text.String
		t.DueAt, t.CompletedAt, t.Unresolved = due.time(), completed.time(), int(open.Int64)
		list = append(list, t)
		return err
	})
	return list, err
}

// DependsOn reports whether a task depends on another one, directly.
func (s *Store) DependsOn(ctx context.Context, tenant, child, parent string) (bool, error) {
	return s.one(ctx, "read a dependency", Stmt{`SELECT child_id FROM dependencies WHERE child_id = ? AND parent_id = ? AND tenant_id = ?`, []any{child, parent, tenant}}, new(string))
}
