package sched

import (
	"time"

	"dts"
)

// Tuning is what can be changed of a scheduler while it runs. Package dts's Options say what each of them is.
type Tuning struct {
	HTTPSlots, CommandSlots int
	DrainTimeout            time.Duration
	Retention               dts.Retention // of tenants that have none of their own
}

// tuning is how the options begin.
func (o *Options) tuning() *Tuning {
	return &Tuning{HTTPSlots: o.HTTPSlots, CommandSlots: o.CommandSlots, DrainTimeout: o.DrainTimeout,
		Retention: dts.Retention{Seconds: o.Retention.Seconds(), Rows: o.RetentionRows, Bytes: o.RetentionBytes}}
}

func (s *Scheduler) tuning() *Tuning { return s.tuned.Load() }

// Tune changes a scheduler that was started, as if it had been started with o; only the options that a Tuning has count. Where
// more runs than there are slots now, they go on, and nothing starts until there is a slot again.
func (s *Scheduler) Tune(o Options) {
	o.setDefaults()
	t := o.tuning()
	old := s.tuned.Swap(t)
	if t.HTTPSlots != old.HTTPSlots || t.CommandSlots != old.CommandSlots {
		s.in.post(func(l *loop) { l.tune(t) })
	}
	if t.Retention != old.Retention {
		select {
		case s.keeps <- struct{}{}:
		default:
		}
	}
}

// tune gives the pools other numbers of slots.
func (l *loop) tune(t *Tuning) {
	for i, slots := range [pools]int{t.HTTPSlots, t.CommandSlots} {
		l.pools[i].slots = slots
	}
	hs := &l.gates.hosts
	hs.slots = t.HTTPSlots
	for _, h := range hs.known {
		if !h.limited() || h.limit > float64(hs.slots) {
			h.limit, h.since, h.reason = float64(hs.slots), time.Time{}, ""
		}
		h.max = hs.slots
	}
}
