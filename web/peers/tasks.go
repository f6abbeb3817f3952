package peers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
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
	// Again: what is cancelled, done or gone stays so. A second retry or run-now could start another attempt, if the
	// one that the first one started has failed meanwhile.
	again := verb == dts.Cancel || verb == dts.ForceComplete || verb == dts.Delete
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
	if q.Verb == dts.Cancel {
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

// BulkCancel cancels the PENDING and RUNNING tasks that the filter selects, wherever they are, and returns how many.
// Each server does what it is responsible for. As shards may be on their way from one to another meanwhile, it looks
// whether something is left, and asks again; cancelling twice does no harm, and counts once. What was cancelled by a call
// whose answer was lost is not counted.
func (r *Router) BulkCancel(ctx context.Context, f dts.TaskFilter, actor string) (int, error) {
	if f.Statuses == nil {
		f.Statuses = []dts.Status{dts.Pending, dts.Running}
	}
	deadline := time.Now().Add(r.retry)
	sum := 0
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		n, problems, err := r.cancelEverywhere(ctx, f, actor)
		sum += n
		left := true
		if err == nil {
			left, err = r.anyLeft(ctx, f)
		}
		switch _, silent := errors.AsType[*noAnswer](err); {
		case err == nil && !left:
			return sum, nil
		case err != nil && !silent && dts.CodeOf(err) != dts.ErrUnavailable:
			return sum, partly(sum, problems, err)
		}
		if time.Now().After(deadline) || sleep(ctx, pause) != nil {
			if err != nil {
				return sum, partly(sum, problems, err)
			}
			break // what is left may have come later; if nobody is responsible for some of it, say so
		}
		r.o.Local.Poke()
	}
	if p := r.o.Local.Placement(); slices.Contains(p.Holders[:], "") {
		return sum, partly(sum, nil, dts.Errorf(dts.ErrUnavailable, "no server is responsible for some of the tasks at the moment"))
	}
	return sum, nil
}

// cancelEverywhere asks all servers at once, and adds up what they have done. One that fails does not keep the others
// from being counted: problems tells of each, and err is the first one.
func (r *Router) cancelEverywhere(ctx context.Context, f dts.TaskFilter, actor string) (sum int, problems []string, err error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	part := func(id string, cancel func() (int, error)) {
		all.Go(func() {
			n, e := cancel()
			mu.Lock()
			defer mu.Unlock()
			sum += n
			if e != nil && dts.CodeOf(e) != dts.ErrElsewhere {
				problems = append(problems, fmt.Sprintf("the server %s: %s", id, messageOf(e)))
				if err == nil {
					err = e
				}
			}
		})
	}
	p := r.o.Local.Placement()
	for _, n := range p.Nodes {
		if n.ID != p.Self {
			part(n.ID, func() (int, error) {
				a, err := r.ask(ctx, n, &verb{method: "BulkCancel", ask: &request{Filter: f, Actor: actor}, time: longTime})
				if a == nil {
					return 0, err
				}
				return a.Count, err
			})
		}
	}
	part(p.Self, func() (int, error) { return r.o.Local.BulkCancel(ctx, f, actor) })
	all.Wait()
	return sum, problems, err
}

// messageOf is what a user may read of an error of another server.
func messageOf(err error) string {
	if e, ok := err.(*dts.Error); ok {
		return e.Message
	}
	return "does not answer"
}

// partly is the error of a change that was made in part.
func partly(sum int, problems []string, err error) error {
	if sum == 0 && len(problems) <= 1 && dts.CodeOf(err) != dts.ErrInternal {
		return err
	}
	if len(problems) == 0 {
		problems = []string{messageOf(err)}
	}
	return &dts.Error{Code: dts.ErrUnknown, Err: err,
		Message: fmt.Sprintf("%d tasks were cancelled, but not all; ask again: %s", sum, strings.Join(problems[:min(len(problems), 10)], "; "))}
}

// anyLeft reports whether the filter still selects a task.
func (r *Router) anyLeft(ctx context.Context, f dts.TaskFilter) (bool, error) {
	f.Limit, f.Cursor = 1, ""
	for range 20 { // a page can be empty and not be the last one
		page, err := r.o.Store.Tasks(ctx, f)
		if err != nil || len(page.Items) > 0 {
			return true, err
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			return false, nil
		}
	}
	return false, nil
}
