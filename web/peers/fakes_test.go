package peers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dts"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

var now = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

const secret = "the secret of the cluster"

// world is the database that all servers share, and who is responsible in truth.
type world struct {
	t         testing.TB
	mu        sync.Mutex
	tasks     map[string]*dts.Task
	recurring map[string]*dts.RecurringTask
	nodes     map[string]*node
	live      []dts.Node
	holders   [dts.Shards]string
}

// node is a server: a scheduler that does what it is responsible for and keeps a list of it, its handler, and its
// router.
type node struct {
	w       *world
	id      string
	server  *httptest.Server
	handler http.Handler
	client  *Client
	router  *Router

	mu       sync.Mutex
	did      []string                                             // what it was asked for, refused or not
	believes *dts.Placement                                       // instead of the truth, until it is poked
	err      error                                                // of each verb
	before   func(http.ResponseWriter, *http.Request) (goOn bool) // of each request
	during   func(ctx context.Context, what string)               // of each verb
	subs     map[chan dts.Event]string
	streams  int // subscriptions that were ever made
	tails    map[tailKey]dts.Tail
	pokes    int
	woken    []string
	draining bool
	onWake   func()
}

var errElsewhere = dts.Errorf(dts.ErrElsewhere, "not here")

// servers starts servers that share the shards in turn: n1 holds 0, 3, 6, …
func servers(t testing.TB, ids ...string) (*world, []*node) {
	t.Helper()
	w := &world{t: t, tasks: map[string]*dts.Task{}, recurring: map[string]*dts.RecurringTask{}, nodes: map[string]*node{}}
	for _, id := range ids {
		w.add(id)
	}
	for i := range w.holders {
		w.holders[i] = ids[i%len(ids)]
	}
	list := make([]*node, len(ids))
	for i, id := range ids {
		list[i] = w.nodes[id]
	}
	return w, list
}

// add starts one more server, which holds nothing.
func (w *world) add(id string) *node {
	w.t.Helper()
	n := &node{w: w, id: id, subs: map[chan dts.Event]string{}, tails: map[tailKey]dts.Tail{}}
	h, err := NewHandler(HandlerOptions{Local: n, Outputs: outputs{n}, Secret: secret})
	if err != nil {
		w.t.Fatal(err)
	}
	n.handler = h
	n.server = httptest.NewServer(http.HandlerFunc(n.serve))
	n.client = NewClient(ClientOptions{Secret: secret})
	if n.router, err = NewRouter(RouterOptions{Local: n, Outputs: outputs{n}, Store: w, Client: n.client}); err != nil {
		w.t.Fatal(err)
	}
	n.router.retry = 400 * time.Millisecond
	w.t.Cleanup(func() {
		n.router.Close()
		n.client.Close()
		n.server.CloseClientConnections()
		n.server.Close()
		for _, k := range h.tails.held {
			k.forget.Stop()
		}
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes[id] = n
	w.live = append(w.live, dts.Node{ID: id, Incarnation: "1", Address: n.server.URL})
	return n
}

func (n *node) serve(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	before := n.before
	n.mu.Unlock()
	if before == nil || before(w, r) {
		n.handler.ServeHTTP(w, r)
	}
}

// set changes something of a server while it serves.
func (n *node) set(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

// dies takes a server out of the cluster and gives its shards to another one.
func (w *world) dies(id, heir string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live = slices.DeleteFunc(slices.Clone(w.live), func(n dts.Node) bool { return n.ID == id })
	for i, h := range w.holders {
		if h == id {
			w.holders[i] = heir
		}
	}
}

// task puts a task into the database, in a shard that the server holds.
func (w *world) task(holder string, status dts.Status, runner string) *dts.Task {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := &dts.Task{ID: dts.NewID(time.Now()), TenantID: dts.DefaultTenant, Status: status, Node: runner, Shard: slices.Index(w.holders[:], holder)}
	if status == dts.Running {
		t.Attempts = 1
	}
	w.tasks[t.ID] = t
	return t
}

func (w *world) everyHour(holder string) *dts.RecurringTask {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := &dts.RecurringTask{ID: dts.NewID(time.Now()), TenantID: dts.DefaultTenant, Status: dts.Active, Shard: slices.Index(w.holders[:], holder)}
	w.recurring[r.ID] = r
	return r
}

func (w *world) placement(self string) dts.Placement {
	w.mu.Lock()
	defer w.mu.Unlock()
	return dts.Placement{Self: self, Nodes: slices.Clone(w.live), Holders: w.holders}
}

// The store.

func (w *world) Unfinished(_ context.Context, tenant, key string) (*dts.Task, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.tasks {
		if t.TenantID == tenant && t.DedupeKey == key && !t.Status.Terminal() {
			c := *t
			return &c, nil
		}
	}
	return nil, nil
}

func (w *world) Task(_ context.Context, tenant, id string) (*dts.Task, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.tasks[id]; t != nil && t.TenantID == tenant {
		c := *t
		return &c, nil
	}
	return nil, dts.Errorf(dts.ErrNotFound, "there is no such task")
}

func (w *world) TasksByID(_ context.Context, ids []string) (list []*dts.Task, err error) {
	for _, id := range ids {
		if t, err := w.Task(ctx, dts.DefaultTenant, id); err == nil {
			list = append(list, t)
		}
	}
	return list, nil
}

func (w *world) Tasks(_ context.Context, f dts.TaskFilter) (page dts.Page[*dts.Task], err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.tasks {
		if slices.Contains(f.Statuses, t.Status) && (f.WorkflowID == "" || f.WorkflowID == t.WorkflowID) {
			c := *t
			page.Items = append(page.Items, &c)
		}
	}
	return page, nil
}

func (w *world) RecurringTask(_ context.Context, tenant, id string) (*dts.RecurringTask, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.recurring[id]; r != nil && r.TenantID == tenant {
		c := *r
		return &c, nil
	}
	return nil, dts.Errorf(dts.ErrNotFound, "there is no such recurring task")
}

// The scheduler.

// begin notes what the server was asked for.
func (n *node) begin(ctx context.Context, what string) error {
	n.mu.Lock()
	n.did = append(n.did, what)
	err, during := n.err, n.during
	n.mu.Unlock()
	if during != nil {
		during(ctx, what)
	}
	return err
}

// asked returns what the server was asked for since the last look.
func (n *node) asked() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	did := n.did
	n.did = nil
	return did
}

// responsible is who may change a task, in truth.
func (w *world) responsible(t *dts.Task) string {
	lives := slices.ContainsFunc(w.live, func(n dts.Node) bool { return n.ID == t.Node })
	if t.Status == dts.Running && lives {
		return t.Node
	}
	return w.holders[t.Shard]
}

// change does something to a task, if this server is responsible for it.
func (n *node) change(ctx context.Context, what, tenant, id string, f func(t *dts.Task)) (*dts.Task, error) {
	if err := n.begin(ctx, what); err != nil {
		return nil, err
	}
	if _, err := n.w.Task(ctx, tenant, id); err != nil {
		return nil, err
	}
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	t := n.w.tasks[id]
	if n.w.responsible(t) != n.id {
		return nil, errElsewhere
	}
	f(t)
	c := *t
	return &c, nil
}

func (n *node) ModifyTask(ctx context.Context, tenant, id string, p dts.TaskPatch) (*dts.Task, error) {
	return n.change(ctx, "modify", tenant, id, func(t *dts.Task) {
		if p.Name != nil {
			t.Name = *p.Name
		}
		if p.Labels != nil {
			t.Labels = p.Labels
		}
	})
}

func (n *node) DoTask(ctx context.Context, tenant, id string, v dts.Verb, actor string) (*dts.Task, error) {
	return n.change(ctx, string(v), tenant, id, func(t *dts.Task) {
		t.LastError = string(v) + " by " + actor
		switch v {
		case dts.Cancel:
			t.Status = dts.Cancelled
		case dts.Delete:
			delete(n.w.tasks, id)
		}
	})
}

func (n *node) Bulk(ctx context.Context, c dts.BulkChange) (r dts.BulkResult, err error) {
	if err := n.begin(ctx, "bulk-"+string(c.Verb)); err != nil {
		return r, err
	}
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	for _, t := range n.w.tasks {
		if !slices.Contains(c.Filter.Statuses, t.Status) {
			continue
		}
		switch {
		case c.DryRun:
			r.Matched++
		case n.w.responsible(t) == n.id:
			r.Matched++
			if c.Filter.BatchID == "stubborn" {
				continue
			}
			r.Done++
			switch c.Verb {
			case dts.BulkCancel:
				t.Status = dts.Cancelled
			case dts.BulkRetry:
				t.Status = dts.Pending
			}
		}
	}
	r.DryRun = c.DryRun
	return r, nil
}

func (n *node) mine() int { return slices.Index(n.w.holders[:], n.id) }

func (n *node) CreateTasks(ctx context.Context, tasks []*dts.Task) ([]dts.Created[*dts.Task], error) {
	if err := n.begin(ctx, fmt.Sprintf("create %d", len(tasks))); err != nil {
		return nil, err
	}
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	if n.mine() < 0 {
		return nil, errElsewhere
	}
	list := make([]dts.Created[*dts.Task], len(tasks))
	for i, t := range tasks {
		for _, old := range n.w.tasks {
			if t.IdempotencyKey != "" && t.IdempotencyKey == old.IdempotencyKey {
				list[i] = dts.Created[*dts.Task]{Item: old, Existed: true}
			}
		}
		if list[i].Item == nil {
			t.Shard = n.mine()
			n.w.tasks[t.ID] = t
			list[i].Item = t
		}
	}
	return list, nil
}

func (n *node) CreateRecurring(ctx context.Context, r *dts.RecurringTask) (dts.Created[*dts.RecurringTask], error) {
	if err := n.begin(ctx, "create recurring"); err != nil {
		return dts.Created[*dts.RecurringTask]{}, err
	}
	if r.ID == "" {
		r.ID = dts.NewID(now)
	}
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	if n.mine() < 0 {
		return dts.Created[*dts.RecurringTask]{}, errElsewhere
	}
	r.Shard = n.mine()
	n.w.recurring[r.ID] = r
	return dts.Created[*dts.RecurringTask]{Item: r}, nil
}

func (n *node) changeRecurring(ctx context.Context, what, tenant, id string, f func(r *dts.RecurringTask)) (*dts.RecurringTask, error) {
	if err := n.begin(ctx, what); err != nil {
		return nil, err
	}
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	r := n.w.recurring[id]
	if r == nil || n.w.holders[r.Shard] != n.id {
		return nil, errElsewhere
	}
	f(r)
	c := *r
	return &c, nil
}

func (n *node) ModifyRecurring(ctx context.Context, tenant, id string, p dts.RecurringPatch) (*dts.RecurringTask, error) {
	return n.changeRecurring(ctx, "modify", tenant, id, func(r *dts.RecurringTask) {
		if p.MaxRuns != nil {
			r.MaxRuns = *p.MaxRuns
		}
	})
}

func (n *node) PauseRecurring(ctx context.Context, tenant, id string, until time.Time, note, actor string) (*dts.RecurringTask, error) {
	return n.changeRecurring(ctx, "pause", tenant, id, func(r *dts.RecurringTask) {
		r.Status, r.PausedUntil, r.PauseNote = dts.Paused, until, note+" by "+actor
	})
}

func (n *node) ResumeRecurring(ctx context.Context, tenant, id string, catchUp bool, actor string) (*dts.RecurringTask, error) {
	return n.changeRecurring(ctx, "resume", tenant, id, func(r *dts.RecurringTask) {
		r.Status = dts.Active
		if catchUp {
			r.PauseNote = "caught up by " + actor
		}
	})
}

func (n *node) BackfillRecurring(ctx context.Context, tenant, id string, q dts.BackfillRequest, actor string) (*dts.BackfillAnswer, error) {
	a := &dts.BackfillAnswer{Count: 3, First: q.From, Last: q.To}
	_, err := n.changeRecurring(ctx, "backfill", tenant, id, func(r *dts.RecurringTask) {
		if !q.DryRun {
			a.Created, r.RunsCount = 3, r.RunsCount+3
		}
	})
	return a, err
}

func (n *node) CancelRecurring(ctx context.Context, tenant, id, actor string) (*dts.RecurringTask, error) {
	return n.changeRecurring(ctx, "cancel", tenant, id, func(r *dts.RecurringTask) { r.Status = dts.Ended })
}

func (n *node) TriggerRecurring(ctx context.Context, tenant, id, actor string) (*dts.Task, error) {
	t := &dts.Task{ID: dts.NewID(time.Now()), TenantID: tenant, RecurringTaskID: id, CreatedBy: actor}
	_, err := n.changeRecurring(ctx, "trigger", tenant, id, func(r *dts.RecurringTask) { n.w.tasks[t.ID] = t })
	return t, err
}

// What any server does by itself.

func (n *node) CreateCalendar(ctx context.Context, c *dts.Calendar) (*dts.Calendar, error) {
	return c, n.begin(ctx, "create calendar")
}

func (n *node) ReplaceCalendar(ctx context.Context, c *dts.Calendar) (*dts.Calendar, error) {
	return c, n.begin(ctx, "replace calendar")
}

func (n *node) DeleteCalendar(ctx context.Context, tenant, name string) error {
	return n.begin(ctx, "delete calendar "+name)
}

func (n *node) CreateBlackout(ctx context.Context, b *dts.Blackout) (*dts.Blackout, error) {
	return b, n.begin(ctx, "create blackout")
}

func (n *node) ReplaceBlackout(ctx context.Context, b *dts.Blackout) (*dts.Blackout, error) {
	return b, n.begin(ctx, "replace blackout")
}

func (n *node) DeleteBlackout(ctx context.Context, tenant, id string) error {
	return n.begin(ctx, "delete blackout "+id)
}

func (n *node) PutQueue(ctx context.Context, q *dts.Queue) (*dts.Queue, error) {
	return q, n.begin(ctx, "put queue")
}

func (n *node) PauseQueue(ctx context.Context, tenant, name, note string) (*dts.Queue, error) {
	return &dts.Queue{TenantID: tenant, Name: name, PauseNote: note}, n.begin(ctx, "pause queue "+name)
}

func (n *node) ResumeQueue(ctx context.Context, tenant, name string) (*dts.Queue, error) {
	return &dts.Queue{TenantID: tenant, Name: name}, n.begin(ctx, "resume queue "+name)
}

func (n *node) Queue(ctx context.Context, tenant, name string) (*dts.Queue, error) {
	return &dts.Queue{TenantID: tenant, Name: name}, n.begin(ctx, "queue "+name)
}

func (n *node) Queues(ctx context.Context, tenant string) ([]*dts.Queue, error) {
	return []*dts.Queue{{TenantID: tenant, Name: "busy"}, {TenantID: tenant, Name: "idle"}}, n.begin(ctx, "queues")
}

// QueueLoads: on each server, one attempt a second, each of which takes three.
func (n *node) QueueLoads(tenant string) map[string]dts.QueueLoad {
	return map[string]dts.QueueLoad{"busy": {Seconds: 60, Arrived: 60, Ended: 20, BusySeconds: 60}}
}

func (n *node) Retention(ctx context.Context, tenant string) (*dts.RetentionState, error) {
	return &dts.RetentionState{Retention: dts.Retention{Rows: 5}}, n.begin(ctx, "retention")
}

func (n *node) PutRetention(ctx context.Context, tenant string, r dts.Retention) (*dts.RetentionState, error) {
	return &dts.RetentionState{Retention: r}, n.begin(ctx, "put retention")
}

func (n *node) DeleteQueue(ctx context.Context, tenant, name string) error {
	return n.begin(ctx, "delete queue "+name)
}

func (n *node) Preview(ctx context.Context, tenant string, q dts.PreviewRequest) (*dts.Preview, error) {
	return &dts.Preview{TimeZone: q.TimeZone}, n.begin(ctx, "preview")
}

func (n *node) Conflicts(ctx context.Context, tenant string, from, to time.Time) ([]dts.Conflict, error) {
	return []dts.Conflict{{From: from, To: to}}, n.begin(ctx, "conflicts")
}

func (n *node) Why(ctx context.Context, tenant, id string, at time.Time) (*dts.Why, error) {
	return &dts.Why{Answer: id + " at " + at.Format(time.RFC3339)}, n.begin(ctx, "why")
}

func (n *node) Status() dts.SchedulerStatus {
	n.mu.Lock()
	defer n.mu.Unlock()
	return dts.SchedulerStatus{Node: n.id, Draining: n.draining}
}

func (n *node) Ready() error { return errors.New("not today, says " + n.id) }

func (n *node) Subscribe(tenant string) (<-chan dts.Event, func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	ch := make(chan dts.Event, 16)
	n.subs[ch] = tenant
	n.streams++
	return ch, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if _, is := n.subs[ch]; is {
			delete(n.subs, ch)
			close(ch)
		}
	}
}

func (n *node) listeners() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.subs)
}

// publish tells those who listen at this server. One that is too slow is cut off.
func (n *node) publish(e dts.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for ch, tenant := range n.subs {
		if tenant != e.TenantID {
			continue
		}
		select {
		case ch <- e:
		default:
			delete(n.subs, ch)
			close(ch)
		}
	}
}

func (n *node) Placement() dts.Placement {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.believes != nil {
		return *n.believes
	}
	return n.w.placement(n.id)
}

func (n *node) Poke() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pokes++
	n.believes = nil
}

func (n *node) Wake(ids []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.woken = append(n.woken, ids...)
	if n.onWake != nil {
		n.onWake()
	}
}

// outputs are those of the runs on one server.
type outputs struct{ n *node }

func (o outputs) Tail(id string, number int) (dts.Tail, bool) {
	o.n.mu.Lock()
	defer o.n.mu.Unlock()
	t := o.n.tails[tailKey{id, number}]
	return t, t != nil
}

// tail is a run's output while it is written.
type tail struct {
	mu    sync.Mutex
	data  []byte
	done  bool
	again chan struct{}
}

func newTail() *tail { return &tail{again: make(chan struct{})} }

func (t *tail) write(s string, done bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, s...)
	t.done = done
	close(t.again)
	t.again = make(chan struct{})
}

func (t *tail) Read(ctx context.Context, offset int64) ([]byte, int64, bool, error) {
	for {
		t.mu.Lock()
		chunk := slices.Clone(t.data[offset:])
		next, done, again := offset+int64(len(chunk)), t.done, t.again
		t.mu.Unlock()
		if len(chunk) > 0 || done {
			return chunk, next, done, nil
		}
		select {
		case <-ctx.Done():
			return nil, offset, false, ctx.Err()
		case <-again:
		}
	}
}

// until waits until something is so.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("this has not come about: %s", what)
		}
	}
}

// cut ends a connection in the middle of a call.
func cut(w http.ResponseWriter, _ *http.Request) bool {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	conn.Close()
	return false
}

// hang reads a call, and then does nothing.
func hang(_ http.ResponseWriter, r *http.Request) bool {
	io.Copy(io.Discard, r.Body) // as long as it is not read to its end, the server does not notice that the caller goes
	<-r.Context().Done()
	return false
}
