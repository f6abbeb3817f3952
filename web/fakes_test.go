package web_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dts"
	"dts/web"
	"dts/web/api"
	"dts/web/auth"
)

// now is the clock of the tests.
var now = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// fake is the store, the scheduler and the runner's outputs. It keeps what it is told, does what a table
// of verbs says, and remembers who asked.
type fake struct {
	mu              sync.Mutex
	tasks           []*dts.Task
	recurring       []*dts.RecurringTask
	queues          map[string]*dts.Queue
	edges           map[string][]dts.DependsOn // of each child
	keeps           dts.Retention
	attempts        map[string][]*dts.Attempt
	outputs         map[string]*dts.Output
	tails           map[string]dts.Tail
	subs            []chan dts.Event
	subbed          chan struct{} // receives once per subscription
	filter          dts.TaskFilter
	bulk            dts.BulkChange
	recurringFilter dts.RecurringFilter
	patch           dts.TaskPatch
	recurringPatch  dts.RecurringPatch
	times           times
	ledger          []dts.Occurrence // if set, in place of two lines of no meaning
	actor           string
	until           time.Time
	note            string
	err             error // if set, every write fails with it
	notReady        error
	panics          bool
	stale           bool // tasks can be read only where the reader is content with what is old
}

func newFake() *fake {
	return &fake{attempts: map[string][]*dts.Attempt{}, outputs: map[string]*dts.Output{}, tails: map[string]dts.Tail{}, subbed: make(chan struct{}, 1000)}
}

var errNone = dts.Errorf(dts.ErrNotFound, "there is no such thing")

func (f *fake) Task(ctx context.Context, tenant, id string) (*dts.Task, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stale {
		old := dts.StalenessOf(ctx)
		if old == nil {
			return nil, dts.Errorf(dts.ErrUnavailable, "there is no leader")
		}
		old.Set()
	}
	if f.panics {
		panic("a fault with a secret in it")
	}
	for _, t := range f.tasks {
		if t.ID == id && t.TenantID == tenant {
			c := *t
			return &c, nil
		}
	}
	return nil, errNone
}

func (f *fake) Tasks(_ context.Context, q dts.TaskFilter) (dts.Page[*dts.Task], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.filter = q
	i := 0
	if q.Cursor != "" {
		i = slices.IndexFunc(f.tasks, func(t *dts.Task) bool { return t.ID == q.Cursor })
	}
	end := min(i+q.Limit, len(f.tasks))
	p := dts.Page[*dts.Task]{Items: f.tasks[i:end]}
	if end < len(f.tasks) {
		p.Next = f.tasks[end].ID
	}
	return p, nil
}

func (f *fake) Steps(_ context.Context, tenant, run string) (list []*dts.Task, err error) {
	for _, t := range f.tasks {
		if t.WorkflowID == run && t.TenantID == tenant {
			list = append(list, t)
		}
	}
	return list, nil
}

func (f *fake) Attempts(_ context.Context, _, id string) ([]*dts.Attempt, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.attempts[id]), nil
}

func (f *fake) Output(_ context.Context, _, id string, n int) (*dts.Output, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if o := f.outputs[key(id, n)]; o != nil {
		return o, nil
	}
	return nil, errNone
}

func key(id string, n int) string { return id + "/" + string(rune('0'+n)) }

func (f *fake) RecurringTask(_ context.Context, tenant, id string) (*dts.RecurringTask, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.recurring {
		if r.ID == id && r.TenantID == tenant {
			c := *r
			return &c, nil
		}
	}
	return nil, errNone
}

func (f *fake) RecurringTasks(_ context.Context, q dts.RecurringFilter) (dts.Page[*dts.RecurringTask], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.recurringFilter = q
	return dts.Page[*dts.RecurringTask]{Items: f.recurring}, nil
}

func (f *fake) Upcoming(_ context.Context, _, _ string, limit int) ([]*dts.Task, error) {
	return f.tasks[:min(limit, len(f.tasks))], nil
}

func (f *fake) Pings(context.Context, string, string, int) ([]*dts.PingRecord, error) {
	return nil, nil
}

func (f *fake) Occurrences(_ context.Context, _, id, cursor string, _ int) (dts.Page[dts.Occurrence], error) {
	if f.ledger != nil {
		return dts.Page[dts.Occurrence]{Items: f.ledger}, nil
	}
	if cursor == "" {
		return dts.Page[dts.Occurrence]{Items: []dts.Occurrence{{ScheduledAt: now, Skip: &dts.Skip{From: now, To: now, Count: 1, Reason: dts.ReasonPaused}}}, Next: "more"}, nil
	}
	return dts.Page[dts.Occurrence]{Items: []dts.Occurrence{{ScheduledAt: now.Add(-time.Hour)}}}, nil
}

func (f *fake) Counts(context.Context, string) (dts.Counts, error) {
	return dts.Counts{Pending: 3}, nil
}

func (f *fake) CreateTasks(_ context.Context, tasks []*dts.Task) ([]dts.Created[*dts.Task], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	made := make([]dts.Created[*dts.Task], len(tasks))
	for i, t := range tasks {
		made[i].Item = t
		for _, old := range f.tasks {
			if t.IdempotencyKey == "" || t.IdempotencyKey != old.IdempotencyKey {
				continue
			}
			if t.RequestHash != old.RequestHash {
				return nil, dts.Errorf(dts.ErrConflict, "the idempotency key was used for another task")
			}
			made[i] = dts.Created[*dts.Task]{Item: old, Existed: true}
		}
		if !made[i].Existed {
			f.tasks = append(f.tasks, t)
		}
	}
	return made, nil
}

func (f *fake) ModifyTask(ctx context.Context, tenant, id string, p dts.TaskPatch) (*dts.Task, error) {
	f.patch = p
	t, err := f.Task(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	return p.Apply(t, now)
}

func (f *fake) DoTask(ctx context.Context, tenant, id string, v dts.Verb, actor string) (*dts.Task, error) {
	f.actor = actor
	t, err := f.Task(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	_, err = v.Do(t.Status)
	return t, err
}

func (f *fake) Bulk(_ context.Context, c dts.BulkChange) (dts.BulkResult, error) {
	f.filter, f.actor, f.bulk = c.Filter, c.Actor, c
	if c.DryRun {
		return dts.BulkResult{Matched: 9, DryRun: true}, f.err
	}
	return dts.BulkResult{Matched: 9, Done: 7}, f.err
}

func (f *fake) Batch(_ context.Context, tenant, id string) (*dts.Batch, error) {
	b := &dts.Batch{ID: id}
	for _, t := range f.tasks {
		if t.TenantID == tenant && t.BatchID == id {
			b.Total++
		}
	}
	if b.Total == 0 {
		return nil, dts.Errorf(dts.ErrNotFound, "there is no task of a batch %s", id)
	}
	return b, nil
}

func (f *fake) CreateRecurring(_ context.Context, r *dts.RecurringTask) (dts.Created[*dts.RecurringTask], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return dts.Created[*dts.RecurringTask]{}, f.err
	}
	f.recurring = append(f.recurring, r)
	return dts.Created[*dts.RecurringTask]{Item: r}, nil
}

func (f *fake) ModifyRecurring(ctx context.Context, tenant, id string, p dts.RecurringPatch) (*dts.RecurringTask, error) {
	f.recurringPatch = p
	r, err := f.RecurringTask(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	return p.Apply(r)
}

func (f *fake) PauseRecurring(ctx context.Context, tenant, id string, until time.Time, note, actor string) (*dts.RecurringTask, error) {
	f.until, f.note, f.actor = until, note, actor
	return f.RecurringTask(ctx, tenant, id)
}

func (f *fake) ResumeRecurring(ctx context.Context, tenant, id string, catchUp bool, actor string) (*dts.RecurringTask, error) {
	f.times.catchUp, f.actor = catchUp, actor
	return f.RecurringTask(ctx, tenant, id)
}

func (f *fake) CancelRecurring(ctx context.Context, tenant, id, actor string) (*dts.RecurringTask, error) {
	return f.RecurringTask(ctx, tenant, id)
}

func (f *fake) TriggerRecurring(ctx context.Context, tenant, id, actor string) (*dts.Task, error) {
	r, err := f.RecurringTask(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	return r.Occurrence(now, dts.OriginTrigger, now), nil
}

func (f *fake) Status() dts.SchedulerStatus {
	s := dts.SchedulerStatus{Node: "n1", Ready: f.notReady == nil}
	return s
}

func (f *fake) Ready() error { return f.notReady }

func (f *fake) Subscribe(string) (<-chan dts.Event, func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ch := make(chan dts.Event, 16)
	f.subs = append(f.subs, ch)
	f.subbed <- struct{}{}
	return ch, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.subs = slices.DeleteFunc(f.subs, func(c chan dts.Event) bool { return c == ch })
	}
}

// publish tells all subscribers.
func (f *fake) publish(e dts.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, ch := range f.subs {
		ch <- e
	}
}

// overflow drops all subscribers as too slow.
func (f *fake) overflow() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, ch := range f.subs {
		close(ch)
	}
	f.subs = nil
}

func (f *fake) Tail(id string, n int) (dts.Tail, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.tails[key(id, n)]
	return t, t != nil
}

// tail is a run's output while it is written.
type tail struct {
	mu    sync.Mutex
	from  int64 // offset of the first byte that is left
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
		offset = max(offset, t.from)
		chunk := slices.Clone(t.data[offset-t.from:])
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

// tokens knows three tokens and what was made of them.
type tokens struct {
	mu    sync.Mutex
	known map[string]auth.Principal
	links map[string]auth.Principal
	asked int
	err   error
}

func newTokens() *tokens {
	return &tokens{known: map[string]auth.Principal{
		"right": {TenantID: dts.DefaultTenant, Name: "admin", Admin: true},
		"other": {TenantID: "other", Name: "bob"},
	}, links: map[string]auth.Principal{}}
}

func (k *tokens) Authenticate(_ context.Context, token string) (auth.Principal, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	if k.err != nil {
		return auth.Principal{}, k.err
	}
	p, ok := k.known[token]
	if !ok {
		return p, dts.Errorf(dts.ErrUnauthorized, "unknown token")
	}
	return p, nil
}

func (k *tokens) NewSession(_ context.Context, p auth.Principal, _ time.Duration) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known["session"] = p
	return "session", nil
}

func (k *tokens) EndSession(context.Context, string) error { return nil }

func (k *tokens) NewLoginLink(_ context.Context, p auth.Principal, _ time.Duration) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.links["once"] = p
	return "once", nil
}

func (k *tokens) RedeemLoginLink(_ context.Context, token string) (auth.Principal, error) {
	return auth.Principal{}, errors.New("not used here")
}

// server is a running web.Server with its fakes.
type server struct {
	*web.Server
	*fake
	tokens *tokens
	socket string
	logs   *logBuffer
}

type logBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start runs a server on loopback and on a socket until the test ends.
func start(t *testing.T, change func(*web.Options)) *server {
	t.Helper()
	dir, err := os.MkdirTemp("", "dts") // t.TempDir's paths can be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &server{fake: newFake(), tokens: newTokens(), socket: filepath.Join(dir, "s"), logs: &logBuffer{}}
	o := web.Options{
		Listen: "127.0.0.1:0", SocketPath: s.socket, Tokens: s.tokens,
		Log: slog.New(slog.NewTextHandler(s.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		API: api.Options{Store: s.fake, Scheduler: s.fake, Outputs: s.fake, Version: "test", Now: func() time.Time { return now },
			Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "dts_up 1\n") })},
	}
	if change != nil {
		change(&o)
	}
	if s.Server, err = web.New(o); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

// call sends a request with the right token and returns the status, the header and the body.
func (s *server) call(t *testing.T, method, path, body string, header ...string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+s.Addr()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Authorization", "Bearer right")
	for i := 0; i < len(header); i += 2 {
		switch {
		case header[i] == "Host":
			req.Host = header[i+1]
		case header[i+1] == "":
			req.Header.Del(header[i])
		default:
			req.Header.Set(header[i], header[i+1])
		}
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

// add puts a task in a state into the store.
func (s *server) add(status dts.Status) *dts.Task {
	task := &dts.Task{Spec: dts.Spec{TargetType: dts.Command, TargetConfig: []byte(`{"argv":["true"]}`)}}
	if err := task.Normalize(now); err != nil {
		panic(err)
	}
	task.Status = status
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks = append(s.tasks, task)
	return task
}
