package rqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/rqlite/gorqlite"

	"dts/store"
)

// migrate brings the schema to the newest version in Options.Migrations. Each migration is one batch with its
// version's row in it: of several programs that start at once, one applies it and the others find it applied.
func (d *DB) migrate(ctx context.Context) error {
	if err := d.createTables(ctx); err != nil {
		return fmt.Errorf("make the tables that keep account of batches: %w", err)
	}
	db := d.openReads(store.Linearizable)
	defer db.Close()
	p, err := goose.NewProvider(goose.DialectCustom, db, d.o.Migrations, goose.WithStore(versions{}),
		goose.WithSlog(d.log), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	have, newest, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read the schema version: %w", err)
	}
	if have > newest {
		return fmt.Errorf("the schema has version %d, and this program knows up to %d: a newer dts wrote it; use that one", have, newest)
	}
	d.schema.Store(newest)
	for first := have; have < newest; {
		_, failed := p.Up(ctx)
		now, _, err := p.GetVersions(ctx)
		if err != nil {
			return fmt.Errorf("read the schema version: %w", err)
		}
		if now <= have { // nobody has migrated it meanwhile
			return fmt.Errorf("migrate the schema from version %d to %d: %w", have, newest, failed)
		}
		if have = now; have >= newest {
			d.log.Info("the schema was migrated", "from", first, "to", have)
		}
	}
	return nil
}

// createTables makes this package's tables, all at once, if they are not there.
func (d *DB) createTables(ctx context.Context) error {
	res, err := d.read(ctx, store.Linearizable, `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?`, []any{opTable})
	if err != nil {
		return err
	}
	var n int64
	if !res.Next() {
		return errors.New("an answer without a row")
	}
	if err := res.Scan(&n); err != nil {
		return err
	}
	if n > 0 {
		_, err := d.learnEpoch(ctx)
		return err
	}
	// There is no token yet, and no need of one: a second time, this changes nothing.
	w := &write{d: d, limit: attemptBase, total: d.o.WriteTimeout, stmts: []gorqlite.ParameterizedStatement{
		{Query: createOp}, {Query: createEpoch}, {Query: createSchema},
		{Query: `INSERT INTO ` + epochTable + ` (id, epoch) VALUES (1, 1) ON CONFLICT DO NOTHING`},
		{Query: `INSERT INTO ` + schemaTable + ` (version_id, applied_at) VALUES (0, ?) ON CONFLICT DO NOTHING`, Arguments: []any{time.Now().UnixMicro()}},
	}}
	if _, err = w.run(); err != nil {
		return err
	}
	_, err = d.learnEpoch(ctx)
	return err
}

// versions is goose's account of applied migrations.
type versions struct{}

var (
	_ database.Store         = versions{}
	_ database.StoreExtender = versions{}
)

// Tablename implements database.Store.
func (versions) Tablename() string { return schemaTable }

// TableExists implements database.StoreExtender: createTables has made it.
func (versions) TableExists(context.Context, database.DBTxConn) (bool, error) { return true, nil }

// CreateVersionTable implements database.Store. Nobody calls it, because the table exists.
func (versions) CreateVersionTable(context.Context, database.DBTxConn) error {
	return errors.ErrUnsupported
}

// Insert implements database.Store. It is no ON CONFLICT: the second of two programs must fail.
func (versions) Insert(ctx context.Context, db database.DBTxConn, r database.InsertRequest) error {
	_, err := db.ExecContext(ctx, `INSERT INTO `+schemaTable+` (version_id, applied_at) VALUES (?, ?)`, r.Version, time.Now().UnixMicro())
	return err
}

// Delete implements database.Store.
func (versions) Delete(ctx context.Context, db database.DBTxConn, version int64) error {
	_, err := db.ExecContext(ctx, `DELETE FROM `+schemaTable+` WHERE version_id = ?`, version)
	return err
}

// GetMigration implements database.Store.
func (versions) GetMigration(ctx context.Context, db database.DBTxConn, version int64) (*database.GetMigrationResult, error) {
	rows, err := db.QueryContext(ctx, `SELECT applied_at FROM `+schemaTable+` WHERE version_id = ?`, version)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	if !rows.Next() {
		return nil, errors.Join(rows.Err(), database.ErrVersionNotFound)
	}
	var at int64
	if err := rows.Scan(&at); err != nil {
		return nil, err
	}
	return &database.GetMigrationResult{Timestamp: time.UnixMicro(at).UTC(), IsApplied: true}, rows.Err()
}

// GetLatestVersion implements database.Store.
func (v versions) GetLatestVersion(ctx context.Context, db database.DBTxConn) (int64, error) {
	list, err := v.ListMigrations(ctx, db)
	if err != nil {
		return 0, err
	}
	if len(list) == 0 {
		return 0, database.ErrVersionNotFound
	}
	return list[0].Version, nil
}

// ListMigrations implements database.Store.
func (versions) ListMigrations(ctx context.Context, db database.DBTxConn) ([]*database.ListMigrationsResult, error) {
	rows, err := db.QueryContext(ctx, `SELECT version_id FROM `+schemaTable+` ORDER BY version_id DESC`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := []*database.ListMigrationsResult{}
	for rows.Next() {
		r := &database.ListMigrationsResult{IsApplied: true}
		if err := rows.Scan(&r.Version); err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, rows.Err()
}

// tx is a transaction of a migration: Exec collects, Commit sends it all as one batch.
type tx struct {
	c     *conn
	batch []store.Stmt
}

// BeginTx implements driver.ConnBeginTx.
func (c *conn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) {
	c.tx = &tx{c: c}
	return c.tx, nil
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(_ context.Context, query string, named []driver.NamedValue) (driver.Result, error) {
	if c.tx == nil {
		return nil, errors.New("a migration without a transaction: rqlite applies each as one batch, so leave out NO TRANSACTION")
	}
	args := make([]any, len(named))
	for i, a := range named {
		args[i] = a.Value
	}
	c.tx.batch = append(c.tx.batch, store.Stmt{SQL: query, Args: args})
	return driver.ResultNoRows, nil
}

// Commit implements driver.Tx.
func (t *tx) Commit() error {
	t.c.tx = nil
	if err := checkBatch(t.batch); err != nil || len(t.batch) == 0 {
		return err
	}
	_, err := t.c.d.apply(t.batch)
	return err
}

// Rollback implements driver.Tx.
func (t *tx) Rollback() error {
	t.c.tx = nil
	return nil
}
