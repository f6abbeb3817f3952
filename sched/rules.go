package sched

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"dts"
	"dts/sched/calendar"
	"dts/sched/timetable"
)

// Calendars, blackouts and the settings of queues are the same for every server. Each keeps what it has compiled, and asks
// now and then whether anything has changed.

// rulesEvery is how often a server that is not alone asks.
const rulesEvery = 2 * time.Second

// rules is what a server keeps of them.
type rules struct {
	loading   chan struct{} // capacity 1: full while someone reads the blackouts
	mu        sync.Mutex
	token     string // of the blackouts and queues that the loop has
	known     bool   // token was read
	blackouts []*blackout
	settings  map[dts.QueueKey]*dts.Queue
	calendars map[calendarKey]compiledCalendar

	retentions map[string]dts.Retention       // of tenants for which one is set
	ownKeeps   map[dts.QueueKey]dts.Retention // of queues
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
	queues, err := s.o.Store.AllQueues(ctx)
	if err != nil {
		return false, err
	}
	retentions, err := s.o.Store.Retentions(ctx)
	if err != nil {
		return false, err
	}
	ownKeeps := map[dts.QueueKey]dts.Retention{}
	settings := make(map[dts.QueueKey]*dts.Queue, len(queues))
	for _, q := range queues {
		settings[q.Key()] = q
		if q.Retention != nil && *q.Retention != (dts.Retention{}) {
			ownKeeps[q.Key()] = *q.Retention
		}
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
	s.rules.token, s.rules.known, s.rules.blackouts, s.rules.settings = token, true, list, settings
	sameKeeps := maps.Equal(s.rules.retentions, retentions) && maps.Equal(s.rules.ownKeeps, ownKeeps)
	s.rules.retentions, s.rules.ownKeeps = retentions, ownKeeps
	s.rules.mu.Unlock()
	if !sameKeeps {
		select {
		case s.keeps <- struct{}{}:
		default:
		}
	}
	s.in.post(func(l *loop) {
		l.blackouts = list
		l.setQueues(settings)
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

// inBlackout reports whether tasks of a queue may have to wait for a blackout's end now, or for the queue to be resumed.
func (s *Scheduler) inBlackout(tenant, queue string, now time.Time) bool {
	if q := s.rules.queue(tenant, queue); q != nil && q.Paused {
		return true
	}
	probe := dts.Task{TenantID: tenant, Spec: dts.Spec{Queue: queue}}
	return slices.ContainsFunc(s.rules.all(), func(b *blackout) bool {
		_, in := b.covers(&probe, now)
		return in
	})
}

// queue returns the settings of a queue; nil where it has none.
func (r *rules) queue(tenant, name string) *dts.Queue {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.settings[dts.QueueKey{TenantID: tenant, Name: name}]
}

// pausedQueues returns the names of the queues that are paused, of all tenants.
func (r *rules) pausedQueues() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.settings {
		if q.Paused {
			names = append(names, q.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ownRetentions returns those of queues that have one of their own. Nobody changes the map.
func (r *rules) ownRetentions() map[dts.QueueKey]dts.Retention {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ownKeeps
}

// tenantRetentions returns those of tenants for which one is set. Nobody changes the map.
func (r *rules) tenantRetentions() map[string]dts.Retention {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.retentions
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
	if r.Unreadable != "" {
		return nil, dts.Errorf(dts.ErrInvalid, "the recurring task %s: %s", r.ID, r.Unreadable)
	}
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
