package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"dts/cmd/dts/taskfile"
)

// isTaskFile reports whether a file declares tasks: by its name, and where that does not say it, by how it begins. Other files are
// crontabs, in which no line can begin so.
func isTaskFile(path string, src []byte) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	for line := range strings.Lines(strings.TrimPrefix(string(src), "\ufeff")) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			key, _, found := strings.Cut(line, ":")
			return line[0] == '{' || line == "---" || strings.HasPrefix(line, "- ") || found && !strings.ContainsAny(key, " \t=")
		}
	}
	return false
}

// read reads a file, or standard input for "-", of at most limit bytes and one more.
func (a *app) read(path string, limit int64) ([]byte, error) {
	in := a.in
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, usagef("%s", err)
		}
		defer file.Close()
		in = file
	}
	b, err := io.ReadAll(io.LimitReader(in, limit+1))
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err // the path is said once
	}
	if err != nil {
		return nil, usagef("read %s: %s", path, err)
	}
	return b, nil
}

// readTaskFile reads and checks a file that declares tasks, or standard input for "-".
func (a *app) readTaskFile(path string) (*taskfile.File, []byte, []taskfile.Problem, error) {
	src, err := a.read(path, taskfile.MaxBytes)
	if err != nil {
		return nil, nil, nil, err
	}
	f, problems := taskfile.Parse(path, src, a.now())
	return f, src, problems, nil
}

// printProblems prints what is wrong with a file as compilers do, each with its line.
func (a *app) printProblems(src []byte, problems []taskfile.Problem) {
	lines := strings.Split(string(src), "\n")
	for _, p := range problems {
		fmt.Fprintln(a.err, clean(p.String()))
		if p.Line < 1 || p.Line > len(lines) {
			continue
		}
		line := clean(strings.TrimRight(lines[p.Line-1], "\r"))
		if indent := len(line) - len(strings.TrimLeft(line, " ")); line != "" && len(line) <= 120 && p.Column > indent {
			fmt.Fprintf(a.err, "    %s\n    %s\n", line[indent:], strings.Repeat(" ", p.Column-1-indent)+"^")
		}
	}
}

// printSchema prints the JSON Schema of files that declare tasks.
func (a *app) printSchema(c *cli.Context) error {
	if c.Args().Present() {
		return usagef("--schema prints the schema and checks nothing; leave out %s", c.Args().First())
	}
	s, err := taskfile.Schema()
	if err == nil {
		a.printf("%s\n", s)
	}
	return err
}

// checkTaskFile checks one file, and reports whether something is wrong with it.
func (a *app) checkTaskFile(path string, src []byte, asJSON bool) (wrong bool, err error) {
	f, problems := taskfile.Parse(path, src, a.now())
	if asJSON {
		w := checkedFile{File: path, Form: "tasks", Tasks: len(f.Tasks), Workflows: len(f.Workflows), Problems: problems}
		if problems == nil {
			w.Problems = []taskfile.Problem{}
		}
		return len(problems) > 0, a.printLine(w)
	}
	a.printProblems(src, problems)
	verdict := "no problem"
	if len(problems) > 0 {
		verdict = count(len(problems), "problem")
	}
	what := count(len(f.Tasks), "task")
	if len(f.Workflows) > 0 {
		what += ", " + count(len(f.Workflows), "workflow")
	}
	a.printf("%s: %s, %s\n", clean(path), what, verdict)
	return len(problems) > 0, nil
}

// checkedFile is the JSON of one file that declares tasks.
type checkedFile struct {
	File      string             `json:"file"`
	Form      string             `json:"form"` // tasks
	Tasks     int                `json:"tasks"`
	Workflows int                `json:"workflows"`
	Problems  []taskfile.Problem `json:"problems"`
}
