package web_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"dts"
	"dts/web/api"
)

const noID = "01890000-0000-7000-8000-000000000000"

const httpTask = `{"target_type":"HTTP_CALLBACK","target_config":{"url":"https://example.com/x"}`

func decodeAs[T any](t *testing.T, body string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return v
}

func TestCreateTask(t *testing.T) {
	s := start(t, nil)
	for _, path := range []string{"/tasks", "/v1/tasks"} {
		status, h, body := s.call(t, "POST", path, httpTask+`,"name":"x","delay":"90s"}`)
		task := decodeAs[dts.Task](t, body)
		if status != 201 || h.Get("Content-Type") != "application/json" || task.Status != dts.Pending || !dts.IsID(task.ID) ||
			!task.RunAt.Equal(now.Add(90*time.Second)) || task.CreatedBy != "admin" || task.MaxAttempts != 3 {
			t.Errorf("%s: %d %s", path, status, body)
		}
		if string(task.TargetConfig) != `{"url":"https://example.com/x"}` {
			t.Errorf("target_config is %s", task.TargetConfig)
		}
	}
}

func TestRunAt(t *testing.T) {
	s := start(t, nil)
	for _, tt := range []struct{ fields, want string }{
		{``, "2026-03-01T08:00:00Z"},
		{`,"run_at":"2026-03-02T08:00:00+02:00"`, "2026-03-02T06:00:00Z"},
		{`,"run_at":"2026-07-01T12:00","time_zone":"Europe/Berlin"`, "2026-07-01T10:00:00Z"},
		{`,"run_at":"2026-10-25T02:30:00","time_zone":"Europe/Berlin"`, "2026-10-25T00:30:00Z"}, // the first of two
		{`,"run_at":"2026-03-29T03:00:00","time_zone":"Europe/Berlin"`, "2026-03-29T01:00:00Z"}, // just after the gap
		{`,"run_at":"2026-11-01T01:30:00","time_zone":"America/New_York"`, "2026-11-01T05:30:00Z"},
		{`,"delay":90`, "2026-03-01T08:01:30Z"},
		{`,"delay":0.5`, "2026-03-01T08:00:00.5Z"},
		{`,"delay":"PT3H"`, "2026-03-01T11:00:00Z"},
		{`,"delay":"2d"`, "2026-03-03T08:00:00Z"},
		{`,"run_at":"2026-03-01T07:30:00Z"`, "2026-03-01T07:30:00Z"}, // up to an hour ago
	} {
		status, _, body := s.call(t, "POST", "/tasks", httpTask+tt.fields+"}")
		if got := decodeAs[dts.Task](t, body).RunAt.Format(time.RFC3339Nano); status != 201 || got != tt.want {
			t.Errorf("%s: %d %s, want %s; %s", tt.fields, status, got, tt.want, body)
		}
	}
}

func TestBadInput(t *testing.T) {
	s := start(t, nil)
	const config = `"target_config":{"url":"https://example.com/x"}`
	id := s.add(dts.Success).ID
	recurring := `{"target_type":"COMMAND","target_config":{"argv":["x"]}`
	for _, tt := range []struct {
		method, path, body string
		status             int
		errors             string // "field: message | field: message", or the detail
	}{
		{"POST", "/tasks", ``, 400, `the body is empty; a JSON object is needed`},
		{"POST", "/tasks", `[]`, 400, `the body must be a JSON object, not an array`},
		{"POST", "/tasks", `null`, 400, `the body must be a JSON object, not null`},
		{"POST", "/tasks", "{\n  \"name\": \"x\",\n}", 400, `the body is not valid JSON: line 3, column 1: invalid character '}' looking for beginning of object key string`},
		{"POST", "/tasks", `{} {}`, 400, `the body is not valid JSON: line 1, column 4: invalid character '{' after top-level value`},
		{"POST", "/tasks", "{\"name\":\"\xff\"}", 400, `the body is not valid UTF-8 (at byte 9)`},
		{"POST", "/tasks", "{\"name\":\"a\x00b\"}", 400, `the body is not valid JSON: line 1, column 11: invalid character '\x00' in string literal`},
		{"POST", "/tasks", `{}`, 422, `target_type: is missing; use HTTP_CALLBACK, COMMAND, WORKFLOW, BACKUP or PING`},
		{"POST", "/tasks", httpTask + `,"name":"a\u0000b"}`, 422, `name: holds a NUL byte`},
		{"POST", "/tasks", httpTask + `,"runat":"2026-03-01T09:00:00Z"}`, 422, `runat: is not a known field; did you mean run_at?`},
		{"POST", "/tasks", httpTask + `,"zone":"UTC"}`, 422, `zone: is not a known field; did you mean time_zone?`},
		{"POST", "/tasks", httpTask + `,"frobnicate":1}`, 422, `frobnicate: is not a known field`},
		{"POST", "/tasks", httpTask + `,"status":"PENDING","created_by":"me","url":"x"}`, 422,
			`status: is set by dts; leave it out | created_by: is who signed in; leave it out | url: is not a field here; it belongs in target_config`},
		{"POST", "/tasks", httpTask + `,"name":5,"labels":["a"],"timeout_seconds":"1","retry":{"max_attempts":1.5,"maxdelay":1}}`, 422,
			`name: must be a string, not a number | labels: must be an object, not an array | timeout_seconds: must be a number, not a string | ` +
				`retry.max_attempts: must be a whole number within 64 bits | retry.maxdelay: is not a known field; did you mean max_delay_ms?`},
		{"POST", "/tasks", `{"target_type":"HTTP_CALLBACK","target_config":{"urll":"s3cret"}}`, 422, `target_config.urll: is not a known field; did you mean url?`},
		{"POST", "/tasks", `{"target_type":"COMMAND","target_config":{"argv":"ls -l"}}`, 422, `target_config.argv: must be an array, not a string`},
		{"POST", "/tasks", `{"target_type":"COMMAND","target_config":{"argv":["a","b",3]}}`, 422, `target_config.argv[2]: must be a string, not a number`},
		{"POST", "/tasks", `{"target_type":"HTTP",` + config + `}`, 422, `target_type: "HTTP" is not known; use HTTP_CALLBACK, COMMAND, WORKFLOW, BACKUP or PING`},
		{"POST", "/tasks", httpTask + `,"run_at":"2026-03-01T06:59:59Z"}`, 422, `run_at: 2026-03-01T06:59:59Z is more than an hour in the past (it is 2026-03-01T08:00:00Z now)`},
		{"POST", "/tasks", httpTask + `,"run_at":"2226-03-01T06:59:59Z"}`, 422, `run_at: 2226-03-01T06:59:59Z is more than 100 years ahead`},
		{"POST", "/tasks", httpTask + `,"run_at":"tomorrow"}`, 422, `run_at: is not a time; write it like 2026-03-01T08:00:00Z, or without Z and with time_zone`},
		{"POST", "/tasks", httpTask + `,"run_at":1772352000}`, 422, `run_at: must be a string with a time such as 2026-03-01T08:00:00Z, not a number`},
		{"POST", "/tasks", httpTask + `,"run_at":"2026-03-02T08:00:00"}`, 422, `run_at: has no offset; end it with Z or +02:00, or give time_zone`},
		{"POST", "/tasks", httpTask + `,"run_at":"2026-03-29T02:30:00","time_zone":"Europe/Berlin"}`, 422,
			`run_at: does not exist in Europe/Berlin: clocks there go from 2026-03-29 02:00 straight to 2026-03-29 03:00; choose a time outside that gap, or give an offset`},
		{"POST", "/tasks", httpTask + `,"run_at":"2026-03-29T02:30:00","time_zone":"Europe/Berln"}`, 422, `time_zone: time zone "Europe/Berln": is not a known IANA zone, such as Europe/Berlin or UTC; did you mean Europe/Berlin?`},
		{"POST", "/tasks", httpTask + `,"run_at":"2026-03-02T08:00:00Z","time_zone":"UTC"}`, 422, `time_zone: is for a time without an offset, and there is none; leave it out, or write the time without an offset`},
		{"POST", "/tasks", httpTask + `,"run_at":"2026-03-02T08:00:00Z","delay":5}`, 422, `delay: cannot be set together with run_at; keep one`},
		{"POST", "/tasks", httpTask + `,"delay":-5}`, 422, `delay: is negative`},
		{"POST", "/tasks", httpTask + `,"delay":[]}`, 422, `delay: must be a number of seconds or a duration such as "90s" or "PT3H", not an array`},
		{"POST", "/tasks", httpTask + `,"delay":1e300}`, 422, `delay: is out of range`},
		{"POST", "/tasks", httpTask + `,"expires_at":"2026-03-01T08:00:00Z"}`, 422, `expires_at: 2026-03-01T08:00:00Z is not after the time it is due, 2026-03-01T08:00:00Z`},
		{"POST", "/tasks", `{"name":"` + strings.Repeat("x", 2<<20) + `"}`, 413, `the body is larger than 2 MiB (2097152 bytes)`},
		{"GET", "/tasks?stat=PENDING&limit=5000", ``, 422, `stat: is not a known query parameter; did you mean status?`},
		{"GET", "/tasks?status=DONE&limit=5000&label=x&from=1&batch_id=1", ``, 422,
			`batch_id: is not an id; ids are 36 characters long, lower-case hexadecimal with hyphens | ` +
				`status: "DONE" is not known; use PENDING, RUNNING, SUCCESS, FAILED, CANCELLED or SKIPPED | label: must be name=value | ` +
				`from: is not a time; write it like 2026-03-01T08:00:00Z, or without Z and with time_zone | limit: must be a whole number from 1 to 1000`},
		{"GET", "/tasks?name=%00", ``, 422, `name: holds a NUL byte or is not valid UTF-8`},
		{"GET", "/tasks?%zz", ``, 400, `the query after ? is not well-formed`},
		{"GET", "/tasks/17", ``, 404, `"17" is not an id; ids are 36 characters long, lower-case hexadecimal with hyphens`},
		{"GET", "/tasks/" + dts.NewID(now), ``, 404, `there is no such thing`},
		{"GET", "/task", ``, 404, `there is no such path; see /openapi.json for those there are`},
		{"PUT", "/tasks", `{}`, 405, `this path takes GET and POST`},
		{"POST", "/v1/tasks/" + id, `{}`, 405, `this path takes GET and PATCH and DELETE`},
		{"POST", "/tasks/" + id + "/cancel", ``, 409, `the task is SUCCESS: only a PENDING or RUNNING task can be cancelled`},
		{"PATCH", "/tasks/" + id, `{"name":null}`, 422, `name: cannot be null; leave it out to keep what it is`},
		{"PATCH", "/tasks/" + id, `{"run_at":"2020-01-01T00:00:00Z"}`, 422, `run_at: 2020-01-01T00:00:00Z is more than an hour in the past (it is 2026-03-01T08:00:00Z now)`},
		{"POST", "/tasks/bulk", `{"tasks":[]}`, 422, `tasks: is missing or empty; it must be an array of 1 to 10000 tasks`},
		{"POST", "/tasks/bulk", `{"tasks":{}}`, 422, `tasks: must be an array, not an object`},
		{"POST", "/tasks/bulk", `{"tasks":[` + httpTask + `},` + httpTask + `,"runat":1},5]}`, 422,
			`tasks[1].runat: is not a known field; did you mean run_at? | tasks[2]: must be an object, not a number`},
		{"POST", "/tasks/bulk", `{"tasks":[` + httpTask + `},{"target_type":"X"},` + httpTask + `,"delay":"x"}]}`, 422,
			`tasks[1].target_type: "X" is not known; use HTTP_CALLBACK, COMMAND, WORKFLOW, BACKUP or PING | tasks[2].delay: interval "x" must be like 90s, 1h30m, 1d, 2w or PT3H`},
		{"POST", "/tasks/bulk", `{"tasks":[` + strings.Repeat(`{},`, dts.MaxBulk) + `{}]}`, 413, `there are more than 10000 tasks; send them in several requests`},
		{"POST", "/tasks/bulk-cancel", `{}`, 422, `ids: is missing or empty; give ids or filter`},
		{"POST", "/tasks/bulk-cancel", `{"filter":{}}`, 422, `filter: is empty, which would cancel everything; give at least one field, for example status`},
		{"POST", "/tasks/bulk-retry", `{"filter":{}}`, 422, `filter: is empty, which would retry everything; give at least one field, for example status`},
		{"POST", "/tasks/bulk-retry", `{"filter":{"status":["PENDING"]}}`, 422, `filter.status: only FAILED, CANCELLED and SKIPPED tasks can be retried`},
		{"POST", "/tasks/bulk-cancel", `{"filter":{"status":["FAILED"]}}`, 422, `filter.status: only PENDING and RUNNING tasks can be cancelled`},
		{"POST", "/tasks/bulk-delete", `{"filter":{"status":["RUNNING"]}}`, 422, `filter.status: only PENDING, SUCCESS, FAILED, CANCELLED and SKIPPED tasks can be deleted`},
		{"POST", "/tasks/bulk-pause", `{"filter":{"status":["DONE"]}}`, 422, `filter.status: "DONE" is not known; use PENDING, RUNNING, SUCCESS, FAILED, CANCELLED or SKIPPED`},
		{"POST", "/tasks/bulk-resume", `{"filter":{"waits_for":"QUEUE"}}`, 422, `filter.waits_for: only PAUSED tasks can be resumed`},
		{"POST", "/tasks/bulk-retry", `{"filter":{"waits_for":"PAUSED"}}`, 422, `filter.waits_for: only FAILED, CANCELLED and SKIPPED tasks can be retried`},
		{"POST", "/tasks/bulk-pause", `{"filter":{"waits_for":"ME","error":"\u0000","batch_id":"x"}}`, 422, `filter.waits_for: "ME" is not known; use OVERLAP, BLACKOUT, CONCURRENCY, QUEUE or PAUSED | filter: holds a NUL byte | filter.batch_id: is not an id; ids are 36 characters long, lower-case hexadecimal with hyphens`},
		{"GET", "/tasks?waits_for=PAUSED,QUEUE", ``, 422, `waits_for: is given more than once; ask for one`},
		{"POST", "/tasks/bulk-cancel", `{"ids":["x"],"filter":{"queue":"a"}}`, 422, `ids[0]: is not an id; ids are 36 characters long, lower-case hexadecimal with hyphens | filter: cannot be set together with ids; keep one`},
		{"POST", "/recurring-tasks", recurring + `}`, 422, `cron: is missing; give cron, interval_seconds or rrule`},
		{"POST", "/recurring-tasks", recurring + `,"cron":"61 * * * *"}`, 422, `cron: minute field "61": must be 0-59`},
		{"POST", "/recurring-tasks", recurring + `,"cron":"* * * * *","interval_seconds":5}`, 422, `interval_seconds: cannot be set together with cron; keep one`},
		{"POST", "/recurring-tasks", recurring + `,"cron":"0 3 1 1 *","end_time":"2026-12-01T00:00:00Z"}`, 422, `end_time: the schedule has no instant from now, or from start_time, to then`},
		{"POST", "/recurring-tasks", recurring + `,"interval_seconds":0.5,"schedule":"x"}`, 422, `schedule: is not a known field`},
		{"POST", "/recurring-tasks", recurring + `,"interval_seconds":0.5}`, 422, `interval_seconds: is 0.5; use 1 to 315360000 seconds`},
		{"POST", "/schedules/preview", `{"cron":"* * * * *","count":101}`, 422, `count: must be 1 to 100`},
		{"POST", "/schedules/preview", `{}`, 422, `cron: is missing; give cron, interval_seconds or rrule`},
		{"POST", "/schedules/preview", `{"cron":"0 3 31 2 *","time_zone":"Mars"}`, 422, `time_zone: time zone "Mars": is not a known IANA zone, such as Europe/Berlin or UTC`},
		{"GET", "/tasks/" + id + "/output?attempt=0&follow=yes", ``, 422, `attempt: must be a whole number from 1 to 1000000 | follow: must be 0 or 1`},
	} {
		status, h, body := s.call(t, tt.method, tt.path, tt.body)
		name := fmt.Sprintf("%s %s %.100s", tt.method, tt.path, tt.body)
		if h.Get("Content-Type") != api.ProblemType {
			t.Errorf("%s: content type %s, %d", name, h.Get("Content-Type"), status)
			continue
		}
		p := decodeAs[api.Problem](t, body)
		got := p.Detail
		if len(p.Errors) > 0 {
			var list []string
			for _, e := range p.Errors {
				list = append(list, e.Field+": "+e.Message)
			}
			got = strings.Join(list, " | ")
		}
		if status != tt.status || p.Status != tt.status || p.Title == "" || p.Type != "about:blank" || got != tt.errors {
			t.Errorf("%s:\n got %d %s\nwant %d %s", name, status, got, tt.status, tt.errors)
		}
		if strings.Contains(body, "s3cret") {
			t.Errorf("%s: a submitted value came back: %s", name, body)
		}
	}
	if len(s.tasks) != 1 || len(s.recurring) != 0 {
		t.Error("a refused request changed something")
	}
}

func TestContentType(t *testing.T) {
	s := start(t, nil)
	for ct, want := range map[string]int{"text/plain": 415, "application/x-www-form-urlencoded": 415, "application/json; charset=utf-8": 201, "": 201, "application/x+json": 201} {
		if status, _, body := s.call(t, "POST", "/tasks", httpTask+"}", "Content-Type", ct); status != want {
			t.Errorf("%q: %d %s", ct, status, body)
		}
	}
}

func TestErrorCodes(t *testing.T) {
	s := start(t, nil)
	for _, tt := range []struct {
		err    error
		status int
		detail string
	}{
		{dts.Errorf(dts.ErrConflict, "used before"), 409, "used before"},
		{dts.Errorf(dts.ErrFull, "the disk is full"), 507, "the disk is full"},
		{dts.Errorf(dts.ErrUnavailable, "stopping"), 503, "stopping"},
		{dts.Errorf(dts.ErrUnknown, "ask again"), 503, "ask again"},
		{fmt.Errorf("create: %w", dts.Errorf(dts.ErrForbidden, "no")), 403, "no"},
		{&dts.Error{Code: dts.ErrInternal, Message: "hush", Err: errors.New("hush")}, 500, "dts could not do this; its log says why"},
		{errors.New("hush: SELECT failed"), 500, "dts could not do this; its log says why"},
	} {
		s.err = tt.err
		status, h, body := s.call(t, "POST", "/tasks", httpTask+"}")
		p := decodeAs[api.Problem](t, body)
		if status != tt.status || p.Detail != tt.detail || strings.Contains(body, "hush") {
			t.Errorf("%v: %d %s", tt.err, status, body)
		}
		if (status == 503) != (h.Get("Retry-After") != "") {
			t.Errorf("%v: Retry-After %q", tt.err, h.Get("Retry-After"))
		}
	}
	if !strings.Contains(s.logs.String(), "hush: SELECT failed") {
		t.Error("the cause of a 500 is not in the log")
	}
}

func TestIdempotencyKey(t *testing.T) {
	s := start(t, nil)
	_, _, first := s.call(t, "POST", "/tasks", httpTask+`,"delay":60}`, "Idempotency-Key", "k1")
	status, _, body := s.call(t, "POST", "/tasks", ` {"idempotency_key":"k1", "delay": 60, `+httpTask[1:]+`}`)
	if status != 200 || body != first {
		t.Errorf("the same again: %d %s, want %s", status, body, first)
	}
	if status, _, body = s.call(t, "POST", "/tasks", httpTask+`,"delay":61}`, "Idempotency-Key", "k1"); status != 409 {
		t.Errorf("another body: %d %s", status, body)
	}
	if status, _, body = s.call(t, "POST", "/tasks", httpTask+`,"idempotency_key":"k2"}`, "Idempotency-Key", "k1"); status != 422 {
		t.Errorf("two keys: %d %s", status, body)
	}
	if status, _, body = s.call(t, "POST", "/tasks/bulk", `{"tasks":[`+httpTask+`}]}`, "Idempotency-Key", "k1"); status != 422 {
		t.Errorf("bulk with a header: %d %s", status, body)
	}
}

func TestBulk(t *testing.T) {
	s := start(t, nil)
	status, _, body := s.call(t, "POST", "/tasks/bulk", `{"tasks":[`+httpTask+`,"idempotency_key":"a"},`+httpTask+`,"delay":5}]}`)
	a := decodeAs[api.BulkAnswer](t, body)
	if status != 201 || len(a.Items) != 2 || a.Items[0].Existed || !dts.IsID(a.BatchID) || s.tasks[1].BatchID != a.BatchID ||
		!a.Items[1].RunAt.Equal(now.Add(5*time.Second)) {
		t.Fatalf("%d %s", status, body)
	}
	status, _, body = s.call(t, "POST", "/tasks/bulk", `{"tasks":[`+httpTask+`,"idempotency_key":"a"}]}`)
	if a := decodeAs[api.BulkAnswer](t, body); status != 200 || !a.Items[0].Existed {
		t.Errorf("again: %d %s", status, body)
	}
	status, _, body = s.call(t, "POST", "/tasks/bulk-cancel", `{"filter":{"status":["PENDING"],"labels":{"a":"b"},"from":"2026-01-01T00:00:00Z"}}`)
	if status != 200 || body != "{\"matched\":9,\"done\":7,\"cancelled\":7}\n" || s.filter.Labels["a"] != "b" || s.filter.TenantID != dts.DefaultTenant || s.filter.From.IsZero() || s.actor != "admin" {
		t.Errorf("bulk-cancel: %d %s %+v", status, body, s.filter)
	}
}

func TestBulkVerbs(t *testing.T) {
	s := start(t, nil)
	for _, tt := range []struct {
		verb, body, want string
		f                dts.TaskFilter
	}{
		{"retry", `{"filter":{"queue":"q","error":"503"}}`, `{"matched":9,"done":7}`,
			dts.TaskFilter{Queue: "q", Error: "503", Statuses: []dts.Status{dts.Failed}, EndedBefore: now}},
		{"retry", `{"ids":["` + noID + `"],"dry_run":true}`, `{"matched":9,"done":0,"dry_run":true}`,
			dts.TaskFilter{IDs: []string{noID}, Statuses: []dts.Status{dts.Failed, dts.Cancelled, dts.Skipped}, EndedBefore: now}},
		{"delete", `{"filter":{"name_prefix":"old-"}}`, `{"matched":9,"done":7}`,
			dts.TaskFilter{NamePrefix: "old-", NoSteps: true, Statuses: []dts.Status{dts.Success, dts.Failed, dts.Cancelled, dts.Skipped}}},
		{"delete", `{"ids":["` + noID + `"]}`, `{"matched":9,"done":7}`,
			dts.TaskFilter{IDs: []string{noID}, Statuses: []dts.Status{dts.Pending, dts.Success, dts.Failed, dts.Cancelled, dts.Skipped}}},
		{"pause", `{"filter":{"concurrency_key":"k","dedupe_key":"d"}}`, `{"matched":9,"done":7}`,
			dts.TaskFilter{ConcurrencyKey: "k", DedupeKey: "d", Statuses: []dts.Status{dts.Pending}, NotPaused: true}},
		{"resume", `{"filter":{"status":["PENDING"]}}`, `{"matched":9,"done":7}`,
			dts.TaskFilter{Statuses: []dts.Status{dts.Pending}, WaitsFor: dts.ReasonPaused}},
	} {
		status, _, body := s.call(t, "POST", "/tasks/bulk-"+tt.verb, tt.body)
		tt.f.TenantID = dts.DefaultTenant
		if status != 200 || strings.TrimSpace(body) != tt.want || s.bulk.Verb != dts.BulkVerb(tt.verb) || !reflect.DeepEqual(s.filter, tt.f) {
			t.Errorf("%s %s: %d %s %+v", tt.verb, tt.body, status, body, s.filter)
		}
	}
	_, _, body := s.call(t, "POST", "/tasks/bulk", `{"tasks":[`+httpTask+`},`+httpTask+`}]}`)
	id := decodeAs[api.BulkAnswer](t, body).BatchID
	if status, _, body := s.call(t, "GET", "/batches/"+id, ""); status != 200 || decodeAs[dts.Batch](t, body).Total != 2 {
		t.Errorf("batch: %d %s", status, body)
	}
	if status, _, body := s.call(t, "GET", "/batches/"+noID, ""); status != 404 {
		t.Errorf("no batch: %d %s", status, body)
	}
}

func TestListFilter(t *testing.T) {
	s := start(t, nil)
	rid := dts.NewID(now)
	status, _, body := s.call(t, "GET", "/tasks?status=pending,RUNNING&status=FAILED&queue=q&name=n&label=a%3Db&label=c%3Dd%3De&created_by=x&recurring_task_id="+rid+
		"&from=2026-01-01T00:00:00Z&to=2026-02-01T00:00:00%2B01:00&limit=7&cursor=", "")
	f := s.filter
	if status != 200 || body != "{\"items\":[],\"next_cursor\":\"\"}\n" {
		t.Errorf("%d %s", status, body)
	}
	if fmt.Sprint(f.Statuses) != "[PENDING RUNNING FAILED]" || f.Queue != "q" || f.Name != "n" || f.Labels["a"] != "b" || f.Labels["c"] != "d=e" ||
		f.CreatedBy != "x" || f.RecurringTaskID != rid || f.Limit != 7 || !f.To.Equal(time.Date(2026, 1, 31, 23, 0, 0, 0, time.UTC)) {
		t.Errorf("filter %+v", f)
	}
}

func TestTenants(t *testing.T) {
	s := start(t, nil)
	id := s.add(dts.Pending).ID
	if status, _, body := s.call(t, "GET", "/tasks/"+id, "", "Authorization", "Bearer other"); status != 404 {
		t.Errorf("another tenant's task: %d %s", status, body)
	}
	s.call(t, "POST", "/tasks", httpTask+"}", "Authorization", "Bearer other")
	if last := s.tasks[len(s.tasks)-1]; last.TenantID != "other" || last.CreatedBy != "bob" {
		t.Errorf("created for %s by %s", last.TenantID, last.CreatedBy)
	}
}

func TestRecurring(t *testing.T) {
	s := start(t, nil)
	status, _, body := s.call(t, "POST", "/recurring-tasks", `{"name":"b","target_type":"COMMAND","target_config":{"argv":["x"]},"cron":"*/5 * * * *",
		"time_zone":"Europe/Berlin","end_time":"2026-12-24T18:00"}`)
	r := decodeAs[dts.RecurringTask](t, body)
	if status != 201 || r.Status != dts.Active || !dts.IsID(r.ID) || r.CreatedBy != "admin" || !r.EndTime.Equal(time.Date(2026, 12, 24, 17, 0, 0, 0, time.UTC)) {
		t.Fatalf("%d %s", status, body)
	}
	path := "/recurring-tasks/" + r.ID
	for _, tt := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"PATCH", path, `{"end_time":null,"interval_seconds":"PT3H"}`, 200, `"interval_seconds":10800`},
		{"PATCH", path, `{"cron":"61 * * * *"}`, 422, `minute field`},
		{"PATCH", path, `{"target_config":{"argz":1}}`, 422, `target_config.argz`},
		{"PATCH", path, `{"crom":"* * * * *"}`, 422, `did you mean cron?`},
		{"POST", path + "/pause", ``, 200, r.ID},
		{"POST", path + "/pause", `{"until":"2026-03-01T07:00:00Z"}`, 422, `has passed`},
		{"POST", path + "/pause", `{"until":"2026-03-02T07:00:00Z","note":"holiday"}`, 200, r.ID},
		{"POST", path + "/resume", ``, 200, r.ID},
		{"POST", path + "/trigger-now", ``, 201, `"origin":"TRIGGER"`},
		{"GET", path + "/upcoming?limit=3", ``, 200, `{"items":[]}`},
		{"GET", path + "/occurrences", ``, 200, `"reason":"PAUSED"`},
		{"GET", "/recurring-tasks?status=ACTIVE&name=b", ``, 200, r.ID},
		{"DELETE", path, ``, 200, r.ID},
		{"GET", "/recurring-tasks/" + dts.NewID(now) + "/upcoming", ``, 404, ``},
	} {
		status, _, body := s.call(t, tt.method, tt.path, tt.body)
		if status != tt.status || !strings.Contains(body, tt.want) {
			t.Errorf("%s %s %s: %d %s", tt.method, tt.path, tt.body, status, body)
		}
	}
	if s.recurringPatch.EndTime == nil || !s.recurringPatch.EndTime.IsZero() || s.note != "holiday" || s.until.IsZero() {
		t.Errorf("patch %+v, pause until %v: %s", s.recurringPatch, s.until, s.note)
	}
}

func TestVerbs(t *testing.T) {
	s := start(t, nil)
	pending, failed := s.add(dts.Pending).ID, s.add(dts.Failed).ID
	for _, tt := range []struct {
		method, path string
		status       int
	}{
		{"POST", "/tasks/" + pending + "/cancel", 200}, {"POST", "/tasks/" + pending + "/run-now", 200},
		{"POST", "/tasks/" + pending + "/force-complete", 200}, {"POST", "/tasks/" + pending + "/retry", 409},
		{"POST", "/tasks/" + failed + "/retry", 200}, {"DELETE", "/tasks/" + failed, 200}, {"GET", "/tasks/" + failed + "/attempts", 200},
		{"GET", "/tasks/" + dts.NewID(now) + "/attempts", 404},
	} {
		if status, _, body := s.call(t, tt.method, tt.path, ""); status != tt.status {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, status, body)
		}
	}
	status, _, body := s.call(t, "PATCH", "/tasks/"+pending, `{"run_at":"2026-03-05T08:00:00","time_zone":"UTC","name":"new","expires_at":null}`)
	if task := decodeAs[dts.Task](t, body); status != 200 || task.Name != "new" || task.RunAt.Day() != 5 || s.patch.ExpiresAt == nil {
		t.Errorf("%d %s", status, body)
	}
}

func TestSystem(t *testing.T) {
	s := start(t, nil)
	for path, want := range map[string]string{
		"/health": `{"status":"ok"}`, "/ready": `{"ready":true}`, "/stats": `{"pending":3,`, "/scheduler/status": `"node":"n1"`, "/metrics": "dts_up 1",
	} {
		if status, _, body := s.call(t, "GET", path, ""); status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	s.notReady = errors.New("hush")
	if status, _, body := s.call(t, "GET", "/ready", ""); status != 503 || body != "{\"ready\":false,\"reasons\":[\"not ready\"]}\n" {
		t.Errorf("%d %s", status, body)
	}
	s.notReady = dts.Errorf(dts.ErrUnavailable, "the clock is in 1970")
	if status, _, body := s.call(t, "GET", "/v1/ready", ""); status != 503 || !strings.Contains(body, "the clock is in 1970") {
		t.Errorf("%d %s", status, body)
	}
	s.panics = true
	status, _, body := s.call(t, "GET", "/tasks/"+dts.NewID(now), "")
	if status != 500 || strings.Contains(body, "secret") || !strings.Contains(s.logs.String(), "handler panicked") {
		t.Errorf("panic: %d %s", status, body)
	}
}
