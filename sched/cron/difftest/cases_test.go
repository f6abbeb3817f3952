package difftest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	_ "time/tzdata"
)

// zoneNames are zones that change by an hour, by half an hour, by two, at midnight, across midnight, by a whole day,
// with a negative daylight-saving time, without any, by 44 minutes and 30 seconds, and by 20 seconds and less.
var zoneNames = []string{
	"UTC", "Europe/Berlin", "Europe/London", "Europe/Dublin", "Europe/Amsterdam", "Europe/Moscow", "Europe/Istanbul", "Europe/Lisbon",
	"America/New_York", "America/Chicago", "America/Los_Angeles", "America/St_Johns", "America/Santiago", "America/Sao_Paulo",
	"America/Havana", "America/Caracas", "America/Asuncion", "America/Nuuk", "America/Scoresbysund", "America/Metlakatla",
	"America/Phoenix", "America/Mexico_City", "America/Argentina/San_Luis", "America/Godthab",
	"Africa/Cairo", "Africa/Casablanca", "Africa/Monrovia", "Africa/Juba", "Africa/Tripoli",
	"Asia/Beirut", "Asia/Amman", "Asia/Damascus", "Asia/Gaza", "Asia/Jerusalem", "Asia/Tehran", "Asia/Kolkata", "Asia/Kathmandu",
	"Asia/Pyongyang", "Asia/Tokyo", "Asia/Shanghai", "Asia/Kuala_Lumpur", "Asia/Anadyr", "Asia/Famagusta",
	"Australia/Lord_Howe", "Australia/Sydney", "Australia/Adelaide", "Australia/Eucla",
	"Pacific/Apia", "Pacific/Auckland", "Pacific/Chatham", "Pacific/Easter", "Pacific/Kwajalein", "Pacific/Enderbury",
	"Pacific/Norfolk", "Pacific/Tongatapu", "Pacific/Fiji",
	"Antarctica/Casey", "Antarctica/Troll", "Antarctica/Vostok", "Antarctica/Macquarie", "Atlantic/Azores", "Indian/Maldives",
}

// zone is a zone and the instants at which its clock is changed.
type zone struct {
	name     string
	loc      *time.Location
	changes  []int64
	unusual  []int64 // those of them that are not by half an hour, one or two
	oddUntil int64   // from here on, its clock is whole minutes ahead of UTC
}

func (z *zone) offset(t int64) int64 {
	_, o := time.Unix(t, 0).In(z.loc).Zone()
	return int64(o)
}

// loadZones finds the changes by looking at the clock every six hours.
var loadZones = sync.OnceValues(func() ([]*zone, error) {
	var list []*zone
	for _, name := range zoneNames {
		loc, err := time.LoadLocation(name)
		if err != nil {
			return nil, err
		}
		z := &zone{name: name, loc: loc, oddUntil: -1 << 62}
		const step = 6 * 3600
		from := time.Date(1905, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
		to := time.Date(2150, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
		for t := from; t < to; t += step {
			if z.offset(t)%60 != 0 {
				z.oddUntil = t + 2*step
			}
			if z.offset(t) == z.offset(t+step) {
				continue
			}
			lo, hi := t, t+step
			for hi-lo > 1 {
				if mid := (lo + hi) / 2; z.offset(mid) == z.offset(lo) {
					lo = mid
				} else {
					hi = mid
				}
			}
			z.changes = append(z.changes, hi)
			switch shift := z.offset(hi) - z.offset(lo); shift {
			case 1800, 3600, 7200, -1800, -3600, -7200:
			default:
				z.unusual = append(z.unusual, hi)
			}
		}
		list = append(list, z)
	}
	return list, nil
})

// question is one thing to compare: what comes after start.
type question struct {
	spec  *spec
	zone  *zone
	start time.Time
	until int64
	count int
}

func (q question) String() string {
	return fmt.Sprintf("%q in %s after %s", q.spec, q.zone.name, q.start.In(q.zone.loc).Format(time.RFC3339Nano))
}

// asker makes questions.
type asker struct {
	r          *rand.Rand
	zones      []*zone
	from, to   int64 // the years that the other knows
	wholeStart bool  // starts are whole seconds
}

func newAsker(t *testing.T, seed uint64, fromYear, toYear int) *asker {
	t.Helper()
	zones, err := loadZones()
	if err != nil {
		t.Fatal(err)
	}
	return &asker{r: rand.New(rand.NewPCG(seed, 1)), zones: zones, from: time.Date(fromYear, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), to: time.Date(toYear, 1, 1, 0, 0, 0, 0, time.UTC).Unix()}
}

// place chooses a zone and an instant: most are near a change of the clock, which is returned too, and many of these
// near an unusual one.
func (a *asker) place() (z *zone, start time.Time, change int64) {
	z = a.zones[a.r.IntN(len(a.zones))]
	at := a.from + a.r.Int64N(a.to-a.from)
	switch n := a.r.IntN(10); {
	case n < 7 && len(z.changes) > 0:
		list := z.changes
		if len(z.unusual) > 0 && a.r.IntN(2) == 0 {
			list = z.unusual
		}
		for range 20 {
			if c := list[a.r.IntN(len(list))]; c-26*3600 >= a.from && c < a.to {
				at, change = c-26*3600+a.r.Int64N(30*3600), c
				break
			}
		}
	case n == 7: // the last day of a year, often a leap year past the tables of most zones
		at = time.Date(2036+4*a.r.IntN(16)+a.r.IntN(2), 12, 30+a.r.IntN(2), a.r.IntN(24), 0, 0, 0, time.UTC).Unix()
	}
	if a.r.IntN(3) > 0 {
		at = floor(at, 900) * 900
	}
	at = min(max(at, a.from), a.to)
	if a.r.IntN(4) == 0 && !a.wholeStart {
		return z, time.Unix(at, a.r.Int64N(1e9)), change
	}
	return z, time.Unix(at, 0), change
}

// spec makes an expression, half of the time one whose minutes and hours are lost or come twice at the change.
func (a *asker) spec(z *zone, change int64, six, rare bool) *spec {
	s := randomSpec(a.r, six, rare)
	if change == 0 || s.nick != "" || a.r.IntN(2) == 0 {
		return s
	}
	from, to := change+z.offset(change-1), change+z.offset(change)
	if from > to {
		from, to = to, from
	}
	value := func(f int, v int64) part {
		return part{form: value, lo: int(v), hi: int(v), step: 1, text: write(a.r, f, int(v))}
	}
	reading := from + a.r.Int64N(to-from)
	s.fields[minute] = []part{value(minute, floor(reading, 60)-floor(reading, 3600)*60)}
	s.fields[hour] = []part{value(hour, floor(reading, 3600)-floor(reading, 86400)*24)}
	switch end := to - floor(to, 86400)*86400; a.r.IntN(4) {
	case 0: // also at the end
		s.fields[minute] = append(s.fields[minute], value(minute, end/60%60))
		s.fields[hour] = append(s.fields[hour], value(hour, end/3600))
	case 1:
		s.fields[minute] = []part{{form: star, lo: 0, hi: 59, step: 7, text: "*/7"}}
	case 2:
		s.fields[hour] = []part{{form: star, lo: 0, hi: 23, step: 1, text: "*"}}
	}
	if a.r.IntN(4) > 0 {
		for _, f := range []int{dom, month, dow} {
			s.fields[f] = []part{wildcard(a.r, f)}
		}
	}
	return s.finish()
}

// ask makes a question: most about minutes and days, some about seconds, some about years.
func (a *asker) ask() question {
	z, start, change := a.place()
	six := a.r.IntN(8) == 0
	rare := a.r.IntN(4) == 0 && start.Unix() >= z.oddUntil
	q := question{spec: a.spec(z, change, six, rare), zone: z, start: start, count: 6, until: start.Unix() + 40*86400}
	switch {
	case six || start.Unix() < z.oddUntil:
		q.until = start.Unix() + 3*86400
	case rare:
		q.until = start.Unix() + 9*366*86400
	}
	return q
}

// cases is how many cases there are, and the seed. Of a run that nothing was said about the cases are few and the same.
func cases(t *testing.T) (n int, seed uint64) {
	t.Helper()
	n, seed = 1000, 1
	if testing.Short() {
		n = 100
	}
	if text := os.Getenv("DTS_DIFF_CASES"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 {
			t.Fatalf("DTS_DIFF_CASES is %q; it must be a number", text)
		}
	}
	switch text := os.Getenv("DTS_DIFF_FROM"); text {
	case "":
	case "random":
		seed = rand.Uint64()
	default:
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("DTS_DIFF_FROM is %q; it must be a number or random", text)
		}
	}
	t.Logf("%d cases from seed %d", n, seed)
	return n, seed
}

// missing skips a comparison for want of a tool, or fails where DTS_REQUIRE_DIFF says so.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("DTS_REQUIRE_DIFF") != "" {
		t.Fatalf("NOT COMPARED: %s", what)
	}
	t.Skipf("NOT COMPARED: %s", what)
}

// tally counts what a comparison came to.
type tally struct {
	total, same int
	rules       map[string]int
	bad         int
}

func newTally() *tally { return &tally{rules: map[string]int{}} }

func (c *tally) print(t *testing.T, with string) {
	t.Helper()
	t.Logf("%9d comparisons with %s", c.total, with)
	t.Logf("%9d the same", c.same)
	for _, name := range sortedKeys(c.rules) {
		t.Logf("%9d differ: %s", c.rules[name], name)
	}
	t.Logf("%9d differ, and no rule says why", c.bad)
}

// unexplained reports a difference, up to twenty of them.
func (c *tally) unexplained(t *testing.T, q question, ours, theirs []int64) {
	t.Helper()
	if c.bad++; c.bad <= 20 {
		t.Errorf("%s:\n dts  %s\n they %s", q, show(ours, q.zone), show(theirs, q.zone))
	}
}

func show(list []int64, z *zone) string {
	s := ""
	for _, t := range list {
		s += " " + time.Unix(t, 0).In(z.loc).Format(time.RFC3339)
	}
	return s
}
