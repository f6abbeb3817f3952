package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"dts"
)

// InsertRecurring inserts a recurring task with its first occurrences, into a shard that the fence must hold unless
// the server is alone. Under an idempotency key that the
// same request took before, it returns what that request made.
func (s *Store) InsertRecurring(ctx context.Context, f dts.Fence, p dts.Plan) (dts.Created[*dts.RecurringTask], error) {
	r := p.New
	var none dts.Created[*dts.RecurringTask]
	var batch []Stmt
	if r.IdempotencyKey == "" {
		batch = append(batch, Stmt{insertRecurring, recurringArgs(r)})
		for _, t := range p.Insert {
			batch = append(batch, Stmt{insertTask, newTaskArgs(t)})
		}
	} else {
		batch = claimKey(r.TenantID, r.IdempotencyKey, r.RequestHash, r.ID, r.CreatedAt.UnixMicro())
		batch = append(batch, Stmt{insertKeyedRecurring, append(recurringArgs(r), r.TenantID, r.IdempotencyKey, r.ID)})
		for _, t := range p.Insert {
			batch = append(batch, Stmt{insertKeyedTask, append(newTaskArgs(t), r.TenantID, r.IdempotencyKey, r.ID)})
		}
	}
	for i := range p.Skips {
		batch = append(batch, skipStmt(&p.Skips[i], r.CreatedAt))
	}
	calendars := len(batch)
	batch = append(batch, haveCalendars(r)...)
	if !f.Alone {
		batch = append(batch, fence(f, claims(f, r.Shard)))
	}
	if _, err := s.apply(ctx, "insert recurring task", batch...); err != nil {
		if refused, is := errors.AsType[*RefusedError](err); is && refused.Index == calendars && len(r.Calendars()) > 0 {
			return none, dts.Invalid("exclude_calendars", "a calendar that is used here was deleted just now")
		}
		if r.IdempotencyKey != "" && refusedBefore(err, len(batch)-1, f.Alone) {
			return none, keyConflict(err, []string{r.IdempotencyKey})
		}
		return none, err
	}
	if r.IdempotencyKey != "" {
		owner, err := s.keyOwner(ctx, r.TenantID, r.IdempotencyKey)
		if err != nil {
			return none, writtenUnread(err)
		}
		if owner != r.ID {
			first, err := s.RecurringTask(ctx, r.TenantID, owner)
			if err != nil {
				return none, keyOutlived(err, r.IdempotencyKey)
			}
			return dts.Created[*dts.RecurringTask]{Item: first, Existed: true}, nil
		}
	}
	return dts.Created[*dts.RecurringTask]{Item: r}, nil
}

// RecurringTask returns one recurring task, or ErrNotFound.
func (s *Store) RecurringTask(ctx context.Context, tenant, id string) (*dts.RecurringTask, error) {
	list, err := s.recurring(ctx, "read recurring task", `WHERE recurring_task_id = ? AND tenant_id = ?`, id, tenant)
	if err == nil && len(list) == 0 {
		err = dts.Errorf(dts.ErrNotFound, "there is no recurring task %s", id)
	}
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// RecurringByID returns those of the recurring tasks that exist.
func (s *Store) RecurringByID(ctx context.Context, ids []string) ([]*dts.RecurringTask, error) {
	return s.recurring(ctx, "read recurring tasks", `WHERE recurring_task_id IN (SELECT value FROM json_each(?)) ORDER BY seq`, jsonOf(ids))
}

func (s *Store) recurring(ctx context.Context, op, where string, args ...any) (list []*dts.RecurringTask, err error) {
	args = append([]any{int64(0)}, args...) // the instant after which the next occurrence is looked for
	err = s.query(ctx, op, OwnWrites, Stmt{selectRecurring + where, args}, func(row scanner) error {
		r, err := scanRecurring(row)
		list = append(list, r)
		return err
	})
	return list, err
}

// RecurringTasks lists recurring tasks, newest first.
func (s *Store) RecurringTasks(ctx context.Context, f dts.RecurringFilter) (dts.Page[*dts.RecurringTask], error) {
	var page dts.Page[*dts.RecurringTask]
	before, err := parseCursor(f.Cursor)
	if err != nil {
		return page, err
	}
	where, args := `WHERE tenant_id = ? AND seq < ?`, []any{f.TenantID, before}
	if len(f.Statuses) > 0 {
		where += ` AND status IN (SELECT value FROM json_each(?))`
		args = append(args, jsonOf(f.Statuses))
	}
	if f.Name != "" {
		where += ` AND name = ?`
		args = append(args, f.Name)
	}
	page.Items, err = s.recurring(ctx, "list recurring tasks", where+` ORDER BY seq DESC LIMIT ?`, append(args, f.Limit+1)...)
	if err != nil || len(page.Items) <= f.Limit {
		return page, err
	}
	page.Items = page.Items[:f.Limit]
	var seq int64
	_, err = s.one(ctx, "list recurring tasks", Stmt{
		`SELECT seq FROM recurring_tasks WHERE recurring_task_id = ?`, []any{page.Items[f.Limit-1].ID}}, &seq)
	page.Next = formatCursor(seq)
	return page, err
}

// PlanDue returns recurring tasks in the shards whose plan_at has come, the earliest first, and when the next one's
// comes after those; zero when there is none. Those that Replans returns are not among them: they may be many, and must
// not keep the others from being planned in time.
func (s *Store) PlanDue(ctx context.Context, shards dts.ShardSet, now time.Time, limit int) (due []*dts.RecurringTask, next time.Time, err error) {
	low, high := halves(shards)
	due, err = s.recurring(ctx, "read due plans", `WHERE plan_at IS NOT NULL AND plan_at <= ? AND replan = 0`+inShards+`ORDER BY plan_at, seq LIMIT ?`,
		now.UnixMicro(), low, high, limit)
	if err != nil {
		return nil, next, err
	}
	if len(due) == limit {
		return due, now, nil
	}
	var at nullTime
	_, err = s.one(ctx, "read next plan", Stmt{
		`SELECT min(plan_at) FROM recurring_tasks WHERE plan_at IS NOT NULL AND plan_at > ?` + inShards, []any{now.UnixMicro(), low, high}}, &at)
	return due, at.time(), err
}

// Replans returns recurring tasks in the shards that must be planned again, because a calendar was changed.
func (s *Store) Replans(ctx context.Context, shards dts.ShardSet, now time.Time, limit int) ([]*dts.RecurringTask, error) {
	low, high := halves(shards)
	return s.recurring(ctx, "read changed plans", `WHERE plan_at IS NOT NULL AND plan_at <= ? AND replan <> 0`+inShards+`ORDER BY plan_at, seq LIMIT ?`,
		now.UnixMicro(), low, high, limit)
}

// PausedRecurring returns the recurring tasks in the shards that are paused, by their ids.
func (s *Store) PausedRecurring(ctx context.Context, shards dts.ShardSet) (map[string]dts.Pause, error) {
	paused := map[string]dts.Pause{}
	low, high := halves(shards)
	err := s.query(ctx, "read paused recurring tasks", OwnWrites, Stmt{
		`SELECT recurring_task_id, shard, paused_until, coalesce(pause_note, ''), coalesce(iif(json_valid(spec), json_extract(spec, '$.paused_by'), NULL), '') FROM recurring_tasks WHERE status = 'PAUSED'` + inShards, []any{low, high}},
		func(r scanner) error {
			var id, note, by string
			var p dts.Pause
			var until nullTime
			err := r.Scan(&id, &p.Shard, &until, &note, &by)
			p.Until, p.Note = until.time(), dts.PauseWords(note, by)
			paused[id] = p
			return err
		})
	return paused, err
}

// BootRecurring returns the active recurring tasks that run at every boot.
func (s *Store) BootRecurring(ctx context.Context) ([]*dts.RecurringTask, error) {
	return s.recurring(ctx, "read boot tasks", `WHERE status = 'ACTIVE' AND iif(json_valid(spec), json_extract(spec, '$.cron'), NULL) = '@reboot' ORDER BY seq`)
}

// SavePlans applies planning steps, each atomic by itself. The errors are in the order of the plans:
// ErrRefused where a recurring task is no longer what Old says, or an occurrence no longer what its change
// says.
//
// All of them are tried as one batch first: it puts occurrences that are due together next to each other, so that
// the writes that end them meet in few pages.
func (s *Store) SavePlans(ctx context.Context, f dts.Fence, plans []dts.Plan, now time.Time) []error {
	errs := make([]error, len(plans))
	if len(plans) > 1 {
		batch, told := planStmts(f, plans, now)
		if res, err := s.apply(ctx, "plan", batch...); !errors.Is(err, ErrRefused) {
			s.rippled(res, told, err)
			for i := range errs {
				errs[i] = err
			}
			return errs
		}
	}
	type answer struct {
		i   int
		err error
	}
	answers := make(chan answer, len(plans))
	for i := range plans {
		batch, told := planStmts(f, plans[i:i+1], now)
		s.g.ApplyAsync(batch, func(res []Result, err error) {
			s.rippled(res, told, err)
			answers <- answer{i, domainError("plan", err)}
		})
	}
	for range plans {
		select {
		case a := <-answers:
			errs[a.i] = a.err
		case <-ctx.Done():
			for i := range errs {
				if errs[i] == nil {
					errs[i] = readError("plan", ctx.Err())
				}
			}
			return errs
		}
	}
	return errs
}

const (
	assertRecurring = `INSERT INTO batch_assert (tenant_id, ok) SELECT 'system', NULL WHERE NOT EXISTS (
		SELECT 1 FROM recurring_tasks WHERE recurring_task_id = ? AND tenant_id = ?
		AND status = ? AND plan_version = ? AND planned_through = ? AND replan = ?)`

	// The counts are left alone: finishing runs moves them.
	updateRecurring = `UPDATE recurring_tasks SET status = ?, name = ?, plan_version = ?, planned_through = ?, plan_at = ?,
			paused_at = ?, paused_until = ?, pause_note = ?, updated_at = ?, spec = coalesce(?, spec), replan = ?
		WHERE recurring_task_id = ?`
)

// readableSpec is what is stored of a definition. What could not be read stays as it is.
func readableSpec(r *dts.RecurringTask) any {
	if r.Unreadable != "" {
		return nil
	}
	return encodeRecurring(r)
}

// planStmts is the batch of some plans. Its last statements, rippling many, tell the dependents of what they end or delete.
func planStmts(f dts.Fence, plans []dts.Plan, now time.Time) (batch []Stmt, rippling int) {
	var shards []int
	var changes []dts.Change
	var insert []*dts.Task
	batch = make([]Stmt, 1, 1+3*len(plans))
	for i := range plans {
		p := &plans[i]
		o, n := p.Old, p.New
		shards = append(shards, o.Shard)
		insert = append(insert, p.Insert...)
		changes = append(changes, p.Changes...)
		batch = append(batch, Stmt{assertRecurring, []any{o.ID, o.TenantID, string(o.Status), o.PlanVersion, o.PlannedThrough.UnixMicro(), o.Replan}})
		batch = append(batch, haveCalendars(n)...)
		for i := range p.Changes {
			batch = appendChange(batch, &p.Changes[i], now)
		}
		for _, from := range p.Unskip {
			batch = append(batch, Stmt{`DELETE FROM skips WHERE recurring_task_id = ? AND from_at = ?`, []any{o.ID, from.UnixMicro()}})
		}
		for i := range p.Skips {
			batch = append(batch, skipStmt(&p.Skips[i], now))
		}
		batch = append(batch, Stmt{updateRecurring, []any{
			string(n.Status), n.Name, n.PlanVersion, n.PlannedThrough.UnixMicro(), micros(n.PlanAt),
			micros(n.PausedAt), micros(n.PausedUntil), orNull(n.PauseNote), n.UpdatedAt.UnixMicro(), readableSpec(n), n.Replan, n.ID}})
	}
	batch[0] = fence(f, claims(f, shards...))
	slices.SortStableFunc(insert, func(a, b *dts.Task) int { return a.RunAt.Compare(b.RunAt) })
	for _, t := range insert {
		batch = append(batch, Stmt{insertTask, newTaskArgs(t)})
	}
	told := changeRipple(changes, now)
	return append(batch, told...), len(told)
}

// Planned returns a recurring task's planned occurrences that have not started, soonest first.
func (s *Store) Planned(ctx context.Context, id string) ([]*dts.Task, error) {
	return s.tasks(ctx, "read planned occurrences", Stmt{selectTask + `WHERE recurring_task_id = ? AND status = 'PENDING'
		AND origin = 'SCHEDULE' AND attempts = 0 ORDER BY scheduled_at LIMIT 2000`, []any{id}})
}

// In two parts, and with the +, so that neither looks through the ledger: the one uses tasks_planned, the other tasks_rare.
const countActive = `SELECT
		(SELECT count(*) FROM tasks WHERE recurring_task_id = ?1 AND status = 'PENDING' AND (attempts > 0 OR ?2 AND line IS NOT NULL)) +
		(SELECT count(*) FROM tasks WHERE +recurring_task_id = ?1 AND status = 'RUNNING' AND status <> 'PENDING' AND status <> 'SUCCESS')`

// ActiveRuns returns how many occurrences of a recurring task are active: started and not ended.
func (s *Store) ActiveRuns(ctx context.Context, id string) (n int, err error) {
	_, err = s.one(ctx, "count active runs", Stmt{countActive, []any{id, 0}}, &n)
	return n, err
}

// ActiveOrInLine returns how many occurrences of a recurring task are active or wait in line for a slot.
func (s *Store) ActiveOrInLine(ctx context.Context, id string) (n int, err error) {
	_, err = s.one(ctx, "count active runs", Stmt{countActive, []any{id, 1}}, &n)
	return n, err
}

// LastSkip returns the newest skipped range of a recurring task; nil when there is none.
func (s *Store) LastSkip(ctx context.Context, id string) (k *dts.Skip, err error) {
	err = s.query(ctx, "read last skip", OwnWrites, Stmt{selectSkip + `WHERE recurring_task_id = ? ORDER BY from_at DESC LIMIT 1`, []any{id}},
		func(r scanner) (err error) { k, err = scanSkip(r); return err })
	return k, err
}

// SkipsAfter returns the skipped ranges of a recurring task that reach beyond an instant.
func (s *Store) SkipsAfter(ctx context.Context, id string, at time.Time) (list []*dts.Skip, err error) {
	err = s.query(ctx, "read skips ahead", OwnWrites, Stmt{selectSkip + `WHERE recurring_task_id = ? AND to_at > ? ORDER BY from_at`, []any{id, at.UnixMicro()}},
		func(r scanner) error {
			k, err := scanSkip(r)
			list = append(list, k)
			return err
		})
	return list, err
}

// DecidedAfter returns, in order, the instants after a time about which somebody has decided by hand: whose planned
// occurrence was moved, whatever has become of it, or removed.
func (s *Store) DecidedAfter(ctx context.Context, id string, at time.Time) (list []time.Time, err error) {
	err = s.query(ctx, "read occurrences decided by hand", OwnWrites, Stmt{`SELECT scheduled_at FROM tasks
		WHERE recurring_task_id = ?1 AND scheduled_at > ?2 AND origin = 'SCHEDULE' AND moved = 1
		UNION SELECT from_at FROM skips WHERE recurring_task_id = ?1 AND from_at > ?2 AND reason = 'REMOVED' ORDER BY 1`, []any{id, at.UnixMicro()}},
		func(r scanner) error {
			var at int64
			err := r.Scan(&at)
			list = append(list, time.UnixMicro(at).UTC())
			return err
		})
	return list, err
}

// CountOccurrences returns how many tasks of an origin there are for the instants from from to to.
func (s *Store) CountOccurrences(ctx context.Context, id string, origin dts.Origin, from, to time.Time) (n int64, err error) {
	_, err = s.one(ctx, "count occurrences", Stmt{`SELECT count(*) FROM tasks WHERE recurring_task_id = ? AND scheduled_at BETWEEN ? AND ? AND origin = ?`,
		[]any{id, from.UnixMicro(), to.UnixMicro(), string(origin)}}, &n)
	return n, err
}
