-- Every table carries tenant_id. Times are INTEGER Unix microseconds, ids are TEXT, flags are 0 or 1.
-- No default expressions and no triggers: every value comes from Go, so that replicas stay equal.

-- +goose Up
CREATE TABLE tenants (
  tenant_id  TEXT NOT NULL PRIMARY KEY,
  name       TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One row a task. What SQL asks for is a column; the rest (description, target_config, retry, delivery,
-- limits) is JSON in spec. seq keeps rows in the order of creation and breaks ties of the due index.
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
  claim_token     INTEGER NOT NULL,
  claim_term      INTEGER NOT NULL,
  claim_node      TEXT,
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
) STRICT;

-- What is due next. A row leaves it when the task starts or ends.
CREATE INDEX tasks_due ON tasks (run_at, priority)
  WHERE status = 'PENDING' AND unresolved_dependencies_count = 0;
-- At most one task for an occurrence; also the order of a recurring task's ledger.
CREATE UNIQUE INDEX tasks_occurrence ON tasks (recurring_task_id, scheduled_at, origin, step)
  WHERE recurring_task_id IS NOT NULL;
-- The states that few tasks are in, for lists and for recovery.
CREATE INDEX tasks_rare ON tasks (status, seq)
  WHERE status IN ('RUNNING', 'FAILED', 'CANCELLED', 'SKIPPED');
-- Finished tasks in the order in which retention deletes them.
CREATE INDEX tasks_finished ON tasks (completed_at)
  WHERE completed_at IS NOT NULL;

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
) STRICT;

-- When the planner must look at it again; NULL: never.
CREATE INDEX recurring_plan ON recurring_tasks (plan_at) WHERE plan_at IS NOT NULL;
CREATE INDEX recurring_name ON recurring_tasks (tenant_id, name);

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
  boot_id       TEXT,
  PRIMARY KEY (task_id, number)
) STRICT, WITHOUT ROWID;

-- First and last part of what an attempt printed; apart from attempts, so that those stay small.
CREATE TABLE outputs (
  tenant_id TEXT NOT NULL,
  task_id   TEXT NOT NULL,
  number    INTEGER NOT NULL,
  head      BLOB NOT NULL,
  tail      BLOB NOT NULL,
  total     INTEGER NOT NULL,
  PRIMARY KEY (task_id, number)
) STRICT;

-- Instants of a recurring task that did not run: count of them from from_at to to_at.
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
CREATE INDEX dependencies_parent ON dependencies (parent_id, child_id);

-- Which request made what, so that the same request again finds it. Kept 7 days longer than tasks.
CREATE TABLE idempotency_keys (
  tenant_id    TEXT NOT NULL,
  key          TEXT NOT NULL,
  request_hash TEXT NOT NULL,
  resource_id  TEXT NOT NULL,
  created_at   INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

-- Credentials: API tokens, page sessions and one-time sign-in links, by SHA-256 of their text.
CREATE TABLE tokens (
  token_hash TEXT NOT NULL PRIMARY KEY,
  tenant_id  TEXT NOT NULL,
  kind       TEXT NOT NULL,
  name       TEXT NOT NULL,
  admin      INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER
) STRICT, WITHOUT ROWID;

-- Servers, and which of them holds which shard. The tenant of both is 'system'.
CREATE TABLE nodes (
  node_id     TEXT NOT NULL PRIMARY KEY,
  tenant_id   TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  address     TEXT NOT NULL,
  version     TEXT NOT NULL,
  boot_id     TEXT NOT NULL,
  started_at  INTEGER NOT NULL,
  seen_at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE shards (
  shard     INTEGER NOT NULL PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  node_id   TEXT NOT NULL,
  term      INTEGER NOT NULL,
  beat      INTEGER NOT NULL
) STRICT;

-- A batch asserts a condition by inserting NULL where it does not hold; the table stays empty.
CREATE TABLE batch_assert (
  tenant_id TEXT NOT NULL,
  ok        INTEGER NOT NULL
) STRICT;

-- The last batch that SQLite applied: tells after a failed COMMIT whether it took effect.
CREATE TABLE applied_batch (
  id        INTEGER NOT NULL PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  token     INTEGER NOT NULL
) STRICT;

-- +goose Down
DROP TABLE applied_batch;
DROP TABLE batch_assert;
DROP TABLE shards;
DROP TABLE nodes;
DROP TABLE tokens;
DROP TABLE idempotency_keys;
DROP TABLE dependencies;
DROP TABLE skips;
DROP TABLE outputs;
DROP TABLE attempts;
DROP TABLE recurring_tasks;
DROP TABLE tasks;
DROP TABLE tenants;
