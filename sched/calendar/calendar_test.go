package calendar

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"dts"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func mustCompile(t testing.TB, def dts.Calendar) *Calendar {
	t.Helper()
	c, err := Compile(&def)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func instant(t testing.TB, s string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// show writes windows one a line, as the clock in loc shows them.
func show(list []Window, loc *time.Location) string {
	var b strings.Builder
	for _, w := range list {
		fmt.Fprintf(&b, "%s  %s  %s\n", w.From.In(loc).Format("Mon 2006-01-02 15:04 -0700"), w.To.In(loc).Format("Mon 2006-01-02 15:04 -0700"), w.Name)
	}
	return b.String()
}

func TestWindows(t *testing.T) {
	for _, c := range []struct {
		name, zone, from, to string
		def                  dts.Calendar
		want                 string
	}{
		{
			name: "a day is a day of the zone that asks", zone: "America/New_York", from: "2026-12-01T00:00:00Z", to: "2027-01-01T00:00:00Z",
			def:  dts.Calendar{TimeZone: "Asia/Tokyo", Days: []string{"2026-12-25"}},
			want: "Fri 2026-12-25 00:00 -0500  Sat 2026-12-26 00:00 -0500  2026-12-25\n",
		},
		{
			name: "days that touch are one window", zone: "UTC", from: "2026-12-01T00:00:00Z", to: "2027-02-01T00:00:00Z",
			def:  dts.Calendar{Days: []string{"2026-12-26", "12-25", "2026-12-31/2027-01-02"}},
			want: "Fri 2026-12-25 00:00 +0000  Sun 2026-12-27 00:00 +0000  12-25, 2026-12-26\nThu 2026-12-31 00:00 +0000  Sun 2027-01-03 00:00 +0000  2026-12-31/2027-01-02\n",
		},
		{
			name: "29 February comes in leap years", zone: "UTC", from: "2026-01-01T00:00:00Z", to: "2033-01-01T00:00:00Z",
			def:  dts.Calendar{Days: []string{"02-29"}},
			want: "Tue 2028-02-29 00:00 +0000  Wed 2028-03-01 00:00 +0000  02-29\nSun 2032-02-29 00:00 +0000  Mon 2032-03-01 00:00 +0000  02-29\n",
		},
		{
			name: "a range of every year goes over the turn of the year", zone: "Europe/Berlin", from: "2026-01-01T00:00:00Z", to: "2027-01-01T00:00:00Z",
			def:  dts.Calendar{Days: []string{"12-24/01-02"}},
			want: "Thu 2026-01-01 01:00 +0100  Sat 2026-01-03 00:00 +0100  12-24/01-02\nThu 2026-12-24 00:00 +0100  Fri 2027-01-01 01:00 +0100  12-24/01-02\n",
		},
		{
			name: "weekends", zone: "Europe/Berlin", from: "2026-03-23T00:00:00Z", to: "2026-04-05T12:00:00Z",
			def:  dts.Calendar{Weekdays: []string{"sat", "SUN"}},
			want: "Sat 2026-03-28 00:00 +0100  Mon 2026-03-30 00:00 +0200  weekends\nSat 2026-04-04 00:00 +0200  Sun 2026-04-05 14:00 +0200  weekends\n",
		},
		{
			name: "every weekday is all of the time", zone: "Europe/Berlin", from: "2025-12-30T00:00:00Z", to: "2027-01-05T12:00:00Z",
			def:  dts.Calendar{Weekdays: []string{"MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"}},
			want: "Tue 2025-12-30 01:00 +0100  Tue 2027-01-05 13:00 +0100  every day\n",
		},
		{
			name: "a day begins after a gap at midnight", zone: "America/Santiago", from: "2026-09-01T00:00:00Z", to: "2026-10-01T00:00:00Z",
			def:  dts.Calendar{Days: []string{"2026-09-05", "2026-09-06"}},
			want: "Sat 2026-09-05 00:00 -0400  Mon 2026-09-07 00:00 -0300  2026-09-05, 2026-09-06\n",
		},
		{
			name: "a day that a zone left out is nothing", zone: "Pacific/Apia", from: "2011-12-01T00:00:00Z", to: "2012-02-01T00:00:00Z",
			def:  dts.Calendar{Days: []string{"2011-12-30"}},
			want: "",
		},
		{
			name: "windows by cron are of the calendar's zone", zone: "UTC", from: "2026-03-28T00:00:00Z", to: "2026-03-30T12:00:00Z",
			def:  dts.Calendar{TimeZone: "Europe/Berlin", Windows: []dts.Window{{Cron: "0 9 * * *", DurationSeconds: 8 * 3600}}},
			want: "Sat 2026-03-28 08:00 +0000  Sat 2026-03-28 16:00 +0000  0 9 * * *\nSun 2026-03-29 07:00 +0000  Sun 2026-03-29 15:00 +0000  0 9 * * *\nMon 2026-03-30 07:00 +0000  Mon 2026-03-30 12:00 +0000  0 9 * * *\n",
		},
		{
			name: "a window that has begun before, over the turn of the year", zone: "UTC", from: "2026-12-31T23:30:00Z", to: "2027-01-01T12:00:00Z",
			def:  dts.Calendar{Windows: []dts.Window{{Cron: "0 22 31 12 *", DurationSeconds: 4 * 3600}}},
			want: "Thu 2026-12-31 23:30 +0000  Fri 2027-01-01 02:00 +0000  0 22 31 12 *\n",
		},
		{
			name: "what is named by hand counts before weekdays", zone: "UTC", from: "2026-12-24T00:00:00Z", to: "2026-12-29T00:00:00Z",
			def:  dts.Calendar{Weekdays: []string{"SAT", "SUN"}, Holidays: &dts.Holidays{Country: "DE"}},
			want: "Fri 2026-12-25 00:00 +0000  Mon 2026-12-28 00:00 +0000  Weihnachtstag, Zweiter Weihnachtsfeiertag, weekends\n",
		},
		{
			name: "a holiday on a Saturday is off on Friday too", zone: "America/New_York", from: "2026-06-25T00:00:00Z", to: "2026-07-10T00:00:00Z",
			def:  dts.Calendar{Holidays: &dts.Holidays{Country: "us"}},
			want: "Fri 2026-07-03 00:00 -0400  Sun 2026-07-05 00:00 -0400  Independence Day\n",
		},
		{
			name: "the day off may be in the year before", zone: "UTC", from: "2021-12-30T00:00:00Z", to: "2022-01-05T00:00:00Z",
			def:  dts.Calendar{Holidays: &dts.Holidays{Country: "us"}},
			want: "Fri 2021-12-31 00:00 +0000  Sun 2022-01-02 00:00 +0000  New Year's Day\n",
		},
		{
			name: "a region, a day more and a day less", zone: "Europe/Berlin", from: "2026-01-02T00:00:00Z", to: "2026-04-05T00:00:00Z",
			def:  dts.Calendar{Holidays: &dts.Holidays{Country: "de", Region: "BY", Add: []string{"02-16"}, Remove: []string{"2026-04-03"}}},
			want: "Tue 2026-01-06 00:00 +0100  Wed 2026-01-07 00:00 +0100  Heilige Drei Könige\nMon 2026-02-16 00:00 +0100  Tue 2026-02-17 00:00 +0100  02-16\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			loc := zone(t, c.zone)
			got := show(mustCompile(t, c.def).Windows(instant(t, c.from), instant(t, c.to), loc), loc)
			if got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

func TestCompileErrors(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		def         dts.Calendar
		field, says string
	}{
		{dts.Calendar{Days: []string{"12-25", "01-01", "2026-02-30"}}, "days[2]", "no such day"},
		{dts.Calendar{Days: []string{"25.12.2026"}}, "days[0]", "2026-12-25"},
		{dts.Calendar{Days: []string{"2026-12-25/2026-12-24"}}, "days[0]", "write 2026-12-24/2026-12-25"},
		{dts.Calendar{Days: []string{"02-29/03-02"}}, "days[0]", "02-28 or 03-01"},
		{dts.Calendar{Days: []string{""}}, "days[0]", "must be a day"},
		{dts.Calendar{Weekdays: []string{"MON", "Dienstag"}}, "weekdays[1]", "SUN, MON, TUE"},
		{dts.Calendar{Weekend: strings.Fields(weekdayNames)}, "weekend", "no business day"},
		{dts.Calendar{TimeZone: "Europe/Berln"}, "time_zone", "Europe/Berlin"},
		{dts.Calendar{Windows: []dts.Window{{Cron: "61 * * * *", DurationSeconds: 1}}}, "windows[0].cron", "0-59"},
		{dts.Calendar{Windows: []dts.Window{{Cron: "0 * * * *"}}}, "windows[0].duration_seconds", "31 days"},
		{dts.Calendar{Windows: []dts.Window{{Cron: "@every 2h", DurationSeconds: 60}}}, "windows[0].cron", "use fields"},
		{dts.Calendar{Windows: []dts.Window{{Cron: "@reboot", DurationSeconds: 60}}}, "windows[0].cron", "use fields"},
		{dts.Calendar{Windows: []dts.Window{{Cron: "* * * * *", DurationSeconds: 60}}}, "windows[0].cron", "10000"},
		{dts.Calendar{Windows: []dts.Window{{Start: start, End: start}}}, "windows[0].end_time", "not after"},
		{dts.Calendar{Windows: []dts.Window{{Start: start}}}, "windows[0].end_time", "is missing"},
		{dts.Calendar{Windows: []dts.Window{{}}}, "windows[0].start_time", "is missing"},
		{dts.Calendar{Windows: []dts.Window{{Start: start, Cron: "@daily"}}}, "windows[0].cron", "two windows"},
		{dts.Calendar{Holidays: &dts.Holidays{Country: "xx"}}, "holidays.country", "de, dk"},
		{dts.Calendar{Holidays: &dts.Holidays{Country: "de", Region: "xx"}}, "holidays.region", "bw, by"},
		{dts.Calendar{Holidays: &dts.Holidays{Country: "fr", Region: "57"}}, "holidays.region", "national"},
		{dts.Calendar{Holidays: &dts.Holidays{Country: "au"}}, "holidays.region", "act, nsw"},
		{dts.Calendar{Holidays: &dts.Holidays{Country: "de", Add: []string{"x"}}}, "holidays.add[0]", "must be a day"},
	} {
		_, err := Compile(&c.def)
		var e *dts.Error
		if !errors.As(err, &e) || len(e.Fields) != 1 || e.Code != dts.ErrInvalid {
			t.Errorf("%+v: %v", c.def, err)
			continue
		}
		if f := e.Fields[0]; f.Field != c.field || !strings.Contains(f.Message, c.says) {
			t.Errorf("got %s: %s; want field %s, text %q", f.Field, f.Message, c.field, c.says)
		}
	}
}

// Every country's holidays can be asked for, and some fall in each year.
func TestRegions(t *testing.T) {
	for _, country := range Regions() {
		regions := country.Regions
		if !country.RegionRequired {
			regions = append(regions, "")
		}
		for _, region := range regions {
			c := mustCompile(t, dts.Calendar{Holidays: &dts.Holidays{Country: country.Code, Region: region}})
			for year := 2020; year < 2035; year++ {
				days := c.Segments(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(year+1, 1, 1, 0, 0, 0, 0, time.UTC), time.UTC)
				if len(days) < 3 || len(days) > 40 {
					t.Errorf("%s %s: %d holidays in %d", country.Code, region, len(days), year)
				}
			}
		}
	}
}

func TestBlackout(t *testing.T) {
	day := dts.Window{Start: instant(t, "2026-05-01T10:00:00Z"), End: instant(t, "2026-05-01T12:00:00Z")}
	weekly := dts.Window{Cron: "0 22 * * SAT", DurationSeconds: 6 * 3600}
	always := mustCompile(t, dts.Calendar{Weekdays: strings.Fields(weekdayNames)})
	xmas := mustCompile(t, dts.Calendar{Days: []string{"12-25"}, Weekdays: []string{"SAT", "SUN"}})
	for _, c := range []struct {
		name     string
		def      dts.Blackout
		cal      *Calendar
		t        string
		until    string // of At; empty: not in
		from, to string // of Next; empty: none
	}{
		{"before", dts.Blackout{Window: day}, nil, "2026-05-01T09:59:59Z", "", "2026-05-01T10:00:00Z", "2026-05-01T12:00:00Z"},
		{"its beginning belongs to it", dts.Blackout{Window: day}, nil, "2026-05-01T10:00:00Z", "2026-05-01T12:00:00Z", "2026-05-01T10:00:00Z", "2026-05-01T12:00:00Z"},
		{"its end does not", dts.Blackout{Window: day}, nil, "2026-05-01T12:00:00Z", "", "", ""},
		{"by cron in a zone", dts.Blackout{Window: weekly, TimeZone: "Europe/Berlin"}, nil, "2026-10-24T23:00:00Z", "2026-10-25T02:00:00Z", "2026-10-24T20:00:00Z", "2026-10-25T02:00:00Z"},
		{"days of a calendar in a zone", dts.Blackout{Calendar: "x", TimeZone: "Europe/Berlin"}, xmas, "2026-12-26T12:00:00Z", "2026-12-27T23:00:00Z", "2026-12-24T23:00:00Z", "2026-12-27T23:00:00Z"},
		{"always", dts.Blackout{Calendar: "x"}, always, "2026-12-26T12:00:00Z", "2027-12-27T12:00:00Z", "2025-12-25T12:00:00Z", "2027-12-27T12:00:00Z"},
		{"in a far year", dts.Blackout{Window: dts.Window{Cron: "0 0 29 2 *", DurationSeconds: 60}}, nil, "2096-03-01T00:00:00Z", "", "2104-02-29T00:00:00Z", "2104-02-29T00:01:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.def.Name = "b"
			b, err := CompileBlackout(&c.def, c.cal)
			if err != nil {
				t.Fatal(err)
			}
			until, in := b.At(instant(t, c.t))
			if in != (c.until != "") || in && !until.Equal(instant(t, c.until)) {
				t.Errorf("At: %v %v, want %s", until, in, c.until)
			}
			from, to, ok := b.Next(instant(t, c.t))
			if ok != (c.from != "") || ok && (!from.Equal(instant(t, c.from)) || !to.Equal(instant(t, c.to))) {
				t.Errorf("Next: %v %v %v, want %s %s", from, to, ok, c.from, c.to)
			}
		})
	}
	for field, def := range map[string]dts.Blackout{
		"start_time":       {},
		"end_time":         {Window: dts.Window{Start: day.End, End: day.Start}},
		"cron":             {Window: dts.Window{Cron: "x", DurationSeconds: 1}},
		"duration_seconds": {Window: dts.Window{Cron: "@daily", DurationSeconds: 1e9}},
		"calendar":         {Window: day, Calendar: "x"},
		"time_zone":        {Window: day, TimeZone: "Nowhere"},
	} {
		var e *dts.Error
		if _, err := CompileBlackout(&def, nil); !errors.As(err, &e) || len(e.Fields) != 1 || e.Fields[0].Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// A year of the largest calendar there is, asked for by many at once.
func TestLargest(t *testing.T) {
	var def dts.Calendar
	for i := range dts.MaxCalendarDays {
		def.Days = append(def.Days, Day(20000+2*i).String())
	}
	for i := range dts.MaxWindows - 1 {
		start := time.Date(2026, 1, 1, i, 7, 0, 0, time.UTC)
		def.Windows = append(def.Windows, dts.Window{Start: start, End: start.Add(time.Minute)})
	}
	def.Windows = append(def.Windows, dts.Window{Cron: "30 * * * *", DurationSeconds: 60})
	def.Weekdays = []string{"MON"}
	def.Holidays = &dts.Holidays{Country: "de", Region: "by"}
	c := mustCompile(t, def)
	begin := time.Now()
	n := len(c.Windows(instant(t, "2026-01-01T00:00:00Z"), instant(t, "2027-01-01T00:00:00Z"), zone(t, "Europe/Berlin")))
	if d := time.Since(begin); d > 200*time.Millisecond {
		t.Errorf("a year took %v", d)
	} else {
		t.Logf("%d windows in %v", n, d)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for year := range 30 {
				c.At(time.Date(2020+year, 5, i+1, 0, 0, 0, 0, time.UTC), time.UTC)
			}
		})
	}
	wg.Wait()
	if len(c.cache) > maxChunks || c.cached > maxCached {
		t.Errorf("%d chunks with %d windows are kept", len(c.cache), c.cached)
	}
}

func TestDayAt(t *testing.T) {
	for _, c := range []struct{ zone, day, clock, want string }{
		{"Europe/Berlin", "2026-03-29", "2h30m", "2026-03-29T01:00:00Z"},         // in the gap: its end
		{"Europe/Berlin", "2026-10-25", "2h30m", "2026-10-25T00:30:00Z"},         // twice: the first
		{"Australia/Lord_Howe", "2026-10-04", "2h10m", "2026-10-03T15:30:00Z"},   // a gap of half an hour
		{"America/Havana", "2026-11-01", "0s", "2026-11-01T04:00:00Z"},           // midnight comes twice
		{"Africa/Cairo", "2026-04-24", "0s", "2026-04-23T22:00:00Z"},             // no midnight
		{"Pacific/Kiritimati", "2026-01-01", "0s", "2025-12-31T10:00:00Z"},       // 14 hours ahead
		{"Pacific/Pago_Pago", "2026-01-01", "23h59m59s", "2026-01-02T10:59:59Z"}, // 11 behind
		{"America/New_York", "2096-12-31", "12h", "2096-12-31T17:00:00Z"},        // the last day of a leap year past the tables
	} {
		clock, err := time.ParseDuration(c.clock)
		if err != nil {
			t.Fatal(err)
		}
		d, err := parseDay(c.day)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.At(clock, zone(t, c.zone)).Format(time.RFC3339Nano); got != c.want {
			t.Errorf("%s %s in %s: %s, want %s", c.day, c.clock, c.zone, got, c.want)
		}
	}
}
