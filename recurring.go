package dts

import "time"

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
	// SkipMissed skips every missed instant.
	SkipMissed CatchUpMode = "SKIP_MISSED"
)

// OverlapPolicy says what to do at an instant when an earlier occurrence is still active, that is, between
// its first start and its terminal state, backoff included.
type OverlapPolicy string

const (
	OverlapAllow OverlapPolicy = "ALLOW"
	OverlapSkip  OverlapPolicy = "SKIP"
)

// Schedule says when: a cron expression or a fixed interval, in a zone, between two times.
type Schedule struct {
	Cron            string    `json:"cron,omitempty" doc:"5 fields, 6 with leading seconds, or @daily and the like"`
	IntervalSeconds float64   `json:"interval_seconds,omitempty" doc:"a fixed interval of at least 1 s, anchored at start_time"`
	TimeZone        string    `json:"time_zone,omitempty" doc:"IANA name; default: UTC"`
	StartTime       time.Time `json:"start_time,omitzero" doc:"no instant before this; an interval's first instant"`
	EndTime         time.Time `json:"end_time,omitzero" doc:"no instant after this"`
	MaxRuns         int64     `json:"max_runs,omitempty" doc:"scheduled runs, not skips or triggers; 0: no limit"`
}

// RecurringTask is a schedule and the template of the tasks that it spawns.
type RecurringTask struct {
	ID       string `json:"recurring_task_id"`
	TenantID string `json:"tenant_id"`
	Spec
	Schedule

	Status              RecurringStatus `json:"status" enum:"ACTIVE,PAUSED,COMPLETED,CANCELLED"`
	CatchUpMode         CatchUpMode     `json:"catch_up_mode,omitempty" enum:"RUN_LATEST,SKIP_MISSED" doc:"default: RUN_LATEST"`
	MisfireAfterSeconds float64         `json:"misfire_after_seconds,omitempty" doc:"later than this counts as missed; default 60"`
	OverlapPolicy       OverlapPolicy   `json:"overlap_policy,omitempty" enum:"ALLOW,SKIP" doc:"default: ALLOW"`

	CreatedAt time.Time `json:"created_at"`
	CreatedBy string    `json:"created_by,omitempty"`
	UpdatedAt time.Time `json:"updated_at"`

	PausedAt    time.Time `json:"paused_at,omitzero"`
	PausedUntil time.Time `json:"paused_until,omitzero" doc:"resumes by itself then"`
	PauseNote   string    `json:"pause_note,omitempty"`

	NextRunAt      time.Time `json:"next_run_at,omitzero" doc:"scheduled instant of the next planned occurrence"`
	LastRunAt      time.Time `json:"last_run_at,omitzero" doc:"start of the newest run that has ended"`
	LastStatus     Status    `json:"last_status,omitempty" doc:"how that run ended"`
	RunsCount      int64     `json:"runs_count" doc:"scheduled runs that have ended"`
	CompletedCount int64     `json:"completed_count" doc:"those that succeeded"`
	PlannedThrough time.Time `json:"planned_through" doc:"every instant up to this is a task or a skip"`

	IdempotencyKey string `json:"idempotency_key,omitempty"`
	RequestHash    string `json:"-"` // of the request that carried the idempotency key

	PlanVersion int64     `json:"-"`
	PlanAt      time.Time `json:"-"` // when the planner must look again
	Shard       int       `json:"-"`
}

// MisfireAfter is how late an instant may be before it counts as missed.
func (r *RecurringTask) MisfireAfter() time.Duration { return seconds(r.MisfireAfterSeconds) }

// Interval is the fixed interval, or 0 for a cron schedule.
func (s *Schedule) Interval() time.Duration { return seconds(s.IntervalSeconds) }

// Occurrence returns the task for one instant.
func (r *RecurringTask) Occurrence(at time.Time, origin Origin, now time.Time) *Task {
	t := &Task{
		ID: NewID(now), TenantID: r.TenantID, Spec: r.Spec, Status: Pending,
		CreatedAt: Micros(now), CreatedBy: r.CreatedBy,
		ScheduledAt: at, DueAt: at, RunAt: at, MaxAttempts: r.Retry.MaxAttempts,
		RecurringTaskID: r.ID, Origin: origin, PlanVersion: r.PlanVersion, Overlap: r.OverlapPolicy, Shard: r.Shard,
	}
	if origin == OriginSchedule {
		t.MissAt = at.Add(r.MisfireAfter())
	}
	return t
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
	Cron                *string        `json:"cron,omitempty" doc:"replaces interval_seconds too"`
	IntervalSeconds     *float64       `json:"interval_seconds,omitempty" doc:"replaces cron too"`
	TimeZone            *string        `json:"time_zone,omitempty"`
	StartTime           *time.Time     `json:"start_time,omitempty"`
	EndTime             *time.Time     `json:"end_time,omitempty"`
	MaxRuns             *int64         `json:"max_runs,omitempty"`
	CatchUpMode         *CatchUpMode   `json:"catch_up_mode,omitempty" enum:"RUN_LATEST,SKIP_MISSED"`
	MisfireAfterSeconds *float64       `json:"misfire_after_seconds,omitempty"`
	OverlapPolicy       *OverlapPolicy `json:"overlap_policy,omitempty" enum:"ALLOW,SKIP"`
}

// Apply returns a copy of r with the patch applied and checked; the cron expression itself is checked by
// package cron.
func (p *RecurringPatch) Apply(r *RecurringTask) (*RecurringTask, error) {
	n := *r
	p.TaskTemplatePatch.applyTo(&n.Spec)
	if p.Cron != nil {
		n.Cron, n.IntervalSeconds = *p.Cron, 0
	}
	if p.IntervalSeconds != nil {
		if p.Cron != nil {
			return nil, Invalid("interval_seconds", "cannot be set together with cron; keep one")
		}
		n.Cron, n.IntervalSeconds = "", *p.IntervalSeconds
	}
	set(&n.TimeZone, p.TimeZone)
	set(&n.StartTime, p.StartTime)
	set(&n.EndTime, p.EndTime)
	set(&n.MaxRuns, p.MaxRuns)
	set(&n.CatchUpMode, p.CatchUpMode)
	set(&n.MisfireAfterSeconds, p.MisfireAfterSeconds)
	set(&n.OverlapPolicy, p.OverlapPolicy)
	if err := n.Normalize(); err != nil {
		return nil, err
	}
	return &n, nil
}
