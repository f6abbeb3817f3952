package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"dts/web"
)

// benchOptions are what the scenarios share.
type benchOptions struct {
	Dir        string // the data directories are made in here
	Runs       int    // of each scenario; figures are medians over them
	CPUProfile string // file for a profile of the server; "": none
	Rqlited    string // path of rqlited; "" where no scenario needs it

	numbers map[string]int           // by the name of the flag: see benchSize
	spans   map[string]time.Duration // likewise
}

// number returns the value of a benchSize that is a number.
func (o *benchOptions) number(flag string) int { return o.numbers[flag] }

// span returns the value of a benchSize that is a duration.
func (o *benchOptions) span(flag string) time.Duration { return o.spans[flag] }

// benchSize is a flag that says how large a scenario is. One that several scenarios share stands with one of
// them.
type benchSize struct {
	flag, usage string
	number, max int           // of a number of things: how many by default, and at most
	span        time.Duration // of a duration: the default, where max is 0
	longest     time.Duration // likewise
}

// benchScenario measures one thing. Each is in a file of its own and listed in benchScenarios.
type benchScenario struct {
	name  string
	about func(o benchOptions) string // one line: what is measured, and what the ceiling is
	sizes []benchSize
	aims  map[string][]benchAim // by the name of the figure
	long  bool                  // runs only if it is named, or with --all
	runs  int                   // it is measured so many times at most; 0: as many as --runs says
	serve []string              // flags of the server besides --data and --config
	tcp   bool                  // the server also listens on TCP
	// rqlited is how many rqlite nodes it needs; 0: none. Such a scenario starts its own servers.
	rqlited int
	// run measures once. Figures come in the order in which they are shown, the same in every run. What is
	// measured is done within b.server.profiled.
	run func(ctx context.Context, b *bench) ([]benchFigure, error)
}

var benchScenarios = [...]benchScenario{
	latenessScenario, drainScenario, createScenario, mixedScenario, commandsScenario, idleScenario, herdScenario,
	latenessPendingScenario, latenessRetentionScenario, drainLongScenario, sustainedScenario, fairnessScenario, bigScenario, rqlite1Scenario, rqlite3Scenario,
}

const maxBenchRuns = 100

func (a *app) benchCommand() *cli.Command {
	flags := []cli.Flag{
		jsonFlag(),
		&cli.BoolFlag{Name: "all", Usage: "the long scenarios too"},
		&cli.StringFlag{Name: "dir", Value: ".", Usage: "make the temporary data directory in `DIR`; its disk is what is measured"},
		&cli.IntFlag{Name: "runs", Value: 3, Usage: "measure `N` times and show medians; some long scenarios are measured once"},
		&cli.StringFlag{Name: "rqlited", Usage: "the `PATH` of rqlited, for the scenarios on rqlite; default: .cache/rqlited, else the one on the PATH"},
		&cli.StringFlag{Name: "cpuprofile", Usage: "write a CPU profile of the server, of the last part that was measured, to `FILE`"},
	}
	var short, long []string
	for _, s := range benchScenarios {
		if s.long {
			long = append(long, s.name)
		} else {
			short = append(short, s.name)
		}
		for _, size := range s.sizes {
			flags = append(flags, size.cli())
		}
	}
	return &cli.Command{
		Name: "bench", Usage: "measure how fast this machine runs tasks", Category: "This program",
		UsageText: "dts bench [options] [SCENARIO…]",
		Description: `Starts a server of its own, with its data in a temporary directory, and a sink that takes its HTTP
calls, and measures. Beside a figure stands its ceiling: what the machine does, in the same run, with
nothing but the Go HTTP client. docs/benchmarks.md describes the method.

Scenarios: ` + strings.Join(short, ", ") + `. Without a name these run.

Long ones: ` + strings.Join(long, ", ") + `. These run if they are named, or with --all.`,
		Flags:       flags,
		Subcommands: []*cli.Command{a.benchSinkCommand(), a.benchBackupCommand()},
		Action:      a.bench,
	}
}

// cli makes the flag.
func (s benchSize) cli() cli.Flag {
	if s.max > 0 {
		return &cli.IntFlag{Name: s.flag, Value: s.number, Usage: s.usage}
	}
	return &cli.StringFlag{Name: s.flag, Value: s.span.String(), Usage: s.usage + "; default: " + distance(s.span)}
}

// read puts what the flag says into o.
func (s benchSize) read(c *cli.Context, o *benchOptions) error {
	if s.max == 0 {
		d, err := parseSpan("--"+s.flag, c.String(s.flag), time.Millisecond)
		if err == nil && d > s.longest {
			err = usagef("--%s: %s is too long; the most is %s", s.flag, distance(d), distance(s.longest))
		}
		o.spans[s.flag] = d
		return err
	}
	n := c.Int(s.flag)
	o.numbers[s.flag] = n
	return benchLimit(s.flag, n, s.max)
}

func benchLimit(flag string, n, most int) error {
	if n < 1 || n > most {
		return usagef("--%s: is %d; use 1 to %d", flag, n, most)
	}
	return nil
}

func (a *app) bench(c *cli.Context) error {
	o := benchOptions{
		Dir: c.String("dir"), Runs: c.Int("runs"), CPUProfile: c.String("cpuprofile"),
		numbers: map[string]int{}, spans: map[string]time.Duration{},
	}
	if err := benchLimit("runs", o.Runs, maxBenchRuns); err != nil {
		return err
	}
	for _, s := range benchScenarios {
		for _, size := range s.sizes {
			if err := size.read(c, &o); err != nil {
				return err
			}
		}
	}
	scenarios, err := chooseScenarios(c.Args().Slice(), c.Bool("all"))
	if err != nil {
		return err
	}
	if scenarios, err = a.withRqlited(c, scenarios, &o); err != nil {
		return err
	}
	machine, err := thisMachine(c.Context, o.Dir)
	if err != nil {
		return err
	}
	report := &benchReport{Machine: machine, Build: thisBuild(), StartedAt: time.Now().UTC().Truncate(time.Second)}
	for _, s := range scenarios {
		runs := make([][]benchFigure, o.Runs)
		if s.runs > 0 {
			runs = runs[:min(s.runs, o.Runs)]
		}
		for i := range runs {
			a.notef("%s, run %d of %d", s.name, i+1, len(runs))
			if runs[i], err = a.benchOnce(c.Context, s, o); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
		report.Scenarios = append(report.Scenarios, benchSection{Name: s.name, About: s.about(o), Runs: len(runs), Figures: summarise(runs, s.aims)})
	}
	if c.Bool("json") {
		return a.printJSON(report)
	}
	a.printBench(report)
	return nil
}

// withRqlited finds rqlited for the scenarios that need it. Without it they are left out, unless they were named.
func (a *app) withRqlited(c *cli.Context, list []benchScenario, o *benchOptions) ([]benchScenario, error) {
	needs := func(s benchScenario) bool { return s.rqlited > 0 }
	if !slices.ContainsFunc(list, needs) {
		return list, nil
	}
	var err error
	if o.Rqlited, err = findRqlited(c.String("rqlited")); err == nil || c.Args().Present() || c.IsSet("rqlited") {
		return list, err
	}
	for _, s := range list {
		if needs(s) {
			a.notef("%s is left out: %s", s.name, err)
		}
	}
	return slices.DeleteFunc(list, needs), nil
}

// benchOnce runs a scenario once, with a server and a sink of its own.
func (a *app) benchOnce(ctx context.Context, s benchScenario, o benchOptions) (figures []benchFigure, err error) {
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
	b := &bench{benchOptions: o, sink: sink, notef: a.notef, serve: benchServerOptions{Dir: dir, Flags: s.serve, Listen: web.NoListen}}
	if s.tcp {
		if b.serve.Listen, err = freeAddress(); err != nil {
			return nil, err
		}
	}
	if o.CPUProfile != "" {
		if b.serve.Profile, err = filepath.Abs(o.CPUProfile); err != nil {
			return nil, err
		}
	}
	if s.rqlited > 0 {
		return s.run(ctx, b)
	}
	if b.server, err = startBenchServer(ctx, b.serve); err != nil {
		return nil, err
	}
	// Stopping writes the profile. The scenario may have put another server in the place of this one.
	defer func() { err = errors.Join(err, b.server.stop()) }()
	return s.run(ctx, b)
}

// bench is what one run of a scenario works with.
type bench struct {
	benchOptions
	serve  benchServerOptions // of server, to start it again
	server *benchServer
	sink   *benchSink
	notef  func(format string, args ...any) // says how far a long run is
}

// chooseScenarios returns the scenarios of these names; without names the short ones, or all.
func chooseScenarios(names []string, all bool) ([]benchScenario, error) {
	var list []benchScenario
	if len(names) == 0 {
		for _, s := range benchScenarios {
			if all || !s.long {
				list = append(list, s)
			}
		}
		return list, nil
	}
	if all {
		return nil, usagef("--all and the scenario %q: give one or the other", clip(names[0], 40))
	}
	for _, name := range names {
		i := slices.IndexFunc(benchScenarios[:], func(s benchScenario) bool { return s.name == name })
		if i < 0 {
			return nil, usagef("there is no scenario %q; dts bench --help lists them", clip(name, 40))
		}
		list = append(list, benchScenarios[i])
	}
	return list, nil
}
