package ui

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
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
	Pings    *pingsView // of a PING
	Steps    *stepsView // of a workflow
	Missed   string     // of a paused one: what a resume could make up for
	Why      string     // the answer that was asked for
	recurringForms
}

// MissedRuns says what becomes of missed runs.
func (d recurringPage) MissedRuns() string { return missedText(d.RecurringTask) }

// upcomingRow is an instant that comes: a task, or a range of instants that will not run.
type upcomingRow struct {
	*dts.Task
	Skip    *dts.Skip
	At, To  time.Time
	Local   string // At as a clock in the schedule's zone shows it
	LocalTo string // the last instant of a range
	Starts  string // when it starts, where that is another time
	By      string // when the job of a PING must have reported
	Off     bool   // it is planned and will not run
	Why     string // why it will not run, or what it waits for
	Effects []dts.PreviewEffect
}

// Times is how many instants a row stands for.
func (u upcomingRow) Times() int64 {
	if u.Skip == nil {
		return 1
	}
	return u.Skip.Count
}

// ledgerRow is one instant that came: a task, or a range of skipped ones.
type ledgerRow struct {
	dts.Occurrence
	Row  taskRow // the task, if Task is not nil
	Why  string  // the reason of a skip, in words
	Late *int64  // lateness of the first start, in microseconds
	Ask  string  // address of the answer to "why?"; empty where nobody would ask
}

// recurring shows a recurring task: its schedule, what comes next and what became of every instant before.
func (h *handler) recurring(w http.ResponseWriter, r *http.Request, p auth.Principal) error {
	return h.showRecurring(w, r, p, http.StatusOK, "", recurringForms{})
}

func (h *handler) showRecurring(w http.ResponseWriter, r *http.Request, p auth.Principal, status int, alert string, forms recurringForms) error {
	ctx, id, cursor := r.Context(), r.PathValue("id"), r.URL.Query().Get("cursor")
	if !dts.IsID(id) {
		return dts.Errorf(dts.ErrNotFound, "there is no recurring task %q", clip(id, 40))
	}
	rt, err := h.Store.RecurringTask(ctx, p.TenantID, id)
	if err != nil {
		return err
	}
	d := recurringPage{shared: h.shared(r, ""), Target: viewTarget(rt.Spec), Facts: recurringFacts(rt), First: cursor == "",
		Self: "/ui/recurring/" + id, recurringForms: forms}
	if rt.TargetType == dts.WorkflowRun {
		d.Steps = newSteps(&dts.Task{Spec: rt.Spec}, nil, d.Now)
		d.Steps.cut(r, &d.Self)
	}
	loc, zone := zoneOf(rt.Schedule)
	d.recurringRow = recurringRow{rt, describe(rt.Schedule, rt.CreatedAt), zone}
	d.Alert = alert
	if d.Pings, err = h.viewPings(r, p, rt); err != nil {
		return err
	}
	if !d.First {
		d.Self = withQuery(d.Self, "cursor", cursor)
	}
	if at, err := time.Parse(time.RFC3339Nano, r.URL.Query().Get("why")); err == nil {
		d.Self = withQuery(d.Self, "why", r.URL.Query().Get("why"))
		d.Why = h.why(r, p, id, at)
	}
	upcoming, err := h.Store.Upcoming(ctx, p.TenantID, id, ahead)
	if err != nil {
		return err
	}
	page, err := h.ledger(ctx, p, id, cursor)
	if err != nil {
		return err
	}
	var excluded []*dts.Skip
	for _, o := range page.Items {
		switch {
		case o.Task != nil && o.Task.Status == dts.Pending && o.Task.Attempts == 0 && (o.Task.RunAt.After(d.Now) || o.Task.WaitsFor != ""):
			// It is among the upcoming ones.
		case o.Task == nil && o.Skip != nil && o.Skip.From.After(d.Now):
			excluded = append(excluded, o.Skip)
		default:
			d.Ledger = append(d.Ledger, newLedgerRow(o, id, d.Now))
		}
	}
	if page.Next != "" {
		d.Next = "/ui/recurring/" + id + "?" + url.Values{"cursor": {page.Next}}.Encode() + "#ledger"
	}
	if err := h.completeLedger(ctx, p, d.Ledger); err != nil {
		return err
	}
	effects := h.effects(r, p, rt, &d)
	d.Upcoming = upcomingRows(upcoming, excluded, effects, loc)
	return h.render(w, status, "recurring", d)
}

func (h *handler) ledger(ctx context.Context, p auth.Principal, id, cursor string) (dts.Page[dts.Occurrence], error) {
	return fill(ledgerPerPage, cursor, func(cursor string) (dts.Page[dts.Occurrence], error) {
		return h.Store.Occurrences(ctx, p.TenantID, id, cursor, ledgerPerPage)
	})
}

// completeLedger says of the runs of a workflow that are under way how far they are.
func (h *handler) completeLedger(ctx context.Context, p auth.Principal, ledger []ledgerRow) error {
	var rows []taskRow
	var at []int
	for i, l := range ledger {
		if l.Task != nil && l.Row.Going() {
			rows, at = append(rows, l.Row), append(at, i)
		}
	}
	if err := h.complete(ctx, p, rows); err != nil {
		return err
	}
	for n, i := range at {
		ledger[i].Row, ledger[i].Why = rows[n], rows[n].Waits()
	}
	return nil
}

// effects asks what becomes of the coming instants, and, of a paused task, what a resume could make up for. The
// page can do without the answer.
func (h *handler) effects(r *http.Request, p auth.Principal, rt *dts.RecurringTask, d *recurringPage) map[time.Time]dts.PreviewInstant {
	if rt.Status != dts.Active && rt.Status != dts.Paused {
		return nil
	}
	q := dts.PreviewRequest{RecurringTaskID: rt.ID, Count: 2 * ahead}
	if rt.Status == dts.Paused {
		q.Since = rt.PausedAt
	}
	answer, err := h.Scheduler.Preview(r.Context(), p.TenantID, q)
	if err != nil {
		h.explain(r, err)
		return nil
	}
	if answer.Missed != nil {
		d.Missed = answer.Missed.Text
	}
	effects := make(map[time.Time]dts.PreviewInstant, len(answer.Instants))
	for _, i := range answer.Instants {
		effects[i.UTC.UTC()] = i
	}
	return effects
}

// upcomingRows puts the planned tasks and what calendars exclude between them in order.
func upcomingRows(tasks []*dts.Task, excluded []*dts.Skip, effects map[time.Time]dts.PreviewInstant, loc *time.Location) []upcomingRow {
	var rows []upcomingRow
	for _, t := range tasks {
		row := upcomingRow{Task: t, At: t.ScheduledAt, Why: waitText(t.WaitsFor)}
		if t.Moved {
			row.At = t.RunAt
		}
		if !t.RunAt.Equal(row.At) {
			row.Starts = wallTime(t.RunAt.In(loc), row.At.In(loc))
			if t.Origin == dts.OriginSchedule && t.RunAt.Equal(t.DueAt) && !t.Moved {
				row.Starts += ", its share of the spread"
			}
		}
		if t.TargetType == dts.Ping {
			row.At, row.Starts, row.By = t.ScheduledAt, "", wallTime(t.RunAt.In(loc), t.ScheduledAt.In(loc))
		}
		row.Local = wallClock(row.At.In(loc))
		if i, ok := effects[t.ScheduledAt.UTC()]; ok && !t.Moved {
			row.Off = !i.Runs
			for _, e := range i.Effects {
				if e.Kind != dts.EffectJitter && e.Kind != dts.EffectPing { // the row says when it starts
					row.Effects = append(row.Effects, e)
				}
			}
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(excluded, func(a, b *dts.Skip) int { return a.From.Compare(b.From) })
	for n, k := range excluded {
		if len(tasks) > 0 && k.From.After(tasks[len(tasks)-1].ScheduledAt) || len(tasks) == 0 && n == ahead {
			break
		}
		row := upcomingRow{Skip: k, At: k.From, To: k.To, Off: true, Local: wallClock(k.From.In(loc)), Why: withNote(reasonText(k.Reason), k.Note)}
		if k.Count > 1 {
			row.LocalTo = wallTime(k.To.In(loc), k.From.In(loc))
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b upcomingRow) int { return cmp.Or(a.At.Compare(b.At), a.To.Compare(b.To)) })
	return rows
}

// askLate is how late a start is that people ask about.
const askLate = time.Second

func newLedgerRow(o dts.Occurrence, id string, now time.Time) ledgerRow {
	row := ledgerRow{Occurrence: o}
	ask := "/ui/recurring/" + id + "?" + url.Values{"why": {o.ScheduledAt.UTC().Format(time.RFC3339Nano)}}.Encode() + "#why"
	switch {
	case o.Task != nil:
		t := o.Task
		row.Row, row.Late = taskRow{Task: t, now: now}, t.LatenessUS
		note := ""
		if o.Skip != nil {
			note = o.Skip.Note
		}
		if t.Status == dts.Skipped {
			row.Why = withNote(reasonText(t.SkipReason), note)
		}
		late := t.LatenessUS != nil && time.Duration(*t.LatenessUS)*time.Microsecond >= askLate
		if t.Status == dts.Skipped || t.Status == dts.Failed || late {
			if row.Ask = ask; t.Origin != dts.OriginSchedule {
				row.Ask = "/ui/tasks/" + t.ID + "#why" // its instant may be another run's too
			}
		}
	case o.Skip != nil:
		row.Why, row.Ask = withNote(reasonText(o.Skip.Reason), o.Skip.Note), ask
	}
	return row
}

// why asks why a task or an instant did or did not run. A page can do without the answer.
func (h *handler) why(r *http.Request, p auth.Principal, id string, at time.Time) string {
	answer, err := h.Scheduler.Why(r.Context(), p.TenantID, id, at)
	if err != nil {
		if dts.CodeOf(err) == dts.ErrNotFound {
			return sentence("", err.Error())
		}
		h.explain(r, err)
		return ""
	}
	return answer.Answer
}
