package store_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dts"
	"dts/store"
	"dts/store/rqlite/rqlitetest"
)

// A question is one call of a Store's method, and what it answered.
type question struct {
	method string
	ask    func(st *store.Store, f dts.Fence) (any, error)
}

// two makes the answer of a method that gives two things.
func two(a, b any, err error) (any, error) { return []any{a, b}, err }

// none is the answer of a method that gives only an error.
func none(err error) (any, error) { return nil, err }

// TestSameAnswers asks every method of the store the same on SQLite and on rqlite: every statement is one that both
// understand, and understand alike.
func TestSameAnswers(t *testing.T) {
	c := rqlitetest.Start(t, rqlitetest.Options{})
	list := questions(t)
	var answers [2][]any
	var errs [2][]error
	for i, db := range []store.Backend{openSQLite(t), openRqlite(t, c)} {
		st := store.New(db, store.Options{})
		t.Cleanup(func() {
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		})
		f := begin(t, st, "n1")
		for _, q := range list {
			a, err := q.ask(st, f)
			answers[i], errs[i] = append(answers[i], a), append(errs[i], err)
		}
	}
	asked := map[string]bool{"Close": true, "Stats": true, "Maintain": true, "Check": true, "Fault": true} // the backends' own
	// Incarnations are random.
	incarnation := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Incarnation" }, cmp.Ignore())
	for i, q := range list {
		asked[q.method] = true
		if a, b := errs[0][i], errs[1][i]; (a == nil) != (b == nil) || dts.CodeOf(a) != dts.CodeOf(b) {
			t.Errorf("%d %s: SQLite %v, rqlite %v", i, q.method, a, b)
		}
		if diff := cmp.Diff(answers[0][i], answers[1][i], incarnation); diff != "" {
			t.Errorf("%d %s (-SQLite +rqlite):\n%s", i, q.method, diff)
		}
	}
	for i := range reflect.TypeFor[*store.Store]().NumMethod() {
		if name := reflect.TypeFor[*store.Store]().Method(i).Name; !asked[name] {
			t.Errorf("%s is not asked", name)
		}
	}
}

// questions tell a story in which each method has something to find.
func questions(t *testing.T) (list []question) {
	const tenant = dts.DefaultTenant
	late, met, code := int64(70), true, 3
	plain := task(t, func(k *dts.Task) {
		k.Name, k.Labels, k.Queue = "x'00FF'", map[string]string{"a": "b'c", "é": "世界"}, "q"
		k.CreatedBy, k.BatchID, k.Description = "me", "b1", "with \"quotes\", ' and \\"
	})
	keyed := task(t, func(k *dts.Task) { k.IdempotencyKey, k.RequestHash = "x'", "h1" })
	again := task(t, func(k *dts.Task) { k.IdempotencyKey, k.RequestHash = "x'", "h1" })
	other := task(t, func(k *dts.Task) { k.IdempotencyKey, k.RequestHash = "x'", "h2" })
	call := task(t, func(k *dts.Task) {
		k.TargetType, k.TargetConfig = dts.HTTPCallback, []byte(`{"url":"http://127.0.0.1/"}`)
	})
	claimed := task(t, func(k *dts.Task) { k.PickedAt, k.Node = now, "n1" })
	rec := &dts.RecurringTask{ID: dts.NewID(now), TenantID: tenant, Spec: plain.Spec, Status: dts.Active, CreatedAt: now, UpdatedAt: now, CreatedBy: "me",
		Schedule: dts.Schedule{Cron: "@reboot", TimeZone: "UTC"}, IdempotencyKey: "r1", RequestHash: "h", PlannedThrough: now, PlanVersion: 1, PlanAt: now.Add(time.Minute)}
	if err := rec.Normalize(); err != nil {
		t.Fatal(err)
	}
	rec.Shard = dts.ShardOf(rec.ID)
	var planned []*dts.Task
	for i := range 3 {
		planned = append(planned, rec.Occurrence(now.Add(time.Duration(i)*time.Hour), dts.OriginSchedule, now))
	}
	paused := clone(rec)
	paused.Status, paused.PausedAt, paused.PausedUntil, paused.PauseNote = dts.Paused, now, now.Add(time.Hour), "x'AA'"
	skip := dts.Skip{TenantID: tenant, RecurringTaskID: rec.ID, From: now.Add(-time.Hour), To: now.Add(-time.Minute), Count: 5, Reason: "PAUSED", Note: "n"}
	longer := skip
	longer.To, longer.Count = now, 6

	ask := func(method string, f func(st *store.Store, f dts.Fence) (any, error)) {
		list = append(list, question{method, f})
	}
	insert := func(tasks ...*dts.Task) {
		ask("InsertTasks", func(st *store.Store, f dts.Fence) (any, error) {
			copies := make([]*dts.Task, len(tasks))
			for i, k := range tasks {
				copies[i] = clone(k)
			}
			return st.InsertTasks(ctx, f, copies)
		})
	}
	// attempt writes a step of an attempt: its start, or, with a status, its end.
	attempt := func(k *dts.Task, number int, shown bool, to dts.Status) {
		ask("Write", func(st *store.Store, f dts.Fence) (any, error) {
			a := dts.Attempt{TaskID: k.ID, TenantID: tenant, Number: number, State: dts.AttemptRunning, Node: "n1", PickedAt: now, StartedAt: now.Add(time.Millisecond)}
			before := clone(k)
			before.Attempts, before.LatenessUS, before.SLAMet = number-1, &late, &met
			r := &dts.Record{Task: before, Term: f.Term(k.Shard), Attempt: a, Shown: shown, Process: &dts.Process{PGID: 77, StartTime: 1 << 40, BootID: "b"}}
			if to != "" {
				r.After = clone(before)
				r.After.Status, r.After.Attempts, r.After.LatenessUS, r.After.SLAMet = to, number, &late, &met
				r.After.LastError, r.After.ExitCode, r.After.StartedAt = "x'0F'", &code, now
				r.Attempt.State, r.Attempt.CompletedAt, r.Attempt.DurationUS, r.Attempt.HTTPStatus = dts.AttemptFailed, now.Add(time.Second), 999_000, 500
				if r.After.CompletedAt = now.Add(time.Second); to == dts.Pending {
					r.After.CompletedAt, r.After.NextAttemptAt, r.After.RunAt = time.Time{}, now.Add(time.Minute), now.Add(time.Minute)
				}
				if to == dts.Success {
					r.Attempt.State = dts.AttemptSuccess
				}
				r.Process = nil
				r.Output = dts.Output{Head: []byte{0, 1, 0xff, 'x'}, Tail: []byte("end\n"), Total: 100_000}
				r.Attempt.OutputBytes = r.Output.Total
			}
			return none(st.Write(ctx, f, []*dts.Record{r}))
		})
	}
	read := func() {
		for _, k := range []*dts.Task{plain, keyed, call, claimed, planned[0]} {
			ask("Task", func(st *store.Store, _ dts.Fence) (any, error) { return st.Task(ctx, tenant, k.ID) })
			ask("Attempts", func(st *store.Store, _ dts.Fence) (any, error) { return st.Attempts(ctx, tenant, k.ID) })
			ask("Output", func(st *store.Store, _ dts.Fence) (any, error) { return st.Output(ctx, tenant, k.ID, 1) })
		}
		ask("Load", func(st *store.Store, _ dts.Fence) (any, error) {
			l, err := st.Load(ctx, []string{plain.ID, call.ID, planned[1].ID})
			slices.SortFunc(l, func(a, b *dts.Task) int { return int(a.Seq - b.Seq) })
			return l, err
		})
		ask("LoadDue", func(st *store.Store, _ dts.Fence) (any, error) {
			return st.LoadDue(ctx, dts.AllShards, dts.QueueChoice{}, dts.Mark{}, now.Add(time.Hour), 10)
		})
		ask("LoadDue", func(st *store.Store, _ dts.Fence) (any, error) {
			return st.LoadDue(ctx, dts.SetOf(63, rec.Shard), dts.QueueChoice{Only: []dts.QueueKey{{TenantID: tenant, Name: "q"}, {TenantID: tenant, Name: "default"}}}, dts.Mark{RunAt: now}, now.Add(time.Hour), 10)
		})
		ask("Expired", func(st *store.Store, _ dts.Fence) (any, error) {
			return st.Expired(ctx, dts.AllShards, now.Add(time.Hour), 0, 10)
		})
		ask("Unfinished", func(st *store.Store, _ dts.Fence) (any, error) { return st.Unfinished(ctx, tenant, "d") })
		ask("TasksByID", func(st *store.Store, _ dts.Fence) (any, error) { return st.TasksByID(ctx, []string{plain.ID}) })
		for _, f := range []dts.TaskFilter{{}, {Name: plain.Name}, {Labels: plain.Labels}, {Queue: "q", CreatedBy: "me", BatchID: "b1"}, {RecurringTaskID: rec.ID},
			{Statuses: []dts.Status{dts.Failed}}, {Statuses: []dts.Status{dts.Pending, dts.Running}}, {IDs: []string{plain.ID, call.ID}}, {From: now, To: now.Add(time.Second)}} {
			f.TenantID, f.Limit = tenant, 3
			ask("Tasks", func(st *store.Store, _ dts.Fence) (any, error) { return st.Tasks(ctx, f) })
			ask("CountTasks", func(st *store.Store, _ dts.Fence) (any, error) { return st.CountTasks(ctx, f) })
		}
		ask("Batch", func(st *store.Store, _ dts.Fence) (any, error) { return st.Batch(ctx, tenant, "b1") })
		ask("Counts", func(st *store.Store, _ dts.Fence) (any, error) { return st.Counts(ctx, tenant) })
		ask("RecurringTask", func(st *store.Store, _ dts.Fence) (any, error) { return st.RecurringTask(ctx, tenant, rec.ID) })
		ask("RecurringByID", func(st *store.Store, _ dts.Fence) (any, error) { return st.RecurringByID(ctx, []string{rec.ID}) })
		ask("RecurringTasks", func(st *store.Store, _ dts.Fence) (any, error) {
			return st.RecurringTasks(ctx, dts.RecurringFilter{TenantID: tenant, Statuses: []dts.RecurringStatus{dts.Active, dts.Paused}, Name: rec.Name, Limit: 5})
		})
		ask("PlanDue", func(st *store.Store, _ dts.Fence) (any, error) {
			due, next, err := st.PlanDue(ctx, dts.AllShards, now.Add(time.Hour), 5)
			return two(due, next, err)
		})
		ask("PlanDue", func(st *store.Store, _ dts.Fence) (any, error) {
			due, next, err := st.PlanDue(ctx, dts.AllShards, now, 5)
			return two(due, next, err)
		})
		ask("PausedRecurring", func(st *store.Store, _ dts.Fence) (any, error) { return st.PausedRecurring(ctx, dts.AllShards) })
		ask("BootRecurring", func(st *store.Store, _ dts.Fence) (any, error) { return st.BootRecurring(ctx) })
		ask("Planned", func(st *store.Store, _ dts.Fence) (any, error) { return st.Planned(ctx, rec.ID) })
		ask("ActiveRuns", func(st *store.Store, _ dts.Fence) (any, error) { return st.ActiveRuns(ctx, rec.ID) })
		ask("LastSkip", func(st *store.Store, _ dts.Fence) (any, error) { return st.LastSkip(ctx, rec.ID) })
		ask("Upcoming", func(st *store.Store, _ dts.Fence) (any, error) { return st.Upcoming(ctx, tenant, rec.ID, 2) })
		ask("Occurrences", func(st *store.Store, _ dts.Fence) (any, error) { return st.Occurrences(ctx, tenant, rec.ID, "", 2) })
		ask("Lost", func(st *store.Store, f dts.Fence) (any, error) { return st.Lost(ctx, f, dts.AllShards, true, 10) })
		ask("Handoffs", func(st *store.Store, _ dts.Fence) (any, error) { return st.Handoffs(ctx, dts.AllShards, 10) })
		ask("Members", func(st *store.Store, _ dts.Fence) (any, error) { return st.Members(ctx) })
		ask("Node", func(st *store.Store, _ dts.Fence) (any, error) {
			n, found, err := st.Node(ctx, "n1")
			return two(n, found, err)
		})
		ask("Token", func(st *store.Store, _ dts.Fence) (any, error) {
			k, found, err := st.Token(ctx, "x'AB'")
			return two(k, found, err)
		})
	}

	insert(plain, call)
	insert(keyed)
	insert(again)
	insert(other)
	insert(claimed)
	insert(plain)
	for range 2 {
		ask("InsertRecurring", func(st *store.Store, f dts.Fence) (any, error) {
			return st.InsertRecurring(ctx, f, dts.Plan{Old: rec, New: rec, Insert: planned[:2]})
		})
	}
	ask("PutToken", func(st *store.Store, _ dts.Fence) (any, error) {
		return none(st.PutToken(ctx, dts.Token{Hash: "x'AB'", TenantID: tenant, Kind: dts.TokenLink, Name: "n", Admin: true, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}))
	})
	read()
	attempt(plain, 1, false, "")
	attempt(plain, 1, true, dts.Pending)
	attempt(plain, 2, false, dts.Failed)
	attempt(call, 1, false, dts.Success)
	attempt(planned[0], 1, false, "")
	attempt(planned[0], 3, false, dts.Failed) // not its turn
	read()
	moved := clone(keyed)
	moved.RunAt, moved.DueAt, moved.Moved, moved.PlanVersion = now.Add(time.Minute), now.Add(time.Minute), true, keyed.PlanVersion+1
	for range 2 { // the second is refused: it is no longer what it was
		ask("Change", func(st *store.Store, f dts.Fence) (any, error) {
			return none(st.Change(ctx, f, []dts.Change{{Old: keyed, New: moved}, {Old: claimed}}, now))
		})
	}
	for range 2 {
		ask("SavePlans", func(st *store.Store, f dts.Fence) (any, error) {
			var texts []bool
			for _, err := range st.SavePlans(ctx, f, []dts.Plan{
				{Old: rec, New: paused, Insert: planned[2:], Changes: []dts.Change{{Old: planned[1], Skip: &skip}}, Skips: []dts.Skip{skip, longer}},
				{Old: paused, New: paused},
			}, now) {
				texts = append(texts, err == nil)
			}
			return texts, nil
		})
	}
	attempt(planned[0], 1, true, dts.Success)
	read()
	ask("ClusterSecret", func(st *store.Store, _ dts.Fence) (any, error) { return st.ClusterSecret(ctx, "one") })
	ask("ClusterSecret", func(st *store.Store, _ dts.Fence) (any, error) { return st.ClusterSecret(ctx, "two") })
	ask("ReplaceToken", func(st *store.Store, _ dts.Fence) (any, error) {
		return none(st.ReplaceToken(ctx, dts.Token{Hash: "x'CD'", TenantID: tenant, Kind: dts.TokenLink, Name: "n", CreatedAt: now, ExpiresAt: now}))
	})
	ask("Beat", func(st *store.Store, f dts.Fence) (any, error) { return none(st.Beat(ctx, f, 7, now)) })
	ask("Register", func(st *store.Store, _ dts.Fence) (any, error) {
		return none(st.Register(ctx, dts.Node{ID: "n2", Incarnation: "i2", StartedAt: now, SeenAt: now}, false))
	})
	for range 2 {
		ask("DeclareDead", func(st *store.Store, f dts.Fence) (any, error) {
			return none(st.DeclareDead(ctx, f, dts.Node{ID: "n2", Incarnation: "i2", State: dts.NodeAlive}))
		})
	}
	ask("ReleaseShards", func(st *store.Store, f dts.Fence) (any, error) {
		return none(st.ReleaseShards(ctx, f, dts.SetOf(0, 5, 63)))
	})
	for range 2 {
		ask("TakeShards", func(st *store.Store, f dts.Fence) (any, error) {
			return none(st.TakeShards(ctx, f, []dts.Take{{Shard: 5, From: dts.Holder{Term: f.Term(5)}}}))
		})
	}
	ask("DeleteHandoffs", func(st *store.Store, f dts.Fence) (any, error) {
		return none(st.DeleteHandoffs(ctx, f, []string{plain.ID}))
	})
	holidays := &dts.Calendar{TenantID: tenant, Name: "off", Days: []string{"12-25"}, Version: 1, CreatedAt: now, UpdatedAt: now}
	for range 2 {
		ask("CreateCalendar", func(st *store.Store, _ dts.Fence) (any, error) { return none(st.CreateCalendar(ctx, holidays)) })
	}
	more := *holidays
	more.Version, more.Description = 2, "x'"
	ask("CreateCalendar", func(st *store.Store, _ dts.Fence) (any, error) { return none(st.CreateCalendar(ctx, &more)) })
	closed := &dts.Blackout{ID: dts.NewID(now), TenantID: tenant, Name: "n'", Calendar: "off", Action: dts.BlackoutWait, CreatedAt: now}
	nowhere := *closed
	nowhere.ID, nowhere.Calendar = dts.NewID(now), "none"
	using := *rec
	using.ID, using.IdempotencyKey, using.ExcludeCalendars = dts.NewID(now), "", []string{"off"}
	lacking := using
	lacking.ID, lacking.ExcludeCalendars, lacking.RequireCalendars = dts.NewID(now), nil, []string{"none"}
	for _, r := range []*dts.RecurringTask{&using, &lacking} {
		ask("InsertRecurring", func(st *store.Store, f dts.Fence) (any, error) {
			return st.InsertRecurring(ctx, f, dts.Plan{New: r, Skips: []dts.Skip{{TenantID: tenant, RecurringTaskID: r.ID, From: now, To: now.Add(time.Hour), Count: 2, Reason: dts.ReasonCalendar}}})
		})
	}
	for _, b := range []*dts.Blackout{closed, closed, &nowhere} {
		ask("CreateBlackout", func(st *store.Store, _ dts.Fence) (any, error) { return none(st.CreateBlackout(ctx, b, 3)) })
	}
	for range 2 {
		ask("ReplaceCalendar", func(st *store.Store, _ dts.Fence) (any, error) { return none(st.ReplaceCalendar(ctx, &more, 1)) })
	}
	ask("ReplaceCalendar", func(st *store.Store, _ dts.Fence) (any, error) { return none(st.ReplaceCalendar(ctx, holidays, 7)) })
	ask("RecurringTask", func(st *store.Store, _ dts.Fence) (any, error) { return st.RecurringTask(ctx, tenant, using.ID) })
	waits := task(t, func(k *dts.Task) {})
	waiting := *waits
	waiting.WaitsFor = dts.ReasonBlackout
	ask("InsertTasks", func(st *store.Store, f dts.Fence) (any, error) { return st.InsertTasks(ctx, f, []*dts.Task{waits}) })
	ask("Change", func(st *store.Store, f dts.Fence) (any, error) {
		return none(st.Change(ctx, f, []dts.Change{{Old: waits, New: &waiting}}, now))
	})
	look := func() {
		ask("Calendar", func(st *store.Store, _ dts.Fence) (any, error) { return st.Calendar(ctx, tenant, "off") })
		ask("Calendars", func(st *store.Store, _ dts.Fence) (any, error) { return st.Calendars(ctx, tenant) })
		ask("CalendarVersions", func(st *store.Store, _ dts.Fence) (any, error) {
			return st.CalendarVersions(ctx, tenant, []string{"off", "none"})
		})
		ask("Blackout", func(st *store.Store, _ dts.Fence) (any, error) { return st.Blackout(ctx, tenant, closed.ID) })
		ask("Blackouts", func(st *store.Store, _ dts.Fence) (any, error) { return st.Blackouts(ctx, tenant) })
		ask("AllBlackouts", func(st *store.Store, _ dts.Fence) (any, error) { return st.AllBlackouts(ctx) })
		ask("TimeRules", func(st *store.Store, _ dts.Fence) (any, error) { return st.TimeRules(ctx) })
		ask("Waiting", func(st *store.Store, _ dts.Fence) (any, error) {
			return st.Waiting(ctx, dts.AllShards, dts.ReasonBlackout, 0, 10)
		})
		ask("LastSkipBefore", func(st *store.Store, _ dts.Fence) (any, error) {
			return st.LastSkipBefore(ctx, using.ID, now.Add(time.Hour))
		})
		ask("OccurrenceAt", func(st *store.Store, _ dts.Fence) (any, error) {
			return two(st.OccurrenceAt(ctx, tenant, using.ID, now.Add(time.Minute)))
		})
		ask("PendingOnce", func(st *store.Store, _ dts.Fence) (any, error) {
			return st.PendingOnce(ctx, tenant, now.Add(-time.Hour), now.Add(time.Hour), 10)
		})
		ask("RunTimes", func(st *store.Store, _ dts.Fence) (any, error) {
			return st.RunTimes(ctx, []string{rec.ID, using.ID}, 20)
		})
		ask("Replans", func(st *store.Store, _ dts.Fence) (any, error) {
			return st.Replans(ctx, dts.AllShards, now.Add(time.Hour), 10)
		})
		ask("DecidedAfter", func(st *store.Store, _ dts.Fence) (any, error) { return st.DecidedAfter(ctx, rec.ID, now) })
		ask("CountOccurrences", func(st *store.Store, _ dts.Fence) (any, error) {
			return st.CountOccurrences(ctx, rec.ID, dts.OriginSchedule, now, now.Add(time.Hour))
		})
		ask("SkipsAfter", func(st *store.Store, _ dts.Fence) (any, error) {
			return st.SkipsAfter(ctx, using.ID, now.Add(time.Minute))
		})
	}
	for _, b := range []*dts.Blackout{closed, &nowhere} {
		ask("ReplaceBlackout", func(st *store.Store, _ dts.Fence) (any, error) { return none(st.ReplaceBlackout(ctx, b, 8)) })
	}
	look()
	for range 2 {
		ask("DeleteCalendar", func(st *store.Store, _ dts.Fence) (any, error) { return none(st.DeleteCalendar(ctx, tenant, "off", 4)) })
		ask("DeleteBlackout", func(st *store.Store, _ dts.Fence) (any, error) {
			return none(st.DeleteBlackout(ctx, tenant, closed.ID, 5))
		})
	}
	waitsKey := task(t, func(k *dts.Task) { k.ConcurrencyKey, k.ConcurrencyLimit, k.Queue = "x'k", 1, "narrow" })
	runsKey := task(t, func(k *dts.Task) { k.ConcurrencyKey, k.ConcurrencyLimit, k.Queue = "x'k", 1, "narrow" })
	insert(waitsKey)
	insert(runsKey)
	inLine := clone(waitsKey)
	inLine.WaitsFor, inLine.RunAt = dts.ReasonConcurrency, now.Add(time.Hour)
	ask("Change", func(st *store.Store, f dts.Fence) (any, error) {
		return none(st.Change(ctx, f, []dts.Change{{Old: waitsKey, New: inLine}}, now))
	})
	slots := []dts.Slot{{Line: dts.QueueLine("narrow"), Limit: 2}, {Line: dts.KeyLine("x'k"), Limit: 1}}
	start := func(k *dts.Task) {
		ask("Start", func(st *store.Store, f dts.Fence) (any, error) {
			a := dts.Attempt{TaskID: k.ID, TenantID: tenant, Number: 1, State: dts.AttemptRunning, Node: "n1", PickedAt: now, StartedAt: now.Add(time.Millisecond)}
			before := clone(k)
			before.LatenessUS, before.SLAMet = &late, &met
			return st.Start(ctx, f, &dts.Record{Task: before, Term: f.Term(k.Shard), Attempt: a, Limited: true}, slots)
		})
	}
	line := dts.LineKey{TenantID: tenant, Line: dts.KeyLine("x'k")}
	limits := func() {
		ask("InLine", func(st *store.Store, _ dts.Fence) (any, error) {
			next, taken, err := st.InLine(ctx, line, 10)
			return two(next, taken, err)
		})
		ask("Lines", func(st *store.Store, _ dts.Fence) (any, error) { return st.Lines(ctx, dts.AllShards) })
		ask("Taken", func(st *store.Store, _ dts.Fence) (any, error) {
			return st.Taken(ctx, []dts.LineKey{line, {TenantID: tenant, Line: "none"}})
		})
		ask("Queue", func(st *store.Store, _ dts.Fence) (any, error) { return st.Queue(ctx, tenant, "narrow") })
		ask("Queues", func(st *store.Store, _ dts.Fence) (any, error) { return st.Queues(ctx, tenant) })
		ask("AllQueues", func(st *store.Store, _ dts.Fence) (any, error) { return st.AllQueues(ctx) })
		ask("QueuesNow", func(st *store.Store, _ dts.Fence) (any, error) {
			return st.QueuesNow(ctx, tenant, now.Add(time.Hour))
		})
		ask("QueueStates", func(st *store.Store, _ dts.Fence) (any, error) {
			return st.QueueStates(ctx, "", now.Add(time.Hour), false)
		})
		ask("TakeStarts", func(st *store.Store, _ dts.Fence) (any, error) {
			return st.TakeStarts(ctx, dts.QueueKey{TenantID: tenant, Name: "narrow"}, dts.Rate{N: 10, Period: time.Second, Burst: 3}, 2, now)
		})
		ask("ActiveOrInLine", func(st *store.Store, _ dts.Fence) (any, error) { return st.ActiveOrInLine(ctx, rec.ID) })
		ask("SweepSlots", func(st *store.Store, _ dts.Fence) (any, error) { return st.SweepSlots(ctx) })
	}
	limits()
	for _, n := range []int{3, 4} {
		ask("PutQueue", func(st *store.Store, _ dts.Fence) (any, error) {
			return none(st.PutQueue(ctx, &dts.Queue{TenantID: tenant, Name: "narrow", Concurrency: n, CreatedAt: now, UpdatedAt: now.Add(time.Duration(n))}, int64(n)))
		})
	}
	start(runsKey)
	start(runsKey) // sent again
	start(waitsKey)
	limits()
	ask("Write", func(st *store.Store, f dts.Fence) (any, error) {
		before, after := clone(runsKey), clone(runsKey)
		after.Status, after.Attempts, after.CompletedAt = dts.Failed, 1, now.Add(time.Second)
		return none(st.Write(ctx, f, []*dts.Record{{Task: before, Term: f.Term(runsKey.Shard), Shown: true, Limited: true, After: after,
			Attempt: dts.Attempt{TaskID: runsKey.ID, TenantID: tenant, Number: 1, State: dts.AttemptFailed, Node: "n1", StartedAt: now.Add(time.Millisecond), CompletedAt: now.Add(time.Second)}}}))
	})
	limits()
	start(waitsKey)
	start(runsKey) // it has ended
	limits()
	for range 2 {
		ask("PauseQueue", func(st *store.Store, _ dts.Fence) (any, error) {
			return none(st.PauseQueue(ctx, tenant, "narrow", "it's", now, 5))
		})
		limits()
	}
	for range 2 {
		ask("ResumeQueue", func(st *store.Store, _ dts.Fence) (any, error) {
			return none(st.ResumeQueue(ctx, tenant, "narrow", now, 6))
		})
	}
	ask("DeleteQueue", func(st *store.Store, _ dts.Fence) (any, error) { return none(st.DeleteQueue(ctx, tenant, "narrow", 9)) })
	ask("Queue", func(st *store.Store, _ dts.Fence) (any, error) { return st.Queue(ctx, tenant, "narrow") })
	over := using
	over.Status = dts.Ended
	ask("SavePlans", func(st *store.Store, f dts.Fence) (any, error) {
		r, err := st.RecurringTask(ctx, tenant, using.ID)
		if err != nil {
			return nil, err
		}
		over.Replan = 0
		return none(st.SavePlans(ctx, f, []dts.Plan{{Old: r, New: &over, Unskip: []time.Time{now}}}, now)[0])
	})
	ask("DeleteCalendar", func(st *store.Store, _ dts.Fence) (any, error) { return none(st.DeleteCalendar(ctx, tenant, "off", 6)) })
	look()
	for range 2 {
		ask("DeleteToken", func(st *store.Store, _ dts.Fence) (any, error) { return st.DeleteToken(ctx, "x'AB'") })
	}
	read()
	root := task(t, nil)
	mid := task(t, func(k *dts.Task) { k.DependsOn = []dts.DependsOn{{TaskID: root.ID, Type: dts.MustSucceed}} })
	leaf := task(t, func(k *dts.Task) {
		k.DependsOn = []dts.DependsOn{{TaskID: mid.ID, Type: dts.MustFinish}}
		k.OnDependencyFailure = dts.FailOnFailure
	})
	graph := func() {
		ask("Graph", func(st *store.Store, _ dts.Fence) (any, error) { return st.Graph(ctx, tenant, mid.ID, 10) })
		ask("Handoffs", func(st *store.Store, _ dts.Fence) (any, error) { return st.Handoffs(ctx, dts.AllShards, 10) })
		ask("DependsOn", func(st *store.Store, _ dts.Fence) (any, error) { return st.DependsOn(ctx, tenant, mid.ID, root.ID) })
		ask("DependsOn", func(st *store.Store, _ dts.Fence) (any, error) { return st.DependsOn(ctx, tenant, root.ID, mid.ID) })
		ask("Reopened", func(st *store.Store, _ dts.Fence) (any, error) { return st.Reopened(ctx, []string{mid.ID, root.ID}) })
		ask("Ripples", func(st *store.Store, _ dts.Fence) (any, error) { return len(st.Ripples()), nil })
	}
	insert(root, mid, leaf)
	graph()
	attempt(root, 1, false, dts.Failed)
	graph()
	ask("Cascade", func(st *store.Store, f dts.Fence) (any, error) { return st.Cascade(ctx, f, now.Add(time.Hour)) })
	ask("Cascade", func(st *store.Store, f dts.Fence) (any, error) { return st.Cascade(ctx, f, now.Add(time.Hour)) })
	graph()
	read()
	w := dts.Workflow{Name: "it's", Steps: make([]dts.Step, 2)}
	w.Steps[0].Spec = dts.Spec{Name: "a", TargetType: dts.Command, TargetConfig: []byte(`{"argv":["true"]}`)}
	w.Steps[1].Spec = dts.Spec{Name: "b", TargetType: dts.Command, TargetConfig: []byte(`{"argv":["true"]}`)}
	w.Steps[1].DependsOn = []dts.StepDependsOn{{Step: "a"}}
	run := task(t, func(k *dts.Task) { k.Spec = w.Spec() })
	steps, err := run.StepTasks(now)
	if err != nil {
		t.Fatal(err)
	}
	insert(run)
	for range 2 { // the second is refused: it has started
		ask("StartRun", func(st *store.Store, f dts.Fence) (any, error) {
			old, n, copies := clone(run), clone(run), []*dts.Task{clone(steps[0]), clone(steps[1])}
			n.StartedAt = now
			return none(st.StartRun(ctx, f, old, n, copies))
		})
	}
	attempt(steps[0], 1, false, dts.Failed) // with output
	ask("Steps", func(st *store.Store, _ dts.Fence) (any, error) { return st.Steps(ctx, tenant, run.ID) })
	ask("StepEdges", func(st *store.Store, _ dts.Fence) (any, error) { return st.StepEdges(ctx, run.ID) })
	ask("RunsUnderWay", func(st *store.Store, _ dts.Fence) (any, error) { return st.RunsUnderWay(ctx, tenant, 10) })
	ask("RunProgress", func(st *store.Store, _ dts.Fence) (any, error) { return st.RunProgress(ctx, tenant, []string{run.ID}) })
	for _, limit := range []int{10, 200_000} {
		ask("Inputs", func(st *store.Store, _ dts.Fence) (any, error) { return st.Inputs(ctx, steps[1], limit) })
	}
	for range 2 { // the first one's proposal stands
		ask("PingSecret", func(st *store.Store, _ dts.Fence) (any, error) { return st.PingSecret(ctx, "one's") })
		ask("PingSecret", func(st *store.Store, _ dts.Fence) (any, error) { return st.PingSecret(ctx, "two") })
	}
	for i, kind := range []dts.PingKind{dts.PingStart, dts.PingFailure, dts.PingSuccess} {
		p := &dts.PingRecord{ID: dts.NewID(now), TenantID: tenant, RecurringTaskID: rec.ID, ReceivedAt: now.Add(time.Duration(i) * time.Second), Kind: kind,
			Source: "127.0.0.1", Body: "x'AB' ü\n", BodyBytes: 9}
		if kind == dts.PingFailure {
			p.ExitCode, p.ScheduledAt = &code, now
		}
		for range 2 { // sent again
			ask("AddPing", func(st *store.Store, _ dts.Fence) (any, error) { return none(st.AddPing(ctx, p)) })
		}
	}
	ask("Pings", func(st *store.Store, _ dts.Fence) (any, error) { return st.Pings(ctx, tenant, rec.ID, 2) })
	ask("PingsFor", func(st *store.Store, _ dts.Fence) (any, error) { return st.PingsFor(ctx, rec.ID, now) })
	for _, id := range []string{rec.ID, using.ID} {
		ask("Expected", func(st *store.Store, _ dts.Fence) (any, error) {
			next, previous, err := st.Expected(ctx, id, now.Add(90*time.Minute))
			return two(next, previous, err)
		})
	}
	for n := range int64(2) {
		ask("PutRetention", func(st *store.Store, _ dts.Fence) (any, error) {
			return none(st.PutRetention(ctx, tenant, dts.Retention{Seconds: 1.5 * float64(n), Rows: n}, now, n))
		})
		ask("Retentions", func(st *store.Store, _ dts.Fence) (any, error) { return st.Retentions(ctx) })
	}
	ask("CountFinished", func(st *store.Store, _ dts.Fence) (any, error) {
		list, next, err := st.CountFinished(ctx, time.Time{}, now.Add(time.Hour), 2)
		slices.SortFunc(list, func(a, b dts.Finished) int { return strings.Compare(a.Queue, b.Queue) })
		return two(list, next, err)
	})
	for _, c := range []dts.Cut{{Rows: 1}, {Bytes: 1, Queue: "narrow"}, {Before: now.Add(time.Hour)}} {
		ask("DeleteFinished", func(st *store.Store, _ dts.Fence) (any, error) {
			c.TenantID, c.Through = tenant, now.Add(time.Hour)
			return st.DeleteFinished(ctx, c, now, 10)
		})
	}
	ask("DeleteSkips", func(st *store.Store, _ dts.Fence) (any, error) {
		return st.DeleteSkips(ctx, dts.SkipMark{}, map[string]time.Time{tenant: now.Add(time.Hour)}, now, 10)
	})
	ask("DeleteOld", func(st *store.Store, _ dts.Fence) (any, error) {
		return st.DeleteOld(ctx, now.Add(30*24*time.Hour), now.Add(24*time.Hour), 10)
	})
	ask("Leave", func(st *store.Store, f dts.Fence) (any, error) { return none(st.Leave(ctx, f, false)) })
	read()
	return list
}
