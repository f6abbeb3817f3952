package sched

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"dts"
	"dts/sched/cron"
)

// Conflicts: times in which more tasks will want to run than something that they share lets.

const (
	maxConflicts     = 100
	conflictsAhead   = 31 * 24 * time.Hour // the longest time that is looked at
	conflictInstants = 20_000              // looked at, of one recurring task
	conflictRuns     = 1_000_000           // looked at in all
	conflictLooks    = 20_000_000          // times that a run is held against a blackout
	conflictTasks    = 10_000              // recurring tasks, and one-time tasks
	conflictSets     = 10_000              // different sets of tasks that are told apart
	conflictNamed    = 100                 // tasks that one conflict names
	medianOf         = 20                  // runs
	unknownRun       = time.Second         // how long a run takes of which nothing is known
)

// shared is something that only so many runs may have at once.
type shared struct {
	label string
	limit int
}

// sharedBy is what a run has while it runs. What else tasks share becomes one more line here.
func (s *Scheduler) sharedBy(tenant string, spec *dts.Spec, shard int) []shared {
	if spec.TargetType == dts.WorkflowRun {
		return nil // it only waits for its steps
	}
	where := ""
	if !s.alone() {
		where = " of server " + s.members.placement.Load().Holders[shard]
	}
	slots := shared{"slots for HTTP calls" + where, s.tuning().HTTPSlots}
	if spec.TargetType == dts.Command {
		slots = shared{"slots for commands" + where, s.tuning().CommandSlots}
	}
	all := []shared{slots}
	if spec.ConcurrencyKey != "" {
		all = append(all, shared{"concurrency key " + spec.ConcurrencyKey, max(spec.ConcurrencyLimit, 1)})
	}
	if q := s.rules.queue(tenant, spec.Queue); q != nil && q.Concurrency > 0 {
		all = append(all, shared{"queue " + spec.Queue, q.Concurrency})
	}
	return all
}

// contender is a task, what it shares with others, and when it will run.
type contender struct {
	task   dts.ConflictTask
	shares []shared
	runs   []span
}

// span is a run, [from, to).
type span struct{ from, to time.Time }

// Conflicts foretells when, in [from, to), more tasks will want to run than what they share lets: the worst first, at most 100.
// Zero times: from now on, for a week. Runs are taken to last as long as the median of the last 20, those of one-time tasks
// and of new recurring tasks a second, and to start when they are due, or when a blackout ends.
//
// It looks at the next 20,000 instants of each recurring task at most, and at a million in all, fewer where there are many
// blackouts: of a task of every second those of the first five hours. Retries, triggers, @reboot and the steps of workflows, whose times nobody knows, are left out.
func (s *Scheduler) Conflicts(ctx context.Context, tenant string, from, to time.Time) ([]dts.Conflict, error) {
	now := s.clock.now()
	if from.Before(now) {
		from = now
	}
	if to.IsZero() {
		to = from.Add(7 * 24 * time.Hour)
	}
	switch {
	case !from.Before(to):
		return nil, dts.Invalid("to", "must be after from, and in the future")
	case to.Sub(from) > conflictsAhead:
		return nil, dts.Invalid("to", "is more than %d days after from; ask for less", int(conflictsAhead.Hours()/24))
	}
	recurring, err := s.activeRecurring(ctx, tenant)
	if err != nil {
		return nil, err
	}
	closed, err := s.closings(ctx, tenant)
	if err != nil {
		return nil, err
	}
	closed = closed.within(from, to)
	var names []string
	for _, r := range recurring {
		names = append(names, r.Calendars()...)
	}
	slices.Sort(names)
	calendars, err := s.calendars(ctx, tenant, slices.Compact(names))
	if err != nil {
		return nil, err
	}
	var all []contender
	limit := min(conflictInstants, conflictRuns/max(len(recurring), 1), conflictLooks/max(len(recurring)*len(closed), 1))
	for chunk := range slices.Chunk(recurring, 500) {
		ids := make([]string, len(chunk))
		for i, r := range chunk {
			ids[i] = r.ID
		}
		took, err := s.o.Store.RunTimes(ctx, ids, medianOf)
		if err != nil {
			return nil, err
		}
		for _, r := range chunk {
			if err := ctx.Err(); err != nil {
				return nil, dts.Errorf(dts.ErrUnavailable, "the request was given up before it was done: %w", err)
			}
			c, err := Compile(r, calendars)
			if errors.Is(err, cron.ErrReboot) || dts.CodeOf(err) == dts.ErrInvalid {
				continue // the planner says what is wrong with it
			}
			if err != nil {
				return nil, err
			}
			median := medianTime(took[r.ID])
			if r.TargetType == dts.Ping {
				median = time.Millisecond // its job runs elsewhere
			}
			all = append(all, contender{
				task:   dts.ConflictTask{RecurringTaskID: r.ID, Name: r.Name, Seconds: median.Seconds()},
				shares: s.sharedBy(tenant, &r.Spec, r.Shard),
				runs:   runsOf(r, c, closed, from, to, median, limit),
			})
		}
	}
	once, err := s.o.Store.PendingOnce(ctx, tenant, from, to, conflictTasks)
	if err != nil {
		return nil, err
	}
	for _, t := range once {
		at := t.RunAt
		if h, is := closed.hold(at, t.Queue); h.skipped {
			continue
		} else if is {
			at = h.until
		}
		all = append(all, contender{
			task:   dts.ConflictTask{TaskID: t.ID, Name: t.Name, Seconds: unknownRun.Seconds()},
			shares: s.sharedBy(tenant, &t.Spec, t.Shard), runs: []span{{at, at.Add(unknownRun)}},
		})
	}
	return findConflicts(all, from, to), nil
}

// activeRecurring returns a tenant's active recurring tasks, the newest ones if there are very many.
func (s *Scheduler) activeRecurring(ctx context.Context, tenant string) (list []*dts.RecurringTask, err error) {
	f := dts.RecurringFilter{TenantID: tenant, Statuses: []dts.RecurringStatus{dts.Active}, Limit: 1000}
	for len(list) < conflictTasks {
		page, err := s.o.Store.RecurringTasks(ctx, f)
		if err != nil {
			return nil, err
		}
		list = append(list, page.Items...)
		if f.Cursor = page.Next; f.Cursor == "" {
			break
		}
	}
	return list, nil
}

// medianTime is how long a run takes, as far as the last ones tell.
func medianTime(list []time.Duration) time.Duration {
	if len(list) == 0 {
		return unknownRun
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// runsOf is when a recurring task will run, of limit instants at most. Those that begin before from and last longer are among
// them.
func runsOf(r *dts.RecurringTask, c cron.Schedule, closed closings, from, to time.Time, takes time.Duration, limit int) (runs []span) {
	if r.MaxRuns > 0 {
		limit = int(min(int64(limit), max(r.MaxRuns-r.RunsCount, 0)))
	}
	delay := r.Delay()
	at := from.Add(-takes - delay)
	for range limit {
		if at = c.Next(at); at.IsZero() || !at.Before(to) {
			break
		}
		due := at.Add(delay)
		if h, is := closed.hold(due, r.Queue); h.skipped {
			continue
		} else if is {
			due = h.until
		}
		runs = addRun(runs, due, takes, r.OverlapPolicy)
	}
	return runs
}

// addRun adds a run that is due at an instant to those before, as the overlap policy has it.
func addRun(runs []span, due time.Time, takes time.Duration, policy dts.OverlapPolicy) []span {
	if n := len(runs); n > 0 && due.Before(runs[n-1].to) {
		last := &runs[n-1]
		switch policy {
		case dts.OverlapSkip:
			return runs
		case dts.OverlapBufferOne:
			if due.Before(last.from) {
				return runs // one waits already
			}
			due = last.to
		case dts.OverlapBufferAll:
			due = last.to
		case dts.OverlapCancel:
			last.to = due
		}
	}
	return append(runs, span{due, due.Add(takes)})
}

// contention is a run of one of several contenders.
type contention struct {
	span
	who int
}

// endings is the runs that are under way, the first to end on top.
type endings []contention

func (e endings) Len() int           { return len(e) }
func (e endings) Less(i, j int) bool { return e[i].to.Before(e[j].to) }
func (e endings) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *endings) Push(x any)        { *e = append(*e, x.(contention)) }
func (e *endings) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}

// findConflicts finds the stretches of [from, to) in which more runs want something than may have it. Those in which the same
// tasks take part are one conflict: the worst of them is told, and how many there are.
func findConflicts(list []contender, from, to time.Time) []dts.Conflict {
	groups := map[shared][]contention{}
	for i, c := range list {
		for _, s := range c.shares {
			for _, r := range c.runs {
				if r.to.After(from) && r.from.Before(to) {
					groups[s] = append(groups[s], contention{r, i})
				}
			}
		}
	}
	var found []dts.Conflict
	for s, runs := range groups {
		found = append(found, collisions(s, runs, list, from)...)
	}
	slices.SortFunc(found, func(a, b dts.Conflict) int {
		return cmp.Or(cmp.Compare(b.Most-b.Limit, a.Most-a.Limit), cmp.Compare(b.Times, a.Times), a.From.Compare(b.From), cmp.Compare(a.Shared, b.Shared))
	})
	return found[:min(len(found), maxConflicts)]
}

// collisions goes through the runs that share one thing, in the order of their starts.
func collisions(s shared, runs []contention, list []contender, from time.Time) []dts.Conflict {
	slices.SortFunc(runs, func(a, b contention) int { return a.from.Compare(b.from) })
	sets := map[string]*dts.Conflict{}
	var active endings
	var now dts.Conflict // the stretch that is open; Most is 0 when none is
	var who []int
	end := func(at time.Time) { // one run ends
		if len(active) == s.limit && now.Most > 0 {
			now.To = at
			closeCollision(sets, now, who, list)
			now, who = dts.Conflict{}, nil
		}
	}
	for _, r := range runs {
		for len(active) > 0 && !active[0].to.After(r.from) {
			end(heap.Pop(&active).(contention).to)
		}
		heap.Push(&active, r)
		if len(active) <= s.limit {
			continue
		}
		if now.Most == 0 {
			now = dts.Conflict{From: r.from, Shared: s.label, Limit: s.limit}
			if now.From.Before(from) {
				now.From = from
			}
			for _, a := range active {
				who = append(who, a.who)
			}
		} else {
			who = append(who, r.who)
		}
		now.Most = max(now.Most, len(active))
	}
	for len(active) > 0 {
		end(heap.Pop(&active).(contention).to)
	}
	out := make([]dts.Conflict, 0, len(sets))
	for _, c := range sets {
		out = append(out, *c)
	}
	return out
}

// closeCollision counts a stretch with those of the same tasks.
func closeCollision(sets map[string]*dts.Conflict, c dts.Conflict, who []int, list []contender) {
	slices.Sort(who)
	who = slices.Compact(who)
	key := fmt.Sprint(who)
	old := sets[key]
	switch {
	case old == nil && len(sets) == conflictSets:
		return
	case old == nil:
		c.Times = 1
		for _, i := range who[:min(len(who), conflictNamed)] {
			c.Tasks = append(c.Tasks, list[i].task)
		}
		c.From, c.To = c.From.UTC(), c.To.UTC()
		sets[key] = &c
	default:
		old.Times++
		if c.Most > old.Most {
			old.From, old.To, old.Most = c.From.UTC(), c.To.UTC(), c.Most
		}
	}
}
