package sim_test

import (
	"time"

	"dts"
)

// schedule is what the history knows of a recurring task: the instants that it must have, worked out without package
// cron.
type schedule struct {
	id       string
	acked    bool
	versions []version
	pausedAt time.Time // a pause was acknowledged then, and nothing has tried to end it
	endedAt  time.Time // a cancel was acknowledged then
	resumes  int       // requests that may have ended a pause
	resuming int       // requests to resume, under way
	flight   int
	rewound  bool // the clock was set back while it was changed: instants may come twice
}

// version is one schedule of a recurring task. It holds for the instants after from.
type version struct {
	number     int64
	from       time.Time
	start, end time.Time
	every      time.Duration
	offsets    []time.Duration // of the instants in each period; empty: one, from start on
}

// crons are the expressions that histories use, with their meaning.
var crons = map[string]version{
	"*/2 * * * * *":     {every: 2 * time.Second},
	"*/10 * * * * *":    {every: 10 * time.Second},
	"7,40 * * * * *":    {every: time.Minute, offsets: []time.Duration{7 * time.Second, 40 * time.Second}},
	"* * * * *":         {every: time.Minute},
	"*/5 * * * *":       {every: 5 * time.Minute},
	"30 1/2 * * * *":    {every: 2 * time.Minute, offsets: []time.Duration{90 * time.Second}},
	"0 0,20,40 * * * *": {every: 20 * time.Minute},
}

var cronTexts = []string{"*/2 * * * * *", "*/10 * * * * *", "7,40 * * * * *", "* * * * *", "*/5 * * * *", "30 1/2 * * * *", "0 0,20,40 * * * *"}

func versionOf(r *dts.RecurringTask, from time.Time) version {
	v := version{every: time.Duration(r.IntervalSeconds * float64(time.Second))}
	if r.Cron != "" {
		v = crons[r.Cron]
		if v.offsets == nil {
			v.offsets = []time.Duration{0}
		}
	}
	v.number, v.from, v.start, v.end = r.PlanVersion, from, r.StartTime, r.EndTime
	return v
}

// instants returns those after from and up to through, at most limit of them.
func (v *version) instants(from, through time.Time, limit int) []time.Time {
	if !v.end.IsZero() && through.After(v.end) {
		through = v.end
	}
	if !v.start.IsZero() && !from.After(v.start.Add(-1)) {
		from = v.start.Add(-1)
	}
	var out []time.Time
	base, offsets := time.Unix(0, 0).UTC(), v.offsets
	if offsets == nil {
		base, offsets = v.start, []time.Duration{0}
	}
	for p := base.Add(from.Sub(base) / v.every * v.every).Add(-v.every); !p.After(through) && len(out) < limit; p = p.Add(v.every) {
		for _, o := range offsets {
			if at := p.Add(o); at.After(from) && !at.After(through) {
				out = append(out, at)
			}
		}
	}
	return out
}

// has reports whether at is an instant.
func (v *version) has(at time.Time) bool {
	return len(v.instants(at.Add(-time.Microsecond), at, 1)) == 1
}

// planned notes a plan that is about to be applied. The database's mutex is held.
func (w *world) planned(p *dts.Plan) {
	s := w.plans[p.New.ID]
	if s == nil {
		s = &schedule{id: p.New.ID}
		w.plans[p.New.ID] = s
	}
	n := len(s.versions)
	w.log(p.New.Name, "plan %d: %d tasks, %d changes, %d skips, through %s, %s, again at %s", p.New.PlanVersion, len(p.Insert), len(p.Changes), len(p.Skips),
		clockTime(p.New.PlannedThrough), p.New.Status, clockTime(p.New.PlanAt))
	switch {
	case n == 0:
		s.versions = append(s.versions, versionOf(p.New, p.New.CreatedAt))
	case s.versions[n-1].number != p.New.PlanVersion:
		from := p.Old.PlannedThrough
		if at := p.New.UpdatedAt; at.Before(from) {
			from = at
		}
		if w.stepped {
			s.rewound = true
		}
		s.versions = append(s.versions, versionOf(p.New, from))
	}
	for i, k := range p.Skips {
		w.tally[skips]++
		if k.Count < 1 || k.To.Before(k.From) {
			w.violate("I4", "skip %d of a plan of %s: %d instants from %s to %s", i, p.New.Name, k.Count, k.From, k.To)
		}
	}
}

// plannedTwice holds that the planner never makes an occurrence that is there: its cursor only moves forward, unless a
// change of the schedule moves it back.
func (w *world) plannedTwice(t *dts.Task) {
	if s := w.plans[t.RecurringTaskID]; s != nil && len(s.versions) == 1 {
		w.violate("I3", "%s is planned twice", w.name(t))
	}
}
