package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	dayLength  = 24 * time.Hour
	weekLength = 7 * dayLength
)

// span writes a duration for people: two or three digits below a minute, two units above.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + span(-d)
	case d == 0:
		return "0 s"
	case d < time.Millisecond:
		return number(d.Seconds()*1e3, 2) + " ms"
	case d < 10*time.Millisecond:
		return number(d.Seconds()*1e3, 1) + " ms"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < 10*time.Second:
		return number(d.Truncate(10*time.Millisecond).Seconds(), 2) + " s"
	case d < time.Minute:
		return number(d.Truncate(100*time.Millisecond).Seconds(), 1) + " s"
	}
	return distance(d)
}

// number writes v with at most so many decimals.
func number(v float64, decimals int) string {
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// distance writes a span of at least a second in its two largest units: 45s, 4m 10s, 3d 2h.
func distance(d time.Duration) string {
	if d >= 2*365*dayLength {
		return fmt.Sprintf("%d years", d/(365*dayLength))
	}
	if d >= 2*weekLength {
		return fmt.Sprintf("%dd", d/dayLength)
	}
	units := []struct {
		length time.Duration
		name   string
	}{{dayLength, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}}
	for i, u := range units {
		if d < u.length {
			continue
		}
		s := fmt.Sprintf("%d%s", d/u.length, u.name)
		if i+1 < len(units) {
			if next := d % u.length / units[i+1].length; next > 0 {
				s += fmt.Sprintf(" %d%s", next, units[i+1].name)
			}
		}
		return s
	}
	return "0s"
}

// relative writes how far an instant is from now: "in 4m", "2m ago".
func relative(t, now time.Time) string {
	d := t.Sub(now)
	switch {
	case t.IsZero():
		return "–"
	case d > -time.Second && d < time.Second:
		return "now"
	case d > 0:
		return "in " + distance(d.Round(time.Second))
	case d < -time.Minute:
		return distance(-d.Truncate(time.Minute)) + " ago"
	}
	return distance(-d) + " ago"
}

// late writes how late a start was.
func late(us int64) string {
	if us <= 0 {
		return "on time"
	}
	return span(time.Duration(us)*time.Microsecond) + " late"
}

// clock writes an instant with its day and zone.
func clock(t time.Time, loc *time.Location) string {
	return t.In(loc).Format("Mon 2006-01-02 15:04:05 MST")
}

// size writes a number of bytes.
func size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v, i := float64(n), 0
	for v >= 1024 && i < len(units)-1 {
		v, i = v/1024, i+1
	}
	return number(v, 1) + " " + units[i]
}

// count writes a number of things: 1 job, 2 jobs.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// clip shortens a text to so many characters.
func clip(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	r := []rune(s)
	return string(r[:limit-1]) + "…"
}

// clean replaces what a terminal would obey rather than show, so that a name cannot move the cursor.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// words joins an argv so that a reader, and a shell, sees where an argument begins and ends.
func words(argv []string) string {
	parts := make([]string, len(argv))
	for i, s := range argv {
		parts[i] = s
		plain := s != "" && !strings.ContainsFunc(s, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./:=,@%+", r)
		})
		if !plain {
			parts[i] = "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
		}
	}
	return strings.Join(parts, " ")
}
