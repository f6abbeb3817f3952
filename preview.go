package dts

import "time"

// PreviewRequest asks what a recurring task would do, before it is saved or as it is.
type PreviewRequest struct {
	Schedule
	Name                 string        `json:"name,omitempty" doc:"the recurring task's name, which decides what H and ~ choose"`
	Queue                string        `json:"queue,omitempty" doc:"the queue, whose blackouts count; default: default"`
	OverlapPolicy        OverlapPolicy `json:"overlap_policy,omitempty" enum:"ALLOW,SKIP,BUFFER_ONE,BUFFER_ALL,CANCEL_RUNNING"`
	ExpectedSeconds      float64       `json:"expected_seconds,omitempty" doc:"how long a run takes, to tell which runs would overlap; default: as the last runs of recurring_task_id, else not known"`
	CatchUpMode          CatchUpMode   `json:"catch_up_mode,omitempty" enum:"RUN_LATEST,RUN_ONE_NOW,RUN_ALL_MISSED,SKIP_MISSED"`
	MisfireAfterSeconds  float64       `json:"misfire_after_seconds,omitempty"`
	CatchUpWindowSeconds float64       `json:"catch_up_window_seconds,omitempty"`
	CatchUpLimit         int           `json:"catch_up_limit,omitempty"`
	CatchUpPacingSeconds float64       `json:"catch_up_pacing_seconds,omitempty"`

	RecurringTaskID string    `json:"recurring_task_id,omitempty" doc:"preview this one as it is; then only count, from and since may be given beside it"`
	Count           int       `json:"count,omitempty" doc:"how many instants, 1 to 100; default 5"`
	From            time.Time `json:"from,omitzero" doc:"those after this; default: now"`
	Since           time.Time `json:"since,omitzero" doc:"also tell what would become of the instants from then until now, had they been missed"`
}

// Preview says what a schedule means and what it will do.
type Preview struct {
	Description string           `json:"description" doc:"the schedule in plain English"`
	TimeZone    string           `json:"time_zone"`
	AtBoot      bool             `json:"at_boot,omitempty" doc:"@reboot: fires at every boot, at no instant known before"`
	Instants    []PreviewInstant `json:"instants" doc:"the next ones, those that will not run included; fewer than asked for when the schedule ends"`
	Missed      *MissedPreview   `json:"missed,omitempty"`
}

// PreviewInstant is one instant of a schedule, and what becomes of it.
type PreviewInstant struct {
	UTC     time.Time       `json:"utc"`
	Local   string          `json:"local" doc:"the same in the schedule's zone, as RFC 3339" format:"date-time"`
	Runs    bool            `json:"runs" doc:"false: it will not run, and effects say why"`
	DueAt   time.Time       `json:"due_at,omitzero" doc:"when it is due, where that is another time: jitter, the grace of a PING, or the end of a blackout"`
	Effects []PreviewEffect `json:"effects,omitempty" doc:"what daylight saving, calendars, blackouts and overlap do to it"`
}

// EffectKind says what changes an instant.
type EffectKind string

const (
	EffectDST      EffectKind = "DST"
	EffectCalendar EffectKind = "CALENDAR"
	EffectBlackout EffectKind = "BLACKOUT"
	EffectOverlap  EffectKind = "OVERLAP"
	EffectJitter   EffectKind = "JITTER"
	EffectPing     EffectKind = "PING"
)

// PreviewEffect is something that changes an instant, in words.
type PreviewEffect struct {
	Kind EffectKind `json:"kind" enum:"DST,CALENDAR,BLACKOUT,OVERLAP,JITTER,PING"`
	Text string     `json:"text"`
}

// MissedPreview is what the catch-up mode would make of missed instants.
type MissedPreview struct {
	Since     time.Time `json:"since"`
	Missed    int64     `json:"missed" doc:"instants from since until misfire_after_seconds ago"`
	WouldRun  int64     `json:"would_run"`
	WouldSkip int64     `json:"would_skip"`
	Text      string    `json:"text" doc:"such as: 12 missed since Friday 17:00: would run 1"`
}

// BackfillRequest asks to replay the instants of a past window.
type BackfillRequest struct {
	From   time.Time `json:"from" doc:"the first instant to replay"`
	To     time.Time `json:"to" doc:"the last one; in the past"`
	DryRun bool      `json:"dry_run,omitempty" doc:"only say how many there are"`
}

// BackfillAnswer says what a backfill makes.
type BackfillAnswer struct {
	Count   int64     `json:"count" doc:"instants of the schedule in the window, less those that were replayed before"`
	Created int64     `json:"created" doc:"tasks of origin BACKFILL that were made; 0 for a dry run"`
	First   time.Time `json:"first,omitzero"`
	Last    time.Time `json:"last,omitzero"`
}

// Conflict is a time in which more tasks will want to run than a limit lets.
type Conflict struct {
	From   time.Time      `json:"from"`
	To     time.Time      `json:"to"`
	Shared string         `json:"shared" doc:"what they share, such as queue reports, or concurrency key db"`
	Limit  int            `json:"limit" doc:"how many may run at once"`
	Most   int            `json:"most" doc:"how many will want to, at the worst"`
	Times  int64          `json:"times" doc:"how often this happens in the days asked for"`
	Tasks  []ConflictTask `json:"tasks"`
}

// ConflictTask is one of those that collide.
type ConflictTask struct {
	RecurringTaskID string  `json:"recurring_task_id,omitempty"`
	TaskID          string  `json:"task_id,omitempty"`
	Name            string  `json:"name"`
	Seconds         float64 `json:"seconds" doc:"how long a run of it takes: the median of the last ones, or 1 where there are none"`
}

// Why says in a sentence why a task, or an instant of a recurring task, did or did not run.
type Why struct {
	Answer    string     `json:"answer"`
	Task      *Task      `json:"task,omitempty"`
	Skip      *Skip      `json:"skip,omitempty"`
	Scheduled *time.Time `json:"scheduled_at,omitempty"`
}

// ClockStatus is what a server knows of its clock.
type ClockStatus struct {
	Steps          int64     `json:"steps" doc:"times the wall clock was stepped since the start"`
	LastStepAt     time.Time `json:"last_step_at,omitzero"`
	LastStepMS     int64     `json:"last_step_ms,omitempty" doc:"by how much; negative: back"`
	Synchronised   *bool     `json:"synchronised,omitempty" doc:"the kernel's word, adjtimex(2); absent where it does not tell"`
	EstimatedErrUS int64     `json:"estimated_error_us,omitempty" doc:"the kernel's estimate of the clock's error, in microseconds"`
	MaxErrorUS     int64     `json:"max_error_us,omitempty" doc:"the kernel's bound of the clock's error, in microseconds"`
	MaxSkewMS      int64     `json:"max_skew_ms,omitempty" doc:"the largest difference between this clock and that of another server of the cluster"`
	Alerts         []string  `json:"alerts,omitempty" doc:"what is wrong with the clock, such as a skew above 100 ms"`
}
