package calendar

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dts"
)

var update = flag.Bool("update", false, "write the golden files anew")

// What calendar programs export, as windows of the years 2025 to 2028.
func TestICSFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/calendars/*.ics")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	loc := zone(t, "Europe/Berlin")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c := mustCompile(t, dts.Calendar{Name: "x", TimeZone: "Europe/Berlin", ICS: string(text)})
		got := show(c.Segments(time.Date(2025, 1, 1, 0, 0, 0, 0, loc), time.Date(2029, 1, 1, 0, 0, 0, 0, loc), loc), loc)
		golden := strings.TrimSuffix(file, ".ics") + ".golden"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s:\n%swant\n%s", file, got, want)
		}
	}
}

// event wraps lines in what a file needs.
func file(lines ...string) string {
	return "BEGIN:VCALENDAR\nBEGIN:VEVENT\n" + strings.Join(lines, "\n") + "\nEND:VEVENT\nEND:VCALENDAR\n"
}

func TestICSErrors(t *testing.T) {
	for _, c := range []struct{ name, text, says string }{
		{"not a calendar", "hello", "line 1"},
		{"a page", "<!DOCTYPE html>\n<html lang=\"en\">", "line 1"},
		{"empty", " \n", "line 1"},
		{"blank", "\n\n", "has no BEGIN:VCALENDAR"},
		{"UTF-16", "\xff\xfeB\x00", "UTF-8"},
		{"cut off", "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20260101T000000Z\n", "VEVENT in line 2 has no END"},
		{"ends cross", "BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VCALENDAR\n", "END:VCALENDAR ends what began as VEVENT in line 2"},
		{"deep", strings.Repeat("BEGIN:X\n", 3) + "BEGIN:VCALENDAR\n" + strings.Repeat("BEGIN:X\n", 20), "line 1"},
		{"deep inside", "BEGIN:VCALENDAR\n" + strings.Repeat("BEGIN:X\n", 20), "nested more than 8"},
		{"a parameter does not end", file(`DTSTART;TZID="Europe/Berlin:20260101T000000`), "line 3: the parameter TZID of DTSTART does not end"},
		{"a parameter is the end", file("DTSTART;TZID=x"), "does not end"},
		{"no start", file("SUMMARY:x"), "line 2: the event has no DTSTART"},
		{"no such day", file("DTSTART;VALUE=DATE:20260230"), "line 3: DTSTART"},
		{"another form", file("DTSTART:2026-01-01"), "such as 20261225"},
		{"backwards", file("DTSTART:20260102T000000Z", "DTEND:20260101T000000Z"), "ends before it begins"},
		{"mixed", file("DTSTART:20260102T000000Z", "DTEND;VALUE=DATE:20260103"), "both be dates"},
		{"negative", file("DTSTART:20260102T000000Z", "DURATION:-PT1H"), "negative"},
		{"long", file("DTSTART:20260102T000000Z", "DURATION:P999999W"), "3660 days"},
		{"no duration", file("DTSTART:20260102T000000Z", "DURATION:P"), "not like P1D"},
		{"zone", file("DTSTART;TZID=Middle Earth:20260101T000000"), `time zone "Middle Earth" is not known`},
		{"every minute", file("DTSTART:20260102T000000Z", "DURATION:PT1S", "RRULE:FREQ=MINUTELY"), "line 5"},
		{"no rule", file("DTSTART:20260102T000000Z", "RRULE:EVERY DAY"), "line 4"},
		{"long and recurring", file("DTSTART:20260102T000000Z", "DURATION:P400D", "RRULE:FREQ=DAILY"), "365 days"},
		{"exrule", file("DTSTART:20260102T000000Z", "EXRULE:FREQ=DAILY"), "EXDATE"},
		{"this and future", file("DTSTART:20260102T000000Z", "RECURRENCE-ID;RANGE=THISANDFUTURE:20260102T000000Z"), "THISANDFUTURE"},
		{"too many", "BEGIN:VCALENDAR\n" + strings.Repeat("BEGIN:VEVENT\nEND:VEVENT\n", MaxEvents+1) + "END:VCALENDAR\n", "10001 events"},
		{"too large", strings.Repeat("x", dts.MaxICS+1), "1048576"},
		{"too often", file("DTSTART:20260102T000000Z", "DURATION:PT1M", "RRULE:FREQ=HOURLY;BYMINUTE=0,10,20,30"), "line 2: the events recur more than 10000 times"},
	} {
		_, err := Compile(&dts.Calendar{Name: "x", ICS: c.text})
		var e *dts.Error
		if !errors.As(err, &e) || len(e.Fields) != 1 || e.Fields[0].Field != "ics" || !strings.Contains(e.Fields[0].Message, c.says) {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
	}
}

func TestICSForms(t *testing.T) {
	const crlf = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20260101\r\nSUMMARY:x\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
	const want = "Thu 2026-01-01 00:00 +0000  Fri 2026-01-02 00:00 +0000  x\n"
	for name, text := range map[string]string{
		"as it should be":   crlf,
		"LF":                strings.ReplaceAll(crlf, "\r\n", "\n"),
		"CR":                strings.ReplaceAll(crlf, "\r\n", "\r"),
		"BOM":               "\uFEFF" + crlf,
		"lower case":        strings.ToLower(strings.ReplaceAll(crlf, "x", "x")),
		"blank lines":       strings.ReplaceAll(crlf, "\r\n", "\r\n\r\n"),
		"no last line end":  strings.TrimSpace(crlf),
		"folded everywhere": strings.ReplaceAll(crlf, "DTSTART;VALUE=DATE:20260101", "DTST\r\n ART;VAL\r\n\tUE=DATE:2026\r\n \r\n 0101"),
		"two calendars":     crlf + crlf,
		"not UTF-8":         strings.Replace(crlf, "SUMMARY:x", "SUMMARY:x\r\nLOCATION:M\xfcnchen", 1),
		"a todo":            strings.Replace(crlf, "BEGIN:VEVENT", "BEGIN:VTODO\r\nDTSTART:whenever\r\nEND:VTODO\r\nBEGIN:VEVENT", 1),
	} {
		c, err := Compile(&dts.Calendar{Name: "x", ICS: text})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := show(c.Windows(instant(t, "2025-01-01T00:00:00Z"), instant(t, "2028-01-01T00:00:00Z"), time.UTC), time.UTC); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Every name that Windows has for a zone is one of IANA's here.
func TestWindowsZones(t *testing.T) {
	n := 0
	for line := range strings.SplitSeq(windowsZones, "\n") {
		if windows, iana, ok := strings.Cut(line, "="); ok {
			n++
			if loc := zoneNamed(windows); loc == nil || loc.String() != iana && iana != "Etc/UTC" {
				t.Errorf("%s: %v, want %s", windows, loc, iana)
			}
		}
	}
	if n < 130 {
		t.Errorf("%d zones", n)
	}
}

// The largest file there may be is read, and a year of it told, in bounded time.
func TestICSLargest(t *testing.T) {
	var recurring, once strings.Builder
	for i := range MaxWindowsAYear / 13 { // what is monthly comes up to 13 times within a year
		fmt.Fprintf(&recurring, "BEGIN:VEVENT\nDTSTART:1970%02d%02dT101500Z\nDURATION:PT1H\nRRULE:FREQ=MONTHLY;BYDAY=2TU\nSUMMARY:%d\nEND:VEVENT\n", i%12+1, i%28+1, i)
	}
	for i := range MaxEvents {
		fmt.Fprintf(&once, "BEGIN:VEVENT\nDTSTART:2026%02d%02dT%02d1500Z\nDURATION:PT1H\nEND:VEVENT\n", i%12+1, i%28+1, i%24)
	}
	for name, body := range map[string]string{
		"recurring":     recurring.String(),
		"once":          once.String(),
		"one long line": "BEGIN:VEVENT\nDTSTART:20260101T000000Z\nX-A;B=" + strings.Repeat("a", 900_000) + ":x\nEND:VEVENT\n",
		"many folds":    "BEGIN:VEVENT\nDTSTART:20260101T000000Z\nX-A:" + strings.Repeat("\n a", 300_000) + "\nEND:VEVENT\n",
	} {
		begin := time.Now()
		c := mustCompile(t, dts.Calendar{Name: "x", ICS: "BEGIN:VCALENDAR\n" + body + "END:VCALENDAR\n"})
		read := time.Since(begin)
		n := len(c.Windows(instant(t, "2026-01-01T00:00:00Z"), instant(t, "2027-01-01T00:00:00Z"), time.UTC))
		all := time.Since(begin)
		t.Logf("%s: read in %v, %d windows in %v", name, read, n, all-read)
		if all > 3*time.Second {
			t.Errorf("%s: took %v", name, all)
		}
	}
}

// Whatever the file, it is refused or its windows are in order and within what was asked for, in bounded time.
func FuzzICS(f *testing.F) {
	files, err := filepath.Glob("testdata/calendars/*.ics")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), uint16(2026))
	}
	f.Add(file("DTSTART:20260102T000000Z", "DURATION:P1DT1H", "RRULE:FREQ=HOURLY;INTERVAL=2;BYHOUR=3", "EXDATE:20260102T000000Z"), uint16(2030))
	f.Add(file("DTSTART;VALUE=DATE:20260102", "RRULE:FREQ=YEARLY;BYWEEKNO=-1", "RDATE;VALUE=DATE:20260201"), uint16(1960))
	loc := zone(f, "America/New_York")
	f.Fuzz(func(t *testing.T, text string, year uint16) {
		begin := time.Now()
		c, err := Compile(&dts.Calendar{Name: "x", ICS: text, TimeZone: "America/Santiago"})
		if err != nil {
			var e *dts.Error
			if !errors.As(err, &e) {
				t.Fatalf("not a *dts.Error: %v", err)
			}
			return
		}
		from := time.Date(int(year), 3, 1, 7, 0, 0, 0, time.UTC)
		to := from.AddDate(1, 5, 0)
		last := from
		for _, w := range c.Windows(from, to, loc) {
			if w.From.Before(last) || !w.From.Before(w.To) || w.To.After(to) || w.From.Equal(last) && !last.Equal(from) {
				t.Fatalf("window %v after %v, asked for %v to %v", w, last, from, to)
			}
			if _, ok := c.At(w.From, loc); !ok {
				t.Fatalf("At does not know of %v", w)
			}
			last = w.To
		}
		if d := time.Since(begin); d > 5*time.Second {
			t.Fatalf("took %v", d)
		}
	})
}
