package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"dts"
)

func (a *app) depsCommand() *cli.Command {
	return &cli.Command{
		Name: "deps", Usage: "show what a task waits for and what waits for it, or change that", Category: "Tasks",
		UsageText: "dts deps [options] NAME|ID\n   dts deps add NAME|ID AFTER…\n   dts deps rm NAME|ID AFTER",
		Description: `A task waits until the tasks before it have ended as it asks: they must succeed, unless :must-finish or
:must-fail stands behind one. If that cannot be any more it is skipped, and so is what depends on it; dts run runs a
task that waits all the same.

Examples:
   dts add --name load -- ./load
   dts add --name report --after load -- ./report
   dts add --name alarm --after load:must-fail -- ./alarm
   dts deps report`,
		Flags:  withConnection(jsonFlag()),
		Action: a.deps,
		Subcommands: []*cli.Command{
			{Name: "add", Usage: "let a task that has not started wait for others", ArgsUsage: "NAME|ID AFTER…", Flags: withConnection(jsonFlag()), Action: a.depsAdd},
			{Name: "rm", Usage: "do not let a task wait for another one any more", ArgsUsage: "NAME|ID AFTER", Flags: withConnection(jsonFlag()), Action: a.depsRemove},
		},
	}
}

func (a *app) deps(c *cli.Context) error {
	ref, err := oneArg(c, "NAME or ID")
	if err != nil {
		return err
	}
	return a.withServer(c, func(l *link) error {
		t, err := l.resolveTask(c.Context, ref)
		if err != nil {
			return err
		}
		g, err := l.Dependencies(c.Context, t.ID)
		if err != nil {
			return err
		}
		return a.graph(g, t.DependsMode, c.Bool("json"))
	})
}

func (a *app) graph(g *dts.Graph, mode dts.DependencyMode, asJSON bool) error {
	if asJSON {
		return a.printJSON(g)
	}
	if len(g.Tasks) == 0 {
		return failf("the server knows nothing of the task")
	}
	t := g.Tasks[0]
	status := a.status(string(t.Status))
	if words := waits(&dts.Task{Status: t.Status, Unresolved: t.Unresolved, DependsMode: mode}); words != "" {
		status += ", " + words
	}
	a.printf("%s  %s  %s\n", a.bold(graphName(&t)), status, a.dim(t.ID))
	left := a.printGraph(g, mode, wholeTree)
	switch {
	case len(g.Dependencies) == 0:
		a.printf("%s\n", a.dim("It depends on nothing, and nothing depends on it."))
	case g.Truncated:
		a.printf("%s\n", a.dim(fmt.Sprintf("There is more: these are of the nearest %d tasks.", len(g.Tasks))))
	case left > 0:
		a.printf("%s\n", a.dim(fmt.Sprintf("There is more, further away: --json shows all %d tasks.", len(g.Tasks))))
	}
	return nil
}

func (a *app) depsAdd(c *cli.Context) error {
	if c.NArg() < 2 {
		return usagef("%s needs a NAME or ID, and what it is to wait for", c.Command.HelpName)
	}
	return a.withServer(c, func(l *link) error {
		t, err := l.resolveTask(c.Context, c.Args().First())
		if err != nil {
			return err
		}
		after, err := l.after(c.Context, c.Args().Tail())
		if err != nil {
			return err
		}
		g, err := l.AddDependencies(c.Context, t.ID, after)
		if err != nil {
			return err
		}
		return a.graph(g, t.DependsMode, c.Bool("json"))
	})
}

func (a *app) depsRemove(c *cli.Context) error {
	if c.NArg() != 2 {
		return usagef("%s needs a NAME or ID, and the NAME or ID that it does not wait for any more", c.Command.HelpName)
	}
	return a.withServer(c, func(l *link) error {
		t, err := l.resolveTask(c.Context, c.Args().First())
		if err != nil {
			return err
		}
		parent, err := l.resolveTask(c.Context, c.Args().Get(1))
		if err != nil {
			return err
		}
		g, err := l.RemoveDependency(c.Context, t.ID, parent.ID)
		if err != nil {
			return err
		}
		return a.graph(g, t.DependsMode, c.Bool("json"))
	})
}

// resolveTask finds the task that ref means.
func (l *link) resolveTask(ctx context.Context, ref string) (*dts.Task, error) {
	x, err := l.resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	if x.task == nil {
		return nil, failf("%s recurs, and only tasks depend on each other; give the id of one of its runs, which dts show %s lists", x.what(), words([]string{ref}))
	}
	return x.task, nil
}

// dependencyWords are the ways to write what is asked of a task before.
var dependencyWords = map[string]dts.DependencyType{
	"must_succeed": dts.MustSucceed, "must_finish": dts.MustFinish, "must_fail": dts.MustFail,
}

// cutType splits off what is asked of a task: `load:must-fail`. A name that ends in another word stays whole.
func cutType(text string) (ref string, t dts.DependencyType) {
	if i := strings.LastIndexByte(text, ':'); i > 0 {
		if t, ok := dependencyWords[strings.ReplaceAll(strings.ToLower(text[i+1:]), "-", "_")]; ok {
			return text[:i], t
		}
	}
	return text, ""
}

// after reads what a task is to wait for.
func (l *link) after(ctx context.Context, list []string) ([]dts.DependsOn, error) {
	var after []dts.DependsOn
	for _, text := range list {
		ref, t := cutType(text)
		id := ref
		if !dts.IsID(ref) {
			parent, err := l.resolveTask(ctx, ref)
			if err != nil {
				return nil, err
			}
			id = parent.ID
		}
		after = append(after, dts.DependsOn{TaskID: id, Type: t})
	}
	return after, nil
}
