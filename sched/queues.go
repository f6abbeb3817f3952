package sched

import (
	"context"
	"math/rand/v2"
	"time"

	"dts"
)

// What people do to queues: any server may, because none of them belongs to a shard. This server keeps to it when the
// call returns, others of a cluster within about two seconds.

// PutQueue gives a queue settings, or puts others in their place. Whether it is paused stays as it is. Runs that began
// before the queue had a limit do not count for it.
func (s *Scheduler) PutQueue(ctx context.Context, q *dts.Queue) (*dts.Queue, error) {
	n := *q
	n.PausedAt, n.PauseNote, n.Paused = time.Time{}, "", false
	if err := n.Normalize(); err != nil {
		return nil, err
	}
	if !n.Settled() {
		return nil, dts.Invalid("concurrency", "is missing, and so are rate, retry and retention: give one, or use DELETE to take its settings away")
	}
	n.UpdatedAt = dts.Micros(s.clock.now())
	n.CreatedAt = n.UpdatedAt
	err := s.changeQueue(ctx, func(ctx context.Context, token int64) error { return s.o.Store.PutQueue(ctx, &n, token) })
	if err != nil {
		return nil, err
	}
	return s.changedQueue(ctx, &n), nil
}

// PauseQueue lets nothing of a queue start any more, until ResumeQueue. What runs goes on. Where it is paused already, the
// note is changed.
func (s *Scheduler) PauseQueue(ctx context.Context, tenant, name, note string) (*dts.Queue, error) {
	n := dts.Queue{TenantID: tenant, Name: name, PauseNote: note}
	if err := n.Normalize(); err != nil {
		return nil, err
	}
	at := dts.Micros(s.clock.now())
	err := s.changeQueue(ctx, func(ctx context.Context, token int64) error {
		return s.o.Store.PauseQueue(ctx, n.TenantID, name, note, at, token)
	})
	if err != nil {
		return nil, err
	}
	n.Paused, n.PausedAt = true, at
	return s.changedQueue(ctx, &n), nil
}

// ResumeQueue ends a pause. dts.ErrConflict: it is not paused.
func (s *Scheduler) ResumeQueue(ctx context.Context, tenant, name string) (*dts.Queue, error) {
	n := dts.Queue{TenantID: tenant, Name: name}
	if err := n.Normalize(); err != nil {
		return nil, err
	}
	q, err := s.o.Store.Queue(ctx, n.TenantID, name)
	if dts.CodeOf(err) == dts.ErrNotFound || err == nil && !q.Paused {
		return nil, dts.Errorf(dts.ErrConflict, "the queue %q is not paused", name)
	}
	if err != nil {
		return nil, err
	}
	err = s.changeQueue(ctx, func(ctx context.Context, token int64) error {
		return s.o.Store.ResumeQueue(ctx, n.TenantID, name, dts.Micros(s.clock.now()), token)
	})
	if err != nil {
		return nil, err
	}
	return s.changedQueue(ctx, &n), nil
}

// changedQueue returns a queue after a change. What has become of it could perhaps not be read, or nothing is left of it:
// then what was asked for has to do, because it is done.
func (s *Scheduler) changedQueue(ctx context.Context, asked *dts.Queue) *dts.Queue {
	q, err := s.Queue(ctx, asked.TenantID, asked.Name)
	if err != nil {
		return asked
	}
	return q
}

// DeleteQueue takes a queue's settings away, its pause among them: what waited for them is let go. dts.ErrNotFound: it has
// none.
func (s *Scheduler) DeleteQueue(ctx context.Context, tenant, name string) error {
	if _, err := s.o.Store.Queue(ctx, tenant, name); err != nil {
		return err
	}
	return s.changeQueue(ctx, func(ctx context.Context, token int64) error { return s.o.Store.DeleteQueue(ctx, tenant, name, token) })
}

// changeQueue writes a change, and takes it up before the caller is answered.
func (s *Scheduler) changeQueue(ctx context.Context, write func(ctx context.Context, token int64) error) error {
	ctx, err := begun(ctx)
	if err == nil {
		err = write(ctx, rand.Int64())
	}
	if err != nil {
		return err
	}
	s.rulesNow(ctx)
	return nil
}

// Queues returns the queues of a tenant that have settings, or tasks that are not finished, and what goes on in them. Of how
// much came in lately, it knows what came to this server.
func (s *Scheduler) Queues(ctx context.Context, tenant string) ([]*dts.Queue, error) {
	list, err := s.o.Store.QueuesNow(ctx, tenant, s.clock.now())
	if err != nil {
		return nil, err
	}
	all := s.QueueLoads(tenant)
	for _, q := range list {
		q.Suggested = all[q.Name].Suggested()
	}
	return list, nil
}

// Queue returns one of them, or dts.ErrNotFound.
func (s *Scheduler) Queue(ctx context.Context, tenant, name string) (*dts.Queue, error) {
	list, err := s.Queues(ctx, tenant)
	if err != nil {
		return nil, err
	}
	for _, q := range list {
		if q.Name == name {
			return q, nil
		}
	}
	return nil, dts.Errorf(dts.ErrNotFound, "the queue %q has no settings, and nothing is in it", name)
}

// queueRetry gives what is being created the retries of its queue, where it has none of its own. What may run at most once
// is not tried again.
func (s *Scheduler) queueRetry(tenant string, spec *dts.Spec) {
	if !spec.RetryDefault {
		return
	}
	spec.RetryDefault = false
	if q := s.rules.queue(tenant, spec.Queue); q != nil && q.Retry != nil && spec.Delivery != dts.AtMostOnce {
		spec.Retry = *q.Retry
	}
}
