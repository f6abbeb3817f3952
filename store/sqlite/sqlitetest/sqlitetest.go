// Package sqlitetest makes databases for tests.
package sqlitetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"dts/migrations"
	"dts/store/sqlite"
)

// empty is the file of a database with the newest schema and no rows of the domain. It is migrated once for each process:
// that takes a tenth of a second, several under the race detector, and some packages need hundreds.
var empty = sync.OnceValues(func() (file []byte, err error) {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "dts.db")
	db, err := sqlite.Open(context.Background(), path, sqlite.Options{Migrations: migrations.FS})
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// Make makes a new, empty database at path. A test in a bubble of testing/synctest calls it before the bubble: what is made
// once for all must not belong to one of them.
func Make(path string) error {
	file, err := empty()
	if err != nil {
		return err
	}
	return os.WriteFile(path, file, 0o600)
}

// New makes a new, empty database in a folder of its own, as dts.db.
func New(t testing.TB) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "dts.db")
	if err := Make(path); err != nil {
		t.Fatal(err)
	}
	return path
}
