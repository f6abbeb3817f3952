package sched

import (
	"slices"
	"time"

	"dts"
)

// Warnings say that a run is not as was asked for. They never end it.

// warned returns a list of warnings with one more, if it is not there; never the same array.
func warned(list []dts.Warning, w dts.Warning) []dts.Warning {
	if slices.Contains(list, w) {
		return list
	}
	return append(slices.Clone(list), w)
}

// tell counts a warning and publishes it.
func (r *run) tell(t *dts.Task, w dts.Warning) {
	s := r.s
	s.m.warnings.WithLabelValues(string(w)).Inc()
	if s.bus.listening() {
		e := taskEvent(dts.EventWarning, t, s.clock.now())
		e.Status, e.Attempt, e.Warning, e.Error = string(dts.Running), r.number, w, ""
		s.bus.publish(e)
	}
}

// watch arms the warning of an attempt that takes long. r.mu is held.
func (r *run) watch() {
	if w := r.task.WarnLongerSeconds; w > 0 {
		r.long = time.AfterFunc(time.Duration(w*float64(time.Second)), r.warnLong)
	}
}

// warnLong warns of an attempt that still runs. Where its start is written, it is written once more, with the warning.
func (r *run) warnLong() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || r.warnedLong {
		return
	}
	r.addLong()
	if r.shown && !r.away {
		rec := r.rec
		rec.Process = r.process
		r.s.writer.add(pendingRecord{run: r, rec: &rec, again: true})
	}
}

// addLong notes that the attempt takes longer than was asked for. Others read the task, so it becomes another one.
func (r *run) addLong() {
	r.warnedLong = true
	t := *r.rec.Task
	t.Warnings = warned(t.Warnings, dts.WarnLong)
	r.rec.Task = &t
	r.tell(&t, dts.WarnLong)
}

// warnEnd adds what the end of an attempt has to be warned of. r.mu is held.
func (r *run) warnEnd(state dts.AttemptState, took time.Duration) {
	if r.long != nil {
		r.long.Stop()
	}
	t := r.rec.Task
	switch {
	case t.WarnLongerSeconds > 0 && took.Seconds() > t.WarnLongerSeconds && !r.warnedLong:
		r.addLong()
	case t.WarnShorterSeconds > 0 && took.Seconds() < t.WarnShorterSeconds && state == dts.AttemptSuccess:
		n := *t
		n.Warnings = warned(n.Warnings, dts.WarnShort)
		r.rec.Task = &n
		r.tell(&n, dts.WarnShort)
	}
}
