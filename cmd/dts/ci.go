package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fatih/color"
	"github.com/urfave/cli/v2"

	"dts"
	"dts/cmd/dts/taskfile"
)

// exitCI is the exit code of `dts ci` where it cannot do its work: lower ones are numbers of failures.
const exitCI = 125

func (a *app) ciCommand() *cli.Command {
	return &cli.Command{
		Name: "ci", Usage: "run the tasks of a file, and exit with how many have failed", ArgsUsage: "FILE", Category: "Without a server",
		Description: `Runs every task of the file and every step of its workflows once, now, whatever their schedules say, each
after those that it depends on. With --for they fire by their schedules for so long, and those that have none run at
once. FILE is of the form that dts apply takes; - is standard input.

It needs no server and leaves nothing behind: the tasks are kept in a temporary directory, and processes that a
command leaves in the background are killed at the end. Commands have the environment and the directory of dts ci.

What they print comes with the name of the task before each line, on standard error with --json. Queues, retries,
timeouts and dependencies work as in a server.

Exits with the number of failures, at most 100. A task that is skipped because another has failed is none. 125: the file
or a flag is wrong, or it could not go on. After SIGINT or SIGTERM it stops everything, and exits with 130 or 143; a
second signal, a second later or more, ends it at once.`,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "only", Usage: "run the task or workflow `NAME`, or the step WORKFLOW/STEP, with all that it depends on; can be repeated"},
			&cli.StringFlag{Name: "for", Usage: "let schedules fire for a `DURATION`, or until none has an instant left"},
			&cli.StringFlag{Name: "drain", Usage: "with --for: how long what runs then may go on, a `DURATION`; default: 30s"},
			&cli.StringFlag{Name: "timeout", Usage: "stop what has not ended after a `DURATION`: it has failed; default: no limit"},
			&cli.IntFlag{Name: "jobs", Aliases: []string{"j"}, DefaultText: "as many as a server", Usage: "run `N` at once"},
			&cli.BoolFlag{Name: "fail-fast", Usage: "stop the others when one has failed"},
			&cli.StringFlag{Name: "junit", Usage: "write JUnit XML to `FILE`"},
			jsonFlag(),
		},
		OnUsageError: func(c *cli.Context, err error, sub bool) error { return ciError(a.usageError(c, err, sub)) },
		Action:       func(c *cli.Context) error { return ciError(a.ci(c)) },
	}
}

// ciError gives an error that has a text the exit code of `dts ci`.
func ciError(err error) error {
	if err == nil {
		return nil
	}
	text, _ := verdict(err)
	if text == "" { // the code says all
		return err
	}
	return &exitError{exitCI, text}
}

func (a *app) ci(c *cli.Context) (err error) {
	path, err := oneArg(c, "FILE")
	if err != nil {
		return err
	}
	o := ciOptions{jobs: c.Int("jobs"), failFast: c.Bool("fail-fast"), log: slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	if c.IsSet("jobs") && (o.jobs < 1 || o.jobs > maxCIJobs) {
		return usagef("--jobs: is %d; use 1 to %d", o.jobs, maxCIJobs)
	}
	var window time.Duration
	for _, x := range []struct {
		flag string
		to   *time.Duration
	}{{"for", &window}, {"drain", &o.drain}, {"timeout", &o.timeout}} {
		if !c.IsSet(x.flag) {
			continue
		}
		if *x.to, err = parseSpan("--"+x.flag, c.String(x.flag), time.Millisecond); err != nil {
			return err
		}
	}
	switch {
	case c.IsSet("drain") && window == 0:
		return usagef("--drain: is for --for; without it use --timeout")
	case !c.IsSet("drain"):
		o.drain = 30 * time.Second
	}
	switch name := c.String("junit"); {
	case name == "-":
		return usagef("--junit: standard output has what the tasks print; name a file")
	case name == "" && c.IsSet("junit"):
		return usagef("--junit: is empty; name a file")
	}
	began := a.now()
	f, src, problems, err := a.readTaskFile(path)
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		a.printProblems(src, problems)
		return exitOnly(exitCI)
	}
	p, err := planCI(f, c.StringSlice("only"), window, began)
	if err != nil {
		return err
	}
	var report io.Writer
	if name := c.String("junit"); name != "" { // before anything runs: not to find out afterwards
		file, createErr := os.Create(name)
		if createErr != nil {
			return failf("--junit: %s", createErr)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		report = file
	}
	out := a.out
	if c.Bool("json") {
		out = a.err
	}
	return a.runCI(c.Context, ciWork{plan: p, options: o, out: out, junit: report, json: c.Bool("json"), file: path, suite: suiteName(f), began: began})
}

// maxCIJobs is the most that --jobs takes.
const maxCIJobs = 1000

// ciWork is what one call of `dts ci` does.
type ciWork struct {
	plan    *ciPlan
	options ciOptions
	out     io.Writer // of what the tasks print
	junit   io.Writer // nil: none
	json    bool
	file    string
	suite   string
	began   time.Time
}

func (a *app) runCI(ctx context.Context, w ciWork) error {
	console := newConsole(w.out, a.colour)
	defer console.Close()
	stop := make(chan ciStop, 1)
	var mu sync.Mutex
	var server *ciServer // while there is one
	var leaving atomic.Bool
	abandoned := func() {
		if leaving.Load() {
			select {} // what was killed has ended; the process is about to exit, with the code of the second signal
		}
	}
	defer abandoned()
	defer onCISignals(stop, func() {
		leaving.Store(true)
		mu.Lock()
		defer mu.Unlock()
		if server != nil {
			server.abandon()
		}
	})()
	mu.Lock()
	s, err := newCI(w.options, console)
	server = s
	mu.Unlock()
	if err != nil {
		return err
	}
	defer s.close()
	ctx, s.giveUp = context.WithCancelCause(context.WithoutCancel(ctx)) // a signal stops it in good order
	defer s.giveUp(nil)
	if err := s.start(ctx, w.options); err != nil {
		return err
	}
	labels := a.ciLabels(w.plan)
	s.runner.label = func(t *dts.Task) label { return labels[keyOf(t, s.runOf(t))] }
	s.runner.say = func(l label, text string) {
		console.print([]byte(l.line+a.paint("dts: "+clean(text), color.FgRed)+"\n"), nil)
	}
	go func() {
		select {
		case <-console.failed:
			select {
			case stop <- ciStop{text: "the output could not be written"}:
			default:
			}
		case <-console.ended:
		}
	}()
	stopped, err := s.run(ctx, w.plan, w.options, stop)
	abandoned()
	switch cause := context.Cause(ctx); {
	case cause != nil:
		return failf("%s", cause)
	case err != nil:
		return err
	}
	if err := console.flush(); err != nil {
		return failf("write the output: %s", err)
	}
	r, err := s.report(ctx, w.plan, stopped)
	if err != nil {
		return err
	}
	r.File, r.Began, r.Seconds = w.file, w.began.UTC(), a.now().Sub(w.began).Seconds()
	var wrong error // that is said below the summary, which is not lost for it
	if w.junit != nil {
		if err := s.writeJUnit(ctx, w.junit, w.suite, r); err != nil {
			wrong = failf("--junit: %s", err)
		}
	}
	wrong = errors.Join(wrong, s.close())
	if w.json {
		err = a.printJSON(r)
	} else {
		r.print(a, console.used())
	}
	if err = errors.Join(wrong, err); err != nil {
		return err
	}
	if stopped != nil && stopped.signal != nil {
		return exitOnly(codeOf(stopped.signal))
	}
	if n := r.code(stopped); n > 0 {
		return exitOnly(n)
	}
	return nil
}

// onCISignals tells stop of the first signal, and at a later one, or when to stop takes too long, calls abandon and ends the
// process. The function that it returns ends that. A reader of the output that has gone is an error of the write, not the
// end of the process.
func onCISignals(stop chan<- ciStop, abandon func()) func() {
	signals, pipe := make(chan os.Signal, 4), make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as with nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	signal.Notify(pipe, syscall.SIGPIPE)
	done := make(chan struct{})
	go func() {
		var first time.Time
		var by os.Signal
		var late <-chan time.Time
		for {
			select {
			case <-done:
				return
			case <-late:
				abandon()
				os.Exit(codeOf(by))
			case s := <-signals:
				switch {
				case first.IsZero():
					first, by, late = time.Now(), s, time.After(ciSignalLimit)
				case time.Since(first) < sameSignal:
					continue
				default:
					abandon()
					os.Exit(codeOf(s))
				}
				select {
				case stop <- ciStop{text: "stopped by a signal, " + s.String(), signal: s}:
				default: // it stops already
				}
			}
		}
	}()
	return func() { signal.Stop(signals); signal.Stop(pipe); close(done) }
}

// ciSignalLimit is how long after the first signal the process ends in any case: whoever reads its output may have stopped
// to, and commands are killed after five seconds.
const ciSignalLimit = 20 * time.Second

// suiteName is what a file is called in a report.
func suiteName(f *taskfile.File) string {
	if f.Name == "" {
		return "dts"
	}
	return f.Name
}

// taskColours are those of the names of tasks, in turn.
var taskColours = [...]color.Attribute{color.FgCyan, color.FgMagenta, color.FgBlue, color.FgYellow, color.FgHiCyan, color.FgHiMagenta, color.FgHiBlue}

func (a *app) paintTask(text string, at int) string {
	return a.paint(text, taskColours[at%len(taskColours)])
}
