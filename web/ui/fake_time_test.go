package ui

import (
	"context"
	"errors"
	"slices"
	"time"

	"dts"
	"dts/sched/cron"
)

// instants returns the next instants of a schedule after now, at most n of them. The seed is what
// fixes the H and ~ of the expression. An error is about the cron expression or the zone, as a field error.
func instants(s dts.Schedule, seed string, now time.Time, n int) ([]time.Time, error) {
	loc, err := cron.LoadLocation(s.TimeZone)
	if err != nil {
		return nil, dts.Invalid("time_zone", "%s", err)
	}
	plan, err := planOf(s, seed, loc, now)
	if errors.Is(err, cron.ErrReboot) {
		return nil, nil
	}
	if err != nil && s.RRule != "" {
		return nil, dts.Invalid("rrule", "%s", err)
	}
	if err != nil {
		return nil, dts.Invalid("cron", "%s", err)
	}
	var list []time.Time
	for at := now; len(list) < n; {
		if at = plan.Next(at); at.IsZero() {
			break
		}
		list = append(list, at)
	}
	if len(list) == 0 {
		return nil, dts.Invalid("cron", "never fires again after now")
	}
	return list, nil
}

func planOf(s dts.Schedule, seed string, loc *time.Location, now time.Time) (cron.Schedule, error) {
	plan := cron.Plan{Expr: s.Cron, Rule: s.RRule, Interval: s.Interval(), Anchor: now} // an interval counts from when it is saved
	return plan.Schedule(cron.Options{Location: loc, Seed: seed})
}

// Preview says what package cron says, and what a test adds.
func (f *fake) Preview(_ context.Context, tenant string, q dts.PreviewRequest) (*dts.Preview, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return nil, f.fail
	}
	f.previews = append(f.previews, q)
	s, seed := q.Schedule, q.Name
	if r := f.findRecurring(tenant, q.RecurringTaskID); r != nil {
		s, seed = r.Schedule, r.Name
	}
	_, zone := zoneOf(s)
	p := &dts.Preview{Description: describe(s, f.now()), TimeZone: zone, AtBoot: s.Cron == "@reboot"}
	list, err := instants(s, seed, f.now(), max(q.Count, 1))
	if err != nil {
		return nil, err
	}
	for _, at := range list {
		p.Instants = append(p.Instants, dts.PreviewInstant{UTC: at.UTC(), Local: at.Format(time.RFC3339), Runs: true})
	}
	if !q.Since.IsZero() {
		p.Missed = &dts.MissedPreview{Since: q.Since, Missed: 12, WouldRun: 1, WouldSkip: 11, Text: "12 missed since Tuesday 10:30: would run 1"}
	}
	if f.effects != nil {
		f.effects(p)
	}
	return p, nil
}

func (f *fake) Why(_ context.Context, _, id string, at time.Time) (*dts.Why, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !at.IsZero() {
		id += " " + at.UTC().Format(time.RFC3339)
	}
	if s, ok := f.why[id]; ok {
		return &dts.Why{Answer: s}, nil
	}
	return nil, dts.Errorf(dts.ErrUnavailable, "nobody can say now")
}

func (f *fake) BackfillRecurring(_ context.Context, _, _ string, q dts.BackfillRequest, _ string) (*dts.BackfillAnswer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.backfills = append(f.backfills, q)
	if f.fail != nil {
		return nil, f.fail
	}
	return f.answer, nil
}

func (f *fake) Calendars(context.Context, string) ([]*dts.Calendar, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calendars), nil
}

func (f *fake) findCalendar(name string) int {
	return slices.IndexFunc(f.calendars, func(c *dts.Calendar) bool { return c.Name == name })
}

func (f *fake) Calendar(_ context.Context, _, name string) (*dts.Calendar, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := f.findCalendar(name); i >= 0 {
		c := *f.calendars[i]
		return &c, nil
	}
	return nil, dts.Errorf(dts.ErrNotFound, "there is no calendar %q", name)
}

func (f *fake) CreateCalendar(_ context.Context, c *dts.Calendar) (*dts.Calendar, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.fail != nil:
		return nil, f.fail
	case f.findCalendar(c.Name) >= 0:
		return nil, dts.Errorf(dts.ErrConflict, "there is a calendar %s", c.Name)
	}
	c.CreatedAt, c.UpdatedAt = f.now(), f.now()
	f.calendars = append(f.calendars, c)
	return c, nil
}

func (f *fake) ReplaceCalendar(_ context.Context, c *dts.Calendar) (*dts.Calendar, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return nil, f.fail
	}
	f.calendars[f.findCalendar(c.Name)] = c
	return c, nil
}

func (f *fake) DeleteCalendar(_ context.Context, _, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return f.fail
	}
	f.calendars = slices.DeleteFunc(f.calendars, func(c *dts.Calendar) bool { return c.Name == name })
	return nil
}

func (f *fake) Blackouts(context.Context, string) ([]*dts.Blackout, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.blackouts), nil
}

func (f *fake) CreateBlackout(_ context.Context, b *dts.Blackout) (*dts.Blackout, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return nil, f.fail
	}
	f.blackouts = append(f.blackouts, b)
	return b, nil
}

func (f *fake) DeleteBlackout(_ context.Context, _, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return f.fail
	}
	f.blackouts = slices.DeleteFunc(f.blackouts, func(b *dts.Blackout) bool { return b.ID == id })
	return nil
}
