package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dts"
)

const (
	examinedSchedules = 10_000
	examinedRuns      = 1000 // recurring tasks whose runs are looked at
	lastRuns          = 10   // of each
	failsFrom         = 3    // as many in a row are a habit
	lateFrom          = 5
	deadFrom          = 100
	pausedLong        = 7 * 24 * time.Hour
	queuePausedLong   = 24 * time.Hour
	backlogLong       = time.Hour
	farAhead          = 366 * 24 * time.Hour
)

// examined is where tasks are read: a server, or a database file.
type examined interface {
	RecurringTasks(ctx context.Context, f dts.RecurringFilter) (dts.Page[*dts.RecurringTask], error)
	Tasks(ctx context.Context, f dts.TaskFilter) (dts.Page[*dts.Task], error)
	Queues(ctx context.Context) ([]*dts.Queue, error)
	Counts(ctx context.Context) (*dts.Counts, error)
}

func (d *doctor) checkTasks(ctx context.Context) {
	for _, check := range []struct {
		name string
		look func(context.Context) error
	}{{"schedules", d.checkSchedules}, {"dead letters", d.checkDead}, {"queues", d.checkQueues}} {
		if err := check.look(ctx); err != nil {
			text, _ := verdict(err)
			d.report.problem(check.name, "see the server's log", "could not be looked at: %s", oneLine(text))
		}
	}
}

// schedules are recurring tasks that something is the matter with.
type schedules struct {
	all                                           int
	unreadable, never, far, paused, failing, late []string
	looked                                        int // at the runs of so many
	backups                                       []*dts.RecurringTask
}

func (d *doctor) checkSchedules(ctx context.Context) error {
	var s schedules
	f := dts.RecurringFilter{Statuses: []dts.RecurringStatus{dts.Active, dts.Paused}, Limit: 500}
	for s.all < examinedSchedules {
		page, err := d.source.RecurringTasks(ctx, f)
		if err != nil {
			return err
		}
		for _, r := range page.Items {
			s.all++
			s.schedule(r, d.app.now())
			if r.TargetType == dts.Backup && r.Unreadable == "" {
				s.backups = append(s.backups, r)
			}
			if r.Status == dts.Active && r.RunsCount > 0 && s.looked < examinedRuns {
				s.looked++
				if err := d.runs(ctx, r, &s); err != nil {
					return err
				}
			}
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			break
		}
	}
	d.saySchedules(&s)
	if s.all == 0 || d.clustered() {
		return nil // nothing to lose yet, or rqlite makes the backups
	}
	return d.checkBackups(ctx, s.backups)
}

// clustered reports whether the tasks are in rqlite.
func (d *doctor) clustered() bool {
	return d.status != nil && d.status.Lease != nil || d.dir != "" && exists(filepath.Join(d.dir, rqliteFile))
}

// schedule looks whether a recurring task will ever fire.
func (s *schedules) schedule(r *dts.RecurringTask, now time.Time) {
	name := displayName(&r.Spec)
	switch {
	case r.Unreadable != "":
		s.unreadable = append(s.unreadable, name+": "+oneLine(r.Unreadable))
	case r.Status == dts.Paused && r.PausedUntil.IsZero() && now.Sub(r.PausedAt) > pausedLong:
		s.paused = append(s.paused, strings.TrimSuffix(fmt.Sprintf("%s, since %s: %s", name, age(now.Sub(r.PausedAt)), oneLine(r.PauseNote)), ": "))
	case r.Status == dts.Paused && r.PausedUntil.Sub(now) > farAhead:
		s.paused = append(s.paused, fmt.Sprintf("%s, for another %s", name, age(r.PausedUntil.Sub(now))))
	case r.Status == dts.Paused || strings.HasPrefix(r.Cron, "@reboot"):
	case r.NextRunAt.IsZero():
		why := shortSchedule(&r.Schedule)
		if len(r.Calendars()) > 0 {
			why += ", of which its calendars leave nothing (" + clean(strings.Join(r.Calendars(), ", ")) + ")"
		}
		s.never = append(s.never, name+": "+why)
	case r.NextRunAt.Sub(now) > farAhead:
		s.far = append(s.far, fmt.Sprintf("%s: %s", name, relative(r.NextRunAt, now)))
	}
}

// runs looks whether the last runs of a recurring task have all failed, or started late.
func (d *doctor) runs(ctx context.Context, r *dts.RecurringTask, s *schedules) error {
	page, err := d.source.Tasks(ctx, dts.TaskFilter{RecurringTaskID: r.ID, Statuses: []dts.Status{dts.Success, dts.Failed}, Limit: lastRuns})
	if err != nil {
		return err
	}
	last := page.Items
	failed := func(t *dts.Task) bool { return t.Status == dts.Failed }
	onTime := func(t *dts.Task) bool { return t.SLAMet == nil || *t.SLAMet }
	if len(last) >= failsFrom && !slices.ContainsFunc(last, func(t *dts.Task) bool { return !failed(t) }) {
		text := fmt.Sprintf("%s: all of the last %d runs", displayName(&r.Spec), len(last))
		if e := lastError(last[0]); e != "" {
			text += "; " + e
		}
		s.failing = append(s.failing, text)
	}
	if len(last) >= lateFrom && !slices.ContainsFunc(last, onTime) {
		var sum int64
		for _, t := range last {
			if t.LatenessUS != nil {
				sum += *t.LatenessUS
			}
		}
		s.late = append(s.late, fmt.Sprintf("%s: all of the last %d runs, by %s on average", displayName(&r.Spec), len(last), span(time.Duration(sum/int64(len(last)))*time.Microsecond)))
	}
	return nil
}

func (d *doctor) saySchedules(s *schedules) {
	r := d.report
	r.list("schedules", levelProblem, s.unreadable, "cancel them with dts rm, and add them anew", "recurring tasks cannot be read, and do not run")
	r.list("schedules", levelWarning, s.never, "dts next and dts preview show what a schedule means; change it, its calendars or its end, or remove it with dts rm", "recurring tasks will not run again")
	r.list("schedules", levelWarning, s.far, "see that this is meant: dts show NAME", "recurring tasks run next in more than a year")
	r.list("schedules", levelWarning, s.paused, "dts resume NAME, or dts rm NAME", "recurring tasks are paused without an end, and perhaps forgotten")
	switch {
	case s.all == 0:
		r.ok("schedules", "there are no recurring tasks")
		return
	case len(s.unreadable)+len(s.never)+len(s.far)+len(s.paused) == 0:
		r.ok("schedules", "%s, and nothing is the matter with the next runs", count(s.all, "recurring task"))
	}
	r.list("runs", levelProblem, s.failing, "dts logs NAME shows what it printed, dts why NAME what was tried", "recurring tasks fail each time")
	r.list("runs", levelWarning, s.late, "dts why NAME says what they waited for; more slots, another queue, or a larger --sla", "recurring tasks start late each time")
	if len(s.failing)+len(s.late) == 0 {
		text := "no recurring task fails or is late each time"
		if s.looked == examinedRuns {
			text += fmt.Sprintf(", of the %d that were looked at", examinedRuns)
		}
		r.ok("runs", "%s", text)
	}
}

func (d *doctor) checkDead(ctx context.Context) error {
	n, err := d.source.Counts(ctx)
	if err != nil {
		return err
	}
	switch {
	case n.Failed == 0:
		d.report.ok("dead letters", "there are none")
		return nil
	case n.Failed < deadFrom:
		d.report.ok("dead letters", "%s; dts dead shows them", count(int(n.Failed), "task"))
		return nil
	}
	page, err := d.source.Tasks(ctx, dts.TaskFilter{Statuses: []dts.Status{dts.Failed}, Limit: 500})
	if err != nil {
		return err
	}
	names := map[string]int{}
	for _, t := range page.Items {
		names[displayName(&t.Spec)]++
	}
	var items []string
	for name := range names {
		items = append(items, name)
	}
	slices.SortFunc(items, func(x, y string) int {
		if names[x] != names[y] {
			return names[y] - names[x]
		}
		return strings.Compare(x, y)
	})
	for i, name := range items {
		items[i] = fmt.Sprintf("%s: %d of the newest %d", name, names[name], len(page.Items))
	}
	more := ""
	if n.Capped {
		more = "at least "
	}
	d.report.list("dead letters", levelWarning, items, "dts dead shows them with their errors; then dts retry --dead, or dts rm --dead", "there are %s%d of them", more, n.Failed)
	return nil
}

func (d *doctor) checkQueues(ctx context.Context) error {
	list, err := d.source.Queues(ctx)
	if err != nil {
		return err
	}
	now := d.app.now()
	var paused, full []string
	for _, q := range list {
		waits := ""
		if q.Waiting > 0 {
			waits = ", " + waitingText(q.Waiting) + " wait"
		}
		switch oldest := secondsOf(q.OldestAgeSeconds); {
		case q.Paused && now.Sub(q.PausedAt) > queuePausedLong:
			paused = append(paused, strings.TrimSuffix(fmt.Sprintf("%s, since %s%s: %s", clean(q.Name), age(now.Sub(q.PausedAt)), waits, oneLine(q.PauseNote)), ": "))
		case !q.Paused && oldest > backlogLong && d.status != nil:
			text := fmt.Sprintf("%s%s, the oldest for %s", clean(q.Name), waits, age(oldest))
			if q.Suggested > 0 && q.Concurrency > 0 && q.Suggested > q.Concurrency {
				text += fmt.Sprintf("; it lets %d run at once, and %d would keep up", q.Concurrency, q.Suggested)
			}
			full = append(full, text)
		}
	}
	d.report.list("queues", levelWarning, paused, "dts queue resume NAME", "queues are paused for more than a day, and perhaps forgotten")
	d.report.list("queues", levelWarning, full, "raise its limit or rate (dts queue set), or add less to it", "queues do not keep up")
	if len(paused)+len(full) == 0 {
		d.report.ok("queues", "none is paused for long, or does not keep up")
	}
	return nil
}
