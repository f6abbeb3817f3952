package main

import (
	"time"

	"github.com/urfave/cli/v2"

	"dts"
	"dts/web/api"
)

// maxPreview is how many instants the server tells at most.
const maxPreview = 100

func (a *app) previewCommand() *cli.Command {
	return &cli.Command{
		Name: "preview", Usage: "say when a recurring task will run, and what changes that", ArgsUsage: "NAME|ID", Category: "Time",
		Description: `Its next instants, each in its zone and in UTC, with what the changing of clocks, calendars,
blackouts and a run that is not over do to it. With --since, also what would become of the instants since
then, had all of them been missed.`,
		Flags: withConnection(
			&cli.IntFlag{Name: "count", Aliases: []string{"n"}, Value: 10, DefaultText: "10", Usage: "`N` instants"},
			&cli.StringFlag{Name: "from", Usage: "those after `TIME`; default: now"},
			&cli.StringFlag{Name: "since", Usage: "and what was missed since `TIME`, or since a duration ago, such as 12h"},
			jsonFlag(),
		),
		Action: a.preview,
	}
}

func (a *app) preview(c *cli.Context) error {
	ref, err := oneArg(c, "NAME or ID")
	if err != nil {
		return err
	}
	q := api.PreviewRequest{Count: c.Int("count")}
	if q.Count < 1 || q.Count > maxPreview {
		return usagef("--count: is %d; use 1 to %d", q.Count, maxPreview)
	}
	return a.withServer(c, func(l *link) error {
		r, err := l.resolveRecurring(c.Context, ref, "previewed")
		if err != nil {
			return err
		}
		loc := a.zoneOfTask(r)
		if c.IsSet("from") {
			from, _, err := parseWhen(c.String("from"), loc, a.now())
			if err != nil {
				return usagef("--from: %s", err)
			}
			q.From = api.At(from)
		}
		if c.IsSet("since") {
			since, err := parsePast("--since", c.String("since"), loc, a.now())
			if err != nil {
				return err
			}
			q.Since = api.At(since)
		}
		q.RecurringTaskID = r.ID
		p, err := l.Preview(c.Context, q)
		if err != nil {
			return err
		}
		if c.Bool("json") {
			return a.printJSON(p)
		}
		a.printPreview(r, p, q.Count, loc)
		return nil
	})
}

func (a *app) printPreview(r *dts.RecurringTask, p *dts.Preview, count int, loc *time.Location) {
	a.printf("%s  %s", a.bold(displayName(&r.Spec)), clean(p.Description))
	if zoneMatters(&r.Schedule) {
		a.printf(", %s", clean(p.TimeZone))
	}
	a.printf("\n")
	markPaused(r, p.Instants)
	for _, line := range a.instantLines(p.Instants, loc, true) {
		a.printf("  %s\n", line)
	}
	switch {
	case p.AtBoot:
	case len(p.Instants) == 0:
		a.printf("  never again\n")
	case len(p.Instants) < count:
		a.printf("  and then never again\n")
	}
	if r.JitterSeconds > 0 {
		a.printf("With jitter, %s.\n", jitterRule(r))
	}
	if p.Missed != nil {
		a.printf("%s\n", clean(p.Missed.Text))
	}
}
