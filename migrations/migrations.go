// Package migrations holds the database schema as goose SQL files. A file that was released is never
// changed: a change is a new file.
package migrations

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// FS holds the files at its root, named NNNNN_what_it_does.sql.
//
//go:embed *.sql
var FS embed.FS

//go:embed schema/schema.sql
var schema string

// Schema returns SQL that makes the schema which the files of FS lead to, where there is nothing yet. It takes a fifth of their
// time. A test holds that it is the same; it also writes it anew:
//
//	go test ./store/sqlite -run TestSchema -update
func Schema() string { return schema }

// Latest returns the newest schema version in FS.
func Latest() (int64, error) {
	names, err := fs.Glob(FS, "*.sql")
	if err != nil {
		return 0, fmt.Errorf("read migrations: %w", err)
	}
	var latest int64
	for _, name := range names {
		number, _, _ := strings.Cut(name, "_")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n < 1 {
			return 0, fmt.Errorf("migration %s: its name must begin with a number from 1 and an underscore", name)
		}
		latest = max(latest, n)
	}
	if latest == 0 {
		return 0, errors.New("read migrations: there are none")
	}
	return latest, nil
}
