// Package store keeps everything that dts knows in a SQL database. The SQL of the domain stands here, once,
// beside the method that runs it, over a small Backend that SQLite and rqlite implement.
//
// It promises: a write that returned nil is durable; a batch is applied whole or not at all; every batch
// can be sent twice without harm. DESIGN.md beside this file says how and why.
package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"dts"
)

// Store is the domain's reads and writes. Its methods may be called concurrently. Its errors are
// *dts.Error, but for ErrRefused, which says that the thing has changed in the meantime.
type Store struct {
	b     Backend
	g     *Group
	fault atomic.Pointer[fault]
	// unsure is until when reads that may be stale do not try to be otherwise, in Unix nanoseconds.
	unsure atomic.Int64
	// ripples has room for one: see Ripples.
	ripples chan struct{}
}

// staleFor is how long the database is not asked for what is newest after it could not tell, by those who need not
// know. One request in so much time has to wait until that is clear.
const staleFor = 2 * time.Second

type fault struct {
	err   error
	since time.Time
}

// Options of a Store. The zero value works.
type Options struct {
	// OnCommit is called after each group commit: how many batches and statements it held, how long
	// it took, and its error.
	OnCommit func(batches, stmts int, d time.Duration, err error)
}

// New starts group commit over a backend. Close closes the backend too.
func New(b Backend, o Options) *Store {
	s := &Store{b: b, ripples: make(chan struct{}, 1)}
	s.g = NewGroup(b, GroupOptions{OnCommit: func(batches, stmts int, d time.Duration, err error) {
		s.noteFault(err)
		if o.OnCommit != nil {
			o.OnCommit(batches, stmts, d, err)
		}
	}})
	return s
}

// noteFault keeps the error of a failing disk until a write succeeds. A refusal is no fault.
func (s *Store) noteFault(err error) {
	switch old := s.fault.Load(); {
	case err == nil:
		if old != nil {
			s.fault.Store(nil)
		}
	case errors.Is(err, ErrRefused):
	case old == nil:
		s.fault.Store(&fault{err, time.Now()})
	}
}

// Fault returns the error that writes have met, and since when; nil when the last one succeeded. Damage that a
// read or a check has found counts: no write will succeed.
func (s *Store) Fault() (since time.Time, err error) {
	if s.fault.Load() == nil && s.b.Stats().Corrupt {
		s.noteFault(fmt.Errorf("%w: it is damaged, and the server's log says how", ErrUnavailable))
	}
	if f := s.fault.Load(); f != nil {
		return f.since, f.err
	}
	return time.Time{}, nil
}

// Close waits for the writes under way and closes the backend.
func (s *Store) Close() error {
	s.g.Close()
	return s.b.Close()
}

// Stats returns the backend's figures.
func (s *Store) Stats() BackendStats { return s.b.Stats() }

// Maintain does a bounded step of housekeeping.
func (s *Store) Maintain(ctx context.Context) error { return s.b.Maintain(ctx) }

// Check looks for corruption.
func (s *Store) Check(ctx context.Context) error { return s.b.Check(ctx) }

func (s *Store) apply(ctx context.Context, op string, batch ...Stmt) ([]Result, error) {
	res, err := s.g.Apply(ctx, batch...)
	return res, domainError(op, err)
}

// direct applies a batch beside the group commit: what decides about leases must not wait behind a queue of writes.
func (s *Store) direct(ctx context.Context, op string, batch ...Stmt) error {
	_, err := s.b.Apply(ctx, batch...)
	s.noteFault(err)
	return domainError(op, err)
}

// domainError turns a backend's error into what users are told. A refusal stays ErrRefused: its caller
// knows what it asserted.
func domainError(op string, err error) error {
	wrap := func(code dts.Code, text string) error {
		return &dts.Error{Code: code, Message: text, Err: fmt.Errorf("%s: %w", op, err)}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrRefused):
		return fmt.Errorf("%s: %w", op, err)
	case errors.Is(err, ErrFull):
		return wrap(dts.ErrFull, "the disk is full: nothing was changed; try again when there is room")
	case errors.Is(err, ErrUnknown):
		return wrap(dts.ErrUnknown, "the outcome of the write is unknown: ask again with the same idempotency key")
	case errors.Is(err, ErrUnavailable):
		return wrap(dts.ErrUnavailable, "the database cannot be used now: nothing was changed; try again later")
	}
	return wrap(dts.ErrInternal, "the database failed")
}

// scanner is what a row can be read from.
type scanner interface{ Scan(dest ...any) error }

// query runs a statement and calls row for each row of the answer. Where the context allows stale reads and the
// database cannot be sure of what is newest, what is at hand has to do.
func (s *Store) query(ctx context.Context, op string, level Level, st Stmt, row func(scanner) error) (err error) {
	old := dts.StalenessOf(ctx)
	if level == OwnWrites && old != nil && (old.Stale() || time.Now().UnixNano() < s.unsure.Load()) {
		level = Stale // it was so a moment ago: to find that out again takes seconds
		old.Set()
	}
	rows, err := s.b.Query(ctx, level, st)
	if level == OwnWrites && old != nil && errors.Is(err, ErrUnavailable) {
		s.unsure.Store(time.Now().Add(staleFor).UnixNano())
		if rows, err = s.b.Query(ctx, Stale, st); err == nil {
			old.Set()
		}
	}
	if err != nil {
		return readError(op, err)
	}
	defer func() {
		if cerr := rows.Close(); err == nil && cerr != nil {
			err = readError(op, cerr)
		}
	}()
	for rows.Next() {
		if err := row(rows); err != nil {
			return readError(op, err)
		}
	}
	return readError(op, rows.Err())
}

func readError(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &dts.Error{Code: dts.ErrUnavailable, Message: "the request was given up before it was answered", Err: fmt.Errorf("%s: %w", op, err)}
	}
	return domainError(op, err)
}

// one runs a query that answers with a single value; found is false when there is no row.
func (s *Store) one(ctx context.Context, op string, st Stmt, dest ...any) (found bool, err error) {
	err = s.query(ctx, op, OwnWrites, st, func(r scanner) error {
		found = true
		return r.Scan(dest...)
	})
	return found, err
}

// claim is a shard and the term at which a batch needs it held.
type claim [2]int64

// claims returns the shards at the terms of the fence.
func claims(f dts.Fence, shards ...int) []claim {
	list := make([]claim, len(shards))
	for i, n := range shards {
		list[i] = claim{int64(n), f.Term(n)}
	}
	return list
}

// fence asserts that the server lives under its incarnation and holds each shard at its term.
func fence(f dts.Fence, list []claim) Stmt {
	return Stmt{assertFence, []any{f.Node, f.Incarnation, jsonOf(distinct(list))}}
}

const assertFence = `INSERT INTO batch_assert (tenant_id, ok)
	SELECT 'system', NULL WHERE NOT EXISTS (SELECT 1 FROM nodes WHERE node_id = ?1 AND incarnation = ?2 AND state IN ('ALIVE', 'LEAVING'))
	OR EXISTS (SELECT 1 FROM json_each(?3) AS j LEFT JOIN shards AS s ON s.shard = j.value ->> 0
		WHERE s.node_id IS NOT ?1 OR s.term IS NOT j.value ->> 1)`

// inShards is the condition that a row lies in one of the shards that halves gives as two arguments. Integers beyond
// 2^53 do not reach rqlite whole.
const inShards = ` AND (CASE WHEN shard < 32 THEN ? >> shard ELSE ? >> (shard - 32) END & 1) = 1 `

func halves(s dts.ShardSet) (low, high int64) { return int64(s & (1<<32 - 1)), int64(s >> 32) }

func distinct(list []claim) []claim {
	slices.SortFunc(list, func(a, b claim) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	if list = slices.Compact(list); list == nil {
		return []claim{} // an empty JSON array, not null
	}
	return list
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil { // only types that always encode come here
		panic(fmt.Sprintf("store: encode %T: %v", v, err))
	}
	return string(b)
}

// Arguments and columns: times travel as microseconds, absent values as NULL.

func micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

func orNull[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

func ptr[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// nullTime scans a column of microseconds.
type nullTime struct{ sql.NullInt64 }

func (n nullTime) time() time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.UnixMicro(n.Int64).UTC()
}

func intPtr(n sql.NullInt64) *int {
	if !n.Valid {
		return nil
	}
	v := int(n.Int64)
	return &v
}
