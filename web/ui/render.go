package ui

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"dts"
	"dts/web/auth"
)

//go:embed templates/*.html
var templateFiles embed.FS

// pageNames are the pages, each a template set of layout.html, parts.html and its own file.
var pageNames = [...]string{"login", "overview", "task", "recurring", "new", "queues", "calendars", "calendar", "blackouts", "dead", "dead-confirm", "batch", "error"}

// pages holds a parsed template set for each page.
type pages map[string]*template.Template

func parsePages(a *assets) (pages, error) {
	funcs := template.FuncMap{
		"asset":      a.url,
		"ago":        relative,
		"bytes":      byteSize,
		"clip":       clip,
		"duration":   duration,
		"late":       lateness,
		"pauseWords": dts.PauseWords,
		"micros":     func(us int64) time.Duration { return time.Duration(us) * time.Microsecond },
		"rfc3339":    func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
		"reason":     reasonText,
		"progress":   progressText,
		"status":     statusWord,
		"title":      taskTitle,
		"target":     targetSummary,
		"utc":        utc,
		"field":      newField,
		"kind":       kind,
		"choices":    newChoices,
		"names":      newNames,
		"when":       func(t, now time.Time) instant { return instant{t, now} },
	}
	p := pages{}
	for _, name := range pageNames {
		t, err := template.New("layout.html").Funcs(funcs).ParseFS(templateFiles,
			"templates/layout.html", "templates/parts.html", "templates/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("parse page %s: %w", name, err)
		}
		p[name] = t
	}
	return p, nil
}

// instant is a time and the present, for a template that shows both the time and how far away it is.
type instant struct {
	At, Now time.Time
}

// shared is what every page shows around its content.
type shared struct {
	Now      time.Time
	SignedIn bool
	Version  string
	Node     string
	Problems []string // why this node does not fire as it should
	Flash    string   // what has just been done
	Alert    string   // what could not be done
	Here     string   // "overview", "new", "dead", "queues", "calendars" or "blackouts", for the navigation

	status dts.SchedulerStatus
	old    *dts.Staleness
}

// Stale reports whether what the page shows may be old. It is asked when everything has been read.
func (s shared) Stale() bool { return s.old.Stale() }

// shared returns what a page shows around its content. here is the page's place in the navigation, or empty.
func (h *handler) shared(r *http.Request, here string) shared {
	s := shared{Now: h.now(), Version: h.Version, Here: here, old: dts.StalenessOf(r.Context())}
	if _, s.SignedIn = auth.From(r.Context()); s.SignedIn {
		s.status = h.Scheduler.Status()
		s.Node, s.Problems = s.status.Node, problems(s.status)
		s.Flash = flashes[r.URL.Query().Get("done")]
	}
	return s
}

// flashes are the messages after a change. The page that follows the change asks for one by name, so that
// nothing needs to be kept and no text comes from the address.
var flashes = map[string]string{
	"added":           "Added.",
	"existed":         "This was added before; here it is.",
	"cancel":          "Cancelled.",
	"retry":           "It runs again.",
	"retry-step":      "It goes on from this step.",
	"retry-run":       "It goes on from where it failed.",
	"judge":           "It is judged again, by what has been reported until now.",
	"run-now":         "It runs now.",
	"force-complete":  "Marked as done.",
	"delete":          "Deleted.",
	"pause":           "Paused.",
	"resume":          "Resumed.",
	"pause-task":      "Paused. It does not start until it is resumed.",
	"resume-task":     "Resumed. It starts when it is due.",
	"resume-catch-up": "Resumed. What was missed is made up for as the settings say.",
	"backfill":        "The runs were added. Those that wait are among the next runs.",
	"retry-dead":      "It is tried again.",
	"requeue":         "Requeued.",
	"discard":         "Discarded.",
	"bulk-retry":      "Requeued.",
	"bulk-cancel":     "Cancelled.",
	"saved":           "Saved. What uses it is planned again.",
	"delete-calendar": "The calendar is deleted.",
	"blackout":        "Added. No task starts in it.",
	"delete-blackout": "The blackout is deleted.",
	"pause-queue":     "The queue is paused. What runs goes on.",
	"resume-queue":    "The queue goes on.",
	"trigger":         "Started one run, beside the schedule.",
	"remove":          "Removed. No more runs are planned; the history stays.",
	"skip":            "This run is cancelled; the others stay planned.",
}

// problems says in words what is wrong with a scheduler.
func problems(st dts.SchedulerStatus) []string {
	var list []string
	if st.ClockHeld != "" {
		list = append(list, "Nothing is fired: "+st.ClockHeld)
	}
	if st.Clock != nil {
		for _, alert := range st.Clock.Alerts {
			if st.ClockHeld == "" || !strings.HasSuffix(alert, st.ClockHeld) { // that was said
				list = append(list, sentence("", alert))
			}
		}
	}
	if st.StoreError != "" {
		list = append(list, "The last write failed: "+st.StoreError)
	}
	if st.Draining {
		list = append(list, "This server is stopping.")
	}
	if st.ClockHeld == "" && st.StoreError == "" && !st.Draining {
		for _, why := range st.NotReady {
			list = append(list, "Not ready: "+why)
		}
	}
	return list
}

// policy lets a page load from this server only, and run no script or style that is written inside it.
// Pico's icons are data: images.
const policy = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// render writes a whole page, or nothing: it is made in memory first.
func (h *handler) render(w http.ResponseWriter, status int, page string, data any) error {
	return h.write(w, status, page, "layout.html", data)
}

// write executes one template of a page's set.
func (h *handler) write(w http.ResponseWriter, status int, page, name string, data any) error {
	var b bytes.Buffer
	if err := h.pages[page].ExecuteTemplate(&b, name, data); err != nil {
		return fmt.Errorf("render page %s: %w", page, err)
	}
	hd := w.Header()
	hd.Set("Content-Type", "text/html; charset=utf-8")
	hd.Set("Cache-Control", "no-store")
	hd.Set("Content-Security-Policy", policy)
	hd.Set("Referrer-Policy", "same-origin")
	hd.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	w.Write(b.Bytes()) // an error here means that the reader has gone
	return nil
}
