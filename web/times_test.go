package web_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dts"
	"dts/web/api"
)

const commandTask = `{"target_type":"COMMAND","target_config":{"argv":["x"]}`

// said is what a problem says: "field: message | field: message", or the detail.
func said(t *testing.T, body string) string {
	t.Helper()
	p := decodeAs[api.Problem](t, body)
	if len(p.Errors) == 0 {
		return p.Detail
	}
	var list []string
	for _, e := range p.Errors {
		list = append(list, e.Field+": "+e.Message)
	}
	return strings.Join(list, " | ")
}

func TestScheduleFields(t *testing.T) {
	s := start(t, nil)
	status, _, body := s.call(t, "POST", "/recurring-tasks", commandTask+`,"name":"n","cron":["30 2 * * *","0 9 * * sat"],"time_zone":"Europe/Berlin","dst_gap":"SKIP","dst_overlap":"BOTH",
		"jitter_seconds":30,"exclude_calendars":["holidays","off"],"require_calendars":["open"],"calendar_shift":"NEXT_BUSINESS_DAY","catch_up_mode":"RUN_ALL_MISSED",
		"catch_up_window_seconds":86400,"catch_up_limit":7,"catch_up_pacing_seconds":2.5,"overlap_policy":"BUFFER_ONE"}`)
	if status != 201 {
		t.Fatalf("%d %s", status, body)
	}
	r := decodeAs[dts.RecurringTask](t, body)
	want := dts.Schedule{Cron: "30 2 * * *\n0 9 * * sat", TimeZone: "Europe/Berlin", DSTGap: dts.GapSkip, DSTOverlap: dts.OverlapBoth, JitterSeconds: 30,
		ExcludeCalendars: []string{"holidays", "off"}, RequireCalendars: []string{"open"}, CalendarShift: dts.ShiftNext}
	if diff := cmp.Diff(want, r.Schedule); diff != "" {
		t.Errorf("the schedule (-want +got):\n%s", diff)
	}
	if r.CatchUpMode != dts.RunAllMissed || r.CatchUpWindowSeconds != 86400 || r.CatchUpLimit != 7 || r.CatchUpPacingSeconds != 2.5 || r.OverlapPolicy != dts.OverlapBufferOne {
		t.Error(body)
	}
	status, _, body = s.call(t, "PATCH", "/recurring-tasks/"+r.ID, `{"cron":"0 4 * * *","dst_gap":"","dst_overlap":"","jitter_seconds":0,"exclude_calendars":[],"require_calendars":[],
		"calendar_shift":"","catch_up_mode":"RUN_ONE_NOW","catch_up_window_seconds":0,"overlap_policy":"CANCEL_RUNNING"}`)
	got := decodeAs[dts.RecurringTask](t, body)
	if diff := cmp.Diff(dts.Schedule{Cron: "0 4 * * *", TimeZone: "Europe/Berlin"}, got.Schedule); status != 200 || diff != "" || got.CatchUpMode != dts.RunOneNow ||
		got.CatchUpLimit != 0 || got.CatchUpWindowSeconds != 0 || got.OverlapPolicy != dts.OverlapCancel {
		t.Errorf("%d %s\n%s", status, body, diff)
	}
	const rule = "FREQ=MONTHLY;INTERVAL=2;BYDAY=2TU"
	status, _, body = s.call(t, "PATCH", "/recurring-tasks/"+r.ID, `{"rrule":"`+rule+`"}`)
	if got := decodeAs[dts.RecurringTask](t, body); status != 200 || got.RRule != rule || got.Cron != "" {
		t.Errorf("%d %s", status, body)
	}
	for _, tt := range []struct{ fields, want string }{
		{`"cron":["@daily","61 * * * *"]`, `cron: line 2: minute field "61": must be 0-59`},
		{`"rrule":"FREQ=NEVER"`, `rrule: FREQ "NEVER": must be YEARLY, MONTHLY, WEEKLY, DAILY or HOURLY`},
		{`"rrule":"FREQ=DAILY","end_time":"2026-03-01T07:00:00Z"`, `end_time: the schedule has no instant from now, or from start_time, to then`},
		{`"cron":[]`, `cron: must hold a cron expression; the array is empty`},
		{`"cron":["@daily",5]`, `cron: item 1 of the array must be a string with one cron expression`},
		{`"cron":["@daily"," "]`, `cron: item 1 of the array must be a string with one cron expression`},
		{`"cron":["@daily\n@hourly"]`, `cron: item 0 of the array must be a string with one cron expression`},
		{`"cron":{"a":1}`, `cron: must be a cron expression or an array of them, not an object`},
		{`"cron":"@daily","rrule":"FREQ=DAILY"`, `rrule: cannot be set together with cron or interval_seconds; keep one`},
		{`"cron":"@daily","dst_gap":"LATER"`, `dst_gap: "LATER" is not known; use RUN_AFTER or SKIP`},
		{`"cron":"@daily","dst_overlap":"NEVER"`, `dst_overlap: "NEVER" is not known; use FIRST, SECOND or BOTH, or leave it out`},
		{`"cron":"@daily","jitter_seconds":-1`, `jitter_seconds: is -1; use 0 to 86400 seconds`},
		{`"cron":"@daily","jitter_seconds":"5s"`, `jitter_seconds: must be a number, not a string`},
		{`"cron":"@daily","calendar_shift":"NEXT_BUSINESS_DAY"`, `calendar_shift: moves what a calendar excludes, and there is none; give exclude_calendars or require_calendars`},
		{`"cron":"@daily","exclude_calendars":"off"`, `exclude_calendars: must be an array, not a string`},
		{`"cron":"@daily","exclude_calendars":["Off!"]`, `exclude_calendars: "Off!" is not a calendar's name; use 1 to 64 of a-z, 0-9, '.', '_', '-', beginning and ending with a letter or digit`},
		{`"cron":"@daily","catch_up_limit":5`, `catch_up_limit: is for catch_up_mode RUN_ALL_MISSED; the others run one at most`},
		{`"cron":"@daily","catch_up_mode":"ALL"`, `catch_up_mode: "ALL" is not known; use RUN_LATEST, RUN_ONE_NOW, RUN_ALL_MISSED or SKIP_MISSED`},
		{`"cron":"@daily","catch_up_mode":"RUN_ALL_MISSED","catch_up_limit":1001,"catch_up_pacing_seconds":-1`,
			`catch_up_limit: is 1001; use 1 to 1000 | catch_up_pacing_seconds: is -1; use 0.001 to 86400 seconds`},
		{`"cron":"@daily","overlap_policy":"QUEUE"`, `overlap_policy: "QUEUE" is not known; use ALLOW, SKIP, BUFFER_ONE, BUFFER_ALL or CANCEL_RUNNING`},
		{`"cron":"@daily","calender_shift":"x"`, `calender_shift: is not a known field; did you mean calendar_shift?`},
	} {
		if status, _, body := s.call(t, "POST", "/recurring-tasks", commandTask+`,`+tt.fields+`}`); status != 422 || said(t, body) != tt.want {
			t.Errorf("%s:\n got %d %s\nwant 422 %s", tt.fields, status, said(t, body), tt.want)
		}
		// What a preview is asked is checked by the same rules.
		if status, _, body := s.call(t, "POST", "/schedules/preview", `{`+tt.fields+`}`); status != 422 || said(t, body) != tt.want {
			t.Errorf("preview of %s:\n got %d %s\nwant 422 %s", tt.fields, status, said(t, body), tt.want)
		}
	}
}

func TestPreview(t *testing.T) {
	s := start(t, nil)
	status, _, body := s.call(t, "POST", "/schedules/preview", `{"cron":"30 2 * * *","time_zone":"Europe/Berlin","start_time":"2026-03-28T00:00","count":2,"name":"n","queue":"q",
		"expected_seconds":90,"overlap_policy":"SKIP","exclude_calendars":["off"],"from":"2026-03-28T00:00","since":"2026-02-27T17:00","catch_up_mode":"SKIP_MISSED"}`)
	if p := decodeAs[dts.Preview](t, body); status != 200 || len(p.Instants) != 2 || p.TimeZone != "Europe/Berlin" {
		t.Errorf("%d %s", status, body)
	}
	midnight := time.Date(2026, 3, 27, 23, 0, 0, 0, time.UTC)
	want := dts.PreviewRequest{
		Schedule: dts.Schedule{Cron: "30 2 * * *", TimeZone: "Europe/Berlin", StartTime: midnight, ExcludeCalendars: []string{"off"}},
		Name:     "n", Queue: "q", ExpectedSeconds: 90, OverlapPolicy: dts.OverlapSkip, CatchUpMode: dts.SkipMissed, MisfireAfterSeconds: 60,
		Count: 2, From: midnight, Since: time.Date(2026, 2, 27, 16, 0, 0, 0, time.UTC),
	}
	if diff := cmp.Diff(want, s.times.preview); diff != "" {
		t.Errorf("the request (-want +got):\n%s", diff)
	}
	if status, _, body := s.call(t, "POST", "/schedules/preview", `{"cron":"@reboot"}`); status != 200 || s.times.preview.Count != 5 {
		t.Errorf("%d %s", status, body)
	}

	_, _, body = s.call(t, "POST", "/recurring-tasks", commandTask+`,"cron":"@daily","time_zone":"America/New_York"}`)
	id := decodeAs[dts.RecurringTask](t, body).ID
	status, _, body = s.call(t, "POST", "/schedules/preview", `{"recurring_task_id":"`+id+`","count":1,"from":"2026-03-28T00:00"}`)
	want = dts.PreviewRequest{RecurringTaskID: id, Count: 1, From: time.Date(2026, 3, 28, 4, 0, 0, 0, time.UTC)}
	if diff := cmp.Diff(want, s.times.preview); status != 200 || diff != "" {
		t.Errorf("%d %s\n%s", status, body, diff)
	}
	for _, tt := range []struct {
		body   string
		status int
		want   string
	}{
		{`{"recurring_task_id":"` + id + `","cron":"@daily"}`, 422, `recurring_task_id: has its own schedule; give only count, from and since beside it`},
		{`{"recurring_task_id":"7"}`, 422, `recurring_task_id: is not an id; ids are 36 characters long, lower-case hexadecimal with hyphens`},
		{`{"recurring_task_id":"` + dts.NewID(now) + `"}`, 404, `there is no such thing`},
		{`{"cron":"@daily","from":"2026-03-28T00:00"}`, 422, `from: has no offset; end it with Z or +02:00, or give time_zone`},
		{`{"cron":"@daily","from":"1969-03-28T00:00:00Z"}`, 422, `from: 1969-03-28T00:00:00Z is out of range; use 1970 to 100 years ahead`},
		{`{"cron":"@daily","since":"2026-03-01T08:00:01Z"}`, 422, `since: 2026-03-01T08:00:01Z has not passed yet (it is 2026-03-01T08:00:00Z now)`},
		{`{"cron":"@daily","expected_seconds":-1,"queue":"Q"}`, 422,
			`queue: "Q" is not a queue name; use 1 to 64 of a-z, 0-9, '.', '_', '-', beginning and ending with a letter or digit | expected_seconds: must be 0 to 604800`},
		{`{"cron":"@daily","time_zone":"Mars","since":"2026-02-27T17:00"}`, 422, `time_zone: time zone "Mars": is not a known IANA zone, such as Europe/Berlin or UTC`},
	} {
		if status, _, body := s.call(t, "POST", "/schedules/preview", tt.body); status != tt.status || said(t, body) != tt.want {
			t.Errorf("%s: %d %s", tt.body, status, said(t, body))
		}
	}
	s.err = dts.Invalid("exclude_calendars", "there is no calendar %q", "off")
	if status, _, body := s.call(t, "POST", "/schedules/preview", `{"cron":"@daily","exclude_calendars":["off"]}`); status != 422 || said(t, body) != `exclude_calendars: there is no calendar "off"` {
		t.Errorf("%d %s", status, body)
	}
}

func TestCalendars(t *testing.T) {
	s := start(t, nil)
	ics := "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n"
	full := `{"description":"d","time_zone":"Europe/Berlin","days":["12-25"],"weekdays":["SUN"],"weekend":["FRI"],"ics":"BEGIN:VCALENDAR",
		"holidays":{"country":"de","region":"by","add":["06-01"],"remove":["12-26"]},
		"windows":[{"start_time":"2026-07-01T12:00","end_time":"2026-07-01T14:00:00+02:00"},{"cron":"0 2 * * *","duration_seconds":"PT1H"}]}`
	for _, tt := range []struct {
		method, path, body string
		status             int
		want               string // in a problem: all that is said
	}{
		{"GET", "/calendars", ``, 200, `{"items":[]}`},
		{"POST", "/calendars", `{"name":"off","days":["12-25"]}`, 201, `"name":"off"`},
		{"POST", "/calendars", `{"name":"off","days":["12-25"]}`, 409, `there is a calendar "off" already`},
		{"PUT", "/calendars/off", full, 200, `"start_time":"2026-07-01T10:00:00Z","end_time":"2026-07-01T12:00:00Z"},{"cron":"0 2 * * *","duration_seconds":3600}`},
		{"PUT", "/calendars/new", `{"name":"new","weekdays":["MON"]}`, 201, `"weekdays":["MON"]`},
		{"GET", "/calendars/off", ``, 200, `"ics":"BEGIN:VCALENDAR"`},
		{"GET", "/calendars/none", ``, 404, `there is no calendar "none"`},
		{"GET", "/calendars/%FF", ``, 404, "there is no calendar \"\uFFFD\""},
		{"DELETE", "/calendars/new", ``, 200, `"weekdays":["MON"]`},
		{"DELETE", "/calendars/new", ``, 404, `there is no calendar "new"`},
		{"PATCH", "/calendars/off", `{}`, 405, `this path takes GET and PUT and DELETE`},
		{"POST", "/calendars", `{"days":["12-25"]}`, 422, `name: "" is not a calendar's name; use 1 to 64 of a-z, 0-9, '.', '_', '-', beginning and ending with a letter or digit`},
		{"POST", "/calendars", `{"name":"x"}`, 422, `days: is missing, and so are weekdays, windows, ics and holidays; a calendar needs one of them`},
		{"POST", "/calendars", `{"name":"x","dates":["12-25"],"version":3,"windows":[{"start":"x"},5],"holidays":{"frobnicate":"de"}}`, 422,
			`dates: is not a known field; did you mean days? | version: is set by dts; leave it out | windows[0].start: is not a known field; did you mean start_time? | ` +
				`windows[1]: must be an object, not a number | holidays.frobnicate: is not a known field`},
		{"POST", "/calendars", `{"name":"x","time_zone":"Mars","windows":[{"start_time":"2026-07-01T12:00"}]}`, 422, `time_zone: time zone "Mars": is not a known IANA zone, such as Europe/Berlin or UTC`},
		{"POST", "/calendars", `{"name":"x","windows":[{"start_time":"2026-07-01T12:00"}]}`, 422, `windows[0].start_time: has no offset; end it with Z or +02:00, or give time_zone`},
		{"POST", "/calendars", `{"name":"x","windows":[` + strings.Repeat(`{},`, dts.MaxWindows) + `{}]}`, 422, `windows: has 1001 entries; at most 1000 are allowed`},
		{"PUT", "/calendars/a", `{"name":"b","days":["12-25"]}`, 422, `name: is not that of the path; leave it out`},
		{"PUT", "/calendars/a?time_zone=UTC", `{"days":["12-25"]}`, 422, `time_zone: is for a body of type text/calendar; put it into the body`},
		{"PUT", "/calendars/A", `{"days":["12-25"]}`, 422, `name: "A" is not a calendar's name; use 1 to 64 of a-z, 0-9, '.', '_', '-', beginning and ending with a letter or digit`},
		{"PUT", "/calendars/a", `{"ics":"` + strings.Repeat("x", 2<<20) + `"}`, 413, `the body is larger than 2 MiB (2097152 bytes)`},
	} {
		status, _, body := s.call(t, tt.method, tt.path, tt.body)
		ok := strings.Contains(body, tt.want)
		if status >= 400 {
			ok = said(t, body) == tt.want
		}
		if status != tt.status || !ok {
			t.Errorf("%s %s %.100s:\n got %d %s\nwant %d %s", tt.method, tt.path, tt.body, status, body, tt.status, tt.want)
		}
	}
	if _, _, body := s.call(t, "GET", "/calendars", ""); strings.Contains(body, "ics") || s.times.calendars[0].ICS == "" {
		t.Errorf("the list: %s", body)
	}

	// A file alone is a calendar too.
	status, _, body := s.call(t, "PUT", "/calendars/school?time_zone=Europe/Berlin&description="+url.QueryEscape("from the school"), ics, "Content-Type", "text/calendar; charset=utf-8")
	k := decodeAs[dts.Calendar](t, body)
	if status != 201 || k.Name != "school" || k.ICS != ics || k.TimeZone != "Europe/Berlin" || k.Description != "from the school" {
		t.Errorf("%d %s", status, body)
	}
	for _, tt := range []struct {
		method, path, body, want string
		status                   int
	}{
		{"PUT", "/calendars/school", "\xff", `ics: is not valid UTF-8`, 422},
		{"PUT", "/calendars/school", "", `the body is empty; a JSON object is needed`, 400}, // without a body its type says nothing
		{"PUT", "/calendars/school", strings.Repeat("x", dts.MaxICS+1), `ics: is 1048577 bytes long; at most 1048576 are allowed`, 422},
		{"POST", "/calendars", ics, `the body must be JSON; send it with the header Content-Type: application/json`, 415},
	} {
		status, _, body := s.call(t, tt.method, tt.path, tt.body, "Content-Type", "text/calendar")
		if status != tt.status || said(t, body) != tt.want {
			t.Errorf("%s %.20q: %d %s", tt.path, tt.body, status, body)
		}
	}
	if status, _, body := s.call(t, "PUT", "/calendars/school", ics, "Content-Type", "text/plain"); status != 415 || !strings.Contains(body, "JSON or text/calendar") {
		t.Errorf("%d %s", status, body)
	}
	if _, _, body := s.call(t, "GET", "/calendars/school", "", "Authorization", "Bearer other"); !strings.Contains(body, "there is no calendar") {
		t.Errorf("another tenant's: %s", body)
	}
	s.err = &dts.Error{Code: dts.ErrInvalid, Message: "the request is not valid", Fields: []dts.FieldError{{Field: "days[0]", Message: "is not a day"}}}
	if status, _, body := s.call(t, "POST", "/calendars", `{"name":"x","days":["13-25"]}`); status != 422 || said(t, body) != "days[0]: is not a day" {
		t.Errorf("%d %s", status, body)
	}
	s.err = dts.Errorf(dts.ErrConflict, "the recurring task backup uses it")
	if status, _, body := s.call(t, "DELETE", "/calendars/off", ""); status != 409 || said(t, body) != "the recurring task backup uses it" {
		t.Errorf("%d %s", status, body)
	}
}

func TestCalendarWindows(t *testing.T) {
	s := start(t, nil)
	s.call(t, "PUT", "/calendars/off", `{"time_zone":"Europe/Berlin","days":["2026-03-04"],"windows":[{"start_time":"2026-03-06T12:00","end_time":"2026-03-06T14:00"}]}`)
	s.times.calendars = append(s.times.calendars, &dts.Calendar{TenantID: dts.DefaultTenant, Name: "broken", Days: []string{"x"}})
	const window = `{"start_time":"2026-03-06T11:00:00Z","end_time":"2026-03-06T13:00:00Z","name":"2026-03-06T11:00:00Z/2026-03-06T13:00:00Z"}]}`
	for _, tt := range []struct {
		path   string
		status int
		want   string
	}{
		{"off/windows", 200, `{"items":[{"start_time":"2026-03-03T23:00:00Z","end_time":"2026-03-04T23:00:00Z","name":"2026-03-04"},` + window},
		{"off/windows?time_zone=America/New_York", 200, `{"items":[{"start_time":"2026-03-04T05:00:00Z","end_time":"2026-03-05T05:00:00Z","name":"2026-03-04"},` + window},
		{"off/windows?from=2026-03-05T00:00", 200, `{"items":[` + window},
		{"off/windows?from=2026-03-05T00:00&to=2026-03-06T00:00", 200, `{"items":[]}`},
		{"off/windows?from=2026-03-05T00:00&to=2027-03-07T00:00", 422, `to: is more than 366 days after from; ask for less at once`},
		{"off/windows?from=2026-03-05T00:00&to=2026-03-04T00:00", 422, `to: 2026-03-03T23:00:00Z is before from, 2026-03-04T23:00:00Z`},
		{"off/windows?time_zone=Mars", 422, `time_zone: time zone "Mars": is not a known IANA zone, such as Europe/Berlin or UTC`},
		{"none/windows", 404, `there is no calendar "none"`},
		{"broken/windows", 500, `dts could not do this; its log says why`},
	} {
		status, _, body := s.call(t, "GET", "/calendars/"+tt.path, "")
		ok := strings.Contains(body, tt.want)
		if status >= 400 {
			ok = said(t, body) == tt.want
		}
		if status != tt.status || !ok {
			t.Errorf("%s:\n got %d %s\nwant %d %s", tt.path, status, body, tt.status, tt.want)
		}
	}
}

// Somebody else may create or delete the calendar at the same time.
func TestPutCalendarRaces(t *testing.T) {
	s := start(t, nil)
	for racing, want := range []int{201, 200, 200, 409} {
		s.times.calendars, s.times.racing = nil, racing
		if status, _, body := s.call(t, "PUT", "/calendars/off", `{"days":["12-25"]}`); status != want || racing < 3 && len(s.times.calendars) != 1 {
			t.Errorf("%d times: %d %s", racing, status, body)
		}
	}
}

func TestBlackouts(t *testing.T) {
	s := start(t, nil)
	status, _, body := s.call(t, "POST", "/blackouts", `{"name":"upgrade","note":"n","queue":"q","start_time":"2026-03-02T22:00","end_time":"2026-03-02T23:30:00Z","time_zone":"Europe/Berlin"}`)
	b := decodeAs[dts.Blackout](t, body)
	if status != 201 || !dts.IsID(b.ID) || b.Action != dts.BlackoutWait || !b.Start.Equal(time.Date(2026, 3, 2, 21, 0, 0, 0, time.UTC)) || b.CreatedBy != "admin" || !b.CreatedAt.Equal(now) {
		t.Fatalf("%d %s", status, body)
	}
	path := "/blackouts/" + b.ID
	s.times.blackouts[0].CreatedBy = "bob"
	s.times.blackouts[0].CreatedAt = now.Add(-time.Hour)
	for _, tt := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/blackouts", ``, 200, b.ID},
		{"GET", path, ``, 200, `"queue":"q"`},
		{"PUT", path, `{"name":"nightly","action":"SKIP","cron":"0 2 * * *","duration_seconds":"90m"}`, 200, `"duration_seconds":5400,"created_at":"2026-03-01T07:00:00Z","created_by":"bob"`},
		{"POST", "/blackouts", `{"name":"x","calendar":"off"}`, 201, `"calendar":"off"`},
		{"PUT", "/blackouts/" + dts.NewID(now), `{"name":"x","calendar":"off"}`, 404, `there is no such thing`},
		{"GET", "/blackouts/7", ``, 404, `"7" is not an id; ids are 36 characters long, lower-case hexadecimal with hyphens`},
		{"POST", "/blackouts", `{"calendar":"Off","queue":"Q","action":"STOP","time_zone":"Mars"}`, 422, `time_zone: time zone "Mars": is not a known IANA zone, such as Europe/Berlin or UTC | ` +
			`name: is missing; say what it is for | queue: "Q" is not a queue name | action: "STOP" is not known; use WAIT or SKIP | ` +
			`calendar: "Off" is not a calendar's name; use 1 to 64 of a-z, 0-9, '.', '_', '-', beginning and ending with a letter or digit`},
		{"POST", "/blackouts", `{"name":"x","start_time":"tomorrow","end_time":5}`, 422, `end_time: must be a string with a time such as 2026-03-01T08:00:00Z, not a number`},
		{"POST", "/blackouts", `{"name":"x","start_time":"tomorrow"}`, 422, `start_time: is not a time; write it like 2026-03-01T08:00:00Z, or without Z and with time_zone`},
		{"POST", "/blackouts", `{"name":"x","blackout_id":"7","until":"x"}`, 422, `blackout_id: is set by dts; leave it out | until: is not a known field`},
		{"DELETE", path, ``, 200, `"name":"nightly"`},
		{"DELETE", path, ``, 404, `there is no such thing`},
	} {
		status, _, body := s.call(t, tt.method, tt.path, tt.body)
		ok := strings.Contains(body, tt.want)
		if status >= 400 {
			ok = said(t, body) == tt.want
		}
		if status != tt.status || !ok {
			t.Errorf("%s %s %s:\n got %d %s\nwant %d %s", tt.method, tt.path, tt.body, status, body, tt.status, tt.want)
		}
	}
}

func TestBackfillResumeAndWhy(t *testing.T) {
	s := start(t, nil)
	_, _, body := s.call(t, "POST", "/recurring-tasks", commandTask+`,"cron":"@daily","time_zone":"Europe/Berlin"}`)
	id := decodeAs[dts.RecurringTask](t, body).ID
	task := s.add(dts.Success).ID
	path := "/recurring-tasks/" + id
	for _, tt := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"POST", path + "/backfill", `{"from":"2026-02-01T00:00","to":"2026-02-28T23:00:00Z","dry_run":true}`, 200, `{"count":2,"created":0,"first":"2026-01-31T23:00:00Z","last":"2026-02-28T23:00:00Z"}`},
		{"POST", path + "/backfill", ``, 400, `the body is empty; a JSON object is needed`},
		{"POST", path + "/backfill", `{}`, 422, `from: is missing; give the time of the first and of the last instant to replay | to: is missing; give the time of the first and of the last instant to replay`},
		{"POST", path + "/backfill", `{"from":"2026-02-02T00:00","to":"2026-02-01T00:00"}`, 422, `to: 2026-01-31T23:00:00Z is before from, 2026-02-01T23:00:00Z`},
		{"POST", path + "/backfill", `{"from":"1960-02-02T00:00:00Z","to":"2026-03-02T00:00:00Z"}`, 422, `from: 1960-02-02T00:00:00Z is out of range; use 1970 to 100 years ahead | ` +
			`to: 2026-03-02T00:00:00Z has not passed yet (it is 2026-03-01T08:00:00Z now)`},
		{"POST", path + "/backfill", `{"from":"x","since":"y"}`, 422, `since: is not a known field`},
		{"POST", "/recurring-tasks/" + task + "/backfill", `{"from":"2026-02-01T00:00","to":"2026-02-01T00:00"}`, 404, `there is no such thing`},
		{"POST", path + "/resume", `{"catch_up":"yes"}`, 422, `catch_up: must be true or false, not a string`},
		{"POST", path + "/resume", `{"catch_up":true}`, 200, id},
		{"GET", "/tasks/" + task + "/why", ``, 200, `{"answer":"` + task + `"}`},
		{"GET", "/tasks/" + id + "/why", ``, 404, `there is no such thing`},
		{"GET", path + "/why?at=2026-02-01T00:00", ``, 200, `{"answer":"` + id + `"}`},
		{"GET", path + "/why?at=yesterday", ``, 422, `at: is not a time; write it like 2026-03-01T08:00:00Z, or without Z and with time_zone`},
		{"GET", path + "/why?when=x", ``, 422, `when: is not a known query parameter`},
		{"GET", "/recurring-tasks/" + task + "/why", ``, 404, `there is no such thing`},
	} {
		status, _, body := s.call(t, tt.method, tt.path, tt.body)
		ok := strings.Contains(body, tt.want)
		if status >= 400 {
			ok = said(t, body) == tt.want
		}
		if status != tt.status || !ok {
			t.Errorf("%s %s %s:\n got %d %s\nwant %d %s", tt.method, tt.path, tt.body, status, body, tt.status, tt.want)
		}
	}
	if !s.times.catchUp || s.actor != "admin" || !s.times.whyAt.Equal(time.Date(2026, 1, 31, 23, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v", s.times)
	}
	if status, _, _ := s.call(t, "POST", path+"/resume", ""); status != 200 || s.times.catchUp {
		t.Errorf("%d, catch up: %v", status, s.times.catchUp)
	}
}

func TestConflicts(t *testing.T) {
	s := start(t, nil)
	for _, tt := range []struct {
		query  string
		status int
		want   string
	}{
		{"", 200, `"from":"2026-03-01T08:00:00Z","to":"2026-03-08T08:00:00Z","shared":"queue reports"`},
		{"?from=2026-03-02T00:00:00Z", 200, `"to":"2026-03-09T00:00:00Z"`},
		{"?to=2026-04-01T08:00:00Z", 200, `"to":"2026-04-01T08:00:00Z"`},
		{"?to=2026-04-01T08:00:01Z", 422, `to: is more than 31 days after from; ask for less at once`},
		{"?to=2026-02-28T08:00:00Z", 422, `to: 2026-02-28T08:00:00Z is before from, 2026-03-01T08:00:00Z`},
		{"?from=2026-03-02T00:00&days=3", 422, `days: is not a known query parameter`},
		{"?from=2026-03-02T00:00", 422, `from: has no offset; end it with Z or +02:00, or give time_zone`},
	} {
		status, _, body := s.call(t, "GET", "/scheduler/conflicts"+tt.query, "")
		ok := strings.Contains(body, tt.want)
		if status >= 400 {
			ok = said(t, body) == tt.want
		}
		if status != tt.status || !ok {
			t.Errorf("%s: %d %s", tt.query, status, body)
		}
	}
}

// The ledger tells of every instant that was due whether it ran, and how late, or who or what kept it from that; and what
// comes next, what it waits for.
func TestLedger(t *testing.T) {
	s := start(t, nil)
	_, _, body := s.call(t, "POST", "/recurring-tasks", commandTask+`,"cron":"@daily"}`)
	path := "/recurring-tasks/" + decodeAs[dts.RecurringTask](t, body).ID
	late := int64(1500)
	ran := s.add(dts.Success)
	ran.LatenessUS, ran.StartedAt = &late, now
	skipped := s.add(dts.Skipped)
	skipped.SkipReason = dts.ReasonOverlap
	waiting := s.add(dts.Pending)
	waiting.WaitsFor = dts.ReasonBlackout
	s.ledger = []dts.Occurrence{
		{ScheduledAt: now, Task: ran},
		{ScheduledAt: now.Add(-time.Hour), Task: skipped, Skip: &dts.Skip{From: now, To: now, Count: 1, Reason: dts.ReasonOverlap, Note: "the run of 07:00 goes on"}},
		{ScheduledAt: now.Add(-2 * time.Hour), Skip: &dts.Skip{From: now.Add(-2 * time.Hour), To: now, Count: 3, Reason: dts.ReasonCalendar, Note: "holidays: moved to Monday"}},
	}
	_, _, body = s.call(t, "GET", path+"/occurrences", "")
	for _, want := range []string{`"lateness_us":1500`, `"skip_reason":"OVERLAP"`, `"reason":"OVERLAP","note":"the run of 07:00 goes on"`, `"count":3,"reason":"CALENDAR","note":"holidays: moved to Monday"`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	_, _, body = s.call(t, "GET", path+"/upcoming", "")
	list := decodeAs[api.Items[dts.Task]](t, body).Items
	if !slices.ContainsFunc(list, func(k dts.Task) bool { return k.ID == waiting.ID && k.WaitsFor == dts.ReasonBlackout }) || !strings.Contains(body, `"waits_for":"BLACKOUT"`) {
		t.Error(body)
	}
}
