package dts_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// constantLists are exported variables that are lists for reading, which Go has no constants for.
var constantLists = map[string]bool{
	"dts.Statuses": true,
}

func TestPackageDocs(t *testing.T) {
	for _, p := range list(t, "linux", "./...") {
		if !p.own() {
			continue
		}
		begins := []string{"Package " + p.Name + " "}
		if p.Name == "main" {
			begins = []string{"Dts ", "Command dts ", "The dts command "}
		}
		if !slices.ContainsFunc(begins, func(b string) bool { return strings.HasPrefix(p.Doc, b) }) {
			t.Errorf("%s: the package comment begins %q; it should say what the package promises, and begin %q", p.ImportPath, p.Doc, begins[0])
		}
	}
}

// A package does nothing when it is imported and keeps no state of its own: what it needs is passed in.
func TestNoPackageState(t *testing.T) {
	seen := map[string]bool{}
	for _, goos := range []string{"linux", "darwin"} {
		for _, p := range list(t, goos, "./...") {
			if !p.own() {
				continue
			}
			for _, name := range p.GoFiles {
				file := filepath.Join(p.Dir, name)
				if seen[file] {
					continue
				}
				seen[file] = true
				checkFile(t, p.Name, file)
			}
		}
	}
}

func checkFile(t *testing.T, pkgName, file string) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.Name == "init" {
				t.Errorf("%s: init(): make a value and pass it in", fset.Position(d.Pos()))
			}
		case *ast.GenDecl:
			if d.Tok != token.VAR {
				continue
			}
			for _, s := range d.Specs {
				v := s.(*ast.ValueSpec)
				for i, name := range v.Names {
					if name.IsExported() && !fixed(v, i) && !constantLists[pkgName+"."+name.Name] {
						t.Errorf("%s: %s can be changed by every importer; use a constant, a function or an option", fset.Position(name.Pos()), name.Name)
					}
				}
			}
		}
	}
}

// fixed reports whether a variable is of a kind that is set once by custom: a sentinel error or embedded files.
func fixed(v *ast.ValueSpec, i int) bool {
	if sel, ok := v.Type.(*ast.SelectorExpr); ok {
		if x, ok := sel.X.(*ast.Ident); ok && x.Name == "embed" && sel.Sel.Name == "FS" {
			return true
		}
	}
	if !strings.HasPrefix(v.Names[i].Name, "Err") || i >= len(v.Values) {
		return false
	}
	_, call := v.Values[i].(*ast.CallExpr)
	return call
}
