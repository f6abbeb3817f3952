package sched_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dts"
	"dts/sched"
)

// TestBlackoutDeletedLate: a deleted blackout is what the ledger names for the instants that it outlasted, and the
// catch-up mode applies to them once.
func TestBlackoutDeletedLate(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		b := w.black(time.Minute, 10*time.Hour, nil)
		r := w.every("* * * * *", func(r *dts.RecurringTask) { r.EndTime = w.now().Add(time.Hour) })
		w.settle(20*time.Minute + 30*time.Second)
		if err := w.s.DeleteBlackout(w.ctx, dts.DefaultTenant, b.ID); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Hour)
		page, err := w.st.Occurrences(w.ctx, dts.DefaultTenant, r.ID, "", 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Items {
			if o.Skip != nil && o.Skip.Reason != dts.ReasonBlackout {
				t.Errorf("%s is skipped: %s %s", o.ScheduledAt.Format("15:04"), o.Skip.Reason, o.Skip.Note)
			}
		}
		want := []string{"00:19:00 at 20m30s", "00:20:00 at 20m30s", "00:21:00 at 21m0s"} // the newest that was missed, and one in time
		if diff := cmp.Diff(want, w.newBegan(0)[:3]); diff != "" {
			t.Errorf("runs (-want +got):\n%s", diff)
		}
		w.book(r.ID, time.Minute)
	})
}

// TestBlackoutDeletedAtTheEnd: the server ends before it has told those that wait.
func TestBlackoutDeletedAtTheEnd(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		b := w.black(time.Minute, 10*time.Hour, nil)
		w.add(90*time.Second, nil)
		w.settle(2 * time.Minute)
		w.stop()
		w.start()
		if err := w.st.DeleteBlackout(w.ctx, dts.DefaultTenant, b.ID, 1); err != nil { // all that was left to do
			t.Fatal(err)
		}
		w.stop()
		w.start()
		w.settle(time.Minute)
		if diff := cmp.Diff([]string{"00:01:30 at 2m0s"}, w.newBegan(0)); diff != "" {
			t.Errorf("runs (-want +got):\n%s", diff)
		}
	})
}

// TestBlackoutAndTheClock: a server whose clock is ahead when it starts does not forget what is over by that clock.
func TestBlackoutAndTheClock(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.black(time.Minute, 10*time.Minute, nil)
		w.stop()
		w.step(time.Hour)
		w.start()
		w.settle(time.Second)
		w.step(-time.Hour)
		w.settle(time.Second)
		w.add(2*time.Minute, nil)
		w.settle(time.Hour)
		if diff := cmp.Diff([]string{"00:02:02 at 10m0s"}, w.newBegan(0)); diff != "" {
			t.Errorf("runs (-want +got):\n%s", diff)
		}
	})
}

// slowRules is a store whose first answer about blackouts comes late.
type slowRules struct {
	sched.Store
	asked atomic.Int32
}

func (s *slowRules) AllBlackouts(ctx context.Context) ([]*dts.Blackout, error) {
	list, err := s.Store.AllBlackouts(ctx)
	if s.asked.Add(1) == 2 { // the first one is at the start
		time.Sleep(10 * time.Second)
	}
	return list, err
}

// TestBlackoutsMadeTogether: what is read of blackouts before another one is made does not hide that one.
func TestBlackoutsMadeTogether(t *testing.T) {
	slow := func(o *sched.Options) { o.Store = &slowRules{Store: o.Store} }
	inWorld(t, slow, func(w *world) {
		go func() { // not black, which must not end a test from here
			b := &dts.Blackout{TenantID: dts.DefaultTenant, Name: "later", Window: dts.Window{Start: w.now().Add(time.Hour), End: w.now().Add(2 * time.Hour)}}
			if _, err := w.s.CreateBlackout(w.ctx, b); err != nil {
				t.Error(err)
			}
		}()
		w.settle(time.Second)
		w.black(time.Minute, 10*time.Minute, nil)
		w.add(2*time.Minute, nil)
		w.settle(time.Hour)
		got := w.newBegan(0)
		if len(got) != 1 || got[0][len(got[0])-len("10m0s"):] != "10m0s" {
			t.Errorf("runs: %s", got)
		}
	})
}

// TestCalendarOfBoth: a calendar is changed that a blackout and a recurring task use: what waited is decided about as well
// as what is ahead.
func TestCalendarOfBoth(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		begin, end := w.now().Add(time.Minute), w.now().Add(time.Hour)
		c := &dts.Calendar{TenantID: dts.DefaultTenant, Name: "freeze", Windows: []dts.Window{{Start: begin, End: end}}}
		if _, err := w.s.CreateCalendar(w.ctx, c); err != nil {
			t.Fatal(err)
		}
		if _, err := w.s.CreateBlackout(w.ctx, &dts.Blackout{TenantID: dts.DefaultTenant, Name: "b", Calendar: c.Name}); err != nil {
			t.Fatal(err)
		}
		r := w.every("* * * * *", func(r *dts.RecurringTask) { r.RequireCalendars = []string{c.Name} })
		w.settle(20*time.Minute + 30*time.Second)
		c.Windows = []dts.Window{{Start: begin, End: w.now()}, {Start: end, End: end.Add(2 * time.Minute)}}
		if _, err := w.s.ReplaceCalendar(w.ctx, c); err != nil {
			t.Fatal(err)
		}
		w.settle(2 * time.Hour)
		want := []string{"00:19:00 at 20m30s", "00:20:00 at 20m30s", "01:01:00 at 1h2m0s", "01:00:00 at 1h2m0s"}
		got := w.newBegan(0)
		if len(got) == 4 && got[2] > got[3] {
			got[2], got[3] = got[3], got[2]
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("runs (-want +got):\n%s", diff)
		}
		w.book(r.ID, time.Minute)
		w.atRest()
	})
}
