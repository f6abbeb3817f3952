package dts

import (
	"hash/fnv"
	"slices"
	"time"
)

// RecurringStatus is the state of a recurring task.
type RecurringStatus string

const (
	Active    RecurringStatus = "ACTIVE"
	Paused    RecurringStatus = "PAUSED"    // its instants are recorded as skipped until it is resumed
	Completed RecurringStatus = "COMPLETED" // end_time or max_runs reached
	Ended     RecurringStatus = "CANCELLED" // removed by a user; its history stays
)

// CatchUpMode says what to do about instants that were missed by more than misfire_after_seconds.
type CatchUpMode string

const (
	// RunLatest runs the newest missed instant under its own scheduled_at and skips the older ones.
	RunLatest CatchUpMode = "RUN_LATEST"
	// RunOneNow skips every missed instant and runs one task at once instead, of origin CATCH_UP.
	RunOneNow CatchUpMode = "RUN_ONE_NOW"
	// RunAllMissed runs the newest catch_up_limit missed instants, the oldest of them first, catch_up_pacing_seconds
	// apart, and skips those before.
	RunAllMissed CatchUpMode = "RUN_ALL_MISSED"
	// SkipMissed skips every missed instant.
	SkipMissed CatchUpMode = "SKIP_MISSED"
)

// OverlapPolicy says what to do at an instant when an earlier occurrence is still active, that is, between
// its first start and its terminal state, backoff included.
type OverlapPolicy string

const (
	OverlapAllow OverlapPolicy = "ALLOW"
	OverlapSkip  OverlapPolicy = "SKIP"
	// OverlapBufferOne lets one occurrence wait until the active one has ended. While it waits, later ones are skipped.
	OverlapBufferOne OverlapPolicy = "BUFFER_ONE"
	// OverlapBufferAll lets up to MaxBuffered occurrences wait, and runs them one after another.
	OverlapBufferAll OverlapPolicy = "BUFFER_ALL"
	// OverlapCancel stops what is active, and runs the new occurrence when that has ended.
	OverlapCancel OverlapPolicy = "CANCEL_RUNNING"
)

// MaxBuffered is how many occurrences of one recurring task BUFFER_ALL lets wait. Those after are skipped.
const MaxBuffered = 100

// DSTGap says what happens to a job whose time does not exist on a day when the clock is put forward.
type DSTGap string

const (
	GapRunAfter DSTGap = "RUN_AFTER" // it runs once, at the end of the gap
	GapSkip     DSTGap = "SKIP"      // it does not run on that day
)

// DSTOverlap says which pass counts when the clock is put back and an hour comes twice. Empty is the rule of
// Debian's cron: the first for a job at a fixed time, both for one whose minute or hour begins with *.
type DSTOverlap string

const (
	OverlapFirst  DSTOverlap = "FIRST"
	OverlapSecond DSTOverlap = "SECOND"
	OverlapBoth   DSTOverlap = "BOTH"
)

// CalendarShift says where an instant goes that a calendar excludes. Empty: it does not run.
type CalendarShift string

const (
	ShiftNext     CalendarShift = "NEXT_BUSINESS_DAY"     // the same time of the next business day
	ShiftPrevious CalendarShift = "PREVIOUS_BUSINESS_DAY" // the same time of the one before
)

// Schedule says when: cron expressions, a fixed interval or an RFC 5545 rule, in a zone, between two times, less
// what calendars exclude.
type Schedule struct {
	Cron             string        `json:"cron,omitempty" doc:"5 fields, 6 with leading seconds, or @daily and the like; several, one a line, are all meant"`
	IntervalSeconds  float64       `json:"interval_seconds,omitempty" doc:"a fixed interval of at least 1 s, anchored at start_time"`
	RRule            string        `json:"rrule,omitempty" doc:"an RFC 5545 recurrence rule, hourly or slower, that begins at start_time"`
	TimeZone         string        `json:"time_zone,omitempty" doc:"IANA name; default: UTC"`
	DSTGap           DSTGap        `json:"dst_gap,omitempty" enum:"RUN_AFTER,SKIP" doc:"when the clock is put forward over its time; default: RUN_AFTER"`
	DSTOverlap       DSTOverlap    `json:"dst_overlap,omitempty" enum:"FIRST,SECOND,BOTH" doc:"when the clock is put back and its time comes twice; default: the first, or both if its minute or hour begins with *"`
	StartTime        time.Time     `json:"start_time,omitzero" doc:"no instant before this; an interval's first instant"`
	EndTime          time.Time     `json:"end_time,omitzero" doc:"no instant after this"`
	MaxRuns          int64         `json:"max_runs,omitempty" doc:"scheduled runs, not skips or triggers; 0: no limit"`
	JitterSeconds    float64       `json:"jitter_seconds,omitempty" doc:"each run is due this much later at most, always by the same share of it, so that tasks of one time spread"`
	ExcludeCalendars []string      `json:"exclude_calendars,omitempty" doc:"calendars in whose days and windows it does not run"`
	RequireCalendars []string      `json:"require_calendars,omitempty" doc:"calendars outside whose days and windows it does not run"`
	CalendarShift    CalendarShift `json:"calendar_shift,omitempty" enum:"NEXT_BUSINESS_DAY,PREVIOUS_BUSINESS_DAY" doc:"where an excluded instant goes; default: nowhere"`
}

// RecurringTask is a schedule and the template of the tasks that it spawns.
type RecurringTask struct {
	ID       string `json:"recurring_task_id"`
	TenantID string `json:"tenant_id"`
	Spec
	Schedule

	Status               RecurringStatus `json:"status" enum:"ACTIVE,PAUSED,COMPLETED,CANCELLED"`
	CatchUpMode          CatchUpMode     `json:"catch_up_mode,omitempty" enum:"RUN_LATEST,RUN_ONE_NOW,RUN_ALL_MISSED,SKIP_MISSED" doc:"default: RUN_LATEST"`
	MisfireAfterSeconds  float64         `json:"misfire_after_seconds,omitempty" doc:"later than this counts as missed; default 60"`
	CatchUpWindowSeconds float64         `json:"catch_up_window_seconds,omitempty" doc:"what was missed longer ago is skipped in any case; 0: no limit"`
	CatchUpLimit         int             `json:"catch_up_limit,omitempty" doc:"of RUN_ALL_MISSED: at most so many runs, 1 to 1000; default 100"`
	CatchUpPacingSeconds float64         `json:"catch_up_pacing_seconds,omitempty" doc:"of RUN_ALL_MISSED: the time from one run to the next; default 1"`
	OverlapPolicy        OverlapPolicy   `json:"overlap_policy,omitempty" enum:"ALLOW,SKIP,BUFFER_ONE,BUFFER_ALL,CANCEL_RUNNING" doc:"default: ALLOW"`

	CreatedAt time.Time `json:"created_at"`
	CreatedBy string    `json:"created_by,omitempty"`
	UpdatedAt time.Time `json:"updated_at"`

	PausedAt    time.Time `json:"paused_at,omitzero"`
	PausedUntil time.Time `json:"paused_until,omitzero" doc:"resumes by itself then"`
	PausedBy    string    `json:"paused_by,omitempty"`
	PauseNote   string    `json:"pause_note,omitempty"`

	NextRunAt      time.Time `json:"next_run_at,omitzero" doc:"scheduled instant of the next planned occurrence"`
	LastRunAt      time.Time `json:"last_run_at,omitzero" doc:"start of the newest run that has ended"`
	LastStatus     Status    `json:"last_status,omitempty" doc:"how that run ended"`
	RunsCount      int64     `json:"runs_count" doc:"scheduled runs that have ended"`
	CompletedCount int64     `json:"completed_count" doc:"those that succeeded"`
	PlannedThrough time.Time `json:"planned_through" doc:"every instant up to this is a task or a skip"`

	IdempotencyKey string `json:"idempotency_key,omitempty"`
	RequestHash    string `json:"-"` // of the request that carried the idempotency key

	PlanVersion int64 `json:"-"`
	// Unreadable says why the stored definition cannot be read; "" of nearly all. Then nothing of it is planned, and all that
	// can be done with it is to cancel it.
	Unreadable string    `json:"unreadable,omitempty" doc:"why its stored definition cannot be read: nothing of it is planned; cancel it"`
	Replan     int64     `json:"-"` // not 0: a calendar was changed since it was planned
	PlanAt     time.Time `json:"-"` // when the planner must look again
	Shard      int       `json:"-"`
}

// Calendars are the names of the calendars that the schedule uses, each once.
func (s *Schedule) Calendars() []string {
	names := slices.Concat(s.ExcludeCalendars, s.RequireCalendars)
	slices.Sort(names)
	return slices.Compact(names)
}

// MisfireAfter is how late an instant may be before it counts as missed.
func (r *RecurringTask) MisfireAfter() time.Duration { return seconds(r.MisfireAfterSeconds) }

// CatchUpWindow is how long ago an instant may have been and still be made up for; 0 for no limit.
func (r *RecurringTask) CatchUpWindow() time.Duration { return seconds(r.CatchUpWindowSeconds) }

// CatchUpPacing is the time between two runs that RUN_ALL_MISSED makes up for.
func (r *RecurringTask) CatchUpPacing() time.Duration { return seconds(r.CatchUpPacingSeconds) }

// Interval is the fixed interval, or 0 for another schedule.
func (s *Schedule) Interval() time.Duration { return seconds(s.IntervalSeconds) }

// Jitter is how much later than scheduled the occurrences are due: always the same share of jitter_seconds for one
// recurring task, in whole milliseconds.
func (r *RecurringTask) Jitter() time.Duration {
	most := seconds(r.JitterSeconds).Milliseconds()
	if most <= 0 {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(r.ID)) // never fails
	return time.Duration(h.Sum64()%uint64(most)) * time.Millisecond
}

// Occurrence returns the task for one instant. One that the schedule planned is due with its delay.
func (r *RecurringTask) Occurrence(at time.Time, origin Origin, now time.Time) *Task {
	t := &Task{
		ID: NewID(now), TenantID: r.TenantID, Spec: r.Spec, Status: Pending,
		CreatedAt: Micros(now), CreatedBy: r.CreatedBy,
		ScheduledAt: at, DueAt: at, RunAt: at, MaxAttempts: r.Retry.MaxAttempts,
		RecurringTaskID: r.ID, Origin: origin, PlanVersion: r.PlanVersion, Overlap: r.OverlapPolicy, Shard: r.Shard,
	}
	if origin == OriginSchedule {
		t.DueAt = at.Add(r.Delay())
		t.RunAt, t.MissAt = t.DueAt, t.DueAt.Add(r.MisfireAfter())
	}
	return t
}

// Pause is what the holder of a recurring task's shard must know while it is paused.
type Pause struct {
	Shard int
	Until time.Time // it resumes by itself then; zero: by hand
	Note  string    // see PauseWords
}

// PauseWords is what the ledger says of a pause: the note, and who paused it.
func PauseWords(note, by string) string {
	switch {
	case by == "":
		return note
	case note == "":
		return "paused by " + by
	}
	return note + " (paused by " + by + ")"
}

// Skip says that the instants from From to To, Count of them, did not run, and why.
type Skip struct {
	TenantID        string    `json:"-"`
	RecurringTaskID string    `json:"-"`
	From            time.Time `json:"from"`
	To              time.Time `json:"to"`
	Count           int64     `json:"count"`
	Reason          Reason    `json:"reason"`
	Note            string    `json:"note,omitempty" doc:"who or what caused it"`
	RecordedAt      time.Time `json:"recorded_at"`
}

// Occurrence is one line of a recurring task's ledger: a task, or a range of skipped instants.
type Occurrence struct {
	ScheduledAt time.Time `json:"scheduled_at"`
	Task        *Task     `json:"task,omitempty" doc:"what ran or will run"`
	Skip        *Skip     `json:"skip,omitempty" doc:"why it did not run"`
}

// RecurringPatch changes a recurring task. Nil fields stay as they are. A change of the schedule or of
// the template replans the upcoming occurrences that have not been moved by hand.
type RecurringPatch struct {
	TaskTemplatePatch
	Cron                 *string        `json:"cron,omitempty" doc:"replaces interval_seconds and rrule too"`
	IntervalSeconds      *float64       `json:"interval_seconds,omitempty" doc:"replaces cron and rrule too"`
	RRule                *string        `json:"rrule,omitempty" doc:"replaces cron and interval_seconds too"`
	TimeZone             *string        `json:"time_zone,omitempty"`
	DSTGap               *DSTGap        `json:"dst_gap,omitempty" enum:"RUN_AFTER,SKIP"`
	DSTOverlap           *DSTOverlap    `json:"dst_overlap,omitempty" enum:"FIRST,SECOND,BOTH"`
	StartTime            *time.Time     `json:"start_time,omitempty"`
	EndTime              *time.Time     `json:"end_time,omitempty"`
	MaxRuns              *int64         `json:"max_runs,omitempty"`
	JitterSeconds        *float64       `json:"jitter_seconds,omitempty"`
	ExcludeCalendars     *[]string      `json:"exclude_calendars,omitempty"`
	RequireCalendars     *[]string      `json:"require_calendars,omitempty"`
	CalendarShift        *CalendarShift `json:"calendar_shift,omitempty" enum:"NEXT_BUSINESS_DAY,PREVIOUS_BUSINESS_DAY"`
	CatchUpWindowSeconds *float64       `json:"catch_up_window_seconds,omitempty"`
	CatchUpLimit         *int           `json:"catch_up_limit,omitempty"`
	CatchUpPacingSeconds *float64       `json:"catch_up_pacing_seconds,omitempty"`
	CatchUpMode          *CatchUpMode   `json:"catch_up_mode,omitempty" enum:"RUN_LATEST,RUN_ONE_NOW,RUN_ALL_MISSED,SKIP_MISSED"`
	MisfireAfterSeconds  *float64       `json:"misfire_after_seconds,omitempty"`
	OverlapPolicy        *OverlapPolicy `json:"overlap_policy,omitempty" enum:"ALLOW,SKIP,BUFFER_ONE,BUFFER_ALL,CANCEL_RUNNING"`
}

// Apply returns a copy of r with the patch applied and checked; the cron expression itself is checked by
// package cron.
func (p *RecurringPatch) Apply(r *RecurringTask) (*RecurringTask, error) {
	n := *r
	p.TaskTemplatePatch.applyTo(&n.Spec)
	if err := p.replaceTimes(&n.Schedule); err != nil {
		return nil, err
	}
	set(&n.TimeZone, p.TimeZone)
	set(&n.StartTime, p.StartTime)
	set(&n.EndTime, p.EndTime)
	set(&n.MaxRuns, p.MaxRuns)
	set(&n.DSTGap, p.DSTGap)
	set(&n.DSTOverlap, p.DSTOverlap)
	set(&n.JitterSeconds, p.JitterSeconds)
	set(&n.ExcludeCalendars, p.ExcludeCalendars)
	set(&n.RequireCalendars, p.RequireCalendars)
	set(&n.CalendarShift, p.CalendarShift)
	if set(&n.CatchUpMode, p.CatchUpMode); n.CatchUpMode != RunAllMissed {
		n.CatchUpLimit, n.CatchUpPacingSeconds = 0, 0
	}
	set(&n.CatchUpWindowSeconds, p.CatchUpWindowSeconds)
	set(&n.CatchUpLimit, p.CatchUpLimit)
	set(&n.CatchUpPacingSeconds, p.CatchUpPacingSeconds)
	set(&n.MisfireAfterSeconds, p.MisfireAfterSeconds)
	set(&n.OverlapPolicy, p.OverlapPolicy)
	if err := n.Normalize(); err != nil {
		return nil, err
	}
	return &n, nil
}

// replaceTimes lets one of cron, interval_seconds and rrule take the place of what was there.
func (p *RecurringPatch) replaceTimes(s *Schedule) error {
	given := ""
	for _, x := range []struct {
		name  string
		given bool
	}{{"cron", p.Cron != nil}, {"interval_seconds", p.IntervalSeconds != nil}, {"rrule", p.RRule != nil}} {
		switch {
		case !x.given:
		case given != "":
			return Invalid(x.name, "cannot be set together with %s; keep one", given)
		default:
			given = x.name
		}
	}
	if given != "" {
		s.Cron, s.IntervalSeconds, s.RRule = "", 0, ""
	}
	set(&s.Cron, p.Cron)
	set(&s.IntervalSeconds, p.IntervalSeconds)
	set(&s.RRule, p.RRule)
	return nil
}
