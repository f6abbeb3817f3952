package sched_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dts"
)

func TestBackfill(t *testing.T) {
	for _, policy := range allPolicies {
		t.Run(string(policy), func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				r := w.every("*/10 * * * *", func(r *dts.RecurringTask) { r.OverlapPolicy, r.EndTime = policy, w.now().Add(2*time.Hour) })
				w.settle(3 * time.Hour)
				epoch := r.CreatedAt
				w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome { return lastsFor(ctx, 90*time.Second) })
				ask := func(from, to time.Duration, dry bool) dts.BackfillAnswer {
					a, err := w.s.BackfillRecurring(w.ctx, dts.DefaultTenant, r.ID, dts.BackfillRequest{From: epoch.Add(from), To: epoch.Add(to), DryRun: dry}, "tester")
					if err != nil {
						t.Fatal(err)
					}
					return *a
				}
				at := func(d time.Duration) time.Time { return epoch.Add(d).UTC() }
				want := dts.BackfillAnswer{Count: 4, First: at(30 * time.Minute), Last: at(60 * time.Minute)}
				if diff := cmp.Diff(want, ask(30*time.Minute, time.Hour, true)); diff != "" {
					t.Errorf("dry run (-want +got):\n%s", diff)
				}
				before := len(w.run.list())
				want.Created = 4
				if diff := cmp.Diff(want, ask(30*time.Minute, time.Hour, false)); diff != "" {
					t.Errorf("backfill (-want +got):\n%s", diff)
				}
				// Sent again, and a wider one: only what is new.
				if a := ask(30*time.Minute, time.Hour, false); a.Count != 0 || a.Created != 0 {
					t.Errorf("sent again: %+v", a)
				}
				w.settle(10 * time.Second)
				if a := ask(25*time.Minute, 70*time.Minute, false); a.Count != 1 || a.Created != 1 {
					t.Errorf("a wider one: %+v", a)
				}
				w.settle(20 * time.Minute)
				var got []string
				for _, s := range w.run.list()[before:] {
					got = append(got, fmt.Sprintf("%s at %v", s.due.Format("15:04"), s.at.Sub(epoch).Truncate(time.Second)))
				}
				var runs []string
				for i := range 5 {
					began := 3 * time.Hour
					if policy != dts.OverlapAllow {
						began += time.Duration(i) * 90 * time.Second
					} else if i == 4 {
						began += 10 * time.Second
					}
					runs = append(runs, fmt.Sprintf("%s at %v", at(30*time.Minute+time.Duration(i)*10*time.Minute).Format("15:04"), began))
				}
				if policy == dts.OverlapAllow { // those of one moment begin in any order
					got = sorted(got)
				}
				if diff := cmp.Diff(runs, got); diff != "" {
					t.Errorf("runs (-want +got):\n%s", diff)
				}
				for _, x := range w.book(r.ID, 10*time.Minute).tasks {
					if x.Origin == dts.OriginBackfill && (x.Status != dts.Success || x.CreatedBy != "tester") {
						t.Errorf("the backfill of %s is %s, by %q", x.ScheduledAt, x.Status, x.CreatedBy)
					}
				}
				if got := w.recurring(r.ID); got.RunsCount != 12 {
					t.Errorf("%d runs are counted, want the 12 of the schedule", got.RunsCount)
				}
				w.atRest()
			})
		})
	}
}

func sorted(list []string) []string {
	for i := range list {
		for j := i; j > 0 && list[j] < list[j-1]; j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
	return list
}

// TestBackfillOverARestart: what was not run when the server stopped runs after, in order, one at a time.
func TestBackfillOverARestart(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		c := newCrowd(20 * time.Second)
		r := w.every("*/10 * * * *", func(r *dts.RecurringTask) { r.OverlapPolicy, r.EndTime = dts.OverlapSkip, w.now().Add(2*time.Hour) })
		w.settle(3 * time.Hour)
		w.run.behave(c.run)
		before := len(w.run.list())
		if _, err := w.s.BackfillRecurring(w.ctx, dts.DefaultTenant, r.ID, dts.BackfillRequest{From: r.CreatedAt, To: r.CreatedAt.Add(2 * time.Hour)}, "tester"); err != nil {
			t.Fatal(err)
		}
		w.settle(50 * time.Second)
		w.restart(time.Minute)
		w.settle(time.Hour)
		starts := w.run.list()[before:]
		for i := 1; i < len(starts); i++ {
			if !starts[i-1].due.Before(starts[i].due) {
				t.Errorf("%s began after %s", starts[i].due, starts[i-1].due)
			}
		}
		if len(starts) != 13 || c.most[r.ID] != 1 { // the first and the last instant included
			t.Errorf("%d runs, %d at once; want 13, one after another", len(starts), c.most[r.ID])
		}
		w.atRest()
	})
}

func TestBackfillIsRefused(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		sec := w.every("* * * * * *", nil)
		boot := w.every("@reboot", nil)
		gone := w.every("0 0 1 1 *", nil)
		if _, err := w.s.CancelRecurring(w.ctx, dts.DefaultTenant, gone.ID, "tester"); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Minute)
		now := w.now()
		for name, c := range map[string]struct {
			id       string
			from, to time.Time
			code     dts.Code
			says     string
		}{
			"too many":  {sec.ID, now.Add(-10_001 * time.Second), now.Add(-time.Second), dts.ErrInvalid, "10001"},
			"future":    {sec.ID, now, now.Add(time.Minute), dts.ErrInvalid, "future"},
			"backwards": {sec.ID, now, now.Add(-time.Minute), dts.ErrInvalid, "before"},
			"no from":   {sec.ID, time.Time{}, now, dts.ErrInvalid, "both"},
			"boot":      {boot.ID, now.Add(-time.Minute), now, dts.ErrInvalid, "@reboot"},
			"cancelled": {gone.ID, now.Add(-time.Minute), now, dts.ErrConflict, "CANCELLED"},
			"unknown":   {"x", now.Add(-time.Minute), now, dts.ErrNotFound, ""},
		} {
			for _, dry := range []bool{true, false} {
				_, err := w.s.BackfillRecurring(w.ctx, dts.DefaultTenant, c.id, dts.BackfillRequest{From: c.from, To: c.to, DryRun: dry}, "tester")
				if dts.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%s: %v, want %v with %q", name, err, c.code, c.says)
				}
				if name == "too many" && !strings.Contains(err.Error(), "10000") {
					t.Errorf("the limit is not said: %v", err)
				}
			}
		}
		// As many as are allowed.
		a, err := w.s.BackfillRecurring(w.ctx, dts.DefaultTenant, sec.ID, dts.BackfillRequest{From: now.Add(-10_000 * time.Second), To: now.Add(-time.Second), DryRun: true}, "tester")
		if err != nil || a.Count != 10_000 {
			t.Errorf("%+v, %v", a, err)
		}
	})
}
