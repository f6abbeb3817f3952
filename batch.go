package dts

import (
	"fmt"
	"time"
)

// DedupePolicy says what becomes of a new task when an unfinished one has the same dedupe_key.
type DedupePolicy string

const (
	DedupeReject    DedupePolicy = "REJECT"     // the request is refused with 409, which names the other one (the default)
	DedupeKeepFirst DedupePolicy = "KEEP_FIRST" // the other one is the answer, and nothing is created
	DedupeReplace   DedupePolicy = "REPLACE"    // the other one is cancelled, also when it runs
)

// Duplicate is the cause of an ErrConflict error: an unfinished task has the dedupe_key.
type Duplicate struct {
	TaskID string // of that task; "" where it had ended when it was looked for
	Err    error
}

func (d *Duplicate) Error() string {
	return fmt.Sprintf("task %s has the dedupe key: %v", d.TaskID, d.Err)
}

// Unwrap returns the refusal of the store.
func (d *Duplicate) Unwrap() error { return d.Err }

// DuplicateOf makes the error of a request that the unfinished task t refuses by its dedupe_key.
func DuplicateOf(t *Task, err error) error {
	e := Errorf(ErrConflict, "the task %s, which is %s, has the dedupe_key %q; cancel it, wait for its end, or use dedupe_policy KEEP_FIRST or REPLACE",
		t.ID, t.Status, t.DedupeKey)
	e.Err = &Duplicate{t.ID, err}
	return e
}

// Batch is the tasks of one bulk request, counted.
type Batch struct {
	ID          string    `json:"batch_id"`
	Total       int       `json:"total" doc:"its tasks that are still stored"`
	Pending     int       `json:"pending"`
	Running     int       `json:"running"`
	Success     int       `json:"success"`
	Failed      int       `json:"failed"`
	Cancelled   int       `json:"cancelled"`
	Skipped     int       `json:"skipped"`
	Done        bool      `json:"done" doc:"none is PENDING or RUNNING"`
	CreatedAt   time.Time `json:"created_at"`
	CompletedAt time.Time `json:"completed_at,omitzero" doc:"when it is done: when the last one ended"`
}
