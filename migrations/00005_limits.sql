-- +goose Up
-- A place that a running attempt has in something of which only so many may run at once: line is "key …" for a
-- concurrency_key, "queue …" for a queue with a limit. It is taken in the batch that makes the task RUNNING, and
-- given back in the one that ends the attempt.
CREATE TABLE slots (
  tenant_id TEXT NOT NULL,
  line      TEXT NOT NULL,
  task_id   TEXT NOT NULL,
  number    INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, line, task_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX slots_task ON slots (task_id);

-- In which line a PENDING task waits for such a place. The index is the line: who is first in it is next.
ALTER TABLE tasks ADD COLUMN line TEXT;
CREATE INDEX tasks_line ON tasks (tenant_id, line, priority, due_at) WHERE line IS NOT NULL;

CREATE TABLE queues (
  tenant_id   TEXT NOT NULL,
  name        TEXT NOT NULL,
  concurrency INTEGER NOT NULL,
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, name)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE queues;
DROP INDEX tasks_line;
ALTER TABLE tasks DROP COLUMN line;
DROP TABLE slots;
