package ui

import (
	"errors"
	"net/http"
	"time"

	"dts"
	"dts/web/auth"
)

// recurringForms keep what was entered on the page of a recurring task when it is shown again.
type recurringForms struct {
	Pause    pauseForm
	Backfill backfillForm
}

// pauseForm keeps what was entered when a pause is refused.
type pauseForm struct {
	Until, Note, Error string
}

// backfillForm keeps the window of a backfill, and what it would make.
type backfillForm struct {
	From, To string
	Errors   formErrors
	Answer   *dts.BackfillAnswer // of the dry run
	First    string              // its first instant in the schedule's zone
	Last     string
}

// Open reports whether the form is to be seen at once.
func (b backfillForm) Open() bool { return len(b.Errors) > 0 || b.Answer != nil }

// doRecurring applies an action to a recurring task.
func (h *handler) doRecurring(w http.ResponseWriter, r *http.Request, p auth.Principal) error {
	ctx, id, verb := r.Context(), r.PathValue("id"), r.PathValue("verb")
	if err := r.ParseForm(); err != nil {
		return badForm(err)
	}
	if !dts.IsID(id) {
		return dts.Errorf(dts.ErrNotFound, "there is no recurring task %q", clip(id, 40))
	}
	to, done := "/ui/recurring/"+id, verb
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
		catchUp := r.PostForm.Get("catch_up") != ""
		if _, err = h.Scheduler.ResumeRecurring(ctx, p.TenantID, id, catchUp, p.Name); catchUp {
			done = "resume-catch-up"
		}
	case "remove":
		_, err = h.Scheduler.CancelRecurring(ctx, p.TenantID, id, p.Name)
	case "backfill":
		return h.backfill(w, r, p, id)
	default:
		return dts.Errorf(dts.ErrNotFound, "there is no such action")
	}
	if err != nil {
		return h.refuseRecurring(w, r, p, verb, err)
	}
	http.Redirect(w, r, withQuery(to, "done", done), http.StatusSeeOther)
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

// backfill replays a past window: asked the first time it says how many runs that makes, and only then does it.
func (h *handler) backfill(w http.ResponseWriter, r *http.Request, p auth.Principal, id string) error {
	rt, err := h.Store.RecurringTask(r.Context(), p.TenantID, id)
	if err != nil {
		return err
	}
	loc, _ := zoneOf(rt.Schedule)
	f := backfillForm{From: r.PostForm.Get("from"), To: r.PostForm.Get("to"), Errors: formErrors{}}
	q := dts.BackfillRequest{DryRun: r.PostForm.Get("do") != "run"}
	q.From, q.To = f.Errors.wall("from", f.From, loc), f.Errors.wall("to", f.To, loc)
	if f.From == "" {
		f.Errors.add("from", "Enter the first time to replay")
	}
	if f.To == "" {
		f.Errors.add("to", "Enter the last time to replay")
	}
	if len(f.Errors) > 0 {
		return h.showRecurring(w, r, p, http.StatusUnprocessableEntity, "", recurringForms{Backfill: f})
	}
	answer, err := h.Scheduler.BackfillRecurring(r.Context(), p.TenantID, id, q, p.Name)
	if x, ok := errors.AsType[*dts.Error](err); ok && len(x.Fields) > 0 {
		for _, field := range x.Fields {
			input := "from"
			if field.Field == "to" {
				input = "to"
			}
			f.Errors.add(input, sentence("The time", field.Message))
		}
		return h.showRecurring(w, r, p, http.StatusUnprocessableEntity, "", recurringForms{Backfill: f})
	}
	if err != nil {
		return h.refuseRecurring(w, r, p, "backfill", err)
	}
	if q.DryRun {
		f.Answer = answer
		f.First, f.Last = wallClock(answer.First.In(loc)), wallClock(answer.Last.In(loc))
		return h.showRecurring(w, r, p, http.StatusOK, "", recurringForms{Backfill: f})
	}
	http.Redirect(w, r, withQuery("/ui/recurring/"+id, "done", "backfill"), http.StatusSeeOther)
	return nil
}

// refuseRecurring shows the page again with what was wrong.
func (h *handler) refuseRecurring(w http.ResponseWriter, r *http.Request, p auth.Principal, verb string, err error) error {
	status, message := h.explain(r, err)
	if e, ok := errors.AsType[*dts.Error](err); ok && verb == "pause" && len(e.Fields) > 0 {
		f := pauseForm{Until: r.PostForm.Get("until"), Note: r.PostForm.Get("note"), Error: sentence("The time", e.Fields[0].Message)}
		if e.Fields[0].Field != "until" {
			f.Error = sentence("The note", e.Fields[0].Message)
		}
		return h.showRecurring(w, r, p, status, "", recurringForms{Pause: f})
	}
	return h.showRecurring(w, r, p, status, sentence("", message), recurringForms{})
}
