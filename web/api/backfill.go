package api

import (
	"cmp"
	"time"

	"dts"
)

// BackfillRequest is the body of POST /recurring-tasks/{id}/backfill. Local times are in the schedule's zone.
type BackfillRequest struct {
	From   TimeText `json:"from" doc:"the first instant to replay"`
	To     TimeText `json:"to" doc:"the last one; in the past"`
	DryRun bool     `json:"dry_run,omitempty" doc:"only say how many there are"`
}

func (h *Handler) backfill(c *call) (any, error) {
	id, err := c.id()
	if err != nil {
		return nil, err
	}
	var q BackfillRequest
	if err := decode(c.body, &q); err != nil {
		return nil, err
	}
	r, err := h.Store.RecurringTask(c, c.p.TenantID, id)
	if err != nil {
		return nil, err
	}
	b, err := q.request(r.TimeZone, h.Now())
	if err != nil {
		return nil, err
	}
	return h.Scheduler.BackfillRecurring(c, c.p.TenantID, id, b, c.p.Name)
}

func (q *BackfillRequest) request(zone string, now time.Time) (dts.BackfillRequest, error) {
	var f fieldErrors
	for _, x := range []struct {
		field string
		t     TimeText
	}{{"from", q.From}, {"to", q.To}} {
		if x.t.Text == "" {
			f.add(x.field, "is missing; give the time of the first and of the last instant to replay")
		}
	}
	loc := knownZone(cmp.Or(zone, "UTC"))
	b := dts.BackfillRequest{DryRun: q.DryRun}
	b.From = f.inPast("from", f.time("from", q.From, loc), now)
	b.To = f.inPast("to", f.time("to", q.To, loc), now)
	f.order("to", b.From, b.To)
	return b, f.err()
}
