package model_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"dts"
)

const (
	tick = 10 * time.Second // steps begin at its multiples; whatever takes time takes multiples of it
	look = 3 * time.Second  // after a step it is compared
	most = 30               // tasks at a time
)

// history is one random history, and its model.
type history struct {
	w     *world
	m     *model
	made  int // tasks
	tally *tally
}

// tally counts what has been done, so that one sees whether anything is left out.
type tally struct {
	steps int
	seen  map[string]int
}

func (y *tally) note(what string) { y.seen[what]++ }

// String lists what was counted.
func (y *tally) String() string {
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(y.seen)) {
		fmt.Fprintf(&b, "\n  %8d %s", y.seen[what], what)
	}
	return b.String()
}

// end counts what the history has led to.
func (h *history) close() {
	for _, k := range h.m.tasks {
		h.tally.note(strings.TrimSpace("end: " + string(k.status) + " " + string(k.reason)))
	}
	for _, e := range h.m.edges {
		h.tally.note("end: " + string(e.kind) + " " + string(e.state))
	}
}

// request is something that is asked of the server, and what the model says to it.
type request struct {
	kind  string
	text  string
	real  func() error
	model func(m *model) dts.Code // "" where it is done
}

// do does one request to both.
func (h *history) do(t *rapid.T, q request) {
	t.Logf("%v: %s", time.Since(h.w.began), q.text)
	err := q.real()
	want := q.model(h.m)
	h.tally.note(strings.TrimSpace(q.kind + " " + string(want)))
	if dts.CodeOf(err) != want && (err != nil || want != "") {
		t.Logf("%v", err)
		t.Fatalf("answer: %s: %q; the model says %q", q.text, dts.CodeOf(err), want)
	}
}

// compare lets what was done have its effects, and looks whether both agree; then it goes on to the next tick.
func (h *history) compare(t *rapid.T) {
	h.tally.steps++
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

// step draws what is done next, and does it.
func (h *history) step(t *rapid.T) {
	switch n := uniform(t, "step", 100); {
	case n < 26 && len(h.m.tasks) < most:
		h.do(t, h.create(t))
	case n < 30:
		h.do(t, h.change(t, dts.Delete))
	case n < 41:
		h.do(t, h.change(t, pick(t, "verb", dts.Cancel, dts.RetryNow, dts.RetryNow, dts.ForceComplete, dts.RunNow, dts.PauseTask, dts.ResumeTask)))
	case n < 45:
		h.do(t, h.changeMany(t))
	case n < 48:
		h.do(t, h.move(t))
	case n < 60:
		h.do(t, h.dependOn(t))
	case n < 64:
		h.do(t, h.dependLess(t))
	case n < 88:
		h.do(t, h.end(t))
	case n < 96:
		h.wait(pick(t, "ticks", 1, 1, 3, 10, 30))
	default:
		h.server(t)
	}
}

// uniform draws a number below n, each one as often as the other: rapid's own ranges prefer what is small.
func uniform(t *rapid.T, name string, n int) int {
	const bits = 10
	return rapid.Custom(func(t *rapid.T) int {
		v := 0
		for range bits {
			v *= 2
			if rapid.Bool().Draw(t, "bit") {
				v++
			}
		}
		return v * n >> bits
	}).Draw(t, name)
}

func pick[T any](t *rapid.T, name string, list ...T) T { return list[uniform(t, name, len(list))] }

// create draws tasks that are created together.
func (h *history) create(t *rapid.T) request {
	count := pick(t, "tasks", 1, 1, 1, 2, 5)
	now := time.Now()
	var real []*dts.Task
	var policy dts.DedupePolicy
	made, parents := map[int]*task{}, map[int]map[int]dts.DependencyType{}
	for range count {
		h.made++
		k := &task{status: dts.Pending, at: now.Add(h.due(t)), max: 1}
		for range 1 + uniform(t, "endings", 3) {
			k.endings = append(k.endings, pick(t, "ending", blocks, blocks, blocks, blocks, succeeds, succeeds, fails, fails, fatal))
		}
		if k.once = uniform(t, "once", 5) == 0; !k.once {
			k.max = 1 + uniform(t, "attempts", 3)
		}
		k.delay = time.Duration(pick(t, "delay", 1, 3, 10)) * tick
		if count == 1 && uniform(t, "keyed", 3) == 0 {
			k.key, policy = pick(t, "key", "a", "b"), pick(t, "policy", dts.DedupeReject, dts.DedupeKeepFirst, dts.DedupeReplace)
		}
		if uniform(t, "expiry", 4) == 0 {
			k.expires = k.at.Add(time.Duration(pick(t, "expires", 0, 1, 5, 30))*tick + tick/2)
		}
		r := realTask(t, h.made, k, now)
		r.DedupeKey, r.DedupePolicy = k.key, policy
		on := h.parents(t, made)
		if k.key != "" { // one error at a time
			maps.DeleteFunc(on, func(parent int, _ dts.DependencyType) bool { return h.m.tasks[parent] == nil })
		}
		if len(on) > 0 {
			k.any = uniform(t, "any", 3) == 0
			k.fail = uniform(t, "fail", 4) == 0
		}
		h.setParents(r, k, on, real)
		real = append(real, r)
		made[h.made], parents[h.made] = k, on
	}
	return request{
		kind: strings.TrimSpace("create " + string(policy)),
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
			for _, on := range parents {
				for parent := range on {
					if m.tasks[parent] == nil && made[parent] == nil {
						return dts.ErrInvalid // it was deleted
					}
				}
			}
			for n, k := range made {
				if other := m.unfinished(k.key); other != 0 {
					switch policy {
					case dts.DedupeReject:
						return dts.ErrConflict
					case dts.DedupeKeepFirst:
						return ""
					}
					m.do(dts.Cancel, other)
				}
				c := *k
				c.due = c.at
				m.tasks[n] = &c
			}
			for n, on := range parents {
				m.depend(n, on)
			}
			m.resolve()
			return ""
		},
	}
}

// parents draws what a task depends on: among those that are there, and those that are made with it.
func (h *history) parents(t *rapid.T, made map[int]*task) map[int]dts.DependencyType {
	list := slices.Sorted(maps.Keys(made))
	open := slices.Clone(list) // of those, what has not ended
	for n := 1; n <= h.made; n++ {
		k := h.m.tasks[n]
		if h.w.ids[n] != "" && (k != nil || n%8 == 0) { // of those that were deleted, a few
			list = append(list, n)
		}
		if k != nil && !k.ended() {
			open = append(open, n)
		}
	}
	on := map[int]dts.DependencyType{}
	if len(list) > 0 {
		for range pick(t, "parents", 0, 1, 1, 2, 2, 3) {
			n := pick(t, "parent", list...)
			if len(open) > 0 && uniform(t, "open", 4) > 0 {
				n = pick(t, "parent", open...)
			}
			on[n] = pick(t, "type", dts.MustSucceed, dts.MustSucceed, dts.MustFinish, dts.MustFail)
		}
	}
	return on
}

// setParents puts what a task depends on into the request that makes it; others are made by the same request.
func (h *history) setParents(r *dts.Task, k *task, on map[int]dts.DependencyType, others []*dts.Task) {
	if k.any {
		r.DependsMode = dts.DependsAny
	}
	if k.fail {
		r.OnDependencyFailure = dts.FailOnFailure
	}
	for _, parent := range slices.Sorted(maps.Keys(on)) {
		id := h.w.ids[parent]
		for _, o := range others {
			if o.Name == strconv.Itoa(parent) {
				id = o.ID
			}
		}
		r.DependsOn = append(r.DependsOn, dts.DependsOn{TaskID: id, Type: on[parent]})
	}
}

// dependOn makes a task depend on others.
func (h *history) dependOn(t *rapid.T) request {
	n := h.some(t, func(m *model, n int) bool { return m.unstarted(m.tasks[n]) })
	on := h.parents(t, nil)
	if len(on) == 0 {
		t.Skip("another step is drawn: there is nothing to depend on")
	}
	var list []dts.DependsOn
	for _, parent := range slices.Sorted(maps.Keys(on)) {
		list = append(list, dts.DependsOn{TaskID: h.w.ids[parent], Type: on[parent]})
	}
	return request{
		kind: "depend", text: fmt.Sprintf("task %d depends on %v", n, on),
		real: func() error {
			_, err := h.w.s.AddDependencies(context.Background(), dts.DefaultTenant, h.w.ids[n], list)
			return err
		},
		model: func(m *model) dts.Code { return m.addDependencies(n, on) },
	}
}

// dependLess makes a task depend on one less.
func (h *history) dependLess(t *rapid.T) request {
	list := h.m.pairs()
	if len(list) == 0 {
		t.Skip("another step is drawn: no task depends on another one")
	}
	if fit := slices.DeleteFunc(slices.Clone(list), func(p pair) bool { return h.m.clone().removeDependency(p.child, p.parent) != "" }); len(fit) > 0 && uniform(t, "fit", 4) > 0 {
		list = fit
	}
	p := pick(t, "dependency", list...)
	if uniform(t, "wrong", 10) == 0 {
		p.parent = pick(t, "parent", h.m.numbers()...)
	}
	return request{
		kind: "depend less", text: fmt.Sprintf("task %d does not depend on %d", p.child, p.parent),
		real: func() error {
			_, err := h.w.s.RemoveDependency(context.Background(), dts.DefaultTenant, h.w.ids[p.child], h.w.ids[p.parent])
			return err
		},
		model: func(m *model) dts.Code { return m.removeDependency(p.child, p.parent) },
	}
}

// due draws how long it is until a task is due: often so long that it is claimed, and has not started, at the next step.
func (h *history) due(t *rapid.T) time.Duration {
	d := time.Duration(pick(t, "due", 0, 0, 0, 1, 1, 3, 10, 30, 100)) * tick
	if uniform(t, "claimed", 2) == 1 {
		d += time.Second
	}
	return d
}

// realTask is the request that makes a task.
func realTask(t *rapid.T, n int, k *task, now time.Time) *dts.Task {
	no := false
	r := &dts.Task{RunAt: k.at, ExpiresAt: k.expires, Spec: dts.Spec{Name: strconv.Itoa(n), TargetType: dts.HTTPCallback, TargetConfig: config(k.endings),
		Priority: pick(t, "priority", dts.High, dts.Medium, dts.Low),
		Retry:    dts.Retry{MaxAttempts: k.max, Backoff: dts.Fixed, BaseDelayMS: k.delay.Milliseconds(), Jitter: &no}}}
	if k.once {
		r.Delivery = dts.AtMostOnce
	}
	if err := r.Normalize(now); err != nil {
		t.Fatal(err)
	}
	return r
}

// some draws a task: mostly one that is fit for what is to be done, else any, also one that has been deleted.
func (h *history) some(t *rapid.T, fit func(m *model, n int) bool) int {
	var list, others []int
	for n := 1; n <= h.made; n++ {
		switch {
		case h.w.ids[n] == "": // its creation was refused, or went with a crash
		case h.m.tasks[n] != nil && fit(h.m.clone(), n):
			list = append(list, n)
		case h.m.tasks[n] != nil || n%8 == 0:
			others = append(others, n)
		}
	}
	if len(others) > 0 && (len(list) == 0 || uniform(t, "unfit", 8) == 0) {
		list = others
	}
	if len(list) == 0 {
		t.Skip("another step is drawn: there is no task yet that it could be about")
	}
	return pick(t, "task", list...)
}

// change does a verb to a task.
func (h *history) change(t *rapid.T, v dts.Verb) request {
	n := h.some(t, func(m *model, n int) bool { return (v != dts.Delete || m.tasks[n].ended()) && m.do(v, n) == "" })
	return request{
		kind: string(v), text: fmt.Sprintf("%s task %d", v, n),
		real: func() error {
			_, err := h.w.s.DoTask(context.Background(), dts.DefaultTenant, h.w.ids[n], v, "me")
			return err
		},
		model: func(m *model) dts.Code { return m.do(v, n) },
	}
}

// changeMany does a verb to several tasks at once, from the newest to the oldest.
func (h *history) changeMany(t *rapid.T) request {
	settle(time.Millisecond) // what ends at the very instant is not retried
	h.m.advance(time.Now())
	v := pick(t, "verb", dts.BulkCancel, dts.BulkRetry, dts.BulkDelete, dts.BulkPause, dts.BulkResume)
	var list []int
	var ids []string
	keys := map[string]bool{} // of two with one key it depends on how quickly the first one ends what becomes of the second
	for n := h.made; n > 0; n-- {
		task := h.m.tasks[n]
		if task != nil && v == dts.BulkRetry && task.ended() && h.m.unfinished(task.key) != 0 {
			continue // one that is refused has them done one by one, and how quickly they end decides what the next one finds
		}
		if task != nil && !keys[task.key] && uniform(t, "this one", 4) == 0 {
			keys[task.key] = task.key != ""
			list, ids = append(list, n), append(ids, h.w.ids[n])
		}
	}
	if len(list) == 0 {
		t.Skip("another step is drawn: there is no task yet that it could be about")
	}
	return request{
		kind: "bulk " + string(v), text: fmt.Sprintf("%s tasks %v", v, list),
		real: func() error {
			_, err := h.w.s.Bulk(context.Background(), dts.BulkChange{Verb: v, Filter: dts.TaskFilter{TenantID: dts.DefaultTenant, IDs: ids}, Actor: "me"})
			return err
		},
		model: func(m *model) dts.Code {
			var retried, running []int
			for _, n := range list {
				switch t := m.tasks[n]; {
				case t.status == dts.Running:
					running = append(running, n)
				case m.apply(v.Verb(), n) == "" && v == dts.BulkRetry:
					retried = append(retried, n)
				}
			}
			m.resolve()
			for _, n := range running { // they are killed after the others have been changed, together
				m.do(v.Verb(), n)
			}
			for _, n := range retried {
				m.override(n, dts.DependencyOpen, dts.DependencyFailed) // it runs, whatever else is retried with it
			}
			return ""
		},
	}
}

// move gives a task another time.
func (h *history) move(t *rapid.T) request {
	n := h.some(t, func(m *model, n int) bool { return m.tasks[n].status == dts.Pending })
	at := time.Now().Add(h.due(t))
	return request{
		kind: "move", text: fmt.Sprintf("move task %d to %v", n, at.Sub(h.w.began)),
		real: func() error {
			_, err := h.w.s.ModifyTask(context.Background(), dts.DefaultTenant, h.w.ids[n], dts.TaskPatch{RunAt: &at})
			return err
		},
		model: func(m *model) dts.Code { return m.move(n, at) },
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
		t.Skip("another step is drawn: nothing runs that could end")
	}
	n := pick(t, "task", list...)
	e := pick(t, "ending", succeeds, succeeds, fails, fails, fatal)
	return request{
		kind: string("run " + e), text: fmt.Sprintf("task %d %s", n, e),
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
	switch uniform(t, "how", 5) {
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
	h.tally.note("restart")
	if err := h.w.stop(); err != nil {
		t.Fatalf("stop: %v", err)
	}
	h.m.lose(func(*task) bool { return true })
	h.up(t)
}

// crash ends the server while nothing is under way, and starts it again.
func (h *history) crash(t *rapid.T) {
	t.Logf("%v: crash", time.Since(h.w.began))
	h.tally.note("crash")
	if err := h.w.crash(); err != nil {
		t.Fatalf("crash: %v", err)
	}
	h.m.lose(h.m.shown)
	h.up(t)
}

// up starts the server again, perhaps after a while.
func (h *history) up(t *rapid.T) {
	time.Sleep(h.untilTick(pick(t, "down", 1, 1, 2, 5)))
	h.m.boot(time.Now())
	if err := h.w.start(); err != nil {
		t.Fatalf("start: %v", err)
	}
	synctest.Wait()
}
