package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// markRunning makes the file that says a server is running, durably, and reports whether it was
// there already: then the last stop was not clean.
func markRunning(path string) (unclean bool, err error) {
	name := path + ".running"
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	_, err = fmt.Fprintf(f, "%d\n", os.Getpid())
	if err := errors.Join(err, f.Sync(), f.Close(), syncDir(filepath.Dir(name))); err != nil {
		return false, fmt.Errorf("mark the database as running: %w", errors.Join(err, os.Remove(name)))
	}
	return false, nil
}

// unmarkRunning removes the mark, durably.
func unmarkRunning(path string) error {
	name := path + ".running"
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncDir(filepath.Dir(name))
}

// syncDir makes a created, renamed or removed name durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// adviceCorrupt says what to do about a damaged database.
func adviceCorrupt(path string) string {
	return fmt.Sprintf("the file was left as it is. To restore a backup: stop dts, run dts restore BACKUP --force --data %s, which puts the file and its log aside, and start dts", filepath.Dir(path))
}

// Check implements store.Backend with PRAGMA quick_check. It reads the whole file; meanwhile the log
// cannot be reset, so it grows by what is written. Damage stops writes.
func (d *DB) Check(ctx context.Context) error {
	err := d.withConn(ctx, func(ctx context.Context, db *sql.DB) error { return findDamage(ctx, db, quickCheck) })
	if errors.Is(err, errDamaged) || isCorrupt(err) {
		d.setCorrupt(err)
	}
	return err
}

// withConn runs f on a connection of its own, which Close interrupts.
func (d *DB) withConn(ctx context.Context, f func(context.Context, *sql.DB) error) error {
	ctx, end, err := d.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	db, err := openPool(dsn(d.path, busyTimeout, cacheSize(d.o.ReaderCacheKiB)), 1)
	if err != nil {
		return err
	}
	defer db.Close()
	return f(ctx, db)
}

func (d *DB) checkInBackground() {
	err := d.Check(d.ctx)
	switch {
	case err == nil:
		d.log.Info("the check after the unclean stop found no damage", "path", d.path)
	case d.ctx.Err() != nil: // closed meanwhile
	default:
		d.log.Error("the check after the unclean stop failed", "path", d.path, "err", err)
	}
}

// findGone looks whether the file still has its name. Where it was removed, or another one put in its place, writes go on
// succeeding, into what no start will find again.
func (d *DB) findGone() {
	now, err := os.Stat(d.path)
	if errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(now, d.file) {
		d.setCorrupt(fmt.Errorf("%w: its file was removed or replaced while it was open; stop dts, put the file and its log back or restore a backup, and start dts", errDamaged))
	}
}

// setCorrupt stops writes, and tells about it the first time.
func (d *DB) setCorrupt(err error) {
	if !d.corrupt.CompareAndSwap(nil, &err) {
		return
	}
	d.log.Error("the database is damaged; writes are stopped", "path", d.path, "err", err)
	close(d.damaged)
}

// tellCorrupt calls Options.OnCorrupt when corruption is found, on a goroutine that holds no lock.
func (d *DB) tellCorrupt() {
	select {
	case <-d.damaged:
		d.o.OnCorrupt(*d.corrupt.Load())
	case <-d.ctx.Done():
	}
}

var errDamaged = errors.New("the database is damaged")

// SQLite's checks. The full one also compares each index with its table, in about three times the time: it
// notices a flipped bit in what is indexed.
const (
	quickCheck = `PRAGMA quick_check(5)`
	fullCheck  = `PRAGMA integrity_check(5)`
)

// findDamage runs a check. Its error begins with errDamaged and names the first few problems.
func findDamage(ctx context.Context, db *sql.DB, check string) error {
	rows, err := db.QueryContext(ctx, check)
	if err != nil {
		return fmt.Errorf("%s: %w", check, err)
	}
	defer rows.Close()
	var found []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return fmt.Errorf("%s: %w", check, err)
		}
		if s != "ok" {
			found = append(found, strings.ReplaceAll(s, "\n", ", "))
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("%s: %w", check, err)
	}
	if len(found) > 0 {
		return fmt.Errorf("%w: %s", errDamaged, strings.Join(found, "; "))
	}
	return nil
}
