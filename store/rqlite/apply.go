package rqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rqlite/gorqlite"

	"dts"
	"dts/store"
)

// The tables of this package. They stand beside those of the migrations and are made before them.
//
// opTable has a row for each batch, written by the batch's first statement: the batch cannot be applied twice, and
// whoever has lost the answer can ask for it. applied is 1, or 0 for a row that was written alone to keep its batch
// out. epochTable has one row, with a number that grows every opKeep: rows of the present epoch and the one before it
// are kept.
const (
	opTable     = "rqlite_op"
	epochTable  = "rqlite_epoch"
	schemaTable = "rqlite_schema"

	createOp = `CREATE TABLE IF NOT EXISTS ` + opTable + ` (
  epoch   INTEGER NOT NULL,
  token   TEXT NOT NULL,
  applied INTEGER NOT NULL,
  schema  INTEGER NOT NULL,
  PRIMARY KEY (epoch, token)
) STRICT, WITHOUT ROWID`
	createEpoch = `CREATE TABLE IF NOT EXISTS ` + epochTable + ` (
  id    INTEGER NOT NULL PRIMARY KEY,
  epoch INTEGER NOT NULL
) STRICT`
	createSchema = `CREATE TABLE IF NOT EXISTS ` + schemaTable + ` (
  version_id INTEGER NOT NULL PRIMARY KEY,
  applied_at INTEGER NOT NULL
) STRICT`

	// insertOp is refused when the token is there; when rows of its epoch may have been deleted, so that nobody could
	// know; and when the schema is newer than the writer's program, whose statements might then mean something else.
	insertOp = `INSERT INTO ` + opTable + ` (epoch, token, applied, schema) VALUES (
  CASE WHEN ?1 >= (SELECT epoch FROM ` + epochTable + ` WHERE id = 1) - 1 THEN ?1 END, ?2, ?3,
  CASE WHEN ?4 >= (SELECT max(version_id) FROM ` + schemaTable + `) THEN ?4 END)`

	selectOp    = `SELECT applied FROM ` + opTable + ` WHERE epoch = ? AND token = ?`
	selectEpoch = `SELECT epoch FROM ` + epochTable + ` WHERE id = 1`
)

// How long one attempt may take: a small batch a little, a large one in proportion. Sending a batch again that is
// still being worked on does no harm.
const (
	attemptBase    = time.Second
	attemptPerStmt = time.Millisecond
	attemptPerMiB  = 250 * time.Millisecond
)

// Apply implements store.Backend. Once begun it takes no notice of ctx. While the cluster does not answer, or has no
// leader, the batch is sent again, to one node after the other, for up to Options.WriteTimeout.
//
// Text must be UTF-8: other bytes arrive as U+FFFD. RETURNING is refused.
func (d *DB) Apply(ctx context.Context, batch ...store.Stmt) ([]store.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	if err := checkBatch(batch); err != nil {
		return nil, err
	}
	if len(batch) == 0 {
		return nil, nil
	}
	if err := d.begin(); err != nil {
		d.failures.Add(1)
		return nil, err
	}
	defer d.work.Done()
	res, err := d.apply(batch)
	if err != nil {
		d.failures.Add(1)
		return nil, err
	}
	d.commits.Add(1)
	return res, nil
}

// errOutdated: the batch was not applied and will not be, because the epoch that it was made in is too long ago: this
// process has stood still.
var errOutdated = fmt.Errorf("%w: it was sent too late", store.ErrUnavailable)

func (d *DB) apply(batch []store.Stmt) ([]store.Result, error) {
	res, err := d.newWrite(batch).run()
	if errors.Is(err, errOutdated) {
		if _, err := d.learnEpoch(context.Background()); err != nil {
			return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
		}
		res, err = d.newWrite(batch).run()
	}
	return res, err
}

// write is one batch on its way.
type write struct {
	d     *DB
	epoch int64
	token string
	stmts []gorqlite.ParameterizedStatement // the token's first
	batch merged                            // what the caller gave, as it is sent
	limit time.Duration                     // of one attempt
	total time.Duration                     // of all

	maybe   bool                // an attempt may have been applied, or may still be
	refusal *store.RefusedError // set when a refused batch is being kept out
}

func (d *DB) newWrite(batch []store.Stmt) *write {
	w := &write{d: d, epoch: d.epoch.Load(), token: dts.NewID(time.Now()), batch: merge(batch)}
	w.stmts = make([]gorqlite.ParameterizedStatement, 1, 1+len(w.batch.stmts))
	w.stmts[0] = gorqlite.ParameterizedStatement{Query: insertOp, Arguments: []any{w.epoch, w.token, 1, d.schema.Load()}}
	size := 0
	for _, s := range w.batch.stmts {
		query, args := encode(s.SQL, s.Args)
		size += len(query)
		for _, a := range args {
			if s, ok := a.(string); ok {
				size += len(s)
			}
		}
		w.stmts = append(w.stmts, gorqlite.ParameterizedStatement{Query: query, Arguments: args})
	}
	extra := time.Duration(len(batch))*attemptPerStmt + time.Duration(size>>10)*(attemptPerMiB>>10)
	w.limit, w.total = attemptBase+extra, d.o.WriteTimeout+4*extra
	return w
}

// run sends the batch until its outcome is certain or time is up.
func (w *write) run() ([]store.Result, error) {
	whole, cancel := context.WithTimeout(context.Background(), w.total)
	defer cancel()
	wait, denials := firstWait, 0
	for {
		n := w.d.node()
		res, at := w.send(n)
		switch at.verdict {
		case applied:
			w.d.note(n, writing, nil)
			if w.refusal != nil {
				return nil, w.refusal
			}
			return w.results(res), nil
		case refused:
			w.d.note(n, writing, nil)
			w.refusal = &store.RefusedError{Index: w.batch.index(at.index), Err: at.err}
			if !w.maybe {
				return nil, w.refusal
			}
			// An earlier attempt may still be on its way, and what refused this one may be gone when it arrives. So its
			// token is taken.
			w.stmts = w.stmts[:1]
			w.stmts[0].Arguments[2] = 0
			continue
		case already, outdated, superseded:
			w.d.note(n, writing, nil)
			return w.settle(at)
		case broken:
			return nil, fmt.Errorf("%w: %w", store.ErrUnknown, at.err)
		case denied:
			denials++
		case unclear:
			w.maybe = true
		}
		w.d.leave(n, writing, at.err)
		if denials >= len(w.d.nodes) || !w.d.pause(whole, wait) {
			return nil, w.giveUp(at.err)
		}
		wait = min(2*wait, maxWait)
	}
}

// send sends the batch to the node, once. Nothing but its own limit interrupts it.
func (w *write) send(n *node) ([]gorqlite.WriteResult, attempt) {
	ctx, cancel := context.WithTimeout(context.Background(), w.limit)
	defer cancel()
	ctx, c := newCall(ctx, n)
	res, err := n.write.WriteParameterizedContext(ctx, w.stmts)
	at := c.judge(len(w.stmts), res, err)
	if c.forwards {
		w.d.lookSoon() // for the leader itself
	}
	return res, at
}

func (w *write) results(res []gorqlite.WriteResult) []store.Result {
	return w.batch.results(func(i int) int64 { return res[i+1].RowsAffected })
}

// settle reads what an earlier attempt has done, when the token's row, or what stands in its way, says that this one
// did nothing and that none will do anything any more.
func (w *write) settle(at attempt) ([]store.Result, error) {
	if at.verdict != already && !w.maybe {
		return nil, w.tooLate(at)
	}
	// The outcome is decided and only has to be read, so that gets time of its own.
	res, err := w.d.read(context.Background(), store.Linearizable, selectOp, []any{w.epoch, w.token})
	if err != nil {
		return nil, fmt.Errorf("%w: sent again, it answered %w; then reading what became of it: %v", store.ErrUnknown, at.err, err)
	}
	wrote := false
	if res.Next() {
		var n int64
		if err := res.Scan(&n); err != nil {
			return nil, fmt.Errorf("%w: reading what became of it: %w", store.ErrUnknown, err)
		}
		wrote = n == 1
	} else if at.verdict == already {
		return nil, fmt.Errorf("%w: %w, and then the token was not there", store.ErrUnknown, at.err)
	}
	switch {
	case wrote:
		return make([]store.Result, w.batch.n), nil
	case w.refusal != nil:
		return nil, w.refusal
	}
	return nil, w.tooLate(at)
}

// tooLate is the error of a batch that is certain never to be applied, although no statement of its own was refused.
func (w *write) tooLate(at attempt) error {
	if at.verdict == superseded {
		return fmt.Errorf("%w: a newer dts has changed the schema: %w", store.ErrUnavailable, at.err)
	}
	return fmt.Errorf("%w: %w", errOutdated, at.err)
}

// giveUp is the error when time is up.
func (w *write) giveUp(cause error) error {
	sentinel := store.ErrUnavailable
	if w.maybe {
		sentinel = store.ErrUnknown
	}
	if !w.d.Health().Leader {
		return fmt.Errorf("%w: the rqlite cluster has no leader: %w", sentinel, cause)
	}
	return fmt.Errorf("%w: %w", sentinel, cause)
}
