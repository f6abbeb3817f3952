package cron

import (
	"strings"
	"testing"
	"time"
)

// Every row was worked out by hand from a calendar and the zone's published rules. A want is the
// list of instants after start, in local time with offset; "-" ends the list when nothing follows.
var nextRows = []struct {
	zone, expr, start, want string
}{
	// Plain fields. 2026-03-01 is a Sunday.
	{"UTC", "* * * * *", "2026-03-01T00:00:00Z", "2026-03-01T00:01:00Z 2026-03-01T00:02:00Z"},
	{"UTC", "* * * * *", "2026-03-01T00:00:59.999999999Z", "2026-03-01T00:01:00Z"},
	{"UTC", "*/5 * * * *", "2026-03-01T00:04:59Z", "2026-03-01T00:05:00Z 2026-03-01T00:10:00Z"},
	{"UTC", "*/5 * * * *", "2026-12-31T23:55:00Z", "2027-01-01T00:00:00Z"},
	{"UTC", "18 */3 * * *", "2026-03-01T00:18:00Z", "2026-03-01T03:18:00Z 2026-03-01T06:18:00Z"},
	{"UTC", "30 7-23 * * *", "2026-03-01T23:30:00Z", "2026-03-02T07:30:00Z"},
	{"UTC", "0 */12 * * *", "2026-03-01T00:00:00Z", "2026-03-01T12:00:00Z 2026-03-02T00:00:00Z"},
	{"UTC", "09,39 * * * *", "2026-03-01T00:09:00Z", "2026-03-01T00:39:00Z 2026-03-01T01:09:00Z"},
	{"UTC", "5-55/10 * * * *", "2026-03-01T00:55:00Z", "2026-03-01T01:05:00Z 2026-03-01T01:15:00Z"},
	{"UTC", "5/20 * * * *", "2026-03-01T00:00:00Z", "2026-03-01T00:05:00Z 2026-03-01T00:25:00Z 2026-03-01T00:45:00Z 2026-03-01T01:05:00Z"},
	{"UTC", "52 6 1 * *", "2026-03-01T06:52:00Z", "2026-04-01T06:52:00Z"},
	{"UTC", "0 9 * * mon-fri", "2026-03-06T09:00:00Z", "2026-03-09T09:00:00Z"},
	{"UTC", "0 9 * JAN,jul Mon", "2026-03-01T00:00:00Z", "2026-07-06T09:00:00Z 2026-07-13T09:00:00Z"},
	{"UTC", "0 0 * * 5-7", "2026-03-05T00:00:00Z", "2026-03-06T00:00:00Z 2026-03-07T00:00:00Z 2026-03-08T00:00:00Z 2026-03-13T00:00:00Z"},
	{"UTC", "47 6 * * 7", "2026-03-01T07:00:00Z", "2026-03-08T06:47:00Z"},
	{"UTC", "0 0 * * 0", "2026-03-01T00:00:00Z", "2026-03-08T00:00:00Z"},
	{"UTC", "@hourly", "2026-03-01T00:00:00Z", "2026-03-01T01:00:00Z"},
	{"UTC", "@daily", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"},
	{"UTC", "@midnight", "2026-02-28T12:00:00Z", "2026-03-01T00:00:00Z"},
	{"UTC", "@weekly", "2026-03-01T00:00:00Z", "2026-03-08T00:00:00Z"},
	{"UTC", "@monthly", "2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z"},
	{"UTC", "@yearly", "2026-03-01T00:00:00Z", "2027-01-01T00:00:00Z"},
	{"UTC", "@Annually", "2026-03-01T00:00:00Z", "2027-01-01T00:00:00Z"},
	{"UTC", "@every 90s", "2026-03-01T00:00:01Z", "2026-03-01T00:01:30Z 2026-03-01T00:03:00Z"},

	// Seconds.
	{"UTC", "* * * * * *", "2026-03-01T00:00:00.5Z", "2026-03-01T00:00:01Z 2026-03-01T00:00:02Z"},
	{"UTC", "*/15 59 23 * * *", "2026-03-01T23:59:30Z", "2026-03-01T23:59:45Z 2026-03-02T23:59:00Z"},
	{"UTC", "30 0 3 * * *", "2026-03-01T03:00:30Z", "2026-03-02T03:00:30Z"},

	// Day-of-month and day-of-week: ORed, unless one begins with `*` or is `?`.
	{"UTC", "0 0 13 * 5", "2026-03-01T00:00:00Z", "2026-03-06T00:00:00Z 2026-03-13T00:00:00Z 2026-03-20T00:00:00Z 2026-03-27T00:00:00Z 2026-04-03T00:00:00Z 2026-04-10T00:00:00Z 2026-04-13T00:00:00Z"},
	{"UTC", "0 0 */2 * 1", "2026-03-01T00:00:00Z", "2026-03-09T00:00:00Z 2026-03-23T00:00:00Z 2026-04-13T00:00:00Z"},
	{"UTC", "0 0 1-7 * */7", "2026-03-01T00:00:00Z", "2026-04-05T00:00:00Z 2026-05-03T00:00:00Z"},
	{"UTC", "0 0 ? * 1", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z 2026-03-09T00:00:00Z"},
	{"UTC", "0 0 15 * ?", "2026-03-01T00:00:00Z", "2026-03-15T00:00:00Z 2026-04-15T00:00:00Z"},
	{"UTC", "0 0 1,*/10 * 1", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z 2026-03-09T00:00:00Z 2026-03-11T00:00:00Z"},

	// L, W and #.
	{"UTC", "0 0 L * *", "2026-01-31T00:00:00Z", "2026-02-28T00:00:00Z 2026-03-31T00:00:00Z 2026-04-30T00:00:00Z"},
	{"UTC", "0 0 L 2 *", "2026-03-01T00:00:00Z", "2027-02-28T00:00:00Z 2028-02-29T00:00:00Z"},
	{"UTC", "0 0 L-3 * *", "2026-02-01T00:00:00Z", "2026-02-25T00:00:00Z 2026-03-28T00:00:00Z"},
	{"UTC", "0 0 L-30 * *", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z 2026-05-01T00:00:00Z"},
	{"UTC", "0 0 1,L * *", "2026-02-01T00:00:00Z", "2026-02-28T00:00:00Z 2026-03-01T00:00:00Z"},
	{"UTC", "0 0 15W * *", "2026-02-01T00:00:00Z", "2026-02-16T00:00:00Z 2026-03-16T00:00:00Z 2026-04-15T00:00:00Z"},
	{"UTC", "0 0 1W * *", "2026-07-15T00:00:00Z", "2026-08-03T00:00:00Z 2026-09-01T00:00:00Z"}, // 1 August is a Saturday
	{"UTC", "0 0 31W * *", "2026-02-01T00:00:00Z", "2026-03-31T00:00:00Z 2026-05-29T00:00:00Z 2026-07-31T00:00:00Z"},
	{"UTC", "0 0 30W * *", "2026-08-01T00:00:00Z", "2026-08-31T00:00:00Z 2026-09-30T00:00:00Z"}, // 30 August is a Sunday
	{"UTC", "0 0 LW * *", "2026-02-01T00:00:00Z", "2026-02-27T00:00:00Z 2026-03-31T00:00:00Z 2026-04-30T00:00:00Z 2026-05-29T00:00:00Z"},
	{"UTC", "0 0 * * 5L", "2026-03-01T00:00:00Z", "2026-03-27T00:00:00Z 2026-04-24T00:00:00Z 2026-05-29T00:00:00Z"},
	{"UTC", "0 0 * * FRIL", "2026-03-27T00:00:00Z", "2026-04-24T00:00:00Z"},
	{"UTC", "0 0 * * 5#3", "2026-03-01T00:00:00Z", "2026-03-20T00:00:00Z 2026-04-17T00:00:00Z"},
	{"UTC", "0 0 * * sun#5", "2026-03-01T00:00:00Z", "2026-03-29T00:00:00Z 2026-05-31T00:00:00Z"},
	{"UTC", "0 0 * * 1#1,5#3", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z 2026-03-20T00:00:00Z 2026-04-06T00:00:00Z"},
	{"UTC", "0 0 10 * 5L", "2026-03-01T00:00:00Z", "2026-03-10T00:00:00Z 2026-03-27T00:00:00Z 2026-04-10T00:00:00Z"},

	// Rare dates. 29 February 2100 does not exist.
	{"UTC", "0 0 29 2 *", "2026-03-01T00:00:00Z", "2028-02-29T00:00:00Z 2032-02-29T00:00:00Z"},
	{"UTC", "0 0 29 2 *", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},
	{"UTC", "0 0 */28 2 1#5", "2026-03-01T00:00:00Z", "2044-02-29T00:00:00Z 2072-02-29T00:00:00Z 2112-02-29T00:00:00Z"},
	{"UTC", "0 0 31 1-6 *", "2026-03-31T00:00:00Z", "2026-05-31T00:00:00Z 2027-01-31T00:00:00Z"},
	{"UTC", "0 0 1 1 *", "9998-06-01T00:00:00Z", "9999-01-01T00:00:00Z -"},
	{"UTC", "0 0 1 1 *", "1968-06-01T00:00:00Z", "1969-01-01T00:00:00Z 1970-01-01T00:00:00Z"},

	// Europe/Berlin: 2026-03-29 02:00 becomes 03:00, 2026-10-25 03:00 becomes 02:00.
	{"Europe/Berlin", "30 2 * * *", "2026-03-28T00:00:00Z", "2026-03-28T02:30:00+01:00 2026-03-29T03:00:00+02:00 2026-03-30T02:30:00+02:00"},
	{"Europe/Berlin", "10,20,30 2 * * *", "2026-03-28T12:00:00Z", "2026-03-29T03:00:00+02:00 2026-03-30T02:10:00+02:00"},
	{"Europe/Berlin", "30 2,3 * * *", "2026-03-28T12:00:00Z", "2026-03-29T03:00:00+02:00 2026-03-29T03:30:00+02:00"},
	{"Europe/Berlin", "0 2,3 * * *", "2026-03-28T12:00:00Z", "2026-03-29T03:00:00+02:00 2026-03-30T02:00:00+02:00"},
	{"Europe/Berlin", "15 30 2 * * *", "2026-03-28T12:00:00Z", "2026-03-29T03:00:00+02:00 2026-03-30T02:30:15+02:00"},
	{"Europe/Berlin", "* 30 2 * * *", "2026-03-28T12:00:00Z", "2026-03-29T03:00:00+02:00 2026-03-30T02:30:00+02:00 2026-03-30T02:30:01+02:00"},
	{"Europe/Berlin", "*/20 2 * * *", "2026-03-28T12:00:00Z", "2026-03-30T02:00:00+02:00"},
	{"Europe/Berlin", "30 */2 * * *", "2026-03-29T00:00:00+01:00", "2026-03-29T00:30:00+01:00 2026-03-29T04:30:00+02:00"},
	{"Europe/Berlin", "*/30 * * * *", "2026-03-29T01:00:00+01:00", "2026-03-29T01:30:00+01:00 2026-03-29T03:00:00+02:00"},
	{"Europe/Berlin", "0 3 * * *", "2026-03-28T12:00:00Z", "2026-03-29T03:00:00+02:00 2026-03-30T03:00:00+02:00"},
	{"Europe/Berlin", "30 2 * * *", "2026-10-24T12:00:00Z", "2026-10-25T02:30:00+02:00 2026-10-26T02:30:00+01:00"},
	{"Europe/Berlin", "30 2 * * *", "2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"},
	{"Europe/Berlin", "30 2 * * *", "2026-10-25T02:00:00+01:00", "2026-10-26T02:30:00+01:00"},
	{"Europe/Berlin", "0 3 * * *", "2026-10-24T12:00:00Z", "2026-10-25T03:00:00+01:00"},
	{"Europe/Berlin", "*/30 2 * * *", "2026-10-24T12:00:00Z", "2026-10-25T02:00:00+02:00 2026-10-25T02:30:00+02:00 2026-10-25T02:00:00+01:00 2026-10-25T02:30:00+01:00 2026-10-26T02:00:00+01:00"},
	{"Europe/Berlin", "30 * * * *", "2026-10-25T01:30:00+02:00", "2026-10-25T02:30:00+02:00 2026-10-25T02:30:00+01:00 2026-10-25T03:30:00+01:00"},
	{"Europe/Berlin", "30 */2 * * *", "2026-10-25T01:00:00+02:00", "2026-10-25T02:30:00+02:00 2026-10-25T02:30:00+01:00 2026-10-25T04:30:00+01:00"},
	{"Europe/Berlin", "0,30 59 2 * * *", "2026-10-24T12:00:00Z", "2026-10-25T02:59:00+02:00 2026-10-25T02:59:30+02:00 2026-10-26T02:59:00+01:00"},

	// America/New_York: 2026-03-08 02:00 becomes 03:00, 2026-11-01 02:00 becomes 01:00.
	{"America/New_York", "30 2 * * *", "2026-03-07T12:00:00Z", "2026-03-08T03:00:00-04:00 2026-03-09T02:30:00-04:00"},
	{"America/New_York", "30 1 * * *", "2026-10-31T12:00:00Z", "2026-11-01T01:30:00-04:00 2026-11-02T01:30:00-05:00"},
	{"America/New_York", "0 0 * * *", "2026-10-31T12:00:00Z", "2026-11-01T00:00:00-04:00 2026-11-02T00:00:00-05:00"},
	{"UTC", "CRON_TZ=America/New_York 30 2 * * *", "2026-03-07T12:00:00Z", "2026-03-08T03:00:00-04:00"},
	{"UTC", "TZ=America/New_York @daily", "2026-03-07T12:00:00Z", "2026-03-08T00:00:00-05:00"},

	// Lord Howe moves by half an hour: 2026-04-05 02:00 becomes 01:30, 2026-10-04 02:00 becomes 02:30.
	{"Australia/Lord_Howe", "15 2 * * *", "2026-10-03T00:00:00Z", "2026-10-04T02:30:00+11:00 2026-10-05T02:15:00+11:00"},
	{"Australia/Lord_Howe", "45 1 * * *", "2026-04-04T00:00:00Z", "2026-04-05T01:45:00+11:00 2026-04-06T01:45:00+10:30"},
	{"Australia/Lord_Howe", "15 1 * * *", "2026-04-04T00:00:00Z", "2026-04-05T01:15:00+11:00 2026-04-06T01:15:00+10:30"},
	{"Australia/Lord_Howe", "*/15 * * * *", "2026-04-05T01:30:00+11:00", "2026-04-05T01:45:00+11:00 2026-04-05T01:30:00+10:30 2026-04-05T01:45:00+10:30 2026-04-05T02:00:00+10:30"},

	// Santiago and Cairo lose and repeat midnight.
	{"America/Santiago", "0 0 * * *", "2026-09-05T12:00:00Z", "2026-09-06T01:00:00-03:00 2026-09-07T00:00:00-03:00"},
	{"America/Santiago", "30 23 * * *", "2026-04-04T12:00:00Z", "2026-04-04T23:30:00-03:00 2026-04-05T23:30:00-04:00"},
	{"America/Santiago", "@daily", "2026-04-04T12:00:00Z", "2026-04-05T00:00:00-04:00 2026-04-06T00:00:00-04:00"},
	{"Africa/Cairo", "30 0 * * 5", "2026-04-23T12:00:00Z", "2026-04-24T01:00:00+03:00 2026-05-01T00:30:00+03:00"},
	{"Africa/Cairo", "0 23 * * *", "2026-10-29T12:00:00Z", "2026-10-29T23:00:00+03:00 2026-10-30T23:00:00+02:00"},

	// Dublin calls winter the daylight-saving time; the clock moves as in London.
	{"Europe/Dublin", "30 1 * * *", "2026-03-28T12:00:00Z", "2026-03-29T02:00:00+01:00 2026-03-30T01:30:00+01:00"},
	{"Europe/Dublin", "30 1 * * *", "2026-10-24T12:00:00Z", "2026-10-25T01:30:00+01:00 2026-10-26T01:30:00Z"},

	// Changes of a zone without daylight saving: Pyongyang put its clock forward half an hour at
	// 23:30 on 2018-05-04; Caracas at 02:30 on 2016-05-01.
	{"Asia/Pyongyang", "45 23 * * *", "2018-05-04T00:00:00Z", "2018-05-05T00:00:00+09:00 2018-05-05T23:45:00+09:00"},
	{"America/Caracas", "45 2 * * *", "2016-04-30T12:00:00Z", "2016-05-01T03:00:00-04:00 2016-05-02T02:45:00-04:00"},

	// Corrections of 3 hours or more: Samoa left out 2011-12-30; Casey went from 03:00 to 00:00
	// on 2020-03-08.
	{"Pacific/Apia", "0 3 * * *", "2011-12-29T12:00:00-10:00", "2011-12-31T03:00:00+14:00"},
	{"Antarctica/Casey", "30 1 * * *", "2020-03-07T12:00:00+11:00", "2020-03-08T01:30:00+11:00 2020-03-08T01:30:00+08:00 2020-03-09T01:30:00+08:00"},
}

func TestNext(t *testing.T) {
	for _, tt := range nextRows {
		checkNext(t, tt.zone, tt.expr, tt.start, tt.want, Options{})
	}
}

func TestNextPolicies(t *testing.T) {
	const gap, overlap = "2026-03-28T12:00:00Z", "2026-10-24T12:00:00Z"
	for _, tt := range []struct {
		gap               GapPolicy
		overlap           OverlapPolicy
		expr, start, want string
	}{
		{GapSkip, "", "30 2 * * *", gap, "2026-03-30T02:30:00+02:00"},
		{GapSkip, "", "0 2,3 * * *", gap, "2026-03-29T03:00:00+02:00 2026-03-30T02:00:00+02:00"},
		{GapRunAfter, "", "30 2 * * *", gap, "2026-03-29T03:00:00+02:00"},
		{GapRunAfter, "", "*/30 2 * * *", gap, "2026-03-30T02:00:00+02:00"},
		{"", OverlapFirst, "30 2 * * *", overlap, "2026-10-25T02:30:00+02:00 2026-10-26T02:30:00+01:00"},
		{"", OverlapSecond, "30 2 * * *", overlap, "2026-10-25T02:30:00+01:00 2026-10-26T02:30:00+01:00"},
		{"", OverlapBoth, "30 2 * * *", overlap, "2026-10-25T02:30:00+02:00 2026-10-25T02:30:00+01:00 2026-10-26T02:30:00+01:00"},
		{"", OverlapFirst, "*/30 * * * *", "2026-10-25T02:00:00+02:00", "2026-10-25T02:30:00+02:00 2026-10-25T03:00:00+01:00"},
		{"", OverlapSecond, "*/30 * * * *", "2026-10-25T01:30:00+02:00", "2026-10-25T02:00:00+01:00 2026-10-25T02:30:00+01:00 2026-10-25T03:00:00+01:00"},
		{"", OverlapBoth, "*/30 2 * * *", overlap, "2026-10-25T02:00:00+02:00 2026-10-25T02:30:00+02:00 2026-10-25T02:00:00+01:00 2026-10-25T02:30:00+01:00"},
		{GapSkip, "", "30 2 * 3 7L", gap, "-"}, // only ever in the gap
	} {
		checkNext(t, "Europe/Berlin", tt.expr, tt.start, tt.want, Options{Gap: tt.gap, Overlap: tt.overlap})
	}
	for _, o := range []Options{{Gap: "LATER"}, {Overlap: "NEVER"}} {
		if _, err := Parse("* * * * *", o); err == nil {
			t.Errorf("Parse with %+v: no error", o)
		}
	}
}

// checkNext also walks back with Prev, and counts.
func checkNext(t *testing.T, zone, expr, start, want string, o Options) {
	t.Helper()
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	o.Location = loc
	s, err := Parse(expr, o)
	if err != nil {
		t.Errorf("Parse(%q): %v", expr, err)
		return
	}
	from, err := time.Parse(time.RFC3339Nano, start)
	if err != nil {
		t.Fatal(err)
	}
	at, previous := from, time.Time{}
	for i, w := range strings.Fields(want) {
		next := s.Next(at)
		got := "-"
		if !next.IsZero() {
			got = next.Format(time.RFC3339Nano)
		}
		if got != w {
			t.Errorf("%s %q after %s, instant %d: got %s, want %s", zone, expr, start, i+1, got, w)
			return
		}
		if next.IsZero() {
			return
		}
		if !previous.IsZero() {
			if got := s.Prev(next.Add(-1)); !got.Equal(previous) {
				t.Errorf("%s %q: Prev before %s = %s, want %s", zone, expr, next, got, previous)
			}
		}
		if got := s.Count(from, next); got != int64(i+1) {
			t.Errorf("%s %q: Count(%s, %s) = %d, want %d", zone, expr, start, w, got, i+1)
		}
		at, previous = next, next
	}
}

func TestYearBounds(t *testing.T) {
	s, err := Parse("* * * * * *", Options{})
	if err != nil {
		t.Fatal(err)
	}
	far := []time.Time{
		{}, time.Unix(-1<<60, 0), time.Unix(1<<60, 0), time.Unix(1<<62, 999),
		time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	for _, at := range far {
		for _, s := range []Schedule{s, Every(time.Minute, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))} {
			if n := s.Next(at); !n.IsZero() && (!n.After(at) || n.Year() > 9999) {
				t.Errorf("Next(%v) = %v", at, n)
			}
			if p := s.Prev(at); !p.IsZero() && (p.After(at) || p.Year() > 9999) {
				t.Errorf("Prev(%v) = %v", at, p)
			}
		}
	}
	const all = maxUnix - minUnix + 1
	if n := s.Count(time.Unix(minUnix-1, 0), time.Unix(1<<60, 0)); n != all {
		t.Errorf("Count of every second there is = %d, want %d", n, int64(all))
	}
}

func TestCountIsFast(t *testing.T) {
	loc, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse("* * * * * *", Options{Location: loc})
	if err != nil {
		t.Fatal(err)
	}
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, loc)
	began := time.Now()
	n := s.Count(from, from.AddDate(1, 0, 0))
	if took := time.Since(began); took > slower*50*time.Millisecond {
		t.Errorf("counting a year of seconds took %v", took)
	}
	if n != 365*86400 {
		t.Errorf("a year has %d seconds, want %d", n, 365*86400)
	}
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		if _, err := Parse("*/5 9-17 * jan-jun mon-fri", Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	loc, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		b.Fatal(err)
	}
	for _, bb := range []struct{ name, expr string }{
		{"minutes", "*/5 * * * *"}, {"daily", "30 2 * * *"}, {"leap", "0 0 */28 2 1#5"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			s, err := Parse(bb.expr, Options{Location: loc})
			if err != nil {
				b.Fatal(err)
			}
			at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
			for b.Loop() {
				s.Next(at)
			}
		})
	}
}

func BenchmarkCountYearOfSeconds(b *testing.B) {
	s, err := Parse("* * * * * *", Options{})
	if err != nil {
		b.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for b.Loop() {
		s.Count(at, at.AddDate(1, 0, 0))
	}
}
