package peers

import (
	"context"
	"time"

	"dts"
)

// CreateRecurring creates a recurring task, in a shard of this server or, if it has none, at another one.
func (r *Router) CreateRecurring(ctx context.Context, t *dts.RecurringTask) (c dts.Created[*dts.RecurringTask], err error) {
	q := &request{Recurring: &recurringForm{*t, empties(t)}}
	a, err := r.do(ctx, &verb{what: "the new recurring task", again: t.IdempotencyKey != "", owner: creator,
		local:  func(ctx context.Context) (err error) { c, err = r.o.Local.CreateRecurring(ctx, t); return err },
		method: "CreateRecurring", ask: q})
	if err != nil || a == nil {
		return c, err
	}
	if len(a.Made) != 1 {
		return c, dts.Errorf(dts.ErrUnknown, "another server has created the recurring task, but its answer does not say which it is")
	}
	if c.Item, err = r.o.Store.RecurringTask(ctx, t.TenantID, a.Made[0].ID); err != nil {
		return c, unread("the recurring task "+a.Made[0].ID+" was created", err)
	}
	c.Existed = a.Made[0].Existed
	return c, nil
}

// ModifyRecurring changes a recurring task and replans its upcoming occurrences.
func (r *Router) ModifyRecurring(ctx context.Context, tenant, id string, p dts.RecurringPatch) (*dts.RecurringTask, error) {
	return r.onRecurring(ctx, tenant, id, "ModifyRecurring", &request{RecurringPatch: &recurringPatchForm{p, empties(&p)}},
		func(ctx context.Context) (*dts.RecurringTask, error) {
			return r.o.Local.ModifyRecurring(ctx, tenant, id, p)
		})
}

// PauseRecurring pauses a recurring task, until the given time if that is not zero.
func (r *Router) PauseRecurring(ctx context.Context, tenant, id string, until time.Time, note, actor string) (*dts.RecurringTask, error) {
	return r.onRecurring(ctx, tenant, id, "PauseRecurring", &request{Until: until, Note: note, Actor: actor},
		func(ctx context.Context) (*dts.RecurringTask, error) {
			return r.o.Local.PauseRecurring(ctx, tenant, id, until, note, actor)
		})
}

// ResumeRecurring ends a pause, and makes up for the instants of it if that is asked for.
func (r *Router) ResumeRecurring(ctx context.Context, tenant, id string, catchUp bool, actor string) (*dts.RecurringTask, error) {
	return r.onRecurring(ctx, tenant, id, "ResumeRecurring", &request{CatchUp: catchUp, Actor: actor},
		func(ctx context.Context) (*dts.RecurringTask, error) {
			return r.o.Local.ResumeRecurring(ctx, tenant, id, catchUp, actor)
		})
}

// CancelRecurring ends a recurring task.
func (r *Router) CancelRecurring(ctx context.Context, tenant, id, actor string) (*dts.RecurringTask, error) {
	return r.onRecurring(ctx, tenant, id, "CancelRecurring", &request{Actor: actor},
		func(ctx context.Context) (*dts.RecurringTask, error) {
			return r.o.Local.CancelRecurring(ctx, tenant, id, actor)
		})
}

// onRecurring has a recurring task changed by the holder of its shard. All of these changes say what it becomes, so
// they may be asked for again.
func (r *Router) onRecurring(ctx context.Context, tenant, id, method string, q *request, local func(context.Context) (*dts.RecurringTask, error)) (done *dts.RecurringTask, err error) {
	q.Tenant, q.ID = tenant, id
	v := &verb{what: "the recurring task " + id, again: true, method: method, ask: q, owner: r.ownerOfRecurring(tenant, id),
		local: func(ctx context.Context) (err error) { done, err = local(ctx); return err }}
	a, err := r.do(ctx, v)
	if err != nil || a == nil {
		return done, err
	}
	if done, err = r.o.Store.RecurringTask(ctx, tenant, id); err != nil {
		return nil, unread(v.what+" was changed", err)
	}
	return done, nil
}

func (r *Router) ownerOfRecurring(tenant, id string) func(context.Context, *dts.Placement) (string, error) {
	return func(ctx context.Context, p *dts.Placement) (string, error) {
		t, err := r.o.Store.RecurringTask(ctx, tenant, id)
		if err != nil {
			return "", err
		}
		return holder(p, t.Shard), nil
	}
}

// BackfillRecurring replays a past window. What was replayed is not replayed again, so it may be asked for again; what a
// call has made whose answer was lost is missing in the count.
func (r *Router) BackfillRecurring(ctx context.Context, tenant, id string, q dts.BackfillRequest, actor string) (b *dts.BackfillAnswer, err error) {
	v := &verb{what: "a backfill of the recurring task " + id, again: true, method: "BackfillRecurring",
		ask: &request{Tenant: tenant, ID: id, Backfill: q, Actor: actor}, owner: r.ownerOfRecurring(tenant, id),
		local: func(ctx context.Context) (err error) {
			b, err = r.o.Local.BackfillRecurring(ctx, tenant, id, q, actor)
			return err
		}}
	a, err := r.do(ctx, v)
	if err != nil || a == nil {
		return b, err
	}
	return &a.Backfill, nil
}

// TriggerRecurring runs the template once, now. It is never asked for again: that would be another run.
func (r *Router) TriggerRecurring(ctx context.Context, tenant, id, actor string) (t *dts.Task, err error) {
	v := &verb{what: "a run of the recurring task " + id, method: "TriggerRecurring", ask: &request{Tenant: tenant, ID: id, Actor: actor},
		owner: r.ownerOfRecurring(tenant, id),
		local: func(ctx context.Context) (err error) {
			t, err = r.o.Local.TriggerRecurring(ctx, tenant, id, actor)
			return err
		}}
	a, err := r.do(ctx, v)
	if err != nil || a == nil {
		return t, err
	}
	if t, err = r.o.Store.Task(ctx, tenant, a.ID); err != nil {
		return nil, unread("the run "+a.ID+" was started", err)
	}
	return t, nil
}
