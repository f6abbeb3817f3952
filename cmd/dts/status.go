package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fatih/color"
	"github.com/urfave/cli/v2"

	"dts"
)

func (a *app) statusCommand() *cli.Command {
	return &cli.Command{
		Name: "status", Usage: "say how the server is doing", Category: "The server",
		Description: "Exits with 1 when the server is not ready: it does not take or fire tasks.",
		Flags: withConnection(
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "a screen that keeps itself up to date; with --json an object a line"},
			&cli.StringFlag{Name: "every", Usage: "with --watch: how often it asks, a `DURATION` from 200ms; default: 1s"},
			jsonFlag()),
		Action: a.statusNow,
	}
}

// statusWithin is how long a server may take to say how it is: one that stands still would let one wait for minutes.
const statusWithin = 3 * time.Second

func (a *app) statusNow(c *cli.Context) error {
	if err := noArgs(c); err != nil {
		return err
	}
	if c.Bool("watch") {
		return a.watch(c)
	}
	if c.IsSet("every") {
		return usagef("--every: there is no --watch to use it for")
	}
	l, err := a.connectWithin(c, statusWithin)
	if err != nil {
		return err
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(c.Context, 2*statusWithin)
	defer cancel()
	s, err := l.Status(ctx)
	if err != nil {
		return hangs(err)
	}
	if c.Bool("json") {
		err = a.printJSON(s)
	} else {
		n, uncounted := l.Counts(ctx) // it tells what it knows, also where the database does not answer
		a.printStatus(s, n, uncounted)
	}
	if err == nil && !s.Ready {
		return exitOnly(exitFailed)
	}
	return err
}

// hangs says of a server that does not answer in time what may be the matter.
func hangs(err error) error {
	if !silent(err) {
		return err
	}
	return &exitError{exitNoServer, fmt.Sprintf("the server does not answer within %s: it is stopped (SIGSTOP, a debugger), it hangs, or its machine has too much to do", span(statusWithin))}
}

func (a *app) printStatus(s *dts.SchedulerStatus, n *dts.Counts, uncounted error) {
	state := a.paint("ready", color.FgGreen)
	switch {
	case s.Draining:
		state = a.paint("stopping", color.FgYellow)
	case !s.Ready:
		state = a.paint("not ready", color.FgRed)
	}
	a.printf("%s  %s\n", a.bold("dts "+clean(s.Version)), state)
	for _, why := range s.NotReady {
		a.printf("  %s\n", clean(why))
	}
	tasks := ""
	if uncounted != nil {
		tasks = a.paint("could not be counted: "+oneLine(uncounted.Error()), color.FgRed)
	} else {
		tasks = fmt.Sprintf("%d pending, %d running, %d failed", n.Pending, n.Running, n.Failed)
		if n.Capped {
			tasks += " (counted to 10000)"
		}
	}
	held := int64(0)
	for _, r := range s.Shards {
		held += int64(r.To - r.From + 1)
	}
	list := []fact{
		{"Node", clean(s.Node)},
		{"Up for", fmt.Sprintf("%s; it holds %d of %d shards", span(s.Now.Sub(s.StartedAt).Truncate(time.Second)), held, dts.Shards)},
		{"Tasks", tasks},
	}
	for _, p := range s.Pools {
		name := "HTTP calls"
		if p.TargetType == dts.Command {
			name = "Commands"
		}
		text := fmt.Sprintf("%d of %d running", p.Running, p.Slots)
		if p.Stopped > 0 {
			text += fmt.Sprintf(", %d of them stopped for others of high priority", p.Stopped)
		}
		if p.Ready > 0 {
			text += fmt.Sprintf(", %d wait for a slot", p.Ready)
		}
		if p.Parked > 0 {
			text += fmt.Sprintf(", %d for resources or a host", p.Parked)
		}
		list = append(list, fact{name, text})
	}
	if r := s.Resources; r != nil {
		list = append(list, fact{"Resources", resourcesText(r)})
	}
	if s.HostsBackedOff > 0 {
		list = append(list, fact{"Backed off", hostsText(s)})
	}
	lag := "none: nothing that is due waits"
	if s.LagUS > 0 {
		lag = span(time.Duration(s.LagUS) * time.Microsecond)
	}
	ahead := "all there are"
	if !s.Watermark.IsZero() {
		ahead = "those due until " + clock(s.Watermark, a.loc)
	}
	list = append(list, fact{"Lag", lag},
		fact{"In memory", fmt.Sprintf("%s, %s; %d claimed", count(s.HeapSize, "task"), ahead, s.Claimed)})
	if !s.NextWakeAt.IsZero() {
		list = append(list, fact{"Next wake", relative(s.NextWakeAt, s.Now)})
	}
	list = append(list, fact{"Clock", a.clockText(s)})
	if s.ActivePaused > 0 {
		list = append(list, fact{"Paused", count(s.ActivePaused, "recurring task")})
	}
	store := "writes well"
	if s.UnwrittenRuns > 0 {
		store += fmt.Sprintf("; %s on the way to the disk", count(s.UnwrittenRuns, "result"))
	}
	if s.StoreError != "" {
		store = a.paint(clean(s.StoreError), color.FgRed) + " since " + clock(s.StoreErrorFrom, a.loc)
	}
	list = append(list, fact{"Store", store})
	if s.Lease != nil {
		text := "it may start tasks for another " + span(seconds(s.Lease.SecondsLeft))
		if s.Lease.SecondsLeft <= 0 {
			text = a.paint("run out: nothing is started until the database answers", color.FgRed)
		}
		list = append(list, fact{"Lease", text})
	}
	a.facts(list)
	if len(s.Nodes) > 0 {
		a.printf("\n")
		a.serverTable(s.Nodes)
	}
}

// resourcesText says what is taken of a server's budget.
func resourcesText(r *dts.ResourceStatus) string {
	text := fmt.Sprintf("%g of %g cores", r.CPUUsed, r.CPU)
	if r.MemoryMB > 0 {
		text += fmt.Sprintf(" and %d of %d MiB", r.MemoryMBUsed, r.MemoryMB)
	}
	text += " are allocated"
	if r.Waiting > 0 {
		text += fmt.Sprintf("; %s for some", count(r.Waiting, "task")+" wait")
	}
	return text
}

// hostsText names the hosts that are backed off.
func hostsText(s *dts.SchedulerStatus) string {
	const shown = 3
	var list []string
	for _, h := range s.Hosts[:min(len(s.Hosts), shown)] {
		host := clean(h.Host)
		if h.Queue != "" && h.Queue != "default" {
			host += " for the queue " + clean(h.Queue)
		}
		text := fmt.Sprintf("%s to %d at once, because it is slow", host, h.Limit)
		if h.Reason == "refused" {
			text = fmt.Sprintf("%s to %d at once, because it refuses calls", host, h.Limit)
		}
		list = append(list, text)
	}
	if n := s.HostsBackedOff - len(list); n > 0 {
		list = append(list, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(list, "; ")
}

// skewShown is from which difference on another server's clock is called wrong.
const skewShown = 100 * time.Millisecond

// serverTable prints the servers of a cluster.
func (a *app) serverTable(nodes []dts.NodeStatus) {
	rows := make([][]string, len(nodes))
	for i, n := range nodes {
		id := shortID(n.ID)
		if n.Self {
			id += " *"
		}
		state := n.State
		switch state {
		case "ALIVE":
			state = a.paint(state, color.FgGreen)
		case "LEAVING":
			state = a.paint(state, color.FgYellow)
		case "DEAD":
			state = a.paint(state, color.FgRed)
		default:
			state = a.paint(clean(state), color.Faint)
		}
		clock := "right"
		switch skew := time.Duration(n.ClockSkewMS) * time.Millisecond; {
		case n.Self:
			clock = ""
		case skew > skewShown:
			clock = a.paint("+"+span(skew), color.FgRed)
		case skew < -skewShown:
			clock = a.paint(span(skew), color.FgRed)
		}
		rows[i] = []string{clean(id), state, fmt.Sprint(n.Shards), span(seconds(n.SeenSecondsAgo)), clock, clean(n.Version), clean(n.Address)}
	}
	a.table([]string{"server", "state", "shards", "seen", "clock", "version", "address"}, rows, 5)
	a.printf("  * the one that answers. Seen: how long ago it last gave a sign of life.\n")
}

// shortID is the end of a server's id: the beginning is that of the time, and servers that are set up together share it.
func shortID(id string) string { return id[max(0, len(id)-8):] }

// seconds makes a duration that is to be shown, to the tenth.
func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Truncate(100 * time.Millisecond)
}
