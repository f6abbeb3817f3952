package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"dts/migrations"
	"dts/store"
	"dts/store/sqlite"
)

func (a *app) restoreCommand() *cli.Command {
	return &cli.Command{
		Name: "restore", Usage: "make a data directory of a backup", ArgsUsage: "FILE", Category: "The server",
		Description: `Checks FILE, a backup made by dts backup, and puts a copy of it into the data directory as its database. No
server may run on that directory.

The server that starts on it takes the time since the backup for an outage: what was due since then runs, or is
skipped, as each task says, and one-time tasks that have run since the backup run again. The admin token,
admin.token, is in no backup: the one in the directory stays, or the next start makes one.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "data", EnvVars: []string{"DTS_DATA"}, Usage: "the data directory `DIR`; it is made if it is not there. Default: /var/lib/dts for root, else ~/.local/share/dts"},
			&cli.StringFlag{Name: "config", EnvVars: []string{"DTS_CONFIG"}, Usage: "a TOML `FILE` with settings"},
			&cli.BoolFlag{Name: "force", Usage: "also where a database is; it is kept as dts.db.before-restore-TIME"},
			jsonFlag(),
		},
		Action: a.restore,
	}
}

// restored is what `dts restore --json` prints.
type restored struct {
	File  string `json:"file"`
	Data  string `json:"data"`
	Aside string `json:"aside,omitempty"` // where the database is now that was there
	Due   int64  `json:"due_one_time_tasks"`
	store.Held
}

func (a *app) restore(c *cli.Context) error {
	file, err := oneArg(c, "backup")
	if err != nil {
		return err
	}
	conf, err := loadConfig(c)
	if err != nil {
		return err
	}
	dir, err := conf.dataDir(c)
	if err != nil {
		return err
	}
	from, err := openBackup(file)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	lock, err := sqlite.LockDir(dir)
	if errors.Is(err, sqlite.ErrLocked) {
		return failf("%s; stop the server first", err)
	}
	if err != nil {
		return err
	}
	r := restored{File: from.Name(), Data: dir}
	err = errors.Join(a.restoreTo(c.Context, &r, from, c.Bool("force")), lock.Close())
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return a.printJSON(r)
	}
	a.printRestored(r)
	return nil
}

func (a *app) printRestored(r restored) {
	a.printf("Restored %s and %s to %s.\n", count(int(r.Tasks), "task"), count(int(r.Recurring), "recurring task"), r.Data)
	if !r.Until.IsZero() {
		a.printf("The backup is of %s. To the server that starts on it, all since then is an outage.\n", clock(r.Until, a.loc))
	}
	if r.Due > 0 {
		a.printf("One-time tasks that are due now run at its start, also where they have run since the backup: %d.\n", r.Due)
	}
	if r.Aside != "" {
		a.notef("the database that was there is %s now; remove it when you do not need it any more", r.Aside)
	}
}

// restoreTo does it, in a directory that is locked.
func (a *app) restoreTo(ctx context.Context, r *restored, from *os.File, force bool) error {
	path := filepath.Join(r.Data, databaseFile)
	info, err := os.Lstat(path)
	there := err == nil
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case there && !info.Mode().IsRegular():
		return failf("%s is there, and is no ordinary file", path)
	case there && !force:
		return failf("%s holds a database already; give --force to put it aside, or another directory with --data", r.Data)
	case exists(filepath.Join(r.Data, rqliteFile)):
		return failf("the tasks of %s are in an rqlite cluster: see docs/ha.md for how to restore that; to begin in this directory instead, remove %s", r.Data, filepath.Join(r.Data, rqliteFile))
	case !there && (exists(path+"-wal") || exists(path+"-shm")) && !force:
		return failf("%s holds the log of a database that is gone, %s-wal; give --force to put it aside", r.Data, path)
	}
	elsewhere := !exists(filepath.Join(r.Data, nodeIDFile))
	part := path + restoreSuffix
	if err := removeParts(part); err != nil { // of one that was killed: SQLite would apply its journal to this one
		return err
	}
	defer removeParts(part)
	if err := copyBackup(ctx, from, part); err != nil {
		return err
	}
	if r.Held, err = checkBackup(ctx, part); err != nil {
		return fmt.Errorf("%s: %w", r.File, err)
	}
	if r.Due, err = revive(ctx, part, elsewhere, a.now()); err != nil {
		return err
	}
	if r.Aside, err = putAside(path, a.now()); err != nil {
		return err
	}
	if err := os.Remove(path + ".running"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(part, path); err != nil {
		return err
	}
	return syncDir(r.Data)
}

// openBackup opens a file that may be a backup, and refuses what cannot be one.
func openBackup(file string) (*os.File, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, usagef("there is no file %s", path)
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, usagef("%s is no ordinary file; give a backup made by dts backup", path)
	}
	for _, suffix := range []string{"-wal", "-journal"} {
		if log, err := os.Stat(path + suffix); err == nil && log.Size() > 0 {
			return nil, failf("%s has a log beside it, %[1]s%s: it is no backup but a database in use, or a copy of its files. Back up its data directory first: dts backup", path, suffix)
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	head := make([]byte, 16)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, errors.Join(err, f.Close())
	}
	if kind := notDatabase(head[:n]); kind != "" {
		return nil, errors.Join(failf("%s is %s; give a backup made by dts backup", path, kind), f.Close())
	}
	_, err = f.Seek(0, io.SeekStart)
	return f, err
}

// notDatabase says what a file is that does not begin as a SQLite database does; "": it does.
func notDatabase(head []byte) string {
	if len(head) == 0 {
		return "empty"
	}
	for _, k := range []struct{ magic, kind string }{
		{"SQLite format 3\x00", ""}, {"PK\x03\x04", "a zip archive: unpack it first"}, {"\x1f\x8b", "compressed by gzip: unpack it first"},
		{"\x28\xb5\x2f\xfd", "compressed by zstd: unpack it first"}, {"\xfd7zXZ\x00", "compressed by xz: unpack it first"},
	} {
		if bytes.HasPrefix(head, []byte(k.magic)) {
			return k.kind
		}
	}
	return "no database"
}

// copyBackup copies the file into the data directory, durably, so that what is checked is what is used.
func copyBackup(ctx context.Context, from *os.File, to string) error {
	info, err := from.Stat()
	if err != nil {
		return err
	}
	if err := roomFor(filepath.Dir(to), info.Size()); err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, readerOf(ctx, from))
	return errors.Join(err, ownedAs(f, filepath.Dir(to)), f.Sync(), f.Close())
}

// restoreSuffix is what the name of a database ends with until it is in place.
const restoreSuffix = ".restore"

// removeParts removes a database that is not in place yet, and its journal.
func removeParts(part string) error {
	for _, path := range []string{part, part + "-journal"} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// ownedAs gives a file that root makes to the owner of the data directory, whom the server may run as.
func ownedAs(f *os.File, dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		return f.Chown(int(st.Uid), int(st.Gid))
	}
	return nil
}

// readerOf ends with ctx.
func readerOf(ctx context.Context, r io.Reader) io.Reader {
	return readFunc(func(p []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return r.Read(p)
	})
}

type readFunc func(p []byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// checkBackup looks for damage in a backup, and whether this program can use it.
func checkBackup(ctx context.Context, path string) (store.Held, error) {
	held, err := inspect(ctx, path, true)
	switch {
	case errors.Is(err, store.ErrForeign):
		return held, fmt.Errorf("%w; give a backup made by dts backup", err)
	case errors.Is(err, store.ErrOfCluster):
		return held, fmt.Errorf("%w: load it into rqlite, as docs/ha.md says; from there dts copy carries it to a data directory", err)
	case err != nil:
		return held, fmt.Errorf("this backup cannot be used: %w", err)
	}
	latest, err := migrations.Latest()
	if err != nil {
		return held, err
	}
	if held.Schema > latest {
		return held, fmt.Errorf("the backup's schema has version %d, and this program knows up to %d: a newer dts made it; use that one", held.Schema, latest)
	}
	return held, nil
}

// revive prepares it for the server that will run on it, and counts the one-time tasks that are due.
func revive(ctx context.Context, path string, elsewhere bool, now time.Time) (due int64, err error) {
	db, err := sqlite.OpenAlone(path, true)
	if err != nil {
		return 0, err
	}
	if err = store.Revive(ctx, db, elsewhere); err == nil {
		due, err = store.DueOnce(ctx, db, now)
	}
	return due, errors.Join(err, db.Close())
}

// putAside renames the database that is there, its log and its shared memory, and returns its new name, "" where there
// was none. The database goes first: a log that is left alone is refused at the next start, a database without its log
// could not be told from a whole one.
func putAside(path string, now time.Time) (string, error) {
	aside := path + ".before-restore-" + now.UTC().Format(backupTime)
	for n := 2; exists(aside) || exists(aside+"-wal"); n++ {
		aside = fmt.Sprintf("%s.before-restore-%s-%d", path, now.UTC().Format(backupTime), n)
	}
	moved := ""
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		err := os.Rename(path+suffix, aside+suffix)
		switch {
		case err == nil:
			moved = aside
		case !errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("put %s aside: %w", path+suffix, err)
		}
	}
	return moved, syncDir(filepath.Dir(path))
}
