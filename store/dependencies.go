package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dts"
)

// Dependencies: who ends a task, or deletes one, appends ripple to its batch. So a count of open dependencies is
// right in the same instant as the end that resolves them. It goes one wave far: a task that ends because of that, by being
// skipped, stands in cascades until Cascade has told its own dependents.

const (
	// rippleEdges is how many dependencies one wave resolves. What is left over stays open, and its parent in cascades.
	rippleEdges = 20_000
	// cascadeWaves is how many waves one batch of Cascade makes.
	cascadeWaves = 128
)

// The joins are CROSS JOINs where SQLite must go through the list on their left, and lists are made before they are joined to
// tasks: it does not know how short they are.
const (
	// noteEnds puts those of the tasks into cascades that have ended, or are gone, and on which some still wait. Where
	// nothing depends on anything it finds an empty index.
	noteEnds = `INSERT INTO cascades (tenant_id, task_id, status)
		SELECT d.tenant_id, d.parent_id, coalesce(t.status, 'CANCELLED')
		FROM json_each(?) AS j CROSS JOIN dependencies AS d ON d.parent_id = j.value AND d.resolved = 0 LEFT JOIN tasks AS t ON t.task_id = d.parent_id
		WHERE coalesce(t.status, 'CANCELLED') NOT IN ('PENDING', 'RUNNING') GROUP BY d.parent_id
		ON CONFLICT (task_id) DO UPDATE SET status = excluded.status WHERE excluded.status <> 'CANCELLED'`

	// noteParents does the same for what tasks depend on.
	noteParents = `INSERT INTO cascades (tenant_id, task_id, status)
		SELECT DISTINCT t.tenant_id, t.task_id, t.status
		FROM json_each(?) AS j CROSS JOIN dependencies AS d ON d.child_id = j.value AND d.resolved = 0 CROSS JOIN tasks AS t ON t.task_id = d.parent_id
		WHERE t.status NOT IN ('PENDING', 'RUNNING') ON CONFLICT DO NOTHING`

	// resolveEdges decides as dts.DependencyType.Outcome does.
	resolveEdges = `UPDATE dependencies SET resolved = CASE dependencies.type WHEN 'MUST_FINISH' THEN 11
			WHEN 'MUST_FAIL' THEN iif(x.status = 'FAILED', 11, 12) ELSE iif(x.status = 'SUCCESS', 11, 12) END
		FROM (SELECT d.child_id, d.parent_id, c.status FROM cascades AS c CROSS JOIN dependencies AS d ON d.parent_id = c.task_id AND d.resolved = 0
			ORDER BY c.task_id, d.child_id LIMIT ?) AS x
		WHERE dependencies.child_id = x.child_id AND dependencies.parent_id = x.parent_id`

	// dependsAny is whether a task t needs one of its dependencies only.
	dependsAny = `iif(json_valid(t.spec), t.spec ->> '$.depends_mode' IS 'ANY', 0)`

	// countEdges takes the edges that were just resolved off their children's counts. A child is ready when its count comes
	// to 0, and it ends when its dependencies cannot be met any more: bad is then one that has failed.
	countEdges = `WITH x AS MATERIALIZED (SELECT y.seq, y.fails,
				CASE WHEN y.one THEN iif(y.met > 0, 0, max(y.open - y.n, 0)) ELSE iif(y.bad IS NULL, max(y.open - y.n, 0), 0) END AS remain,
				CASE WHEN y.one THEN iif(y.met > 0 OR y.open > y.n, NULL, y.bad) ELSE y.bad END AS bad
			FROM (SELECT t.seq, t.unresolved_dependencies_count AS open, g.n, g.met, g.bad, ` + dependsAny + ` AS one,
					iif(json_valid(t.spec), t.spec ->> '$.on_dependency_failure' IS 'FAIL', 0) AS fails
				FROM (SELECT d.child_id, count(*) AS n, sum(d.resolved = 11) AS met, min(iif(d.resolved = 12, d.parent_id, NULL)) AS bad
					FROM cascades AS c CROSS JOIN dependencies AS d ON d.parent_id = c.task_id AND d.resolved > 10 GROUP BY d.child_id) AS g
				CROSS JOIN tasks AS t ON t.task_id = g.child_id WHERE t.status = 'PENDING' AND t.unresolved_dependencies_count > 0) AS y)
		UPDATE tasks SET unresolved_dependencies_count = x.remain,
			resolved_at = iif(x.remain = 0, ?1, tasks.resolved_at), miss_at = iif(x.remain = 0, NULL, tasks.miss_at),
			status = iif(x.bad IS NULL, tasks.status, iif(x.fails, 'FAILED', 'SKIPPED')),
			completed_at = iif(x.bad IS NULL, NULL, ?1),
			skip_reason = iif(x.bad IS NULL, tasks.skip_reason, 'DEPENDENCY'),
			waits_for = iif(x.bad IS NULL, tasks.waits_for, NULL), line = iif(x.bad IS NULL, tasks.line, NULL),
			last_error = iif(x.bad IS NULL, tasks.last_error, (SELECT 'it depends on ' || coalesce(nullif(p.name, '') || ' (' || x.bad || ')', x.bad) ||
				iif(p.task_id IS NULL, ', which was deleted', ', which ended as ' || c.status) FROM cascades AS c LEFT JOIN tasks AS p ON p.task_id = c.task_id WHERE c.task_id = x.bad))
		FROM x WHERE tasks.seq = x.seq`

	// told are the tasks t that countEdges has just made ready, or ended.
	told = `FROM cascades AS c CROSS JOIN dependencies AS d ON d.parent_id = c.task_id AND d.resolved > 10 CROSS JOIN tasks AS t ON t.task_id = d.child_id
		WHERE t.resolved_at = ?1 AND t.unresolved_dependencies_count = 0 AND t.status <> 'RUNNING'`

	// tellHolders lets the holders of their shards know.
	tellHolders = `INSERT INTO handoffs (tenant_id, task_id, shard) SELECT DISTINCT t.tenant_id, t.task_id, t.shard ` + told + ` ON CONFLICT DO NOTHING`

	// nextWave goes on with those that have ended.
	nextWave = `INSERT INTO cascades (tenant_id, task_id, status) SELECT DISTINCT t.tenant_id, t.task_id, t.status ` + told + ` AND t.status <> 'PENDING'
			AND EXISTS (SELECT 1 FROM dependencies AS e WHERE e.parent_id = t.task_id AND e.resolved = 0) ON CONFLICT DO NOTHING`

	settleEdges = `UPDATE dependencies SET resolved = resolved - 10 WHERE parent_id IN (SELECT task_id FROM cascades) AND resolved > 10`

	endWave = `DELETE FROM cascades WHERE NOT EXISTS (SELECT 1 FROM dependencies AS d WHERE d.parent_id = cascades.task_id AND d.resolved = 0)`
)

// ripple is the statements that tell the dependents of tasks which the batch before them has ended or deleted.
func ripple(ids []string, at time.Time) []Stmt {
	return append([]Stmt{{noteEnds, []any{jsonOf(ids)}}}, wave(at)...)
}

// wave tells the dependents of all that stands in cascades.
func wave(at time.Time) []Stmt {
	us := at.UnixMicro()
	return []Stmt{
		{resolveEdges, []any{rippleEdges}}, {countEdges, []any{us}}, {tellHolders, []any{us}}, {nextWave, []any{us}}, {settleEdges, nil}, {endWave, nil},
	}
}

// rippled looks at the outcome of a batch whose last statements, n of them, are a ripple, and says so in Ripples if those
// found something to do.
func (s *Store) rippled(res []Result, n int, err error) {
	found := n > 0 && err == nil && slices.ContainsFunc(res[len(res)-n:], func(r Result) bool { return r.RowsAffected > 0 })
	if found || n > 0 && dts.CodeOf(err) == dts.ErrUnknown {
		select {
		case s.ripples <- struct{}{}:
		default:
		}
	}
}

// Ripples is sent to when a batch of this Store has ended tasks on which others wait, or may have: then there may be
// something in Handoffs, and something for Cascade to do.
func (s *Store) Ripples() <-chan struct{} { return s.ripples }

// Cascade goes on to tell the dependents of tasks that have ended, from those that were skipped to those that are skipped
// because of them, and so on, some way. more: there is more to do.
func (s *Store) Cascade(ctx context.Context, f dts.Fence, now time.Time) (more bool, err error) {
	left := func() (any bool, err error) {
		_, err = s.one(ctx, "read cascades", Stmt{`SELECT EXISTS (SELECT 1 FROM cascades)`, nil}, &any)
		return any, err
	}
	if any, err := left(); err != nil || !any {
		return false, err
	}
	batch := make([]Stmt, 1, 1+6*cascadeWaves)
	batch[0] = fence(f, nil)
	for range cascadeWaves {
		batch = append(batch, wave(now)...)
	}
	if _, err := s.apply(ctx, "tell dependents", batch...); err != nil {
		return true, err
	}
	return left()
}

const (
	// parentOf is the parent that row j of a list names: by its id, or by the idempotency key or the dedupe_key of a task that
	// may have been there before.
	parentOf = `CASE WHEN j.value ->> 3 IS NOT NULL THEN (SELECT k.resource_id FROM idempotency_keys AS k WHERE k.tenant_id = t.tenant_id AND k.key = j.value ->> 3)
		WHEN j.value ->> 4 IS NOT NULL THEN (SELECT u.task_id FROM tasks AS u WHERE u.tenant_id = t.tenant_id AND u.dedupe_key = j.value ->> 4
			AND (u.status = 'PENDING' OR u.status = 'RUNNING'))
		ELSE j.value ->> 1 END`

	// A child that was not inserted, because its own idempotency key was taken, is left out.
	insertEdges = `INSERT INTO dependencies (tenant_id, child_id, parent_id, type, resolved)
		SELECT t.tenant_id, t.task_id, ` + parentOf + `, j.value ->> 2, 0 FROM json_each(?) AS j CROSS JOIN tasks AS t ON t.task_id = j.value ->> 0 WHERE true
		ON CONFLICT (child_id, parent_id) DO UPDATE SET type = excluded.type WHERE dependencies.resolved = 0`

	assertParents = `INSERT INTO batch_assert (tenant_id, ok) SELECT 'system', NULL WHERE EXISTS (
		SELECT 1 FROM json_each(?) AS j CROSS JOIN tasks AS t ON t.task_id = j.value ->> 0
		WHERE NOT EXISTS (SELECT 1 FROM tasks AS p WHERE p.task_id = ` + parentOf + ` AND p.tenant_id = t.tenant_id))`

	// recount sets the counts of tasks anew that have not started: right whatever was before. It reads all edges of each.
	recount = `WITH x AS MATERIALIZED (SELECT t.seq, iif(` + dependsAny + ` AND EXISTS (SELECT 1 FROM dependencies AS d WHERE d.child_id = t.task_id AND d.resolved = 1), 0,
				(SELECT count(*) FROM dependencies AS d WHERE d.child_id = t.task_id AND d.resolved = 0)) AS remain
			FROM json_each(?1) AS j CROSS JOIN tasks AS t ON t.task_id = j.value WHERE t.status = 'PENDING' AND t.attempts = 0)
		UPDATE tasks SET unresolved_dependencies_count = x.remain,
			resolved_at = iif(x.remain = 0 AND unresolved_dependencies_count > 0, ?2, resolved_at), miss_at = iif(x.remain = 0 AND unresolved_dependencies_count > 0, NULL, miss_at)
		FROM x WHERE tasks.seq = x.seq`
)

// newEdges is the statements that make new tasks depend on others, after those that insert them; none where none does. The
// last of them, rippling many, are a ripple.
func newEdges(tasks []*dts.Task) (batch []Stmt, rippling int) {
	keys, dedupes := map[string]string{}, map[string]string{} // of the tasks themselves
	for _, t := range tasks {
		if t.IdempotencyKey != "" {
			keys[t.ID] = t.IdempotencyKey
		} else if keepsFirst(t) {
			dedupes[t.ID] = t.DedupeKey
		}
	}
	var edges [][5]any
	var children []string
	var at time.Time
	for _, t := range tasks {
		for _, d := range t.DependsOn {
			edges = append(edges, edge(t.ID, d, keys[d.TaskID], dedupes[d.TaskID]))
		}
		if len(t.DependsOn) > 0 {
			children = append(children, t.ID)
			at = t.CreatedAt
		}
	}
	if edges == nil {
		return nil, 0
	}
	list, waiting := jsonOf(edges), jsonOf(children)
	rest := append([]Stmt{{noteParents, []any{waiting}}}, wave(at)...)
	return append([]Stmt{{assertParents, []any{list}}, {insertEdges, []any{list}}, {recount, []any{waiting, at.UnixMicro()}}}, rest...), len(rest)
}

// edge is a row as insertEdges reads it.
func edge(child string, d dts.DependsOn, key, dedupe string) [5]any {
	return [5]any{child, d.TaskID, string(d.Type), orNull(key), orNull(dedupe)}
}

// missingParent returns an error that names what new tasks depend on and is not there; nil where everything is.
func (s *Store) missingParent(ctx context.Context, tasks []*dts.Task) error {
	made := make(map[string]bool, len(tasks))
	for _, t := range tasks {
		made[t.ID] = true
	}
	for i, t := range tasks {
		prefix := ""
		if t.BatchID != "" {
			prefix = "tasks[" + strconv.Itoa(i) + "]."
		}
		if len(t.DependsOn) == 0 {
			continue
		}
		if err := s.missing(ctx, t.TenantID, prefix, t.DependsOn, made); err != nil {
			return err
		}
	}
	return nil
}

// missing returns an error about those parents that are neither in the store nor among made.
func (s *Store) missing(ctx context.Context, tenant, prefix string, list []dts.DependsOn, made map[string]bool) error {
	ids := make([]string, len(list))
	for i, d := range list {
		ids[i] = d.TaskID
	}
	var fields []dts.FieldError
	err := s.query(ctx, "look up dependencies", OwnWrites, Stmt{`SELECT j.key FROM json_each(?) AS j WHERE NOT EXISTS (
		SELECT 1 FROM tasks AS t WHERE t.task_id = j.value AND t.tenant_id = ?) ORDER BY j.key`, []any{jsonOf(ids), tenant}}, func(r scanner) error {
		var i int
		err := r.Scan(&i)
		if err == nil && !made[ids[i]] && len(fields) < 20 {
			fields = append(fields, dts.FieldError{Field: prefix + "depends_on[" + strconv.Itoa(i) + "].task_id", Message: "there is no task " + ids[i]})
		}
		return err
	})
	if err == nil && fields != nil {
		err = &dts.Error{Code: dts.ErrInvalid, Message: "the request is not valid", Fields: fields}
	}
	return err
}

// readResolved reads what has become of new tasks that depend on others: all may have ended before.
func (s *Store) readResolved(ctx context.Context, tasks []*dts.Task) error {
	byID := map[string]*dts.Task{}
	var ids []string
	for _, t := range tasks {
		if len(t.DependsOn) > 0 {
			byID[t.ID] = t
			ids = append(ids, t.ID)
		}
	}
	if ids == nil {
		return nil
	}
	return s.query(ctx, "read new tasks", OwnWrites, Stmt{`SELECT task_id, seq, status, unresolved_dependencies_count, resolved_at, completed_at, skip_reason, last_error
		FROM tasks WHERE task_id IN (SELECT value FROM json_each(?))`, []any{jsonOf(ids)}}, func(r scanner) error {
		var id string
		var seq int64
		var status dts.Status
		var open int
		var resolved, completed nullTime
		var reason, text sql.NullString
		if err := r.Scan(&id, &seq, &status, &open, &resolved, &completed, &reason, &text); err != nil {
			return err
		}
		t := byID[id]
		t.Status, t.Unresolved, t.ResolvedAt, t.CompletedAt = status, open, resolved.time(), completed.time()
		t.SkipReason, t.LastError = dts.Reason(reason.String), text.String
		return nil
	})
}

const (
	// An ancestor of its parents must not be the task itself. What was asked for stands in dependencies already, so who closes
	// a circle later than another one finds it.
	ancestors   = `WITH RECURSIVE up (id) AS (SELECT value FROM json_each(?1) UNION SELECT d.parent_id FROM up CROSS JOIN dependencies AS d ON d.child_id = up.id LIMIT ?2) `
	assertRound = `INSERT INTO batch_assert (tenant_id, ok) ` + ancestors + `SELECT 'system', NULL FROM up WHERE id = ?3 LIMIT 1`
	assertBound = `INSERT INTO batch_assert (tenant_id, ok) ` + ancestors + `SELECT 'system', NULL WHERE (SELECT count(*) FROM up) >= ?2`

	// Of a task that needs one of several, the last that can still be met cannot go.
	assertHope = `INSERT INTO batch_assert (tenant_id, ok) SELECT 'system', NULL FROM tasks AS t WHERE t.task_id = ? AND ` + dependsAny + `
		AND EXISTS (SELECT 1 FROM dependencies AS d WHERE d.child_id = t.task_id AND d.resolved = 2)
		AND NOT EXISTS (SELECT 1 FROM dependencies AS d WHERE d.child_id = t.task_id AND d.resolved <> 2)`
)

// appendEdges makes a task that has not started depend on others, or on one less.
func appendEdges(batch []Stmt, c *dts.Change, now time.Time) []Stmt {
	if len(c.DependsOn) > 0 {
		rows, parents := make([][5]any, len(c.DependsOn)), make([]string, len(c.DependsOn))
		for i, d := range c.DependsOn {
			rows[i], parents[i] = edge(c.Old.ID, d, "", ""), d.TaskID
		}
		edges, up := jsonOf(rows), jsonOf(parents)
		batch = append(batch,
			Stmt{assertParents, []any{edges}},
			Stmt{assertRound, []any{up, dts.MaxAncestors + 1, c.Old.ID}},
			Stmt{assertBound, []any{up, dts.MaxAncestors + 1}},
			Stmt{insertEdges, []any{edges}})
	}
	if c.Undepend != "" {
		batch = append(batch,
			Stmt{`DELETE FROM dependencies WHERE child_id = ? AND parent_id = ?`, []any{c.Old.ID, c.Undepend}},
			Stmt{assertHope, []any{c.Old.ID}})
	}
	return append(batch, Stmt{recount, []any{jsonOf([]string{c.Old.ID}), now.UnixMicro()}}, Stmt{noteParents, []any{jsonOf([]string{c.Old.ID})}})
}

// appendOverride lets a task run whatever it depends on; with failed also where that has failed.
func appendOverride(batch []Stmt, id string, failed bool, now time.Time) []Stmt {
	worst := 0
	if failed {
		worst = 2
	}
	return append(batch,
		Stmt{`UPDATE dependencies SET resolved = 3 WHERE child_id = ? AND resolved IN (0, ?)`, []any{id, worst}},
		Stmt{`UPDATE tasks SET unresolved_dependencies_count = 0, resolved_at = ? WHERE task_id = ? AND unresolved_dependencies_count > 0`, []any{now.UnixMicro(), id}})
}

// waitsAgain is the condition that a child t waits again for a parent p that runs once more: it has not started, or it is
// the run of a workflow of which that is a step.
const waitsAgain = `t.status = 'PENDING' AND (t.attempts = 0 OR t.task_id = (SELECT p.workflow_id FROM tasks AS p WHERE p.task_id = d.parent_id))`

// appendReopen lets those wait again for a task that has not started, because that runs once more.
func appendReopen(batch []Stmt, id string) []Stmt {
	return append(batch,
		Stmt{`DELETE FROM cascades WHERE task_id = ?`, []any{id}},
		Stmt{`UPDATE dependencies AS d SET resolved = 0 WHERE parent_id = ? AND resolved IN (1, 2)
			AND EXISTS (SELECT 1 FROM tasks AS t WHERE t.task_id = d.child_id AND ` + waitsAgain + `)`, []any{id}},
		Stmt{`UPDATE tasks AS t SET unresolved_dependencies_count = iif(` + dependsAny + ` AND EXISTS (SELECT 1 FROM dependencies AS d WHERE d.child_id = t.task_id AND d.resolved = 1), 0,
				(SELECT count(*) FROM dependencies AS d WHERE d.child_id = t.task_id AND d.resolved = 0))
			WHERE EXISTS (SELECT 1 FROM dependencies AS d WHERE d.parent_id = ? AND d.child_id = t.task_id AND d.resolved = 0 AND ` + waitsAgain + `)
				AND task_id IN (SELECT child_id FROM dependencies WHERE parent_id = ? AND resolved = 0)`, []any{id, id}})
}

// Reopened returns the tasks that wait again for one of the parents: those that have not started, and runs of workflows.
func (s *Store) Reopened(ctx context.Context, parents []string) (ids []string, err error) {
	err = s.query(ctx, "read what waits for tasks", OwnWrites, Stmt{`SELECT DISTINCT t.task_id
		FROM json_each(?) AS j CROSS JOIN dependencies AS d ON d.parent_id = j.value AND d.resolved = 0 CROSS JOIN tasks AS t ON t.task_id = d.child_id
		WHERE ` + waitsAgain + ` AND t.unresolved_dependencies_count > 0`, []any{jsonOf(parents)}}, func(r scanner) error {
		var id string
		err := r.Scan(&id)
		ids = append(ids, id)
		return err
	})
	return ids, err
}

// refusedEdges says why a change of what a task depends on was refused; err where that was for another reason.
func (s *Store) refusedEdges(ctx context.Context, c *dts.Change, err error) error {
	t := c.Old
	if e := s.missing(ctx, t.TenantID, "", c.DependsOn, nil); e != nil {
		return e
	}
	if c.Undepend != "" {
		var gone, hopeless bool
		_, e := s.one(ctx, "read dependencies", Stmt{`SELECT NOT EXISTS (SELECT 1 FROM dependencies WHERE child_id = ?1 AND parent_id = ?2),
			EXISTS (SELECT 1 FROM dependencies WHERE child_id = ?1 AND resolved = 2) AND NOT EXISTS (SELECT 1 FROM dependencies WHERE child_id = ?1 AND parent_id <> ?2 AND resolved <> 2)`,
			[]any{t.ID, c.Undepend}}, &gone, &hopeless)
		if e == nil && !gone && hopeless {
			e = dts.Errorf(dts.ErrConflict, "the others that the task %s depends on have failed, and it needs one: cancel it, or run it now", t.ID)
		}
		if e != nil {
			return e
		}
	}
	if len(c.DependsOn) == 0 {
		return err
	}
	path, many, e := s.roundTrip(ctx, t.ID, c.DependsOn)
	switch {
	case e != nil:
		return e
	case path != nil:
		return s.cycle(ctx, t.TenantID, path)
	case many:
		return dts.Errorf(dts.ErrConflict, "the task %s would depend on more than %d tasks, directly or not; that is the most", t.ID, dts.MaxAncestors)
	}
	return err
}

// roundTrip finds the shortest way from a task through what it is to depend on back to itself; nil where there is none.
func (s *Store) roundTrip(ctx context.Context, id string, list []dts.DependsOn) (path []string, many bool, err error) {
	const most = 2 * dts.MaxAncestors
	frontier := make([]string, len(list))
	for i, d := range list {
		frontier[i] = d.TaskID
	}
	up := map[string][]string{}
	n := 0
	err = s.query(ctx, "read ancestors", OwnWrites, Stmt{ancestors + `SELECT d.child_id, d.parent_id FROM up CROSS JOIN dependencies AS d ON d.child_id = up.id LIMIT ?3`,
		[]any{jsonOf(frontier), dts.MaxAncestors + 1, most}}, func(r scanner) error {
		var child, parent string
		err := r.Scan(&child, &parent)
		up[child] = append(up[child], parent)
		n++
		return err
	})
	if err != nil {
		return nil, false, err
	}
	from := map[string]string{} // who led there
	for _, p := range frontier {
		from[p] = id
	}
	for len(frontier) > 0 && from[id] == "" {
		at := frontier[0]
		frontier = frontier[1:]
		for _, p := range up[at] {
			if _, seen := from[p]; !seen {
				from[p] = at
				frontier = append(frontier, p)
			}
		}
	}
	if from[id] == "" {
		return nil, n >= most || len(up) >= dts.MaxAncestors, nil
	}
	path = []string{id}
	for at := from[id]; at != id; at = from[at] {
		path = append(path, at)
	}
	path = append(path, id)
	slices.Reverse(path)
	return path, false, nil
}

// cycle is the error that names a circle, by the names of its tasks where they have one.
func (s *Store) cycle(ctx context.Context, tenant string, path []string) error {
	const shown = 10
	var b strings.Builder
	short := path
	if len(path) > 2*shown {
		short = slices.Concat(path[:shown], path[len(path)-shown:])
	}
	names := map[string]string{}
	err := s.query(ctx, "read names", OwnWrites, Stmt{`SELECT task_id, name FROM tasks WHERE task_id IN (SELECT value FROM json_each(?)) AND tenant_id = ?`, []any{jsonOf(short), tenant}},
		func(r scanner) error {
			var id, name string
			err := r.Scan(&id, &name)
			names[id] = name
			return err
		})
	if err != nil {
		return err
	}
	for i, id := range short {
		if i > 0 {
			b.WriteString(" → ")
		}
		if len(path) > len(short) && i == shown {
			fmt.Fprintf(&b, "(%d more) → ", len(path)-len(short))
		}
		if names[id] != "" {
			fmt.Fprintf(&b, "%s (%s)", names[id], id)
		} else {
			b.WriteString(id)
		}
	}
	return dts.Errorf(dts.ErrConflict, "that would close a circle, in which every task waits for the next: %s", b.String())
}
