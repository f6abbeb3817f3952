package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"dts"
	"dts/exec"
	"dts/migrations"
	"dts/sched"
	"dts/store"
	"dts/store/sqlite"
)

// shared is a database that several servers of a test use; it is closed by the test.
type shared struct{ store.Backend }

func (shared) Close() error { return nil }

// clusterServer is one server of a cluster in this process, all of it real but the page and the API.
type clusterServer struct {
	id string
	*front
	st    *store.Store
	sched *sched.Scheduler
	stop  func()
}

// startCluster starts servers that share one database, and waits until each holds some shards.
func startCluster(t *testing.T, count int) []*clusterServer {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "dts.db"), sqlite.Options{Migrations: migrations.FS})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	var servers []*clusterServer
	for range count {
		servers = append(servers, startClusterServer(t, db))
	}
	waitFor(t, "all servers hold shards, and know of each other", func() bool {
		for _, s := range servers {
			p, own := s.sched.Placement(), 0
			for _, id := range p.Holders {
				if id == s.id {
					own++
				}
				if id == "" {
					return false
				}
			}
			if own == 0 || len(p.Nodes) != count {
				return false
			}
		}
		return true
	})
	return servers
}

func startClusterServer(t *testing.T, db store.Backend) *clusterServer {
	t.Helper()
	ctx, log := context.Background(), slog.New(slog.NewTextHandler(t.Output(), nil))
	s := &clusterServer{id: dts.NewID(time.Now()), st: store.New(shared{db}, store.Options{})}
	var handler http.Handler
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	others, err := joinCluster(ctx, s.st, log)
	if err != nil {
		t.Fatal(err)
	}
	runner := exec.New(exec.Options{Log: log, UserAgent: "dts/test", NodeID: s.id, DataDirID: s.id})
	s.sched = sched.New(sched.Options{
		Store: s.st, Runner: runner, Log: log, Peers: others.peers(), Refused: func(err error) bool { return errors.Is(err, store.ErrRefused) },
		Node: dts.Node{ID: s.id, Address: web.URL, Version: "test"}, ClockFloor: clockFloor(), DrainTimeout: 5 * time.Second,
	})
	if s.front, err = others.front(s.st, s.sched, runner); err != nil {
		t.Fatal(err)
	}
	handler = s.front.peers
	if err := s.sched.Start(ctx); err != nil {
		t.Fatal(err)
	}
	s.stop = func() {
		if err := s.sched.Stop(ctx); err != nil {
			t.Error(err)
		}
		s.front.close()
		others.Close()
		web.CloseClientConnections()
		web.Close()
		runner.Close()
		if err := s.st.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { s.stop() })
	return s
}

func waitFor(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("this has not come about: %s", what)
		}
	}
}

// commandTask is a task that runs a shell command.
func commandTask(t *testing.T, line string, at time.Time) *dts.Task {
	t.Helper()
	config, err := json.Marshal(dts.CommandTarget{Shell: line})
	if err != nil {
		t.Fatal(err)
	}
	k := &dts.Task{Spec: dts.Spec{TargetType: dts.Command, TargetConfig: config}, RunAt: at}
	if err := k.Normalize(time.Now()); err != nil {
		t.Fatal(err)
	}
	return k
}

// create creates a task at a server, which keeps it.
func (s *clusterServer) create(t *testing.T, k *dts.Task) *dts.Task {
	t.Helper()
	list, err := s.scheduler.CreateTasks(t.Context(), []*dts.Task{k})
	if err != nil {
		t.Fatal(err)
	}
	if p := s.sched.Placement(); p.Holders[list[0].Item.Shard] != s.id {
		t.Errorf("a task that was created at one server lies at another one")
	}
	return list[0].Item
}

func (s *clusterServer) wait(t *testing.T, id string, want dts.Status) *dts.Task {
	t.Helper()
	var k *dts.Task
	waitFor(t, fmt.Sprintf("task %s is %s", id, want), func() (ok bool) {
		var err error
		if k, err = s.st.Task(t.Context(), dts.DefaultTenant, id); err != nil {
			t.Fatal(err)
		}
		return k.Status == want
	})
	return k
}

// Whatever one server is asked about a task that another one has happens there, and comes back.
func TestAnyServerServesAnything(t *testing.T) {
	s := startCluster(t, 3)
	a, b := s[0], s[1]
	ctx, tenant := t.Context(), dts.DefaultTenant
	later := time.Now().Add(time.Hour)

	events, end := b.scheduler.Subscribe(tenant)
	defer end()
	heard := func(typ dts.EventType, id string) {
		t.Helper()
		for limit := time.After(10 * time.Second); ; {
			select {
			case e, ok := <-events:
				if !ok {
					t.Fatal("the events have ended")
				}
				if e.Type == typ && e.TaskID == id {
					return
				}
			case <-limit:
				t.Fatalf("the other server has not heard that task %s was %s", id, typ)
			}
		}
	}

	k := a.create(t, commandTask(t, "true", later))
	heard(dts.EventCreated, k.ID)
	empty := ""
	got, err := b.scheduler.ModifyTask(ctx, tenant, k.ID, dts.TaskPatch{TaskTemplatePatch: dts.TaskTemplatePatch{Name: &empty, Labels: map[string]string{"x": "y"}}})
	if err != nil || got.Labels["x"] != "y" {
		t.Fatalf("modify: %+v, %v", got, err)
	}
	if _, err = b.scheduler.DoTask(ctx, tenant, k.ID, dts.RunNow, "alice"); err != nil {
		t.Fatalf("run-now: %v", err)
	}
	heard(dts.EventFinished, k.ID)
	if k = b.wait(t, k.ID, dts.Success); k.Node != a.id {
		t.Errorf("it ran at %s, not at %s", k.Node, a.id)
	}
	if got, err = b.scheduler.DoTask(ctx, tenant, k.ID, dts.Delete, "alice"); err != nil || got.Status != dts.Success {
		t.Errorf("delete: %+v, %v", got, err)
	}
	if _, err = b.scheduler.DoTask(ctx, tenant, k.ID, dts.Delete, "alice"); dts.CodeOf(err) != dts.ErrNotFound {
		t.Errorf("delete again: %v", err)
	}

	// A run that goes on: its output is followed, and it is killed, from another server.
	k = a.create(t, commandTask(t, "echo one; sleep 60", time.Now()))
	heard(dts.EventStarted, k.ID)
	tail, ok := b.outputs.Tail(k.ID, 1)
	if !ok {
		t.Fatal("the other server does not find the output")
	}
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	chunk, next, done, err := tail.Read(limited, 0)
	if string(chunk) != "one\n" || done || err != nil {
		t.Errorf("output: %q, %t, %v", chunk, done, err)
	}
	b.wait(t, k.ID, dts.Running)
	begun := time.Now()
	if got, err = b.scheduler.DoTask(ctx, tenant, k.ID, dts.Cancel, "alice"); err != nil || got.Status != dts.Cancelled {
		t.Fatalf("cancel: %+v, %v", got, err)
	}
	t.Logf("a cancel at another server took %s", time.Since(begun))
	if _, _, done, err = tail.Read(limited, next); !done || err != nil {
		t.Errorf("the end of the output: %t, %v", done, err)
	}

	// Recurring tasks.
	r := &dts.RecurringTask{Spec: k.Spec, Schedule: dts.Schedule{Cron: "0 3 1 1 *"}}
	r.TargetConfig = commandTask(t, "true", later).TargetConfig
	if err := r.Normalize(); err != nil {
		t.Fatal(err)
	}
	made, err := a.scheduler.CreateRecurring(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	id := made.Item.ID
	if x, err := b.scheduler.PauseRecurring(ctx, tenant, id, later, "moving", "alice"); err != nil || x.Status != dts.Paused || x.PauseNote != "moving" {
		t.Errorf("pause: %+v, %v", x, err)
	}
	if x, err := b.scheduler.ResumeRecurring(ctx, tenant, id, false, "alice"); err != nil || x.Status != dts.Active {
		t.Errorf("resume: %+v, %v", x, err)
	}
	run, err := b.scheduler.TriggerRecurring(ctx, tenant, id, "alice")
	if err != nil || run.CreatedBy != "alice" || run.RecurringTaskID != id {
		t.Fatalf("trigger: %+v, %v", run, err)
	}
	b.wait(t, run.ID, dts.Success)
	runs := int64(7)
	if x, err := b.scheduler.ModifyRecurring(ctx, tenant, id, dts.RecurringPatch{MaxRuns: &runs}); err != nil || x.MaxRuns != 7 {
		t.Errorf("modify: %+v, %v", x, err)
	}
	if x, err := b.scheduler.CancelRecurring(ctx, tenant, id, "alice"); err != nil || x.Status != dts.Ended {
		t.Errorf("cancel: %+v, %v", x, err)
	}

	// Many at once, at all servers.
	for i := range 30 {
		k := commandTask(t, "true", later)
		k.Queue = "bulk"
		s[i%3].create(t, k)
	}
	if n, err := b.scheduler.Bulk(ctx, dts.BulkChange{Verb: dts.BulkCancel, Filter: dts.TaskFilter{TenantID: tenant, Queue: "bulk"}, Actor: "alice"}); n.Done != 30 || n.Matched != 30 || err != nil {
		t.Errorf("bulk-cancel: %+v, %v", n, err)
	}

	// One stops: what it had is done by the others, asked at once.
	k = a.create(t, commandTask(t, "true", later))
	stopped, stop := make(chan struct{}), a.stop
	a.stop = func() {}
	go func() { defer close(stopped); stop() }()
	asked := 0
	for begun = time.Now(); time.Since(begun) < time.Second; asked++ {
		name := fmt.Sprint("at ", time.Since(begun))
		if got, err = b.scheduler.ModifyTask(ctx, tenant, k.ID, dts.TaskPatch{TaskTemplatePatch: dts.TaskTemplatePatch{Name: &name}}); err != nil || got.Name != name {
			t.Fatalf("while its server stops: %v, %v", got, err)
		}
	}
	<-stopped
	t.Logf("%d changes while a server stopped", asked)
	b.sched.Poke()
	waitFor(t, "the server that has stopped counts no more", func() bool { return len(b.sched.Placement().Nodes) == 2 })
	if p := b.sched.Placement(); p.Holders[k.Shard] == a.id {
		t.Error("the server that has stopped still holds a shard")
	}
	if st := b.scheduler.Status(); len(st.Nodes) < 2 || st.Lease == nil {
		t.Errorf("status: %+v", st)
	}
}
