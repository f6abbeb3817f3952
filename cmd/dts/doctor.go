package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fatih/color"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/urfave/cli/v2"

	"dts"
	"dts/web/client"
)

// level is how bad a finding is.
type level string

const (
	levelOK      level = "ok"
	levelWarning level = "warning" // it works, but not as it should, or not for long
	levelProblem level = "problem" // it does not work, or others can read what they should not
)

// finding is one thing that the doctor has looked at.
type finding struct {
	Check  string   `json:"check"`
	Level  level    `json:"level"`
	Text   string   `json:"text"`
	Advice string   `json:"advice,omitempty"` // what to do about it
	Items  []string `json:"items,omitempty"`  // which, at most shownItems
}

const shownItems = 10

// report is what `dts doctor` prints.
type report struct {
	Server   string    `json:"server"` // the data directory, or the URL
	Level    level     `json:"level"`  // the worst
	Problems int       `json:"problems"`
	Warnings int       `json:"warnings"`
	Findings []finding `json:"findings"`
}

func (r *report) add(f finding) {
	switch f.Level {
	case levelProblem:
		r.Problems++
	case levelWarning:
		r.Warnings++
	}
	r.Level = levelOK
	if r.Warnings > 0 {
		r.Level = levelWarning
	}
	if r.Problems > 0 {
		r.Level = levelProblem
	}
	if n := len(f.Items) - shownItems; n > 0 {
		f.Items = append(f.Items[:shownItems:shownItems], fmt.Sprintf("and %d more", n))
	}
	r.Findings = append(r.Findings, f)
}

func (r *report) ok(check, format string, args ...any) {
	r.add(finding{Check: check, Level: levelOK, Text: fmt.Sprintf(format, args...)})
}

func (r *report) warn(check, advice, format string, args ...any) {
	r.add(finding{Check: check, Level: levelWarning, Text: fmt.Sprintf(format, args...), Advice: advice})
}

func (r *report) problem(check, advice, format string, args ...any) {
	r.add(finding{Check: check, Level: levelProblem, Text: fmt.Sprintf(format, args...), Advice: advice})
}

// list adds a finding about several things, if there are any.
func (r *report) list(check string, l level, items []string, advice, format string, args ...any) {
	if len(items) > 0 {
		r.add(finding{Check: check, Level: l, Text: fmt.Sprintf(format, args...), Advice: advice, Items: items})
	}
}

func (a *app) doctorCommand() *cli.Command {
	return &cli.Command{
		Name: "doctor", Usage: "look for what is wrong, or soon will be, and say what to do", Category: "The server",
		Description: `It looks at the server, the data directory, the database, the disk, the clock, permissions, limits, schedules, runs, backups,
dead letters and queues. Without a server that runs it looks at the files, and changes nothing. Best as the server's user, or root.

Exits with 1 when it finds a problem; with --strict also for a warning. For cron: dts doctor --quiet prints nothing
when all is well.`,
		Flags: withConnection(
			&cli.BoolFlag{Name: "deep", Usage: "read all of the database and compare its indexes, however long that takes"},
			&cli.BoolFlag{Name: "strict", Usage: "a warning counts as a problem for the exit code"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "only what is not well"},
			jsonFlag()),
		Action: a.doctor,
	}
}

func (a *app) doctor(c *cli.Context) error {
	if err := noArgs(c); err != nil {
		return err
	}
	r, err := a.examine(c)
	if err != nil {
		return err
	}
	if c.Bool("quiet") {
		r.Findings = slices.DeleteFunc(r.Findings, func(f finding) bool { return f.Level == levelOK })
	}
	switch {
	case c.Bool("json"):
		err = a.printJSON(r)
	case len(r.Findings) > 0:
		a.printReport(r)
	}
	if err == nil && (r.Problems > 0 || c.Bool("strict") && r.Warnings > 0) {
		return exitOnly(exitFailed)
	}
	return err
}

// examine looks at everything.
func (a *app) examine(c *cli.Context) (*report, error) {
	r := &report{Level: levelOK, Findings: []finding{}}
	conf, confErr := loadConfig(c)
	if confErr != nil {
		conf = &config{} // a finding, and the rest is looked at with what the flags say
	}
	d := &doctor{app: a, report: r, conf: conf, deep: c.Bool("deep")}
	server := setting(c, "server", c.String, conf.Server, "")
	if server == "" || a.given["data"] {
		var err error
		if d.dir, err = conf.dataDir(c); err != nil {
			return nil, err
		}
		r.Server = d.dir
		d.socket = socketPath(d.dir)
	} else {
		r.Server = server
	}
	if confErr == nil {
		l, err := a.connectWithin(c, statusWithin)
		if err != nil {
			return nil, err
		}
		defer l.Close()
		d.l = l
	} else {
		text, _ := verdict(confErr)
		r.problem("settings", "correct it: the server does not start with it, and does not reload it", "%s", text)
		if d.dir == "" {
			return r, nil
		}
		cl, err := client.New(client.Options{Socket: d.socket, Version: thisBuild().Version, Timeout: statusWithin})
		if err != nil {
			return nil, err
		}
		defer cl.Close()
		d.l = &link{cl, d.dir, d.socket}
	}
	d.checkTokenFile(c.String("token-file"))
	if d.dir != "" {
		d.checkConfigFile(c.String("config"))
	}
	d.run(c.Context)
	return r, nil
}

// doctor is one examination.
type doctor struct {
	app    *app
	report *report
	conf   *config
	deep   bool

	dir, socket string // "" for a server given by its URL
	l           *link

	status *dts.SchedulerStatus // nil: no server has answered
	held   bool                 // a process has the data directory
	source examined             // the tasks; nil where they cannot be read
}

func (d *doctor) run(ctx context.Context) {
	d.checkServer(ctx)
	if d.dir != "" && d.checkDirectory() {
		d.checkDisk()
		closeFile := d.checkDatabase(ctx)
		defer closeFile()
	}
	d.checkClock()
	d.checkLimits()
	if d.status != nil {
		d.source = d.l
		d.checkRetention()
	}
	if d.source != nil {
		d.checkTasks(ctx)
	}
}

// printReport prints findings, the worst last, where the eye is when all has scrolled by.
func (a *app) printReport(r *report) {
	shown := slices.Clone(r.Findings)
	a.printf("%s  %s\n", a.bold("dts doctor"), clean(r.Server))
	rank := map[level]int{levelOK: 0, levelWarning: 1, levelProblem: 2}
	slices.SortStableFunc(shown, func(x, y finding) int { return rank[x.Level] - rank[y.Level] })
	checks := 0
	for _, f := range shown {
		checks = max(checks, len(f.Check))
	}
	paints := map[level]color.Attribute{levelOK: color.FgGreen, levelWarning: color.FgYellow, levelProblem: color.FgRed}
	indent := 2 + len(levelProblem) + 2 + checks + 2
	for _, f := range shown {
		pad := strings.Repeat(" ", len(levelProblem)-len(f.Level)+2)
		a.printf("  %s%s%-*s  %s\n", a.paint(string(f.Level), paints[f.Level]), pad, checks, f.Check, a.hang(f.Text, indent))
		for _, item := range f.Items {
			a.printf("%s%s\n", strings.Repeat(" ", indent), a.hang("· "+item, indent+2))
		}
		if f.Advice != "" {
			a.printf("%s%s\n", strings.Repeat(" ", indent), a.hang("→ "+f.Advice, indent+2))
		}
	}
	switch {
	case r.Problems == 0 && r.Warnings == 0:
		a.printf("%s\n", a.paint("All is well.", color.FgGreen))
	default:
		var parts []string
		if r.Problems > 0 {
			parts = append(parts, count(r.Problems, "problem"))
		}
		if r.Warnings > 0 {
			parts = append(parts, count(r.Warnings, "warning"))
		}
		a.printf("%s\n", a.bold(strings.Join(parts, ", ")))
	}
}

// hang wraps a text at the terminal's width, with its later lines under its first.
func (a *app) hang(s string, indent int) string {
	s = clean(s)
	if a.width-indent < 20 {
		return s
	}
	lines := strings.Split(text.WrapSoft(s, a.width-indent), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n"+strings.Repeat(" ", indent))
}

// age is how long ago something was, for a text.
func age(d time.Duration) string { return distance(max(d.Truncate(time.Second), 0)) }
