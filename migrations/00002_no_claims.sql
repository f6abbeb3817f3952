-- A claim is no longer written: who holds a task's shard may start it. target_config gets a column of its own, so
-- that what is left of spec is the same text, or empty, for most tasks.

-- +goose Up
ALTER TABLE tasks DROP COLUMN claim_token;
ALTER TABLE tasks RENAME COLUMN claim_term TO term;
ALTER TABLE tasks RENAME COLUMN claim_node TO node;
ALTER TABLE tasks ADD COLUMN target_config TEXT NOT NULL DEFAULT '';
UPDATE tasks SET term = 0 WHERE status <> 'RUNNING';
UPDATE tasks SET target_config = json_extract(spec, '$.target_config'), spec = json_remove(spec, '$.target_config');
