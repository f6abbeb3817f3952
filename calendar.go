package dts

import (
	"regexp"
	"time"
)

// Limits of calendars and blackouts.
const (
	MaxCalendars     = 1000    // of one tenant
	MaxCalendarsUsed = 10      // by one recurring task, to exclude and to require each
	MaxCalendarDays  = 5000    // days that are listed
	MaxWindows       = 1000    // windows that are listed
	MaxICS           = 1 << 20 // bytes of an iCalendar file
	MaxBlackouts     = 1000    // of one tenant
)

// Calendar is a named set of days and windows of time.
type Calendar struct {
	TenantID    string    `json:"-"`
	Name        string    `json:"name" doc:"unique; 1 to 64 of a-z, 0-9, '.', '_', '-'"`
	Description string    `json:"description,omitempty"`
	TimeZone    string    `json:"time_zone,omitempty" doc:"IANA name, of windows given by cron and of an .ics file's local times; default: UTC. Days are those of the recurring task's zone"`
	Days        []string  `json:"days,omitempty" doc:"2026-12-25, 12-25 (every year), or 2026-12-24/2027-01-02 (both included)"`
	Weekdays    []string  `json:"weekdays,omitempty" doc:"days of every week: SUN, MON, TUE, WED, THU, FRI, SAT"`
	Windows     []Window  `json:"windows,omitempty"`
	ICS         string    `json:"ics,omitempty" doc:"the text of an iCalendar file, RFC 5545: whole-day events are days, others windows"`
	Holidays    *Holidays `json:"holidays,omitempty"`
	Weekend     []string  `json:"weekend,omitempty" doc:"weekdays that are never business days; default: SAT and SUN"`
	Version     int64     `json:"version" doc:"a larger one after each change"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
}

// Window is a stretch of time: from start_time up to, not including, end_time; or duration_seconds from each instant of a
// cron expression.
type Window struct {
	Start           time.Time `json:"start_time,omitzero"`
	End             time.Time `json:"end_time,omitzero"`
	Cron            string    `json:"cron,omitempty" doc:"begins at each of its instants"`
	DurationSeconds float64   `json:"duration_seconds,omitempty" doc:"and lasts so long; up to 31 days"`
}

// Holidays are the public holidays of a country.
type Holidays struct {
	Country string   `json:"country" doc:"ISO 3166, two letters, such as de"`
	Region  string   `json:"region,omitempty" doc:"ISO 3166-2 without the country, such as by"`
	Add     []string `json:"add,omitempty" doc:"days that are added, written as in days"`
	Remove  []string `json:"remove,omitempty" doc:"days that are not holidays here"`
}

// BlackoutAction says what happens to a task that comes due in a blackout.
type BlackoutAction string

const (
	// BlackoutWait lets it start when the blackout ends.
	BlackoutWait BlackoutAction = "WAIT"
	// BlackoutSkip skips it, if it has not started before; a retry waits.
	BlackoutSkip BlackoutAction = "SKIP"
)

// Blackout is a time in which no task starts, of one queue or of all. What runs when it begins goes on.
type Blackout struct {
	ID       string         `json:"blackout_id"`
	TenantID string         `json:"-"`
	Name     string         `json:"name" doc:"for people, such as database upgrade"`
	Note     string         `json:"note,omitempty"`
	Queue    string         `json:"queue,omitempty" doc:"default: every queue"`
	Action   BlackoutAction `json:"action" enum:"WAIT,SKIP" doc:"default: WAIT"`
	Window
	Calendar  string    `json:"calendar,omitempty" doc:"the windows and days of a calendar, in place of a window"`
	TimeZone  string    `json:"time_zone,omitempty" doc:"IANA name, of cron and of a calendar's days; default: UTC"`
	CreatedAt time.Time `json:"created_at"`
	CreatedBy string    `json:"created_by,omitempty"`
}

// calendarName is what a calendar may be called.
var calendarName = regexp.MustCompile(`^[a-z0-9]([a-z0-9_.-]{0,62}[a-z0-9])?$`)

func checkCalendarName(f *fieldErrors, field, name string) {
	if !calendarName.MatchString(name) {
		f.add(field, "%q is not a calendar's name; use 1 to 64 of a-z, 0-9, '.', '_', '-', beginning and ending with a letter or digit", clip(name))
	}
}

// Normalize fills in the defaults and checks all but what package calendar knows: days, expressions, zones, the file and
// the country.
func (c *Calendar) Normalize() error {
	var f fieldErrors
	checkCalendarName(&f, "name", c.Name)
	checkText(&f, "description", c.Description, MaxDescription)
	checkCount(&f, "days", len(c.Days), MaxCalendarDays)
	checkCount(&f, "weekdays", len(c.Weekdays), 7)
	checkCount(&f, "weekend", len(c.Weekend), 6)
	checkCount(&f, "windows", len(c.Windows), MaxWindows)
	checkText(&f, "ics", c.ICS, MaxICS)
	if h := c.Holidays; h != nil {
		checkCount(&f, "holidays.add", len(h.Add), MaxCalendarDays)
		checkCount(&f, "holidays.remove", len(h.Remove), MaxCalendarDays)
	}
	if len(c.Days) == 0 && len(c.Weekdays) == 0 && len(c.Windows) == 0 && c.ICS == "" && c.Holidays == nil {
		f.add("days", "is missing, and so are weekdays, windows, ics and holidays; a calendar needs one of them")
	}
	if c.TenantID == "" {
		c.TenantID = DefaultTenant
	}
	return f.err()
}

func checkCount(f *fieldErrors, field string, n, most int) {
	if n > most {
		f.add(field, "has %d entries; at most %d are allowed", n, most)
	}
}

// Normalize fills in the defaults and checks all but the window itself, which package calendar knows.
func (b *Blackout) Normalize(now time.Time) error {
	var f fieldErrors
	checkText(&f, "name", b.Name, MaxName)
	if b.Name == "" {
		f.add("name", "is missing; say what it is for")
	}
	checkText(&f, "note", b.Note, MaxDescription)
	checkText(&f, "created_by", b.CreatedBy, MaxName)
	if b.Queue != "" && !queueName.MatchString(b.Queue) {
		f.add("queue", "%q is not a queue name", clip(b.Queue))
	}
	switch b.Action {
	case "":
		b.Action = BlackoutWait
	case BlackoutWait, BlackoutSkip:
	default:
		f.add("action", "%q is not known; use WAIT or SKIP", clip(string(b.Action)))
	}
	if b.Calendar != "" {
		checkCalendarName(&f, "calendar", b.Calendar)
	}
	b.Start, b.End = Micros(b.Start), Micros(b.End)
	b.CreatedAt = Micros(now)
	if b.TenantID == "" {
		b.TenantID = DefaultTenant
	}
	if b.ID == "" {
		b.ID = NewID(now)
	}
	return f.err()
}
