package sched

import (
	"context"
	"time"

	"dts"
)

// Reader is what the scheduler reads to say what will happen, or why something did not. Package store's Store has these
// methods and documents them.
type Reader interface {
	RecurringTasks(ctx context.Context, f dts.RecurringFilter) (dts.Page[*dts.RecurringTask], error)
	Calendar(ctx context.Context, tenant, name string) (*dts.Calendar, error)
	Blackouts(ctx context.Context, tenant string) ([]*dts.Blackout, error)
	RunTimes(ctx context.Context, ids []string, n int) (map[string][]time.Duration, error)
	PendingOnce(ctx context.Context, tenant string, from, to time.Time, limit int) ([]*dts.Task, error)
	OccurrenceAt(ctx context.Context, tenant, id string, at time.Time) ([]*dts.Task, []*dts.Skip, error)
	LastSkipBefore(ctx context.Context, id string, at time.Time) (*dts.Skip, error)
}
