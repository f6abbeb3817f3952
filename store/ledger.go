package store

import (
	"context"
	"slices"
	"strconv"
	"time"

	"dts"
)

const selectSkip = `SELECT tenant_id, recurring_task_id, from_at, to_at, count, reason, note, recorded_at FROM skips `

func scanSkip(r scanner) (*dts.Skip, error) {
	var k dts.Skip
	var from, to, recorded int64
	err := r.Scan(&k.TenantID, &k.RecurringTaskID, &from, &to, &k.Count, &k.Reason, &k.Note, &recorded)
	k.From, k.To, k.RecordedAt = time.UnixMicro(from).UTC(), time.UnixMicro(to).UTC(), time.UnixMicro(recorded).UTC()
	return &k, err
}

// Upcoming returns a recurring task's occurrences that have not started, soonest first.
func (s *Store) Upcoming(ctx context.Context, tenant, id string, limit int) ([]*dts.Task, error) {
	if _, err := s.RecurringTask(ctx, tenant, id); err != nil {
		return nil, err
	}
	return s.tasks(ctx, "read upcoming occurrences", Stmt{selectTask + `WHERE recurring_task_id = ? AND tenant_id = ? AND status = 'PENDING'
		AND attempts = 0 ORDER BY run_at, seq LIMIT ?`, []any{id, tenant, limit}})
}

// oneInstant is more than there can be of one instant: a task of each origin, and a skip.
const oneInstant = 8

// Occurrences is the ledger of a recurring task, newest instant first: for each one a task, or the skipped
// range that it lies in. A task that became SKIPPED is shown by its skip, with the task beside it.
func (s *Store) Occurrences(ctx context.Context, tenant, id, cursor string, limit int) (dts.Page[dts.Occurrence], error) {
	var page dts.Page[dts.Occurrence]
	if _, err := s.RecurringTask(ctx, tenant, id); err != nil {
		return page, err
	}
	before := maxSeq
	if cursor != "" {
		n, err := strconv.ParseInt(cursor, 36, 64)
		if err != nil || n < 0 || n > maxSeq {
			return page, dts.Invalid("cursor", "is not one that a page gave as next_cursor")
		}
		before = n
	}
	tasks, err := s.tasks(ctx, "read ledger", Stmt{selectTask + `WHERE recurring_task_id = ? AND scheduled_at < ?
		ORDER BY scheduled_at DESC, seq DESC LIMIT ?`, []any{id, before, limit + oneInstant}})
	if err != nil {
		return page, err
	}
	var skips []*dts.Skip
	err = s.query(ctx, "read ledger", OwnWrites, Stmt{selectSkip + `WHERE recurring_task_id = ? AND from_at < ?
		ORDER BY from_at DESC LIMIT ?`, []any{id, before, limit + oneInstant}}, func(r scanner) error {
		k, err := scanSkip(r)
		skips = append(skips, k)
		return err
	})
	if err != nil {
		return page, err
	}
	bySkip := make(map[time.Time]*dts.Skip, len(skips))
	for _, k := range skips {
		bySkip[k.From] = k
	}
	var all []dts.Occurrence
	for _, t := range tasks {
		o := dts.Occurrence{ScheduledAt: t.ScheduledAt, Task: t}
		if k := bySkip[t.ScheduledAt]; k != nil && k.Count == 1 && t.Origin == dts.OriginSchedule {
			o.Skip = k
			delete(bySkip, t.ScheduledAt)
		}
		all = append(all, o)
	}
	for _, k := range bySkip {
		all = append(all, dts.Occurrence{ScheduledAt: k.From, Skip: k})
	}
	slices.SortStableFunc(all, func(a, b dts.Occurrence) int { return b.ScheduledAt.Compare(a.ScheduledAt) })
	if len(all) <= limit {
		page.Items = all
		return page, nil
	}
	// A page ends where the instant changes; one that would be empty is longer than asked for instead.
	same := func(n int) bool { return all[n-1].ScheduledAt.Equal(all[n].ScheduledAt) }
	n := limit
	for n > 0 && same(n) {
		n--
	}
	if n == 0 {
		for n = limit; n < len(all) && same(n); {
			n++
		}
	}
	if page.Items = all[:n]; n == len(all) {
		return page, nil
	}
	page.Next = formatCursor(all[n-1].ScheduledAt.UnixMicro())
	return page, nil
}
