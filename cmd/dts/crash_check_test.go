package main_test

import (
	"database/sql"
	"time"

	"dts"
)

// What dts promises, by the names that docs/reliability.md explains.
const (
	i1    = "I1: what is acknowledged is there, ends, and stands"
	i2    = "I2: an occurrence has at most one success"
	i3    = "I3: no instant is planned twice"
	i4    = "I4: every due instant has a task or a skip"
	i5    = "I5: nothing stale is written"
	i6    = "I6: nothing runs, or waits, beyond recovery"
	i7    = "I7: no child runs before its parents"
	i8    = "I8: the database is sound"
	i9    = "I9: AT_MOST_ONCE never runs twice"
	i10   = "I10: no orphan survives, and nothing else is killed"
	clean = "the server ends only when told to, and reports no error without a cause"
)

// storedTask is a row of the database.
type storedTask struct {
	id, status, target, recurring string
	attempts                      int
	scheduled, runAt              time.Time
}

// checkNothingRuns: no attempt runs, and no task that was due waits.
func (j *judge) checkNothingRuns(db *sql.DB, tasks map[string]storedTask) {
	queryAll(j.t, db, `SELECT task_id, number FROM attempts WHERE state = 'RUNNING'`, func(rows *sql.Rows) error {
		var id string
		var number int
		err := rows.Scan(&id, &number)
		j.violated(i6, "attempt %d of task %s is RUNNING at the end", number, id)
		return err
	})
	for _, k := range tasks {
		if k.status == string(dts.Running) || k.status == string(dts.Pending) && !k.runAt.After(j.quiet) {
			j.violated(i6, "task %s is %s, run_at %s", k.id, k.status, k.runAt)
		}
	}
}

// checkAcknowledged: what was acknowledged is there and ran, as the API says too; no key made two tasks.
func (j *judge) checkAcknowledged(db *sql.DB, tasks map[string]storedTask) {
	for id, a := range j.load.acked {
		k, ok := tasks[id]
		switch answer := j.answers[id]; {
		case !ok:
			j.violated(i1, "task %s, due %s, is not in the database", id, a.due)
		case k.status == string(dts.Cancelled) && (a.maybeCancel || !a.cancel.IsZero()):
		case !a.cancel.IsZero():
			j.violated(i1, "task %s was cancelled at %s; it is %s", id, a.cancel, k.status)
		case k.status != string(dts.Success) && k.status != string(dts.Failed):
			j.violated(i1, "task %s is %s", id, k.status)
		case k.attempts == 0:
			j.violated(i1, "task %s is %s without an attempt", id, k.status)
		case answer == nil:
			j.violated(i1, "task %s is missing", id)
		case string(answer.Status) != k.status || answer.Attempts != k.attempts:
			j.violated(i1, "task %s is %s after %d attempts, in the database %s after %d", id, answer.Status, answer.Attempts, k.status, k.attempts)
		}
	}
	queryAll(j.t, db, `SELECT idempotency_key, count(*) FROM tasks WHERE idempotency_key IS NOT NULL GROUP BY 1 HAVING count(*) > 1`, func(rows *sql.Rows) error {
		var key string
		var n int
		err := rows.Scan(&key, &n)
		j.violated(i1, "key %s made %d", key, n)
		return err
	})
}

// checkRefused: of what the server refused for good nothing is there.
func (j *judge) checkRefused(db *sql.DB) {
	queryAll(j.t, db, `SELECT task_id, name FROM tasks WHERE name <> ''`, func(rows *sql.Rows) error {
		var id, name string
		err := rows.Scan(&id, &name)
		if refusal := j.load.refused[name]; refusal != nil {
			j.violated(i1, "task %s is there, and its creation was refused with %q", id, refusal)
		}
		return err
	})
}

// checkDependencies: where a task waits for others, it started after each had ended. It holds without a doubt
// while no task depends on another.
func (j *judge) checkDependencies(db *sql.DB) {
	queryAll(j.t, db, `SELECT c.task_id, p.task_id FROM dependencies AS d
		JOIN tasks AS c ON c.task_id = d.child_id JOIN tasks AS p ON p.task_id = d.parent_id
		WHERE c.started_at IS NOT NULL AND (d.resolved = 0 OR p.completed_at IS NULL OR p.completed_at > c.started_at)`, func(rows *sql.Rows) error {
		var child, parent string
		err := rows.Scan(&child, &parent)
		j.violated(i7, "task %s started before %s had ended", child, parent)
		return err
	})
}

// checkAttemptTimes: an attempt starts after the one before it has ended, and none follows a success.
func (j *judge) checkAttemptTimes(db *sql.DB) {
	queryAll(j.t, db, `SELECT b.task_id, b.number, a.state, a.completed_at, b.started_at FROM all_attempts AS b
		JOIN all_attempts AS a ON a.task_id = b.task_id AND a.number = b.number - 1
		WHERE b.number > 1 AND (a.completed_at IS NULL OR a.completed_at > b.started_at OR a.state = 'SUCCESS')`, func(rows *sql.Rows) error {
		var id, state string
		var number int
		var completed sql.NullInt64
		var started int64
		err := rows.Scan(&id, &number, &state, &completed, &started)
		j.violated(i5, "attempt %d of task %s started at %d; the one before is %s since %d", number, id, started, state, completed.Int64)
		return err
	})
}

// checkOutcomes: a task has at most one success, as its last attempt, and only then is it a SUCCESS.
func (j *judge) checkOutcomes(tasks map[string]storedTask, ended map[run]string) {
	for r, state := range ended {
		k := tasks[r.task]
		if state == string(dts.AttemptSuccess) && (r.attempt != k.attempts || k.status != string(dts.Success)) {
			j.violated(i2, "attempt %d of task %s succeeded; the task is %s after %d attempts", r.attempt, r.task, k.status, k.attempts)
		}
	}
	for _, k := range tasks {
		for n := 1; n <= k.attempts; n++ {
			if ended[run{k.id, n}] == "" {
				j.violated(i5, "attempt %d of %d of task %s is not", n, k.attempts, k.id)
			}
		}
		if k.status == string(dts.Success) && ended[run{k.id, k.attempts}] != string(dts.AttemptSuccess) {
			j.violated(i2, "task %s is a SUCCESS; its attempt %d is %q", k.id, k.attempts, ended[run{k.id, k.attempts}])
		}
	}
}

// checkAttempts asks the API for the attempts of tasks that needed more than one.
func (j *judge) checkAttempts() {
	asked := 0
	for id, task := range j.answers {
		if task.Attempts < 2 || asked == 50 {
			continue
		}
		asked++
		list, err := j.api().Attempts(j.t.Context(), id)
		if err != nil || len(list) != task.Attempts || list[len(list)-1].CompletedAt.IsZero() {
			j.violated(i1, "task %s: %d of %d, %v", id, len(list), task.Attempts, err)
		}
	}
}
