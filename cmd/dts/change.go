package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"dts"
	"dts/web/api"
)

// change is a command that does something to each of its arguments, or to the tasks that a filter selects.
type change struct {
	name, usage, description string
	bulk                     dts.BulkVerb // what it does to those
	flags                    []cli.Flag
	single                   []string                                                         // those of them that are for what is given by name alone
	prepare                  func(c *cli.Context) error                                       // nil: nothing
	do                       func(ctx context.Context, l *link, x thing) (any, string, error) // the API's answer and the line to say
}

func (a *app) changeCommand(ch change) *cli.Command {
	return &cli.Command{
		Name: ch.name, Usage: ch.usage, Description: ch.description, Category: "Tasks",
		UsageText: fmt.Sprintf("dts %s [options] NAME|ID…\n   dts %[1]s [options] --status S | --queue NAME | …", ch.name),
		Flags:     withConnection(append(append(ch.flags, bulkFlags(ch.bulk)...), jsonFlag())...),
		Action: func(c *cli.Context) error {
			f, given, err := a.selection(c, untilFlag(ch.bulk))
			switch {
			case err != nil:
				return err
			case given && c.Args().Present():
				return usagef("a NAME or ID and flags that select tasks are both given; keep one")
			case given:
				if err := onlyFor("a NAME or ID", c, ch.single); err != nil {
					return err
				}
				return a.withServer(c, func(l *link) error { return a.bulk(c, l, ch.bulk, f) })
			case !c.Args().Present():
				return usagef("dts %s needs a NAME or ID, or flags that select tasks, such as --queue", ch.name)
			}
			alone := []string{"dry-run", "yes"} // where nothing is counted, and nothing asked
			if ch.bulk == dts.BulkDelete {
				alone = alone[:1]
			}
			if err := onlyFor("flags that select tasks, such as --queue", c, alone); err != nil {
				return err
			}
			if ch.prepare != nil {
				if err := ch.prepare(c); err != nil {
					return err
				}
			}
			return a.withServer(c, func(l *link) error { return a.changeAll(c, l, ch) })
		},
	}
}

// changeAll finds all arguments before it changes the first, so that a wrong name changes nothing.
func (a *app) changeAll(c *cli.Context, l *link, ch change) error {
	var things []thing
	for _, ref := range c.Args().Slice() {
		x, err := l.resolve(c.Context, ref)
		if err != nil {
			return err
		}
		things = append(things, x)
	}
	for _, x := range things {
		answer, line, err := ch.do(c.Context, l, x)
		switch {
		case err != nil:
			return err
		case c.Bool("json"):
			if answer != nil {
				if err := a.printJSON(answer); err != nil {
					return err
				}
			}
		case line != "":
			a.printf("%s\n", line)
		}
	}
	return nil
}

func (a *app) pauseCommand() *cli.Command {
	var q api.PauseRequest
	return a.changeCommand(change{
		name: "pause", bulk: dts.BulkPause, usage: "pause a recurring task, or tasks that have not started",
		description: `The instants of a recurring task are recorded as skipped until it is resumed; a run in progress goes on. A task
that is paused does not start until it is resumed. Asks first on a terminal where flags select the tasks.`,
		single: []string{"until", "note"},
		flags: []cli.Flag{
			&cli.StringFlag{Name: "until", Usage: "resume by itself at `TIME`, or after a duration such as 2h"},
			&cli.StringFlag{Name: "note", Usage: "a `TEXT` for those who wonder why"},
		},
		prepare: func(c *cli.Context) error {
			q = api.PauseRequest{Note: c.String("note")}
			if text := c.String("until"); c.IsSet("until") {
				at, _, err := parseWhen(text, a.loc, a.now())
				if err != nil {
					d, bad := parseSpan("--until", text, 1)
					if bad != nil {
						return usagef("--until: %s, or a duration such as 2h", err)
					}
					at = a.now().Add(d)
				}
				q.Until = api.At(at)
			}
			return nil
		},
		do: func(ctx context.Context, l *link, x thing) (any, string, error) {
			if x.recurring == nil {
				if !q.Until.IsZero() || q.Note != "" {
					return nil, "", usagef("--until and --note are for a recurring task, and %s runs once", x.what())
				}
				t, err := l.DoTask(ctx, x.task.ID, dts.PauseTask)
				if err != nil {
					return nil, "", err
				}
				return t, a.bold(displayName(&t.Spec)) + " is paused; dts resume " + t.ID + " lets it start", nil
			}
			r, err := l.PauseRecurring(ctx, x.recurring.ID, q)
			if err != nil {
				return nil, "", err
			}
			line := a.bold(displayName(&r.Spec)) + " is paused"
			if !r.PausedUntil.IsZero() {
				line += " until " + clock(r.PausedUntil, a.loc)
			}
			return r, line, nil
		},
	})
}

func (a *app) resumeCommand() *cli.Command {
	catchUp := false
	return a.changeCommand(change{
		name: "resume", bulk: dts.BulkResume, usage: "resume what is paused",
		description: "A task that was paused starts when it is due, or now if that has passed.",
		single:      []string{"catch-up"},
		flags:       []cli.Flag{&cli.BoolFlag{Name: "catch-up", Usage: "do with the instants of the pause what its catch-up mode does with missed ones; else they do not run"}},
		prepare: func(c *cli.Context) error {
			catchUp = c.Bool("catch-up")
			return nil
		},
		do: func(ctx context.Context, l *link, x thing) (any, string, error) {
			if x.recurring == nil {
				if catchUp {
					return nil, "", usagef("--catch-up is for a recurring task, and %s runs once", x.what())
				}
				t, err := l.DoTask(ctx, x.task.ID, dts.ResumeTask)
				if err != nil {
					return nil, "", err
				}
				return t, a.bold(displayName(&t.Spec)) + " starts " + relative(t.RunAt, a.now()), nil
			}
			r, err := l.Resume(ctx, x.recurring.ID, catchUp)
			if err != nil {
				return nil, "", err
			}
			line := a.bold(displayName(&r.Spec)) + " is active again"
			if catchUp && r.CatchUpMode == dts.SkipMissed {
				line += "; it makes up for nothing, because its catch-up mode is to skip"
			}
			if !r.NextRunAt.IsZero() {
				line += "; its next run is due " + relative(r.NextRunAt, a.now())
			}
			return r, line, nil
		},
	})
}

func (a *app) cancelCommand() *cli.Command {
	return a.changeCommand(change{
		name: "cancel", bulk: dts.BulkCancel, usage: "cancel a task; if it runs, kill it",
		description: `Of a recurring task it is the run in progress. dts rm removes the recurring task itself, dts pause stops it. Asks
first on a terminal where flags select the tasks.

Example:
   dts cancel --queue reports --status pending --dry-run`,
		do: func(ctx context.Context, l *link, x thing) (any, string, error) {
			t := x.task
			if t == nil {
				var err error
				if t, err = l.newestRun(ctx, x.recurring.ID); err != nil {
					return nil, "", err
				}
				if t == nil || t.Status.Terminal() {
					return nil, "", failf("%s does not run at the moment; dts pause stops it, dts rm removes it", x.what())
				}
			}
			was := t.Status
			t, err := l.DoTask(ctx, t.ID, dts.Cancel)
			if err != nil {
				return nil, "", err
			}
			line := a.bold(displayName(&t.Spec)) + " is cancelled"
			if was == dts.Running && t.Status == dts.Running {
				line = a.bold(displayName(&t.Spec)) + " is being killed"
			}
			return t, line, nil
		},
	})
}

func (a *app) retryCommand() *cli.Command {
	return a.changeCommand(change{
		name: "retry", bulk: dts.BulkRetry, usage: "give a failed, cancelled or skipped task another attempt, now",
		description: `Of a recurring task it is the newest run. Where flags select the tasks, those that failed are meant unless --status
says otherwise, and it asks first on a terminal.

Example:
   dts retry --dead --queue mail --since 2h`,
		do: func(ctx context.Context, l *link, x thing) (any, string, error) {
			t := x.task
			if t == nil {
				var err error
				if t, err = l.newestRun(ctx, x.recurring.ID); err != nil {
					return nil, "", err
				}
				if t == nil {
					return nil, "", failf("%s has not run yet; dts run runs it now", x.what())
				}
			}
			t, err := l.DoTask(ctx, t.ID, dts.RetryNow)
			if err != nil {
				return nil, "", err
			}
			return t, a.bold(displayName(&t.Spec)) + " tries again: task " + t.ID, nil
		},
	})
}

func (a *app) rmCommand() *cli.Command {
	force := false
	return a.changeCommand(change{
		name: "rm", bulk: dts.BulkDelete, usage: "remove a task, or a recurring task and what it plans",
		description: `What a recurring task has run stays to be seen. Where flags select the tasks, those that have ended are meant unless
--status says otherwise. Asks first on a terminal.`,
		flags: []cli.Flag{&cli.BoolFlag{Name: "force", Aliases: []string{"f"}, Usage: "do not ask"}},
		prepare: func(c *cli.Context) error {
			force = c.Bool("force") || c.Bool("yes")
			return nil
		},
		do: func(ctx context.Context, l *link, x thing) (any, string, error) {
			if x.task != nil && x.task.RecurringTaskID != "" && x.byName {
				return nil, "", failf("there is no recurring task %q any more; to remove one of its runs, give the run's id", x.task.Name)
			}
			if !force {
				if yes, err := a.confirm(ctx, "Remove the "+x.what()+"?"); err != nil || !yes {
					return nil, "", err
				}
			}
			if x.task != nil {
				t, err := l.DoTask(ctx, x.task.ID, dts.Delete)
				return t, "Removed the " + x.what(), err
			}
			r, err := l.CancelRecurring(ctx, x.recurring.ID)
			return r, "Removed the " + x.what() + "; what it has run stays", err
		},
	})
}
