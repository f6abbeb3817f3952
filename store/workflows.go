package store

import (
	"context"
	"database/sql"

	"dts"
)

// Workflows: a run is a task, and its steps are tasks with its id as their workflow_id. From its start to its judgement
// it depends on all of its steps, and so what is known of dependencies brings it on.

const (
	// attempts is 1 from then on: that is what tells a run that has started from one that is still to start.
	startRun = `UPDATE tasks SET attempts = 1, node = ?, started_at = ?, lateness_us = ?, sla_met = ?, queued_us = ?, warnings = ?, picked_at = NULL,
			miss_at = NULL, waits_for = NULL, line = NULL WHERE task_id = ?`

	insertRunEdges = `INSERT INTO dependencies (tenant_id, child_id, parent_id, type, resolved)
		SELECT t.tenant_id, t.workflow_id, t.task_id, 'MUST_FINISH', 0 FROM tasks AS t WHERE t.workflow_id = ? ON CONFLICT DO NOTHING`

	countOpen = `UPDATE tasks AS t SET unresolved_dependencies_count = iif(` + dependsAny + ` AND EXISTS (SELECT 1 FROM dependencies AS d WHERE d.child_id = t.task_id AND d.resolved = 1), 0,
			(SELECT count(*) FROM dependencies AS d WHERE d.child_id = t.task_id AND d.resolved = 0))
		WHERE task_id = ? AND status = 'PENDING'`
)

// StartRun inserts the steps of a run and lets it wait for all of them, in one batch. old is what the run must still be:
// PENDING, and never started; n what it becomes. ErrRefused: it is not that any more, perhaps because this was done before.
func (s *Store) StartRun(ctx context.Context, f dts.Fence, old, n *dts.Task, steps []*dts.Task) error {
	batch := make([]Stmt, 0, 2*len(steps)+16)
	batch = append(batch, fence(f, claims(f, old.Shard)),
		Stmt{assertTask, []any{old.ID, old.TenantID, string(old.Status), old.Attempts, old.PlanVersion}},
		Stmt{startRun, []any{orNull(n.Node), n.StartedAt.UnixMicro(), ptr(n.LatenessUS), flagPtr(n.SLAMet), orNull(n.QueuedUS), encodeWarnings(n.Warnings), n.ID}})
	for _, t := range steps {
		batch = append(batch, Stmt{insertTask, newTaskArgs(t)})
	}
	edges, _ := newEdges(steps)
	batch = append(append(batch, edges...), Stmt{insertRunEdges, []any{n.ID}}, Stmt{countOpen, []any{n.ID}})
	_, err := s.apply(ctx, "start a workflow", batch...)
	return err
}

// Steps returns the tasks of a run, in the order of its workflow.
func (s *Store) Steps(ctx context.Context, tenant, run string) ([]*dts.Task, error) {
	return s.tasks(ctx, "read the steps of a workflow", Stmt{selectTask + `WHERE workflow_id = ? AND tenant_id = ? ORDER BY seq`, []any{run, tenant}})
}

// runsLooked is how many of the newest runs RunsUnderWay looks at, besides those of which a step is RUNNING.
const runsLooked = 500

// RunsUnderWay returns runs of workflows that have started and not ended, newest first: those of which a step is RUNNING, and, of
// the newest runs, those whose steps wait. No index finds a run that waits for its steps, but one finds the runs by their steps.
func (s *Store) RunsUnderWay(ctx context.Context, tenant string, limit int) ([]*dts.Task, error) {
	return s.tasks(ctx, "read the runs of workflows that are under way", Stmt{`WITH RECURSIVE
		newest(id) AS (SELECT max(workflow_id) FROM tasks WHERE workflow_id IS NOT NULL UNION ALL
			SELECT (SELECT max(workflow_id) FROM tasks WHERE workflow_id IS NOT NULL AND workflow_id < newest.id) FROM newest WHERE newest.id IS NOT NULL LIMIT ?),
		runs(id) AS (SELECT id FROM newest UNION SELECT workflow_id FROM tasks
			WHERE status = 'RUNNING' AND status <> 'PENDING' AND status <> 'SUCCESS')
		` + selectTask + `WHERE task_id IN (SELECT id FROM runs) AND tenant_id = ? AND status = 'PENDING' AND attempts > 0 ORDER BY seq DESC LIMIT ?`,
		[]any{runsLooked, tenant, limit}})
}

// RunProgress says how far runs are, by their ids.
func (s *Store) RunProgress(ctx context.Context, tenant string, runs []string) (map[string]dts.RunProgress, error) {
	all := make(map[string]dts.RunProgress, len(runs))
	if len(runs) == 0 {
		return all, nil
	}
	return all, s.query(ctx, "count the steps of runs", OwnWrites, Stmt{`SELECT workflow_id, count(*), sum(status NOT IN ('PENDING', 'RUNNING')), sum(status = 'RUNNING'),
			sum(status = 'FAILED'), coalesce(min(iif(status = 'FAILED', step, NULL)), '')
		FROM tasks WHERE workflow_id IN (SELECT value FROM json_each(?)) AND tenant_id = ? GROUP BY workflow_id`, []any{jsonOf(runs), tenant}}, func(r scanner) error {
		var id string
		var p dts.RunProgress
		err := r.Scan(&id, &p.Steps, &p.Ended, &p.Running, &p.Failed, &p.FailedStep)
		all[id] = p
		return err
	})
}

// StepEdges returns what the steps of a run depend on, and the run itself.
func (s *Store) StepEdges(ctx context.Context, run string) (list []dts.Dependency, err error) {
	err = s.query(ctx, "read the dependencies of steps", OwnWrites, Stmt{`SELECT d.child_id, d.parent_id, d.type, d.resolved
		FROM (SELECT task_id FROM tasks WHERE workflow_id = ?1 UNION ALL SELECT ?1) AS t CROSS JOIN dependencies AS d ON d.child_id = t.task_id
		ORDER BY d.child_id, d.parent_id`, []any{run}}, func(r scanner) error {
		var d dts.Dependency
		var resolved int
		err := r.Scan(&d.ChildID, &d.ParentID, &d.Type, &resolved)
		d.State = dependencyState(resolved)
		list = append(list, d)
		return err
	})
	return list, err
}

// appendAgain sets what has become of a task's dependencies.
func appendAgain(batch []Stmt, id string, again []dts.Dependency) []Stmt {
	rows := make([][2]any, len(again))
	for i, d := range again {
		rows[i] = [2]any{d.ParentID, resolvedAs(d.State)}
	}
	return append(batch,
		Stmt{`UPDATE dependencies SET resolved = j.value ->> 1 FROM json_each(?) AS j WHERE child_id = ? AND parent_id = j.value ->> 0`, []any{jsonOf(rows), id}},
		Stmt{countOpen, []any{id}})
}

func resolvedAs(s dts.DependencyState) int {
	for i := range 4 {
		if dependencyState(i) == s {
			return i
		}
	}
	return 0
}

// Inputs returns what those printed last that a task depends on, for a step all other steps of its run, by their names: at
// most limit bytes each, and Total says whether that is all. Several of one name are all there.
func (s *Store) Inputs(ctx context.Context, t *dts.Task, limit int) (list []dts.Input, err error) {
	from, key := `dependencies AS d CROSS JOIN tasks AS p ON p.task_id = d.parent_id WHERE d.child_id = ?2 AND p.name`, t.ID
	if t.WorkflowID != "" {
		from, key = `tasks AS p WHERE p.workflow_id = ?2 AND p.step`, t.WorkflowID
	}
	err = s.query(ctx, "read the inputs of a task", OwnWrites, Stmt{`SELECT x.name, x.task_id, o.total, substr(o.head, 1, ?4) FROM (
			SELECT iif(p.workflow_id IS NULL, p.name, p.step) AS name, p.task_id, p.attempts FROM ` + from + ` IN (SELECT value FROM json_each(?3)) AND p.tenant_id = ?1 LIMIT 1000) AS x
		LEFT JOIN outputs AS o ON o.task_id = x.task_id AND o.number = x.attempts`, []any{t.TenantID, key, jsonOf(t.Inputs), limit}}, func(r scanner) error {
		var in dts.Input
		var total sql.NullInt64
		err := r.Scan(&in.Name, &in.TaskID, &total, &in.Output.Head)
		in.Output.Total = total.Int64
		list = append(list, in)
		return err
	})
	return list, err
}
