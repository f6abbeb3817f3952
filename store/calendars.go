package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"dts"
)

// usesCalendar is true of a recurring task that uses the calendar of the given name.
const usesCalendar = `(EXISTS (SELECT 1 FROM json_each(iif(json_valid(spec), spec, '{}'), '$.exclude_calendars') WHERE value = ?)
	OR EXISTS (SELECT 1 FROM json_each(iif(json_valid(spec), spec, '{}'), '$.require_calendars') WHERE value = ?))`

// changedRules says that calendars or blackouts are others than before. Every server looks at it now and then: see
// TimeRules.
func changedRules(token int64) Stmt {
	return Stmt{`INSERT INTO settings (tenant_id, name, value) VALUES ('system', 'time_rules', ?)
		ON CONFLICT (tenant_id, name) DO UPDATE SET value = excluded.value`, []any{fmt.Sprint(token)}}
}

// TimeRules returns a text that is another one after each change of a calendar or a blackout.
func (s *Store) TimeRules(ctx context.Context) (token string, err error) {
	_, err = s.one(ctx, "read the version of calendars and blackouts", Stmt{
		`SELECT value FROM settings WHERE tenant_id = 'system' AND name = 'time_rules'`, nil}, &token)
	return token, err
}

// CreateCalendar inserts a calendar; a dts.ErrConflict when there is one of that name.
func (s *Store) CreateCalendar(ctx context.Context, c *dts.Calendar) error {
	_, err := s.apply(ctx, "create calendar",
		Stmt{`INSERT INTO batch_assert (tenant_id, ok) SELECT 'system', NULL WHERE EXISTS (
			SELECT 1 FROM calendars WHERE tenant_id = ? AND name = ? AND version <> ?)`, []any{c.TenantID, c.Name, c.Version}},
		Stmt{`INSERT INTO batch_assert (tenant_id, ok) SELECT 'system', NULL WHERE (
			SELECT count(*) FROM calendars WHERE tenant_id = ? AND name <> ?) >= ?`, []any{c.TenantID, c.Name, dts.MaxCalendars}},
		Stmt{`INSERT INTO calendars (tenant_id, name, version, created_at, updated_at, spec) VALUES (?,?,?,?,?,?) ON CONFLICT DO NOTHING`,
			[]any{c.TenantID, c.Name, c.Version, c.CreatedAt.UnixMicro(), c.UpdatedAt.UnixMicro(), jsonOf(c)}},
		changedRules(c.Version))
	if refused, is := errors.AsType[*RefusedError](err); is && refused.Index == 1 {
		return dts.Errorf(dts.ErrConflict, "there are %d calendars already, which is the most", dts.MaxCalendars)
	}
	if errors.Is(err, ErrRefused) {
		return dts.Errorf(dts.ErrConflict, "there is a calendar %s already", c.Name)
	}
	return err
}

// ReplaceCalendar puts a calendar in the place of the one of that name, and lets the planners of the recurring tasks that
// use it plan them again. old is the version that it replaces; ErrRefused when there is another one now.
func (s *Store) ReplaceCalendar(ctx context.Context, c *dts.Calendar, old int64) error {
	_, err := s.apply(ctx, "replace calendar",
		Stmt{`INSERT INTO batch_assert (tenant_id, ok) SELECT 'system', NULL WHERE NOT EXISTS (
			SELECT 1 FROM calendars WHERE tenant_id = ? AND name = ? AND version IN (?, ?))`, []any{c.TenantID, c.Name, old, c.Version}},
		Stmt{`UPDATE calendars SET version = ?, updated_at = ?, spec = ? WHERE tenant_id = ? AND name = ?`,
			[]any{c.Version, c.UpdatedAt.UnixMicro(), jsonOf(c), c.TenantID, c.Name}},
		Stmt{`UPDATE recurring_tasks SET replan = ?, plan_at = ? WHERE tenant_id = ? AND status IN ('ACTIVE', 'PAUSED') AND ` + usesCalendar,
			[]any{c.Version, c.UpdatedAt.UnixMicro(), c.TenantID, c.Name, c.Name}},
		changedRules(c.Version))
	return err
}

// DeleteCalendar deletes a calendar that nothing uses; a dts.ErrConflict names what does.
func (s *Store) DeleteCalendar(ctx context.Context, tenant, name string, token int64) error {
	_, err := s.apply(ctx, "delete calendar",
		Stmt{`INSERT INTO batch_assert (tenant_id, ok) SELECT 'system', NULL WHERE EXISTS (
			SELECT 1 FROM recurring_tasks WHERE tenant_id = ? AND status IN ('ACTIVE', 'PAUSED') AND ` + usesCalendar + `)`, []any{tenant, name, name}},
		Stmt{`INSERT INTO batch_assert (tenant_id, ok) SELECT 'system', NULL WHERE EXISTS (
			SELECT 1 FROM blackouts WHERE tenant_id = ? AND json_extract(spec, '$.calendar') = ?)`, []any{tenant, name}},
		Stmt{`DELETE FROM calendars WHERE tenant_id = ? AND name = ?`, []any{tenant, name}},
		changedRules(token))
	if !errors.Is(err, ErrRefused) {
		return err
	}
	var user string
	found, rerr := s.one(ctx, "read what uses a calendar", Stmt{`SELECT 'recurring task ' || iif(name = '', recurring_task_id, name) FROM recurring_tasks
		WHERE tenant_id = ? AND status IN ('ACTIVE', 'PAUSED') AND ` + usesCalendar + `
		UNION ALL SELECT 'blackout ' || json_extract(spec, '$.name') FROM blackouts WHERE tenant_id = ? AND json_extract(spec, '$.calendar') = ? LIMIT 1`,
		[]any{tenant, name, name, tenant, name}}, &user)
	if rerr != nil || !found {
		user = "something"
	}
	return dts.Errorf(dts.ErrConflict, "the calendar %s is used by %s; let go of it there first", name, user)
}

const selectCalendar = `SELECT version, created_at, updated_at, spec FROM calendars `

func scanCalendar(r scanner) (*dts.Calendar, error) {
	var c dts.Calendar
	var version, created, updated int64
	var spec string
	if err := r.Scan(&version, &created, &updated, &spec); err != nil {
		return nil, fmt.Errorf("read calendar: %w", err)
	}
	if err := json.Unmarshal([]byte(spec), &c); err != nil {
		return nil, fmt.Errorf("read calendar: %w", err)
	}
	c.Version, c.CreatedAt, c.UpdatedAt = version, time.UnixMicro(created).UTC(), time.UnixMicro(updated).UTC()
	return &c, nil
}

func (s *Store) calendars(ctx context.Context, tenant, where string, args ...any) (list []*dts.Calendar, err error) {
	err = s.query(ctx, "read calendars", OwnWrites, Stmt{selectCalendar + where, args}, func(r scanner) error {
		c, err := scanCalendar(r)
		if err == nil {
			c.TenantID = tenant
			list = append(list, c)
		}
		return err
	})
	return list, err
}

// Calendar returns one calendar, or dts.ErrNotFound.
func (s *Store) Calendar(ctx context.Context, tenant, name string) (*dts.Calendar, error) {
	list, err := s.calendars(ctx, tenant, `WHERE tenant_id = ? AND name = ?`, tenant, name)
	if err == nil && len(list) == 0 {
		err = dts.Errorf(dts.ErrNotFound, "there is no calendar %q", name)
	}
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// Calendars returns a tenant's calendars by name.
func (s *Store) Calendars(ctx context.Context, tenant string) ([]*dts.Calendar, error) {
	return s.calendars(ctx, tenant, `WHERE tenant_id = ? ORDER BY name`, tenant)
}

// CalendarVersions returns the versions of those of the named calendars that exist.
func (s *Store) CalendarVersions(ctx context.Context, tenant string, names []string) (map[string]int64, error) {
	versions := make(map[string]int64, len(names))
	err := s.query(ctx, "read versions of calendars", OwnWrites, Stmt{
		`SELECT name, version FROM calendars WHERE tenant_id = ? AND name IN (SELECT value FROM json_each(?))`, []any{tenant, jsonOf(names)}},
		func(r scanner) error {
			var name string
			var version int64
			err := r.Scan(&name, &version)
			versions[name] = version
			return err
		})
	return versions, err
}

// haveCalendars asserts that the calendars that a recurring task uses exist; nil when it uses none.
func haveCalendars(r *dts.RecurringTask) []Stmt {
	names := r.Calendars()
	if len(names) == 0 || r.Status == dts.Ended || r.Status == dts.Completed {
		return nil
	}
	return []Stmt{{`INSERT INTO batch_assert (tenant_id, ok) SELECT 'system', NULL WHERE (
		SELECT count(*) FROM calendars WHERE tenant_id = ? AND name IN (SELECT value FROM json_each(?))) <> ?`,
		[]any{r.TenantID, jsonOf(names), len(names)}}}
}

// CreateBlackout inserts a blackout.
func (s *Store) CreateBlackout(ctx context.Context, b *dts.Blackout, token int64) error {
	_, err := s.apply(ctx, "create blackout",
		Stmt{`INSERT INTO batch_assert (tenant_id, ok) SELECT 'system', NULL WHERE (
			SELECT count(*) FROM blackouts WHERE tenant_id = ? AND blackout_id <> ?) >= ?`, []any{b.TenantID, b.ID, dts.MaxBlackouts}},
		Stmt{`INSERT INTO batch_assert (tenant_id, ok) SELECT 'system', NULL WHERE ?2 <> '' AND NOT EXISTS (
			SELECT 1 FROM calendars WHERE tenant_id = ?1 AND name = ?2)`, []any{b.TenantID, b.Calendar}},
		Stmt{`INSERT INTO blackouts (blackout_id, tenant_id, created_at, created_by, spec) VALUES (?,?,?,?,?) ON CONFLICT DO NOTHING`,
			[]any{b.ID, b.TenantID, b.CreatedAt.UnixMicro(), b.CreatedBy, jsonOf(b)}},
		changedRules(token))
	if refused, is := errors.AsType[*RefusedError](err); is && refused.Index == 1 {
		return dts.Invalid("calendar", "%q is not there", b.Calendar)
	}
	if errors.Is(err, ErrRefused) {
		return dts.Errorf(dts.ErrConflict, "there are %d blackouts already, which is the most; delete those that are over", dts.MaxBlackouts)
	}
	return err
}

// ReplaceBlackout puts a blackout in the place of the one of that id; ErrRefused when there is none, or no such calendar.
func (s *Store) ReplaceBlackout(ctx context.Context, b *dts.Blackout, token int64) error {
	_, err := s.apply(ctx, "replace blackout",
		Stmt{`INSERT INTO batch_assert (tenant_id, ok) SELECT 'system', NULL WHERE NOT EXISTS (
			SELECT 1 FROM blackouts WHERE blackout_id = ?1 AND tenant_id = ?2) OR ?3 <> '' AND NOT EXISTS (
			SELECT 1 FROM calendars WHERE tenant_id = ?2 AND name = ?3)`, []any{b.ID, b.TenantID, b.Calendar}},
		Stmt{`UPDATE blackouts SET spec = ? WHERE blackout_id = ? AND tenant_id = ?`, []any{jsonOf(b), b.ID, b.TenantID}},
		changedRules(token))
	return err
}

// DeleteBlackout deletes a blackout, if it is there.
func (s *Store) DeleteBlackout(ctx context.Context, tenant, id string, token int64) error {
	_, err := s.apply(ctx, "delete blackout",
		Stmt{`DELETE FROM blackouts WHERE blackout_id = ? AND tenant_id = ?`, []any{id, tenant}}, changedRules(token))
	return err
}

func (s *Store) blackouts(ctx context.Context, where string, args ...any) (list []*dts.Blackout, err error) {
	err = s.query(ctx, "read blackouts", OwnWrites, Stmt{`SELECT tenant_id, spec FROM blackouts ` + where + ` ORDER BY blackout_id`, args}, func(r scanner) error {
		var b dts.Blackout
		var tenant, spec string
		if err := r.Scan(&tenant, &spec); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(spec), &b); err != nil {
			return fmt.Errorf("read blackout: %w", err)
		}
		b.TenantID = tenant
		list = append(list, &b)
		return nil
	})
	return list, err
}

// Blackout returns one blackout, or dts.ErrNotFound.
func (s *Store) Blackout(ctx context.Context, tenant, id string) (*dts.Blackout, error) {
	list, err := s.blackouts(ctx, `WHERE tenant_id = ? AND blackout_id = ?`, tenant, id)
	if err == nil && len(list) == 0 {
		err = dts.Errorf(dts.ErrNotFound, "there is no blackout %s", id)
	}
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// Blackouts returns a tenant's blackouts, the oldest first.
func (s *Store) Blackouts(ctx context.Context, tenant string) ([]*dts.Blackout, error) {
	return s.blackouts(ctx, `WHERE tenant_id = ?`, tenant)
}

// AllBlackouts returns the blackouts of every tenant.
func (s *Store) AllBlackouts(ctx context.Context) ([]*dts.Blackout, error) {
	return s.blackouts(ctx, ``)
}

// Waiting returns tasks in the shards that wait for what reason says, in the order of their creation, those after a
// place in it.
func (s *Store) Waiting(ctx context.Context, shards dts.ShardSet, reason dts.Reason, after int64, limit int) ([]*dts.Task, error) {
	low, high := halves(shards)
	return s.tasks(ctx, "read waiting tasks", Stmt{selectTask + `WHERE waits_for = ? AND seq > ? AND status = 'PENDING'` + inShards + `ORDER BY seq LIMIT ?`,
		[]any{string(reason), after, low, high, limit}})
}
