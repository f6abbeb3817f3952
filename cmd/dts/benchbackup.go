package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

// backupPause is the time between two backups.
const backupPause = time.Second

// benchBackupCommand is the process that the scenario mixed starts: a backup takes the time of a process of its
// own, not of the one that measures.
func (a *app) benchBackupCommand() *cli.Command {
	return &cli.Command{
		Name: "backup", Hidden: true, Usage: "copy a database again and again, until standard input ends",
		ArgsUsage: "DATABASE FILE",
		Action: func(c *cli.Context) error {
			if c.NArg() != 2 {
				return usagef("give the database and the file to copy it to")
			}
			ctx, stop := context.WithCancel(c.Context)
			defer stop()
			go func() { // ends with the process
				io.Copy(io.Discard, a.in)
				stop()
			}()
			err := a.backUpAgain(ctx, c.Args().Get(0), c.Args().Get(1))
			if ctx.Err() != nil {
				return nil // it was in the middle of one
			}
			return err
		},
	}
}

// backUpAgain copies the database and prints how many milliseconds that took, until ctx is done.
func (a *app) backUpAgain(ctx context.Context, database, file string) error {
	database, err := filepath.Abs(database)
	if err != nil {
		return err
	}
	source := url.URL{Scheme: "file", Path: database, RawQuery: "mode=ro&_pragma=busy_timeout(5000)"}
	db, err := sql.Open("sqlite", source.String())
	if err != nil {
		return err
	}
	defer db.Close()
	for {
		start := time.Now()
		if _, err := db.ExecContext(ctx, `VACUUM INTO ?`, file); err != nil {
			return fmt.Errorf("back up: %w", err)
		}
		a.printf("%v\n", milliseconds(time.Since(start)))
		if err := os.Remove(file); err != nil {
			return err
		}
		if err := sleepUntil(ctx, time.Now().Add(backupPause)); err != nil {
			return err
		}
	}
}

// benchBackups is the process that makes backups.
type benchBackups struct {
	cmd  *exec.Cmd
	in   io.Closer
	file string
	done chan struct{}
	took []float64 // milliseconds; to be read when done is closed
	bad  error
}

func startBackups(database, file string) (*benchBackups, error) {
	cmd, err := self("bench", "backup", database, file)
	if err != nil {
		return nil, err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the backups: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the backups: %w", err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the backups: %w", err)
	}
	b := &benchBackups{cmd: cmd, in: in, file: file, done: make(chan struct{})}
	go func() {
		defer close(b.done)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			ms, err := strconv.ParseFloat(strings.TrimSpace(lines.Text()), 64)
			if err != nil {
				b.bad = fmt.Errorf("the backups: %w", err)
				continue
			}
			b.took = append(b.took, ms)
		}
	}()
	return b, nil
}

// stop ends the process, also in the middle of a backup, and returns how many milliseconds each one took that
// was completed.
func (b *benchBackups) stop() ([]float64, error) {
	b.in.Close()
	<-b.done
	err := b.cmd.Wait()
	if err != nil {
		err = fmt.Errorf("the backups: %w", err)
	}
	for _, suffix := range []string{"", "-journal"} {
		if rerr := os.Remove(b.file + suffix); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	return b.took, errors.Join(err, b.bad)
}
