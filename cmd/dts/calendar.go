package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fatih/color"
	"github.com/urfave/cli/v2"

	"dts"
	"dts/web/api"
)

// How many windows of a calendar dts calendar next shows at most, and dts calendar show.
const (
	maxWindows   = 1000
	shownWindows = 20
)

func (a *app) calendarCommand() *cli.Command {
	return &cli.Command{
		Name: "calendar", Usage: "keep calendars: days and times when tasks run, or do not", Category: "Time",
		Description: `A recurring task names calendars with --exclude-calendar and --require-calendar of dts add. When a
calendar changes, what is planned changes with it.`,
		Action: func(c *cli.Context) error {
			return usagef("dts calendar needs to know what: ls, show, add, rm or next; see dts calendar --help")
		},
		Subcommands: []*cli.Command{
			{Name: "ls", Usage: "list the calendars", Flags: withConnection(jsonFlag()), Action: a.calendarList},
			{Name: "show", Usage: "show a calendar and its windows of the coming year", ArgsUsage: "NAME",
				Flags: withConnection(jsonFlag()), Action: a.calendarShow},
			a.calendarAddCommand(),
			{Name: "rm", Usage: "remove calendars that no recurring task and no blackout uses", ArgsUsage: "NAME…",
				Flags: withConnection(), Action: a.calendarRemove},
			{Name: "next", Usage: "say when a calendar is open next", ArgsUsage: "NAME", Flags: withConnection(
				&cli.IntFlag{Name: "count", Aliases: []string{"n"}, Value: 5, DefaultText: "5", Usage: "`N` windows"},
				jsonFlag(),
			), Action: a.calendarNext},
		},
	}
}

func (a *app) calendarList(c *cli.Context) error {
	if err := noArgs(c); err != nil {
		return err
	}
	return a.withServer(c, func(l *link) error {
		list, err := l.Calendars(c.Context)
		if err != nil {
			return err
		}
		if c.Bool("json") {
			return a.printJSON(append([]*dts.Calendar{}, list...))
		}
		if len(list) == 0 {
			a.printf("There is no calendar yet. Add one with: dts calendar add holidays --holidays de\n")
			return nil
		}
		rows := make([][]string, len(list))
		for i, x := range list {
			rows[i] = []string{clean(x.Name), strings.Join(calendarWords(x), "; "), clean(x.Description)}
		}
		a.table([]string{"CALENDAR", "HOLDS", "DESCRIPTION"}, rows, 2)
		return nil
	})
}

// calendarWords says what a calendar holds, in few words.
func calendarWords(x *dts.Calendar) []string {
	var list []string
	if h := x.Holidays; h != nil {
		text := "holidays of " + placeOf(h)
		if n := len(h.Add); n > 0 {
			text += fmt.Sprintf(", %d more", n)
		}
		if n := len(h.Remove); n > 0 {
			text += fmt.Sprintf(", without %d", n)
		}
		list = append(list, text)
	}
	if len(x.Days) == 1 {
		list = append(list, clean(x.Days[0]))
	} else if len(x.Days) > 0 {
		list = append(list, count(len(x.Days), "day"))
	}
	if len(x.Weekdays) > 0 {
		list = append(list, "every "+clean(strings.Join(x.Weekdays, ", ")))
	}
	if len(x.Windows) == 1 && x.Windows[0].Cron != "" {
		list = append(list, windowWords(x.Windows[0], time.UTC))
	} else if len(x.Windows) > 0 {
		list = append(list, count(len(x.Windows), "window"))
	}
	if x.ICS != "" || len(list) == 0 { // a list comes without the files
		list = append(list, "an .ics file")
	}
	return list
}

// placeOf writes a country and its region as ISO 3166 does.
func placeOf(h *dts.Holidays) string {
	place := strings.ToUpper(h.Country)
	if h.Region != "" {
		place += "-" + strings.ToUpper(h.Region)
	}
	return clean(place)
}

func (a *app) calendarShow(c *cli.Context) error {
	name, err := oneArg(c, "NAME")
	if err != nil {
		return err
	}
	return a.withServer(c, func(l *link) error {
		x, err := l.Calendar(c.Context, name)
		if err != nil {
			return err
		}
		now := a.now()
		windows, err := l.CalendarWindows(c.Context, name, now, now.AddDate(1, 0, 0), a.zone)
		if err != nil {
			return err
		}
		if c.Bool("json") {
			return a.printJSON(struct {
				Calendar *dts.Calendar        `json:"calendar"`
				Windows  []api.CalendarWindow `json:"windows"`
			}{x, append([]api.CalendarWindow{}, windows...)})
		}
		a.printCalendar(x)
		shown := min(len(windows), shownWindows)
		a.printWindows(windows[:shown], "in the coming year")
		if more := len(windows) - shown; more > 0 {
			a.printf("%s\n", a.dim(fmt.Sprintf("And %d more in the coming year; dts calendar next -n %d %s shows them.", more, min(len(windows), maxWindows), words([]string{clean(x.Name)}))))
		}
		return nil
	})
}

func (a *app) printCalendar(x *dts.Calendar) {
	a.printf("%s\n", a.bold(clean(x.Name)))
	list := []fact{{"About", clean(x.Description)}}
	if h := x.Holidays; h != nil {
		list = append(list, fact{"Holidays", placeOf(h)}, fact{"Also", wrapWords(h.Add)}, fact{"But not", wrapWords(h.Remove)})
	}
	list = append(list, fact{"Days", wrapWords(x.Days)}, fact{"Every", clean(strings.Join(x.Weekdays, ", "))})
	zone := x.TimeZone
	if zone == "" {
		zone = "UTC"
	}
	loc := a.zoneNamed(zone)
	var windows []string
	for _, w := range x.Windows {
		windows = append(windows, windowWords(w, loc))
	}
	list = append(list, fact{"Windows", strings.Join(windows, "\n")})
	if x.ICS != "" {
		events := strings.Count(strings.ToUpper(x.ICS), "BEGIN:VEVENT")
		list = append(list, fact{".ics file", count(events, "event") + ", " + size(int64(len(x.ICS)))})
	}
	if x.ICS != "" || len(x.Windows) > 0 {
		list = append(list, fact{"Time zone", clean(zone)})
	}
	if len(x.Weekend) > 0 {
		list = append(list, fact{"Weekend", clean(strings.Join(x.Weekend, ", "))})
	}
	list = append(list, fact{"Added", clock(x.CreatedAt, a.loc)})
	if x.UpdatedAt.After(x.CreatedAt) {
		list = append(list, fact{"Changed", clock(x.UpdatedAt, a.loc)})
	}
	a.facts(list)
}

// windowWords says when a window is open.
func windowWords(w dts.Window, loc *time.Location) string {
	if w.Cron == "" {
		return clock(w.Start, loc) + " to " + clock(w.End, loc)
	}
	s := dts.Schedule{Cron: w.Cron}
	return scheduleWords(&s) + ", for " + span(secondsOf(w.DurationSeconds))
}

// wrapWords writes a list with at most four words in a line.
func wrapWords(list []string) string {
	var lines []string
	for part := range slices.Chunk(list, 4) {
		lines = append(lines, clean(strings.Join(part, ", ")))
	}
	return strings.Join(lines, ",\n")
}

func (a *app) calendarRemove(c *cli.Context) error {
	if !c.Args().Present() {
		return usagef("dts calendar rm needs a NAME")
	}
	return a.withServer(c, func(l *link) error {
		for _, name := range c.Args().Slice() {
			if _, err := l.DeleteCalendar(c.Context, name); err != nil {
				return err
			}
			a.printf("Removed the calendar %s\n", a.bold(clean(name)))
		}
		return nil
	})
}

func (a *app) calendarNext(c *cli.Context) error {
	name, err := oneArg(c, "NAME")
	if err != nil {
		return err
	}
	n := c.Int("count")
	if n < 1 || n > maxWindows {
		return usagef("--count: is %d; use 1 to %d", n, maxWindows)
	}
	return a.withServer(c, func(l *link) error {
		list, err := a.nextWindows(c.Context, l, name, n)
		if err != nil {
			return err
		}
		if c.Bool("json") {
			return a.printJSON(append([]api.CalendarWindow{}, list...))
		}
		a.printWindows(list, "in the next ten years")
		return nil
	})
}

// nextWindows returns the next n windows of a calendar, the one that is open first. It looks ten years ahead, a year at a
// time, since that is what the server tells at once.
func (a *app) nextWindows(ctx context.Context, l *link, name string, n int) ([]api.CalendarWindow, error) {
	var list []api.CalendarWindow
	for year, now := 0, a.now(); year < 10 && len(list) <= n; year++ {
		more, err := l.CalendarWindows(ctx, name, now.AddDate(year, 0, 0), now.AddDate(year+1, 0, 0), a.zone)
		if err != nil {
			return nil, err
		}
		// A window that is open when a year ends comes in two parts, or twice.
		if last := len(list) - 1; last >= 0 && len(more) > 0 && more[0].Name == list[last].Name && !more[0].Start.After(list[last].End) {
			list[last].End = more[0].End
			more = more[1:]
		}
		list = append(list, more...)
	}
	return list[:min(n, len(list))], nil
}

func (a *app) printWindows(list []api.CalendarWindow, when string) {
	if len(list) == 0 {
		a.printf("It has no window %s.\n", when)
		return
	}
	var rows [][]string
	now := a.now()
	for _, w := range list {
		from := relative(w.Start, now)
		if !w.Start.After(now) {
			from = a.paint("now", color.FgGreen)
		}
		rows = append(rows, []string{from, w.Start.In(a.loc).Format("Mon 2006-01-02 15:04"), w.End.In(a.loc).Format("Mon 2006-01-02 15:04"), clean(w.Name)})
	}
	a.table([]string{"BEGINS", "FROM", "TO", "WHAT"}, rows, 3)
}

// zoneNamed is the zone of a name that the server has checked, else the one in which times are shown.
func (a *app) zoneNamed(name string) *time.Location {
	if loc, err := time.LoadLocation(name); err == nil {
		return loc
	}
	return a.loc
}

// secondsOf makes a duration of a number of seconds.
func secondsOf(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
