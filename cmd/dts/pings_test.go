package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dts"
	pingjudge "dts/exec/pings"
	"dts/migrations"
	"dts/sched"
	"dts/sched/timer"
	"dts/store"
	"dts/store/sqlite"
)

// pingWorld is a scheduler over a real database file that is told of pings, in fake time.
type pingWorld struct {
	t       *testing.T
	dir     string
	skew    atomic.Int64 // of its clock against the bubble's, in nanoseconds: an idle day takes seconds even in fake time
	runs    bool
	st      *store.Store
	s       *sched.Scheduler
	reports *pingReports
}

// inPingWorld runs a test that begins at a time of UTC.
func inPingWorld(t *testing.T, begin string, f func(w *pingWorld)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &pingWorld{t: t, dir: dir}
		at, err := time.Parse("2006-01-02 15:04:05", begin)
		if err != nil {
			t.Fatal(err)
		}
		w.skew.Store(int64(time.Until(at)))
		w.start()
		defer w.stop()
		f(w)
	})
}

func (w *pingWorld) now() time.Time { return time.Now().Add(time.Duration(w.skew.Load())) }

// nobody runs what is no PING.
type nobody struct{}

func (nobody) Run(context.Context, dts.Job) dts.Outcome {
	return dts.Outcome{State: dts.AttemptSuccess}
}

func (w *pingWorld) start() {
	w.t.Helper()
	ctx, began := context.Background(), time.Now()
	db, err := sqlite.Open(ctx, filepath.Join(w.dir, "dts.db"), sqlite.Options{Migrations: migrations.FS})
	if err != nil {
		w.t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(w.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	w.st = store.New(db, store.Options{})
	w.s = sched.New(sched.Options{
		Store: w.st, Runner: &pingjudge.Runner{Store: w.st, Next: nobody{}, Now: w.now}, Log: log,
		Refused:  func(err error) bool { return errors.Is(err, store.ErrRefused) },
		NewTimer: func() timer.Timer { return timer.NewPortableClock(w.now) }, Now: w.now,
		Boottime: func() time.Duration { return time.Since(began) }, Node: dts.Node{ID: "node-1", BootID: "boot-1"},
	})
	if err := w.s.Start(ctx); err != nil {
		w.t.Fatal(err)
	}
	w.runs = true
	w.reports = &pingReports{st: w.st, scheduler: w.s, log: log, now: w.now}
}

func (w *pingWorld) stop() {
	w.t.Helper()
	w.runs = false
	if err := errors.Join(w.s.Stop(context.Background()), w.st.Close()); err != nil {
		w.t.Error(err)
	}
}

// expect makes a PING.
func (w *pingWorld) expect(config string, edit func(*dts.RecurringTask)) *dts.RecurringTask {
	w.t.Helper()
	r := &dts.RecurringTask{Spec: dts.Spec{Name: "job", TargetType: dts.Ping, TargetConfig: []byte(config)}}
	edit(r)
	if err := r.Normalize(); err != nil {
		w.t.Fatal(err)
	}
	made, err := w.s.CreateRecurring(context.Background(), r)
	if err != nil {
		w.t.Fatal(err)
	}
	return made.Item
}

// at sleeps until a time of UTC, and until everything that is due then is done. From most of a long time in which nothing is
// due the server is down.
func (w *pingWorld) at(text string) {
	w.t.Helper()
	at, err := time.Parse("2006-01-02 15:04:05", text)
	if err != nil || at.Before(w.now()) {
		w.t.Fatalf("%s is no time to come: %v", text, err)
	}
	if quiet := at.Sub(w.now()) - 12*time.Minute; quiet > 2*time.Hour {
		runs := w.runs
		if runs {
			w.stop()
		}
		w.skew.Add(int64(quiet))
		if runs {
			w.start()
		}
	}
	time.Sleep(at.Sub(w.now()))
	synctest.Wait()
}

// ping reports, and waits until what that leads to is done.
func (w *pingWorld) ping(r *dts.RecurringTask, kind dts.PingKind, body string) {
	w.t.Helper()
	p := &dts.PingRecord{Kind: kind, Body: body, BodyBytes: int64(len(body))}
	if err := w.reports.Report(context.Background(), r.ID, p); err != nil {
		w.t.Fatal(err)
	}
	time.Sleep(time.Millisecond)
	synctest.Wait()
}

// ledger is what became of each instant, oldest first: "01-02 03:00 SUCCESS 5m0s", and the error of what failed.
func (w *pingWorld) ledger(r *dts.RecurringTask) []string {
	w.t.Helper()
	page, err := w.st.Occurrences(context.Background(), dts.DefaultTenant, r.ID, "", 100)
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, o := range slices.Backward(page.Items) {
		at := o.ScheduledAt.Format("01-02 15:04")
		switch t := o.Task; {
		case o.Skip != nil:
			out = append(out, fmt.Sprintf("%s skipped %s: %s", at, o.Skip.Reason, o.Skip.Note))
		case t.Status == dts.Success:
			out = append(out, fmt.Sprintf("%s SUCCESS %s", at, t.CompletedAt.Sub(t.StartedAt).Round(time.Second)))
		case t.Status != dts.Pending:
			out = append(out, fmt.Sprintf("%s %s %s", at, t.Status, t.LastError))
		}
	}
	return out
}

func (w *pingWorld) wants(r *dts.RecurringTask, want ...string) {
	w.t.Helper()
	if got := w.ledger(r); !slices.Equal(got, want) {
		w.t.Errorf("the ledger is\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func daily(grace string, cron string) (string, func(*dts.RecurringTask)) {
	return `{"grace_seconds": ` + grace + `}`, func(r *dts.RecurringTask) { r.Cron = cron }
}

// A job of 03:00 with a grace of ten minutes: in time, missing, failed, early, too early, late.
func TestPings(t *testing.T) {
	inPingWorld(t, "2000-01-01 00:00:00", func(w *pingWorld) {
		r := w.expect(daily("600", "0 3 * * *"))
		w.at("2000-01-01 03:00:01")
		w.ping(r, dts.PingStart, "")
		w.at("2000-01-01 03:04:01")
		w.ping(r, dts.PingSuccess, "1234 files")
		want := []string{"01-01 03:00 SUCCESS 4m0s"}
		w.wants(r, want...) // at once, and not after the grace

		w.at("2000-01-02 03:09:59")
		w.wants(r, want...)
		w.at("2000-01-02 03:10:01")
		want = append(want, "01-02 03:00 FAILED no ping came by 2000-01-02 03:10:00 UTC")
		w.wants(r, want...)

		w.at("2000-01-03 03:01:00")
		w.ping(r, dts.PingFailure, "no space left")
		want = append(want, "01-03 03:00 FAILED the job reported a failure at 2000-01-03 03:01:00 UTC: no space left")
		w.wants(r, want...)

		w.at("2000-01-04 02:55:00") // its clock is ahead
		w.ping(r, dts.PingStart, "")
		w.at("2000-01-04 02:57:00")
		w.ping(r, dts.PingSuccess, "")
		w.wants(r, want...)
		w.at("2000-01-04 03:10:01")
		want = append(want, "01-04 03:00 SUCCESS 2m0s")
		w.wants(r, want...)

		w.at("2000-01-04 20:00:00") // somebody tries it by hand: that says nothing about the next night
		w.ping(r, dts.PingSuccess, "")
		w.at("2000-01-05 03:10:01")
		want = append(want, "01-05 03:00 FAILED no ping came by 2000-01-05 03:10:00 UTC")
		w.wants(r, want...)

		w.at("2000-01-05 05:00:00") // late: it has failed, and a retry judges it anew
		w.ping(r, dts.PingSuccess, "")
		w.wants(r, want...)
		failed := w.newest(r)
		if _, err := w.s.DoTask(context.Background(), dts.DefaultTenant, failed.ID, dts.RetryNow, "tester"); err != nil {
			t.Fatal(err)
		}
		w.at("2000-01-05 05:00:02")
		w.wants(r, append(want[:len(want)-1:len(want)-1], "01-05 03:00 SUCCESS 0s")...)
	})
}

// newest is the newest occurrence that has ended.
func (w *pingWorld) newest(r *dts.RecurringTask) *dts.Task {
	w.t.Helper()
	page, err := w.st.Occurrences(context.Background(), dts.DefaultTenant, r.ID, "", 100)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, o := range page.Items {
		if o.Task != nil && o.Task.Status != dts.Pending {
			return o.Task
		}
	}
	w.t.Fatal("nothing has ended")
	return nil
}

// A job that takes hours is given until max_runtime_seconds after its start, and holds no slot meanwhile.
func TestPingsMaxRuntime(t *testing.T) {
	inPingWorld(t, "2000-01-01 00:00:00", func(w *pingWorld) {
		r := w.expect(`{"grace_seconds": 600, "max_runtime_seconds": 7200}`, func(r *dts.RecurringTask) { r.Cron = "0 3 * * *" })
		w.at("2000-01-01 03:02:00")
		w.ping(r, dts.PingStart, "")
		w.at("2000-01-01 04:30:00")
		w.wants(r)
		for _, p := range w.s.Status().Pools {
			if p.Running > 0 {
				t.Errorf("a slot is held: %+v", p)
			}
		}
		w.ping(r, dts.PingSuccess, "")
		want := []string{"01-01 03:00 SUCCESS 1h28m0s"}
		w.wants(r, want...)

		w.at("2000-01-02 03:02:00")
		w.ping(r, dts.PingStart, "")
		w.at("2000-01-02 05:01:59")
		w.wants(r, want...)
		w.at("2000-01-02 05:02:01")
		want = append(want, "01-02 03:00 FAILED the job started at 2000-01-02 03:02:00 UTC, and no success ping came by 2000-01-02 05:02:00 UTC; max_runtime_seconds is 7200")
		w.wants(r, want...)

		w.at("2000-01-03 03:10:01") // no start: that is known at the end of the grace
		w.wants(r, append(want, "01-03 03:00 FAILED no ping came by 2000-01-03 03:10:00 UTC")...)
	})
}

// What was reported in time counts, although no server ran when it was to be judged, and although the schedule has been changed.
func TestPingsEarlyAndDown(t *testing.T) {
	inPingWorld(t, "2000-01-01 00:00:00", func(w *pingWorld) {
		r := w.expect(daily("600", "0 3 * * *"))
		w.at("2000-01-01 02:58:00")
		w.ping(r, dts.PingSuccess, "12 files")
		w.stop()
		w.at("2000-01-01 03:30:00")
		w.start()
		w.at("2000-01-01 03:30:05")
		w.wants(r, "01-01 03:00 SUCCESS 0s")

		w.at("2000-01-02 02:58:00")
		w.ping(r, dts.PingSuccess, "")
		cron := "0 4 * * *"
		if _, err := w.s.ModifyRecurring(context.Background(), dts.DefaultTenant, r.ID, dts.RecurringPatch{Cron: &cron}); err != nil {
			t.Fatal(err)
		}
		w.at("2000-01-02 04:10:01")
		w.wants(r, "01-01 03:00 SUCCESS 0s", "01-02 03:00 SUCCESS 0s", "01-02 04:00 FAILED no ping came by 2000-01-02 04:10:00 UTC")
	})
}

// The clock of an hourly job's machine is three seconds ahead, and the job takes two: its start gives it hours, and its end, which
// is before its instant, takes them back, so that what comes an hour later is not taken for its own.
func TestPingsMaxRuntimeOfEarlyJob(t *testing.T) {
	inPingWorld(t, "2000-01-01 00:00:00", func(w *pingWorld) {
		r := w.expect(`{"grace_seconds": 600, "max_runtime_seconds": 14400}`, func(r *dts.RecurringTask) { r.Cron = "0 * * * *" })
		var want []string
		for _, hour := range []string{"00", "01", "02", "03"} {
			w.at("2000-01-01 " + hour + ":59:57")
			w.ping(r, dts.PingStart, "")
			w.at("2000-01-01 " + hour + ":59:59")
			w.ping(r, dts.PingSuccess, "")
			w.wants(r, want...)
			next := fmt.Sprintf("0%c", hour[1]+1)
			w.at("2000-01-01 " + next + ":10:01")
			want = append(want, "01-01 "+next+":00 SUCCESS 2s")
			w.wants(r, want...)
		}
	})
}

// The clock of Berlin is put forward on 29 March 2026 over 02:30, and back on 25 October, when 02:30 comes twice.
func TestPingsOverDST(t *testing.T) {
	config, edit := daily("600", "30 2 * * *")
	berlin := func(r *dts.RecurringTask) { edit(r); r.TimeZone = "Europe/Berlin" }
	inPingWorld(t, "2026-03-27 12:00:00", func(w *pingWorld) {
		r := w.expect(config, berlin)
		w.at("2026-03-28 01:31:00") // 02:31 CET
		w.ping(r, dts.PingSuccess, "")
		w.at("2026-03-29 01:05:00") // 03:05 CEST: five minutes after the end of the gap
		w.ping(r, dts.PingSuccess, "")
		w.at("2026-03-30 00:29:00") // 02:29 CEST: an hour earlier than before, by UTC, and a minute early
		w.ping(r, dts.PingSuccess, "")
		w.at("2026-03-30 00:40:01")
		w.at("2026-03-31 00:40:01") // 02:40 CEST
		w.wants(r, "03-28 01:30 SUCCESS 0s", "03-29 01:00 SUCCESS 0s", "03-30 00:30 SUCCESS 0s",
			"03-31 00:30 FAILED no ping came by 2026-03-31 00:40:00 UTC")
	})
	inPingWorld(t, "2026-10-23 12:00:00", func(w *pingWorld) {
		r := w.expect(config, berlin)
		w.at("2026-10-24 00:30:05") // 02:30 CEST
		w.ping(r, dts.PingSuccess, "")
		w.at("2026-10-25 00:30:05") // the first 02:30
		w.ping(r, dts.PingSuccess, "")
		w.at("2026-10-25 01:30:05") // the second one: nothing expects it
		w.ping(r, dts.PingSuccess, "")
		w.at("2026-10-26 01:40:01")
		w.wants(r, "10-24 00:30 SUCCESS 0s", "10-25 00:30 SUCCESS 0s", "10-26 01:30 FAILED no ping came by 2026-10-26 01:40:00 UTC")
	})
}

// A job on an interval reports whenever it does: each interval needs one report.
func TestPingsOnAnInterval(t *testing.T) {
	inPingWorld(t, "2000-01-01 00:00:00", func(w *pingWorld) {
		r := w.expect(`{"grace_seconds": 60}`, func(r *dts.RecurringTask) { r.IntervalSeconds = 3600 })
		for _, at := range []string{"00:37:00", "01:37:00", "01:50:00", "02:37:00", "04:00:30"} {
			w.at("2000-01-01 " + at)
			w.ping(r, dts.PingSuccess, "")
		}
		w.at("2000-01-01 05:01:01")
		w.wants(r, "01-01 01:00 SUCCESS 0s", "01-01 02:00 SUCCESS 0s", "01-01 03:00 SUCCESS 0s", "01-01 04:00 SUCCESS 0s",
			"01-01 05:00 FAILED no ping came by 2000-01-01 05:01:00 UTC")
	})
}

// Pauses hold; what no server could hear is nobody's failure; what came before a stop counts after it.
func TestPingsPausedAndDown(t *testing.T) {
	inPingWorld(t, "2000-01-01 00:00:00", func(w *pingWorld) {
		ctx := context.Background()
		r := w.expect(daily("600", "0 3 * * *"))
		if _, err := w.s.PauseRecurring(ctx, dts.DefaultTenant, r.ID, time.Time{}, "moving", "alice"); err != nil {
			t.Fatal(err)
		}
		w.at("2000-01-01 03:01:00")
		w.ping(r, dts.PingFailure, "")
		w.at("2000-01-01 03:11:00")
		if got := w.ledger(r); len(got) != 1 || !strings.HasPrefix(got[0], "01-01 03:00 skipped PAUSED") {
			t.Errorf("paused: %q", got)
		}
		if _, err := w.s.ResumeRecurring(ctx, dts.DefaultTenant, r.ID, false, "alice"); err != nil {
			t.Fatal(err)
		}
		w.at("2000-01-02 02:58:00")
		w.ping(r, dts.PingSuccess, "")
		w.stop()
		w.at("2000-01-02 03:09:00")
		w.start()
		w.at("2000-01-02 03:10:01")
		w.stop()
		w.at("2000-01-03 09:00:00")
		w.start()
		time.Sleep(5 * time.Second)
		got := w.ledger(r)
		if len(got) != 3 || got[1] != "01-02 03:00 SUCCESS 0s" || !strings.HasPrefix(got[2], "01-03 03:00 skipped CATCH_UP: the server was not running") {
			t.Errorf("down: %q", got)
		}
		if _, err := w.s.CancelRecurring(ctx, dts.DefaultTenant, r.ID, "alice"); err != nil {
			t.Fatal(err)
		}
		if err := w.reports.Report(ctx, r.ID, &dts.PingRecord{Kind: dts.PingSuccess}); dts.CodeOf(err) != dts.ErrNotFound {
			t.Errorf("a ping of what was cancelled: %v", err)
		}
	})
}

// Dts cannot start the job, or replay it. What was pinged a thousand times keeps a hundred rows.
func TestPingsAreBounded(t *testing.T) {
	inPingWorld(t, "2000-01-01 00:00:00", func(w *pingWorld) {
		ctx := context.Background()
		r := w.expect(daily("600", "0 3 * * *"))
		if _, err := w.s.TriggerRecurring(ctx, dts.DefaultTenant, r.ID, "alice"); dts.CodeOf(err) != dts.ErrConflict {
			t.Errorf("trigger: %v", err)
		}
		_, err := w.s.BackfillRecurring(ctx, dts.DefaultTenant, r.ID, dts.BackfillRequest{From: w.now().Add(-time.Hour), To: w.now()}, "alice")
		if dts.CodeOf(err) != dts.ErrConflict {
			t.Errorf("backfill: %v", err)
		}
		for n := range 1000 {
			w.ping(r, dts.PingSuccess, fmt.Sprint(n))
		}
		list, err := w.st.Pings(ctx, dts.DefaultTenant, r.ID, 5000)
		if err != nil || len(list) != dts.MaxPings || list[0].Body != "999" || list[dts.MaxPings-1].Body != "900" {
			t.Errorf("%d are kept, %v", len(list), err)
		}
		if other, err := w.st.Pings(ctx, "another", r.ID, 5000); err != nil || len(other) > 0 {
			t.Errorf("another tenant reads %d, %v", len(other), err)
		}
	})
}
