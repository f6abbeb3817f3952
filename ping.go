package dts

import (
	"encoding/json"
	"strings"
	"time"
)

// PingTarget is the target_config of PING: a job that something else runs, and that reports by calling the ping URL of its
// recurring task. Each instant of the schedule expects one success; the run is judged when the grace is over, or before, as
// soon as the job has reported how it ended.
type PingTarget struct {
	GraceSeconds      float64 `json:"grace_seconds,omitempty" doc:"how long after its instant a report may come; default: 300, at most 31 days"`
	MaxRuntimeSeconds float64 `json:"max_runtime_seconds,omitempty" doc:"of a job that reports its start: it must report its end within this, also after the grace; default: by the end of the grace"`
}

// Limits of pings.
const (
	DefaultGrace = 5 * time.Minute
	MaxGrace     = 31 * 24 * time.Hour
	MaxPings     = 100      // the newest that are kept of a recurring task
	MaxPingBody  = 10 << 10 // bytes that are kept of what a ping says
)

// PingKind is what a ping reports.
type PingKind string

const (
	PingStart   PingKind = "START"
	PingSuccess PingKind = "SUCCESS"
	PingFailure PingKind = "FAILURE"
)

// PingRecord is one report of a job that dts does not run.
type PingRecord struct {
	ID              string    `json:"ping_id"`
	TenantID        string    `json:"-"`
	RecurringTaskID string    `json:"-"`
	ReceivedAt      time.Time `json:"received_at"`
	Kind            PingKind  `json:"kind" enum:"START,SUCCESS,FAILURE"`
	ExitCode        *int      `json:"exit_code,omitempty" doc:"where the job reported one"`
	ScheduledAt     time.Time `json:"scheduled_at,omitzero" doc:"the instant for which it counts; absent: it came too early for the next one, and there was none before"`
	Source          string    `json:"source,omitempty" doc:"the address that it came from"`
	Body            string    `json:"body,omitempty" doc:"what was sent along, at most 10 KiB of it"`
	BodyBytes       int64     `json:"body_bytes,omitempty" doc:"how long that was"`
}

// PingKindOf is what a job means that reports an exit code.
func PingKindOf(exitCode int) PingKind {
	if exitCode == 0 {
		return PingSuccess
	}
	return PingFailure
}

// Ping decodes the target_config of a PING that Normalize has accepted.
func (s *Spec) Ping() (PingTarget, error) {
	var t PingTarget
	err := json.Unmarshal(s.TargetConfig, &t)
	return t, err
}

// Grace is how long after its instant a job may report.
func (t *PingTarget) Grace() time.Duration {
	if t.GraceSeconds == 0 {
		return DefaultGrace
	}
	return seconds(t.GraceSeconds)
}

// MaxRuntime is how long after its start a job may end; 0: no limit of its own.
func (t *PingTarget) MaxRuntime() time.Duration { return seconds(t.MaxRuntimeSeconds) }

// checkPing checks a PING, which is judged once: to try again is up to whoever runs the job.
func checkPing(f *fieldErrors, s *Spec) {
	var t PingTarget
	if err := decodeStrict(s.TargetConfig, &t); err != nil {
		f.add("target_config", "is not a valid PING: %s", err)
		return
	}
	for _, x := range []struct {
		field string
		value float64
	}{{"grace_seconds", t.GraceSeconds}, {"max_runtime_seconds", t.MaxRuntimeSeconds}} {
		if x.value != 0 {
			checkSeconds(f, "target_config."+x.field, x.value, 1, MaxGrace.Seconds())
		}
	}
	if s.Retry.MaxAttempts > 1 {
		f.add("retry.max_attempts", "is %d; a PING is judged once, because its job is not started by dts: leave it out", s.Retry.MaxAttempts)
	}
}

// onlyRecurringPing is what is said of a PING that nothing expects.
const onlyRecurringPing = "PING is for recurring tasks: it expects a report at each instant of a schedule"

// normalizePing checks what of a recurring task does not go with PING. What was missed because no server was there to hear
// the job says nothing about it: it is skipped, unless asked for otherwise.
func (r *RecurringTask) normalizePing(f *fieldErrors) {
	if r.TargetType != Ping {
		return
	}
	if r.CatchUpMode == "" {
		r.CatchUpMode = SkipMissed
	}
	if r.CatchUpMode == RunOneNow {
		f.add("catch_up_mode", "cannot be RUN_ONE_NOW for a PING, which dts does not run; use SKIP_MISSED or RUN_LATEST")
	}
	if r.JitterSeconds != 0 {
		f.add("jitter_seconds", "is for what dts starts; a PING has grace_seconds")
	}
	if strings.TrimSpace(r.Cron) == "@reboot" {
		f.add("cron", "cannot be @reboot for a PING: nothing says when the job's machine boots")
	}
}

// Delay is how much later than scheduled the occurrences are due: the jitter, or the grace of a PING.
func (r *RecurringTask) Delay() time.Duration {
	if r.TargetType != Ping {
		return r.Jitter()
	}
	t, err := r.Ping()
	if err != nil {
		return 0 // it was stored by another version; the run says so
	}
	return t.Grace()
}

// PingFrom is the earliest time at which a ping counts for an instant; previous is the instant before it, or zero. A job on a
// fixed interval has its own idea of when that begins, so any time since the previous instant will do. One at times of
// day may be a little early, because its clock is, or its scheduler: by the grace, or half the way back to the previous instant
// where that is less.
func (r *RecurringTask) PingFrom(instant, previous time.Time) time.Time {
	early := r.Delay()
	switch every := r.Interval(); {
	case every > 0:
		return instant.Add(-every + time.Microsecond)
	case previous.IsZero():
	case strings.HasPrefix(strings.TrimSpace(r.Cron), "@every"):
		return previous.Add(time.Microsecond)
	default:
		early = min(early, instant.Sub(previous)/2)
	}
	return instant.Add(-early)
}
