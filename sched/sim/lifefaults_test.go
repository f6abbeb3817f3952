package sim_test

// modelTest is the package whose test finds them.
const modelTest = "./sched/model"

// lifeFaults are mistakes about the life of a task, which the model test of package model must find.
var lifeFaults = []fault{
	life("a forgotten decrement of the dependencies that are open", "store/dependencies.go",
		"ELSE iif(y.bad IS NULL, max(y.open - y.n, 0), 0) END AS remain", "ELSE iif(y.bad IS NULL, max(y.open - y.n + (y.n > 1), 0), 0) END AS remain").often(),
	life("one dependency is counted twice", "store/dependencies.go",
		"`UPDATE dependencies SET resolved = resolved - 10 WHERE", "`UPDATE dependencies SET resolved = resolved - 10 WHERE resolved = 12 AND"),
	life("a missing guard: what waits for others is loaded to be started", "store/runs.go",
		"WHERE status = 'PENDING' AND unresolved_dependencies_count = 0\n\t\tAND (run_at", "WHERE status = 'PENDING'\n\t\tAND (run_at",
		"AND status = 'PENDING' AND unresolved_dependencies_count = 0`, []any{jsonOf(ids)}})", "AND status = 'PENDING'`, []any{jsonOf(ids)}})"),
	life("a forgotten wave: what is skipped does not tell its dependents", "store/dependencies.go",
		"AND t.status <> 'PENDING'\n", "AND t.status = 'RUNNING'\n").often(),
	life("the end of a run tells no dependents", "store/runs.go",
		"if n := r.After; n != nil && n.Status.Terminal() {", "if n := r.After; n != nil && n.Status.Terminal() && !r.Shown {"),
	life("a deleted task tells no dependents", "store/changes.go",
		"if c.New == nil || c.New.Status.Terminal() {", "if c.New != nil && c.New.Status.Terminal() {"),
	life("a lost handoff: what became ready is not told", "store/dependencies.go",
		"FROM cascades AS c CROSS JOIN dependencies AS d ON d.parent_id = c.task_id AND d.resolved > 10 CROSS JOIN tasks AS t ON t.task_id = d.child_id\n\t\tWHERE t.resolved_at = ?1",
		"FROM cascades AS c CROSS JOIN dependencies AS d ON d.parent_id = c.task_id AND d.resolved > 10 CROSS JOIN tasks AS t ON t.task_id = d.child_id\n\t\tWHERE t.resolved_at > ?1").often(),
	life("handoffs are deleted before they are read", "sched/handoffs.go",
		"tasks = slices.DeleteFunc(tasks, s.endedWaiting)", "tasks = slices.DeleteFunc(tasks[:len(tasks)/2], s.endedWaiting)"),
	life("a retry does not open again what depends on it", "store/changes.go",
		"batch = appendReopen(appendOverride(batch, n.ID, true, now), n.ID)", "batch = appendOverride(batch, n.ID, true, now)"),
	life("a retry waits for what has failed before", "store/changes.go",
		"appendOverride(batch, n.ID, true, now)", "batch"),
	life("run-now does not reset the count", "store/dependencies.go",
		"SET unresolved_dependencies_count = 0, resolved_at = ? WHERE task_id = ? AND unresolved_dependencies_count > 0", "SET resolved_at = ? WHERE task_id = ? AND unresolved_dependencies_count > 0"),
	life("run-now leaves dependencies open", "store/dependencies.go",
		"`UPDATE dependencies SET resolved = 3 WHERE child_id = ? AND resolved IN (0, ?)`", "`UPDATE dependencies SET resolved = 3 WHERE child_id = ? AND resolved IN (4, ?)`"),
	life("ANY is taken for ALL", "store/dependencies.go",
		"t.spec ->> '$.depends_mode' IS 'ANY'", "t.spec ->> '$.depends_mode' IS 'NONE'"),
	life("on_dependency_failure is not looked at", "store/dependencies.go",
		"'$.on_dependency_failure' IS 'FAIL'", "'$.on_dependency_failure' IS 'SKIP'"),
	life("what was cancelled counts as failed", "store/dependencies.go",
		"WHEN 'MUST_FAIL' THEN iif(x.status = 'FAILED', 11, 12)", "WHEN 'MUST_FAIL' THEN iif(x.status <> 'SUCCESS', 11, 12)"),
	life("a circle is not refused", "store/dependencies.go",
		"`SELECT 'system', NULL FROM up WHERE id = ?3 LIMIT 1`", "`SELECT 'system', NULL FROM up WHERE id = ?3 AND 0 LIMIT 1`"),
	life("a dependency less is not counted", "store/dependencies.go",
		"Stmt{recount, []any{jsonOf([]string{c.Old.ID}), now.UnixMicro()}}, ", ""),
	life("a dedupe check is left out", "store/dedupe.go",
		"if t.DedupeKey != \"\" && !keepsFirst(t) {", "if t.DedupeKey != \"\" && t.DedupePolicy == dts.DedupeReplace {"),
	life("what is replaced is not cancelled", "sched/dedupe.go",
		"c := s.effect(other, dts.SetCancel, t.CreatedBy)", "c := s.effect(other, dts.SetSuccess, t.CreatedBy)"),
	life("what has expired is looked for among what starts only", "store/expire.go",
		"AND expires_at < ?)", "AND expires_at < ? AND unresolved_dependencies_count < 0)"),
	life("a paused task keeps its time", "sched/tasks.go",
		"n.RunAt, n.MissAt, n.WaitsFor = dts.Micros(now.Add(pausedFor)), time.Time{}, dts.ReasonPaused", "n.MissAt, n.WaitsFor = time.Time{}, dts.ReasonPaused"),
	life("a retry by hand allows no attempt more", "sched/tasks.go",
		"n.MaxAttempts = max(old.MaxAttempts, old.Attempts+1)\n\t\tn.RunAt", "n.MaxAttempts = max(old.MaxAttempts, old.Attempts)\n\t\tn.RunAt"),
	life("the attempts of what is deleted stay", "store/changes.go",
		"{`DELETE FROM attempts WHERE task_id = ?`, []any{id}},", ""),
	life("one attempt more may be lost than is promised", "sched/run.go",
		"case a.Number < max(t.MaxAttempts, lostAttempts):", "case a.Number <= max(t.MaxAttempts, lostAttempts):"),
	life("what a crash has left of a cascade is not gone on with", "sched/dependencies.go",
		"if err = s.cascade(); err == nil {", "if swept = now; tick == nil {"),
}

// life is a fault that the model test must find: edit is pairs of an old text and the new one.
func life(name, file string, edit ...string) fault {
	return fault{name: name, file: file, edit: edit, pkg: modelTest, run: "TestModel", wants: "difference|answer:|panic"}
}

// often makes it one of those that are planted each time.
func (f fault) often() fault {
	f.quick = true
	return f
}
