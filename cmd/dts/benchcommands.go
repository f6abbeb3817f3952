package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"dts"
	"dts/web/api"
)

// commandsScenario asks how late commands start: evenly spaced, and many at one instant.
var commandsScenario = benchScenario{
	name: "commands",
	about: func(o benchOptions) string {
		return fmt.Sprintf("commands, %d and %d a second for %s each, and %d at one instant, %d times. Ceiling: os/exec at the same instants",
			slowCommands, fastCommands, span(o.span("commands")), commandBurst, commandBursts)
	},
	sizes: []benchSize{{flag: "commands", span: 10 * time.Second, longest: time.Minute, usage: "commands: each rate for a `DURATION`"}},
	aims: map[string][]benchAim{
		"50/s, recorded start, p50":  {{below: 2}},
		"200/s, recorded start, p50": {{below: 2}},
		"50 at once, running, p50":   {{ratioBelow: 1.5}},
	},
	run: func(ctx context.Context, b *bench) ([]benchFigure, error) { return b.commands(ctx) },
}

const (
	slowCommands  = 50 // a second
	fastCommands  = 200
	commandBurst  = 50 // at one instant
	commandBursts = 5
	burstGap      = 250 * time.Millisecond
	commandsLead  = 3 * time.Second // more than dts claims ahead
	commandsLimit = time.Minute     // after the last was due
)

// stampCommand prints, in nanoseconds since 1970, when it ran. A process's own word is the only one that means
// the same whoever has started it: a "start" that a scheduler records may be before or after the fork.
var stampCommand = [...]string{"date", "+%s%N"}

// stampOf reads what stampCommand has printed.
func stampOf(text string) (time.Time, error) {
	ns, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s printed %q, not nanoseconds: it needs a date that knows %%N",
			strings.Join(stampCommand[:], " "), clip(text, 40))
	}
	return time.Unix(0, ns), nil
}

// checkStamp says whether stampCommand does on this system what it should.
func checkStamp(ctx context.Context) error {
	text, err := exec.CommandContext(ctx, stampCommand[0], stampCommand[1:]...).Output()
	if err == nil {
		_, err = stampOf(string(text))
	}
	return err
}

// commandPart is a part of the scenario: the instants, counted from its begin, at which commands are due.
type commandPart struct {
	name string
	due  []time.Duration
}

// commandParts come one after the other, with some time between them.
func commandParts(each time.Duration) []commandPart {
	var begin time.Duration
	evenly := func(perSecond int) commandPart {
		p := commandPart{name: fmt.Sprintf("%d/s", perSecond)}
		step := time.Second / time.Duration(perSecond)
		for i := range max(int(each/step), 1) {
			p.due = append(p.due, begin+time.Duration(i)*step)
		}
		begin += each + burstGap
		return p
	}
	list := []commandPart{evenly(slowCommands), evenly(fastCommands)}
	burst := commandPart{name: fmt.Sprintf("%d at once", commandBurst)}
	for i := range commandBurst * commandBursts {
		burst.due = append(burst.due, begin+time.Duration(i/commandBurst)*burstGap)
	}
	return append(list, burst)
}

func (b *bench) commands(ctx context.Context) ([]benchFigure, error) {
	if err := checkStamp(ctx); err != nil {
		b.notef("commands is left out: %v", err)
		return nil, nil
	}
	if _, _, err := b.runCommands(ctx, make([]time.Duration, commandBurst), 0); err != nil {
		return nil, fmt.Errorf("warm up: %w", err)
	}
	parts := commandParts(b.span("commands"))
	var due []time.Duration
	for _, p := range parts {
		due = append(due, p.due...)
	}
	recorded, running, err := b.runCommands(ctx, due, commandsLead)
	if err != nil {
		return nil, err
	}
	bare, err := bareCommands(ctx, due)
	if err != nil {
		return nil, fmt.Errorf("the bare starts: %w", err)
	}
	var figures []benchFigure
	for _, p := range parts {
		n := len(p.due)
		figures = append(figures, spreadFigures(p.name+", recorded start", recorded[:n], nil)...)
		figures = append(figures, spreadFigures(p.name+", running", running[:n], bare[:n])...)
		recorded, running, bare = recorded[n:], running[n:], bare[n:]
	}
	return figures, nil
}

// runCommands runs a command at each instant, counted from lead from now on. It returns how late each was: as
// dts records it, and by the process's own word.
func (b *bench) runCommands(ctx context.Context, due []time.Duration, lead time.Duration) (recorded, running []time.Duration, err error) {
	config, err := json.Marshal(dts.CommandTarget{Argv: stampCommand[:]})
	if err != nil {
		return nil, nil, err
	}
	begin := time.Now().Add(lead)
	at := func(i int) time.Time { return dts.Micros(begin.Add(due[i])) }
	ids, err := b.server.createAll(ctx, len(due), func(i int) api.TaskRequest {
		return api.TaskRequest{Spec: dts.Spec{TargetType: dts.Command, TargetConfig: config}, RunAt: api.At(at(i))}
	})
	if err != nil {
		return nil, nil, err
	}
	if lead > 0 && time.Until(begin) < lead/2 {
		return nil, nil, errors.New("creating the tasks took longer than there was time for; give less time with --commands")
	}
	err = b.server.profiled(func() error {
		if err := sleepUntil(ctx, at(len(due)-1)); err != nil { // no polling while it is measured
			return err
		}
		return b.server.settled(ctx, commandsLimit)
	})
	if err != nil {
		return nil, nil, err
	}
	recorded, running = make([]time.Duration, len(due)), make([]time.Duration, len(due))
	err = b.server.finished(ctx, ids, func(i int, t *dts.Task) {
		recorded[i] = time.Duration(*t.LatenessUS) * time.Microsecond
	})
	if err != nil {
		return nil, nil, err
	}
	for i, id := range ids {
		out, err := b.server.Output(ctx, id, 0)
		if err != nil {
			return nil, nil, err
		}
		ran, err := stampOf(out.Head)
		if err != nil {
			return nil, nil, err
		}
		running[i] = ran.Sub(at(i))
	}
	return recorded, running, nil
}

// bareCommands starts the same commands at the same instants with os/exec and nothing else.
func bareCommands(ctx context.Context, due []time.Duration) ([]time.Duration, error) {
	path, err := exec.LookPath(stampCommand[0])
	if err != nil {
		return nil, err
	}
	ran := make([]time.Time, len(due))
	start := func(i int) error {
		text, err := (&exec.Cmd{Path: path, Args: stampCommand[:], Env: []string{"LANG=C.UTF-8"}}).Output()
		if err == nil {
			ran[i], err = stampOf(string(text))
		}
		return err
	}
	first := time.Now().Add(bareLead)
	clock := newWallTimer()
	defer clock.close()
	var wg sync.WaitGroup
	errs := make([]error, len(due))
	for i := range len(due) { // those that fall on one instant start side by side
		if err := clock.until(ctx, first.Add(due[i])); err != nil {
			return nil, err
		}
		wg.Go(func() { errs[i] = start(i) })
	}
	wg.Wait()
	late := make([]time.Duration, len(due))
	for i := range late {
		late[i] = ran[i].Sub(first.Add(due[i]))
	}
	return late, errors.Join(errs...)
}
