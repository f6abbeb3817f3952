package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/fatih/color"

	"dts"
)

// clockText says what the server knows of its clock: first what is wrong with it, in a line each.
func (a *app) clockText(s *dts.SchedulerStatus) string {
	if s.ClockHeld != "" {
		return a.paint("held: "+clean(s.ClockHeld), color.FgRed)
	}
	c := s.Clock
	if c == nil {
		c = &dts.ClockStatus{Steps: s.ClockSteps}
	}
	var lines []string
	for _, alert := range c.Alerts {
		lines = append(lines, a.paint(clean(alert), color.FgRed))
	}
	parts := []string{clean(s.Timer)}
	switch {
	case c.Synchronised == nil:
	case *c.Synchronised:
		text := "synchronised"
		if c.EstimatedErrUS > 0 {
			text += " to " + span(time.Duration(c.EstimatedErrUS)*time.Microsecond)
		}
		parts = append(parts, text+", says the kernel")
	case len(c.Alerts) == 0:
		parts = append(parts, a.paint("not synchronised, says the kernel", color.FgYellow))
	}
	if c.MaxSkewMS != 0 {
		parts = append(parts, "another server's differs by "+unsigned(time.Duration(c.MaxSkewMS)*time.Millisecond))
	}
	if d := a.now().Sub(s.Now); d > 5*time.Second || d < -5*time.Second {
		parts = append(parts, "this machine's differs by "+unsigned(d))
	}
	lines = append(lines, strings.Join(parts, "; "))
	if c.Steps > 0 {
		lines = append(lines, a.steps(c))
	}
	return strings.Join(lines, "\n")
}

// steps says how often the clock was stepped, and how the last time.
func (a *app) steps(c *dts.ClockStatus) string {
	text := "stepped once"
	if c.Steps > 1 {
		text = fmt.Sprintf("stepped %d times", c.Steps)
	}
	if c.LastStepAt.IsZero() {
		return text
	}
	if c.Steps > 1 {
		text += ", the last time"
	}
	way := "forward"
	if c.LastStepMS < 0 {
		way = "back"
	}
	return fmt.Sprintf("%s %s by %s at %s", text, way, unsigned(time.Duration(c.LastStepMS)*time.Millisecond), clock(c.LastStepAt, a.loc))
}

func unsigned(d time.Duration) string { return strings.TrimPrefix(span(d), "-") }
