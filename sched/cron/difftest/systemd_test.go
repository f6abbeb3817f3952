package difftest

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"dts/sched/cron"
)

// onCalendar writes an expression as systemd does. ok is false where systemd cannot say the same: days that are ORed,
// nW, LW, more
// than 28 days from the end of a month, and lists with L or #.
func onCalendar(s *spec) (text string, ok bool) {
	days, weekdays := calendarField(s, dom), ""
	if !s.begins(dom) && !s.begins(dow) {
		return "", false
	}
	day := s.fields[dom][0]
	special := day.form == last || day.form == nearest || day.form == lastWork
	for _, p := range s.fields[dom] {
		if p.form >= last && (len(s.fields[dom]) > 1 || p.n > 27) || p.form == nearest || p.form == lastWork {
			return "", false
		}
	}
	separator := "-"
	if special {
		separator, days = "~", fmt.Sprintf("%02d", day.n+1)
	}
	w := s.fields[dow][0]
	switch {
	case w.form == nth || w.form == lastOf:
		if len(s.fields[dow]) > 1 || days != "*" {
			return "", false
		}
		weekdays = calendarDay(w.lo)
		separator, days = "-", fmt.Sprintf("%d..%d", w.n*7-6, min(w.n*7, 31))
		if w.form == lastOf {
			separator, days = "~", "7/1"
		}
	default:
		var list []string
		for d := range 7 {
			if has(s.fields[dow], dow, d) {
				list = append(list, calendarDay(d))
			}
		}
		for _, p := range s.fields[dow] {
			if p.form >= last {
				return "", false
			}
		}
		if len(list) < 7 {
			weekdays = strings.Join(list, ",")
		}
	}
	return strings.TrimSpace(fmt.Sprintf("%s *-%s%s%s %s:%s:%s", weekdays, calendarField(s, month), separator, days,
		calendarField(s, hour), calendarField(s, minute), calendarField(s, second))), true
}

func calendarDay(d int) string {
	return [...]string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}[d%7]
}

// calendarField writes the plain parts of a field. Steps have an end: systemd counts one that has none past the end of
// the field, and then passes over the first hours of a month or of a day on which the clock is changed.
func calendarField(s *spec, f int) string {
	var list []string
	for _, p := range s.fields[f] {
		switch {
		case p.form == anyDay || p.form == star && p.step == 1:
			return "*"
		case p.lo == p.hi || p.lo+p.step > p.hi: // systemd refuses a step that goes nowhere
			list = append(list, fmt.Sprint(p.lo))
		case p.step == 1:
			list = append(list, fmt.Sprintf("%d..%d", p.lo, p.hi))
		default:
			list = append(list, fmt.Sprintf("%d..%d/%d", p.lo, p.hi, p.step))
		}
	}
	return strings.Join(list, ",")
}

// gaveUp is the answer where systemd says that it cannot determine the next elapse.
var gaveUp = []int64{-1}

// askSystemd asks for what comes after one start, in one zone, for several expressions.
func askSystemd(t *testing.T, program string, z *zone, start time.Time, count int, exprs []string) [][]int64 {
	t.Helper()
	args := []string{"calendar", fmt.Sprintf("--iterations=%d", count), "--base-time=" + start.UTC().Format("2006-01-02 15:04:05.000000") + " UTC"}
	cmd := exec.Command(program, append(args, exprs...)...)
	cmd.Env = []string{"TZ=" + z.name, "LC_ALL=C"}
	out, err := cmd.CombinedOutput()
	if err != nil && strings.Contains(string(out), "Failed to determine next elapse") {
		if len(exprs) == 1 {
			return [][]int64{gaveUp}
		}
		var all [][]int64
		for _, expr := range exprs {
			all = append(all, askSystemd(t, program, z, start, count, []string{expr})...)
		}
		return all
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	var all [][]int64
	for line := range strings.Lines(string(out)) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch {
		case name == "Normalized form":
			all = append(all, nil)
			continue
		case text == "never":
			continue
		case name == "Next elapse" || strings.HasPrefix(name, "Iter. #"):
			all[len(all)-1] = append(all[len(all)-1], 0)
		case name != "(in UTC)":
			continue
		}
		last := &all[len(all)-1][len(all[len(all)-1])-1]
		clock, abbreviation, _ := cutLast(text, " ")
		at, err := time.Parse("Mon 2006-01-02 15:04:05", clock)
		if err != nil {
			t.Fatalf("systemd-analyze printed %q: %v", line, err)
		}
		if name == "(in UTC)" || abbreviation == "UTC" || abbreviation == "GMT" { // the first is left out where the zone is like UTC
			*last = at.Unix()
		}
	}
	if len(all) != len(exprs) {
		t.Fatalf("systemd-analyze answered %d of %d:\n%s", len(all), len(exprs), out)
	}
	return all
}

// changes reports whether the clock is changed between the start of a question and its last instant, or on the day
// after.
func changes(q question, runs []int64) bool {
	to := q.until
	if len(runs) == q.count {
		to = runs[len(runs)-1] + 86400
	}
	return slices.ContainsFunc(q.zone.changes, func(c int64) bool { return c >= q.start.Unix()-86400 && c <= to })
}

// eitherPass reports whether each run shows the reading that is next, in whatever pass, by what the clock shows. Where
// nearChange is set, those near a change of the clock may be left out.
func eitherPass(q question, runs []int64, nearChange bool) bool {
	all := 1<<len(systemdRules) - 1
	q.count = 1
	for _, t := range runs {
		for {
			next := predict(q, dtsRules(q.spec), systemdRules, all)
			if len(next) == 0 {
				return false
			}
			q.start = time.Unix(next[0], 0)
			if next[0]+q.zone.offset(next[0]) == t+q.zone.offset(t) {
				break
			}
			if !nearChange || !q.zone.changesNear(next[0]) {
				return false
			}
		}
		q.start = time.Unix(t, 0)
	}
	return true
}

// changesNear reports whether the clock is changed on the day of t, or less than 3 hours from it.
func (z *zone) changesNear(t int64) bool {
	return slices.ContainsFunc(z.changes, func(c int64) bool {
		return t > c-threeHours && t < c+threeHours || floor(t+z.offset(t), 86400) == floor(c+z.offset(c), 86400)
	})
}

// later reports whether the runs are those that follow a change of the clock, the ones before it left out.
func later(q question, runs []int64) bool {
	if len(runs) == 0 || !changes(q, runs) {
		return false
	}
	q.start = time.Unix(runs[0]-1, 0)
	return eitherPass(q, runs, false)
}

// TestSystemd compares dts with `systemd-analyze calendar`, where a calendar expression can say the same.
func TestSystemd(t *testing.T) {
	program, err := exec.LookPath("systemd-analyze")
	if err != nil {
		missing(t, "systemd, because there is no systemd-analyze in PATH")
	}
	n, seed := cases(t)
	a, c := newAsker(t, seed+2, 1973, 2140), newTally()
	for c.total < n && c.bad < 20 {
		z, start, change := a.place()
		start = start.Truncate(time.Microsecond)
		var qs []question
		var exprs []string
		for len(qs) < 25 {
			q := question{spec: a.spec(z, change, a.r.IntN(8) == 0, a.r.IntN(4) == 0), zone: z, start: start, count: 5}
			if text, ok := onCalendar(q.spec); ok {
				qs, exprs = append(qs, q), append(exprs, text)
			}
		}
		for i, theirs := range askSystemd(t, program, z, start, 5, exprs) {
			q := qs[i]
			q.until = start.Unix() + 3*86400
			if !q.spec.six {
				q.until = start.Unix() + 40*86400
			}
			theirs = slices.DeleteFunc(theirs, func(t int64) bool { return t > q.until })
			s, ok := parse(t, q, cron.Options{})
			if !ok {
				if len(theirs) > 0 {
					c.unexplained(t, q, nil, theirs)
				}
				continue
			}
			c.total++
			got := ours(s, q)
			if slices.Equal(got, theirs) {
				c.same++
				continue
			}
			why := explain(q, dtsRules(q.spec), systemdRules, theirs)
			switch {
			case why != "":
			case slices.Equal(theirs, gaveUp) && changes(q, got):
				why = "systemd gives up where a change of the clock lies ahead (\"Resource deadlock avoided\")"
			case eitherPass(q, theirs, false):
				why = "which pass of a repeated time is meant is the C library's choice, also one that is over"
			case eitherPass(q, theirs, true):
				why = "systemd passes over times on the day of a change of the clock, or less than 3 hours from it"
			case strings.Contains(exprs[i], "~") && later(q, theirs):
				why = "systemd passes over days counted from the end of a month (~) where a change of the clock lies before them"
			default:
				t.Log(exprs[i])
				c.unexplained(t, q, got, theirs)
				continue
			}
			c.rules[why]++
		}
	}
	c.print(t, "systemd")
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
