package dts

import "time"

// Warning is something about a run that is not as was asked for, and that does not end it.
type Warning string

const (
	WarnLate  Warning = "LATE"  // it started later than warn_late_seconds after it was due
	WarnLong  Warning = "LONG"  // an attempt took longer than warn_longer_seconds
	WarnShort Warning = "SHORT" // an attempt succeeded in less than warn_shorter_seconds
)

// Timing says where the time of a task's first run went: scheduled → picked → started → completed. Times are in
// microseconds. The parts before the start add up to the time from due_at to the start.
type Timing struct {
	ParentUS    int64  `json:"parent_us" doc:"after due_at: until its last dependency resolved"`
	QueueUS     int64  `json:"queue_us" doc:"ready to run: for a slot, a limit, a rate, a blackout, a pause, resources or the run before"`
	SchedulerUS int64  `json:"scheduler_us" doc:"the rest until the start: the scheduler's own lateness, or that of the machine"`
	TargetUS    int64  `json:"target_us" doc:"from the first start to the end, retries included; so far, where it has not ended"`
	Slow        string `json:"slow,omitempty" enum:"scheduler,queue,parent,target" doc:"when the SLA was missed, a timeout hit, or a warning given: which part took longest"`
}

// Timing returns where the time of a task went; nil before its first start. QueuedUS must be what the first start noted.
func (t *Task) Timing(now time.Time) *Timing {
	if t.StartedAt.IsZero() {
		return nil
	}
	x := &Timing{QueueUS: t.QueuedUS}
	if t.ResolvedAt.After(t.DueAt) && !(t.IsRun() && t.ResolvedAt.After(t.StartedAt)) { // that was its steps' end
		x.ParentUS = t.ResolvedAt.Sub(t.DueAt).Microseconds()
	}
	before := max(t.StartedAt.Sub(t.DueAt).Microseconds(), 0)
	x.ParentUS = min(x.ParentUS, before)
	x.QueueUS = min(x.QueueUS, before-x.ParentUS)
	x.SchedulerUS = before - x.ParentUS - x.QueueUS
	end := t.CompletedAt
	if end.IsZero() {
		end = now
	}
	x.TargetUS = max(end.Sub(t.StartedAt).Microseconds(), 0)
	x.Slow = x.slowest(t)
	return x
}

func (x *Timing) slowest(t *Task) string {
	late := t.SLAMet != nil && !*t.SLAMet
	long := false
	for _, w := range t.Warnings {
		late = late || w == WarnLate
		long = long || w == WarnLong
	}
	parts := []struct {
		name string
		us   int64
	}{{"scheduler", x.SchedulerUS}, {"queue", x.QueueUS}, {"parent", x.ParentUS}}
	if long {
		parts = append(parts, struct {
			name string
			us   int64
		}{"target", x.TargetUS})
	}
	if !late && !long {
		return ""
	}
	if !late {
		return "target"
	}
	slow := parts[0]
	for _, p := range parts[1:] {
		if p.us > slow.us {
			slow = p
		}
	}
	return slow.name
}
