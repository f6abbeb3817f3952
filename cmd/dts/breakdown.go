package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/fatih/color"

	"dts"
)

// warningWords says what was not as was asked for.
func warningWords(t *dts.Task) string {
	list := make([]string, 0, len(t.Warnings))
	for _, w := range t.Warnings {
		limit := func(seconds float64) string { return span(time.Duration(seconds * float64(time.Second))) }
		switch w {
		case dts.WarnLate:
			list = append(list, "it started more than "+limit(t.WarnLateSeconds)+" late")
		case dts.WarnLong:
			list = append(list, "an attempt took longer than "+limit(t.WarnLongerSeconds))
		case dts.WarnShort:
			list = append(list, "it succeeded in less than "+limit(t.WarnShorterSeconds))
		default:
			list = append(list, clean(strings.ToLower(string(w))))
		}
	}
	return strings.Join(list, "; ")
}

// warned colours a warning.
func (a *app) warned(text string) string {
	if text == "" {
		return ""
	}
	return a.paint(text, color.FgYellow)
}

// timingWords says where the time of a task went, from when it was due; "" before its start. One part a line.
func timingWords(x *dts.Timing) string {
	if x == nil {
		return ""
	}
	parts := []struct {
		name, words string
		us          int64
	}{
		{"parent", "for the tasks before it", x.ParentUS},
		{"queue", "ready, for a slot or a limit", x.QueueUS},
		{"scheduler", "until the scheduler started it", x.SchedulerUS},
		{"target", "to run", x.TargetUS},
	}
	total := x.ParentUS + x.QueueUS + x.SchedulerUS + x.TargetUS
	var lines []string
	for _, p := range parts {
		if p.us == 0 && p.name != "target" {
			continue
		}
		line := fmt.Sprintf("%-9s %s", span(time.Duration(p.us)*time.Microsecond), p.words)
		if share := p.us * 100 / max(total, 1); share > 0 && share < 100 {
			line += fmt.Sprintf(", %d%%", share)
		}
		if p.name == x.Slow {
			line += ": this was slow"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
