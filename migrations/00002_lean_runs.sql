-- +goose Up
-- A claim is no longer written: who holds a task's shard may start it.
ALTER TABLE tasks DROP COLUMN claim_token;
ALTER TABLE tasks RENAME COLUMN claim_term TO term;
ALTER TABLE tasks RENAME COLUMN claim_node TO node;
UPDATE tasks SET term = 0 WHERE status <> 'RUNNING';

-- Apart from the target, what is in spec is the same for most tasks, and then it is empty.
ALTER TABLE tasks ADD COLUMN target_config TEXT NOT NULL DEFAULT '';
UPDATE tasks SET target_config = json_extract(spec, '$.target_config'), spec = json_remove(spec, '$.target_config');

-- The same states as before. For a list with IN, SQLite builds a table at each insert and update.
DROP INDEX tasks_rare;
CREATE INDEX tasks_rare ON tasks (status, seq) WHERE status <> 'PENDING' AND status <> 'SUCCESS';

-- Every attempt that there was or is. The only attempt of an HTTP task, when it was short and succeeded, has no
-- row of its own: all of it is in the task's.
CREATE VIEW all_attempts AS
  SELECT tenant_id, task_id, number, state, node, picked_at, started_at, completed_at, duration_us, lateness_us, http_status,
    exit_code, error, cpu_us, max_rss_bytes, output_bytes, pgid, proc_start, boot_id
  FROM attempts
  UNION ALL
  SELECT t.tenant_id, t.task_id, 1, 'SUCCESS', coalesce(t.node, ''), t.picked_at, t.started_at, t.completed_at, t.completed_at - t.started_at,
    coalesce(t.lateness_us, 0), t.response_status, NULL, NULL, 0, 0, coalesce((SELECT o.total FROM outputs AS o WHERE o.task_id = t.task_id AND o.number = 1), 0),
    NULL, NULL, NULL
  FROM tasks AS t
  WHERE t.status = 'SUCCESS' AND t.attempts = 1 AND t.target_type = 'HTTP_CALLBACK'
    AND NOT EXISTS (SELECT 1 FROM attempts AS a WHERE a.task_id = t.task_id);
