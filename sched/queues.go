package sched

import (
	"context"
	"math/rand/v2"

	"dts"
)

// PutQueue gives a queue a limit, or changes it. This server keeps to it when it returns, others of a cluster within about
// two seconds. Runs that began before the queue had a limit do not count.
func (s *Scheduler) PutQueue(ctx context.Context, q *dts.Queue) (*dts.Queue, error) {
	n := *q
	if err := n.Normalize(); err != nil {
		return nil, err
	}
	n.UpdatedAt = dts.Micros(s.clock.now())
	n.CreatedAt = n.UpdatedAt
	write, err := begun(ctx)
	if err == nil {
		err = s.o.Store.PutQueue(write, &n, rand.Int64())
	}
	if err != nil {
		return nil, err
	}
	s.rulesNow(write)
	return s.o.Store.Queue(ctx, n.TenantID, n.Name)
}

// DeleteQueue takes a queue's limit away: what waited for it is let go. dts.ErrNotFound: it has none.
func (s *Scheduler) DeleteQueue(ctx context.Context, tenant, name string) error {
	if _, err := s.o.Store.Queue(ctx, tenant, name); err != nil {
		return err
	}
	write, err := begun(ctx)
	if err == nil {
		err = s.o.Store.DeleteQueue(write, tenant, name, rand.Int64())
	}
	if err != nil {
		return err
	}
	s.rulesNow(write)
	return nil
}
