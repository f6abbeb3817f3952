//go:build linux

package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"dts/store"
)

// fill writes rows until the disk is full and returns how many were acknowledged.
func fill(t *testing.T, d *DB, from int64) int64 {
	t.Helper()
	s := strings.Repeat("x", 2000)
	for i := range int64(20_000) {
		_, err := d.Apply(t.Context(), put(from+i, s), put(-from-i, s))
		if err == nil {
			continue
		}
		if !errors.Is(err, store.ErrFull) {
			t.Fatalf("after %d writes: %v, want ErrFull", i, err)
		}
		return i
	}
	t.Fatal("the disk never filled")
	return 0
}

func wantRows(t *testing.T, d *DB, want int64) {
	t.Helper()
	if n := value[int64](t, d, `SELECT count(*) FROM t`); n != want {
		t.Errorf("%d rows, want %d: exactly the acknowledged ones", n, want)
	}
}

// TestFullDisk fills a real file system of 8 MiB.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8m,mode=0700"); err != nil {
		t.Skipf("NOT TESTED: a real full disk needs the right to mount a tmpfs: %v (TestFullDatabase covers SQLITE_FULL)", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	path := filepath.Join(dir, "dts.db")
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	d := openTest(t, path, Options{})
	n := fill(t, d, 1)
	if n == 0 {
		t.Fatal("nothing was written before the disk was full")
	}
	for range 5 { // it stays so, and reads go on
		if _, err := d.Apply(t.Context(), put(1_000_000, "y"), put(1_000_001, strings.Repeat("y", 50_000))); !errors.Is(err, store.ErrFull) {
			t.Errorf("err = %v, want ErrFull", err)
		}
		wantRows(t, d, 2*n)
	}
	g := store.NewGroup(d, store.GroupOptions{})
	defer g.Close()
	if _, err := g.Apply(t.Context(), put(1_000_001, strings.Repeat("y", 50_000))); !errors.Is(err, store.ErrFull) {
		t.Errorf("through the group: %v, want ErrFull", err)
	}
	to := filepath.Join(dir, "backup")
	if err := backupTo(t, d, to); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a backup to a full disk: %v", err)
	}
	os.Remove(to)
	if err := d.Check(t.Context()); err != nil {
		t.Error(err)
	}

	// Room again: it goes on by itself.
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	mustApply(t, d, put(2_000_000, "z"))
	wantRows(t, d, 2*n+1)
	more := fill(t, d, 100_000)
	if more == 0 {
		t.Error("nothing more was written after there was room")
	}
	wantRows(t, d, 2*(n+more)+1)
	if err := d.Check(t.Context()); err != nil {
		t.Error(err)
	}

	// A start on a full disk: it opens, with everything in it.
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	d = openTest(t, path, Options{})
	wantRows(t, d, 2*(n+more)+1)
}

// TestFullDatabase is the same by SQLite's own limit, which needs no rights.
func TestFullDatabase(t *testing.T) {
	path := testPath(t)
	d := openTest(t, path, Options{})
	limit := func(pages int) {
		t.Helper()
		var n int64
		if err := d.w.ints(fmt.Sprintf(`PRAGMA max_page_count = %d`, pages), &n); err != nil {
			t.Fatal(err)
		}
	}
	limit(100)
	n := fill(t, d, 1)
	wantRows(t, d, 2*n)
	limit(1 << 30)
	mustApply(t, d, put(1_000_000, "y"))
	wantRows(t, d, 2*n+1)
}
