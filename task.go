package dts

import (
	"encoding/json"
	"time"
)

// Status is the state of a task.
type Status string

const (
	// Pending: waits for its time, for a slot, for a retry or for its dependencies. A claimed task is still Pending.
	Pending Status = "PENDING"
	// Running: an attempt has started. Runs shorter than about 50 ms may never show it.
	Running Status = "RUNNING"
	// Success: the last attempt succeeded, or the task was force-completed.
	Success Status = "SUCCESS"
	// Failed: the last allowed attempt failed. The FAILED tasks are the dead-letter set.
	Failed Status = "FAILED"
	// Cancelled: someone cancelled it.
	Cancelled Status = "CANCELLED"
	// Skipped: a policy, or a dependency that failed, kept it from running. SkipReason says which.
	Skipped Status = "SKIPPED"
)

// Statuses lists every task state.
var Statuses = []Status{Pending, Running, Success, Failed, Cancelled, Skipped}

// Terminal reports whether a task in this state will not run again by itself.
func (s Status) Terminal() bool { return s != Pending && s != Running }

// Priority decides the share of service under load: 5:3:1 for HIGH, MEDIUM and LOW.
type Priority string

const (
	High   Priority = "HIGH"
	Medium Priority = "MEDIUM"
	Low    Priority = "LOW"
)

// Rank orders priorities: 0 is served first.
func (p Priority) Rank() int {
	switch p {
	case High:
		return 0
	case Low:
		return 2
	default:
		return 1
	}
}

// PriorityOfRank is the inverse of Rank.
func PriorityOfRank(r int) Priority {
	return [...]Priority{High, Medium, Low}[min(max(r, 0), 2)]
}

// Delivery says what a crash in the middle of a run means.
type Delivery string

const (
	// AtLeastOnce runs the task again (the default).
	AtLeastOnce Delivery = "AT_LEAST_ONCE"
	// AtMostOnce records it FAILED with the error "lost". Its start is on disk before the target is called.
	AtMostOnce Delivery = "AT_MOST_ONCE"
)

// Origin says why an occurrence of a recurring task exists.
type Origin string

const (
	OriginSchedule Origin = "SCHEDULE" // planned from the schedule
	OriginTrigger  Origin = "TRIGGER"  // someone asked for it now
	OriginCatchUp  Origin = "CATCH_UP" // made up for missed instants
	OriginBackfill Origin = "BACKFILL" // replayed on purpose
)

// Reason says why a due instant did not run.
type Reason string

const (
	ReasonPaused    Reason = "PAUSED"    // the recurring task was paused; as what a PENDING task waits for: it is paused itself
	ReasonOverlap   Reason = "OVERLAP"   // the previous run was still active
	ReasonCatchUp   Reason = "CATCH_UP"  // missed, and the catch-up mode runs another instant instead
	ReasonExpired   Reason = "EXPIRED"   // expires_at had passed
	ReasonRemoved   Reason = "REMOVED"   // someone removed or cancelled the planned occurrence
	ReasonCancelled Reason = "CANCELLED" // the recurring task was cancelled before the instant was planned
	ReasonCalendar  Reason = "CALENDAR"  // a calendar excludes it
	ReasonBlackout  Reason = "BLACKOUT"  // a blackout window was open

	// These only keep a due task waiting.
	ReasonConcurrency Reason = "CONCURRENCY" // as many as may run at once with its concurrency_key did
	ReasonQueue       Reason = "QUEUE"       // as many as may run at once in its queue did; of a skip: its queue was paused

	// ReasonDependency: what it depends on did not end as it must.
	ReasonDependency Reason = "DEPENDENCY"
)

// Spec is what to run and how: shared by one-time tasks and, as the template, by recurring tasks.
type Spec struct {
	Name           string            `json:"name,omitempty" doc:"for people; not unique"`
	Description    string            `json:"description,omitempty"`
	Labels         map[string]string `json:"labels,omitempty" doc:"at most 32, to filter by"`
	Queue          string            `json:"queue,omitempty" doc:"default: default"`
	Priority       Priority          `json:"priority,omitempty" enum:"HIGH,MEDIUM,LOW" doc:"default: MEDIUM"`
	TargetType     TargetType        `json:"target_type" enum:"HTTP_CALLBACK,COMMAND,WORKFLOW,BACKUP,PING" doc:"what to run; PING, of recurring tasks: nothing, a job elsewhere reports"`
	TargetConfig   json.RawMessage   `json:"target_config" doc:"its details; see HTTPTarget, CommandTarget, WorkflowTarget, BackupTarget and PingTarget"`
	Retry          Retry             `json:"retry,omitzero" doc:"default: that of its queue, else 3 attempts, EXPONENTIAL from 1 s"`
	RetryDefault   bool              `json:"-"` // of what is being created: none was given
	Delivery       Delivery          `json:"delivery,omitempty" enum:"AT_LEAST_ONCE,AT_MOST_ONCE" doc:"default: AT_LEAST_ONCE"`
	TimeoutSeconds float64           `json:"timeout_seconds,omitempty" doc:"limit of one attempt; default 300, of a BACKUP 3600"`
	SLASeconds     float64           `json:"sla_seconds,omitempty" doc:"sla_met: first start within this of due_at; default 30"`

	ConcurrencyKey   string `json:"concurrency_key,omitempty" doc:"of the tasks with this key only concurrency_limit run at once; the others wait"`
	ConcurrencyLimit int    `json:"concurrency_limit,omitempty" doc:"1 to 10,000; default 1: never two at once"`

	Preemptible bool       `json:"preemptible,omitempty" doc:"of a LOW command: it may be stopped for a while, and continued, when HIGH work waits for its slot"`
	Resources   *Resources `json:"resources,omitempty" doc:"what a run takes of its machine; it waits until there is so much left"`

	WarnLateSeconds    float64 `json:"warn_late_seconds,omitempty" doc:"warn when it starts this much after it was due"`
	WarnLongerSeconds  float64 `json:"warn_longer_seconds,omitempty" doc:"warn when an attempt takes longer"`
	WarnShorterSeconds float64 `json:"warn_shorter_seconds,omitempty" doc:"warn when an attempt succeeds in less"`
}

// Timeout is the limit of one attempt.
func (s *Spec) Timeout() time.Duration { return seconds(s.TimeoutSeconds) }

// SLA is how late a first start may be and still meet the SLA.
func (s *Spec) SLA() time.Duration { return seconds(s.SLASeconds) }

func seconds(f float64) time.Duration { return time.Duration(f * float64(time.Second)) }

// Task is one unit of work at one time.
type Task struct {
	ID       string `json:"task_id"`
	TenantID string `json:"tenant_id"`
	Spec

	Status      Status    `json:"status" enum:"PENDING,RUNNING,SUCCESS,FAILED,CANCELLED,SKIPPED"`
	SkipReason  Reason    `json:"skip_reason,omitempty" doc:"why it was skipped"`
	CreatedAt   time.Time `json:"created_at"`
	CreatedBy   string    `json:"created_by,omitempty"`
	ScheduledAt time.Time `json:"scheduled_at" doc:"the nominal instant; never changes"`
	DueAt       time.Time `json:"due_at" doc:"scheduled_at, or where it was moved"`
	RunAt       time.Time `json:"run_at" doc:"the next eligible start"`
	ExpiresAt   time.Time `json:"expires_at,omitzero" doc:"not started after this"`

	PickedAt      time.Time `json:"picked_at,omitzero" doc:"when a node took it up"`
	StartedAt     time.Time `json:"started_at,omitzero" doc:"when the first attempt started"`
	CompletedAt   time.Time `json:"completed_at,omitzero"`
	NextAttemptAt time.Time `json:"next_attempt_at,omitzero" doc:"when the next retry is due"`
	ResolvedAt    time.Time `json:"resolved_at,omitzero" doc:"when its last dependency resolved"`

	Attempts       int    `json:"attempts" doc:"attempts that ran"`
	MaxAttempts    int    `json:"max_attempts" doc:"attempts allowed; a retry by hand adds one"`
	LastError      string `json:"last_error,omitempty"`
	ResponseStatus int    `json:"response_status,omitempty" doc:"HTTP status of the last attempt"`
	ExitCode       *int   `json:"exit_code,omitempty" doc:"exit code of the last attempt's command"`
	LatenessUS     *int64 `json:"lateness_us,omitempty" doc:"lateness of the first start, in microseconds"`
	SLAMet         *bool  `json:"sla_met,omitempty" doc:"the first start was within sla_seconds of due_at"`

	RecurringTaskID string `json:"recurring_task_id,omitempty"`
	Origin          Origin `json:"origin,omitempty" doc:"why this occurrence exists"`
	PlanVersion     int64  `json:"-"`
	Moved           bool   `json:"moved,omitempty" doc:"an occurrence whose time was changed by hand, or of a PING by a report"`

	IdempotencyKey string `json:"idempotency_key,omitempty"`
	RequestHash    string `json:"-"` // of the request that carried the idempotency key
	TracingID      string `json:"tracing_id,omitempty" doc:"32 hexadecimal digits: the trace id of traceparent"`
	BatchID        string `json:"batch_id,omitempty" doc:"the bulk request that created it"`
	Node           string `json:"node,omitempty" doc:"the node that runs it or ran it last"`

	DependsMode         DependencyMode    `json:"depends_mode,omitempty" enum:"ALL,ANY" doc:"how many of its dependencies it needs; default: ALL"`
	OnDependencyFailure DependencyFailure `json:"on_dependency_failure,omitempty" enum:"SKIP,FAIL" doc:"what it becomes when they cannot be met; default: SKIP"`
	DependsOn           []DependsOn       `json:"-"` // of a task that is being created
	Inputs              []string          `json:"inputs,omitempty" doc:"names of tasks it depends on whose output it gets"`
	Unresolved          int               `json:"unresolved_dependencies_count" doc:"dependencies that are still open; it starts when there are none"`

	WorkflowID string `json:"workflow_id,omitempty" doc:"the run of a workflow of which it is a step"`
	Step       string `json:"step,omitempty" doc:"which step"`

	DedupeKey    string       `json:"dedupe_key,omitempty" doc:"at most one unfinished task of a tenant has it"`
	DedupePolicy DedupePolicy `json:"-"` // of a task that is being created

	WaitsFor  Reason    `json:"waits_for,omitempty" enum:"OVERLAP,BLACKOUT,CONCURRENCY,QUEUE,PAUSED" doc:"of a PENDING task: what keeps it from starting"`
	Warnings  []Warning `json:"warnings,omitempty" enum:"LATE,LONG,SHORT"`
	QueuedUS  int64     `json:"queued_us,omitempty" doc:"of the first start's lateness: how long it was ready and waited for a slot or a limit, in microseconds"`
	Breakdown *Timing   `json:"timing,omitempty" doc:"of a single task that has started: where the time went"`

	// Unreadable says why a part of the stored task cannot be read, in place of which it has the default; "" of nearly all.
	// It never runs, and what changes it leaves that part as it is.
	Unreadable string `json:"-"`

	Overlap OverlapPolicy `json:"-"` // of the recurring task; empty: ALLOW
	Shard   int           `json:"-"`
	Term    int64         `json:"-"` // of the node that runs it; 0 when none does
	Seq     int64         `json:"-"` // order of creation, given by the store
	MissAt  time.Time     `json:"-"` // a planned occurrence not claimed by then counts as missed; zero: never
}

// EligibleAt is the instant from which lateness counts: the latest of due_at, next_attempt_at and the
// resolution of the dependencies.
func (t *Task) EligibleAt() time.Time {
	at := t.DueAt
	for _, x := range [...]time.Time{t.NextAttemptAt, t.ResolvedAt} {
		if x.After(at) {
			at = x
		}
	}
	return at
}

// TaskTemplatePatch is the part of a patch that tasks and recurring tasks share. Nil fields stay as they are.
type TaskTemplatePatch struct {
	Name           *string           `json:"name,omitempty"`
	Description    *string           `json:"description,omitempty"`
	Labels         map[string]string `json:"labels,omitempty" doc:"replaces all labels"`
	Queue          *string           `json:"queue,omitempty"`
	Priority       *Priority         `json:"priority,omitempty" enum:"HIGH,MEDIUM,LOW"`
	TargetType     *TargetType       `json:"target_type,omitempty" enum:"HTTP_CALLBACK,COMMAND,WORKFLOW,BACKUP"`
	TargetConfig   json.RawMessage   `json:"target_config,omitempty"`
	Retry          *Retry            `json:"retry,omitempty"`
	TimeoutSeconds *float64          `json:"timeout_seconds,omitempty"`
	SLASeconds     *float64          `json:"sla_seconds,omitempty"`

	ConcurrencyKey   *string `json:"concurrency_key,omitempty" doc:"empty: none"`
	ConcurrencyLimit *int    `json:"concurrency_limit,omitempty"`

	Preemptible        *bool      `json:"preemptible,omitempty"`
	Resources          *Resources `json:"resources,omitempty" doc:"{}: none"`
	WarnLateSeconds    *float64   `json:"warn_late_seconds,omitempty" doc:"0: no warning"`
	WarnLongerSeconds  *float64   `json:"warn_longer_seconds,omitempty" doc:"0: no warning"`
	WarnShorterSeconds *float64   `json:"warn_shorter_seconds,omitempty" doc:"0: no warning"`
}

// TaskPatch changes a pending task. Nil fields stay as they are.
type TaskPatch struct {
	TaskTemplatePatch
	RunAt     *time.Time `json:"run_at,omitempty" doc:"move it; scheduled_at stays"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

// Apply returns a copy of t with the patch applied and checked. It does not look at the state: see Verb.
func (p *TaskPatch) Apply(t *Task, now time.Time) (*Task, error) {
	n := *t
	p.applyTo(&n.Spec)
	if err := n.Spec.Normalize(); err != nil {
		return nil, err
	}
	if p.Retry != nil {
		n.MaxAttempts = n.Retry.MaxAttempts
	}
	var f fieldErrors
	if n.TargetType == Ping && n.RecurringTaskID == "" {
		f.add("target_type", onlyRecurringPing)
	}
	if p.RunAt != nil {
		at := Micros(*p.RunAt)
		checkRunAt(&f, "run_at", at, now)
		n.DueAt, n.MissAt = at, time.Time{}
		n.Moved = n.RecurringTaskID != ""
		if t.WaitsFor != ReasonPaused { // else it stays so, and is due then when it is resumed
			n.RunAt, n.WaitsFor = at, ""
		}
	} else if t.Line() != "" {
		n.RunAt, n.WaitsFor = Micros(now), "" // it is decided anew, and keeps its place if it must wait again
	}
	if p.ExpiresAt != nil {
		n.ExpiresAt = Micros(*p.ExpiresAt)
	}
	checkExpiry(&f, n.ExpiresAt, n.DueAt)
	if err := f.err(); err != nil {
		return nil, err
	}
	return &n, nil
}

func (p *TaskTemplatePatch) applyTo(s *Spec) {
	set(&s.Name, p.Name)
	set(&s.Description, p.Description)
	set(&s.Queue, p.Queue)
	set(&s.Priority, p.Priority)
	set(&s.TargetType, p.TargetType)
	set(&s.Retry, p.Retry)
	set(&s.TimeoutSeconds, p.TimeoutSeconds)
	set(&s.SLASeconds, p.SLASeconds)
	if p.ConcurrencyKey != nil {
		if s.ConcurrencyKey = *p.ConcurrencyKey; s.ConcurrencyKey == "" {
			s.ConcurrencyLimit = 0
		}
	}
	set(&s.ConcurrencyLimit, p.ConcurrencyLimit)
	set(&s.Preemptible, p.Preemptible)
	set(&s.WarnLateSeconds, p.WarnLateSeconds)
	set(&s.WarnLongerSeconds, p.WarnLongerSeconds)
	set(&s.WarnShorterSeconds, p.WarnShorterSeconds)
	if p.Resources != nil {
		s.Resources = p.Resources
	}
	if p.Labels != nil {
		s.Labels = p.Labels
	}
	if p.TargetConfig != nil {
		s.TargetConfig = p.TargetConfig
	}
}

func set[T any](dst *T, src *T) {
	if src != nil {
		*dst = *src
	}
}
