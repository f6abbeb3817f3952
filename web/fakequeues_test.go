package web_test

import (
	"context"
	"slices"
	"strings"

	"dts"
)

func (f *fake) Queue(_ context.Context, _, name string) (*dts.Queue, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if q := f.queues[name]; q != nil {
		return q, nil
	}
	return nil, dts.Errorf(dts.ErrNotFound, "the queue %q has no settings, and nothing is in it", name)
}

func (f *fake) Queues(context.Context, string) (list []*dts.Queue, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, q := range f.queues {
		list = append(list, q)
	}
	slices.SortFunc(list, func(a, b *dts.Queue) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

func (f *fake) PutQueue(_ context.Context, q *dts.Queue) (*dts.Queue, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	if !q.Settled() {
		return nil, dts.Invalid("concurrency", "is missing; use DELETE")
	}
	return f.putQueue(q), nil
}

func (f *fake) putQueue(q *dts.Queue) *dts.Queue {
	if f.queues == nil {
		f.queues = map[string]*dts.Queue{}
	}
	f.queues[q.Name] = q
	return q
}

func (f *fake) PauseQueue(_ context.Context, tenant, name, note string) (*dts.Queue, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	q := dts.Queue{TenantID: tenant, Name: name}
	if old := f.queues[name]; old != nil {
		q = *old
	}
	q.Paused, q.PausedAt, q.PauseNote = true, now, note
	return f.putQueue(&q), nil
}

func (f *fake) ResumeQueue(_ context.Context, _, name string) (*dts.Queue, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.queues[name]
	if old == nil || !old.Paused {
		return nil, dts.Errorf(dts.ErrConflict, "the queue %q is not paused", name)
	}
	q := *old
	q.Paused, q.PauseNote = false, ""
	return f.putQueue(&q), nil
}

func (f *fake) DeleteQueue(_ context.Context, _, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	delete(f.queues, name)
	return nil
}

func (f *fake) Retention(context.Context, string) (*dts.RetentionState, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &dts.RetentionState{Retention: f.keeps, Effective: f.keeps.Or(dts.Retention{Seconds: 3600, Rows: 100})}, f.err
}

func (f *fake) PutRetention(ctx context.Context, tenant string, r dts.Retention) (*dts.RetentionState, error) {
	f.mu.Lock()
	f.keeps = r
	f.mu.Unlock()
	return f.Retention(ctx, tenant)
}
