package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"dts"
	"dts/sched"
	"dts/sched/calendar"
	"dts/store"
	"dts/store/rqlite"
)

// offline writes to a data directory that no server holds.
type offline struct{ data *data }

// openOffline takes the data directory's lock and opens its store. The error matches sqlite.ErrLocked
// when a server holds it.
func openOffline(ctx context.Context, dataDir string, log *slog.Logger) (*offline, error) {
	// The first who comes makes the directory, for itself alone; the server may share it later.
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	d, err := openData(ctx, dataDir, true, rqlite.Options{}, log)
	if err != nil {
		return nil, err
	}
	if err := store.CopyPending(ctx, d.db); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.st = store.New(d.db, store.Options{})
	return &offline{d}, nil
}

// AddTask inserts a normalized task. Nothing fires until a server runs.
func (o *offline) AddTask(ctx context.Context, t *dts.Task) (*dts.Task, error) {
	made, err := o.data.st.InsertTasks(ctx, dts.Fence{Alone: true}, []*dts.Task{t})
	if err != nil {
		return nil, err
	}
	return made[0].Item, nil
}

// AddRecurring inserts a normalized recurring task, and plans its first occurrences.
func (o *offline) AddRecurring(ctx context.Context, r *dts.RecurringTask) (*dts.RecurringTask, error) {
	calendars := map[string]*calendar.Calendar{}
	for _, name := range r.Calendars() {
		c, err := o.data.st.Calendar(ctx, r.TenantID, name)
		if dts.CodeOf(err) == dts.ErrNotFound {
			continue // the plan says which one is missing
		}
		if err != nil {
			return nil, err
		}
		if calendars[name], err = calendar.Compile(c); err != nil {
			return nil, err
		}
	}
	p, err := sched.FirstPlan(r, calendars, time.Now())
	if err != nil {
		return nil, err
	}
	made, err := o.data.st.InsertRecurring(ctx, dts.Fence{Alone: true}, p)
	if err != nil {
		return nil, err
	}
	return made.Item, nil
}

// Close gives the data directory back.
func (o *offline) Close() error { return o.data.Close() }
