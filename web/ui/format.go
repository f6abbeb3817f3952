package ui

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"dts"
)

// utc writes an instant for people, to the second.
func utc(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// duration writes how long something took with two or three digits that mean something.
func duration(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + duration(-d)
	case d < time.Millisecond:
		return trimZeros(strconv.FormatFloat(d.Seconds()*1e3, 'f', 2, 64)) + " ms"
	case d < 10*time.Millisecond:
		return trimZeros(strconv.FormatFloat(d.Seconds()*1e3, 'f', 1, 64)) + " ms"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < 10*time.Second:
		return trimZeros(strconv.FormatFloat(d.Truncate(10*time.Millisecond).Seconds(), 'f', 2, 64)) + " s"
	case d < time.Minute:
		return trimZeros(strconv.FormatFloat(d.Truncate(100*time.Millisecond).Seconds(), 'f', 1, 64)) + " s"
	default:
		return coarse(d)
	}
}

func trimZeros(s string) string {
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// coarse writes a duration of at least a second in its two largest units.
func coarse(d time.Duration) string {
	units := []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}}
	for i, u := range units {
		if d < u.size {
			continue
		}
		s := fmt.Sprintf("%d %s", d/u.size, u.name)
		if i+1 < len(units) {
			if next := d % u.size / units[i+1].size; next > 0 {
				s += fmt.Sprintf(" %d %s", next, units[i+1].name)
			}
		}
		return s
	}
	return "0 s"
}

// lateness writes how late a start was. us is in microseconds.
func lateness(us int64) string {
	if us <= 0 {
		return "on time"
	}
	return duration(time.Duration(us)*time.Microsecond) + " late"
}

// relative writes how far a time is from now.
func relative(t, now time.Time) string {
	d := t.Sub(now)
	switch {
	case d > -time.Second && d < time.Second:
		return "now"
	case d > 0:
		return "in " + roughly(d)
	case d <= -time.Minute:
		return roughly(-d.Truncate(time.Minute)) + " ago" // seconds would only flicker
	default:
		return roughly(-d) + " ago"
	}
}

// roughly writes a distance in time: two units up to a day, then days, then years.
func roughly(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 2*365*day:
		return fmt.Sprintf("%d years", d/(365*day))
	case d >= 7*day:
		return fmt.Sprintf("%d days", d/day)
	default:
		return coarse(d)
	}
}

// byteSize writes a number of bytes in binary units.
func byteSize(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, units := float64(n)/1024, []string{"KiB", "MiB", "GiB", "TiB"}
	for len(units) > 1 && v >= 1023.95 {
		v, units = v/1024, units[1:]
	}
	return trimZeros(strconv.FormatFloat(v, 'f', 1, 64)) + " " + units[0]
}

// statusWord is a state in lower case words: "timed out" for TIMED_OUT.
func statusWord(s any) string {
	return strings.ReplaceAll(strings.ToLower(fmt.Sprint(s)), "_", " ")
}

// sentence makes a sentence of an error message. Messages about a field begin with their verb ("is missing"),
// so the label goes before those.
func sentence(label, message string) string {
	first, _, _ := strings.Cut(message, " ")
	switch first {
	case "is", "has", "must", "needs", "cannot", "holds":
		if label == "" {
			label = "This"
		}
		return label + " " + message
	}
	r, n := utf8.DecodeRuneInString(message)
	if n == 0 {
		return message
	}
	return strings.ToUpper(string(r)) + message[n:]
}

// clip cuts a text to at most n runes.
func clip(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}

// plainOrder replaces the characters that turn round the text after them, so that a name cannot look like another one.
func plainOrder(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' {
			return utf8.RuneError
		}
		return r
	}, s)
}

// taskTitle names a task or a recurring task: its name, or else what it runs.
func taskTitle(s dts.Spec) string {
	if s.Name != "" {
		return plainOrder(s.Name)
	}
	return clip(targetSummary(s), 60)
}
