package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"dts"
	"dts/exec"
	"dts/migrations"
	"dts/sched"
	"dts/store"
	"dts/store/sqlite"
)

// ciOptions say how a plan is run.
type ciOptions struct {
	jobs     int           // attempts at once; 0: as many as a server runs
	timeout  time.Duration // of all; 0: none
	drain    time.Duration // how long what runs at the end of the schedules may go on
	failFast bool
	log      *slog.Logger
}

// ciServer is a scheduler without a server, with all that it keeps in a directory of its own that goes with it.
type ciServer struct {
	dir    string
	lock   *os.File // of dir, while this process lives
	id     string   // marks its commands
	st     *store.Store
	sched  *sched.Scheduler
	exec   *exec.Runner
	runner *ciRunner
	log    *slog.Logger
	giveUp context.CancelCauseFunc // ends the run, because the store takes no more writes

	failing, failed time.Time // since when the store has taken no writes, and when that was last seen
	given           atomic.Bool
	closing         sync.Once
}

// newCI makes one that has a directory and does nothing yet. Close it.
func newCI(o ciOptions, c *console) (*ciServer, error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the directory that this is: %w", err)
	}
	sweepKilled(time.Now(), o.log)
	s := &ciServer{id: dts.NewID(time.Now()), log: o.log}
	if s.dir, s.lock, err = makeCIDir(s.id); err != nil {
		return nil, fmt.Errorf("make a temporary directory: %w", err)
	}
	s.exec = exec.New(exec.Options{Log: o.log, UserAgent: "dts/" + thisBuild().Version, NodeID: s.id, DataDirID: s.id, Environ: os.Environ(), Dir: here})
	s.runner = &ciRunner{exec: s.exec, console: c, commands: map[*dts.Job]dts.Process{}}
	if o.jobs > 0 {
		s.runner.slots = make(chan struct{}, o.jobs)
	}
	return s, nil
}

// start starts the scheduler. What is done with it under ctx ends when the store takes no more writes.
func (s *ciServer) start(ctx context.Context, o ciOptions) error {
	db, err := sqlite.Open(ctx, filepath.Join(s.dir, databaseFile), sqlite.Options{Volatile: migrations.Schema(), Logger: o.log})
	if err != nil {
		return err
	}
	s.st = store.New(db, store.Options{})
	boot, bootedAt := exec.Boot()
	cpu, memory := machineBudget()
	scheduler := sched.New(sched.Options{
		Store: s.st, Runner: s.runner, Log: o.log,
		Refused:  func(err error) bool { return errors.Is(err, store.ErrRefused) },
		OnFull:   s.unwritable,
		Node:     dts.Node{ID: s.id, Address: "none", Version: thisBuild().Version, BootID: boot},
		BootedAt: bootedAt, TrustClock: true, // there is nothing from before with which it could disagree
		HTTPSlots: o.jobs, CommandSlots: o.jobs, OneQueue: true, CPUBudget: cpu, MemoryBudgetMB: memory, DrainTimeout: time.Second,
	})
	if err := scheduler.Start(ctx); err != nil {
		return fmt.Errorf("start the scheduler: %w", cause(err))
	}
	s.sched = scheduler
	return nil
}

// unwritable is called about once a second while the store takes no writes, as on a full disk. A server waits until there
// is room; a pipeline is told.
func (s *ciServer) unwritable() {
	now := time.Now()
	if now.Sub(s.failed) > 2*ciPatience {
		s.failing = now
	}
	s.failed = now
	if _, err := s.st.Fault(); err != nil && now.Sub(s.failing) >= ciPatience {
		s.given.Store(true)
		s.giveUp(fmt.Errorf("keep results in %s: %w", s.dir, err))
	}
}

// ciPatience is how long the store may take no writes.
const ciPatience = 5 * time.Second

// close ends everything, and leaves nothing behind. It can be called again.
func (s *ciServer) close() (err error) {
	s.closing.Do(func() {
		if s.given.Load() { // the scheduler would wait for its last writes
			s.abandon()
			return
		}
		if s.sched != nil {
			err = s.sched.Stop(context.Background())
		}
		s.exec.Close()
		err = errors.Join(err, s.runner.sweep(s.id, ciSweep, s.log))
		if s.st != nil {
			err = errors.Join(err, s.st.Close())
		}
		err = errors.Join(err, os.RemoveAll(s.dir))
		_ = s.lock.Close()
	})
	return err
}

// abandon leaves nothing behind either, but ends nothing in good order: it is for a process that is about to exit.
func (s *ciServer) abandon() {
	s.runner.stop()
	_ = s.runner.sweep(s.id, ciSweep, s.log)
	_ = os.RemoveAll(s.dir)
}

// ciSweep is how long processes that were killed are waited for.
const ciSweep = 2 * time.Second

// submit gives the plan to the scheduler.
func (s *ciServer) submit(ctx context.Context, p *ciPlan) error {
	for _, k := range p.calendars {
		if _, err := s.sched.CreateCalendar(ctx, k); err != nil {
			return fmt.Errorf("calendar %s: %w", k.Name, err)
		}
	}
	for _, q := range p.queues {
		if _, err := s.sched.PutQueue(ctx, q); err != nil {
			return fmt.Errorf("queue %s: %w", q.Name, err)
		}
	}
	if len(p.tasks) > 0 {
		if _, err := s.sched.CreateTasks(ctx, p.tasks); err != nil {
			return err
		}
	}
	for _, r := range p.recurring {
		if _, err := s.sched.CreateRecurring(ctx, r); err != nil {
			if reason, _ := p.notDue(r, time.Now()); reason != "" { // its only instant has just passed
				p.idle = append(p.idle, ciIdle{p.names[r.ID], reason})
				continue
			}
			return fmt.Errorf("task %s: %w", r.Name, err)
		}
	}
	return nil
}

// ciStop is why what has not ended is stopped.
type ciStop struct {
	text    string
	failure bool // what is stopped counts as failed
	signal  os.Signal
}

// run returns when all of the plan has ended, and why it was stopped; nil: it was not. stop can say so from outside.
func (s *ciServer) run(ctx context.Context, p *ciPlan, o ciOptions, stop <-chan ciStop) (stopped *ciStop, err error) {
	select {
	case reason := <-stop: // before anything has started
		return &reason, nil
	default:
	}
	events, unsubscribe := s.sched.Subscribe(dts.DefaultTenant)
	defer func() { unsubscribe() }()
	if err := s.submit(ctx, p); err != nil {
		return nil, err
	}
	limit, why := o.limit(p)
	for {
		// What has happened is seen in one look, which takes longer the more tasks there are: a fifth of the time is enough.
		next := ciLook
		if stopped == nil && !limit.IsZero() {
			next = min(next, max(time.Until(limit), 0))
		}
		select {
		case _, ok := <-events:
			if !ok { // there were too many at once
				events, unsubscribe = s.sched.Subscribe(dts.DefaultTenant)
			}
		case reason := <-stop:
			if stopped == nil || reason.signal != nil {
				stopped = &reason
			}
		case <-time.After(next):
		case <-ctx.Done():
			return stopped, context.Cause(ctx)
		}
		for more := true; more; {
			select {
			case _, more = <-events:
			default:
				more = false
			}
		}
		began := time.Now()
		left, err := s.look(ctx, p)
		switch {
		case err != nil:
			return stopped, err
		case left.open == 0 && (stopped != nil || left.ended):
			return stopped, nil
		case stopped == nil && o.failFast && left.failed > 0:
			stopped = &ciStop{text: "stopped by --fail-fast"}
		case stopped == nil && !limit.IsZero() && !began.Before(limit):
			stopped = &ciStop{text: why, failure: true}
		}
		pause := 4 * time.Since(began)
		if stopped != nil {
			if err := s.cancelAll(ctx, p); err != nil {
				return stopped, err
			}
		}
		time.Sleep(min(pause, ciLook))
	}
}

// ciLook is how often is looked what is left to do, whatever the events say.
const ciLook = 250 * time.Millisecond

// limit is when what has not ended is stopped, and why; zero: never.
func (o *ciOptions) limit(p *ciPlan) (at time.Time, why string) {
	if o.timeout > 0 {
		at, why = time.Now().Add(o.timeout), "not ended within --timeout "+span(o.timeout)
	}
	if p.until.IsZero() {
		return at, why
	}
	if end := p.until.Add(o.drain); at.IsZero() || end.Before(at) {
		at, why = end, "not ended within "+span(o.drain)+" after --for"
	}
	return at, why
}

// ciLeft is what is left to do.
type ciLeft struct {
	open   int  // tasks that have not ended
	failed int  // and those that have failed
	ended  bool // no more tasks will come
}

func (s *ciServer) look(ctx context.Context, p *ciPlan) (l ciLeft, err error) {
	l.ended = len(p.recurring) == 0 || !time.Now().Before(p.until)
	if !l.ended {
		active, err := s.st.RecurringTasks(ctx, dts.RecurringFilter{TenantID: dts.DefaultTenant, Statuses: []dts.RecurringStatus{dts.Active}, Limit: 1})
		if err != nil {
			return l, err
		}
		l.ended = len(active.Items) == 0 && active.Next == ""
	}
	// Counted after that: what was planned last is among them.
	if l.open, err = s.st.CountTasks(ctx, dts.TaskFilter{TenantID: dts.DefaultTenant, Statuses: []dts.Status{dts.Pending, dts.Running}}); err != nil {
		return l, err
	}
	l.failed, err = s.st.CountTasks(ctx, dts.TaskFilter{TenantID: dts.DefaultTenant, Statuses: []dts.Status{dts.Failed}})
	return l, err
}

// cancelAll stops what runs, and lets nothing else start.
func (s *ciServer) cancelAll(ctx context.Context, p *ciPlan) error {
	s.runner.stop()
	cancel := func(f dts.TaskFilter) error {
		f.TenantID = dts.DefaultTenant
		_, err := s.sched.Bulk(ctx, dts.BulkChange{Verb: dts.BulkCancel, Filter: f, Actor: ciActor})
		return err
	}
	for _, r := range p.recurring {
		// First what is due and has not started: it would go with the schedule, and be missing in the report.
		if err := cancel(dts.TaskFilter{RecurringTaskID: r.ID, Statuses: []dts.Status{dts.Pending}}); err != nil {
			return err
		}
		if _, err := s.sched.CancelRecurring(ctx, r.TenantID, r.ID, ciActor); err != nil && dts.CodeOf(err) != dts.ErrConflict {
			return err
		}
	}
	for _, of := range []dts.Status{dts.Running, dts.Pending} { // what runs first: it takes its time to end
		if err := cancel(dts.TaskFilter{Statuses: []dts.Status{of}}); err != nil {
			return err
		}
	}
	return nil
}

// ciActor is who cancels what is stopped.
const ciActor = "dts ci"

// runOf returns the run of a workflow that a task is a step of; nil: it is none.
func (s *ciServer) runOf(t *dts.Task) *dts.Task {
	if t.WorkflowID == "" {
		return nil
	}
	runs, err := s.st.TasksByID(context.Background(), []string{t.WorkflowID})
	if err != nil || len(runs) == 0 {
		return nil
	}
	return runs[0]
}
