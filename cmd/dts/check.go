package main

import (
	"bytes"
	"fmt"

	"github.com/urfave/cli/v2"

	"dts/cmd/dts/taskfile"
	"dts/sched/cron/crontab"
)

func (a *app) checkCommand() *cli.Command {
	return &cli.Command{
		Name: "check", Usage: "check crontabs, and files that declare tasks", ArgsUsage: "FILE…", Category: "Without a server",
		Description: `Says what is wrong with which line; - is standard input. A FILE.yaml, .yml or .json, and what begins like one, declares
tasks, as for dts apply and dts ci; another one is a crontab, unless --tasks is given. Whether a crontab has a user field, as /etc/crontab and the
files in /etc/cron.d do, is found out unless it is said. Exits with 2 when something is wrong.

--schema prints a JSON Schema of the files that declare tasks, for editors:
   dts check --schema > dts.schema.json
and in the file: # yaml-language-server: $schema=dts.schema.json`,
		Flags: append(formFlags(),
			&cli.BoolFlag{Name: "tasks", Usage: "the files declare tasks, whatever they are called"},
			&cli.BoolFlag{Name: "schema", Usage: "print the JSON Schema of files that declare tasks"},
			jsonFlag()),
		Action: a.check,
	}
}

// formFlags say which form a crontab has.
func formFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "system", Usage: "the lines have a user field"},
		&cli.BoolFlag{Name: "user-form", Usage: "the lines have no user field"},
	}
}

// crontabFile is a crontab that was read.
type crontabFile struct {
	path    string
	kind    crontab.Kind
	entries []crontab.Entry
	bad     []*crontab.LineError
}

// readCrontab reads and parses a crontab, or standard input for "-".
func (a *app) readCrontab(c *cli.Context, path string) (*crontabFile, error) {
	content, err := a.read(path, crontab.MaxFile)
	if err != nil {
		return nil, err
	}
	return parseCrontab(c, path, content)
}

func parseCrontab(c *cli.Context, path string, content []byte) (f *crontabFile, err error) {
	if c.Bool("system") && c.Bool("user-form") {
		return nil, usagef("--system and --user-form are both given; keep one")
	}
	f = &crontabFile{path: path, kind: crontab.DetectKind(content, path)}
	switch {
	case c.Bool("system"):
		f.kind = crontab.System
	case c.Bool("user-form"):
		f.kind = crontab.User
	}
	f.entries, f.bad, err = crontab.Parse(bytes.NewReader(content), path, f.kind)
	if err != nil {
		return nil, usagef("%s", err)
	}
	return f, nil
}

// checked is the JSON of one file.
type checked struct {
	File     string    `json:"file"`
	Form     string    `json:"form"` // user or system
	Jobs     int       `json:"jobs"`
	Problems []problem `json:"problems"`
}

type problem struct {
	Line    int    `json:"line"`
	Text    string `json:"text"`
	Message string `json:"message"`
}

func (a *app) check(c *cli.Context) error {
	if c.Bool("schema") {
		return a.printSchema(c)
	}
	if !c.Args().Present() {
		return usagef("dts check needs a FILE; - is standard input")
	}
	if c.Bool("tasks") && (c.Bool("system") || c.Bool("user-form")) {
		return usagef("--tasks is given, and --system and --user-form are for crontabs; keep one")
	}
	wrong := false
	for _, path := range c.Args().Slice() {
		src, err := a.read(path, max(taskfile.MaxBytes, crontab.MaxFile))
		if err != nil {
			return err
		}
		if c.Bool("tasks") || !c.Bool("system") && !c.Bool("user-form") && isTaskFile(path, src) {
			bad, err := a.checkTaskFile(path, src, c.Bool("json"))
			if err != nil {
				return err
			}
			wrong = wrong || bad
			continue
		}
		f, err := parseCrontab(c, path, src)
		if err != nil {
			return err
		}
		wrong = wrong || len(f.bad) > 0
		if c.Bool("json") {
			w := checked{File: path, Form: f.kind.String(), Jobs: len(f.entries), Problems: []problem{}}
			for _, e := range f.bad {
				w.Problems = append(w.Problems, problem{e.Line, e.Text, e.Msg})
			}
			if err := a.printLine(w); err != nil {
				return err
			}
			continue
		}
		a.printBad(f)
		verdict := "no problem"
		if len(f.bad) > 0 {
			verdict = count(len(f.bad), "problem")
		}
		a.printf("%s: %s, %s (%s form)\n", clean(path), count(len(f.entries), "job"), verdict, f.kind)
	}
	if wrong {
		return exitOnly(exitUsage)
	}
	return nil
}

// printBad prints the refused lines, as compilers do.
func (a *app) printBad(f *crontabFile) {
	for _, e := range f.bad {
		fmt.Fprintln(a.err, clean(e.Error()))
		fmt.Fprintln(a.err, "    "+clean(e.Text))
	}
}
