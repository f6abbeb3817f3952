package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"dts"
)

// maxConflictDays is how far ahead `dts conflicts` looks at most.
const maxConflictDays = 31

func (a *app) conflictsCommand() *cli.Command {
	return &cli.Command{
		Name: "conflicts", Usage: "say when tasks will wait for each other", Category: "Time",
		Description: `Of the coming days, the times at which more tasks come due than a queue or what they share lets run at
once. How long a run takes is taken from the last ones.`,
		Flags: withConnection(
			&cli.IntFlag{Name: "days", Value: 7, DefaultText: "7", Usage: "look `N` days ahead"},
			jsonFlag(),
		),
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			days := c.Int("days")
			if days < 1 || days > maxConflictDays {
				return usagef("--days: is %d; use 1 to %d", days, maxConflictDays)
			}
			return a.withServer(c, func(l *link) error {
				now := a.now()
				list, err := l.Conflicts(c.Context, now, now.AddDate(0, 0, days))
				if err != nil {
					return err
				}
				if c.Bool("json") {
					return a.printJSON(append([]dts.Conflict{}, list...))
				}
				a.printConflicts(list, days)
				return nil
			})
		},
	}
}

func (a *app) printConflicts(list []dts.Conflict, days int) {
	if len(list) == 0 {
		a.printf("Nothing collides in the %s from now.\n", count(days, "day"))
		return
	}
	rows := make([][]string, len(list))
	for i, x := range list {
		tasks := make([]string, len(x.Tasks))
		for j, t := range x.Tasks {
			tasks[j] = fmt.Sprintf("%s (%s)", clean(t.Name), span(seconds(t.Seconds)))
		}
		rows[i] = []string{x.From.In(a.loc).Format("Mon 01-02 15:04:05"), span(x.To.Sub(x.From).Truncate(time.Second)),
			times(x.Times), clean(x.Shared), fmt.Sprintf("%d of %d", x.Most, x.Limit), strings.Join(tasks, ", ")}
	}
	a.table([]string{"FIRST", "LASTS", "HOW OFTEN", "SHARED", "WANT TO RUN", "TASKS"}, rows, 5)
	a.printf("%s\n", a.dim("Want to run: how many at the worst, of how many the limit lets. The others wait for their turn."))
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
