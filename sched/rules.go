package sched

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"dts"
	"dts/sched/calendar"
	"dts/sched/timetable"
)

// Calendars, blackouts and the limits of queues are the same for every server. Each keeps what it has compiled, and asks now and then whether
// anything has changed.

// rulesEvery is how often a server that is not alone asks.
const rulesEvery = 2 * time.Second

// rules is what a server keeps of them.
type rules struct {
	loading   chan struct{} // capacity 1: full while someone reads the blackouts
	mu        sync.Mutex
	token     string // of the blackouts and limits that the loop has
	known     bool   // token was read
	blackouts []*blackout
	queues    map[dts.LineKey]int // limits
	calendars map[calendarKey]compiledCalendar
}

type calendarKey struct{ tenant, name string }

type compiledCalendar struct {
	version  int64
	calendar *calendar.Calendar
}

// maxCompiled is how many compiled calendars are kept.
const maxCompiled = 256

// loadRules reads the blackouts if they, or calendars, have changed since it was called last. One reads after the other:
// what was read first must not be what the loop gets last.
func (s *Scheduler) loadRules(ctx context.Context) (changed bool, err error) {
	select {
	case s.rules.loading <- struct{}{}:
		defer func() { <-s.rules.loading }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	token, err := s.o.Store.TimeRules(ctx)
	if err != nil {
		return false, err
	}
	s.rules.mu.Lock()
	same := s.rules.known && token == s.rules.token
	s.rules.mu.Unlock()
	if same {
		return false, nil
	}
	all, err := s.o.Store.AllBlackouts(ctx)
	if err != nil {
		return false, err
	}
	limits, err := s.o.Store.QueueLimits(ctx)
	if err != nil {
		return false, err
	}
	list := make([]*blackout, 0, len(all))
	for _, b := range all {
		w, err := s.compileBlackout(ctx, b)
		switch {
		case dts.CodeOf(err) == dts.ErrInvalid || dts.CodeOf(err) == dts.ErrNotFound: // stored by another version
			s.log.Error("a blackout is not understood, and nothing waits for it", "blackout", b.ID, "name", b.Name, "err", err)
			continue
		case err != nil:
			return false, err
		}
		list = append(list, &blackout{b, w}) // also one that is over: the clock may be set back
	}
	s.rules.mu.Lock()
	s.rules.token, s.rules.known, s.rules.blackouts, s.rules.queues = token, true, list, limits
	s.rules.mu.Unlock()
	s.in.post(func(l *loop) {
		l.blackouts = list
		l.setQueueLimits(limits)
	})
	return true, nil
}

func (s *Scheduler) compileBlackout(ctx context.Context, b *dts.Blackout) (*calendar.Blackout, error) {
	var c *calendar.Calendar
	if b.Calendar != "" {
		all, err := s.calendars(ctx, b.TenantID, []string{b.Calendar})
		if err != nil {
			return nil, err
		}
		c = all[b.Calendar]
	}
	return calendar.CompileBlackout(b, c)
}

// inBlackout reports whether tasks of a queue may have to wait for a blackout's end now.
func (s *Scheduler) inBlackout(tenant, queue string, now time.Time) bool {
	probe := dts.Task{TenantID: tenant, Spec: dts.Spec{Queue: queue}}
	return slices.ContainsFunc(s.rules.all(), func(b *blackout) bool {
		_, in := b.covers(&probe, now)
		return in
	})
}

// all returns the blackouts that the loop has.
func (r *rules) all() []*blackout {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.blackouts
}

// calendars returns those of a tenant's calendars that exist, compiled.
func (s *Scheduler) calendars(ctx context.Context, tenant string, names []string) (map[string]*calendar.Calendar, error) {
	if len(names) == 0 {
		return nil, nil
	}
	versions, err := s.o.Store.CalendarVersions(ctx, tenant, names)
	if err != nil {
		return nil, err
	}
	found := make(map[string]*calendar.Calendar, len(names))
	for name, version := range versions {
		key := calendarKey{tenant, name}
		s.rules.mu.Lock()
		known := s.rules.calendars[key]
		s.rules.mu.Unlock()
		if known.calendar != nil && known.version == version {
			found[name] = known.calendar
			continue
		}
		def, err := s.o.Store.Calendar(ctx, tenant, name)
		if dts.CodeOf(err) == dts.ErrNotFound {
			continue // deleted just now
		}
		if err != nil {
			return nil, err
		}
		c, err := calendar.Compile(def)
		if err != nil {
			return nil, dts.Errorf(dts.ErrInternal, "the calendar %s, stored by another version, is not understood: %w", name, err)
		}
		found[name] = c
		s.rules.mu.Lock()
		if s.rules.calendars == nil || len(s.rules.calendars) >= maxCompiled {
			s.rules.calendars = map[calendarKey]compiledCalendar{}
		}
		s.rules.calendars[key] = compiledCalendar{def.Version, c}
		s.rules.mu.Unlock()
	}
	return found, nil
}

// table makes the instants of a recurring task, with the calendars as they are now.
func (s *Scheduler) table(ctx context.Context, r *dts.RecurringTask) (*timetable.Table, error) {
	calendars, err := s.calendars(ctx, r.TenantID, r.Calendars())
	if err != nil {
		return nil, err
	}
	return Compile(r, calendars)
}

// rulesLoop notices what other servers have changed.
func (s *Scheduler) rulesLoop() {
	tick := time.NewTicker(rulesEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		if err := s.followRules(); err != nil {
			s.logStore("read calendars and blackouts", err)
		}
	}
}

// followRules takes up changes of calendars and blackouts: what uses them is planned again, and what waits for the end
// of a blackout is decided about anew.
func (s *Scheduler) followRules() error {
	changed, err := s.loadRules(s.ctx)
	if err != nil || !changed {
		return err
	}
	s.wakePlanner()
	return s.review(dts.AllShards)
}

// review decides anew about what waits for the end of a blackout, however long the store needs.
func (s *Scheduler) review(shards dts.ShardSet) error {
	return s.persist("decide anew about what waits", func() error { return s.reviewWaiting(shards) })
}

// rulesChanged takes up a change that this server has made.
func (s *Scheduler) rulesChanged() {
	s.spawn(func() {
		_ = s.persist("take up calendars and blackouts", s.followRules) // else the scheduler ends
	})
}

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

// rulesNow lets the loop have changed blackouts before the caller is answered, and does the rest behind it.
func (s *Scheduler) rulesNow(ctx context.Context) {
	if _, err := s.loadRules(ctx); err != nil {
		s.logStore("read blackouts", err)
		s.rulesChanged()
		return
	}
	s.spawn(func() {
		_ = s.review(dts.AllShards) // else the scheduler ends
	})
}
