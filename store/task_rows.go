package store

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"dts"
)

// storedSpec is the JSON in tasks.spec: how to run it, as far as SQL does not ask for it. It is empty for the
// many tasks that have defaultSpec.
type storedSpec struct {
	Description    string       `json:"description,omitempty"`
	Retry          dts.Retry    `json:"retry"`
	Delivery       dts.Delivery `json:"delivery"`
	TimeoutSeconds float64      `json:"timeout_seconds"`
	SLASeconds     float64      `json:"sla_seconds"`
	// Overlap is the recurring task's policy, kept with the occurrence because it is decided at its instant.
	Overlap dts.OverlapPolicy `json:"overlap,omitempty"`

	ConcurrencyKey   string `json:"concurrency_key,omitempty"`
	ConcurrencyLimit int    `json:"concurrency_limit,omitempty"`

	DependsMode         dts.DependencyMode    `json:"depends_mode,omitempty"`
	OnDependencyFailure dts.DependencyFailure `json:"on_dependency_failure,omitempty"`

	Preemptible        bool           `json:"preemptible,omitempty"`
	Resources          *dts.Resources `json:"resources,omitempty"`
	WarnLateSeconds    float64        `json:"warn_late_seconds,omitempty"`
	WarnLongerSeconds  float64        `json:"warn_longer_seconds,omitempty"`
	WarnShorterSeconds float64        `json:"warn_shorter_seconds,omitempty"`

	Inputs []string `json:"inputs,omitempty"`
}

// defaultSpec is what an empty tasks.spec means. It must never change, also when the defaults of new tasks do:
// stored rows rely on it.
func defaultSpec() storedSpec {
	return storedSpec{
		Retry:    dts.Retry{MaxAttempts: 3, Backoff: dts.Exponential, BaseDelayMS: 1000, MaxDelayMS: 3_600_000},
		Delivery: dts.AtLeastOnce, TimeoutSeconds: 300, SLASeconds: 30,
	}
}

func (s *storedSpec) isDefault() bool {
	d, r := defaultSpec(), &s.Retry
	return s.Description == "" && s.Delivery == d.Delivery && s.TimeoutSeconds == d.TimeoutSeconds && s.SLASeconds == d.SLASeconds && s.Overlap == "" && s.ConcurrencyKey == "" &&
		s.DependsMode == "" && s.OnDependencyFailure == "" && !s.Preemptible && s.Resources == nil &&
		s.WarnLateSeconds == 0 && s.WarnLongerSeconds == 0 && s.WarnShorterSeconds == 0 && s.Inputs == nil && r.On == nil &&
		r.MaxAttempts == d.Retry.MaxAttempts && r.Backoff == d.Retry.Backoff && r.BaseDelayMS == d.Retry.BaseDelayMS &&
		r.MaxDelayMS == d.Retry.MaxDelayMS && r.DelaysMS == nil && r.Jitter == nil
}

func encodeSpec(t *dts.Task) string {
	s := storedSpec{t.Description, t.Retry, t.Delivery, t.TimeoutSeconds, t.SLASeconds, t.Overlap, t.ConcurrencyKey, t.ConcurrencyLimit,
		t.DependsMode, t.OnDependencyFailure, t.Preemptible, t.Resources, t.WarnLateSeconds, t.WarnLongerSeconds, t.WarnShorterSeconds, t.Inputs}
	if s.Overlap == dts.OverlapAllow {
		s.Overlap = ""
	}
	if s.isDefault() {
		return ""
	}
	return jsonOf(s)
}

func decodeSpec(text string, s *dts.Task) error {
	d := defaultSpec()
	if text != "" {
		d = storedSpec{}
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			return err
		}
	}
	s.Description, s.Retry, s.Delivery = d.Description, d.Retry, d.Delivery
	s.TimeoutSeconds, s.SLASeconds, s.Overlap = d.TimeoutSeconds, d.SLASeconds, d.Overlap
	s.ConcurrencyKey, s.ConcurrencyLimit = d.ConcurrencyKey, d.ConcurrencyLimit
	s.DependsMode, s.OnDependencyFailure = d.DependsMode, d.OnDependencyFailure
	s.Preemptible, s.Resources = d.Preemptible, d.Resources
	s.WarnLateSeconds, s.WarnLongerSeconds, s.WarnShorterSeconds = d.WarnLateSeconds, d.WarnLongerSeconds, d.WarnShorterSeconds
	s.Inputs = d.Inputs
	return nil
}

func encodeLabels(labels map[string]string) any {
	if len(labels) == 0 {
		return nil
	}
	return jsonOf(labels)
}

// taskColumns is the order in which scanTask reads the columns of a task.
const taskColumns = `task_id, tenant_id, shard, status, priority, queue, name,
	scheduled_at, due_at, run_at, miss_at, expires_at,
	term, node, picked_at, started_at, completed_at, next_attempt_at, resolved_at,
	attempts, max_attempts, unresolved_dependencies_count,
	lateness_us, sla_met, response_status, exit_code, last_error, skip_reason,
	recurring_task_id, origin, step, plan_version, moved,
	created_at, created_by, batch_id, idempotency_key, tracing_id, labels, target_type, target_config, spec, waits_for,
	dedupe_key, queued_us, warnings, workflow_id`

const (
	selectTask = `SELECT seq, ` + taskColumns + ` FROM tasks `

	// newTaskColumns are those in which one new task differs from another; the rest begin alike.
	newTaskColumns = `task_id, tenant_id, shard, status, priority, queue, name, scheduled_at, due_at, run_at, miss_at, expires_at,
		node, picked_at, max_attempts, unresolved_dependencies_count, recurring_task_id, origin, plan_version,
		created_at, created_by, batch_id, idempotency_key, tracing_id, labels, target_type, target_config, spec, dedupe_key,
		workflow_id, step, term, attempts, moved`
	newTaskValues = `?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?, 0, 0, 0`

	// A task that is there already, by its id or as the same occurrence, stays as it is.
	insertTask = `INSERT INTO tasks (` + newTaskColumns + `) VALUES (` + newTaskValues + `) ON CONFLICT DO NOTHING`

	// The same for many of them: see Many.
	insertTasks = `INSERT INTO tasks (` + newTaskColumns + `) SELECT j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3, j.value ->> 4,
		j.value ->> 5, j.value ->> 6, j.value ->> 7, j.value ->> 8, j.value ->> 9, j.value ->> 10, j.value ->> 11, j.value ->> 12, j.value ->> 13,
		j.value ->> 14, j.value ->> 15, j.value ->> 16, j.value ->> 17, j.value ->> 18, j.value ->> 19, j.value ->> 20, j.value ->> 21, j.value ->> 22,
		j.value ->> 23, j.value ->> 24, j.value ->> 25, j.value ->> 26, j.value ->> 27, j.value ->> 28, j.value ->> 29, j.value ->> 30, 0, 0, 0
		FROM json_each(?) AS j WHERE true ON CONFLICT DO NOTHING`

	// The same as insertTask, for the winner of an idempotency key only.
	insertKeyedTask = `INSERT INTO tasks (` + newTaskColumns + `) SELECT ` + newTaskValues + `
		WHERE EXISTS (SELECT 1 FROM idempotency_keys WHERE tenant_id = ? AND key = ? AND resource_id = ?)
		ON CONFLICT DO NOTHING`
)

// newTaskArgs are the values of newTaskColumns.
func newTaskArgs(t *dts.Task) []any {
	return []any{
		t.ID, t.TenantID, t.Shard, string(t.Status), t.Priority.Rank(), t.Queue, t.Name, t.ScheduledAt.UnixMicro(), t.DueAt.UnixMicro(), t.RunAt.UnixMicro(),
		micros(t.MissAt), micros(t.ExpiresAt),
		orNull(t.Node), micros(t.PickedAt), t.MaxAttempts, t.Unresolved, orNull(t.RecurringTaskID), orNull(string(t.Origin)), t.PlanVersion,
		t.CreatedAt.UnixMicro(), t.CreatedBy, orNull(t.BatchID), orNull(t.IdempotencyKey), orNull(t.TracingID), encodeLabels(t.Labels),
		string(t.TargetType), string(t.TargetConfig), encodeSpec(t), orNull(t.DedupeKey), orNull(t.WorkflowID), t.Step,
	}
}

func encodeWarnings(list []dts.Warning) any {
	if len(list) == 0 {
		return nil
	}
	var b strings.Builder
	for i, w := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(string(w))
	}
	return b.String()
}

func decodeWarnings(text string) (list []dts.Warning) {
	if text == "" {
		return nil
	}
	for w := range strings.SplitSeq(text, ",") {
		list = append(list, dts.Warning(w))
	}
	return list
}

func flagPtr(b *bool) any {
	if b == nil {
		return nil
	}
	return flag(*b)
}

// scanTask reads a row of selectTask. One that holds something else than JSON where it should is read all the same, and says
// so, so that it never keeps others from being read.
func scanTask(r scanner) (*dts.Task, error) {
	var (
		t                                                     dts.Task
		status, config, spec, target                          string
		rank                                                  int
		scheduled, due, run, created                          int64
		miss, expires, picked, started, completed, next, resd nullTime
		lateness, sla, response, exit, queued                 sql.NullInt64
		node, lastError, skip, recurring, origin              sql.NullString
		batch, key, trace, labels, waits, dedupe, warnings    sql.NullString
		workflow                                              sql.NullString
		moved                                                 int64
	)
	err := r.Scan(&t.Seq, &t.ID, &t.TenantID, &t.Shard, &status, &rank, &t.Queue, &t.Name,
		&scheduled, &due, &run, &miss, &expires,
		&t.Term, &node, &picked, &started, &completed, &next, &resd,
		&t.Attempts, &t.MaxAttempts, &t.Unresolved,
		&lateness, &sla, &response, &exit, &lastError, &skip,
		&recurring, &origin, &t.Step, &t.PlanVersion, &moved,
		&created, &t.CreatedBy, &batch, &key, &trace, &labels, &target, &config, &spec, &waits,
		&dedupe, &queued, &warnings, &workflow)
	if err != nil {
		return nil, fmt.Errorf("read task: %w", err)
	}
	at := func(us int64) time.Time { return time.UnixMicro(us).UTC() }
	t.Status, t.Priority, t.TargetType = dts.Status(status), dts.PriorityOfRank(rank), dts.TargetType(target)
	t.ScheduledAt, t.DueAt, t.RunAt, t.CreatedAt = at(scheduled), at(due), at(run), at(created)
	t.MissAt, t.ExpiresAt, t.PickedAt = miss.time(), expires.time(), picked.time()
	t.StartedAt, t.CompletedAt, t.NextAttemptAt, t.ResolvedAt = started.time(), completed.time(), next.time(), resd.time()
	t.ResponseStatus, t.ExitCode = int(response.Int64), intPtr(exit)
	if lateness.Valid {
		t.LatenessUS = &lateness.Int64
	}
	if sla.Valid {
		met := sla.Int64 != 0
		t.SLAMet = &met
	}
	t.Node, t.LastError, t.SkipReason = node.String, lastError.String, dts.Reason(skip.String)
	t.RecurringTaskID, t.Origin, t.Moved = recurring.String, dts.Origin(origin.String), moved != 0
	t.BatchID, t.IdempotencyKey, t.TracingID = batch.String, key.String, trace.String
	t.DedupeKey, t.QueuedUS, t.Warnings = dedupe.String, queued.Int64, decodeWarnings(warnings.String)
	t.WorkflowID = workflow.String
	unreadable := func(what string, err error) {
		t.Unreadable = "its " + what + " cannot be read: " + err.Error()
	}
	if labels.Valid {
		if err := json.Unmarshal([]byte(labels.String), &t.Labels); err != nil {
			t.Labels = nil
			unreadable("labels", err)
		}
	}
	t.TargetConfig = json.RawMessage(config)
	if !json.Valid(t.TargetConfig) {
		t.TargetConfig = json.RawMessage("{}")
		unreadable("target_config", errors.New("it is not JSON"))
	}
	if t.Status == dts.Pending && (t.Attempts == 0 || !t.RunAt.Equal(t.NextAttemptAt)) {
		t.WaitsFor = dts.Reason(waits.String) // else it has started since
	}
	if err := decodeSpec(spec, &t); err != nil {
		_ = decodeSpec("", &t)
		unreadable("spec", err)
	}
	if rank != t.Priority.Rank() {
		unreadable("priority", fmt.Errorf("it is %d", rank))
	}
	if t.Unreadable != "" {
		t.LastError = t.Unreadable
	}
	return &t, nil
}
