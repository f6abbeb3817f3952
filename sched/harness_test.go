package sched_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dts"
	"dts/migrations"
	"dts/sched"
	"dts/sched/timer"
	"dts/store"
	"dts/store/sqlite"
	"dts/store/sqlite/sqlitetest"
)

// world is a scheduler over a real database file, in fake time, with a runner that the test scripts.
type world struct {
	t    *testing.T
	path string // of the database
	db   *sqlite.DB
	st   *store.Store
	s    *sched.Scheduler
	run  *scripted
	opts func(*sched.Options)
	skew atomic.Int64 // of the wall clock against the bubble's, in nanoseconds
	ctx  context.Context
}

// inWorld runs a test in fake time: a sleep of hours takes no time, and everything happens exactly when it is due.
func inWorld(t *testing.T, opts func(*sched.Options), f func(w *world)) {
	t.Helper()
	path := sqlitetest.New(t)
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, path: path, run: &scripted{}, opts: opts, ctx: context.Background()}
		// The bubble begins in 2000, before the build date that a real server would insist on.
		w.start()
		defer w.stop()
		f(w)
	})
}

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.skew.Load())) }

// step sets the wall clock forward or back.
func (w *world) step(d time.Duration) { w.skew.Add(int64(d)) }

func (w *world) start() {
	w.t.Helper()
	began := time.Now()
	var err error
	w.db, err = sqlite.Open(w.ctx, w.path, sqlite.Options{Migrations: migrations.FS})
	if err != nil {
		w.t.Fatal(err)
	}
	w.st = store.New(w.db, store.Options{})
	o := sched.Options{
		Store: w.st, Runner: w.run, Refused: func(err error) bool { return errors.Is(err, store.ErrRefused) },
		NewTimer: func() timer.Timer { return timer.NewPortableClock(w.now) }, Now: w.now, Boottime: func() time.Duration { return time.Since(began) }, Node: dts.Node{ID: "node-1", BootID: "boot-1"},
		Log: slog.New(slog.NewTextHandler(w.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if w.opts != nil {
		w.opts(&o)
	}
	w.s = sched.New(o)
	if err := w.s.Start(w.ctx); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) stop() {
	w.t.Helper()
	if err := w.s.Stop(w.ctx); err != nil {
		w.t.Error(err)
	}
	if err := w.st.Close(); err != nil {
		w.t.Error(err)
	}
}

// restart stops the server, lets time pass, and starts it again.
func (w *world) restart(down time.Duration) {
	w.t.Helper()
	w.stop()
	time.Sleep(down)
	w.start()
}

// settle sleeps and waits until everything that is due then is done.
func (w *world) settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) spec() dts.Spec {
	return dts.Spec{Name: "job", TargetType: dts.HTTPCallback, TargetConfig: []byte(`{"url":"http://127.0.0.1/"}`)}
}

// add creates a task due in d.
func (w *world) add(d time.Duration, edit func(*dts.Task)) *dts.Task {
	w.t.Helper()
	t := &dts.Task{Spec: w.spec(), RunAt: w.now().Add(d)}
	if edit != nil {
		edit(t)
	}
	if err := t.Normalize(w.now()); err != nil {
		w.t.Fatal(err)
	}
	made, err := w.s.CreateTasks(w.ctx, []*dts.Task{t})
	if err != nil {
		w.t.Fatal(err)
	}
	return made[0].Item
}

// every creates a recurring task.
func (w *world) every(cron string, edit func(*dts.RecurringTask)) *dts.RecurringTask {
	w.t.Helper()
	r := &dts.RecurringTask{Spec: w.spec(), Schedule: dts.Schedule{Cron: cron}}
	if edit != nil {
		edit(r)
	}
	if err := r.Normalize(); err != nil {
		w.t.Fatal(err)
	}
	made, err := w.s.CreateRecurring(w.ctx, r)
	if err != nil {
		w.t.Fatal(err)
	}
	return made.Item
}

func (w *world) task(id string) *dts.Task {
	w.t.Helper()
	t, err := w.st.Task(w.ctx, dts.DefaultTenant, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return t
}

func (w *world) recurring(id string) *dts.RecurringTask {
	w.t.Helper()
	r, err := w.st.RecurringTask(w.ctx, dts.DefaultTenant, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) attempts(id string) []*dts.Attempt {
	w.t.Helper()
	list, err := w.st.Attempts(w.ctx, dts.DefaultTenant, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

func (w *world) do(id string, v dts.Verb) *dts.Task {
	w.t.Helper()
	t, err := w.s.DoTask(w.ctx, dts.DefaultTenant, id, v, "tester")
	if err != nil {
		w.t.Fatalf("%s: %v", v, err)
	}
	return t
}

// ledger returns a recurring task's whole ledger as text, oldest first: "12:00:00 SUCCESS", "12:01:00
// skipped 3 CATCH_UP". What has not run yet is left out.
func (w *world) ledger(id string) []string {
	w.t.Helper()
	var out []string
	cursor := ""
	for {
		page, err := w.st.Occurrences(w.ctx, dts.DefaultTenant, id, cursor, 100)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, o := range page.Items {
			at := o.ScheduledAt.Format("15:04:05")
			switch {
			case o.Skip != nil:
				out = append(out, at+" skipped "+itoa(o.Skip.Count)+" "+string(o.Skip.Reason))
			case o.Task.Status != dts.Pending:
				out = append(out, at+" "+string(o.Task.Status))
			}
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// scripted is a runner that does what the test says; by default every attempt succeeds at once.
type scripted struct {
	mu     sync.Mutex
	starts []start
	next   func(ctx context.Context, j dts.Job) dts.Outcome
}

type start struct {
	id     string
	number int
	at     time.Time
	due    time.Time
}

func (r *scripted) Run(ctx context.Context, j dts.Job) dts.Outcome {
	r.mu.Lock()
	r.starts = append(r.starts, start{j.Task.ID, j.Number, time.Now(), j.Task.ScheduledAt})
	next := r.next
	r.mu.Unlock()
	if next != nil {
		return next(ctx, j)
	}
	return dts.Outcome{State: dts.AttemptSuccess}
}

func (r *scripted) behave(f func(ctx context.Context, j dts.Job) dts.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next = f
}

func (r *scripted) list() []start {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]start(nil), r.starts...)
}

// takes makes runs that last d, or until they are stopped.
func takes(d time.Duration) func(context.Context, dts.Job) dts.Outcome {
	return func(ctx context.Context, j dts.Job) dts.Outcome {
		select {
		case <-time.After(d):
			return dts.Outcome{State: dts.AttemptSuccess}
		case <-ctx.Done():
			if context.Cause(ctx) == dts.ErrRunCancelled {
				return dts.Outcome{State: dts.AttemptCancelled, Error: "cancelled"}
			}
			return dts.Outcome{State: dts.AttemptLost, Error: "lost"}
		}
	}
}

// fails makes runs that fail.
func fails(context.Context, dts.Job) dts.Outcome {
	return dts.Outcome{State: dts.AttemptFailed, Retryable: true, Error: "answered 500", HTTPStatus: 500}
}
