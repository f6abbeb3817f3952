package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"

	"modernc.org/sqlite"

	"dts/store"
)

// Statements of the writer itself. The row in applied_batch names the last batch that was committed,
// so that after a failed COMMIT one can see which it was.
const (
	sqlBegin    = `BEGIN IMMEDIATE`
	sqlCommit   = `COMMIT`
	sqlRollback = `ROLLBACK`
	sqlStamp    = `INSERT INTO applied_batch (tenant_id, id, token) VALUES ('', 1, ?)
		ON CONFLICT (id) DO UPDATE SET token = excluded.token`
	sqlStamped = `SELECT token FROM applied_batch WHERE id = 1`
)

// writer is the one connection that writes, with its prepared statements. It uses the driver below
// database/sql: there is exactly one connection, which is replaced on purpose, never by a pool, and a
// batch costs 10 to 20 % less (DESIGN.md). Not safe for concurrent use.
type writer struct {
	conn  driver.Conn
	stmts map[string]execer
	args  []driver.NamedValue // reused
}

// execer is what the driver's statements are.
type execer interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// background is the writer's only context: without a Done channel the driver starts no watcher, and
// nothing can interrupt a transaction.
var background = context.Background()

func openWriter(ctx context.Context, dsn string) (*writer, error) {
	conn, err := connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	return &writer{conn: conn, stmts: make(map[string]execer)}, nil
}

func connect(ctx context.Context, dsn string) (driver.Conn, error) {
	c, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	return c.Connect(ctx)
}

// close finalizes the statements first: SQLite keeps a connection, and its locks, alive for them. An
// open transaction is rolled back.
func (w *writer) close() error {
	var errs []error
	for _, s := range w.stmts {
		errs = append(errs, s.Close())
	}
	clear(w.stmts)
	return errors.Join(append(errs, w.conn.Close())...)
}

// prepared returns the statement for a text, from the cache unless that is full. The caller calls
// release.
func (w *writer) prepared(text string) (s execer, release func(), err error) {
	if s, ok := w.stmts[text]; ok {
		return s, nil, nil
	}
	ds, err := w.conn.(driver.ConnPrepareContext).PrepareContext(background, text)
	if err != nil {
		return nil, nil, err
	}
	s = ds.(execer)
	if len(w.stmts) < maxCachedStmts {
		w.stmts[text] = s
		return s, nil, nil
	}
	return s, func() { s.Close() }, nil
}

// exec runs one statement and returns how many rows it changed.
func (w *writer) exec(text string, args ...any) (int64, error) {
	s, release, err := w.prepared(text)
	if err != nil {
		return 0, err
	}
	if release != nil {
		defer release()
	}
	w.bind(args)
	res, err := s.ExecContext(background, w.args)
	clear(w.args)
	if err != nil {
		return 0, err
	}
	if res == nil { // a text with no statement in it
		return 0, nil
	}
	return res.RowsAffected()
}

// ints runs a statement that answers one row of integers.
func (w *writer) ints(text string, dest ...*int64) (err error) {
	s, release, err := w.prepared(text)
	if err != nil {
		return err
	}
	if release != nil {
		defer release()
	}
	rows, err := s.QueryContext(background, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	vals := make([]driver.Value, len(rows.Columns()))
	if len(vals) != len(dest) {
		return fmt.Errorf("%d columns from %s, want %d", len(vals), text, len(dest))
	}
	if err := rows.Next(vals); err != nil {
		return err
	}
	for i, v := range vals {
		n, ok := v.(int64)
		if !ok {
			return fmt.Errorf("column %d of %s is a %T, want an integer", i, text, v)
		}
		*dest[i] = n
	}
	return nil
}

func (w *writer) bind(args []any) {
	w.args = w.args[:0]
	for i, a := range args {
		if n, ok := a.(int); ok {
			a = int64(n)
		}
		w.args = append(w.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
}

// Apply implements store.Backend.
func (d *DB) Apply(ctx context.Context, batch ...store.Stmt) ([]store.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	if err := checkArgs(batch); err != nil {
		return nil, err
	}
	if len(batch) == 0 {
		return nil, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.writable(); err != nil {
		d.failures.Add(1)
		return nil, err
	}
	res, err := d.transact(batch)
	if err != nil {
		d.failures.Add(1)
		return nil, err
	}
	d.commits.Add(1)
	d.ckpt.poke()
	return res, nil
}

// writable makes sure of a write connection, or says why there is none.
func (d *DB) writable() error {
	if d.closed {
		return errClosed
	}
	if p := d.corrupt.Load(); p != nil {
		return fmt.Errorf("%w: writes are stopped, because it is damaged: %w", store.ErrUnavailable, *p)
	}
	if d.w != nil {
		return nil
	}
	if err := d.reopen(); err != nil {
		return d.classify(err, -1)
	}
	return nil
}

// reopen replaces the write connection. What it had open is rolled back.
func (d *DB) reopen() error {
	if d.w != nil {
		if err := d.w.close(); err != nil {
			d.log.Warn("closing the write connection", "err", err)
		}
		d.w = nil
	}
	d.reopens.Add(1)
	if d.test.reopen != nil {
		if err := d.test.reopen(); err != nil {
			return err
		}
	}
	w, err := openWriter(background, d.writerDSN())
	if err != nil {
		return fmt.Errorf("reopen the write connection: %w", err)
	}
	d.w = w
	return nil
}

// transact runs the batch between BEGIN and COMMIT.
func (d *DB) transact(batch []store.Stmt) ([]store.Result, error) {
	if _, err := d.w.exec(sqlBegin); err != nil {
		d.rollback()
		return nil, d.classify(fmt.Errorf("begin: %w", err), -1)
	}
	res := make([]store.Result, len(batch))
	for i := range batch {
		n, err := d.w.exec(batch[i].SQL, batch[i].Args...)
		if err != nil {
			d.rollback()
			return nil, d.classify(err, i)
		}
		res[i].RowsAffected = n
	}
	token := rand.Int64()
	if _, err := d.w.exec(sqlStamp, token); err != nil {
		d.rollback()
		return nil, d.classify(fmt.Errorf("stamp the batch: %w", err), -1)
	}
	if err := d.commit(); err != nil {
		if err := d.resolve(token, err); err != nil {
			return nil, err
		}
	}
	return res, nil
}

// rollback leaves no transaction open. SQLite has ended it already after some errors (a full disk),
// and then ROLLBACK fails; a fresh connection is certain either way.
func (d *DB) rollback() {
	if _, err := d.w.exec(sqlRollback); err == nil {
		return
	}
	if err := d.reopen(); err != nil {
		d.log.Error("the write connection is lost until the next write", "err", err)
	}
}

func (d *DB) commit() error {
	if d.test.beforeCommit != nil {
		if err := d.test.beforeCommit(); err != nil {
			return err
		}
	}
	d.o.Failpoint("before-commit")
	if _, err := d.w.exec(sqlCommit); err != nil {
		return err
	}
	d.o.Failpoint("after-commit")
	if d.test.afterCommit != nil {
		return d.test.afterCommit()
	}
	return nil
}

// resolve finds out on a fresh connection whether the batch with this token was committed although
// COMMIT failed with cause. It returns nil when it was. Otherwise the error says that nothing was
// applied, or that the outcome is unknown.
func (d *DB) resolve(token int64, cause error) error {
	d.log.Warn("a commit failed; finding out what became of it", "err", cause)
	if err := d.reopen(); err != nil {
		return fmt.Errorf("%w: commit: %w; then %v", store.ErrUnknown, cause, err)
	}
	var got int64
	if err := d.w.ints(sqlStamped, &got); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: commit: %w; then reading it back: %v", store.ErrUnknown, cause, err)
	}
	if got == token {
		return nil
	}
	// The batch is not in the database. After a failed fsync its frames may still lie in the log
	// where a crash would bring them back, so something else is committed in their place. A full
	// disk cannot have taken the last frame, which is what makes a commit.
	if _, err := d.w.exec(sqlStamp, rand.Int64()); err != nil && !isFull(cause) {
		return fmt.Errorf("%w: commit: %w; then overwriting it: %v", store.ErrUnknown, cause, err)
	}
	return d.classify(fmt.Errorf("commit: %w", cause), -1)
}
