package rqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rqlite/gorqlite"

	"dts/store"
)

// After readQuiet without an answer to a query, the node must show that it still answers something.
const (
	readQuiet  = 1500 * time.Millisecond
	answerTime = time.Second
)

// Query implements store.Backend. The answer is read whole, up to MaxAnswer, before Query returns. A statement that
// writes is refused. A blob is read from a column that is declared so, or through hex(): as the value of another expression
// rqlite takes it for text.
//
// STALE reads the database of the node that is used. The other levels ask the leader, which makes sure that it still is one
// (rqlite's level linearizable); while there is no leader they wait up to Options.ReadTimeout, or a second when that has
// been so for some time.
func (d *DB) Query(ctx context.Context, level store.Level, s store.Stmt) (store.Rows, error) {
	if err := checkArgs(s.Args); err != nil {
		return nil, &store.RefusedError{Err: err}
	}
	if err := d.begin(); err != nil {
		return nil, err
	}
	defer d.work.Done()
	pool := d.fresh
	if level == store.Stale {
		pool = d.stale
	}
	r, err := pool.QueryContext(ctx, s.SQL, s.Args...)
	if err != nil {
		return nil, queryError(err)
	}
	return rows{r}, nil
}

// rows gives the errors of a cursor their sentinel.
type rows struct{ *sql.Rows }

// Err implements store.Rows.
func (r rows) Err() error {
	if err := r.Rows.Err(); err != nil {
		return queryError(err)
	}
	return nil
}

func queryError(err error) error {
	if errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}

// read asks until a node answers, ctx ends or time is up.
func (d *DB) read(ctx context.Context, level store.Level, query string, args []any) (*gorqlite.QueryResult, error) {
	query, args = encode(query, args)
	patience := d.o.ReadTimeout
	if d.away() {
		patience = min(patience, awayRead) // there may be somebody who would rather have an old answer than wait
	}
	whole, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer context.AfterFunc(d.ctx, cancel)() // Close does not wait for a node that says nothing
	var cause error
	wait := firstWait
	for denials := 0; ; {
		n := d.node()
		res, at := n.ask(whole, readQuiet, level, query, args)
		switch {
		case at.err == nil:
			if level != store.Stale {
				d.note(n, reading, nil)
			}
			return res, nil
		case at.verdict == refused:
			return nil, &store.RefusedError{Err: at.err}
		case ctx.Err() != nil:
			return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, ctx.Err())
		case at.verdict == denied:
			denials++
		}
		cause = at.err
		d.leave(n, reading, cause)
		if denials >= len(d.nodes) || errors.Is(cause, errTooLong) {
			return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, cause)
		}
		if !d.pause(whole, wait) {
			if ctx.Err() != nil {
				cause = ctx.Err()
			}
			return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, cause)
		}
		wait = min(2*wait, maxWait)
	}
}

// pause waits before the next attempt; it returns false when there should be none.
func (d *DB) pause(ctx context.Context, wait time.Duration) bool {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	case <-d.closing:
		return false
	}
}

// ask sends a query to the node, once. A long query may take as long as ctx lets it; a node that says nothing at all, because
// it is paused or cut off, is given up soon after quiet.
func (n *node) ask(ctx context.Context, quiet time.Duration, level store.Level, query string, args []any) (*gorqlite.QueryResult, attempt) {
	asked, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer time.AfterFunc(quiet, func() {
		if !n.answers(asked, level) {
			cancel(errQuiet)
		}
	}).Stop()
	ctx, c := newCall(asked, n)
	res, err := n.reads[level].QueryParameterizedContext(ctx, []gorqlite.ParameterizedStatement{{Query: query, Arguments: args}})
	if c.err != nil && errors.Is(context.Cause(ctx), errQuiet) {
		c.err = errQuiet
	}
	if err := c.failure(); err != nil {
		return nil, attempt{verdict: c.verdict(), err: err}
	}
	switch {
	case len(res) == 1 && res[0].Err == nil && err == nil:
		return &res[0], attempt{}
	case len(res) == 1 && res[0].Err != nil && c.topLevelError() == "":
		v := unclear
		if isRefusal(res[0].Err.Error()) {
			v = refused
		}
		return nil, attempt{verdict: v, err: fmt.Errorf("rqlite at %s: %w", n.address, res[0].Err)}
	}
	return nil, attempt{verdict: unclear, err: c.problem(err)}
}

var errQuiet = errors.New("it does not answer")

// answers reports whether the node answers a query of the level that costs nothing.
func (n *node) answers(ctx context.Context, level store.Level) bool {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	ctx, c := newCall(ctx, n)
	_, err := n.reads[level].QueryParameterizedContext(ctx, []gorqlite.ParameterizedStatement{{Query: `SELECT 1`}})
	return err == nil && c.failure() == nil
}

// reader is a database/sql driver that reads at one level, for the sake of database/sql's Scan: what it makes of a
// value, a NULL or a type of one's own is then the same with each backend.
type reader struct {
	d     *DB
	level store.Level
}

func (d *DB) openReads(level store.Level) *sql.DB {
	db := sql.OpenDB(&reader{d, level})
	db.SetMaxIdleConns(16)
	return db
}

// Connect implements driver.Connector. There is nothing to connect: the node is chosen for each query.
func (r *reader) Connect(context.Context) (driver.Conn, error) { return &conn{reader: r}, nil }

// Driver implements driver.Connector.
func (r *reader) Driver() driver.Driver { return noDriver{} }

var errNoDriver = errors.New("rqlite is opened by a connector only")

type noDriver struct{}

// Open implements driver.Driver.
func (noDriver) Open(string) (driver.Conn, error) { return nil, errNoDriver }

// conn is a connection of database/sql. In a transaction (of migrations) it collects statements.
type conn struct {
	*reader
	tx *tx
}

// QueryContext implements driver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, query string, named []driver.NamedValue) (driver.Rows, error) {
	args := make([]any, len(named))
	for i, a := range named {
		args[i] = a.Value
	}
	res, err := c.d.read(ctx, c.level, query, args)
	if err != nil {
		return nil, err
	}
	return &resultRows{res: res, columns: res.Columns(), kinds: res.Types()}, nil
}

// Prepare implements driver.Conn.
func (c *conn) Prepare(string) (driver.Stmt, error) {
	return nil, errors.New("rqlite prepares nothing")
}

// Close implements driver.Conn.
func (c *conn) Close() error { return nil }

// Begin implements driver.Conn.
func (c *conn) Begin() (driver.Tx, error) { return c.BeginTx(context.Background(), driver.TxOptions{}) }

// resultRows are the rows of an answer.
type resultRows struct {
	res     *gorqlite.QueryResult
	columns []string
	kinds   []string
}

// Columns implements driver.Rows.
func (r *resultRows) Columns() []string { return r.columns }

// Close implements driver.Rows.
func (r *resultRows) Close() error { return nil }

// Next implements driver.Rows.
func (r *resultRows) Next(dest []driver.Value) error {
	if !r.res.Next() {
		return io.EOF
	}
	row, err := r.res.Slice()
	if err != nil {
		return err
	}
	if len(row) != len(dest) {
		return fmt.Errorf("a row of %d values for %d columns", len(row), len(dest))
	}
	for i, v := range row {
		kind := ""
		if i < len(r.kinds) {
			kind = r.kinds[i]
		}
		if dest[i], err = decode(v, kind); err != nil {
			return fmt.Errorf("column %s: %w", r.columns[i], err)
		}
	}
	return nil
}
