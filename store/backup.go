package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Held is what a database file holds that no server uses: a backup.
type Held struct {
	Schema    int64     `json:"schema"` // version
	Tasks     int64     `json:"tasks"`
	Recurring int64     `json:"recurring_tasks"`
	Until     time.Time `json:"until,omitzero"` // the last sign of life in it: nothing is known of what came later
}

// Errors of Inspect.
var (
	// ErrForeign: the file is a database, and not one of dts.
	ErrForeign = errors.New("it is a database, but none of dts")
	// ErrOfCluster: the file is a copy of an rqlite cluster's database.
	ErrOfCluster = errors.New("it is a backup of an rqlite cluster")
)

// Inspect says what the database of dts in a file holds, whatever its schema's version: newer ones too.
func Inspect(ctx context.Context, db *sql.DB) (h Held, err error) {
	has := func(table string) (n int64, err error) {
		err = db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?`, table).Scan(&n)
		return n, err
	}
	for _, table := range []string{"tasks", "recurring_tasks", "attempts", "nodes"} {
		if n, err := has(table); err != nil {
			return h, fmt.Errorf("read which tables there are: %w", err)
		} else if n == 0 {
			return h, ErrForeign
		}
	}
	switch n, err := has("goose_db_version"); {
	case err != nil:
		return h, fmt.Errorf("read which tables there are: %w", err)
	case n == 0:
		if n, err = has("rqlite_schema"); err == nil && n > 0 {
			return h, ErrOfCluster
		}
		return h, errors.Join(ErrForeign, err)
	}
	var seen, created sql.NullInt64
	for _, q := range []struct {
		text string
		to   any
	}{
		{`SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied = 1`, &h.Schema},
		{`SELECT count(*) FROM tasks`, &h.Tasks},
		{`SELECT count(*) FROM recurring_tasks`, &h.Recurring},
		{`SELECT max(seen_at) FROM nodes`, &seen},
		{`SELECT max(created_at) FROM (SELECT created_at FROM tasks ORDER BY seq DESC LIMIT 1)`, &created},
	} {
		if err := db.QueryRowContext(ctx, q.text).Scan(q.to); err != nil {
			return h, fmt.Errorf("read what it holds: %w", err)
		}
	}
	if until := max(seen.Int64, created.Int64); until > 0 {
		h.Until = time.UnixMicro(until).UTC()
	}
	return h, nil
}

// DueOnce counts the one-time tasks of a backup that a server which starts on it at a time runs at once. Some of them
// may have run since the backup was made.
func DueOnce(ctx context.Context, db *sql.DB, now time.Time) (n int64, err error) {
	err = db.QueryRowContext(ctx, `SELECT count(*) FROM tasks WHERE status = 'PENDING' AND recurring_task_id IS NULL AND unresolved_dependencies_count = 0
		AND max(run_at, coalesce(next_attempt_at, 0)) <= ?1 AND coalesce(expires_at, ?1 + 1) > ?1`, now.UnixMicro()).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count what is due: %w", err)
	}
	return n, nil
}

// Revive makes a backup fit to be gone on with: sessions and sign-in links are ended, since some may have been ended
// after it was made. With elsewhere it is to live in another place than where it was made, and forgets the processes
// of commands that ran: there they still run, and are no orphans.
func Revive(ctx context.Context, db *sql.DB, elsewhere bool) error {
	list := []string{`DELETE FROM tokens WHERE kind <> 'api'`}
	if elsewhere {
		list = append(list, `UPDATE attempts SET pgid = NULL, proc_start = NULL, boot_id = NULL WHERE state = 'RUNNING'`)
	}
	for _, text := range list {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("prepare the backup: %w", err)
		}
	}
	return nil
}
