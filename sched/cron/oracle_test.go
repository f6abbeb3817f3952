package cron

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The oracle knows nothing of Parse or of spans: it makes expressions together with a predicate
// on clock readings, looks at every tick of a window, and applies the daylight-saving rules to
// what it saw. It is quick and stays close to the code; difftest has a stronger one, which knows nothing of this
// package, and compares with other programs.

// guess is a random expression and what it means.
type guess struct {
	expr    string
	match   func(reading) bool
	day     func(reading) bool // the date alone
	elapsed bool
}

// reading is what a clock on the wall shows.
type reading struct {
	year, month, day, hour, minute, second int
	weekday                                int
}

func read6(t time.Time) reading {
	y, m, d := t.Date()
	h, mi, s := t.Clock()
	return reading{y, int(m), d, h, mi, s, int(t.Weekday())}
}

// randomField makes a field and the set of its values.
func randomField(r *rand.Rand, lo, hi int) (string, map[int]bool) {
	set := map[int]bool{}
	if r.IntN(3) == 0 {
		for v := lo; v <= hi; v++ {
			set[v] = true
		}
		return "*", set
	}
	var parts []string
	for range 1 + r.IntN(3) {
		a := lo + r.IntN(hi-lo+1)
		b := a + r.IntN(hi-a+1)
		step := 1 + r.IntN(hi-lo+1)
		switch r.IntN(5) {
		case 0:
			parts, a, b = append(parts, fmt.Sprintf("*/%d", step)), lo, hi
		case 1:
			parts, b = append(parts, fmt.Sprintf("%d/%d", a, step)), hi
		case 2:
			parts, step = append(parts, fmt.Sprintf("%d-%d", a, b)), 1
		case 3:
			parts = append(parts, fmt.Sprintf("%d-%d/%d", a, b, step))
		default:
			parts, b = append(parts, strconv.Itoa(a)), a
		}
		for v := a; v <= b; v += step {
			set[v] = true
		}
	}
	return strings.Join(parts, ","), set
}

// randomGuess makes an expression of 5 or 6 fields. Dates are wide enough to fire often when
// wide is set.
func randomGuess(r *rand.Rand, seconds, wide bool) guess {
	sec, secs := "", map[int]bool{0: true}
	if seconds {
		sec, secs = randomField(r, 0, 59)
		sec += " "
	}
	minute, minutes := randomField(r, 0, 59)
	hour, hours := randomField(r, 0, 23)
	dom, doms := randomField(r, 1, 31)
	mon, mons := randomField(r, 1, 12)
	dow, dows := randomField(r, 0, 6)
	byDom := func(c reading) bool { return doms[c.day] }
	byDow := func(c reading) bool { return dows[c.weekday] }
	if wide {
		mon = "*"
		for m := range 13 {
			mons[m] = true
		}
		if r.IntN(2) == 0 {
			dom, byDom = "*", func(reading) bool { return true }
			dow, byDow = "*", func(reading) bool { return true }
		}
	} else {
		if r.IntN(2) == 0 {
			dom, byDom = randomDom(r)
		}
		if r.IntN(2) == 0 {
			dow, byDow = randomDow(r)
		}
	}
	and := strings.HasPrefix(dom, "*") || strings.HasPrefix(dow, "*")
	day := func(c reading) bool {
		switch {
		case !mons[c.month]:
			return false
		case and:
			return byDom(c) && byDow(c)
		}
		return byDom(c) || byDow(c)
	}
	return guess{
		expr:    fmt.Sprintf("%s%s %s %s %s %s", sec, minute, hour, dom, mon, dow),
		elapsed: strings.HasPrefix(minute, "*") || strings.HasPrefix(hour, "*"),
		day:     day,
		match: func(c reading) bool {
			return secs[c.second] && minutes[c.minute] && hours[c.hour] && day(c)
		},
	}
}

func monthLength(c reading) int {
	return time.Date(c.year, time.Month(c.month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// isWorkday reports whether a day of c's month is Monday to Friday.
func isWorkday(c reading, day int) bool {
	wd := time.Date(c.year, time.Month(c.month), day, 0, 0, 0, 0, time.UTC).Weekday()
	return wd != time.Saturday && wd != time.Sunday
}

func randomDom(r *rand.Rand) (string, func(reading) bool) {
	n := 1 + r.IntN(31)
	switch r.IntN(4) {
	case 0:
		return "L", func(c reading) bool { return c.day == monthLength(c) }
	case 1:
		n := min(n, 30)
		return fmt.Sprintf("L-%d", n), func(c reading) bool { return c.day == monthLength(c)-n }
	case 2:
		return "LW", func(c reading) bool {
			last := monthLength(c)
			for !isWorkday(c, last) {
				last--
			}
			return c.day == last
		}
	}
	return fmt.Sprintf("%dW", n), func(c reading) bool {
		length := monthLength(c)
		if n > length {
			return false
		}
		for _, off := range []int{0, -1, 1, -2, 2} { // nearest first
			if d := n + off; d >= 1 && d <= length && isWorkday(c, d) {
				return c.day == d
			}
		}
		return false
	}
}

func randomDow(r *rand.Rand) (string, func(reading) bool) {
	wd, n := r.IntN(8), 1+r.IntN(5)
	if r.IntN(2) == 0 {
		return fmt.Sprintf("%dL", wd), func(c reading) bool {
			return c.weekday == wd%7 && c.day+7 > monthLength(c)
		}
	}
	return fmt.Sprintf("%d#%d", wd, n), func(c reading) bool {
		return c.weekday == wd%7 && (c.day-1)/7+1 == n
	}
}

// window is a stretch of time with every clock reading in it.
type window struct {
	from    int64 // Unix seconds of the first tick
	tick    int64
	read    []reading
	offsets []int64
	before  []bool // the same reading comes within 3 hours before this tick
	after   []bool // … or after it
	end     int    // instants are asked for in [lead, end); the rest is context
}

const longShift = 3 * 3600 // from here on a shift is a correction

const lead = 4 * 3600 // seconds of context on each side: more than the longest shift that counts

func newWindow(loc *time.Location, around time.Time, tick int64, width time.Duration) window {
	w := window{from: around.Add(-width/2).Unix()/60*60 - lead, tick: tick}
	n := int((int64(width.Seconds()) + 2*lead) / tick)
	w.before, w.after = make([]bool, n), make([]bool, n)
	latest := map[int64]int{} // clock reading -> tick
	for i := range n {
		t := time.Unix(w.from+int64(i)*tick, 0).In(loc)
		_, off := t.Zone()
		w.read, w.offsets = append(w.read, read6(t)), append(w.offsets, int64(off))
		shown := t.Unix() + int64(off)
		if k, ok := latest[shown]; ok && int64(i-k)*tick < longShift {
			w.before[i], w.after[k] = true, true
		}
		latest[shown] = i
	}
	w.end = n - int(lead/tick)
	return w
}

// instants applies the rules tick by tick.
func (w window) instants(g guess, gap GapPolicy, overlap OverlapPolicy) []int64 {
	var out []int64
	for i := int(lead / w.tick); i < w.end; i++ {
		fire := g.match(w.read[i])
		if fire {
			switch {
			case overlap == OverlapBoth || overlap == OverlapDefault && g.elapsed:
			case overlap == OverlapSecond:
				fire = !w.after[i]
			default:
				fire = !w.before[i]
			}
		}
		if ahead := w.offsets[i] - w.offsets[i-1]; !fire && ahead > 0 && ahead < longShift && !g.elapsed && gap != GapSkip {
			before := time.Unix(w.from+int64(i)*w.tick+w.offsets[i-1], 0).UTC()
			for k := int64(0); k < ahead; k += w.tick {
				fire = fire || g.match(read6(before.Add(time.Duration(k)*time.Second)))
			}
		}
		if fire {
			out = append(out, w.from+int64(i)*w.tick)
		}
	}
	return out
}

// transitions lists the instants at which a zone's offset changes.
func transitions(loc *time.Location, fromYear, toYear int) []time.Time {
	var out []time.Time
	at := time.Date(fromYear, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, off := at.In(loc).Zone(); at.Year() < toYear; at = at.Add(6 * time.Hour) {
		if _, now := at.In(loc).Zone(); now != off {
			exact := at
			for _, o := exact.Add(-time.Minute).In(loc).Zone(); o == now; _, o = exact.Add(-time.Minute).In(loc).Zone() {
				exact = exact.Add(-time.Minute)
			}
			out, off = append(out, exact), now
		}
	}
	return out
}

var oracleZones = []string{
	"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago",
	"Africa/Cairo", "Europe/Dublin", "Africa/Casablanca", "Antarctica/Casey", "Antarctica/Troll",
	"Pacific/Apia", "Asia/Pyongyang", "America/Caracas", "America/St_Johns", "Asia/Kathmandu",
}

func TestAgainstOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	gaps := []GapPolicy{"", GapRunAfter, GapSkip}
	overlaps := []OverlapPolicy{"", OverlapFirst, OverlapSecond, OverlapBoth}
	compared := 0
	for _, name := range oracleZones {
		loc, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		around := transitions(loc, 2010, 2030)
		r.Shuffle(len(around), func(i, j int) { around[i], around[j] = around[j], around[i] })
		around = append(around[:min(len(around), 5)], time.Date(2040, 12, 31, 12, 0, 0, 0, time.UTC))
		for _, at := range around {
			minutes := newWindow(loc, at, 60, 48*time.Hour)
			seconds := newWindow(loc, at, 1, 2*time.Hour)
			for i := range 36 {
				w, fine := minutes, i%12 == 0
				if fine {
					w = seconds
				}
				g := randomGuess(r, fine, true)
				compare(t, g, w, Options{Location: loc, Gap: gaps[r.IntN(3)], Overlap: overlaps[max(0, r.IntN(8)-4)]})
				compared++
			}
			if t.Failed() {
				return
			}
		}
	}
	if compared < 2000 {
		t.Errorf("only %d comparisons", compared)
	}
}

// compare asks a schedule for everything in the window, forwards, backwards and by number.
func compare(t *testing.T, g guess, w window, o Options) {
	t.Helper()
	where := fmt.Sprintf("%q in %s, gap %q, overlap %q, from %s", g.expr, o.Location, o.Gap, o.Overlap, time.Unix(w.from, 0).In(o.Location))
	s, err := Parse(g.expr, o)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	want := w.instants(g, o.Gap, o.Overlap)
	after := time.Unix(w.from+lead-1, 0)
	through := time.Unix(w.from+int64(w.end)*w.tick-1, 0)
	var forward, back []int64
	for at := s.Next(after); !at.IsZero() && !at.After(through); at = s.Next(at) {
		forward = append(forward, at.Unix())
	}
	for at := s.Prev(through); !at.IsZero() && at.After(after); at = s.Prev(at.Add(-1)) {
		back = append(back, at.Unix())
	}
	slices.Reverse(back)
	if !slices.Equal(forward, want) {
		t.Errorf("%s: Next differs from the oracle: %s", where, firstDifference(forward, want, o.Location))
	}
	if !slices.Equal(back, want) {
		t.Errorf("%s: Prev differs from the oracle: %s", where, firstDifference(back, want, o.Location))
	}
	if n := s.Count(after, through); n != int64(len(want)) {
		t.Errorf("%s: Count = %d, want %d", where, n, len(want))
	}
}

func firstDifference(got, want []int64, loc *time.Location) string {
	at := func(list []int64, i int) string {
		if i >= len(list) {
			return "nothing"
		}
		return time.Unix(list[i], 0).In(loc).Format(time.RFC3339)
	}
	for i := range max(len(got), len(want)) {
		if at(got, i) != at(want, i) {
			return fmt.Sprintf("instant %d is %s, want %s", i+1, at(got, i), at(want, i))
		}
	}
	return "none"
}

// TestDaysAgainstOracle compares the day rules over years, one instant a day at most.
func TestDaysAgainstOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 400 {
		g := randomGuess(r, false, false)
		g.expr = "0 12 " + strings.Join(strings.Fields(g.expr)[2:], " ")
		s, err := Parse(g.expr, Options{})
		day := time.Date(1999, 12, 1, 12, 0, 0, 0, time.UTC)
		first, end := day.Add(-1), day.AddDate(9, 0, 0)
		var want []time.Time
		for ; day.Before(end); day = day.AddDate(0, 0, 1) {
			if g.day(read6(day)) {
				want = append(want, day)
			}
		}
		if err != nil {
			if len(want) > 0 {
				t.Errorf("%q: %v, but the oracle has %s", g.expr, err, want[0])
			}
			continue
		}
		at := first
		for _, w := range want {
			if at = s.Next(at); !at.Equal(w) {
				t.Fatalf("%q: got %s, want %s", g.expr, at, w)
			}
		}
		if n := s.Count(first, end.Add(-1)); n != int64(len(want)) {
			t.Errorf("%q: Count = %d, want %d", g.expr, n, len(want))
		}
		at = end
		for _, w := range slices.Backward(want) {
			if at = s.Prev(at.Add(-1)); !at.Equal(w) {
				t.Fatalf("%q: Prev gives %s, want %s", g.expr, at, w)
			}
		}
	}
}
