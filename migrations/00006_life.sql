-- +goose Up
-- Of the first start's lateness, how long the task was ready and waited; and what was warned of, as "LATE,LONG".
ALTER TABLE tasks ADD COLUMN queued_us INTEGER;
ALTER TABLE tasks ADD COLUMN warnings TEXT;
ALTER TABLE attempts ADD COLUMN queued_us INTEGER NOT NULL DEFAULT 0;
-- How long its command was stopped for others.
ALTER TABLE attempts ADD COLUMN stopped_us INTEGER NOT NULL DEFAULT 0;

-- At most one unfinished task of a tenant has a dedupe_key.
ALTER TABLE tasks ADD COLUMN dedupe_key TEXT;
CREATE UNIQUE INDEX tasks_dedupe ON tasks (tenant_id, dedupe_key)
  WHERE dedupe_key IS NOT NULL AND (status = 'PENDING' OR status = 'RUNNING');

-- The tasks of a bulk request.
CREATE INDEX tasks_batch ON tasks (batch_id) WHERE batch_id IS NOT NULL;

-- What expires while it waits.
CREATE INDEX tasks_expire ON tasks (expires_at) WHERE expires_at IS NOT NULL AND status = 'PENDING';

-- dependencies.resolved is 0: open, 1: satisfied, 2: failed, 3: overridden; 10 more while the batch that resolves it
-- has not counted it in its child.
DROP INDEX dependencies_parent;
CREATE INDEX dependencies_parent ON dependencies (parent_id, resolved);

-- Tasks that have ended as status says, or were deleted, and whose dependents have not all been told yet. What is told
-- may end by that, and then stands here too.
CREATE TABLE cascades (
  tenant_id TEXT NOT NULL,
  task_id   TEXT NOT NULL PRIMARY KEY,
  status    TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- concurrency and rate are 0 where there is no limit; retry and retention are JSON.
ALTER TABLE queues RENAME TO old_queues;
CREATE TABLE queues (
  tenant_id   TEXT NOT NULL,
  name        TEXT NOT NULL,
  concurrency INTEGER NOT NULL,
  rate        INTEGER NOT NULL,
  period_us   INTEGER NOT NULL,
  burst       INTEGER NOT NULL,
  paused_at   INTEGER,
  pause_note  TEXT,
  retry       TEXT,
  retention   TEXT,
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, name)
) STRICT, WITHOUT ROWID;

INSERT INTO queues (tenant_id, name, concurrency, rate, period_us, burst, created_at, updated_at)
  SELECT tenant_id, name, concurrency, 0, 0, 0, created_at, updated_at FROM old_queues;
DROP TABLE old_queues;

-- Until when the starts of a queue with a rate are given away: the theoretical arrival time of the generic cell rate
-- algorithm. Servers take starts from it, some at a time.
CREATE TABLE queue_rates (
  tenant_id TEXT NOT NULL,
  name      TEXT NOT NULL,
  tat       INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, name)
) STRICT, WITHOUT ROWID;

-- How long finished tasks of a tenant are kept. spec is JSON.
CREATE TABLE retentions (
  tenant_id  TEXT NOT NULL PRIMARY KEY,
  spec       TEXT NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- When what a key has made was deleted: the key is kept for some days longer.
ALTER TABLE idempotency_keys ADD COLUMN gone_at INTEGER;
DROP INDEX idempotency_keys_age;
CREATE INDEX idempotency_keys_gone ON idempotency_keys (gone_at) WHERE gone_at IS NOT NULL;
UPDATE idempotency_keys SET gone_at = created_at + 2592000000000
  WHERE NOT EXISTS (SELECT 1 FROM tasks WHERE task_id = resource_id) AND NOT EXISTS (SELECT 1 FROM recurring_tasks WHERE recurring_task_id = resource_id);

DROP VIEW all_attempts;
CREATE VIEW all_attempts AS
  SELECT tenant_id, task_id, number, state, node, picked_at, started_at, completed_at, duration_us, lateness_us, http_status,
    exit_code, error, cpu_us, max_rss_bytes, output_bytes, pgid, proc_start, boot_id, queued_us, stopped_us
  FROM attempts
  UNION ALL
  SELECT t.tenant_id, t.task_id, 1, 'SUCCESS', coalesce(t.node, ''), t.picked_at, t.started_at, t.completed_at, t.completed_at - t.started_at,
    coalesce(t.lateness_us, 0), t.response_status, NULL, NULL, 0, 0, coalesce((SELECT o.total FROM outputs AS o WHERE o.task_id = t.task_id AND o.number = 1), 0),
    NULL, NULL, NULL, coalesce(t.queued_us, 0), 0
  FROM tasks AS t
  WHERE t.status = 'SUCCESS' AND t.attempts = 1 AND t.target_type = 'HTTP_CALLBACK'
    AND NOT EXISTS (SELECT 1 FROM attempts AS a WHERE a.task_id = t.task_id);
