package api

import (
	"cmp"
	"reflect"
	"time"

	"dts"
)

// PreviewRequest is the body of POST /schedules/preview: a schedule that is not saved, or the id of a recurring task.
type PreviewRequest struct {
	Cron                 Expressions       `json:"cron,omitempty"`
	IntervalSeconds      Interval          `json:"interval_seconds,omitempty"`
	RRule                string            `json:"rrule,omitempty"`
	TimeZone             string            `json:"time_zone,omitempty" doc:"IANA name; default: UTC"`
	DSTGap               dts.DSTGap        `json:"dst_gap,omitempty" enum:"RUN_AFTER,SKIP"`
	DSTOverlap           dts.DSTOverlap    `json:"dst_overlap,omitempty" enum:"FIRST,SECOND,BOTH"`
	StartTime            TimeText          `json:"start_time,omitzero"`
	EndTime              TimeText          `json:"end_time,omitzero"`
	MaxRuns              int64             `json:"max_runs,omitempty"`
	JitterSeconds        float64           `json:"jitter_seconds,omitempty"`
	ExcludeCalendars     []string          `json:"exclude_calendars,omitempty"`
	RequireCalendars     []string          `json:"require_calendars,omitempty"`
	CalendarShift        dts.CalendarShift `json:"calendar_shift,omitempty" enum:"NEXT_BUSINESS_DAY,PREVIOUS_BUSINESS_DAY"`
	CatchUpMode          dts.CatchUpMode   `json:"catch_up_mode,omitempty" enum:"RUN_LATEST,RUN_ONE_NOW,RUN_ALL_MISSED,SKIP_MISSED"`
	MisfireAfterSeconds  float64           `json:"misfire_after_seconds,omitempty"`
	CatchUpWindowSeconds float64           `json:"catch_up_window_seconds,omitempty"`
	CatchUpLimit         int               `json:"catch_up_limit,omitempty"`
	CatchUpPacingSeconds float64           `json:"catch_up_pacing_seconds,omitempty"`
	OverlapPolicy        dts.OverlapPolicy `json:"overlap_policy,omitempty" enum:"ALLOW,SKIP,BUFFER_ONE,BUFFER_ALL,CANCEL_RUNNING"`
	Name                 string            `json:"name,omitempty" doc:"the recurring task's name, which decides what H and ~ choose"`
	Queue                string            `json:"queue,omitempty" doc:"the queue, whose blackouts count; default: default"`
	ExpectedSeconds      float64           `json:"expected_seconds,omitempty" doc:"how long a run takes, to tell which runs would overlap; default: not known"`

	RecurringTaskID string   `json:"recurring_task_id,omitempty" doc:"preview this one as it is, in place of all of the above"`
	Count           int      `json:"count,omitempty" doc:"how many instants, 1 to 100; default 5"`
	From            TimeText `json:"from,omitzero" doc:"those after this; default: now"`
	Since           TimeText `json:"since,omitzero" doc:"also tell what would become of the instants from then until now, had they been missed"`
}

// Limits of a preview.
const (
	normalPreview = 5
	maxPreview    = 100
)

func (h *Handler) preview(c *call) (any, error) {
	var q PreviewRequest
	if err := decode(c.body, &q); err != nil {
		return nil, err
	}
	zone := q.TimeZone
	if q.RecurringTaskID != "" {
		if err := q.onlyID(); err != nil {
			return nil, err
		}
		r, err := h.Store.RecurringTask(c, c.p.TenantID, q.RecurringTaskID)
		if err != nil {
			return nil, err
		}
		zone = cmp.Or(r.TimeZone, "UTC")
	}
	p, err := q.request(zone, h.Now())
	if err != nil {
		return nil, err
	}
	return h.Scheduler.Preview(c, c.p.TenantID, p)
}

// onlyID refuses a schedule beside the id of a recurring task.
func (q *PreviewRequest) onlyID() error {
	var f fieldErrors
	f.id("recurring_task_id", q.RecurringTaskID)
	rest := *q
	rest.RecurringTaskID, rest.Count, rest.From, rest.Since = "", 0, TimeText{}, TimeText{}
	if !reflect.ValueOf(rest).IsZero() {
		f.add("recurring_task_id", "has its own schedule; give only count, from and since beside it")
	}
	return f.err()
}

// request checks what is asked. The zone is that of local times, and "" where they need an offset.
func (q *PreviewRequest) request(zone string, now time.Time) (dts.PreviewRequest, error) {
	var f fieldErrors
	p := dts.PreviewRequest{RecurringTaskID: q.RecurringTaskID, Count: cmp.Or(q.Count, normalPreview)}
	if p.Count < 1 || p.Count > maxPreview {
		f.add("count", "must be 1 to %d", maxPreview)
	}
	if p.RecurringTaskID == "" {
		q.schedule(&f, &p, now)
	}
	loc := knownZone(zone)
	p.From = f.inRange("from", f.time("from", q.From, loc), now)
	p.Since = f.inPast("since", f.time("since", q.Since, loc), now)
	return p, f.err()
}

// schedule checks the schedule by the rules of a recurring task: the template beside it is a correct one.
func (q *PreviewRequest) schedule(f *fieldErrors, p *dts.PreviewRequest, now time.Time) {
	r := RecurringRequest{
		Spec: dts.Spec{Name: q.Name, Queue: q.Queue, TargetType: dts.Command, TargetConfig: []byte(`{"argv":["true"]}`)},
		Cron: q.Cron, IntervalSeconds: q.IntervalSeconds, RRule: q.RRule, TimeZone: q.TimeZone, DSTGap: q.DSTGap, DSTOverlap: q.DSTOverlap,
		StartTime: q.StartTime, EndTime: q.EndTime, MaxRuns: q.MaxRuns, JitterSeconds: q.JitterSeconds,
		ExcludeCalendars: q.ExcludeCalendars, RequireCalendars: q.RequireCalendars, CalendarShift: q.CalendarShift,
		CatchUpMode: q.CatchUpMode, MisfireAfterSeconds: q.MisfireAfterSeconds, CatchUpWindowSeconds: q.CatchUpWindowSeconds,
		CatchUpLimit: q.CatchUpLimit, CatchUpPacingSeconds: q.CatchUpPacingSeconds, OverlapPolicy: q.OverlapPolicy,
	}
	t, err := r.recurringTask("", "", now)
	f.merge(err, nil)
	if q.ExpectedSeconds < 0 || q.ExpectedSeconds > dts.MaxTimeout.Seconds() {
		f.add("expected_seconds", "must be 0 to %v", dts.MaxTimeout.Seconds())
	}
	p.Schedule, p.Name, p.Queue, p.ExpectedSeconds = t.Schedule, t.Name, t.Queue, q.ExpectedSeconds
	p.CatchUpMode, p.MisfireAfterSeconds, p.CatchUpWindowSeconds = t.CatchUpMode, t.MisfireAfterSeconds, t.CatchUpWindowSeconds
	p.CatchUpLimit, p.CatchUpPacingSeconds, p.OverlapPolicy = t.CatchUpLimit, t.CatchUpPacingSeconds, t.OverlapPolicy
}
