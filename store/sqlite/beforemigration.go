package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// vacuumInto copies the database to path, by way of a temporary file beside it. need is an upper
// bound of the copy's size in bytes.
func vacuumInto(ctx context.Context, db *sql.DB, need int64, path string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("back up to %s: %w", path, err)
		}
	}()
	dir := filepath.Dir(path)
	free, err := FreeBytes(dir)
	if err != nil {
		return err
	}
	if free < need {
		return fmt.Errorf("it needs %d MiB, and %s has %d MiB left", need>>20+1, dir, free>>20)
	}
	tmp := path + ".tmp"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := createFile(tmp); err != nil { // VACUUM INTO takes an empty file
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(tmp)
			os.Remove(tmp + "-journal")
		}
	}()
	if _, err := db.ExecContext(ctx, `VACUUM INTO ?`, tmp); err != nil {
		return err
	}
	f, err := os.OpenFile(tmp, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(dir)
}
