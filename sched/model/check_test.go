package model_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dts"
	"dts/store"
)

// row is what is stored of a task, as far as the model knows of it.
type row struct {
	status   dts.Status
	reason   dts.Reason
	at       time.Time // run_at
	paused   bool
	waits    int // unresolved_dependencies_count
	tries    int
	max      int // max_attempts
	attempts []dts.AttemptState
}

// stored is what the database holds, by the tasks' numbers.
type stored struct {
	tasks map[int]row
	edges map[pair]edge
	live  map[int]string // attempts that targets work on, and since when
	wrong []string       // what must not be, whatever the model says
}

// read reads everything, past the scheduler and the store.
func (w *world) read() (*stored, error) {
	s := &stored{tasks: map[int]row{}, edges: map[pair]edge{}, live: map[int]string{}}
	numbers := map[string]int{}
	err := w.query(`SELECT task_id, name, status, coalesce(skip_reason, ''), run_at, coalesce(waits_for, '') = 'PAUSED', unresolved_dependencies_count, attempts, max_attempts FROM tasks`, func(r store.Rows) error {
		var id, name string
		var x row
		var at int64
		err := r.Scan(&id, &name, &x.status, &x.reason, &at, &x.paused, &x.waits, &x.tries, &x.max)
		x.at = time.UnixMicro(at)
		n, _ := strconv.Atoi(name)
		if _, twice := s.tasks[n]; twice {
			s.wrong = append(s.wrong, "there are two tasks "+name)
		}
		numbers[id], s.tasks[n] = n, x
		w.ids[n] = id // one whose creation was not acknowledged is known from here on
		return err
	})
	if err != nil {
		return nil, err
	}
	err = w.query(`SELECT task_id, number, state FROM all_attempts ORDER BY task_id, number`, func(r store.Rows) error {
		var id string
		var number int
		var state dts.AttemptState
		err := r.Scan(&id, &number, &state)
		n, known := numbers[id]
		if x := s.tasks[n]; !known || number != len(x.attempts)+1 {
			s.wrong = append(s.wrong, fmt.Sprintf("attempt %d of task %d (%s) stands after %v", number, n, id, x.attempts))
		} else {
			x.attempts = append(x.attempts, state)
			s.tasks[n] = x
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	err = w.query(`SELECT child_id, parent_id, type, resolved FROM dependencies`, func(r store.Rows) error {
		var child, parent string
		var kind dts.DependencyType
		var state int
		err := r.Scan(&child, &parent, &kind, &state)
		if state < 0 || state >= len(states) {
			s.wrong = append(s.wrong, fmt.Sprintf("a dependency of task %d is left in state %d", w.number(child), state))
		} else {
			s.edges[pair{w.number(child), w.number(parent)}] = edge{kind, states[state]}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, table := range []string{"cascades", "handoffs"} {
		err = w.query(`SELECT task_id FROM `+table, func(r store.Rows) error {
			var id string
			err := r.Scan(&id)
			s.wrong = append(s.wrong, fmt.Sprintf("task %d stands in %s", w.number(id), table))
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	w.run.mu.Lock()
	defer w.run.mu.Unlock()
	for name, l := range w.run.live {
		n, _ := strconv.Atoi(name)
		s.live[n] = fmt.Sprintf("attempt %d since %v", l.number, l.since.Sub(w.began))
	}
	s.wrong = append(s.wrong, w.run.wrong...)
	return s, nil
}

// states are those of a dependency, as they are stored.
var states = [...]dts.DependencyState{dts.DependencyOpen, dts.DependencySatisfied, dts.DependencyFailed, dts.DependencyOverridden}

// number is the number of the task with an id, also of one that was deleted; 0 where there was none.
func (w *world) number(id string) int {
	for n, other := range w.ids {
		if other == id {
			return n
		}
	}
	return 0
}

func (w *world) query(sql string, each func(store.Rows) error) error {
	rows, err := w.db.Query(context.Background(), store.OwnWrites, store.Stmt{SQL: sql})
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// differences says in what the model and what is stored differ.
func (w *world) differences(m *model, s *stored) []string {
	list := slices.Clone(s.wrong)
	say := func(n int, format string, args ...any) {
		list = append(list, fmt.Sprintf("task %d: ", n)+fmt.Sprintf(format, args...))
	}
	for _, n := range m.numbers() {
		t := m.tasks[n]
		x, found := s.tasks[n]
		if !found {
			say(n, "is gone; the model has it %s", t.status)
			continue
		}
		if x.status != t.status {
			say(n, "is %s (%s); the model has it %s (%s)", x.status, x.reason, t.status, t.reason)
		} else if x.reason != t.reason {
			say(n, "has the skip reason %q; the model %q", x.reason, t.reason)
		}
		if x.waits != m.unresolved(n) {
			say(n, "counts %d open dependencies; the model %d", x.waits, m.unresolved(n))
		}
		if x.paused != t.paused {
			say(n, "is paused: %v; the model: %v", x.paused, t.paused)
		}
		if t.status == dts.Pending && !t.paused && !x.at.Equal(t.at) {
			say(n, "is to run at %v; the model has it %v", x.at.Sub(w.began), t.at.Sub(w.began))
		}
		if x.tries != len(t.attempts) || !slices.Equal(x.attempts, t.attempts) {
			say(n, "counts %d attempts, %v; the model %v", x.tries, x.attempts, t.attempts)
		}
		if x.max != t.max {
			say(n, "may make %d attempts; the model %d", x.max, t.max)
		}
		run := ""
		if t.status == dts.Running {
			run = fmt.Sprintf("attempt %d since %v", len(t.attempts), t.started.Sub(w.began))
		}
		if s.live[n] != run {
			say(n, "runs: %q; the model: %q", s.live[n], run)
		}
	}
	for _, p := range m.pairs() {
		if e := *m.edges[p]; s.edges[p] != e {
			say(p.child, "depends on %d: %v; the model: %v", p.parent, s.edges[p], e)
		}
	}
	for p, e := range s.edges {
		if m.edges[p] == nil {
			say(p.child, "depends on %d: %v; the model has nothing of it", p.parent, e)
		}
	}
	for n, x := range s.tasks {
		if m.tasks[n] == nil {
			say(n, "is %s; the model does not have it", x.status)
		}
	}
	for n, run := range s.live {
		if m.tasks[n] == nil {
			say(n, "runs: %q; the model does not have it", run)
		}
	}
	slices.Sort(list)
	return list
}

func lines(list []string) string { return strings.Join(list, "\n  ") }
