package sched

import (
	"fmt"
	"time"

	"dts"
)

// missed tells what the catch-up mode would make of the instants since then. It counts them and lists none.
func (in *previewInput) missed() *dts.MissedPreview {
	r := in.r
	cutoff := in.now.Add(-r.MisfireAfter() - in.delay())
	m := &dts.MissedPreview{Since: in.since.UTC(), Missed: max(in.table.Count(in.since, cutoff), 0)}
	oldest := in.since
	if w := r.CatchUpWindow(); w > 0 {
		oldest = laterOf(oldest, in.now.Add(-w-time.Microsecond))
	}
	var may int64
	switch r.CatchUpMode {
	case dts.RunLatest, dts.RunOneNow:
		may = 1
	case dts.RunAllMissed:
		may = int64(r.CatchUpLimit)
	}
	if left := in.runsLeft(); left >= 0 && r.CatchUpMode != dts.RunOneNow {
		may = min(may, left)
	}
	m.WouldRun = min(may, max(in.table.Count(oldest, cutoff), 0))
	m.WouldSkip = m.Missed - m.WouldRun
	if r.CatchUpMode == dts.RunOneNow {
		m.WouldSkip = m.Missed // the one that runs is none of them
	}
	m.Text = fmt.Sprintf("%d missed since %s: %s", m.Missed, in.saySince(), in.wouldRun(m, cutoff))
	return m
}

// wouldRun says which of them would run.
func (in *previewInput) wouldRun(m *dts.MissedPreview, cutoff time.Time) string {
	switch {
	case m.WouldRun == 0:
		return "would run none"
	case in.r.CatchUpMode == dts.RunOneNow:
		return "would run 1, at once, in the place of all"
	case m.WouldRun == 1:
		return "would run 1, that of " + in.say(in.table.Prev(cutoff))
	}
	first := in.table.Prev(cutoff)
	for range m.WouldRun - 1 {
		first = in.table.Prev(first.Add(-time.Microsecond))
	}
	return fmt.Sprintf("would run %d, the newest, from that of %s on, %s apart", m.WouldRun, in.say(first), sayDuration(in.r.CatchUpPacing()))
}

// saySince writes since shortly: Friday 17:00, or the whole date where it is longer ago.
func (in *previewInput) saySince() string {
	since := in.since.In(in.table.Location())
	if in.now.Sub(since) < 6*24*time.Hour {
		return since.Format("Monday 15:04")
	}
	return since.Format("Mon 2006-01-02 15:04")
}
