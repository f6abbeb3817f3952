package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"dts/migrations"
	"dts/store"
	"dts/store/rqlite"
	"dts/store/sqlite"
)

// place is a database that `dts copy` reads or writes: one of the two.
type place struct {
	dir    string // of SQLite: the data directory
	rqlite rqlite.Options
}

const placeForms = "sqlite:PATH, with a data directory or the dts.db in it, or rqlite:URL,URL…"

// parsePlace reads what a flag says. The certificates are for rqlite.
func parsePlace(flag, text string, certificates rqlite.Options) (place, error) {
	kind, rest, _ := strings.Cut(text, ":")
	switch {
	case text == "":
		return place{}, usagef("dts copy needs %s: %s", flag, placeForms)
	case kind == "rqlite" && rest != "":
		p := place{rqlite: certificates}
		p.rqlite.URLs = rqlite.SplitURLs(rest)
		if err := p.rqlite.Check(); err != nil {
			return p, usagef("%s: %s", flag, err)
		}
		return p, nil
	case kind != "sqlite" || rest == "":
		return place{}, usagef("%s: %q is no place; use %s", flag, clip(kind, 60), placeForms)
	}
	dir, err := filepath.Abs(rest)
	if err != nil {
		return place{}, fmt.Errorf("%s: %w", flag, err)
	}
	if info, err := os.Stat(dir); filepath.Base(dir) == databaseFile && (err != nil || !info.IsDir()) {
		dir = filepath.Dir(dir)
	}
	return place{dir: dir}, nil
}

// String is the place as people may see it, without passwords.
func (p place) String() string {
	if p.dir != "" {
		return "sqlite:" + p.dir
	}
	return "rqlite:" + strings.Join(p.rqlite.Addresses(), ",")
}

// same reports whether both are one database, as far as their names tell.
func (p place) same(o place) bool {
	if p.dir == "" {
		return slices.ContainsFunc(p.rqlite.Addresses(), func(a string) bool { return slices.Contains(o.rqlite.Addresses(), a) })
	}
	a, err := os.Stat(p.dir)
	b, otherErr := os.Stat(o.dir)
	return p.dir == o.dir || err == nil && otherErr == nil && os.SameFile(a, b)
}

// readable reports what keeps the place from being copied, as far as that can be known without a change to it.
func (p place) readable() error {
	if p.dir == "" {
		return nil
	}
	info, err := os.Stat(filepath.Join(p.dir, databaseFile))
	if err == nil && (!info.Mode().IsRegular() || info.Size() == 0) {
		err = fmt.Errorf("%s is no database", filepath.Join(p.dir, databaseFile))
	}
	if err != nil {
		return err
	}
	lock, err := sqlite.LockDir(p.dir)
	if errors.Is(err, sqlite.ErrLocked) {
		return fmt.Errorf("%w; stop the server first", err)
	}
	if err != nil {
		return err
	}
	return lock.Close()
}

// openPlace is a place that nobody else uses meanwhile.
type openPlace struct {
	store.Backend
	close func() error // may be called again
}

// copyWatched is how long servers on rqlite are watched that seem to run: more than twice as long as they take from
// one beat to the next.
const copyWatched = 12 * time.Second

// open opens the database with the newest schema. With force it does not look whether a server runs on rqlite.
func (p place) open(ctx context.Context, force bool, log *slog.Logger) (*openPlace, error) {
	if p.dir != "" {
		if err := os.MkdirAll(p.dir, 0o700); err != nil {
			return nil, fmt.Errorf("make the data directory: %w", err)
		}
		d, err := openData(ctx, p.dir, true, rqlite.Options{}, log)
		if err != nil {
			return nil, err
		}
		return &openPlace{d.db, sync.OnceValue(d.Close)}, nil
	}
	o := p.rqlite
	o.Migrations, o.Logger = migrations.FS, log
	db, err := rqlite.Open(ctx, o)
	if err != nil || force {
		return &openPlace{db, db.Close}, err
	}
	server, err := store.Live(ctx, db, copyWatched)
	if err == nil && server != "" {
		err = fmt.Errorf("the server %s runs on it; stop all of its servers first", server)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &openPlace{db, db.Close}, nil
}
