package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"dts"
)

// backupRunner makes the attempts of BACKUP tasks, and leaves all others to the runner behind it.
type backupRunner struct {
	dts.Runner
	backups *backups
	now     func() time.Time
}

// Run makes one attempt.
func (r *backupRunner) Run(ctx context.Context, job dts.Job) dts.Outcome {
	if job.Task.TargetType != dts.Backup {
		return r.Runner.Run(ctx, job)
	}
	limit := job.Task.Timeout()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errBackupTimeout)
	defer cancel()
	said, err := r.run(ctx, job.Task)
	out := dts.Outcome{State: dts.AttemptSuccess, Output: dts.Output{Head: []byte(said), Total: int64(len(said))}}
	if err == nil {
		return out
	}
	out.State, out.Retryable, out.Error = dts.AttemptFailed, true, err.Error()
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errBackupTimeout):
		out.State, out.Retryable, out.Error = dts.AttemptTimedOut, job.Task.Retry.On.Failure(dts.FailureTimeout, true), "the backup was not complete within "+span(limit)
	case errors.Is(cause, dts.ErrRunCancelled), errors.Is(cause, dts.ErrRunReplaced):
		out.State, out.Retryable, out.Error = dts.AttemptCancelled, false, cause.Error()
	case cause != nil:
		out.State, out.Error = dts.AttemptLost, dts.ErrRunLost.Message
	case errors.Is(err, errBackupRqlite), errors.Is(err, errRotate):
		out.Retryable = false // another copy would change nothing
	}
	return out
}

var (
	errBackupTimeout = errors.New("the task's timeout has passed")
	errRotate        = errors.New("the backup was made, but old ones could not be removed")
)

// run makes a copy, and removes those that have had their time. said is the attempt's output.
func (r *backupRunner) run(ctx context.Context, task *dts.Task) (said string, err error) {
	t, err := task.Backup()
	if err != nil {
		return "", fmt.Errorf("the target_config is not valid: %w", err)
	}
	if info, err := os.Stat(t.Dir); err != nil || !info.IsDir() {
		return "", fmt.Errorf("there is no directory %s: make it, or mount what should be there", t.Dir)
	}
	start := r.now()
	name := backupName{at: start.UTC().Truncate(time.Second), series: seriesOf(task)}
	to, err := createBackup(filepath.Join(t.Dir, name.String()), false)
	if err != nil {
		return "", err
	}
	made := backedUp{File: to.path}
	err = r.backups.write(ctx, to, func(n int64) error {
		made.Bytes = n
		if sameDisk(t.Dir, r.backups.dir) {
			n += diskMargin
		}
		return roomFor(t.Dir, n)
	})
	if err == nil {
		made.Held, err = to.finish(ctx)
	}
	if err != nil {
		to.discard()
		return "", err
	}
	said = fmt.Sprintf("%s: %s in %s, %s and %s, checked\n", made.File, size(made.Bytes), span(r.now().Sub(start)),
		count(int(made.Tasks), "task"), count(int(made.Recurring), "recurring task"))
	removed, err := rotate(t, name, r.now())
	for _, path := range removed {
		said += "removed " + path + "\n"
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", errRotate, err)
	}
	return said, err
}

// backupTime is how the names of backups write their time, in UTC.
const backupTime = "20060102T150405Z"

// backupName is the name of a backup that the server makes by itself: dts-TIME-SERIES.db, or dts-TIME.db.
type backupName struct {
	at     time.Time
	series string // of which recurring task, so that nothing else is removed for it; "": of a task that runs once
}

// seriesOf is the last part of the recurring task's id, which is random.
func seriesOf(t *dts.Task) string {
	return t.RecurringTaskID[strings.LastIndexByte(t.RecurringTaskID, '-')+1:]
}

func (n backupName) String() string {
	if n.series == "" {
		return "dts-" + n.at.UTC().Format(backupTime) + ".db"
	}
	return "dts-" + n.at.UTC().Format(backupTime) + "-" + n.series + ".db"
}

// parseBackupName is the inverse of String for names of one series, and false for all others.
func parseBackupName(name, series string) (backupName, bool) {
	stamp, ok := strings.CutPrefix(name, "dts-")
	if !ok || series == "" {
		return backupName{}, false
	}
	stamp, ok = strings.CutSuffix(stamp, "-"+series+".db")
	if !ok {
		return backupName{}, false
	}
	at, err := time.Parse(backupTime, stamp)
	n := backupName{at: at, series: series}
	return n, err == nil && n.String() == name
}
