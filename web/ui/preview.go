package ui

import (
	"net/http"
	"strings"
	"time"

	"dts"
	"dts/sched/cron"
	"dts/web/auth"
)

// previewView is what a schedule means, shown before it is saved.
type previewView struct {
	Words    string // the schedule in English
	Zone     string
	Instants []previewInstant
	Messages []string // why there is no preview
	Empty    bool     // nothing was entered yet
	errors   formErrors
}

type previewInstant struct {
	At    time.Time
	Local string
	Now   time.Time
}

// preview answers htmx with the part of the form that says when the task would run.
func (h *handler) preview(w http.ResponseWriter, r *http.Request, _ auth.Principal) error {
	if err := r.ParseForm(); err != nil {
		return badForm(err)
	}
	return h.write(w, http.StatusOK, "new", "preview", readForm(r.PostForm).preview(h.now()))
}

// preview works out when the task of this form would run.
func (f form) preview(now time.Time) previewView {
	e := formErrors{}
	v := previewView{errors: e, Zone: f.Zone}
	if v.Zone == "" {
		v.Zone = "UTC"
	}
	var list []time.Time
	switch {
	case f.When == whenCron && f.Cron == "", f.When == whenEvery && f.Every == "":
		v.Empty = true
		return v
	case f.recurring():
		s := f.schedule(e)
		if len(e) > 0 {
			break
		}
		var err error
		if list, err = instants(s, f.Name, now); err != nil {
			e.merge(f, err)
			break
		}
		v.Words = describe(s)
		_, v.Zone = zoneOf(s)
	default:
		at := f.runAt(e, now)
		if len(e) > 0 {
			break
		}
		// Only the time can be wrong here: the command stands in for what has not been entered.
		probe := dts.Task{Spec: dts.Spec{TargetType: dts.Command, TargetConfig: []byte(`{"argv":["true"]}`)}, RunAt: at}
		e.merge(f, probe.Normalize(now))
		v.Words = "Once"
		if f.At == "" {
			v.Words = "Once, as soon as it is saved"
		}
		list = []time.Time{at}
	}
	for _, input := range [...]string{"cron", "every", "at", "zone"} {
		if m := e[input]; m != "" {
			v.Messages = append(v.Messages, strings.TrimSuffix(m, ".")+".")
		}
	}
	if len(e) > 0 {
		return v
	}
	loc, err := cron.LoadLocation(v.Zone)
	if err != nil {
		loc = time.UTC
	}
	for _, at := range list {
		v.Instants = append(v.Instants, previewInstant{at, wallClock(at.In(loc)), now})
	}
	return v
}
