package cron

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The shortest and the longest interval that ParseInterval accepts.
const (
	MinInterval = time.Second
	MaxInterval = 3650 * day
)

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// Every returns the schedule with the instants anchor + k*interval for k >= 0, so anchor itself
// is the first. Both are cut to whole microseconds. Instants carry anchor's location. An interval
// under a microsecond has no instants.
func Every(interval time.Duration, anchor time.Time) Schedule {
	e := every{step: interval.Microseconds(), loc: anchor.Location()}
	if e.step < 1 || anchor.Unix() < minUnix || anchor.Unix() > maxUnix {
		return every{}
	}
	e.anchor = anchor.UnixMicro()
	return e
}

// every counts in microseconds since the Unix epoch. A step of 0 means no instants.
type every struct {
	step, anchor int64
	loc          *time.Location
}

func (e every) Next(after time.Time) time.Time {
	if e.step == 0 || after.Unix() > maxUnix {
		return time.Time{}
	}
	t := e.anchor
	if after.Unix() >= minUnix {
		if a := after.UnixMicro(); a >= e.anchor {
			t += ((a-e.anchor)/e.step + 1) * e.step
		}
	}
	return e.at(t)
}

func (e every) Prev(through time.Time) time.Time {
	n := e.upTo(through)
	if n == 0 {
		return time.Time{}
	}
	return e.at(e.anchor + (n-1)*e.step)
}

func (e every) Count(after, through time.Time) int64 {
	return max(0, e.upTo(through)-e.upTo(after))
}

// upTo returns how many instants are at or before t.
func (e every) upTo(t time.Time) int64 {
	if e.step == 0 || t.Unix() < minUnix {
		return 0
	}
	us := int64(maxUnix)*1e6 + 999_999
	if t.Unix() <= maxUnix {
		us = t.UnixMicro()
	}
	if us < e.anchor {
		return 0
	}
	return (us-e.anchor)/e.step + 1
}

func (e every) at(us int64) time.Time {
	if us > int64(maxUnix)*1e6+999_999 {
		return time.Time{}
	}
	return time.UnixMicro(us).In(e.loc)
}

// iso is the part of ISO 8601 durations that has a fixed length: weeks, days, hours, minutes and
// seconds.
var iso = regexp.MustCompile(`^P(\d+W)?(\d+D)?(?:T(\d+H)?(\d+M)?(\d+(?:\.\d+)?S)?)?$`)

// ParseInterval reads an interval of 1 second to 3650 days: a Go duration (`90s`, `1h30m`), which
// may begin with weeks and days (`1d`, `2w`, `1d12h`), or ISO 8601 (`PT3H`, `P1D`, `P2W`). A day
// is 24 hours. Months and years are refused: they have no fixed length.
func ParseInterval(s string) (time.Duration, error) {
	const want = "must be like 90s, 1h30m, 1d, 2w or PT3H"
	if len(s) > 64 {
		return 0, fmt.Errorf("interval has %d bytes, the limit is 64; it %s", len(s), want)
	}
	text := s
	if upper := strings.ToUpper(s); strings.HasPrefix(upper, "P") {
		date, _, _ := strings.Cut(upper, "T")
		parts := iso.FindStringSubmatch(upper)
		switch {
		case parts == nil && strings.ContainsAny(date, "YM"):
			return 0, fmt.Errorf("interval %q: months and years have no fixed length; use days, as in P30D, or a cron expression", s)
		case parts == nil:
			return 0, fmt.Errorf("interval %q %s", s, want)
		}
		text = strings.ToLower(strings.Join(parts[1:], ""))
	}
	d, ok := sumUnits(text)
	switch {
	case !ok && bare(s):
		return 0, fmt.Errorf("interval %q needs a unit: write %ss for seconds", s, s)
	case !ok:
		return 0, fmt.Errorf("interval %q %s", s, want)
	case d < MinInterval:
		return 0, fmt.Errorf("interval %q is too short: the shortest is 1s", s)
	case d > MaxInterval:
		return 0, fmt.Errorf("interval %q is too long: the longest is 3650d", s)
	case d%time.Microsecond != 0:
		return 0, fmt.Errorf("interval %q is finer than a microsecond", s)
	}
	return d, nil
}

// sumUnits adds up leading weeks, then days, then a Go duration. A sum that would overflow comes
// back as more than MaxInterval.
func sumUnits(s string) (time.Duration, bool) {
	var total time.Duration
	rest := s
	for _, u := range []struct {
		suffix string
		length time.Duration
	}{{"w", week}, {"d", day}} {
		n, after, found := strings.Cut(rest, u.suffix)
		if !found {
			continue
		}
		count, ok := number(n)
		if !ok {
			return 0, false
		}
		total += time.Duration(count) * u.length // at most 9999 weeks
		rest = after
	}
	if rest == "" {
		return total, s != ""
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 && total > 0 {
		return 0, false
	}
	return min(d, MaxInterval+1) + total, true
}

// bare reports whether s is a number without a unit.
func bare(s string) bool {
	_, err := strconv.ParseUint(s, 10, 32)
	return err == nil
}
