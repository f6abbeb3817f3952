package sim_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dts"
	"dts/migrations"
	"dts/sched"
	"dts/store"
	"dts/store/sqlite"
	"dts/store/sqlite/sqlitetest"
)

// pair is the store in memory and the real one, to which the same is done.
type pair struct {
	t     *testing.T
	r     *rand.Rand
	ctx   context.Context
	db    *database
	st    *store.Store
	now   time.Time
	fence dts.Fence
	stale []dts.Fence // what was held before
	ids   []string    // of all tasks that were ever asked for
	sent  []*dts.Task
	recs  []string // of all recurring tasks
	made  int
}

// TestStoreIsLikeSQL does the same random things to the store in memory and to the real one, and compares answers and
// contents: the simulation is worth what its store is. DTS_SIM_SEED replays one run.
func TestStoreIsLikeSQL(t *testing.T) {
	base, runs := rand.Uint64()>>1, 4
	if seed := setting(t, "DTS_SIM_SEED", 0); seed > 0 {
		base, runs = uint64(seed), 1
	}
	for i := range runs {
		seed := base + uint64(i)
		if !t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { differential(t, seed) }) {
			return
		}
	}
}

func differential(t *testing.T, seed uint64) {
	back, err := sqlite.Open(t.Context(), sqlitetest.New(t), sqlite.Options{Migrations: migrations.FS})
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{t: t, r: rand.New(rand.NewPCG(seed, 3)), ctx: context.Background(), db: newDatabase(),
		st: store.New(back, store.Options{}), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	defer func() {
		if err := p.st.Close(); err != nil {
			t.Error(err)
		}
	}()
	p.register()
	ops := []func(){p.register, p.shards, p.shards, p.insert, p.insert, p.write, p.write, p.write, p.write, p.change, p.change, p.createRecurring, p.plan, p.plan, p.read, p.read}
	for n := 0; n < 150 && !t.Failed(); n++ {
		p.now = p.now.Add(time.Duration(p.r.Int64N(int64(3 * time.Second)))).Truncate(time.Microsecond)
		ops[p.r.IntN(len(ops))]()
		if n%15 == 14 {
			p.compare()
		}
	}
}

// same holds that both answer alike: not at all, with a refusal, or with the same kind of error.
func (p *pair) same(op string, got, want error) {
	p.t.Helper()
	if (got == nil) != (want == nil) || errors.Is(got, errRefused) != errors.Is(want, store.ErrRefused) || dts.CodeOf(got) != dts.CodeOf(want) && !errors.Is(got, errRefused) {
		p.t.Errorf("%s: in memory %v, really %v", op, got, want)
	}
}

func (p *pair) equal(op string, got, want any) {
	p.t.Helper()
	overlap := gocmp.Transformer("overlap", func(o dts.OverlapPolicy) bool { return o == dts.OverlapSkip }) // the default is not stored
	if diff := gocmp.Diff(want, got, overlap, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(dts.Task{}, "RequestHash"), cmpopts.IgnoreFields(dts.RecurringTask{}, "RequestHash")); diff != "" {
		p.t.Errorf("%s (-real +in memory):\n%s", op, diff)
	}
}

// register lets one of two servers begin, and take what it can.
func (p *pair) register() {
	n := dts.Node{ID: fmt.Sprint("node-", 1+p.r.IntN(2)), Incarnation: fmt.Sprint("start-", p.now.UnixMicro()), BootID: "boot-1", StartedAt: p.now, SeenAt: p.now}
	alone := p.r.IntN(3) > 0
	if err := p.st.Register(p.ctx, n, alone); err != nil {
		p.t.Fatal(err)
	}
	p.db.register(n, alone)
	p.hold(dts.Fence{Node: n.ID, Incarnation: n.Incarnation, Terms: &dts.Terms{}, Alone: alone})
	p.take(dts.AllShards)
}

func (p *pair) hold(f dts.Fence) {
	if p.fence.Terms != nil {
		p.stale = append(p.stale, p.fence)
	}
	p.fence = f
}

// take takes those of the shards that do not belong to another server that lives.
func (p *pair) take(set dts.ShardSet) {
	var takes []dts.Take
	terms := *p.fence.Terms
	for _, n := range set.List() {
		h := p.db.holders[n]
		if o := p.db.nodes[h.Node]; o != nil && o.ID != p.fence.Node && o.State.Runs() && p.r.IntN(50) > 0 {
			continue
		}
		if p.r.IntN(200) == 0 {
			h.Term++
		}
		takes = append(takes, dts.Take{Shard: n, From: h})
		terms[n] = h.Term + 1
	}
	e1, e2 := p.db.takeShards(p.fence, takes), p.st.TakeShards(p.ctx, p.fence, takes)
	p.same("take shards", e1, e2)
	if e1 == nil {
		f := p.fence
		f.Terms = &terms
		p.hold(f)
	}
}

// shards does something to who holds what.
func (p *pair) shards() {
	f := p.either()
	some := dts.ShardSet(p.r.Uint64())
	some &= dts.ShardSet(p.r.Uint64())
	switch p.r.IntN(6) {
	case 0:
		beat := p.r.Int64N(100)
		p.same("beat", p.db.beat(f, beat, p.now), p.st.Beat(p.ctx, f, beat, p.now))
	case 1:
		over := p.r.IntN(4) == 0
		p.same("leave", p.db.leave(f, over), p.st.Leave(p.ctx, f, over))
	case 2:
		for _, n := range p.db.members().Nodes {
			if n.Beat += int64(p.r.IntN(2)); p.r.IntN(2) == 0 {
				p.same("declare dead", p.db.declareDead(f, n), p.st.DeclareDead(p.ctx, f, n))
			}
		}
	case 3:
		some &= f.Terms.Held()
		p.same("release", p.db.releaseShards(f, some), p.st.ReleaseShards(p.ctx, f, some))
	case 4:
		p.take(some)
	default:
		ids, err := p.st.Handoffs(p.ctx, some, 3)
		if err != nil {
			p.t.Fatal(err)
		}
		p.equal("handoffs", p.db.handoffs(some, 3), ids)
		p.same("delete handoffs", p.db.deleteHandoffs(f, ids), p.st.DeleteHandoffs(p.ctx, f, ids))
	}
}

// either is the fence, or now and then one of those before.
func (p *pair) either() dts.Fence {
	if p.r.IntN(8) == 0 && len(p.stale) > 0 {
		return p.stale[p.r.IntN(len(p.stale))]
	}
	return p.fence
}

func (p *pair) spec() dts.Spec {
	s := dts.Spec{Name: "job", TargetType: dts.HTTPCallback, TargetConfig: []byte(`{"url":"http://127.0.0.1/"}`), Priority: [...]dts.Priority{dts.High, dts.Medium, dts.Low}[p.r.IntN(3)]}
	if p.r.IntN(2) == 0 {
		s.TargetType, s.TargetConfig = dts.Command, []byte(`{"argv":["true"]}`)
	}
	s.Retry = dts.Retry{MaxAttempts: 3, Backoff: dts.Fixed, BaseDelayMS: 1000}
	return s
}

func (p *pair) id(kind string) string {
	p.made++
	return fmt.Sprintf("00000000-0000-7000-%s-%012x", kind, p.made)
}

func (p *pair) insert() {
	var tasks []*dts.Task
	for range 1 + p.r.IntN(3) {
		t := &dts.Task{ID: p.id("8000"), Spec: p.spec(), RunAt: p.now.Add(time.Duration(p.r.IntN(20)-5) * time.Second), CreatedBy: "test"}
		if n := p.r.IntN(10); n < 4 {
			t.IdempotencyKey, t.RequestHash = fmt.Sprintf("key-%d", n), fmt.Sprintf("hash-%d", n&^p.r.IntN(2))
		}
		if err := t.Normalize(p.now); err != nil {
			p.t.Fatal(err)
		}
		if p.r.IntN(2) == 0 {
			t.PickedAt, t.Node = p.now, "node-1"
		}
		tasks = append(tasks, t)
	}
	if p.r.IntN(6) == 0 && len(p.sent) > 0 {
		tasks = append(tasks, clone(p.sent[p.r.IntN(len(p.sent))])) // a second time
	}
	for _, t := range tasks {
		p.ids, p.sent = append(p.ids, t.ID), append(p.sent, clone(t))
	}
	f := p.either()
	mine := make([]*dts.Task, len(tasks))
	for i, t := range tasks {
		mine[i] = clone(t)
	}
	got, e1 := p.db.insertTasks(f, mine)
	want, e2 := p.st.InsertTasks(p.ctx, f, tasks)
	p.same("insert tasks", e1, e2)
	for i := range min(len(got), len(want)) {
		if got[i].Existed != want[i].Existed || got[i].Item.ID != want[i].Item.ID {
			p.t.Errorf("insert tasks: in memory %v %s, really %v %s", got[i].Existed, got[i].Item.ID, want[i].Existed, want[i].Item.ID)
		}
	}
}

// some is a task that is stored; nil when there is none. It may be out of date in what must be checked.
func (p *pair) some() *dts.Task {
	list := p.db.selectTasks(func(*dts.Task) bool { return true })
	if len(list) == 0 {
		return nil
	}
	return list[p.r.IntN(len(list))]
}

func (p *pair) write() {
	t := p.some()
	if t == nil {
		return
	}
	f := p.either()
	rec := &dts.Record{Task: t, Term: f.Term(t.Shard), Attempt: dts.Attempt{TaskID: t.ID, TenantID: t.TenantID, Number: max(t.Attempts+p.r.IntN(3)-p.r.IntN(2), 1), State: dts.AttemptRunning,
		Node: f.Node, PickedAt: p.now, StartedAt: p.now, LatenessUS: 7}}
	late, met := int64(7), true
	if t.StartedAt.IsZero() {
		t.StartedAt, t.LatenessUS, t.SLAMet = p.now, &late, &met
	}
	if t.TargetType == dts.Command {
		rec.Process = &dts.Process{PGID: 1 + p.r.IntN(1000), StartTime: 5, BootID: "boot-1"}
	}
	if p.r.IntN(3) > 0 {
		a, n := &rec.Attempt, clone(t)
		a.CompletedAt, a.DurationUS = p.now.Add(time.Millisecond), 1000
		a.State = [...]dts.AttemptState{dts.AttemptSuccess, dts.AttemptFailed, dts.AttemptTimedOut, dts.AttemptLost}[p.r.IntN(4)]
		n.Attempts, n.NextAttemptAt = a.Number, time.Time{}
		switch {
		case a.State == dts.AttemptSuccess:
			n.Status, n.CompletedAt = dts.Success, a.CompletedAt
		case p.r.IntN(2) == 0:
			n.Status, n.CompletedAt, n.LastError = dts.Failed, a.CompletedAt, "no"
		default:
			n.Status, n.NextAttemptAt = dts.Pending, p.now.Add(time.Second)
			n.RunAt, n.LastError = n.NextAttemptAt, "no"
		}
		rec.After, rec.Shown = n, p.r.IntN(2) == 0
		if rec.Shown && p.r.IntN(2) == 0 { // its start was written, whoever holds the shard now
			rec.Term, rec.Attempt.Node = t.Term, cmp.Or(t.Node, f.Node)
		}
	}
	mine := *rec
	mine.Task = clone(t)
	p.same("write", p.db.write(f, []*dts.Record{&mine}), p.st.Write(p.ctx, f, []*dts.Record{rec}))
}

// changeOf is a change of a task, now and then one that goes out from what is not so.
func (p *pair) changeOf(t *dts.Task) dts.Change {
	old, n := clone(t), clone(t)
	c := dts.Change{Old: old, New: n}
	kind := p.r.IntN(6)
	if t.Status == dts.Success && (kind == 0 || kind == 1 || kind == 4) {
		kind = 2 // no verb takes a success back, and the attempt of a short one is in the task's row
	}
	switch kind {
	case 0:
		n.Status, n.CompletedAt, n.LastError = dts.Cancelled, p.now, "cancelled"
	case 1:
		n.Status, n.SkipReason, n.CompletedAt = dts.Pending, "", time.Time{}
		n.MaxAttempts, n.RunAt, n.NextAttemptAt = n.Attempts+1, p.now, p.now
	case 2:
		n.RunAt, n.Moved, n.MissAt, n.Priority = p.now.Add(time.Second), true, time.Time{}, dts.Low
	case 3:
		c.New = nil
	case 4:
		n.Status, n.SkipReason, n.CompletedAt = dts.Skipped, dts.ReasonOverlap, p.now
	default:
		old.Attempts++
	}
	if t.Origin == dts.OriginSchedule && p.r.IntN(2) == 0 {
		c.Skip = &dts.Skip{TenantID: t.TenantID, RecurringTaskID: t.RecurringTaskID, From: t.ScheduledAt, To: t.ScheduledAt, Count: 1, Reason: dts.ReasonOverlap}
	}
	return c
}

func (p *pair) change() {
	t := p.some()
	if t == nil {
		return
	}
	list, f := []dts.Change{p.changeOf(t)}, p.either()
	p.same("change", p.db.change(f, copyChanges(list), p.now), p.st.Change(p.ctx, f, list, p.now))
}

func (p *pair) createRecurring() {
	r := &dts.RecurringTask{ID: p.id("9000"), Spec: p.spec(), Schedule: dts.Schedule{Cron: "*/2 * * * * *"}, CreatedBy: "test"}
	if n := p.r.IntN(6); n < 3 {
		r.IdempotencyKey, r.RequestHash = fmt.Sprintf("r-%d", n), fmt.Sprintf("hash-%d", n&^p.r.IntN(2))
	}
	if err := r.Normalize(); err != nil {
		p.t.Fatal(err)
	}
	plan, err := sched.FirstPlan(r, nil, p.now)
	if err != nil {
		p.t.Fatal(err)
	}
	f := p.either()
	got, e1 := p.db.insertRecurring(f, *copyPlan(&plan))
	want, e2 := p.st.InsertRecurring(p.ctx, f, plan)
	p.same("insert recurring", e1, e2)
	if e1 == nil && e2 == nil && (got.Existed != want.Existed || got.Item.ID != want.Item.ID) {
		p.t.Errorf("insert recurring: in memory %v %s, really %v %s", got.Existed, got.Item.ID, want.Existed, want.Item.ID)
	}
	p.recs = append(p.recs, r.ID)
}

// plan saves a plan whose cursor or version may be wrong, and that may insert what is there already.
func (p *pair) plan() {
	list := p.db.selectRecurring(func(*dts.RecurringTask) bool { return true })
	if len(list) == 0 {
		return
	}
	old := list[p.r.IntN(len(list))]
	n := clone(old)
	plan := dts.Plan{Old: old, New: n}
	for range p.r.IntN(3) {
		n.PlannedThrough = n.PlannedThrough.Add(2 * time.Second)
		plan.Insert = append(plan.Insert, n.Occurrence(n.PlannedThrough, dts.OriginSchedule, p.now))
	}
	if p.r.IntN(3) == 0 {
		to := n.PlannedThrough.Add(time.Duration(1+p.r.IntN(5)) * 2 * time.Second)
		from := n.PlannedThrough.Add(time.Duration(p.r.IntN(3)-1) * 2 * time.Second)
		plan.Skips = append(plan.Skips, dts.Skip{TenantID: n.TenantID, RecurringTaskID: n.ID, From: from, To: to, Count: 3, Reason: dts.ReasonCatchUp})
		n.PlannedThrough = to
	}
	for _, t := range p.db.planned(n.ID) {
		if p.r.IntN(6) == 0 {
			plan.Changes = append(plan.Changes, p.changeOf(t))
		}
	}
	n.PlanAt, n.UpdatedAt = p.now.Add(time.Duration(p.r.IntN(5)-2)*time.Second), p.now
	switch p.r.IntN(6) {
	case 0:
		n.Status, n.PausedAt, n.PauseNote = dts.Paused, p.now, "note"
	case 1:
		n.Status, n.PausedAt, n.PauseNote = dts.Active, time.Time{}, ""
	case 2:
		n.PlanVersion++
	}
	switch wrong := clone(old); p.r.IntN(8) {
	case 0:
		wrong.PlannedThrough = wrong.PlannedThrough.Add(-2 * time.Second)
		plan.Old = wrong
	case 1:
		wrong.PlanVersion++
		plan.Old = wrong
	}
	f := p.either()
	p.same("plan", p.db.savePlan(f, copyPlan(&plan), p.now), p.st.SavePlans(p.ctx, f, []dts.Plan{plan}, p.now)[0])
}

// read compares what the scheduler asks.
func (p *pair) read() {
	check := func(op string, err error, got, want any) {
		p.t.Helper()
		if err != nil {
			p.t.Fatal(err)
		}
		p.equal(op, got, want)
	}
	mark, through, limit := dts.Mark{RunAt: p.now.Add(-time.Duration(p.r.IntN(60)) * time.Second)}, p.now.Add(time.Duration(p.r.IntN(20))*time.Second), 1+p.r.IntN(10)
	if t := p.some(); t != nil && p.r.IntN(2) == 0 {
		e := t.Entry()
		mark = e.Mark()
	}
	set := dts.AllShards
	if p.r.IntN(2) == 0 {
		set = dts.ShardSet(p.r.Uint64())
	}
	var queues dts.QueueChoice
	switch mine := []dts.QueueKey{{TenantID: dts.DefaultTenant, Name: "default"}, {TenantID: "other", Name: "q"}}; p.r.IntN(3) {
	case 1:
		queues.Only = mine[p.r.IntN(2):]
	case 2:
		queues.Except = mine[p.r.IntN(2):]
	}
	due, err := p.st.LoadDue(p.ctx, set, queues, mark, through, limit)
	check("load due", err, p.db.loadDue(set, queues, mark, through, limit), due)
	tasks, err := p.st.Load(p.ctx, p.ids)
	check("load", err, bySeq(p.db.load(distinct(p.ids))), bySeq(tasks))
	own := p.r.IntN(2) == 0
	lost, err := p.st.Lost(p.ctx, p.fence, set, own, 100)
	mine := p.db.lost(p.fence, set, own, 100)
	for _, list := range [][]dts.Lost{lost, mine} {
		slices.SortFunc(list, func(a, b dts.Lost) int { return cmp.Compare(a.Task.Seq, b.Task.Seq) })
	}
	check("lost", err, mine, lost)
	members, err := p.st.Members(p.ctx)
	check("members", err, p.db.members(), members)
	recs, next, err := p.st.PlanDue(p.ctx, set, p.now, 100)
	got, gotNext := p.db.planDue(set, p.now, 100)
	check("plan due", err, len(got), len(recs))
	check("plan due", err, gotNext.UnixMicro(), next.UnixMicro())
	for _, id := range p.recs {
		planned, err := p.st.Planned(p.ctx, id)
		check("planned", err, p.db.planned(id), planned)
		n, err := p.st.ActiveRuns(p.ctx, id)
		check("active runs", err, p.db.activeRuns(id, ""), n)
		k, err := p.st.LastSkip(p.ctx, id)
		check("last skip", err, p.db.lastSkip(id), k)
		ahead, err := p.st.SkipsAfter(p.ctx, id, p.now)
		check("skips ahead", err, p.db.skipsAfter(id, p.now), ahead)
	}
}

func bySeq(list []*dts.Task) []*dts.Task {
	return slices.SortedFunc(slices.Values(list), func(a, b *dts.Task) int { return cmp.Compare(a.Seq, b.Seq) })
}

func distinct(ids []string) []string { return slices.Compact(slices.Sorted(slices.Values(ids))) }

// compare compares the whole contents.
func (p *pair) compare() {
	tasks, err := p.st.TasksByID(p.ctx, p.ids)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, id := range p.recs {
		page, err := p.st.Tasks(p.ctx, dts.TaskFilter{TenantID: dts.DefaultTenant, RecurringTaskID: id, Limit: 1000})
		if err != nil {
			p.t.Fatal(err)
		}
		tasks = append(tasks, page.Items...)
	}
	p.equal("tasks", p.db.selectTasks(func(*dts.Task) bool { return true }), bySeq(tasks))
	for _, t := range tasks {
		list, err := p.st.Attempts(p.ctx, t.TenantID, t.ID)
		if err != nil {
			p.t.Fatal(err)
		}
		slices.SortFunc(list, func(a, b *dts.Attempt) int { return cmp.Compare(a.Number, b.Number) })
		mine := slices.SortedFunc(slices.Values(p.db.attempts[t.ID]), func(a, b *dts.Attempt) int { return cmp.Compare(a.Number, b.Number) })
		p.equal("attempts", mine, list)
	}
	list, err := p.st.RecurringByID(p.ctx, p.recs)
	if err != nil {
		p.t.Fatal(err)
	}
	slices.SortFunc(list, func(a, b *dts.RecurringTask) int { return cmp.Compare(p.db.order[a.ID], p.db.order[b.ID]) })
	p.equal("recurring tasks", p.db.selectRecurring(func(*dts.RecurringTask) bool { return true }), list)
}
