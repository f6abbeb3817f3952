package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fatih/color"
	"github.com/jedib0t/go-pretty/v6/text"

	"dts"
)

// frame draws what was seen on a screen of so many columns and rows: a line each, none wider than the screen. lost says why
// there is nothing newer; "" when there is.
func (a *app) frame(seen *watched, lost string, columns, rows int) []string {
	now := seen.Status.Now.Add(max(a.now().Sub(seen.At), 0)) // by the server's clock
	head, facts := a.frameHead(seen, lost, now)
	lines := append(head, facts[:min(len(facts), max(rows/3-len(head), 0))]...)
	names := min(max(columns*3/8, 12), nameWidth)
	sections := []section{
		{"RUNNING", a.runningLines(seen, now, names), "nothing runs"},
		{"NEXT", a.upNextLines(seen, now, names), "nothing is due"},
		{"QUEUES", a.queueLines(seen, names), "no queue has tasks that run or wait"},
		{"FAILED LAST", a.failureLines(seen, now, names), "no dead letters"},
	}
	room := rows - len(lines) - 1 // the last line says how to end it
	sections = fitting(sections, room)
	for i, shown := range share(sections, room) {
		lines = append(lines, a.sectionLines(&sections[i], shown)...)
	}
	lines = lines[:min(len(lines), max(rows-1, 0))]
	for len(lines) < rows-1 {
		lines = append(lines, "")
	}
	lines = append(lines, a.dim("q ends it"))
	for i, l := range lines {
		lines[i] = snip(l, columns)
	}
	return lines
}

// snip cuts a line to so many columns.
func snip(line string, columns int) string {
	if width(line) <= columns {
		return line
	}
	cut := text.Trim(line, columns-1) + "…"
	if strings.Contains(line, "\x1b") {
		cut += "\x1b[0m"
	}
	return cut
}

// frameHead is the part above the lists: how the server is, and facts that a small screen has no room for.
func (a *app) frameHead(seen *watched, lost string, now time.Time) (head, facts []string) {
	s := seen.Status
	state := a.paint("ready", color.FgGreen)
	switch {
	case lost != "":
		state = a.paint("no answer", color.FgRed)
	case s.Draining:
		state = a.paint("stopping", color.FgYellow)
	case !s.Ready:
		state = a.paint("not ready", color.FgRed)
	}
	head = []string{fmt.Sprintf("%s  %s  up %s  %s", a.bold("dts "+clean(s.Version)), state,
		distance(now.Sub(s.StartedAt).Truncate(time.Second)), a.dim(clock(now, a.loc)))}
	trouble := func(text string) { head = append(head, "  "+a.paint(oneLine(text), color.FgRed)) }
	if lost != "" {
		trouble(lost)
	} else {
		for _, why := range s.NotReady {
			trouble(why)
		}
		if seen.Error != "" {
			trouble("the tasks could not be read: " + seen.Error)
		}
		if s.Clock != nil {
			for _, alert := range s.Clock.Alerts {
				trouble(alert)
			}
		}
	}
	fact := func(name, value string) { facts = append(facts, fmt.Sprintf("  %-9s %s", name, value)) }
	if n := seen.Counts; n != nil {
		failed := fmt.Sprintf("%d failed", n.Failed)
		if n.Failed > 0 {
			failed = a.paint(failed, color.FgRed)
		}
		more := ""
		if n.Capped {
			more = " (counted to 10000)"
		}
		fact("Tasks", fmt.Sprintf("%d pending · %d running · %s%s", n.Pending, n.Running, failed, more))
	}
	var slots []string
	for _, p := range s.Pools {
		name := "HTTP"
		if p.TargetType == dts.Command {
			name = "commands"
		}
		text := fmt.Sprintf("%s %d/%d", name, p.Running, p.Slots)
		if p.Ready+p.Parked > 0 {
			text += a.paint(fmt.Sprintf(", %d wait", p.Ready+p.Parked), color.FgYellow)
		}
		slots = append(slots, text)
	}
	fact("Slots", strings.Join(slots, " · "))
	fact("Rates", a.ratesText(seen.Rates))
	fact("Lateness", latenessText(seen.Rates))
	lag := "none"
	if s.LagUS > 0 {
		lag = a.paint("the oldest due task waits for "+span(time.Duration(s.LagUS)*time.Microsecond), color.FgYellow)
	}
	fact("Lag", lag)
	return head, facts
}

func (a *app) ratesText(r *rates) string {
	if r == nil {
		return a.dim("in a moment")
	}
	failed := number(r.Failed, 1) + " failed"
	if r.Failed > 0 {
		failed = a.paint(failed, color.FgRed)
	}
	return fmt.Sprintf("%s started · %s succeeded · %s a second, in the last %s", number(r.Started, 1), number(r.Succeeded, 1), failed, spanOf(r.Seconds))
}

func latenessText(r *rates) string {
	switch {
	case r == nil:
		return "–"
	case r.P50 == nil:
		return "nothing started in the last " + spanOf(r.Seconds)
	}
	return fmt.Sprintf("p50 %s · p99 %s, of %s in the last %s", span(time.Duration(*r.P50*float64(time.Second))), span(time.Duration(*r.P99*float64(time.Second))),
		count(int(r.Starts), "start"), spanOf(r.Seconds))
}

// spanOf writes seconds without a fraction.
func spanOf(s float64) string {
	return distance(max(time.Duration(s*float64(time.Second)).Round(time.Second), time.Second))
}

// section is a list of the screen.
type section struct {
	title string
	lines []string
	none  string // what stands there when it is empty
}

// fitting leaves out what there is no room for, so that of each of the others a line can be seen: first the last of those that are
// empty, then the last.
func fitting(list []section, room int) []section {
	for len(list) > max(room/3, 0) {
		out := len(list) - 1
		for i := range list {
			if len(list[i].lines) == 0 {
				out = i
			}
		}
		list = slices.Delete(list, out, out+1)
	}
	return list
}

// share says how many lines of each section there is room for, a title and an empty line for each taken off: each gets the same,
// and what one does not need goes to the others.
func share(list []section, room int) []int {
	shown := make([]int, len(list))
	room -= 2 * len(list)
	for given := true; given && room > 0; {
		given = false
		for i := range list {
			if room > 0 && shown[i] < max(len(list[i].lines), 1) {
				shown[i]++
				room--
				given = true
			}
		}
	}
	return shown
}

func (a *app) sectionLines(s *section, shown int) []string {
	title := s.title
	if n := len(s.lines) - shown; n > 0 {
		title += fmt.Sprintf("  (%d more)", n)
	}
	lines := []string{"", a.bold(title)}
	if len(s.lines) == 0 {
		return append(lines, "  "+a.dim(s.none))
	}
	return append(lines, s.lines[:shown]...)
}

// columnsOf puts cells under each other; the last column is as wide as it is.
func columnsOf(rows [][]string) []string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], width(cell))
		}
	}
	lines := make([]string, len(rows))
	for i, row := range rows {
		var b strings.Builder
		b.WriteString("  ")
		for j, cell := range row {
			b.WriteString(cell)
			if j < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[j]-width(cell)+2))
			}
		}
		lines[i] = strings.TrimRight(b.String(), " ")
	}
	return lines
}

const nameWidth = 40 // columns of a name, on a wide screen

func (a *app) runningLines(seen *watched, now time.Time, names int) []string {
	rows := make([][]string, len(seen.Running))
	for i, t := range seen.Running {
		try := ""
		if t.Attempts > 1 {
			try = fmt.Sprintf("attempt %d", t.Attempts)
		}
		rows[i] = []string{a.paint(distance(max(now.Sub(startOf(t)), 0)), color.FgCyan), snip(displayName(&t.Spec), names), clean(t.Queue), a.dim(t.ID), try}
	}
	return columnsOf(rows)
}

func (a *app) upNextLines(seen *watched, now time.Time, names int) []string {
	rows := make([][]string, 0, len(seen.Next))
	for _, n := range seen.Next {
		when := "now"
		if n.At.After(now) {
			when = relative(n.At, now)
		}
		rows = append(rows, []string{when, snip(clean(n.Name), names), clean(n.Queue), a.dim(clock(n.At, a.loc))})
	}
	return columnsOf(rows)
}

func (a *app) queueLines(seen *watched, names int) []string {
	var rows [][]string
	for _, q := range seen.Queues {
		if q.Running == 0 && q.Waiting == 0 && !q.Paused {
			continue
		}
		waits := ""
		if q.Waiting > 0 {
			waits = a.paint(waitingText(q.Waiting)+" wait", color.FgYellow) + ", the oldest for " + oldestText(q)
		}
		state := ""
		if q.Paused {
			state = a.paint(strings.TrimSuffix("paused: "+clean(q.PauseNote), ": "), color.FgYellow)
		}
		runs := fmt.Sprintf("%d running", q.Running)
		if q.Concurrency > 0 {
			runs = fmt.Sprintf("%d of %d running", q.Running, q.Concurrency)
		}
		rows = append(rows, []string{snip(clean(q.Name), names), runs, waits, state})
	}
	return columnsOf(rows)
}

func (a *app) failureLines(seen *watched, now time.Time, names int) []string {
	rows := make([][]string, len(seen.Failures))
	for i, t := range seen.Failures {
		rows[i] = []string{relative(t.CompletedAt, now), snip(displayName(&t.Spec), names), a.paint(lastError(t), color.FgRed)}
	}
	return columnsOf(rows)
}
