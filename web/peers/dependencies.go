package peers

import (
	"context"

	"dts"
)

// AddDependencies makes a task that has not started depend on others: the holder of its shard does.
func (r *Router) AddDependencies(ctx context.Context, tenant, id string, list []dts.DependsOn) (*dts.Graph, error) {
	return r.redepend(ctx, tenant, id, "AddDependencies", &request{DependsOn: list}, true,
		func(ctx context.Context) (*dts.Graph, error) { return r.o.Local.AddDependencies(ctx, tenant, id, list) })
}

// RemoveDependency lets a task that has not started not depend on another one any more.
func (r *Router) RemoveDependency(ctx context.Context, tenant, id, parent string) (*dts.Graph, error) {
	// Not again: the second time there is nothing to remove.
	return r.redepend(ctx, tenant, id, "RemoveDependency", &request{Parent: parent}, false,
		func(ctx context.Context) (*dts.Graph, error) {
			return r.o.Local.RemoveDependency(ctx, tenant, id, parent)
		})
}

func (r *Router) redepend(ctx context.Context, tenant, id, method string, q *request, again bool, local func(context.Context) (*dts.Graph, error)) (g *dts.Graph, err error) {
	_, err = r.onTask(ctx, tenant, id, method, q, again, func(ctx context.Context) (*dts.Task, error) {
		g, err = local(ctx)
		return nil, err
	})
	if err == nil && g == nil {
		g, err = r.o.Store.Graph(ctx, tenant, id, dts.MaxGraph)
	}
	return g, err
}

func (h *Handler) addDependencies(ctx context.Context, q *request, _ []*dts.Task) (*answer, error) {
	_, err := h.Local.AddDependencies(ctx, q.Tenant, q.ID, q.DependsOn)
	return &answer{}, err
}

func (h *Handler) removeDependency(ctx context.Context, q *request, _ []*dts.Task) (*answer, error) {
	_, err := h.Local.RemoveDependency(ctx, q.Tenant, q.ID, q.Parent)
	return &answer{}, err
}
