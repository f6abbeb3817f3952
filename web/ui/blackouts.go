package ui

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"dts"
	"dts/sched/calendar"
	"dts/sched/cron"
	"dts/web/auth"
)

type blackoutsPage struct {
	shared
	blackoutForm
	Blackouts []blackoutRow
	Calendars []string
	Errors    formErrors
	Self      string
}

// What the form calls the three ways to say when a blackout is.
const (
	blackoutOnce     = "once"
	blackoutCron     = "cron"
	blackoutCalendar = "calendar"
)

// blackoutForm is what was entered, as text.
type blackoutForm struct {
	Name, Note, Queue, Action string
	When                      string
	Start, End                string
	Cron, Duration            string
	Calendar, Zone            string
}

// blackoutInputs maps the field names of dts to the inputs of the form.
var blackoutInputs = map[string]string{
	"name": "name", "note": "note", "queue": "queue", "action": "action", "start_time": "start", "end_time": "end",
	"cron": "cron", "duration_seconds": "duration", "calendar": "calendar", "time_zone": "zone",
}

var blackoutLabels = map[string]string{
	"name": "The name", "note": "The note", "queue": "The queue", "start": "The beginning", "end": "The end",
	"cron": "The expression", "duration": "The length", "calendar": "The calendar", "zone": "The time zone",
}

// blackoutRow is one blackout of the list.
type blackoutRow struct {
	*dts.Blackout
	When    string // in words
	Zone    string
	On      bool
	From    time.Time // of the window that is open or the next one
	To      time.Time
	Over    bool   // none comes any more
	Effect  string // on tasks
	Problem string // why it cannot be told when it is
}

// blackouts lists the blackouts, above a form to add one.
func (h *handler) blackouts(w http.ResponseWriter, r *http.Request, p auth.Principal) error {
	return h.showBlackouts(w, r, p, http.StatusOK, blackoutForm{When: blackoutOnce}, nil)
}

func (h *handler) showBlackouts(w http.ResponseWriter, r *http.Request, p auth.Principal, status int, f blackoutForm, e formErrors) error {
	d := blackoutsPage{shared: h.shared(r, "blackouts"), blackoutForm: f, Errors: e, Self: "/ui/blackouts"}
	list, err := h.Store.Blackouts(r.Context(), p.TenantID)
	if err != nil {
		return err
	}
	calendars, err := h.Store.Calendars(r.Context(), p.TenantID)
	if err != nil {
		return err
	}
	byName := map[string]*dts.Calendar{}
	for _, c := range calendars {
		byName[c.Name] = c
		d.Calendars = append(d.Calendars, c.Name)
	}
	for _, b := range list {
		d.Blackouts = append(d.Blackouts, newBlackoutRow(b, byName[b.Calendar], d.Now))
	}
	// What is on comes first, then what comes next, then what is over.
	rank := func(b blackoutRow) int {
		switch {
		case b.On:
			return 0
		case b.Over:
			return 2
		}
		return 1
	}
	slices.SortStableFunc(d.Blackouts, func(a, b blackoutRow) int {
		if n := rank(a) - rank(b); n != 0 {
			return n
		}
		return a.From.Compare(b.From)
	})
	return h.render(w, status, "blackouts", d)
}

// newBlackoutRow says of a blackout when it is. cal is the calendar that it names, nil if there is none.
func newBlackoutRow(b *dts.Blackout, cal *dts.Calendar, now time.Time) blackoutRow {
	loc, err := cron.LoadLocation(b.TimeZone)
	if err != nil {
		loc = time.UTC
	}
	row := blackoutRow{Blackout: b, Effect: "tasks wait until it ends"}
	if b.Action == dts.BlackoutSkip {
		row.Effect = "tasks are skipped"
	}
	switch {
	case b.Calendar != "":
		row.Zone = b.TimeZone
	case b.Cron != "":
		row.When, row.Zone = describe(dts.Schedule{Cron: b.Cron}, time.Time{})+", for "+seconds(b.DurationSeconds), b.TimeZone
	default:
		row.When = wallClock(b.Start.In(loc)) + " to " + wallTime(b.End.In(loc), b.Start.In(loc))
	}
	windows, err := compileBlackout(b, cal)
	if err != nil {
		row.Problem = sentence("", err.Error())
		return row
	}
	var comes bool
	row.From, row.To, comes = windows.Next(now)
	row.Over, row.On = !comes, comes && !row.From.After(now)
	return row
}

func compileBlackout(b *dts.Blackout, cal *dts.Calendar) (*calendar.Blackout, error) {
	if cal == nil {
		return calendar.CompileBlackout(b, nil)
	}
	compiled, err := calendar.Compile(cal)
	if err != nil {
		return nil, err
	}
	return calendar.CompileBlackout(b, compiled)
}

// blackout reads what was entered.
func (f blackoutForm) blackout(e formErrors) dts.Blackout {
	b := dts.Blackout{Name: f.Name, Note: f.Note, Queue: f.Queue, Action: dts.BlackoutAction(f.Action), TimeZone: f.Zone}
	loc, err := cron.LoadLocation(f.Zone)
	if err != nil {
		e.add("zone", sentence("", err.Error()))
		return b
	}
	switch f.When {
	case blackoutCron:
		b.Cron, b.DurationSeconds = f.Cron, e.interval("duration", f.Duration)
		if f.Cron == "" {
			e.add("cron", "Enter a cron expression, such as 0 22 * * fri")
		}
		if f.Duration == "" {
			e.add("duration", "Enter how long it lasts, such as 2h")
		}
	case blackoutCalendar:
		if b.Calendar = f.Calendar; f.Calendar == "" {
			e.add("calendar", "Choose a calendar")
		}
	default:
		b.Start, b.End = e.wall("start", f.Start, loc), e.wall("end", f.End, loc)
		if f.Start == "" {
			e.add("start", "Enter when it begins")
		}
		if f.End == "" {
			e.add("end", "Enter when it ends")
		} else if len(e) == 0 && !b.End.After(b.Start) {
			e.add("end", "The end is not after the beginning")
		}
	}
	return b
}

// addBlackout saves a new blackout, or shows the form again with the messages.
func (h *handler) addBlackout(w http.ResponseWriter, r *http.Request, p auth.Principal) error {
	if err := r.ParseForm(); err != nil {
		return badForm(err)
	}
	one := func(k string) string { return strings.TrimSpace(r.PostForm.Get(k)) }
	f := blackoutForm{Name: one("name"), Note: one("note"), Queue: one("queue"), Action: one("action"), When: one("when"),
		Start: one("start"), End: one("end"), Cron: one("cron"), Duration: one("duration"), Calendar: one("calendar"), Zone: one("zone")}
	e := formErrors{}
	b := f.blackout(e)
	b.TenantID, b.CreatedBy = p.TenantID, p.Name
	e.mergeAs(b.Normalize(h.now()), blackoutInputs, blackoutLabels)
	if len(e) == 0 && b.Calendar == "" {
		_, err := calendar.CompileBlackout(&b, nil)
		e.mergeAs(err, blackoutInputs, blackoutLabels)
	}
	if len(e) == 0 {
		_, err := h.Scheduler.CreateBlackout(r.Context(), &b)
		if err == nil {
			http.Redirect(w, r, withQuery("/ui/blackouts", "done", "blackout"), http.StatusSeeOther)
			return nil
		}
		if !e.mergeAs(err, blackoutInputs, blackoutLabels) {
			status, message := h.explain(r, err)
			e.add("", sentence("", message))
			return h.showBlackouts(w, r, p, status, f, e)
		}
	}
	return h.showBlackouts(w, r, p, http.StatusUnprocessableEntity, f, e)
}

// deleteBlackout deletes a blackout.
func (h *handler) deleteBlackout(w http.ResponseWriter, r *http.Request, p auth.Principal) error {
	id := r.PathValue("id")
	if !dts.IsID(id) {
		return dts.Errorf(dts.ErrNotFound, "there is no blackout %q", clip(id, 40))
	}
	if err := h.Scheduler.DeleteBlackout(r.Context(), p.TenantID, id); err != nil {
		return err
	}
	http.Redirect(w, r, withQuery("/ui/blackouts", "done", "delete-blackout"), http.StatusSeeOther)
	return nil
}
