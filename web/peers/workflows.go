package peers

import (
	"context"

	"dts"
)

// ends reports whether a verb ends what a workflow's run still does.
func ends(v dts.Verb) bool { return v == dts.Cancel || v == dts.ForceComplete || v == dts.Delete }

// endStrays cancels the steps of a run that is to be ended which still run at servers that do not hold its shard any more:
// the holder cannot. What it could not do, the holder says.
func (r *Router) endStrays(ctx context.Context, tenant, id, actor string) {
	p := r.o.Local.Placement()
	if len(p.Nodes) < 2 {
		return
	}
	run, err := r.o.Store.Task(ctx, tenant, id)
	if err != nil || !run.RunStarted() || run.Status != dts.Pending {
		return
	}
	page, err := r.o.Store.Tasks(ctx, dts.TaskFilter{TenantID: tenant, WorkflowID: id, Statuses: []dts.Status{dts.Running}, Limit: dts.MaxSteps})
	if err != nil {
		return
	}
	for _, t := range page.Items {
		if at := responsible(&p, t); at != holder(&p, run.Shard) {
			_, _ = r.DoTask(ctx, tenant, t.ID, dts.Cancel, actor)
		}
	}
}
