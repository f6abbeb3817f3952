package sim_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"dts"
)

// database is the store's contents, with the meaning of the store's SQL. Its methods are called with mu held; each
// is one batch: it changes everything or, with an error, nothing.
type database struct {
	mu sync.Mutex

	nodes   map[string]*dts.Node
	holders [dts.Shards]dts.Holder
	hand    map[string]int // handoffs, with their shards
	seq     int64

	tasks     map[string]*dts.Task
	occur     map[occurrence]string // the task of an occurrence
	attempts  map[string][]*dts.Attempt
	outputs   map[string]bool
	recurring map[string]*dts.RecurringTask
	order     map[string]int64 // seq of recurring tasks
	skips     map[string]map[int64]*dts.Skip
	keys      map[string]key

	onPlan func(p *dts.Plan) // told of each plan that is applied, before it is
	twice  func(t *dts.Task) // told of each occurrence that a plan inserts and that is there already
}

type occurrence struct {
	recurring string
	at        int64
	origin    dts.Origin
}

type key struct{ hash, id string }

func occurrenceOf(t *dts.Task) occurrence {
	return occurrence{t.RecurringTaskID, t.ScheduledAt.UnixMicro(), t.Origin}
}

// errRefused is what the store answers when an assert does not hold.
var errRefused = errors.New("refused")

func newDatabase() *database {
	return &database{
		nodes: map[string]*dts.Node{}, hand: map[string]int{},
		tasks: map[string]*dts.Task{}, occur: map[occurrence]string{}, attempts: map[string][]*dts.Attempt{}, outputs: map[string]bool{},
		recurring: map[string]*dts.RecurringTask{}, order: map[string]int64{}, skips: map[string]map[int64]*dts.Skip{}, keys: map[string]key{},
		onPlan: func(*dts.Plan) {}, twice: func(*dts.Task) {},
	}
}

func clone[T any](p *T) *T {
	c := *p
	return &c
}

// fenced says whether a node lives under its incarnation and holds shards at the terms of its fence.
func (d *database) fenced(f dts.Fence, shards ...int) error {
	if err := d.lives(f); err != nil {
		return err
	}
	for _, n := range shards {
		if err := d.holds(f, n, f.Term(n)); err != nil {
			return err
		}
	}
	return nil
}

func (d *database) lives(f dts.Fence) error {
	if n := d.nodes[f.Node]; n == nil || n.Incarnation != f.Incarnation || !n.State.Runs() {
		return fmt.Errorf("%w: node %s does not live under incarnation %s", errRefused, f.Node, f.Incarnation)
	}
	return nil
}

func (d *database) holds(f dts.Fence, shard int, term int64) error {
	if h := d.holders[shard]; h != (dts.Holder{Node: f.Node, Term: term}) {
		return fmt.Errorf("%w: shard %d is not held at term %d, but %v", errRefused, shard, term, h)
	}
	return nil
}

func (d *database) register(n dts.Node, alone bool) {
	if old := d.nodes[n.ID]; old == nil || old.Incarnation != n.Incarnation {
		n.State, n.Beat, n.StartedAt, n.SeenAt = dts.NodeAlive, 0, dts.Micros(n.StartedAt), dts.Micros(n.SeenAt)
		d.nodes[n.ID] = &n
	}
	for _, o := range d.nodes {
		if alone && o.ID != n.ID && o.State.Runs() {
			o.State = dts.NodeDead
		}
	}
}

func (d *database) beat(f dts.Fence, beat int64, now time.Time) error {
	if err := d.lives(f); err != nil {
		return err
	}
	n := d.nodes[f.Node]
	n.Beat, n.SeenAt = beat, dts.Micros(now)
	return nil
}

func (d *database) leave(f dts.Fence, over bool) error {
	if err := d.lives(f); err != nil {
		return err
	}
	d.nodes[f.Node].State = dts.NodeLeaving
	if over {
		d.nodes[f.Node].State = dts.NodeLeft
	}
	return nil
}

func (d *database) declareDead(f dts.Fence, n dts.Node) error {
	if err := d.lives(f); err != nil {
		return err
	}
	o := d.nodes[n.ID]
	if o == nil || o.Incarnation != n.Incarnation || o.Beat != n.Beat || o.State != n.State {
		return fmt.Errorf("%w: node %s has changed", errRefused, n.ID)
	}
	o.State = dts.NodeDead
	return nil
}

func (d *database) takeShards(f dts.Fence, takes []dts.Take) error {
	if err := d.lives(f); err != nil {
		return err
	}
	for _, t := range takes {
		o := d.nodes[t.From.Node]
		if d.holders[t.Shard] != t.From || o != nil && o.ID != f.Node && o.State.Runs() {
			return fmt.Errorf("%w: shard %d", errRefused, t.Shard)
		}
	}
	for _, t := range takes {
		d.holders[t.Shard] = dts.Holder{Node: f.Node, Term: t.From.Term + 1}
	}
	return nil
}

func (d *database) releaseShards(f dts.Fence, set dts.ShardSet) error {
	if err := d.fenced(f, set.List()...); err != nil {
		return err
	}
	for _, n := range set.List() {
		d.holders[n].Node = ""
	}
	return nil
}

func (d *database) members() dts.Members {
	m := dts.Members{Holders: d.holders}
	for _, n := range d.nodes {
		m.Nodes = append(m.Nodes, *n)
	}
	slices.SortFunc(m.Nodes, func(a, b dts.Node) int { return cmp.Compare(a.ID, b.ID) })
	return m
}

func (d *database) handoffs(set dts.ShardSet, limit int) []string {
	var list []string
	for id, shard := range d.hand {
		if set.Has(shard) {
			list = append(list, id)
		}
	}
	slices.Sort(list)
	return list[:min(len(list), limit)]
}

func (d *database) deleteHandoffs(f dts.Fence, ids []string) error {
	if err := d.lives(f); err != nil {
		return err
	}
	for _, id := range ids {
		delete(d.hand, id)
	}
	return nil
}

// selectTasks returns copies of the tasks that fit, in the order of creation.
func (d *database) selectTasks(fits func(t *dts.Task) bool) []*dts.Task {
	var list []*dts.Task
	for _, t := range d.tasks {
		if fits(t) {
			list = append(list, clone(t))
		}
	}
	slices.SortFunc(list, func(a, b *dts.Task) int { return cmp.Compare(a.Seq, b.Seq) })
	return list
}

func (d *database) lost(f dts.Fence, set dts.ShardSet, own bool, limit int) []dts.Lost {
	var out []dts.Lost
	abandoned := func(t *dts.Task) bool {
		n := d.nodes[t.Node]
		return own && t.Node == f.Node || (n == nil || !n.State.Runs()) && set.Has(t.Shard)
	}
	for _, t := range d.selectTasks(func(t *dts.Task) bool { return t.Status == dts.Running && abandoned(t) }) {
		l := dts.Lost{Task: t}
		if list := d.attempts[t.ID]; len(list) > 0 && list[len(list)-1].State == dts.AttemptRunning {
			l.Attempt = clone(list[len(list)-1])
		}
		if out = append(out, l); len(out) == limit {
			break
		}
	}
	return out
}

// insert stores a task unless it is there already, by its id or as the same occurrence.
func (d *database) insert(t *dts.Task) bool {
	if d.tasks[t.ID] != nil {
		return false
	}
	o := occurrenceOf(t)
	if t.RecurringTaskID != "" {
		if d.occur[o] != "" {
			return false
		}
		d.occur[o] = t.ID
	}
	d.seq++
	c := clone(t)
	c.Seq, c.RequestHash = d.seq, ""
	d.tasks[t.ID] = c
	return true
}

func (d *database) remove(id string) {
	t := d.tasks[id]
	if t == nil {
		return
	}
	if t.RecurringTaskID != "" {
		delete(d.occur, occurrenceOf(t))
	}
	delete(d.tasks, id)
	if t.Seq == d.seq { // the next one gets it again
		d.seq = 0
		for _, o := range d.tasks {
			d.seq = max(d.seq, o.Seq)
		}
	}
	delete(d.attempts, id)
	delete(d.outputs, id)
}

// claimKey takes an idempotency key; false where another request has it.
func (d *database) claimKey(tenant, k, hash, id string) bool {
	name := tenant + "/" + k
	old, ok := d.keys[name]
	if !ok {
		d.keys[name] = key{hash, id}
		return true
	}
	return old.hash == hash
}

func (d *database) insertTasks(f dts.Fence, tasks []*dts.Task) ([]dts.Created[*dts.Task], error) {
	hashes := map[string]string{}
	for _, t := range tasks {
		if t.IdempotencyKey == "" {
			continue
		}
		name := t.TenantID + "/" + t.IdempotencyKey
		hash, used := hashes[name] // of this batch
		if old, ok := d.keys[name]; ok {
			hash, used = old.hash, true
		}
		hashes[name] = t.RequestHash
		if used && hash != t.RequestHash {
			return nil, dts.Errorf(dts.ErrConflict, "the idempotency key was used before with another request: %w", errRefused)
		}
	}
	if !f.Alone { // all that the server believes to hold, not only what is needed
		if err := d.fenced(f, f.Terms.Held().List()...); err != nil {
			return nil, err
		}
	}
	for _, t := range tasks {
		if !f.Alone || !t.PickedAt.IsZero() {
			if err := d.fenced(f, t.Shard); err != nil {
				return nil, err
			}
		}
	}
	var gone error
	out := make([]dts.Created[*dts.Task], len(tasks))
	for i, t := range tasks {
		out[i].Item = t
		if t.IdempotencyKey == "" {
			d.insert(t)
			continue
		}
		d.claimKey(t.TenantID, t.IdempotencyKey, t.RequestHash, t.ID)
		owner := d.keys[t.TenantID+"/"+t.IdempotencyKey].id
		if owner == t.ID {
			d.insert(t)
			continue
		}
		first := d.tasks[owner]
		if first == nil {
			gone = dts.Errorf(dts.ErrConflict, "what the idempotency key made has been deleted since") // the others are inserted
			continue
		}
		out[i] = dts.Created[*dts.Task]{Item: clone(first), Existed: true}
	}
	if gone != nil {
		return nil, gone
	}
	return out, nil
}

func (d *database) task(tenant, id string) (*dts.Task, error) {
	t := d.tasks[id]
	if t == nil || t.TenantID != tenant {
		return nil, dts.Errorf(dts.ErrNotFound, "there is no task %s", id)
	}
	return clone(t), nil
}

func (d *database) list(f dts.TaskFilter) dts.Page[*dts.Task] {
	list := d.selectTasks(func(t *dts.Task) bool {
		return t.TenantID == f.TenantID && (len(f.IDs) == 0 || slices.Contains(f.IDs, t.ID)) &&
			(len(f.Statuses) == 0 || slices.Contains(f.Statuses, t.Status)) &&
			(f.Queue == "" || f.Queue == t.Queue) && (f.RecurringTaskID == "" || f.RecurringTaskID == t.RecurringTaskID)
	})
	slices.Reverse(list)
	return dts.Page[*dts.Task]{Items: list[:min(len(list), f.Limit)]}
}

func (d *database) loadDue(set dts.ShardSet, queues dts.QueueChoice, after dts.Mark, through time.Time, limit int) []dts.Entry {
	var list []dts.Entry
	for _, t := range d.tasks {
		if t.Status != dts.Pending || t.Unresolved > 0 || t.RunAt.After(through) || !set.Has(t.Shard) || !queues.Has(dts.QueueKey{TenantID: t.TenantID, Name: t.Queue}) {
			continue
		}
		e := t.Entry()
		if m := e.Mark(); e.Before(after) || m.RunAt.Equal(after.RunAt) && m.Rank == after.Rank && m.Seq == after.Seq {
			continue
		}
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b dts.Entry) int {
		if a.Before(b.Mark()) {
			return -1
		}
		return 1
	})
	return list[:min(len(list), limit)]
}

// write applies starts and ends of attempts. One that is stale, or sent a second time, changes nothing.
func (d *database) write(f dts.Fence, recs []*dts.Record) error {
	if err := d.lives(f); err != nil {
		return err
	}
	for _, r := range recs {
		if r.Shown {
			continue
		}
		if err := d.holds(f, r.Task.Shard, r.Term); err != nil {
			return err
		}
	}
	for _, r := range recs {
		t, a, n := d.tasks[r.Task.ID], &r.Attempt, r.After
		if t == nil {
			continue
		}
		waits := t.Status == dts.Pending && t.Attempts == a.Number-1
		runs := t.Status == dts.Running && t.Attempts == a.Number
		if n == nil {
			if waits || runs && t.Term == r.Term {
				t.Status, t.Attempts, t.Term, t.Node, t.PickedAt = dts.Running, a.Number, r.Term, a.Node, a.PickedAt
				if t.StartedAt = r.Task.StartedAt; t.StartedAt.IsZero() {
					t.StartedAt = a.StartedAt
				}
				t.LatenessUS, t.SLAMet = r.Task.LatenessUS, r.Task.SLAMet
				d.putAttempt(r)
			}
			continue
		}
		if r.Shown && !(runs && t.Node == a.Node && t.Term == r.Term) || !r.Shown && !waits {
			continue
		}
		t.Status, t.Attempts, t.Term, t.Node, t.PickedAt = n.Status, a.Number, 0, a.Node, a.PickedAt
		t.StartedAt, t.CompletedAt, t.RunAt, t.NextAttemptAt = n.StartedAt, n.CompletedAt, n.RunAt, n.NextAttemptAt
		t.LatenessUS, t.SLAMet, t.ResponseStatus, t.ExitCode, t.LastError = n.LatenessUS, n.SLAMet, n.ResponseStatus, n.ExitCode, n.LastError
		changed := d.putAttempt(r)
		if t.RecurringTaskID != "" && n.Status.Terminal() {
			if changed = changed && d.recurring[t.RecurringTaskID] != nil; changed {
				d.countEnd(t, n.Status, a.StartedAt)
			}
		}
		if changed && r.Output.Total > 0 {
			d.outputs[t.ID] = true
		}
		if changed && r.Shown && n.Status == dts.Pending && !f.Alone && d.holds(f, t.Shard, f.Term(t.Shard)) != nil {
			d.hand[t.ID] = t.Shard
		}
	}
	return nil
}

// putAttempt stores an attempt, or the end of one that is running. It reports whether it did.
func (d *database) putAttempt(r *dts.Record) bool {
	a := clone(&r.Attempt)
	a.Process = r.Process
	list := d.attempts[a.TaskID]
	for i, old := range list {
		if old.Number != a.Number {
			continue
		}
		if old.State != dts.AttemptRunning {
			return false
		}
		if a.Process == nil {
			a.Process = old.Process
		}
		if a.Node, a.PickedAt, a.LatenessUS = old.Node, old.PickedAt, old.LatenessUS; a.State == dts.AttemptRunning {
			a.StartedAt = old.StartedAt
		}
		list[i] = a
		return true
	}
	d.attempts[a.TaskID] = append(list, a)
	return true
}

// check says whether every task is still what the changes say.
func (d *database) check(changes []dts.Change) error {
	for i := range changes {
		o := changes[i].Old
		t := d.tasks[o.ID]
		if t == nil || t.TenantID != o.TenantID || t.Status != o.Status || t.Attempts != o.Attempts || t.PlanVersion != o.PlanVersion {
			return fmt.Errorf("%w: task %s has changed", errRefused, o.ID)
		}
	}
	return nil
}

func (d *database) change(f dts.Fence, changes []dts.Change, now time.Time) error {
	for i := range changes {
		if err := d.fenced(f, changes[i].Old.Shard); err != nil {
			return err
		}
	}
	if err := d.check(changes); err != nil {
		return err
	}
	d.applyChanges(changes, now)
	return nil
}

func (d *database) applyChanges(changes []dts.Change, now time.Time) {
	for i := range changes {
		c := &changes[i]
		if c.Skip != nil {
			d.skip(c.Skip, now)
		}
		if c.New == nil {
			d.remove(c.Old.ID)
			continue
		}
		t, n := d.tasks[c.Old.ID], c.New
		t.Status, t.Priority, t.Queue, t.Name, t.DueAt, t.RunAt, t.MissAt, t.ExpiresAt = n.Status, n.Priority, n.Queue, n.Name, n.DueAt, n.RunAt, n.MissAt, n.ExpiresAt
		t.CompletedAt, t.NextAttemptAt, t.MaxAttempts, t.LastError, t.SkipReason = n.CompletedAt, n.NextAttemptAt, n.MaxAttempts, n.LastError, n.SkipReason
		t.PlanVersion, t.Moved, t.Labels, t.TargetType, t.PickedAt, t.Node = n.PlanVersion, n.Moved, n.Labels, n.TargetType, n.PickedAt, n.Node
		t.Description, t.TargetConfig, t.Retry, t.Delivery = n.Description, n.TargetConfig, n.Retry, n.Delivery
		t.TimeoutSeconds, t.SLASeconds, t.Overlap = n.TimeoutSeconds, n.SLASeconds, n.Overlap
		if c.Old.Status == dts.Pending && c.Old.Attempts > 0 && n.Status.Terminal() { // it ends between two attempts
			d.countEnd(t, n.Status, n.StartedAt)
		}
	}
}

// countEnd counts the end of an occurrence.
func (d *database) countEnd(t *dts.Task, status dts.Status, started time.Time) {
	rec := d.recurring[t.RecurringTaskID]
	if rec == nil {
		return
	}
	rec.LastRunAt, rec.LastStatus = started, status
	if t.Origin == dts.OriginSchedule {
		rec.RunsCount++
		if status == dts.Success {
			rec.CompletedCount++
		}
	}
}

// skip records a range; one that begins where one was recorded replaces it if it is longer.
func (d *database) skip(k *dts.Skip, now time.Time) {
	of := d.skips[k.RecurringTaskID]
	if of == nil {
		of = map[int64]*dts.Skip{}
		d.skips[k.RecurringTaskID] = of
	}
	old := of[k.From.UnixMicro()]
	switch {
	case old == nil:
		old = clone(k)
		of[k.From.UnixMicro()] = old
	case k.To.After(old.To):
		old.To, old.Count = k.To, k.Count
	default:
		return
	}
	old.RecordedAt = dts.Micros(now)
}

func (d *database) load(ids []string) []*dts.Task {
	var list []*dts.Task
	for _, id := range ids {
		if t := d.tasks[id]; t != nil && t.Status == dts.Pending && t.Unresolved == 0 {
			list = append(list, clone(t))
		}
	}
	return list
}

// Recurring tasks.

func (d *database) insertRecurring(f dts.Fence, p dts.Plan) (dts.Created[*dts.RecurringTask], error) {
	r := p.New
	var fence error
	if !f.Alone {
		fence = d.fenced(f, r.Shard)
	}
	if r.IdempotencyKey != "" {
		if old, used := d.keys[r.TenantID+"/"+r.IdempotencyKey]; used && old.hash != r.RequestHash {
			return dts.Created[*dts.RecurringTask]{}, dts.Errorf(dts.ErrConflict, "the idempotency key was used before with another request: %w", errRefused)
		}
		if fence != nil {
			return dts.Created[*dts.RecurringTask]{}, fence
		}
		d.claimKey(r.TenantID, r.IdempotencyKey, r.RequestHash, r.ID)
		if owner := d.keys[r.TenantID+"/"+r.IdempotencyKey].id; owner != r.ID {
			first := d.recurring[owner]
			if first == nil {
				return dts.Created[*dts.RecurringTask]{}, dts.Errorf(dts.ErrConflict, "what the idempotency key made has been deleted since")
			}
			return dts.Created[*dts.RecurringTask]{Item: d.seen(first), Existed: true}, nil
		}
	}
	if fence != nil {
		return dts.Created[*dts.RecurringTask]{}, fence
	}
	if d.recurring[r.ID] == nil {
		d.onPlan(&p)
		c := clone(r)
		c.RequestHash = ""
		d.recurring[r.ID], d.order[r.ID] = c, int64(len(d.order))
		for _, t := range p.Insert {
			d.insert(t)
		}
	}
	return dts.Created[*dts.RecurringTask]{Item: r}, nil
}

// seen is a recurring task as a reader sees it.
func (d *database) seen(r *dts.RecurringTask) *dts.RecurringTask {
	c := clone(r)
	c.NextRunAt = time.Time{}
	for _, t := range d.tasks {
		if upcoming(t, r.ID) && (c.NextRunAt.IsZero() || t.ScheduledAt.Before(c.NextRunAt)) {
			c.NextRunAt = t.ScheduledAt
		}
	}
	return c
}

func upcoming(t *dts.Task, recurring string) bool {
	return t.RecurringTaskID == recurring && t.Status == dts.Pending && t.Origin == dts.OriginSchedule && t.Attempts == 0
}

func (d *database) selectRecurring(fits func(r *dts.RecurringTask) bool) []*dts.RecurringTask {
	var list []*dts.RecurringTask
	for _, r := range d.recurring {
		if fits(r) {
			list = append(list, d.seen(r))
		}
	}
	slices.SortFunc(list, func(a, b *dts.RecurringTask) int { return cmp.Compare(d.order[a.ID], d.order[b.ID]) })
	return list
}

func (d *database) planDue(set dts.ShardSet, now time.Time, limit int) (due []*dts.RecurringTask, next time.Time) {
	due = d.selectRecurring(func(r *dts.RecurringTask) bool {
		return set.Has(r.Shard) && !r.PlanAt.IsZero() && !r.PlanAt.After(now)
	})
	slices.SortStableFunc(due, func(a, b *dts.RecurringTask) int { return a.PlanAt.Compare(b.PlanAt) })
	if len(due) >= limit {
		return due[:limit], now
	}
	for _, r := range d.recurring {
		if set.Has(r.Shard) && r.PlanAt.After(now) && (next.IsZero() || r.PlanAt.Before(next)) {
			next = r.PlanAt
		}
	}
	return due, next
}

func (d *database) savePlan(f dts.Fence, p *dts.Plan, now time.Time) error {
	if err := d.fenced(f, p.Old.Shard); err != nil {
		return err
	}
	o, n := p.Old, p.New
	r := d.recurring[o.ID]
	if r == nil || r.TenantID != o.TenantID || r.Status != o.Status || r.PlanVersion != o.PlanVersion || !r.PlannedThrough.Equal(o.PlannedThrough) {
		return fmt.Errorf("%w: recurring task %s has changed", errRefused, o.ID)
	}
	if err := d.check(p.Changes); err != nil {
		return err
	}
	d.onPlan(p)
	d.applyChanges(p.Changes, now)
	for _, t := range p.Insert {
		if !d.insert(t) {
			d.twice(t)
		}
	}
	for i := range p.Skips {
		d.skip(&p.Skips[i], now)
	}
	r.Status, r.Name, r.PlanVersion, r.PlannedThrough, r.PlanAt = n.Status, n.Name, n.PlanVersion, n.PlannedThrough, n.PlanAt
	r.PausedAt, r.PausedUntil, r.PausedBy, r.PauseNote, r.UpdatedAt = n.PausedAt, n.PausedUntil, n.PausedBy, n.PauseNote, n.UpdatedAt
	r.Spec, r.Schedule, r.CatchUpMode, r.MisfireAfterSeconds, r.OverlapPolicy = n.Spec, n.Schedule, n.CatchUpMode, n.MisfireAfterSeconds, n.OverlapPolicy
	return nil
}

func (d *database) planned(id string) []*dts.Task {
	list := d.selectTasks(func(t *dts.Task) bool { return upcoming(t, id) })
	slices.SortStableFunc(list, func(a, b *dts.Task) int { return a.ScheduledAt.Compare(b.ScheduledAt) })
	return list
}

func (d *database) activeRuns(id, except string) (n int) {
	for _, t := range d.tasks {
		if t.RecurringTaskID == id && t.ID != except && (t.Status == dts.Running || t.Status == dts.Pending && t.Attempts > 0) {
			n++
		}
	}
	return n
}

func (d *database) lastSkip(id string) (last *dts.Skip) {
	for _, k := range d.skips[id] {
		if last == nil || k.From.After(last.From) {
			last = k
		}
	}
	if last != nil {
		last = clone(last)
	}
	return last
}

func (d *database) skipsAfter(id string, at time.Time) (list []*dts.Skip) {
	for _, k := range d.skips[id] {
		if k.To.After(at) {
			list = append(list, clone(k))
		}
	}
	slices.SortFunc(list, func(a, b *dts.Skip) int { return a.From.Compare(b.From) })
	return list
}
