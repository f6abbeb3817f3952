package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"dts"
	"dts/sched/cron"
	"dts/store/sqlite"
	"dts/web/api"
)

// adder adds tasks through the server, or, where none runs, to the data directory itself.
type adder struct {
	l   *link
	off *offline
	now func() time.Time
}

// adder finds out which way there is.
func (a *app) adder(ctx context.Context, l *link) (*adder, error) {
	w := &adder{l: l, now: a.now}
	err := l.Health(ctx)
	if err == nil || !noServer(err) || l.remote() {
		return w, err
	}
	log := slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	w.off, err = openOffline(ctx, l.dataDir, log)
	if errors.Is(err, sqlite.ErrLocked) {
		return nil, &exitError{exitNoServer, fmt.Sprintf("a server holds %s and does not answer on %s yet, or any more; try again", l.dataDir, l.socket)}
	}
	return w, err
}

func (w *adder) offline() bool { return w.off != nil }

// Close gives the data directory back.
func (w *adder) Close() error {
	if w.off == nil {
		return nil
	}
	return w.off.Close()
}

// task adds a task. existed: it was there already, under its idempotency key.
func (w *adder) task(ctx context.Context, q api.TaskRequest) (t *dts.Task, existed bool, err error) {
	if w.off == nil {
		made, err := w.l.CreateTask(ctx, q)
		return made.Item, made.Existed, err
	}
	n, err := newTask(q, w.now())
	if err != nil {
		return nil, false, err
	}
	made, err := w.off.AddTask(ctx, n)
	if err != nil {
		return nil, false, err
	}
	return made, made.ID != n.ID, nil
}

// recurring adds a recurring task.
func (w *adder) recurring(ctx context.Context, q api.RecurringRequest) (r *dts.RecurringTask, existed bool, err error) {
	if w.off == nil {
		made, err := w.l.CreateRecurring(ctx, q)
		return made.Item, made.Existed, err
	}
	n, err := newRecurring(q, w.now())
	if err != nil {
		return nil, false, err
	}
	made, err := w.off.AddRecurring(ctx, n)
	if err != nil {
		return nil, false, err
	}
	return made, made.ID != n.ID, nil
}

// next returns the next n instants of a recurring task that was added, with what changes them.
func (w *adder) next(ctx context.Context, r *dts.RecurringTask, n int) ([]dts.PreviewInstant, error) {
	if w.off == nil {
		p, err := w.l.Preview(ctx, api.PreviewRequest{RecurringTaskID: r.ID, Count: n})
		if err != nil {
			return nil, err
		}
		return p.Instants, nil
	}
	return w.off.Next(ctx, r, w.now(), n)
}

// pingURL returns the ping URL of a PING; without a server there is none.
func (w *adder) pingURL(ctx context.Context, id string) (string, error) {
	if w.off != nil {
		return "", nil
	}
	p, err := w.l.Pings(ctx, id)
	if err != nil {
		return "", err
	}
	return p.URL, nil
}

// freeName returns name, or name-2 and so on where recurring tasks have it: a name that nobody chose should
// not be in the way of finding things. Without a server nothing can be looked up, and the name stays.
func (w *adder) freeName(ctx context.Context, name string) (string, error) {
	if w.off != nil || name == "" {
		return name, nil
	}
	for n := 1; n <= 100; n++ {
		candidate := numbered(name, n)
		named, err := w.l.recurringNamed(ctx, candidate)
		if err != nil || len(named) == 0 {
			return candidate, err
		}
	}
	return name, nil
}

func numbered(name string, n int) string {
	if n == 1 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, n)
}

// check refuses what the server would refuse, before anything is asked of it.
func (n *addition) check(now time.Time) error {
	var err error
	if n.task != nil {
		_, err = newTask(*n.task, now)
	} else {
		_, err = newRecurring(*n.recurring, now)
	}
	return err
}

// newTask makes the task that a request of this program asks for: its times have offsets.
func newTask(q api.TaskRequest, now time.Time) (*dts.Task, error) {
	t := &dts.Task{Spec: q.Spec, CreatedBy: "cli", IdempotencyKey: q.IdempotencyKey, RequestHash: requestHash(q.IdempotencyKey, q),
		DependsOn: q.DependsOn, DependsMode: q.DependsMode, OnDependencyFailure: q.OnDependencyFailure, DedupeKey: q.DedupeKey, DedupePolicy: q.DedupePolicy}
	var err error
	if t.RunAt, err = instant("run_at", q.RunAt); err != nil {
		return nil, err
	}
	if t.ExpiresAt, err = instant("expires_at", q.ExpiresAt); err != nil {
		return nil, err
	}
	if q.Delay != "" {
		d, err := q.Delay.Duration()
		if err != nil {
			return nil, dts.Invalid("delay", "%s", err)
		}
		t.RunAt = now.Add(d)
	}
	return t, t.Normalize(now)
}

// newRecurring makes the recurring task that a request asks for, and checks its schedule.
func newRecurring(q api.RecurringRequest, now time.Time) (*dts.RecurringTask, error) {
	at := dts.Micros(now)
	r := &dts.RecurringTask{
		ID: dts.NewID(now), Spec: q.Spec, Status: dts.Active, CreatedAt: at, UpdatedAt: at, CreatedBy: "cli",
		CatchUpMode: q.CatchUpMode, MisfireAfterSeconds: q.MisfireAfterSeconds, CatchUpWindowSeconds: q.CatchUpWindowSeconds,
		CatchUpLimit: q.CatchUpLimit, CatchUpPacingSeconds: q.CatchUpPacingSeconds, OverlapPolicy: q.OverlapPolicy,
		IdempotencyKey: q.IdempotencyKey, RequestHash: requestHash(q.IdempotencyKey, q),
		Schedule: scheduleOf(&q),
	}
	r.Shard = dts.ShardOf(r.ID)
	var err error
	if r.StartTime, err = instant("start_time", q.StartTime); err != nil {
		return nil, err
	}
	if r.EndTime, err = instant("end_time", q.EndTime); err != nil {
		return nil, err
	}
	if err := r.Normalize(); err != nil {
		return nil, err
	}
	c, err := compile(&r.Schedule, r.Name, now)
	switch {
	case errors.Is(err, cron.ErrReboot):
	case err != nil:
		return nil, err
	case c.Next(now).IsZero():
		return nil, dts.Invalid("end_time", "the schedule has no instant from now, or from start_time, to then")
	}
	return r, nil
}

func instant(field string, t api.TimeText) (time.Time, error) {
	if t.IsZero() {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, t.Text)
	if err != nil {
		return at, dts.Invalid(field, "is not a time")
	}
	return dts.Micros(at), nil
}

// requestHash is the server's measure of whether two requests with one idempotency key ask for the same, so
// that a request that was written without a server can be repeated with one.
func requestHash(key string, request any) string {
	if key == "" {
		return ""
	}
	b, err := json.Marshal(request)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
