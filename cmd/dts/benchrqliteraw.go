package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// rqliteRaw writes rows to a cluster as fast as it takes them: one statement a row, one transaction a request,
// straight to the leader, and as many requests at a time as there were servers. Like a server's group commit, each
// of them sends the next batch when the last one was answered.
type rqliteRaw struct {
	cluster *rqlited
	leader  string
	conns   int
	rows    int // that are there
}

// A row is about as large as one of dts's tasks, and its indexes are those that a task has that waits, or has ended.
const (
	rawTable  = `CREATE TABLE bench_raw (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at INTEGER NOT NULL, state TEXT NOT NULL, body TEXT NOT NULL)`
	rawDue    = `CREATE INDEX bench_raw_due ON bench_raw (at) WHERE state = 'new'`
	rawDone   = `CREATE INDEX bench_raw_done ON bench_raw (at) WHERE state = 'done'`
	rawInsert = `INSERT INTO bench_raw (id, at, state, body) VALUES (?, ?, ?, ?)`
	rawUpdate = `UPDATE bench_raw SET at = ?, state = ? WHERE id = ?`
)

var rawBody = strings.Repeat("b", 250)

func newRqliteRaw(ctx context.Context, cluster *rqlited, conns int) (*rqliteRaw, error) {
	leader, err := cluster.leader(ctx)
	if err != nil {
		return nil, err
	}
	r := &rqliteRaw{cluster: cluster, leader: leader, conns: conns}
	_, err = cluster.query(ctx, "/db/execute?transaction", [][]any{{rawTable}, {rawDue}, {rawDone}})
	return r, err
}

// inserts writes n new rows and returns how many it wrote in a second.
func (r *rqliteRaw) inserts(ctx context.Context, n, batch int) (float64, error) {
	first := r.rows
	r.rows += n
	return r.write(ctx, n, batch, "new", func(i int) []any { return []any{rawInsert, rawID(first + i), i, "new", rawBody} })
}

// updates changes n rows and returns how many it changed in a second. Rows that are not there yet are made before.
func (r *rqliteRaw) updates(ctx context.Context, n, batch int) (float64, error) {
	if missing := n - r.rows; missing > 0 {
		if _, err := r.inserts(ctx, missing, 1000); err != nil {
			return 0, err
		}
	}
	return r.write(ctx, n, batch, "done", func(i int) []any { return []any{rawUpdate, i, "done", rawID(i)} })
}

func rawID(i int) string { return fmt.Sprintf("0199f0a0-0000-7000-8000-%012d", i) }

// write sends n statements, which leave as many rows more in a state.
func (r *rqliteRaw) write(ctx context.Context, n, batch int, state string, statement func(i int) []any) (float64, error) {
	before, err := r.count(ctx, state)
	if err != nil {
		return 0, err
	}
	var bodies [][]byte
	for first := 0; first < n; first += batch {
		list := make([][]any, 0, batch)
		for i := first; i < min(first+batch, n); i++ {
			list = append(list, statement(i))
		}
		body, err := json.Marshal(list)
		if err != nil {
			return 0, err
		}
		bodies = append(bodies, body)
	}
	dial := func(ctx context.Context) (*rawConn, error) { return dialRaw(ctx, "tcp", r.leader, r.leader, "") }
	took, err := rawFlood(ctx, dial, r.conns, len(bodies), "/db/execute?transaction", http.StatusOK, func(i int) []byte { return bodies[i] })
	if err != nil {
		return 0, fmt.Errorf("write to rqlite: %w", err)
	}
	after, err := r.count(ctx, state)
	if err == nil && after-before != n {
		err = fmt.Errorf("write to rqlite: %d rows of %d were written", after-before, n)
	}
	return float64(n) / took.Seconds(), err
}

// count returns how many rows are in a state.
func (r *rqliteRaw) count(ctx context.Context, state string) (int, error) {
	return r.cluster.query(ctx, "/db/query?level=strong", [][]any{{`SELECT count(*) FROM bench_raw WHERE state = ?`, state}})
}
