package ui

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"dts"
	"dts/web/auth"
)

type queuesPage struct {
	shared
	Queues []queueRow
	Self   string
}

// queueRow is one queue of the list.
type queueRow struct {
	*dts.Queue
	Depth   string    // how many wait
	Oldest  time.Time // since when the first of them does; zero: none waits
	Rate    string    // in words; "" for none
	Retries string    // of what is created in it; "" for the usual ones
	Keeps   string    // of what has ended; "" for as long as all
	Path    string    // of its verbs
}

// queues lists the queues that have settings, or tasks that are not finished.
func (h *handler) queues(w http.ResponseWriter, r *http.Request, p auth.Principal) error {
	list, err := h.Scheduler.Queues(r.Context(), p.TenantID)
	if err != nil {
		return err
	}
	d := queuesPage{shared: h.shared(r, "queues"), Self: "/ui/queues"}
	for _, q := range list {
		d.Queues = append(d.Queues, newQueueRow(q, d.Now))
	}
	return h.render(w, http.StatusOK, "queues", d)
}

func newQueueRow(q *dts.Queue, now time.Time) queueRow {
	row := queueRow{Queue: q, Depth: strconv.FormatInt(q.Waiting, 10), Path: "/ui/queues/" + url.PathEscape(q.Name)}
	if q.Waiting >= 10_000 { // not all are counted
		row.Depth = "10,000 or more"
	}
	if q.Waiting > 0 {
		row.Oldest = now.Add(-time.Duration(q.OldestAgeSeconds * float64(time.Second)))
	}
	if q.Rate > 0 {
		row.Rate = strconv.Itoa(q.Rate) + " each " + seconds(q.PeriodSeconds)
		switch q.PeriodSeconds {
		case 1:
			row.Rate = strconv.Itoa(q.Rate) + " a second"
		case 60:
			row.Rate = strconv.Itoa(q.Rate) + " a minute"
		case 3600:
			row.Rate = strconv.Itoa(q.Rate) + " an hour"
		}
		if q.Burst > 1 {
			row.Rate += ", " + strconv.Itoa(q.Burst) + " at once after a rest"
		}
	}
	switch {
	case q.Retry == nil:
	case q.Retry.MaxAttempts > 1:
		row.Retries = strconv.Itoa(q.Retry.MaxAttempts) + " attempts, " + backoffText(*q.Retry)
	default:
		row.Retries = "none"
	}
	if k := q.Retention; k != nil {
		var list []string
		if k.Seconds > 0 {
			list = append(list, seconds(k.Seconds))
		}
		if k.Rows > 0 {
			list = append(list, strconv.FormatInt(k.Rows, 10)+" tasks")
		}
		if k.Bytes > 0 {
			list = append(list, byteSize(k.Bytes))
		}
		row.Keeps = strings.Join(list, ", ")
	}
	return row
}

// doQueue pauses or resumes a queue.
func (h *handler) doQueue(w http.ResponseWriter, r *http.Request, p auth.Principal) error {
	name, verb := r.PathValue("name"), r.PathValue("verb")
	if err := r.ParseForm(); err != nil {
		return dts.Errorf(dts.ErrInvalid, "the form could not be read")
	}
	var err error
	switch verb {
	case "pause":
		_, err = h.Scheduler.PauseQueue(r.Context(), p.TenantID, name, strings.TrimSpace(r.PostForm.Get("note")))
	case "resume":
		_, err = h.Scheduler.ResumeQueue(r.Context(), p.TenantID, name)
	default:
		return dts.Errorf(dts.ErrNotFound, "there is no such page")
	}
	if err != nil {
		return err
	}
	http.Redirect(w, r, withQuery("/ui/queues", "done", verb+"-queue"), http.StatusSeeOther)
	return nil
}
