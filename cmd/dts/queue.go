package main

import (
	"strconv"

	"github.com/urfave/cli/v2"

	"dts"
	"dts/web/api"
)

// concurrencyFlags are the flags of `dts add` that limit how many run at once.
func concurrencyFlags(category string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "concurrency-key", Category: category, Usage: "of all tasks with the key `K` only so many run at once; the others wait"},
		&cli.IntFlag{Name: "concurrency-limit", Category: category, Usage: "how `MANY`; default: 1, so that never two run at once"},
	}
}

// concurrency reads them.
func concurrency(c *cli.Context, s *dts.Spec) {
	s.ConcurrencyKey, s.ConcurrencyLimit = c.String("concurrency-key"), c.Int("concurrency-limit")
}

func (a *app) queueCommand() *cli.Command {
	return &cli.Command{
		Name: "queue", Usage: "limit how many tasks of a queue run at once",
		Description: "A queue need not be made: a task names one with --queue. What finds its queue full waits, and starts when another one has ended.",
		Action: func(c *cli.Context) error {
			return usagef("dts queue needs to know what: ls, set or rm; see dts queue --help")
		},
		Subcommands: []*cli.Command{
			{Name: "ls", Usage: "list the queues that have a limit", Flags: withConnection(jsonFlag()), Action: a.queueList},
			{Name: "set", Usage: "give a queue a limit, or change it", ArgsUsage: "NAME", Description: `Example:
   dts queue set reports --concurrency 4`,
				Flags: withConnection(&cli.IntFlag{Name: "concurrency", Usage: "so `MANY` of its tasks run at once, on all servers together", Required: true}, jsonFlag()), Action: a.queueSet},
			{Name: "rm", Usage: "take a queue's limit away: what waits for it starts", ArgsUsage: "NAME", Flags: withConnection(), Action: a.queueRemove},
		},
	}
}

func (a *app) queueList(c *cli.Context) error {
	if err := noArgs(c); err != nil {
		return err
	}
	return a.withServer(c, func(l *link) error {
		list, err := l.Queues(c.Context)
		if err != nil {
			return err
		}
		if c.Bool("json") {
			return a.printJSON(append([]*dts.Queue{}, list...))
		}
		if len(list) == 0 {
			a.printf("No queue has a limit. Give one to the queue reports with: dts queue set reports --concurrency 4\n")
			return nil
		}
		rows := make([][]string, len(list))
		for i, q := range list {
			rows[i] = []string{q.Name, strconv.Itoa(q.Concurrency), strconv.FormatInt(q.Running, 10), strconv.FormatInt(q.Waiting, 10)}
		}
		a.table([]string{"QUEUE", "AT ONCE", "RUNNING", "WAITING"}, rows, 0)
		return nil
	})
}

func oneQueue(c *cli.Context) (string, error) {
	if c.NArg() != 1 {
		return "", usagef("give the name of one queue")
	}
	return c.Args().First(), nil
}

func (a *app) queueSet(c *cli.Context) error {
	name, err := oneQueue(c)
	if err != nil {
		return err
	}
	return a.withServer(c, func(l *link) error {
		q, err := l.PutQueue(c.Context, name, api.QueueRequest{Concurrency: c.Int("concurrency")})
		if err != nil {
			return err
		}
		if c.Bool("json") {
			return a.printJSON(q)
		}
		a.printf("Of the queue %s, %d run at once. %d run and %d wait now.\n", q.Name, q.Concurrency, q.Running, q.Waiting)
		return nil
	})
}

func (a *app) queueRemove(c *cli.Context) error {
	name, err := oneQueue(c)
	if err != nil {
		return err
	}
	return a.withServer(c, func(l *link) error {
		if _, err := l.DeleteQueue(c.Context, name); err != nil {
			return err
		}
		a.printf("The queue %s has no limit any more.\n", clean(name))
		return nil
	})
}
