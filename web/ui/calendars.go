package ui

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dts"
	"dts/sched/calendar"
	"dts/web/auth"
)

type calendarsPage struct {
	shared
	Calendars []calendarRow
}

// calendarRow is one calendar of the list.
type calendarRow struct {
	*dts.Calendar
	Holds string // what is in it, in words
}

// calendars lists the calendars.
func (h *handler) calendars(w http.ResponseWriter, r *http.Request, p auth.Principal) error {
	list, err := h.Store.Calendars(r.Context(), p.TenantID)
	if err != nil {
		return err
	}
	d := calendarsPage{shared: h.shared(r, "calendars")}
	for _, c := range list {
		d.Calendars = append(d.Calendars, calendarRow{c, calendarText(c)})
	}
	return h.render(w, http.StatusOK, "calendars", d)
}

// calendarText says what a calendar holds: "12 days, weekends, the holidays of de-by, an .ics file".
func calendarText(c *dts.Calendar) string {
	var parts []string
	count := func(n int, one, many string) {
		switch {
		case n == 1:
			parts = append(parts, "1 "+one)
		case n > 1:
			parts = append(parts, strconv.Itoa(n)+" "+many)
		}
	}
	if c.Holidays != nil {
		region := strings.ToUpper(c.Holidays.Country)
		if c.Holidays.Region != "" {
			region += "-" + strings.ToUpper(c.Holidays.Region)
		}
		parts = append(parts, "the holidays of "+region)
	}
	if len(c.Weekdays) > 0 {
		parts = append(parts, weekdaysText(c.Weekdays))
	}
	if len(c.Days) == 1 {
		parts = append(parts, c.Days[0])
	} else {
		count(len(c.Days), "", "days and ranges")
	}
	count(len(c.Windows), "window", "windows")
	if c.ICS != "" {
		parts = append(parts, "an .ics file ("+byteSize(int64(len(c.ICS)))+")")
	}
	return strings.Join(parts, ", ")
}

// weekdayNames are the days of the week as dts writes them, and for people, Monday first.
var weekdayNames = [...]struct{ Key, Name string }{
	{"MON", "Monday"}, {"TUE", "Tuesday"}, {"WED", "Wednesday"}, {"THU", "Thursday"},
	{"FRI", "Friday"}, {"SAT", "Saturday"}, {"SUN", "Sunday"},
}

// weekdaysText names days of the week: "Fridays, Saturdays".
func weekdaysText(days []string) string {
	have := map[string]bool{}
	for _, d := range days {
		have[strings.ToUpper(d)] = true
	}
	if len(have) == 2 && have["SAT"] && have["SUN"] {
		return "weekends"
	}
	var names []string
	for _, d := range weekdayNames {
		if have[d.Key] {
			names = append(names, d.Name+"s")
		}
	}
	return strings.Join(names, ", ")
}

type calendarPage struct {
	shared
	calendarForm
	New    bool
	Title  string
	Holds  string
	Stored int64 // bytes of the file that is kept
	Errors formErrors

	Coming    []comingRow
	Read      string   // the zone in which the days are read here
	Countries []choice // whose holidays are known, with their regions
}

// comingRow is a window that comes, or is open.
type comingRow struct {
	Name     string
	From, To string // on the wall of the calendar's zone; To is empty for one whole day
	At       time.Time
	On       bool
}

// How much of the time to come is shown of a calendar.
const (
	comingShown = 20
	comingAhead = 2 * 366 * 24 * time.Hour
)

// coming are the next windows of a calendar, its days read in its own zone.
func coming(c *dts.Calendar, now time.Time) ([]comingRow, string) {
	loc, zone := zoneOf(dts.Schedule{TimeZone: c.TimeZone})
	compiled, err := calendar.Compile(c)
	if err != nil {
		return nil, zone // it was accepted once; what it is for now, its users say
	}
	names := windowNames(c)
	var rows []comingRow
	for _, w := range compiled.Segments(now, now.Add(comingAhead), loc) {
		if len(rows) == comingShown {
			break
		}
		row := newComing(w, loc, now)
		if name, ok := names[row.Name]; ok {
			row.Name = name
		}
		rows = append(rows, row)
	}
	return rows, zone
}

// windowNames are better names for the windows that have none of their own: package calendar calls them by their times.
func windowNames(c *dts.Calendar) map[string]string {
	names := map[string]string{}
	for _, w := range c.Windows {
		if w.Cron != "" {
			names[w.Cron] = describe(dts.Schedule{Cron: w.Cron}, time.Time{})
		} else {
			names[w.Start.UTC().Format(time.RFC3339)+"/"+w.End.UTC().Format(time.RFC3339)] = "A window by hand"
		}
	}
	return names
}

const (
	dayForm    = "Mon 2 Jan 2006"
	minuteForm = dayForm + ", 15:04"
)

// newComing writes whole days without the time of day. A window that is open begins before now, whenever that was.
func newComing(w calendar.Window, loc *time.Location, now time.Time) comingRow {
	row := comingRow{Name: w.Name, At: w.From, On: !w.From.After(now)}
	from, to := w.From.In(loc), w.To.In(loc)
	midnight := func(t time.Time) bool { return t.Equal(calendar.DayOf(t).Start(loc)) }
	switch last := to.Add(-1); {
	case midnight(to) && (row.On || midnight(from)):
		if row.From = from.Format(dayForm); row.From != last.Format(dayForm) {
			row.To = last.Format(dayForm)
		}
	default:
		if row.From, row.To = from.Format(minuteForm), to.Format(minuteForm); !row.On && calendar.DayOf(from) == calendar.DayOf(to) {
			row.To = to.Format("15:04")
		}
	}
	if row.On {
		row.From = "now"
		if row.To == "" {
			row.To = to.Add(-1).Format(dayForm)
		}
	}
	return row
}

// newCalendar shows the empty form.
func (h *handler) newCalendar(w http.ResponseWriter, r *http.Request, _ auth.Principal) error {
	return h.render(w, http.StatusOK, "calendar", calendarPage{shared: h.shared(r, "calendars"), New: true, Title: "New calendar", Countries: countries("")})
}

// calendar shows one calendar, to read and to change.
func (h *handler) calendar(w http.ResponseWriter, r *http.Request, p auth.Principal) error {
	c, err := h.Store.Calendar(r.Context(), p.TenantID, r.PathValue("name"))
	if err != nil {
		return err
	}
	return h.render(w, http.StatusOK, "calendar", h.calendarPage(r, c, formOfCalendar(c)))
}

// calendarPage is the page of a calendar that exists, with a form.
func (h *handler) calendarPage(r *http.Request, c *dts.Calendar, f calendarForm) calendarPage {
	d := calendarPage{shared: h.shared(r, "calendars"), calendarForm: f, Title: c.Name, Holds: calendarText(c), Stored: int64(len(c.ICS)),
		Countries: countries(f.Holidays)}
	d.Coming, d.Read = coming(c, d.Now)
	return d
}

// countries are the choices of public holidays. What is chosen is among them, even if it is not known.
func countries(chosen string) []choice {
	var list []choice
	found := chosen == ""
	add := func(key, text string) {
		list = append(list, choice{key, text})
		found = found || key == chosen
	}
	known := calendar.Regions()
	slices.SortFunc(known, func(a, b calendar.Country) int { return strings.Compare(a.Name, b.Name) })
	for _, c := range known {
		if !c.RegionRequired {
			add(c.Code, c.Name)
		}
		for _, region := range c.Regions {
			add(c.Code+"-"+region, c.Name+" – "+strings.ToUpper(region))
		}
	}
	if !found {
		add(chosen, chosen)
	}
	return list
}

// addCalendar saves a new calendar, or shows its form again with the messages.
func (h *handler) addCalendar(w http.ResponseWriter, r *http.Request, p auth.Principal) error {
	f, ics, err := readCalendarForm(r)
	if err != nil {
		return badForm(err)
	}
	d := calendarPage{shared: h.shared(r, "calendars"), New: true, Title: "New calendar", calendarForm: f, Errors: formErrors{},
		Countries: countries(f.Holidays)}
	c := f.calendar(d.Errors)
	c.TenantID, c.Name, c.ICS = p.TenantID, f.Name, ics
	return h.keepCalendar(w, r, d, &c, h.Scheduler.CreateCalendar)
}

// saveCalendar changes a calendar. A file that is not sent again stays.
func (h *handler) saveCalendar(w http.ResponseWriter, r *http.Request, p auth.Principal) error {
	f, ics, err := readCalendarForm(r)
	if err != nil {
		return badForm(err)
	}
	old, err := h.Store.Calendar(r.Context(), p.TenantID, r.PathValue("name"))
	if err != nil {
		return err
	}
	d := h.calendarPage(r, old, f)
	d.Errors = formErrors{}
	c := f.calendar(d.Errors)
	c.TenantID, c.Name, c.ICS = old.TenantID, old.Name, ics
	if ics == "" && f.DropICS == "" {
		c.ICS = old.ICS
	}
	return h.keepCalendar(w, r, d, &c, h.Scheduler.ReplaceCalendar)
}

// keepCalendar checks and saves what was entered.
func (h *handler) keepCalendar(w http.ResponseWriter, r *http.Request, d calendarPage, c *dts.Calendar,
	save func(context.Context, *dts.Calendar) (*dts.Calendar, error)) error {
	d.Errors.mergeAs(c.Normalize(), calendarInputs, calendarLabels)
	if len(d.Errors) == 0 {
		_, err := calendar.Compile(c)
		d.Errors.mergeAs(err, calendarInputs, calendarLabels)
	}
	if len(d.Errors) == 0 {
		saved, err := save(r.Context(), c)
		if err == nil {
			done := "saved"
			if d.New {
				done = "added"
			}
			http.Redirect(w, r, withQuery("/ui/calendars/"+saved.Name, "done", done), http.StatusSeeOther)
			return nil
		}
		if dts.CodeOf(err) == dts.ErrConflict && d.New {
			d.Errors.add("name", fmt.Sprintf("There is a calendar %s already; choose another name", c.Name))
		} else if !d.Errors.mergeAs(err, calendarInputs, calendarLabels) {
			status, message := h.explain(r, err)
			d.Errors.add("", sentence("", message))
			return h.render(w, status, "calendar", d)
		}
	}
	return h.render(w, http.StatusUnprocessableEntity, "calendar", d)
}

// deleteCalendar deletes a calendar that nothing uses.
func (h *handler) deleteCalendar(w http.ResponseWriter, r *http.Request, p auth.Principal) error {
	err := h.Scheduler.DeleteCalendar(r.Context(), p.TenantID, r.PathValue("name"))
	if dts.CodeOf(err) == dts.ErrConflict {
		c, readErr := h.Store.Calendar(r.Context(), p.TenantID, r.PathValue("name"))
		if readErr != nil {
			return readErr
		}
		status, message := h.explain(r, err)
		d := h.calendarPage(r, c, formOfCalendar(c))
		d.Alert = sentence("", message)
		return h.render(w, status, "calendar", d)
	}
	if err != nil {
		return err
	}
	http.Redirect(w, r, withQuery("/ui/calendars", "done", "delete-calendar"), http.StatusSeeOther)
	return nil
}
