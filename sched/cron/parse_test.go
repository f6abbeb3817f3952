package cron

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct{ expr, want string }{
		{"61 * * * *", `minute field "61": must be 0-59`},
		{"60 * * * *", `minute field "60": must be 0-59`},
		{"* 24 * * *", `hour field "24": must be 0-23`},
		{"* * 0 * *", `day-of-month field "0": must be 1-31`},
		{"* * 32 * *", `day-of-month field "32": must be 1-31`},
		{"* * * 13 *", `month field "13": must be 1-12 or jan-dec`},
		{"* * * foo *", `month field "foo": must be 1-12 or jan-dec`},
		{"* * * january *", `month field "january": must be 1-12 or jan-dec; write jan`},
		{"* * * * 8", `day-of-week field "8": must be 0-7 (0 and 7 are Sunday) or sun-sat`},
		{"* * * * mon-fry", `day-of-week field "mon-fry": must be 0-7 (0 and 7 are Sunday) or sun-sat`},
		{"61 * * * * *", `second field "61": must be 0-59`},
		{"5,61 * * * *", `minute field "61": must be 0-59`},
		{"-5 * * * *", `minute field "-5": must be 0-59`},
		{"+5 * * * *", `minute field "+5": must be 0-59`},
		{"1.5 * * * *", `minute field "1.5": must be 0-59`},
		{"1, * * * *", `minute field "1,": a value is missing beside a comma`},
		{"*/0 * * * *", `minute field "*/0": the step after / must be a number from 1 to 60`},
		{"*/x * * * *", `minute field "*/x": the step after / must be a number from 1 to 60`},
		{"*/90 * * * *", `minute field "*/90": the step is longer than the field, so this would not mean every 90 minutes; write @every 90m instead of the whole expression`},
		{"* 22-4 * * *", `hour field "22-4": the range runs backwards; write 22-23,0-4`},
		{"* 23-4 * * *", `hour field "23-4": the range runs backwards; write 23,0-4`},
		{"* 22-4/2 * * *", `hour field "22-4/2": the range runs backwards; write 22,0,2,4`},
		{"* * * nov-feb *", `month field "nov-feb": the range runs backwards; write 11-12,1-2`},
		{"* * * * fri-sun", `day-of-week field "fri-sun": the range runs backwards; write 5-7`},
		{"* * * * sat-mon", `day-of-week field "sat-mon": the range runs backwards; write 6,0-1`},
		{"* * * * 7-1", `day-of-week field "7-1": the range runs backwards; write 0-1`},
		{"* * 5L * *", `day-of-month field "5L": L is the last day of the month, and L-5 is 5 days before it; the last weekday of the month, as in 5L, belongs in day-of-week`},
		{"* * * * 5W", `day-of-week field "5W": W belongs in day-of-month, as in 15W; write 1-5 for Monday to Friday`},
		{"* * * * 1-5L", `day-of-week field "1-5L": L takes one weekday, as in 5L`},
		{"0 9 * * 1-5 root backup", `expression "0 9 * * 1-5 root backup": has 7 fields; it needs 5 (minute hour day-of-month month day-of-week), or 6 with seconds first`},
		{"hourly", `expression "hourly": has 1 field; it needs 5 (minute hour day-of-month month day-of-week), or 6 with seconds first`},
		{"? * * * *", `minute field "?": ? belongs in a day field only; write *`},
		{"* * ?,1 * *", `day-of-month field "?,1": ? stands alone`},
		{"* * L-31 * *", `day-of-month field "L-31": the offset after L- must be 1-30`},
		{"* * 32W * *", `day-of-month field "32W": W needs one day before it, as in 15W`},
		{"* * 1-5W * *", `day-of-month field "1-5W": W needs one day before it, as in 15W`},
		{"* * * * 5#6", `day-of-week field "5#6": the number after # must be 1-5`},
		{"* * * * L", `day-of-week field "L": L needs a weekday before it; write 6 for Saturday, or 5L for the last Friday of the month`},
		{"H(5) * * * *", `minute field "H(5)": H takes a range, as in H(0-59)`},
		{"30~10 * * * *", `minute field "30~10": the range runs backwards`},
		{"0 0 30 2 *", `day-of-month field "30": no such day ever comes in month "2" with day-of-week "*", so this would never run`},
		{"0 0 31 4,6 ?", `day-of-month field "31": no such day ever comes in month "4,6" with day-of-week "?", so this would never run`},
		{"0 0 31W 2 *", `day-of-month field "31W": no such day ever comes in month "2" with day-of-week "*", so this would never run`},
		{"0 0 L-29 2 *", `day-of-month field "L-29": no such day ever comes in month "2" with day-of-week "*", so this would never run`},
		{"", `expression "": is empty; it needs 5 fields: minute hour day-of-month month day-of-week`},
		{"* * *", `expression "* * *": has 3 fields; it needs 5 (minute hour day-of-month month day-of-week), or 6 with seconds first`},
		{"* * * *\v*", `expression "* * * *\v*": has a control character ('\v') at byte 7`},
		{"\xff * * * *", `expression "\xff * * * *": is not valid UTF-8`},
		{"0 0 12 ? * MON-FRI *", `expression "0 0 12 ? * MON-FRI *": has 7 fields, as Quartz writes it (weekdays from 1, a year at the end); write "0 0 12 ? * MON-FRI"`},
		{"0 0 12 ? * 2-6 *", `expression "0 0 12 ? * 2-6 *": has 7 fields, as Quartz writes it (weekdays from 1, a year at the end); write "0 0 12 ? * 1-5"`},
		{"0 0 12 ? * 6#3 2027", `expression "0 0 12 ? * 6#3 2027": has 7 fields, as Quartz writes it (weekdays from 1, a year at the end); write "0 0 12 ? * 5#3" with start_time 2027-01-01T00:00:00 and end_time 2027-12-31T23:59:59`},
		{"0 15 10 ? * 6L 2027-2029", `expression "0 15 10 ? * 6L 2027-2029": has 7 fields, as Quartz writes it (weekdays from 1, a year at the end); write "0 15 10 ? * 5L" with start_time 2027-01-01T00:00:00 and end_time 2029-12-31T23:59:59`},
		{"0 15 10 ? * 6L 2027,2029", `expression "0 15 10 ? * 6L 2027,2029": has 7 fields, as Quartz writes it (weekdays from 1, a year at the end)`},
		{"0 0 12 L-3 * ? *", `expression "0 0 12 L-3 * ? *": has 7 fields, as Quartz writes it (weekdays from 1, a year at the end); write "0 0 12 L-3 * ?"`},
		{"0 0 12 ? * 1,7 *", `expression "0 0 12 ? * 1,7 *": has 7 fields, as Quartz writes it (weekdays from 1, a year at the end); write "0 0 12 ? * 0,6"`},
		{"cron(15 10 ? * 6L 2022-2023)", `expression "cron(15 10 ? * 6L 2022-2023)": is an AWS cron expression (weekdays from 1, a year at the end); write "15 10 ? * 5l" with start_time 2022-01-01T00:00:00 and end_time 2023-12-31T23:59:59`},
		{"0 10 ? * MON-FRI *", `expression "0 10 ? * MON-FRI *": has its fields in the order of AWS (weekdays from 1, a year at the end); write "0 10 ? * MON-FRI"`},
		{"0 8 1 * ? *", `expression "0 8 1 * ? *": has its fields in the order of AWS (weekdays from 1, a year at the end); write "0 8 1 * ?"`},
		{"0 8 ? * 2 2027-2028", `expression "0 8 ? * 2 2027-2028": ends in a year, which has no field here; use a start and an end time; write "0 8 ? * 1" with start_time 2027-01-01T00:00:00 and end_time 2028-12-31T23:59:59`},
		{"at(2027-11-20T13:00:00)", `expression "at(2027-11-20T13:00:00)": is an AWS expression for one time; make a one-time task; write run_at 2027-11-20T13:00:00`},
		{"cron(0 10 ? * 2 *)", `expression "cron(0 10 ? * 2 *)": is an AWS cron expression (weekdays from 1, a year at the end); write "0 10 ? * 1"`},
		{"rate(5 minutes)", `expression "rate(5 minutes)": is an AWS rate expression; write @every 5m`},
		{"0 10 * * ? 2027", `expression "0 10 * * ? 2027": ends in a year, which has no field here; use a start and an end time; write "0 10 * * ?" with start_time 2027-01-01T00:00:00 and end_time 2027-12-31T23:59:59`},
		{"@fortnightly", `expression "@fortnightly": "@fortnightly" is not known; it must be @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly, @reboot, or @every with an interval`},
		{"@daily x", `expression "@daily x": @daily takes nothing after it`},
		{"@every", `interval field "": needs one interval; write @every 90s`},
		{"@every 5x", `interval field "5x": interval "5x" must be like 90s, 1h30m, 1d, 2w or PT3H`},
		{"CRON_TZ=Europe/Berln * * * * *", `CRON_TZ field "Europe/Berln": is not a known IANA zone, such as Europe/Berlin or UTC; write Europe/Berlin`},
		{"TZ=", `CRON_TZ field "": is empty; it needs a name such as Europe/Berlin`},
		{"CRON_TZ=UTC", `expression "CRON_TZ=UTC": is empty; it needs 5 fields: minute hour day-of-month month day-of-week`},
	} {
		_, err := Parse(tt.expr, Options{})
		var bad *SyntaxError
		if !errors.As(err, &bad) {
			t.Errorf("Parse(%q): error %v, want a SyntaxError", tt.expr, err)
			continue
		}
		if err.Error() != tt.want {
			t.Errorf("Parse(%q)\n got %s\nwant %s", tt.expr, err, tt.want)
		}
		if bad.Expr != tt.expr {
			t.Errorf("Parse(%q): Expr is %q", tt.expr, bad.Expr)
		}
	}
	long := strings.Repeat("*", MaxExpression+1)
	if _, err := Parse(long, Options{}); err == nil || !strings.Contains(err.Error(), "has 513 bytes, the limit is 512") {
		t.Errorf("a long expression: error %v", err)
	}
}

func TestReboot(t *testing.T) {
	for _, expr := range []string{"@reboot", " @Reboot ", "CRON_TZ=UTC @reboot"} {
		if _, err := Parse(expr, Options{}); !errors.Is(err, ErrReboot) {
			t.Errorf("Parse(%q): error %v, want ErrReboot", expr, err)
		}
	}
}

// TestSpread pins what H and ~ choose: stored tasks rely on it.
func TestSpread(t *testing.T) {
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ seed, expr, want string }{
		{"backup", "H * * * *", "2026-03-01T00:13:00Z 2026-03-01T01:13:00Z"},
		{"backup", "H H * * *", "2026-03-01T15:13:00Z 2026-03-02T15:13:00Z"},
		{"reports", "H H * * *", "2026-03-01T22:49:00Z 2026-03-02T22:49:00Z"},
		{"", "H H H * *", "2026-03-01T17:12:00Z 2026-04-01T17:12:00Z"},
		{"backup", "H/15 * * * *", "2026-03-01T00:13:00Z 2026-03-01T00:28:00Z"},
		{"backup", "0~30 3 * * *", "2026-03-01T03:08:00Z 2026-03-02T03:08:00Z"},
	} {
		checkNextSeed(t, tt.seed, tt.expr, start, tt.want)
	}
}

func checkNextSeed(t *testing.T, seed, expr string, at time.Time, want string) {
	t.Helper()
	s, err := Parse(expr, Options{Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for range strings.Fields(want) {
		at = s.Next(at)
		got = append(got, at.Format(time.RFC3339))
	}
	if strings.Join(got, " ") != want {
		t.Errorf("seed %q, %q:\n got %s\nwant %s", seed, expr, strings.Join(got, " "), want)
	}
}

// TestSpreadStaysInside checks ranges, and that seeds do spread.
func TestSpreadStaysInside(t *testing.T) {
	for _, tt := range []struct {
		form *form
		text string
		ok   func(set uint64) bool
	}{
		{&formMinute, "H", one(0, 59)}, {&formMinute, "~", one(0, 59)},
		{&formMinute, "H(10-19)", one(10, 19)}, {&formMinute, "10~19", one(10, 19)},
		{&formMinute, "~9", one(0, 9)}, {&formMinute, "50~", one(50, 59)},
		{&formDom, "H", one(1, 28)}, {&formDom, "~", one(1, 28)}, {&formDom, "1~31", one(1, 31)},
		{&formMonth, "H", one(1, 12)}, {&formDow, "H", one(0, 6)}, {&formDow, "H(0-7)", one(0, 6)},
		{&formDow, "H(6-7)", func(s uint64) bool { return s == 1 || s == 1<<6 }},
		{&formMinute, "H/20", func(s uint64) bool { first := s & (1<<20 - 1); return first != 0 && s == first|first<<20|first<<40 }},
		{&formMinute, "H(30-39)/5", func(s uint64) bool { first := s >> 30 & 31; return first != 0 && s == first<<30|first<<35 }},
	} {
		f, err := tt.form.parse(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[uint64]bool{}
		for i := range 2000 {
			set := f.bits(strings.Repeat("task", i%7) + string(rune('a'+i%997)))
			seen[set] = true
			if !tt.ok(set) {
				t.Fatalf("%s %q chose %b", tt.form.name, tt.text, set)
			}
		}
		if len(seen) < 2 {
			t.Errorf("%s %q always chooses the same", tt.form.name, tt.text)
		}
	}
}

func one(lo, hi int) func(uint64) bool {
	return func(set uint64) bool {
		return set&(set-1) == 0 && set >= 1<<lo && set <= 1<<hi
	}
}

func FuzzParse(f *testing.F) {
	for _, row := range nextRows {
		f.Add(row.expr, "name", int64(1767225600))
	}
	for _, expr := range []string{"H H(0-7) ~ H/3 *", "@reboot", "cron(0 10 ? * 2 *)", "0 0 12 ? * 2 2027", "0 0 30 2 *",
		"CRON_TZ=Africa/Cairo 0~30 0 LW,L-3,3W * 5#5,mon#1", "TZ=America/Santiago 59 59 23 L 2 0L",
		"0 9 * * 1-5\n0 11 * * 6", "*/2 * * * * *\r\n\n1-59/2 * * * * 5L\n30 2 * * *", "@daily\n@every 90s"} {
		f.Add(expr, "", int64(4102444800))
	}
	f.Fuzz(func(t *testing.T, expr, seed string, unix int64) {
		began := time.Now()
		s, err := Parse(expr, Options{Seed: seed})
		text, describeErr := Describe(expr)
		if errors.Is(err, ErrReboot) {
			return
		}
		if (err == nil) != (describeErr == nil) && !strings.ContainsAny(expr, "Hh~") {
			t.Fatalf("Parse(%q): %v, Describe: %v", expr, err, describeErr)
		}
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n") {
				t.Fatalf("Parse(%q): the error has more than one line: %q", expr, err)
			}
			return
		}
		if describeErr == nil && text == "" {
			t.Fatalf("Describe(%q) is empty", expr)
		}
		at := time.Unix(unix, 0)
		next := s.Next(at)
		if !next.IsZero() {
			if !next.After(at) {
				t.Fatalf("%q: Next(%v) = %v", expr, at, next)
			}
			if got := s.Prev(next); !got.Equal(next) {
				t.Fatalf("%q: Prev(%v) = %v", expr, next, got)
			}
			if n := s.Count(at, next); n != 1 {
				t.Fatalf("%q: Count(%v, %v) = %d", expr, at, next, n)
			}
		}
		if took := time.Since(began); took > slower*time.Second {
			t.Fatalf("%q took %v", expr, took)
		}
	})
}
