package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"dts"
)

func (a *app) runCommand() *cli.Command {
	return &cli.Command{
		Name: "run", Usage: "run something now", ArgsUsage: "NAME|ID", Category: "Tasks",
		Description: `A task that waits starts now. A recurring task runs once, beside its schedule. A task that failed, was
cancelled or was skipped gets another attempt.

With --wait it prints what the run prints, waits for its end, retries included, and exits with 1 unless it
succeeded.`,
		Flags: withConnection(
			&cli.BoolFlag{Name: "wait", Aliases: []string{"w"}, Usage: "wait for the end and print the output"},
			jsonFlag(),
		),
		Action: a.runNow,
	}
}

func (a *app) runNow(c *cli.Context) error {
	ref, err := oneArg(c, "NAME or ID")
	if err != nil {
		return err
	}
	if c.Bool("wait") && c.Bool("json") {
		return usagef("--wait and --json are both given; keep one")
	}
	return a.withServer(c, func(l *link) error {
		x, err := l.resolve(c.Context, ref)
		if err != nil {
			return err
		}
		t, err := l.start(c.Context, x)
		if err != nil {
			return err
		}
		switch {
		case c.Bool("json"):
			return a.printJSON(t)
		case c.Bool("wait"):
			return a.await(c.Context, l, t)
		}
		a.printf("%s runs now: task %s\n", a.bold(displayName(&t.Spec)), t.ID)
		return nil
	})
}

// start makes a thing run now.
func (l *link) start(ctx context.Context, x thing) (*dts.Task, error) {
	switch {
	case x.recurring != nil:
		return l.TriggerRecurring(ctx, x.recurring.ID)
	case x.task.Status == dts.Pending && x.task.RunStarted():
		return nil, failf("%s runs already; see how far it is with: dts show %s", x.what(), x.task.ID)
	case x.task.Status == dts.Pending:
		return l.DoTask(ctx, x.task.ID, dts.RunNow)
	case x.task.Status == dts.Running:
		return nil, failf("%s runs already; follow it with: dts logs -f %s", x.what(), x.task.ID)
	case x.task.Status == dts.Success:
		return nil, failf("%s has succeeded; add a new task to run it again", x.what())
	}
	return l.DoTask(ctx, x.task.ID, dts.RetryNow)
}

// await prints a run's output until its last attempt has ended. Its error says that it did not succeed.
func (a *app) await(ctx context.Context, l *link, t *dts.Task) error {
	for number := t.Attempts + 1; ; number++ {
		end, err := a.follow(ctx, l, t.ID, number)
		if err == nil && t.IsRun() && end.Status.Terminal() { // it prints nothing itself
			err = a.runLogs(ctx, l, t.ID, false)
		}
		switch {
		case err != nil:
			return err
		case end.Status == dts.Success:
			return nil
		case end.Status == dts.Pending || end.Status == dts.Running:
			a.notef("%s", ending(end))
		default:
			return failf("%s: %s", displayName(&t.Spec), ending(end))
		}
	}
}
