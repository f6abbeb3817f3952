package difftest

import (
	"math/bits"
	"slices"
	"strings"
)

// rule is a way in which another scheduler differs from dts: what it changes in what the oracle applies. docs/time.md
// says each in words.
type rule struct {
	name   string
	change func(s *spec, r *rules)
}

// explain finds the fewest rules with which the oracle says what the other one says, and names them. It returns ""
// when even all of them together do not.
func explain(q question, base rules, list []rule, theirs []int64) string {
	var sets []int
	for set := 1; set < 1<<len(list); set++ {
		sets = append(sets, set)
	}
	slices.SortStableFunc(sets, func(a, b int) int { return bits.OnesCount(uint(a)) - bits.OnesCount(uint(b)) })
	if !slices.Equal(predict(q, base, list, len(sets)), theirs) {
		return ""
	}
	for _, set := range sets {
		if slices.Equal(predict(q, base, list, set), theirs) {
			var names []string
			for i, r := range list {
				if set&(1<<i) != 0 {
					names = append(names, r.name)
				}
			}
			return strings.Join(names, " + ")
		}
	}
	return ""
}

// predict is what the oracle says when the rules of a set, a bit for each, are changed.
func predict(q question, base rules, list []rule, set int) []int64 {
	s := *q.spec
	for i := range s.fields {
		s.fields[i] = slices.Clone(s.fields[i])
	}
	r := base
	for i, x := range list {
		if set&(1<<i) != 0 {
			x.change(&s, &r)
		}
	}
	return newWatch(s.finish(), q.zone, r).next(q.start, q.until, q.count)
}

// cronerRules are those of croner with fixedTimeRule "no-wildcard" and sloppyRanges.
var cronerRules = []rule{
	{"a * or a / anywhere in second, minute or hour makes a job follow elapsed time, not only a * at the beginning of minute or hour", func(s *spec, r *rules) {
		r.elapsed = false
		for _, f := range []int{second, minute, hour} {
			if (f > second || s.six) && strings.ContainsAny(text(s.fields[f]), "*/?") {
				r.elapsed = true
			}
		}
	}},
	{"the day fields are ORed unless one is exactly *, not unless one begins with it", func(s *spec, r *rules) {
		plain := func(f int) bool { return text(s.fields[f]) == "*" || text(s.fields[f]) == "?" }
		r.and = plain(dom) || plain(dow)
	}},
	{"a time that is lost in a gap runs at its end only on the same date", func(s *spec, r *rules) { r.sameDay = true }},
	{"a shift of 3 hours or more forwards is a gap too", func(s *spec, r *rules) { r.longGap = 0 }},
	{"a shift of 3 hours backwards is an overlap too", func(s *spec, r *rules) { r.longOverlap = threeHours + 1 }},
	{"of an overlap of more than 3 hours, the first 3 are one, and of the rest only the second pass counts", func(s *spec, r *rules) { r.oneLongPass = true }},
	{"7/n in day-of-week is no day", func(s *spec, r *rules) {
		s.fields[dow] = slices.DeleteFunc(s.fields[dow], func(p part) bool { return p.quirk == sevenStep })
		if len(s.fields[dow]) == 0 {
			s.fields[dow] = []part{{form: value, lo: 9, hi: 9, step: 1}}
		}
	}},
	{"sun at the end of a range is 7 even where 0 begins it", func(s *spec, r *rules) {
		for i := range s.fields[dow] {
			if p := &s.fields[dow][i]; p.quirk == toSunday {
				p.hi = 7
			}
		}
	}},
}

// systemdRules are those of systemd's calendar expressions.
var systemdRules = []rule{
	{"a time that is lost in a gap does not run", func(s *spec, r *rules) { r.gap = "SKIP" }},
	{"what the clock shows only goes forward: nothing runs in the second pass that could have run in the first", func(s *spec, r *rules) {
		r.forward, r.elapsed = true, true
		r.gap = "SKIP"
	}},
}

// cronerRefuses says why croner has no such expression, or "".
func cronerRefuses(s *spec) string {
	var offset, work bool
	for _, p := range s.fields[dom] {
		offset = offset || p.form == last && p.n > 0
		work = work || p.form == lastWork
	}
	switch {
	case offset:
		return "L-n is refused"
	case work && len(s.fields[dom]) > 1:
		return "LW in a list is refused"
	}
	return ""
}
