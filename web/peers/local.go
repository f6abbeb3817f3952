package peers

import (
	"context"
	"time"

	"dts"
)

// Calendars and blackouts belong to no shard, and what is only read can be read by anyone: this server does it.

// CreateCalendar creates a calendar.
func (r *Router) CreateCalendar(ctx context.Context, c *dts.Calendar) (*dts.Calendar, error) {
	return r.o.Local.CreateCalendar(ctx, c)
}

// ReplaceCalendar puts a calendar in the place of the one of that name.
func (r *Router) ReplaceCalendar(ctx context.Context, c *dts.Calendar) (*dts.Calendar, error) {
	return r.o.Local.ReplaceCalendar(ctx, c)
}

// DeleteCalendar deletes a calendar that nothing uses.
func (r *Router) DeleteCalendar(ctx context.Context, tenant, name string) error {
	return r.o.Local.DeleteCalendar(ctx, tenant, name)
}

// CreateBlackout creates a blackout.
func (r *Router) CreateBlackout(ctx context.Context, b *dts.Blackout) (*dts.Blackout, error) {
	return r.o.Local.CreateBlackout(ctx, b)
}

// ReplaceBlackout puts a blackout in the place of the one with its id.
func (r *Router) ReplaceBlackout(ctx context.Context, b *dts.Blackout) (*dts.Blackout, error) {
	return r.o.Local.ReplaceBlackout(ctx, b)
}

// DeleteBlackout deletes a blackout.
func (r *Router) DeleteBlackout(ctx context.Context, tenant, id string) error {
	return r.o.Local.DeleteBlackout(ctx, tenant, id)
}

// Retention returns how long finished tasks are kept.
func (r *Router) Retention(ctx context.Context, tenant string) (*dts.RetentionState, error) {
	return r.o.Local.Retention(ctx, tenant)
}

// PutRetention sets how long finished tasks are kept.
func (r *Router) PutRetention(ctx context.Context, tenant string, k dts.Retention) (*dts.RetentionState, error) {
	return r.o.Local.PutRetention(ctx, tenant, k)
}

// Preview says what a schedule means and will do.
func (r *Router) Preview(ctx context.Context, tenant string, q dts.PreviewRequest) (*dts.Preview, error) {
	return r.o.Local.Preview(ctx, tenant, q)
}

// Conflicts returns the times in which more tasks will want to run than a limit lets.
func (r *Router) Conflicts(ctx context.Context, tenant string, from, to time.Time) ([]dts.Conflict, error) {
	return r.o.Local.Conflicts(ctx, tenant, from, to)
}

// Why says why a task, or an instant of a recurring task, did or did not run.
func (r *Router) Why(ctx context.Context, tenant, id string, at time.Time) (*dts.Why, error) {
	return r.o.Local.Why(ctx, tenant, id, at)
}
