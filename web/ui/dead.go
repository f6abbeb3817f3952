package ui

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"dts"
	"dts/web/auth"
)

const deadPerPage = 50

// deadFilter selects dead letters, as text from the address or a form.
type deadFilter struct{ Queue, Name, Error string }

func readDeadFilter(v url.Values) deadFilter {
	one := func(k string) string { return clip(strings.TrimSpace(v.Get(k)), 256) }
	return deadFilter{one("queue"), one("name"), one("error")}
}

// Any reports whether it leaves out anything.
func (f deadFilter) Any() bool { return f != deadFilter{} }

// tasks is the filter of the store.
func (f deadFilter) tasks(tenant string) dts.TaskFilter {
	return dts.TaskFilter{TenantID: tenant, Statuses: []dts.Status{dts.Failed}, Queue: f.Queue, Name: f.Name, Error: f.Error}
}

// url is the address of the page that shows them.
func (f deadFilter) url(cursor string) string {
	q := url.Values{}
	for k, v := range map[string]string{"queue": f.Queue, "name": f.Name, "error": f.Error, "cursor": cursor} {
		if v != "" {
			q.Set(k, v)
		}
	}
	if len(q) == 0 {
		return "/ui/dead"
	}
	return "/ui/dead?" + q.Encode()
}

// Words says which tasks it selects, after "the dead letters".
func (f deadFilter) Words() string {
	var b strings.Builder
	if f.Name != "" {
		b.WriteString(" named “" + f.Name + "”")
	}
	if f.Queue != "" {
		b.WriteString(" of the queue “" + f.Queue + "”")
	}
	if f.Error != "" {
		b.WriteString(" whose error contains “" + f.Error + "”")
	}
	return b.String()
}

type deadPage struct {
	shared
	deadFilter
	Tasks []taskRow
	First bool   // this is the first page
	Next  string // address of the next page
	Self  string
	Start string // address of the first page
}

// dead lists the tasks that failed for good.
func (h *handler) dead(w http.ResponseWriter, r *http.Request, p auth.Principal) error {
	q := r.URL.Query()
	d := deadPage{shared: h.shared(r, "dead"), deadFilter: readDeadFilter(q), First: q.Get("cursor") == ""}
	d.Self, d.Start = d.url(q.Get("cursor")), d.url("")
	d.Flash = withCount(d.Flash, q)
	f := d.tasks(p.TenantID)
	f.Limit, f.Cursor = deadPerPage, q.Get("cursor")
	tasks, next, err := h.taskPage(r.Context(), p, f, d.Now)
	if err != nil {
		return err
	}
	d.Tasks = tasks
	if next != "" {
		d.Next = d.url(next)
	}
	return h.render(w, http.StatusOK, "dead", d)
}

// deadVerbs are what can be done to all dead letters of a list.
var deadVerbs = map[string]struct {
	bulk             dts.BulkVerb
	Title, Yes, Note string
	Danger           bool
}{
	"requeue": {dts.BulkRetry, "Requeue", "Yes, requeue them", "Each gets another attempt, now.", false},
	"discard": {dts.BulkDelete, "Discard", "Yes, discard them", "They are deleted with their attempts and output. This cannot be undone.", true},
}

// confirmPage counts what a change would change, and asks.
type confirmPage struct {
	shared
	deadFilter
	Verb, Title, Yes, Note string
	Danger                 bool
	Count                  int
	Back                   string
}

// doDead counts the dead letters of a list and asks, or, where that was answered, requeues or discards them.
func (h *handler) doDead(w http.ResponseWriter, r *http.Request, p auth.Principal) error {
	if err := r.ParseForm(); err != nil {
		return badForm(err)
	}
	name := r.PathValue("verb")
	verb, ok := deadVerbs[name]
	if !ok {
		return dts.Errorf(dts.ErrNotFound, "there is no such action")
	}
	f := readDeadFilter(r.PostForm)
	yes := r.PostForm.Get("yes") != ""
	change := dts.BulkChange{Verb: verb.bulk, Filter: f.tasks(p.TenantID), DryRun: !yes, Actor: p.Name}
	if err := change.Normalize(h.now()); err != nil {
		return err
	}
	result, err := h.Scheduler.Bulk(r.Context(), change)
	if err != nil {
		return err
	}
	if !yes {
		d := confirmPage{shared: h.shared(r, "dead"), deadFilter: f, Verb: name, Title: verb.Title, Yes: verb.Yes, Note: verb.Note, Danger: verb.Danger,
			Count: result.Matched, Back: f.url("")}
		return h.render(w, http.StatusOK, "dead-confirm", d)
	}
	http.Redirect(w, r, withQuery(withQuery(f.url(""), "done", name), "n", strconv.Itoa(result.Done)), http.StatusSeeOther)
	return nil
}
