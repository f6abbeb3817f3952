package dts_test

import (
	"testing"
	"time"

	"dts"
)

func ping(config string, edit func(*dts.RecurringTask)) *dts.RecurringTask {
	r := &dts.RecurringTask{Spec: dts.Spec{TargetType: dts.Ping, TargetConfig: []byte(config)}, Schedule: dts.Schedule{Cron: "0 3 * * *"}}
	if edit != nil {
		edit(r)
	}
	return r
}

func TestPingDefaults(t *testing.T) {
	r := ping(`{}`, nil)
	if err := r.Normalize(); err != nil {
		t.Fatal(err)
	}
	if r.Retry.MaxAttempts != 1 || r.RetryDefault || r.CatchUpMode != dts.SkipMissed || r.Delay() != dts.DefaultGrace {
		t.Errorf("attempts %d (default of its queue: %v), catch-up %s, delay %s", r.Retry.MaxAttempts, r.RetryDefault, r.CatchUpMode, r.Delay())
	}
	at := time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)
	o := r.Occurrence(at, dts.OriginSchedule, at.Add(-time.Hour))
	if !o.ScheduledAt.Equal(at) || !o.DueAt.Equal(at.Add(dts.DefaultGrace)) || !o.MissAt.Equal(o.DueAt.Add(time.Minute)) {
		t.Errorf("scheduled %s, due %s, missed from %s", o.ScheduledAt, o.DueAt, o.MissAt)
	}
}

func TestPingRefused(t *testing.T) {
	for _, x := range []struct {
		field, config string
		edit          func(*dts.RecurringTask)
	}{
		{"target_config", `{"grace": 5}`, nil},
		{"target_config.grace_seconds", `{"grace_seconds": -1}`, nil},
		{"target_config.grace_seconds", `{"grace_seconds": 9e9}`, nil},
		{"target_config.max_runtime_seconds", `{"max_runtime_seconds": 0.5}`, nil},
		{"retry.max_attempts", `{}`, func(r *dts.RecurringTask) { r.Retry.MaxAttempts = 2 }},
		{"catch_up_mode", `{}`, func(r *dts.RecurringTask) { r.CatchUpMode = dts.RunOneNow }},
		{"jitter_seconds", `{}`, func(r *dts.RecurringTask) { r.JitterSeconds = 5 }},
		{"cron", `{}`, func(r *dts.RecurringTask) { r.Cron = "@reboot" }},
		{"preemptible", `{}`, func(r *dts.RecurringTask) { r.Preemptible, r.Priority = true, dts.Low }},
	} {
		checkField(t, ping(x.config, x.edit).Normalize(), x.field)
	}
	once := &dts.Task{Spec: dts.Spec{TargetType: dts.Ping, TargetConfig: []byte(`{}`)}}
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	checkField(t, once.Normalize(now), "target_type")

	kind := dts.Ping
	patch := dts.TaskPatch{TaskTemplatePatch: dts.TaskTemplatePatch{TargetType: &kind, TargetConfig: []byte(`{}`), Retry: &dts.Retry{MaxAttempts: 1}}}
	command := &dts.Task{Spec: dts.Spec{TargetType: dts.Command, TargetConfig: []byte(`{"argv":["true"]}`)}}
	if err := command.Normalize(now); err != nil {
		t.Fatal(err)
	}
	_, err := patch.Apply(command, now)
	checkField(t, err, "target_type")
}

// checkField reports an error that is not about the field, or about more.
func checkField(t *testing.T, err error, field string) {
	t.Helper()
	e, is := err.(*dts.Error)
	if !is || len(e.Fields) != 1 || e.Fields[0].Field != field {
		t.Errorf("want a refusal of %s, got %v", field, err)
	}
}

// What comes before its instant counts for it if it is a little early. On an interval, any time since the last one will do.
func TestPingFrom(t *testing.T) {
	at := time.Date(2026, 3, 2, 3, 0, 0, 0, time.UTC)
	for _, x := range []struct {
		name     string
		schedule dts.Schedule
		previous time.Time
		early    time.Duration
	}{
		{"a day apart: the grace", dts.Schedule{Cron: "0 3 * * *"}, at.Add(-24 * time.Hour), 10 * time.Minute},
		{"the first one: the grace", dts.Schedule{Cron: "0 3 * * *"}, time.Time{}, 10 * time.Minute},
		{"close to each other: half the way", dts.Schedule{Cron: "*/5 * * * *"}, at.Add(-5 * time.Minute), 150 * time.Second},
		{"an interval: all of it", dts.Schedule{IntervalSeconds: 3600}, time.Time{}, time.Hour - time.Microsecond},
		{"an interval in cron's words", dts.Schedule{Cron: "@every 1h"}, at.Add(-time.Hour), time.Hour - time.Microsecond},
	} {
		r := ping(`{"grace_seconds": 600}`, func(r *dts.RecurringTask) { r.Schedule = x.schedule })
		if got := at.Sub(r.PingFrom(at, x.previous)); got != x.early {
			t.Errorf("%s: %s early, want %s", x.name, got, x.early)
		}
	}
}
