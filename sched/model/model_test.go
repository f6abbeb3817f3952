package model_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"dts"
)

// ending is what a target makes of an attempt.
type ending string

const (
	blocks   ending = "blocks" // until something ends it
	succeeds ending = "succeeds"
	fails    ending = "fails"
	fatal    ending = "fails for good" // another attempt would not help
)

// task is what the model knows of a task.
type task struct {
	status   dts.Status
	reason   dts.Reason // of SKIPPED
	at       time.Time  // when it is to start next
	expires  time.Time  // not started after this; zero: never expires
	attempts []dts.AttemptState
	started  time.Time // the attempt that runs, or was the last one
	max      int
	delay    time.Duration // before a retry
	once     bool          // AT_MOST_ONCE
	endings  []ending      // of its attempts; the last one again for what follows

	any, fail bool // depends_mode ANY; on_dependency_failure FAIL
	waits     bool // for what it depends on
}

// model is the state of all tasks, by the numbers under which they were created.
type model struct {
	now   time.Time
	tasks map[int]*task
	edges map[pair]*edge

	// While a crash is near: what decides whether a write is done, and the tasks of which nothing more is written.
	way    *tape
	frozen map[int]bool
}

// startShown is after how long a run is stored as running.
const startShown = 50 * time.Millisecond

func newModel(now time.Time) *model {
	return &model{now: now, tasks: map[int]*task{}, edges: map[pair]*edge{}}
}

func (m *model) clone() *model {
	c := newModel(m.now)
	for n, t := range m.tasks {
		k := *t
		k.attempts = slices.Clone(t.attempts)
		c.tasks[n] = &k
	}
	for p, e := range m.edges {
		k := *e
		c.edges[p] = &k
	}
	return c
}

// numbers returns the tasks' numbers in order.
func (m *model) numbers() []int { return slices.Sorted(maps.Keys(m.tasks)) }

// ending is what the target makes of attempt number of a task.
func (t *task) ending(number int) ending { return t.endings[min(number, len(t.endings))-1] }

// advance lets time pass until to. What is due starts, and what does not block ends at once.
func (m *model) advance(to time.Time) {
	for {
		next := -1
		for _, n := range m.numbers() {
			if t := m.tasks[n]; m.startable(n) && !t.at.After(to) && (next < 0 || t.at.Before(m.tasks[next].at)) {
				next = n
			}
		}
		if next < 0 {
			m.now = to
			return
		}
		if t := m.tasks[next]; t.at.After(m.now) {
			m.now = t.at
		}
		m.start(next)
	}
}

// pass lets time pass while no server runs.
func (m *model) pass(to time.Time) { m.now = to }

// startable reports whether a task waits for nothing but its time.
func (m *model) startable(n int) bool {
	t := m.tasks[n]
	return t.status == dts.Pending && !t.waits && !m.frozen[n]
}

func (m *model) start(n int) {
	t := m.tasks[n]
	e := t.ending(len(t.attempts) + 1)
	if (t.once || e != blocks) && !m.writes(n) { // else lose decides
		return
	}
	t.status, t.started = dts.Running, m.now
	t.attempts = append(t.attempts, dts.AttemptRunning)
	if e != blocks && (!t.once || m.writes(n)) { // the start of what runs at most once is a write of its own
		m.end(n, e)
	}
}

// writes reports whether the next write about a task is done. If not, nothing that follows from it is.
func (m *model) writes(n int) bool {
	if m.way != nil && !m.way.choose() {
		m.frozen[n] = true
	}
	return !m.frozen[n]
}

// end ends the attempt that runs.
func (m *model) end(n int, e ending) {
	t := m.tasks[n]
	last := &t.attempts[len(t.attempts)-1]
	switch e {
	case succeeds:
		*last, t.status = dts.AttemptSuccess, dts.Success
	case fails:
		*last, t.status = dts.AttemptFailed, dts.Failed
		if len(t.attempts) < t.max && !t.once {
			t.status, t.at = dts.Pending, m.now.Add(t.delay)
		}
	case fatal:
		*last, t.status = dts.AttemptFailed, dts.Failed
	default:
		panic(fmt.Sprintf("what blocks does not end by itself: task %d", n))
	}
	m.resolve()
}

// lose is the end of every attempt when the server crashes or stops. One whose start has not been written has not been.
func (m *model) lose(written func(*task) bool) {
	for _, n := range m.numbers() {
		t := m.tasks[n]
		if t.status != dts.Running {
			continue
		}
		if !written(t) {
			t.status, t.attempts = dts.Pending, t.attempts[:len(t.attempts)-1]
			continue
		}
		t.attempts[len(t.attempts)-1] = dts.AttemptLost
		if t.once || len(t.attempts) >= max(t.max, 3) { // three times at least once is promised
			t.status = dts.Failed
		} else {
			t.status, t.at = dts.Pending, m.now
		}
	}
	m.resolve()
}

// shown reports whether the start of a run has been written.
func (m *model) shown(t *task) bool { return t.once || !t.started.Add(startShown).After(m.now) }

// do does a verb to a task, and returns whether it is refused.
func (m *model) do(v dts.Verb, n int) (code dts.Code) {
	t := m.tasks[n]
	if t == nil {
		return dts.ErrNotFound
	}
	ended := t.status != dts.Pending && t.status != dts.Running
	switch {
	case v == dts.Cancel && t.status == dts.Pending:
		t.status = dts.Cancelled
	case v == dts.Cancel && t.status == dts.Running:
		t.status, t.attempts[len(t.attempts)-1] = dts.Cancelled, dts.AttemptCancelled
	case v == dts.Cancel && t.status == dts.Cancelled:
	case v == dts.RetryNow && ended && t.status != dts.Success:
		t.status, t.reason, t.at = dts.Pending, "", m.now
		t.max = max(t.max, len(t.attempts)+1)
		m.override(n, dts.DependencyOpen, dts.DependencyFailed)
		m.reopen(n)
	case v == dts.ForceComplete && ended || v == dts.ForceComplete && t.status == dts.Pending:
		t.status = dts.Success
	case v == dts.RunNow && t.status == dts.Pending:
		t.at = m.now
		if t.waits {
			m.override(n, dts.DependencyOpen)
		}
	case v == dts.Delete && t.status != dts.Running:
		delete(m.tasks, n)
		m.forget(n)
	default:
		return dts.ErrConflict
	}
	m.resolve()
	return ""
}
