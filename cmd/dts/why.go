package main

import (
	"context"
	"time"

	"github.com/urfave/cli/v2"

	"dts"
)

func (a *app) whyCommand() *cli.Command {
	return &cli.Command{
		Name: "why", Usage: "say in a sentence why something did or did not run", ArgsUsage: "NAME|ID [INSTANT]", Category: "Time",
		Description: `Of a recurring task, an INSTANT is meant: a time as dts show prints it, 15:04 for the last time that it
was that late, "yesterday 09:00", or a duration ago such as 2h. Without INSTANT it is the newest one that did
not run, or the newest.`,
		Flags:  withConnection(jsonFlag()),
		Action: a.why,
	}
}

func (a *app) why(c *cli.Context) error {
	if n := c.Args().Len(); n < 1 || n > 2 {
		return usagef("dts why needs a NAME or ID, and may have an INSTANT; there are %d arguments", n)
	}
	ref, instant := c.Args().Get(0), c.Args().Get(1)
	return a.withServer(c, func(l *link) error {
		x, err := l.resolve(c.Context, ref)
		if err != nil {
			return err
		}
		w, err := a.askWhy(c.Context, l, x, instant)
		if err != nil {
			return err
		}
		if c.Bool("json") {
			return a.printJSON(w)
		}
		a.printf("%s\n", clean(w.Answer))
		return nil
	})
}

func (a *app) askWhy(ctx context.Context, l *link, x thing, instant string) (*dts.Why, error) {
	if x.task != nil {
		if instant != "" {
			return nil, usagef("the %s has no other instant than its own; leave %s out", x.what(), clip(clean(instant), 40))
		}
		return l.WhyTask(ctx, x.task.ID)
	}
	var at time.Time
	if instant != "" {
		var err error
		if at, err = parsePast("INSTANT", instant, a.zoneOfTask(x.recurring), a.now()); err != nil {
			return nil, err
		}
	}
	return l.WhyInstant(ctx, x.recurring.ID, at)
}
