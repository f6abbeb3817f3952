package sched

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"dts"
	"dts/sched/calendar"
)

// previewOf makes the preview of a request, with calendars and blackouts.
func previewOf(t *testing.T, q dts.PreviewRequest, now time.Time, edit func(*previewInput), more ...any) *dts.Preview {
	t.Helper()
	if err := checkPreview(&q, now); err != nil {
		t.Fatal(err)
	}
	r, err := unsaved(&q, dts.DefaultTenant, now)
	if err != nil {
		t.Fatal(err)
	}
	calendars := map[string]*calendar.Calendar{}
	var blackouts []*dts.Blackout
	for _, x := range more {
		switch x := x.(type) {
		case *dts.Calendar:
			if calendars[x.Name], err = calendar.Compile(x); err != nil {
				t.Fatal(err)
			}
		case *dts.Blackout:
			blackouts = append(blackouts, x)
		}
	}
	table, err := Compile(r, calendars)
	if err != nil {
		t.Fatal(err)
	}
	in := previewInput{r: r, table: table, closed: closingsOf(t, calendars, blackouts...), now: now, from: q.From, since: q.Since, count: q.Count,
		expected: time.Duration(q.ExpectedSeconds * float64(time.Second))}
	if edit != nil {
		edit(&in)
	}
	return in.preview()
}

// lines writes a preview's instants, one a line: local time, whether it runs, when it is due, effects.
func lines(p *dts.Preview) (list []string) {
	for _, x := range p.Instants {
		s := x.Local
		if !x.Runs {
			s += " no"
		}
		if !x.DueAt.IsZero() {
			s += " due " + x.DueAt.Format("15:04:05Z")
		}
		for _, e := range x.Effects {
			s += fmt.Sprintf(" %s: %s", e.Kind, e.Text)
		}
		list = append(list, s)
	}
	return list
}

func TestPreview(t *testing.T) {
	day := func(month time.Month, d, hour int) time.Time {
		return time.Date(2026, month, d, hour, 0, 0, 0, time.UTC)
	}
	friday := day(3, 6, 0)
	berlin := func(cron string, edit func(*dts.PreviewRequest)) dts.PreviewRequest {
		q := dts.PreviewRequest{Schedule: dts.Schedule{Cron: cron, TimeZone: "Europe/Berlin"}, Count: 3}
		if edit != nil {
			edit(&q)
		}
		return q
	}
	holidays := &dts.Calendar{Name: "closed", Days: []string{"2026-03-09"}}
	weekend := &dts.Calendar{Name: "weekend", Weekdays: []string{"SAT", "SUN"}}
	office := &dts.Calendar{Name: "office", Days: []string{"2026-03-06"}}
	blackout := func(action dts.BlackoutAction, from, to time.Time) *dts.Blackout {
		return &dts.Blackout{Name: "upgrade", Action: action, Window: dts.Window{Start: from, End: to}}
	}
	hourly := func(edit func(*dts.PreviewRequest)) dts.PreviewRequest {
		q := dts.PreviewRequest{Schedule: dts.Schedule{Cron: "0 * * * *"}, Count: 4}
		edit(&q)
		return q
	}
	nothing := func(*dts.PreviewRequest) {}
	for _, tt := range []struct {
		name string
		q    dts.PreviewRequest
		now  time.Time
		edit func(*previewInput)
		more []any
		want []string
	}{
		{"plain", berlin("30 9 * * MON-FRI", nil), friday, nil, nil, []string{"2026-03-06T09:30:00+01:00", "2026-03-09T09:30:00+01:00", "2026-03-10T09:30:00+01:00"}},
		{"a time that does not exist", berlin("30 2 * * *", nil), day(3, 28, 0), nil, nil, []string{
			"2026-03-28T02:30:00+01:00",
			"2026-03-29T03:00:00+02:00 DST: 02:30 does not exist on 2026-03-29: the clock goes from 02:00 to 03:00; it runs at 03:00",
			"2026-03-30T02:30:00+02:00"}},
		{"one that is skipped", berlin("30 2 * * *", func(q *dts.PreviewRequest) { q.DSTGap = dts.GapSkip }), day(3, 28, 0), nil, nil, []string{
			"2026-03-28T02:30:00+01:00",
			"2026-03-29T03:00:00+02:00 no DST: 02:30 does not exist on 2026-03-29: the clock goes from 02:00 to 03:00; it does not run",
			"2026-03-30T02:30:00+02:00"}},
		{"excluded", berlin("30 9 * * *", func(q *dts.PreviewRequest) { q.ExcludeCalendars = []string{"weekend", "closed"} }), friday, nil, []any{holidays, weekend}, []string{
			"2026-03-06T09:30:00+01:00",
			"2026-03-07T09:30:00+01:00 no CALENDAR: the calendar weekend excludes it (weekends)",
			"2026-03-08T09:30:00+01:00 no CALENDAR: the calendar weekend excludes it (weekends)"}},
		{"required", berlin("30 9 * * *", func(q *dts.PreviewRequest) { q.RequireCalendars = []string{"office"} }), friday, nil, []any{office}, []string{
			"2026-03-06T09:30:00+01:00",
			"2026-03-07T09:30:00+01:00 no CALENDAR: it is outside the calendar office",
			"2026-03-08T09:30:00+01:00 no CALENDAR: it is outside the calendar office"}},
		{"moved", berlin("30 9 * * MON", func(q *dts.PreviewRequest) {
			q.ExcludeCalendars, q.CalendarShift = []string{"closed"}, dts.ShiftNext
		}), friday, nil, []any{holidays}, []string{
			"2026-03-09T09:30:00+01:00 no CALENDAR: the calendar closed excludes it (2026-03-09); it is moved to Tue 2026-03-10 09:30:00 CET",
			"2026-03-10T09:30:00+01:00 CALENDAR: it is moved here from Mon 2026-03-09 09:30:00 CET, which a calendar excludes",
			"2026-03-16T09:30:00+01:00"}},
		{"moved back", berlin("30 9 * * MON", func(q *dts.PreviewRequest) {
			q.ExcludeCalendars, q.CalendarShift = []string{"closed"}, dts.ShiftPrevious
		}), friday, nil, []any{holidays}, []string{
			"2026-03-06T09:30:00+01:00 CALENDAR: it is moved here from Mon 2026-03-09 09:30:00 CET, which a calendar excludes",
			"2026-03-09T09:30:00+01:00 no CALENDAR: the calendar closed excludes it (2026-03-09); it is moved to Fri 2026-03-06 09:30:00 CET",
			"2026-03-16T09:30:00+01:00"}},
		{"a blackout that waits", hourly(nothing), friday, nil, []any{blackout(dts.BlackoutWait, friday.Add(2*time.Hour-time.Second), friday.Add(2*time.Hour+30*time.Second))}, []string{
			"2026-03-06T01:00:00Z",
			"2026-03-06T02:00:00Z due 02:00:30Z BLACKOUT: it waits for the blackout upgrade, until Fri 2026-03-06 02:00:30 UTC",
			"2026-03-06T03:00:00Z", "2026-03-06T04:00:00Z"}},
		{"a long one", hourly(nothing), friday, nil, []any{blackout(dts.BlackoutWait, friday.Add(2*time.Hour), friday.Add(3*time.Hour+10*time.Minute))}, []string{
			"2026-03-06T01:00:00Z",
			"2026-03-06T02:00:00Z no BLACKOUT: the blackout upgrade lasts until Fri 2026-03-06 03:10:00 UTC: it is skipped, because later ones wait as well, and catch_up_mode RUN_LATEST runs no more of them",
			"2026-03-06T03:00:00Z due 03:10:00Z BLACKOUT: it waits for the blackout upgrade, until Fri 2026-03-06 03:10:00 UTC",
			"2026-03-06T04:00:00Z"}},
		{"a long one, all run", hourly(func(q *dts.PreviewRequest) { q.CatchUpMode = dts.RunAllMissed; q.Count = 2 }), friday, nil, []any{blackout(dts.BlackoutWait, friday.Add(2*time.Hour), friday.Add(3*time.Hour+10*time.Minute))}, []string{
			"2026-03-06T01:00:00Z",
			"2026-03-06T02:00:00Z due 03:10:00Z BLACKOUT: it waits for the blackout upgrade, until Fri 2026-03-06 03:10:00 UTC"}},
		{"a long one, one runs", hourly(func(q *dts.PreviewRequest) { q.CatchUpMode = dts.RunOneNow; q.Count = 2 }), friday, nil, []any{blackout(dts.BlackoutWait, friday.Add(2*time.Hour), friday.Add(3*time.Hour+10*time.Minute))}, []string{
			"2026-03-06T01:00:00Z",
			"2026-03-06T02:00:00Z no BLACKOUT: the blackout upgrade lasts until Fri 2026-03-06 03:10:00 UTC: then one task makes up for all that were due, as catch_up_mode RUN_ONE_NOW says"}},
		{"a long one, none runs", hourly(func(q *dts.PreviewRequest) { q.CatchUpMode = dts.SkipMissed; q.Count = 2 }), friday, nil, []any{blackout(dts.BlackoutWait, friday.Add(2*time.Hour), friday.Add(3*time.Hour+10*time.Minute))}, []string{
			"2026-03-06T01:00:00Z",
			"2026-03-06T02:00:00Z no BLACKOUT: the blackout upgrade lasts until Fri 2026-03-06 03:10:00 UTC, longer than misfire_after_seconds: it is skipped, as catch_up_mode SKIP_MISSED says"}},
		{"a blackout that skips", hourly(nothing), friday, nil, []any{blackout(dts.BlackoutSkip, friday.Add(2*time.Hour), friday.Add(150*time.Minute))}, []string{
			"2026-03-06T01:00:00Z",
			"2026-03-06T02:00:00Z no BLACKOUT: the blackout upgrade is open until Fri 2026-03-06 02:30:00 UTC: it is skipped",
			"2026-03-06T03:00:00Z", "2026-03-06T04:00:00Z"}},
		{"of another queue", hourly(func(q *dts.PreviewRequest) { q.Queue, q.Count = "mail", 2 }), friday, nil,
			[]any{&dts.Blackout{Name: "db", Queue: "db", Action: dts.BlackoutSkip, Window: dts.Window{Start: friday, End: friday.Add(9 * time.Hour)}}}, []string{"2026-03-06T01:00:00Z", "2026-03-06T02:00:00Z"}},
		{"overlap: allowed", hourly(func(q *dts.PreviewRequest) { q.ExpectedSeconds, q.Count = 4000, 1 }), friday.Add(30 * time.Minute), nil, nil, []string{
			"2026-03-06T01:00:00Z OVERLAP: the run of Fri 2026-03-06 00:00:00 UTC lasts until Fri 2026-03-06 01:06:40 UTC by then: both run at once"}},
		{"overlap: skipped", hourly(func(q *dts.PreviewRequest) {
			q.ExpectedSeconds, q.OverlapPolicy, q.StartTime = 4000, dts.OverlapSkip, friday.Add(time.Hour)
		}), friday, nil, nil, []string{
			"2026-03-06T01:00:00Z",
			"2026-03-06T02:00:00Z no OVERLAP: the run of Fri 2026-03-06 01:00:00 UTC lasts until Fri 2026-03-06 02:06:40 UTC by then: it is skipped",
			"2026-03-06T03:00:00Z",
			"2026-03-06T04:00:00Z no OVERLAP: the run of Fri 2026-03-06 03:00:00 UTC lasts until Fri 2026-03-06 04:06:40 UTC by then: it is skipped"}},
		{"overlap: one waits", hourly(func(q *dts.PreviewRequest) {
			q.ExpectedSeconds, q.OverlapPolicy, q.StartTime = 3*3600, dts.OverlapBufferOne, friday.Add(time.Hour)
		}), friday, nil, nil, []string{
			"2026-03-06T01:00:00Z",
			"2026-03-06T02:00:00Z OVERLAP: the run of Fri 2026-03-06 01:00:00 UTC lasts until Fri 2026-03-06 04:00:00 UTC by then: it waits for its end",
			"2026-03-06T03:00:00Z no OVERLAP: the run of Fri 2026-03-06 02:00:00 UTC waits already, and no more than 1 may: it is skipped",
			"2026-03-06T04:00:00Z OVERLAP: the run of Fri 2026-03-06 02:00:00 UTC lasts until Fri 2026-03-06 07:00:00 UTC by then: it waits for its end"}},
		{"overlap: cancelled", hourly(func(q *dts.PreviewRequest) {
			q.ExpectedSeconds, q.OverlapPolicy, q.StartTime, q.Count = 4000, dts.OverlapCancel, friday.Add(time.Hour), 2
		}), friday, nil, nil, []string{
			"2026-03-06T01:00:00Z",
			"2026-03-06T02:00:00Z OVERLAP: it stops the run of Fri 2026-03-06 01:00:00 UTC, which would last longer"}},
		{"jitter", hourly(func(q *dts.PreviewRequest) { q.JitterSeconds, q.Count = 90, 1 }), friday, nil, nil, []string{
			"2026-03-06T01:00:00Z JITTER: it is due up to 1 m 30 s later, always by the same time, which its id decides"}},
		{"max_runs", hourly(func(q *dts.PreviewRequest) { q.MaxRuns = 3 }), friday, func(in *previewInput) { in.r.RunsCount = 1 },
			[]any{blackout(dts.BlackoutSkip, friday.Add(2*time.Hour), friday.Add(150*time.Minute))}, []string{
				"2026-03-06T01:00:00Z",
				"2026-03-06T02:00:00Z no BLACKOUT: the blackout upgrade is open until Fri 2026-03-06 02:30:00 UTC: it is skipped",
				"2026-03-06T03:00:00Z"}},
		{"an interval from now on", dts.PreviewRequest{Schedule: dts.Schedule{IntervalSeconds: 90.5}, Count: 2}, friday, nil, nil, []string{"2026-03-06T00:01:30.5Z", "2026-03-06T00:03:01Z"}},
		{"it ends", hourly(func(q *dts.PreviewRequest) { q.EndTime = friday.Add(90 * time.Minute) }), friday, nil, nil, []string{"2026-03-06T01:00:00Z"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := previewOf(t, tt.q, tt.now, tt.edit, tt.more...)
			if got := lines(p); !slices.Equal(got, tt.want) {
				t.Errorf("\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(tt.want, "\n     "))
			}
			if p.Description == "" || p.TimeZone == "" {
				t.Errorf("%+v", p)
			}
		})
	}
	// Of a stored one the id decides the jitter.
	var share time.Duration
	p := previewOf(t, hourly(func(q *dts.PreviewRequest) { q.JitterSeconds, q.Count = 90, 1 }), friday, func(in *previewInput) {
		in.stored, in.r.ID = true, "0195c2b0-0000-7000-8000-000000000001"
		share = in.r.Jitter()
	})
	if x := p.Instants[0]; !x.DueAt.Equal(x.UTC.Add(share)) || x.Effects[0].Text != fmt.Sprintf("it is due %s later: its share of the jitter", sayDuration(share)) {
		t.Errorf("%+v", x)
	}
}

func TestPreviewMissed(t *testing.T) {
	now := time.Date(2026, 3, 9, 8, 30, 0, 0, time.UTC) // a Monday
	since := time.Date(2026, 3, 6, 17, 0, 0, 0, time.UTC)
	hourly := dts.Schedule{Cron: "0 * * * *"}
	for _, tt := range []struct {
		name      string
		edit      func(*dts.PreviewRequest)
		input     func(*previewInput)
		run, skip int64
		text      string
	}{
		{"latest", func(q *dts.PreviewRequest) {}, nil, 1, 62, "63 missed since Friday 17:00: would run 1, that of Mon 2026-03-09 08:00:00 UTC"},
		{"one now", func(q *dts.PreviewRequest) { q.CatchUpMode = dts.RunOneNow }, nil, 1, 63, "63 missed since Friday 17:00: would run 1, at once, in the place of all"},
		{"all", func(q *dts.PreviewRequest) {
			q.CatchUpMode, q.CatchUpLimit, q.CatchUpPacingSeconds = dts.RunAllMissed, 10, 5
		}, nil, 10, 53, "63 missed since Friday 17:00: would run 10, the newest, from that of Sun 2026-03-08 23:00:00 UTC on, 5 s apart"},
		{"none", func(q *dts.PreviewRequest) { q.CatchUpMode = dts.SkipMissed }, nil, 0, 63, "63 missed since Friday 17:00: would run none"},
		{"window", func(q *dts.PreviewRequest) {
			q.CatchUpMode, q.CatchUpWindowSeconds = dts.RunAllMissed, 2*3600
		}, nil, 2, 61, "63 missed since Friday 17:00: would run 2, the newest, from that of Mon 2026-03-09 07:00:00 UTC on, 1 s apart"},
		{"window without an instant", func(q *dts.PreviewRequest) { q.CatchUpWindowSeconds = 60 }, nil, 0, 63, "63 missed since Friday 17:00: would run none"},
		{"max_runs", func(q *dts.PreviewRequest) { q.CatchUpMode, q.MaxRuns = dts.RunAllMissed, 4 }, func(in *previewInput) { in.r.RunsCount = 3 }, 1, 62, "63 missed since Friday 17:00: would run 1, that of Mon 2026-03-09 08:00:00 UTC"},
		{"not missed yet", func(q *dts.PreviewRequest) { q.Since = now.Add(-40 * time.Minute); q.MisfireAfterSeconds = 3600 }, nil, 0, 0, "0 missed since Monday 07:50: would run none"},
		{"a year of seconds", func(q *dts.PreviewRequest) { q.Cron = "* * * * * *"; q.Since = now.AddDate(-1, 0, 0) }, nil, 1, 365*24*3600 - 61, "31535940 missed since Sun 2025-03-09 08:30: would run 1, that of Mon 2026-03-09 08:29:00 UTC"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := dts.PreviewRequest{Schedule: hourly, Since: since}
			tt.edit(&q)
			m := previewOf(t, q, now, tt.input).Missed
			if m.WouldRun != tt.run || m.WouldSkip != tt.skip || m.Text != tt.text {
				t.Errorf("%+v", m)
			}
		})
	}
}

func TestPreviewRefuses(t *testing.T) {
	now := time.Date(2026, 3, 9, 8, 30, 0, 0, time.UTC)
	for _, tt := range []struct {
		q     dts.PreviewRequest
		field string
	}{
		{dts.PreviewRequest{Schedule: dts.Schedule{Cron: "0 * * * *"}, Count: 101}, "count"},
		{dts.PreviewRequest{Schedule: dts.Schedule{Cron: "0 * * * *"}, Count: -1}, "count"},
		{dts.PreviewRequest{Schedule: dts.Schedule{Cron: "0 * * * *"}, Since: now.Add(time.Hour)}, "since"},
		{dts.PreviewRequest{Schedule: dts.Schedule{Cron: "0 * * * *"}, ExpectedSeconds: -1}, "expected_seconds"},
		{dts.PreviewRequest{Schedule: dts.Schedule{Cron: "0 * * * *"}, RecurringTaskID: "x"}, "recurring_task_id"},
		{dts.PreviewRequest{}, "cron"},
		{dts.PreviewRequest{Schedule: dts.Schedule{Cron: "0 * * * *", IntervalSeconds: 5}}, "interval_seconds"},
		{dts.PreviewRequest{Schedule: dts.Schedule{Cron: "0 * * * *"}, OverlapPolicy: "NO"}, "overlap_policy"},
		{dts.PreviewRequest{Schedule: dts.Schedule{Cron: "61 * * * *"}}, "cron"},
		{dts.PreviewRequest{Schedule: dts.Schedule{Cron: "0 * * * *", TimeZone: "Europe/Berln"}}, "time_zone"},
		{dts.PreviewRequest{Schedule: dts.Schedule{Cron: "0 * * * *", ExcludeCalendars: []string{"none"}}}, "exclude_calendars[0]"},
	} {
		err := checkPreview(&tt.q, now)
		if err == nil {
			var r *dts.RecurringTask
			if r, err = unsaved(&tt.q, dts.DefaultTenant, now); err == nil {
				_, err = Compile(r, nil)
			}
		}
		e, ok := errors.AsType[*dts.Error](err)
		if !ok || e.Code != dts.ErrInvalid || len(e.Fields) != 1 || e.Fields[0].Field != tt.field {
			t.Errorf("%+v: %v", tt.q, err)
		}
	}
	if err := checkPreview(&dts.PreviewRequest{RecurringTaskID: "x", Count: 7, From: now, Since: now.Add(-1)}, now); err != nil {
		t.Error(err)
	}
}
