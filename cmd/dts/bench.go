package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

// benchOptions are what the scenarios share.
type benchOptions struct {
	Dir        string        // the data directories are made in here
	Runs       int           // of each scenario; figures are medians over them
	Tasks      int           // of the scenario lateness
	Spread     time.Duration // over which those are due
	Drain      int           // tasks of the scenario drain
	CPUProfile string        // file for a profile of the server; "": none
}

// benchScenario measures one thing. Each is in a file of its own and listed in benchScenarios.
type benchScenario struct {
	name  string
	about func(o benchOptions) string // one line: what is measured, and what the ceiling is
	aims  map[string]benchAim         // by the name of the figure
	// run measures once. Figures come in the order in which they are shown, the same in every run.
	run func(ctx context.Context, b *bench) ([]benchFigure, error)
}

var benchScenarios = [...]benchScenario{latenessScenario, drainScenario}

// Limits of the flags.
const (
	maxBenchTasks = 1_000_000
	maxBenchRuns  = 100
)

func (a *app) benchCommand() *cli.Command {
	names := make([]string, len(benchScenarios))
	for i, s := range benchScenarios {
		names[i] = s.name
	}
	return &cli.Command{
		Name: "bench", Usage: "measure how fast this machine runs tasks", Category: "This program",
		UsageText: "dts bench [options] [SCENARIO…]",
		Description: `Starts a server of its own, with its data in a temporary directory, and a sink that takes its HTTP
calls, and measures. Beside every figure stands its ceiling: what the machine does, in the same run, with
nothing but the Go HTTP client. docs/benchmarks.md describes the method.

Scenarios: ` + strings.Join(names, ", ") + `. Without a name all of them run.`,
		Flags: []cli.Flag{
			jsonFlag(),
			&cli.StringFlag{Name: "dir", Value: ".", Usage: "make the temporary data directory in `DIR`; its disk is what is measured"},
			&cli.IntFlag{Name: "runs", Value: 3, Usage: "measure `N` times and show medians"},
			&cli.IntFlag{Name: "tasks", Value: 1000, Usage: "lateness: `N` tasks"},
			&cli.StringFlag{Name: "spread", Value: "10s", Usage: "lateness: evenly over a `DURATION`"},
			&cli.IntFlag{Name: "drain", Value: 40_000, Usage: "drain: `N` tasks due at one instant"},
			&cli.StringFlag{Name: "cpuprofile", Usage: "write a CPU profile of the server, of the last run, to `FILE`; the server then runs in this process"},
		},
		Subcommands: []*cli.Command{a.benchSinkCommand()},
		Action:      a.bench,
	}
}

func (a *app) bench(c *cli.Context) error {
	o := benchOptions{Dir: c.String("dir"), Runs: c.Int("runs"), Tasks: c.Int("tasks"), Drain: c.Int("drain"), CPUProfile: c.String("cpuprofile")}
	for _, n := range []struct {
		flag       string
		value, max int
	}{{"--runs", o.Runs, maxBenchRuns}, {"--tasks", o.Tasks, maxBenchTasks}, {"--drain", o.Drain, maxBenchTasks}} {
		if n.value < 1 || n.value > n.max {
			return usagef("%s: is %d; use 1 to %d", n.flag, n.value, n.max)
		}
	}
	var err error
	if o.Spread, err = parseSpan("--spread", c.String("spread"), time.Millisecond); err != nil {
		return err
	}
	scenarios, err := chooseScenarios(c.Args().Slice())
	if err != nil {
		return err
	}
	machine, err := thisMachine(c.Context, o.Dir)
	if err != nil {
		return err
	}
	report := &benchReport{Machine: machine, Build: thisBuild(), StartedAt: time.Now().UTC().Truncate(time.Second), Runs: o.Runs}
	for _, s := range scenarios {
		runs := make([][]benchFigure, o.Runs)
		for i := range runs {
			a.notef("%s, run %d of %d", s.name, i+1, o.Runs)
			if runs[i], err = a.benchOnce(c.Context, s, o); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
		report.Scenarios = append(report.Scenarios, benchSection{Name: s.name, About: s.about(o), Figures: summarise(runs, s.aims)})
	}
	if c.Bool("json") {
		return a.printJSON(report)
	}
	a.printBench(report)
	return nil
}

// benchOnce runs a scenario once, with a server and a sink of its own.
func (a *app) benchOnce(ctx context.Context, s benchScenario, o benchOptions) ([]benchFigure, error) {
	dir, err := os.MkdirTemp(o.Dir, ".dts-bench-")
	if err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	defer os.RemoveAll(dir)
	sink, err := startSink(ctx)
	if err != nil {
		return nil, err
	}
	defer sink.stop()
	server, err := startBenchServer(ctx, dir, o.CPUProfile)
	if err != nil {
		return nil, err
	}
	defer server.stop()
	return s.run(ctx, &bench{benchOptions: o, server: server, sink: sink})
}

// bench is what one run of a scenario works with.
type bench struct {
	benchOptions
	server *benchServer
	sink   *benchSink
}

func chooseScenarios(names []string) ([]benchScenario, error) {
	if len(names) == 0 {
		return benchScenarios[:], nil
	}
	var list []benchScenario
	for _, name := range names {
		i := slices.IndexFunc(benchScenarios[:], func(s benchScenario) bool { return s.name == name })
		if i < 0 {
			return nil, usagef("there is no scenario %q; dts bench --help lists them", clip(name, 40))
		}
		list = append(list, benchScenarios[i])
	}
	return list, nil
}
