//go:build linux || darwin

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"dts/store"
)

// childWrite writes pairs of rows and prints each number after it was acknowledged, until killed.
func childWrite() {
	d, err := Open(context.Background(), filepath.Join(os.Getenv("SQLITE_TEST_DIR"), "dts.db"), Options{Migrations: testMigrations(1)})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	base := time.Now().UnixNano()
	for i := int64(0); ; i += 2 {
		if _, err := d.Apply(context.Background(), put(base+i, "a"), put(base+i+1, "b")); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(base + i)
	}
}

func TestKill9(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "dts.db")
	var acked []int64
	for round := range 4 {
		cmd, out := child(t, "write", dir)
		kill := 20 + rand.IntN(200)
		for n := 0; out.Scan(); n++ {
			id, err := strconv.ParseInt(out.Text(), 10, 64)
			if err != nil {
				t.Fatalf("the child says %q", out.Text())
			}
			acked = append(acked, id)
			if n == kill {
				cmd.Process.Kill()
			}
		}
		cmd.Wait()
		d := openTest(t, path, Options{})
		if !d.Unclean() {
			t.Errorf("round %d: the kill went unnoticed", round)
		}
		for _, id := range acked {
			if n := value[int](t, d, `SELECT count(*) FROM t WHERE id IN (?, ?)`, id, id+1); n != 2 {
				t.Fatalf("round %d: acknowledged batch %d has %d of 2 rows", round, id, n)
			}
		}
		if n := value[int](t, d, `SELECT count(*) FROM t`); n%2 != 0 || n > 2*(len(acked)+round+1) {
			t.Errorf("round %d: %d rows after %d acknowledged pairs", round, n, len(acked))
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if d := openTest(t, path, Options{}); d.Unclean() {
		t.Error("a clean stop counts as unclean")
	}
}

// damaged makes a database of some size, overwrites a part of it, and marks the stop as unclean.
func damaged(t *testing.T) string {
	t.Helper()
	path := testPath(t)
	d := openTest(t, path, Options{})
	for i := range int64(20) {
		var batch []store.Stmt
		for j := range int64(50) {
			batch = append(batch, put(100*i+j, strings.Repeat("x", 500)))
		}
		mustApply(t, d, batch...)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	fi, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte(strings.Repeat("damage!!", 8192)), fi.Size()/8192*4096); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := markRunning(path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDamageIsFoundAtOpen(t *testing.T) {
	path := damaged(t)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // and again, until somebody does something
		_, err := Open(t.Context(), path, Options{Migrations: testMigrations(1)})
		if !errors.Is(err, errDamaged) || !strings.Contains(err.Error(), "To restore a backup: stop dts, run dts restore BACKUP --force --data "+filepath.Dir(path)) {
			t.Fatalf("err = %v, want the damage and what to do", err)
		}
	}
	after, err := os.ReadFile(path)
	if err != nil || string(after) != string(before) {
		t.Error("the damaged file was changed")
	}
	if _, err := os.Stat(path + ".running"); err != nil {
		t.Error("the mark of the unclean stop is gone")
	}
}

func TestDamageIsFoundInTheBackground(t *testing.T) {
	path := damaged(t)
	told := make(chan error, 1)
	d, err := Open(t.Context(), path, Options{Migrations: testMigrations(1), CheckAtOpenBytes: 1,
		OnCorrupt: func(err error) { told <- err }})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-told; !errors.Is(err, errDamaged) {
		t.Errorf("told %v", err)
	}
	if _, err := d.Apply(t.Context(), put(-1, "x")); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, errDamaged) {
		t.Errorf("a write to a damaged database: %v", err)
	}
	if !d.Stats().Corrupt {
		t.Error("Stats does not say so")
	}
	if n := value[int](t, d, `SELECT 1`); n != 1 {
		t.Error("reads must go on")
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + ".running"); errors.Is(err, fs.ErrNotExist) {
		t.Error("the mark is gone, so the next Open would not check")
	}
}

func TestUncleanButSound(t *testing.T) {
	for _, limit := range []int64{0, 1} {
		path := testPath(t)
		openTest(t, path, Options{}).Close()
		if _, err := markRunning(path); err != nil {
			t.Fatal(err)
		}
		d := openTest(t, path, Options{CheckAtOpenBytes: limit, OnCorrupt: func(err error) { t.Error(err) }})
		if !d.Unclean() {
			t.Error("not seen as unclean")
		}
		mustApply(t, d, put(1, "x"))
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestGone removes, or replaces, the file of an open database: nothing more is acknowledged that no start would find.
func TestGone(t *testing.T) {
	for name, inflict := range map[string]func(path string) error{
		"removed": os.Remove,
		"moved":   func(path string) error { return os.Rename(path, path+".old") },
		"replaced": func(path string) error {
			return errors.Join(os.WriteFile(path+".new", nil, 0o600), os.Rename(path+".new", path))
		},
	} {
		path := filepath.Join(t.TempDir(), "dts.db")
		told := make(chan error, 1)
		d := openTest(t, path, Options{OnCorrupt: func(err error) { told <- err }})
		if err := d.Maintain(t.Context()); err != nil || d.Corrupt() {
			t.Fatalf("nothing has happened yet: %v", err)
		}
		if _, err := d.Apply(t.Context(), put(1, "x")); err != nil {
			t.Fatal(err)
		}
		if err := inflict(path); err != nil {
			t.Fatal(err)
		}
		if err := d.Maintain(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := <-told; !strings.Contains(err.Error(), "was removed or replaced") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := d.Apply(t.Context(), put(2, "x")); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: a write: %v", name, err)
		}
	}
}
