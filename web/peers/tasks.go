package peers

import (
	"context"
	"slices"
	"time"

	"dts"
)

// CreateTasks creates all tasks or none, in shards of this server or, if it has none, at another one.
func (r *Router) CreateTasks(ctx context.Context, tasks []*dts.Task) (list []dts.Created[*dts.Task], err error) {
	v := &verb{
		what: "the new tasks",
		// Under an idempotency key the second request finds what the first one made. Without one it would make
		// everything twice.
		again:  !slices.ContainsFunc(tasks, func(t *dts.Task) bool { return t.IdempotencyKey == "" }),
		owner:  creator,
		local:  func(ctx context.Context) (err error) { list, err = r.o.Local.CreateTasks(ctx, tasks); return err },
		method: "CreateTasks", ask: &request{}, tasks: tasks,
	}
	if len(tasks) == 1 && tasks[0].DedupePolicy == dts.DedupeReplace {
		v.owner = r.replacer(tasks[0])
	}
	a, err := r.do(ctx, v)
	if err != nil || a == nil {
		return list, err
	}
	if len(a.Made) != len(tasks) {
		return nil, dts.Errorf(dts.ErrUnknown, "another server has created the tasks, but its answer is about %d of %d", len(a.Made), len(tasks))
	}
	list = make([]dts.Created[*dts.Task], len(tasks))
	for i, m := range a.Made {
		if m.Existed {
			t, err := r.o.Store.Task(ctx, tasks[i].TenantID, m.ID)
			if err != nil {
				return nil, unread("the tasks were created", err)
			}
			list[i] = dts.Created[*dts.Task]{Item: t, Existed: true}
			continue
		}
		t := *tasks[i]
		t.ID, t.Shard, t.Seq = m.ID, m.Shard, m.Seq
		t.Node, t.PickedAt = "", time.Time{} // what this server may have planned before it gave them away
		list[i].Item = &t
	}
	return list, nil
}

// replacer returns who creates a task that takes the place of another one: who is responsible for that one.
func (r *Router) replacer(t *dts.Task) func(context.Context, *dts.Placement) (string, error) {
	return func(ctx context.Context, p *dts.Placement) (string, error) {
		other, err := r.o.Store.Unfinished(ctx, t.TenantID, t.DedupeKey)
		if err != nil || other == nil {
			id, _ := creator(ctx, p)
			return id, err
		}
		return responsible(p, other), nil
	}
}

// responsible returns who decides about a task: who runs it, if it runs, else the holder of its shard.
func responsible(p *dts.Placement, t *dts.Task) string {
	if _, lives := p.Node(t.Node); t.Status == dts.Running && lives {
		return t.Node
	}
	return holder(p, t.Shard)
}

// ModifyTask changes a pending task.
func (r *Router) ModifyTask(ctx context.Context, tenant, id string, p dts.TaskPatch) (*dts.Task, error) {
	// Again: a patch says what the fields become, not how they change.
	return r.onTask(ctx, tenant, id, "ModifyTask", &request{TaskPatch: &taskPatchForm{p, empties(&p)}}, true,
		func(ctx context.Context) (*dts.Task, error) { return r.o.Local.ModifyTask(ctx, tenant, id, p) })
}

// DoTask applies a verb other than modify. Of a deleted task it returns what it was.
func (r *Router) DoTask(ctx context.Context, tenant, id string, verb dts.Verb, actor string) (*dts.Task, error) {
	// Again: what is cancelled, done, paused, resumed or gone stays so. A second retry or run-now could start another
	// attempt, if the one that the first one started has failed meanwhile.
	again := verb != dts.RetryNow && verb != dts.RunNow
	if ends(verb) {
		r.endStrays(ctx, tenant, id, actor)
	}
	return r.onTask(ctx, tenant, id, "DoTask", &request{Verb: verb, Actor: actor}, again,
		func(ctx context.Context) (*dts.Task, error) { return r.o.Local.DoTask(ctx, tenant, id, verb, actor) })
}

// onTask has a verb done to a task: by the server that runs it, else by the holder of its shard.
func (r *Router) onTask(ctx context.Context, tenant, id, method string, q *request, again bool, local func(context.Context) (*dts.Task, error)) (*dts.Task, error) {
	q.Tenant, q.ID = tenant, id
	var before, done *dts.Task
	v := &verb{what: "the task " + id, again: again, gone: q.Verb == dts.Delete, method: method, ask: q,
		owner: func(ctx context.Context, p *dts.Placement) (string, error) {
			t, err := r.o.Store.Task(ctx, tenant, id)
			if err != nil {
				return "", err
			}
			before = t
			return responsible(p, t), nil
		},
		local: func(ctx context.Context) (err error) { done, err = local(ctx); return err },
	}
	if ends(q.Verb) { // of a workflow's run also others than cancel wait for the end of its steps
		v.time = longTime
	}
	a, err := r.do(ctx, v)
	switch {
	case err != nil:
		return nil, err
	case a == nil:
		return done, nil
	case q.Verb == dts.Delete:
		return before, nil
	}
	t, err := r.o.Store.Task(ctx, tenant, id)
	switch {
	case dts.CodeOf(err) == dts.ErrNotFound:
		return before, nil // and somebody deleted it at once
	case err != nil:
		return nil, unread(v.what+" was changed", err)
	}
	return t, nil
}
