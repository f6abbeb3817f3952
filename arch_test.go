package dts_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// mayImport says which packages of this module a package may import, apart from tests. Names are relative to
// the module; "x/..." is x and everything below it, and the most specific line counts.
//
// Arrows point down only. sched, exec, store and web do not know each other: each declares the small interface
// that it needs, and cmd/dts passes the values in.
var mayImport = map[string][]string{
	".":                       {},
	"migrations":              {},
	"sched/cron/...":          {"sched/cron"},
	"sched/calendar":          {".", "sched/cron"},
	"sched/timetable":         {".", "sched/cron", "sched/calendar"},
	"sched/...":               {".", "sched/..."},
	"exec/...":                {"."},
	"store":                   {".", "migrations"},
	"store/sqlite":            {".", "store", "migrations"},
	"store/rqlite":            {".", "store", "migrations"},
	"store/rqlite/rqlitetest": {},
	"store/sqlite/sqlitetest": {"store/sqlite", "migrations"},
	"store/storetest":         {".", "store", "migrations"},
	"web/...":                 {".", "web/...", "sched/cron/...", "sched/calendar", "sched/timetable"},
	"cmd/dts/...":             {"./..."},
}

// pkg is what the tests here read of `go list -json`.
type pkg struct {
	ImportPath string
	Dir        string
	Name       string
	Doc        string
	GoFiles    []string
	Imports    []string
	Standard   bool
	Module     *struct{ Path string }
}

// own reports whether the package belongs to this module.
func (p pkg) own() bool { return p.Module != nil && p.Module.Path == "dts" }

func TestImports(t *testing.T) {
	for _, goos := range []string{"linux", "darwin"} {
		for _, p := range list(t, goos, "./...") {
			if !p.own() {
				continue
			}
			from := relative(p.ImportPath)
			rule, ok := ruleFor(from)
			if !ok {
				t.Errorf("%s has no line in mayImport: decide what it may import and add one", p.ImportPath)
				continue
			}
			for _, imported := range p.Imports {
				if imported != "dts" && !strings.HasPrefix(imported, "dts/") {
					continue
				}
				to := relative(imported)
				if !slices.ContainsFunc(mayImport[rule], func(pattern string) bool { return matches(pattern, to) }) {
					t.Errorf("%s: %s imports %s; it may import %v. Declare the interface that it needs and let cmd/dts pass the value in",
						goos, p.ImportPath, imported, mayImport[rule])
				}
			}
		}
	}
}

// The nouns and rules stand on the standard library alone, and neither they nor what reads schedules does any
// network I/O.
func TestStandardLibraryOnly(t *testing.T) {
	for _, of := range []string{".", "./migrations", "./sched/cron/..."} {
		for _, p := range list(t, "linux", of) {
			if !p.Standard && !p.own() {
				t.Errorf("%s depends on %s", of, p.ImportPath)
			}
			if p.ImportPath == "net" || p.ImportPath == "database/sql" {
				t.Errorf("%s depends on %s: it does no I/O", of, p.ImportPath)
			}
		}
	}
}

// What only tests need stays out of the binary.
func TestBinaryHasNoTestCode(t *testing.T) {
	for _, p := range list(t, "linux", "./cmd/dts") {
		if p.ImportPath == "testing" || strings.HasPrefix(p.ImportPath, "dts/") && strings.HasSuffix(p.ImportPath, "test") {
			t.Errorf("cmd/dts depends on %s", p.ImportPath)
		}
	}
}

// list returns the packages and everything that they depend on, tests left out.
func list(t *testing.T, goos, pattern string) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-pgo=off", "-deps", "-json=ImportPath,Dir,Name,Doc,GoFiles,Imports,Standard,Module", pattern)
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, &stderr)
	}
	var all []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(fmt.Errorf("read go list: %w", err))
		}
		all = append(all, p)
	}
}

func relative(importPath string) string {
	if importPath == "dts" {
		return "."
	}
	return strings.TrimPrefix(importPath, "dts/")
}

// ruleFor returns the longest pattern of mayImport that matches the package.
func ruleFor(name string) (pattern string, ok bool) {
	for p := range mayImport {
		if matches(p, name) && (!ok || len(p) > len(pattern)) {
			pattern, ok = p, true
		}
	}
	return pattern, ok
}

// matches reports whether a package is meant by a pattern, as the go command reads patterns.
func matches(pattern, name string) bool {
	if pattern == "./..." {
		return true
	}
	prefix, tree := strings.CutSuffix(pattern, "/...")
	return name == prefix || tree && strings.HasPrefix(name, prefix+"/")
}
