package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"dts/migrations"
	"dts/store"
)

// TestReadOnly looks at a database that a server has, that nobody has, and that is damaged; and changes none of them.
func TestReadOnly(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	path := filepath.Join(dir, "dts.db")
	if _, err := OpenReadOnly(ctx, path, true); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no database: %v", err)
	}
	if held, err := Held(dir); held || err != nil {
		t.Errorf("held %v %v", held, err)
	}
	lock, err := LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if held, err := Held(dir); !held || err != nil {
		t.Errorf("held %v %v", held, err)
	}
	db, err := Open(ctx, path, Options{Migrations: migrations.FS})
	if err != nil {
		t.Fatal(err)
	}
	look := func(idle bool) {
		t.Helper()
		r, err := OpenReadOnly(ctx, path, idle)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		version, err := r.SchemaVersion(ctx)
		if err != nil || version < 6 {
			t.Errorf("schema %d %v", version, err)
		}
		for _, deep := range []bool{false, true} {
			if err := r.CheckFile(ctx, deep); err != nil {
				t.Errorf("deep %v: %v", deep, err)
			}
		}
		write := store.Stmt{SQL: `DELETE FROM tasks`}
		if _, err := r.Apply(ctx, write); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("a write: %v", err)
		}
		if rows, err := r.Query(ctx, store.OwnWrites, write); err == nil {
			if rows.Next(); rows.Err() == nil {
				t.Error("a query has written")
			}
			rows.Close()
		}
	}
	look(false)
	if err := errors.Join(db.Close(), lock.Close()); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	look(true)
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Error("the file was changed")
	}
	if exists, _ := filepath.Glob(path + ".running"); exists != nil {
		t.Error("it counts as running")
	}
	db, err = Open(ctx, path, Options{Migrations: migrations.FS})
	if err != nil || db.Unclean() {
		t.Fatalf("after a look: %v", err)
	}
	db.Close()

	for i := 8192; i < 12288; i++ { // a page of a table
		before[i] ^= 0x5a
	}
	if err := os.WriteFile(path, before, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := OpenReadOnly(ctx, path, true)
	if err == nil {
		err = r.CheckFile(ctx, true)
		r.Close()
	}
	if !Damaged(err) {
		t.Errorf("a damaged page: %v", err)
	}
}
