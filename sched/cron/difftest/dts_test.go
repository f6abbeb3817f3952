package difftest

import (
	"maps"
	"slices"
	"testing"
	"time"

	"dts/sched/cron"
)

func sortedKeys(m map[string]int) []string { return slices.Sorted(maps.Keys(m)) }

// parse reads a question's expression; once in a while the zone is in the expression. ok is false for a date that
// never comes.
func parse(t *testing.T, q question, o cron.Options) (s cron.Schedule, ok bool) {
	t.Helper()
	expr := q.spec.String()
	o.Location = q.zone.loc
	if q.start.Unix()%7 == 0 {
		expr, o.Location = "CRON_TZ="+q.zone.name+" "+expr, nil
	}
	s, err := cron.Parse(expr, o)
	if err == nil {
		return s, true
	}
	r := dtsRules(q.spec)
	w := newWatch(q.spec, q.zone, r)
	for n := int64(0); n < 400*366; n++ {
		if w.day(n) {
			t.Errorf("%q is refused: %v; but it comes on %s", expr, err, time.Unix(n*86400, 0).UTC().Format(time.DateOnly))
			break
		}
	}
	return nil, false
}

// ours is what dts answers.
func ours(s cron.Schedule, q question) []int64 {
	var out []int64
	for at := s.Next(q.start); !at.IsZero() && at.Unix() <= q.until && len(out) < q.count; at = s.Next(at) {
		out = append(out, at.Unix())
	}
	return out
}

// TestOracle compares Next, Prev and Count with brute force, under every policy.
func TestOracle(t *testing.T) {
	n, seed := cases(t)
	a, c := newAsker(t, seed, 1910, 2140), newTally()
	for c.total < n && c.bad < 20 {
		q := a.ask()
		r := dtsRules(q.spec)
		r.gap = []string{"", "", "RUN_AFTER", "SKIP"}[a.r.IntN(4)]
		r.overlap = []string{"", "", "", "FIRST", "SECOND", "BOTH"}[a.r.IntN(6)]
		s, ok := parse(t, q, cron.Options{Gap: cron.GapPolicy(r.gap), Overlap: cron.OverlapPolicy(r.overlap)})
		if !ok {
			continue
		}
		c.total++
		want := newWatch(q.spec, q.zone, r).next(q.start, q.until, q.count)
		got := ours(s, q)
		if !slices.Equal(got, want) {
			t.Logf("gap %q, overlap %q", r.gap, r.overlap)
			c.unexplained(t, q, got, want)
			continue
		}
		c.same++
		checkBack(t, s, q, want)
	}
	c.print(t, "brute force")
}

// checkBack asks for the same instants with Prev and Count.
func checkBack(t *testing.T, s cron.Schedule, q question, want []int64) {
	t.Helper()
	through := time.Unix(q.until, 0)
	if len(want) == q.count {
		through = time.Unix(want[len(want)-1], 0)
	}
	if n := s.Count(q.start, through); n != int64(len(want)) {
		t.Errorf("%s: Count until %s is %d, want %d", q, through.In(q.zone.loc), n, len(want))
	}
	at := through
	for _, w := range slices.Backward(want) {
		p := s.Prev(at)
		if p.Unix() != w {
			t.Errorf("%s: Prev(%s) is %s, want %s", q, at.In(q.zone.loc), p.In(q.zone.loc), time.Unix(w, 0).In(q.zone.loc))
			return
		}
		at = p.Add(-time.Nanosecond)
	}
	if p := s.Prev(at); !p.IsZero() && p.After(q.start) {
		t.Errorf("%s: Prev(%s) is %s, but none is left", q, at.In(q.zone.loc), p.In(q.zone.loc))
	}
}
