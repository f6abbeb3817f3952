-- All that the migrations make, in one. Written by: go test ./store/sqlite -run TestSchema -update

CREATE TABLE tenants (
  tenant_id  TEXT NOT NULL PRIMARY KEY,
  name       TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE tasks (
  seq             INTEGER PRIMARY KEY,
  task_id         TEXT NOT NULL UNIQUE,
  tenant_id       TEXT NOT NULL,
  shard           INTEGER NOT NULL,
  status          TEXT NOT NULL,
  priority        INTEGER NOT NULL,
  queue           TEXT NOT NULL,
  name            TEXT NOT NULL,
  scheduled_at    INTEGER NOT NULL,
  due_at          INTEGER NOT NULL,
  run_at          INTEGER NOT NULL,
  miss_at         INTEGER,
  expires_at      INTEGER,
  term      INTEGER NOT NULL,
  node      TEXT,
  picked_at       INTEGER,
  started_at      INTEGER,
  completed_at    INTEGER,
  next_attempt_at INTEGER,
  resolved_at     INTEGER,
  attempts        INTEGER NOT NULL,
  max_attempts    INTEGER NOT NULL,
  unresolved_dependencies_count INTEGER NOT NULL,
  lateness_us     INTEGER,
  sla_met         INTEGER,
  response_status INTEGER,
  exit_code       INTEGER,
  last_error      TEXT,
  skip_reason     TEXT,
  recurring_task_id TEXT,
  origin          TEXT,
  step            TEXT NOT NULL,
  plan_version    INTEGER NOT NULL,
  moved           INTEGER NOT NULL,
  created_at      INTEGER NOT NULL,
  created_by      TEXT NOT NULL,
  batch_id        TEXT,
  idempotency_key TEXT,
  tracing_id      TEXT,
  labels          TEXT,
  target_type     TEXT NOT NULL,
  spec            TEXT NOT NULL
, target_config TEXT NOT NULL DEFAULT '', waits_for TEXT, line TEXT, queued_us INTEGER, warnings TEXT, dedupe_key TEXT, workflow_id TEXT) STRICT;
CREATE TABLE recurring_tasks (
  seq               INTEGER PRIMARY KEY,
  recurring_task_id TEXT NOT NULL UNIQUE,
  tenant_id         TEXT NOT NULL,
  shard             INTEGER NOT NULL,
  status            TEXT NOT NULL,
  name              TEXT NOT NULL,
  plan_version      INTEGER NOT NULL,
  planned_through   INTEGER NOT NULL,
  plan_at           INTEGER,
  runs_count        INTEGER NOT NULL,
  completed_count   INTEGER NOT NULL,
  last_run_at       INTEGER,
  last_status       TEXT,
  paused_at         INTEGER,
  paused_until      INTEGER,
  pause_note        TEXT,
  created_at        INTEGER NOT NULL,
  created_by        TEXT NOT NULL,
  updated_at        INTEGER NOT NULL,
  idempotency_key   TEXT,
  spec              TEXT NOT NULL
, replan INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE attempts (
  tenant_id     TEXT NOT NULL,
  task_id       TEXT NOT NULL,
  number        INTEGER NOT NULL,
  state         TEXT NOT NULL,
  node          TEXT NOT NULL,
  picked_at     INTEGER,
  started_at    INTEGER NOT NULL,
  completed_at  INTEGER,
  duration_us   INTEGER NOT NULL,
  lateness_us   INTEGER NOT NULL,
  http_status   INTEGER,
  exit_code     INTEGER,
  error         TEXT,
  cpu_us        INTEGER NOT NULL,
  max_rss_bytes INTEGER NOT NULL,
  output_bytes  INTEGER NOT NULL,
  pgid          INTEGER,
  proc_start    INTEGER,
  boot_id       TEXT, queued_us INTEGER NOT NULL DEFAULT 0, stopped_us INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (task_id, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE outputs (
  tenant_id TEXT NOT NULL,
  task_id   TEXT NOT NULL,
  number    INTEGER NOT NULL,
  head      BLOB NOT NULL,
  tail      BLOB NOT NULL,
  total     INTEGER NOT NULL,
  PRIMARY KEY (task_id, number)
) STRICT;
CREATE TABLE skips (
  tenant_id         TEXT NOT NULL,
  recurring_task_id TEXT NOT NULL,
  from_at           INTEGER NOT NULL,
  to_at             INTEGER NOT NULL,
  count             INTEGER NOT NULL,
  reason            TEXT NOT NULL,
  note              TEXT NOT NULL,
  recorded_at       INTEGER NOT NULL,
  PRIMARY KEY (recurring_task_id, from_at)
) STRICT, WITHOUT ROWID;
CREATE TABLE dependencies (
  tenant_id TEXT NOT NULL,
  child_id  TEXT NOT NULL,
  parent_id TEXT NOT NULL,
  type      TEXT NOT NULL,
  resolved  INTEGER NOT NULL,
  PRIMARY KEY (child_id, parent_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE idempotency_keys (
  tenant_id    TEXT NOT NULL,
  key          TEXT NOT NULL,
  request_hash TEXT NOT NULL,
  resource_id  TEXT NOT NULL,
  created_at   INTEGER NOT NULL, gone_at INTEGER,
  PRIMARY KEY (tenant_id, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE tokens (
  token_hash TEXT NOT NULL PRIMARY KEY,
  tenant_id  TEXT NOT NULL,
  kind       TEXT NOT NULL,
  name       TEXT NOT NULL,
  admin      INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE nodes (
  node_id     TEXT NOT NULL PRIMARY KEY,
  tenant_id   TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  address     TEXT NOT NULL,
  version     TEXT NOT NULL,
  boot_id     TEXT NOT NULL,
  started_at  INTEGER NOT NULL,
  seen_at     INTEGER NOT NULL
, state TEXT NOT NULL DEFAULT 'ALIVE', beat INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
CREATE TABLE shards (
  shard     INTEGER NOT NULL PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  node_id   TEXT NOT NULL,
  term      INTEGER NOT NULL) STRICT;
CREATE TABLE batch_assert (
  tenant_id TEXT NOT NULL,
  ok        INTEGER NOT NULL
) STRICT;
CREATE TABLE applied_batch (
  id        INTEGER NOT NULL PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  token     INTEGER NOT NULL
) STRICT;
CREATE TABLE handoffs (
  tenant_id TEXT NOT NULL,
  task_id   TEXT NOT NULL PRIMARY KEY,
  shard     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE settings (
  tenant_id TEXT NOT NULL,
  name      TEXT NOT NULL,
  value     TEXT NOT NULL,
  PRIMARY KEY (tenant_id, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE calendars (
  tenant_id  TEXT NOT NULL,
  name       TEXT NOT NULL,
  version    INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  spec       TEXT NOT NULL,
  PRIMARY KEY (tenant_id, name)
) STRICT;
CREATE TABLE blackouts (
  blackout_id TEXT NOT NULL PRIMARY KEY,
  tenant_id   TEXT NOT NULL,
  created_at  INTEGER NOT NULL,
  created_by  TEXT NOT NULL,
  spec        TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE slots (
  tenant_id TEXT NOT NULL,
  line      TEXT NOT NULL,
  task_id   TEXT NOT NULL,
  number    INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, line, task_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE cascades (
  tenant_id TEXT NOT NULL,
  task_id   TEXT NOT NULL PRIMARY KEY,
  status    TEXT NOT NULL
) STRICT, WITHOUT ROWID;
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
CREATE TABLE queue_rates (
  tenant_id TEXT NOT NULL,
  name      TEXT NOT NULL,
  tat       INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE retentions (
  tenant_id  TEXT NOT NULL PRIMARY KEY,
  spec       TEXT NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
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
CREATE TABLE pings (
  tenant_id         TEXT NOT NULL,
  recurring_task_id TEXT NOT NULL,
  received_at       INTEGER NOT NULL,
  ping_id           TEXT NOT NULL,
  kind              TEXT NOT NULL,
  exit_code         INTEGER,
  scheduled_at      INTEGER,
  source            TEXT NOT NULL,
  body              TEXT NOT NULL,
  body_bytes        INTEGER NOT NULL,
  PRIMARY KEY (recurring_task_id, received_at, ping_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE secrets (
  tenant_id TEXT NOT NULL,
  name      TEXT NOT NULL,
  value     TEXT NOT NULL,
  PRIMARY KEY (tenant_id, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX tasks_due ON tasks (run_at, priority)
  WHERE status = 'PENDING' AND unresolved_dependencies_count = 0;
CREATE UNIQUE INDEX tasks_occurrence ON tasks (recurring_task_id, scheduled_at, origin, step)
  WHERE recurring_task_id IS NOT NULL;
CREATE INDEX tasks_finished ON tasks (completed_at)
  WHERE completed_at IS NOT NULL;
CREATE INDEX recurring_plan ON recurring_tasks (plan_at) WHERE plan_at IS NOT NULL;
CREATE INDEX recurring_name ON recurring_tasks (tenant_id, name);
CREATE INDEX tasks_rare ON tasks (status, seq) WHERE status <> 'PENDING' AND status <> 'SUCCESS';
CREATE INDEX tasks_waiting ON tasks (waits_for, seq) WHERE waits_for IS NOT NULL AND status = 'PENDING';
CREATE INDEX tasks_planned ON tasks (recurring_task_id, scheduled_at) WHERE recurring_task_id IS NOT NULL AND status = 'PENDING';
CREATE INDEX slots_task ON slots (task_id);
CREATE INDEX tasks_line ON tasks (tenant_id, line, priority, due_at) WHERE line IS NOT NULL;
CREATE UNIQUE INDEX tasks_dedupe ON tasks (tenant_id, dedupe_key)
  WHERE dedupe_key IS NOT NULL AND (status = 'PENDING' OR status = 'RUNNING');
CREATE INDEX tasks_batch ON tasks (batch_id) WHERE batch_id IS NOT NULL;
CREATE INDEX tasks_expire ON tasks (expires_at) WHERE expires_at IS NOT NULL AND status = 'PENDING';
CREATE INDEX dependencies_parent ON dependencies (parent_id, resolved);
CREATE INDEX idempotency_keys_gone ON idempotency_keys (gone_at) WHERE gone_at IS NOT NULL;
CREATE INDEX tasks_workflow ON tasks (workflow_id) WHERE workflow_id IS NOT NULL;
