package model_test

import (
	"context"
	"fmt"
	"strconv"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"dts"
)

const (
	tick = 10 * time.Second // steps begin at its multiples; whatever takes time takes multiples of it
	look = time.Second      // after a step it is compared
	most = 24               // tasks at a time
)

// history is one random history, and its model.
type history struct {
	w     *world
	m     *model
	made  int // tasks
	steps *int
}

// request is something that is asked of the server, and what the model says to it.
type request struct {
	text  string
	real  func() error
	model func(m *model) dts.Code // "" where it is done
}

// step does one request to both.
func (h *history) step(t *rapid.T, q request) {
	t.Logf("%v: %s", time.Since(h.w.began), q.text)
	err := q.real()
	if want := q.model(h.m); dts.CodeOf(err) != want && (err != nil || want != "") {
		t.Logf("%v", err)
		t.Fatalf("answer: %s: %q; the model says %q", q.text, dts.CodeOf(err), want)
	}
}

// compare lets what was done have its effects, and looks whether both agree; then it goes on to the next tick.
func (h *history) compare(t *rapid.T) {
	*h.steps++
	settle(look)
	h.m.advance(time.Now())
	s, err := h.w.read()
	if err != nil {
		t.Fatal(err)
	}
	if list := h.w.differences(h.m, s); len(list) > 0 {
		t.Fatalf("%v: difference:\n  %s", time.Since(h.w.began), lines(list))
	}
	h.wait(1)
}

// wait goes on to the next tick, or a later one.
func (h *history) wait(ticks int) {
	settle(h.untilTick(ticks))
	h.m.advance(time.Now())
}

// untilTick is how long it is until the next tick, or a later one.
func (h *history) untilTick(ticks int) time.Duration {
	now := time.Since(h.w.began)
	return now.Truncate(tick) + time.Duration(ticks)*tick - now
}

// actions are what a history is made of.
func (h *history) actions() map[string]func(*rapid.T) {
	plain := func(draw func(*rapid.T) request) func(*rapid.T) {
		return func(t *rapid.T) { h.step(t, draw(t)) }
	}
	return map[string]func(*rapid.T){
		"create":       plain(h.create),
		"create some":  plain(h.create),
		"verb":         plain(h.verb),
		"another verb": plain(h.verb),
		"move":         plain(h.move),
		"end":          plain(h.end),
		"end one":      plain(h.end),
		"wait":         func(t *rapid.T) { h.wait(rapid.IntRange(1, 5).Draw(t, "ticks")) },
		"restart":      h.restart,
		"crash":        h.crash,
		"crash while":  h.crashWhile,
		"":             h.compare,
	}
}

// create draws tasks that are created together.
func (h *history) create(t *rapid.T) request {
	count := rapid.SampledFrom([]int{1, 1, 1, 2, 5}).Draw(t, "tasks")
	if len(h.m.tasks)+count > most {
		t.Skip("there are enough")
	}
	now := time.Now()
	var real []*dts.Task
	made := map[int]*task{}
	for range count {
		h.made++
		k := &task{status: dts.Pending, at: now.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 0, 1, 2, 5}).Draw(t, "due")) * tick), max: 1}
		for range rapid.IntRange(1, 3).Draw(t, "endings") {
			k.endings = append(k.endings, rapid.SampledFrom([]ending{blocks, blocks, succeeds, fails, fails, fatal}).Draw(t, "ending"))
		}
		if k.once = rapid.IntRange(0, 4).Draw(t, "once") == 0; !k.once {
			k.max = rapid.IntRange(1, 3).Draw(t, "attempts")
		}
		k.delay = time.Duration(rapid.IntRange(1, 3).Draw(t, "delay")) * tick
		real = append(real, realTask(t, h.made, k, now))
		made[h.made] = k
	}
	return request{
		text: fmt.Sprintf("create %d tasks, up to %d", count, h.made),
		real: func() error {
			list, err := h.w.s.CreateTasks(context.Background(), real)
			for _, c := range list {
				n, _ := strconv.Atoi(c.Item.Name)
				h.w.ids[n] = c.Item.ID
			}
			return err
		},
		model: func(m *model) dts.Code {
			for n, k := range made {
				c := *k
				m.tasks[n] = &c
			}
			return ""
		},
	}
}

// realTask is the request that makes a task.
func realTask(t *rapid.T, n int, k *task, now time.Time) *dts.Task {
	no := false
	r := &dts.Task{RunAt: k.at, Spec: dts.Spec{Name: strconv.Itoa(n), TargetType: dts.HTTPCallback, TargetConfig: config(k.endings),
		Priority: rapid.SampledFrom([]dts.Priority{dts.High, dts.Medium, dts.Low}).Draw(t, "priority"),
		Retry:    dts.Retry{MaxAttempts: k.max, Backoff: dts.Fixed, BaseDelayMS: k.delay.Milliseconds(), Jitter: &no}}}
	if k.once {
		r.Delivery = dts.AtMostOnce
	}
	if err := r.Normalize(now); err != nil {
		t.Fatal(err)
	}
	return r
}

// some draws a task, also one that has been deleted.
func (h *history) some(t *rapid.T) int {
	if len(h.w.ids) == 0 {
		t.Skip("there is none")
	}
	list := make([]int, 0, len(h.w.ids))
	for n := 1; n <= h.made; n++ {
		if h.w.ids[n] != "" && (h.m.tasks[n] != nil || n%8 == 0) {
			list = append(list, n)
		}
	}
	if len(list) == 0 {
		t.Skip("there is none")
	}
	return rapid.SampledFrom(list).Draw(t, "task")
}

func (h *history) verb(t *rapid.T) request {
	v := rapid.SampledFrom([]dts.Verb{dts.Cancel, dts.RetryNow, dts.RetryNow, dts.ForceComplete, dts.RunNow, dts.Delete}).Draw(t, "verb")
	n := h.some(t)
	return request{
		text: fmt.Sprintf("%s task %d", v, n),
		real: func() error {
			_, err := h.w.s.DoTask(context.Background(), dts.DefaultTenant, h.w.ids[n], v, "me")
			return err
		},
		model: func(m *model) dts.Code { return m.do(v, n) },
	}
}

// move gives a task another time.
func (h *history) move(t *rapid.T) request {
	n, at := h.some(t), time.Now().Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "due"))*tick)
	return request{
		text: fmt.Sprintf("move task %d to %v", n, at.Sub(h.w.began)),
		real: func() error {
			_, err := h.w.s.ModifyTask(context.Background(), dts.DefaultTenant, h.w.ids[n], dts.TaskPatch{RunAt: &at})
			return err
		},
		model: func(m *model) dts.Code {
			k := m.tasks[n]
			switch {
			case k == nil:
				return dts.ErrNotFound
			case k.status != dts.Pending:
				return dts.ErrConflict
			}
			k.at = at
			return ""
		},
	}
}

// end ends an attempt that blocks.
func (h *history) end(t *rapid.T) request {
	var list []int
	for _, n := range h.m.numbers() {
		if h.m.tasks[n].status == dts.Running {
			list = append(list, n)
		}
	}
	if len(list) == 0 {
		t.Skip("nothing runs")
	}
	n := rapid.SampledFrom(list).Draw(t, "task")
	e := rapid.SampledFrom([]ending{succeeds, fails, fails, fatal}).Draw(t, "ending")
	return request{
		text: fmt.Sprintf("task %d %s", n, e),
		real: func() error {
			h.w.run.mu.Lock()
			defer h.w.run.mu.Unlock()
			l := h.w.run.live[strconv.Itoa(n)]
			if l == nil {
				return fmt.Errorf("task %d does not run", n)
			}
			l.end <- e
			return nil
		},
		model: func(m *model) dts.Code {
			m.end(n, e)
			return ""
		},
	}
}

// server ends the server, one way or another, and starts it again.
func (h *history) server(t *rapid.T) {
	switch rapid.IntRange(0, 3).Draw(t, "how") {
	case 0:
		h.restart(t)
	case 1:
		h.crash(t)
	default:
		h.crashWhile(t)
	}
}

// restart stops the server well, and starts it again.
func (h *history) restart(t *rapid.T) {
	t.Logf("%v: restart", time.Since(h.w.began))
	if err := h.w.stop(); err != nil {
		t.Fatalf("stop: %v", err)
	}
	h.m.pass(time.Now()) // nothing starts any more
	h.m.lose(func(*task) bool { return true })
	h.up(t)
}

// crash ends the server while nothing is under way, and starts it again.
func (h *history) crash(t *rapid.T) {
	t.Logf("%v: crash", time.Since(h.w.began))
	if err := h.w.crash(); err != nil {
		t.Fatalf("crash: %v", err)
	}
	h.m.lose(h.m.shown)
	h.up(t)
}

// up starts the server again, perhaps after a while.
func (h *history) up(t *rapid.T) {
	time.Sleep(h.untilTick(rapid.SampledFrom([]int{1, 1, 2, 5}).Draw(t, "down")))
	h.m.pass(time.Now())
	if err := h.w.start(); err != nil {
		t.Fatalf("start: %v", err)
	}
	synctest.Wait()
}
