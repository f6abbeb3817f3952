package store

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"strings"
	"time"

	"dts"
)

// What goes on in queues is counted when somebody asks: to keep it up to date would cost each task more than all else.
// So no question looks at more than so many tasks in any one place.
const (
	maxWaiting  = 10_000
	queuesLimit = 20_000
)

// eligible is since when a task has been waiting: dts.Task.EligibleAt.
const eligible = `max(due_at, coalesce(next_attempt_at, 0), coalesce(resolved_at, 0))`

// Each of them answers with rows of a queue, how many of its tasks run, how many wait, and when the first of those was due.
// What stands in a line, or waits for a blackout's end, has its run_at ahead. A queue's own line is counted for itself,
// so that no long line hides another one.
const (
	// Also what is not due yet: so that a queue without settings is seen as long as there is anything in it.
	statesOfPending = `SELECT queue, 0, sum(run_at <= ?1), min(CASE WHEN run_at <= ?1 THEN since END) FROM (
			SELECT queue, run_at, ` + eligible + ` AS since FROM tasks
			WHERE status = 'PENDING' AND unresolved_dependencies_count = 0 AND run_at <= ?4 AND (?2 = '' OR tenant_id = ?2) ORDER BY run_at LIMIT ?3)
		GROUP BY queue`
	statesOfRunning = `SELECT queue, count(*), 0, NULL FROM (
			SELECT queue FROM tasks WHERE status = 'RUNNING' AND (?1 = '' OR tenant_id = ?1) LIMIT ?2)
		GROUP BY queue`
	statesOfKeys = `SELECT queue, 0, count(*), min(since) FROM (
			SELECT queue, ` + eligible + ` AS since FROM tasks
			WHERE line >= 'key ' AND line < 'key!' AND status = 'PENDING' AND tenant_id = ?1 AND run_at > ?2 LIMIT ?3)
		GROUP BY queue`
	statesOfLines = `SELECT name, 0, n, since FROM (SELECT q.name,
			(SELECT count(*) FROM (SELECT 1 FROM tasks AS t WHERE t.tenant_id = q.tenant_id AND t.line = 'queue ' || q.name AND t.status = 'PENDING' AND t.run_at > ?1 LIMIT ?2)) AS n,
			(SELECT min(since) FROM (SELECT ` + eligible + ` AS since FROM tasks AS t WHERE t.tenant_id = q.tenant_id AND t.line = 'queue ' || q.name AND t.status = 'PENDING' AND t.run_at > ?1 LIMIT ?2)) AS since
			FROM queues AS q WHERE (?3 = '' OR q.tenant_id = ?3) AND q.concurrency > 0)
		WHERE n > 0`
	statesOfBlackouts = `SELECT queue, 0, count(*), min(since) FROM (
			SELECT queue, ` + eligible + ` AS since FROM tasks
			WHERE waits_for = 'BLACKOUT' AND status = 'PENDING' AND run_at > ?1 AND (?2 = '' OR tenant_id = ?2) LIMIT ?3)
		GROUP BY queue`
)

// QueueStates says of each queue of a tenant in which a task waits or runs what goes on there; of all tenants together
// where tenant is "". Where very much waits, not all of it is counted. With ahead, queues are found also where nothing is
// due yet.
func (s *Store) QueueStates(ctx context.Context, tenant string, now time.Time, ahead bool) (map[string]dts.QueueState, error) {
	us := now.UnixMicro()
	through := us
	if ahead {
		through = now.Add(dts.FutureAllowed).UnixMicro()
	}
	asks := []Stmt{
		{statesOfPending, []any{us, tenant, queuesLimit, through}},
		{statesOfRunning, []any{tenant, queuesLimit}},
		{statesOfLines, []any{us, maxWaiting, tenant}},
		{statesOfBlackouts, []any{us, tenant, maxWaiting}},
	}
	if tenant != "" {
		asks = append(asks, Stmt{statesOfKeys, []any{tenant, us, maxWaiting}})
	}
	states := map[string]dts.QueueState{}
	for _, ask := range asks {
		err := s.query(ctx, "count what is in queues", OwnWrites, ask, func(r scanner) error {
			var name string
			var running, waiting int64
			var since sql.NullInt64
			if err := r.Scan(&name, &running, &waiting, &since); err != nil {
				return err
			}
			st := states[name]
			st.Running += running
			st.Waiting = min(st.Waiting+waiting, maxWaiting)
			if since.Valid {
				st.OldestAgeSeconds = max(st.OldestAgeSeconds, now.Sub(time.UnixMicro(since.Int64)).Seconds())
			}
			states[name] = st
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return states, nil
}

// QueuesNow returns the queues of a tenant that have settings, or in which something waits or runs, by name.
func (s *Store) QueuesNow(ctx context.Context, tenant string, now time.Time) ([]*dts.Queue, error) {
	list, err := s.Queues(ctx, tenant)
	if err != nil {
		return nil, err
	}
	states, err := s.QueueStates(ctx, tenant, now, true)
	if err != nil {
		return nil, err
	}
	for _, q := range list {
		q.QueueState = states[q.Name]
		delete(states, q.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(states)) {
		if len(list) == 2*dts.MaxQueues {
			break
		}
		list = append(list, &dts.Queue{TenantID: tenant, Name: name, QueueState: states[name]})
	}
	slices.SortFunc(list, func(a, b *dts.Queue) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}
