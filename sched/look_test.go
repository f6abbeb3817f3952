package sched_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"dts"
	"dts/sched"
)

// Why, asked of a real server about what really happened.
func TestWhy(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.HTTPSlots = 1 }, func(w *world) {
		why := func(id string, at time.Time) *dts.Why {
			t.Helper()
			y, err := w.s.Why(w.ctx, dts.DefaultTenant, id, at)
			if err != nil {
				t.Fatal(err)
			}
			return y
		}
		says := func(y *dts.Why, text string) {
			t.Helper()
			if !strings.Contains(y.Answer, text) {
				t.Errorf("%s; want %s", y.Answer, text)
			}
		}
		w.run.behave(takes(10 * time.Second))
		first, second := w.add(time.Second, nil), w.add(2*time.Second, nil)
		says(why(first.ID, time.Time{}), "It is not due before")
		w.settle(5 * time.Second)
		says(why(first.ID, time.Time{}), "It has been running for 4 s")
		says(why(second.ID, time.Time{}), "waits for a slot: all 1 that this server has")
		w.settle(30 * time.Second)
		says(why(second.ID, time.Time{}), "took 10 s and succeeded; it started 9 s late, because it waited for a slot.")

		w.run.behave(nil)
		third := w.add(time.Minute, nil)
		w.restart(2 * time.Minute)
		w.settle(time.Second)
		says(why(third.ID, time.Time{}), "it started 1 m late, because the server was down: server node-1 came up at")

		r := w.every("* * * * *", func(r *dts.RecurringTask) { r.CatchUpMode = dts.SkipMissed })
		says(why(r.ID, time.Time{}), "None of its instants has come yet; the first is")
		w.settle(2 * time.Minute)
		y := why(r.ID, time.Time{})
		if says(y, "and succeeded"); y.Task == nil || y.Scheduled == nil || !y.Task.ScheduledAt.Equal(*y.Scheduled) {
			t.Errorf("%+v", y)
		}
		w.restart(time.Hour)
		w.settle(time.Second)
		y = why(r.ID, time.Time{})
		if says(y, "the catch-up mode SKIP_MISSED did not make up for it"); y.Skip == nil || y.Skip.Reason != dts.ReasonCatchUp {
			t.Errorf("%+v", y)
		}
		says(why(r.ID, w.now().Truncate(time.Minute).Add(30*time.Second)), "is not an instant of this schedule; the ones before and after are")
		says(why(r.ID, w.now().Truncate(time.Minute).Add(24*time.Hour)), "it is beyond what is planned yet, up to")
		// Instants of an interval can lie within a second; people read and type whole ones.
		n := w.every("", func(r *dts.RecurringTask) {
			r.Cron, r.IntervalSeconds, r.StartTime = "", 60, w.now().Truncate(time.Second).Add(2*time.Second+787*time.Millisecond)
		})
		w.settle(5 * time.Second)
		if y := why(n.ID, n.StartTime.Truncate(time.Second)); y.Task == nil || !y.Task.ScheduledAt.Equal(n.StartTime) {
			t.Errorf("%+v", y)
		}
		says(why(n.ID, n.StartTime.Truncate(time.Second).Add(time.Second)), "is not an instant of this schedule")
		if _, err := w.s.Why(w.ctx, "another", r.ID, time.Time{}); dts.CodeOf(err) != dts.ErrNotFound {
			t.Error(err)
		}
	})
}

// Why, of tasks that policies let wait or skip.
func TestWhyWaiting(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		says := func(id string, at time.Time, text string) {
			t.Helper()
			y, err := w.s.Why(w.ctx, dts.DefaultTenant, id, at)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(y.Answer, text) {
				t.Errorf("%s; want %s", y.Answer, text)
			}
		}
		minute := func() time.Time { return w.now().Truncate(time.Minute) }
		w.run.behave(takes(90 * time.Second))
		r := w.every("* * * * *", func(r *dts.RecurringTask) { r.OverlapPolicy = dts.OverlapBufferOne })
		w.settle(minute().Add(2*time.Minute + 5*time.Second).Sub(w.now()))
		second := minute()
		says(r.ID, second, "waits until the run before it has ended (overlap_policy BUFFER_ONE).")
		w.settle(3 * time.Minute)
		says(r.ID, second, "it started 30 s late, because the run before it had to end first (overlap_policy BUFFER_ONE).")
		if _, err := w.s.CancelRecurring(w.ctx, dts.DefaultTenant, r.ID, "tester"); err != nil {
			t.Fatal(err)
		}
		w.settle(10 * time.Minute)

		w.run.behave(nil)
		for _, b := range []*dts.Blackout{
			{Name: "upgrade", Action: dts.BlackoutWait, Queue: "db", Window: dts.Window{Start: w.now(), End: w.now().Add(10 * time.Minute)}},
			{Name: "freeze", Action: dts.BlackoutSkip, Queue: "mail", Window: dts.Window{Start: w.now(), End: w.now().Add(10 * time.Minute)}},
		} {
			b.TenantID = dts.DefaultTenant
			if _, err := w.s.CreateBlackout(w.ctx, b); err != nil {
				t.Fatal(err)
			}
		}
		db, mail := w.add(time.Minute, func(k *dts.Task) { k.Queue = "db" }), w.add(time.Minute, func(k *dts.Task) { k.Queue = "mail" })
		says(db.ID, time.Time{}, "; then it waits for the end of the blackout upgrade at ")
		says(mail.ID, time.Time{}, "; it will be skipped then, because the blackout freeze is open.")
		w.settle(2 * time.Minute)
		says(db.ID, time.Time{}, ", and waits for the end of the blackout upgrade at ")
		says(mail.ID, time.Time{}, ": a blackout was open (the blackout freeze).")
		w.settle(10 * time.Minute)
		says(db.ID, time.Time{}, "it started 9 m late, because the blackout upgrade ended at ")
	})
}

// Conflicts, of a server's real tasks, with how long they really took.
func TestConflicts(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.HTTPSlots = 2 }, func(w *world) {
		w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome {
			return takes(map[string]time.Duration{"long": 10 * time.Minute, "short": time.Minute}[j.Task.Name])(ctx, j)
		})
		for name, cron := range map[string]string{"long": "0 * * * *", "short": "5 * * * *", "new": "5 6 * * *"} {
			w.every(cron, func(r *dts.RecurringTask) { r.Name = name })
		}
		w.settle(3 * time.Hour)
		from := w.now()
		found, err := w.s.Conflicts(w.ctx, dts.DefaultTenant, from, from.Add(24*time.Hour))
		if err != nil || len(found) != 1 {
			t.Fatalf("%+v %v", found, err)
		}
		c := found[0]
		if c.From.Format("15:04:05") != "06:05:00" || c.To.Sub(c.From) != time.Second || c.Most != 3 || c.Limit != 2 || c.Times != 1 || len(c.Tasks) != 3 || c.Shared != "slots for HTTP calls" {
			t.Errorf("%+v", c)
		}
		for _, k := range c.Tasks {
			if want := map[string]float64{"long": 600, "short": 60, "new": 1}[k.Name]; k.Seconds != want || k.RecurringTaskID == "" {
				t.Errorf("%+v, want %v s", k, want)
			}
		}
		at := c.From.Truncate(time.Hour).Add(time.Hour + 5*time.Minute)
		w.add(at.Sub(w.now()), func(k *dts.Task) { k.Name = "once" })
		if found, err = w.s.Conflicts(w.ctx, dts.DefaultTenant, time.Time{}, from.Add(24*time.Hour)); err != nil || len(found) != 2 || !found[0].From.Equal(c.From) || !found[1].From.Equal(at) || found[1].Tasks[2].TaskID == "" {
			t.Errorf("%+v %v", found, err)
		}
		for _, tt := range []struct {
			from, to time.Time
			says     string
		}{{from, from.AddDate(0, 3, 0), "is more than 31 days after from"}, {from, from.Add(-time.Hour), "must be after from"}} {
			if _, err := w.s.Conflicts(w.ctx, dts.DefaultTenant, tt.from, tt.to); dts.CodeOf(err) != dts.ErrInvalid || !strings.Contains(err.Error(), tt.says) {
				t.Error(err)
			}
		}
	})
}

// Preview of a recurring task that is stored: with its own jitter, counts and times.
func TestPreviewStored(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.run.behave(takes(90 * time.Second))
		r := w.every("* * * * *", func(r *dts.RecurringTask) { r.OverlapPolicy, r.JitterSeconds = dts.OverlapSkip, 10 })
		w.settle(30*time.Minute + 20*time.Second)
		p, err := w.s.Preview(w.ctx, dts.DefaultTenant, dts.PreviewRequest{RecurringTaskID: r.ID, Count: 2, Since: w.now().Add(-10 * time.Minute)})
		if err != nil {
			t.Fatal(err)
		}
		if p.Description != "Every minute" || p.TimeZone != "UTC" || len(p.Instants) != 2 || p.Missed.Missed != 9 {
			t.Fatalf("%+v %+v", p, p.Missed)
		}
		for _, x := range p.Instants {
			skipped := !x.Runs && strings.Contains(x.Effects[len(x.Effects)-1].Text, "by then: it is skipped")
			if skipped == x.Runs || !x.DueAt.Equal(x.UTC.Add(r.Jitter())) {
				t.Errorf("%+v", x)
			}
		}
		if a, b := p.Instants[0].Runs, p.Instants[1].Runs; a == b {
			t.Error("each second one runs, says the time that runs take")
		}
		if _, err := w.s.Preview(w.ctx, "another", dts.PreviewRequest{RecurringTaskID: r.ID}); dts.CodeOf(err) != dts.ErrNotFound {
			t.Error(err)
		}
		p, err = w.s.Preview(w.ctx, dts.DefaultTenant, dts.PreviewRequest{Schedule: dts.Schedule{Cron: "@reboot"}})
		if err != nil || !p.AtBoot || p.Instants == nil || len(p.Instants) != 0 {
			t.Errorf("%+v %v", p, err)
		}
	})
}
