package ui

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"dts"
	"dts/web/auth"
)

const (
	goodToken = "good-token"
	goodLink  = "good-link"
	session   = "session-1"
)

var admin = auth.Principal{TenantID: dts.DefaultTenant, Name: "admin", Admin: true}

// fake keeps tasks in memory and plays the store, the scheduler, the outputs and the tokens.
type fake struct {
	mu        sync.Mutex
	now       func() time.Time
	tasks     []*dts.Task // in the order of creation
	recurring []*dts.RecurringTask
	attempts  map[string][]*dts.Attempt
	graphs    map[string]*dts.Graph  // by task id
	outputs   map[string]*dts.Output // by task id, of its last attempt
	tails     map[string]dts.Tail
	skips     map[string][]dts.Occurrence
	pings     map[string][]*dts.PingRecord // by recurring task id, newest first
	status    dts.SchedulerStatus
	fail      error // what every change answers, if not nil
	storeErr  error // what every read answers, if not nil
	sessions  map[string]bool
	linkSpent bool
	stale     bool // counts are old
	paused    []pauseCall
	resumed   []bool // whether each resume asked to make up for what was missed
	queueList []*dts.Queue
	calendars []*dts.Calendar
	blackouts []*dts.Blackout
	backfills []dts.BackfillRequest
	answer    *dts.BackfillAnswer
	previews  []dts.PreviewRequest
	effects   func(*dts.Preview) // changes what a preview says
	why       map[string]string  // by id
	done      []string           // verbs applied
	bulks     []dts.BulkChange
}

type pauseCall struct {
	until time.Time
	note  string
}

func newFake(now func() time.Time) *fake {
	return &fake{now: now, attempts: map[string][]*dts.Attempt{}, outputs: map[string]*dts.Output{}, tails: map[string]dts.Tail{},
		skips: map[string][]dts.Occurrence{}, sessions: map[string]bool{}, status: dts.SchedulerStatus{Node: "n1", Ready: true, Timer: "timerfd"}}
}

// change runs f while nobody else looks.
func (f *fake) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

func command(argv ...string) dts.Spec {
	c, _ := json.Marshal(dts.CommandTarget{Argv: argv})
	return dts.Spec{TargetType: dts.Command, TargetConfig: c}
}

func callback(t dts.HTTPTarget) dts.Spec {
	c, _ := json.Marshal(t)
	return dts.Spec{TargetType: dts.HTTPCallback, TargetConfig: c}
}

// add puts a task into the store. change sets what Normalize does not.
func (f *fake) add(spec dts.Spec, change func(*dts.Task)) *dts.Task {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := &dts.Task{Spec: spec}
	if err := t.Normalize(f.now()); err != nil {
		panic(err)
	}
	if change != nil {
		change(t)
	}
	f.tasks = append(f.tasks, t)
	return t
}

func (f *fake) addRecurring(spec dts.Spec, s dts.Schedule, change func(*dts.RecurringTask)) *dts.RecurringTask {
	r := &dts.RecurringTask{Spec: spec, Schedule: s}
	if err := r.Normalize(); err != nil {
		panic(err)
	}
	c, err := f.CreateRecurring(context.Background(), r)
	if err != nil {
		panic(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if change != nil {
		change(c.Item)
	}
	return c.Item
}

func (f *fake) Task(_ context.Context, tenant, id string) (*dts.Task, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.storeErr != nil {
		return nil, f.storeErr
	}
	for _, t := range f.tasks {
		if t.ID == id && t.TenantID == tenant {
			c := *t
			return &c, nil
		}
	}
	return nil, dts.Errorf(dts.ErrNotFound, "there is no task %s", id)
}

func (f *fake) Tasks(_ context.Context, q dts.TaskFilter) (dts.Page[*dts.Task], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var p dts.Page[*dts.Task]
	if f.storeErr != nil {
		return p, f.storeErr
	}
	skip := q.Cursor != ""
	for _, t := range slices.Backward(f.tasks) {
		switch {
		case skip:
			skip = t.ID != q.Cursor
		case t.TenantID != q.TenantID || !slices.Contains(q.Statuses, t.Status) || !selects(q, t):
		case len(p.Items) == q.Limit:
			p.Next = p.Items[q.Limit-1].ID
			return p, nil
		default:
			c := *t
			p.Items = append(p.Items, &c)
		}
	}
	return p, nil
}

// selects reports whether a filter has nothing against a task, besides its tenant and its state.
func selects(q dts.TaskFilter, t *dts.Task) bool {
	return (len(q.IDs) == 0 || slices.Contains(q.IDs, t.ID)) && (q.Queue == "" || t.Queue == q.Queue) && (q.Name == "" || t.Name == q.Name) && (q.BatchID == "" || t.BatchID == q.BatchID) &&
		strings.Contains(t.LastError, q.Error)
}

func (f *fake) Batch(_ context.Context, tenant, id string) (*dts.Batch, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := &dts.Batch{ID: id, CreatedAt: f.now()}
	counts := map[dts.Status]*int{dts.Pending: &b.Pending, dts.Running: &b.Running, dts.Success: &b.Success, dts.Failed: &b.Failed,
		dts.Cancelled: &b.Cancelled, dts.Skipped: &b.Skipped}
	for _, t := range f.tasks {
		if t.BatchID == id && t.TenantID == tenant {
			b.Total++
			*counts[t.Status]++
		}
	}
	if b.Total == 0 {
		return nil, dts.Errorf(dts.ErrNotFound, "there is no batch %s", id)
	}
	b.Done = b.Pending+b.Running == 0
	return b, nil
}

func (f *fake) Bulk(_ context.Context, c dts.BulkChange) (r dts.BulkResult, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return r, f.fail
	}
	f.bulks = append(f.bulks, c)
	f.tasks = slices.DeleteFunc(f.tasks, func(t *dts.Task) bool {
		if t.TenantID != c.Filter.TenantID || !slices.Contains(c.Filter.Statuses, t.Status) || !selects(c.Filter, t) {
			return false
		}
		if r.Matched++; c.DryRun {
			return false
		}
		r.Done++
		switch c.Verb {
		case dts.BulkCancel:
			t.Status = dts.Cancelled
		case dts.BulkRetry:
			t.Status = dts.Pending
		}
		return c.Verb == dts.BulkDelete
	})
	return r, nil
}

func (f *fake) Steps(_ context.Context, tenant, run string) (list []*dts.Task, err error) {
	for _, t := range f.tasks {
		if t.WorkflowID == run && t.TenantID == tenant {
			list = append(list, t)
		}
	}
	return list, nil
}

func (f *fake) RunsUnderWay(_ context.Context, tenant string, _ int) (list []*dts.Task, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.tasks {
		if t.TenantID == tenant && t.RunStarted() && t.Status == dts.Pending {
			c := *t
			list = append(list, &c)
		}
	}
	return list, f.storeErr
}

func (f *fake) RunProgress(_ context.Context, tenant string, runs []string) (map[string]dts.RunProgress, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string]dts.RunProgress{}
	for _, t := range f.tasks {
		if t.TenantID != tenant || !slices.Contains(runs, t.WorkflowID) {
			continue
		}
		p := all[t.WorkflowID]
		p.Steps++
		if t.Status.Terminal() {
			p.Ended++
		}
		if t.Status == dts.Failed {
			p.Failed++
			p.FailedStep = t.Step
		}
		all[t.WorkflowID] = p
	}
	return all, nil
}

func (f *fake) Attempts(_ context.Context, _, id string) ([]*dts.Attempt, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []*dts.Attempt
	for _, a := range f.attempts[id] {
		c := *a
		list = append(list, &c)
	}
	return list, nil
}

func (f *fake) Graph(_ context.Context, _, id string, _ int) (*dts.Graph, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if g := f.graphs[id]; g != nil {
		return g, nil
	}
	return &dts.Graph{Tasks: []dts.GraphTask{{ID: id}}}, nil
}

func (f *fake) Output(_ context.Context, _, id string, _ int) (*dts.Output, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if o := f.outputs[id]; o != nil {
		return o, nil
	}
	return nil, dts.Errorf(dts.ErrNotFound, "nothing is kept")
}

func (f *fake) RecurringTask(_ context.Context, tenant, id string) (*dts.RecurringTask, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.findRecurring(tenant, id); r != nil {
		c := *r
		return &c, nil
	}
	return nil, dts.Errorf(dts.ErrNotFound, "there is no recurring task %s", id)
}

func (f *fake) findRecurring(tenant, id string) *dts.RecurringTask {
	for _, r := range f.recurring {
		if r.ID == id && r.TenantID == tenant {
			return r
		}
	}
	return nil
}

func (f *fake) RecurringTasks(_ context.Context, q dts.RecurringFilter) (dts.Page[*dts.RecurringTask], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var p dts.Page[*dts.RecurringTask]
	for _, r := range slices.Backward(f.recurring) {
		if r.TenantID == q.TenantID && (q.Statuses == nil || slices.Contains(q.Statuses, r.Status)) {
			c := *r
			p.Items = append(p.Items, &c)
		}
	}
	return p, nil
}

func (f *fake) Upcoming(_ context.Context, _, id string, limit int) ([]*dts.Task, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []*dts.Task
	for _, t := range f.tasks {
		if t.RecurringTaskID == id && t.Status == dts.Pending && len(list) < limit {
			c := *t
			list = append(list, &c)
		}
	}
	return list, nil
}

func (f *fake) Pings(_ context.Context, _, id string, limit int) ([]*dts.PingRecord, error) {
	return f.pings[id][:min(limit, len(f.pings[id]))], nil
}

func (f *fake) Occurrences(_ context.Context, _, id, _ string, _ int) (dts.Page[dts.Occurrence], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var p dts.Page[dts.Occurrence]
	for _, t := range f.tasks {
		if t.RecurringTaskID == id {
			c := *t
			p.Items = append(p.Items, dts.Occurrence{ScheduledAt: t.ScheduledAt, Task: &c})
		}
	}
	p.Items = append(p.Items, f.skips[id]...)
	slices.SortStableFunc(p.Items, func(a, b dts.Occurrence) int { return b.ScheduledAt.Compare(a.ScheduledAt) })
	return p, nil
}

func (f *fake) Counts(ctx context.Context, _ string) (dts.Counts, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stale {
		dts.StalenessOf(ctx).Set()
	}
	var c dts.Counts
	for _, t := range f.tasks {
		switch t.Status {
		case dts.Pending:
			c.Pending++
		case dts.Running:
			c.Running++
		case dts.Failed:
			c.Failed++
		}
	}
	return c, f.storeErr
}

func (f *fake) CreateTasks(_ context.Context, tasks []*dts.Task) ([]dts.Created[*dts.Task], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return nil, f.fail
	}
	var list []dts.Created[*dts.Task]
	for _, t := range tasks {
		i := slices.IndexFunc(f.tasks, func(o *dts.Task) bool { return o.IdempotencyKey != "" && o.IdempotencyKey == t.IdempotencyKey })
		switch {
		case i < 0:
			f.tasks = append(f.tasks, t)
			list = append(list, dts.Created[*dts.Task]{Item: t})
		case f.tasks[i].RequestHash != t.RequestHash:
			return nil, dts.Errorf(dts.ErrConflict, "the idempotency key was used with another task")
		default:
			list = append(list, dts.Created[*dts.Task]{Item: f.tasks[i], Existed: true})
		}
	}
	return list, nil
}

func (f *fake) DoTask(ctx context.Context, tenant, id string, v dts.Verb, _ string) (*dts.Task, error) {
	if f.fail != nil {
		return nil, f.fail
	}
	if _, err := f.Task(ctx, tenant, id); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.tasks, func(t *dts.Task) bool { return t.ID == id })
	t := f.tasks[i]
	effect, err := v.Do(t.Status)
	if err != nil {
		return nil, err
	}
	f.done = append(f.done, string(v))
	switch effect {
	case dts.SetCancel, dts.Kill:
		t.Status = dts.Cancelled
	case dts.SetSuccess:
		t.Status = dts.Success
	case dts.Requeue:
		t.Status = dts.Pending
	case dts.Suspend:
		t.WaitsFor = dts.ReasonPaused
	case dts.Unsuspend:
		t.WaitsFor = ""
	case dts.Remove:
		f.tasks = slices.Delete(f.tasks, i, i+1)
	}
	return t, nil
}

func (f *fake) CreateRecurring(_ context.Context, r *dts.RecurringTask) (dts.Created[*dts.RecurringTask], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return dts.Created[*dts.RecurringTask]{}, f.fail
	}
	now := f.now()
	r.ID, r.Status, r.CreatedAt = dts.NewID(now), dts.Active, dts.Micros(now)
	list, err := instants(r.Schedule, r.Name, now, ahead)
	if err != nil {
		return dts.Created[*dts.RecurringTask]{}, err
	}
	for _, at := range list {
		f.tasks = append(f.tasks, r.Occurrence(at.UTC(), dts.OriginSchedule, now))
	}
	if len(list) > 0 {
		r.NextRunAt = list[0].UTC()
	}
	f.recurring = append(f.recurring, r)
	return dts.Created[*dts.RecurringTask]{Item: r}, nil
}

func (f *fake) changeRecurring(tenant, id string, change func(*dts.RecurringTask)) (*dts.RecurringTask, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.findRecurring(tenant, id)
	switch {
	case f.fail != nil:
		return nil, f.fail
	case r == nil:
		return nil, dts.Errorf(dts.ErrNotFound, "there is no recurring task %s", id)
	}
	change(r)
	return r, nil
}

func (f *fake) PauseRecurring(_ context.Context, tenant, id string, until time.Time, note, _ string) (*dts.RecurringTask, error) {
	return f.changeRecurring(tenant, id, func(r *dts.RecurringTask) {
		f.paused = append(f.paused, pauseCall{until, note})
		r.Status, r.PausedAt, r.PausedUntil, r.PauseNote = dts.Paused, f.now(), until, note
	})
}

func (f *fake) ResumeRecurring(_ context.Context, tenant, id string, catchUp bool, _ string) (*dts.RecurringTask, error) {
	return f.changeRecurring(tenant, id, func(r *dts.RecurringTask) {
		f.resumed = append(f.resumed, catchUp)
		r.Status = dts.Active
	})
}

func (f *fake) CancelRecurring(_ context.Context, tenant, id, _ string) (*dts.RecurringTask, error) {
	return f.changeRecurring(tenant, id, func(r *dts.RecurringTask) { r.Status = dts.Ended })
}

func (f *fake) TriggerRecurring(_ context.Context, tenant, id, _ string) (*dts.Task, error) {
	var t *dts.Task
	_, err := f.changeRecurring(tenant, id, func(r *dts.RecurringTask) {
		t = r.Occurrence(dts.Micros(f.now()), dts.OriginTrigger, f.now())
		f.tasks = append(f.tasks, t)
	})
	return t, err
}

func (f *fake) Status() dts.SchedulerStatus { return f.status }
func (f *fake) Ready() error                { return nil }

func (f *fake) Subscribe(string) (<-chan dts.Event, func()) {
	return make(chan dts.Event), func() {}
}

func (f *fake) ModifyTask(ctx context.Context, tenant, id string, _ dts.TaskPatch) (*dts.Task, error) {
	return f.Task(ctx, tenant, id)
}

func (f *fake) ModifyRecurring(ctx context.Context, tenant, id string, _ dts.RecurringPatch) (*dts.RecurringTask, error) {
	return f.RecurringTask(ctx, tenant, id)
}

func (f *fake) Tail(id string, _ int) (dts.Tail, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, ok := f.tails[id]
	return t, ok
}

func (f *fake) Authenticate(_ context.Context, token string) (auth.Principal, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if token == goodToken || f.sessions[token] {
		return admin, nil
	}
	return auth.Principal{}, dts.Errorf(dts.ErrUnauthorized, "the token is not known")
}

func (f *fake) NewSession(context.Context, auth.Principal, time.Duration) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sessions[session] = true
	return session, nil
}

func (f *fake) EndSession(_ context.Context, token string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.sessions, token)
	return nil
}

func (f *fake) NewLoginLink(context.Context, auth.Principal, time.Duration) (string, error) {
	return goodLink, nil
}

func (f *fake) RedeemLoginLink(_ context.Context, code string) (auth.Principal, error) {
	if code != goodLink || f.linkSpent {
		return auth.Principal{}, dts.Errorf(dts.ErrUnauthorized, "the link is not known")
	}
	f.linkSpent = true
	return admin, nil
}

// liveOutput is a tail that grows when a test writes to it.
type liveOutput struct {
	mu   sync.Mutex
	data []byte
	done bool
	more chan struct{} // closed and replaced when something changes
}

func newLiveOutput() *liveOutput { return &liveOutput{more: make(chan struct{})} }

func (l *liveOutput) write(s string, done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.data = append(l.data, s...)
	l.done = done
	close(l.more)
	l.more = make(chan struct{})
}

func (l *liveOutput) Read(ctx context.Context, offset int64) ([]byte, int64, bool, error) {
	for {
		l.mu.Lock()
		chunk, done, more := l.data[min(int(offset), len(l.data)):], l.done, l.more
		l.mu.Unlock()
		if len(chunk) > 0 || done {
			return chunk, offset + int64(len(chunk)), done, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, offset, false, ctx.Err()
		}
	}
}
