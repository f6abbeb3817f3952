package sched_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dts"
	"dts/sched"
)

// addMany creates n tasks at once, due in d.
func (w *world) addMany(n int, d time.Duration, edit func(i int, k *dts.Task)) []*dts.Task {
	w.t.Helper()
	var all []*dts.Task
	for len(all) < n {
		list := make([]*dts.Task, min(n-len(all), 1000))
		for i := range list {
			k := &dts.Task{Spec: w.spec(), RunAt: w.now().Add(d)}
			edit(len(all)+i, k)
			if err := k.Normalize(w.now()); err != nil {
				w.t.Fatal(err)
			}
			list[i] = k
		}
		made, err := w.s.CreateTasks(w.ctx, list)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, m := range made {
			all = append(all, m.Item)
		}
	}
	return all
}

func queued(name string) func(int, *dts.Task) {
	return func(_ int, k *dts.Task) { k.Queue = name }
}

// byQueue makes runs that depend on the queue of their task.
func byQueue(run map[string]func(context.Context, dts.Job) dts.Outcome) func(context.Context, dts.Job) dts.Outcome {
	return func(ctx context.Context, j dts.Job) dts.Outcome { return run[j.Task.Queue](ctx, j) }
}

// late returns how late the latest start of tasks was, and fails where one has not started just once.
func (w *world) late(tasks []*dts.Task) (most time.Duration) {
	w.t.Helper()
	started := map[string]int{}
	for _, s := range w.run.list() {
		started[s.id]++
	}
	for _, k := range tasks {
		if started[k.ID] != 1 {
			w.t.Fatalf("a task of the queue %s started %d times", k.Queue, started[k.ID])
		}
		if now := w.task(k.ID); now.LatenessUS != nil {
			most = max(most, time.Duration(*now.LatenessUS)*time.Microsecond)
		}
	}
	return most
}

// TestSlowQueue: beside a queue of 10,000 tasks that hang, those of another one start on time, and so do those of a queue
// that nobody has heard of yet; the slow one has 70 % of the slots.
func TestSlowQueue(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.run.behave(byQueue(map[string]func(context.Context, dts.Job) dts.Outcome{
			"slow": takes(time.Hour), "healthy": takes(20 * time.Millisecond), "new": takes(time.Millisecond)}))
		w.addMany(10_000, 0, queued("slow"))
		w.settle(time.Second)
		var healthy []*dts.Task
		for i := range 100 {
			healthy = append(healthy, w.add(time.Duration(i)*50*time.Millisecond, func(k *dts.Task) { k.Queue = "healthy" }))
		}
		healthy = append(healthy, w.addMany(40, 2*time.Second, queued("healthy"))...)
		healthy = append(healthy, w.add(0, func(k *dts.Task) { k.Queue = "new" }))
		w.settle(10 * time.Second)
		if late := w.late(healthy); late > 10*time.Millisecond {
			t.Errorf("beside a slow queue a task started %v late", late)
		}
		st := w.s.Status()
		if p := st.Pools[0]; p.Running != 257 {
			t.Errorf("the slow queue runs %d of %d slots", p.Running, p.Slots)
		}
	})
}

// TestSlowQueues: what several slow queues have together leaves room for another one, also where each of them came when
// those before had all that they could get.
func TestSlowQueues(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.ClaimLimit = 64 }, func(w *world) {
		w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome {
			if j.Task.Queue == "healthy" {
				return takes(time.Millisecond)(ctx, j)
			}
			return takes(time.Hour)(ctx, j)
		})
		for i := range 8 {
			w.addMany(500, 0, queued(fmt.Sprint("slow", i)))
			w.settle(time.Second)
		}
		healthy := w.addMany(10, time.Second, queued("healthy"))
		w.settle(5 * time.Second)
		if late := w.late(healthy); late > 10*time.Millisecond {
			t.Errorf("a task started %v late", late)
		}
	})
}

// TestBacklog: a queue with very much more than memory holds hides nothing that is due in others, and all of it runs,
// once, in order; also what is added meanwhile, and after a restart.
func TestBacklog(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.HeapLimit = 100; o.ClaimLimit = 16; o.HTTPSlots = 8 }, func(w *world) {
		w.run.behave(byQueue(map[string]func(context.Context, dts.Job) dts.Outcome{
			"big": takes(100 * time.Millisecond), "small": takes(time.Millisecond), "large": takes(50 * time.Millisecond)}))
		big := w.addMany(1500, time.Second, func(i int, k *dts.Task) {
			k.Queue, k.RunAt = "big", k.RunAt.Add(time.Duration(i)*time.Microsecond)
		})
		small := w.addMany(3, 2*time.Second, queued("small"))
		check := func() {
			t.Helper()
			if n := w.s.Status().HeapSize; n > 200 {
				t.Fatalf("%d entries in memory", n)
			}
		}
		check()
		w.settle(3 * time.Second)
		check()
		small = append(small, w.addMany(3, time.Second, queued("small"))...)
		big = append(big, w.addMany(50, 0, queued("big"))...)
		w.settle(2 * time.Second)
		// A second one, when the first one has been cut already.
		large := w.addMany(300, time.Second, queued("large"))
		small = append(small, w.addMany(2, 2*time.Second, queued("small"))...)
		w.settle(3 * time.Second)
		check()
		if late := w.late(small); late > 50*time.Millisecond {
			t.Errorf("beside a backlog a task started %v late", late)
		}
		w.restart(time.Second)
		small = w.addMany(3, 0, queued("small"))
		w.settle(time.Second)
		if late := w.late(small); late > 100*time.Millisecond { // so long a slot is in use
			t.Errorf("after a restart, beside a backlog, a task started %v late", late)
		}
		w.settle(3 * time.Minute)
		for _, k := range append(big, large...) {
			if got := w.task(k.ID); got.Status != dts.Success || got.Attempts != 1 {
				t.Fatalf("a task of %s is %s after %d attempts", k.Queue, got.Status, got.Attempts)
			}
		}
		// In order, but for those that were due already when they were made, and as far as a claim reads them together.
		place := map[string]int{}
		for i, k := range big[:1500] {
			place[k.ID] = i
		}
		furthest := 0
		for _, s := range w.run.list() {
			i, is := place[s.id]
			if is && i < furthest-64 {
				t.Fatalf("task %d started after task %d", i, furthest)
			}
			furthest = max(furthest, i)
		}
		if err := w.s.AtRest(); err != nil {
			t.Error(err)
		}
	})
}

// TestManyQueues: where very many queues have something, and none has much, memory stays bounded and everything runs.
func TestManyQueues(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.HeapLimit = 100; o.ClaimLimit = 4; o.HTTPSlots = 8 }, func(w *world) {
		all := w.addMany(2000, time.Second, func(i int, k *dts.Task) { k.Queue = fmt.Sprint("q", i%900) })
		if n := w.s.Status().HeapSize; n > 200 {
			t.Errorf("%d entries in memory", n)
		}
		w.settle(time.Minute)
		w.late(all)
		if err := w.s.AtRest(); err != nil {
			t.Error(err)
		}
	})
}

// TestPauseQueue: nothing of a paused queue starts, whatever its tasks were doing; what runs goes on; resumed, all of it
// runs, also after a restart.
func TestPauseQueue(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart ", restart), func(t *testing.T) {
			inWorld(t, func(o *sched.Options) { o.HTTPSlots = 4 }, func(w *world) {
				w.run.behave(takes(2 * time.Second))
				running := w.addMany(3, 0, queued("q"))
				w.settle(time.Second)
				var all []*dts.Task
				all = append(all, w.addMany(5, 0, queued("q"))...)                     // ready, when it is paused
				all = append(all, w.addMany(5, 1500*time.Millisecond, queued("q"))...) // claimed
				all = append(all, w.addMany(5, time.Minute, queued("q"))...)           // waiting
				retry := w.add(90*time.Minute, func(k *dts.Task) { k.Queue = "q" })
				if _, err := w.s.PauseQueue(w.ctx, dts.DefaultTenant, "q", "maintenance"); err != nil {
					t.Fatal(err)
				}
				all = append(all, w.addMany(5, 0, queued("q"))...) // made while it is paused
				other := w.addMany(2, 0, queued("other"))
				w.settle(10 * time.Second)
				if late := w.late(other); late > time.Second {
					t.Errorf("a task of another queue started %v late", late)
				}
				if n := len(w.run.list()); n != len(running)+len(other) {
					t.Fatalf("%d starts", n)
				}
				why, err := w.s.Why(w.ctx, dts.DefaultTenant, all[0].ID, time.Time{})
				if err != nil || !strings.Contains(why.Answer, `the queue "q" is paused`) || !strings.Contains(why.Answer, "maintenance") {
					t.Errorf("%v, %v", why, err)
				}
				// A verb works, and starts nothing.
				w.do(retry.ID, dts.RunNow)
				all = append(all, retry)
				w.do(all[0].ID, dts.Cancel)
				if restart {
					w.restart(time.Second)
				}
				w.settle(time.Hour)
				if n := len(w.run.list()); n != len(running)+len(other) {
					t.Fatalf("%d starts", n)
				}
				if n := w.s.Status().HeapSize; n != 0 {
					t.Errorf("%d entries of a paused queue are in memory", n)
				}
				resumed := w.now()
				if _, err := w.s.ResumeQueue(w.ctx, dts.DefaultTenant, "q"); err != nil {
					t.Fatal(err)
				}
				w.settle(time.Minute)
				w.late(all[1:])
				for _, s := range w.run.list()[len(running)+len(other):] {
					if s.at.Before(resumed) {
						t.Errorf("a start at %v, resumed at %v", s.at, resumed)
					}
				}
				if err := w.s.AtRest(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestPauseQueueInLine: tasks of a paused queue that stand in the line of a concurrency_key leave it to the others, and
// have their turn when the queue is resumed.
func TestPauseQueueInLine(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.run.behave(takes(time.Second))
		keyed := func(queue string) *dts.Task {
			return w.add(0, func(k *dts.Task) { k.Queue, k.ConcurrencyKey = queue, "k" })
		}
		first := keyed("other")
		w.settle(100 * time.Millisecond)
		var paused, others []*dts.Task
		for range 5 {
			paused = append(paused, keyed("q"))
		}
		others = append(others, keyed("other"), keyed("other"))
		w.settle(100 * time.Millisecond)
		if _, err := w.s.PauseQueue(w.ctx, dts.DefaultTenant, "q", ""); err != nil {
			t.Fatal(err)
		}
		w.settle(20 * time.Second)
		w.late(append(others, first))
		if n := len(w.run.list()); n != 3 {
			t.Fatalf("%d starts", n)
		}
		if _, err := w.s.ResumeQueue(w.ctx, dts.DefaultTenant, "q"); err != nil {
			t.Fatal(err)
		}
		w.settle(20 * time.Second)
		w.late(paused)
		if err := w.s.AtRest(); err != nil {
			t.Error(err)
		}
	})
}

// TestPauseQueueOfSchedules: however long a queue is paused, few occurrences wait for its end, and what was missed follows
// the catch-up mode.
func TestPauseQueueOfSchedules(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		r := w.every("* * * * *", func(r *dts.RecurringTask) { r.Queue, r.CatchUpMode = "q", dts.RunLatest })
		if _, err := w.s.PauseQueue(w.ctx, dts.DefaultTenant, "q", ""); err != nil {
			t.Fatal(err)
		}
		w.settle(5 * time.Hour)
		page, err := w.st.Tasks(w.ctx, dts.TaskFilter{TenantID: dts.DefaultTenant, RecurringTaskID: r.ID, Statuses: []dts.Status{dts.Pending}, Limit: 1000})
		if err != nil || len(page.Items) > 30 {
			t.Errorf("%d occurrences wait, %v", len(page.Items), err)
		}
		if _, err := w.s.ResumeQueue(w.ctx, dts.DefaultTenant, "q"); err != nil {
			t.Fatal(err)
		}
		w.settle(3 * time.Minute)
		if n := len(w.run.list()); n < 3 || n > 6 {
			t.Errorf("%d runs within three minutes of the end", n)
		}
	})
}

// pace fails where more than burst starts come at once, or more than the rate gives.
func pace(t *testing.T, starts []start, r dts.Rate) {
	t.Helper()
	for i := range starts {
		if i+r.Burst >= len(starts) {
			break
		}
		for _, k := range []int{r.Burst, 2*r.Burst + 1, 20} {
			if i+k < len(starts) && starts[i+k].at.Sub(starts[i].at) < r.Span(k-r.Burst+1)-time.Millisecond {
				t.Fatalf("%d starts in %v", k+1, starts[i+k].at.Sub(starts[i].at))
			}
		}
	}
}

func putRate(t *testing.T, s *sched.Scheduler, n, burst int) dts.Rate {
	t.Helper()
	q, err := s.PutQueue(context.Background(), &dts.Queue{Name: "q", Rate: n, Burst: burst})
	if err != nil {
		t.Fatal(err)
	}
	return q.StartRate()
}

// TestQueueRate: the attempts of a queue start evenly spread, across a restart too; a burst only after a rest; another
// queue is not held up; and another rate counts at once.
func TestQueueRate(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		r := putRate(t, w.s, 10, 3)
		began := w.now()
		all := w.addMany(60, 0, queued("q"))
		other := w.addMany(10, time.Second, queued("other"))
		w.settle(2 * time.Second)
		if late := w.late(other); late > time.Millisecond {
			t.Errorf("a task of another queue started %v late", late)
		}
		why, err := w.s.Why(w.ctx, dts.DefaultTenant, all[59].ID, time.Time{})
		if err != nil || !strings.Contains(why.Answer, `of the queue "q" no more than 10 start in 1 s`) {
			t.Errorf("%v, %v", why, err)
		}
		w.restart(300 * time.Millisecond)
		w.settle(10 * time.Second)
		w.late(all)
		var mine []start
		for _, s := range w.run.list() {
			if w.task(s.id).Queue == "q" {
				mine = append(mine, s)
			}
		}
		pace(t, mine, r)
		if took := mine[59].at.Sub(began); took < 5700*time.Millisecond || took > 6500*time.Millisecond {
			t.Errorf("60 took %v", took)
		}
		w.settle(time.Minute)
		n := len(w.run.list())
		w.addMany(10, 0, queued("q"))
		w.settle(10 * time.Millisecond)
		if got := len(w.run.list()) - n; got != 3 {
			t.Errorf("after a rest %d start at once", got)
		}
		putRate(t, w.s, 1, 1)
		w.settle(10 * time.Second)
		all = w.addMany(100, 0, queued("q"))
		w.settle(1500 * time.Millisecond)
		putRate(t, w.s, 1000, 1)
		w.settle(300 * time.Millisecond)
		w.late(all)
		if err := w.s.AtRest(); err != nil {
			t.Error(err)
		}
	})
}

// TestQueueRateOfServers: a rate holds for all servers together, and all of it is used.
func TestQueueRateOfServers(t *testing.T) {
	inCluster(t, 2, func(c *cluster) {
		r := putRate(t, c.nodes[0].s, 20, 1)
		time.Sleep(3 * time.Second) // until the other one knows
		began := time.Now()
		for i := range 100 {
			c.nodes[i%2].add(0, func(k *dts.Task) { k.Queue = "q" })
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		starts := c.starts()
		if len(starts) != 100 {
			t.Fatalf("%d starts", len(starts))
		}
		pace(t, starts, r)
		if took := starts[99].at.Sub(began); took > 6*time.Second {
			t.Errorf("100 at 20 a second took %v", took)
		}
	})
}

// TestSharesAcrossQueues: priorities have their shares, whichever queues they are in, and inside a priority queues take turns.
func TestSharesAcrossQueues(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.HTTPSlots = 1 }, func(w *world) {
		w.run.behave(takes(10 * time.Millisecond))
		got := map[string]int{}
		names := map[string]string{}
		for priority, queues := range map[dts.Priority][]string{dts.High: {"a", "b"}, dts.Medium: {"a", "c"}, dts.Low: {"b", "c", "d"}} {
			for _, queue := range queues {
				n := 300
				if queue == "b" {
					n = 600 // more of it does not mean more of the slots
				}
				for _, k := range w.addMany(n, time.Second, func(_ int, k *dts.Task) { k.Queue, k.Priority = queue, priority }) {
					names[k.ID] = string(priority) + " " + queue
				}
			}
		}
		w.settle(time.Second + 9*5*10*time.Millisecond*10)
		list := w.run.list()
		for _, s := range list[:450] {
			got[names[s.id]]++
			got[strings.Fields(names[s.id])[0]]++
		}
		for what, want := range map[string]int{"HIGH": 250, "MEDIUM": 150, "LOW": 50, "HIGH a": 125, "HIGH b": 125, "MEDIUM a": 75, "LOW b": 16, "LOW d": 16} {
			if got[what] < want-2 || got[what] > want+2 {
				t.Errorf("%s: %d of 450 starts, want %d", what, got[what], want)
			}
		}
	})
}

// TestOneQueue: where there is nobody to keep slots for, one queue has all of them, and no more.
func TestOneQueue(t *testing.T) {
	for _, slots := range []int{1, 2, 7} {
		inWorld(t, func(o *sched.Options) { o.OneQueue, o.HTTPSlots = true, slots }, func(w *world) {
			w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome { return takes(time.Second)(ctx, j) })
			w.addMany(3*slots, 0, queued("only"))
			w.settle(500 * time.Millisecond)
			if p := w.s.Status().Pools[0]; p.Running != slots {
				t.Errorf("%d of %d slots are used", p.Running, slots)
			}
			w.settle(2 * time.Second)
			if p := w.s.Status().Pools[0]; p.Running != slots {
				t.Errorf("later %d of %d slots are used", p.Running, slots)
			}
			w.settle(time.Minute)
		})
	}
}
