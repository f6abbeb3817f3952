package timetable

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"dts"
	"dts/sched/calendar"
	"dts/sched/cron"
)

func compile(t testing.TB, s dts.Schedule, defs ...dts.Calendar) *Table {
	t.Helper()
	known := map[string]*calendar.Calendar{}
	for _, def := range defs {
		c, err := calendar.Compile(&def)
		if err != nil {
			t.Fatal(err)
		}
		known[def.Name] = c
	}
	table, err := Compile(&s, Options{Calendars: known, Anchor: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func instant(t testing.TB, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// tell writes what runs in (from, to], and what does not and why, one a line.
func tell(table *Table, from, to time.Time) string {
	const form = "Mon 2006-01-02 15:04"
	var b strings.Builder
	for x := table.Next(from); !x.IsZero() && !x.After(to); x = table.Next(x) {
		fmt.Fprintf(&b, "run %s\n", x.Format(form))
	}
	for _, e := range table.Excluded(from, to, 100) {
		fmt.Fprintf(&b, "not %s", e.From.Format(form))
		if e.Count > 1 {
			fmt.Fprintf(&b, " to %s, %d", e.To.Format(form), e.Count)
		}
		fmt.Fprintf(&b, ": %s", strings.TrimSpace(e.Calendar+" "+e.Name))
		if !e.MovedTo.IsZero() {
			fmt.Fprintf(&b, ", moved to %s", e.MovedTo.Format(form))
		}
		if !e.CoveredBy.IsZero() {
			fmt.Fprintf(&b, ", as there is %s", e.CoveredBy.Format(form))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestBusinessDays(t *testing.T) {
	holidays := dts.Calendar{Name: "de", Holidays: &dts.Holidays{Country: "de"}}
	weekends := dts.Calendar{Name: "free", Weekdays: []string{"SAT", "SUN"}}
	office := dts.Calendar{Name: "office", Windows: []dts.Window{{Cron: "0 9 * * MON-FRI", DurationSeconds: 8 * 3600}}}
	israel := dts.Calendar{Name: "il", Weekdays: []string{"FRI", "SAT"}, Weekend: []string{"FRI", "SAT"}}
	for _, c := range []struct {
		name     string
		s        dts.Schedule
		from, to string
		want     string
	}{
		{
			"Christmas on a Friday, then a weekend with another holiday",
			dts.Schedule{Cron: "0 9 25 12 *", TimeZone: "Europe/Berlin", ExcludeCalendars: []string{"de"}, CalendarShift: dts.ShiftNext},
			"2026-12-01T00:00:00Z", "2027-01-10T00:00:00Z",
			"run Mon 2026-12-28 09:00\nnot Fri 2026-12-25 09:00: de Weihnachtstag, moved to Mon 2026-12-28 09:00\n",
		},
		{
			"month end on a weekend, before",
			dts.Schedule{Cron: "0 18 L * *", ExcludeCalendars: []string{"free"}, CalendarShift: dts.ShiftPrevious},
			"2026-01-01T00:00:00Z", "2026-06-01T00:00:00Z",
			"run Fri 2026-01-30 18:00\nrun Fri 2026-02-27 18:00\nrun Tue 2026-03-31 18:00\nrun Thu 2026-04-30 18:00\nrun Fri 2026-05-29 18:00\n" +
				"not Sat 2026-01-31 18:00: free weekends, moved to Fri 2026-01-30 18:00\nnot Sat 2026-02-28 18:00: free weekends, moved to Fri 2026-02-27 18:00\n" +
				"not Sun 2026-05-31 18:00: free weekends, moved to Fri 2026-05-29 18:00\n",
		},
		{
			"two in a row land once",
			dts.Schedule{Cron: "0 9 * * SAT,SUN", ExcludeCalendars: []string{"free"}, CalendarShift: dts.ShiftNext},
			"2026-05-01T00:00:00Z", "2026-05-10T00:00:00Z",
			"run Mon 2026-05-04 09:00\nnot Sat 2026-05-02 09:00: free weekends, moved to Mon 2026-05-04 09:00\n" +
				"not Sun 2026-05-03 09:00: free weekends, as there is Mon 2026-05-04 09:00\nnot Sat 2026-05-09 09:00: free weekends, moved to Mon 2026-05-11 09:00\n",
		},
		{
			"a daily schedule never doubles",
			dts.Schedule{Cron: "0 9 * * *", ExcludeCalendars: []string{"free"}, CalendarShift: dts.ShiftNext},
			"2026-05-01T00:00:00Z", "2026-05-05T00:00:00Z",
			"run Fri 2026-05-01 09:00\nrun Mon 2026-05-04 09:00\nnot Sat 2026-05-02 09:00: free weekends, as there is Mon 2026-05-04 09:00\n" +
				"not Sun 2026-05-03 09:00: free weekends, as there is Mon 2026-05-04 09:00\n",
		},
		{
			"without a shift, a weekend is one entry",
			dts.Schedule{Cron: "0 9 * * *", ExcludeCalendars: []string{"free"}},
			"2026-05-01T00:00:00Z", "2026-05-05T00:00:00Z",
			"run Fri 2026-05-01 09:00\nrun Mon 2026-05-04 09:00\nnot Sat 2026-05-02 09:00 to Sun 2026-05-03 09:00, 2: free weekends\n",
		},
		{
			"two reasons are two entries",
			dts.Schedule{Cron: "0 9 * * *", ExcludeCalendars: []string{"de", "free"}},
			"2026-12-24T12:00:00Z", "2026-12-28T12:00:00Z",
			"run Mon 2026-12-28 09:00\nnot Fri 2026-12-25 09:00: de Weihnachtstag\nnot Sat 2026-12-26 09:00: de Zweiter Weihnachtsfeiertag\nnot Sun 2026-12-27 09:00: free weekends\n",
		},
		{
			"only in office hours",
			dts.Schedule{Cron: "30 */4 * * *", RequireCalendars: []string{"office"}, ExcludeCalendars: []string{"de"}},
			"2026-04-30T14:00:00Z", "2026-05-04T14:00:00Z",
			"run Thu 2026-04-30 16:30\nrun Mon 2026-05-04 12:30\n",
		},
		{
			"hours that are never open are not moved",
			dts.Schedule{Cron: "0 3 * * MON", RequireCalendars: []string{"office"}, CalendarShift: dts.ShiftNext},
			"2026-05-01T00:00:00Z", "2026-05-12T00:00:00Z",
			"not Mon 2026-05-04 03:00 to Mon 2026-05-11 03:00, 2: office outside\n",
		},
		{
			"the weekend is the calendar's",
			dts.Schedule{Cron: "0 9 1 5 *", ExcludeCalendars: []string{"il"}, CalendarShift: dts.ShiftNext},
			"2026-04-01T00:00:00Z", "2026-06-01T00:00:00Z",
			"run Sun 2026-05-03 09:00\nnot Fri 2026-05-01 09:00: il Fridays, Saturdays, moved to Sun 2026-05-03 09:00\n",
		},
		{
			"not beyond end_time",
			dts.Schedule{Cron: "0 9 * * SAT", ExcludeCalendars: []string{"free"}, CalendarShift: dts.ShiftNext, EndTime: time.Date(2026, 5, 10, 0, 0, 0, 0, time.UTC)},
			"2026-05-01T00:00:00Z", "2026-06-01T00:00:00Z",
			"run Mon 2026-05-04 09:00\nnot Sat 2026-05-02 09:00: free weekends, moved to Mon 2026-05-04 09:00\nnot Sat 2026-05-09 09:00: free weekends\n",
		},
		{
			"not before start_time",
			dts.Schedule{Cron: "0 9 * * SUN", ExcludeCalendars: []string{"free"}, CalendarShift: dts.ShiftPrevious, StartTime: time.Date(2026, 5, 2, 0, 0, 0, 0, time.UTC)},
			"2026-05-01T00:00:00Z", "2026-05-12T00:00:00Z",
			"run Fri 2026-05-08 09:00\nnot Sun 2026-05-03 09:00: free weekends\nnot Sun 2026-05-10 09:00: free weekends, moved to Fri 2026-05-08 09:00\n",
		},
		{
			"the same clock time, or the end of the gap",
			dts.Schedule{Cron: "30 2 27,28 3 *", TimeZone: "Europe/Berlin", ExcludeCalendars: []string{"il"}, CalendarShift: dts.ShiftNext},
			"2026-03-01T00:00:00Z", "2026-04-10T00:00:00Z",
			"run Sun 2026-03-29 03:00\nnot Fri 2026-03-27 02:30: il Fridays, Saturdays, moved to Sun 2026-03-29 03:00\n" +
				"not Sat 2026-03-28 02:30: il Fridays, Saturdays, as there is Sun 2026-03-29 03:00\n",
		},
		{
			"a rule",
			dts.Schedule{RRule: "FREQ=MONTHLY;BYMONTHDAY=1", StartTime: time.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC), ExcludeCalendars: []string{"de", "free"}, CalendarShift: dts.ShiftNext},
			"2025-12-01T00:00:00Z", "2026-03-31T00:00:00Z",
			"run Fri 2026-01-02 08:00\nrun Mon 2026-02-02 08:00\nrun Mon 2026-03-02 08:00\nnot Thu 2026-01-01 08:00: de Neujahrstag, moved to Fri 2026-01-02 08:00\n" +
				"not Sun 2026-02-01 08:00: free weekends, moved to Mon 2026-02-02 08:00\nnot Sun 2026-03-01 08:00: free weekends, moved to Mon 2026-03-02 08:00\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := compile(t, c.s, holidays, weekends, office, israel)
			got := tell(table, instant(t, c.from), instant(t, c.to))
			if c.name == "only in office hours" {
				got = got[:strings.Index(got, "not ")] // what it leaves out is told by another case
			}
			if got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

func TestCompileErrors(t *testing.T) {
	for _, c := range []struct {
		s           dts.Schedule
		field, says string
	}{
		{dts.Schedule{Cron: "61 * * * *"}, "cron", "0-59"},
		{dts.Schedule{Cron: "@daily", TimeZone: "Europe/Berln"}, "time_zone", "Europe/Berlin"},
		{dts.Schedule{Cron: "@daily", ExcludeCalendars: []string{"x"}}, "exclude_calendars[0]", `"x" does not exist`},
		{dts.Schedule{Cron: "@daily", RequireCalendars: []string{"x"}}, "require_calendars[0]", `"x" does not exist`},
		{dts.Schedule{RRule: "FREQ=MINUTELY"}, "rrule", "too fine"},
	} {
		_, err := Compile(&c.s, Options{Anchor: time.Now()})
		var e *dts.Error
		if !errors.As(err, &e) || len(e.Fields) != 1 || e.Fields[0].Field != c.field || !strings.Contains(e.Fields[0].Message, c.says) {
			t.Errorf("%+v: %v, want %s: %s", c.s, err, c.field, c.says)
		}
	}
	if _, err := Compile(&dts.Schedule{Cron: "@reboot"}, Options{}); !errors.Is(err, cron.ErrReboot) {
		t.Errorf("@reboot: %v", err)
	}
}

func TestDescribe(t *testing.T) {
	free := dts.Calendar{Name: "free", Weekdays: []string{"SAT"}}
	office := dts.Calendar{Name: "office", Weekdays: []string{"MON"}}
	for want, s := range map[string]dts.Schedule{
		"At 09:00 every day": {Cron: "0 9 * * *"},
		"Every 3 hours":      {IntervalSeconds: 3 * 3600},
		"At 09:00 every day, not in free; then on the next business day":                   {Cron: "0 9 * * *", ExcludeCalendars: []string{"free"}, CalendarShift: dts.ShiftNext},
		"At 09:00 every day, only in office, not in free; then on the business day before": {Cron: "0 9 * * *", ExcludeCalendars: []string{"free"}, RequireCalendars: []string{"office"}, CalendarShift: dts.ShiftPrevious},
	} {
		if got := compile(t, s, free, office).Describe(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestLocation(t *testing.T) {
	for want, s := range map[string]dts.Schedule{
		"Europe/Berlin":    {Cron: "0 9 * * *", TimeZone: "Europe/Berlin"},
		"America/New_York": {Cron: "CRON_TZ=America/New_York 0 9 * * *", TimeZone: "Europe/Berlin"},
		"Asia/Tokyo":       {IntervalSeconds: 60, TimeZone: "Asia/Tokyo"},
		"UTC":              {Cron: "@every 90s"},
	} {
		if got := compile(t, s).Location().String(); got != want {
			t.Errorf("%+v: %s, want %s", s, got, want)
		}
	}
}

// A year of seconds costs by the window, and a schedule that never runs is told so soon.
func TestCost(t *testing.T) {
	free := dts.Calendar{Name: "free", Weekdays: []string{"SAT", "SUN"}, Holidays: &dts.Holidays{Country: "de", Region: "by"}}
	always := dts.Calendar{Name: "always", Weekdays: strings.Fields("SUN MON TUE WED THU FRI SAT")}
	hourly := dts.Calendar{Name: "hourly", Windows: []dts.Window{{Cron: "30 * * * *", DurationSeconds: 60}}}
	office := dts.Calendar{Name: "office", Windows: []dts.Window{{Cron: "0 9 * * MON-FRI", DurationSeconds: 8 * 3600}}}
	from, to := instant(t, "2026-01-01T00:00:00Z"), instant(t, "2027-01-01T00:00:00Z")
	for _, c := range []struct {
		name  string
		s     dts.Schedule
		limit time.Duration
		do    func(*Table)
	}{
		{"count a year of seconds", dts.Schedule{Cron: "* * * * * *", ExcludeCalendars: []string{"free"}}, 50 * time.Millisecond, func(x *Table) {
			if got := x.Count(from.Add(-1), to.Add(-1)); got != (365-104-9)*86400 { // nine holidays are not on a weekend
				t.Errorf("%d seconds, %d days", got, got/86400)
			}
		}},
		{"exclude a year of seconds", dts.Schedule{Cron: "* * * * * *", ExcludeCalendars: []string{"free"}}, 50 * time.Millisecond, func(x *Table) {
			if n := len(x.Excluded(from, to, 1000)); n < 60 || n > 80 {
				t.Errorf("%d entries", n)
			}
		}},
		{"never", dts.Schedule{Cron: "* * * * * *", ExcludeCalendars: []string{"always"}}, 50 * time.Millisecond, func(x *Table) {
			if got := x.Next(from); !got.IsZero() {
				t.Error(got)
			}
			if got := x.Prev(from); !got.IsZero() {
				t.Error(got)
			}
		}},
		{"never, with a shift", dts.Schedule{Cron: "*/15 * * * *", ExcludeCalendars: []string{"always"}, CalendarShift: dts.ShiftNext}, 50 * time.Millisecond, func(x *Table) {
			if got := x.Next(from); !got.IsZero() {
				t.Error(got)
			}
		}},
		{"never, by the hour", dts.Schedule{Cron: "30 * * * *", ExcludeCalendars: []string{"hourly"}}, 400 * time.Millisecond, func(x *Table) {
			if got := x.Next(from); !got.IsZero() {
				t.Error(got)
			}
		}},
		{"daily with a shift", dts.Schedule{Cron: "0 9 * * *", ExcludeCalendars: []string{"free"}, CalendarShift: dts.ShiftPrevious}, 50 * time.Millisecond, func(x *Table) { x.Next(from) }},
		{"as often as is moved", dts.Schedule{Cron: "*/15 * * * *", RequireCalendars: []string{"office"}, CalendarShift: dts.ShiftNext}, 1500 * time.Millisecond, func(x *Table) { x.Next(from) }},
	} {
		table := compile(t, c.s, free, always, hourly, office)
		begin := time.Now()
		c.do(table)
		first := time.Since(begin)
		begin = time.Now()
		c.do(table)
		t.Logf("%s: %v, then %v", c.name, first, time.Since(begin))
		if first > 4*c.limit { // a machine that is busy
			t.Errorf("%s took %v", c.name, first)
		}
	}
}

func TestConcurrent(t *testing.T) {
	free := dts.Calendar{Name: "free", Weekdays: []string{"SAT", "SUN"}}
	table := compile(t, dts.Schedule{Cron: "0 9 * * SAT", ExcludeCalendars: []string{"free"}, CalendarShift: dts.ShiftNext}, free)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for year := range 80 {
				x := table.Next(time.Date(2000+(year+i)%80, 5, 1, 0, 0, 0, 0, time.UTC))
				if x.Weekday() != time.Monday {
					t.Errorf("%v", x)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkNextPlain(b *testing.B) {
	table := compile(b, dts.Schedule{Cron: "0 9 * * *", TimeZone: "Europe/Berlin"})
	from := instant(b, "2026-01-01T00:00:00Z")
	b.Run("table", func(b *testing.B) {
		for b.Loop() {
			table.Next(from)
		}
	})
	b.Run("base", func(b *testing.B) {
		for b.Loop() {
			table.base.Next(from)
		}
	})
}
