package cron

import (
	"strings"
	"time"
	_ "time/tzdata" // the zones travel in the binary: minimal containers have none
)

// LoadLocation returns an IANA time zone. "" and "UTC" are UTC. "Local" is refused: a schedule
// must mean the same on every machine. The error is a *ZoneError; for a near miss, an
// abbreviation or the name of a city it suggests the zone that may be meant.
func LoadLocation(name string) (*time.Location, error) {
	switch {
	case name == "" || name == "UTC":
		return time.UTC, nil
	case len(name) > 64:
		return nil, &ZoneError{Name: name[:64], Msg: "is cut here; names have at most 64 bytes"}
	case strings.EqualFold(name, "local"):
		return nil, &ZoneError{Name: name, Msg: "depends on the machine; name the zone, such as Europe/Berlin or UTC"}
	}
	if loc, err := time.LoadLocation(name); err == nil {
		return loc, nil
	}
	return nil, &ZoneError{Name: name, Msg: "is not a known IANA zone, such as Europe/Berlin or UTC", Hint: nearZone(name)}
}

// nearZone returns the well-known zone that name may mean, or "".
func nearZone(name string) string {
	name = strings.ReplaceAll(strings.TrimSpace(name), " ", "_")
	if z := abbreviation(strings.ToUpper(name)); z != "" {
		return z
	}
	best, bestDistance := "", 3
	for z := range strings.FieldsSeq(commonZones) {
		_, city, _ := strings.Cut(z, "/")
		switch {
		case strings.EqualFold(z, name) || strings.EqualFold(city, name):
			return z
		case abs(len(z)-len(name)) < bestDistance:
			if d := distance(strings.ToLower(z), strings.ToLower(name)); d < bestDistance {
				best, bestDistance = z, d
			}
		}
	}
	return best
}

// abbreviation maps the abbreviations that people write and IANA has no zone for.
func abbreviation(s string) string {
	switch s {
	case "PST", "PDT", "PT":
		return "America/Los_Angeles"
	case "MDT", "MT":
		return "America/Denver"
	case "CST", "CDT", "CT":
		return "America/Chicago"
	case "EDT", "ET":
		return "America/New_York"
	case "BST":
		return "Europe/London"
	case "CEST":
		return "Europe/Berlin"
	case "EEST":
		return "Europe/Helsinki"
	case "MSK":
		return "Europe/Moscow"
	case "IST":
		return "Asia/Kolkata"
	case "JST":
		return "Asia/Tokyo"
	case "KST":
		return "Asia/Seoul"
	case "SGT":
		return "Asia/Singapore"
	case "AEST", "AEDT":
		return "Australia/Sydney"
	case "NZST", "NZDT":
		return "Pacific/Auckland"
	case "Z", "UTC+0", "UTC+00:00", "UTC":
		return "UTC"
	}
	return ""
}

const commonZones = `
Africa/Accra Africa/Addis_Ababa Africa/Algiers Africa/Cairo Africa/Casablanca Africa/Dakar
Africa/Johannesburg Africa/Lagos Africa/Nairobi Africa/Tunis
America/Anchorage America/Argentina/Buenos_Aires America/Bogota America/Caracas America/Chicago
America/Costa_Rica America/Denver America/Edmonton America/Halifax America/Havana
America/Guatemala America/La_Paz America/Lima America/Los_Angeles America/Mexico_City
America/Montevideo America/Montreal America/New_York America/Panama America/Phoenix
America/Puerto_Rico America/Regina America/Santiago America/Santo_Domingo America/Sao_Paulo
America/St_Johns America/Toronto America/Vancouver America/Winnipeg
Asia/Almaty Asia/Amman Asia/Baghdad Asia/Baku Asia/Bangkok Asia/Beirut Asia/Colombo Asia/Dhaka
Asia/Dubai Asia/Ho_Chi_Minh Asia/Hong_Kong Asia/Jakarta Asia/Jerusalem Asia/Kabul Asia/Karachi
Asia/Kathmandu Asia/Kolkata Asia/Kuala_Lumpur Asia/Kuwait Asia/Manila Asia/Novosibirsk
Asia/Qatar Asia/Riyadh Asia/Seoul Asia/Shanghai Asia/Singapore Asia/Taipei Asia/Tashkent
Asia/Tbilisi Asia/Tehran Asia/Tokyo Asia/Vladivostok Asia/Yangon Asia/Yekaterinburg Asia/Yerevan
Atlantic/Azores Atlantic/Canary Atlantic/Reykjavik
Australia/Adelaide Australia/Brisbane Australia/Darwin Australia/Hobart Australia/Lord_Howe
Australia/Melbourne Australia/Perth Australia/Sydney
Europe/Amsterdam Europe/Athens Europe/Belgrade Europe/Berlin Europe/Bratislava Europe/Brussels
Europe/Bucharest Europe/Budapest Europe/Copenhagen Europe/Dublin Europe/Helsinki Europe/Istanbul
Europe/Kyiv Europe/Lisbon Europe/Ljubljana Europe/London Europe/Luxembourg Europe/Madrid
Europe/Malta Europe/Minsk Europe/Monaco Europe/Moscow Europe/Oslo Europe/Paris Europe/Prague
Europe/Riga Europe/Rome Europe/Sofia Europe/Stockholm Europe/Tallinn Europe/Vienna Europe/Vilnius
Europe/Warsaw Europe/Zagreb Europe/Zurich
Indian/Maldives Indian/Mauritius
Pacific/Auckland Pacific/Fiji Pacific/Guam Pacific/Honolulu Pacific/Tongatapu
`

// distance is the Levenshtein distance between two short ASCII strings.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

func abs(n int) int {
	return max(n, -n)
}
