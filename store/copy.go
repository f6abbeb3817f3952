package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"dts"
)

// copied are the tables that Copy carries over, in this order. The others describe the place and not the schedule:
// the servers of the source are not those of the destination, who has no use for their handoffs and settings either;
// of shards only the terms are carried on, and of tokens not those of servers. A test holds that no table is forgotten.
var copied = [...]string{
	"tenants", "tokens", "idempotency_keys", "calendars", "blackouts", "queues", "queue_rates", "retentions", "recurring_tasks", "skips", "pings", "secrets", "tasks", "slots", "dependencies", "cascades", "attempts", "outputs",
}

// CopyOptions say what Copy copies.
type CopyOptions struct {
	From, To Backend   // both with the newest schema
	Source   string    // what people call From; kept in To until the copy is complete
	Now      time.Time // likewise
	// Progress, if set, is called after each page of rows. It must be quick.
	Progress func(CopyProgress)
	// Done, if set, is called after each table.
	Done func(CopiedTable)
}

// CopyProgress is how far a table is.
type CopyProgress struct {
	Table   string
	Compare bool  // its rows are in place, and are read again on both sides
	Rows    int64 // done so far; when they are compared, those of both sides
	Of      int64
}

// CopiedTable is a table that is the same on both sides.
type CopiedTable struct {
	Name   string `json:"table"`
	Rows   int64  `json:"rows"`
	SHA256 string `json:"sha256"` // of all its rows in the order of the primary key, in hexadecimal
}

// Copy carries everything that a database holds over to another one, and compares both, table by table, by count and
// checksum. Nobody else may write to either meanwhile: see Live. The destination must hold no task, unless an earlier
// Copy into it has not ended; that is continued, whatever its source was. Until Copy has returned nil, CopyPending
// returns an error for the destination.
//
// Memory does not depend on how much there is: a page has at most pageRows rows and, unless a single row is longer,
// pageBytes bytes.
func Copy(ctx context.Context, o CopyOptions) error {
	c := &copier{CopyOptions: o, group: NewGroup(o.To, GroupOptions{})}
	defer c.group.Close()
	if c.Progress == nil {
		c.Progress = func(CopyProgress) {}
	}
	tables, err := c.tables(ctx)
	if err != nil {
		return err
	}
	fromNodes, err := nodesOf(ctx, o.From)
	if err != nil {
		return err
	}
	toNodes, err := nodesOf(ctx, o.To)
	if err != nil {
		return err
	}
	if err := c.begin(ctx, toNodes); err != nil {
		return err
	}
	for _, t := range tables {
		done, err := c.table(ctx, t)
		if err != nil {
			return fmt.Errorf("copy the table %s: %w", t.name, err)
		}
		if c.Done != nil {
			c.Done(done)
		}
	}
	now, err := nodesOf(ctx, o.From)
	if err == nil && now != fromNodes {
		err = dts.Errorf(dts.ErrConflict, "a server has begun to run on the source, so the copy may lack what it did; stop it and copy again")
	}
	if err != nil {
		return err
	}
	return c.finish(ctx, toNodes)
}

type copier struct {
	CopyOptions
	group *Group // of To: it sends again what has an unknown outcome
}

// tables reads the columns of all tables, which must be the same on both sides.
func (c *copier) tables(ctx context.Context) ([]*table, error) {
	var list []*table
	for _, name := range copied {
		from, err := readTable(ctx, c.From, name)
		if err != nil {
			return nil, err
		}
		to, err := readTable(ctx, c.To, name)
		if err != nil {
			return nil, err
		}
		if from.insert != to.insert {
			return nil, dts.Errorf(dts.ErrConflict, "the table %s has other columns in the destination than in the source", name)
		}
		list = append(list, from)
	}
	return list, nil
}

// copyPending is the setting that is there while a copy into the database has not ended.
const copyPending = "copy"

type pendingCopy struct {
	From  string    `json:"from"`
	Since time.Time `json:"since"`
}

// CopyPending returns an error where a copy into the database has begun and not ended: no server may run on it.
func CopyPending(ctx context.Context, b Backend) error {
	p, err := readPending(ctx, b)
	if err != nil || p == nil {
		return err
	}
	return dts.Errorf(dts.ErrConflict, "the copy of %s into this database, begun at %s, is not complete: run the same dts copy again, which goes on with it",
		p.From, p.Since.UTC().Format(time.RFC3339))
}

func readPending(ctx context.Context, b Backend) (p *pendingCopy, err error) {
	err = queryRows(ctx, b, Stmt{`SELECT value FROM settings WHERE tenant_id = 'system' AND name = ?`, []any{copyPending}}, func(r scanner) error {
		var text string
		if err := r.Scan(&text); err != nil {
			return err
		}
		return json.Unmarshal([]byte(text), &p)
	})
	if err != nil {
		err = fmt.Errorf("ask whether a copy has ended: %w", err)
	}
	return p, err
}

// CopyFits returns an error where Copy cannot copy into the database, because it holds something.
func CopyFits(ctx context.Context, b Backend) error {
	p, err := readPending(ctx, b)
	if err != nil || p != nil {
		return err
	}
	var full int
	err = queryRows(ctx, b, Stmt{`SELECT ` + holdsTasks, nil}, func(r scanner) error { return r.Scan(&full) })
	if err == nil && full != 0 {
		err = dts.Errorf(dts.ErrConflict, "it holds tasks already, and nothing was changed; copy into a new, empty database")
	}
	return err
}

const holdsTasks = `(EXISTS (SELECT 1 FROM tasks) OR EXISTS (SELECT 1 FROM recurring_tasks))`

// begin marks the destination, unless an earlier copy has.
func (c *copier) begin(ctx context.Context, nodes string) error {
	if err := CopyPending(ctx, c.From); err != nil {
		return err
	}
	p, err := readPending(ctx, c.To)
	if err != nil || p != nil {
		return err
	}
	if err := CopyFits(ctx, c.To); err != nil {
		return err
	}
	_, err = c.group.Apply(ctx,
		Stmt{assertNodes, []any{nodes}},
		Stmt{`INSERT INTO batch_assert (tenant_id, ok) SELECT 'system', NULL WHERE ` + holdsTasks, nil},
		Stmt{`INSERT INTO settings (tenant_id, name, value) VALUES ('system', ?, ?) ON CONFLICT DO NOTHING`,
			[]any{copyPending, jsonOf(pendingCopy{c.Source, c.Now})}})
	switch {
	case errors.Is(err, ErrRefused):
		return dts.Errorf(dts.ErrConflict, "somebody has just begun to use the destination, and nothing was changed; copy into a new, empty database")
	case err != nil:
		return fmt.Errorf("begin the copy: %w", err)
	}
	return nil
}

// finish carries the terms on, so that a term that was once held is never given out again, and takes the mark away:
// from then on servers may run on the destination.
func (c *copier) finish(ctx context.Context, nodes string) error {
	batch := []Stmt{{assertNodes, []any{nodes}}}
	err := queryRows(ctx, c.From, Stmt{`SELECT shard, term FROM shards ORDER BY shard`, nil}, func(r scanner) error {
		var shard, term int64
		err := r.Scan(&shard, &term)
		batch = append(batch, Stmt{`INSERT INTO shards (shard, tenant_id, node_id, term) VALUES (?, 'system', '', ?)
			ON CONFLICT (shard) DO UPDATE SET node_id = '', term = max(term, excluded.term)`, []any{shard, term}})
		return err
	})
	if err != nil {
		return fmt.Errorf("read the terms of shards: %w", err)
	}
	batch = append(batch, Stmt{`DELETE FROM settings WHERE tenant_id = 'system' AND name = ?`, []any{copyPending}})
	_, err = c.group.Apply(ctx, batch...)
	switch {
	case errors.Is(err, ErrRefused):
		return dts.Errorf(dts.ErrConflict, "a server has begun to run on the destination while the copy was made; stop it and copy again")
	case err != nil:
		return fmt.Errorf("end the copy: %w", err)
	}
	return nil
}

// table copies a table and compares it. What an earlier copy has left is believed to be right until then; if it is
// not, for example because its source was used in the meantime, the table is emptied and copied once more.
func (c *copier) table(ctx context.Context, t *table) (CopiedTable, error) {
	for again := false; ; again = true {
		want, err := t.count(ctx, c.From)
		if err != nil {
			return CopiedTable{}, err
		}
		if err := c.rows(ctx, t, want); err != nil {
			return CopiedTable{}, err
		}
		sides := [2]digest{}
		for i, b := range [2]Backend{c.From, c.To} {
			read := int64(i) * want
			sides[i], err = t.digest(ctx, b, func(rows int) {
				read += int64(rows)
				c.Progress(CopyProgress{Table: t.name, Compare: true, Rows: min(read, 2*want), Of: 2 * want})
			})
			if err != nil {
				return CopiedTable{}, err
			}
		}
		if sides[0] == sides[1] {
			return CopiedTable{t.name, sides[0].rows, sides[0].String()}, nil
		}
		if again {
			return CopiedTable{}, dts.Errorf(dts.ErrInternal, "it came out different: %d rows with the checksum %s in the source, %d with %s in the destination. If nothing else writes to them, report this; the destination stays unusable",
				sides[0].rows, sides[0], sides[1].rows, sides[1])
		}
		if err := c.empty(ctx, t); err != nil {
			return CopiedTable{}, err
		}
	}
}

// rows copies the rows that come after the last one in the destination.
func (c *copier) rows(ctx context.Context, t *table, of int64) error {
	last, err := t.lastKey(ctx, c.To)
	if err != nil {
		return err
	}
	var done int64
	if last != nil {
		if done, err = t.count(ctx, c.To); err != nil {
			return err
		}
	}
	return t.pages(ctx, c.From, last, func(rows [][]any) error {
		batch := make([]Stmt, len(rows))
		for i, row := range rows {
			batch[i] = Stmt{t.insert, row}
		}
		if _, err := c.group.Apply(ctx, batch...); err != nil {
			return err
		}
		done += int64(len(rows))
		c.Progress(CopyProgress{Table: t.name, Rows: min(done, of), Of: of})
		return nil
	})
}

// empty deletes all rows of the table in the destination.
func (c *copier) empty(ctx context.Context, t *table) error {
	for {
		last, err := t.lastKey(ctx, c.To)
		if err != nil || last == nil {
			return err
		}
		if _, err := c.group.Apply(ctx, Stmt{t.remove, []any{pageRows}}); err != nil {
			return err
		}
	}
}

// nodesNow is all that is known of who runs on a database, as one text.
const nodesNow = `(SELECT group_concat(node_id || ' ' || incarnation || ' ' || state || ' ' || beat, ', ' ORDER BY node_id) FROM nodes)`

// assertNodes refuses a batch when that has changed.
const assertNodes = `INSERT INTO batch_assert (tenant_id, ok) SELECT 'system', NULL WHERE coalesce(` + nodesNow + `, '') <> ?`

func nodesOf(ctx context.Context, b Backend) (text string, err error) {
	err = queryRows(ctx, b, Stmt{`SELECT coalesce(` + nodesNow + `, '')`, nil}, func(r scanner) error { return r.Scan(&text) })
	if err != nil {
		err = fmt.Errorf("ask who runs on the database: %w", err)
	}
	return text, err
}

// liveLooked is how often Live looks.
const liveLooked = 500 * time.Millisecond

// Live watches whether a server runs on the database, until one is seen to beat or the time is over, and returns
// its id and address. It returns "" at once where none counts as running. Servers beat every few seconds.
func Live(ctx context.Context, b Backend, watch time.Duration) (server string, err error) {
	seen := map[string]string{}
	for end := time.Now().Add(watch); ; {
		running := 0
		err := queryRows(ctx, b, Stmt{`SELECT node_id, address, incarnation || ' ' || beat FROM nodes WHERE state IN ('ALIVE', 'LEAVING') ORDER BY node_id`, nil}, func(r scanner) error {
			var id, address, beat string
			err := r.Scan(&id, &address, &beat)
			running++
			if before, ok := seen[id]; ok && before != beat {
				server = id
				if address != "" {
					server += " at " + address
				}
			}
			seen[id] = beat
			return err
		})
		switch {
		case err != nil:
			return "", fmt.Errorf("look for servers: %w", err)
		case server != "" || running == 0 || !time.Now().Before(end):
			return server, nil
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(liveLooked):
		}
	}
}
