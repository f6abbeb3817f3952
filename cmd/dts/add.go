package main

import (
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"dts"
	"dts/web/api"
)

func (a *app) addCommand() *cli.Command {
	const when, what, how = "When", "What", "How"
	flags := []cli.Flag{
		&cli.StringSliceFlag{Name: "cron", Category: when, Usage: "at the instants of the cron expression `E`: 5 fields, 6 with seconds first, @daily and the like, @reboot; can be repeated"},
		&cli.StringFlag{Name: "every", Category: when, Usage: "at a fixed interval, a `DURATION` such as 90s, 1h or 2d"},
		&cli.StringFlag{Name: "rrule", Category: when, Usage: "by the calendar rule `R` of RFC 5545, such as \"FREQ=MONTHLY;BYDAY=2TU;BYHOUR=9;BYMINUTE=0\", from --start on"},
		&cli.StringFlag{Name: "at", Category: when, Usage: "once, at `TIME`: 2026-03-01T08:00:00Z, \"2026-03-01 08:00\", 15:04 or \"tomorrow 09:00\""},
		&cli.StringFlag{Name: "in", Category: when, Usage: "once, a `DURATION` from now"},
		&cli.StringFlag{Name: "tz", Category: when, Usage: "IANA `ZONE` of --cron, --rrule and of times without an offset; default: this machine's"},

		&cli.StringFlag{Name: "shell", Category: what, Usage: "a `LINE` for /bin/sh, in place of COMMAND"},
		&cli.StringFlag{Name: "dir", Category: what, Usage: "the command's directory `D`; default: the one you are in"},
		&cli.StringSliceFlag{Name: "env", Category: what, Usage: "an environment variable, `K=V`; can be repeated"},
		&cli.StringFlag{Name: "user", Category: what, Usage: "run as the user `NAME`; the server must be root"},
		&cli.StringFlag{Name: "stdin", Category: what, Usage: "the command's standard input: a `TEXT`, @FILE, or - for yours"},
		&cli.StringFlag{Name: "url", Category: what, Usage: "call `U`, in place of a command"},
		&cli.StringFlag{Name: "method", Category: what, Usage: "with the `METHOD`; default: POST"},
		&cli.StringSliceFlag{Name: "header", Category: what, Usage: "and a header, `\"NAME: VALUE\"`; can be repeated"},
		&cli.StringFlag{Name: "body", Category: what, Usage: "and a body: a `TEXT`, @FILE, or - for standard input"},

		&cli.StringFlag{Name: "backup", Category: what, Usage: "copy the database to a new file in `DIR`, in place of a command"},
		&cli.IntFlag{Name: "keep", Category: what, DefaultText: "7", Usage: "and of a recurring task keep its newest `N` copies"},
		&cli.IntFlag{Name: "keep-days", Category: what, DefaultText: "no limit", Usage: "and remove its copies that are older than `N` days, but never the newest"},
		&cli.BoolFlag{Name: "ping", Category: what, Usage: "run nothing: a job elsewhere reports to the ping URL that is printed, and a run of which nothing is heard fails"},
		&cli.StringFlag{Name: "grace", Category: what, Usage: "with --ping: it must report within a `DURATION` after its instant; default: 5m"},
		&cli.StringFlag{Name: "max-runtime", Category: what, Usage: "with --ping: where it reports its start, it must end within a `DURATION`, also after the grace; default: by the end of the grace"},

		&cli.StringFlag{Name: "name", Category: how, Usage: "a `NAME` to call it by; default: the program or the host"},
		&cli.StringFlag{Name: "description", Category: how, Usage: "a `TEXT` for people"},
		&cli.StringSliceFlag{Name: "label", Category: how, Usage: "a label `K=V` to filter by; can be repeated"},
		&cli.StringFlag{Name: "queue", Category: how, Usage: "the queue `NAME`; default: default"},
		&cli.StringFlag{Name: "priority", Category: how, Usage: "`P` is high, medium or low"},
		&cli.StringFlag{Name: "timeout", Category: how, Usage: "a run may take at most a `DURATION`; default: 5m"},
		&cli.BoolFlag{Name: "at-most-once", Category: how, Usage: "never run it twice, even if a crash leaves it undone"},
		&cli.StringFlag{Name: "expires", Category: how, Usage: "do not start a one-time task after `TIME`, or a duration after it was due"},
		&cli.StringFlag{Name: "sla", Category: how, Usage: "it should start within a `DURATION`; default: 30s"},
		&cli.StringFlag{Name: "idempotency-key", Category: how, Usage: "adding it again with the same `KEY` adds nothing"},
	}
	for _, more := range [][]cli.Flag{retryFlags(how), concurrencyFlags(how), resourceFlags(how), warningFlags(how), onceFlags()} {
		flags = append(flags, more...)
	}
	return &cli.Command{
		Name: "add", Usage: "add a task or a recurring task", Category: "Tasks",
		UsageText: "dts add [--cron E | --every D | --rrule R | --at T | --in D] [options] (--url U | --shell LINE | --backup DIR | --ping | -- COMMAND…)",
		Description: `With --cron, --every or --rrule it is a recurring task; with --at, --in or neither it runs once. Without a
server on this machine it is written to the data directory, and nothing fires until dts serve runs.

Examples:
   dts add --cron "*/5 * * * *" -- ./backup.sh
   dts add --name report --cron "30 8 * * mon-fri" --tz Europe/Berlin --shell 'make report | mail -s Report boss'
   dts add --cron "0 9 * * mon-fri" --cron "0 11 * * sat" --exclude-calendar holidays --shift next -- ./open
   dts add --in 10m --url https://example.com/hook --header "X-Key: 1" --body '{"n": 1}'
   dts add --at "tomorrow 09:00" -- /usr/bin/notify-send Meeting
   dts add --cron "30 3 * * *" --backup /backup --keep 7
   dts add --name nightly-backup --cron "0 3 * * *" --ping --grace 30m
   dts add --name report --after load --dedupe report:replace -- ./report`,
		Flags:  withConnection(append(append(flags, recurringFlags()...), jsonFlag())...),
		Action: a.add,
	}
}

// addition is what `dts add` was asked to add: one of the two requests.
type addition struct {
	task      *api.TaskRequest
	recurring *api.RecurringRequest
	zone      zone
	zoneSaid  bool // the zone decided something
	named     bool // by the user
	notes     []string
}

func (a *app) add(c *cli.Context) error {
	if len(a.loose) > 0 {
		return usagef("write -- before the command: dts add … -- %s", words(append(a.loose, c.Args().Slice()[len(a.loose):]...)))
	}
	l, err := a.connect(c)
	if err != nil {
		return err
	}
	defer l.Close()
	n, err := a.addition(c, l.remote())
	if err != nil {
		return err
	}
	if err := n.check(a.now()); err != nil {
		return err
	}
	w, err := a.adder(c.Context, l)
	if err != nil {
		return err
	}
	defer w.Close()
	var made thing
	var existed bool
	if n.task != nil {
		if n.task.DependsOn, err = w.dependsOn(c.Context, c.StringSlice("after")); err != nil {
			return err
		}
		made.task, existed, err = w.task(c.Context, *n.task)
	} else {
		if !n.named && n.recurring.IdempotencyKey == "" {
			if n.recurring.Name, err = w.freeName(c.Context, n.recurring.Name); err != nil {
				return err
			}
		}
		made.recurring, existed, err = w.recurring(c.Context, *n.recurring)
	}
	if err != nil {
		return err
	}
	if r := made.recurring; r != nil && r.TargetType == dts.Ping {
		if made.pingURL, err = w.pingURL(c.Context, r.ID); err != nil {
			return fmt.Errorf("it was added, but its ping URL could not be read: %w", err)
		}
	}
	for _, note := range n.notes {
		a.notef("%s", note)
	}
	if c.Bool("json") {
		if made.task != nil {
			err = a.printJSON(made.task)
		} else {
			err = a.printJSON(struct {
				*dts.RecurringTask
				PingURL string `json:"ping_url,omitempty"`
			}{made.recurring, made.pingURL})
		}
	} else {
		var next []dts.PreviewInstant
		if made.recurring != nil {
			if next, err = w.next(c.Context, made.recurring, 3); err != nil {
				return fmt.Errorf("it was added, but when it runs cannot be told: %w", err)
			}
		}
		a.printAdded(made, n, existed, next)
	}
	if w.offline() {
		a.notef("no server runs; this is saved in %s, and nothing fires until: dts serve", l.dataDir)
	}
	return err
}

// addition reads the flags.
func (a *app) addition(c *cli.Context, remote bool) (*addition, error) {
	when := ""
	for _, f := range []string{"cron", "every", "rrule", "at", "in"} {
		if !c.IsSet(f) {
			continue
		}
		if when != "" {
			return nil, usagef("--%s and --%s are both given; keep one", when, f)
		}
		when = f
	}
	n := &addition{named: c.IsSet("name")}
	spec, err := a.spec(c, remote, n)
	if err != nil {
		return nil, err
	}
	if n.zone, err = a.zoneFor(c.String("tz")); err != nil {
		return nil, err
	}
	if when == "cron" || when == "every" || when == "rrule" {
		for _, x := range onlyOnce {
			if c.IsSet(x.flag) {
				return nil, usagef("--%s: is for a task that runs once%s", x.flag, x.instead)
			}
		}
		n.recurring, err = a.recurringRequest(c, spec, n)
	} else {
		for _, f := range onlyRecurring() {
			if c.IsSet(f) {
				return nil, usagef("--%s: is for a recurring task, with --cron, --every or --rrule", f)
			}
		}
		n.task, err = a.taskRequest(c, spec, n)
	}
	if err == nil && c.IsSet("tz") && !n.zoneSaid {
		err = usagef("--tz: nothing here depends on a time zone; leave it out")
	}
	return n, err
}

func (a *app) taskRequest(c *cli.Context, spec dts.Spec, n *addition) (*api.TaskRequest, error) {
	q := &api.TaskRequest{Spec: spec, IdempotencyKey: c.String("idempotency-key")}
	due := a.now()
	if text := c.String("at"); c.IsSet("at") {
		at, local, err := parseWhen(text, n.zone.loc, a.now())
		if err != nil {
			return nil, usagef("--at: %s", err)
		}
		n.zoneSaid, due, q.RunAt = local, at, api.At(at)
	}
	if c.IsSet("in") {
		d, err := parseSpan("--in", c.String("in"), 0)
		if err != nil {
			return nil, err
		}
		due, q.Delay = due.Add(d), api.Delay(fmt.Sprint(d.Seconds()))
	}
	if text := c.String("expires"); c.IsSet("expires") {
		at, local, err := parseWhen(text, n.zone.loc, a.now())
		if err != nil {
			d, bad := parseSpan("--expires", text, time.Millisecond)
			if bad != nil {
				return nil, usagef("--expires: %s, or a duration such as 10m", err)
			}
			at = due.Add(d)
		}
		n.zoneSaid = n.zoneSaid || local
		q.ExpiresAt = api.At(at)
	}
	return q, once(c, q)
}
