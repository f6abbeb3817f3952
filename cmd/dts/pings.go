package main

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"dts"
	"dts/store"
	"dts/web/api"
	"dts/web/pings"
)

// pingReports takes in what jobs report that dts does not run. It decides for which run a report counts, and lets that be
// judged as soon as the report decides it.
type pingReports struct {
	st        *store.Store
	scheduler api.Scheduler // of the cluster: the run may be another server's
	log       *slog.Logger
	now       func() time.Time
}

// pingKeys are the keys of ping URLs, which are the same at every server of a cluster and after every restart.
func pingKeys(ctx context.Context, st *store.Store) (pings.Keys, error) {
	secret, err := st.PingSecret(ctx, rand.Text())
	return pings.NewKeys(secret), err
}

// reportActor is who lets a run be judged, for those who ask.
const reportActor = "its ping"

// Report implements pings.Reports.
func (p *pingReports) Report(ctx context.Context, recurringID string, rec *dts.PingRecord) error {
	list, err := p.st.RecurringByID(ctx, []string{recurringID})
	if err != nil {
		return err
	}
	if len(list) == 0 || list[0].TargetType != dts.Ping || list[0].Status == dts.Ended || list[0].Unreadable != "" {
		return dts.Errorf(dts.ErrNotFound, "there is no PING %s", recurringID)
	}
	r, now := list[0], dts.Micros(p.now())
	next, previous, err := p.st.Expected(ctx, r.ID, now)
	if err != nil {
		return err
	}
	rec.ID, rec.TenantID, rec.RecurringTaskID, rec.ReceivedAt = dts.NewID(now), r.TenantID, r.ID, now
	expected := next != nil && !now.Before(r.PingFrom(next.ScheduledAt, previous))
	if rec.ScheduledAt = previous; expected {
		rec.ScheduledAt = next.ScheduledAt
	}
	if err := p.st.AddPing(ctx, rec); err != nil {
		return err
	}
	if !expected || r.Status == dts.Paused || next.WaitsFor != "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), actTimeout) // the job may have hung up
	defer cancel()
	return p.act(ctx, next, rec)
}

// actTimeout is how long a job waits for its report to have an effect, at most.
const actTimeout = 5 * time.Second

// act lets a run be judged at once that a report decides, and one that has started when it must have ended. What cannot be
// judged now is judged at the end of the grace, by the same reports.
func (p *pingReports) act(ctx context.Context, t *dts.Task, rec *dts.PingRecord) error {
	target, err := t.Ping()
	if err != nil {
		return nil // the run says so
	}
	start := rec.Kind == dts.PingStart
	judgeAt := func(at time.Time) error {
		_, err := p.scheduler.ModifyTask(ctx, t.TenantID, t.ID, dts.TaskPatch{RunAt: &at})
		return err
	}
	switch {
	case start && target.MaxRuntime() > 0:
		err = judgeAt(rec.ReceivedAt.Add(target.MaxRuntime()))
	case rec.Kind == dts.PingSuccess && rec.ReceivedAt.Before(t.ScheduledAt): // it may still fail, if it comes again
		// At the end of the grace also if its start has moved it, if no server runs then, or if the schedule changes.
		err = judgeAt(t.ScheduledAt.Add(target.Grace()))
	case start:
		return nil
	default:
		_, err = p.scheduler.DoTask(ctx, t.TenantID, t.ID, dts.RunNow, reportActor)
	}
	switch code := dts.CodeOf(err); {
	case err == nil, code == dts.ErrConflict, code == dts.ErrNotFound: // it has just been judged, or planned anew
		return nil
	case start:
		return err // else it would be judged too early; the job reports its start again
	}
	p.log.Warn("a report is kept, but its run is judged only at the end of its grace", "task", t.ID, "err", err)
	return nil
}
