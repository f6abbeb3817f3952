package web_test

import (
	"strings"
	"testing"
	"time"

	"dts"
)

func TestDedupeRequests(t *testing.T) {
	s := start(t, nil)
	const task = `"target_type":"COMMAND","target_config":{"argv":["true"]}`
	for _, tt := range []struct {
		path, body string
		status     int
		field      string
	}{
		{"/tasks", `{` + task + `,"dedupe_key":"k"}`, 201, ""},
		{"/tasks", `{` + task + `,"dedupe_key":"k","dedupe_policy":"REPLACE"}`, 201, ""},
		{"/tasks", `{` + task + `,"dedupe_key":"k","dedupe_policy":"NEWEST"}`, 422, "dedupe_policy"},
		{"/tasks", `{` + task + `,"dedupe_policy":"REJECT"}`, 422, "dedupe_policy"},
		{"/tasks", `{` + task + `,"dedupe_key":"` + strings.Repeat("k", 257) + `"}`, 422, "dedupe_key"},
		{"/tasks/bulk", `{"tasks":[{` + task + `},{` + task + `,"dedupe_key":"k","dedupe_policy":"REPLACE"}]}`, 422, "tasks[1].dedupe_policy"},
		{"/tasks/bulk", `{"tasks":[{` + task + `,"dedupe_key":"k"},{` + task + `,"dedupe_key":"k"}]}`, 422, "tasks[1].dedupe_key"},
		{"/tasks/bulk", `{"tasks":[{` + task + `,"dedupe_key":"k"},{` + task + `,"dedupe_key":"k","dedupe_policy":"KEEP_FIRST"}]}`, 201, ""},
		{"/tasks", `{` + task + `,"retry":{"on":{"http_status":["6xx"]}}}`, 422, "retry.on.http_status[0]"},
		{"/tasks", `{` + task + `,"retry":{"on":{"codes":["6xx"]}}}`, 422, "codes"},
	} {
		status, _, body := s.call(t, "POST", tt.path, tt.body)
		if status != tt.status || tt.field != "" && !strings.Contains(body, tt.field+`"`) {
			t.Errorf("%s %s: %d %s", tt.path, tt.body, status, body)
		}
	}
	last := s.tasks[len(s.tasks)-1]
	if last.DedupeKey != "k" || last.DedupePolicy != dts.DedupeKeepFirst {
		t.Errorf("the scheduler was asked for %q %q", last.DedupeKey, last.DedupePolicy)
	}
}

func TestTiming(t *testing.T) {
	s := start(t, nil)
	k := s.add(dts.Success)
	if status, _, body := s.call(t, "GET", "/tasks/"+k.ID, ""); status != 200 || strings.Contains(body, `"timing"`) {
		t.Errorf("one that has not started: %d %s", status, body)
	}
	k.DueAt, k.StartedAt, k.CompletedAt, k.QueuedUS = now, now.Add(time.Second), now.Add(3*time.Second), 400_000
	if _, _, body := s.call(t, "GET", "/tasks/"+k.ID, ""); !strings.Contains(body, `"timing":{"parent_us":0,"queue_us":400000,"scheduler_us":600000,"target_us":2000000}`) {
		t.Errorf("%s", body)
	}
}
