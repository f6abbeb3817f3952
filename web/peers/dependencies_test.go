package peers

import (
	"context"
	"slices"
	"testing"
	"time"

	"dts"
)

func (n *node) AddDependencies(ctx context.Context, tenant, id string, list []dts.DependsOn) (*dts.Graph, error) {
	if _, err := n.change(ctx, "depend", tenant, id, func(t *dts.Task) { t.DependsOn = append(slices.Clone(t.DependsOn), list...) }); err != nil {
		return nil, err
	}
	return n.w.Graph(ctx, tenant, id, dts.MaxGraph)
}

func (n *node) RemoveDependency(ctx context.Context, tenant, id, parent string) (*dts.Graph, error) {
	_, err := n.change(ctx, "undepend", tenant, id, func(t *dts.Task) {
		t.DependsOn = slices.DeleteFunc(slices.Clone(t.DependsOn), func(d dts.DependsOn) bool { return d.TaskID == parent })
	})
	if err != nil {
		return nil, err
	}
	return n.w.Graph(ctx, tenant, id, dts.MaxGraph)
}

func (w *world) Graph(ctx context.Context, tenant, id string, _ int) (*dts.Graph, error) {
	t, err := w.Task(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	g := &dts.Graph{Tasks: []dts.GraphTask{{ID: id}}}
	for _, d := range t.DependsOn {
		g.Dependencies = append(g.Dependencies, dts.Dependency{ChildID: id, ParentID: d.TaskID, Type: d.Type})
	}
	return g, nil
}

// TestDependenciesReachTheHolder: what a task depends on is changed by the holder of its shard, whoever is asked.
func TestDependenciesReachTheHolder(t *testing.T) {
	w, n := servers(t, "n1", "n2")
	parent := w.task("n1", dts.Pending, "")
	for i, holder := range []string{"n1", "n2"} {
		k := w.task(holder, dts.Pending, "")
		g, err := n[0].router.AddDependencies(ctx, tenant, k.ID, []dts.DependsOn{{TaskID: parent.ID, Type: dts.MustFail}})
		if err != nil || len(g.Dependencies) != 1 || g.Dependencies[0].Type != dts.MustFail {
			t.Fatalf("%+v, %v", g, err)
		}
		g, err = n[0].router.RemoveDependency(ctx, tenant, k.ID, parent.ID)
		if err != nil || len(g.Dependencies) != 0 {
			t.Fatalf("%+v, %v", g, err)
		}
		for j, s := range n {
			if did := s.asked(); slices.Equal(did, []string{"depend", "undepend"}) != (i == j) {
				t.Errorf("of %s's: %s was asked for %v", holder, s.id, did)
			}
		}
	}
}

// TestNewTasksKeepTheirDependencies: tasks that are created at another server get ids there, also where one depends on
// another.
func TestNewTasksKeepTheirDependencies(t *testing.T) {
	w, n := servers(t, "n1", "n2")
	for i := range w.holders {
		w.holders[i] = "n2"
	}
	old := w.task("n2", dts.Pending, "")
	a, b := *old, *old
	a.ID, b.ID = dts.NewID(time.Now()), dts.NewID(time.Now())
	b.DependsOn = []dts.DependsOn{{TaskID: a.ID, Type: dts.MustFinish}, {TaskID: old.ID, Type: dts.MustSucceed}}
	made, err := n[0].router.CreateTasks(ctx, []*dts.Task{&a, &b})
	if err != nil {
		t.Fatal(err)
	}
	got, err := w.Task(ctx, tenant, made[1].Item.ID)
	if err != nil || len(got.DependsOn) != 2 || got.DependsOn[0].TaskID != made[0].Item.ID || got.DependsOn[0].Type != dts.MustFinish || got.DependsOn[1].TaskID != old.ID {
		t.Errorf("%+v, %v; the first is %s", got.DependsOn, err, made[0].Item.ID)
	}
}
