package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"dts"
	"dts/sched/cron"
	"dts/web/api"
)

func (a *app) blackoutCommand() *cli.Command {
	return &cli.Command{
		Name: "blackout", Usage: "keep blackouts: times in which no task starts", Category: "Time",
		Description: "What runs when a blackout begins goes on.",
		Action: func(c *cli.Context) error {
			return usagef("dts blackout needs to know what: ls, add or rm; see dts blackout --help")
		},
		Subcommands: []*cli.Command{
			{Name: "ls", Usage: "list the blackouts", Flags: withConnection(jsonFlag()), Action: a.blackoutList},
			{Name: "add", Usage: "add a blackout", ArgsUsage: "NAME", Description: `Without --queue it is one of every queue.

Examples:
   dts blackout add upgrade --from "2026-03-01 22:00" --to "2026-03-02 02:00" --note "new database"
   dts blackout add now --for 30m
   dts blackout add backups --cron "0 3 * * *" --for 1h --queue reports --skip
   dts blackout add freeze --calendar freeze`,
				Flags: withConnection(
					&cli.StringFlag{Name: "from", Usage: "from `TIME`; default: now"},
					&cli.StringFlag{Name: "to", Usage: "until `TIME`"},
					&cli.StringFlag{Name: "cron", Usage: "beginning at each instant of the cron expression `E`, in place of --from"},
					&cli.StringFlag{Name: "for", Usage: "for a `DURATION`, in place of --to"},
					&cli.StringFlag{Name: "calendar", Usage: "the days and windows of the calendar `NAME`, in place of all of these"},
					&cli.StringFlag{Name: "tz", Usage: "IANA `ZONE` of --cron, of a calendar's days and of times without an offset; default: this machine's"},
					&cli.StringFlag{Name: "queue", Usage: "for the queue `NAME` only"},
					&cli.BoolFlag{Name: "wait", Usage: "tasks that come due wait for its end; so it is without --skip"},
					&cli.BoolFlag{Name: "skip", Usage: "tasks that come due do not run"},
					&cli.StringFlag{Name: "note", Usage: "a `TEXT` for those who wonder why"},
					jsonFlag(),
				), Action: a.blackoutAdd},
			{Name: "rm", Usage: "remove blackouts: what waits for them starts", ArgsUsage: "NAME|ID…", Flags: withConnection(), Action: a.blackoutRemove},
		},
	}
}

func (a *app) blackoutList(c *cli.Context) error {
	if err := noArgs(c); err != nil {
		return err
	}
	return a.withServer(c, func(l *link) error {
		list, err := l.Blackouts(c.Context)
		if err != nil {
			return err
		}
		if c.Bool("json") {
			return a.printJSON(append([]*dts.Blackout{}, list...))
		}
		if len(list) == 0 {
			a.printf("There is no blackout. Add one with: dts blackout add upgrade --for 1h\n")
			return nil
		}
		a.blackoutTable(list)
		return nil
	})
}

func (a *app) blackoutTable(list []*dts.Blackout) {
	names := map[string]int{}
	for _, b := range list {
		names[b.Name]++
	}
	rows := make([][]string, len(list))
	var byID []string // those that their name does not find
	for i, b := range list {
		if names[b.Name] > 1 {
			byID = append(byID, fmt.Sprintf("  %s  %s, %s", b.ID, clean(b.Name), a.blackoutWhen(b)))
		}
		rows[i] = []string{clean(b.Name), a.blackoutWhen(b), clean(cmp.Or(b.Queue, "every queue")), meanwhile(b), clean(b.Note)}
	}
	a.table([]string{"BLACKOUT", "WHEN", "QUEUE", "TASKS", "NOTE"}, rows, 4)
	if len(byID) > 0 {
		a.printf("%s\n%s\n", a.dim("These need their ids, because they share a name:"), strings.Join(byID, "\n"))
	}
}

// blackoutWhen says when a blackout is.
func (a *app) blackoutWhen(b *dts.Blackout) string {
	zone := ""
	if b.TimeZone != "" && b.TimeZone != "UTC" {
		zone = ", " + b.TimeZone
	}
	switch {
	case b.Calendar != "":
		return clean("calendar " + b.Calendar + zone)
	case b.Cron != "":
		return clean(windowWords(b.Window, a.loc) + zone)
	}
	const day, minute = "2006-01-02", "15:04"
	start, end := b.Start.In(a.loc), b.End.In(a.loc)
	text := start.Format(day+" "+minute) + " to "
	if start.Format(day) != end.Format(day) {
		text += end.Format(day) + " "
	}
	text += end.Format(minute)
	switch now := a.now(); {
	case !b.End.After(now):
		text += ", over"
	case !b.Start.After(now):
		text += ", open now"
	}
	return text
}

// meanwhile says what becomes of the tasks that come due.
func meanwhile(b *dts.Blackout) string {
	if b.Action == dts.BlackoutSkip {
		return "do not run"
	}
	return "wait"
}

func (a *app) blackoutAdd(c *cli.Context) error {
	name, err := oneArg(c, "NAME")
	if err != nil {
		return err
	}
	b, err := a.blackoutOf(c, name)
	if err != nil {
		return err
	}
	return a.withServer(c, func(l *link) error {
		made, err := l.CreateBlackout(c.Context, api.BlackoutRequest{
			Name: b.Name, Note: b.Note, Queue: b.Queue, Action: b.Action, WindowRequest: windowRequest(b.Window), Calendar: b.Calendar, TimeZone: b.TimeZone,
		})
		if err != nil {
			return err
		}
		if c.Bool("json") {
			return a.printJSON(made)
		}
		a.printf("Added the blackout %s\n", a.bold(clean(made.Name)))
		queue := "every queue"
		if made.Queue != "" {
			queue = made.Queue
		}
		a.facts([]fact{{"When", a.blackoutWhen(made)}, {"Queue", clean(queue)}, {"Tasks", meanwhile(made)}, {"Note", clean(made.Note)}, {"Id", made.ID}})
		return nil
	})
}

// blackoutOf reads the flags.
func (a *app) blackoutOf(c *cli.Context, name string) (*dts.Blackout, error) {
	b := &dts.Blackout{Name: name, Note: c.String("note"), Queue: c.String("queue"), Calendar: c.String("calendar"), Action: dts.BlackoutWait}
	if c.Bool("skip") {
		if c.Bool("wait") {
			return nil, usagef("--wait and --skip are both given; keep one")
		}
		b.Action = dts.BlackoutSkip
	}
	zone, err := a.zoneFor(c.String("tz"))
	if err != nil {
		return nil, err
	}
	for _, x := range [][2]string{{"calendar", "from"}, {"calendar", "to"}, {"calendar", "cron"}, {"calendar", "for"}, {"cron", "from"}, {"cron", "to"}, {"to", "for"}} {
		if c.IsSet(x[0]) && c.IsSet(x[1]) {
			return nil, usagef("--%s and --%s are both given; keep one", x[0], x[1])
		}
	}
	var length time.Duration
	if c.IsSet("for") {
		if length, err = parseSpan("--for", c.String("for"), time.Second); err != nil {
			return nil, err
		}
	}
	switch {
	case c.IsSet("calendar"):
		b.TimeZone = zone.name
		return b, nil
	case c.IsSet("cron"):
		b.Cron, b.DurationSeconds, b.TimeZone = c.String("cron"), length.Seconds(), zone.name
		if length == 0 {
			return nil, usagef("--cron: says when it begins; say with --for how long it lasts")
		}
		if _, err := cron.Parse(b.Cron, cron.Options{Location: zone.loc}); err != nil {
			return nil, usagef("--cron: %s", err)
		}
		return b, nil
	case !c.IsSet("to") && !c.IsSet("for"):
		return nil, usagef("a blackout needs an end: give --to or --for, or --cron with --for, or --calendar")
	}
	return b, a.blackoutTimes(c, b, zone.loc, length)
}

// blackoutTimes reads the beginning and the end of one that is once.
func (a *app) blackoutTimes(c *cli.Context, b *dts.Blackout, loc *time.Location, length time.Duration) error {
	var err error
	b.Start = a.now()
	if c.IsSet("from") {
		if b.Start, _, err = parseWhen(c.String("from"), loc, a.now()); err != nil {
			return usagef("--from: %s", err)
		}
	}
	if b.End = b.Start.Add(length); c.IsSet("to") {
		if b.End, _, err = parseWhen(c.String("to"), loc, b.Start); err != nil {
			return usagef("--to: %s", err)
		}
	}
	switch {
	case !b.End.After(b.Start):
		return usagef("--to: %s is not after --from, %s", clock(b.End, loc), clock(b.Start, loc))
	case !b.End.After(a.now()):
		return usagef("--to: %s is over; a blackout is for what comes", clock(b.End, loc))
	}
	return nil
}

func (a *app) blackoutRemove(c *cli.Context) error {
	if !c.Args().Present() {
		return usagef("dts blackout rm needs a NAME or ID")
	}
	return a.withServer(c, func(l *link) error {
		list, err := l.Blackouts(c.Context)
		if err != nil {
			return err
		}
		var gone []*dts.Blackout
		for _, ref := range c.Args().Slice() {
			b, err := blackoutCalled(list, ref)
			if err != nil {
				return err
			}
			gone = append(gone, b)
		}
		for _, b := range gone {
			if _, err := l.DeleteBlackout(c.Context, b.ID); err != nil {
				return err
			}
			a.printf("Removed the blackout %s\n", a.bold(clean(b.Name)))
		}
		return nil
	})
}

// blackoutCalled finds a blackout by its id or its name.
func blackoutCalled(list []*dts.Blackout, ref string) (*dts.Blackout, error) {
	var found *dts.Blackout
	for _, b := range list {
		switch {
		case b.ID == ref:
			return b, nil
		case b.Name == ref && found != nil:
			return nil, usagef("more than one blackout has the name %q; give its id, which dts blackout ls shows", clip(clean(ref), 60))
		case b.Name == ref:
			found = b
		}
	}
	if found == nil {
		return nil, failf("there is no blackout %q; dts blackout ls shows what there is", clip(clean(ref), 60))
	}
	return found, nil
}
