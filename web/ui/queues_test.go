package ui

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"testing"

	"dts"
)

func (f *fake) Queues(context.Context, string) ([]*dts.Queue, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.SortedFunc(slices.Values(f.queueList), func(a, b *dts.Queue) int { return cmp.Compare(a.Name, b.Name) }), f.fail
}

func (f *fake) PauseQueue(_ context.Context, tenant, name, note string) (*dts.Queue, error) {
	n := dts.Queue{TenantID: tenant, Name: name, PauseNote: note}
	if err := n.Normalize(); err != nil {
		return nil, err
	}
	return f.changeQueue(name, func(q *dts.Queue) error {
		q.Paused, q.PauseNote = true, note
		return nil
	})
}

func (f *fake) ResumeQueue(_ context.Context, _, name string) (*dts.Queue, error) {
	return f.changeQueue(name, func(q *dts.Queue) error {
		if !q.Paused {
			return dts.Errorf(dts.ErrConflict, "the queue %q is not paused", name)
		}
		q.Paused, q.PauseNote = false, ""
		return nil
	})
}

func (f *fake) changeQueue(name string, change func(*dts.Queue) error) (*dts.Queue, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, q := range f.queueList {
		if q.Name == name {
			return q, change(q)
		}
	}
	return nil, dts.Errorf(dts.ErrNotFound, "there is no queue %q", name)
}

// exampleQueues are a busy one, one with every setting that is paused, one with a rate, and one of which too much waits to count it.
func exampleQueues() []*dts.Queue {
	return []*dts.Queue{
		{Name: "default", QueueState: dts.QueueState{Running: 12, Waiting: 3, OldestAgeSeconds: 90, Suggested: 15}},
		{Name: "mail", Rate: 50, PeriodSeconds: 900, Burst: 5, Concurrency: 20, Paused: true, PauseNote: "the <relay> is down",
			Retry:      &dts.Retry{MaxAttempts: 4, Backoff: dts.Fixed, BaseDelayMS: 60_000},
			Retention:  &dts.Retention{Seconds: 7 * 86400, Rows: 1000, Bytes: 2 << 30},
			QueueState: dts.QueueState{Waiting: 117, OldestAgeSeconds: 3700}},
		{Name: "reports", Rate: 10, PeriodSeconds: 1, Burst: 1, Retry: &dts.Retry{MaxAttempts: 1}},
		{Name: "thumbnails", Concurrency: 64, QueueState: dts.QueueState{Running: 64, Waiting: 10_000, OldestAgeSeconds: 4 * 3600, Suggested: 140}},
	}
}

func TestQueues(t *testing.T) {
	s := newSite(t)
	s.get("/ui/queues", 200).want("No queue has settings, or tasks that are not finished.")
	s.queueList = exampleQueues()
	d := s.get("/ui/queues", 200)
	d.row("default").want("3", "1 min", "12", "15 at once keep up", "Pause…")
	d.row("mail").want("paused", "the <relay> is down", "117", "0 of 20", "Starts 50 each 15 min, 5 at once after a rest", "Retries: 4 attempts", "Keeps 7 d, 1000 tasks, 2 GiB", "Resume")
	d.row("reports").want("–", "Starts 10 a second", "Retries: none")
	d.row("thumbnails").want("10,000 or more", "64 of 64", "140 at once keep up")
	if w, _ := s.post("/ui/queues/default/pause", url.Values{"note": {" why "}}); w.Code != 303 || w.Header().Get("Location") != "/ui/queues?done=pause-queue" {
		t.Errorf("pause: %d %s", w.Code, w.Header())
	}
	if q := s.queueList[0]; !q.Paused || q.PauseNote != "why" {
		t.Errorf("%+v", q)
	}
	s.get("/ui/queues?done=pause-queue", 200).want("The queue is paused.")
	if w, _ := s.post("/ui/queues/default/resume", nil); w.Code != 303 || s.queueList[0].Paused {
		t.Errorf("resume: %d", w.Code)
	}
	for path, code := range map[string]int{"default/resume": 409, "gone/pause": 404, "Not%20one/pause": 422, "default/delete": 404} {
		if w, _ := s.post("/ui/queues/"+path, nil); w.Code != code {
			t.Errorf("%s: %d, want %d", path, w.Code, code)
		}
	}
}
