package sched

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"dts"
)

const (
	parentsRead = 100 // tasks of the graph that are looked at for those that a task waits for
	parentsSaid = 3   // of them named in an answer
)

// openParents returns some of the tasks that a task still waits for.
func (s *Scheduler) openParents(ctx context.Context, t *dts.Task) ([]dts.GraphTask, error) {
	g, err := s.o.Store.Graph(ctx, t.TenantID, t.ID, parentsRead)
	if dts.CodeOf(err) == dts.ErrNotFound { // deleted since it was read
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	open := map[string]bool{}
	for _, d := range g.Dependencies {
		if d.ChildID == t.ID && d.State == dts.DependencyOpen {
			open[d.ParentID] = true
		}
	}
	var list []dts.GraphTask
	for _, p := range g.Tasks {
		if open[p.ID] {
			list = append(list, p)
		}
	}
	slices.SortStableFunc(list, func(a, b dts.GraphTask) int { // what runs says most
		switch {
		case a.Status == b.Status || a.Status != dts.Running && b.Status != dts.Running:
			return 0
		case a.Status == dts.Running:
			return -1
		}
		return 1
	})
	return list, nil
}

// waitsForTasks says for which tasks a task waits, and how those are: 5 tasks that it depends on: load (RUNNING), …
func (f *taskFacts) waitsForTasks() string {
	t := f.t
	text := count(t.Unresolved, "task") + " that it depends on"
	if t.RunStarted() {
		text = count(t.Unresolved, "step") + " of its workflow"
	}
	if t.DependsMode == dts.DependsAny && t.Unresolved > 1 {
		text = fmt.Sprintf("one of %d tasks that it depends on", t.Unresolved)
	}
	var names []string
	for _, p := range f.parents[:min(len(f.parents), parentsSaid)] {
		name := p.Name
		if name == "" {
			name = p.ID
		}
		names = append(names, fmt.Sprintf("%s (%s)", name, p.Status))
	}
	switch more := t.Unresolved - len(names); {
	case len(names) == 0:
		return text
	case more > 0:
		names = append(names, fmt.Sprintf("%d more", more))
	}
	if last := len(names) - 1; last > 0 {
		return text + ": " + strings.Join(names[:last], ", ") + " and " + names[last]
	}
	return text + ": " + names[0]
}
