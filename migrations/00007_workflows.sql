-- +goose Up
-- The run of a workflow, a task itself, of which a task is a step; step says which.
ALTER TABLE tasks ADD COLUMN workflow_id TEXT;
CREATE INDEX tasks_workflow ON tasks (workflow_id) WHERE workflow_id IS NOT NULL;
