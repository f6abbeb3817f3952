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
	opKeep     = 5 * time.Minute // how long an epoch lasts, at least
	pruneStep  = 10_000          // rows of opTable that one batch deletes
	pruneSteps = 10              // batches in one Maintain
)

// Maintain implements store.Backend: it begins a new epoch if the present one has lasted long enough, and deletes the
// rows of batches of old ones. Call it every minute or so.
//
// No clock of another process is compared, and no time of day: an epoch has lasted long enough when this process has itself seen it
// for opKeep.
func (d *DB) Maintain(ctx context.Context) error {
	if err := d.begin(); err != nil {
		return err
	}
	defer d.work.Done()
	epoch, err := d.learnEpoch(ctx)
	if err != nil {
		return err
	}
	d.mu.Lock()
	over := time.Since(d.epochSince) >= d.opKeep
	d.mu.Unlock()
	if over {
		// Another process may be faster: then this changes nothing.
		_, err := d.Apply(ctx, store.Stmt{SQL: `UPDATE ` + epochTable + ` SET epoch = ? WHERE id = 1 AND epoch = ?`, Args: []any{epoch + 1, epoch}})
		if err != nil {
			return fmt.Errorf("begin a new epoch: %w", err)
		}
		if epoch, err = d.learnEpoch(ctx); err != nil {
			return err
		}
	}
	for range pruneSteps {
		res, err := d.Apply(ctx, store.Stmt{SQL: `DELETE FROM ` + opTable + ` WHERE (epoch, token) IN
			(SELECT epoch, token FROM ` + opTable + ` WHERE epoch < ? ORDER BY epoch, token LIMIT ?)`, Args: []any{epoch - 1, pruneStep}})
		if err != nil {
			return fmt.Errorf("delete rows of old batches: %w", err)
		}
		if res[0].RowsAffected < pruneStep {
			break
		}
	}
	return nil
}

// learnEpoch reads the present epoch, for the batches to come.
func (d *DB) learnEpoch(ctx context.Context) (int64, error) {
	res, err := d.read(ctx, store.Linearizable, selectEpoch, nil)
	if err != nil {
		return 0, fmt.Errorf("read the epoch: %w", err)
	}
	var epoch int64
	if !res.Next() {
		return 0, errors.New("read the epoch: there is none")
	}
	if err := res.Scan(&epoch); err != nil {
		return 0, fmt.Errorf("read the epoch: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.epochSince.IsZero() || epoch != d.epoch.Load() {
		d.epochSince = time.Now()
		d.epoch.Store(epoch)
	}
	return epoch, nil
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
