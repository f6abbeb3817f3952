package dts

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of what a user may send. Reaching one is an error that names it.
const (
	MaxName        = 200
	MaxDescription = 4 << 10
	MaxLabels      = 32
	MaxLabel       = 128
	MaxKey         = 256 // idempotency keys
	MaxBulk        = 10_000
	MaxCatchUp     = 1000   // missed instants that RUN_ALL_MISSED makes up for at once
	MaxBackfill    = 10_000 // instants that one backfill replays
	MaxTimeout     = 7 * 24 * time.Hour
	// PastAllowed is how far in the past a run_at may be; it runs at once.
	PastAllowed = time.Hour
	// FutureAllowed is how far ahead a time may be: 100 years. It also keeps microseconds below 2^53.
	FutureAllowed = 100 * 365 * 24 * time.Hour
)

var (
	queueName = regexp.MustCompile(`^[a-z0-9]([a-z0-9_.-]{0,62}[a-z0-9])?$`)
	traceID   = regexp.MustCompile(`^[0-9a-f]{32}$`)
)

// Normalize fills in the defaults and checks every field. Its error lists all that is wrong.
func (s *Spec) Normalize() error {
	var f fieldErrors
	checkText(&f, "name", s.Name, MaxName)
	checkText(&f, "description", s.Description, MaxDescription)
	checkLabels(&f, s.Labels)
	if s.Queue == "" {
		s.Queue = "default"
	}
	checkQueueName(&f, "queue", s.Queue)
	switch s.Priority {
	case "":
		s.Priority = Medium
	case High, Medium, Low:
	default:
		f.add("priority", "%q is not known; use HIGH, MEDIUM or LOW", clip(string(s.Priority)))
	}
	switch s.Delivery {
	case "":
		s.Delivery = AtLeastOnce
	case AtLeastOnce, AtMostOnce:
	default:
		f.add("delivery", "%q is not known; use AT_LEAST_ONCE or AT_MOST_ONCE", clip(string(s.Delivery)))
	}
	switch {
	case !s.Retry.isZero():
	case s.TargetType == Ping:
		s.Retry.MaxAttempts = 1 // whatever its queue says
	default:
		s.RetryDefault = true
	}
	s.Retry.normalize(&f, s.Delivery)
	if s.TimeoutSeconds == 0 && s.TargetType == Backup {
		s.TimeoutSeconds = 3600
	}
	if s.TimeoutSeconds == 0 {
		s.TimeoutSeconds = 300
	}
	checkSeconds(&f, "timeout_seconds", s.TimeoutSeconds, 0.001, MaxTimeout.Seconds())
	if s.SLASeconds == 0 {
		s.SLASeconds = 30
	}
	checkSeconds(&f, "sla_seconds", s.SLASeconds, 0.001, 365*24*3600)
	s.normalizeConcurrency(&f)
	s.Resources.normalize(&f)
	if s.Resources != nil && *s.Resources == (Resources{}) {
		s.Resources = nil
	}
	s.normalizeWarnings(&f)
	switch {
	case s.Preemptible && s.TargetType != Command:
		f.add("preemptible", "is for commands; leave it out")
	case s.Preemptible && s.Priority != Low:
		f.add("preemptible", "is for commands of priority LOW; set that too, or leave it out")
	}
	checkTarget(&f, s)
	return f.err()
}

// Normalize fills in a new task's defaults and checks it. RunAt is when to run; zero means now. What the
// scheduler keeps (id, states, times) is set here too.
func (t *Task) Normalize(now time.Time) error {
	var f fieldErrors
	now = Micros(now)
	f.merge("", t.Spec.Normalize())
	if t.TargetType == Ping {
		f.add("target_type", onlyRecurringPing)
	}
	if t.RunAt.IsZero() {
		t.RunAt = now
	}
	t.RunAt = Micros(t.RunAt)
	checkRunAt(&f, "run_at", t.RunAt, now)
	t.ScheduledAt, t.DueAt = t.RunAt, t.RunAt
	t.ExpiresAt = Micros(t.ExpiresAt)
	checkExpiry(&f, t.ExpiresAt, t.DueAt)
	checkKey(&f, t.IdempotencyKey)
	if t.TracingID != "" && (!traceID.MatchString(t.TracingID) || strings.Trim(t.TracingID, "0") == "") {
		f.add("tracing_id", "%q is not a trace id; use 32 lower-case hexadecimal digits, not all zero", clip(t.TracingID))
	}
	checkText(&f, "created_by", t.CreatedBy, MaxName)
	t.normalizeDependencies(&f)
	checkInputs(&f, "", &t.Spec, t.Inputs)
	if len(t.Inputs) > len(t.DependsOn) && t.WorkflowID == "" {
		f.add("inputs", "has %d entries, and it depends on %d tasks; each input is the output of one of those", len(t.Inputs), len(t.DependsOn))
	}
	if t.IsRun() && t.DependsMode == DependsAny {
		f.add("depends_mode", "is ANY; the run of a workflow waits for all that it depends on")
	}
	t.normalizeDedupe(&f)
	t.Status, t.CreatedAt = Pending, now
	t.MaxAttempts = t.Retry.MaxAttempts
	if t.TenantID == "" {
		t.TenantID = DefaultTenant
	}
	if t.ID == "" {
		t.ID = NewID(now)
	}
	t.Shard = ShardOf(t.ID)
	return f.err()
}

// normalizeDependencies checks what a new task depends on. It waits for all of it, until the store has looked.
func (t *Task) normalizeDependencies(f *fieldErrors) {
	switch t.DependsMode {
	case "", DependsAny:
	case DependsAll:
		t.DependsMode = ""
	default:
		f.add("depends_mode", "%q is not known; use ALL or ANY", clip(string(t.DependsMode)))
	}
	switch t.OnDependencyFailure {
	case "", FailOnFailure:
	case SkipOnFailure:
		t.OnDependencyFailure = ""
	default:
		f.add("on_dependency_failure", "%q is not known; use SKIP or FAIL", clip(string(t.OnDependencyFailure)))
	}
	NormalizeDependsOn(t.DependsOn, func(field, format string, args ...any) { f.add(field, format, args...) })
	t.Unresolved = len(t.DependsOn)
}

// NormalizeDependsOn fills in the types of dependencies, and tells add what is wrong with them.
func NormalizeDependsOn(list []DependsOn, add func(field, format string, args ...any)) {
	if len(list) > MaxDependencies {
		add("depends_on", "has %d entries; at most %d are allowed", len(list), MaxDependencies)
		return
	}
	seen := make(map[string]bool, len(list))
	for i := range list {
		d := &list[i]
		field := "depends_on[" + strconv.Itoa(i) + "]"
		switch d.Type {
		case "":
			d.Type = MustSucceed
		case MustSucceed, MustFinish, MustFail:
		default:
			add(field+".type", "%q is not known; use MUST_SUCCEED, MUST_FINISH or MUST_FAIL", clip(string(d.Type)))
		}
		if d.TaskID == "" {
			add(field+".task_id", "is missing")
		} else if seen[d.TaskID] {
			add(field+".task_id", "%q is there twice; a task has one dependency on another", clip(d.TaskID))
		}
		seen[d.TaskID] = true
	}
}

func (t *Task) normalizeDedupe(f *fieldErrors) {
	checkText(f, "dedupe_key", t.DedupeKey, MaxKey)
	switch t.DedupePolicy {
	case "":
		if t.DedupeKey != "" {
			t.DedupePolicy = DedupeReject
		}
	case DedupeReject, DedupeKeepFirst, DedupeReplace:
		if t.DedupeKey == "" {
			f.add("dedupe_policy", "is set without dedupe_key; give one, or leave it out")
		}
	default:
		f.add("dedupe_policy", "%q is not known; use REJECT, KEEP_FIRST or REPLACE", clip(string(t.DedupePolicy)))
	}
}

func (s *Spec) normalizeWarnings(f *fieldErrors) {
	for _, w := range [...]struct {
		field   string
		seconds float64
	}{{"warn_late_seconds", s.WarnLateSeconds}, {"warn_longer_seconds", s.WarnLongerSeconds}, {"warn_shorter_seconds", s.WarnShorterSeconds}} {
		if w.seconds != 0 {
			checkSeconds(f, w.field, w.seconds, 0.001, 365*24*3600)
		}
	}
	if s.WarnLongerSeconds != 0 && s.WarnShorterSeconds > s.WarnLongerSeconds {
		f.add("warn_shorter_seconds", "is more than warn_longer_seconds")
	}
}

// Normalize fills in a recurring task's defaults and checks all but the cron expression and the zone,
// which package cron knows.
func (r *RecurringTask) Normalize() error {
	var f fieldErrors
	f.merge("", r.Spec.Normalize())
	r.Schedule.normalize(&f)
	r.normalizePing(&f)
	r.checkMissed(&f)
	switch r.OverlapPolicy {
	case "":
		r.OverlapPolicy = OverlapAllow
	case OverlapAllow, OverlapSkip, OverlapBufferOne, OverlapBufferAll, OverlapCancel:
	default:
		f.add("overlap_policy", "%q is not known; use ALLOW, SKIP, BUFFER_ONE, BUFFER_ALL or CANCEL_RUNNING", clip(string(r.OverlapPolicy)))
	}
	checkKey(&f, r.IdempotencyKey)
	checkText(&f, "created_by", r.CreatedBy, MaxName)
	if r.TenantID == "" {
		r.TenantID = DefaultTenant
	}
	return f.err()
}

// normalize checks a schedule, apart from what packages cron and calendar know.
func (s *Schedule) normalize(f *fieldErrors) {
	given := 0
	for _, is := range [...]bool{s.Cron != "", s.IntervalSeconds != 0, s.RRule != ""} {
		if is {
			given++
		}
	}
	switch {
	case given == 0:
		f.add("cron", "is missing; give cron, interval_seconds or rrule")
	case s.Cron != "" && s.IntervalSeconds != 0:
		f.add("interval_seconds", "cannot be set together with cron; keep one")
	case given > 1:
		f.add("rrule", "cannot be set together with cron or interval_seconds; keep one")
	case s.IntervalSeconds != 0:
		checkSeconds(f, "interval_seconds", s.IntervalSeconds, 1, 10*365*24*3600)
	}
	switch s.DSTGap {
	case "", GapRunAfter, GapSkip:
	default:
		f.add("dst_gap", "%q is not known; use RUN_AFTER or SKIP", clip(string(s.DSTGap)))
	}
	switch s.DSTOverlap {
	case "", OverlapFirst, OverlapSecond, OverlapBoth:
	default:
		f.add("dst_overlap", "%q is not known; use FIRST, SECOND or BOTH, or leave it out", clip(string(s.DSTOverlap)))
	}
	s.StartTime, s.EndTime = Micros(s.StartTime), Micros(s.EndTime)
	if !s.EndTime.IsZero() && !s.StartTime.IsZero() && s.EndTime.Before(s.StartTime) {
		f.add("end_time", "is before start_time")
	}
	for _, x := range []struct {
		field string
		at    time.Time
	}{{"start_time", s.StartTime}, {"end_time", s.EndTime}} {
		if !x.at.IsZero() && (x.at.Year() < 1970 || x.at.Year() > 2150) {
			f.add(x.field, "%s is out of range; use 1970 to 2150", x.at.Format(time.RFC3339))
		}
	}
	if s.MaxRuns < 0 {
		f.add("max_runs", "is negative; use 0 for no limit")
	}
	checkSeconds(f, "jitter_seconds", s.JitterSeconds, 0, 24*3600)
	s.ExcludeCalendars = calendarNames(f, "exclude_calendars", s.ExcludeCalendars)
	s.RequireCalendars = calendarNames(f, "require_calendars", s.RequireCalendars)
	calendars := len(s.ExcludeCalendars) + len(s.RequireCalendars)
	switch s.CalendarShift {
	case "":
	case ShiftNext, ShiftPrevious:
		if calendars == 0 {
			f.add("calendar_shift", "moves what a calendar excludes, and there is none; give exclude_calendars or require_calendars")
		}
	default:
		f.add("calendar_shift", "%q is not known; use NEXT_BUSINESS_DAY or PREVIOUS_BUSINESS_DAY, or leave it out", clip(string(s.CalendarShift)))
	}
	if calendars > 0 && strings.TrimSpace(s.Cron) == "@reboot" {
		f.add("cron", "cannot be @reboot together with calendars: when a machine boots nobody plans")
	}
}

// calendarNames checks a list of calendars and drops what is in it twice.
func calendarNames(f *fieldErrors, field string, list []string) []string {
	if len(list) > MaxCalendarsUsed {
		f.add(field, "has %d entries; at most %d are allowed", len(list), MaxCalendarsUsed)
		return nil
	}
	var names []string
	for _, name := range list {
		checkCalendarName(f, field, name)
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// checkMissed checks what a recurring task says of instants that are missed, and fills in the defaults.
func (r *RecurringTask) checkMissed(f *fieldErrors) {
	switch r.CatchUpMode {
	case "":
		r.CatchUpMode = RunLatest
	case RunLatest, RunOneNow, RunAllMissed, SkipMissed:
	default:
		f.add("catch_up_mode", "%q is not known; use RUN_LATEST, RUN_ONE_NOW, RUN_ALL_MISSED or SKIP_MISSED", clip(string(r.CatchUpMode)))
	}
	if r.MisfireAfterSeconds == 0 {
		r.MisfireAfterSeconds = 60
	}
	checkSeconds(f, "misfire_after_seconds", r.MisfireAfterSeconds, 1, 365*24*3600)
	checkSeconds(f, "catch_up_window_seconds", r.CatchUpWindowSeconds, 0, 100*365*24*3600)
	if r.CatchUpMode != RunAllMissed {
		if r.CatchUpLimit != 0 {
			f.add("catch_up_limit", "is for catch_up_mode RUN_ALL_MISSED; the others run one at most")
		}
		if r.CatchUpPacingSeconds != 0 {
			f.add("catch_up_pacing_seconds", "is for catch_up_mode RUN_ALL_MISSED; the others run one at most")
		}
		return
	}
	if r.CatchUpLimit == 0 {
		r.CatchUpLimit = 100
	}
	if r.CatchUpLimit < 1 || r.CatchUpLimit > MaxCatchUp {
		f.add("catch_up_limit", "is %d; use 1 to %d", r.CatchUpLimit, MaxCatchUp)
	}
	if r.CatchUpPacingSeconds == 0 {
		r.CatchUpPacingSeconds = 1
	}
	checkSeconds(f, "catch_up_pacing_seconds", r.CatchUpPacingSeconds, 0.001, 24*3600)
}

// InRange reports whether a time can be kept and makes sense as an instant: 1970 to about 100 years ahead.
func InRange(at, now time.Time) bool {
	return at.Unix() >= 0 && !at.After(now.Add(FutureAllowed))
}

func checkRunAt(f *fieldErrors, field string, at, now time.Time) {
	switch {
	case at.Before(now.Add(-PastAllowed)):
		f.add(field, "%s is more than an hour in the past (it is %s now)", at.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	case !InRange(at, now):
		f.add(field, "%s is more than 100 years ahead", at.Format(time.RFC3339))
	}
}

func checkExpiry(f *fieldErrors, expires, due time.Time) {
	if !expires.IsZero() && !expires.After(due) {
		f.add("expires_at", "%s is not after the time it is due, %s", expires.Format(time.RFC3339), due.Format(time.RFC3339))
	} else if expires.Year() > 2200 {
		f.add("expires_at", "is too far ahead; use a year up to 2200")
	}
}

func checkSeconds(f *fieldErrors, field string, v, low, high float64) {
	if math.IsNaN(v) || v < low || v > high {
		plain := func(bound float64) string { return strconv.FormatFloat(bound, 'f', -1, 64) }
		f.add(field, "is %v; use %s to %s seconds", v, plain(low), plain(high))
	}
}

func checkKey(f *fieldErrors, key string) { checkText(f, "idempotency_key", key, MaxKey) }

func checkText(f *fieldErrors, field, s string, limit int) {
	switch {
	case len(s) > limit:
		f.add(field, "is %d bytes long; at most %d are allowed", len(s), limit)
	case !utf8.ValidString(s):
		f.add(field, "is not valid UTF-8")
	case strings.ContainsRune(s, 0):
		f.add(field, "holds a NUL byte")
	}
}

func checkLabels(f *fieldErrors, labels map[string]string) {
	if len(labels) > MaxLabels {
		f.add("labels", "has %d entries; at most %d are allowed", len(labels), MaxLabels)
		return
	}
	for k, v := range labels {
		if k == "" || strings.ContainsAny(k, "=,") {
			f.add("labels", "%q is not a label name; it must not be empty or hold '=' or ','", clip(k))
			continue
		}
		checkText(f, "labels", k, MaxLabel)
		checkText(f, "labels."+clip(k), v, MaxLabel)
	}
}
