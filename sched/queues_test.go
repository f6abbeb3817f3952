package sched_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"dts"
)

// TestQueueRetry: what is created in a queue without a retry of its own gets the queue's; nothing else does.
func TestQueueRetry(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		if _, err := w.s.PutQueue(w.ctx, &dts.Queue{Name: "slow", Retry: &dts.Retry{MaxAttempts: 7, Backoff: dts.Fixed, BaseDelayMS: 5}}); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			name string
			edit func(*dts.Task)
			want int
		}{
			{"the queue's", func(*dts.Task) {}, 7},
			{"its own", func(k *dts.Task) { k.Retry.MaxAttempts = 2 }, 2},
			{"in another queue", func(k *dts.Task) { k.Queue = "other" }, 3},
			{"at most once", func(k *dts.Task) { k.Delivery = dts.AtMostOnce }, 1},
		} {
			k := w.task(w.add(time.Hour, func(k *dts.Task) {
				k.Queue, k.Retry = "slow", dts.Retry{}
				tt.edit(k)
			}).ID)
			if k.MaxAttempts != tt.want || k.Retry.MaxAttempts != tt.want {
				t.Errorf("%s: %d attempts, %d in its retry; want %d", tt.name, k.MaxAttempts, k.Retry.MaxAttempts, tt.want)
			}
		}
		r := w.every("0 * * * *", func(r *dts.RecurringTask) { r.Queue, r.Retry = "slow", dts.Retry{} })
		if got := w.recurring(r.ID).Retry; got.MaxAttempts != 7 || got.Backoff != dts.Fixed {
			t.Errorf("the template has %+v", got)
		}
		w.settle(time.Second)
		page, err := w.st.Tasks(w.ctx, dts.TaskFilter{TenantID: dts.DefaultTenant, RecurringTaskID: r.ID, Limit: 1})
		if err != nil || len(page.Items) != 1 || page.Items[0].MaxAttempts != 7 {
			t.Errorf("its occurrences: %+v, %v", page.Items, err)
		}
		if err := w.s.DeleteQueue(w.ctx, dts.DefaultTenant, "slow"); err != nil {
			t.Fatal(err)
		}
		if k := w.task(w.add(time.Hour, func(k *dts.Task) { k.Queue, k.Retry = "slow", dts.Retry{} }).ID); k.MaxAttempts != 3 {
			t.Errorf("without the settings: %d attempts", k.MaxAttempts)
		}
	})
}

// TestQueueVerbs: what the verbs of a queue answer, in each of its states.
func TestQueueVerbs(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		s := w.s
		code := func(what string, err error, want dts.Code) {
			t.Helper()
			if dts.CodeOf(err) != want {
				t.Errorf("%s: %v; want %q", what, err, want)
			}
		}
		_, err := s.Queue(w.ctx, dts.DefaultTenant, "q")
		code("a queue that is not there", err, dts.ErrNotFound)
		_, err = s.ResumeQueue(w.ctx, dts.DefaultTenant, "q")
		code("resume it", err, dts.ErrConflict)
		code("delete it", s.DeleteQueue(w.ctx, dts.DefaultTenant, "q"), dts.ErrNotFound)
		_, err = s.PutQueue(w.ctx, &dts.Queue{Name: "q", Paused: true})
		code("no settings", err, dts.ErrInvalid)
		_, err = s.PutQueue(w.ctx, &dts.Queue{Name: "Q", Concurrency: 1})
		code("no name", err, dts.ErrInvalid)
		q, err := s.PauseQueue(w.ctx, dts.DefaultTenant, "q", "why")
		if err != nil || !q.Paused || q.PauseNote != "why" || q.PausedAt.IsZero() {
			t.Errorf("paused: %+v, %v", q, err)
		}
		if q, err = s.PutQueue(w.ctx, &dts.Queue{Name: "q", Rate: 10}); err != nil || !q.Paused || q.Rate != 10 || q.PeriodSeconds != 1 || q.Burst != 1 {
			t.Errorf("set while paused: %+v, %v", q, err)
		}
		if q, err = s.ResumeQueue(w.ctx, dts.DefaultTenant, "q"); err != nil || q.Paused || q.Rate != 10 {
			t.Errorf("resumed: %+v, %v", q, err)
		}
		_, err = s.ResumeQueue(w.ctx, dts.DefaultTenant, "q")
		code("resume it again", err, dts.ErrConflict)
		code("delete", s.DeleteQueue(w.ctx, dts.DefaultTenant, "q"), "")
		if _, err = s.PauseQueue(w.ctx, dts.DefaultTenant, "q", ""); err != nil {
			t.Error(err)
		}
		if q, err = s.ResumeQueue(w.ctx, dts.DefaultTenant, "q"); err != nil || q.Name != "q" || !q.CreatedAt.IsZero() {
			t.Errorf("resumed, with no other settings: %+v, %v", q, err)
		}
		w.add(time.Hour, func(k *dts.Task) { k.Queue = "q" })
		if q, err = s.Queue(w.ctx, dts.DefaultTenant, "q"); err != nil || q.Waiting != 0 || !q.CreatedAt.IsZero() {
			t.Errorf("with a task that is not due: %+v, %v", q, err)
		}
	})
}

// TestQueueSuggests: a task a second that takes ten needs ten at once, also while fewer may run; and what was long ago
// counts no more.
func TestQueueSuggests(t *testing.T) {
	for _, limit := range []int{0, 3} {
		inWorld(t, nil, func(w *world) {
			w.run.behave(takes(10 * time.Second))
			if limit > 0 {
				if _, err := w.s.PutQueue(w.ctx, &dts.Queue{Name: "busy", Concurrency: limit}); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 240 {
				w.add(time.Duration(i)*time.Second, func(k *dts.Task) { k.Queue = "busy" })
			}
			w.settle(4 * time.Minute)
			suggested := func() int {
				synctest.Wait()
				return w.s.QueueLoads(dts.DefaultTenant)["busy"].Suggested()
			}
			if n := suggested(); n < 9 || n > 11 {
				t.Errorf("with a limit of %d: %d suggested", limit, n)
			}
			w.settle(30 * time.Minute)
			if n := suggested(); n != 0 {
				t.Errorf("half an hour later: %d suggested", n)
			}
		})
	}
}

// TestManyQueuesWithSettings: each of them counts, however many there are.
func TestManyQueuesWithSettings(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.addMany(600, 0, func(i int, k *dts.Task) { k.Queue = fmt.Sprint("other", i) })
		w.settle(10 * time.Second)
		for i := range 900 {
			if err := w.st.PauseQueue(w.ctx, dts.DefaultTenant, fmt.Sprint("q", i), "", w.now(), int64(i)); err != nil {
				t.Fatal(err)
			}
		}
		putRate(t, w.s, 1000, 1)
		w.addMany(900, 0, func(i int, k *dts.Task) { k.Queue = fmt.Sprint("q", i) })
		w.settle(10 * time.Second)
		if n := len(w.run.list()); n != 600 {
			t.Errorf("%d tasks of paused queues started", n-600)
		}
	})
}
