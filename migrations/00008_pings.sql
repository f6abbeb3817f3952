-- +goose Up
-- What jobs that dts does not run have reported: the newest of each recurring task. scheduled_at is the instant for which
-- a ping counts.
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

-- What the servers must know and nobody else: that from which ping URLs are made.
CREATE TABLE secrets (
  tenant_id TEXT NOT NULL,
  name      TEXT NOT NULL,
  value     TEXT NOT NULL,
  PRIMARY KEY (tenant_id, name)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE secrets;
DROP TABLE pings;
