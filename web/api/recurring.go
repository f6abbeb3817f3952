package api

import (
	"bytes"
	"time"

	"dts"
)

func (h *Handler) createRecurring(c *call) (any, error) {
	var q RecurringRequest
	if err := decode(c.body, &q); err != nil {
		return nil, err
	}
	if err := c.idempotencyKey(&q.IdempotencyKey); err != nil {
		return nil, err
	}
	r, err := q.recurringTask(c.p.TenantID, c.p.Name, h.Now())
	if err != nil {
		return nil, err
	}
	made, err := h.Scheduler.CreateRecurring(c, r)
	if err != nil {
		return nil, err
	}
	if made.Existed {
		c.status = 200
	}
	return made.Item, nil
}

// recurringTask makes the recurring task that a request asks for.
func (q *RecurringRequest) recurringTask(tenant, actor string, now time.Time) (*dts.RecurringTask, error) {
	var f fieldErrors
	created := dts.Micros(now)
	r := &dts.RecurringTask{
		ID: dts.NewID(now), TenantID: tenant, Spec: q.Spec, Status: dts.Active,
		CreatedAt: created, CreatedBy: actor, UpdatedAt: created,
		CatchUpMode: q.CatchUpMode, MisfireAfterSeconds: q.MisfireAfterSeconds, CatchUpWindowSeconds: q.CatchUpWindowSeconds,
		CatchUpLimit: q.CatchUpLimit, CatchUpPacingSeconds: q.CatchUpPacingSeconds, OverlapPolicy: q.OverlapPolicy,
		IdempotencyKey: q.IdempotencyKey, RequestHash: requestHash(q.IdempotencyKey, q),
	}
	r.Shard = dts.ShardOf(r.ID)
	r.Schedule = q.schedule(&f)
	bad := f.names()
	f.merge(r.Normalize(), bad)
	f.target(q.TargetType, q.TargetConfig)
	if len(bad) == 0 {
		f.schedule(&r.Schedule, r.Name, now)
	}
	return r, f.err()
}

func (q *RecurringRequest) schedule(f *fieldErrors) dts.Schedule {
	loc := f.zone("time_zone", q.TimeZone)
	return dts.Schedule{
		Cron: string(q.Cron), IntervalSeconds: float64(q.IntervalSeconds), RRule: q.RRule,
		TimeZone: q.TimeZone, DSTGap: q.DSTGap, DSTOverlap: q.DSTOverlap,
		StartTime: f.time("start_time", q.StartTime, loc), EndTime: f.time("end_time", q.EndTime, loc),
		MaxRuns: q.MaxRuns, JitterSeconds: q.JitterSeconds,
		ExcludeCalendars: q.ExcludeCalendars, RequireCalendars: q.RequireCalendars, CalendarShift: q.CalendarShift,
	}
}

func (h *Handler) listRecurring(c *call) (any, error) {
	var f fieldErrors
	filter := dts.RecurringFilter{
		TenantID: c.p.TenantID, Name: c.query.Get("name"),
		Statuses: enumList(&f, "status", c.query["status"], []dts.RecurringStatus{dts.Active, dts.Paused, dts.Completed, dts.Ended}),
		Cursor:   f.cursor(c.query.Get("cursor")),
		Limit:    f.number("limit", c.query.Get("limit"), normalPage, maxPage),
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	return page(h.Store.RecurringTasks(c, filter))
}

func (h *Handler) getRecurring(c *call) (any, error) {
	id, err := c.id()
	if err != nil {
		return nil, err
	}
	return h.Store.RecurringTask(c, c.p.TenantID, id)
}

// modifyRecurring checks the patch against the recurring task as it is now, to tell what is wrong with the
// cron expression or the zone; the scheduler applies it to what it is then.
func (h *Handler) modifyRecurring(c *call) (any, error) {
	id, err := c.id()
	if err != nil {
		return nil, err
	}
	var q RecurringPatch
	if err := decode(c.body, &q); err != nil {
		return nil, err
	}
	if err := refuseNulls(c.body, "start_time", "end_time"); err != nil {
		return nil, err
	}
	now, err := h.Store.RecurringTask(c, c.p.TenantID, id)
	if err != nil {
		return nil, err
	}
	p, err := q.patch(now, h.Now())
	if err != nil {
		return nil, err
	}
	return h.Scheduler.ModifyRecurring(c, c.p.TenantID, id, p)
}

// patch makes the patch that a request asks for, and checks what would become of r.
func (q *RecurringPatch) patch(r *dts.RecurringTask, now time.Time) (dts.RecurringPatch, error) {
	var f fieldErrors
	p := dts.RecurringPatch{
		TaskTemplatePatch: q.TaskTemplatePatch,
		Cron:              (*string)(q.Cron), RRule: q.RRule, TimeZone: q.TimeZone, DSTGap: q.DSTGap, DSTOverlap: q.DSTOverlap,
		MaxRuns: q.MaxRuns, JitterSeconds: q.JitterSeconds,
		ExcludeCalendars: q.ExcludeCalendars, RequireCalendars: q.RequireCalendars, CalendarShift: q.CalendarShift,
		CatchUpMode: q.CatchUpMode, MisfireAfterSeconds: q.MisfireAfterSeconds, CatchUpWindowSeconds: q.CatchUpWindowSeconds,
		CatchUpLimit: q.CatchUpLimit, CatchUpPacingSeconds: q.CatchUpPacingSeconds, OverlapPolicy: q.OverlapPolicy,
	}
	if q.IntervalSeconds != nil {
		seconds := float64(*q.IntervalSeconds)
		p.IntervalSeconds = &seconds
	}
	zone := r.TimeZone
	if q.TimeZone != nil {
		zone = *q.TimeZone
	}
	loc := f.zone("time_zone", zone)
	p.StartTime = f.patchTime("start_time", q.StartTime, loc)
	p.EndTime = f.patchTime("end_time", q.EndTime, loc)
	if err := f.err(); err != nil {
		return p, err
	}
	changed, err := p.Apply(r)
	f.merge(err, nil)
	f.target(r.TargetType, q.TargetConfig)
	if err == nil && q.schedules() {
		f.schedule(&changed.Schedule, changed.Name, now)
	}
	return p, f.err()
}

// schedules reports whether the patch changes when it runs. Only then does the new schedule need an instant
// that is still to come: the description of one that has ended can be changed.
func (q *RecurringPatch) schedules() bool {
	return q.Cron != nil || q.IntervalSeconds != nil || q.RRule != nil || q.TimeZone != nil || q.DSTGap != nil || q.DSTOverlap != nil ||
		!q.StartTime.IsZero() || !q.EndTime.IsZero()
}

func (h *Handler) cancelRecurring(c *call) (any, error) {
	id, err := c.id()
	if err != nil {
		return nil, err
	}
	return h.Scheduler.CancelRecurring(c, c.p.TenantID, id, c.p.Name)
}

func (h *Handler) pauseRecurring(c *call) (any, error) {
	id, err := c.id()
	if err != nil {
		return nil, err
	}
	var q PauseRequest
	if len(bytes.TrimSpace(c.body)) > 0 {
		if err := decode(c.body, &q); err != nil {
			return nil, err
		}
	}
	var f fieldErrors
	until := f.inFuture("until", f.time("until", q.Until, nil), h.Now())
	switch {
	case len(q.Note) > dts.MaxDescription:
		f.add("note", "is %d bytes long; at most %d are allowed", len(q.Note), dts.MaxDescription)
	case badText(q.Note):
		f.add("note", "holds a NUL byte")
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	return h.Scheduler.PauseRecurring(c, c.p.TenantID, id, until, q.Note, c.p.Name)
}

func (h *Handler) resumeRecurring(c *call) (any, error) {
	id, err := c.id()
	if err != nil {
		return nil, err
	}
	var q ResumeRequest
	if len(bytes.TrimSpace(c.body)) > 0 {
		if err := decode(c.body, &q); err != nil {
			return nil, err
		}
	}
	return h.Scheduler.ResumeRecurring(c, c.p.TenantID, id, q.CatchUp, c.p.Name)
}

func (h *Handler) triggerRecurring(c *call) (any, error) {
	id, err := c.id()
	if err != nil {
		return nil, err
	}
	return h.Scheduler.TriggerRecurring(c, c.p.TenantID, id, c.p.Name)
}

func (h *Handler) listUpcoming(c *call) (any, error) {
	id, limit, _, err := h.ledgerQuery(c, 10)
	if err != nil {
		return nil, err
	}
	list, err := h.Store.Upcoming(c, c.p.TenantID, id, limit)
	return Items[*dts.Task]{nonNil(list)}, err
}

func (h *Handler) listOccurrences(c *call) (any, error) {
	id, limit, cursor, err := h.ledgerQuery(c, normalPage)
	if err != nil {
		return nil, err
	}
	return page(h.Store.Occurrences(c, c.p.TenantID, id, cursor, limit))
}

// ledgerQuery reads what upcoming and occurrences have in common, and makes sure that the recurring task
// exists: an empty list would hide a wrong id.
func (h *Handler) ledgerQuery(c *call, normal int) (id string, limit int, cursor string, err error) {
	if id, err = c.id(); err != nil {
		return
	}
	var f fieldErrors
	limit = f.number("limit", c.query.Get("limit"), normal, maxPage)
	cursor = f.cursor(c.query.Get("cursor"))
	if err = f.err(); err != nil {
		return
	}
	_, err = h.Store.RecurringTask(c, c.p.TenantID, id)
	return
}
