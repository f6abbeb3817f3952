package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"dts"
	"dts/web/api"
)

// concurrencyFlags are the flags of `dts add` that limit how many run at once.
func concurrencyFlags(category string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "concurrency-key", Category: category, Usage: "of all tasks with the key `K` only so many run at once; the others wait"},
		&cli.IntFlag{Name: "concurrency-limit", Category: category, DefaultText: "1, so that never two run at once", Usage: "how `MANY`"},
	}
}

// concurrency reads them.
func concurrency(c *cli.Context, s *dts.Spec) {
	s.ConcurrencyKey, s.ConcurrencyLimit = c.String("concurrency-key"), c.Int("concurrency-limit")
}

func (a *app) queueCommand() *cli.Command {
	return &cli.Command{
		Name: "queue", Usage: "limit, pause and look at queues", Category: "Tasks",
		Description: "A queue need not be made: a task names one with --queue. What may not start waits, and starts when it may.",
		Action: func(c *cli.Context) error {
			return usagef("dts queue needs to know what: ls, show, set, pause, resume or rm; see dts queue --help")
		},
		Subcommands: []*cli.Command{
			{Name: "ls", Usage: "list the queues that have settings, or tasks that are not finished", Flags: withConnection(jsonFlag()), Action: a.queueList},
			{Name: "show", Usage: "show a queue", ArgsUsage: "NAME", Flags: withConnection(jsonFlag()), Action: a.queueShow},
			{Name: "set", Usage: "give a queue settings, or change some of them", ArgsUsage: "NAME", Description: `What is not named stays as it is; 0 or none takes a setting away.

Examples:
   dts queue set reports --concurrency 4
   dts queue set mail --rate 10/s --burst 50
   dts queue set imports --retries 5 --backoff 1m..1h --keep 7d`,
				Flags: withConnection(
					&cli.IntFlag{Name: "concurrency", Usage: "so `MANY` of its tasks run at once, on all servers together"},
					&cli.StringFlag{Name: "rate", Usage: "so many of its tasks start in a period, evenly spread, on all servers together: `N/PERIOD`, such as 10/s, 100/m or 50/15m"},
					&cli.IntFlag{Name: "burst", DefaultText: "1", Usage: "after a rest, so `MANY` may start at once"},
					&cli.IntFlag{Name: "retries", Usage: "tasks added to it later, without retries of their own, are tried again up to `N` times"},
					&cli.StringFlag{Name: "backoff", Usage: "and wait before that, `B`: 10s each time; 1s..10m doubling; or the list 10s,1m,5m"},
					&cli.BoolFlag{Name: "default-retry", Usage: "what is added to it later has the retries that tasks have anyway"},
					&cli.StringFlag{Name: "keep", Usage: "keep its finished tasks for a `DURATION`, where that is less than for all"},
					&cli.Int64Flag{Name: "keep-rows", Usage: "keep at most `N` of them"},
					&cli.StringFlag{Name: "keep-size", Usage: "keep at most a `SIZE` of them, such as 500M or 2G"},
					jsonFlag()), Action: a.queueSet},
			{Name: "pause", Usage: "let nothing of a queue start; what runs goes on", ArgsUsage: "NAME",
				Flags: withConnection(&cli.StringFlag{Name: "note", Usage: "a `TEXT` for those who wonder why"}, jsonFlag()), Action: a.queuePause},
			{Name: "resume", Usage: "let a paused queue go on", ArgsUsage: "NAME", Flags: withConnection(jsonFlag()), Action: a.queueResume},
			{Name: "rm", Usage: "take a queue's settings away: what waits for them starts", ArgsUsage: "NAME", Flags: withConnection(), Action: a.queueRemove},
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
			a.printf("No queue has settings, or tasks that are not finished. Limit the queue reports with: dts queue set reports --concurrency 4\n")
			return nil
		}
		a.queueTable(list)
		return nil
	})
}

func (a *app) queueTable(list []*dts.Queue) {
	rows := make([][]string, len(list))
	for i, q := range list {
		state := ""
		if q.Paused {
			state = strings.TrimSuffix("paused: "+clean(q.PauseNote), ": ")
		}
		rows[i] = []string{clean(q.Name), waitingText(q.Waiting), oldestText(q), strconv.FormatInt(q.Running, 10), orDash(q.Concurrency), orDash(q.Suggested),
			cmp.Or(rateText(q), "-"), state}
	}
	a.table([]string{"QUEUE", "WAITING", "OLDEST", "RUNNING", "AT ONCE", "SUGGESTED", "RATE", "STATE"}, rows, 7)
}

func orDash(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

// waitingText writes how many wait: from 10,000 on they are not counted.
func waitingText(n int64) string {
	if n >= 10_000 {
		return "10000+"
	}
	return strconv.FormatInt(n, 10)
}

func oldestText(q *dts.Queue) string {
	if q.Waiting == 0 {
		return "-"
	}
	return span(secondsOf(q.OldestAgeSeconds).Truncate(time.Second))
}

// rateText writes a rate as --rate takes it; "" for none.
func rateText(q *dts.Queue) string {
	if q.Rate == 0 {
		return ""
	}
	period := map[float64]string{1: "s", 60: "m", 3600: "h", 86400: "d"}[q.PeriodSeconds]
	if period == "" {
		period = span(secondsOf(q.PeriodSeconds))
	}
	text := strconv.Itoa(q.Rate) + "/" + period
	if q.Burst > 1 {
		text += ", " + strconv.Itoa(q.Burst) + " at once"
	}
	return text
}

func (a *app) queueShow(c *cli.Context) error {
	name, err := oneArg(c, "NAME")
	if err != nil {
		return err
	}
	return a.withServer(c, func(l *link) error {
		q, err := l.Queue(c.Context, name)
		if err != nil {
			return err
		}
		return a.saidQueue(c, q)
	})
}

// saidQueue prints a queue as it is.
func (a *app) saidQueue(c *cli.Context, q *dts.Queue) error {
	if c.Bool("json") {
		return a.printJSON(q)
	}
	a.printQueue(q)
	return nil
}

func (a *app) printQueue(q *dts.Queue) {
	a.printf("%s\n", a.bold(clean(q.Name)))
	var list []fact
	if q.Paused {
		list = append(list, fact{"Paused", strings.TrimSuffix("since "+clock(q.PausedAt, a.loc)+": "+clean(q.PauseNote), ": ")})
	}
	waiting := waitingText(q.Waiting)
	if q.Waiting > 0 {
		waiting += ", the oldest for " + oldestText(q)
	}
	list = append(list, fact{"Waiting", waiting}, fact{"Running", strconv.FormatInt(q.Running, 10)})
	if q.Suggested > 0 {
		list = append(list, fact{"Suggested", strconv.Itoa(q.Suggested) + " at once keep up with what came in lately"})
	}
	if q.Concurrency > 0 {
		list = append(list, fact{"At once", strconv.Itoa(q.Concurrency) + ", on all servers together"})
	}
	list = append(list, fact{"Rate", rateText(q)})
	if r := q.Retry; r != nil {
		list = append(list, fact{"Retries", retryText(*r)})
	}
	if r := q.Retention; r != nil {
		list = append(list, fact{"Keeps", keepText(*r)})
	}
	a.facts(list)
}

// retryText says how often and when what is created in a queue is tried again.
func retryText(r dts.Retry) string {
	if r.MaxAttempts <= 1 {
		return "none"
	}
	ms := func(n int64) string { return span(time.Duration(n) * time.Millisecond) }
	text := count(r.MaxAttempts, "attempt") + ", "
	switch r.Backoff {
	case dts.List:
		waits := make([]string, len(r.DelaysMS))
		for i, n := range r.DelaysMS {
			waits[i] = ms(n)
		}
		text += "after " + strings.Join(waits, ", ")
	case dts.Fixed:
		text += ms(r.BaseDelayMS) + " apart"
	default:
		text += ms(r.BaseDelayMS) + " to " + ms(r.MaxDelayMS) + " apart, doubling"
	}
	if on := retryOnFact(r.On); on != "" {
		text += ", " + on
	}
	return text
}

func (a *app) queueSet(c *cli.Context) error {
	name, err := oneArg(c, "NAME")
	if err != nil {
		return err
	}
	given := false
	for _, flag := range []string{"concurrency", "rate", "burst", "retries", "backoff", "default-retry", "keep", "keep-rows", "keep-size"} {
		given = given || c.IsSet(flag)
	}
	if !given {
		return usagef("dts queue set needs a setting, such as --concurrency 4; see dts queue set --help")
	}
	return a.withServer(c, func(l *link) error {
		old, err := l.Queue(c.Context, name)
		switch {
		case dts.CodeOf(err) == dts.ErrNotFound:
			old = &dts.Queue{}
		case err != nil:
			return err
		}
		q, err := queueRequest(c, old)
		if err != nil {
			return err
		}
		now, err := l.PutQueue(c.Context, name, *q)
		if err != nil {
			return err
		}
		return a.saidQueue(c, now)
	})
}

// queueRequest changes the settings of a queue as the flags say.
func queueRequest(c *cli.Context, old *dts.Queue) (*api.QueueRequest, error) {
	q := &api.QueueRequest{Concurrency: old.Concurrency, Rate: old.Rate, PeriodSeconds: api.Interval(old.PeriodSeconds), Burst: old.Burst, Retry: old.Retry, Retention: old.Retention}
	if c.IsSet("concurrency") {
		q.Concurrency = c.Int("concurrency")
	}
	if c.IsSet("rate") {
		n, period, err := parseRate(c.String("rate"))
		if err != nil {
			return nil, err
		}
		if q.Rate, q.PeriodSeconds = n, api.Interval(period.Seconds()); n == 0 {
			q.Burst = 0
		}
	}
	if c.IsSet("burst") {
		q.Burst = c.Int("burst")
	}
	switch {
	case c.Bool("default-retry"):
		q.Retry = nil
	case c.IsSet("retries") || c.IsSet("backoff"):
		r, err := retry(c, dts.Command)
		if err != nil {
			return nil, err
		}
		if q.Retry != nil { // what is not said stays
			if !c.IsSet("retries") {
				r.MaxAttempts = q.Retry.MaxAttempts
			}
			if !c.IsSet("backoff") {
				attempts := r.MaxAttempts
				r = *q.Retry
				r.MaxAttempts = attempts
			}
			r.On, r.Jitter = q.Retry.On, q.Retry.Jitter
		}
		q.Retry = &r
	}
	var keeps dts.Retention
	if q.Retention != nil {
		keeps = *q.Retention
	}
	if err := keepFlags(c, &keeps); err != nil {
		return nil, err
	}
	if q.Retention = &keeps; keeps == (dts.Retention{}) {
		q.Retention = nil
	}
	return q, nil
}

// parseRate reads N/PERIOD; "none" or 0 is no limit.
func parseRate(text string) (n int, period time.Duration, err error) {
	if text == "none" || text == "0" {
		return 0, 0, nil
	}
	many, per, ok := strings.Cut(text, "/")
	if n, err = strconv.Atoi(strings.TrimSpace(many)); !ok || err != nil || n < 1 {
		return 0, 0, usagef("--rate: %q is not a rate; write it like 10/s, 100/m or 50/15m", clip(clean(text), 40))
	}
	per = strings.TrimSpace(per)
	if len(per) == 1 && strings.Contains("smhd", per) {
		per = "1" + per
	}
	if period, err = parseSpan("--rate", per, time.Second); err != nil {
		return 0, 0, err
	}
	return n, period, nil
}

func (a *app) queuePause(c *cli.Context) error {
	return a.changeQueue(c, func(l *link, name string) (*dts.Queue, string, error) {
		q, err := l.PauseQueue(c.Context, name, c.String("note"))
		return q, "Nothing of the queue %s starts until: dts queue resume %[1]s\n", err
	})
}

func (a *app) queueResume(c *cli.Context) error {
	return a.changeQueue(c, func(l *link, name string) (*dts.Queue, string, error) {
		q, err := l.ResumeQueue(c.Context, name)
		return q, "The queue %s goes on.\n", err
	})
}

// changeQueue does something to a queue and says so.
func (a *app) changeQueue(c *cli.Context, change func(l *link, name string) (*dts.Queue, string, error)) error {
	name, err := oneArg(c, "NAME")
	if err != nil {
		return err
	}
	return a.withServer(c, func(l *link) error {
		q, said, err := change(l, name)
		if err != nil {
			return err
		}
		if c.Bool("json") {
			return a.printJSON(q)
		}
		a.printf("%s", fmt.Sprintf(said, clean(q.Name)))
		return nil
	})
}

func (a *app) queueRemove(c *cli.Context) error {
	name, err := oneArg(c, "NAME")
	if err != nil {
		return err
	}
	return a.withServer(c, func(l *link) error {
		if _, err := l.DeleteQueue(c.Context, name); err != nil {
			return err
		}
		a.printf("The queue %s has no settings any more.\n", clean(name))
		return nil
	})
}
