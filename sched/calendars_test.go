package sched_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dts"
	"dts/sched"
)

// calendar makes a calendar, or replaces it.
func (w *world) calendar(name string, edit func(*dts.Calendar)) {
	w.t.Helper()
	c := &dts.Calendar{TenantID: dts.DefaultTenant, Name: name}
	edit(c)
	_, err := w.s.CreateCalendar(w.ctx, c)
	if dts.CodeOf(err) == dts.ErrConflict {
		_, err = w.s.ReplaceCalendar(w.ctx, c)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.settle(0) // what it changes is planned again behind it
}

// days shows a ledger of days: "01-05 SUCCESS", "01-03 ×2 CALENDAR holidays".
func (w *world) days(id string) (list []string) {
	w.t.Helper()
	seen := map[string]bool{}
	for cursor := ""; ; {
		page, err := w.st.Occurrences(w.ctx, dts.DefaultTenant, id, cursor, 100)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, o := range page.Items {
			at := o.ScheduledAt.Format("01-02 15:04")
			if o.Skip != nil {
				name, _, _ := strings.Cut(o.Skip.Note, ":")
				if _, to, moved := strings.Cut(o.Skip.Note, "; "); moved {
					name += "; " + to
				}
				list = append([]string{fmt.Sprintf("%s ×%d %s %s", at, o.Skip.Count, o.Skip.Reason, name)}, list...)
			} else {
				list = append([]string{at + " " + string(o.Task.Status)}, list...)
			}
			if seen[at] {
				w.t.Errorf("%s is there twice", at)
			}
			seen[at] = true
		}
		if cursor = page.Next; cursor == "" {
			return list
		}
	}
}

const day = 24 * time.Hour

// pass lets days pass, for schedules of 9 o'clock: the clock is set forward over the hours in which nothing happens.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	for end := w.now().Add(d); w.now().Before(end); {
		now := w.now()
		next := now.UTC().Truncate(day).Add(8*time.Hour + 58*time.Minute)
		if !next.After(now) {
			next = next.Add(day)
		}
		if next.After(end) {
			next = end
		}
		w.step(next.Sub(now))
		w.nudge()
		if left := end.Sub(w.now()); left > 0 {
			w.settle(min(left, 4*time.Minute))
		}
	}
}

// The test begins on a Saturday, 2000-01-01.

func TestCalendarInTheLedger(t *testing.T) {
	for _, c := range []struct {
		shift dts.CalendarShift
		want  []string
	}{
		{"", []string{"01-01 09:00 SUCCESS", "01-02 09:00 SUCCESS", "01-03 09:00 SUCCESS", "01-04 09:00 ×3 CALENDAR off", "01-07 09:00 SUCCESS", "01-08 09:00 SUCCESS", "01-09 09:00 SUCCESS"}},
	} {
		inWorld(t, func(o *sched.Options) { o.Retention = long }, func(w *world) {
			w.calendar("off", func(c *dts.Calendar) { c.Days = []string{"2000-01-04/2000-01-06"} })
			r := w.every("0 9 * * *", func(r *dts.RecurringTask) {
				r.ExcludeCalendars, r.CalendarShift, r.EndTime = []string{"off"}, c.shift, w.now().Add(9*day)
			})
			w.pass(2*day + 10*time.Hour)
			w.restart(time.Minute)
			w.pass(20 * day)
			if diff := cmp.Diff(c.want, w.days(r.ID)); diff != "" {
				t.Errorf("ledger (-want +got):\n%s", diff)
			}
			if got := w.recurring(r.ID); got.Status != dts.Completed || got.RunsCount != 6 {
				t.Errorf("%s, %d runs", got.Status, got.RunsCount)
			}
			w.book(r.ID, day)
			w.atRest()
		})
	}
}

// TestCalendarShift: an excluded instant runs on the next business day, at the same time, and never doubles one.
func TestCalendarShift(t *testing.T) {
	for _, c := range []struct {
		shift dts.CalendarShift
		cron  string
		off   string
		ran   []string
		note  string
	}{
		// Friday the 7th is off: Monday the 10th. Saturday the 15th and Sunday the 16th are no days of the schedule.
		{dts.ShiftNext, "0 9 7,14 * *", "2000-01-07", []string{"01-10 09:00", "01-14 09:00"}, "Mon 2000-01-10 09:00:00 UTC"},
		{dts.ShiftPrevious, "0 9 7,14 * *", "2000-01-07", []string{"01-06 09:00", "01-14 09:00"}, "Thu 2000-01-06 09:00:00 UTC"},
		{dts.ShiftNext, "0 9 7,10 * *", "2000-01-07", []string{"01-10 09:00"}, ""}, // that instant is there already
	} {
		t.Run(string(c.shift)+c.cron, func(t *testing.T) {
			inWorld(t, func(o *sched.Options) { o.Retention = long }, func(w *world) {
				w.calendar("off", func(k *dts.Calendar) { k.Days = []string{c.off} })
				r := w.every(c.cron, func(r *dts.RecurringTask) {
					r.ExcludeCalendars, r.CalendarShift, r.EndTime = []string{"off"}, c.shift, w.now().Add(20*day)
				})
				w.pass(25 * day)
				var ran []string
				notes := ""
				for _, x := range w.days(r.ID) {
					if at, is := strings.CutSuffix(x, " SUCCESS"); is {
						ran = append(ran, at)
					} else if strings.HasPrefix(x, "01-07 09:00 ×1 CALENDAR") {
						notes += x
					} else {
						t.Errorf("the ledger has %q", x)
					}
				}
				if diff := cmp.Diff(c.ran, ran); diff != "" {
					t.Errorf("ran (-want +got):\n%s", diff)
				}
				if notes == "" || c.note != "" && !strings.HasSuffix(notes, "moved to "+c.note) || c.note == "" && strings.Contains(notes, "moved to") {
					t.Errorf("the excluded instant is noted %q", notes)
				}
			})
		})
	}
}

// TestReplanOnCalendarChange: rows ahead that a calendar now excludes go, those that it excludes no more come back, the
// ledger says so, and what was moved by hand stays.
func TestReplanOnCalendarChange(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.Retention = long }, func(w *world) {
		w.calendar("off", func(c *dts.Calendar) { c.Days = []string{"2000-01-02", "2000-01-05/2000-01-06"} })
		r := w.every("0 9 * * *", func(r *dts.RecurringTask) {
			r.ExcludeCalendars, r.EndTime = []string{"off"}, w.now().Add(12*day)
		})
		w.pass(2*day + 10*time.Hour) // Monday the 3rd
		up, err := w.st.Upcoming(w.ctx, dts.DefaultTenant, r.ID, 10)
		if err != nil || len(up) < 5 {
			t.Fatal(up, err)
		}
		at := up[2].ScheduledAt.Add(time.Minute) // of the 8th
		if up[2].ScheduledAt.Day() != 8 {
			t.Fatalf("the third ahead is of %s", up[2].ScheduledAt)
		}
		if _, err := w.s.ModifyTask(w.ctx, dts.DefaultTenant, up[2].ID, dts.TaskPatch{RunAt: &at}); err != nil {
			t.Fatal(err)
		}
		w.calendar("off", func(c *dts.Calendar) { c.Days = []string{"2000-01-06/2000-01-08"} })
		w.settle(time.Second)
		if err := w.s.DeleteCalendar(w.ctx, dts.DefaultTenant, "off"); dts.CodeOf(err) != dts.ErrConflict {
			t.Errorf("a calendar that is used is deleted: %v", err)
		}
		w.restart(time.Second)
		w.pass(30 * day)
		want := []string{"01-01 09:00 SUCCESS", "01-02 09:00 ×1 CALENDAR off", "01-03 09:00 SUCCESS", "01-04 09:00 SUCCESS", "01-05 09:00 SUCCESS",
			"01-06 09:00 ×2 CALENDAR off", "01-08 09:00 SUCCESS", "01-09 09:00 SUCCESS", "01-10 09:00 SUCCESS", "01-11 09:00 SUCCESS", "01-12 09:00 SUCCESS"}
		got := w.days(r.ID)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ledger (-want +got):\n%s", diff)
		}
		if x := w.task(up[2].ID); x.Status != dts.Success || !x.StartedAt.Equal(at) {
			t.Errorf("what was moved by hand is %s, began %s", x.Status, x.StartedAt)
		}
		w.atRest()
		if _, err := w.s.CancelRecurring(w.ctx, dts.DefaultTenant, r.ID, "tester"); err != nil {
			t.Fatal(err)
		}
	})
}

// TestReplanInTheMiddle: a calendar is changed in the middle of a range that it excludes: what has come of it stays.
func TestReplanInTheMiddle(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.Retention = long }, func(w *world) {
		w.calendar("off", func(c *dts.Calendar) { c.Days = []string{"2000-01-03/2000-01-09"} })
		r := w.every("0 9 * * *", func(r *dts.RecurringTask) {
			r.ExcludeCalendars, r.EndTime = []string{"off"}, w.now().Add(12*day)
		})
		w.pass(4*day + 10*time.Hour) // Wednesday the 5th
		w.calendar("off", func(c *dts.Calendar) { c.Days = []string{"2000-01-08"} })
		w.pass(30 * day)
		want := []string{"01-01 09:00 SUCCESS", "01-02 09:00 SUCCESS", "01-03 09:00 ×3 CALENDAR off", "01-06 09:00 SUCCESS", "01-07 09:00 SUCCESS",
			"01-08 09:00 ×1 CALENDAR off", "01-09 09:00 SUCCESS", "01-10 09:00 SUCCESS", "01-11 09:00 SUCCESS", "01-12 09:00 SUCCESS"}
		if diff := cmp.Diff(want, w.days(r.ID)); diff != "" {
			t.Errorf("ledger (-want +got):\n%s", diff)
		}
		w.book(r.ID, day)
	})
}

// TestReplanByModify: the same when the recurring task itself is changed: its calendars go, and come again.
func TestReplanByModify(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.Retention = long }, func(w *world) {
		w.calendar("off", func(c *dts.Calendar) { c.Days = []string{"2000-01-03/2000-01-05"} })
		r := w.every("0 9 * * *", func(r *dts.RecurringTask) {
			r.ExcludeCalendars, r.EndTime = []string{"off"}, w.now().Add(7*day)
		})
		w.pass(3*day + 10*time.Hour) // Tuesday the 4th
		none, off := []string{}, []string{"off"}
		if _, err := w.s.ModifyRecurring(w.ctx, dts.DefaultTenant, r.ID, dts.RecurringPatch{ExcludeCalendars: &none}); err != nil {
			t.Fatal(err)
		}
		if err := w.s.DeleteCalendar(w.ctx, dts.DefaultTenant, "off"); err != nil {
			t.Errorf("delete a calendar that nothing uses any more: %v", err)
		}
		if _, err := w.s.ModifyRecurring(w.ctx, dts.DefaultTenant, r.ID, dts.RecurringPatch{ExcludeCalendars: &off}); dts.CodeOf(err) != dts.ErrInvalid {
			t.Errorf("a calendar that does not exist is used: %v", err)
		}
		w.pass(30 * day)
		want := []string{"01-01 09:00 SUCCESS", "01-02 09:00 SUCCESS", "01-03 09:00 ×2 CALENDAR off", "01-05 09:00 SUCCESS", "01-06 09:00 SUCCESS", "01-07 09:00 SUCCESS"}
		if diff := cmp.Diff(want, w.days(r.ID)); diff != "" {
			t.Errorf("ledger (-want +got):\n%s", diff)
		}
		w.book(r.ID, day)
	})
}

func TestUnknownCalendarIsRefused(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		for _, edit := range []func(*dts.RecurringTask){
			func(r *dts.RecurringTask) { r.ExcludeCalendars = []string{"nope"} },
			func(r *dts.RecurringTask) { r.RequireCalendars = []string{"nope"} },
		} {
			r := &dts.RecurringTask{Spec: w.spec(), Schedule: dts.Schedule{Cron: "* * * * *"}}
			edit(r)
			if err := r.Normalize(); err != nil {
				t.Fatal(err)
			}
			if _, err := w.s.CreateRecurring(w.ctx, r); dts.CodeOf(err) != dts.ErrInvalid || !strings.Contains(err.Error(), "nope") {
				t.Errorf("created with an unknown calendar: %v", err)
			}
		}
	})
}

// TestNothingLeftByCalendars: a required calendar without a window any more keeps the recurring task ACTIVE; when it is
// given some again, it runs.
func TestNothingLeftByCalendars(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.Retention = long }, func(w *world) {
		window := func(from time.Time) func(c *dts.Calendar) {
			return func(c *dts.Calendar) { c.Windows = []dts.Window{{Start: from, End: from.Add(2 * day)}} }
		}
		w.calendar("open", window(w.now()))
		r := w.every("0 9 * * *", func(r *dts.RecurringTask) { r.RequireCalendars = []string{"open"} })
		w.pass(5 * day)
		if got := w.recurring(r.ID); got.Status != dts.Active || got.RunsCount != 2 {
			t.Fatalf("%s after %d runs, want ACTIVE after 2", got.Status, got.RunsCount)
		}
		w.restart(time.Hour)
		w.calendar("open", window(time.Date(2000, 1, 10, 0, 0, 0, 0, time.UTC)))
		w.pass(10 * day)
		if got := w.recurring(r.ID); got.Status != dts.Active || got.RunsCount != 4 {
			t.Errorf("%s after %d runs, want ACTIVE after 4", got.Status, got.RunsCount)
		}
		ran := 0
		excluded := int64(0)
		b := w.book(r.ID, day)
		for _, k := range b.skips {
			if excluded += k.Count; k.Reason != dts.ReasonCalendar {
				t.Errorf("a skip for %s", k.Reason)
			}
		}
		for _, x := range b.tasks {
			if x.Status == dts.Success {
				ran++
			}
		}
		if due := int64(w.now().Sub(r.CreatedAt) / day); ran != 4 || excluded < due-5 {
			t.Errorf("%d ran and %d were excluded of %d", ran, excluded, due)
		}
	})
}
