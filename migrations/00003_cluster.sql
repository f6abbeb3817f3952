-- +goose Up
-- A server that shares the schedule says that it lives by counting its beats; who sees the count stand still may
-- declare it dead. state is ALIVE, LEAVING, LEFT or DEAD, and counts for the incarnation beside it.
ALTER TABLE nodes ADD COLUMN state TEXT NOT NULL DEFAULT 'ALIVE';
ALTER TABLE nodes ADD COLUMN beat INTEGER NOT NULL DEFAULT 0;
ALTER TABLE shards DROP COLUMN beat;

-- Tasks that another server than their shard's holder has made ready to run: the holder takes them up and deletes
-- the row.
CREATE TABLE handoffs (
  tenant_id TEXT NOT NULL,
  task_id   TEXT NOT NULL PRIMARY KEY,
  shard     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What all servers of a cluster share, such as the secret that they know each other by.
CREATE TABLE settings (
  tenant_id TEXT NOT NULL,
  name      TEXT NOT NULL,
  value     TEXT NOT NULL,
  PRIMARY KEY (tenant_id, name)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE settings;
DROP TABLE handoffs;
ALTER TABLE shards ADD COLUMN beat INTEGER NOT NULL DEFAULT 0;
ALTER TABLE nodes DROP COLUMN beat;
ALTER TABLE nodes DROP COLUMN state;
