package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dts/migrations"
	"dts/store"
	"dts/store/rqlite"
	"dts/store/sqlite"
	"dts/store/storetest"
)

func TestParsePlace(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "odd", "dts.db"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for text, want := range map[string]string{
		"sqlite:/a/b":        "sqlite:/a/b",
		"sqlite:/a/b/":       "sqlite:/a/b",
		"sqlite:/a/b/dts.db": "sqlite:/a/b",
		"sqlite:dts.db":      "sqlite:" + dir,
		"sqlite:.":           "sqlite:" + dir,
		"sqlite:odd/dts.db":  "sqlite:" + dir + "/odd/dts.db", // a data directory of that name
		"sqlite:c:d":         "sqlite:" + dir + "/c:d",
		"rqlite:http://u:secret@a:4001, https://b": "rqlite:http://a:4001,https://b:4001",
	} {
		if p, err := parsePlace("--to", text, rqlite.Options{}); err != nil || p.String() != want {
			t.Errorf("%q is %s, %v; want %s", text, p, err, want)
		}
	}
	for _, text := range []string{"", "sqlite", "sqlite:", "/a/b", "file:/a/b", "rqlite:", "rqlite:a:4001", "rqlite:http://a,ftp://b"} {
		if p, err := parsePlace("--to", text, rqlite.Options{}); err == nil {
			t.Errorf("%q is %s", text, p)
		}
	}
}

func TestCopyShown(t *testing.T) {
	golden(t, "copy", func(a *app) {
		for i, name := range []string{"tenants", "idempotency_keys", "tasks"} {
			a.printCopiedTable(store.CopiedTable{Name: name, Rows: []int64{1, 31_000, 1_203_566}[i], SHA256: strings.Repeat("0123456789abcdef", 4)})
		}
		a.printCopied(copied{From: "sqlite:/var/lib/dts", To: "sqlite:/srv/dts", Rows: 1_234_567, Seconds: 63.2})
		a.printCopied(copied{From: "sqlite:/var/lib/dts", To: "sqlite:/srv/dts", Rows: 12, Seconds: 0.01})
	})
}

// TestCopyBar: the bar follows tables of any size, and leaves nothing on the screen.
func TestCopyBar(t *testing.T) {
	var out bytes.Buffer
	b := &copyBar{app: &app{err: &out}}
	for _, p := range []store.CopyProgress{
		{Table: "tokens", Rows: 3, Of: 3}, {Table: "tasks", Rows: 1000, Of: 6000}, {Table: "tasks", Rows: 6000, Of: 6000},
		{Table: "tasks", Compare: true, Rows: 4000, Of: 12000}, {Table: "tasks", Compare: true, Rows: 12000, Of: 12000}, {Table: "outputs", Rows: 5, Of: 5},
	} {
		b.show(p)
	}
	b.clear()
	text := out.String()
	if !strings.Contains(text, "copying tasks") || !strings.Contains(text, "comparing tasks") || strings.Contains(text, "tokens") || strings.Contains(text, "outputs") {
		t.Errorf("%q", text)
	}
	if !strings.HasSuffix(strings.TrimRight(text, " "), "\r") {
		t.Errorf("something is left on the line: %q", text[max(0, len(text)-100):])
	}
}

// copyProgram runs this test binary as dts.
func copyProgram(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd, err := self(args...)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	return cmd
}

// filled makes a data directory with rows of every kind.
func filled(t *testing.T, seed uint64, tasks int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	db := openFile(t, dir)
	storetest.Fill(t, db, seed, tasks)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func openFile(t *testing.T, dir string) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(context.Background(), filepath.Join(dir, databaseFile), sqlite.Options{Migrations: migrations.FS})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// copyJSON runs dts copy to its end.
func copyJSON(t *testing.T, from, to string) (c copied) {
	t.Helper()
	cmd := copyProgram(t, "copy", "--json", "--from", from, "--to", to)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("dts copy: %v\n%s", err, &stderr)
	}
	if err := json.Unmarshal(out, &c); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return c
}

// TestCopyKilled kills dts copy again and again, somewhere. No server starts on what it leaves, the next one goes on,
// and the last one ends with all of it.
func TestCopyKilled(t *testing.T) {
	t.Parallel()
	from := filled(t, 1, 4000)
	want := copyJSON(t, "sqlite:"+from, "sqlite:"+filepath.Join(t.TempDir(), "whole"))
	to := filepath.Join(t.TempDir(), "killed")
	killed := 0
	for end := false; !end; {
		cmd := copyProgram(t, "copy", "--from", "sqlite:"+from, "--to", "sqlite:"+to)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		lines.Scan() // the first table is done
		if killed < 4 {
			time.Sleep(rand.N(time.Duration(want.Seconds / 3 * float64(time.Second))))
			cmd.Process.Kill()
		}
		for lines.Scan() {
			end = end || strings.HasPrefix(lines.Text(), "Copied ")
		}
		if err := cmd.Wait(); (err == nil) != end && killed >= 4 {
			t.Fatalf("dts copy: %v", err)
		}
		if end {
			break
		}
		killed++
		for _, args := range [][]string{{"serve", "--listen", "none", "--data", to}, {"add", "--data", to, "--", "true"}, {"copy", "--from", "sqlite:" + to, "--to", "sqlite:" + from + "2"}} {
			text, err := copyProgram(t, args...).CombinedOutput()
			if err == nil || !strings.Contains(string(text), "is not complete: run the same dts copy again, which goes on with it") {
				t.Fatalf("dts %s with a part of a copy: %v, %s", args[0], err, text)
			}
		}
	}
	if killed == 0 {
		t.Fatal("it was never killed in the middle")
	}
	t.Logf("killed %d times", killed)
	again := copyJSON(t, "sqlite:"+to, "sqlite:"+filepath.Join(t.TempDir(), "again"))
	if !slices.Equal(again.Tables, want.Tables) || again.Rows != want.Rows || want.Rows < 4000 {
		t.Errorf("after the kills there are %+v, want %+v", again, want)
	}
}

// TestCopyNewerSchema: what a newer dts wrote is refused on either side, and neither is changed.
func TestCopyNewerSchema(t *testing.T) {
	newer, older := filled(t, 2, 10), filled(t, 3, 10)
	db := openFile(t, newer)
	_, err := db.Apply(t.Context(), store.Stmt{SQL: `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)`})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, flag string }{{newer, filepath.Join(t.TempDir(), "new"), "--from"}, {older, newer, "--to"}} {
		before, err := os.ReadFile(filepath.Join(c.from, databaseFile))
		if err != nil {
			t.Fatal(err)
		}
		text, err := copyProgram(t, "copy", "--from", "sqlite:"+c.from, "--to", "sqlite:"+c.to).CombinedOutput()
		if err == nil || !strings.Contains(string(text), "dts: "+c.flag+": open database ") || !strings.Contains(string(text), "a newer dts wrote it") {
			t.Errorf("%v: %s", err, text)
		}
		if after, err := os.ReadFile(filepath.Join(c.from, databaseFile)); err != nil || !bytes.Equal(before, after) {
			t.Errorf("the source was changed; %v", err)
		}
	}
}
