package sqlite

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"dts/store"
)

// backupTo writes a backup to a file.
func backupTo(t testing.TB, d *DB, path string) error {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return errors.Join(d.Backup(t.Context(), f, nil), f.Close())
}

// TestBackup: a copy that is made while pairs of rows are written has whole pairs, all that was acknowledged before
// it began, and nothing that begins later.
func TestBackup(t *testing.T) {
	d := openTest(t, testPath(t), Options{})
	g := store.NewGroup(d, store.GroupOptions{})
	defer g.Close()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	var acked int64
	count := func() int64 { mu.Lock(); defer mu.Unlock(); return acked }
	wg.Go(func() {
		for i := int64(0); ; i += 2 {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := g.Apply(t.Context(), put(i, "a"), put(i+1, "b")); err != nil {
				t.Error(err)
			}
			mu.Lock()
			acked = i + 2
			mu.Unlock()
		}
	})
	defer func() { close(stop); wg.Wait() }()
	for d.Stats().Commits < 50 {
		time.Sleep(time.Millisecond) // until there is something to copy
	}
	before := count()
	to := filepath.Join(t.TempDir(), "file:copy?.db")
	f, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var size, atBegin int64
	err = d.Backup(t.Context(), f, func(n int64) error {
		size, atBegin = n, count()
		for count() < atBegin+100 { // what is written from here on is not in it
			time.Sleep(time.Millisecond)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := fileSize(to); got != size {
		t.Errorf("%d bytes were announced, and %d came", size, got)
	}
	db, err := OpenAlone(to, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckAlone(t.Context(), db, true); err != nil {
		t.Error(err)
	}
	var n int64
	if err := db.QueryRow(`SELECT count(*) FROM t`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	if n < before || n%2 != 0 || n > atBegin+2 {
		t.Errorf("the copy has %d rows; %d were there before, and %d when it began", n, before, atBegin)
	}
	if _, err := db.Exec(`DELETE FROM t`); err == nil {
		t.Error("it could be changed")
	}
	db.Close()
	if left, _ := filepath.Glob(filepath.Dir(to) + "/*"); len(left) != 1 {
		t.Errorf("left over: %v", left)
	}
	c := openTest(t, to, Options{})
	if v := value[int](t, c, "PRAGMA auto_vacuum"); v != 2 {
		t.Errorf("the copy has auto_vacuum %d, want 2", v)
	}
	if v := value[string](t, c, "PRAGMA journal_mode"); v != "wal" {
		t.Errorf("opened, the copy has the journal mode %s", v)
	}
}

// TestBackupEnds: a backup ends with its context, when the database is closed, and with the first error of whom it
// writes to; and the database works on.
func TestBackupEnds(t *testing.T) {
	d := openTest(t, testPath(t), Options{})
	mustApply(t, d, put(1, "x"))
	ctx, cancel := context.WithCancel(t.Context())
	if err := d.Backup(ctx, io.Discard, func(int64) error { cancel(); return nil }); err == nil {
		t.Error("a cancelled backup succeeded")
	}
	failed := errors.New("no more")
	if err := d.Backup(t.Context(), io.Discard, func(int64) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("refused at its begin: %v", err)
	}
	if err := d.Backup(t.Context(), failingWriter{failed}, nil); !errors.Is(err, failed) {
		t.Errorf("with a writer that fails: %v", err)
	}
	mustApply(t, d, put(2, "x"))
	if _, err := d.ckpt.checkpoint(true); err != nil { // no read is left open
		t.Error(err)
	}
	if _, behind, busy, err := d.ckpt.wal("TRUNCATE"); err != nil || busy || behind != 0 {
		t.Errorf("the log could not be emptied: %d behind, busy %v, %v", behind, busy, err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Backup(t.Context(), io.Discard, nil); err == nil {
		t.Error("a closed database was backed up")
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// TestBackupFile: what a killed server left is copied with what its log holds, and neither changes.
func TestBackupFile(t *testing.T) {
	path := testPath(t)
	d := openTest(t, path, Options{})
	for i := range int64(500) {
		mustApply(t, d, put(i, "some text"))
	}
	dir := t.TempDir()
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(path + suffix) // the last of what this process does with this file
		if err != nil || os.WriteFile(filepath.Join(dir, "dts.db"+suffix), b, 0o600) != nil {
			t.Fatal(err)
		}
	}
	path = filepath.Join(dir, "dts.db")
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var copied bytes.Buffer
	if err := BackupFile(t.Context(), path, &copied, nil); err != nil {
		t.Fatal(err)
	}
	if is, err := os.ReadFile(path); err != nil || !bytes.Equal(was, is) {
		t.Errorf("the database was changed: %v", err)
	}
	to := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(to, copied.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	c := openTest(t, to, Options{})
	if n := value[int64](t, c, `SELECT count(*) FROM t`); n != 500 {
		t.Errorf("%d rows of 500", n)
	}
}
