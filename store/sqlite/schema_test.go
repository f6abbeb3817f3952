package sqlite

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"dts/migrations"
)

var update = flag.Bool("update", false, "write migrations/schema/schema.sql anew")

// TestSchema: what migrations.Schema makes is what the migrations make, to the letter, and they leave no rows behind.
func TestSchema(t *testing.T) {
	const path = "../../migrations/schema/schema.sql"
	migrated := openTest(t, testPath(t), Options{Migrations: migrations.FS})
	want := objects(t, migrated)
	if *update {
		text := "-- All that the migrations make, in one. Written by: go test ./store/sqlite -run TestSchema -update\n\n" +
			strings.Join(want, ";\n") + ";\n"
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Skip("wrote " + path + "; run it again without -update")
	}
	d := openTest(t, testPath(t), Options{Volatile: migrations.Schema()})
	if got := objects(t, d); !slices.Equal(got, want) {
		t.Errorf("%s is not what the migrations make; write it anew: go test ./store/sqlite -run TestSchema -update\nit makes:\n%s\nthey make:\n%s",
			path, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, line := range want {
		name, isTable := strings.CutPrefix(line, "CREATE TABLE ")
		if name, _, _ = strings.Cut(strings.Trim(name, `"`), " "); !isTable {
			continue
		}
		name = strings.Trim(name, `"`)
		if n := value[int](t, migrated, "SELECT count(*) FROM "+name); n > 0 {
			t.Errorf("the migrations leave %d rows in %s, which schema.sql does not have", n, name)
		}
	}
	if fileSize(d.path+".running") > 0 {
		t.Error("a volatile database notes that it runs")
	}
	if sync := value[int64](t, d, "PRAGMA auto_vacuum"); sync != 2 {
		t.Errorf("auto_vacuum = %d, want 2", sync)
	}
	var sync int64
	if err := d.w.ints("PRAGMA synchronous", &sync); err != nil || sync != 0 {
		t.Errorf("synchronous = %d %v, want 0", sync, err)
	}
}

// objects lists the tables and indexes of a database as SQL, in the order in which they were made.
func objects(t *testing.T, d *DB) []string {
	t.Helper()
	text := value[string](t, d, `SELECT group_concat(sql, char(0)) FROM
		(SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'goose_%' ORDER BY type = 'index', rowid)`)
	return strings.Split(text, "\x00")
}
