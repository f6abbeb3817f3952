package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/fatih/color"
)

// benchFigure is one number of one run, with its ceiling: what the machine did in the same run without dts.
type benchFigure struct {
	name, unit     string
	value, ceiling float64 // ceiling 0: it has none
}

// benchAim is what a figure should reach: exactly one of the limits is set.
type benchAim struct {
	below      float64 // the figure is at most this, in its own unit
	atLeast    float64 // the figure is at least this, in its own unit
	ratio      float64 // the figure is at least so much of its ceiling
	ratioBelow float64 // the figure is at most so much of its ceiling
	none       bool    // the figure counts what must not be: it is 0
}

func (g benchAim) met(f *benchResult) bool {
	switch {
	case g.none:
		return slices.Max(f.Values) == 0
	case g.below > 0:
		return f.Value <= g.below
	case g.atLeast > 0:
		return f.Value >= g.atLeast
	case g.ratio > 0:
		return f.Ratio >= g.ratio
	}
	return f.Ratio > 0 && f.Ratio <= g.ratioBelow
}

func (g benchAim) String() string {
	switch {
	case g.none:
		return "0"
	case g.below > 0:
		return "≤ " + number(g.below, 3)
	case g.atLeast > 0:
		return "≥ " + number(g.atLeast, 3)
	case g.ratio > 0:
		return "ratio ≥ " + number(g.ratio, 2)
	}
	return "ratio ≤ " + number(g.ratioBelow, 2)
}

// benchReport is everything that `dts bench` found out.
type benchReport struct {
	Machine   benchMachine   `json:"machine"`
	Build     build          `json:"build"`
	StartedAt time.Time      `json:"started_at"`
	Scenarios []benchSection `json:"scenarios"`
}

type benchSection struct {
	Name    string        `json:"name"`
	About   string        `json:"about"`
	Runs    int           `json:"runs"` // of which the figures are medians
	Figures []benchResult `json:"figures"`
}

// benchResult is a figure over all runs. Value, Ceiling and Ratio are medians, each for itself: a ratio is
// made within one run, where both sides met the same machine.
type benchResult struct {
	Name     string    `json:"name"`
	Unit     string    `json:"unit"`
	Value    float64   `json:"value"`
	Ceiling  float64   `json:"ceiling,omitempty"`
	Ratio    float64   `json:"ratio,omitempty"` // value / ceiling
	Values   []float64 `json:"values"`          // of each run
	Ceilings []float64 `json:"ceilings,omitempty"`
	Aims     []aimed   `json:"aims,omitempty"`
}

// aimed is an aim and whether it was met.
type aimed struct {
	Aim string `json:"aim"`
	Met bool   `json:"met"`
}

// summarise makes results of the figures of all runs. Each run has the same figures in the same order.
func summarise(runs [][]benchFigure, aims map[string][]benchAim) []benchResult {
	var list []benchResult
	for i, f := range runs[0] {
		r := benchResult{Name: f.name, Unit: f.unit}
		var ratios []float64
		for _, run := range runs {
			r.Values = append(r.Values, run[i].value)
			if run[i].ceiling > 0 {
				r.Ceilings = append(r.Ceilings, run[i].ceiling)
				ratios = append(ratios, run[i].value/run[i].ceiling)
			}
		}
		r.Value, r.Ceiling, r.Ratio = median(r.Values), median(r.Ceilings), median(ratios)
		for _, aim := range aims[f.name] {
			r.Aims = append(r.Aims, aimed{aim.String(), aim.met(&r)})
		}
		list = append(list, r)
	}
	return list
}

// median returns the middle of the values, the mean of both where there are two; 0 of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// percentile returns the smallest value that is not less than p of all values, 0 < p ≤ 1. sorted is not empty.
func percentile[T cmp.Ordered](sorted []T, p float64) T {
	n := int(float64(len(sorted))*p + 0.999999)
	return sorted[min(max(n, 1), len(sorted))-1]
}

// spreadFigures shows durations and their ceilings by percentiles, in milliseconds.
func spreadFigures(what string, values, ceilings []time.Duration) []benchFigure {
	slices.Sort(values)
	slices.Sort(ceilings)
	var list []benchFigure
	for _, p := range []struct {
		name string
		p    float64
	}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"max", 1}} {
		f := benchFigure{name: what + ", " + p.name, unit: "ms", value: milliseconds(percentile(values, p.p))}
		if len(ceilings) > 0 {
			f.ceiling = milliseconds(percentile(ceilings, p.p))
		}
		list = append(list, f)
	}
	return list
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// printBench prints a report for people.
func (a *app) printBench(r *benchReport) {
	m := &r.Machine
	a.facts([]fact{
		{"Machine", fmt.Sprintf("%s, %d cores, %s", m.CPU, m.Cores, m.Kernel)},
		{"Disk", m.FileSystem},
		{"Versions", fmt.Sprintf("%s, SQLite %s", r.Build, m.SQLite)},
		{"Measured", r.StartedAt.Format(time.RFC3339)},
	})
	for _, s := range r.Scenarios {
		a.printf("\n%s: %s. Medians of %s\n", a.bold(s.Name), s.About, count(s.Runs, "run"))
		rows := make([][]string, len(s.Figures))
		for i := range s.Figures {
			rows[i] = a.benchRow(&s.Figures[i])
		}
		a.table([]string{"FIGURE", "", "DTS", "CEILING", "RATIO", "RUNS", "AIM"}, rows, 5)
	}
}

func (a *app) benchRow(f *benchResult) []string {
	row := []string{f.Name, f.Unit, benchNumber(f.Value), "-", "-", "", ""}
	if f.Ceiling > 0 {
		row[3], row[4] = benchNumber(f.Ceiling), strconv.FormatFloat(f.Ratio, 'f', 2, 64)
	}
	row[5] = benchNumber(slices.Min(f.Values)) + " to " + benchNumber(slices.Max(f.Values))
	for _, aim := range f.Aims {
		verdict := a.paint("met", color.FgGreen)
		if !aim.Met {
			verdict = a.paint("missed", color.FgRed)
		}
		if row[6] != "" {
			row[6] += "; "
		}
		row[6] += aim.Aim + ", " + verdict
	}
	return row
}

// benchNumber writes a number with as many digits as mean something.
func benchNumber(v float64) string {
	if v >= 100 || v == 0 {
		return number(v, 0)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
