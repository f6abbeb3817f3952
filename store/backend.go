package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Stmt is one parameterised SQL statement.
//
// SQL is static text: backends keep prepared statements by it, so a value never becomes part of it.
// Args holds nil, bool, int, int64, float64 and string only. A []byte is refused, because rqlite
// would store it as base64 text: blobs travel as hex text through unhex(?).
type Stmt struct {
	SQL  string
	Args []any
}

// Level says how fresh a read must be.
type Level int

const (
	// Stale reads whatever this node has at hand.
	Stale Level = iota
	// OwnWrites reads at least everything that this process has had acknowledged.
	OwnWrites
	// Linearizable reads everything acknowledged to anyone before the read began.
	Linearizable
)

// String returns the level's name as DESIGN and the logs write it.
func (l Level) String() string {
	switch l {
	case Stale:
		return "STALE"
	case OwnWrites:
		return "OWN_WRITES"
	case Linearizable:
		return "LINEARIZABLE"
	}
	return fmt.Sprintf("Level(%d)", int(l))
}

// Result is what one statement of a batch did.
type Result struct {
	// RowsAffected counts inserted, updated and deleted rows. It is advisory: after an ambiguous
	// write it may be zero although rows changed. What must be known is asserted in SQL, or read back.
	RowsAffected int64
}

// Rows is a cursor over the answer to a query, used as database/sql's: Next until false, then Err,
// and always Close. Close twice is allowed.
type Rows interface {
	Next() bool
	// Scan copies the current row into pointers. NULL needs a destination that can hold it
	// (sql.Null…, *T behind a pointer, or any); into anything else it is an error.
	Scan(dest ...any) error
	Err() error
	Close() error
}

// Backend is a SQL database (SQLite's dialect) that applies atomic batches and answers queries. It
// has no interactive transactions, because rqlite has none: a batch decides inside SQL and asserts
// what it relies on. Every backend passes the suite in store/storetest. All methods may be called
// concurrently.
type Backend interface {
	// Query runs one statement that reads. The caller closes Rows soon: it holds a connection.
	Query(ctx context.Context, level Level, s Stmt) (Rows, error)

	// Apply runs the batch as one transaction and returns when it is durable, with one Result for
	// each statement. It is all or nothing, or the outcome is unknown. Batches have one order. The
	// error matches one of ErrRefused, ErrFull, ErrUnavailable (nothing was applied) or ErrUnknown.
	// A context that is done before the batch starts refuses it with ErrUnavailable; once started,
	// the batch runs to its end. The batch is not kept after Apply returns.
	Apply(ctx context.Context, batch ...Stmt) ([]Result, error)

	// Check looks for corruption (quick_check) and returns an error that describes it.
	Check(ctx context.Context) error

	// Stats returns figures for metrics. It is cheap.
	Stats() BackendStats

	// Maintain does bounded housekeeping off the hot path: checkpoints, and a little vacuum.
	Maintain(ctx context.Context) error

	// Close waits for the batch that is running and frees everything. What comes later gets
	// ErrUnavailable. Close twice is allowed.
	Close() error
}

// BackendStats are a backend's figures. A field that a backend does not have is zero.
type BackendStats struct {
	DBBytes        int64     // size of the database file
	WALBytes       int64     // size of the write-ahead log file
	Commits        int64     // batches applied since Open
	Failures       int64     // batches that were not applied, for whatever reason, since Open
	Reopens        int64     // times that the write connection had to be replaced
	LastCheckpoint time.Time // when a checkpoint last moved the whole log into the database
	Corrupt        bool      // a check failed; writes are refused
}

// Errors that Apply's callers branch on, with errors.Is. Backends wrap their driver's errors so
// that one of these matches; the driver's text stays in the message.
var (
	// ErrRefused: a constraint or an assert refused the batch; nothing was applied. The error is a
	// *RefusedError.
	ErrRefused = errors.New("the database refused the batch")
	// ErrFull: no room on the disk; nothing was applied. The same batch may succeed later.
	ErrFull = errors.New("the disk is full")
	// ErrUnavailable: the database cannot be used now (I/O error, corrupt, busy, closed, no
	// leader); nothing was applied.
	ErrUnavailable = errors.New("the database is unavailable")
	// ErrUnknown: the batch may or may not have been applied, or may still be. The same batch may
	// be sent again, because batches are idempotent.
	ErrUnknown = errors.New("the outcome of the write is unknown")
)

// RefusedError is the error of a batch that a constraint, an assert or the SQL compiler refused. It
// matches ErrRefused.
type RefusedError struct {
	Index int // which statement of the batch, from 0; -1 where the backend cannot tell
	Err   error
}

// Error says which statement was refused and why.
func (e *RefusedError) Error() string {
	if e.Index < 0 {
		return fmt.Sprintf("%v: %v", ErrRefused, e.Err)
	}
	return fmt.Sprintf("%v at statement %d: %v", ErrRefused, e.Index, e.Err)
}

// Is reports that a RefusedError is ErrRefused.
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

// Unwrap returns the database's own error.
func (e *RefusedError) Unwrap() error { return e.Err }
