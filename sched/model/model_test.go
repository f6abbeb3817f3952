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
	due      time.Time  // what it was created for, or moved to
	again    time.Time  // when the next attempt was to start, as its retry said
	expires  time.Time  // not started after this; zero: never expires
	attempts []dts.AttemptState
	started  time.Time // the attempt that runs, or was the last one
	stored   bool      // its start was written before its time
	max      int
	delay    time.Duration // before a retry
	once     bool          // AT_MOST_ONCE
	endings  []ending      // of its attempts; the last one again for what follows

	any, fail bool // depends_mode ANY; on_dependency_failure FAIL
	waits     bool // for what it depends on
	paused    bool
	key       string // dedupe_key
}

// model is the state of all tasks, by the numbers under which they were created.
type model struct {
	now   time.Time
	up    time.Time // when the server was started
	tasks map[int]*task
	edges map[pair]*edge

	// While a crash is near: what decides whether a write is done, and the tasks of which nothing more is written.
	way    *tape
	frozen map[int]bool
}

// startShown is after how long a run is stored as running.
const startShown = 50 * time.Millisecond

func newModel(now time.Time) *model {
	return &model{now: now, up: now, tasks: map[int]*task{}, edges: map[pair]*edge{}}
}

func (m *model) clone() *model {
	c := newModel(m.now)
	c.up = m.up
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

func (t *task) ended() bool { return t.status != dts.Pending && t.status != dts.Running }

// ending is what the target makes of attempt number of a task.
func (t *task) ending(number int) ending { return t.endings[min(number, len(t.endings))-1] }

// advance lets time pass until to. What is due starts, and what does not block ends at once; what has expired is skipped.
func (m *model) advance(to time.Time) {
	for {
		first, at, expires := -1, to, false
		for _, n := range m.numbers() {
			t := m.tasks[n]
			if when := later(t.at, m.now); m.startable(n) && (when.Before(at) || first < 0 && when.Equal(at)) {
				first, at, expires = n, when, false
			}
			if when := m.sweep(t); m.waiting(n) && !t.expires.IsZero() && (when.Before(at) || !expires && when.Equal(at)) {
				first, at, expires = n, when, true
			}
		}
		expired := m.expired(at) // as seen from before
		m.now = at
		switch {
		case first < 0:
			return
		case expires:
			m.expire(expired...)
		default:
			m.start(first)
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// sweep is when it is noticed that a task has expired that does not come to its start: sweepEvery after the server's, and
// so on.
func (m *model) sweep(t *task) time.Time {
	return m.up.Add(later(later(t.expires, m.up), m.now).Sub(m.up).Truncate(sweepEvery) + sweepEvery)
}

const sweepEvery = 2 * time.Second

// expire skips tasks, all at once.
func (m *model) expire(list ...int) {
	if !m.writes(list...) {
		return
	}
	for _, n := range list {
		t := m.tasks[n]
		t.status, t.reason, t.paused = dts.Skipped, dts.ReasonExpired, false
	}
	m.resolve()
}

// expired is what is found to have expired at an instant.
func (m *model) expired(at time.Time) (list []int) {
	for _, n := range m.numbers() {
		if t := m.tasks[n]; m.waiting(n) && !t.expires.IsZero() && m.sweep(t).Equal(at) {
			list = append(list, n)
		}
	}
	return list
}

// boot is the start of a server, after a while without one.
func (m *model) boot(at time.Time) { m.now, m.up = at, at }

// waiting reports whether a task is to start some time.
func (m *model) waiting(n int) bool { return m.tasks[n].status == dts.Pending && !m.frozen[n] }

// startable reports whether a task waits for nothing but its time.
func (m *model) startable(n int) bool {
	t := m.tasks[n]
	return m.waiting(n) && !t.waits && !t.paused
}

// unfinished is the task that has a dedupe_key and has not ended; 0 where there is none.
func (m *model) unfinished(key string) int {
	for n, t := range m.tasks {
		if key != "" && t.key == key && !t.ended() {
			return n
		}
	}
	return 0
}

func (m *model) start(n int) {
	t := m.tasks[n]
	if !t.expires.IsZero() && m.now.After(t.expires) {
		m.expire(n)
		return
	}
	e := t.ending(len(t.attempts) + 1)
	// The start of what runs at most once is a write of its own, and of what might have been started by a server before.
	first := t.once || m.way != nil && t.due.Before(m.up) && m.way.choose()
	if (first || e != blocks) && !m.writes(n) { // else lose decides
		return
	}
	t.status, t.started, t.stored = dts.Running, m.now, first
	t.attempts = append(t.attempts, dts.AttemptRunning)
	if e != blocks && (!first || m.writes(n)) {
		m.end(n, e)
	}
}

// writes reports whether the next write about tasks is done. If not, nothing that follows from it is.
func (m *model) writes(list ...int) bool {
	if m.way == nil || m.way.choose() {
		return true
	}
	for _, n := range list {
		m.frozen[n] = true
	}
	return false
}

// end ends the attempt that runs.
func (m *model) end(n int, e ending) {
	t := m.tasks[n]
	t.waits = false // also where reopen came just after its start
	last := &t.attempts[len(t.attempts)-1]
	switch e {
	case succeeds:
		*last, t.status = dts.AttemptSuccess, dts.Success
	case fails:
		*last, t.status = dts.AttemptFailed, dts.Failed
		if len(t.attempts) < t.max && !t.once {
			t.status, t.at = dts.Pending, m.now.Add(t.delay)
			t.again = t.at
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
			if t.status, t.attempts = dts.Pending, t.attempts[:len(t.attempts)-1]; len(t.attempts) == 0 {
				m.decide(n)
			}
			continue
		}
		t.waits = false
		t.attempts[len(t.attempts)-1] = dts.AttemptLost
		if t.once || len(t.attempts) >= max(t.max, 3) { // three times at least once is promised
			t.status = dts.Failed
		} else {
			t.status, t.at, t.again = dts.Pending, m.now, m.now
		}
	}
	m.resolve()
}

// shown reports whether the start of a run has been written.
func (m *model) shown(t *task) bool {
	return t.once || t.stored || !t.started.Add(startShown).After(m.now)
}

// resume lets a paused task start when it is due, or now.
func (m *model) resume(t *task) {
	t.paused = false
	if t.at = later(t.due, t.again); t.at.After(m.now) {
		return
	}
	if t.at = m.now; len(t.attempts) > 0 {
		t.again = m.now
	} else {
		t.due = m.now
	}
}

// move gives a task another time.
func (m *model) move(n int, at time.Time) dts.Code {
	t := m.tasks[n]
	switch {
	case t == nil:
		return dts.ErrNotFound
	case t.status != dts.Pending:
		return dts.ErrConflict
	case !t.expires.IsZero() && !t.expires.After(at):
		return dts.ErrInvalid
	}
	if t.due = at; !t.paused {
		t.at = at
	}
	return ""
}

// do does a verb to a task, and returns whether it is refused.
func (m *model) do(v dts.Verb, n int) dts.Code {
	code := m.apply(v, n)
	m.resolve()
	return code
}

// apply does a verb to a task, and leaves it to resolve to tell its dependents.
func (m *model) apply(v dts.Verb, n int) dts.Code {
	t := m.tasks[n]
	if t == nil {
		return dts.ErrNotFound
	}
	switch {
	case v == dts.Cancel && t.status == dts.Pending:
		t.status = dts.Cancelled
	case v == dts.Cancel && t.status == dts.Running:
		t.status, t.attempts[len(t.attempts)-1] = dts.Cancelled, dts.AttemptCancelled
	case v == dts.Cancel && t.status == dts.Cancelled:
	case v == dts.RetryNow && t.ended() && t.status != dts.Success:
		if m.unfinished(t.key) != 0 {
			return dts.ErrConflict
		}
		t.status, t.reason, t.at, t.again = dts.Pending, "", m.now, m.now
		t.max = max(t.max, len(t.attempts)+1)
		if t.expires.Before(m.now) {
			t.expires = time.Time{}
		}
		m.override(n, dts.DependencyOpen, dts.DependencyFailed)
		m.reopen(n)
	case v == dts.ForceComplete && (t.ended() || t.status == dts.Pending):
		t.status = dts.Success
	case v == dts.RunNow && t.status == dts.Pending:
		t.at, t.paused = m.now, false
		if m.now.Before(t.due) {
			t.due = m.now
		}
		if len(t.attempts) > 0 {
			t.again = m.now
		}
		if t.waits {
			m.override(n, dts.DependencyOpen)
		}
	case v == dts.PauseTask && t.status == dts.Pending:
		t.paused = true
	case v == dts.ResumeTask && t.status == dts.Pending:
		if t.paused {
			m.resume(t)
		}
	case v == dts.Delete && t.status != dts.Running:
		delete(m.tasks, n)
		m.forget(n)
	default:
		return dts.ErrConflict
	}
	if t.ended() {
		t.paused = false
	}
	return ""
}
