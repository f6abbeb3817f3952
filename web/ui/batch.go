package ui

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"dts"
	"dts/web/auth"
)

type batchPage struct {
	shared
	*dts.Batch
	Counts []batchCount
	Ended  int // of its tasks
	Status string
	Tasks  []taskRow
	First  bool
	Next   string
	Start  string // address of the first page of this list
	Self   string
}

// batchCount is the number of a batch's tasks in a state.
type batchCount struct {
	Key, Name, URL string
	N              int
	Current        bool
}

// batch shows how far the tasks of a bulk request are.
func (h *handler) batch(w http.ResponseWriter, r *http.Request, p auth.Principal) error {
	q := r.URL.Query()
	b, err := h.findBatch(r, p)
	if err != nil {
		return err
	}
	base := "/ui/batches/" + b.ID
	d := batchPage{shared: h.shared(r, ""), Batch: b, Ended: b.Total - b.Pending - b.Running, Status: q.Get("status"), First: q.Get("cursor") == ""}
	d.Flash = withCount(d.Flash, q)
	statuses := dts.Statuses
	for _, c := range []struct {
		s dts.Status
		n int
	}{{dts.Pending, b.Pending}, {dts.Running, b.Running}, {dts.Success, b.Success}, {dts.Failed, b.Failed}, {dts.Cancelled, b.Cancelled}, {dts.Skipped, b.Skipped}} {
		key := statusWord(c.s)
		count := batchCount{Key: key, Name: key, URL: withQuery(base, "status", key), N: c.n, Current: key == d.Status}
		if c.s == dts.Success {
			count.Name = "succeeded"
		}
		if count.Current {
			statuses = []dts.Status{c.s}
			count.URL = base
		}
		d.Counts = append(d.Counts, count)
	}
	if len(statuses) == 1 {
		base = withQuery(base, "status", d.Status)
	} else if d.Status != "" {
		return dts.Errorf(dts.ErrNotFound, "there is no list of tasks with this status")
	}
	d.Start, d.Self = base, base
	f := dts.TaskFilter{TenantID: p.TenantID, BatchID: b.ID, Statuses: statuses, Limit: tasksPerPage, Cursor: q.Get("cursor")}
	if f.Cursor != "" {
		d.Self = withQuery(base, "cursor", f.Cursor)
	}
	tasks, next, err := h.taskPage(r.Context(), p, f, d.Now)
	if err != nil {
		return err
	}
	d.Tasks = tasks
	if next != "" {
		d.Next = withQuery(base, "cursor", next)
	}
	return h.render(w, http.StatusOK, "batch", d)
}

func (h *handler) findBatch(r *http.Request, p auth.Principal) (*dts.Batch, error) {
	id := r.PathValue("id")
	if !dts.IsID(id) {
		return nil, dts.Errorf(dts.ErrNotFound, "there is no batch %q", clip(id, 40))
	}
	return h.Store.Batch(r.Context(), p.TenantID, id)
}

// doBatch cancels what has not ended of a batch, or tries again what failed of it.
func (h *handler) doBatch(w http.ResponseWriter, r *http.Request, p auth.Principal) error {
	if err := r.ParseForm(); err != nil {
		return badForm(err)
	}
	b, err := h.findBatch(r, p)
	if err != nil {
		return err
	}
	change := dts.BulkChange{Verb: dts.BulkVerb(r.PathValue("verb")), Filter: dts.TaskFilter{TenantID: p.TenantID, BatchID: b.ID}, Actor: p.Name}
	switch change.Verb {
	case dts.BulkCancel:
		change.Filter.Statuses = []dts.Status{dts.Pending, dts.Running}
	case dts.BulkRetry:
		change.Filter.Statuses = []dts.Status{dts.Failed}
	default:
		return dts.Errorf(dts.ErrNotFound, "there is no such action")
	}
	if err := change.Normalize(h.now()); err != nil {
		return err
	}
	result, err := h.Scheduler.Bulk(r.Context(), change)
	if err != nil {
		return err
	}
	to := withQuery("/ui/batches/"+b.ID, "done", "bulk-"+string(change.Verb))
	http.Redirect(w, r, withQuery(to, "n", strconv.Itoa(result.Done)), http.StatusSeeOther)
	return nil
}

// withCount puts the number of tasks that the address has into the message after a change of many.
func withCount(flash string, q url.Values) string {
	n, err := strconv.Atoi(q.Get("n"))
	if err != nil || n < 0 || flash == "" {
		return flash
	}
	tasks := " tasks."
	if n == 1 {
		tasks = " task."
	}
	return strings.TrimSuffix(flash, ".") + " " + strconv.Itoa(n) + tasks
}
