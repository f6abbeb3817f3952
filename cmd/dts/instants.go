package main

import (
	"slices"
	"strings"
	"time"

	"github.com/fatih/color"

	"dts"
	"dts/sched/cron"
)

// instantLines writes instants one a line, in UTC too where that is asked for and loc is another zone, and how far each
// is away. Below an instant stands what changes it; one that will not run says so.
func (a *app) instantLines(list []dts.PreviewInstant, loc *time.Location, utc bool) []string {
	widest, other := 0, false
	for _, p := range list {
		widest = max(widest, len(clock(p.UTC, loc)))
		_, offset := p.UTC.In(loc).Zone()
		other = other || offset != 0
	}
	var lines []string
	before := ""
	for _, p := range list {
		line := clock(p.UTC, loc)
		pad := strings.Repeat(" ", widest-len(line)+2)
		distance := relative(p.UTC, a.now())
		if !p.Runs {
			line, distance = a.dim(line), "does not run"
		}
		line += pad
		if utc && other {
			line += a.dim(p.UTC.UTC().Format("2006-01-02T15:04:05Z") + "  ")
		}
		if p.Runs {
			line += a.dim(distance)
		} else {
			line += a.paint(distance, color.FgYellow)
		}
		lines = append(lines, line)
		effects := a.effectLines(p)
		if same := strings.Join(effects, "\n"); same != "" && same == before {
			effects = []string{"  " + a.dim("as the one before")}
		} else {
			before = same
		}
		lines = append(lines, effects...)
	}
	return lines
}

// effectLines says what changes an instant. Jitter is left out: it is the same for each, and is said once elsewhere.
func (a *app) effectLines(p dts.PreviewInstant) []string {
	var lines []string
	for _, e := range p.Effects {
		if e.Kind != dts.EffectJitter && e.Kind != dts.EffectPing {
			lines = append(lines, "  "+a.dim(clean(e.Text)))
		}
	}
	return lines
}

// markPaused says of the instants in a pause that they do not run.
func markPaused(r *dts.RecurringTask, list []dts.PreviewInstant) {
	if r.Status != dts.Paused {
		return
	}
	for i := range list {
		if p := &list[i]; p.Runs && (r.PausedUntil.IsZero() || p.UTC.Before(r.PausedUntil)) {
			p.Runs = false
			p.Effects = append(p.Effects, dts.PreviewEffect{Text: "it is paused"})
		}
	}
}

// withEffects says of instants of s after from what the changing of clocks does to them, and puts those that fall out
// because of it between them.
func withEffects(s cron.Schedule, instants []time.Time, from time.Time) []dts.PreviewInstant {
	list := make([]dts.PreviewInstant, len(instants))
	for i, at := range instants {
		list[i] = dts.PreviewInstant{UTC: at, Local: at.Format(time.RFC3339Nano), Runs: true}
	}
	if len(list) == 0 {
		return list
	}
	for _, e := range cron.Effects(s, from.Add(1), instants[len(instants)-1]) {
		i, found := slices.BinarySearchFunc(list, e.At, func(p dts.PreviewInstant, at time.Time) int { return p.UTC.Compare(at) })
		if !found {
			list = slices.Insert(list, i, dts.PreviewInstant{UTC: e.At, Local: e.At.Format(time.RFC3339Nano), Runs: e.Runs})
		}
		list[i].Effects = append(list[i].Effects, dts.PreviewEffect{Kind: dts.EffectDST, Text: e.Text})
	}
	return list
}
