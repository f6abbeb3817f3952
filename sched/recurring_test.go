package sched_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"dts"
	"dts/sched"
)

func TestRecurringFiresAtEachInstant(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		sec := w.every("* * * * * *", nil)
		min := w.every("*/5 * * * *", nil)
		third := w.every("", func(r *dts.RecurringTask) { r.IntervalSeconds = 7 })
		w.settle(10*time.Minute + time.Millisecond)
		want := map[string]int{sec.ID: 600, min.ID: 2, third.ID: 85}
		got := map[string]int{}
		for _, s := range w.run.list() {
			got[w.task(s.id).RecurringTaskID]++
			if late := s.at.Sub(s.due); late < 0 || late > time.Millisecond {
				t.Errorf("an occurrence started %v late", late)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("runs by recurring task (-want +got):\n%s", diff)
		}
		r := w.recurring(sec.ID)
		if r.RunsCount != 600 || r.CompletedCount != 600 || r.LastStatus != dts.Success || !r.NextRunAt.Equal(w.now().Truncate(time.Second).Add(time.Second)) {
			t.Errorf("counts: %d runs, %d completed, last %s, next %v", r.RunsCount, r.CompletedCount, r.LastStatus, r.NextRunAt)
		}
		up, err := w.st.Upcoming(w.ctx, dts.DefaultTenant, min.ID, 100)
		if err != nil || len(up) < 5 {
			t.Errorf("%d upcoming occurrences, %v; at least 5 are promised", len(up), err)
		}
	})
}

// TestDowntime: after an outage every instant is accounted for, by the catch-up mode.
func TestDowntime(t *testing.T) {
	for _, c := range []struct {
		mode dts.CatchUpMode
		down time.Duration
		want []string
	}{
		// Within misfire_after: late, not missed.
		{dts.RunLatest, 50 * time.Second, []string{"00:01:00 SUCCESS", "00:02:00 SUCCESS"}},
		// Rows planned before the outage were missed; the newest of them runs.
		{dts.RunLatest, 5 * time.Minute, []string{"00:01:00 SUCCESS", "00:02:00 skipped 1 CATCH_UP", "00:03:00 skipped 1 CATCH_UP",
			"00:04:00 skipped 1 CATCH_UP", "00:05:00 SUCCESS", "00:06:00 SUCCESS"}},
		{dts.SkipMissed, 5 * time.Minute, []string{"00:01:00 SUCCESS", "00:02:00 skipped 1 CATCH_UP", "00:03:00 skipped 1 CATCH_UP",
			"00:04:00 skipped 1 CATCH_UP", "00:05:00 skipped 1 CATCH_UP", "00:06:00 SUCCESS"}},
		// Beyond what was planned too: one run for all of them.
		{dts.RunLatest, time.Hour, []string{"00:01:00 SUCCESS", "00:02:00 skipped 1 CATCH_UP", "00:03:00 skipped 1 CATCH_UP",
			"00:04:00 skipped 1 CATCH_UP", "00:05:00 skipped 1 CATCH_UP", "00:06:00 skipped 1 CATCH_UP", "00:07:00 skipped 1 CATCH_UP",
			"00:08:00 skipped 1 CATCH_UP", "00:09:00 skipped 1 CATCH_UP", "00:10:00 skipped 1 CATCH_UP", "00:11:00 skipped 49 CATCH_UP",
			"01:00:00 SUCCESS", "01:01:00 SUCCESS"}},
	} {
		t.Run(fmt.Sprintf("%s %v", c.mode, c.down), func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				r := w.every("* * * * *", func(r *dts.RecurringTask) { r.CatchUpMode = c.mode })
				w.settle(90 * time.Second)
				w.restart(c.down)
				w.settle(15 * time.Second)
				if diff := cmp.Diff(c.want, w.ledger(r.ID)); diff != "" {
					t.Errorf("ledger (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestYearOfDowntime: a year without a server, on an every-second task, is one range.
func TestYearOfDowntime(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		r := w.every("* * * * * *", nil)
		w.settle(30*time.Second + 500*time.Millisecond)
		before := len(w.run.list())
		w.stop()
		const year = 365 * 24 * time.Hour
		w.step(year)
		w.start()
		begin := time.Now()
		w.settle(2 * time.Second)
		if took := time.Since(begin); took > 3*time.Second {
			t.Errorf("it took %v", took)
		}
		var skipped, ran int64
		cursor, seen := "", map[time.Time]bool{}
		for {
			page, err := w.st.Occurrences(w.ctx, dts.DefaultTenant, r.ID, cursor, 500)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range page.Items {
				switch {
				case o.Skip != nil:
					skipped += o.Skip.Count
				case o.Task.Status == dts.Success:
					ran++
					if seen[o.ScheduledAt] {
						t.Errorf("%v ran twice", o.ScheduledAt)
					}
					seen[o.ScheduledAt] = true
				}
			}
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		due := int64(w.now().Sub(r.CreatedAt) / time.Second)
		if skipped+ran != due {
			t.Errorf("%d skipped and %d ran, of %d due", skipped, ran, due)
		}
		if n := len(w.run.list()) - before; n > 65 {
			t.Errorf("%d runs after the outage: a burst", n)
		}
	})
}

// TestSuspend: the machine sleeps while the server is up.
func TestSuspend(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		r := w.every("* * * * *", nil)
		once := w.add(2*time.Minute, nil)
		w.settle(90 * time.Second)
		w.step(time.Hour)
		w.settle(time.Minute) // the portable timer finds out within its cap
		if got := w.task(once.ID); got.Status != dts.Success {
			t.Errorf("the one-time task is %s; those always run, however late", got.Status)
		}
		counts := map[string]int64{}
		page, err := w.st.Occurrences(w.ctx, dts.DefaultTenant, r.ID, "", 500)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Items {
			switch {
			case o.Skip != nil:
				counts[string(o.Skip.Reason)] += o.Skip.Count
			case o.Task.Status != dts.Pending:
				counts[string(o.Task.Status)]++
			}
		}
		due := int64(w.now().Sub(r.CreatedAt) / time.Minute)
		if counts["CATCH_UP"]+counts["SUCCESS"] != due || counts["SUCCESS"] > 5 {
			t.Errorf("of %d instants: %v", due, counts)
		}
	})
}

// TestClockSetBack: nothing runs twice.
func TestClockSetBack(t *testing.T) {
	for _, back := range []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour} {
		t.Run(back.String(), func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				w.every("*/10 * * * * *", nil)
				w.settle(2 * time.Minute)
				w.step(-back)
				w.settle(back + 2*time.Minute)
				seen := map[time.Time]bool{}
				for _, s := range w.run.list() {
					if seen[s.due] {
						t.Fatalf("%v ran twice", s.due)
					}
					seen[s.due] = true
				}
				if n := len(seen); n < 23 || n > 26 {
					t.Errorf("%d instants ran in the four minutes that the clock showed", n)
				}
			})
		})
	}
}

func TestPauseAndResume(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		r := w.every("* * * * *", nil)
		w.settle(90 * time.Second)
		if _, err := w.s.PauseRecurring(w.ctx, dts.DefaultTenant, r.ID, time.Time{}, "moving house", "tester"); err != nil {
			t.Fatal(err)
		}
		w.settle(30 * time.Minute) // beyond what was planned
		if _, err := w.s.ResumeRecurring(w.ctx, dts.DefaultTenant, r.ID, false, "tester"); err != nil {
			t.Fatal(err)
		}
		w.settle(2 * time.Minute)
		var paused, ran int64
		page, err := w.st.Occurrences(w.ctx, dts.DefaultTenant, r.ID, "", 500)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Items {
			switch {
			case o.Skip != nil && o.Skip.Reason == dts.ReasonPaused:
				if paused += o.Skip.Count; o.Skip.Note != "moving house (paused by tester)" {
					t.Errorf("of the pause it is not said why: %+v", o.Skip)
				}
			case o.Skip == nil && o.Task.Status == dts.Success:
				ran++
			case o.Skip == nil && o.Task.Status == dts.Pending:
			default:
				t.Errorf("unexpected: %+v", o)
			}
		}
		if paused != 30 || ran != 3 {
			t.Errorf("%d paused and %d ran, want 30 and 3", paused, ran)
		}
		if n := len(page.Items); n > 40 {
			t.Errorf("%d lines in the ledger: the paused instants are not gathered", n)
		}
	})
}

func TestPauseUntil(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		r := w.every("* * * * *", nil)
		until := w.now().Add(25*time.Minute + 30*time.Second)
		got, err := w.s.PauseRecurring(w.ctx, dts.DefaultTenant, r.ID, until, "maintenance", "tester")
		if err != nil || got.Status != dts.Paused || !got.PausedUntil.Equal(until) || got.PauseNote != "maintenance" {
			t.Fatalf("paused: %+v, %v", got, err)
		}
		w.restart(10 * time.Minute) // a pause survives a restart
		w.settle(20 * time.Minute)
		if got := w.recurring(r.ID); got.Status != dts.Active || got.RunsCount != 5 {
			t.Errorf("after the pause: %s, %d runs, want ACTIVE and 5", got.Status, got.RunsCount)
		}
	})
}

func TestOverlapSkip(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.run.behave(takes(150 * time.Second))
		r := w.every("* * * * *", func(r *dts.RecurringTask) { r.OverlapPolicy = dts.OverlapSkip })
		w.settle(6*time.Minute + 30*time.Second)
		want := []string{"00:01:00 SUCCESS", "00:02:00 skipped 1 OVERLAP", "00:03:00 skipped 1 OVERLAP",
			"00:04:00 SUCCESS", "00:05:00 skipped 1 OVERLAP", "00:06:00 skipped 1 OVERLAP"}
		if diff := cmp.Diff(want, w.ledger(r.ID)); diff != "" {
			t.Errorf("ledger (-want +got):\n%s", diff)
		}
	})
}

// TestOverlapInBackoff: between two attempts an occurrence is still active.
func TestOverlapInBackoff(t *testing.T) {
	no := false
	inWorld(t, nil, func(w *world) {
		first := true
		w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome {
			if first {
				first = false
				return fails(ctx, j)
			}
			return dts.Outcome{State: dts.AttemptSuccess}
		})
		r := w.every("* * * * *", func(r *dts.RecurringTask) {
			r.OverlapPolicy = dts.OverlapSkip
			r.Retry = dts.Retry{MaxAttempts: 2, Backoff: dts.Fixed, BaseDelayMS: 90_000, Jitter: &no}
		})
		w.settle(3*time.Minute + time.Second)
		want := []string{"00:01:00 SUCCESS", "00:02:00 skipped 1 OVERLAP", "00:03:00 SUCCESS"}
		if diff := cmp.Diff(want, w.ledger(r.ID)); diff != "" {
			t.Errorf("ledger (-want +got):\n%s", diff)
		}
	})
}

// failing is a store some of whose accesses fail while it is told to.
type failing struct {
	sched.Store
	actives, loads, results, plans atomic.Bool
	asked                          atomic.Int64 // plans that failed
}

func (f *failing) ActiveOrInLine(ctx context.Context, id string) (int, error) {
	if f.actives.Load() {
		return 0, dts.Errorf(dts.ErrUnavailable, "no")
	}
	return f.Store.ActiveOrInLine(ctx, id)
}

func (f *failing) Load(ctx context.Context, ids []string) ([]*dts.Task, error) {
	if f.loads.Load() {
		return nil, dts.Errorf(dts.ErrUnavailable, "no")
	}
	return f.Store.Load(ctx, ids)
}

func (f *failing) Write(ctx context.Context, fence dts.Fence, recs []*dts.Record) error {
	if f.results.Load() {
		return dts.Errorf(dts.ErrFull, "no")
	}
	return f.Store.Write(ctx, fence, recs)
}

func (f *failing) SavePlans(ctx context.Context, fence dts.Fence, plans []dts.Plan, now time.Time) []error {
	if !f.plans.Load() {
		return f.Store.SavePlans(ctx, fence, plans, now)
	}
	if f.asked.Add(1) == 1000 {
		f.plans.Store(false) // in fake time it would never end
	}
	errs := make([]error, len(plans))
	for i := range errs {
		errs[i] = dts.Errorf(dts.ErrFull, "no")
	}
	return errs
}

// inFailingWorld is inWorld with a store that can be told to fail.
func inFailingWorld(t *testing.T, f func(w *world, st *failing)) {
	t.Helper()
	st := &failing{}
	inWorld(t, func(o *sched.Options) { st.Store, o.Store = o.Store, st }, func(w *world) { f(w, st) })
}

// TestOverlapWhileTheStoreFails: while the store cannot say whether an occurrence is active, the next does not start.
func TestOverlapWhileTheStoreFails(t *testing.T) {
	no := false
	inFailingWorld(t, func(w *world, st *failing) {
		var runs atomic.Int64
		w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome {
			if runs.Add(1) == 1 {
				return fails(ctx, j)
			}
			return dts.Outcome{State: dts.AttemptSuccess}
		})
		r := w.every("* * * * *", func(r *dts.RecurringTask) {
			r.OverlapPolicy = dts.OverlapSkip
			r.Retry = dts.Retry{MaxAttempts: 2, Backoff: dts.Fixed, BaseDelayMS: 90_000, Jitter: &no}
		})
		w.settle(90 * time.Second)
		st.actives.Store(true)
		w.settle(33 * time.Second)
		st.actives.Store(false)
		w.settle(2 * time.Minute)
		want := []string{"00:01:00 SUCCESS", "00:02:00 skipped 1 OVERLAP", "00:03:00 SUCCESS", "00:04:00 SUCCESS"}
		if diff := cmp.Diff(want, w.ledger(r.ID)); diff != "" {
			t.Errorf("ledger (-want +got):\n%s", diff)
		}
	})
}

// TestClockSetBackAfterAFailedRead: the store is read again soon, not when the clock shows that time again.
func TestClockSetBackAfterAFailedRead(t *testing.T) {
	inFailingWorld(t, func(w *world, st *failing) {
		w.add(10*time.Second, nil)
		st.loads.Store(true)
		w.settle(8*time.Second + 100*time.Millisecond)
		st.loads.Store(false)
		w.step(-time.Hour)
		task := w.add(time.Minute, nil)
		w.settle(2 * time.Minute)
		if got := w.task(task.ID); got.Status != dts.Success || *got.LatenessUS > 1000 {
			t.Errorf("the task is %s, started %s, due %s", got.Status, got.StartedAt, got.DueAt)
		}
	})
}

// TestCancelledWhileResultIsLost: an occurrence ran while its recurring task was cancelled, and the server died before
// its result was written. Missed by then, it is accounted for and not PENDING for ever.
func TestCancelledWhileResultIsLost(t *testing.T) {
	inFailingWorld(t, func(w *world, st *failing) {
		r := w.every("* * * * *", nil)
		st.results.Store(true)
		w.settle(61 * time.Second)
		if _, err := w.s.CancelRecurring(w.ctx, dts.DefaultTenant, r.ID, "tester"); err != nil {
			t.Fatal(err)
		}
		if err := w.s.Stop(w.ctx); err == nil {
			t.Fatal("the result was written")
		}
		if err := w.st.Close(); err != nil {
			t.Fatal(err)
		}
		st.results.Store(false)
		time.Sleep(time.Hour)
		w.start()
		w.settle(time.Minute)
		if diff := cmp.Diff([]string{"00:01:00 skipped 1 CANCELLED"}, w.ledger(r.ID)); diff != "" {
			t.Errorf("ledger (-want +got):\n%s", diff)
		}
	})
}

// TestMissedWhileTheDiskIsFull: missed occurrences whose plan cannot be written are planned again twice a second, not
// as fast as possible.
func TestMissedWhileTheDiskIsFull(t *testing.T) {
	inFailingWorld(t, func(w *world, st *failing) {
		r := w.every("* * * * *", nil)
		w.settle(90 * time.Second)
		st.plans.Store(true)
		w.step(4 * time.Minute) // the next occurrences are missed
		w.settle(time.Minute)
		if n := st.asked.Load(); n == 0 || n > 130 {
			t.Errorf("%d plans in a minute", n)
		}
		st.plans.Store(false)
		w.settle(time.Minute)
		if got := w.ledger(r.ID); len(got) < 6 {
			t.Errorf("ledger %v", got)
		}
	})
}

func TestMaxRunsAndEndTime(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		three := w.every("* * * * *", func(r *dts.RecurringTask) { r.MaxRuns = 3 })
		until := w.every("* * * * *", func(r *dts.RecurringTask) { r.EndTime = w.now().Add(4 * time.Minute) })
		w.settle(10 * time.Minute)
		for id, runs := range map[string]int64{three.ID: 3, until.ID: 4} {
			if got := w.recurring(id); got.Status != dts.Completed || got.RunsCount != runs {
				t.Errorf("%s after %d runs, want COMPLETED after %d", got.Status, got.RunsCount, runs)
			}
		}
	})
}

// TestMaxRunsCountsRuns: a skipped instant is made up for by a later one.
func TestMaxRunsCountsRuns(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		r := w.every("* * * * *", func(r *dts.RecurringTask) { r.MaxRuns = 3 })
		up, err := w.st.Upcoming(w.ctx, dts.DefaultTenant, r.ID, 10)
		if err != nil || len(up) != 3 {
			t.Fatalf("%d planned, %v; want 3", len(up), err)
		}
		w.do(up[1].ID, dts.Cancel)
		w.settle(20 * time.Minute)
		if got := w.recurring(r.ID); got.Status != dts.Completed || got.RunsCount != 3 {
			t.Errorf("%s after %d runs, want COMPLETED after 3", got.Status, got.RunsCount)
		}
	})
}

func TestModifySchedule(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		r := w.every("* * * * *", nil)
		w.settle(150 * time.Second)
		up, err := w.st.Upcoming(w.ctx, dts.DefaultTenant, r.ID, 3)
		if err != nil {
			t.Fatal(err)
		}
		// One that a user moved stays.
		at := w.now().Add(10 * time.Second)
		if _, err := w.s.ModifyTask(w.ctx, dts.DefaultTenant, up[2].ID, dts.TaskPatch{RunAt: &at}); err != nil {
			t.Fatal(err)
		}
		every2 := "*/2 * * * *"
		name := "renamed"
		got, err := w.s.ModifyRecurring(w.ctx, dts.DefaultTenant, r.ID, dts.RecurringPatch{Cron: &every2, TaskTemplatePatch: dts.TaskTemplatePatch{Name: &name}})
		if err != nil || got.Cron != every2 || got.Name != name {
			t.Fatalf("modified: %+v, %v", got, err)
		}
		w.settle(6 * time.Minute)
		want := []string{"00:01:00 SUCCESS", "00:02:00 SUCCESS", "00:04:00 SUCCESS", "00:05:00 SUCCESS", "00:06:00 SUCCESS", "00:08:00 SUCCESS"}
		if diff := cmp.Diff(want, w.ledger(r.ID)); diff != "" {
			t.Errorf("ledger (-want +got):\n%s", diff)
		}
		if i := slices.IndexFunc(w.run.list(), func(s start) bool { return s.id == up[2].ID }); i < 0 || w.run.list()[i].at.Sub(at) > time.Millisecond {
			t.Errorf("the moved occurrence did not run where it was moved to")
		}
	})
}

func TestCancelRecurring(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		r := w.every("* * * * *", nil)
		w.settle(90 * time.Second)
		if _, err := w.s.CancelRecurring(w.ctx, dts.DefaultTenant, r.ID, "tester"); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Hour)
		if diff := cmp.Diff([]string{"00:01:00 SUCCESS"}, w.ledger(r.ID)); diff != "" {
			t.Errorf("ledger (-want +got):\n%s", diff)
		}
		name := "x"
		if _, err := w.s.ModifyRecurring(w.ctx, dts.DefaultTenant, r.ID, dts.RecurringPatch{TaskTemplatePatch: dts.TaskTemplatePatch{Name: &name}}); dts.CodeOf(err) != dts.ErrConflict {
			t.Errorf("modify: %v, want a conflict", err)
		}
	})
}

func TestTrigger(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		r := w.every("0 0 1 1 *", nil)
		for range 3 { // at one instant
			if _, err := w.s.TriggerRecurring(w.ctx, dts.DefaultTenant, r.ID, "tester"); err != nil {
				t.Fatal(err)
			}
		}
		w.settle(time.Second)
		if n := len(w.run.list()); n != 3 {
			t.Errorf("%d runs, want 3", n)
		}
		if got := w.recurring(r.ID); got.RunsCount != 0 || got.LastStatus != dts.Success {
			t.Errorf("a trigger counts as %d scheduled runs; last status %s", got.RunsCount, got.LastStatus)
		}
	})
}

func TestRebootRunsOnceABoot(t *testing.T) {
	boot, booted := "boot-1", time.Time{}
	inWorld(t, func(o *sched.Options) { o.Node.BootID, o.BootedAt = boot, booted }, func(w *world) {
		booted = w.now().Add(-time.Hour)
		r := w.every("@reboot", nil)
		w.restart(time.Minute)
		w.settle(time.Second)
		if n := len(w.run.list()); n != 0 {
			t.Fatalf("%d runs in the boot in which it was added", n)
		}
		boot, booted = "boot-2", w.now().Add(time.Second)
		for range 3 {
			w.restart(time.Minute)
			w.settle(time.Second)
		}
		if n := len(w.run.list()); n != 1 {
			t.Errorf("%d runs after a boot and three starts, want 1", n)
		}
		if got := w.recurring(r.ID); got.RunsCount != 1 {
			t.Errorf("%d runs counted", got.RunsCount)
		}
	})
}

func TestWrongClockFiresNothing(t *testing.T) {
	floor := time.Time{}
	inWorld(t, func(o *sched.Options) { o.ClockFloor = floor }, func(w *world) {
		task := w.add(time.Second, nil)
		w.stop()
		floor = w.now().Add(100 * 24 * time.Hour)
		w.start()
		w.settle(time.Hour)
		if n := len(w.run.list()); n != 0 {
			t.Errorf("%d runs by a clock that is wrong", n)
		}
		if err := w.s.Ready(); err == nil {
			t.Error("it says that it is ready")
		}
		w.step(101 * 24 * time.Hour) // set right
		w.settle(2 * time.Minute)
		if got := w.task(task.ID); got.Status != dts.Success {
			t.Errorf("the task is %s after the clock was set right", got.Status)
		}
		if err := w.s.Ready(); err != nil {
			t.Error(err)
		}
	})
}

// slowToAnswer is a store that has inserted a recurring task long before it says so.
type slowToAnswer struct {
	sched.Store
	answer chan struct{}
}

func (s slowToAnswer) InsertRecurring(ctx context.Context, f dts.Fence, p dts.Plan) (dts.Created[*dts.RecurringTask], error) {
	made, err := s.Store.InsertRecurring(ctx, f, p)
	<-s.answer
	return made, err
}

// TestPauseBeforeTheCreatorKnows: a recurring task that is paused before its creator has its answer stays paused.
func TestPauseBeforeTheCreatorKnows(t *testing.T) {
	var answer chan struct{}
	inWorld(t, func(o *sched.Options) {
		answer = make(chan struct{})
		o.Store = slowToAnswer{o.Store, answer}
	}, func(w *world) {
		created := make(chan struct{})
		go func() {
			defer close(created)
			w.every("* * * * *", nil)
		}()
		synctest.Wait()
		page, err := w.st.RecurringTasks(w.ctx, dts.RecurringFilter{TenantID: dts.DefaultTenant, Limit: 1})
		if err != nil || len(page.Items) != 1 {
			t.Fatalf("%d recurring tasks, %v", len(page.Items), err)
		}
		if _, err := w.s.PauseRecurring(w.ctx, dts.DefaultTenant, page.Items[0].ID, time.Time{}, "", "tester"); err != nil {
			t.Fatal(err)
		}
		close(answer)
		<-created
		w.settle(5 * time.Minute)
		if n := len(w.run.list()); n != 0 {
			t.Errorf("%d runs of a paused recurring task", n)
		}
	})
}

// TestClockBecomesRightByItself: a clock that was set back a little, while the server was down, is believed soon after
// it has passed the newest time in the store.
func TestClockBecomesRightByItself(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.settle(time.Hour)
		w.stop()
		w.step(-10 * time.Second)
		w.start()
		task := w.add(12*time.Second, nil)
		w.settle(15 * time.Second)
		if got := w.task(task.ID); got.Status != dts.Success || *got.LatenessUS > 1000 {
			t.Errorf("the task is %s, started %s, due %s", got.Status, got.StartedAt, got.DueAt)
		}
	})
}

// TestNewestTimeHoldsFiring: at the start, a clock behind the newest time in the store is not believed.
func TestNewestTimeHoldsFiring(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.settle(time.Hour)
		task := w.add(time.Second, nil)
		w.stop()
		w.step(-24 * time.Hour)
		w.start()
		if w.s.Status().ClockHeld == "" {
			t.Error("a clock a day behind is believed")
		}
		w.step(24 * time.Hour)
		w.settle(5 * time.Second)
		if got := w.task(task.ID); got.Status != dts.Success {
			t.Errorf("the task is %s after the clock was set right", got.Status)
		}
	})
}
