package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/fatih/color"
	"github.com/urfave/cli/v2"

	"dts"
)

func (a *app) deadCommand() *cli.Command {
	const which = "Which of them"
	return &cli.Command{
		Name: "dead", Usage: "list the dead letters: tasks that failed and have no attempt left", Category: "Tasks",
		Description: `The newest come first, with the error of their last attempt. With the same flags, dts retry --dead tries them
again and dts rm --dead throws them away.

Example:
   dts dead --queue mail --since 2h
   dts retry --dead --queue mail --since 2h --dry-run`,
		Flags: withConnection(append(commonSelection(which, "until"),
			&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Value: 20, DefaultText: "20", Usage: "at most `N` tasks"},
			jsonFlag())...),
		Action: a.dead,
	}
}

func (a *app) dead(c *cli.Context) error {
	if err := noArgs(c); err != nil {
		return err
	}
	f, given, err := a.selection(c, "until")
	if err != nil {
		return err
	}
	f.Statuses = []dts.Status{dts.Failed}
	limit := c.Int("limit")
	if limit < 1 || limit > 100_000 {
		return usagef("--limit: is %d; use 1 to 100000", limit)
	}
	return a.withServer(c, func(l *link) error { return a.deadList(c.Context, l, f, given, limit, c.Bool("json")) })
}

func (a *app) deadList(ctx context.Context, l *link, f dts.TaskFilter, given bool, limit int, asJSON bool) error {
	list, more, err := scan(ctx, l, f, limit, 0, nil)
	switch {
	case err != nil:
		return err
	case asJSON:
		return a.printJSON(map[string]any{"tasks": append([]*dts.Task{}, list...), "more": more})
	case len(list) == 0 && given:
		a.printf("Nothing that failed matches.\n")
		return nil
	case len(list) == 0:
		a.printf("There are no dead letters.\n")
		return nil
	}
	a.deadTable(list)
	if more {
		a.printf("%s\n", a.dim("There are more: --limit shows them."))
	}
	a.printf("%s\n", a.dim("Try them again with: dts retry --dead; throw them away with: dts rm --dead"))
	return nil
}

// deadTable prints each task with its error in a line below: that is too long for a column beside an id.
func (a *app) deadTable(list []*dts.Task) {
	rows := make([][]string, len(list))
	for i, t := range list {
		rows[i] = []string{t.ID, displayName(&t.Spec), relative(t.CompletedAt, a.now()), fmt.Sprint(t.Attempts)}
	}
	lines := strings.Split(a.renderTable([]string{"TASK", "NAME", "FAILED", "TRIES"}, rows, 1), "\n")
	a.printf("%s\n", lines[0])
	for i, t := range list {
		a.printf("%s\n", lines[i+1])
		if text := lastError(t); text != "" {
			if a.width > 2 {
				text = clip(text, a.width-2)
			}
			a.printf("  %s\n", a.paint(text, color.FgRed))
		}
	}
}

// lastError is the first line of why a task failed.
func lastError(t *dts.Task) string {
	line, _, _ := strings.Cut(strings.TrimSpace(t.LastError), "\n")
	return clip(clean(line), 200)
}
