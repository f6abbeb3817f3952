package web_test

import (
	"context"

	"dts"
)

// What the fake is told of dependencies, it tells in each graph.

func (f *fake) Graph(ctx context.Context, tenant, id string, limit int) (*dts.Graph, error) {
	t, err := f.Task(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	g := &dts.Graph{Tasks: []dts.GraphTask{{ID: id, Name: t.Name, Status: t.Status, DueAt: t.DueAt}}, Dependencies: []dts.Dependency{}, Truncated: limit < 1000}
	for _, d := range f.edges[id] {
		g.Dependencies = append(g.Dependencies, dts.Dependency{ChildID: id, ParentID: d.TaskID, Type: d.Type, State: dts.DependencyOpen})
	}
	return g, nil
}

func (f *fake) AddDependencies(ctx context.Context, tenant, id string, list []dts.DependsOn) (*dts.Graph, error) {
	if f.err != nil {
		return nil, f.err
	}
	f.mu.Lock()
	if f.edges == nil {
		f.edges = map[string][]dts.DependsOn{}
	}
	f.edges[id] = append(f.edges[id], list...)
	f.mu.Unlock()
	return f.Graph(ctx, tenant, id, 1000)
}

func (f *fake) RemoveDependency(ctx context.Context, tenant, id, parent string) (*dts.Graph, error) {
	f.mu.Lock()
	var left []dts.DependsOn
	for _, d := range f.edges[id] {
		if d.TaskID != parent {
			left = append(left, d)
		}
	}
	gone := len(left) < len(f.edges[id])
	f.edges[id] = left
	f.mu.Unlock()
	if !gone {
		return nil, errNone
	}
	return f.Graph(ctx, tenant, id, 1000)
}
