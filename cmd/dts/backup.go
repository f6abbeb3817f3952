package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"dts/store"
	"dts/store/sqlite"
)

func (a *app) backupCommand() *cli.Command {
	return &cli.Command{
		Name: "backup", Usage: "copy the database to a file", ArgsUsage: "FILE", Category: "The server",
		Description: `Writes one consistent moment to FILE, a SQLite database with mode 0600: from the server while it runs, or,
where none runs, from the data directory. FILE gets its name only when all of it is on disk and was checked.
With - it goes to standard output, unchecked. dts restore makes a data directory of it.

To make one regularly, and remove old ones:
   dts add --cron "30 3 * * *" --backup /backup --keep 7`,
		Flags: withConnection(
			&cli.BoolFlag{Name: "force", Usage: "replace FILE if it is there"},
			jsonFlag(),
		),
		Action: a.backup,
	}
}

// backedUp is what `dts backup --json` prints.
type backedUp struct {
	File    string  `json:"file"`
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
	store.Held
}

func (a *app) backup(c *cli.Context) error {
	file, err := oneArg(c, "file to write to")
	if err != nil {
		return err
	}
	toOutput := file == "-"
	if toOutput {
		if out, ok := a.out.(*os.File); ok && term.IsTerminal(int(out.Fd())) {
			return usagef("a backup is no text for a terminal; give a file, or send it somewhere: dts backup - | …")
		}
		if c.Bool("json") || c.Bool("force") {
			return usagef("--json and --force are for a backup to a file; leave them out with -")
		}
	}
	l, err := a.connect(c)
	if err != nil {
		return err
	}
	defer l.Close()
	if !l.remote() {
		lowerPriority()
	}
	if toOutput {
		bar := &backupBar{app: a}
		defer bar.clear()
		return a.fetchBackup(c.Context, l, io.MultiWriter(a.out, bar), func(n, _ int64) error {
			bar.begin(n)
			return nil
		})
	}
	start := a.now()
	to, err := createBackup(file, c.Bool("force"))
	if err != nil {
		return err
	}
	result := backedUp{File: to.path}
	bar := &backupBar{app: a, quiet: c.Bool("json")}
	err = a.fetchBackup(c.Context, l, io.MultiWriter(to, bar), func(n, spooled int64) error {
		result.Bytes = n
		bar.begin(n)
		dir := filepath.Dir(to.path)
		if spooled > 0 && l.dataDir != "" && sameDisk(dir, l.dataDir) {
			if err := roomFor(dir, n+spooled+diskMargin); err != nil {
				return fmt.Errorf("%w: the database's size twice, since it is the server's disk too; another disk, or a task (dts add --backup DIR), needs it once", err)
			}
		}
		return roomFor(dir, n)
	})
	if err == nil {
		bar.checking()
		result.Held, err = to.finish(c.Context)
	}
	bar.clear()
	if err != nil {
		to.discard()
		return err
	}
	result.Seconds = a.now().Sub(start).Seconds()
	if c.Bool("json") {
		return a.printJSON(result)
	}
	a.printBackedUp(result)
	return nil
}

func (a *app) printBackedUp(r backedUp) {
	a.printf("Backed up %s and %s to %s: %s in %s, checked.\n", count(int(r.Tasks), "task"), count(int(r.Recurring), "recurring task"),
		r.File, size(r.Bytes), span(time.Duration(r.Seconds*float64(time.Second))))
}

// fetchBackup writes a backup to w: from the server, or from the data directory when no server runs on it. begun is told
// its size, and how much of the disk of the data directory the server takes for it meanwhile.
func (a *app) fetchBackup(ctx context.Context, l *link, w io.Writer, begun func(size, spooled int64) error) error {
	b, err := l.Backup(ctx)
	if noServer(err) && !l.remote() {
		return backUpOffline(ctx, l, w, func(n int64) error { return begun(n, 0) })
	}
	if err != nil {
		return err
	}
	defer b.Close()
	if err := begun(b.Size, b.Size); err != nil {
		return err
	}
	if _, err = io.CopyBuffer(onlyWriter{w}, b, make([]byte, 256<<10)); err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// onlyWriter hides what else a writer can do, so that the buffer is used.
type onlyWriter struct{ io.Writer }

// backUpOffline reads the database of a data directory that no server holds.
func backUpOffline(ctx context.Context, l *link, w io.Writer, begun func(size int64) error) error {
	path := filepath.Join(l.dataDir, databaseFile)
	if err := checkNotEmptied(path); err != nil {
		return err
	}
	if !exists(path) {
		if exists(filepath.Join(l.dataDir, rqliteFile)) {
			return errBackupRqlite
		}
		return &exitError{exitNoServer, fmt.Sprintf("no server answers on %s, and %s holds no database to back up", l.socket, l.dataDir)}
	}
	lock, err := sqlite.LockDir(l.dataDir)
	if errors.Is(err, sqlite.ErrLocked) {
		return &exitError{exitNoServer, fmt.Sprintf("a server holds %s and does not answer on %s yet, or any more; try again", l.dataDir, l.socket)}
	}
	if err != nil {
		return err
	}
	return errors.Join(sqlite.BackupFile(ctx, path, w, begun), lock.Close())
}

// backupBar shows how far a backup is, where someone looks.
type backupBar struct {
	app   *app
	quiet bool
	bar   *progressbar.ProgressBar
}

// backupBarFrom is from how many bytes on a backup is worth a bar.
const backupBarFrom = 16 << 20

// backupBarWidth is how many columns it needs with all of its figures.
const backupBarWidth = 50

func (b *backupBar) begin(size int64) {
	f, ok := b.app.err.(*os.File)
	if !ok || b.quiet || size < backupBarFrom {
		return
	}
	if width, _, err := term.GetSize(int(f.Fd())); err != nil || width > 0 && width < backupBarWidth {
		return // no terminal, or one on which it would wrap and leave its pieces behind
	}
	b.bar = progressbar.NewOptions64(size, progressbar.OptionSetWriter(f), progressbar.OptionSetDescription("backing up"),
		progressbar.OptionShowBytes(true), progressbar.OptionUseIECUnits(true), progressbar.OptionShowCount(), progressbar.OptionShowTotalBytes(true),
		progressbar.OptionSetElapsedTime(false), progressbar.OptionSetPredictTime(false), progressbar.OptionSetWidth(30),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSetRenderBlankState(true))
}

// Write implements io.Writer: the bar moves by as much.
func (b *backupBar) Write(p []byte) (int, error) {
	if b.bar != nil {
		_ = b.bar.Add(len(p)) // a bar that cannot be drawn is no reason to stop
	}
	return len(p), nil
}

// checking says that all of it is written, and now is read again.
func (b *backupBar) checking() {
	if b.bar != nil {
		_ = b.bar.Clear()
		fmt.Fprint(b.app.err, checkingText)
	}
}

const checkingText = "checking the backup …"

func (b *backupBar) clear() {
	if b.bar != nil {
		_ = b.bar.Clear()
		fmt.Fprint(b.app.err, "\r"+strings.Repeat(" ", len([]rune(checkingText)))+"\r")
		b.bar = nil
	}
}
