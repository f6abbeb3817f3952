package sched

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"dts"
	"dts/sched/calendar"
	"dts/sched/cron"
)

var conflictDay = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// contenderOf makes a contender of a recurring task with a cron expression, over a week from conflictDay.
func contenderOf(t *testing.T, name, expr string, takes time.Duration, policy dts.OverlapPolicy, shares ...shared) contender {
	t.Helper()
	c, err := cron.Parse(expr, cron.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &dts.RecurringTask{ID: name, Spec: dts.Spec{Name: name}, OverlapPolicy: policy}
	return contender{
		task: dts.ConflictTask{RecurringTaskID: name, Name: name, Seconds: takes.Seconds()}, shares: shares,
		runs: runsOf(r, c, nil, conflictDay, conflictDay.AddDate(0, 0, 7), takes, conflictInstants),
	}
}

func TestFindConflicts(t *testing.T) {
	one, two := shared{"db", 1}, shared{"slots for commands", 2}
	m := time.Minute
	for _, tt := range []struct {
		name string
		list func(t *testing.T) []contender
		want []string
	}{
		{"nothing at once", func(t *testing.T) []contender {
			return []contender{contenderOf(t, "a", "0 1 * * *", 59*m, "", one), contenderOf(t, "b", "0 2 * * *", 59*m, "", one)}
		}, nil},
		{"one ends when the other begins", func(t *testing.T) []contender {
			return []contender{contenderOf(t, "a", "0 1 * * *", 60*m, "", one), contenderOf(t, "b", "0 2 * * *", 60*m, "", one)}
		}, nil},
		{"every night", func(t *testing.T) []contender {
			return []contender{contenderOf(t, "a", "0 1 * * *", 90*m, "", one), contenderOf(t, "b", "0 2 * * *", 60*m, "", one)}
		}, []string{"Mon 02:00-02:30 db 2>1 x7 a,b"}},
		{"others share other things", func(t *testing.T) []contender {
			return []contender{contenderOf(t, "a", "0 1 * * *", 90*m, "", one), contenderOf(t, "b", "0 2 * * *", 60*m, "", two)}
		}, nil},
		{"two sets, the worse first", func(t *testing.T) []contender {
			return []contender{
				contenderOf(t, "a", "0 3 * * *", 10*m, "", two, one), contenderOf(t, "b", "0 3 * * *", 20*m, "", two),
				contenderOf(t, "c", "5 3 * * *", 5*m, "", two), contenderOf(t, "d", "6 3 * * SUN", 1*m, "", two)}
		}, []string{"Sun 03:05-03:10 slots for commands 4>2 x1 a,b,c,d", "Mon 03:05-03:10 slots for commands 3>2 x6 a,b,c"}},
		{"a run that began before", func(t *testing.T) []contender {
			return []contender{contenderOf(t, "a", "0 23 * * SUN", 120*m, "", one), contenderOf(t, "b", "30 0 * * MON", 5*m, "", one)}
		}, []string{"Mon 00:30-00:35 db 2>1 x1 a,b"}},
		{"with itself", func(t *testing.T) []contender {
			return []contender{contenderOf(t, "a", "0 * * * *", 61*m, dts.OverlapAllow, one)}
		}, []string{"Mon 00:00-00:01 db 2>1 x168 a"}},
		{"not with itself: it skips", func(t *testing.T) []contender {
			return []contender{contenderOf(t, "a", "0 * * * *", 61*m, dts.OverlapSkip, one)}
		}, nil},
		{"not with itself: it waits", func(t *testing.T) []contender {
			return []contender{contenderOf(t, "a", "0 * * * *", 61*m, dts.OverlapBufferOne, one)}
		}, nil},
		{"not with itself: all wait", func(t *testing.T) []contender {
			return []contender{contenderOf(t, "a", "0 * * * *", 61*m, dts.OverlapBufferAll, one)}
		}, nil},
		{"not with itself: it is cancelled", func(t *testing.T) []contender {
			return []contender{contenderOf(t, "a", "0 * * * *", 61*m, dts.OverlapCancel, one)}
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, c := range findConflicts(tt.list(t), conflictDay, conflictDay.AddDate(0, 0, 7)) {
				var names []string
				for _, x := range c.Tasks {
					names = append(names, x.Name)
				}
				got = append(got, fmt.Sprintf("%s-%s %s %d>%d x%d %s", c.From.Format("Mon 15:04"), c.To.Format("15:04"), c.Shared, c.Most, c.Limit, c.Times, strings.Join(names, ",")))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(tt.want, "\n     "))
			}
		})
	}
}

// However many tasks and instants there are, the work, and the answer, are bounded.
func TestConflictsAreBounded(t *testing.T) {
	slots := shared{"slots", 3}
	var list []contender
	for i := range 10 {
		list = append(list, contenderOf(t, fmt.Sprint("every second ", i), "* * * * * *", 1500*time.Millisecond, "", slots))
	}
	began := time.Now()
	found := findConflicts(list, conflictDay, conflictDay.AddDate(0, 0, 7))
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it takes %v", took)
	}
	if len(found) != 1 || found[0].Most != 20 || len(found[0].Tasks) != 10 {
		t.Errorf("%+v", found)
	}
	for _, c := range list {
		if len(c.runs) > conflictInstants {
			t.Fatalf("%d instants are looked at", len(c.runs))
		}
	}

	list = nil
	for i := range 400 { // each pair collides at another minute
		list = append(list, contenderOf(t, fmt.Sprint(i), fmt.Sprintf("%d %d * * *", i/2%60, i/120), time.Minute, "", shared{"db", 1}))
	}
	if found = findConflicts(list, conflictDay, conflictDay.AddDate(0, 0, 7)); len(found) != maxConflicts {
		t.Errorf("%d conflicts", len(found))
	}
}

func TestRunsWait(t *testing.T) {
	night := conflictDay.Add(2 * time.Hour)
	k := closingsOf(t, nil,
		&dts.Blackout{Name: "upgrade", Action: dts.BlackoutWait, Window: dts.Window{Start: night, End: night.Add(time.Hour)}},
		&dts.Blackout{Name: "backup", Action: dts.BlackoutWait, Queue: "db", Window: dts.Window{Start: night.Add(50 * time.Minute), End: night.Add(2 * time.Hour)}},
		&dts.Blackout{Name: "freeze", Action: dts.BlackoutSkip, Window: dts.Window{Start: night.Add(4 * time.Hour), End: night.Add(5 * time.Hour)}},
	)
	for _, tt := range []struct {
		queue string
		at    time.Duration
		want  string
	}{
		{"default", -time.Minute, "no"},
		{"default", 0, "until 03:00 by the blackout upgrade"},
		{"default", time.Hour, "no"},
		{"db", 0, "until 04:00 by the blackouts upgrade and backup"},
		{"db", 90 * time.Minute, "until 04:00 by the blackout backup"},
		{"db", 4*time.Hour + time.Minute, "skipped until 07:00 by the blackout freeze"},
	} {
		got := "no"
		if h, is := k.hold(night.Add(tt.at), tt.queue); is {
			got = "until " + h.until.Format("15:04") + " by " + h.names()
			if h.skipped {
				got = "skipped " + got
			}
		}
		if got != tt.want {
			t.Errorf("%s at %v: %s, want %s", tt.queue, tt.at, got, tt.want)
		}
	}
	if open := k.within(night.Add(time.Hour), night.Add(4*time.Hour)); len(open) != 1 || open[0].Name != "backup" {
		t.Errorf("%+v", open)
	}
	c, err := cron.Parse("*/30 * * * *", cron.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &dts.RecurringTask{ID: "a", Spec: dts.Spec{Queue: "db"}, Schedule: dts.Schedule{MaxRuns: 9}, RunsCount: 2, OverlapPolicy: dts.OverlapBufferAll}
	var got []string
	for _, x := range runsOf(r, c, k, night, night.AddDate(0, 0, 1), time.Minute, 100) {
		got = append(got, x.from.Format("15:04"))
	}
	if want := "04:00 04:01 04:02 04:03 04:04 04:30 05:00"; strings.Join(got, " ") != want {
		t.Errorf("%s, want %s", strings.Join(got, " "), want)
	}
}

// closingsOf compiles blackouts.
func closingsOf(t *testing.T, calendars map[string]*calendar.Calendar, list ...*dts.Blackout) (k closings) {
	t.Helper()
	for _, b := range list {
		w, err := calendar.CompileBlackout(b, calendars[b.Calendar])
		if err != nil {
			t.Fatal(err)
		}
		k = append(k, &blackout{b, w})
	}
	return k
}
