package sqlite

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"modernc.org/sqlite"

	"dts/store"
)

// Result codes of SQLite (https://sqlite.org/rescode.html). The low byte is the primary code.
const (
	codeError      = 1
	codeCorrupt    = 11
	codeFull       = 13
	codeTooBig     = 18
	codeConstraint = 19
	codeMismatch   = 20
	codeAuth       = 23
	codeRange      = 25
	codeNotADB     = 26

	codeIOErrShmSize = 10 | 19<<8 // growing the -shm file failed, which means no room
)

var errClosed = fmt.Errorf("%w: it is closed", store.ErrUnavailable)

// code returns SQLite's primary result code, 0 where err is not from SQLite.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// isCorrupt reports that SQLite met damage.
func isCorrupt(err error) bool { return code(err) == codeCorrupt || code(err) == codeNotADB }

// isFull reports that there was no room on the disk.
func isFull(err error) bool {
	var e *sqlite.Error
	if errors.As(err, &e) && e.Code() == codeIOErrShmSize {
		return true
	}
	return code(err) == codeFull || errors.Is(err, syscall.ENOSPC)
}

// classify turns an error from the driver into one that matches a sentinel of package store. index is
// the statement that failed, -1 for none: BEGIN, for example. As a side effect it remembers
// corruption.
func (d *DB) classify(err error, index int) error {
	if isFull(err) {
		return fmt.Errorf("%w: %w", store.ErrFull, err)
	}
	switch code(err) {
	case codeError, codeTooBig, codeConstraint, codeMismatch, codeAuth, codeRange:
		if index >= 0 {
			return &store.RefusedError{Index: index, Err: err}
		}
	case codeCorrupt, codeNotADB:
		d.setCorrupt(err)
	case 0: // the driver's own, such as a missing argument
		if index >= 0 && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			return &store.RefusedError{Index: index, Err: err}
		}
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}

// checkArgs refuses argument types that rqlite would store as something else.
func checkArgs(batch []store.Stmt) error {
	for i := range batch {
		for j, a := range batch[i].Args {
			switch a.(type) {
			case nil, int64, string, bool, int, float64:
			default:
				return &store.RefusedError{Index: i, Err: fmt.Errorf(
					"argument %d is a %T; want nil, bool, int, int64, float64 or string (a blob travels as hex text through unhex)", j+1, a)}
			}
		}
	}
	return nil
}
