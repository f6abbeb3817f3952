package store

import "dts"

// updateUnreadable is updateTask for a task of which a part cannot be read: that stays as it is.
const updateUnreadable = `UPDATE tasks SET status = ?, due_at = ?, run_at = ?, miss_at = ?, completed_at = ?, next_attempt_at = ?, max_attempts = ?,
		last_error = ?, skip_reason = ?, plan_version = ?, moved = ?, node = ?, picked_at = ?, waits_for = ?, line = ?,
		unresolved_dependencies_count = iif(?, unresolved_dependencies_count, 0)
	WHERE task_id = ?`

// updateStmt writes the new form of a task.
func updateStmt(n *dts.Task) Stmt {
	if n.Unreadable != "" {
		return Stmt{updateUnreadable, []any{
			string(n.Status), n.DueAt.UnixMicro(), n.RunAt.UnixMicro(), micros(n.MissAt), micros(n.CompletedAt), micros(n.NextAttemptAt), n.MaxAttempts,
			orNull(n.LastError), orNull(string(n.SkipReason)), n.PlanVersion, flag(n.Moved), orNull(n.Node), micros(n.PickedAt), orNull(string(n.WaitsFor)),
			orNull(n.Line()), flag(n.Status == dts.Pending), n.ID}}
	}
	return Stmt{updateTask, []any{
		string(n.Status), n.Priority.Rank(), n.Queue, n.Name, n.DueAt.UnixMicro(), n.RunAt.UnixMicro(), micros(n.MissAt), micros(n.ExpiresAt),
		micros(n.CompletedAt), micros(n.NextAttemptAt), n.MaxAttempts, orNull(n.LastError), orNull(string(n.SkipReason)), n.PlanVersion, flag(n.Moved),
		encodeLabels(n.Labels), string(n.TargetType), string(n.TargetConfig), encodeSpec(n), orNull(n.Node), micros(n.PickedAt), orNull(string(n.WaitsFor)),
		orNull(n.Line()), flag(n.Status == dts.Pending), n.ID}}
}
