package main

import (
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"dts"
)

// reloader reads a server's settings again and changes what can be changed while it runs.
type reloader struct {
	read  func() (serverOptions, error)
	log   *slog.Logger
	level *slog.LevelVar

	mu    sync.Mutex // one at a time
	runs  serverOptions
	apply func(serverOptions) // nil before the server runs
	ready chan struct{}       // closed when it does
}

func newReloader(o serverOptions, read func() (serverOptions, error), level *slog.LevelVar) *reloader {
	return &reloader{read: read, log: o.Log, level: level, runs: o, ready: make(chan struct{})}
}

// begin tells that the server runs, and how its settings are changed. A nil reloader does nothing.
func (r *reloader) begin(apply func(serverOptions)) {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.apply = apply
	r.mu.Unlock()
	close(r.ready)
}

// asked is reload for the API; nil where there is none.
func (r *reloader) asked() func() ([]dts.SettingChange, error) {
	if r == nil {
		return nil
	}
	return r.reload
}

// reload reads the settings and applies what is new. Where they are wrong nothing changes. It says both in the log.
func (r *reloader) reload() ([]dts.SettingChange, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.apply == nil {
		return nil, dts.Errorf(dts.ErrUnavailable, "the server is still starting")
	}
	wanted, err := r.read()
	if err != nil {
		text, _ := verdict(err)
		r.log.Error("the settings were read again and are wrong: nothing was changed", "err", text)
		return nil, dts.Errorf(dts.ErrInvalid, "%s; nothing was changed", text)
	}
	runs, list := changeSettings(&r.runs, &wanted)
	r.runs = runs
	r.level.Set(runs.LogLevel)
	r.apply(runs)
	for _, c := range list {
		if c.Restart {
			r.log.Warn("a setting has changed that needs a restart", "setting", c.Setting, "runs_with", c.From, "file", c.To)
		} else {
			r.log.Info("a setting was changed", "setting", c.Setting, "from", c.From, "to", c.To)
		}
	}
	if len(list) == 0 {
		r.log.Info("the settings were read again: nothing has changed")
	}
	return list, nil
}

// onHangup reads the settings again at each SIGHUP, once the server runs. Where the signal says that the terminal is gone in
// which the server was started, it calls stop instead. The function it returns ends that.
func (r *reloader) onHangup(in io.Reader, stop func()) func() {
	terminal := func() bool {
		f, ok := in.(*os.File)
		return ok && term.IsTerminal(int(f.Fd()))
	}
	began := terminal()
	signals := make(chan os.Signal, 1) // several at once are one
	signal.Notify(signals, syscall.SIGHUP)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ready := r.ready
		var waiting bool
		for {
			select {
			case <-done:
				return
			case <-ready:
				ready = nil // it runs
				if waiting {
					_, _ = r.reload()
				}
			case <-signals:
				switch {
				case began && !terminal():
					r.log.Info("stopping: the terminal is gone")
					stop()
				case ready != nil:
					waiting = true
				default:
					_, _ = r.reload() // it logs what it did, and what was wrong
				}
			}
		}
	}()
	return func() { signal.Stop(signals); close(done); <-ended }
}

func (a *app) reloadCommand() *cli.Command {
	return &cli.Command{
		Name: "reload", Usage: "let the server read its settings again", Category: "The server",
		Description: `The server reads its configuration file again, as at a SIGHUP. The log level, the limits, retention, the allowed hosts
and the heartbeat change at once; it says what needs a restart. A file with a mistake changes nothing.`,
		Flags: withConnection(jsonFlag()),
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			return a.withServer(c, func(l *link) error {
				answer, err := l.Reload(c.Context)
				if err != nil {
					return err
				}
				if c.Bool("json") {
					return a.printJSON(answer)
				}
				a.printChanges(answer.Changes)
				return nil
			})
		},
	}
}

func (a *app) printChanges(list []dts.SettingChange) {
	if len(list) == 0 {
		a.printf("Nothing has changed.\n")
		return
	}
	rows := make([][]string, len(list))
	for i, c := range list {
		state := "changed"
		if c.Restart {
			state = "needs a restart"
		}
		rows[i] = []string{clean(c.Setting), state, orEmpty(c.From), orEmpty(c.To)}
	}
	a.table([]string{"SETTING", "", "FROM", "TO"}, rows, 3)
}

func orEmpty(s string) string {
	if s == "" {
		return "–"
	}
	return clean(s)
}
