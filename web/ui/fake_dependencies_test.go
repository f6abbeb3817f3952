package ui

import (
	"context"

	"dts"
)

func (f *fake) AddDependencies(ctx context.Context, tenant, id string, _ []dts.DependsOn) (*dts.Graph, error) {
	return f.Graph(ctx, tenant, id, dts.MaxGraph)
}

func (f *fake) RemoveDependency(ctx context.Context, tenant, id, _ string) (*dts.Graph, error) {
	return f.Graph(ctx, tenant, id, dts.MaxGraph)
}
