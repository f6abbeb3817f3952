package web_test

import (
	"context"
	"slices"
	"time"

	"dts"
)

// times are a fake's calendars and blackouts, and what it was last asked about instants.
type times struct {
	calendars []*dts.Calendar
	blackouts []*dts.Blackout
	racing    int // so many times a calendar is created, or deleted, just before this one is
	catchUp   bool
	backfill  dts.BackfillRequest
	preview   dts.PreviewRequest
	whyAt     time.Time
}

func (f *fake) Calendar(_ context.Context, tenant, name string) (*dts.Calendar, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := f.times.calendar(tenant, name); i >= 0 {
		return f.times.calendars[i], nil
	}
	return nil, dts.Errorf(dts.ErrNotFound, "there is no calendar %q", name)
}

func (k *times) calendar(tenant, name string) int {
	return slices.IndexFunc(k.calendars, func(c *dts.Calendar) bool { return c.TenantID == tenant && c.Name == name })
}

func (f *fake) Calendars(_ context.Context, tenant string) ([]*dts.Calendar, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.times.calendars), nil
}

func (f *fake) CreateCalendar(_ context.Context, c *dts.Calendar) (*dts.Calendar, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	if f.times.racing > 0 {
		f.times.racing--
		f.times.calendars = append(f.times.calendars, c)
	}
	if f.times.calendar(c.TenantID, c.Name) >= 0 {
		return nil, dts.Errorf(dts.ErrConflict, "there is a calendar %q already", c.Name)
	}
	f.times.calendars = append(f.times.calendars, c)
	return c, nil
}

func (f *fake) ReplaceCalendar(_ context.Context, c *dts.Calendar) (*dts.Calendar, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.times.calendar(c.TenantID, c.Name)
	if i < 0 || f.times.racing > 0 {
		if i >= 0 {
			f.times.calendars = slices.Delete(f.times.calendars, i, i+1)
		}
		return nil, dts.Errorf(dts.ErrNotFound, "there is no calendar %q", c.Name)
	}
	f.times.calendars[i] = c
	return c, nil
}

func (f *fake) DeleteCalendar(_ context.Context, tenant, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	i := f.times.calendar(tenant, name)
	f.times.calendars = slices.Delete(f.times.calendars, i, i+1)
	return nil
}

func (f *fake) Blackout(_ context.Context, tenant, id string) (*dts.Blackout, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.times.blackouts {
		if b.TenantID == tenant && b.ID == id {
			return b, nil
		}
	}
	return nil, errNone
}

func (f *fake) Blackouts(context.Context, string) ([]*dts.Blackout, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.times.blackouts), nil
}

func (f *fake) CreateBlackout(_ context.Context, b *dts.Blackout) (*dts.Blackout, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	f.times.blackouts = append(f.times.blackouts, b)
	return b, nil
}

func (f *fake) ReplaceBlackout(_ context.Context, b *dts.Blackout) (*dts.Blackout, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, old := range f.times.blackouts {
		if old.ID == b.ID {
			b.CreatedAt, b.CreatedBy = old.CreatedAt, old.CreatedBy
			f.times.blackouts[i] = b
			return b, nil
		}
	}
	return nil, errNone
}

func (f *fake) DeleteBlackout(_ context.Context, tenant, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.times.blackouts = slices.DeleteFunc(f.times.blackouts, func(b *dts.Blackout) bool { return b.ID == id })
	return nil
}

func (f *fake) BackfillRecurring(_ context.Context, tenant, id string, q dts.BackfillRequest, actor string) (*dts.BackfillAnswer, error) {
	f.times.backfill, f.actor = q, actor
	return &dts.BackfillAnswer{Count: 2, First: q.From, Last: q.To}, f.err
}

// Preview answers with as many instants as are asked for.
func (f *fake) Preview(_ context.Context, tenant string, q dts.PreviewRequest) (*dts.Preview, error) {
	f.times.preview = q
	return &dts.Preview{TimeZone: q.TimeZone, Instants: make([]dts.PreviewInstant, q.Count)}, f.err
}

func (f *fake) Conflicts(_ context.Context, tenant string, from, to time.Time) ([]dts.Conflict, error) {
	return []dts.Conflict{{From: from, To: to, Shared: "queue reports"}}, f.err
}

func (f *fake) Why(_ context.Context, tenant, id string, at time.Time) (*dts.Why, error) {
	f.times.whyAt = at
	return &dts.Why{Answer: id}, f.err
}
