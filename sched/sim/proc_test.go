package sim_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"dts"
	"dts/sched"
)

// proc is one process: a scheduler and its way to the database and to the targets. When it is killed nothing that
// it does has an effect any more, whatever its goroutines still try.
type proc struct {
	unused
	sched.Reader // nil: nothing here asks what will happen, or why something did not
	w            *world
	epoch        int
	began        time.Time // by the wall clock
	s            *sched.Scheduler
	dead         chan struct{} // closed when it is killed
	pending      sync.WaitGroup

	// Under the database's mutex.
	gone    bool
	behind  bool      // it was started with a clock that was behind what it had shown
	stopAt  time.Time // it was asked to end
	crashIn int       // it is killed at this step; 0: not
	live    map[string]*liveRun
}

// liveRun is an attempt that a target works on.
type liveRun struct {
	task    *dts.Task
	number  int
	from    time.Time
	process *dts.Process
}

// weather is how well the database works.
type weather struct {
	fail    float64 // of all accesses
	unknown float64 // of all writes: the caller is not told whether it was applied
	slow    float64 // of all accesses
	full    bool    // failed writes find the disk full
}

func (x weather) bad() bool { return x != weather{} }

// fate is what happens to one access.
type fate struct {
	delay   time.Duration // before it is applied
	err     error         // instead of applying it
	unknown bool          // answered with unknown; applied all the same unless err is set
	tail    time.Duration // until the answer
}

func storeError(code dts.Code) error { return dts.Errorf(code, "the simulated store: %s", code) }

var errGone = fmt.Errorf("%w: the process is dead", errRefused)

// roll decides an access's fate.
func (w *world) roll(write bool) fate {
	var f fate
	x, r := w.weather, w.chance
	if !x.bad() {
		return f
	}
	if r.Float64() < x.slow {
		f.delay = time.Duration(r.Int64N(int64(500 * time.Millisecond)))
		if r.IntN(20) == 0 {
			f.delay = time.Duration(r.Int64N(int64(10 * time.Second)))
		}
		w.tally[delays]++
	}
	switch {
	case write && r.Float64() < x.unknown:
		f.unknown, f.tail = true, time.Duration(r.Int64N(int64(10*time.Second)))
		if r.IntN(2) == 0 {
			f.err = storeError(dts.ErrUnknown)
		}
		w.tally[ambiguous]++
	case r.Float64() < x.fail:
		f.err = storeError(dts.ErrUnavailable)
		if write && x.full {
			f.err = storeError(dts.ErrFull)
		}
		w.tally[failures]++
	}
	return f
}

// step is a place between two steps at which the process can die.
func (p *proc) step(name string) {
	d := p.w.db
	d.mu.Lock()
	if p.crashIn > 0 && !p.gone {
		if p.crashIn--; p.crashIn == 0 {
			p.kill(name)
		}
	}
	d.mu.Unlock()
}

// kill ends the process at this instant.
func (p *proc) kill(where string) {
	if p.gone {
		return
	}
	w := p.w
	p.gone = true
	close(p.dead)
	for _, r := range p.live {
		if r.process != nil {
			w.orphans = append(w.orphans, r)
		}
	}
	w.tally[crashes]++
	w.log("", "killed at %s", where)
}

// write sends a batch. Batches are applied in the order in which they are accepted; a caller that gives up waiting
// learns nothing about the outcome.
func (p *proc) write(ctx context.Context, op string, apply func() error) error {
	p.step("before " + op)
	w, d := p.w, p.w.db
	d.mu.Lock()
	if p.gone {
		defer d.mu.Unlock()
		return errGone
	}
	if ctx.Err() != nil {
		d.mu.Unlock()
		return dts.Errorf(dts.ErrUnavailable, "not begun: %w", ctx.Err())
	}
	f, now := w.roll(true), time.Now()
	if f.delay == 0 && f.tail == 0 && !w.busyUntil.After(now) {
		err := w.finish(f, op, apply)
		d.mu.Unlock()
		p.step("after " + op)
		return p.answer(err)
	}
	at := now.Add(f.delay)
	if w.busyUntil.After(now) { // it goes with the next group
		at, f.tail = w.busyUntil.Add(time.Microsecond), 0
	}
	w.busyUntil = at.Add(f.tail)
	d.mu.Unlock()
	done := make(chan error, 1)
	p.pending.Go(func() {
		if !p.sleep(time.Until(at)) {
			return
		}
		d.mu.Lock()
		if p.gone {
			d.mu.Unlock()
			return
		}
		err := w.finish(f, op, apply)
		d.mu.Unlock()
		if p.sleep(f.tail) {
			done <- err
		}
	})
	select {
	case err := <-done:
		p.step("after " + op)
		return p.answer(err)
	case <-p.dead:
		return errGone
	case <-ctx.Done():
		return dts.Errorf(dts.ErrUnknown, "stopped waiting for it: %w", ctx.Err())
	}
}

// finish applies a write, or does not, and says what its caller is told.
func (w *world) finish(f fate, op string, apply func() error) error {
	err := f.err
	if err == nil {
		err = apply()
	}
	w.note(op, err)
	if f.unknown {
		err = storeError(dts.ErrUnknown)
	}
	switch {
	case err == nil:
		w.fault = nil
	case !errors.Is(err, errRefused) && w.fault == nil:
		w.fault, w.faultAt = err, time.Now()
	}
	return err
}

func (w *world) note(op string, err error) {
	if op != "read" && op != "beat" {
		w.log("", "%s: %v", op, err)
	}
}

// answer is what reaches the caller: nothing, if the process has died.
func (p *proc) answer(err error) error {
	select {
	case <-p.dead:
		return errGone
	default:
		return err
	}
}

// sleep waits; false when the process has died first.
func (p *proc) sleep(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-p.dead:
		return false
	}
}

func (p *proc) read(ctx context.Context, get func()) error {
	p.step("before a read")
	w, d := p.w, p.w.db
	d.mu.Lock()
	f := fate{}
	if !w.orphanHunt {
		f = w.roll(false)
	}
	wait := func() {
		d.mu.Unlock()
		select {
		case <-time.After(f.delay):
		case <-ctx.Done():
		case <-p.dead:
		}
		d.mu.Lock()
	}
	early := f.delay > 0 && f.err == nil && w.chance.IntN(2) == 0 // what it tells may have changed by the time of its answer
	if f.delay > 0 && !early {
		wait()
	}
	defer d.mu.Unlock()
	switch {
	case p.gone:
		return storeError(dts.ErrUnavailable)
	case ctx.Err() != nil:
		return dts.Errorf(dts.ErrUnavailable, "given up: %w", ctx.Err())
	case f.err != nil:
		return f.err
	}
	get()
	if early {
		wait()
		if p.gone || ctx.Err() != nil {
			return dts.Errorf(dts.ErrUnavailable, "given up")
		}
	}
	return nil
}

// The methods of sched.Store.

func (p *proc) Register(ctx context.Context, n dts.Node, alone bool) error {
	return p.write(ctx, "register", func() error { p.w.db.register(n, alone); p.w.tryLate(); return nil })
}

func (p *proc) Beat(ctx context.Context, f dts.Fence, beat int64, now time.Time) error {
	return p.write(ctx, "beat", func() error { return p.w.db.beat(f, beat, now) })
}

func (p *proc) Leave(ctx context.Context, f dts.Fence, over bool) error {
	return p.write(ctx, "leave", func() error { return p.w.db.leave(f, over) })
}

func (p *proc) DeclareDead(ctx context.Context, f dts.Fence, n dts.Node) error {
	return p.write(ctx, "declare dead", func() error { return p.w.db.declareDead(f, n) })
}

func (p *proc) TakeShards(ctx context.Context, f dts.Fence, takes []dts.Take) error {
	return p.write(ctx, "take shards", func() error { return p.w.db.takeShards(f, takes) })
}

func (p *proc) ReleaseShards(ctx context.Context, f dts.Fence, set dts.ShardSet) error {
	return p.write(ctx, "release shards", func() error { return p.w.db.releaseShards(f, set) })
}

func (p *proc) Members(ctx context.Context) (m dts.Members, err error) {
	err = p.read(ctx, func() { m = p.w.db.members() })
	return m, err
}

func (p *proc) Node(ctx context.Context, id string) (n dts.Node, found bool, err error) {
	err = p.read(ctx, func() {
		if o := p.w.db.nodes[id]; o != nil {
			n, found = *o, true
		}
	})
	return n, found, err
}

func (p *proc) Lost(ctx context.Context, f dts.Fence, set dts.ShardSet, own bool, limit int) (list []dts.Lost, err error) {
	err = p.read(ctx, func() { list = p.w.db.lost(f, set, own, limit) })
	return list, err
}

func (p *proc) Handoffs(ctx context.Context, set dts.ShardSet, limit int) (ids []string, err error) {
	err = p.read(ctx, func() { ids = p.w.db.handoffs(set, limit) })
	return ids, err
}

func (p *proc) DeleteHandoffs(ctx context.Context, f dts.Fence, ids []string) error {
	return p.write(ctx, "delete handoffs", func() error { return p.w.db.deleteHandoffs(f, ids) })
}

// Nothing depends on anything here.

func (p *proc) Ripples() <-chan struct{} { return nil }

func (p *proc) Cascade(ctx context.Context, f dts.Fence, now time.Time) (bool, error) {
	return false, p.read(ctx, func() {})
}

func (p *proc) Graph(ctx context.Context, tenant, id string, limit int) (*dts.Graph, error) {
	return nil, errors.ErrUnsupported
}

// There are no workflows here.

func (p *proc) StartRun(context.Context, dts.Fence, *dts.Task, *dts.Task, []*dts.Task) error {
	return errors.ErrUnsupported
}

func (p *proc) Steps(context.Context, string, string) ([]*dts.Task, error) {
	return nil, errors.ErrUnsupported
}

func (p *proc) StepEdges(context.Context, string) ([]dts.Dependency, error) {
	return nil, errors.ErrUnsupported
}

func (p *proc) Inputs(context.Context, *dts.Task, int) ([]dts.Input, error) {
	return nil, errors.ErrUnsupported
}

func (p *proc) Reopened(ctx context.Context, _ []string) ([]string, error) {
	return nil, p.read(ctx, func() {}) // nothing depends on anything here
}

func (p *proc) DependsOn(ctx context.Context, tenant, child, parent string) (bool, error) {
	return false, p.read(ctx, func() {})
}

func (p *proc) TasksByID(ctx context.Context, ids []string) (list []*dts.Task, err error) {
	err = p.read(ctx, func() {
		for _, id := range ids {
			if t := p.w.db.tasks[id]; t != nil {
				list = append(list, clone(t))
			}
		}
	})
	return list, err
}

func (p *proc) Fault() (time.Time, error) {
	p.w.db.mu.Lock()
	defer p.w.db.mu.Unlock()
	return p.w.faultAt, p.w.fault
}

func (p *proc) InsertTasks(ctx context.Context, f dts.Fence, tasks []*dts.Task) (made []dts.Created[*dts.Task], err error) {
	copies := make([]*dts.Task, len(tasks)) // a write that goes on after its caller has given up keeps its own
	for i, t := range tasks {
		copies[i] = clone(t)
	}
	var out []dts.Created[*dts.Task]
	if err = p.write(ctx, "insert tasks", func() (err error) { out, err = p.w.db.insertTasks(f, copies); return err }); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(tasks, func(t *dts.Task) bool { return t.IdempotencyKey != "" }) && p.read(ctx, func() {}) != nil {
		return nil, storeError(dts.ErrUnknown) // whose key won is read after the write
	}
	for i := range out {
		if !out[i].Existed {
			out[i].Item = tasks[i]
		}
	}
	return out, nil
}

func (p *proc) Task(ctx context.Context, tenant, id string) (t *dts.Task, err error) {
	var missing error
	if err = p.read(ctx, func() { t, missing = p.w.db.task(tenant, id) }); err != nil {
		return nil, err
	}
	return t, missing
}

func (p *proc) Tasks(ctx context.Context, f dts.TaskFilter) (page dts.Page[*dts.Task], err error) {
	err = p.read(ctx, func() { page = p.w.db.list(f) })
	return page, err
}

func (p *proc) CountTasks(ctx context.Context, f dts.TaskFilter) (n int, err error) {
	f.Limit = math.MaxInt
	page, err := p.Tasks(ctx, f)
	return len(page.Items), err
}

func (p *proc) Attempts(ctx context.Context, _, id string) (list []*dts.Attempt, err error) {
	err = p.read(ctx, func() {
		for _, a := range p.w.db.attempts[id] {
			list = append(list, clone(a))
		}
	})
	return list, err
}

func (p *proc) LoadDue(ctx context.Context, set dts.ShardSet, queues dts.QueueChoice, after dts.Mark, through time.Time, limit int) (list []dts.Entry, err error) {
	err = p.read(ctx, func() { list = p.w.db.loadDue(set, queues, after, through, limit) })
	return list, err
}

func (p *proc) Load(ctx context.Context, ids []string) (list []*dts.Task, err error) {
	err = p.read(ctx, func() { list = p.w.db.load(ids) })
	return list, err
}

// Write and Change of a dead process reach the database as well, late: after the next process has begun. The fence must
// refuse them.
func (p *proc) Write(ctx context.Context, f dts.Fence, recs []*dts.Record) error {
	copies := make([]*dts.Record, len(recs))
	for i, r := range recs {
		copies[i] = clone(r)
		copies[i].Task = clone(r.Task)
	}
	apply := func() error { return p.w.db.write(f, copies) }
	return p.late(p.write(ctx, "write", apply), apply)
}

func (p *proc) Change(ctx context.Context, f dts.Fence, changes []dts.Change, now time.Time) error {
	copies := copyChanges(changes)
	apply := func() error { return p.w.db.change(f, copies, now) }
	err := p.write(ctx, "change", apply)
	if len(changes) == 0 {
		return err
	}
	return p.late(err, apply)
}

// late keeps a write that its process did not live to see done.
func (p *proc) late(err error, apply func() error) error {
	if errors.Is(err, errGone) {
		p.w.db.mu.Lock()
		p.w.late = append(p.w.late, apply)
		p.w.db.mu.Unlock()
	}
	return err
}

// tryLate sends them. The database's mutex is held.
func (w *world) tryLate() {
	for _, apply := range w.late {
		w.tally[stale]++
		if apply() == nil {
			w.violate("I5", "a write of a dead process was accepted")
		}
	}
	w.late = nil
}

func copyChanges(changes []dts.Change) []dts.Change {
	out := make([]dts.Change, len(changes))
	for i, c := range changes {
		out[i] = dts.Change{Old: clone(c.Old), Skip: c.Skip}
		if c.New != nil {
			out[i].New = clone(c.New)
		}
	}
	return out
}

func (p *proc) InsertRecurring(ctx context.Context, f dts.Fence, plan dts.Plan) (made dts.Created[*dts.RecurringTask], err error) {
	c := copyPlan(&plan)
	if err = p.write(ctx, "insert recurring", func() (err error) { made, err = p.w.db.insertRecurring(f, *c); return err }); err != nil {
		return dts.Created[*dts.RecurringTask]{}, err
	}
	if plan.New.IdempotencyKey != "" && p.read(ctx, func() {}) != nil {
		return dts.Created[*dts.RecurringTask]{}, storeError(dts.ErrUnknown)
	}
	if !made.Existed {
		made.Item = plan.New
	}
	return made, nil
}

func copyPlan(p *dts.Plan) *dts.Plan {
	c := &dts.Plan{Old: clone(p.Old), New: clone(p.New), Changes: copyChanges(p.Changes), Skips: append([]dts.Skip(nil), p.Skips...)}
	for _, t := range p.Insert {
		c.Insert = append(c.Insert, clone(t))
	}
	return c
}

func (p *proc) RecurringTask(ctx context.Context, tenant, id string) (r *dts.RecurringTask, err error) {
	err = p.read(ctx, func() {
		if x := p.w.db.recurring[id]; x != nil && x.TenantID == tenant {
			r = p.w.db.seen(x)
		}
	})
	if err == nil && r == nil {
		err = dts.Errorf(dts.ErrNotFound, "there is no recurring task %s", id)
	}
	return r, err
}

func (p *proc) RecurringByID(ctx context.Context, ids []string) (list []*dts.RecurringTask, err error) {
	want := map[string]bool{}
	for _, id := range ids {
		want[id] = true
	}
	err = p.read(ctx, func() { list = p.w.db.selectRecurring(func(r *dts.RecurringTask) bool { return want[r.ID] }) })
	return list, err
}

func (p *proc) PlanDue(ctx context.Context, set dts.ShardSet, now time.Time, limit int) (due []*dts.RecurringTask, next time.Time, err error) {
	err = p.read(ctx, func() { due, next = p.w.db.planDue(set, now, limit) })
	return due, next, err
}

// Replans returns nothing: nobody changes a calendar here.
func (p *proc) Replans(context.Context, dts.ShardSet, time.Time, int) ([]*dts.RecurringTask, error) {
	return nil, nil
}

// Waiting returns nothing: there are no blackouts here.
func (p *proc) Waiting(context.Context, dts.ShardSet, dts.Reason, int64, int) ([]*dts.Task, error) {
	return nil, nil
}

func (p *proc) PausedRecurring(ctx context.Context, set dts.ShardSet) (map[string]dts.Pause, error) {
	paused := map[string]dts.Pause{}
	err := p.read(ctx, func() {
		for _, r := range p.w.db.recurring {
			if r.Status == dts.Paused && set.Has(r.Shard) {
				paused[r.ID] = dts.Pause{Shard: r.Shard, Until: r.PausedUntil}
			}
		}
	})
	return paused, err
}

func (p *proc) BootRecurring(ctx context.Context) (list []*dts.RecurringTask, err error) {
	err = p.read(ctx, func() {
		list = p.w.db.selectRecurring(func(r *dts.RecurringTask) bool { return r.Status == dts.Active && r.Cron == "@reboot" })
	})
	return list, err
}

func (p *proc) SavePlans(ctx context.Context, f dts.Fence, plans []dts.Plan, now time.Time) []error {
	errs := make([]error, len(plans))
	for i := range plans {
		c := copyPlan(&plans[i])
		errs[i] = p.write(ctx, "plan", func() error { return p.w.db.savePlan(f, c, now) })
	}
	return errs
}

func (p *proc) Planned(ctx context.Context, id string) (list []*dts.Task, err error) {
	err = p.read(ctx, func() { list = p.w.db.planned(id) })
	return list, err
}

func (p *proc) ActiveRuns(ctx context.Context, id string) (n int, err error) {
	err = p.read(ctx, func() { n = p.w.db.activeRuns(id, "") })
	return n, err
}

func (p *proc) ActiveOrInLine(ctx context.Context, id string) (int, error) {
	return p.ActiveRuns(ctx, id)
}

func (p *proc) LastSkip(ctx context.Context, id string) (k *dts.Skip, err error) {
	err = p.read(ctx, func() { k = p.w.db.lastSkip(id) })
	return k, err
}

func (p *proc) SkipsAfter(ctx context.Context, id string, at time.Time) (list []*dts.Skip, err error) {
	err = p.read(ctx, func() { list = p.w.db.skipsAfter(id, at) })
	return list, err
}

// unused is what no history comes to: those have no calendars, blackouts or backfills. What uses them is tested with the
// real store.
type unused interface {
	CountOccurrences(ctx context.Context, id string, origin dts.Origin, from, to time.Time) (int64, error)
	CreateCalendar(ctx context.Context, c *dts.Calendar) error
	ReplaceCalendar(ctx context.Context, c *dts.Calendar, old int64) error
	DeleteCalendar(ctx context.Context, tenant, name string, token int64) error
	CalendarVersions(ctx context.Context, tenant string, names []string) (map[string]int64, error)
	CreateBlackout(ctx context.Context, b *dts.Blackout, token int64) error
	ReplaceBlackout(ctx context.Context, b *dts.Blackout, token int64) error
	DeleteBlackout(ctx context.Context, tenant, id string, token int64) error
	Blackout(ctx context.Context, tenant, id string) (*dts.Blackout, error)
}

func (p *proc) OccurrenceAt(ctx context.Context, _, id string, at time.Time) (tasks []*dts.Task, _ []*dts.Skip, err error) {
	err = p.read(ctx, func() {
		tasks = p.w.db.selectTasks(func(t *dts.Task) bool { return t.RecurringTaskID == id && t.ScheduledAt.Equal(at) })
	})
	return tasks, nil, err
}

func (p *proc) DecidedAfter(ctx context.Context, id string, at time.Time) (list []time.Time, err error) {
	err = p.read(ctx, func() {
		for _, t := range p.w.db.tasks {
			if t.RecurringTaskID == id && t.ScheduledAt.After(at) && t.Origin == dts.OriginSchedule && t.Moved {
				list = append(list, t.ScheduledAt)
			}
		}
	})
	slices.SortFunc(list, time.Time.Compare)
	return list, err
}

func (p *proc) TimeRules(ctx context.Context) (string, error) { return "", p.read(ctx, func() {}) }

func (p *proc) AllBlackouts(ctx context.Context) ([]*dts.Blackout, error) {
	return nil, p.read(ctx, func() {})
}

// No task here has a concurrency_key, and no queue a limit: slots are tested with the real store.
func (p *proc) Start(ctx context.Context, _ dts.Fence, _ *dts.Record, _ []dts.Slot) (string, error) {
	return "", errors.New("nothing here needs a slot")
}

func (p *proc) InLine(ctx context.Context, _ dts.LineKey, _ int) ([]*dts.Task, int, error) {
	return nil, 0, p.read(ctx, func() {})
}

func (p *proc) Lines(ctx context.Context, _ dts.ShardSet) ([]dts.LineKey, error) {
	return nil, p.read(ctx, func() {})
}

func (p *proc) Taken(ctx context.Context, _ []dts.LineKey) (map[dts.LineKey]int, error) {
	return nil, p.read(ctx, func() {})
}

func (p *proc) SweepSlots(ctx context.Context) (int64, error) { return 0, p.read(ctx, func() {}) }

func (p *proc) PutQueue(context.Context, *dts.Queue, int64) error { return nil }

func (p *proc) DeleteQueue(context.Context, string, string, int64) error { return nil }

func (p *proc) Queue(context.Context, string, string) (*dts.Queue, error) { return nil, nil }

func (p *proc) PauseQueue(context.Context, string, string, string, time.Time, int64) error {
	return nil
}

func (p *proc) ResumeQueue(context.Context, string, string, time.Time, int64) error { return nil }

func (p *proc) QueuesNow(context.Context, string, time.Time) ([]*dts.Queue, error) { return nil, nil }

func (p *proc) QueueStates(context.Context, string, time.Time, bool) (map[string]dts.QueueState, error) {
	return nil, nil
}

func (p *proc) AllQueues(ctx context.Context) ([]*dts.Queue, error) {
	return nil, p.read(ctx, func() {})
}

func (p *proc) TakeStarts(context.Context, dts.QueueKey, dts.Rate, int, time.Time) (dts.Starts, error) {
	return dts.Starts{}, nil
}

// Retention is far away: what it deletes is tested with the real store.

func (p *proc) Retentions(ctx context.Context) (map[string]dts.Retention, error) {
	return nil, p.read(ctx, func() {})
}

func (p *proc) PutRetention(context.Context, string, dts.Retention, time.Time, int64) error {
	return nil
}

func (p *proc) CountFinished(ctx context.Context, _, through time.Time, _ int) ([]dts.Finished, time.Time, error) {
	return nil, through, p.read(ctx, func() {})
}

func (p *proc) DeleteFinished(ctx context.Context, c dts.Cut, _ time.Time, _ int) (dts.Deletion, error) {
	return dts.Deletion{Next: c.After}, p.write(ctx, "read", func() error { return nil })
}

func (p *proc) DeleteSkips(ctx context.Context, _ dts.SkipMark, _ map[string]time.Time, _ time.Time, _ int) (dts.SkipMark, error) {
	return dts.SkipMark{}, p.read(ctx, func() {})
}

func (p *proc) DeleteOld(ctx context.Context, _, _ time.Time, _ int) (bool, error) {
	return false, p.write(ctx, "read", func() error { return nil })
}

func (p *proc) Maintain(context.Context) error { return nil }

// Unfinished is never anything: no task here has a dedupe_key.
func (p *proc) Unfinished(ctx context.Context, _, _ string) (*dts.Task, error) {
	return nil, p.read(ctx, func() {})
}

func (p *proc) Expired(ctx context.Context, shards dts.ShardSet, now time.Time, after int64, limit int) (list []*dts.Task, err error) {
	err = p.read(ctx, func() {
		for _, t := range p.w.db.tasks {
			if t.Status == dts.Pending && !t.ExpiresAt.IsZero() && t.ExpiresAt.Before(now) && t.Seq > after && shards.Has(t.Shard) {
				list = append(list, clone(t))
			}
		}
		slices.SortFunc(list, func(a, b *dts.Task) int { return cmp.Compare(a.Seq, b.Seq) })
		list = list[:min(len(list), limit)]
	})
	return list, err
}
