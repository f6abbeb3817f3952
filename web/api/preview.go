package api

import (
	"cmp"
	"errors"
	"time"

	"dts"
	"dts/sched/cron"
)

func (h *Handler) preview(c *call) (any, error) {
	var q PreviewRequest
	if err := decode(c.body, &q); err != nil {
		return nil, err
	}
	return q.answer(h.Now())
}

// answer describes the schedule and lists its next instants after now.
func (q *PreviewRequest) answer(now time.Time) (*Preview, error) {
	var f fieldErrors
	count := cmp.Or(q.Count, 5)
	if count < 1 || count > 100 {
		f.add("count", "must be 1 to 100")
	}
	r := RecurringRequest{Cron: q.Cron, IntervalSeconds: q.IntervalSeconds, TimeZone: q.TimeZone, StartTime: q.StartTime, EndTime: q.EndTime}
	s := r.schedule(&f)
	if len(f.list) == 0 {
		f.merge(checkSchedule(s), nil)
		f.schedule(&s, q.Name, now)
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	loc, err := cron.LoadLocation(s.TimeZone)
	if err != nil {
		return nil, err
	}
	p := &Preview{TimeZone: loc.String(), Instants: []Instant{}}
	if s.Cron == "" {
		p.Description = cron.DescribeEvery(s.Interval())
	} else if p.Description, err = cron.Describe(s.Cron); err != nil {
		return nil, err
	}
	sched, err := planOf(&s, now).Schedule(cron.Options{Location: loc, Seed: q.Name})
	if errors.Is(err, cron.ErrReboot) {
		p.AtBoot = true
		return p, nil
	} else if err != nil {
		return nil, err
	}
	for at := sched.Next(now); !at.IsZero() && len(p.Instants) < count; at = sched.Next(at) {
		p.Instants = append(p.Instants, Instant{UTC: at.UTC(), Local: at.In(loc).Format(time.RFC3339Nano)})
	}
	return p, nil
}

// checkSchedule applies the rules of dts.RecurringTask to a schedule alone: the template beside it is a
// correct one.
func checkSchedule(s dts.Schedule) error {
	r := dts.RecurringTask{Schedule: s, Spec: dts.Spec{TargetType: dts.Command, TargetConfig: []byte(`{"argv":["true"]}`)}}
	return r.Normalize()
}
