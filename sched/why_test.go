package sched

import (
	"testing"
	"time"

	"dts"
	"dts/sched/calendar"
	"dts/sched/timetable"
)

// whyNow is the time of the questions, a Tuesday.
var whyNow = time.Date(2026, 3, 3, 12, 0, 0, 0, time.UTC)

func TestWhyTask(t *testing.T) {
	due := whyNow.Add(-time.Hour) // 11:00
	us := func(d time.Duration) *int64 { n := d.Microseconds(); return &n }
	attempt := func(number int, start time.Time, took time.Duration, err string) *dts.Attempt {
		return &dts.Attempt{Number: number, Node: "n1", PickedAt: due.Add(-2 * time.Second), StartedAt: start, DurationUS: took.Microseconds(), Error: err}
	}
	// ran makes a task that started late by so much.
	ran := func(late time.Duration) taskFacts {
		k := &dts.Task{Status: dts.Success, DueAt: due, ScheduledAt: due, RunAt: due, CreatedAt: due.Add(-24 * time.Hour), Attempts: 1, MaxAttempts: 3, Node: "n1",
			StartedAt: due.Add(late), CompletedAt: due.Add(late + 2*time.Second), LatenessUS: us(late)}
		return taskFacts{t: k, attempts: []*dts.Attempt{attempt(1, k.StartedAt, 2*time.Second, "")}, node: dts.Node{ID: "n1", StartedAt: due.Add(-48 * time.Hour)}}
	}
	pending := func(edit func(*taskFacts)) taskFacts {
		f := taskFacts{t: &dts.Task{Status: dts.Pending, DueAt: due, ScheduledAt: due, RunAt: due, MaxAttempts: 3}, server: serverFacts{slots: 64}}
		edit(&f)
		return f
	}
	edited := func(f taskFacts, edit func(*taskFacts)) taskFacts { edit(&f); return f }
	later := func(f *taskFacts) {
		f.t.DueAt = whyNow.Add(2 * time.Hour)
		f.t.ScheduledAt, f.t.RunAt = f.t.DueAt, f.t.DueAt
	}
	upgrade := &barred{by: []string{"upgrade"}, until: whyNow.Add(30 * time.Minute)}
	freeze := &barred{by: []string{"freeze"}, until: whyNow.Add(3 * time.Hour), skipped: true}
	r := &dts.RecurringTask{Status: dts.Active, MisfireAfterSeconds: 60, CatchUpMode: dts.RunLatest}
	paused := &dts.RecurringTask{Status: dts.Paused}
	for _, tt := range []struct {
		name string
		f    taskFacts
		want string
	}{
		{"not due", pending(later), "It is not due before Tue 2026-03-03 14:00:00 UTC, in 2 h."},
		{"moved", pending(func(f *taskFacts) { later(f); f.t.Moved, f.t.ScheduledAt = true, whyNow }), "It is not due before Tue 2026-03-03 14:00:00 UTC, in 2 h; it was moved there by hand from Tue 2026-03-03 12:00:00 UTC."},
		{"jitter", pending(func(f *taskFacts) {
			later(f)
			f.t.ScheduledAt = f.t.DueAt.Add(-95 * time.Second)
			f.r = &dts.RecurringTask{Schedule: dts.Schedule{JitterSeconds: 300}}
		}), "It is not due before Tue 2026-03-03 14:00:00 UTC, in 2 h, which is 1 m 35 s after Tue 2026-03-03 13:58:25 UTC by its jitter."},
		{"not due, paused", pending(func(f *taskFacts) { later(f); f.r, f.t.Origin = paused, dts.OriginSchedule }), "It is not due before Tue 2026-03-03 14:00:00 UTC, in 2 h; it will be skipped then, because the recurring task is paused."},
		{"not due, skipping blackout", pending(func(f *taskFacts) { later(f); f.blackout = freeze }), "It is not due before Tue 2026-03-03 14:00:00 UTC, in 2 h; it will be skipped then, because the blackout freeze is open."},
		{"retry", pending(func(f *taskFacts) {
			f.t.Attempts, f.t.LastError, f.t.RunAt = 1, "answered 503", whyNow.Add(8*time.Second)
			f.t.NextAttemptAt = f.t.RunAt
		}), "It waits for attempt 2 of 3, at Tue 2026-03-03 12:00:08 UTC, in 8 s, after attempt 1 failed: answered 503."},
		{"it is paused", pending(func(f *taskFacts) { f.t.WaitsFor, f.t.RunAt = dts.ReasonPaused, whyNow.Add(dts.FutureAllowed) }), "It is paused: it was due at Tue 2026-03-03 11:00:00 UTC, and does not start before somebody resumes it."},
		{"paused ahead, with parents", pending(func(f *taskFacts) { later(f); f.t.WaitsFor, f.t.Unresolved = dts.ReasonPaused, 2 }), "It is paused: it is due at Tue 2026-03-03 14:00:00 UTC, and does not start before somebody resumes it; it also waits for 2 tasks that it depends on."},
		{"paused between attempts", pending(func(f *taskFacts) {
			f.t.WaitsFor, f.t.Attempts, f.t.NextAttemptAt, f.t.RunAt = dts.ReasonPaused, 1, whyNow.Add(time.Minute), whyNow.Add(dts.FutureAllowed)
		}), "It is paused: attempt 2 is due at Tue 2026-03-03 12:01:00 UTC, and does not start before somebody resumes it."},
		{"dependencies", pending(func(f *taskFacts) { f.t.Unresolved = 2 }), "It waits for 2 tasks that it depends on."},
		{"a dependency, by name", pending(func(f *taskFacts) {
			f.t.Unresolved, f.parents = 1, []dts.GraphTask{{ID: "1", Name: "load", Status: dts.Running}}
		}), "It waits for 1 task that it depends on: load (RUNNING)."},
		{"dependencies, by name", pending(func(f *taskFacts) {
			f.t.Unresolved, f.t.DependsMode = 5, dts.DependsAny
			for _, id := range []string{"1", "2", "3", "4"} {
				f.parents = append(f.parents, dts.GraphTask{ID: id, Status: dts.Pending})
			}
		}), "It waits for one of 5 tasks that it depends on: 1 (PENDING), 2 (PENDING), 3 (PENDING) and 2 more."},
		{"the run before", pending(func(f *taskFacts) { f.t.WaitsFor, f.t.Overlap = dts.ReasonOverlap, dts.OverlapBufferOne }), "It was due at Tue 2026-03-03 11:00:00 UTC, and waits until the run before it has ended (overlap_policy BUFFER_ONE)."},
		{"a blackout", pending(func(f *taskFacts) {
			f.t.WaitsFor, f.blackout, f.t.RunAt = dts.ReasonBlackout, upgrade, upgrade.until
		}), "It was due at Tue 2026-03-03 11:00:00 UTC, and waits for the end of the blackout upgrade at Tue 2026-03-03 12:30:00 UTC."},
		{"the clock", pending(func(f *taskFacts) { f.server.notReady = []string{"the clock says 1970; set the clock"} }), "It was due at Tue 2026-03-03 11:00:00 UTC, but this server does not start it: the clock says 1970; set the clock."},
		{"no slot", pending(func(f *taskFacts) { f.server.full = true }), "It was due at Tue 2026-03-03 11:00:00 UTC, and waits for a slot: all 64 that this server has for tasks of its kind are in use."},
		{"the queue's share", pending(func(f *taskFacts) { f.t.Queue, f.server.share = "slow", 49 }), "It was due at Tue 2026-03-03 11:00:00 UTC, and waits for a slot: the queue \"slow\" uses 49 of the 64 that this server has for tasks of its kind, and must leave the rest to others."},
		{"the queue's rate", pending(func(f *taskFacts) {
			f.t.Queue, f.server.throttled, f.server.queue = "slow", true, &dts.Queue{Name: "slow", Rate: 5, PeriodSeconds: 60, Burst: 1}
		}), "It was due at Tue 2026-03-03 11:00:00 UTC, and waits for its turn: of the queue \"slow\" no more than 5 start in 1 m."},
		{"a paused queue", pending(func(f *taskFacts) {
			f.t.Queue, f.server.queue = "slow", &dts.Queue{Name: "slow", Paused: true, PausedAt: due, PauseNote: "upgrade"}
		}), "It was due at Tue 2026-03-03 11:00:00 UTC, and waits until somebody resumes it: the queue \"slow\" is paused, since Tue 2026-03-03 11:00:00 UTC (upgrade)."},
		{"not due, a paused queue", pending(func(f *taskFacts) {
			later(f)
			f.t.Queue, f.server.queue = "slow", &dts.Queue{Name: "slow", Paused: true, PausedAt: due}
		}), "It is not due before Tue 2026-03-03 14:00:00 UTC, in 2 h; then it waits until somebody resumes it: the queue \"slow\" is paused, since Tue 2026-03-03 11:00:00 UTC."},
		{"elsewhere", pending(func(f *taskFacts) { f.server.elsewhere = "n2" }), "It was due at Tue 2026-03-03 11:00:00 UTC, and server n2 starts it, as soon as it can; ask that one for more."},
		{"nowhere", pending(func(f *taskFacts) { f.server.elsewhere = "-" }), "It was due at Tue 2026-03-03 11:00:00 UTC, and no server holds its shard now; one of those that live takes it within seconds."},
		{"missed", pending(func(f *taskFacts) { f.t.MissAt = due.Add(time.Minute) }), "It was due at Tue 2026-03-03 11:00:00 UTC, which is too long ago: the catch-up mode decides about it in a moment."},
		{"about to start", pending(func(f *taskFacts) {}), "It was due at Tue 2026-03-03 11:00:00 UTC, and starts in a moment."},
		{"running", edited(ran(0), func(f *taskFacts) { f.t.Status = dts.Running }), "It has been running for 1 h, since Tue 2026-03-03 11:00:00 UTC, on server n1."},
		{"success", ran(300 * time.Microsecond), "It ran at Tue 2026-03-03 11:00:00 UTC, took 2 s and succeeded."},
		{"success after a failure", edited(ran(0), func(f *taskFacts) {
			f.t.Attempts = 2
			f.attempts = []*dts.Attempt{attempt(1, due, time.Second, "answered 500"), attempt(2, due.Add(5*time.Second), 70*time.Millisecond, "")}
		}), "It ran at Tue 2026-03-03 11:00:05 UTC, took 70 ms and succeeded, as attempt 2 of 3, after the one before had failed: answered 500."},
		{"a little late", ran(250 * time.Millisecond), "It ran at Tue 2026-03-03 11:00:00 UTC, took 2 s and succeeded; it started 250 ms late."},
		{"late: no slot", ran(90 * time.Second), "It ran at Tue 2026-03-03 11:01:30 UTC, took 2 s and succeeded; it started 1 m 30 s late, because it waited for a slot."},
		{"late: its turn", edited(ran(90*time.Second), func(f *taskFacts) {
			f.t.QueuedUS, f.t.ConcurrencyKey, f.attempts[0].PickedAt = 89e6, "k", due.Add(89*time.Second)
		}), "It ran at Tue 2026-03-03 11:01:30 UTC, took 2 s and succeeded; it started 1 m 30 s late, because it waited for others with the concurrency_key \"k\", or a slot."},
		{"late: its queue, resources", edited(ran(90*time.Second), func(f *taskFacts) {
			f.t.QueuedUS, f.t.Resources, f.server.queue = 89e6, &dts.Resources{CPU: 1}, &dts.Queue{Name: "mail"}
		}), "It ran at Tue 2026-03-03 11:01:30 UTC, took 2 s and succeeded; it started 1 m 30 s late, because it waited for its queue \"mail\", or cores and memory, or a slot."},
		{"late: down", edited(ran(90*time.Second), func(f *taskFacts) { f.node.StartedAt = due.Add(88 * time.Second) }),
			"It ran at Tue 2026-03-03 11:01:30 UTC, took 2 s and succeeded; it started 1 m 30 s late, because the server was down: server n1 came up at Tue 2026-03-03 11:01:28 UTC."},
		{"late: asleep", edited(ran(90*time.Second), func(f *taskFacts) { f.attempts[0].PickedAt = due.Add(89 * time.Second) }),
			"It ran at Tue 2026-03-03 11:01:30 UTC, took 2 s and succeeded; it started 1 m 30 s late, because no server took it up before Tue 2026-03-03 11:01:29 UTC: the machine was asleep, its server had died, or very many tasks were due."},
		{"late: blackout", edited(ran(90*time.Second), func(f *taskFacts) { f.blackout = &barred{by: []string{"upgrade"}, until: due.Add(90 * time.Second)} }),
			"It ran at Tue 2026-03-03 11:01:30 UTC, took 2 s and succeeded; it started 1 m 30 s late, because the blackout upgrade ended at Tue 2026-03-03 11:01:30 UTC."},
		{"late: the run before", edited(ran(90*time.Second), func(f *taskFacts) { f.afterRun, f.t.Overlap = true, dts.OverlapBufferAll }),
			"It ran at Tue 2026-03-03 11:01:30 UTC, took 2 s and succeeded; it started 1 m 30 s late, because the run before it had to end first (overlap_policy BUFFER_ALL)."},
		{"late: made late", edited(ran(90*time.Second), func(f *taskFacts) { f.t.CreatedAt = due.Add(89 * time.Second) }),
			"It ran at Tue 2026-03-03 11:01:30 UTC, took 2 s and succeeded; it started 1 m 30 s late, because it was made only at Tue 2026-03-03 11:01:29 UTC."},
		{"force-completed", edited(ran(0), func(f *taskFacts) { f.t.LastError = "force-completed by ann" }), "It counts as done since Tue 2026-03-03 11:00:02 UTC: it was force-completed by ann."},
		{"failed", edited(ran(0), func(f *taskFacts) { f.t.Status, f.t.LastError, f.t.Attempts = dts.Failed, "exit code 2", 3 }), "It failed at Tue 2026-03-03 11:00:02 UTC, after 3 attempts: exit code 2."},
		{"cancelled", edited(ran(0), func(f *taskFacts) { f.t.Status, f.t.LastError = dts.Cancelled, "cancelled by ann" }), "It was cancelled by ann, at Tue 2026-03-03 11:00:02 UTC."},
		{"cancelled in mid-run", edited(ran(0), func(f *taskFacts) { f.t.Status, f.t.LastError = dts.Cancelled, "cancelled" }), "It was cancelled while it ran, at Tue 2026-03-03 11:00:02 UTC."},
		{"expired", edited(ran(0), func(f *taskFacts) {
			f.t.Status, f.t.SkipReason, f.t.ExpiresAt = dts.Skipped, dts.ReasonExpired, due.Add(time.Second)
		}),
			"It was due at Tue 2026-03-03 11:00:00 UTC, and was skipped at Tue 2026-03-03 11:00:02 UTC: it could not start before it expired, at Tue 2026-03-03 11:00:01 UTC."},
		{"a dependency failed", edited(ran(0), func(f *taskFacts) {
			f.t.Status, f.t.SkipReason, f.t.LastError = dts.Skipped, dts.ReasonDependency, "it depends on load (7), which ended as FAILED"
		}), "It was due at Tue 2026-03-03 11:00:00 UTC, and was skipped at Tue 2026-03-03 11:00:02 UTC: it depends on load (7), which ended as FAILED."},
		{"a dependency failed, nobody knows which", edited(ran(0), func(f *taskFacts) { f.t.Status, f.t.SkipReason = dts.Skipped, dts.ReasonDependency }),
			"It was due at Tue 2026-03-03 11:00:00 UTC, and was skipped at Tue 2026-03-03 11:00:02 UTC: what it depends on did not end as it must."},
		{"a dependency failed it", edited(ran(0), func(f *taskFacts) {
			f.t.Status, f.t.LastError, f.t.Attempts, f.t.LatenessUS = dts.Failed, "it depends on load (7), which ended as FAILED", 0, nil
		}), "It failed at Tue 2026-03-03 11:00:02 UTC without a run: it depends on load (7), which ended as FAILED."},
		{"the pause of its queue", edited(ran(0), func(f *taskFacts) { f.t.Status, f.t.SkipReason = dts.Skipped, dts.ReasonQueue }),
			"It was due at Tue 2026-03-03 11:00:00 UTC, and was skipped at Tue 2026-03-03 11:00:02 UTC: its queue was paused."},
		{"overlap", edited(ran(0), func(f *taskFacts) { f.t.Status, f.t.SkipReason = dts.Skipped, dts.ReasonOverlap }), "It was due at Tue 2026-03-03 11:00:00 UTC, and was skipped at Tue 2026-03-03 11:00:02 UTC: the run before was still active."},
		{"missed and skipped", edited(ran(0), func(f *taskFacts) { f.t.Status, f.t.SkipReason, f.r = dts.Skipped, dts.ReasonCatchUp, r }),
			"It was due at Tue 2026-03-03 11:00:00 UTC, and was skipped at Tue 2026-03-03 11:00:02 UTC: no server could start it within 1 m of its time, and the catch-up mode RUN_LATEST did not make up for it."},
		{"paused", edited(ran(0), func(f *taskFacts) {
			f.t.Status, f.t.SkipReason, f.skip = dts.Skipped, dts.ReasonPaused, &dts.Skip{Reason: dts.ReasonPaused, Note: "moving house"}
		}), "It was due at Tue 2026-03-03 11:00:00 UTC, and was skipped at Tue 2026-03-03 11:00:02 UTC: the recurring task was paused (moving house)."},
		{"blackout", edited(ran(0), func(f *taskFacts) { f.t.Status, f.t.SkipReason, f.blackout = dts.Skipped, dts.ReasonBlackout, freeze }),
			"It was due at Tue 2026-03-03 11:00:00 UTC, and was skipped at Tue 2026-03-03 11:00:02 UTC: a blackout was open (the blackout freeze)."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.f.now, tt.f.loc = whyNow, time.UTC
			if got := sentence(tt.f.answer()); got != tt.want {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestWhyInstant(t *testing.T) {
	cal, err := calendar.Compile(&dts.Calendar{Name: "closed", Days: []string{"2026-03-02", "2026-03-09"}})
	if err != nil {
		t.Fatal(err)
	}
	s := dts.Schedule{Cron: "30 9 * * *", TimeZone: "Europe/Berlin", ExcludeCalendars: []string{"closed"}}
	shifted := s
	shifted.CalendarShift = dts.ShiftNext
	compile := func(s dts.Schedule) *timetable.Table {
		c, err := timetable.Compile(&s, timetable.Options{Calendars: map[string]*calendar.Calendar{"closed": cal}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	table, moving := compile(s), compile(shifted)
	outside := s
	outside.RequireCalendars = []string{"closed"} // and never within it
	none := instantFacts{r: &dts.RecurringTask{CreatedAt: whyNow.AddDate(1, 0, 0)}, table: compile(outside)}
	if got, want := none.none(), "its calendars exclude all of its instants"; got != want {
		t.Errorf("got %s; want %s", got, want)
	}
	at := func(day, hour int) time.Time { return time.Date(2026, 3, day, hour, 30, 0, 0, time.UTC) } // 9:30 in Berlin is 8:30
	skip := func(from, to int, n int64, reason dts.Reason, note string) *dts.Skip {
		return &dts.Skip{From: at(from, 8), To: at(to, 8), Count: n, Reason: reason, Note: note}
	}
	r := dts.RecurringTask{Schedule: s, Status: dts.Active, CreatedAt: at(1, 0).AddDate(0, -1, 0), PlannedThrough: at(13, 8), MisfireAfterSeconds: 60, CatchUpMode: dts.SkipMissed}
	with := func(edit func(*dts.RecurringTask)) *dts.RecurringTask { n := r; edit(&n); return &n }
	year := skip(-300, 8, 300, dts.ReasonPaused, "")
	for _, tt := range []struct {
		name string
		f    instantFacts
		want string
		skip *dts.Skip
	}{
		{"excluded", instantFacts{at: at(2, 8), skips: []*dts.Skip{year}}, "Mon 2026-03-02 09:30:00 CET did not run: the calendar closed excludes it (2026-03-02).", nil},
		{"will be excluded", instantFacts{at: at(9, 8)}, "Mon 2026-03-09 09:30:00 CET will not run: the calendar closed excludes it (2026-03-09).", nil},
		{"excluded, and moved onto another", instantFacts{at: at(9, 8), table: moving}, "Mon 2026-03-09 09:30:00 CET will not run: the calendar closed excludes it (2026-03-09); it would move to Tue 2026-03-10 09:30:00 CET, which is an instant already.", nil},
		{"paused", instantFacts{at: at(1, 8), skips: []*dts.Skip{year}}, "Sun 2026-03-01 09:30:00 CET did not run: the recurring task was paused; it is one of 300 skipped from " + sayTime(year.From.In(table.Location())) + " to Sun 2026-03-08 09:30:00 CET.", year},
		{"no instant", instantFacts{at: at(3, 9), skips: []*dts.Skip{year}}, "Tue 2026-03-03 10:30:00 CET is not an instant of this schedule; the ones before and after are Tue 2026-03-03 09:30:00 CET and Wed 2026-03-04 09:30:00 CET.", nil},
		{"before it was made", instantFacts{at: at(3, 8).AddDate(-1, 0, 0)}, "Mon 2025-03-03 09:30:00 CET was before this recurring task was made, at Sun 2026-02-01 01:30:00 CET.", nil},
		{"forgotten", instantFacts{at: at(3, 8), retention: 30 * 24 * time.Hour}, "Nothing is known of Tue 2026-03-03 09:30:00 CET any more: finished tasks are kept for 30 d, and fewer days if there are very many.", nil},
		{"not decided", instantFacts{at: at(3, 8), r: with(func(r *dts.RecurringTask) { r.PlannedThrough = at(2, 8) })}, "Tue 2026-03-03 09:30:00 CET was due 3 h 30 m ago, and is decided about in a moment, as soon as the server that has it plans it.", nil},
		{"beyond the plan", instantFacts{at: at(20, 8)}, "Fri 2026-03-20 09:30:00 CET will run, in 16 d 20 h; it is beyond what is planned yet, up to Fri 2026-03-13 09:30:00 CET.", nil},
		{"removed", instantFacts{at: at(12, 8)}, "Thu 2026-03-12 09:30:00 CET has no task: it was removed, or the schedule was changed in the meantime.", nil},
		{"while paused", instantFacts{at: at(20, 8), r: with(func(r *dts.RecurringTask) { r.Status, r.PausedUntil = dts.Paused, at(21, 8) })}, "Fri 2026-03-20 09:30:00 CET will not run: the recurring task is paused until Sat 2026-03-21 09:30:00 CET.", nil},
		{"cancelled", instantFacts{at: at(20, 8), r: with(func(r *dts.RecurringTask) { r.Status = dts.Ended })}, "Fri 2026-03-20 09:30:00 CET does not run: the recurring task was cancelled.", nil},
		{"completed", instantFacts{at: at(20, 8), r: with(func(r *dts.RecurringTask) { r.Status = dts.Completed })}, "Fri 2026-03-20 09:30:00 CET does not run: the recurring task is completed, by its end_time or its max_runs.", nil},
		{"in a blackout", instantFacts{at: at(20, 8), blackout: &barred{by: []string{"upgrade", "move"}, until: at(20, 10)}}, "Fri 2026-03-20 09:30:00 CET will run at Fri 2026-03-20 11:30:00 CET, after the blackouts upgrade and move.", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.f
			f.now = whyNow
			if f.table == nil {
				f.table = table
			}
			if f.r == nil {
				f.r = &r
			}
			answer, skip := f.answer()
			if got := sentence(answer); got != tt.want || skip != tt.skip {
				t.Errorf("\n got %s %v\nwant %s", got, skip, tt.want)
			}
		})
	}
	// Of several skips that reach over an instant the narrowest tells most; a calendar's only where it excludes it.
	narrow, calendars := skip(3, 4, 2, dts.ReasonCatchUp, ""), skip(2, 9, 2, dts.ReasonCalendar, "closed")
	f := instantFacts{r: &r, table: table, at: at(4, 8), now: whyNow.AddDate(0, 0, 3), skips: []*dts.Skip{calendars, narrow, year}}
	if _, k := f.answer(); k != narrow {
		t.Errorf("%+v", k)
	}
	f.at = at(9, 8)
	if _, k := f.answer(); k != calendars {
		t.Errorf("%+v", k)
	}
}
