package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dts"
	"dts/migrations"
	"dts/store"
	"dts/store/sqlite"
)

// newBackup makes a backup of a database with a task, a session and a command that runs.
func newBackup(t *testing.T) string {
	t.Helper()
	db := newDatabase(t)
	st := store.New(db, store.Options{})
	now := time.Now()
	task := &dts.Task{Spec: dts.Spec{TargetType: dts.Command, TargetConfig: []byte(`{"argv":["true"]}`)}, RunAt: now.Add(time.Hour)}
	if err := task.Normalize(now); err != nil {
		t.Fatal(err)
	}
	if _, err := st.InsertTasks(t.Context(), dts.Fence{Alone: true}, []*dts.Task{task}); err != nil {
		t.Fatal(err)
	}
	for kind, hash := range map[dts.TokenKind]string{dts.TokenSession: "s", dts.TokenLink: "l", dts.TokenAPI: "a"} {
		if err := st.PutToken(t.Context(), dts.Token{Hash: hash, TenantID: dts.DefaultTenant, Kind: kind, Name: "x", CreatedAt: now, ExpiresAt: now.Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := db.Apply(t.Context(), store.Stmt{SQL: `INSERT INTO attempts (tenant_id, task_id, number, state, node, started_at, duration_us, lateness_us, cpu_us, max_rss_bytes, output_bytes, pgid, proc_start, boot_id)
		VALUES ('default', ?, 1, 'RUNNING', 'n', 1, 0, 0, 0, 0, 0, 4711, 1, 'b')`, Args: []any{task.ID}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "backup.db")
	var b bytes.Buffer
	if err := db.Backup(t.Context(), &b, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// runRestore runs dts restore.
func runRestore(args ...string) (out string, code int) {
	var text bytes.Buffer
	code = run(append([]string{"dts", "restore"}, args...), strings.NewReader(""), &text, &text)
	return text.String(), code
}

// edit changes a database file by hand.
func edit(t *testing.T, path, text string) {
	t.Helper()
	db, err := sqlite.OpenAlone(path, true)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(text); err != nil {
		t.Fatal(err)
	}
}

// one reads a number from a database file.
func one(t *testing.T, path, query string) (n int64) {
	t.Helper()
	db, err := sqlite.OpenAlone(path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestRestoreRefused: what is no whole backup of a schema that is known is refused, and nothing is changed.
func TestRestoreRefused(t *testing.T) {
	t.Setenv("DTS_CONFIG", os.DevNull)
	good := newBackup(t)
	bytesOf, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	file := func(b []byte) string {
		path := filepath.Join(t.TempDir(), "x.db")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	edited := func(text string) string {
		path := file(bytesOf)
		edit(t, path, text)
		return path
	}
	flipped := bytes.Clone(bytesOf)
	for i := 4096 * 2; i < len(flipped); i += 4096 { // the headers of all pages but two
		flipped[i] ^= 0xff
	}
	withLog := file(bytesOf)
	withJournal := file(bytesOf)
	if err := errors.Join(os.WriteFile(withLog+"-wal", []byte("x"), 0o600), os.WriteFile(withJournal+"-journal", []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(t.TempDir(), "foreign.db")
	db, err := sql.Open("sqlite", foreign)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`CREATE TABLE tasks (x)`); err != nil {
		t.Fatal(err)
	}
	db.Close()
	for what, tt := range map[string]struct{ file, want string }{
		"nothing":   {filepath.Join(t.TempDir(), "none"), "there is no file"},
		"directory": {t.TempDir(), "is no ordinary file"},
		"empty":     {file(nil), "is empty"},
		"text":      {file([]byte("hello")), "is no database"},
		"zip":       {file([]byte("PK\x03\x04 and so on, and on")), "is a zip archive: unpack it first"},
		"gzip":      {file([]byte("\x1f\x8b and so on, and on")), "is compressed by gzip"},
		"foreign":   {foreign, "none of dts"},
		"newer":     {edited(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)`), "has version 9999, and this program knows up to"},
		"rqlite":    {edited(`ALTER TABLE goose_db_version RENAME TO rqlite_schema`), "is a backup of an rqlite cluster"},
		"half":      {file(bytesOf[:len(bytesOf)/2]), "cannot be used"},
		"header":    {file(bytesOf[:16]), "cannot be used"},
		"damaged":   {file(flipped), "cannot be used"},
		"log":       {withLog, "has a log beside it"},
		"journal":   {withJournal, "has a log beside it"},
		"index":     {edited(`PRAGMA writable_schema = ON; UPDATE sqlite_master SET rootpage = 2 WHERE name = 'tasks_rare'`), "cannot be used"},
	} {
		dir := filepath.Join(t.TempDir(), "data")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{databaseFile, "dts.db-wal"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("what was there"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if out, code := runRestore(tt.file, "--data", dir, "--force"); code == 0 || !strings.Contains(out, tt.want) {
			t.Errorf("%s: exit code %d, %q; want %q", what, code, out, tt.want)
		}
		for _, name := range []string{databaseFile, "dts.db-wal"} {
			if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != "what was there" {
				t.Errorf("%s: %s has changed: %v", what, name, err)
			}
		}
		left, _ := filepath.Glob(dir + "/*")
		if len(left) > 3 { // the lock
			t.Errorf("%s: left over: %v", what, left)
		}
	}
}

// TestRestore: a backup becomes a database; the one that was there is kept with its log; sessions are ended; and
// only elsewhere the processes of commands are forgotten.
func TestRestore(t *testing.T) {
	t.Setenv("DTS_CONFIG", os.DevNull)
	file := newBackup(t)
	dir := filepath.Join(t.TempDir(), "data")
	if out, code := runRestore(file, "--data", dir); code != 0 || !strings.Contains(out, "Restored 1 task and 0 recurring tasks to "+dir) {
		t.Fatalf("%d, %s", code, out)
	}
	path := filepath.Join(dir, databaseFile)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	const sessions, known = `SELECT count(*) FROM tokens WHERE kind <> 'api'`, `SELECT count(*) FROM attempts WHERE pgid IS NOT NULL`
	if one(t, file, sessions) != 2 || one(t, path, sessions) != 0 || one(t, path, `SELECT count(*) FROM tokens`) != 1 {
		t.Error("sessions are not ended, or more than those")
	}
	if one(t, file, known) != 1 || one(t, path, known) != 0 {
		t.Error("the copy elsewhere knows the processes")
	}

	if out, code := runRestore(file, "--data", dir); code == 0 || !strings.Contains(out, "holds a database already") {
		t.Errorf("over another one: %d, %s", code, out)
	}
	journal := append([]byte("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7\xff\xff\xff\xff"), make([]byte, 8192)...) // hot, as SQLite sees it
	for name, text := range map[string]string{nodeIDFile: dts.NewID(time.Now()), "dts.db-wal": "the log", "dts.db.running": "1",
		"dts.db.restore": "of one that was killed", "dts.db.restore-journal": string(journal)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, code := runRestore(file, "--data", dir, "--force"); code != 0 || !strings.Contains(out, "the database that was there is") {
		t.Fatalf("%d, %s", code, out)
	}
	if one(t, path, known) != 1 {
		t.Error("in its own place the processes of what ran are not known")
	}
	aside, _ := filepath.Glob(dir + "/dts.db.before-restore-*")
	if len(aside) != 2 || aside[1] != aside[0]+"-wal" {
		t.Errorf("aside are %v", aside)
	}
	if exists(path+"-wal") || exists(path+".running") || exists(path+".restore") {
		t.Error("something of the old one is beside the new one")
	}
	db, err := sqlite.Open(context.Background(), path, sqlite.Options{Migrations: migrations.FS})
	if err != nil {
		t.Fatal(err)
	}
	db.Close()

	// Not under a server, and not where the tasks are in rqlite.
	lock, err := sqlite.LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if out, code := runRestore(file, "--data", dir, "--force"); code == 0 || !strings.Contains(out, "stop the server first") {
		t.Errorf("under a server: %d, %s", code, out)
	}
	lock.Close()
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, rqliteFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := runRestore(file, "--data", other); code == 0 || !strings.Contains(out, "in an rqlite cluster") {
		t.Errorf("with rqlite: %d, %s", code, out)
	}
	if _, err := os.Stat(filepath.Join(other, databaseFile)); !os.IsNotExist(err) {
		t.Error(err, fs.ErrNotExist)
	}
}

// TestRestoreInterrupted: a server does not begin with an empty database where a restore was killed before its end.
func TestRestoreInterrupted(t *testing.T) {
	t.Setenv("DTS_CONFIG", os.DevNull)
	backup, dir := newBackup(t), t.TempDir()
	path := filepath.Join(dir, databaseFile)
	if err := os.WriteFile(path+restoreSuffix, nil, 0o600); err != nil { // as much of it as there was
		t.Fatal(err)
	}
	if _, err := openDatabase(t.Context(), dir, nil, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "a restore was interrupted") || exists(path) {
		t.Errorf("a server began with nothing: %v", err)
	}
	if out, code := runRestore(backup, "--data", dir); code != 0 {
		t.Fatalf("%d %s", code, out)
	}
	db, err := openDatabase(t.Context(), dir, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
}

// TestRestoreByRoot: what root restores belongs to the user that the server runs as, the lock too.
func TestRestoreByRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("A RESTORE BY ROOT FOR THE USER OF A SERVICE IS NOT TESTED: only root can give a file away")
	}
	t.Setenv("DTS_CONFIG", os.DevNull)
	dir := t.TempDir()
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if out, code := runRestore(newBackup(t), "--data", dir); code != 0 {
		t.Fatalf("%d %s", code, out)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("%v %v", entries, err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || uidOf(info) != 65534 {
			t.Errorf("%s belongs to %d, %v", e.Name(), uidOf(info), err)
		}
	}
}

// TestRestoreDue: whoever restores is told how many one-time tasks that may have run will run again.
func TestRestoreDue(t *testing.T) {
	t.Setenv("DTS_CONFIG", os.DevNull)
	file := newBackup(t)
	const told = "run at its start"
	if out, code := runRestore(file, "--data", t.TempDir()); code != 0 || strings.Contains(out, told) {
		t.Errorf("none is due: %d %s", code, out)
	}
	edit(t, file, `UPDATE tasks SET run_at = 1`)
	if out, code := runRestore(file, "--data", t.TempDir()); code != 0 || !strings.Contains(out, told) || !strings.Contains(out, ": 1.") {
		t.Errorf("one is due: %d %s", code, out)
	}
	edit(t, file, `UPDATE tasks SET expires_at = 2`)
	if out, code := runRestore(file, "--data", t.TempDir(), "--json"); code != 0 || !strings.Contains(out, `"due_one_time_tasks": 0`) {
		t.Errorf("one has expired: %d %s", code, out)
	}
}
