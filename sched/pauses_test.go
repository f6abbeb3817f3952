package sched_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"dts"
)

// TestPauseAndJitter: a pause takes out the instants in it by when they are scheduled, not by when they are due.
func TestPauseAndJitter(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		var r *dts.RecurringTask
		for r == nil || r.Jitter() < 10*time.Second { // it depends on the id
			r = w.every("*/10 * * * *", func(r *dts.RecurringTask) { r.JitterSeconds, r.EndTime = 60, w.now().Add(time.Hour) })
		}
		w.settle(19 * time.Minute)
		w.pause(r.ID, w.now().Add(64*time.Second)) // until 00:20:04: before 00:20:00 is due
		w.settle(2 * time.Hour)
		if b := w.book(r.ID, 10*time.Minute); len(b.skips) != 1 || b.skips[0].Reason != dts.ReasonPaused || b.skips[0].From.Minute() != 20 {
			t.Errorf("skips %+v", b.skips)
		}
	})
}

// TestModifyWhilePaused: an occurrence that was moved by hand into the time after stays one occurrence.
func TestModifyWhilePaused(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		r := w.every("* * * * *", func(r *dts.RecurringTask) { r.EndTime = w.now().Add(12 * time.Minute) })
		up, err := w.st.Upcoming(w.ctx, dts.DefaultTenant, r.ID, 10)
		if err != nil || len(up) < 6 {
			t.Fatal(up, err)
		}
		w.settle(90 * time.Second)
		at := up[4].ScheduledAt.Add(10 * time.Second)
		if _, err := w.s.ModifyTask(w.ctx, dts.DefaultTenant, up[4].ID, dts.TaskPatch{RunAt: &at}); err != nil {
			t.Fatal(err)
		}
		w.pause(r.ID, time.Time{})
		name := "renamed"
		if _, err := w.s.ModifyRecurring(w.ctx, dts.DefaultTenant, r.ID, dts.RecurringPatch{TaskTemplatePatch: dts.TaskTemplatePatch{Name: &name}}); err != nil {
			t.Fatal(err)
		}
		w.settle(8 * time.Minute)
		w.resume(r.ID, false)
		w.settle(10 * time.Minute)
		w.book(r.ID, time.Minute)
		if got := w.task(up[4].ID); got.Status != dts.Success {
			t.Errorf("what was moved by hand is %s", got.Status)
		}
	})
}

// TestResumeRightAfterARestart: whoever resumes before the server has looked at what it missed gets the same.
func TestResumeRightAfterARestart(t *testing.T) {
	for _, catchUp := range []bool{false, true} {
		t.Run(fmt.Sprint(catchUp), func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				r := w.every("* * * * *", func(r *dts.RecurringTask) { r.EndTime = w.now().Add(9 * time.Minute) })
				w.settle(90 * time.Second)
				w.pause(r.ID, time.Time{})
				w.restart(5*time.Minute + 5*time.Second) // 00:06:35: one of the missed is only late
				w.resume(r.ID, catchUp)
				w.settle(10 * time.Minute)
				want := []string{"2000-01-01 00:01:00 SUCCESS", "2000-01-01 00:02:00 ×5 PAUSED", "2000-01-01 00:07:00 SUCCESS", "2000-01-01 00:08:00 SUCCESS", "2000-01-01 00:09:00 SUCCESS"}
				if catchUp {
					want = append(want, "2000-01-01 00:06:00 CATCH_UP task SUCCESS")
				}
				if diff := gocmp.Diff(want, w.book(r.ID, time.Minute).lines(time.Minute)); diff != "" {
					t.Errorf("ledger (-want +got):\n%s", diff)
				}
				w.atRest()
			})
		})
	}
}

// TestRestartBetweenPacedRuns: what was decided to run, one after another, still does after a restart.
func TestRestartBetweenPacedRuns(t *testing.T) {
	missing(t, 8*time.Minute+30*time.Second, func(r *dts.RecurringTask) {
		r.CatchUpMode, r.CatchUpPacingSeconds = dts.RunAllMissed, 20
		r.EndTime = time.Date(2000, 1, 1, 0, 8, 0, 0, time.UTC)
	}, func(w *world, r *dts.RecurringTask) {
		w.settle(20 * time.Second)
		w.restart(5 * time.Minute)
		w.settle(10 * time.Minute)
		want := []string{"2000-01-01 00:01:00 SUCCESS", "2000-01-01 00:02:00 SUCCESS", "2000-01-01 00:03:00 SUCCESS", "2000-01-01 00:04:00 SUCCESS",
			"2000-01-01 00:05:00 SUCCESS", "2000-01-01 00:06:00 SUCCESS", "2000-01-01 00:07:00 SUCCESS", "2000-01-01 00:08:00 SUCCESS"}
		if diff := gocmp.Diff(want, w.book(r.ID, time.Minute).lines(time.Minute)); diff != "" {
			t.Errorf("ledger (-want +got):\n%s", diff)
		}
		w.atRest()
	})
}

// TestRemovedStaysRemoved: an occurrence that somebody has deleted ahead of its time does not come back when the
// recurring task is changed, and one that the changed schedule does not have is forgotten.
func TestRemovedStaysRemoved(t *testing.T) {
	for _, c := range []struct {
		name  string
		verb  dts.Verb
		patch dts.RecurringPatch
		want  string
	}{
		{"deleted, renamed", dts.Delete, dts.RecurringPatch{TaskTemplatePatch: dts.TaskTemplatePatch{Name: new("other")}}, "00:04:00 skipped 1 REMOVED"},
		{"cancelled, renamed", dts.Cancel, dts.RecurringPatch{TaskTemplatePatch: dts.TaskTemplatePatch{Name: new("other")}}, "00:04:00 skipped 1 REMOVED"},
		{"deleted, rescheduled", dts.Delete, dts.RecurringPatch{Cron: new("1-59/2 * * * *")}, ""},
		{"deleted, more often", dts.Delete, dts.RecurringPatch{Cron: new("*/5 * * * * *")}, "00:04:00 skipped 1 REMOVED"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				r := w.every("* * * * *", func(r *dts.RecurringTask) { r.EndTime = w.now().Add(8 * time.Minute) })
				up, err := w.st.Upcoming(w.ctx, dts.DefaultTenant, r.ID, 10)
				if err != nil {
					t.Fatal(err)
				}
				w.do(up[3].ID, c.verb)
				if _, err := w.s.ModifyRecurring(w.ctx, dts.DefaultTenant, r.ID, c.patch); err != nil {
					t.Fatal(err)
				}
				w.settle(time.Hour)
				got := ""
				for _, line := range w.ledger(r.ID) {
					if strings.HasPrefix(line, "00:04:00") {
						got += line
					}
				}
				if got != c.want {
					t.Errorf("the ledger says %q, want %q", got, c.want)
				}
			})
		})
	}
}
