package model_test

import (
	"cmp"
	"maps"
	"slices"

	"dts"
)

// pair names a dependency: child waits for parent.
type pair struct{ child, parent int }

// edge is what the model knows of a dependency.
type edge struct {
	kind  dts.DependencyType
	state dts.DependencyState
}

// pairs returns the dependencies in order.
func (m *model) pairs() []pair {
	return slices.SortedFunc(maps.Keys(m.edges), func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.child, b.child), cmp.Compare(a.parent, b.parent))
	})
}

// count is how many dependencies of a task are in a state.
func (m *model) count(child int, state dts.DependencyState) (n int) {
	for p, e := range m.edges {
		if p.child == child && e.state == state {
			n++
		}
	}
	return n
}

// unresolved is the count that a task shows.
func (m *model) unresolved(n int) int {
	if t := m.tasks[n]; t.waits && t.status == dts.Pending {
		return m.count(n, dts.DependencyOpen)
	}
	return 0
}

// decide decides anew whether a task that has not started waits for others.
func (m *model) decide(child int) {
	t := m.tasks[child]
	t.waits = m.count(child, dts.DependencyOpen) > 0 && !(t.any && m.count(child, dts.DependencySatisfied) > 0)
}

// resolve lets what has ended decide about what depends on it, until there is nothing left to decide.
func (m *model) resolve() {
	for again := true; again; {
		again = false
		for p, e := range m.edges {
			parent := dts.Cancelled // as one that was deleted
			if t := m.tasks[p.parent]; t != nil {
				parent = t.status
			}
			if e.state == dts.DependencyOpen && parent != dts.Pending && parent != dts.Running {
				e.state = outcome(e.kind, parent)
				again = true
			}
		}
		for _, n := range m.numbers() {
			t := m.tasks[n]
			if t.status != dts.Pending || !t.waits {
				continue
			}
			open, met, failed := m.count(n, dts.DependencyOpen), m.count(n, dts.DependencySatisfied), m.count(n, dts.DependencyFailed)
			switch {
			case t.any && met > 0, !t.any && failed == 0 && open == 0, t.any && failed == 0 && open == 0:
				t.waits, again = false, true
			case !t.any && failed > 0, t.any && open == 0:
				t.waits, t.paused, again = false, false, true
				if t.status, t.reason = dts.Skipped, dts.ReasonDependency; t.fail {
					t.status = dts.Failed
				}
			}
		}
	}
}

func outcome(kind dts.DependencyType, parent dts.Status) dts.DependencyState {
	met := map[dts.DependencyType]bool{
		dts.MustSucceed: parent == dts.Success,
		dts.MustFail:    parent == dts.Failed,
		dts.MustFinish:  true,
	}
	if met[kind] {
		return dts.DependencySatisfied
	}
	return dts.DependencyFailed
}

// override lets a task run whatever it depends on.
func (m *model) override(child int, states ...dts.DependencyState) {
	for p, e := range m.edges {
		if p.child == child && slices.Contains(states, e.state) {
			e.state = dts.DependencyOverridden
		}
	}
	m.tasks[child].waits = false
}

// reopen lets what has not started wait again for a task that runs once more. What has started just now, and is not stored
// as running yet, goes on, and is stored so at once; its dependency is open all the same.
func (m *model) reopen(parent int) {
	for _, p := range m.pairs() {
		child, e := m.tasks[p.child], m.edges[p]
		early := child.status == dts.Running && len(child.attempts) == 1 && !m.shown(child)
		if p.parent == parent && (early || m.unstarted(child)) && (e.state == dts.DependencySatisfied || e.state == dts.DependencyFailed) {
			e.state = dts.DependencyOpen
			if m.decide(p.child); early && m.writes(p.child) {
				child.waits, child.stored = false, true
			}
		}
	}
}

// unstarted reports whether a task has never been started.
func (m *model) unstarted(t *task) bool {
	return t.status == dts.Pending && len(t.attempts) == 0
}

// ancestors is what a task depends on, directly or not.
func (m *model) ancestors(n int) map[int]bool {
	found, todo := map[int]bool{}, []int{n}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		for p := range m.edges {
			if p.child == at && !found[p.parent] {
				found[p.parent] = true
				todo = append(todo, p.parent)
			}
		}
	}
	return found
}

// depend makes a task depend on others, which are there.
func (m *model) depend(child int, on map[int]dts.DependencyType) {
	for parent, kind := range on {
		if e := m.edges[pair{child, parent}]; e == nil {
			m.edges[pair{child, parent}] = &edge{kind, dts.DependencyOpen}
		} else if e.state == dts.DependencyOpen {
			e.kind = kind
		}
	}
	m.decide(child)
}

// addDependencies is depend as a request.
func (m *model) addDependencies(child int, on map[int]dts.DependencyType) dts.Code {
	t := m.tasks[child]
	switch {
	case t == nil:
		return dts.ErrNotFound
	case !m.unstarted(t):
		return dts.ErrConflict
	}
	for parent := range on {
		if m.tasks[parent] == nil {
			return dts.ErrInvalid
		}
	}
	for parent := range on {
		if parent == child || m.ancestors(parent)[child] {
			return dts.ErrConflict
		}
	}
	m.depend(child, on)
	m.resolve()
	return ""
}

// removeDependency makes a task depend on one less.
func (m *model) removeDependency(child, parent int) dts.Code {
	t := m.tasks[child]
	switch {
	case t == nil:
		return dts.ErrNotFound
	case !m.unstarted(t):
		return dts.ErrConflict
	case m.edges[pair{child, parent}] == nil:
		return dts.ErrNotFound
	}
	removed := m.edges[pair{child, parent}]
	delete(m.edges, pair{child, parent})
	if t.any && m.count(child, dts.DependencyFailed) > 0 && m.count(child, dts.DependencyOpen)+m.count(child, dts.DependencySatisfied)+m.count(child, dts.DependencyOverridden) == 0 {
		m.edges[pair{child, parent}] = removed
		return dts.ErrConflict // the others have failed
	}
	m.decide(child)
	m.resolve()
	return ""
}

// forget removes what a deleted task depended on.
func (m *model) forget(n int) {
	maps.DeleteFunc(m.edges, func(p pair, _ *edge) bool { return p.child == n })
}
