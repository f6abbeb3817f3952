package api

import (
	"testing"
	"time"
	"unicode/utf8"

	"dts"
)

// FuzzTimeBodies feeds any body to what reads schedules, calendars, blackouts and backfills. Whatever it is, it becomes
// what the scheduler takes, or an error with a text for users; and soon.
func FuzzTimeBodies(f *testing.F) {
	const target = `"target_type":"COMMAND","target_config":{"argv":["x"]}`
	for _, seed := range []string{
		`{`, `{` + target + `,"cron":["30 2 * * *","@daily"],"time_zone":"Europe/Berlin","start_time":"2026-03-29T02:30"}`,
		`{` + target + `,"rrule":"FREQ=MONTHLY;BYDAY=2TU","dst_gap":"SKIP","exclude_calendars":["a"],"calendar_shift":"NEXT_BUSINESS_DAY"}`,
		`{` + target + `,"interval_seconds":"PT3H","jitter_seconds":1e99,"catch_up_mode":"RUN_ALL_MISSED","catch_up_limit":-1}`,
		`{"cron":[],"count":7,"from":"2026-03-01T00:00","since":"2026-02-27T17:00:00Z","expected_seconds":-0}`, `{"cron":[["@daily"],null,"\n"]}`,
		`{"name":"a","days":["12-25"],"windows":[{"cron":"0 2 * * *","duration_seconds":"1h"},{"start_time":"2026-07-01T12:00"}],"holidays":{"country":"de"}}`,
		`{"name":"a","queue":"q","action":"SKIP","start_time":"2026-07-01T12:00Z","calendar":"x"}`, `{"from":"2026-02-01T00:00","to":null,"dry_run":true}`,
	} {
		f.Add([]byte(seed))
	}
	now := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, body []byte) {
		var recurring RecurringRequest
		var preview PreviewRequest
		var calendar CalendarRequest
		var blackout BlackoutRequest
		var backfill BackfillRequest
		for _, x := range []struct {
			v    any
			read func() error
		}{
			{&recurring, func() error { _, err := recurring.recurringTask(dts.DefaultTenant, "me", now); return err }},
			{&preview, func() error { _, err := preview.request(preview.TimeZone, now); return err }},
			{&calendar, func() error { _, err := calendar.calendar(dts.DefaultTenant); return err }},
			{&blackout, func() error { _, err := blackout.blackout(dts.DefaultTenant, now); return err }},
			{&backfill, func() error { _, err := backfill.request("Europe/Berlin", now); return err }},
		} {
			begun := time.Now()
			err := decode(body, x.v)
			if err == nil {
				err = x.read()
			}
			if took := time.Since(begun); took > 5*time.Second {
				t.Fatalf("%T took %s: %s", x.v, took, body)
			}
			if err == nil {
				continue
			}
			p := ProblemOf(err)
			if p.Status < 400 || p.Status >= 500 || p.Detail == "" {
				t.Fatalf("%T, %s: %+v (%v)", x.v, body, p, err)
			}
			for _, e := range p.Errors {
				if e.Message == "" || !utf8.ValidString(e.Message) {
					t.Fatalf("%T, %s: %+v", x.v, body, e)
				}
			}
		}
	})
}
