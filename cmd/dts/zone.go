package main

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"dts/sched/cron"
)

// machineZone returns the IANA name of the machine's zone as crond and the C library find it: TZ, then
// timezone in etc (Debian), then where the link localtime in etc points. "" means that none of them has one.
func machineZone(getenv func(string) string, etc string) string {
	if tz := strings.TrimPrefix(getenv("TZ"), ":"); tz != "" {
		return usable(tz)
	}
	if b, err := readFile(filepath.Join(etc, "timezone")); err == nil {
		if z := usable(strings.TrimSpace(string(b))); z != "" {
			return z
		}
	}
	link, err := os.Readlink(filepath.Join(etc, "localtime"))
	if err != nil {
		return ""
	}
	_, name, _ := strings.Cut(link, "/zoneinfo/")
	return usable(name)
}

func usable(name string) string {
	if name == "" {
		return ""
	}
	if _, err := cron.LoadLocation(name); err != nil {
		return ""
	}
	return name
}

// zone is a time zone and why it was taken.
type zone struct {
	name string // "UTC" where nothing else is known
	loc  *time.Location
	why  string // such as "this machine's"; "" when it was given
}

// zoneFor returns the zone that --tz names, or the machine's, or UTC.
func (a *app) zoneFor(given string) (zone, error) {
	z := zone{name: given}
	switch {
	case given != "":
	case a.zone != "":
		z.name, z.why = a.zone, "this machine's"
	default:
		z.name, z.why = "UTC", "this machine's is not known"
	}
	loc, err := cron.LoadLocation(z.name)
	if err != nil {
		return z, usagef("--tz: %s", err)
	}
	z.loc = loc
	return z, nil
}

// String is the zone for people.
func (z zone) String() string {
	if z.why == "" {
		return z.name
	}
	return z.name + " (" + z.why + ")"
}
