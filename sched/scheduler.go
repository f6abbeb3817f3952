// Package sched owns the lives of tasks: it decides when each one starts, runs it, writes down what became of
// it, and plans the occurrences of recurring tasks.
//
// It promises that what is stored fires at its time, or late, but never never; that at most one attempt of a
// task runs at a time; that every due instant of a recurring task becomes a task or a skip; and that a change
// made by a user never races a fire. DESIGN.md beside this file says how.
package sched

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dts"
	"dts/sched/timer"
)

// Store is what the scheduler needs of the store. Package store's Store has these methods and documents them.
type Store interface {
	Reader

	Register(ctx context.Context, n dts.Node, alone bool) error
	Beat(ctx context.Context, f dts.Fence, beat int64, now time.Time) error
	Leave(ctx context.Context, f dts.Fence, over bool) error
	DeclareDead(ctx context.Context, f dts.Fence, n dts.Node) error
	TakeShards(ctx context.Context, f dts.Fence, takes []dts.Take) error
	ReleaseShards(ctx context.Context, f dts.Fence, shards dts.ShardSet) error
	Members(ctx context.Context) (dts.Members, error)
	Node(ctx context.Context, id string) (n dts.Node, found bool, err error)
	Lost(ctx context.Context, f dts.Fence, shards dts.ShardSet, own bool, limit int) ([]dts.Lost, error)
	Handoffs(ctx context.Context, shards dts.ShardSet, limit int) ([]string, error)
	DeleteHandoffs(ctx context.Context, f dts.Fence, ids []string) error
	Ripples() <-chan struct{}
	Cascade(ctx context.Context, f dts.Fence, now time.Time) (more bool, err error)
	Fault() (since time.Time, err error)

	InsertTasks(ctx context.Context, f dts.Fence, tasks []*dts.Task) ([]dts.Created[*dts.Task], error)
	Task(ctx context.Context, tenant, id string) (*dts.Task, error)
	Unfinished(ctx context.Context, tenant, dedupeKey string) (*dts.Task, error)
	Tasks(ctx context.Context, f dts.TaskFilter) (dts.Page[*dts.Task], error)
	CountTasks(ctx context.Context, f dts.TaskFilter) (int, error)
	TasksByID(ctx context.Context, ids []string) ([]*dts.Task, error)
	Graph(ctx context.Context, tenant, id string, limit int) (*dts.Graph, error)
	DependsOn(ctx context.Context, tenant, child, parent string) (bool, error)
	Reopened(ctx context.Context, parents []string) ([]string, error)
	Attempts(ctx context.Context, tenant, taskID string) ([]*dts.Attempt, error)
	StartRun(ctx context.Context, f dts.Fence, old, n *dts.Task, steps []*dts.Task) error
	Steps(ctx context.Context, tenant, run string) ([]*dts.Task, error)
	StepEdges(ctx context.Context, run string) ([]dts.Dependency, error)
	Inputs(ctx context.Context, t *dts.Task, limit int) ([]dts.Input, error)
	LoadDue(ctx context.Context, shards dts.ShardSet, queues dts.QueueChoice, after dts.Mark, through time.Time, limit int) ([]dts.Entry, error)
	Load(ctx context.Context, ids []string) ([]*dts.Task, error)
	Expired(ctx context.Context, shards dts.ShardSet, now time.Time, after int64, limit int) ([]*dts.Task, error)
	Write(ctx context.Context, f dts.Fence, recs []*dts.Record) error
	Change(ctx context.Context, f dts.Fence, changes []dts.Change, now time.Time) error

	Start(ctx context.Context, f dts.Fence, r *dts.Record, slots []dts.Slot) (full string, err error)
	InLine(ctx context.Context, k dts.LineKey, limit int) (tasks []*dts.Task, taken int, err error)
	Lines(ctx context.Context, shards dts.ShardSet) ([]dts.LineKey, error)
	Taken(ctx context.Context, keys []dts.LineKey) (map[dts.LineKey]int, error)
	SweepSlots(ctx context.Context) (int64, error)
	PutQueue(ctx context.Context, q *dts.Queue, token int64) error
	DeleteQueue(ctx context.Context, tenant, name string, token int64) error
	Queue(ctx context.Context, tenant, name string) (*dts.Queue, error)
	PauseQueue(ctx context.Context, tenant, name, note string, now time.Time, token int64) error
	ResumeQueue(ctx context.Context, tenant, name string, now time.Time, token int64) error
	AllQueues(ctx context.Context) ([]*dts.Queue, error)
	QueuesNow(ctx context.Context, tenant string, now time.Time) ([]*dts.Queue, error)
	QueueStates(ctx context.Context, tenant string, now time.Time, ahead bool) (map[string]dts.QueueState, error)
	TakeStarts(ctx context.Context, k dts.QueueKey, r dts.Rate, want int, now time.Time) (dts.Starts, error)

	InsertRecurring(ctx context.Context, f dts.Fence, p dts.Plan) (dts.Created[*dts.RecurringTask], error)
	RecurringTask(ctx context.Context, tenant, id string) (*dts.RecurringTask, error)
	RecurringByID(ctx context.Context, ids []string) ([]*dts.RecurringTask, error)
	PlanDue(ctx context.Context, shards dts.ShardSet, now time.Time, limit int) (due []*dts.RecurringTask, next time.Time, err error)
	Replans(ctx context.Context, shards dts.ShardSet, now time.Time, limit int) ([]*dts.RecurringTask, error)
	PausedRecurring(ctx context.Context, shards dts.ShardSet) (map[string]dts.Pause, error)
	BootRecurring(ctx context.Context) ([]*dts.RecurringTask, error)
	SavePlans(ctx context.Context, f dts.Fence, plans []dts.Plan, now time.Time) []error
	Planned(ctx context.Context, id string) ([]*dts.Task, error)
	ActiveRuns(ctx context.Context, id string) (int, error)
	ActiveOrInLine(ctx context.Context, id string) (int, error)
	LastSkip(ctx context.Context, id string) (*dts.Skip, error)
	SkipsAfter(ctx context.Context, id string, at time.Time) ([]*dts.Skip, error)
	DecidedAfter(ctx context.Context, id string, at time.Time) ([]time.Time, error)
	CountOccurrences(ctx context.Context, id string, origin dts.Origin, from, to time.Time) (int64, error)

	TimeRules(ctx context.Context) (token string, err error)
	CreateCalendar(ctx context.Context, c *dts.Calendar) error
	ReplaceCalendar(ctx context.Context, c *dts.Calendar, old int64) error
	DeleteCalendar(ctx context.Context, tenant, name string, token int64) error
	CalendarVersions(ctx context.Context, tenant string, names []string) (map[string]int64, error)
	CreateBlackout(ctx context.Context, b *dts.Blackout, token int64) error
	ReplaceBlackout(ctx context.Context, b *dts.Blackout, token int64) error
	DeleteBlackout(ctx context.Context, tenant, id string, token int64) error
	Blackout(ctx context.Context, tenant, id string) (*dts.Blackout, error)
	AllBlackouts(ctx context.Context) ([]*dts.Blackout, error)
	Waiting(ctx context.Context, shards dts.ShardSet, reason dts.Reason, after int64, limit int) ([]*dts.Task, error)

	Retentions(ctx context.Context) (map[string]dts.Retention, error)
	PutRetention(ctx context.Context, tenant string, r dts.Retention, now time.Time, token int64) error
	CountFinished(ctx context.Context, after, through time.Time, limit int) (counted []dts.Finished, next time.Time, err error)
	DeleteFinished(ctx context.Context, c dts.Cut, now time.Time, limit int) (dts.Deletion, error)
	DeleteSkips(ctx context.Context, after dts.SkipMark, before map[string]time.Time, other time.Time, limit int) (dts.SkipMark, error)
	DeleteOld(ctx context.Context, before, now time.Time, limit int) (more bool, err error)
	Maintain(ctx context.Context) error
}

// Options of a Scheduler. Store, Runner and Refused must be set; the zero value of the rest works.
type Options struct {
	Store  Store
	Runner dts.Runner
	// Refused reports whether a write was refused because the thing had changed in the meantime.
	Refused func(error) bool
	// KillOrphans kills what an earlier process left running, before anything runs again. inFlight reports
	// whether an attempt had not ended.
	KillOrphans func(ctx context.Context, known []dts.Process, inFlight func(taskID string, attempt int) bool) error
	// OnFull is called, at most once a second, while writes fail: if the disk is full it may free some room.
	OnFull func()
	// Halted reports that no attempt may start any more, because the store is known to be damaged. It is asked
	// before each start. nil: never.
	Halted func() bool

	// Failpoint, if set, is called with a name at the moments at which a crash would hurt most; a build for crash
	// tests ends the process there.
	Failpoint func(name string)

	Log      *slog.Logger
	Registry prometheus.Registerer
	NewTimer func() timer.Timer   // default: timer.New
	Now      func() time.Time     // default: time.Now
	Boottime func() time.Duration // a clock that is never set, for leases; default: timer.Boottime
	// KernelClock is what the kernel says of its clock; default: adjtimex(2).
	KernelClock func() (k KernelClock, known bool)

	// Peers tells the other servers of a cluster what concerns them. nil: this server is alone, nobody else can use
	// its store, and it holds every shard from the start.
	Peers Peers

	Node     dts.Node // ID, Address, Version and BootID
	BootedAt time.Time
	// ClockFloor is a time that is certainly past, such as that of the build: an earlier clock is wrong.
	ClockFloor time.Time
	// TrustClock believes a clock that is earlier than the newest time in the store.
	TrustClock bool

	// One queue alone gets 70 % of the slots, so that others need not wait for what is slow in it: 256 and 64 by default.
	HTTPSlots      int           // HTTP calls in flight; default 364
	CommandSlots   int           // commands at once; default 91
	CPUBudget      float64       // cores for tasks that ask for some; 0: no limit
	OneQueue       bool          // one queue alone may have all slots: there is nobody to keep some for
	NoHostLimits   bool          // call HTTP hosts as fast as there are slots, however they do
	MemoryBudgetMB int64         // MiB for tasks that ask for some; 0: no limit
	HeapLimit      int           // tasks held in memory until they are due, at times twice as many; default 150,000
	ClaimLimit     int           // tasks of one queue, kind and priority claimed and not started; default 2,048
	DrainTimeout   time.Duration // how long Stop lets runs go on; default 30 s
	Retention      time.Duration // finished tasks are kept this long; default 30 days
	RetentionRows  int64         // at most this many finished tasks are kept; default 1,000,000

	RetentionBytes int64 // at most this much of finished tasks is kept, about, for each tenant; 0: no limit
}

const (
	claimAhead     = 2 * time.Second        // tasks due within this are claimed
	claimChunk     = 512                    // tasks claimed together
	claimsInFlight = 2                      // chunks of one kind and priority under way, whatever the queues
	loadAhead      = 10 * time.Minute       // tasks due within this are held in memory
	loadChunk      = 10_000                 // tasks of one scan
	startShown     = 50 * time.Millisecond  // a run that takes longer shows RUNNING
	retryStore     = 500 * time.Millisecond // after a store error
	maxUnwritten   = 10_000                 // results that may wait for the disk before starts stop
	beatEvery      = time.Minute            // how often the newest time is written
)

// Scheduler is one node's scheduler. Start it once, stop it once.
type Scheduler struct {
	o   Options
	log *slog.Logger
	m   *metrics
	bus *bus

	held    atomic.Pointer[dts.Fence] // see fence
	lease   atomic.Int64              // until when, by Options.Boottime, this server may start something
	members *members
	skews   *skews

	ctx    context.Context // of everything that runs; cancelled at the end of Stop
	cancel context.CancelFunc
	wg     sync.WaitGroup
	spawns sync.Mutex // held while a caller's goroutine adds to wg, and while Stop ends that

	in       inbox
	loopDone chan struct{}
	writer   *writer
	workers  workers
	// strangers counts how often the loop met a task other than from whoever inserted it: a verb held one that was not
	// in memory, or the store was read. It may be one that is just being inserted.
	strangers atomic.Int64

	tuned    atomic.Pointer[Tuning]
	retained atomic.Pointer[time.Time] // when all that is not to be kept was last gone; nil: not yet
	beating  atomic.Pointer[time.Time] // since when a beat is being written; nil: none is

	keeps chan struct{} // capacity 1: how long finished tasks are kept was changed
	full  chan struct{} // capacity 1: a write found the disk full, or failing

	planning chan struct{} // capacity 1: full while someone changes the plans of recurring tasks
	planWake chan struct{}
	missMu   sync.Mutex
	missed   map[string]bool // recurring tasks with occurrences that were missed
	rules    rules
	loads    loads

	clock       *clock
	draining    atomic.Bool
	unstarted   [pools][ranks]atomic.Int64 // claimed or ready, by kind and priority, of all flows
	flows       flows
	startedAt   time.Time
	faultLogged atomic.Int64 // since when the store fault that was logged lasts
}

// setDefaults fills in what is zero and has a default.
func (o *Options) setDefaults() {
	setDefault(&o.HTTPSlots, 364)
	setDefault(&o.CommandSlots, 91)
	setDefault(&o.HeapLimit, 150_000)
	setDefault(&o.ClaimLimit, 2048)
	setDefault(&o.DrainTimeout, 30*time.Second)
	setDefault(&o.Retention, 30*24*time.Hour)
	setDefault(&o.RetentionRows, 1_000_000)
}

// New makes a scheduler.
func New(o Options) *Scheduler {
	o.setDefaults()
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Boottime == nil {
		o.Boottime = timer.Boottime
	}
	if o.KernelClock == nil {
		o.KernelClock = kernelClock
	}
	if o.Failpoint == nil {
		o.Failpoint = func(string) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.NewTimer == nil {
		o.NewTimer = func() timer.Timer { return timer.New(o.Log) }
	}
	s := &Scheduler{
		o: o, log: o.Log, bus: newBus(),
		in: inbox{wake: make(chan struct{}, 1)}, loopDone: make(chan struct{}),
		planning: make(chan struct{}, 1), planWake: make(chan struct{}, 1), full: make(chan struct{}, 1), keeps: make(chan struct{}, 1), missed: map[string]bool{},
		rules: rules{loading: make(chan struct{}, 1)}, flows: flows{m: map[dts.QueueKey]*flow{}, sweepAt: minFlows},
	}
	s.tuned.Store(o.tuning())
	s.held.Store(&dts.Fence{Node: o.Node.ID, Terms: &dts.Terms{}})
	s.members = newMembers(s)
	s.skews = newSkews()
	s.m = newMetrics(s)
	if o.Registry != nil {
		o.Registry.MustRegister(s.m.all()...)
	}
	return s
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Start recovers what an earlier process left and begins to fire. It returns when the scheduler takes
// requests; ctx bounds only that.
func (s *Scheduler) Start(ctx context.Context) error {
	s.startedAt = s.o.Now()
	s.ctx, s.cancel = context.WithCancel(context.Background())
	before, known, err := s.o.Store.Node(ctx, s.o.Node.ID)
	if err != nil {
		return err
	}
	s.clock = newClock(s.o.Now, s.o.Boottime, s.o.ClockFloor, before.SeenAt, s.o.TrustClock)
	if s.clock.held() != "" {
		s.log.Error("the clock is not believed, nothing fires", "reason", s.clock.held())
	}
	if err := s.register(ctx); err != nil {
		return err
	}
	if s.alone() {
		if err := s.takeAll(ctx); err != nil {
			return err
		}
		if err := s.runAtBoot(ctx, known && before.BootID == s.o.Node.BootID); err != nil {
			return err
		}
	}
	if _, err := s.loadRules(ctx); err != nil {
		return err
	}
	l := newLoop(s)
	s.writer = newWriter(s)
	s.wg.Go(l.run)
	s.wg.Go(s.writer.run)
	s.wg.Go(s.planLoop)
	s.wg.Go(s.retainLoop)
	s.wg.Go(s.expireLoop)
	s.wg.Go(s.clockLoop)
	s.wg.Go(s.rippleLoop)
	if s.alone() {
		s.wg.Go(s.beatLoop)
		s.spawn(func() { _ = s.review(dts.AllShards) }) // the server before may have ended just after a blackout was deleted
	} else {
		s.wg.Go(s.members.run)
		s.wg.Go(s.rulesLoop)
	}
	return nil
}

// Stop lets runs end, up to DrainTimeout, then stops them; it writes every result and returns when nothing
// runs any more. ctx cuts the draining short.
func (s *Scheduler) Stop(ctx context.Context) error {
	if s.ctx == nil {
		return nil
	}
	s.draining.Store(true)
	s.members.look() // hands over
	drainCtx, cancel := context.WithTimeout(ctx, s.tuning().DrainTimeout)
	defer cancel()
	idle := make(chan struct{})
	s.in.post(func(l *loop) { l.drain(idle) })
	select {
	case <-idle:
	case <-drainCtx.Done():
		s.log.Warn("runs did not end in time and are stopped")
		ended := make(chan struct{})
		s.in.post(func(l *loop) { l.cancelAll(ended) })
		select {
		case <-ended: // their results are flushed below, if the store takes them
		case <-time.After(30 * time.Second): // a runner that does not stop: its tasks are LOST at the next start
			s.log.Error("runs did not stop")
		}
	}
	err := s.writer.flush(10 * time.Second)
	if s.alone() {
		if s.clock.held() == "" {
			// The newest time, for the check of the clock at the next start.
			err = errors.Join(err, s.o.Store.Beat(context.WithoutCancel(ctx), s.fence(), 0, s.clock.now()))
		}
	} else {
		err = errors.Join(err, s.members.stop(leaveWait))
	}
	s.spawns.Lock()
	s.cancel()
	s.spawns.Unlock()
	s.wg.Wait()
	s.workers.stop()
	s.bus.close()
	return err
}

// spawn runs f on a goroutine that Stop waits for; not when the scheduler has ended. For callers from outside: what
// the scheduler's own goroutines start is waited for anyway.
func (s *Scheduler) spawn(f func()) {
	s.spawns.Lock()
	defer s.spawns.Unlock()
	if s.ctx.Err() == nil {
		s.wg.Go(f)
	}
}

func (s *Scheduler) beatLoop() {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for beat := int64(1); ; beat++ {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		if s.clock.held() != "" {
			continue
		}
		began := time.Now()
		s.beating.Store(&began)
		if err := s.o.Store.Beat(s.ctx, s.fence(), beat, s.clock.now()); err != nil && s.ctx.Err() == nil {
			s.log.Warn("beat", "err", err)
		}
		s.beating.Store(nil)
	}
}
