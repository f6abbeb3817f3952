package main

import (
	"context"
	"io"

	"github.com/urfave/cli/v2"

	"dts"
	"dts/web/api"
)

func (a *app) logsCommand() *cli.Command {
	return &cli.Command{
		Name: "logs", Usage: "print what a run printed, or the body that the URL answered", ArgsUsage: "NAME|ID", Category: "Tasks",
		Description: `Of a recurring task it is the newest run. With -f it goes on until the run ends; a task that has not
started is waited for. Of a workflow it is what its steps printed, one after the other.`,
		Flags: withConnection(
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "follow the run as it prints"},
			&cli.IntFlag{Name: "attempt", DefaultText: "the newest", Usage: "that of the attempt `N`"},
			jsonFlag(),
		),
		Action: a.logs,
	}
}

func (a *app) logs(c *cli.Context) error {
	ref, err := oneArg(c, "NAME or ID")
	if err != nil {
		return err
	}
	attempt, follow := c.Int("attempt"), c.Bool("follow")
	if attempt < 0 || c.IsSet("attempt") && attempt == 0 {
		return usagef("--attempt: is %d; the first is 1", attempt)
	}
	if follow && c.Bool("json") {
		return usagef("--follow and --json are both given; keep one")
	}
	return a.withServer(c, func(l *link) error {
		x, err := l.resolve(c.Context, ref)
		if err != nil {
			return err
		}
		t := x.task
		if t == nil {
			if t, err = a.runToRead(c.Context, l, x.recurring, follow); err != nil {
				return err
			}
		}
		switch {
		case t.IsRun() && (follow || c.IsSet("attempt")):
			return usagef("that is the run of a workflow; --follow and --attempt are for one of its steps, by its task id: dts show %s", t.ID)
		case t.IsRun():
			return a.runLogs(c.Context, l, t.ID, c.Bool("json"))
		case c.Bool("json"):
			out, err := l.Output(c.Context, t.ID, attempt)
			if err != nil {
				return err
			}
			return a.printJSON(out)
		case follow:
			end, err := a.follow(c.Context, l, t.ID, attempt)
			if err == nil && a.terminal {
				a.notef("%s", ending(end))
			}
			return err
		}
		return l.WriteOutput(c.Context, a.out, t.ID, attempt)
	})
}

// runToRead chooses the run of a recurring task: the newest, or, to follow, the one to come if there is none.
func (a *app) runToRead(ctx context.Context, l *link, r *dts.RecurringTask, follow bool) (*dts.Task, error) {
	t, err := l.newestRun(ctx, r.ID)
	if err != nil || t != nil {
		return t, err
	}
	next, err := l.Upcoming(ctx, r.ID, 1)
	if err != nil {
		return nil, err
	}
	if len(next) == 0 {
		return nil, failf("%s has not run yet, and no run is planned", displayName(&r.Spec))
	}
	when := relative(next[0].DueAt, a.now())
	if !follow {
		return nil, failf("%s has not run yet; its first run is due %s", displayName(&r.Spec), when)
	}
	a.notef("%s has not run yet; its first run is due %s", displayName(&r.Spec), when)
	return next[0], nil
}

// follow prints an attempt's output as it comes, and returns how it ended.
func (a *app) follow(ctx context.Context, l *link, id string, attempt int) (*api.OutputEnd, error) {
	for chunk, err := range l.FollowOutput(ctx, id, attempt) {
		if err != nil {
			return nil, err
		}
		if chunk.End != nil {
			return chunk.End, nil
		}
		if chunk.Dropped > 0 {
			a.notef("%s of the output are not kept", size(chunk.Dropped))
		}
		if _, err := io.WriteString(a.out, chunk.Text); err != nil {
			return nil, err
		}
	}
	return nil, failf("the output ended without saying how")
}

// ending says how a run ended.
func ending(end *api.OutputEnd) string {
	text := "the task is " + string(end.Status)
	if end.Attempt > 0 {
		text = "attempt " + number(float64(end.Attempt), 0) + " ended " + string(end.State)
		if end.Status == dts.Pending {
			text += ", and there will be another"
		}
	}
	if end.Error != "" {
		text += ": " + clean(end.Error)
	}
	return text
}
