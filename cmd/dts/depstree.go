package main

import (
	"cmp"
	"strings"

	"github.com/fatih/color"

	"dts"
)

// treeLimit is what a tree of dependencies shows at most. --json has all of it.
type treeLimit struct{ depth, lines int }

var (
	wholeTree = treeLimit{depth: 12, lines: 200}
	nearTree  = treeLimit{depth: 1, lines: 20} // in dts show
)

// tree writes a graph of dependencies, seen from its first task, as two trees.
type tree struct {
	a     *app
	limit treeLimit
	tasks map[string]*dts.GraphTask
	next  map[string][]dts.Dependency // by the task from which the tree goes on
	other func(dts.Dependency) string // the task that an edge leads to
	asks  map[dts.DependencyType]string
	seen  map[string]bool
	lines int
	left  int // edges that are not shown
}

// printGraph prints what the first task of a graph depends on, and what depends on it. It returns how many edges
// are behind what it shows.
func (a *app) printGraph(g *dts.Graph, mode dts.DependencyMode, limit treeLimit) (left int) {
	tasks := map[string]*dts.GraphTask{}
	for i := range g.Tasks {
		tasks[g.Tasks[i].ID] = &g.Tasks[i]
	}
	up, down := map[string][]dts.Dependency{}, map[string][]dts.Dependency{}
	for _, d := range g.Dependencies {
		up[d.ChildID] = append(up[d.ChildID], d)
		down[d.ParentID] = append(down[d.ParentID], d)
	}
	root := g.Tasks[0].ID
	needs := "Waits for"
	if g.Tasks[0].Status != dts.Pending {
		needs = "Waited for"
	}
	if len(up[root]) > 1 && mode == dts.DependsAny {
		needs += " one of"
	} else if len(up[root]) > 1 {
		needs += " all of"
	}
	for _, x := range []struct {
		title string
		next  map[string][]dts.Dependency
		other func(dts.Dependency) string
		asks  map[dts.DependencyType]string
	}{
		{needs, up, func(d dts.Dependency) string { return d.ParentID }, map[dts.DependencyType]string{dts.MustFinish: ", must end", dts.MustFail: ", must fail"}},
		{"Needed by", down, func(d dts.Dependency) string { return d.ChildID }, map[dts.DependencyType]string{dts.MustFinish: ", however it ends", dts.MustFail: ", if it fails"}},
	} {
		if len(x.next[root]) == 0 {
			continue
		}
		a.printf("%s\n", a.dim(x.title))
		t := tree{a: a, limit: limit, tasks: tasks, next: x.next, other: x.other, asks: x.asks, seen: map[string]bool{root: true}}
		t.print(root, "", 1)
		left += t.left
	}
	return left
}

// print prints what is behind a task, one line an edge.
func (t *tree) print(id, indent string, depth int) {
	list := t.next[id]
	for i, d := range list {
		if t.lines == t.limit.lines || depth > t.limit.depth {
			t.left += len(list) - i
			return
		}
		t.lines++
		fork, below := "├─ ", "│  "
		if i == len(list)-1 {
			fork, below = "└─ ", "   "
		}
		other := t.other(d)
		again := t.seen[other]
		t.seen[other] = true
		t.a.printf("%s%s\n", t.a.dim(indent+fork), t.line(d, other, again && len(t.next[other]) > 0))
		if !again {
			t.print(other, indent+below, depth+1)
		}
	}
}

// line is an edge, and the task it leads to. again: what is behind it was shown before.
func (t *tree) line(d dts.Dependency, id string, again bool) string {
	marks := map[dts.DependencyState]string{
		dts.DependencySatisfied: t.a.paint("✓ ", color.FgGreen), dts.DependencyFailed: t.a.paint("✗ ", color.FgRed), dts.DependencyOverridden: "! ",
	}
	x := t.tasks[id]
	if x == nil {
		x = &dts.GraphTask{ID: id}
	}
	status := "deleted"
	if x.Status != "" {
		status = t.a.status(string(x.Status))
	}
	parts := []string{marks[d.State] + graphName(x), status}
	parts[1] += t.asks[d.Type]
	if d.State == dts.DependencyOverridden {
		parts[1] += ", overridden"
	}
	if graphName(x) != id {
		parts = append(parts, t.a.dim(id))
	}
	if again {
		parts = append(parts, t.a.dim("(see above)"))
	}
	return strings.Join(parts, "  ")
}

func graphName(t *dts.GraphTask) string { return clip(clean(cmp.Or(t.Name, t.ID)), 40) }
