package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dts"
	"dts/migrations"
	"dts/store"
	"dts/store/sqlite"
)

const seriesA, seriesB = "0123456789ab", "ba9876543210"

// TestRotate: of its own copies the newest stay; of everything else, whatever it is called, nothing is touched.
func TestRotate(t *testing.T) {
	now := time.Date(2026, 11, 21, 3, 30, 0, 0, time.UTC)
	name := func(daysAgo int, series string) string {
		return backupName{at: now.AddDate(0, 0, -daysAgo), series: series}.String()
	}
	others := []string{
		name(50, seriesB), name(60, ""), "dts-20260101T000000Z-0123456789ab.db.txt", "x-dts-20260101T000000Z-0123456789ab.db",
		"dts-20260101T0000Z-0123456789ab.db", "dts-20260132T000000Z-0123456789ab.db", "dts.db", "dts-" + seriesA + ".db", "notes.txt",
	}
	for what, tt := range map[string]struct {
		keep, days int
		left       []int
	}{
		"all":         {0, 0, []int{0, 1, 2, 3, 40}},
		"one":         {1, 0, []int{0}},
		"three":       {3, 0, []int{0, 1, 2}},
		"more":        {9, 0, []int{0, 1, 2, 3, 40}},
		"by age":      {0, 2, []int{0, 1, 2}},
		"both":        {2, 30, []int{0, 1}},
		"both, other": {4, 1, []int{0, 1}},
	} {
		dir := t.TempDir()
		for _, n := range append([]string{name(0, seriesA), name(1, seriesA), name(2, seriesA), name(3, seriesA), name(40, seriesA)}, others...) {
			if err := os.WriteFile(filepath.Join(dir, n), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		// What looks like one of its own, and is no file.
		if err := errors.Join(os.Mkdir(filepath.Join(dir, name(70, seriesA)), 0o700), os.Symlink("notes.txt", filepath.Join(dir, name(71, seriesA)))); err != nil {
			t.Fatal(err)
		}
		removed, err := rotate(dts.BackupTarget{Dir: dir, Keep: tt.keep, KeepDays: tt.days}, backupName{at: now, series: seriesA}, now)
		if err != nil || len(removed) != 5-len(tt.left) {
			t.Errorf("%s: removed %v, %v", what, removed, err)
		}
		want := append(slices.Clone(others), name(70, seriesA), name(71, seriesA))
		for _, d := range tt.left {
			want = append(want, name(d, seriesA))
		}
		var left []string
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			left = append(left, e.Name())
		}
		slices.Sort(want)
		if !slices.Equal(left, want) {
			t.Errorf("%s: left are %v, want %v", what, left, want)
		}
	}
}

// TestRotateNewest: the copy that was just made stays, also when the clock was wrong and all others are newer; parts
// that nobody writes any more go, others stay.
func TestRotateNewest(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 11, 21, 3, 30, 0, 0, time.UTC)
	newest := backupName{at: now, series: seriesA}
	later := backupName{at: now.AddDate(1, 0, 0), series: seriesA}
	for _, n := range []string{newest.String(), later.String(), "dts-20261120T033000Z-" + seriesA + ".db.part", "dts-20261120T033000Z-" + seriesB + ".db.part"} {
		if err := os.WriteFile(filepath.Join(dir, n), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	busy, err := createBackup(filepath.Join(dir, "dts-20261121T032900Z-"+seriesA+".db"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer busy.discard()
	if _, err := rotate(dts.BackupTarget{Dir: dir, Keep: 1, KeepDays: 1}, newest, now.Add(48*time.Hour)); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(dir + "/*")
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	want := []string{"dts-20261120T033000Z-" + seriesB + ".db.part", "dts-20261121T032900Z-" + seriesA + ".db.part", newest.String()}
	if slices.Sort(left); !slices.Equal(left, want) {
		t.Errorf("left are %v, want %v", left, want)
	}
}

// TestBackupFile: a file gets its name only when it is whole, and never another one's.
func TestBackupFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "b.db")
	source := newDatabase(t)
	write := func(b *backupFile) {
		t.Helper()
		if err := source.Backup(t.Context(), b, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path+partSuffix, []byte("what a killed one has left, and more"), 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := createBackup(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := createBackup(path, false); err == nil || !strings.Contains(err.Error(), "another process is writing") {
		t.Errorf("two at once: %v", err)
	}
	write(b)
	if exists(path) {
		t.Error("it has its name before it is checked")
	}
	if held, err := b.finish(t.Context()); err != nil || held.Schema == 0 {
		t.Fatalf("%+v, %v", held, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := createBackup(path, false); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("over another one: %v", err)
	}

	// Half of one is refused, and what is there stays.
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	half, err := createBackup(path, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := half.Write(was[:len(was)/2]); err != nil {
		t.Fatal(err)
	}
	if _, err := half.finish(t.Context()); err == nil {
		t.Error("half a backup is taken for a whole one")
	}
	half.discard()
	if is, err := os.ReadFile(path); err != nil || !bytes.Equal(is, was) {
		t.Errorf("what was there has changed: %v", err)
	}
	// So is what comes into being meanwhile, without force.
	other := filepath.Join(dir, "c.db")
	c, err := createBackup(other, false)
	if err != nil {
		t.Fatal(err)
	}
	write(c)
	if err := os.WriteFile(other, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.finish(t.Context()); err == nil {
		t.Error("a file that came meanwhile was replaced")
	}
	c.discard()
	for _, bad := range []string{dir, filepath.Join(dir, "none", "x.db"), os.DevNull} {
		if _, err := createBackup(bad, true); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
	if left, _ := filepath.Glob(dir + "/*" + partSuffix); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// TestBackupOverData: no backup takes the place of a database in use, nor of what belongs to it.
func TestBackupOverData(t *testing.T) {
	data, elsewhere := t.TempDir(), t.TempDir()
	link := filepath.Join(elsewhere, "link")
	used := filepath.Join(elsewhere, "used.db")
	if err := errors.Join(os.WriteFile(filepath.Join(data, sqlite.LockFile), nil, 0o600), os.WriteFile(filepath.Join(data, databaseFile), nil, 0o600), os.Symlink(data, link),
		os.WriteFile(used, nil, 0o600), os.WriteFile(used+"-wal", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	bad := []string{used}
	for _, name := range []string{databaseFile, "dts.db-wal", "dts.db-journal", "dts.db.restore", "admin.token", "node-id"} {
		bad = append(bad, filepath.Join(data, name), filepath.Join(link, name))
	}
	for _, path := range bad {
		if b, err := createBackup(path, true); err == nil {
			t.Errorf("%s would be replaced", path)
			b.discard()
		}
	}
	b, err := createBackup(filepath.Join(data, "mine.db"), false)
	if err != nil {
		t.Fatal(err)
	}
	b.discard()
}

// TestBackupPartOfOther: what is there under the name that a backup is written to is not written to, since another user
// may have put it there and have it open.
func TestBackupPartOfOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.db")
	f, err := os.Create(path + partSuffix)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := createBackup(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Write([]byte("secret")); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(f); err != nil || len(got) > 0 {
		t.Errorf("they read %q, %v", got, err)
	}
	b.discard()
	if err := os.Symlink(f.Name(), path+partSuffix); err != nil {
		t.Fatal(err)
	}
	if _, err := createBackup(path, false); err == nil || !strings.Contains(err.Error(), "no ordinary file") {
		t.Errorf("over a link: %v", err)
	}
}

// newDatabase opens a database with the schema of dts.
func newDatabase(t *testing.T) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), databaseFile), sqlite.Options{Migrations: migrations.FS})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// TestSpool: who reads a backup gets all of it, and not more than there is; one at a time; and who goes away early
// leaves nothing.
func TestSpool(t *testing.T) {
	dir := t.TempDir()
	b := newBackups(&data{file: newDatabase(t), dir: dir})
	r, size, err := b.Backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Backup(t.Context()); !errors.Is(err, errBackupBusy) {
		t.Errorf("a second one: %v", err)
	}
	got, err := io.ReadAll(r)
	if err != nil || int64(len(got)) != size || !bytes.HasPrefix(got, []byte("SQLite format 3\x00")) {
		t.Errorf("%d bytes of %d, %v", len(got), size, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	for range 20 { // gone at once
		ctx, cancel := context.WithCancel(t.Context())
		r, _, err := b.Backup(ctx)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := io.ReadAll(r); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, store.ErrUnavailable) {
			t.Log(err) // as SQLite says it
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if left, _ := filepath.Glob(dir + "/*"); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	if _, _, err := newBackups(&data{dir: dir}).Backup(t.Context()); !errors.Is(err, errBackupRqlite) {
		t.Errorf("with rqlite: %v", err)
	}
}

// TestBackupRun: how attempts of BACKUP tasks end.
func TestBackupRun(t *testing.T) {
	b := newBackups(&data{file: newDatabase(t), dir: t.TempDir()})
	dir := t.TempDir()
	r := &backupRunner{backups: b, now: time.Now}
	job := func(dir string, timeout float64) dts.Job {
		return dts.Job{Number: 1, Task: &dts.Task{Spec: dts.Spec{TargetType: dts.Backup, TargetConfig: []byte(`{"dir":"` + dir + `"}`), TimeoutSeconds: timeout}}}
	}
	out := r.Run(t.Context(), job(dir, 60))
	if out.State != dts.AttemptSuccess || !strings.Contains(string(out.Output.Head), "0 tasks and 0 recurring tasks, checked") {
		t.Errorf("%+v", out)
	}
	if out := r.Run(t.Context(), job(dir+"/none", 60)); out.State != dts.AttemptFailed || !out.Retryable || !strings.Contains(out.Error, "there is no directory") {
		t.Errorf("without its directory: %+v", out)
	}
	b.copying <- struct{}{} // another one is being made
	if out := r.Run(t.Context(), job(t.TempDir(), 0.01)); out.State != dts.AttemptTimedOut || !out.Retryable {
		t.Errorf("too long: %+v", out)
	}
	for cause, want := range map[error]dts.AttemptState{dts.ErrRunCancelled: dts.AttemptCancelled, dts.ErrRunReplaced: dts.AttemptCancelled, dts.ErrRunLost: dts.AttemptLost} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		if out := r.Run(ctx, job(t.TempDir(), 60)); out.State != want {
			t.Errorf("%v: %+v", cause, out)
		}
	}
	<-b.copying
	r.backups = newBackups(&data{dir: dir})
	if out := r.Run(t.Context(), job(t.TempDir(), 60)); out.State != dts.AttemptFailed || out.Retryable {
		t.Errorf("with rqlite: %+v", out)
	}
}
