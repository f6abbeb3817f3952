package peers

import (
	"context"
	"sync"
	"time"

	"dts"
)

// Queues belong to no shard: this server changes and reads them. But of how much comes into them, each server knows only
// what it runs.

// loadsTime is how long the others may take to say it. Without the answer of one, the suggestion is too small.
const loadsTime = time.Second

// PutQueue gives a queue settings in the place of those that it has.
func (r *Router) PutQueue(ctx context.Context, q *dts.Queue) (*dts.Queue, error) {
	return r.suggestOne(ctx)(r.o.Local.PutQueue(ctx, q))
}

// PauseQueue lets nothing of a queue start any more.
func (r *Router) PauseQueue(ctx context.Context, tenant, name, note string) (*dts.Queue, error) {
	return r.suggestOne(ctx)(r.o.Local.PauseQueue(ctx, tenant, name, note))
}

// ResumeQueue ends a pause.
func (r *Router) ResumeQueue(ctx context.Context, tenant, name string) (*dts.Queue, error) {
	return r.suggestOne(ctx)(r.o.Local.ResumeQueue(ctx, tenant, name))
}

// DeleteQueue takes a queue's settings away.
func (r *Router) DeleteQueue(ctx context.Context, tenant, name string) error {
	return r.o.Local.DeleteQueue(ctx, tenant, name)
}

// Queue returns a queue, and what goes on in it.
func (r *Router) Queue(ctx context.Context, tenant, name string) (*dts.Queue, error) {
	return r.suggestOne(ctx)(r.o.Local.Queue(ctx, tenant, name))
}

// Queues returns the queues, and what goes on in them on all servers.
func (r *Router) Queues(ctx context.Context, tenant string) ([]*dts.Queue, error) {
	list, err := r.o.Local.Queues(ctx, tenant)
	if err != nil {
		return nil, err
	}
	r.suggest(ctx, tenant, list)
	return list, nil
}

func (r *Router) suggestOne(ctx context.Context) func(*dts.Queue, error) (*dts.Queue, error) {
	return func(q *dts.Queue, err error) (*dts.Queue, error) {
		if err == nil {
			r.suggest(ctx, q.TenantID, []*dts.Queue{q})
		}
		return q, err
	}
}

// suggest says of queues how many at once would keep up with what comes in on all servers together.
func (r *Router) suggest(ctx context.Context, tenant string, list []*dts.Queue) {
	p := r.o.Local.Placement()
	if len(p.Nodes) < 2 || len(list) == 0 {
		return
	}
	all := r.o.Local.QueueLoads(tenant)
	ctx, cancel := context.WithTimeout(ctx, loadsTime)
	defer cancel()
	var mu sync.Mutex
	var asked sync.WaitGroup
	for _, n := range p.Nodes {
		if n.ID == p.Self {
			continue
		}
		asked.Go(func() {
			a, err := r.o.Client.call(ctx, n, "QueueLoads", &request{Tenant: tenant})
			if err != nil {
				r.o.Log.Debug("a server did not say how much comes into its queues", "node", n.ID, "err", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for name, l := range a.Loads {
				all[name] = all[name].Plus(l)
			}
		})
	}
	asked.Wait()
	for _, q := range list {
		q.Suggested = all[q.Name].Suggested()
	}
}

func (h *Handler) queueLoads(_ context.Context, q *request, _ []*dts.Task) (*answer, error) {
	return &answer{Loads: h.Local.QueueLoads(q.Tenant)}, nil
}
