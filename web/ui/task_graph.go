package ui

import (
	"cmp"
	"context"
	"slices"

	"dts"
	"dts/web/auth"
)

// What a task's page shows of its dependencies.
const (
	graphRead    = 300 // tasks, up and down
	nearestShown = 50  // of each side, those that a dependency leads to
	behindShown  = 100 // and those behind them
)

// graphView is what a task depends on, or what depends on it.
type graphView struct {
	Rows   []edgeRow
	More   int       // edges that are not shown
	Behind []edgeRow // tasks that are further away
	Beyond int       // of those, how many are not shown
}

// edgeRow is a dependency, and the task that it leads to. Of a task that is further away there is no dependency.
type edgeRow struct {
	ID, Name string
	Status   dts.Status // "" when it has been deleted
	Asks     string     // what the one must do for the other: "succeed", "end" or "fail"
	State    dts.DependencyState
	Unmet    int // dependencies that a PENDING task still waits for
}

// Word says what has become of the dependency.
func (r edgeRow) Word() string {
	switch r.State {
	case dts.DependencySatisfied:
		return "met"
	case dts.DependencyFailed:
		return "cannot be met"
	case dts.DependencyOverridden:
		return "overridden"
	}
	return "open"
}

// stateRank orders dependencies: what stands in the way comes first.
var stateRank = map[dts.DependencyState]int{dts.DependencyFailed: 0, dts.DependencyOpen: 1, dts.DependencyOverridden: 2, dts.DependencySatisfied: 3}

// graphOf reads what a task depends on, up, and what depends on it, down.
func (h *handler) graphOf(ctx context.Context, p auth.Principal, id string) (up, down graphView, truncated bool, err error) {
	g, err := h.Store.Graph(ctx, p.TenantID, id, graphRead)
	if err != nil {
		return up, down, false, err
	}
	up = newGraphView(g, id, func(d dts.Dependency) (from, to string) { return d.ChildID, d.ParentID })
	down = newGraphView(g, id, func(d dts.Dependency) (from, to string) { return d.ParentID, d.ChildID })
	return up, down, g.Truncated, nil
}

// drop leaves a task out.
func (v *graphView) drop(id string) {
	is := func(r edgeRow) bool { return r.ID == id }
	v.Rows, v.Behind = slices.DeleteFunc(v.Rows, is), slices.DeleteFunc(v.Behind, is)
}

// newGraphView walks a graph from a task on, in the direction of ends.
func newGraphView(g *dts.Graph, id string, ends func(dts.Dependency) (from, to string)) (v graphView) {
	tasks := map[string]*dts.GraphTask{}
	for i := range g.Tasks {
		tasks[g.Tasks[i].ID] = &g.Tasks[i]
	}
	next := map[string][]dts.Dependency{}
	for _, d := range g.Dependencies {
		from, _ := ends(d)
		next[from] = append(next[from], d)
	}
	row := func(to string, d dts.Dependency) edgeRow {
		r := edgeRow{ID: to, Name: to, State: d.State, Asks: "succeed"}
		switch d.Type {
		case dts.MustFinish:
			r.Asks = "end"
		case dts.MustFail:
			r.Asks = "fail"
		}
		if t := tasks[to]; t != nil {
			r.Name, r.Status = plainOrder(cmp.Or(t.Name, to)), t.Status
			if t.Status == dts.Pending {
				r.Unmet = t.Unresolved
			}
		}
		return r
	}
	seen := map[string]bool{id: true}
	var wave []string
	for _, d := range next[id] {
		_, to := ends(d)
		seen[to] = true
		wave = append(wave, to)
		v.Rows = append(v.Rows, row(to, d))
	}
	slices.SortStableFunc(v.Rows, func(a, b edgeRow) int { return stateRank[a.State] - stateRank[b.State] })
	if v.More = len(v.Rows) - nearestShown; v.More > 0 {
		v.Rows = v.Rows[:nearestShown]
	}
	for len(wave) > 0 {
		at := wave[0]
		wave = wave[1:]
		for _, d := range next[at] {
			_, to := ends(d)
			if seen[to] {
				continue
			}
			seen[to] = true
			wave = append(wave, to)
			v.Behind = append(v.Behind, row(to, dts.Dependency{}))
		}
	}
	if v.Beyond = len(v.Behind) - behindShown; v.Beyond > 0 {
		v.Behind = v.Behind[:behindShown]
	}
	return v
}
