package main

import (
	"context"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"dts"
	"dts/migrations"
	"dts/store"
	"dts/store/sqlite"
)

const (
	fewBytes  = 1 << 30
	fewInodes = 1000
	muchLog   = 256 << 20 // the server begins its log anew at 16 MiB, and gives the file's space back from 64 MiB on
	quickFor  = 20 * time.Second
)

// checkDisk looks at the room on the disk of the data directory.
func (d *doctor) checkDisk() {
	var st unix.Statfs_t
	if err := unix.Statfs(d.dir, &st); err != nil {
		d.report.problem("disk", "see what is wrong with the disk", "statfs %s: %s", d.dir, err)
		return
	}
	d.room(int64(st.Bavail)*int64(st.Bsize), int64(st.Blocks)*int64(st.Bsize), int64(st.Ffree), int64(st.Files))
	if d.status != nil && sizeOf(d.dir, ballastFile) == 0 {
		d.report.warn("disk", "see that it does not fill again: keep less, or make more room", "the server has no reserve: the disk is full, or was. It takes one when %s are free", size(ballastFree))
	}
}

// room judges what is free of a disk, in bytes and in files.
func (d *doctor) room(free, total, inodes, allInodes int64) {
	const advice = "make room, keep less (dts retention set), or move the data directory to a larger disk"
	need := sizeOf(d.dir, databaseFile) + sizeOf(d.dir, databaseFile+"-wal")
	switch {
	case free < ballastFree:
		d.report.problem("disk", advice, "%s of %s are free: soon nothing can be written, and nothing starts", size(free), size(total))
	case free < fewBytes:
		d.report.warn("disk", advice, "%s of %s are free", size(free), size(total))
	case free < need:
		d.report.warn("disk", advice, "%s are free, and the database has %s: there is no room for a copy, which an upgrade or a backup to this disk makes", size(free), size(need))
	case allInodes > 0 && inodes < fewInodes:
		d.report.problem("disk", "delete files: something on this disk has made very many", "%d of %d inodes are free: soon no file can be made", inodes, allInodes)
	case allInodes > 0 && inodes < allInodes/100:
		d.report.warn("disk", "delete files: something on this disk has made very many", "%d of %d inodes are free", inodes, allInodes)
	default:
		d.report.ok("disk", "%s of %s are free", size(free), size(total))
	}
}

// checkDatabase looks for damage in the database of the data directory. Where no server answers it becomes the source of
// the tasks. The function it returns closes it.
func (d *doctor) checkDatabase(ctx context.Context) (closeFile func()) {
	r := d.report
	path := filepath.Join(d.dir, databaseFile)
	none := func() {}
	if exists(filepath.Join(d.dir, rqliteFile)) {
		return none // the tasks are elsewhere
	}
	if err := checkNotEmptied(path); err != nil {
		r.problem("database", "restore a backup: see docs/operations.md", "%s", err)
		return none
	}
	if !exists(path) {
		return none // there are no tasks yet
	}
	if unix.Access(path, unix.R_OK) != nil {
		const only = "only the server's user and root may read it"
		if d.status != nil { // as for a member of the group that shares the socket
			r.ok("database", "not looked at: %s", only)
		} else {
			r.problem("database", "run it as that user, or as root", "%s cannot be looked at: %s", path, only)
		}
		return none
	}
	if n := sizeOf(d.dir, databaseFile+"-wal"); n > muchLog {
		r.warn("database", "look for a backup or another reader of the file that does not end; a restart of the server gives the room back", "its write-ahead log has %s: something keeps the server from emptying it", size(n))
	}
	db, err := sqlite.OpenReadOnly(ctx, path, !d.held)
	if err != nil {
		d.unreadable(err)
		return none
	}
	if d.deep {
		d.app.notef("checking %s of database: this can take minutes", size(sizeOf(d.dir, databaseFile)))
	}
	limited, cancel := context.WithTimeout(ctx, quickFor)
	if d.deep {
		limited = ctx
	}
	began := time.Now()
	err = db.CheckFile(limited, d.deep)
	cancel()
	kind := "quick check"
	if d.deep {
		kind = "full check"
	}
	switch {
	case err == nil:
		r.ok("database", "no damage was found by a %s of %s, in %s", kind, size(sizeOf(d.dir, databaseFile)), span(time.Since(began).Round(time.Millisecond)))
	case sqlite.Damaged(err):
		r.problem("database", "stop the server, keep the files, and restore a backup: see docs/operations.md", "%s", oneLine(err.Error()))
		return func() { db.Close() }
	case ctx.Err() == nil && limited.Err() != nil:
		r.ok("database", "no damage was found in %s of a check of %s, which was not finished; dts doctor --deep reads all of it", span(quickFor), size(sizeOf(d.dir, databaseFile)))
	default:
		d.unreadable(err)
	}
	if d.status == nil {
		d.openTasks(ctx, db)
	}
	return func() { db.Close() }
}

// unreadable says why the database could not be looked at.
func (d *doctor) unreadable(err error) {
	advice := "see what is wrong with the file or its disk"
	if sqlite.Damaged(err) {
		advice = "restore a backup: see docs/operations.md"
	}
	d.report.problem("database", advice, "%s", oneLine(err.Error()))
}

// openTasks makes the database the source of the tasks, where it is of this version.
func (d *doctor) openTasks(ctx context.Context, db *sqlite.ReadOnly) {
	newest, err := migrations.Latest()
	var have int64
	if err == nil {
		have, err = db.SchemaVersion(ctx)
	}
	switch {
	case err != nil:
		d.unreadable(err)
	case have > newest:
		d.report.problem("version", "use the newer program, or restore a backup from before", "a newer dts wrote the database: its schema has version %d, and this program knows up to %d", have, newest)
	case have < newest:
		d.report.ok("version", "the schema has version %d; the next start of the server brings it to %d. Tasks are not looked at until then", have, newest)
	default:
		d.source = &fileSource{store.New(db, store.Options{}), d.app.now}
	}
}

// fileSource reads tasks from a database file.
type fileSource struct {
	st  *store.Store
	now func() time.Time
}

func (f *fileSource) RecurringTasks(ctx context.Context, q dts.RecurringFilter) (dts.Page[*dts.RecurringTask], error) {
	q.TenantID = dts.DefaultTenant
	return f.st.RecurringTasks(ctx, q)
}

func (f *fileSource) Tasks(ctx context.Context, q dts.TaskFilter) (dts.Page[*dts.Task], error) {
	q.TenantID = dts.DefaultTenant
	return f.st.Tasks(ctx, q)
}

func (f *fileSource) Queues(ctx context.Context) ([]*dts.Queue, error) {
	return f.st.QueuesNow(ctx, dts.DefaultTenant, f.now())
}

func (f *fileSource) Counts(ctx context.Context) (*dts.Counts, error) {
	c, err := f.st.Counts(ctx, dts.DefaultTenant)
	return &c, err
}
