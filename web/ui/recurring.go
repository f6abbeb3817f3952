package ui

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"dts"
	"dts/web/auth"
)

const ledgerPerPage = 30

type recurringPage struct {
	shared
	recurringRow
	Target   targetView
	Facts    []pair
	Upcoming []upcomingRow
	Ledger   []ledgerRow
	Next     string // address of the next page of the ledger
	First    bool   // this is the first page of the ledger
	Self     string
	Pause    pauseForm
}

// pauseForm keeps what was entered when a pause is refused.
type pauseForm struct {
	Until, Note, Error string
}

type upcomingRow struct {
	*dts.Task
	Local string // the instant as a clock in the schedule's zone shows it
}

// ledgerRow is one instant that came: a task, or a range of skipped ones.
type ledgerRow struct {
	dts.Occurrence
	Row  taskRow // the task, if Task is not nil
	Why  string  // the reason of a skip, in words
	Late *int64  // lateness of the first start, in microseconds
}

// recurring shows a recurring task: its schedule, what comes next and what became of every instant before.
func (h *handler) recurring(w http.ResponseWriter, r *http.Request, p auth.Principal) error {
	return h.showRecurring(w, r, p, http.StatusOK, "", pauseForm{})
}

func (h *handler) showRecurring(w http.ResponseWriter, r *http.Request, p auth.Principal, status int, alert string, pause pauseForm) error {
	ctx, id, cursor := r.Context(), r.PathValue("id"), r.URL.Query().Get("cursor")
	if !dts.IsID(id) {
		return dts.Errorf(dts.ErrNotFound, "there is no recurring task %q", clip(id, 40))
	}
	rt, err := h.Store.RecurringTask(ctx, p.TenantID, id)
	if err != nil {
		return err
	}
	d := recurringPage{shared: h.shared(r, ""), Target: viewTarget(rt.Spec), Facts: recurringFacts(rt), First: cursor == "",
		Self: "/ui/recurring/" + id, Pause: pause}
	loc, zone := zoneOf(rt.Schedule)
	d.recurringRow = recurringRow{rt, describe(rt.Schedule), zone}
	d.Alert = alert
	if !d.First {
		d.Self = withQuery(d.Self, "cursor", cursor)
	}
	upcoming, err := h.Store.Upcoming(ctx, p.TenantID, id, ahead)
	if err != nil {
		return err
	}
	for _, t := range upcoming {
		d.Upcoming = append(d.Upcoming, upcomingRow{t, wallClock(t.RunAt.In(loc))})
	}
	page, err := fill(ledgerPerPage, cursor, func(cursor string) (dts.Page[dts.Occurrence], error) {
		return h.Store.Occurrences(ctx, p.TenantID, id, cursor, ledgerPerPage)
	})
	if err != nil {
		return err
	}
	for _, o := range page.Items {
		if o.Task != nil && o.Task.Status == dts.Pending && o.Task.Attempts == 0 && o.Task.RunAt.After(d.Now) {
			continue // it is among the upcoming ones
		}
		row := ledgerRow{Occurrence: o}
		if o.Task != nil {
			row.Row, row.Late = taskRow{o.Task, d.Now}, o.Task.LatenessUS
			if o.Task.Status == dts.Skipped {
				row.Why = reasonText(o.Task.SkipReason)
			}
		} else if o.Skip != nil {
			row.Why = reasonText(o.Skip.Reason)
		}
		d.Ledger = append(d.Ledger, row)
	}
	if page.Next != "" {
		d.Next = "/ui/recurring/" + id + "?" + url.Values{"cursor": {page.Next}}.Encode() + "#ledger"
	}
	return h.render(w, status, "recurring", d)
}

// wallClock writes an instant as a clock on the wall of its zone shows it.
func wallClock(t time.Time) string { return t.Format("Mon 2 Jan 2006, 15:04:05 MST") }

// reasonText says why an instant did not run.
func reasonText(r dts.Reason) string {
	switch r {
	case dts.ReasonPaused:
		return "the schedule was paused"
	case dts.ReasonOverlap:
		return "the run before was still active"
	case dts.ReasonCatchUp:
		return "missed; a later instant ran instead"
	case dts.ReasonExpired:
		return "its expiry time had passed"
	case dts.ReasonRemoved:
		return "someone cancelled this run"
	case dts.ReasonCancelled:
		return "the schedule was removed"
	case "":
		return ""
	default:
		return statusWord(r)
	}
}

func recurringFacts(rt *dts.RecurringTask) []pair {
	var list []pair
	add := func(name, value string) { list = append(list, pair{name, value}) }
	if rt.Cron != "" {
		add("Cron expression", rt.Cron)
	}
	if !rt.StartTime.IsZero() && rt.Cron != "" {
		add("Not before", utc(rt.StartTime))
	}
	if !rt.EndTime.IsZero() {
		add("Not after", utc(rt.EndTime))
	}
	if rt.MaxRuns > 0 {
		add("At most", strconv.FormatInt(rt.MaxRuns, 10)+" runs")
	}
	missed := "the newest missed run is made up for"
	if rt.CatchUpMode == dts.SkipMissed {
		missed = "missed runs are skipped"
	}
	add("After an outage", missed)
	if rt.OverlapPolicy == dts.OverlapSkip {
		add("Overlap", "skips while the run before is active")
	}
	list = append(list, specFacts(rt.Spec)...)
	if rt.CreatedBy != "" {
		add("Created by", rt.CreatedBy)
	}
	return list
}

// doRecurring applies an action to a recurring task.
func (h *handler) doRecurring(w http.ResponseWriter, r *http.Request, p auth.Principal) error {
	ctx, id, verb := r.Context(), r.PathValue("id"), r.PathValue("verb")
	if err := r.ParseForm(); err != nil {
		return badForm(err)
	}
	if !dts.IsID(id) {
		return dts.Errorf(dts.ErrNotFound, "there is no recurring task %q", clip(id, 40))
	}
	to := "/ui/recurring/" + id
	var err error
	switch verb {
	case "trigger":
		var t *dts.Task
		if t, err = h.Scheduler.TriggerRecurring(ctx, p.TenantID, id, p.Name); err == nil {
			to = "/ui/tasks/" + t.ID
		}
	case "pause":
		err = h.pause(r, p, id)
	case "resume":
		_, err = h.Scheduler.ResumeRecurring(ctx, p.TenantID, id, false, p.Name)
	case "remove":
		_, err = h.Scheduler.CancelRecurring(ctx, p.TenantID, id, p.Name)
	default:
		return dts.Errorf(dts.ErrNotFound, "there is no such action")
	}
	if err != nil {
		return h.refuseRecurring(w, r, p, verb, err)
	}
	http.Redirect(w, r, withQuery(to, "done", verb), http.StatusSeeOther)
	return nil
}

// pause reads the pause form. Its time is read in the schedule's zone, as the form says.
func (h *handler) pause(r *http.Request, p auth.Principal, id string) error {
	rt, err := h.Store.RecurringTask(r.Context(), p.TenantID, id)
	if err != nil {
		return err
	}
	var until time.Time
	if s := r.PostForm.Get("until"); s != "" {
		loc, _ := zoneOf(rt.Schedule)
		at, ok := parseWall(s, loc)
		switch {
		case !ok:
			return dts.Invalid("until", "is not a date and time such as 2030-01-31T08:00")
		case !at.After(h.now()):
			return dts.Invalid("until", "is in the past; leave it empty to pause until someone resumes")
		}
		until = dts.Micros(at)
	}
	_, err = h.Scheduler.PauseRecurring(r.Context(), p.TenantID, id, until, r.PostForm.Get("note"), p.Name)
	return err
}

// refuseRecurring shows the page again with what was wrong.
func (h *handler) refuseRecurring(w http.ResponseWriter, r *http.Request, p auth.Principal, verb string, err error) error {
	status, message := h.explain(r, err)
	if e, ok := errors.AsType[*dts.Error](err); ok && verb == "pause" && len(e.Fields) > 0 {
		f := pauseForm{Until: r.PostForm.Get("until"), Note: r.PostForm.Get("note"), Error: sentence("The time", e.Fields[0].Message)}
		if e.Fields[0].Field != "until" {
			f.Error = sentence("The note", e.Fields[0].Message)
		}
		return h.showRecurring(w, r, p, status, "", f)
	}
	return h.showRecurring(w, r, p, status, sentence("", message), pauseForm{})
}
