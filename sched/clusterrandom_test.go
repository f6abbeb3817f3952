package sched_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dts"
	"dts/sched"
	"dts/store"
)

// TestClusterRandom lets servers come, go, crash and lose their way to the database while tasks are created, changed and
// run, then heals everything and checks the promises. DTS_CLUSTER_SEEDS says how many histories; a few without it.
// DTS_CLUSTER_SEED runs one alone.
func TestClusterRandom(t *testing.T) {
	first, n := uint64(1), 12
	if testing.Short() {
		n = 4
	}
	if v, err := strconv.Atoi(os.Getenv("DTS_CLUSTER_SEEDS")); err == nil {
		n = v
	}
	if v, err := strconv.ParseUint(os.Getenv("DTS_CLUSTER_SEED"), 10, 64); err == nil {
		first, n = v, 1
	}
	for seed := first; seed < first+uint64(n) && !t.Failed(); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			inCluster(t, 0, func(c *cluster) { newChaos(c, seed).run() })
		})
	}
}

// chaos is one random history.
type chaos struct {
	*cluster
	t    *testing.T
	seed uint64
	r    *rand.Rand // of the test's own goroutine
	ids  int
	up   []*member // those that are asked for something
	gone []*member // crashed, or cut off for ever: their goroutines are still there
	free []string  // ids of servers that have stopped or crashed, to come again

	tasks []*dts.Task // acknowledged
	every map[string]*dts.RecurringTask
	step  map[string]time.Duration // between the instants of a recurring task
	ended map[string]time.Time     // when a recurring task was cancelled

	mu     sync.Mutex
	flaky  *rand.Rand // of those who lose calls
	runs   []*attempt
	paused map[string]time.Time // acknowledged
	dead   map[*member]bool     // crashed: what it does now does not happen
	stops  sync.WaitGroup
}

// attempt is what a runner saw.
type attempt struct {
	task        *dts.Task
	number      int
	m           *member
	incarnation string
	from, to    time.Time // to is zero while it runs
	state       dts.AttemptState
}

func newChaos(c *cluster, seed uint64) *chaos {
	x := &chaos{cluster: c, t: c.t, seed: seed, r: rand.New(rand.NewPCG(seed, 1)), flaky: rand.New(rand.NewPCG(seed, 2)),
		every: map[string]*dts.RecurringTask{}, step: map[string]time.Duration{}, ended: map[string]time.Time{},
		paused: map[string]time.Time{}, dead: map[*member]bool{}}
	c.setDeaf(x.r.IntN(3) == 0)
	c.opts = func(o *sched.Options) { o.DrainTimeout = 4 * time.Second }
	return x
}

func (x *chaos) run() {
	for range 3 {
		x.start("")
	}
	time.Sleep(8 * time.Second)
	for range 90 {
		x.act()
		time.Sleep(time.Duration(x.r.IntN(1+x.r.IntN(3000))) * time.Millisecond)
	}
	x.heal()
	x.check()
	for _, m := range x.gone {
		m.s.Stop(m.ctx) // it reaches nobody
		m.st.Close()
	}
}

// start starts a server: under an id that was used before, or a new one.
func (x *chaos) start(id string) {
	if id == "" {
		x.ids++
		id = fmt.Sprint("node-", x.ids)
	}
	x.up = append(x.up, x.join(id, func(m *member) {
		m.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome { return x.attempt(m, ctx, j) })
	}))
}

// act does something.
func (x *chaos) act() {
	x.r.Shuffle(len(x.up), func(i, j int) { x.up[i], x.up[j] = x.up[j], x.up[i] })
	switch n := x.r.IntN(100); {
	case n < 30:
		x.create()
	case n < 38:
		x.createRecurring()
	case n < 46:
		x.change()
	case n < 54:
		x.pause()
	case n < 58:
		x.modify()
	case n < 64 && len(x.up) < 4:
		id := ""
		if len(x.free) > 0 && x.r.IntN(2) == 0 {
			id, x.free = x.free[0], x.free[1:]
		}
		x.start(id)
	case n < 72 && len(x.up) > 1:
		x.stop()
	case n < 77 && len(x.up) > 2:
		x.abandon(x.r.IntN(2) == 0)
	case n < 95:
		x.disturb(x.up[0])
	default:
		for _, m := range x.up {
			x.disturb(m)
		}
	}
}

func (x *chaos) create() {
	if x.r.IntN(4) == 0 {
		x.createKeyed()
		return
	}
	for range 1 + x.r.IntN(4) {
		k := &dts.Task{Spec: x.spec(), RunAt: time.Now().Add(time.Duration(x.r.IntN(15000)) * time.Millisecond)}
		if x.r.IntN(5) == 0 {
			k.RunAt = time.Now().Add(time.Hour) // not in memory
		}
		if x.r.IntN(3) == 0 {
			k.Delivery = dts.AtMostOnce
			k.Retry.MaxAttempts = 1
		}
		if x.r.IntN(3) == 0 {
			k.ConcurrencyKey, k.ConcurrencyLimit = "a", 4+x.r.IntN(4)
		}
		if err := k.Normalize(time.Now()); err != nil {
			x.t.Fatal(err)
		}
		if made, err := x.up[0].s.CreateTasks(context.Background(), []*dts.Task{k}); err == nil {
			x.tasks = append(x.tasks, made[0].Item)
		}
	}
}

// createKeyed asks one server after the other for the same task until one has acknowledged it.
func (x *chaos) createKeyed() {
	spec, at := x.spec(), time.Now().Add(time.Duration(x.r.IntN(5000))*time.Millisecond)
	for range 8 {
		for _, m := range x.up {
			k := &dts.Task{Spec: spec, RunAt: at, IdempotencyKey: spec.Name, RequestHash: spec.Name}
			if err := k.Normalize(at); err != nil {
				x.t.Fatal(err)
			}
			made, err := m.s.CreateTasks(limited(), []*dts.Task{k})
			if err == nil {
				x.tasks = append(x.tasks, made[0].Item)
				return
			}
			if code := dts.CodeOf(err); code == dts.ErrConflict || code == dts.ErrInvalid || code == dts.ErrInternal {
				x.t.Errorf("a create with a key was refused: %v", err)
			}
		}
		time.Sleep(300 * time.Millisecond)
	}
}

func (x *chaos) spec() dts.Spec {
	x.ids++
	return dts.Spec{Name: fmt.Sprint("job-", x.ids), TargetType: dts.HTTPCallback, TargetConfig: []byte(`{"url":"http://127.0.0.1/"}`),
		Retry: dts.Retry{MaxAttempts: 1 + x.r.IntN(3)}}
}

func (x *chaos) createRecurring() {
	if len(x.every) >= 6 {
		return
	}
	step := 1 + x.r.IntN(3)
	r := &dts.RecurringTask{Spec: x.spec(), Schedule: dts.Schedule{Cron: fmt.Sprintf("*/%d * * * * *", step)}}
	if x.r.IntN(2) == 0 {
		r.OverlapPolicy = dts.OverlapSkip
	}
	if x.r.IntN(4) == 0 {
		r.MisfireAfterSeconds = 3
	}
	if err := r.Normalize(); err != nil {
		x.t.Fatal(err)
	}
	if made, err := x.up[0].s.CreateRecurring(context.Background(), r); err == nil {
		id := made.Item.ID
		x.every[id], x.step[id] = made.Item, time.Duration(step)*time.Second
	}
}

// somewhere does something through the server that is responsible.
func (x *chaos) somewhere(f func(m *member) error) error {
	for try := 0; ; try++ {
		for _, m := range x.up {
			err := f(m)
			if code := dts.CodeOf(err); code != dts.ErrElsewhere && code != dts.ErrUnavailable || try == 20 {
				return err
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func limited() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	context.AfterFunc(ctx, cancel)
	return ctx
}

func (x *chaos) change() {
	if len(x.tasks) == 0 {
		return
	}
	k := x.tasks[len(x.tasks)-1-x.r.IntN(min(len(x.tasks), 6))]
	v := []dts.Verb{dts.Cancel, dts.RunNow, dts.RunNow}[x.r.IntN(3)]
	x.somewhere(func(m *member) error {
		_, err := m.s.DoTask(limited(), dts.DefaultTenant, k.ID, v, "me")
		return err
	})
}

func (x *chaos) pause() {
	ids := slices.Sorted(func(yield func(string) bool) {
		for id := range x.every {
			if !yield(id) {
				return
			}
		}
	})
	if len(ids) == 0 {
		return
	}
	id := ids[x.r.IntN(len(ids))]
	if x.r.IntN(3) == 0 {
		x.trigger(id)
		return
	}
	x.mu.Lock()
	_, is := x.paused[id]
	delete(x.paused, id)
	x.mu.Unlock()
	err := x.somewhere(func(m *member) (err error) {
		if is {
			_, err = m.s.ResumeRecurring(limited(), dts.DefaultTenant, id, false, "me")
		} else {
			_, err = m.s.PauseRecurring(limited(), dts.DefaultTenant, id, time.Time{}, "", "me")
		}
		return err
	})
	if err == nil && !is {
		x.mu.Lock()
		x.paused[id] = time.Now()
		x.mu.Unlock()
	}
}

// trigger runs a recurring task once more.
func (x *chaos) trigger(id string) {
	x.somewhere(func(m *member) error {
		k, err := m.s.TriggerRecurring(limited(), dts.DefaultTenant, id, "me")
		if err == nil {
			x.tasks = append(x.tasks, k)
		}
		return err
	})
}

// modify plans a recurring task anew.
func (x *chaos) modify() {
	for id := range x.every {
		x.somewhere(func(m *member) error {
			_, err := m.s.ModifyRecurring(limited(), dts.DefaultTenant, id, dts.RecurringPatch{})
			return err
		})
		return
	}
}

// stop is SIGTERM.
func (x *chaos) stop() {
	m := x.up[0]
	x.up = x.up[1:]
	x.stops.Go(func() {
		cut := m.cut.off.Load() || m.cut.fates.Load() != nil
		if err := m.s.Stop(m.ctx); err != nil && !cut {
			x.t.Errorf("%s did not stop well: %v", m.id, err)
		}
		m.st.Close()
		x.cluster.mu.Lock()
		x.nodes = slices.DeleteFunc(slices.Clone(x.nodes), func(o *member) bool { return o == m })
		x.cluster.mu.Unlock()
	})
}

// abandon cuts a server off for ever. With crash its runs end, too, and it may come again under its id.
func (x *chaos) abandon(crash bool) {
	m := x.up[0]
	x.up = x.up[1:]
	x.mu.Lock()
	x.gone = append(x.gone, m)
	m.cut.off.Store(true)
	m.cut.fates.Store(nil)
	if crash {
		x.dead[m] = true
		for _, a := range x.runs {
			if a.m == m && a.to.IsZero() {
				a.to, a.state = time.Now(), dts.AttemptLost
			}
		}
		x.free = append(x.free, m.id)
	}
	x.mu.Unlock()
	x.cluster.mu.Lock()
	x.nodes = slices.DeleteFunc(slices.Clone(x.nodes), func(o *member) bool { return o == m })
	x.cluster.mu.Unlock()
}

// disturb makes a server's way to the database bad for a while.
func (x *chaos) disturb(m *member) {
	span := time.Duration(x.r.IntN(40)) * time.Second
	if x.r.IntN(2) == 0 {
		span /= 20
	}
	switch x.r.IntN(3) {
	case 0:
		m.cut.off.Store(true)
	case 1: // of one kind of statement only
		kind := kinds[x.r.IntN(len(kinds))]
		f := fate{cut: x.r.IntN(2) == 0, silent: x.r.IntN(3) == 0, early: time.Duration(x.r.IntN(3)*x.r.IntN(2500)) * time.Millisecond}
		m.cut.decide(of(kind, func() fate { return f }))
	case 2:
		cut, silent, slow := x.r.IntN(60), x.r.IntN(30), x.r.IntN(20)
		m.cut.decide(func([]store.Stmt) (f fate) {
			x.mu.Lock()
			defer x.mu.Unlock()
			f.cut, f.silent = x.flaky.IntN(100) < cut, x.flaky.IntN(100) < silent
			if x.flaky.IntN(100) < slow {
				f.early, f.late = time.Duration(x.flaky.IntN(300))*time.Millisecond, time.Duration(x.flaky.IntN(300))*time.Millisecond
			}
			return f
		})
	}
	x.stops.Go(func() {
		time.Sleep(span)
		x.mu.Lock()
		defer x.mu.Unlock()
		if !slices.Contains(x.gone, m) {
			m.mend()
		}
	})
}

// kinds tells what a statement is about.
var kinds = []string{"UPDATE nodes SET beat", "UPDATE nodes SET state", "INTO nodes", "UPDATE shards SET node_id = ''", "UPDATE shards SET node_id = ?2",
	"UPDATE tasks SET status = 'RUNNING'", "completed_at = ?6", "UPDATE tasks SET status = ?, priority", "INSERT INTO tasks", "UPDATE recurring_tasks",
	"status = 'PAUSED'", "FROM handoffs", "status = 'RUNNING' AND", "FROM tasks", "FROM shards"}

// mend makes a server's way to the database good.
func (m *member) mend() {
	m.cut.fates.Store(nil)
	m.cut.off.Store(false)
}

// attempt runs: how long, and with what end, its task's name and number say.
func (x *chaos) attempt(m *member, ctx context.Context, j dts.Job) dts.Outcome {
	now := time.Now()
	n, _, err := x.look.Node(context.Background(), m.id)
	if err != nil {
		x.t.Error(err)
	}
	a := &attempt{task: j.Task, number: j.Number, m: m, incarnation: n.Incarnation, from: now}
	x.mu.Lock()
	if x.dead[m] {
		x.mu.Unlock()
		<-ctx.Done()
		return dts.Outcome{State: dts.AttemptLost, Error: "lost"}
	}
	if !n.State.Runs() {
		x.t.Errorf("%s starts task %s although it is %s", m.id, j.Task.ID, n.State)
	}
	at, paused := x.paused[j.Task.RecurringTaskID]
	if paused && j.Task.Origin == dts.OriginSchedule && j.Task.ScheduledAt.After(at) && j.Number == 1 {
		x.t.Errorf("%s starts the occurrence of %v, %v after it was paused", m.id, j.Task.ScheduledAt, now.Sub(at))
	}
	var others []*attempt
	for _, o := range x.runs {
		// What starts by hand at the very instant may be called first: it was decided about later.
		together := o.from.Equal(now) && o.task.Origin != dts.OriginSchedule
		same := o.task.ID == j.Task.ID || !together && o.task.Overlap == dts.OverlapSkip && j.Task.Origin == dts.OriginSchedule && j.Number == 1 && o.task.RecurringTaskID == j.Task.RecurringTaskID
		if o.to.IsZero() && same {
			others = append(others, o)
		}
	}
	x.runs = append(x.runs, a)
	x.mu.Unlock()
	for _, o := range others {
		n, _, err := x.look.Node(context.Background(), o.m.id)
		if err != nil {
			x.t.Error(err)
		}
		x.mu.Lock()
		over := !o.to.IsZero()
		x.mu.Unlock()
		if !over && n.State.Runs() && n.Incarnation == o.incarnation {
			x.t.Errorf("%s starts attempt %d of task %s (%s) of %q at %v while %s, which lives, runs attempt %d of task %s (%s) since %v", m.id, j.Number, j.Task.ID, j.Task.Origin,
				j.Task.RecurringTaskID, now.Sub(x.began), o.m.id, o.number, o.task.ID, o.task.Origin, now.Sub(o.from))
		}
	}

	h := fnv.New64a()
	fmt.Fprint(h, x.seed, j.Task.Name, j.Task.ScheduledAt.UnixMicro(), j.Number)
	r := rand.New(rand.NewPCG(h.Sum64(), 3))
	last := []time.Duration{0, 0, time.Millisecond, 30 * time.Millisecond, 49 * time.Millisecond, 200 * time.Millisecond, 1500 * time.Millisecond, 12 * time.Second}[r.IntN(8)]
	out := dts.Outcome{State: dts.AttemptSuccess}
	if r.IntN(3) == 0 {
		out = fails(ctx, j)
	}
	if strings.HasPrefix(j.Task.Name, "probe") {
		last, out = 0, dts.Outcome{State: dts.AttemptSuccess}
	}
	select {
	case <-ctx.Done():
		if out = (dts.Outcome{State: dts.AttemptLost, Error: "lost"}); context.Cause(ctx) == dts.ErrRunCancelled {
			out = dts.Outcome{State: dts.AttemptCancelled, Error: "cancelled"}
		}
	case <-time.After(last):
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if a.to.IsZero() {
		a.to, a.state = time.Now(), out.State
	}
	return out
}

// heal mends what is not gone for ever, and lets everything come to its end.
func (x *chaos) heal() {
	x.stops.Wait()
	for _, m := range x.up {
		m.mend()
	}
	time.Sleep(45 * time.Second)
	for len(x.up) < 2 {
		x.start("")
	}
	time.Sleep(5 * time.Second)
	for _, k := range x.tasks {
		if k.RunAt.After(time.Now()) {
			x.somewhere(func(m *member) error {
				_, err := m.s.DoTask(limited(), dts.DefaultTenant, k.ID, dts.RunNow, "me")
				return err
			})
		}
	}
	for id := range x.every {
		x.mu.Lock()
		delete(x.paused, id)
		x.mu.Unlock()
		if err := x.somewhere(func(m *member) error {
			_, err := m.s.ResumeRecurring(limited(), dts.DefaultTenant, id, false, "me")
			return err
		}); err != nil {
			x.t.Errorf("resume: %v", err)
		}
	}
	time.Sleep(30 * time.Second)
	stored, err := x.look.RecurringTasks(context.Background(), dts.RecurringFilter{TenantID: dts.DefaultTenant, Limit: 100})
	if err != nil {
		x.t.Fatal(err)
	}
	for _, r := range stored.Items { // some of them were not acknowledged
		id := r.ID
		if err := x.somewhere(func(m *member) error {
			_, err := m.s.CancelRecurring(limited(), dts.DefaultTenant, id, "me")
			return err
		}); err != nil {
			x.t.Errorf("cancel: %v", err)
		}
		x.ended[id] = time.Now()
	}
	time.Sleep(90 * time.Second)
	synctest.Wait()
}

func (x *chaos) check() {
	t := x.t
	for _, m := range x.up {
		if err := m.s.AtRest(); err != nil {
			t.Errorf("%s is not at rest: %v", m.id, err)
		}
		if err := m.s.Ready(); err != nil {
			t.Errorf("%s: %v", m.id, err)
		}
	}
	held, all := x.holders(), 0
	for _, m := range x.up {
		all += held[m.id]
	}
	if all != dts.Shards {
		t.Errorf("%d servers, and these hold shards: %v", len(x.up), held)
	}
	(&world{t: t, st: x.look, ctx: context.Background()}).noSlots()
	starts, wins, named := map[string]int{}, map[string]int{}, map[string]string{}
	for _, a := range x.runs {
		if id, other := a.task.ID, named[a.task.Name]; other != "" && other != id && a.task.RecurringTaskID == "" {
			t.Errorf("what was created once under a key is two tasks: %s and %s", id, other)
		}
		named[a.task.Name] = a.task.ID
		starts[a.task.ID]++
		if a.state == dts.AttemptSuccess {
			wins[a.task.ID]++
		}
	}
	for _, k := range x.tasks {
		x.checkTask(x.up[0].lookAt(x.cluster, k.ID), starts[k.ID], wins[k.ID])
	}
	for id := range x.every {
		x.checkRecurring(id, starts, wins)
	}
	var probes []*dts.Task
	for i := range 40 {
		probes = append(probes, x.up[i%len(x.up)].add(time.Duration(i%3)*time.Second/2, func(k *dts.Task) { k.Name = "probe" }))
	}
	time.Sleep(1100 * time.Millisecond)
	synctest.Wait()
	for _, k := range probes {
		if k = x.up[0].lookAt(x.cluster, k.ID); k.Status != dts.Success {
			t.Errorf("a task due now is %s in the end", k.Status)
		}
	}
}

func (x *chaos) checkTask(k *dts.Task, starts, wins int) {
	list, err := x.look.Attempts(context.Background(), dts.DefaultTenant, k.ID)
	if err != nil {
		x.t.Fatal(err)
	}
	ok := 0
	for _, a := range list {
		if a.State == dts.AttemptSuccess {
			ok++
		}
		if a.State == dts.AttemptRunning {
			x.t.Errorf("task %s: attempt %d is RUNNING in the end", k.ID, a.Number)
		}
	}
	switch {
	case !k.Status.Terminal():
		x.t.Errorf("task %s (%s) due at %v is %s in the end, after %d attempts, %d starts; node %s", k.ID, k.RecurringTaskID, k.RunAt.Sub(x.began), k.Status, k.Attempts, starts, k.Node)
	case ok > 1 || ok == 1 != (k.Status == dts.Success):
		x.t.Errorf("task %s is %s, and %d of its attempts SUCCESS", k.ID, k.Status, ok)
	case k.Status == dts.Success && wins == 0:
		x.t.Errorf("task %s is SUCCESS, and no run of it was", k.ID)
	case k.Delivery == dts.AtMostOnce && starts > 1:
		x.t.Errorf("task %s, AT_MOST_ONCE, started %d times", k.ID, starts)
	case k.Status == dts.Failed && k.Delivery != dts.AtMostOnce && starts == 0:
		x.t.Errorf("task %s is FAILED, and never started", k.ID)
	}
}

func (x *chaos) checkRecurring(id string, starts, wins map[string]int) {
	ctx := context.Background()
	r, err := x.look.RecurringTask(ctx, dts.DefaultTenant, id)
	if err != nil {
		x.t.Errorf("recurring task %s: %v", id, err)
		return
	}
	seen, step := map[time.Time]int{}, x.step[id]
	ran, ok := int64(0), int64(0)
	for cursor, more := "", true; more; {
		page, err := x.look.Occurrences(ctx, dts.DefaultTenant, id, cursor, 100)
		if err != nil {
			x.t.Fatal(err)
		}
		for _, o := range page.Items {
			if o.Task != nil {
				x.checkTask(o.Task, starts[o.Task.ID], wins[o.Task.ID])
				if o.Task.Origin == dts.OriginSchedule {
					seen[o.ScheduledAt]++
				}
				if s := o.Task.Status; o.Task.Origin == dts.OriginSchedule && (s == dts.Success || s == dts.Failed) {
					ran++
					if s == dts.Success {
						ok++
					}
					if o.Skip != nil {
						x.t.Errorf("the instant %v of %s is %s and skipped", o.ScheduledAt.Sub(x.began), id, s)
					}
				}
				continue
			}
			n := int64(0)
			for at := o.Skip.From; !at.After(o.Skip.To); at = at.Add(step) {
				seen[at]++
				n++
			}
			if n != o.Skip.Count {
				x.t.Errorf("a skip of %s from %v to %v counts %d instants, not %d", id, o.Skip.From, o.Skip.To, o.Skip.Count, n)
			}
		}
		cursor, more = page.Next, page.Next != ""
	}
	for at := r.CreatedAt.Truncate(step).Add(step); !at.After(x.ended[id].Add(-time.Second)); at = at.Add(step) {
		if seen[at] != 1 {
			x.t.Errorf("the instant %v of %s, every %v, is %d times in the ledger", at.Sub(x.began), id, step, seen[at])
		}
	}
	if r.RunsCount != ran || r.CompletedCount != ok {
		x.t.Errorf("recurring task %s counts %d runs, %d completed; the ledger %d and %d", id, r.RunsCount, r.CompletedCount, ran, ok)
	}
}
