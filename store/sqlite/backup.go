package sqlite

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"
)

// Backup writes the database as it is at one moment to w: the bytes of a database file that needs no log. begun, if
// it is not nil, is told first how many bytes that will be. Meanwhile everything works, but the log cannot be reset,
// so it grows by what is written until Backup returns: w must not be slow.
//
// The pages are read one by one in a single read transaction, so there is nothing of a copy on this disk, and
// ctx ends it between two pages. See docs/decisions/backup.md.
func (d *DB) Backup(ctx context.Context, w io.Writer, begun func(size int64) error) error {
	err := d.withConn(ctx, func(ctx context.Context, db *sql.DB) error { return copyPages(ctx, db, w, begun) })
	if isCorrupt(err) {
		d.setCorrupt(err)
	}
	return wrapBackup(d.path, err)
}

// BackupFile is Backup of a database that nobody has open: the caller holds the lock of its directory. Neither it nor
// its log is changed.
func BackupFile(ctx context.Context, path string, w io.Writer, begun func(size int64) error) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return wrapBackup(path, err)
	}
	if err := checkLog(path); err != nil {
		return wrapBackup(path, err)
	}
	db, err := openPool(dsnMode(path, "ro", busyTimeout), 1)
	if err != nil {
		return wrapBackup(path, err)
	}
	defer db.Close()
	return wrapBackup(path, copyPages(ctx, db, w, begun))
}

func wrapBackup(path string, err error) error {
	if err != nil {
		return fmt.Errorf("back up %s: %w", path, err)
	}
	return nil
}

// copyBuffer is how much is written at once, in bytes.
const copyBuffer = 256 << 10

// maxBreath is the longest rest between two writes: where those take long, the disk is what is waited for.
const maxBreath = 5 * time.Millisecond

// Where the first page says how the file is read and written, and the value for a file without a write-ahead log
// (https://sqlite.org/fileformat2.html#file_format_version_numbers).
const (
	formatAt = 18 // and the next
	noLog    = 1
)

// copyPages writes every page of the database, as of now, to w.
func copyPages(ctx context.Context, db *sql.DB, w io.Writer, begun func(size int64) error) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `BEGIN`); err != nil { // the first read takes the moment
		return err
	}
	defer conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
	var pages, pageSize int64
	if err := conn.QueryRowContext(ctx, `PRAGMA page_count`).Scan(&pages); err != nil {
		return err
	}
	if err := conn.QueryRowContext(ctx, `PRAGMA page_size`).Scan(&pageSize); err != nil {
		return err
	}
	if pages == 0 {
		return errors.New("the database is empty")
	}
	if begun != nil {
		if err := begun(pages * pageSize); err != nil {
			return err
		}
	}
	rows, err := conn.QueryContext(ctx, `SELECT data FROM sqlite_dbpage ORDER BY pgno`)
	if err != nil {
		return err
	}
	defer rows.Close()
	out := bufio.NewWriterSize(&breather{w: w, since: time.Now()}, copyBuffer)
	var copied int64
	var page sql.RawBytes
	for rows.Next() {
		if err := rows.Scan(&page); err != nil {
			return err
		}
		if int64(len(page)) != pageSize {
			return fmt.Errorf("page %d has %d bytes instead of %d", copied+1, len(page), pageSize)
		}
		if copied == 0 {
			page[formatAt], page[formatAt+1] = noLog, noLog
		}
		if _, err := out.Write(page); err != nil {
			return err
		}
		copied++
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if copied != pages {
		return fmt.Errorf("there are %d pages, and %d were read", pages, copied)
	}
	return out.Flush()
}

// breather rests after each write as long as that and what came before it took, so that a copy leaves half of a
// processor to those who must be on time.
type breather struct {
	w     io.Writer
	since time.Time
}

func (b *breather) Write(p []byte) (int, error) {
	n, err := b.w.Write(p)
	time.Sleep(min(time.Since(b.since), maxBreath))
	b.since = time.Now()
	return n, err
}

// OpenAlone opens a database file that nobody else uses and that has no log: a backup. Without write it cannot be
// changed; with it, a change is durable when the statement returns.
func OpenAlone(path string, write bool) (*sql.DB, error) {
	path, err := filepath.Abs(path) // SQLite reads a relative name that begins with file: as a URI
	if err != nil {
		return nil, err
	}
	if write {
		return openPool(dsn(path, 0, "synchronous(FULL)", "journal_mode(DELETE)"), 1)
	}
	return openPool(dsnMode(path, "ro", 0)+"&immutable=1", 1)
}

// CheckAlone looks for damage in a database that OpenAlone has opened; with full it also compares each index with its table,
// which takes three times as long.
func CheckAlone(ctx context.Context, db *sql.DB, full bool) error {
	check := quickCheck
	if full {
		check = fullCheck
	}
	err := findDamage(ctx, db, check)
	if err != nil && !errors.Is(err, errDamaged) && isCorrupt(err) {
		err = fmt.Errorf("%w: %w", errDamaged, err)
	}
	return err
}
