package rqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"dts/store"
)

const (
	pruneStep  = 10_000 // rows of opTable that one batch deletes
	pruneSteps = 10     // batches in one Maintain
)

// Maintain implements store.Backend: it deletes the rows of batches that are older than opKeep. Tokens are in the order
// of time, so the oldest rows are the first ones. Call it every minute or so.
func (d *DB) Maintain(ctx context.Context) error {
	for range pruneSteps {
		// The horizon first: a batch whose row is gone must not be applied when it arrives late after all.
		old := time.Now().UnixMicro()
		res, err := d.Apply(ctx,
			store.Stmt{SQL: `UPDATE ` + opTable + ` SET expires_at = max(expires_at, ?) WHERE token = ''`, Args: []any{old}},
			store.Stmt{SQL: `DELETE FROM ` + opTable + ` WHERE token IN (SELECT token FROM
				(SELECT token, expires_at FROM ` + opTable + ` WHERE token > '' ORDER BY token LIMIT ?) WHERE expires_at < ?)`, Args: []any{pruneStep, old}})
		if err != nil {
			return fmt.Errorf("delete rows of old batches: %w", err)
		}
		if res[1].RowsAffected < pruneStep {
			return nil
		}
	}
	return nil
}

// checkTimeout bounds the check of one node.
const checkTimeout = 10 * time.Minute

// Check implements store.Backend: each node that is named in Options.URLs checks its own copy of the database.
func (d *DB) Check(ctx context.Context) error {
	if err := d.begin(); err != nil {
		return err
	}
	defer d.work.Done()
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var errs []error
	for _, n := range d.nodes {
		if err := n.check(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (n *node) check(ctx context.Context) error {
	res, at := n.ask(ctx, checkTimeout, store.Stale, `PRAGMA quick_check(5)`, nil)
	if at.err != nil {
		return fmt.Errorf("check: %w", at.err)
	}
	var found []string
	for res.Next() {
		var s string
		if err := res.Scan(&s); err != nil {
			return fmt.Errorf("check %s: %w", n.address, err)
		}
		if s != "ok" {
			found = append(found, strings.ReplaceAll(s, "\n", ", "))
		}
	}
	if len(found) > 0 {
		return fmt.Errorf("the database of rqlite at %s is damaged: %s", n.address, strings.Join(found, "; "))
	}
	return nil
}
