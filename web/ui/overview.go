package ui

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"dts"
	"dts/web/auth"
)

const (
	tasksPerPage     = 30
	recurringPerPage = 30
	runningShown     = 20
)

type overviewPage struct {
	shared
	Counts counts

	Recurring     []recurringRow
	RecurringNext string // address of the next page of recurring tasks
	Ended         bool   // recurring tasks that have ended are listed too

	Tabs   []tab
	Status string // of the filter, "" for what ran
	Tasks  []taskRow
	First  bool   // this is the first page of tasks
	Next   string // address of the next page of tasks
	Self   string // address of this page, to refresh it

	Servers []serverRow // of the cluster; none where this server is alone
}

// counts are the numbers of tasks in the states that people watch. A number at the limit reads "10000+".
type counts struct{ Pending, Running, Failed string }

func countsOf(c dts.Counts) counts {
	show := func(n int64) string {
		if c.Capped && n >= 10_000 {
			return strconv.FormatInt(n, 10) + "+"
		}
		return strconv.FormatInt(n, 10)
	}
	return counts{show(c.Pending), show(c.Running), show(c.Failed)}
}

type tab struct {
	Name, URL string
	Current   bool
}

type recurringRow struct {
	*dts.RecurringTask
	Schedule string // in words
	Zone     string
}

// serverRow is one server of the cluster.
type serverRow struct{ dts.NodeStatus }

// Short is the part of a server's id that differs from the others'.
func (s serverRow) Short() string { return s.ID[max(0, len(s.ID)-8):] }

// Seen is how long ago its last sign of life was.
func (s serverRow) Seen() time.Duration {
	return time.Duration(s.SeenSecondsAgo * float64(time.Second)).Truncate(100 * time.Millisecond)
}

// Clock is how its clock differs from this server's, as far as that matters.
func (s serverRow) Clock() string {
	switch {
	case s.Self || s.ClockSkewMS > -1000 && s.ClockSkewMS < 1000:
		return ""
	case s.ClockSkewMS < 0:
		return duration(time.Duration(-s.ClockSkewMS)*time.Millisecond) + " behind"
	}
	return duration(time.Duration(s.ClockSkewMS)*time.Millisecond) + " ahead"
}

// filters are the tabs above the tasks. What is planned would drown what ran, so it has its own tab.
var filters = [...]struct {
	key, name string
	statuses  []dts.Status
}{
	{"", "Recent", []dts.Status{dts.Running, dts.Success, dts.Failed, dts.Cancelled, dts.Skipped}},
	{"pending", "Pending", []dts.Status{dts.Pending}},
	{"running", "Running", []dts.Status{dts.Running}},
	{"success", "Succeeded", []dts.Status{dts.Success}},
	{"failed", "Failed", []dts.Status{dts.Failed}},
	{"cancelled", "Cancelled", []dts.Status{dts.Cancelled}},
	{"skipped", "Skipped", []dts.Status{dts.Skipped}},
}

// overview is the first page: what recurs, and what ran or runs.
func (h *handler) overview(w http.ResponseWriter, r *http.Request, p auth.Principal) error {
	ctx, q := r.Context(), r.URL.Query()
	d := overviewPage{shared: h.shared(r, "overview"), Ended: q.Get("ended") != "", Self: selfURL(q)}
	c, err := h.Store.Counts(ctx, p.TenantID)
	if err != nil {
		return err
	}
	d.Counts = countsOf(c)
	if err := h.listRecurring(ctx, p, q, &d); err != nil {
		return err
	}
	if err := h.listTasks(ctx, p, q, &d); err != nil {
		return err
	}
	for _, n := range d.status.Nodes {
		d.Servers = append(d.Servers, serverRow{n})
	}
	return h.render(w, http.StatusOK, "overview", d)
}

// selfURL is the address of the page without the message that was shown once.
func selfURL(q url.Values) string {
	n := url.Values{}
	for _, k := range []string{"status", "cursor", "ended", "recurring"} {
		if v := q.Get(k); v != "" {
			n.Set(k, v)
		}
	}
	if len(n) == 0 {
		return "/ui/"
	}
	return "/ui/?" + n.Encode()
}

func (h *handler) listRecurring(ctx context.Context, p auth.Principal, q url.Values, d *overviewPage) error {
	f := dts.RecurringFilter{TenantID: p.TenantID, Limit: recurringPerPage, Cursor: q.Get("recurring")}
	if !d.Ended {
		f.Statuses = []dts.RecurringStatus{dts.Active, dts.Paused}
	}
	page, err := fill(f.Limit, f.Cursor, func(cursor string) (dts.Page[*dts.RecurringTask], error) {
		f.Cursor = cursor
		return h.Store.RecurringTasks(ctx, f)
	})
	if err != nil {
		return err
	}
	for _, rt := range page.Items {
		_, zone := zoneOf(rt.Schedule)
		d.Recurring = append(d.Recurring, recurringRow{rt, describe(rt.Schedule, rt.CreatedAt), zone})
	}
	if page.Next != "" {
		n := url.Values{"recurring": {page.Next}}
		if d.Ended {
			n.Set("ended", "1")
		}
		d.RecurringNext = "/ui/?" + n.Encode()
	}
	return nil
}

func (h *handler) listTasks(ctx context.Context, p auth.Principal, q url.Values, d *overviewPage) error {
	f := dts.TaskFilter{TenantID: p.TenantID, Limit: tasksPerPage, Cursor: q.Get("cursor")}
	for _, x := range filters {
		t := tab{Name: x.name, URL: "/ui/#tasks", Current: x.key == q.Get("status")}
		if x.key != "" {
			t.URL = "/ui/?status=" + x.key + "#tasks"
		}
		if t.Current {
			d.Status, f.Statuses = x.key, x.statuses
		}
		d.Tabs = append(d.Tabs, t)
	}
	if f.Statuses == nil {
		return dts.Errorf(dts.ErrNotFound, "there is no list of tasks with this status")
	}
	d.First = f.Cursor == ""

	// What runs comes first on the first page, and only there; the runs of workflows with it, whose state is PENDING.
	var tasks []*dts.Task
	if d.First && (d.Status == "" || d.Status == "running") {
		var err error
		if tasks, err = h.Store.RunsUnderWay(ctx, p.TenantID, runningShown); err != nil {
			return err
		}
	}
	if d.Status == "" {
		f.Statuses = f.Statuses[1:]
		if d.First {
			running := dts.TaskFilter{TenantID: p.TenantID, Statuses: []dts.Status{dts.Running}, Limit: runningShown}
			page, err := h.Store.Tasks(ctx, running)
			if err != nil {
				return err
			}
			tasks = append(tasks, page.Items...)
		}
	}
	page, err := fill(f.Limit, f.Cursor, func(cursor string) (dts.Page[*dts.Task], error) {
		f.Cursor = cursor
		return h.Store.Tasks(ctx, f)
	})
	if err != nil {
		return err
	}
	d.Tasks = taskRows(tasks, page.Items, d.Now)
	if err := h.complete(ctx, p, d.Tasks); err != nil {
		return err
	}
	if page.Next != "" {
		n := url.Values{"cursor": {page.Next}}
		if d.Status != "" {
			n.Set("status", d.Status)
		}
		d.Next = "/ui/?" + n.Encode() + "#tasks"
	}
	return nil
}

// taskPage reads a page of tasks in the store's order, and where the next one begins; "" on the last.
func (h *handler) taskPage(ctx context.Context, p auth.Principal, f dts.TaskFilter, now time.Time) (rows []taskRow, next string, err error) {
	page, err := fill(f.Limit, f.Cursor, func(cursor string) (dts.Page[*dts.Task], error) {
		f.Cursor = cursor
		return h.Store.Tasks(ctx, f)
	})
	if err != nil {
		return nil, "", err
	}
	for _, t := range page.Items {
		rows = append(rows, taskRow{Task: t, now: now})
	}
	return rows, page.Next, h.complete(ctx, p, rows)
}

// taskRows puts the running tasks first and orders the rest of the page by the time it shows: the store's
// order is that of creation, and a weekly task was created long before it ran. Pending tasks come soonest
// first. A task that ended between the two reads is shown once.
func taskRows(running, rest []*dts.Task, now time.Time) []taskRow {
	var rows []taskRow
	for _, t := range running {
		if !slices.ContainsFunc(rest, func(o *dts.Task) bool { return o.ID == t.ID }) {
			rows = append(rows, taskRow{Task: t, now: now})
		}
	}
	n := len(rows)
	for _, t := range rest {
		rows = append(rows, taskRow{Task: t, now: now})
	}
	slices.SortStableFunc(rows[n:], func(a, b taskRow) int {
		if a.Status == dts.Pending && b.Status == dts.Pending {
			return a.At().Compare(b.At())
		}
		return b.At().Compare(a.At())
	})
	return rows
}

// fill reads pages until there are limit items, or no more, or it has looked often enough: one page of the
// store can be short, even empty, without being the last.
func fill[T any](limit int, cursor string, read func(cursor string) (dts.Page[T], error)) (dts.Page[T], error) {
	var all dts.Page[T]
	for range 5 {
		page, err := read(cursor)
		if err != nil {
			return all, err
		}
		all.Items = append(all.Items, page.Items...)
		all.Next, cursor = page.Next, page.Next
		if all.Next == "" || len(all.Items) >= limit/2 {
			break
		}
	}
	return all, nil
}
