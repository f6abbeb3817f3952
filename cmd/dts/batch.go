package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"dts"
)

func (a *app) batchCommand() *cli.Command {
	return &cli.Command{
		Name: "batch", Usage: "say how far the tasks of a bulk request are", ArgsUsage: "ID", Category: "Tasks",
		Description: "The answer to POST /tasks/bulk has the id, as batch_id. dts ls --batch ID lists the tasks; dts cancel, retry, rm, pause\nand resume take --batch ID as well.",
		Flags:       withConnection(jsonFlag()),
		Action: func(c *cli.Context) error {
			id, err := oneArg(c, "batch's ID")
			if err != nil {
				return err
			}
			if !dts.IsID(id) {
				return usagef("%q is not an id", clip(clean(id), 40))
			}
			return a.withServer(c, func(l *link) error {
				b, err := l.Batch(c.Context, id)
				if err != nil {
					return err
				}
				if c.Bool("json") {
					return a.printJSON(b)
				}
				a.printBatch(b)
				return nil
			})
		},
	}
}

// batchBar is how many columns the bar of a batch is wide.
const batchBar = 40

func (a *app) printBatch(b *dts.Batch) {
	ended := b.Total - b.Pending - b.Running
	filled := 0
	if b.Total > 0 {
		filled = ended * batchBar / b.Total
	}
	state := "done"
	if !b.Done {
		state = fmt.Sprintf("%d of %d have ended", ended, b.Total)
	}
	a.printf("%s  %s\n", a.bold("Batch "+b.ID), state)
	a.printf("  %s%s\n", strings.Repeat("█", filled), a.dim(strings.Repeat("░", batchBar-filled)))
	var list []fact
	for _, x := range []struct {
		name string
		s    dts.Status
		n    int
	}{{"Pending", dts.Pending, b.Pending}, {"Running", dts.Running, b.Running}, {"Succeeded", dts.Success, b.Success},
		{"Failed", dts.Failed, b.Failed}, {"Cancelled", dts.Cancelled, b.Cancelled}, {"Skipped", dts.Skipped, b.Skipped}} {
		if x.n > 0 {
			list = append(list, fact{x.name, fmt.Sprint(x.n)})
		}
	}
	list = append(list, fact{"Created", clock(b.CreatedAt, a.loc) + a.dim("  "+relative(b.CreatedAt, a.now()))})
	if !b.CompletedAt.IsZero() {
		list = append(list, fact{"Ended", clock(b.CompletedAt, a.loc) + a.dim("  "+relative(b.CompletedAt, a.now()))})
	}
	a.facts(list)
	if b.Failed > 0 {
		a.printf("%s\n", a.dim("See what failed with: dts dead --batch "+b.ID))
	}
}
