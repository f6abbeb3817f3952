package calendar

import (
	"fmt"
	"strings"
	"time"

	"dts/sched/cron"
)

// zones finds the IANA zone that a file means by a TZID. The rules in its VTIMEZONE blocks are not followed: they are
// often cut to the years of the file, or wrong, and IANA's zone of the same name is what was meant.
type zones struct {
	floating *time.Location            // of times without a TZID
	blocks   map[string]*component     // VTIMEZONE by TZID
	known    map[string]*time.Location // by TZID, those that were asked for
}

// maxZones is how many time zones a file may name; finding one costs milliseconds.
const maxZones = 100

func newZones(root *component, floating *time.Location) *zones {
	z := &zones{floating: floating, blocks: map[string]*component{}, known: map[string]*time.Location{}}
	for _, cal := range root.inside {
		for _, c := range cal.inside {
			if id := c.first("TZID"); c.name == "VTIMEZONE" && id != nil {
				z.blocks[id.value] = c
			}
		}
	}
	return z
}

// load returns the zone of a TZID.
func (z *zones) load(id string) (*time.Location, error) {
	if loc := z.known[id]; loc != nil {
		return loc, nil
	}
	if len(z.known) == maxZones {
		return nil, fmt.Errorf("the file names more than %d time zones, the limit", maxZones)
	}
	loc := z.find(id)
	if loc == nil {
		return nil, fmt.Errorf("the time zone %.64q is not known, and no zone has the rules that the file gives for it; use an IANA name such as Europe/Berlin", id)
	}
	z.known[id] = loc
	return loc, nil
}

func (z *zones) find(id string) *time.Location {
	if loc := zoneNamed(id); loc != nil {
		return loc
	}
	block := z.blocks[id]
	if block == nil {
		return nil
	}
	if hint := block.first("X-LIC-LOCATION"); hint != nil {
		if loc := zoneNamed(hint.value); loc != nil {
			return loc
		}
	}
	return zoneLike(block)
}

// zoneNamed returns the zone of an IANA name, of Windows' name for one, or of a path that ends in an IANA name, as in
// /freeassociation.sourceforge.net/Europe/Berlin; nil when there is none.
func zoneNamed(name string) *time.Location {
	name = strings.TrimSpace(name)
	if strings.EqualFold(name, "tzone://Microsoft/Utc") || strings.EqualFold(name, "Z") || strings.EqualFold(name, "GMT") {
		return time.UTC
	}
	if name == "" {
		return nil
	}
	if loc, err := cron.LoadLocation(name); err == nil {
		return loc
	}
	for line := range strings.SplitSeq(windowsZones, "\n") {
		if windows, iana, ok := strings.Cut(line, "="); ok && strings.EqualFold(windows, name) {
			if loc, err := cron.LoadLocation(iana); err == nil {
				return loc
			}
		}
	}
	parts := strings.Split(name, "/")
	for _, n := range []int{3, 2} {
		if len(parts) <= n {
			continue
		}
		if loc, err := cron.LoadLocation(strings.Join(parts[len(parts)-n:], "/")); err == nil {
			return loc
		}
	}
	return nil
}

// zoneLike returns a zone whose clock does what a VTIMEZONE says, for the names that Outlook makes up ("Customized Time
// Zone") or takes from its menu ("(UTC+01:00) Amsterdam, Berlin, Bern"): the same offsets, in the same months; nil when
// there is none. A single offset is a zone of its own.
func zoneLike(block *component) *time.Location {
	standard, ok := newestRule(block, "STANDARD")
	if !ok {
		return nil
	}
	daylight, changes := newestRule(block, "DAYLIGHT")
	if !changes || daylight.offset == standard.offset {
		name := time.Unix(0, 0).In(time.FixedZone("", standard.offset)).Format("UTC-07:00")
		return time.FixedZone(name, standard.offset)
	}
	const year = 2025 // rules as they are; blocks have the newest last
	for line := range strings.SplitSeq(windowsZones, "\n") {
		_, iana, ok := strings.Cut(line, "=")
		if !ok {
			continue
		}
		if loc, err := cron.LoadLocation(iana); err == nil && changesTo(loc, year, daylight) && changesTo(loc, year, standard) {
			return loc
		}
	}
	return nil
}

// zoneRule is what one part of a VTIMEZONE says: from a month on, an offset.
type zoneRule struct {
	start  string
	month  time.Month
	offset int // seconds east of UTC
}

// newestRule returns the rule of the part with the latest DTSTART.
func newestRule(block *component, part string) (newest zoneRule, ok bool) {
	for _, c := range block.inside {
		start, to := c.first("DTSTART"), c.first("TZOFFSETTO")
		if c.name != part || start == nil || to == nil {
			continue
		}
		t, err := time.Parse("20060102T150405", strings.TrimSuffix(start.value, "Z"))
		offset, valid := parseOffset(to.value)
		if err != nil || !valid || ok && start.value < newest.start {
			continue
		}
		newest, ok = zoneRule{start.value, t.Month(), offset}, true
		if rule := c.first("RRULE"); rule != nil {
			for part := range strings.SplitSeq(rule.value, ";") {
				if m, isMonth := strings.CutPrefix(part, "BYMONTH="); isMonth {
					if t, err := time.Parse("1", m); err == nil {
						newest.month = t.Month()
					}
				}
			}
		}
	}
	return newest, ok
}

// parseOffset reads +0100 or -053000.
func parseOffset(s string) (seconds int, ok bool) {
	layout := "-0700"
	if len(s) == len("-070000") {
		layout = "-070000"
	}
	t, err := time.Parse(layout, s)
	if err != nil {
		return 0, false
	}
	_, seconds = t.Zone()
	return seconds, true
}

// changesTo reports whether the clock of a zone changes to a rule's offset in its month of a year.
func changesTo(loc *time.Location, year int, r zoneRule) bool {
	month := time.Date(year, r.month, 1, 0, 0, 0, 0, loc)
	_, before := month.Zone()
	_, after := month.AddDate(0, 1, 0).Zone()
	return before != r.offset && after == r.offset
}
