package main

import (
	"strings"
	"time"

	"github.com/fatih/color"

	"dts"
)

// instantLines writes instants one a line, with the same in UTC where loc is another zone, and how far each is
// away. Below an instant stands what changes it; one that will not run says so.
func (a *app) instantLines(list []dts.PreviewInstant, loc *time.Location) []string {
	widest, utc := 0, false
	for _, p := range list {
		widest = max(widest, len(clock(p.UTC, loc)))
		_, offset := p.UTC.In(loc).Zone()
		utc = utc || offset != 0
	}
	var lines []string
	for _, p := range list {
		line := clock(p.UTC, loc)
		pad := strings.Repeat(" ", widest-len(line)+2)
		distance := relative(p.UTC, a.now())
		if !p.Runs {
			line, distance = a.dim(line), "does not run"
		}
		line += pad
		if utc {
			line += a.dim(p.UTC.UTC().Format("2006-01-02T15:04:05Z") + "  ")
		}
		if p.Runs {
			line += a.dim(distance)
		} else {
			line += a.paint(distance, color.FgYellow)
		}
		lines = append(lines, line)
		for _, e := range p.Effects {
			lines = append(lines, "  "+a.dim(clean(e.Text)))
		}
	}
	return lines
}

// plainInstants are instants of which nothing else is known.
func plainInstants(list []time.Time) []dts.PreviewInstant {
	out := make([]dts.PreviewInstant, len(list))
	for i, at := range list {
		out[i] = dts.PreviewInstant{UTC: at, Local: at.Format(time.RFC3339Nano), Runs: true}
	}
	return out
}
