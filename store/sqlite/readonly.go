package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"dts/store"
)

// ReadOnly is a database that is only looked at, also while a server has it open. Nothing of it is changed: no schema, no
// mark of a start, no log moved. It implements store.Backend, which refuses writes.
type ReadOnly struct {
	path string
	db   *sql.DB
}

var _ store.Backend = (*ReadOnly)(nil)

// OpenReadOnly opens the database at path, which must exist. idle says that no server has it open: then its log is checked, too,
// which cannot be done while somebody writes it.
func OpenReadOnly(ctx context.Context, path string, idle bool) (*ReadOnly, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	if idle {
		if err := checkLog(path); err != nil {
			return nil, fmt.Errorf("open database %s: %w; %s", path, err, adviceCorrupt(path))
		}
	}
	db, err := openPool(dsnMode(path, "ro", busyTimeout, "query_only(1)", cacheSize(defaultReaderCacheKiB)), 2)
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	var version int64
	if err := db.QueryRowContext(ctx, `PRAGMA schema_version`).Scan(&version); err != nil {
		if isCorrupt(err) {
			err = fmt.Errorf("%w: %w; %s", errDamaged, err, adviceCorrupt(path))
		}
		return nil, errors.Join(fmt.Errorf("open database %s: %w", path, err), db.Close())
	}
	return &ReadOnly{path: path, db: db}, nil
}

// SchemaVersion is that of the newest migration that the database has had; 0: none.
func (r *ReadOnly) SchemaVersion(ctx context.Context) (int64, error) {
	var tables int
	if err := r.db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE name = 'goose_db_version'`).Scan(&tables); err != nil || tables == 0 {
		return 0, err
	}
	var v sql.NullInt64
	err := r.db.QueryRowContext(ctx, `SELECT max(version_id) FROM goose_db_version WHERE is_applied`).Scan(&v)
	return v.Int64, err
}

// CheckFile looks for damage: deep reads everything and compares indexes with tables, else they are only read. While a server
// writes, its log cannot begin anew meanwhile. An error that does not match Damaged only says that the check did not end.
func (r *ReadOnly) CheckFile(ctx context.Context, deep bool) error {
	check := quickCheck
	if deep {
		check = fullCheck
	}
	err := findDamage(ctx, r.db, check)
	if err != nil && !errors.Is(err, errDamaged) && isCorrupt(err) {
		err = fmt.Errorf("%w: %w", errDamaged, err)
	}
	return err
}

// Damaged reports whether an error says that a database is damaged.
func Damaged(err error) bool { return errors.Is(err, errDamaged) || isCorrupt(err) }

// Query implements store.Backend.
func (r *ReadOnly) Query(ctx context.Context, _ store.Level, s store.Stmt) (store.Rows, error) {
	if err := checkArgs([]store.Stmt{s}); err != nil {
		return nil, err
	}
	list, err := r.db.QueryContext(ctx, s.SQL, s.Args...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return list, nil
}

// Apply implements store.Backend: it refuses.
func (r *ReadOnly) Apply(context.Context, ...store.Stmt) ([]store.Result, error) {
	return nil, fmt.Errorf("%w: %s is open to be read only", store.ErrUnavailable, r.path)
}

// Check implements store.Backend with PRAGMA quick_check.
func (r *ReadOnly) Check(ctx context.Context) error { return r.CheckFile(ctx, false) }

// Stats implements store.Backend.
func (r *ReadOnly) Stats() store.BackendStats {
	return store.BackendStats{DBBytes: fileSize(r.path), WALBytes: fileSize(r.path + "-wal")}
}

// Maintain implements store.Backend: there is nothing to do.
func (r *ReadOnly) Maintain(context.Context) error { return nil }

// Close implements store.Backend.
func (r *ReadOnly) Close() error { return r.db.Close() }

// Held reports whether a process has the lock of a data directory: see LockDir.
func Held(dir string) (bool, error) {
	f, err := os.Open(filepath.Join(dir, LockFile))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close() // gives a lock back
	return lockedByOther(f)
}
