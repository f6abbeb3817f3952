package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dts/migrations"
	"dts/store"
	"dts/store/rqlite"
	"dts/store/rqlite/rqlitetest"
)

// TestCopyRqlite copies to a real rqlite and back, and breaks off, kills and restarts what takes part.
func TestCopyRqlite(t *testing.T) {
	t.Parallel()
	cluster := rqlitetest.Start(t, rqlitetest.Options{})
	there := "rqlite:" + cluster.URLs()[0]
	from := filled(t, 5, 3000)
	want := copyJSON(t, "sqlite:"+from, "sqlite:"+filepath.Join(t.TempDir(), "whole"))

	db, err := rqlite.Open(t.Context(), rqlite.Options{URLs: cluster.URLs(), Migrations: migrations.FS})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	apply := func(sql string, args ...any) {
		t.Helper()
		if _, err := db.Apply(context.Background(), store.Stmt{SQL: sql, Args: args}); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	node := func(id, state string) {
		apply(`INSERT INTO nodes (node_id, tenant_id, incarnation, address, version, boot_id, started_at, seen_at, state, beat) VALUES (?, 'system', 'i', 'http://h:8420', '', '', 0, 0, ?, 0)`, id, state)
	}
	// A server has run there and left; its tenant is not the source's.
	node("left", "LEFT")
	apply(`INSERT INTO tenants (tenant_id, name, created_at) VALUES ('default', 'other', 1)`)

	// Interrupted twice, and the database away for a moment: the third time it ends.
	for range 2 {
		cmd := copyProgram(t, "copy", "--from", "sqlite:"+from, "--to", there)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for start := time.Now(); store.CopyPending(t.Context(), db) == nil; time.Sleep(10 * time.Millisecond) {
			if time.Since(start) > 30*time.Second {
				t.Fatal("no copy begins")
			}
		}
		time.Sleep(500 * time.Millisecond)
		cmd.Process.Kill()
		if err := cmd.Wait(); err == nil {
			t.Fatal("it had ended before it was killed")
		}
		if err := store.CopyPending(t.Context(), db); err == nil {
			t.Fatal("a part of a copy can be used")
		}
		text, err := copyProgram(t, "serve", "--listen", "none", "--data", filepath.Join(t.TempDir(), "data"), "--rqlite", cluster.URLs()[0], "--advertise", "http://127.0.0.1:1").CombinedOutput()
		if err == nil || !strings.Contains(string(text), "is not complete: run the same dts copy again") {
			t.Fatalf("a server with a part of a copy: %v, %s", err, text)
		}
	}
	cmd := copyProgram(t, "copy", "--from", "sqlite:"+from, "--to", there)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	cluster.Nodes()[0].Kill()
	cluster.Nodes()[0].Start()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := store.CopyPending(t.Context(), db); err != nil {
		t.Error(err)
	}
	back := copyJSON(t, there, "sqlite:"+filepath.Join(t.TempDir(), "back"))
	if !slices.Equal(back.Tables, want.Tables) || want.Rows < 5000 {
		t.Errorf("back there are %+v, want %+v", back, want)
	}
	if back.From != there {
		t.Errorf("it was copied from %s", back.From)
	}
	refused := func(want string, args ...string) {
		t.Helper()
		text, err := copyProgram(t, append([]string{"copy"}, args...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(text), want) {
			t.Errorf("%q: %v, %s", args, err, text)
		}
	}
	refused("dts: --to: it holds tasks already", "--from", "sqlite:"+from, "--to", there)

	// A server that lives on either side is seen.
	node("n1", "ALIVE")
	var beats sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	beats.Go(func() {
		for ctx.Err() == nil {
			apply(`UPDATE nodes SET beat = beat + 1 WHERE node_id = 'n1'`)
			time.Sleep(50 * time.Millisecond)
		}
	})
	again := filepath.Join(t.TempDir(), "again")
	refused("dts: --from: the server n1 at http://h:8420 runs on it; stop all of its servers first", "--from", there, "--to", "sqlite:"+again)
	refused("dts: --to: the server n1 at http://h:8420 runs on it; stop all of its servers first", "--from", "sqlite:"+from, "--to", there)
	refused("a server has begun to run on the source", "--force", "--from", there, "--to", "sqlite:"+again)
	stop()
	beats.Wait()
	// It was killed. Who knows that need not wait, and what --force had begun goes on.
	if text, err := copyProgram(t, "copy", "--force", "--from", there, "--to", "sqlite:"+again).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, text)
	}
}
