package main

import (
	"io"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"dts"
	"dts/sched/cron"
	"dts/web/api"
)

func (a *app) calendarAddCommand() *cli.Command {
	const days, times, other = "Days", "Times", "More"
	return &cli.Command{
		Name: "add", Usage: "add a calendar, or replace it", ArgsUsage: "NAME", Description: `A calendar that is there already is replaced, and what uses it is planned anew.

Days are those of the zone of the recurring task that uses the calendar. Windows have a zone of their own.

Examples:
   dts calendar add holidays --holidays de-by --remove-day 08-15 --add-day 2026-12-24
   dts calendar add office-hours --window "0 9 * * mon-fri for 8h" --tz Europe/Berlin
   dts calendar add freeze --day 2026-12-20/2027-01-06 --description "nothing is released"
   dts calendar add on-call --ics - < on-call.ics`,
		Flags: withConnection(
			&cli.StringSliceFlag{Name: "day", Category: days, Usage: "the `DAY` 2026-12-25, 12-25 of every year, or 2026-12-24/2027-01-02 with both ends; can be repeated"},
			&cli.StringSliceFlag{Name: "weekday", Category: days, Usage: "the `DAY` of every week, such as sat; can be repeated"},
			&cli.StringFlag{Name: "holidays", Category: days, Usage: "the public holidays of a `COUNTRY` such as de, or of a region such as de-by"},
			&cli.StringSliceFlag{Name: "add-day", Category: days, Usage: "with --holidays: a `DAY` more; can be repeated"},
			&cli.StringSliceFlag{Name: "remove-day", Category: days, Usage: "with --holidays: a `DAY` that is none; can be repeated"},

			&cli.StringSliceFlag{Name: "window", Category: times, Usage: "from `START/END`, as in \"2026-03-01 08:00/2026-03-01 12:00\", or by a cron expression, \"0 9 * * mon-fri for 8h\"; can be repeated"},
			&cli.StringFlag{Name: "ics", Category: times, Usage: "the events of an iCalendar `FILE`, or - for standard input; whole-day events are days"},
			&cli.StringFlag{Name: "tz", Category: times, Usage: "IANA `ZONE` of windows, and of the file's local times; default: this machine's"},

			&cli.StringSliceFlag{Name: "weekend", Category: other, Usage: "a `DAY` of the week that is never a business day, for --shift of dts add; can be repeated; default: sat and sun"},
			&cli.StringFlag{Name: "description", Category: other, Usage: "a `TEXT` for people"},
			jsonFlag(),
		),
		Action: a.calendarAdd,
	}
}

func (a *app) calendarAdd(c *cli.Context) error {
	name, err := oneArg(c, "NAME")
	if err != nil {
		return err
	}
	x, err := a.calendarOf(c, name)
	if err != nil {
		return err
	}
	check := *x
	if err := check.Normalize(); err != nil {
		return err
	}
	return a.withServer(c, func(l *link) error {
		made, err := l.PutCalendar(c.Context, name, calendarRequest(x))
		if err != nil {
			return err
		}
		if c.Bool("json") {
			return a.printJSON(made.Item)
		}
		verb := "Added the calendar"
		if made.Existed {
			verb = "Replaced the calendar"
		}
		a.printf("%s %s\n", verb, a.bold(clean(made.Item.Name)))
		next, err := a.nextWindows(c.Context, l, name, 3)
		if err != nil {
			return err
		}
		a.printWindows(next, "in the next ten years")
		return nil
	})
}

// calendarOf reads the flags.
func (a *app) calendarOf(c *cli.Context, name string) (*dts.Calendar, error) {
	x := &dts.Calendar{
		Name: name, Description: c.String("description"),
		Days: c.StringSlice("day"), Weekdays: weekdayWords(c.StringSlice("weekday")), Weekend: weekdayWords(c.StringSlice("weekend")),
	}
	if c.IsSet("holidays") {
		country, region, _ := strings.Cut(c.String("holidays"), "-")
		x.Holidays = &dts.Holidays{Country: country, Region: region, Add: c.StringSlice("add-day"), Remove: c.StringSlice("remove-day")}
	} else if c.IsSet("add-day") || c.IsSet("remove-day") {
		return nil, usagef("--add-day and --remove-day: change --holidays, and there is none; for a day alone use --day")
	}
	zone, err := a.zoneFor(c.String("tz"))
	if err != nil {
		return nil, err
	}
	for _, text := range c.StringSlice("window") {
		w, err := parseWindow(text, zone.loc, a.now())
		if err != nil {
			return nil, err
		}
		x.Windows = append(x.Windows, w)
	}
	if c.IsSet("ics") {
		if x.ICS, err = a.icsText(c.String("ics")); err != nil {
			return nil, err
		}
	}
	switch {
	case len(x.Windows) > 0 || x.ICS != "":
		x.TimeZone = zone.name
	case c.IsSet("tz"):
		return nil, usagef("--tz: is for --window and --ics; days are those of the zone of the task that uses the calendar")
	}
	if len(x.Days) == 0 && len(x.Weekdays) == 0 && len(x.Windows) == 0 && x.ICS == "" && x.Holidays == nil {
		return nil, usagef("the calendar %s would be empty; give --day, --weekday, --holidays, --window or --ics", clip(clean(name), 64))
	}
	return x, nil
}

// calendarRequest is what to send for a calendar.
func calendarRequest(x *dts.Calendar) api.CalendarRequest {
	q := api.CalendarRequest{
		Name: x.Name, Description: x.Description, TimeZone: x.TimeZone, Days: x.Days, Weekdays: x.Weekdays,
		ICS: x.ICS, Holidays: x.Holidays, Weekend: x.Weekend,
	}
	for _, w := range x.Windows {
		q.Windows = append(q.Windows, windowRequest(w))
	}
	return q
}

func windowRequest(w dts.Window) api.WindowRequest {
	q := api.WindowRequest{Cron: w.Cron, DurationSeconds: api.Interval(w.DurationSeconds)}
	if w.Cron == "" && !w.Start.IsZero() {
		q.StartTime, q.EndTime = api.At(w.Start), api.At(w.End)
	}
	return q
}

// weekdayWords takes lists apart and makes the names of days what the server calls them: sat, Saturday and SAT are
// one. What is no day stays, for the server to refuse by its field.
func weekdayWords(given []string) []string {
	var list []string
	for _, g := range given {
		for word := range strings.SplitSeq(g, ",") {
			word = strings.ToUpper(strings.TrimSpace(word))
			for day := time.Sunday; day <= time.Saturday; day++ {
				if word == strings.ToUpper(day.String()) {
					word = word[:3]
				}
			}
			list = append(list, word)
		}
	}
	return list
}

// parseWindow reads START/END, or a cron expression, the word for, and a duration.
func parseWindow(text string, loc *time.Location, now time.Time) (w dts.Window, err error) {
	if i := strings.LastIndex(text, " for "); i > 0 {
		w.Cron = strings.TrimSpace(text[:i])
		if _, err := cron.Parse(w.Cron, cron.Options{}); err != nil {
			return w, usagef("--window: %s", err)
		}
		d, err := parseSpan("--window", strings.TrimSpace(text[i+len(" for "):]), time.Second)
		w.DurationSeconds = d.Seconds()
		return w, err
	}
	from, to, ok := strings.Cut(text, "/")
	if !ok {
		return w, usagef("--window: %q is neither START/END nor EXPRESSION for DURATION", clip(clean(text), 60))
	}
	if w.Start, _, err = parseWhen(from, loc, now); err != nil {
		return w, usagef("--window: its start, %s", err)
	}
	if w.End, _, err = parseWhen(to, loc, now); err != nil {
		return w, usagef("--window: its end, %s", err)
	}
	if !w.End.After(w.Start) {
		return w, usagef("--window: it ends at %s, which is not after its start", clock(w.End, loc))
	}
	return w, nil
}

// icsText reads an iCalendar file, or standard input for "-".
func (a *app) icsText(path string) (string, error) {
	in := a.in
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return "", usagef("--ics: %s", err)
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, dts.MaxICS+1))
	switch {
	case err != nil:
		return "", failf("--ics: %s", err)
	case len(b) > dts.MaxICS:
		return "", usagef("--ics: is longer than %d bytes", dts.MaxICS)
	case len(b) == 0:
		return "", usagef("--ics: the file is empty")
	}
	return string(b), nil
}
