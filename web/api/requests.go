package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"dts"
)

// TaskRequest is the body of POST /tasks: the task's Spec, and when to run it.
type TaskRequest struct {
	dts.Spec
	RunAt          TimeText `json:"run_at,omitzero" doc:"when to run; default: now. Without an offset it is local time in time_zone"`
	Delay          Delay    `json:"delay,omitempty" doc:"how long from now, in place of run_at"`
	TimeZone       string   `json:"time_zone,omitempty" doc:"IANA name, for times without an offset"`
	ExpiresAt      TimeText `json:"expires_at,omitzero" doc:"do not start it after this"`
	IdempotencyKey string   `json:"idempotency_key,omitempty" doc:"the same key and body again: 200 and the first task; another body: 409"`
	TracingID      string   `json:"tracing_id,omitempty" doc:"32 hexadecimal digits: the trace id of traceparent"`

	DedupeKey    string           `json:"dedupe_key,omitempty" doc:"at most one unfinished task of a tenant has it"`
	DedupePolicy dts.DedupePolicy `json:"dedupe_policy,omitempty" enum:"REJECT,KEEP_FIRST,REPLACE" doc:"when there is one: 409; 200 and that one; or that one is cancelled, also when it runs. Default: REJECT. REPLACE is for a single task"`

	DependsOn           []dts.DependsOn       `json:"depends_on,omitempty" doc:"tasks that must end first; at most 10000"`
	DependsMode         dts.DependencyMode    `json:"depends_mode,omitempty" enum:"ALL,ANY" doc:"how many of them it needs; default: ALL"`
	OnDependencyFailure dts.DependencyFailure `json:"on_dependency_failure,omitempty" enum:"SKIP,FAIL" doc:"what it becomes when they cannot be met any more: SKIPPED (the default) or FAILED"`
	Inputs              []string              `json:"inputs,omitempty" doc:"names of tasks in depends_on whose output it gets; at most 32"`
	Ref                 string                `json:"ref,omitempty" doc:"in a bulk request: a name by which depends_on of other tasks of the request can mean it"`
}

// TaskPatch is the body of PATCH /tasks/{id}. What is left out stays as it is.
type TaskPatch struct {
	dts.TaskTemplatePatch
	RunAt     TimeText `json:"run_at,omitzero" doc:"move it; scheduled_at stays"`
	Delay     Delay    `json:"delay,omitempty" doc:"move it to this long from now, in place of run_at"`
	TimeZone  string   `json:"time_zone,omitempty" doc:"IANA name, for times without an offset"`
	ExpiresAt TimeText `json:"expires_at,omitzero" doc:"null: never expires"`
}

// BulkRequest is the body of POST /tasks/bulk.
type BulkRequest struct {
	Tasks TaskList `json:"tasks" doc:"1 to 10000; all are created, or none"`
}

// BulkItem is one task of a BulkAnswer.
type BulkItem struct {
	TaskID  string     `json:"task_id"`
	Status  dts.Status `json:"status" enum:"PENDING,RUNNING,SUCCESS,FAILED,CANCELLED,SKIPPED"`
	RunAt   time.Time  `json:"run_at"`
	Existed bool       `json:"existed,omitempty" doc:"it was created before, with the same idempotency_key, or it is unfinished and has the same dedupe_key"`
}

// BulkAnswer answers POST /tasks/bulk.
type BulkAnswer struct {
	BatchID string     `json:"batch_id" doc:"of the new ones: GET /batches/{id} counts them, GET /tasks?batch_id= lists them"`
	Items   []BulkItem `json:"items" doc:"in the order of the request"`
}

// RecurringRequest is the body of POST /recurring-tasks: the template's Spec, and a schedule.
type RecurringRequest struct {
	dts.Spec
	Cron                 Expressions       `json:"cron,omitempty" doc:"5 fields, 6 with leading seconds, @daily and the like, @every 90s, @reboot; several are all meant"`
	IntervalSeconds      Interval          `json:"interval_seconds,omitempty" doc:"a fixed interval of at least 1 s, anchored at start_time, in place of cron"`
	RRule                string            `json:"rrule,omitempty" doc:"an RFC 5545 recurrence rule, hourly or slower, that begins at start_time, in place of cron"`
	TimeZone             string            `json:"time_zone,omitempty" doc:"IANA name; default: UTC"`
	DSTGap               dts.DSTGap        `json:"dst_gap,omitempty" enum:"RUN_AFTER,SKIP" doc:"when the clock is put forward over its time; default: RUN_AFTER"`
	DSTOverlap           dts.DSTOverlap    `json:"dst_overlap,omitempty" enum:"FIRST,SECOND,BOTH" doc:"when the clock is put back and its time comes twice; default: the first, or both if its minute or hour begins with *"`
	StartTime            TimeText          `json:"start_time,omitzero" doc:"no instant before this; an interval's first instant"`
	EndTime              TimeText          `json:"end_time,omitzero" doc:"no instant after this"`
	MaxRuns              int64             `json:"max_runs,omitempty" doc:"scheduled runs, not skips or triggers; 0: no limit"`
	JitterSeconds        float64           `json:"jitter_seconds,omitempty" doc:"each run is due this much later at most, always by the same share of it, so that tasks of one time spread"`
	ExcludeCalendars     []string          `json:"exclude_calendars,omitempty" doc:"calendars in whose days and windows it does not run"`
	RequireCalendars     []string          `json:"require_calendars,omitempty" doc:"calendars outside whose days and windows it does not run"`
	CalendarShift        dts.CalendarShift `json:"calendar_shift,omitempty" enum:"NEXT_BUSINESS_DAY,PREVIOUS_BUSINESS_DAY" doc:"where an excluded instant goes; default: nowhere"`
	CatchUpMode          dts.CatchUpMode   `json:"catch_up_mode,omitempty" enum:"RUN_LATEST,RUN_ONE_NOW,RUN_ALL_MISSED,SKIP_MISSED" doc:"default: RUN_LATEST"`
	MisfireAfterSeconds  float64           `json:"misfire_after_seconds,omitempty" doc:"later than this counts as missed; default 60"`
	CatchUpWindowSeconds float64           `json:"catch_up_window_seconds,omitempty" doc:"what was missed longer ago is skipped in any case; 0: no limit"`
	CatchUpLimit         int               `json:"catch_up_limit,omitempty" doc:"of RUN_ALL_MISSED: at most so many runs, 1 to 1000; default 100"`
	CatchUpPacingSeconds float64           `json:"catch_up_pacing_seconds,omitempty" doc:"of RUN_ALL_MISSED: the time from one run to the next; default 1"`
	OverlapPolicy        dts.OverlapPolicy `json:"overlap_policy,omitempty" enum:"ALLOW,SKIP,BUFFER_ONE,BUFFER_ALL,CANCEL_RUNNING" doc:"default: ALLOW"`
	IdempotencyKey       string            `json:"idempotency_key,omitempty" doc:"the same key and body again: 200 and the first one; another body: 409"`
}

// RecurringPatch is the body of PATCH /recurring-tasks/{id}. What is left out stays as it is.
type RecurringPatch struct {
	dts.TaskTemplatePatch
	Cron                 *Expressions       `json:"cron,omitempty" doc:"replaces interval_seconds and rrule too"`
	IntervalSeconds      *Interval          `json:"interval_seconds,omitempty" doc:"replaces cron and rrule too"`
	RRule                *string            `json:"rrule,omitempty" doc:"replaces cron and interval_seconds too"`
	TimeZone             *string            `json:"time_zone,omitempty"`
	DSTGap               *dts.DSTGap        `json:"dst_gap,omitempty" enum:",RUN_AFTER,SKIP" doc:"empty: the default"`
	DSTOverlap           *dts.DSTOverlap    `json:"dst_overlap,omitempty" enum:",FIRST,SECOND,BOTH" doc:"empty: the default"`
	StartTime            TimeText           `json:"start_time,omitzero" doc:"null: no start"`
	EndTime              TimeText           `json:"end_time,omitzero" doc:"null: no end"`
	MaxRuns              *int64             `json:"max_runs,omitempty" doc:"0: no limit"`
	JitterSeconds        *float64           `json:"jitter_seconds,omitempty"`
	ExcludeCalendars     *[]string          `json:"exclude_calendars,omitempty" doc:"replaces the list; [] for none"`
	RequireCalendars     *[]string          `json:"require_calendars,omitempty" doc:"replaces the list; [] for none"`
	CalendarShift        *dts.CalendarShift `json:"calendar_shift,omitempty" enum:",NEXT_BUSINESS_DAY,PREVIOUS_BUSINESS_DAY" doc:"empty: nowhere"`
	CatchUpMode          *dts.CatchUpMode   `json:"catch_up_mode,omitempty" enum:"RUN_LATEST,RUN_ONE_NOW,RUN_ALL_MISSED,SKIP_MISSED"`
	MisfireAfterSeconds  *float64           `json:"misfire_after_seconds,omitempty"`
	CatchUpWindowSeconds *float64           `json:"catch_up_window_seconds,omitempty" doc:"0: no limit"`
	CatchUpLimit         *int               `json:"catch_up_limit,omitempty"`
	CatchUpPacingSeconds *float64           `json:"catch_up_pacing_seconds,omitempty"`
	OverlapPolicy        *dts.OverlapPolicy `json:"overlap_policy,omitempty" enum:"ALLOW,SKIP,BUFFER_ONE,BUFFER_ALL,CANCEL_RUNNING"`
}

// PauseRequest is the body of POST /recurring-tasks/{id}/pause. It can be left out.
type PauseRequest struct {
	Until TimeText `json:"until,omitzero" doc:"resume by itself then; default: stay paused"`
	Note  string   `json:"note,omitempty" doc:"why, for those who wonder later"`
}

// ResumeRequest is the body of POST /recurring-tasks/{id}/resume. It can be left out.
type ResumeRequest struct {
	CatchUp bool `json:"catch_up,omitempty" doc:"make up for the instants of the pause as catch_up_mode says; default: they stay skipped"`
}

// Page is one page of a list.
type Page[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"next_cursor" doc:"give it as cursor to get the next page; empty on the last"`
}

// Items is a list that comes whole.
type Items[T any] struct {
	Items []T `json:"items"`
}

// OutputAnswer is the JSON form of GET /tasks/{id}/output. Bytes that are not UTF-8 are replaced in it.
type OutputAnswer struct {
	TaskID       string           `json:"task_id"`
	Attempt      int              `json:"attempt"`
	State        dts.AttemptState `json:"state" enum:"RUNNING,SUCCESS,FAILED,TIMED_OUT,CANCELLED,LOST"`
	TotalBytes   int64            `json:"total_bytes" doc:"how much there was in all"`
	DroppedBytes int64            `json:"dropped_bytes,omitempty" doc:"how much is missing between head and tail"`
	Head         string           `json:"head" doc:"the beginning, or all of it"`
	Tail         string           `json:"tail,omitempty" doc:"the end, when something is missing between"`
}

// OutputChunk is the data of an "output" event of GET /tasks/{id}/output?follow=1.
type OutputChunk struct {
	Attempt int    `json:"attempt"`
	Offset  int64  `json:"offset" doc:"of the text's first byte, in all that the attempt has printed"`
	Dropped int64  `json:"dropped,omitempty" doc:"bytes just before offset that are not kept"`
	Text    string `json:"text"`
}

// OutputEnd is the data of the "end" event of GET /tasks/{id}/output?follow=1.
type OutputEnd struct {
	Attempt int              `json:"attempt,omitempty" doc:"absent when the task ended without a run"`
	State   dts.AttemptState `json:"state,omitempty" doc:"of the attempt"`
	Status  dts.Status       `json:"status" doc:"of the task; PENDING when there will be another attempt"`
	Error   string           `json:"error,omitempty"`
}

// LoginLink answers POST /login-links.
type LoginLink struct {
	URL       string    `json:"url" doc:"opens the page and signs in, once"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Health answers GET /health.
type Health struct {
	Status string `json:"status" enum:"ok"`
}

// Reloaded answers POST /reload.
type Reloaded struct {
	Changes []dts.SettingChange `json:"changes" doc:"what differs from how the server ran"`
}

// Readiness answers GET /ready.
type Readiness struct {
	Ready   bool     `json:"ready"`
	Reasons []string `json:"reasons,omitempty" doc:"why it is not ready"`
}

// task makes the task that a request asks for.
func (q *TaskRequest) task(tenant, actor string, now time.Time, refs map[string]string) (*dts.Task, error) {
	var f fieldErrors
	t := &dts.Task{Spec: q.Spec, TenantID: tenant, CreatedBy: actor, IdempotencyKey: q.IdempotencyKey, TracingID: q.TracingID,
		DedupeKey: q.DedupeKey, DedupePolicy: q.DedupePolicy, DependsMode: q.DependsMode, OnDependencyFailure: q.OnDependencyFailure, Inputs: q.Inputs}
	hash := requestHash(q.IdempotencyKey, q) // before anything is filled in
	t.DependsOn = f.dependsOn(q.DependsOn, refs)
	if t.ID = refs[q.Ref]; q.Ref != "" && refs == nil {
		f.add("ref", "is for POST /tasks/bulk; leave it out")
	}
	loc := f.zone("time_zone", q.TimeZone)
	t.RunAt = f.when(q.RunAt, q.Delay, loc, now)
	t.ExpiresAt = f.time("expires_at", q.ExpiresAt, loc)
	f.zoneUsed("time_zone", q.TimeZone, q.RunAt, q.ExpiresAt)
	t.RequestHash = hash
	bad := f.names()
	f.merge(t.Normalize(now), bad)
	f.target(q.Spec.TargetType, q.Spec.TargetConfig)
	return t, f.err()
}

// requestHash tells whether two requests with the same idempotency key asked for the same. It is taken of
// what was asked, not of what became of it: "in an hour" is another time each time. Spaces, the order of
// fields and how a key was sent do not matter.
func requestHash(key string, request any) string {
	if key == "" {
		return ""
	}
	b, err := json.Marshal(request)
	if err != nil {
		return "" // it was JSON a moment ago
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// patch makes the patch that a request asks for.
func (q *TaskPatch) patch(now time.Time) (dts.TaskPatch, error) {
	var f fieldErrors
	p := dts.TaskPatch{TaskTemplatePatch: q.TaskTemplatePatch}
	loc := f.zone("time_zone", q.TimeZone)
	if q.RunAt.Null {
		f.add("run_at", "cannot be null; leave it out to keep it")
	} else if !q.RunAt.IsZero() || q.Delay != "" {
		at := f.when(q.RunAt, q.Delay, loc, now)
		p.RunAt = &at
	}
	p.ExpiresAt = f.patchTime("expires_at", q.ExpiresAt, loc)
	f.zoneUsed("time_zone", q.TimeZone, q.RunAt, q.ExpiresAt)
	return p, f.err()
}

// refuseNulls refuses null for the fields of a patch that have nothing to fall back to.
func refuseNulls(body []byte, allowed ...string) error {
	var f fieldErrors
	eachMember(json.RawMessage(body), func(name string, item json.RawMessage) {
		if string(item) == "null" && !containsFold(allowed, name) {
			f.add(clip(name), "cannot be null; leave it out to keep what it is")
		}
	})
	return f.err()
}
