package ui

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dts"
	"dts/sched/cron"
)

// calendarForm is what was entered of a calendar, as text. Its file is beside it: a browser sends that only once.
type calendarForm struct {
	Name, Description, Zone string
	Days                    string // one a line
	Weekdays                []string
	Windows                 string // one a line
	DropICS                 string // the stored file goes
	Holidays                string // a country, or a country and a region: de, de-by
	Add, Remove             string // days, one a line
	Weekend                 []string
	Resend                  bool // a file was sent, and must be chosen again
}

// calendarInputs maps the field names of dts to the inputs of the form.
var calendarInputs = map[string]string{
	"name": "name", "description": "description", "time_zone": "zone", "days": "days", "weekdays": "weekdays",
	"windows": "windows", "ics": "ics", "holidays.country": "holidays", "holidays.region": "holidays",
	"holidays.add": "add", "holidays.remove": "remove", "weekend": "weekend", "holidays": "holidays",
}

var calendarLabels = map[string]string{
	"name": "The name", "description": "The description", "zone": "The time zone", "days": "The list",
	"weekdays": "The list", "windows": "The list", "ics": "The file", "holidays": "The country",
	"add": "The list", "remove": "The list", "weekend": "The list",
}

// mergeAs puts the fields of err beside the inputs that a form has for them. An entry of a list (days[3]) is named
// by its line. It reports whether err was about fields.
func (e formErrors) mergeAs(err error, inputs, labels map[string]string) bool {
	x, ok := errors.AsType[*dts.Error](err)
	if !ok || len(x.Fields) == 0 {
		return false
	}
	for _, field := range x.Fields {
		name, index, isList := strings.Cut(field.Field, "[")
		input, known := inputs[name]
		if !known {
			e.add("", sentence(field.Field, field.Message))
			continue
		}
		label := labels[input]
		if n, err := strconv.Atoi(strings.TrimRight(strings.SplitN(index, "]", 2)[0], "]")); isList && err == nil {
			label = "Line " + strconv.Itoa(n+1)
			e.add(input, label+": "+field.Message)
			continue
		}
		e.add(input, sentence(label, field.Message))
	}
	return true
}

// readCalendarForm reads the form and the file that came with it.
func readCalendarForm(r *http.Request) (f calendarForm, ics string, err error) {
	if err := r.ParseMultipartForm(dts.MaxICS); err != nil && !errors.Is(err, http.ErrNotMultipart) {
		return f, "", err
	}
	one := func(k string) string { return strings.TrimSpace(lines(r.PostForm.Get(k))) }
	f = calendarForm{
		Name: one("name"), Description: one("description"), Zone: one("zone"), Days: one("days"), Weekdays: r.PostForm["weekdays"],
		Windows: one("windows"), DropICS: one("drop_ics"), Holidays: one("holidays"),
		Add: one("add"), Remove: one("remove"), Weekend: r.PostForm["weekend"],
	}
	file, _, err := r.FormFile("ics")
	if errors.Is(err, http.ErrMissingFile) || errors.Is(err, http.ErrNotMultipart) {
		return f, "", nil
	}
	if err != nil {
		return f, "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, dts.MaxICS+1)) // one byte more is told as too long
	f.Resend = len(text) > 0
	return f, string(text), err
}

// calendar reads what was entered, but for the name and the file.
func (f calendarForm) calendar(e formErrors) dts.Calendar {
	c := dts.Calendar{Description: f.Description, TimeZone: f.Zone, Days: entries(f.Days), Weekdays: f.Weekdays, Weekend: f.Weekend}
	if slices.Equal(c.Weekend, []string{"SAT", "SUN"}) {
		c.Weekend = nil // the default
	}
	switch country, region, _ := strings.Cut(f.Holidays, "-"); {
	case country != "":
		c.Holidays = &dts.Holidays{Country: country, Region: region, Add: entries(f.Add), Remove: entries(f.Remove)}
	case f.Add != "" || f.Remove != "":
		e.add("holidays", "Choose a country, or leave the lists of days empty")
	}
	loc, err := cron.LoadLocation(f.Zone)
	if err != nil {
		e.add("zone", sentence("", err.Error()))
		return c
	}
	for i, line := range entries(f.Windows) {
		win, err := parseWindow(line, loc)
		if err != nil {
			e.add("windows", fmt.Sprintf("Entry %d: %s", i+1, err))
			break
		}
		c.Windows = append(c.Windows, win)
	}
	return c
}

// entries are the lines of a text that say something.
func entries(s string) []string {
	var list []string
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return list
}

// parseWindow reads a window as people write it: "2026-12-24 18:00 to 2026-12-27 06:00", or "0 22 * * fri for 8h".
func parseWindow(s string, loc *time.Location) (dts.Window, error) {
	if from, to, ok := strings.Cut(s, " to "); ok {
		var w dts.Window
		var okFrom, okTo bool
		w.Start, okFrom = parseWall(strings.TrimSpace(from), loc)
		w.End, okTo = parseWall(strings.TrimSpace(to), loc)
		switch {
		case !okFrom || !okTo:
			return w, fmt.Errorf("%q: both sides of “to” must be a date and time such as 2026-12-24 18:00", clip(s, 60))
		case !w.End.After(w.Start):
			return w, fmt.Errorf("%q ends before it begins", clip(s, 60))
		}
		return w, nil
	}
	i := strings.LastIndex(s, " for ")
	if i < 0 {
		return dts.Window{}, fmt.Errorf("%q: write 2026-12-24 18:00 to 2026-12-27 06:00, or 0 22 * * fri for 8h", clip(s, 60))
	}
	d, err := cron.ParseInterval(strings.TrimSpace(s[i+len(" for "):]))
	if err != nil {
		return dts.Window{}, fmt.Errorf("%q: %w", clip(s, 60), err)
	}
	expr := strings.TrimSpace(s[:i])
	if _, err := cron.Parse(expr, cron.Options{Location: loc}); err != nil {
		return dts.Window{}, err
	}
	return dts.Window{Cron: expr, DurationSeconds: d.Seconds()}, nil
}

// windowText writes a window as parseWindow reads it.
func windowText(w dts.Window, loc *time.Location) string {
	if w.Cron != "" {
		return w.Cron + " for " + intervalText(w.DurationSeconds)
	}
	return wallEntry(w.Start.In(loc)) + " to " + wallEntry(w.End.In(loc))
}

// wallEntry writes a time as one enters it.
func wallEntry(t time.Time) string {
	if t.Second() == 0 {
		return t.Format(wallForms[2])
	}
	return t.Format(wallForms[3])
}

// intervalText writes a length of time as one enters it: "8h", "1h30m0s".
func intervalText(sec float64) string {
	s := time.Duration(sec * float64(time.Second)).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// formOfCalendar is the form of a calendar that exists.
func formOfCalendar(c *dts.Calendar) calendarForm {
	f := calendarForm{Name: c.Name, Description: c.Description, Zone: c.TimeZone, Days: strings.Join(c.Days, "\n"),
		Weekdays: c.Weekdays, Weekend: c.Weekend}
	if h := c.Holidays; h != nil {
		f.Holidays, f.Add, f.Remove = strings.TrimSuffix(h.Country+"-"+h.Region, "-"), strings.Join(h.Add, "\n"), strings.Join(h.Remove, "\n")
	}
	loc, err := cron.LoadLocation(c.TimeZone)
	if err != nil {
		loc = time.UTC
	}
	var windows []string
	for _, w := range c.Windows {
		windows = append(windows, windowText(w, loc))
	}
	f.Windows = strings.Join(windows, "\n")
	return f
}

// weekdayChoice is a day of the week to choose.
type weekdayChoice struct {
	Key, Name string
	Chosen    bool
}

// WeekdayChoices are the days that the calendar may hold.
func (f calendarForm) WeekdayChoices() []weekdayChoice { return weekdayChoices(f.Weekdays) }

// WeekendChoices are the days that may be no business days; Saturday and Sunday if none is chosen.
func (f calendarForm) WeekendChoices() []weekdayChoice {
	if len(f.Weekend) == 0 {
		return weekdayChoices([]string{"SAT", "SUN"})
	}
	return weekdayChoices(f.Weekend)
}

func weekdayChoices(chosen []string) []weekdayChoice {
	var list []weekdayChoice
	for _, d := range weekdayNames {
		list = append(list, weekdayChoice{d.Key, d.Name, slices.ContainsFunc(chosen, func(s string) bool { return strings.EqualFold(s, d.Key) })})
	}
	return list
}

// MoreOpen reports whether the parts of the form that are hidden at first have something in them.
func (f calendarForm) MoreOpen() bool {
	return f.Windows != "" || len(f.Weekend) > 0 && !slices.Equal(f.Weekend, []string{"SAT", "SUN"})
}
