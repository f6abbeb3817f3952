package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fatih/color"
	"github.com/urfave/cli/v2"

	"dts/cmd/dts/taskfile"
)

func (a *app) applyCommand() *cli.Command {
	return &cli.Command{
		Name: "apply", Usage: "make tasks as files declare them", Category: "Tasks",
		UsageText: "dts apply [options] FILE…\n   dts apply [options] -f FILE…",
		Description: `A file declares recurring tasks, tasks with a time, workflows with a schedule, queues and calendars: dts check --schema
prints its form, dts export writes one. Says first what differs: + is created, ~ changed, - removed; and asks on a terminal.
Applying again does nothing.

What it creates or changes carries the label dts.file with the file's name (its name: key, or what it is called without
.yaml), and is found again by that and its own name; a recurring task that no file keeps is taken over by its name. With
--prune, what carries the label and is not in the file any more is removed. Queues and calendars are never removed. A task that
is paused stays so.

Examples:
   dts apply --dry-run tasks.yaml
   dts apply --prune --yes -f tasks.yaml -f more.yaml
   generate | dts apply -f -`,
		Flags: withConnection(
			&cli.StringSliceFlag{Name: "file", Aliases: []string{"f"}, Usage: "a `FILE` of tasks, or - for standard input; can be repeated"},
			&cli.BoolFlag{Name: "prune", Usage: "remove what a file declared before and does not any more"},
			&cli.BoolFlag{Name: "dry-run", Usage: "say what differs, and change nothing"},
			&cli.BoolFlag{Name: "exit-code", Usage: "with --dry-run: exit with 1 when something differs"},
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"},
			jsonFlag()),
		Action: a.apply,
	}
}

func (a *app) apply(c *cli.Context) error {
	paths := slices.Concat(c.StringSlice("file"), c.Args().Slice())
	if len(paths) == 0 {
		return usagef("dts apply needs a FILE; - is standard input")
	}
	if c.Bool("exit-code") && !c.Bool("dry-run") {
		return usagef("--exit-code: is for --dry-run")
	}
	files, err := a.filesToApply(paths)
	if err != nil {
		return err
	}
	return a.withServer(c, func(l *link) error { return a.applyFiles(c, l, files) })
}

// filesToApply reads the files, and refuses them all when something is wrong with one.
func (a *app) filesToApply(paths []string) ([]*taskfile.File, error) {
	var files []*taskfile.File
	named, sources := map[string]string{}, map[string][]byte{}
	wrong := 0
	for _, path := range paths {
		f, src, problems, err := a.readTaskFile(path)
		if err != nil {
			return nil, err
		}
		if len(problems) == 0 {
			problems = unscheduled(f)
		}
		a.printProblems(src, problems)
		wrong += len(problems)
		if len(problems) > 0 {
			continue
		}
		if f.Name == "" {
			return nil, usagef("%s: has no name to mark its tasks with; write into it, for example, name: nightly", path)
		}
		if other, twice := named[f.Name]; twice {
			return nil, usagef("%s and %s are both called %s, so that one would undo the other; give one of them another name: in it", other, path, f.Name)
		}
		named[f.Name], sources[path] = path, src
		files = append(files, f)
	}
	if wrong == 0 {
		twice, err := crossed(files)
		if err != nil {
			return nil, err
		}
		for _, p := range twice {
			a.printProblems(sources[p.File], []taskfile.Problem{p})
		}
		wrong = len(twice)
	}
	if wrong > 0 {
		return nil, usagef("nothing is applied: %s", count(wrong, "problem"))
	}
	return files, nil
}

// unscheduled are the tasks of a file of which it does not say when they run.
func unscheduled(f *taskfile.File) []taskfile.Problem {
	var list []taskfile.Problem
	add := func(at taskfile.Pos, what, add string) {
		list = append(list, taskfile.Problem{File: f.Path, Pos: at, Message: what + " has no schedule: add " + add + ", or run the file with dts ci"})
	}
	for _, t := range f.Tasks {
		if !t.Scheduled() {
			add(t.Pos, strconv.Quote(t.Name), "cron, every, rrule or at")
		}
	}
	for _, w := range f.Workflows {
		if w.Recurring == nil {
			add(w.Pos, "workflow "+strconv.Quote(w.Name), "cron, every or rrule")
		}
	}
	return list
}

// applied is the JSON of one file.
type applied struct {
	File      string        `json:"file"`
	Name      string        `json:"name"`
	Changes   []*fileChange `json:"changes"`
	Unchanged int           `json:"unchanged"`
	Notes     []string      `json:"notes,omitempty"`
	Applied   bool          `json:"applied"` // false: with --dry-run, or when the answer was no
}

// fileChange is one difference between a file and what the server has, and how to undo it.
type fileChange struct {
	Action string          `json:"action"` // create, change, replace or remove
	Kind   string          `json:"kind"`   // task, workflow, queue or calendar
	Name   string          `json:"name"`
	ID     string          `json:"id,omitempty"`
	Fields []taskfile.Line `json:"fields,omitempty"`

	about string // what more there is to say to people
	do    func(ctx context.Context) error
}

func (a *app) applyFiles(c *cli.Context, l *link, files []*taskfile.File) error {
	have, err := l.declared(c.Context, files)
	if err != nil {
		return err
	}
	plans := make([]*applyPlan, len(files))
	for i, f := range files {
		if plans[i], err = a.planApply(c.Context, l, f, have); err != nil {
			return err
		}
	}
	total := 0
	for _, p := range plans { // what is left over is known when all have said what they keep
		p.rest(c.Bool("prune"))
		total += len(p.changes)
		if !c.Bool("json") {
			a.printPlan(p)
		}
	}
	sure := total > 0 && !c.Bool("dry-run")
	if sure && !c.Bool("yes") && !c.Bool("json") {
		if sure, err = a.confirm(c.Context, "Apply "+count(total, "change")+"?"); err != nil {
			return err
		}
	}
	if sure {
		if err := applyPlans(c.Context, plans); err != nil {
			return err
		}
	}
	for _, p := range plans {
		if c.Bool("json") {
			w := applied{File: p.file.Path, Name: p.file.Name, Changes: p.changes, Unchanged: p.unchanged, Notes: p.notes, Applied: sure}
			if w.Changes == nil {
				w.Changes = []*fileChange{}
			}
			if err := a.printLine(w); err != nil {
				return err
			}
		}
	}
	if !c.Bool("json") {
		a.printVerdict(plans, total, sure, c.Bool("dry-run"))
	}
	if total > 0 && c.Bool("exit-code") {
		return exitOnly(exitFailed)
	}
	return nil
}

// printPlan prints what differs.
func (a *app) printPlan(p *applyPlan) {
	if len(p.changes) > 0 {
		a.printf("%s\n", a.bold(clean(p.title())))
	}
	for _, ch := range p.changes {
		name := clean(ch.Name)
		if ch.Kind != "task" {
			name = ch.Kind + " " + name
		}
		about := ch.about
		if about != "" {
			about = "  " + a.dim(about)
		}
		switch ch.Action {
		case "create":
			name = a.paint("+ "+name, color.FgGreen)
		case "remove":
			name = a.paint("- "+name, color.FgRed)
		default:
			name = a.paint("~ "+name, color.FgYellow)
		}
		a.printf("  %s%s\n", name, about)
		for _, line := range ch.Fields {
			a.printDifference(line)
		}
	}
	for _, n := range p.notes {
		a.notef("%s", n)
	}
}

// printVerdict says how it ended.
func (a *app) printVerdict(plans []*applyPlan, total int, done, dry bool) {
	counts := map[string]int{}
	unchanged := 0
	var names []string
	for _, p := range plans {
		names = append(names, p.title())
		unchanged += p.unchanged
		for _, ch := range p.changes {
			counts[ch.Action]++
		}
	}
	if total == 0 {
		a.printf("Nothing to do: all is as in %s.\n", clean(strings.Join(names, ", ")))
		return
	}
	form := func(action, word string) string {
		if counts[action] == 0 {
			return ""
		}
		return fmt.Sprintf("%d %s", counts[action], word)
	}
	var parts []string
	words := [][2]string{{"create", "to create"}, {"change", "to change"}, {"replace", "to replace"}, {"remove", "to remove"}}
	if done {
		words = [][2]string{{"create", "created"}, {"change", "changed"}, {"replace", "replaced"}, {"remove", "removed"}}
	}
	for _, w := range words {
		if s := form(w[0], w[1]); s != "" {
			parts = append(parts, s)
		}
	}
	text := strings.Join(parts, ", ")
	if unchanged > 0 {
		text += fmt.Sprintf("; %d unchanged", unchanged)
	}
	switch {
	case dry:
		text += ". Nothing was changed: this was a dry run"
	case !done:
		text += ". Nothing was changed"
	}
	a.printf("%s.\n", text)
}

// title names a plan's file.
func (p *applyPlan) title() string {
	if p.file.Path == "-" {
		return p.file.Name
	}
	return filepath.Base(p.file.Path)
}
