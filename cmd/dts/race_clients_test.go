package main_test

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"dts"
	"dts/web/api"
	"dts/web/client"
)

// TestRacingClients lets 64 clients, each with a connection of its own, ask a real server for the same at the same moment:
// whatever they ask for, there is one task, which runs once.
func TestRacingClients(t *testing.T) {
	t.Parallel()
	const clients = 64
	s := newServer(t, buildDTS(t), filepath.Join(t.TempDir(), "data"))
	s.start()
	apis := make([]*client.Client, clients)
	for i := range apis {
		c, err := client.New(client.Options{Socket: filepath.Join(s.data, "dts.sock"), Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		apis[i] = c
	}
	for _, kind := range []struct {
		name    string
		edit    func(q *api.TaskRequest, i int)
		refused bool // those that came later
	}{
		{"idempotency_key", func(q *api.TaskRequest, _ int) { q.IdempotencyKey = "the same request" }, false},
		{"REJECT", func(q *api.TaskRequest, _ int) { q.DedupeKey = "reject" }, true},
		{"KEEP_FIRST", func(q *api.TaskRequest, _ int) { q.DedupeKey, q.DedupePolicy = "keep", dts.DedupeKeepFirst }, false},
		{"both", func(q *api.TaskRequest, _ int) {
			q.IdempotencyKey, q.DedupeKey, q.DedupePolicy = "both", "both", dts.DedupeKeepFirst
		}, false},
	} {
		for _, delay := range []api.Delay{"0s", "24h"} {
			var ready, all sync.WaitGroup
			began := make(chan struct{})
			made := make([]dts.Created[*dts.Task], clients)
			errs := make([]error, clients)
			ready.Add(clients)
			for i, c := range apis {
				all.Go(func() {
					q := api.TaskRequest{Spec: commandSpec("sleep", "3"), Delay: delay} // unfinished until all have asked
					q.Name = kind.name + string(delay)
					kind.edit(&q, i)
					for _, key := range []*string{&q.IdempotencyKey, &q.DedupeKey} {
						if *key != "" {
							*key += string(delay)
						}
					}
					ready.Done()
					<-began
					made[i], errs[i] = c.CreateTask(t.Context(), q)
				})
			}
			ready.Wait()
			close(began)
			all.Wait()
			var first *dts.Task
			fresh := 0
			for i, m := range made {
				switch code := dts.CodeOf(errs[i]); {
				case kind.refused && code == dts.ErrConflict:
					continue
				case code != "":
					t.Fatalf("%s: %v", kind.name, errs[i])
				}
				if !m.Existed {
					fresh++
				}
				if first == nil {
					first = m.Item
				}
				if m.Item.ID != first.ID {
					t.Errorf("%s: one is told of %s, another one of %s", kind.name, m.Item.ID, first.ID)
				}
			}
			if fresh != 1 {
				t.Errorf("%s %s: %d were told that it is new, want 1", kind.name, delay, fresh)
			}
			page, err := apis[0].Tasks(t.Context(), dts.TaskFilter{Name: kind.name + string(delay), Limit: 10})
			if err != nil || len(page.Items) != 1 {
				t.Errorf("%s %s: there are %d tasks, %v", kind.name, delay, len(page.Items), err)
			}
			if delay != "0s" || first == nil {
				continue
			}
			s.eventually(30*time.Second, "the task to end", func() bool {
				now, err := apis[0].Task(t.Context(), first.ID)
				return err == nil && now.Status == dts.Success && now.Attempts == 1
			})
		}
	}
}
