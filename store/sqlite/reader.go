package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"dts/store"
)

// readers is the pool for Query, with prepared statements by their text.
type readers struct {
	db *sql.DB

	mu    sync.RWMutex
	stmts map[string]*sql.Stmt
}

func openReaders(dsn string, n int) (*readers, error) {
	db, err := openPool(dsn, n)
	if err != nil {
		return nil, err
	}
	db.SetConnMaxIdleTime(readerIdle) // gives its page cache back
	return &readers{db: db, stmts: make(map[string]*sql.Stmt)}, nil
}

func (r *readers) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, s := range r.stmts {
		errs = append(errs, s.Close())
	}
	clear(r.stmts)
	return errors.Join(append(errs, r.db.Close())...)
}

func (r *readers) query(ctx context.Context, s store.Stmt) (*sql.Rows, error) {
	r.mu.RLock()
	st, n := r.stmts[s.SQL], len(r.stmts)
	r.mu.RUnlock()
	if st != nil {
		return st.QueryContext(ctx, s.Args...)
	}
	if n >= maxCachedStmts {
		return r.db.QueryContext(ctx, s.SQL, s.Args...)
	}
	st, err := r.db.PrepareContext(ctx, s.SQL)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	if first, ok := r.stmts[s.SQL]; ok { // another caller was faster
		st.Close()
		st = first
	} else {
		r.stmts[s.SQL] = st
	}
	r.mu.Unlock()
	return st.QueryContext(ctx, s.Args...)
}

// Query implements store.Backend. The levels do not differ here: in WAL mode a read that begins
// after a commit sees it, and there is no other node. A statement that writes is refused.
func (d *DB) Query(ctx context.Context, _ store.Level, s store.Stmt) (store.Rows, error) {
	if err := checkArgs([]store.Stmt{s}); err != nil {
		return nil, err
	}
	r, err := d.readers.query(ctx, s)
	if err != nil {
		return nil, d.queryError(err)
	}
	return rows{r, d}, nil
}

// rows gives the errors of a cursor their sentinel.
type rows struct {
	*sql.Rows
	d *DB
}

func (r rows) Err() error {
	if err := r.Rows.Err(); err != nil {
		return r.d.queryError(err)
	}
	return nil
}

func (d *DB) queryError(err error) error {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	case code(err) == 0: // database/sql itself: closed
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return d.classify(err, 0)
}
