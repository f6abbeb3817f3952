-- +goose Up
-- What keeps a due task from starting, OVERLAP or BLACKOUT; it counts only while the task is PENDING.
ALTER TABLE tasks ADD COLUMN waits_for TEXT;
CREATE INDEX tasks_waiting ON tasks (waits_for, seq) WHERE waits_for IS NOT NULL AND status = 'PENDING';

-- The occurrences of a recurring task that are still to start: few, however long its ledger is.
CREATE INDEX tasks_planned ON tasks (recurring_task_id, scheduled_at) WHERE recurring_task_id IS NOT NULL AND status = 'PENDING';

-- Not 0: a calendar that it uses was changed, and what is planned ahead must be planned again. A token, so that a
-- change during that planning is not forgotten.
ALTER TABLE recurring_tasks ADD COLUMN replan INTEGER NOT NULL DEFAULT 0;

-- spec is JSON: days, windows, the iCalendar file and so on.
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

-- +goose Down
DROP TABLE blackouts;
DROP TABLE calendars;
ALTER TABLE recurring_tasks DROP COLUMN replan;
DROP INDEX tasks_planned;
DROP INDEX tasks_waiting;
ALTER TABLE tasks DROP COLUMN waits_for;
