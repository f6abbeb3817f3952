package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/fatih/color"
	"github.com/urfave/cli/v2"
	"golang.org/x/term"
)

// app is one run of the command line: its streams, its clock, and what it found out about the terminal.
type app struct {
	in       io.Reader
	out, err io.Writer
	now      func() time.Time
	loc      *time.Location // in which times are shown to people
	zone     string         // IANA name of the machine's zone; "" when it is not known
	terminal bool           // out is a terminal
	asks     bool           // in and out are terminals, so a question can be answered
	colour   bool
	width    int // columns of the terminal; 0: no limit

	given map[string]bool // flags on the command line, without those from the environment
	loose []string        // arguments before `--`
	began bool            // a command's own code runs: an error from before is bad usage
}

// run runs one command line and returns the exit code.
func run(args []string, in io.Reader, out, errOut io.Writer) int {
	a := &app{in: in, out: out, err: errOut, now: time.Now, loc: time.Local, zone: machineZone(os.Getenv, "/etc")}
	if loc, err := time.LoadLocation(a.zone); err == nil && a.zone != "" {
		a.loc = loc
	}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		a.terminal = true
		a.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		a.width, _, _ = term.GetSize(int(f.Fd()))
	}
	if f, ok := in.(*os.File); ok && a.terminal {
		a.asks = term.IsTerminal(int(f.Fd()))
	}
	return a.run(args)
}

func (a *app) run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c := a.commands()
	args, err := a.arrange(c.Commands, args)
	if err == nil {
		err = c.RunContext(ctx, args)
	}
	if err == nil {
		return exitOK
	}
	text, code := verdict(err)
	if !a.began && code == exitFailed {
		code = exitUsage // the flags could not be read
	}
	if text != "" {
		fmt.Fprintln(a.err, "dts: "+oneLine(text))
	}
	return code
}

// commands is the table of all commands.
func (a *app) commands() *cli.App {
	c := &cli.App{
		Name: "dts", Usage: "runs commands and HTTP calls on time, and shows that it did",
		Version:                   strings.TrimPrefix(thisBuild().String(), "dts "),
		Reader:                    a.in,
		Writer:                    a.out,
		ErrWriter:                 a.err,
		HideHelpCommand:           true,
		DisableSliceFlagSeparator: true,
		ExitErrHandler:            func(*cli.Context, error) {}, // run prints and exits
		OnUsageError:              a.usageError,
		Action: func(c *cli.Context) error {
			switch name := c.Args().First(); name {
			case "":
			case "help": // of a command, as other programs have it
				return c.App.RunContext(c.Context, append(append([]string{c.App.Name}, c.Args().Tail()...), "--help"))
			default:
				text := fmt.Sprintf("there is no command %q", name)
				if near := cli.SuggestCommand(c.App.Commands, name); near != "" {
					text += "; " + strings.ToLower(near[:1]) + near[1:]
				}
				return usagef("%s; dts --help lists them all", text)
			}
			return cli.ShowAppHelp(c)
		},
		Commands: []*cli.Command{
			a.serveCommand(), a.reloadCommand(), a.statusCommand(), a.doctorCommand(), a.uiCommand(), a.retentionCommand(), a.backupCommand(), a.restoreCommand(),
			a.addCommand(), a.applyCommand(), a.exportCommand(), a.importCommand(),
			a.lsCommand(), a.deadCommand(), a.batchCommand(), a.showCommand(), a.depsCommand(), a.logsCommand(),
			a.runCommand(), a.pauseCommand(), a.resumeCommand(), a.cancelCommand(), a.retryCommand(), a.rmCommand(), a.queueCommand(),
			a.previewCommand(), a.whyCommand(), a.conflictsCommand(), a.backfillCommand(), a.calendarCommand(), a.blackoutCommand(),
			a.ciCommand(), a.nextCommand(), a.checkCommand(), a.copyCommand(),
			a.benchCommand(),
			a.versionCommand(), a.completionCommand(), a.manCommand(),
		},
	}
	for _, cmd := range c.Commands {
		a.prepare(cmd, c.Name)
	}
	c.CustomAppHelpTemplate = literal(appHelp(c))
	return c
}

// prepare gives a command and those below it what all of them have.
func (a *app) prepare(cmd *cli.Command, parent string) {
	if cmd.OnUsageError == nil {
		cmd.OnUsageError = a.usageError
	}
	cmd.HideHelpCommand = true
	for _, sub := range cmd.Subcommands {
		a.prepare(sub, parent+" "+cmd.Name)
	}
	for _, f := range cmd.Flags {
		switch f := f.(type) {
		case *cli.BoolFlag:
			f.DisableDefaultText = true // all are off
		case *cli.StringFlag:
			f.Usage, f.DefaultText, _ = strings.Cut(f.Usage, "; default: ")
		}
	}
	cmd.CustomHelpTemplate = literal(commandHelp(cmd, parent+" "+cmd.Name))
	if action := cmd.Action; action != nil {
		cmd.Action = func(c *cli.Context) error {
			a.began = true
			return action(c)
		}
	}
}

// usageError turns the flag package's words into one line of ours.
func (a *app) usageError(c *cli.Context, err error, _ bool) error {
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !unknown {
		return usagef("%s; see %s --help", strings.TrimSuffix(err.Error(), "\n"), c.Command.HelpName)
	}
	name = strings.TrimPrefix(name, "-")
	text := "there is no flag " + dashes(name)
	if near := strings.TrimLeft(cli.SuggestFlag(c.Command.Flags, name, false), "-"); near != "" && len(near) > 1 {
		text += "; did you mean --" + near + "?"
	}
	return usagef("%s; see %s --help", text, c.Command.HelpName)
}

func dashes(flag string) string {
	if len(flag) == 1 {
		return "-" + flag
	}
	return "--" + flag
}

func (a *app) printf(format string, args ...any) { fmt.Fprintf(a.out, format, args...) }

// notef tells something beside the result.
func (a *app) notef(format string, args ...any) {
	fmt.Fprintln(a.err, "dts: "+oneLine(fmt.Sprintf(format, args...)))
}

// printJSON prints one value, indented for those who look at it.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// paint colours a text on a terminal.
func (a *app) paint(s string, attributes ...color.Attribute) string {
	if !a.colour {
		return s
	}
	c := color.New(attributes...)
	c.EnableColor()
	return c.Sprint(s)
}

func (a *app) bold(s string) string { return a.paint(s, color.Bold) }
func (a *app) dim(s string) string  { return a.paint(s, color.Faint) }

// jsonFlag is on every command that has something to say to scripts.
func jsonFlag() cli.Flag { return &cli.BoolFlag{Name: "json", Usage: "print JSON"} }

func noArgs(c *cli.Context) error {
	if c.Args().Present() {
		return usagef("%s takes no arguments, and there is %q", c.Command.HelpName, c.Args().First())
	}
	return nil
}

// oneArg returns the only argument; what says what it should be.
func oneArg(c *cli.Context, what string) (string, error) {
	switch c.Args().Len() {
	case 1:
		return c.Args().First(), nil
	case 0:
		return "", usagef("%s needs a %s", c.Command.HelpName, what)
	default:
		return "", usagef("%s takes one %s, and there are %d arguments", c.Command.HelpName, what, c.Args().Len())
	}
}

// confirm asks on a terminal; elsewhere the answer is yes, because whoever wrote a script meant it. A signal ends the wait for an
// answer: reading goes on until the program has ended.
func (a *app) confirm(ctx context.Context, question string) (bool, error) {
	if !a.asks {
		return true, nil
	}
	a.printf("%s [y/N] ", question)
	type line struct {
		text string
		err  error
	}
	read := make(chan line, 1)
	go func() {
		text, err := bufio.NewReader(a.in).ReadString('\n')
		read <- line{text, err}
	}()
	select {
	case <-ctx.Done():
		a.printf("\n")
		return false, ctx.Err()
	case l := <-read:
		switch {
		case errors.Is(l.err, io.EOF):
			a.printf("\n")
		case l.err != nil:
			return false, fmt.Errorf("read the answer: %w", l.err)
		}
		answer := strings.ToLower(strings.TrimSpace(l.text))
		return answer == "y" || answer == "yes", nil
	}
}
