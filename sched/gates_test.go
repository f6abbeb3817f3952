package sched_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"dts"
	"dts/sched"
)

// asks makes a task ask for resources.
func asks(cpu float64, memory int64) func(*dts.Task) {
	return func(t *dts.Task) { t.Resources = &dts.Resources{CPU: cpu, MemoryMB: memory} }
}

// startOf returns when a task started first, counted from began; -1 when it has not.
func (w *world) startOf(id string, began time.Time) time.Duration {
	for _, s := range w.run.list() {
		if s.id == id {
			return s.at.Sub(began)
		}
	}
	return -1
}

func (w *world) why(id string) string {
	w.t.Helper()
	y, err := w.s.Why(w.ctx, dts.DefaultTenant, id, time.Time{})
	if err != nil {
		w.t.Fatal(err)
	}
	return y.Answer
}

func (w *world) wantAtRest() {
	w.t.Helper()
	if err := w.s.AtRest(); err != nil {
		w.t.Error(err)
	}
}

// Never more runs at once than the budget has, whatever comes, and everything runs in the end.
func TestResourcesWithinBudget(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.CPUBudget, o.MemoryBudgetMB = 4, 1000 }, func(w *world) {
		var mu sync.Mutex
		cpu, memory, runs, most := 0.0, int64(0), 0, 0.0
		w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome {
			r := j.Task.Resources
			mu.Lock()
			cpu, memory, runs = cpu+r.CPU, memory+r.MemoryMB, runs+1
			most = max(most, cpu)
			if (cpu > 4.0001 || memory > 1000) && runs > 1 {
				t.Errorf("%v cores and %d MiB in %d runs", cpu, memory, runs)
			}
			mu.Unlock()
			out := takes(time.Duration(1+j.Task.Seq%5)*time.Second)(ctx, j)
			mu.Lock()
			cpu, memory, runs = cpu-r.CPU, memory-r.MemoryMB, runs-1
			mu.Unlock()
			return out
		})
		var ids []string
		for i := range 200 {
			cpu, memory := 0.1+float64(i*7%23)/10, int64(i*131%700)
			if i%50 == 49 {
				cpu, memory = 9, 0 // more than there is
			}
			ids = append(ids, w.add(time.Duration(i%7)*time.Second, asks(cpu, memory)).ID)
		}
		w.settle(time.Hour)
		for _, id := range ids {
			if got := w.task(id); got.Status != dts.Success {
				t.Fatalf("%s is %s", id, got.Status)
			}
		}
		if most < 3.5 {
			t.Errorf("at most %v cores of 4 were used", most)
		}
		w.wantAtRest()
	})
}

// A big task lets smaller ones go first for ten seconds. Then none with requests starts before it does.
func TestBigTaskIsNotOvertakenForEver(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.CPUBudget = 4 }, func(w *world) {
		began := time.Now()
		w.run.behave(takes(3 * time.Second))
		for i := range 120 { // two cores' worth at each second: three are always taken, four never free
			w.add(time.Duration(i)*time.Second, asks(1, 0))
		}
		w.settle(5 * time.Second)
		big := w.add(0, func(t *dts.Task) { asks(4, 0)(t); t.Priority = dts.Low })
		free := w.add(20*time.Second, nil) // asks for nothing, and waits for nobody
		w.settle(5 * time.Second)
		if why := w.why(big.ID); !strings.Contains(why, "waits for resources: it asks for 4 cores, and of the 4 cores that this server has 3 cores are in use") {
			t.Error(why)
		}
		if st := w.s.Status(); st.Resources == nil || st.Resources.Waiting != 1 || st.Resources.CPUUsed != 3 || st.Pools[0].Parked != 1 {
			t.Errorf("%+v %+v", st.Resources, st.Pools)
		}
		w.settle(time.Hour)
		// Parked at 5 s, closed to others at 15 s, and the last of those ends 3 s later.
		if at := w.startOf(big.ID, began); at < 15*time.Second || at > 18100*time.Millisecond {
			t.Errorf("the big task started after %s", at)
		}
		if at := w.startOf(free.ID, began); at > 25100*time.Millisecond {
			t.Errorf("one that asks for nothing started after %s", at)
		}
		w.wantAtRest()
	})
}

// What asks for more than there is runs, alone.
func TestTooBigRunsAlone(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.CPUBudget, o.MemoryBudgetMB = 2, 100 }, func(w *world) {
		began := time.Now()
		w.run.behave(takes(10 * time.Second))
		w.add(0, asks(0, 10))
		w.settle(time.Second)
		big := w.add(0, asks(0, 500))
		w.settle(time.Second)
		if why := w.why(big.ID); !strings.Contains(why, "more than this server has") {
			t.Error(why)
		}
		w.settle(9 * time.Second)
		small := w.add(0, asks(0.5, 0))
		none := w.add(0, nil)
		w.settle(time.Minute)
		for _, c := range []struct {
			id   string
			want time.Duration
		}{{big.ID, 10 * time.Second}, {none.ID, 11 * time.Second}, {small.ID, 20 * time.Second}} {
			if at := w.startOf(c.id, began); at.Round(100*time.Millisecond) != c.want {
				t.Errorf("started after %s, want %s", at, c.want)
			}
		}
	})
}

// A verb reaches what is parked, and a shutdown leaves it for the next start.
func TestVerbsOnParked(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.CPUBudget = 1 }, func(w *world) {
		w.run.behave(takes(time.Minute))
		w.add(0, asks(1, 0))
		w.settle(time.Second)
		a, b, c := w.add(0, asks(1, 0)), w.add(0, asks(1, 0)), w.add(0, asks(1, 0))
		w.settle(time.Second)
		if got := w.do(a.ID, dts.Cancel); got.Status != dts.Cancelled {
			t.Errorf("%s", got.Status)
		}
		none := dts.Resources{}
		if _, err := w.s.ModifyTask(w.ctx, dts.DefaultTenant, b.ID, dts.TaskPatch{TaskTemplatePatch: dts.TaskTemplatePatch{Resources: &none}}); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Second)
		if got := w.task(b.ID); got.Status != dts.Running {
			t.Errorf("it asks for nothing any more, and is %s", got.Status)
		}
		w.run.behave(nil)
		w.restart(time.Second)
		w.settle(10 * time.Minute)
		if got := w.task(c.ID); got.Status != dts.Success {
			t.Errorf("after a restart it is %s", got.Status)
		}
		w.wantAtRest()
	})
}

// fakeCommand is a run that can be stopped: it needs so much time, and stands while it is stopped.
type fakeCommand struct {
	mu      sync.Mutex
	stopped bool
	changed chan struct{}
	log     []string
	began   time.Time
}

func (f *fakeCommand) Stop() error { return f.set(true, "stop") }
func (f *fakeCommand) Continue()   { _ = f.set(false, "go on") }

func (f *fakeCommand) set(stopped bool, what string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = stopped
	f.log = append(f.log, fmt.Sprintf("%s at %s", what, time.Since(f.began).Round(time.Second)))
	close(f.changed)
	f.changed = make(chan struct{})
	return nil
}

func (f *fakeCommand) run(ctx context.Context, j dts.Job, needs time.Duration) dts.Outcome {
	if j.Controls != nil {
		j.Controls(f)
	}
	for needs > 0 {
		f.mu.Lock()
		stopped, changed := f.stopped, f.changed
		f.mu.Unlock()
		var done <-chan time.Time
		from := time.Now()
		if !stopped {
			done = time.After(needs)
		}
		select {
		case <-done:
			needs = 0
		case <-changed:
			if !stopped {
				needs -= time.Since(from)
			}
		case <-ctx.Done():
			return takes(time.Hour)(ctx, j)
		}
	}
	return dts.Outcome{State: dts.AttemptSuccess}
}

// command makes a task a command.
func command(p dts.Priority, preemptible bool) func(*dts.Task) {
	return func(t *dts.Task) {
		t.TargetType, t.TargetConfig = dts.Command, []byte(`{"argv":["true"]}`)
		t.Priority, t.Preemptible = p, preemptible
	}
}

// commands runs LOW tasks for low, and others for as long as their name says.
func (w *world) commands(low time.Duration) *fakeCommand {
	f := &fakeCommand{changed: make(chan struct{}), began: time.Now()}
	w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome {
		if j.Task.Preemptible {
			return f.run(ctx, j, low)
		}
		d, err := time.ParseDuration(j.Task.Name)
		if err != nil {
			d = time.Second
		}
		return takes(d)(ctx, j)
	})
	return f
}

func withName(name string, edit func(*dts.Task)) func(*dts.Task) {
	return func(t *dts.Task) { edit(t); t.Name = name }
}

// A running LOW command stands while HIGH has its slot, and goes on when no HIGH waits.
func TestPreemption(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.CommandSlots = 1 }, func(w *world) {
		f := w.commands(20 * time.Second)
		events, stop := w.s.Subscribe(dts.DefaultTenant)
		defer stop()
		began := time.Now()
		low := w.add(0, command(dts.Low, true))
		w.settle(5 * time.Second)
		high := w.add(0, withName("3s", command(dts.High, false)))
		high2 := w.add(time.Second, withName("4s", command(dts.High, false)))
		medium := w.add(time.Second, withName("1s", command(dts.Medium, false)))
		w.settle(2 * time.Second)
		if why := w.why(low.ID); !strings.Contains(why, "its command stands for 2 s now, because work of high priority needs its slot") {
			t.Error(why)
		}
		if p := w.s.Status().Pools[1]; p.Stopped != 1 || p.Running != 2 {
			t.Errorf("%+v", p)
		}
		w.settle(time.Hour)
		for _, c := range []struct {
			what string
			id   string
			want time.Duration
		}{{"high", high.ID, 5 * time.Second}, {"the second high", high2.ID, 8 * time.Second}, {"medium", medium.ID, 27 * time.Second}} {
			if at := w.startOf(c.id, began); at.Round(100*time.Millisecond) != c.want {
				t.Errorf("%s started after %s, want %s", c.what, at, c.want)
			}
		}
		if got := strings.Join(f.log, ", "); got != "stop at 5s, go on at 12s" {
			t.Error(got)
		}
		a := w.attempts(low.ID)[0]
		if a.State != dts.AttemptSuccess || a.StoppedUS/1e6 != 7 || a.DurationUS/1e6 != 27 {
			t.Errorf("%+v", a)
		}
		var seen []string
		for len(events) > 0 {
			if e := <-events; e.TaskID == low.ID && (e.Type == dts.EventStopped || e.Type == dts.EventContinued) {
				seen = append(seen, string(e.Type))
			}
		}
		if strings.Join(seen, " ") != "stopped continued" {
			t.Errorf("events %v", seen)
		}
		w.wantAtRest()
	})
}

// Only LOW commands that allow it are stopped, and only for HIGH.
func TestNotPreempted(t *testing.T) {
	for name, c := range map[string]struct{ running, coming func(*dts.Task) }{
		"medium runs":   {withName("20s", command(dts.Medium, false)), command(dts.High, false)},
		"not allowed":   {withName("20s", command(dts.Low, false)), command(dts.High, false)},
		"medium waits":  {command(dts.Low, true), command(dts.Medium, false)},
		"another waits": {command(dts.Low, true), command(dts.Low, false)},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(o *sched.Options) { o.CommandSlots = 1 }, func(w *world) {
				w.commands(20 * time.Second)
				began := time.Now()
				w.add(0, c.running)
				w.settle(time.Second)
				next := w.add(0, c.coming)
				w.settle(time.Hour)
				if at := w.startOf(next.ID, began); at < 20*time.Second {
					t.Errorf("started after %s", at)
				}
			})
		})
	}
}

// Under HIGH work without end a LOW command that can be stopped runs for as long as it stands, and MEDIUM has its share.
func TestPreemptedIsNotStarved(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.CommandSlots = 2 }, func(w *world) {
		w.commands(100 * time.Second)
		began := time.Now()
		low := w.add(0, command(dts.Low, true))
		low2 := w.add(0, command(dts.Low, true))
		w.settle(time.Second)
		for range 400 {
			w.add(0, withName("1500ms", command(dts.High, false)))
		}
		medium := w.add(0, withName("1s", command(dts.Medium, false)))
		most := 0
		for range 600 {
			w.settle(time.Second)
			p := w.s.Status().Pools[1]
			most = max(most, p.Running-p.Stopped)
		}
		if most > 4 {
			t.Errorf("%d commands ran at once with 2 slots; at most twice as many may", most)
		}
		for _, id := range []string{low.ID, low2.ID} {
			a := w.attempts(id)[0]
			if a.State != dts.AttemptSuccess || a.DurationUS > 235e6 || a.StoppedUS < 30e6 {
				t.Errorf("%s after %d s, of which it stood for %d s", a.State, a.DurationUS/1e6, a.StoppedUS/1e6)
			}
		}
		if at := w.startOf(medium.ID, began); at < 0 || at > 4*time.Minute {
			t.Errorf("MEDIUM started after %s", at)
		}
		w.settle(time.Hour)
		w.wantAtRest()
	})
}

// A stopped command can be cancelled, and a server that stops lets it go on first.
func TestStoppedCommandEnds(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.CommandSlots = 1; o.DrainTimeout = time.Minute }, func(w *world) {
		f := w.commands(20 * time.Second)
		low := w.add(0, command(dts.Low, true))
		w.settle(time.Second)
		w.add(0, withName("10s", command(dts.High, false)))
		w.settle(time.Second)
		if got := w.do(low.ID, dts.Cancel); got.Status != dts.Cancelled && got.Status != dts.Running {
			t.Errorf("%s", got.Status)
		}
		w.settle(time.Second)
		if got := w.task(low.ID); got.Status != dts.Cancelled {
			t.Errorf("%s", got.Status)
		}
		if p := w.s.Status().Pools[1]; p.Stopped != 0 || p.Running != 1 {
			t.Errorf("%+v", p)
		}
		w.settle(time.Minute)
		w.wantAtRest()

		low = w.add(0, command(dts.Low, true))
		w.settle(time.Second)
		w.add(0, withName("50s", command(dts.High, false)))
		w.settle(time.Second)
		w.restart(time.Second)
		if got := w.task(low.ID); got.Status != dts.Success {
			t.Errorf("after the drain it is %s: %v", got.Status, f.log)
		}
	})
}
