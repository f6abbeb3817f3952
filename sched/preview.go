package sched

import (
	"context"
	"errors"
	"reflect"
	"time"

	"dts"
	"dts/sched/cron"
	"dts/sched/timetable"
)

// Instants of a preview.
const (
	previewCount = 5 // where nobody says how many
	previewMost  = 100
)

// Preview says what a recurring task would do: one that is stored, or one that is not yet. It tells what its schedule does,
// and not whether it is paused.
func (s *Scheduler) Preview(ctx context.Context, tenant string, q dts.PreviewRequest) (*dts.Preview, error) {
	now := s.clock.now()
	if err := checkPreview(&q, now); err != nil {
		return nil, err
	}
	in := previewInput{now: now, from: q.From, since: q.Since, count: q.Count, expected: time.Duration(q.ExpectedSeconds * float64(time.Second))}
	var err error
	if q.RecurringTaskID == "" {
		in.r, err = unsaved(&q, tenant, now)
	} else {
		in.stored = true
		in.r, err = s.o.Store.RecurringTask(ctx, tenant, q.RecurringTaskID)
	}
	if err != nil {
		return nil, err
	}
	if in.closed, err = s.closings(ctx, tenant); err != nil {
		return nil, err
	}
	in.table, err = s.table(ctx, in.r)
	if errors.Is(err, cron.ErrReboot) {
		return &dts.Preview{Description: "Once after each boot", TimeZone: "UTC", AtBoot: true, Instants: []dts.PreviewInstant{}}, nil
	}
	if err != nil {
		return nil, err
	}
	if in.stored {
		took, err := s.o.Store.RunTimes(ctx, []string{in.r.ID}, medianOf)
		if err != nil {
			return nil, err
		}
		if list := took[in.r.ID]; len(list) > 0 && in.r.TargetType != dts.Ping { // whose job runs elsewhere
			in.expected = medianTime(list)
		}
	}
	return in.preview(), nil
}

// checkPreview checks a request, and fills in its defaults.
func checkPreview(q *dts.PreviewRequest, now time.Time) error {
	var bad []dts.FieldError
	if q.Count == 0 {
		q.Count = previewCount
	}
	if q.Count < 1 || q.Count > previewMost {
		bad = append(bad, dts.FieldError{Field: "count", Message: "must be 1 to 100"})
	}
	if q.From.IsZero() {
		q.From = now
	}
	if !q.Since.IsZero() && !q.Since.Before(now) {
		bad = append(bad, dts.FieldError{Field: "since", Message: "must be in the past"})
	}
	if !(q.ExpectedSeconds >= 0 && q.ExpectedSeconds <= 366*24*3600) {
		bad = append(bad, dts.FieldError{Field: "expected_seconds", Message: "must be 0 to 31622400, which is a year"})
	}
	if rest := (dts.PreviewRequest{RecurringTaskID: q.RecurringTaskID, Count: q.Count, From: q.From, Since: q.Since}); q.RecurringTaskID != "" && !reflect.DeepEqual(*q, rest) {
		bad = append(bad, dts.FieldError{Field: "recurring_task_id", Message: "stands for a schedule that is stored; give only count, from and since beside it"})
	}
	if len(bad) > 0 {
		return &dts.Error{Code: dts.ErrInvalid, Message: "the request is not valid", Fields: bad}
	}
	return nil
}

// unsaved makes the recurring task that a request describes, as if it were created now. What it runs does not matter.
func unsaved(q *dts.PreviewRequest, tenant string, now time.Time) (*dts.RecurringTask, error) {
	r := &dts.RecurringTask{
		TenantID: tenant, Schedule: q.Schedule, CreatedAt: now, Status: dts.Active,
		Spec:        dts.Spec{Name: q.Name, Queue: q.Queue, TargetType: dts.HTTPCallback, TargetConfig: []byte(`{"url":"http://localhost/"}`)},
		CatchUpMode: q.CatchUpMode, MisfireAfterSeconds: q.MisfireAfterSeconds, OverlapPolicy: q.OverlapPolicy,
		CatchUpWindowSeconds: q.CatchUpWindowSeconds, CatchUpLimit: q.CatchUpLimit, CatchUpPacingSeconds: q.CatchUpPacingSeconds,
	}
	if err := r.Normalize(); err != nil {
		return nil, err
	}
	if r.RRule != "" && r.StartTime.IsZero() {
		r.StartTime = beginning(now)
	}
	if r.Interval() > 0 && r.StartTime.IsZero() {
		r.StartTime = now.Add(r.Interval()).Truncate(time.Microsecond)
	}
	return r, nil
}

// previewInput is what a preview is made of.
type previewInput struct {
	r        *dts.RecurringTask // normalized
	stored   bool               // it has its own id, which decides its jitter
	table    *timetable.Table
	closed   closings
	expected time.Duration
	now      time.Time
	from     time.Time
	since    time.Time
	count    int
}

func (in *previewInput) preview() *dts.Preview {
	p := &dts.Preview{Description: in.table.Describe(), TimeZone: in.table.Location().String(), Instants: in.instants()}
	if !in.since.IsZero() {
		p.Missed = in.missed()
	}
	return p
}

// say writes a time in the schedule's zone.
func (in *previewInput) say(t time.Time) string { return sayTime(t.In(in.table.Location())) }
