// Package sqlite is store.Backend on a SQLite database file, through modernc.org/sqlite.
//
// It promises that a batch whose Apply returned nil is on disk (WAL, synchronous=FULL) and survives
// kill -9 and power loss; that a batch refused, or failed for want of room, left nothing behind; and
// that a commit which failed half way is resolved to one or the other whenever the database can
// still be read. It finds out at Open when the last stop was not clean, and checks the file then.
//
// One process owns a database: take LockDir on its directory first. DESIGN.md beside this file says
// why it is built as it is.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"

	"dts/store"
)

// Defaults of Options, and limits that are not options.
const (
	defaultCacheKiB       = 4 << 10
	defaultReaderCacheKiB = 1 << 10
	defaultReaders        = 4
	defaultCheckAtOpen    = 64 << 20

	maxCachedStmts = 512 // prepared statements kept for each connection
	readerIdle     = time.Minute
	busyTimeout    = 5 * time.Second
)

// minVersion is the oldest SQLite that may open a database: older ones have a bug that can corrupt
// it when the write-ahead log is reset (https://sqlite.org/wal.html#walresetbug).
var minVersion = [3]int{3, 51, 3}

// Options tune a DB. Only Migrations is required.
type Options struct {
	Migrations fs.FS        // goose SQL files at the root; they make at least the table applied_batch
	Logger     *slog.Logger // discards when nil

	// Page caches. The driver's allocator takes about twice as much, so they are small by default.
	CacheKiB       int // of the writer; 4 MiB when zero
	ReaderCacheKiB int // of each reader; 1 MiB when zero

	Readers int // connections for Query; 4 when zero

	// Volatile, if set, is SQL that makes the whole schema, for a new database that nobody needs after this process: it is
	// made by that in place of Migrations, nothing is synced, and how the process stops is not noted.
	Volatile string

	// CheckAtOpenBytes: a database and log up to this size are checked inside Open, larger ones in the
	// background, and only after an unclean stop. 64 MiB when zero.
	CheckAtOpenBytes int64

	// Failpoint, if set, is called with before-commit and after-commit around each COMMIT; a build for crash tests
	// ends the process there.
	Failpoint func(name string)

	// OnCorrupt is told once, on its own goroutine, that corruption was found after Open. Writes
	// are refused from then on. It must not call Close.
	OnCorrupt func(error)
}

// DB is an open database. It implements store.Backend.
type DB struct {
	path    string
	file    os.FileInfo // which file that was when it was opened
	o       Options
	log     *slog.Logger
	unclean bool

	mu     sync.Mutex // the writer: one batch, checkpoint reset or vacuum step at a time
	w      *writer    // nil after it was lost, until the next batch opens it again
	closed bool
	// shrunkAt is what commits was at the last Maintain.
	shrunkAt int64

	readers *readers
	ckpt    *checkpointer

	corrupt  atomic.Pointer[error] // set once: what a check or SQLite itself found
	damaged  chan struct{}         // closed after corrupt was set
	ctx      context.Context       // ends with Close: background work and checks
	cancel   context.CancelFunc
	work     sync.WaitGroup // everything that Close waits for
	closing  sync.Once
	closeErr error

	commits, failures, reopens atomic.Int64

	test hooks
}

var _ store.Backend = (*DB)(nil)

// hooks let this package's tests make things fail where a disk would.
type hooks struct {
	beforeCommit func() error // an error: COMMIT failed and took no effect
	afterCommit  func() error // an error: COMMIT took effect, but its caller saw a failure
	reopen       func() error // an error: the write connection cannot be opened
}

// Open opens the database at path, or creates it with mode 0600, and brings its schema up to date.
// The directory must exist. An existing database is first copied to <path>.before-v<N>, N being the
// first version that is new to it, and the copy is kept. A schema newer than o.Migrations is refused.
//
// From Open to a clean Close a file <path>.running exists. Where it is left over, the last stop was
// not clean. See Options.CheckAtOpenBytes for when the database is checked; a damaged one is refused, and
// neither it nor its log is changed.
func Open(ctx context.Context, path string, o Options) (_ *DB, err error) {
	setDefault(&o.CacheKiB, defaultCacheKiB)
	setDefault(&o.ReaderCacheKiB, defaultReaderCacheKiB)
	setDefault(&o.Readers, defaultReaders)
	if o.CheckAtOpenBytes <= 0 {
		o.CheckAtOpenBytes = defaultCheckAtOpen
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Failpoint == nil {
		o.Failpoint = func(string) {}
	}
	if o.Migrations == nil && o.Volatile == "" {
		return nil, errors.New("open database: no migrations given")
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	d := &DB{path: path, o: o, log: o.Logger, damaged: make(chan struct{})}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			err = fmt.Errorf("open database %s: %w", path, err)
		}
	}()

	if err := checkLog(path); err != nil {
		return nil, fmt.Errorf("%w; %s", err, adviceCorrupt(path))
	}
	if err := createFile(path); err != nil {
		return nil, err
	}
	if o.Volatile == "" {
		if d.unclean, err = markRunning(path); err != nil {
			return nil, err
		}
	}
	defer func() {
		// A start that fails changes nothing about how the last stop was.
		if err != nil {
			d.cancel()
			d.work.Wait()
			if !d.unclean && o.Volatile == "" {
				err = errors.Join(err, unmarkRunning(path))
			}
		}
	}()
	checkNow := d.size() <= o.CheckAtOpenBytes
	if fileSize(path) > 0 {
		if err := d.look(ctx, checkNow); err != nil {
			return nil, err
		}
	}
	if err := d.prepare(ctx); err != nil {
		if isCorrupt(err) {
			err = fmt.Errorf("%w: %w; %s", errDamaged, err, adviceCorrupt(path))
		}
		return nil, err
	}
	if d.w, err = openWriter(ctx, d.writerDSN()); err != nil {
		return nil, err
	}
	if d.file, err = os.Stat(path); err != nil {
		return nil, errors.Join(err, d.w.close())
	}
	if d.ckpt, err = openCheckpointer(ctx, d); err != nil {
		return nil, errors.Join(err, d.w.close())
	}
	if d.readers, err = openReaders(d.readerDSN(), o.Readers); err != nil {
		return nil, errors.Join(err, d.ckpt.close(), d.w.close())
	}
	d.work.Go(d.ckpt.run)
	if o.OnCorrupt != nil {
		d.work.Go(d.tellCorrupt)
	}
	if d.unclean && !checkNow {
		d.log.Warn("the last stop was not clean; checking the database in the background", "path", path, "bytes", d.size())
		d.work.Go(d.checkInBackground)
	}
	return d, nil
}

// look reads the database, all of it with check, and changes nothing. That takes a connection that cannot
// write: any other, when it is the last to close, moves the log into the database.
func (d *DB) look(ctx context.Context, check bool) error {
	db, err := openPool(dsnMode(d.path, "ro", busyTimeout), 1)
	if err != nil {
		return err
	}
	defer db.Close()
	if check {
		if d.unclean {
			d.log.Warn("the last stop was not clean; checking the database", "path", d.path, "bytes", d.size())
		}
		err = findDamage(ctx, db, fullCheck)
	} else {
		var version int64
		err = db.QueryRowContext(ctx, `PRAGMA schema_version`).Scan(&version)
	}
	switch {
	case errors.Is(err, errDamaged):
	case isCorrupt(err):
		err = fmt.Errorf("%w: %w", errDamaged, err)
	case err != nil:
		return fmt.Errorf("check the database: %w", err)
	default:
		return nil
	}
	if d.unclean {
		err = fmt.Errorf("the last stop was not clean and the check found: %w", err)
	}
	return fmt.Errorf("%w; %s", err, adviceCorrupt(d.path))
}

// prepare does what needs the database alone, on a connection of its own: the version of SQLite, migrations.
func (d *DB) prepare(ctx context.Context) error {
	pragmas := []string{"journal_mode(WAL)", d.synchronous()}
	if fileSize(d.path) == 0 {
		// It counts only before the first table and before WAL; on an existing file it writes.
		pragmas = append([]string{"auto_vacuum(INCREMENTAL)"}, pragmas...)
	}
	db, err := openPool(dsn(d.path, busyTimeout, pragmas...), 1)
	if err != nil {
		return err
	}
	defer db.Close()
	var version, mode string
	if err := db.QueryRowContext(ctx, `SELECT sqlite_version()`).Scan(&version); err != nil {
		return err
	}
	if err := checkVersion(version); err != nil {
		return err
	}
	if err := db.QueryRowContext(ctx, `PRAGMA journal_mode`).Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("journal mode is %q and cannot be made wal; is it on a network file system?", mode)
	}
	if d.o.Volatile != "" {
		// In one transaction, not one for each table.
		if _, err := db.ExecContext(ctx, "BEGIN;\n"+d.o.Volatile+"\nCOMMIT;"); err != nil {
			return fmt.Errorf("make the schema: %w", err)
		}
		return nil
	}
	return d.migrate(ctx, db)
}

// Path returns the absolute path of the database file.
func (d *DB) Path() string { return d.path }

// Unclean reports that the stop before this Open was not clean: a crash, a kill or a power loss.
func (d *DB) Unclean() bool { return d.unclean }

// Corrupt reports that damage was found since Open. Writes are refused from then on.
func (d *DB) Corrupt() bool { return d.corrupt.Load() != nil }

// Stats returns figures; it costs two calls of stat.
func (d *DB) Stats() store.BackendStats {
	s := store.BackendStats{
		DBBytes:  fileSize(d.path),
		WALBytes: fileSize(d.path + "-wal"),
		Commits:  d.commits.Load(),
		Failures: d.failures.Load(),
		Reopens:  d.reopens.Load(),
		Corrupt:  d.Corrupt(),
	}
	if us := d.ckpt.last.Load(); us != 0 {
		s.LastCheckpoint = time.UnixMicro(us).UTC()
	}
	return s
}

// Close waits for the running batch, ends background work, and closes every connection; the last
// moves the log into the database. Rows that are still open keep their connection until they are
// closed. A database found corrupt keeps its mark of an unclean stop, so that the next Open checks it.
func (d *DB) Close() error {
	d.closing.Do(func() {
		d.mu.Lock()
		d.closed = true
		d.mu.Unlock()
		d.cancel()
		d.work.Wait()
		err := errors.Join(d.readers.close(), d.ckpt.close())
		if d.w != nil {
			err = errors.Join(err, d.w.close())
			d.w = nil
		}
		if err == nil && d.corrupt.Load() == nil && d.o.Volatile == "" {
			err = unmarkRunning(d.path)
		}
		if err != nil {
			d.closeErr = fmt.Errorf("close database %s: %w", d.path, err)
		}
	})
	return d.closeErr
}

// begin registers a piece of work that Close cancels and waits for. The caller calls end.
func (d *DB) begin(ctx context.Context) (_ context.Context, end func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, nil, errClosed
	}
	d.work.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(d.ctx, cancel)
	return ctx, func() { stop(); cancel(); d.work.Done() }, nil
}

// size is that of the database and its log, in bytes.
func (d *DB) size() int64 { return fileSize(d.path) + fileSize(d.path+"-wal") }

// fileSize stats; it never opens, because closing the live file would drop SQLite's locks.
func fileSize(path string) int64 {
	fi, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return fi.Size()
}

// createFile makes an empty file with mode 0600, whatever the umask, where there is none. SQLite
// gives the log and the shared memory the same mode.
func createFile(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o600), f.Close())
}

// synchronous is the pragma that says whether a commit waits for the disk.
func (d *DB) synchronous() string {
	if d.o.Volatile != "" {
		return "synchronous(OFF)"
	}
	return "synchronous(FULL)"
}

func (d *DB) writerDSN() string {
	return dsn(d.path, busyTimeout,
		"journal_mode(WAL)",
		d.synchronous(),
		"wal_autocheckpoint(0)",
		"temp_store(MEMORY)", // no batch fails for want of a temporary directory
		"journal_size_limit("+strconv.Itoa(walKeep)+")",
		cacheSize(d.o.CacheKiB))
}

func (d *DB) readerDSN() string {
	// A large sort spills to a temporary file: memory must not depend on how much is stored.
	return dsn(d.path, busyTimeout, "query_only(1)", "temp_store(FILE)", cacheSize(d.o.ReaderCacheKiB))
}

func cacheSize(kib int) string { return "cache_size(-" + strconv.Itoa(kib) + ")" }

// dsn names the file as a URI, so that no character of the path is special, with pragmas for every
// connection; busy is how long it waits for a lock. mode=rw: only createFile creates.
func dsn(path string, busy time.Duration, pragmas ...string) string {
	return dsnMode(path, "rw", busy, pragmas...)
}

// dsnMode is dsn for the mode rw or ro.
func dsnMode(path, mode string, busy time.Duration, pragmas ...string) string {
	q := url.Values{}
	q.Set("mode", mode)
	q.Set("_txlock", "immediate")
	q.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", busy.Milliseconds()))
	q.Add("_pragma", "foreign_keys(0)")
	q.Add("_pragma", "mmap_size(0)")
	for _, p := range pragmas {
		q.Add("_pragma", p)
	}
	u := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: q.Encode()}
	return u.String()
}

// openPool is database/sql on dsn without the global registry of drivers.
func openPool(dsn string, conns int) (*sql.DB, error) {
	c, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

// checkVersion refuses a SQLite older than minVersion.
func checkVersion(v string) error {
	parts := strings.Split(v, ".")
	for i, want := range minVersion {
		got := 0
		if i < len(parts) {
			n, err := strconv.Atoi(parts[i])
			if err != nil {
				return fmt.Errorf("SQLite reports the version %q, which is not a version", v)
			}
			got = n
		}
		if got > want {
			return nil
		}
		if got < want {
			return fmt.Errorf("SQLite %s is linked in; %d.%d.%d or later is needed, because earlier ones can corrupt a write-ahead log",
				v, minVersion[0], minVersion[1], minVersion[2])
		}
	}
	return nil
}

func setDefault(n *int, v int) {
	if *n <= 0 {
		*n = v
	}
}
