package ui

import (
	"bytes"
	"mime/multipart"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"dts"
	"dts/sched/cron"
)

const closedICS = "\ufeffBEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//example//EN\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTAMP:20260101T000000Z\r\n" +
	"DTSTART;VALUE=DATE:20260406\r\nSUMMARY:Works outing\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"

// upload posts a form as a browser does that has a file to send.
func (s *site) upload(path string, form url.Values, file string) (*httptest.ResponseRecorder, doc) {
	s.t.Helper()
	var b bytes.Buffer
	m := multipart.NewWriter(&b)
	for name, values := range form {
		for _, v := range values {
			m.WriteField(name, v)
		}
	}
	w, _ := m.CreateFormFile("ics", "closed.ics")
	w.Write([]byte(file))
	m.Close()
	r := httptest.NewRequest("POST", path, &b)
	r.Header.Set("Content-Type", m.FormDataContentType())
	answer := s.do(r, &admin)
	d := parse(s.t, answer.Body.String())
	if answer.Code != 303 {
		d.check()
	}
	return answer, d
}

func TestCalendars(t *testing.T) {
	s := newSite(t)
	s.get("/ui/calendars", 200).want("There is none yet")
	s.calendars = []*dts.Calendar{
		{Name: "de", Description: "Bavaria", Holidays: &dts.Holidays{Country: "de", Region: "by"}, Days: []string{"12-24"}, UpdatedAt: testNow},
		{Name: "mixed", Weekdays: []string{"sat", "SUN"}, Days: []string{"12-24", "12-31"}, ICS: closedICS,
			Windows: []dts.Window{{Cron: "0 22 * * fri", DurationSeconds: 3600}}},
	}
	d := s.get("/ui/calendars", 200)
	d.row("Bavaria").want("de", "the holidays of DE-BY, 12-24")
	d.row("mixed").want("weekends, 2 days and ranges, 1 window, an .ics file (")
	if nav := d.all("a", "aria-current", "page"); len(nav) != 1 || nav[0].text() != "Calendars" {
		t.Error("the navigation does not say where the reader is")
	}
}

func TestAddCalendar(t *testing.T) {
	s := newSite(t)
	d := s.get("/ui/new-calendar", 200)
	if form := d.id("save").Parent.Parent; (doc{t, form}).attr("enctype") != "multipart/form-data" {
		t.Error("the form does not send files")
	}
	form := url.Values{"name": {"closed"}, "description": {"All of it"}, "zone": {"Europe/Berlin"}, "days": {"2026-04-10\r\n\r\n12-24"},
		"weekdays": {"SUN"}, "weekend": {"FRI", "SAT"}, "holidays": {"de-by"}, "add": {"12-31"}, "remove": {"11-01"},
		"windows": {"2026-03-05 18:00 to 2026-03-06 06:00\r\n0 22 * * fri for 1h30m"}}
	w, _ := s.upload("/ui/new-calendar", form, closedICS)
	if len(s.calendars) != 1 || w.Header().Get("Location") != "/ui/calendars/closed?done=added" {
		t.Fatalf("%d calendars; %d to %s\n%s", len(s.calendars), w.Code, w.Header().Get("Location"), w.Body)
	}
	c := s.calendars[0]
	if c.TenantID != dts.DefaultTenant || c.Description != "All of it" || !slices.Equal(c.Days, []string{"2026-04-10", "12-24"}) || !slices.Equal(c.Weekdays, []string{"SUN"}) ||
		!slices.Equal(c.Weekend, []string{"FRI", "SAT"}) || c.ICS != closedICS || c.Holidays.Country != "de" || c.Holidays.Region != "by" ||
		!slices.Equal(c.Holidays.Add, []string{"12-31"}) || !slices.Equal(c.Holidays.Remove, []string{"11-01"}) {
		t.Errorf("added %+v", c)
	}
	want := []dts.Window{{Start: time.Date(2026, 3, 5, 17, 0, 0, 0, time.UTC), End: time.Date(2026, 3, 6, 5, 0, 0, 0, time.UTC)}, {Cron: "0 22 * * fri", DurationSeconds: 5400}}
	if len(c.Windows) != 2 || !c.Windows[0].Start.Equal(want[0].Start) || !c.Windows[0].End.Equal(want[0].End) || c.Windows[1] != want[1] {
		t.Errorf("windows %v", c.Windows)
	}

	d = s.get("/ui/calendars/closed?done=added", 200)
	d.want("Added.", "What comes Europe/Berlin", "Works outing", "A window by hand", "Fri 6 Mar 2026, 22:00 to 23:30", "Remove the file that is there")
	d.row("Works outing").want("Mon 6 Apr 2026")
	d.row("A window by hand").want("Thu 5 Mar 2026, 18:00 to Fri 6 Mar 2026, 06:00")
	if text := d.id("windows").text(); text != "2026-03-05 18:00 to 2026-03-06 06:00 0 22 * * fri for 1h30m" {
		t.Errorf("the windows are written %q", text)
	}

	// Saved without a file, the old one stays, until it is removed.
	form.Del("name")
	form.Set("description", "Changed")
	if w, _ := s.post("/ui/calendars/closed", form); w.Code != 303 || s.calendars[0].ICS != closedICS || s.calendars[0].Description != "Changed" {
		t.Errorf("%d, %+v", w.Code, s.calendars[0])
	}
	form.Set("drop_ics", "1")
	if w, _ := s.upload("/ui/calendars/closed", form, ""); w.Code != 303 || s.calendars[0].ICS != "" {
		t.Errorf("%d: the file is still there", w.Code)
	}
	if w, _ := s.upload("/ui/calendars/closed", form, closedICS); w.Code != 303 || s.calendars[0].ICS != closedICS {
		t.Errorf("%d: the new file is not there", w.Code)
	}

	// What is in use stays.
	s.fail = dts.Errorf(dts.ErrConflict, "the calendar closed is used by the recurring task Backup")
	w, d = s.post("/ui/calendars/closed/delete", nil)
	if w.Code != 409 {
		t.Errorf("delete of a calendar in use: %d", w.Code)
	}
	d.want("is used by the recurring task Backup", "What comes")
	s.fail = nil
	if w, _ = s.post("/ui/calendars/closed/delete", nil); w.Code != 303 || len(s.calendars) != 0 {
		t.Errorf("delete: %d", w.Code)
	}
	s.get("/ui/calendars?done=delete-calendar", 200).want("The calendar is deleted.")
	s.get("/ui/calendars/closed", 404)
	if w, _ := s.post("/ui/calendars/closed", form); w.Code != 404 {
		t.Errorf("a change of what is not there: %d", w.Code)
	}
}

func TestCalendarErrors(t *testing.T) {
	for _, tt := range []struct {
		name, input, value, field, want string
	}{
		{"no name", "name", "", "name", "not a calendar's name"},
		{"bad name", "name", "Über alles", "name", "not a calendar's name"},
		{"taken", "name", "taken", "name", "There is a calendar taken already"},
		{"nothing in it", "days", "", "days", "is missing"},
		{"bad day", "days", "12-24\nChristmas", "days", "Line 2"},
		{"bad window", "windows", "tomorrow", "windows", "2026-12-24 18:00 to 2026-12-27 06:00"},
		{"window that ends first", "windows", "2026-03-06 18:00 to 2026-03-05 06:00", "windows", "ends before it begins"},
		{"window by a bad expression", "windows", "0 25 * * * for 1h", "windows", "25"},
		{"window without length", "windows", "0 22 * * * for ever", "windows", "must be like"},
		{"bad zone", "zone", "Mars/Base", "zone", "Mars/Base"},
		{"unknown country", "holidays", "xx", "holidays", "xx"},
		{"days of no country", "add", "12-24", "holidays", "Choose a country"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			s.calendars = []*dts.Calendar{{Name: "taken", Days: []string{"12-24"}}}
			form := url.Values{"name": {"closed"}, "days": {"12-24"}, "zone": {"UTC"}}
			form.Set(tt.input, tt.value)
			w, d := s.post("/ui/new-calendar", form)
			if w.Code != 422 || len(s.calendars) != 1 {
				t.Fatalf("status %d, %d calendars\n%s", w.Code, len(s.calendars), d.text())
			}
			d.id("errors")
			d.id(tt.field + "-error").want(tt.want)
			for _, in := range d.all("", "name", tt.input) {
				if v := in.attr("value") + in.text(); in.Data != "select" && !strings.Contains(v, strings.TrimSpace(tt.value[:min(len(tt.value), 5)])) {
					t.Errorf("%s was %q and is now %q", tt.input, tt.value, v)
				}
			}
		})
	}
}

func TestCalendarFileErrors(t *testing.T) {
	s := newSite(t)
	form := url.Values{"name": {"closed"}}
	w, d := s.upload("/ui/new-calendar", form, "this is no calendar")
	if w.Code != 422 {
		t.Errorf("status %d", w.Code)
	}
	d.id("ics-error").want("")
	d.want("Choose the file again")
	w, d = s.upload("/ui/new-calendar", form, strings.Repeat("x", dts.MaxICS+10))
	if w.Code != 422 {
		t.Errorf("a file that is too large: %d", w.Code)
	}
	d.id("ics-error").want("at most 1048576 are allowed")
	if w, _ = s.upload("/ui/new-calendar", form, strings.Repeat("x", maxForm)); w.Code != 413 {
		t.Errorf("a form that is too large: %d", w.Code)
	}
	s.fail = dts.Errorf(dts.ErrUnavailable, "try again later")
	if w, d = s.upload("/ui/new-calendar", form, closedICS); w.Code != 503 {
		t.Errorf("status %d", w.Code)
	}
	d.id("errors").want("Try again later")
}

func TestWindowText(t *testing.T) {
	berlin, err := cron.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"2026-12-24 18:00 to 2026-12-27 06:00:30", "0 22 * * fri for 8h", "@daily for 1m30s", "0 0 1 * * for 36h"} {
		w, err := parseWindow(s, berlin)
		if err != nil {
			t.Errorf("%q: %v", s, err)
			continue
		}
		if got := windowText(w, berlin); got != s {
			t.Errorf("%q is written %q", s, got)
		}
	}
}
