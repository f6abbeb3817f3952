package sim_test

import (
	"testing/synctest"
	"time"

	"dts"
)

// questions asks at the end of a history whether everything that is promised holds.
func (w *world) questions() {
	status := w.p.s.Status()
	synctest.Wait() // what begins at this very instant has begun
	w.db.mu.Lock()
	w.log("", "status %+v", status)
	for id, n := range w.tasks {
		if n.flight > 0 && w.db.tasks[id] != nil {
			w.violate("answer", "a request for %s was never answered", w.name(w.db.tasks[id]))
		}
	}
	for _, t := range w.db.tasks {
		w.askTask(t)
	}
	w.askAcknowledged()
	for _, s := range w.plans {
		w.askRecurring(s)
	}
	w.serving = nil
	w.db.mu.Unlock()
	w.stop()
	w.verbs.Wait()
	w.db.mu.Lock()
	for _, t := range w.db.tasks {
		if t.Status == dts.Running {
			w.violate("I6", "%s is RUNNING after a clean stop", w.name(t))
		}
	}
	w.db.mu.Unlock()
	w.zombies.Wait()
}

// askAcknowledged is I1: what was acknowledged exists.
func (w *world) askAcknowledged() {
	for id, n := range w.tasks {
		if n.acked && n.deletes == 0 && w.db.tasks[id] == nil {
			if s := w.plans[w.recurringOf(id)]; s == nil {
				w.violate("I1", "task %s was acknowledged and does not exist", id)
			}
		}
	}
	for id, s := range w.plans {
		if s.acked && w.db.recurring[id] == nil {
			w.violate("I1", "recurring task %s was acknowledged and does not exist", id)
		}
	}
}

func (w *world) recurringOf(id string) string {
	if t := w.db.tasks[id]; t != nil {
		return t.RecurringTaskID
	}
	return ""
}

// askTask asks what must hold of each task after the calm.
func (w *world) askTask(t *dts.Task) {
	n, name, wall, list := w.of(t.ID), w.name(t), w.wall(), w.db.attempts[t.ID]
	w.tally[statusTally(t.Status)]++
	for i, a := range list {
		if a.Number != i+1 {
			w.violate("attempts", "the attempts of %s are not numbered from 1: number %d is %d", name, i+1, a.Number)
		}
		if a.State == dts.AttemptRunning && (t.Status != dts.Running || a.Number != t.Attempts) {
			w.violate("I6", "attempt %d of %s is RUNNING and the task is %s", a.Number, name, t.Status)
		}
	}
	successes := 0
	for _, a := range list {
		if a.State == dts.AttemptSuccess {
			successes++
		}
	}
	if successes > 1 {
		w.violate("I2", "%s has succeeded %d times", name, successes)
	}
	if len(list) != t.Attempts {
		w.violate("attempts", "%s has %d attempts and %d are stored", name, t.Attempts, len(list))
	}
	late := wall.Sub(t.RunAt)
	switch t.Status {
	case dts.Pending:
		most := time.Second
		if w.opts.ClaimLimit > 0 { // a retry may wait until what was read for the next two seconds has started
			most = 3 * time.Second
		}
		if late > most && w.free(t.TargetType) && (w.opts.HeapLimit == 0 || w.free(dts.HTTPCallback) && w.free(dts.Command)) {
			// While what waits for slots of one kind fills the heap, the other kind is read no further either.
			w.violate("I6", "%s has been due for %v and nothing has happened to it", name, late)
		}
	case dts.Running:
		if w.p.live[t.ID] == nil {
			w.violate("I6", "%s is RUNNING and no target works on it", name)
		}
	case dts.Success:
		if successes == 0 && !n.touched {
			w.violate("I2", "%s is SUCCESS without a run that succeeded", name)
		}
	case dts.Failed:
		if len(list) == 0 || !n.touched && list[len(list)-1].State != dts.AttemptFailed && list[len(list)-1].State != dts.AttemptLost && list[len(list)-1].State != dts.AttemptTimedOut {
			w.violate("attempts", "%s is FAILED and its last attempt did not fail", name)
		} else if last := list[len(list)-1]; !n.touched && last.State != dts.AttemptLost && t.Attempts < t.MaxAttempts && (last.State == dts.AttemptTimedOut || w.behaviour(t, last.Number).out.Retryable) {
			w.violate("attempts", "%s is FAILED after %d attempts of %d", name, t.Attempts, t.MaxAttempts)
		}
	case dts.Cancelled:
		if !n.touched {
			w.violate("cancel", "%s is CANCELLED and nobody asked for it", name)
		}
	}
	if t.RecurringTaskID != "" && t.Status == dts.Skipped && t.Origin == dts.OriginSchedule && !w.skipped(t.RecurringTaskID, t.ScheduledAt) {
		w.violate("I4", "%s is SKIPPED without a skip", name)
	}
}

// free reports whether a slot of the kind is free: then nothing may wait for one.
func (w *world) free(kind dts.TargetType) bool {
	slots, n := w.opts.HTTPSlots, 0
	if kind == dts.Command {
		slots = w.opts.CommandSlots
	}
	for _, r := range w.p.live {
		if r.task.TargetType == kind {
			n++
		}
	}
	return slots == 0 || n < slots
}

// skipped reports whether an instant lies in a skip.
func (w *world) skipped(id string, at time.Time) bool {
	for _, k := range w.db.skips[id] {
		if !at.Before(k.From) && !at.After(k.To) {
			return true
		}
	}
	return false
}

// askRecurring is I3 and I4: each instant of the schedule is a task or in a skip, and nothing else is.
func (w *world) askRecurring(s *schedule) {
	r := w.db.recurring[s.id]
	if r == nil {
		return
	}
	if s.flight > 0 {
		w.violate("answer", "a request for %s was never answered", r.Name)
	}
	wall := w.wall()
	if r.Status == dts.Active && r.MaxRuns == 0 {
		last := &s.versions[len(s.versions)-1]
		if next := last.instants(r.PlannedThrough, wall.Add(time.Second), 1); len(next) > 0 {
			w.violate("I4", "%s is planned through %s, and %s is due", r.Name, clockTime(r.PlannedThrough), clockTime(next[0]))
		}
	}
	if r.Status == dts.Active && r.PlanAt.IsZero() {
		w.violate("I4", "%s is ACTIVE and will never be planned again", r.Name)
	}
	if at := r.PlanAt; !at.IsZero() && wall.Sub(at) > time.Minute {
		w.violate("I4", "%s should have been planned at %s", r.Name, clockTime(at))
	}
	tasks := map[int64]bool{}
	removed, ran := false, int64(0)
	for _, t := range w.db.tasks {
		if t.RecurringTaskID != s.id || t.Origin != dts.OriginSchedule {
			continue
		}
		tasks[t.ScheduledAt.UnixMicro()] = true
		if n := w.of(t.ID); n.starts > 0 && t.Attempts > 0 && !n.touched {
			ran++
		}
		known := false
		for i := range s.versions {
			known = known || s.versions[i].has(t.ScheduledAt)
		}
		if !known {
			w.violate("drift", "%s is not an instant of its schedule", w.name(t))
		}
	}
	for id, n := range w.tasks {
		removed = removed || n.deletes > 0 && w.db.tasks[id] == nil
	}
	if r.MaxRuns > 0 && ran > r.MaxRuns && !s.rewound {
		w.violate("max_runs", "%s has run %d times; max_runs is %d", r.Name, ran, r.MaxRuns)
	}
	if r.CompletedCount > r.RunsCount || r.MaxRuns > 0 && r.Status == dts.Completed && r.RunsCount < r.MaxRuns && r.EndTime.IsZero() {
		w.violate("max_runs", "%s is %s with %d runs, %d completed, of %d", r.Name, r.Status, r.RunsCount, r.CompletedCount, r.MaxRuns)
	}
	through := r.PlannedThrough
	if wall.Before(through) {
		through = wall
	}
	for i := range s.versions {
		v := &s.versions[i]
		to := through
		for _, later := range s.versions[i+1:] { // after the clock was set back it may begin before this one
			if later.from.Before(to) {
				to = later.from
			}
		}
		for _, at := range v.instants(v.from, to, 5000) {
			w.tally[instants]++
			if !tasks[at.UnixMicro()] && !w.skipped(s.id, at) && !removed {
				w.violate("I4", "the instant %s of %s is neither a task nor in a skip", clockTime(at), r.Name)
				break
			}
		}
	}
	if len(s.versions) == 1 {
		w.askSkips(s, tasks)
	}
}

// askSkips holds that a range counts just the instants in it, and that none of them is a task that ran.
func (w *world) askSkips(s *schedule, tasks map[int64]bool) {
	for _, k := range w.db.skips[s.id] {
		list := s.versions[0].instants(k.From.Add(-time.Microsecond), k.To, int(k.Count)+1)
		if int64(len(list)) != k.Count {
			w.violate("I4", "a skip of %s from %s to %s counts %d instants, and there are %d", s.id, clockTime(k.From), clockTime(k.To), k.Count, len(list))
		}
	}
	for _, t := range w.db.tasks {
		n := w.of(t.ID)
		if t.RecurringTaskID == s.id && t.Origin == dts.OriginSchedule && !n.touched && t.Attempts > 0 && w.skipped(s.id, t.ScheduledAt) {
			w.violate("I3", "%s ran and is in a skip too", w.name(t))
		}
	}
}
