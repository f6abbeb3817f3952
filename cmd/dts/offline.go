package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"dts"
	"dts/sched"
	"dts/sched/calendar"
	"dts/sched/timetable"
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
	known, err := o.calendars(ctx, r)
	if err != nil {
		return nil, err
	}
	p, err := sched.FirstPlan(r, known, time.Now())
	if err != nil {
		return nil, err
	}
	made, err := o.data.st.InsertRecurring(ctx, dts.Fence{Alone: true}, p)
	if err != nil {
		return nil, err
	}
	return made.Item, nil
}

// Next returns the next n instants of a recurring task, with what changes them.
func (o *offline) Next(ctx context.Context, r *dts.RecurringTask, now time.Time, n int) ([]dts.PreviewInstant, error) {
	if len(r.Calendars()) == 0 {
		return nextOf(&r.Schedule, r.Name, r.CreatedAt, now, n)
	}
	known, err := o.calendars(ctx, r)
	if err != nil {
		return nil, err
	}
	t, err := timetable.Compile(&r.Schedule, timetable.Options{Seed: r.Name, Anchor: r.CreatedAt, Calendars: known})
	if err != nil {
		return nil, err
	}
	list := withEffects(t.Base(), upTo(t, now, n), now)
	if len(list) == 0 {
		return nil, nil
	}
	for _, e := range t.Excluded(now, list[len(list)-1].UTC, shownNext) {
		list = append(list, excludedInstant(e, t.Location()))
	}
	slices.SortFunc(list, func(x, y dts.PreviewInstant) int { return x.UTC.Compare(y.UTC) })
	return list, nil
}

// excludedInstant says that a calendar takes instants out.
func excludedInstant(e timetable.Excluded, loc *time.Location) dts.PreviewInstant {
	text := "calendar " + e.Calendar
	if e.Name != "" {
		text += ": " + e.Name
	}
	switch {
	case !e.MovedTo.IsZero():
		text += "; moved to " + clock(e.MovedTo, loc)
	case !e.CoveredBy.IsZero():
		text += "; it runs at " + clock(e.CoveredBy, loc) + " anyway"
	case e.Count > 1:
		text += fmt.Sprintf("; %d instants until %s", e.Count, clock(e.To, loc))
	}
	return dts.PreviewInstant{UTC: e.From, Local: e.From.In(loc).Format(time.RFC3339Nano),
		Effects: []dts.PreviewEffect{{Kind: dts.EffectCalendar, Text: text}}}
}

// calendars looks up the calendars of a recurring task.
func (o *offline) calendars(ctx context.Context, r *dts.RecurringTask) (map[string]*calendar.Calendar, error) {
	known := map[string]*calendar.Calendar{}
	for _, name := range r.Calendars() {
		def, err := o.data.st.Calendar(ctx, r.TenantID, name)
		if dts.CodeOf(err) == dts.ErrNotFound {
			return nil, usagef("there is no calendar %q here; calendars are added to a server that runs: dts serve, then dts calendar add %s", name, name)
		}
		if err != nil {
			return nil, err
		}
		if known[name], err = calendar.Compile(def); err != nil {
			return nil, fmt.Errorf("calendar %s: %w", name, err)
		}
	}
	return known, nil
}

// Close gives the data directory back.
func (o *offline) Close() error { return o.data.Close() }
