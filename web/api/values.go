package api

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"dts"
	"dts/sched/cron"
)

// Delay is how long from now: a JSON number of seconds, or a string with a Go or ISO 8601 duration such as
// "90s" or "PT3H". It is kept as it was written.
type Delay string

// UnmarshalJSON implements json.Unmarshaler.
func (d *Delay) UnmarshalJSON(b []byte) error {
	s, err := numberOrString(b)
	if err == nil {
		*d = Delay(s)
	}
	return err
}

// Schema implements huma.SchemaProvider.
func (Delay) Schema(huma.Registry) *huma.Schema { return numberOrDuration() }

// Duration returns the delay, which is not negative.
func (d Delay) Duration() (time.Duration, error) {
	v, err := parseDuration(string(d))
	switch {
	case err != nil:
		return 0, err
	case v < 0:
		return 0, errors.New("is negative")
	case v > dts.FutureAllowed:
		return 0, errors.New("is more than 100 years")
	}
	return v, nil
}

// Interval is a number of seconds, written as a JSON number or as a string with a Go or ISO 8601 duration.
type Interval float64

// UnmarshalJSON implements json.Unmarshaler.
func (i *Interval) UnmarshalJSON(b []byte) error {
	s, err := numberOrString(b)
	if err != nil || s == "" {
		return err
	}
	if v, err := strconv.ParseFloat(s, 64); err == nil {
		*i = Interval(v)
		return nil
	}
	d, err := parseDuration(s)
	*i = Interval(d.Seconds())
	return err
}

// Schema implements huma.SchemaProvider.
func (Interval) Schema(huma.Registry) *huma.Schema { return numberOrDuration() }

// Expressions are cron expressions: a JSON string, or an array of strings. They are kept one a line.
type Expressions string

// UnmarshalJSON implements json.Unmarshaler.
func (e *Expressions) UnmarshalJSON(b []byte) error {
	switch kindOf(b[0]) {
	case "null":
		*e = ""
		return nil
	case "a string":
		return json.Unmarshal(b, (*string)(e))
	case "an array":
	default:
		return errors.New("must be a cron expression or an array of them, not " + kindOf(b[0]))
	}
	var lines []string
	err := eachItem(b, func(i int, item json.RawMessage) error {
		var s string
		if err := json.Unmarshal(item, &s); err != nil || strings.TrimSpace(s) == "" || strings.Contains(s, "\n") {
			return errors.New("item " + strconv.Itoa(i) + " of the array must be a string with one cron expression")
		}
		lines = append(lines, s)
		return nil
	})
	if err == nil && lines == nil {
		err = errors.New("must hold a cron expression; the array is empty")
	}
	*e = Expressions(strings.Join(lines, "\n"))
	return err
}

// Schema implements huma.SchemaProvider.
func (Expressions) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{
		{Type: huma.TypeString, Description: "one, or several, one a line", Examples: []any{"30 2 * * mon-fri", "@daily"}},
		{Type: huma.TypeArray, Description: "several, each of which counts", Items: &huma.Schema{Type: huma.TypeString}, MinItems: new(1)},
	}}
}

func numberOrDuration() *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{
		{Type: huma.TypeNumber, Description: "seconds"},
		{Type: huma.TypeString, Description: "a Go or ISO 8601 duration", Examples: []any{"90s", "1h30m", "2d", "PT3H"}},
	}}
}

// numberOrString returns the text of a JSON number or string; "" for null.
func numberOrString(b []byte) (string, error) {
	switch kindOf(b[0]) {
	case "null":
		return "", nil
	case "a number":
		return string(b), nil
	case "a string":
		var s string
		err := json.Unmarshal(b, &s)
		return s, err
	default:
		return "", errors.New("must be a number of seconds or a duration such as \"90s\" or \"PT3H\", not " + kindOf(b[0]))
	}
}

// parseDuration reads seconds as a plain number, a Go duration, or what cron.ParseInterval knows.
func parseDuration(s string) (time.Duration, error) {
	if v, err := strconv.ParseFloat(s, 64); err == nil {
		if math.IsNaN(v) || math.Abs(v) > math.MaxInt64/1e9 {
			return 0, errors.New("is out of range")
		}
		return time.Duration(v * float64(time.Second)), nil
	}
	if d, err := time.ParseDuration(s); err == nil {
		return d, nil
	}
	return cron.ParseInterval(s)
}

// TimeText is an RFC 3339 time, or a local one without an offset. It is kept as it was written. In a patch,
// null removes the time that is set.
type TimeText struct {
	Text string
	Null bool // null was given
}

// At writes a time as a TimeText.
func At(t time.Time) TimeText {
	return TimeText{Text: t.UTC().Format(time.RFC3339Nano)}
}

// IsZero reports whether nothing was given.
func (t TimeText) IsZero() bool { return t == TimeText{} }

// UnmarshalJSON implements json.Unmarshaler.
func (t *TimeText) UnmarshalJSON(b []byte) error {
	switch kindOf(b[0]) {
	case "null":
		*t = TimeText{Null: true}
		return nil
	case "a string":
		*t = TimeText{}
		return json.Unmarshal(b, &t.Text)
	default:
		return errors.New("must be a string with a time such as 2026-03-01T08:00:00Z, not " + kindOf(b[0]))
	}
}

// MarshalJSON implements json.Marshaler.
func (t TimeText) MarshalJSON() ([]byte, error) {
	if t.Null {
		return []byte("null"), nil
	}
	return json.Marshal(t.Text)
}

// Schema implements huma.SchemaProvider.
func (TimeText) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Nullable: true, Examples: []any{"2026-03-01T08:00:00Z", "2026-03-01T08:00:00"},
		Description: "an RFC 3339 time; without an offset it is local time in time_zone"}
}

// localForms are the ways to write a local time, without an offset.
var localForms = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04"}

// parseTime reads an RFC 3339 time, or a local one in loc. loc is nil where no zone was given: then an
// offset is needed. local reports whether loc was used.
func parseTime(s string, loc *time.Location) (at time.Time, local bool, err error) {
	if t, err := time.Parse(time.RFC3339, strings.ToUpper(s)); err == nil {
		return dts.Micros(t), false, nil
	}
	for _, form := range localForms {
		wall, err := time.Parse(form, s)
		if err != nil {
			continue
		}
		if loc == nil {
			return time.Time{}, true, errors.New("has no offset; end it with Z or +02:00, or give time_zone")
		}
		t, err := resolveLocal(wall, loc)
		return dts.Micros(t), true, err
	}
	return time.Time{}, false, errors.New("is not a time; write it like 2026-03-01T08:00:00Z, or without Z and with time_zone")
}

// resolveLocal returns the first instant at which clocks in loc show wall, which is given in UTC. Where
// they were put forward over it there is none.
func resolveLocal(wall time.Time, loc *time.Location) (time.Time, error) {
	guess := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), wall.Nanosecond(), loc)
	_, before := guess.Add(-24 * time.Hour).Zone()
	_, after := guess.Add(24 * time.Hour).Zone()
	first := wall.Add(-time.Duration(max(before, after)) * time.Second)
	last := wall.Add(-time.Duration(min(before, after)) * time.Second)
	for _, at := range []time.Time{first, guess, last} {
		if _, offset := at.In(loc).Zone(); at.Add(time.Duration(offset) * time.Second).Equal(wall) {
			return at, nil
		}
	}
	change, _ := last.In(loc).ZoneBounds()
	_, offset := change.Add(-time.Second).Zone()
	from := change.UTC().Add(time.Duration(offset) * time.Second)
	const clock = "2006-01-02 15:04"
	return time.Time{}, errors.New("does not exist in " + loc.String() + ": clocks there go from " + from.Format(clock) +
		" straight to " + change.Format(clock) + "; choose a time outside that gap, or give an offset")
}
