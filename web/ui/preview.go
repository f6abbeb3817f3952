package ui

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dts"
	"dts/sched/cron"
	"dts/web/auth"
)

// previewView is what a schedule means and what it will do, shown before it is saved.
type previewView struct {
	Words    string // the schedule in English
	Zone     string
	Instants []previewInstant
	Notes    []string // what is so of each instant
	Missed   string   // what would become of the instants of an outage
	Messages []string // why there is no preview
	Empty    bool     // nothing was entered yet
	Once     bool     // it is about a task that runs once
	errors   formErrors
}

type previewInstant struct {
	At      time.Time
	Local   string // At as a clock in the schedule's zone shows it
	UTC     string // the same in UTC; empty where the zone is UTC
	Due     string // when it is due, where that is another time
	Off     bool   // it will not run
	Effects []dts.PreviewEffect
	Now     time.Time
}

// newInstant shows one instant of a schedule in loc.
func newInstant(i dts.PreviewInstant, loc *time.Location, now time.Time) previewInstant {
	v := previewInstant{At: i.UTC, Local: wallClock(i.UTC.In(loc)), Off: !i.Runs, Effects: i.Effects, Now: now}
	if _, offset := i.UTC.In(loc).Zone(); offset != 0 {
		v.UTC = i.UTC.UTC().Format("Mon 15:04:05 UTC")
	}
	if i.Runs && !i.DueAt.IsZero() && !i.DueAt.Equal(i.UTC) {
		v.Due = wallTime(i.DueAt.In(loc), i.UTC.In(loc))
	}
	return v
}

// preview answers htmx with the part of the form that says when the task would run.
func (h *handler) preview(w http.ResponseWriter, r *http.Request, p auth.Principal) error {
	if err := r.ParseForm(); err != nil {
		return badForm(err)
	}
	return h.write(w, http.StatusOK, "new", "preview", h.previewOf(r, p, readForm(r.PostForm)))
}

// previewOf works out when the task of a form would run.
func (h *handler) previewOf(r *http.Request, p auth.Principal, f form) previewView {
	now := h.now()
	v := previewView{errors: formErrors{}, Once: !f.recurring()}
	switch {
	case v.Once:
		f.previewOnce(&v, now)
	case f.empty():
		v.Empty = true
	default:
		h.previewRules(r, p, f, &v, now)
	}
	for _, input := range append([]string{"", "cron", "every", "rule", "at", "zone"}, extraInputs[:]...) {
		if m := v.errors[input]; m != "" {
			v.Messages = append(v.Messages, strings.TrimSuffix(m, ".")+".")
		}
	}
	return v
}

// previewRules asks the scheduler what a recurring task would do.
func (h *handler) previewRules(r *http.Request, p auth.Principal, f form, v *previewView, now time.Time) {
	rt := f.rules(v.errors)
	if len(v.errors) > 0 {
		return
	}
	q := dts.PreviewRequest{Schedule: rt.Schedule, Name: f.Name, OverlapPolicy: rt.OverlapPolicy, CatchUpMode: rt.CatchUpMode,
		MisfireAfterSeconds: rt.MisfireAfterSeconds, CatchUpWindowSeconds: rt.CatchUpWindowSeconds, CatchUpLimit: rt.CatchUpLimit,
		CatchUpPacingSeconds: rt.CatchUpPacingSeconds, Count: f.PreviewCount()}
	if d, err := cron.ParseInterval(f.Outage); err == nil {
		q.Since = now.Add(-d)
	}
	answer, err := h.Scheduler.Preview(r.Context(), p.TenantID, q)
	switch {
	case err == nil:
	case v.errors.merge(f, err):
		return
	default:
		_, message := h.explain(r, err)
		v.Messages = append(v.Messages, sentence("", message))
		return
	}
	loc, err := cron.LoadLocation(answer.TimeZone)
	if err != nil {
		loc = time.UTC
	}
	v.Words, v.Zone = answer.Description, answer.TimeZone
	for _, i := range answer.Instants {
		v.Instants = append(v.Instants, newInstant(i, loc, now))
	}
	v.Notes = v.sayOnce()
	if answer.Missed != nil {
		v.Missed = answer.Missed.Text
	}
	if len(v.Instants) == 0 && !answer.AtBoot {
		v.errors.merge(f, dts.Invalid("cron", "never fires again after now"))
	}
}

// sayOnce takes the effects that all the instants share that run out of them, and returns their texts.
func (v *previewView) sayOnce() []string {
	var shared []dts.PreviewEffect
	runs := 0
	for _, i := range v.Instants {
		switch {
		case i.Off:
			continue
		case runs == 0:
			shared = slices.Clone(i.Effects)
		default:
			shared = slices.DeleteFunc(shared, func(e dts.PreviewEffect) bool { return !slices.Contains(i.Effects, e) })
		}
		runs++
	}
	if runs < 2 {
		return nil
	}
	for n, i := range v.Instants {
		v.Instants[n].Effects = slices.DeleteFunc(i.Effects, func(e dts.PreviewEffect) bool { return slices.Contains(shared, e) })
	}
	var texts []string
	for _, e := range shared {
		texts = append(texts, e.Text)
	}
	return texts
}

// previewOnce says when a one-time task would run.
func (f form) previewOnce(v *previewView, now time.Time) {
	at := f.runAt(v.errors, now)
	if len(v.errors) > 0 {
		return
	}
	// Only the time can be wrong here: the command stands in for what has not been entered.
	probe := dts.Task{Spec: dts.Spec{TargetType: dts.Command, TargetConfig: []byte(`{"argv":["true"]}`)}, RunAt: at}
	v.errors.merge(f, probe.Normalize(now))
	v.Words = "Once"
	if f.At == "" {
		v.Words = "Once, as soon as it is saved"
	}
	loc, zone := zoneOf(dts.Schedule{TimeZone: f.Zone})
	v.Zone = zone
	v.Instants = []previewInstant{newInstant(dts.PreviewInstant{UTC: at.UTC(), Runs: true}, loc, now)}
}

// previewCounts are how many instants one can ask to see.
var previewCounts = [...]int{ahead, 10, 25, 50}

// PreviewCounts are the choices of the form.
func (timing) PreviewCounts() []int { return previewCounts[:] }

// PreviewCount is how many instants are to be shown.
func (f timing) PreviewCount() int {
	for _, n := range previewCounts {
		if f.Count == strconv.Itoa(n) {
			return n
		}
	}
	return ahead
}
