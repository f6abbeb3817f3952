package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/pressly/goose/v3"
)

// migrate brings the schema to the newest version in Options.Migrations, one transaction each. A
// database that has tables already is copied first.
func (d *DB) migrate(ctx context.Context, db *sql.DB) error {
	p, err := goose.NewProvider(goose.DialectSQLite3, db, d.o.Migrations,
		goose.WithSlog(d.log), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	have, newest, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read the schema version: %w", err)
	}
	if have > newest {
		return fmt.Errorf("the schema has version %d, and this program knows up to %d: a newer dts wrote it; use that one, or restore a backup made before version %d",
			have, newest, newest+1)
	}
	if have == newest {
		return nil
	}
	if have > 0 {
		next := newest
		for _, s := range p.ListSources() {
			if s.Version > have {
				next = min(next, s.Version)
			}
		}
		copyTo := fmt.Sprintf("%s.before-v%d", d.path, next)
		if err := vacuumInto(ctx, db, d.size(), copyTo); err != nil {
			return fmt.Errorf("copy the database before migrating it: %w", err)
		}
		d.log.Info("copied the database before migrating it", "copy", copyTo, "from", have, "to", newest)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate the schema from version %d to %d: %w", have, newest, err)
	}
	d.log.Info("migrated the schema", "from", have, "to", newest)
	return nil
}
