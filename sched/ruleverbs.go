package sched

import (
	"context"
	"math/rand/v2"

	"dts"
	"dts/sched/calendar"
)

// What people do to calendars and blackouts: any server may, because none of them belongs to a shard.

// CreateCalendar creates a calendar. A dts.ErrConflict: there is one of that name.
func (s *Scheduler) CreateCalendar(ctx context.Context, c *dts.Calendar) (*dts.Calendar, error) {
	n := *c
	if err := s.newVersion(&n, nil); err != nil {
		return nil, err
	}
	ctx, err := begun(ctx)
	if err == nil {
		err = s.o.Store.CreateCalendar(ctx, &n)
	}
	if err != nil {
		return nil, err
	}
	s.rulesChanged()
	return &n, nil
}

// replaceTries is how often a change of a calendar is tried again because somebody else has just changed it: the last one
// counts.
const replaceTries = 20

// ReplaceCalendar changes a calendar, and plans the recurring tasks that use it again.
func (s *Scheduler) ReplaceCalendar(ctx context.Context, c *dts.Calendar) (*dts.Calendar, error) {
	for try := 1; ; try++ {
		old, err := s.o.Store.Calendar(ctx, c.TenantID, c.Name)
		if err != nil {
			return nil, err
		}
		n := *c
		if err := s.newVersion(&n, old); err != nil {
			return nil, err
		}
		write, err := begun(ctx)
		if err == nil {
			err = s.o.Store.ReplaceCalendar(write, &n, old.Version)
		}
		switch {
		case err == nil:
			s.rulesChanged()
			return &n, nil
		case !s.o.Refused(err):
			return nil, err
		case try == replaceTries:
			return nil, dts.Errorf(dts.ErrConflict, "the calendar %s is being changed by others again and again; try again", n.Name)
		}
	}
}

// newVersion checks a calendar and gives it its times. Its version is the time in microseconds, and more than the last.
func (s *Scheduler) newVersion(n, old *dts.Calendar) error {
	if err := n.Normalize(); err != nil {
		return err
	}
	if _, err := calendar.Compile(n); err != nil {
		return err
	}
	n.UpdatedAt = dts.Micros(s.clock.now())
	n.CreatedAt, n.Version = n.UpdatedAt, n.UpdatedAt.UnixMicro()
	if old != nil {
		n.CreatedAt, n.Version = old.CreatedAt, max(n.Version, old.Version+1)
	}
	return nil
}

// DeleteCalendar deletes a calendar. A dts.ErrConflict names something that uses it.
func (s *Scheduler) DeleteCalendar(ctx context.Context, tenant, name string) error {
	if _, err := s.o.Store.Calendar(ctx, tenant, name); err != nil {
		return err
	}
	ctx, err := begun(ctx)
	if err != nil {
		return err
	}
	return s.o.Store.DeleteCalendar(ctx, tenant, name, rand.Int64())
}

// CreateBlackout creates a blackout. When it returns, this server starts nothing in it any more; others of a cluster
// learn of it within about two seconds.
func (s *Scheduler) CreateBlackout(ctx context.Context, b *dts.Blackout) (*dts.Blackout, error) {
	n := *b
	if err := s.checkBlackout(ctx, &n); err != nil {
		return nil, err
	}
	ctx, err := begun(ctx)
	if err == nil {
		err = s.o.Store.CreateBlackout(ctx, &n, rand.Int64())
	}
	if err != nil {
		return nil, err
	}
	s.rulesNow(ctx)
	return &n, nil
}

// ReplaceBlackout changes a blackout.
func (s *Scheduler) ReplaceBlackout(ctx context.Context, b *dts.Blackout) (*dts.Blackout, error) {
	old, err := s.o.Store.Blackout(ctx, b.TenantID, b.ID)
	if err != nil {
		return nil, err
	}
	n := *b
	if err := s.checkBlackout(ctx, &n); err != nil {
		return nil, err
	}
	n.CreatedAt, n.CreatedBy = old.CreatedAt, old.CreatedBy
	if ctx, err = begun(ctx); err != nil {
		return nil, err
	}
	switch err := s.o.Store.ReplaceBlackout(ctx, &n, rand.Int64()); {
	case s.o.Refused(err):
		return nil, dts.Errorf(dts.ErrNotFound, "there is no blackout %s", n.ID)
	case err != nil:
		return nil, err
	}
	s.rulesNow(ctx)
	return &n, nil
}

func (s *Scheduler) checkBlackout(ctx context.Context, b *dts.Blackout) error {
	if err := b.Normalize(s.clock.now()); err != nil {
		return err
	}
	_, err := s.compileBlackout(ctx, b)
	return err
}

// DeleteBlackout deletes a blackout: what waited for its end is due at once.
func (s *Scheduler) DeleteBlackout(ctx context.Context, tenant, id string) error {
	if _, err := s.o.Store.Blackout(ctx, tenant, id); err != nil {
		return err
	}
	ctx, err := begun(ctx)
	if err == nil {
		err = s.o.Store.DeleteBlackout(ctx, tenant, id, rand.Int64())
	}
	if err != nil {
		return err
	}
	s.rulesNow(ctx)
	return nil
}
