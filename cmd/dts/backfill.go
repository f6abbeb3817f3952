package main

import (
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"dts"
	"dts/web/api"
)

func (a *app) backfillCommand() *cli.Command {
	return &cli.Command{
		Name: "backfill", Usage: "run a recurring task for its instants of a past time", ArgsUsage: "NAME|ID --from T --to T", Category: "Time",
		Description: `Every instant of the schedule from --from to --to, both included, becomes a task of its own, whether
it ran then or not. What was replayed before is left out. Runs are one after another, unless the recurring
task lets them overlap. A time is a date and time, 15:04 for the last time that it was that late, "yesterday
09:00", or a duration ago such as 2d.`,
		Flags: withConnection(
			&cli.StringFlag{Name: "from", Usage: "the beginning, `TIME`"},
			&cli.StringFlag{Name: "to", Usage: "the end, `TIME`; default: now"},
			&cli.BoolFlag{Name: "dry-run", Usage: "say how many there are, and run nothing"},
			jsonFlag(),
		),
		Action: a.backfill,
	}
}

func (a *app) backfill(c *cli.Context) error {
	ref, err := oneArg(c, "NAME or ID")
	if err != nil {
		return err
	}
	if !c.IsSet("from") {
		return usagef("dts backfill needs --from, the beginning of the time to replay")
	}
	return a.withServer(c, func(l *link) error {
		r, err := l.resolveRecurring(c.Context, ref, "replayed")
		if err != nil {
			return err
		}
		loc := a.zoneOfTask(r)
		q := dts.BackfillRequest{To: a.now(), DryRun: c.Bool("dry-run")}
		if q.From, err = parsePast("--from", c.String("from"), loc, a.now()); err != nil {
			return err
		}
		if c.IsSet("to") {
			if q.To, err = parsePast("--to", c.String("to"), loc, a.now()); err != nil {
				return err
			}
		}
		if q.To.Before(q.From) {
			return usagef("--to: %s is before --from, %s", clock(q.To, loc), clock(q.From, loc))
		}
		w, err := l.Backfill(c.Context, r.ID, api.BackfillRequest{From: api.At(q.From), To: api.At(q.To), DryRun: q.DryRun})
		if err != nil {
			return err
		}
		if c.Bool("json") {
			return a.printJSON(w)
		}
		a.printBackfill(r, q, w, loc)
		return nil
	})
}

func (a *app) printBackfill(r *dts.RecurringTask, q dts.BackfillRequest, w *dts.BackfillAnswer, loc *time.Location) {
	name := a.bold(displayName(&r.Spec))
	if w.Count == 0 {
		a.printf("There is nothing to replay: %s has no instant from %s to %s that was not replayed before.\n", name, clock(q.From, loc), clock(q.To, loc))
		return
	}
	what, when := count(int(w.Count), "instant"), "at "+clock(w.First, loc)
	if w.Count > 1 {
		when = fmt.Sprintf("from %s to %s", clock(w.First, loc), clock(w.Last, loc))
	}
	if q.DryRun {
		a.printf("Would replay %s of %s, %s. Nothing was run.\n", what, name, when)
		return
	}
	pace := ""
	if w.Created > 1 {
		pace = "; they run one after another"
		if r.OverlapPolicy == dts.OverlapAllow {
			pace = "; they run as soon as there is room"
		}
	}
	a.printf("Replays %s of %s, %s%s.\n", what, name, when, pace)
	ref := r.Name
	if ref == "" {
		ref = r.ID
	}
	a.printf("%s\n", a.dim("See what becomes of them with: dts show "+words([]string{clean(ref)})))
}
