package main

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/urfave/cli/v2"

	"dts"
	"dts/sched/cron"
)

// manyJobs is from how many on an import shows its progress.
const manyJobs = 50

func (a *app) importCommand() *cli.Command {
	return &cli.Command{
		Name: "import", Usage: "import a crontab", Category: "Tasks",
		Action: func(c *cli.Context) error {
			return usagef("dts import needs to know what: dts import crontab FILE")
		},
		Subcommands: []*cli.Command{{
			Name: "crontab", Usage: "import crontab files as recurring tasks", ArgsUsage: "FILE…",
			Description: `Every line becomes a recurring task that does what cron would do: the same shell, variables, user and
standard input, no retries, and nothing made up for after an outage unless --catch-up says so. A run
may take 7 days. What a job prints is kept and not mailed.

A line that cannot be carried over is refused by file and line, and then nothing is imported, unless
--keep-going. Importing again adds only what is new. - is standard input.

With --yaml it adds nothing, needs no server, and writes the jobs as a file
that dts apply takes:
   dts import crontab --yaml /etc/crontab > tasks.yaml`,
			Flags: withConnection(append(formFlags(),
				&cli.BoolFlag{Name: "dry-run", Usage: "say what would be added, and add nothing; needs no server"},
				&cli.BoolFlag{Name: "yaml", Usage: "write what would be added as a file for dts apply, and add nothing; with --json as JSON"},
				&cli.BoolFlag{Name: "keep-going", Usage: "import the other lines when some are refused"},
				&cli.StringFlag{Name: "user", Usage: "run lines without a user field as the user `NAME`; default: the file's name in /var/spool/cron, else the server's user"},
				&cli.StringFlag{Name: "tz", Usage: "IANA `ZONE` of lines without CRON_TZ; default: this machine's"},
				&cli.StringFlag{Name: "name-prefix", Usage: "put `TEXT` before the names"},
				&cli.StringFlag{Name: "catch-up", Usage: catchUpUsage + "; default: skip"},
				jsonFlag(),
			)...),
			Action: a.importCrontab,
		}},
	}
}

func (a *app) importCrontab(c *cli.Context) error {
	if !c.Args().Present() {
		return usagef("dts import crontab needs a FILE; - is standard input")
	}
	if c.Bool("yaml") && c.Bool("dry-run") {
		return usagef("--yaml and --dry-run are both given, and neither adds anything; keep one")
	}
	p, err := a.planImport(c)
	if err != nil {
		return err
	}
	for _, f := range p.files {
		a.printBad(f)
	}
	if p.refused > 0 && !c.Bool("keep-going") {
		text := "nothing is imported: " + count(p.refused, "line") + " cannot be carried over"
		if len(p.jobs) > 0 {
			text += "; change them, or import the other " + count(len(p.jobs), "job") + " with --keep-going"
		}
		return usagef("%s", text)
	}
	if c.Bool("yaml") {
		return a.importYAML(c, p)
	}
	if c.Bool("dry-run") {
		return a.dryRun(c, p)
	}
	return a.withServer(c, func(l *link) error { return a.doImport(c, l, p) })
}

// dryRun says what would be added.
func (a *app) dryRun(c *cli.Context, p *importPlan) error {
	for i, j := range p.jobs {
		if c.Bool("json") {
			if err := a.printLine(j.request); err != nil {
				return err
			}
			continue
		}
		if i > 0 {
			a.printf("\n")
		}
		if err := a.printJob(j); err != nil {
			return err
		}
	}
	if !c.Bool("json") {
		a.printf("\nWould add %s. Nothing was added.\n", count(len(p.jobs), "recurring task"))
		a.importNotes(p)
	}
	if p.refused > 0 {
		return exitOnly(exitUsage)
	}
	return nil
}

func (a *app) printJob(j *job) error {
	a.printf("%s  %s\n", a.bold(displayName(&j.request.Spec)), a.dim(clean(fmt.Sprintf("%s:%d", j.file, j.entry.Line))))
	r := &dts.RecurringTask{Spec: j.request.Spec, Schedule: dts.Schedule{Cron: string(j.request.Cron), TimeZone: j.request.TimeZone}}
	list := append([]fact{{"Runs", target(&r.Spec)}}, details(&r.Spec)...)
	next, err := nextOf(&r.Schedule, r.Name, a.now(), a.now(), 3)
	if err != nil {
		return err
	}
	a.facts(append(list, a.scheduleFacts(r, j.zone, next)...))
	return nil
}

// importNotes tells once what does not come along.
func (a *app) importNotes(p *importPlan) {
	if p.mail {
		a.notef("MAILTO is not carried over: what a job prints is kept, see dts logs")
	}
}

// doImport adds the jobs that are not there yet.
func (a *app) doImport(c *cli.Context, l *link, p *importPlan) error {
	w, err := a.adder(c.Context, l)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := p.settleUsers(w); err != nil {
		return err
	}
	there, err := w.imported(c.Context)
	if err != nil {
		return err
	}
	p.settle(there)
	bar := a.progress(len(p.jobs))
	added, known := 0, 0
	for _, j := range p.jobs {
		bar()
		if j.there != nil {
			known++
			if difference := j.differs(); difference != "" {
				a.notef("%s:%d: was imported before with another %s; to change it, dts rm %s and import again", j.file, j.entry.Line, difference, j.there.ID)
			}
			continue
		}
		r, existed, err := w.recurring(c.Context, j.request)
		if err != nil {
			text, code := verdict(err)
			return &exitError{code, fmt.Sprintf("%s:%d: %s; %s added before it, and importing again goes on from there",
				j.file, j.entry.Line, text, plural(added, "job was", "jobs were"))}
		}
		if existed {
			known++
			continue
		}
		added++
		if c.Bool("json") {
			if err := a.printLine(r); err != nil {
				return err
			}
		} else if len(p.jobs) <= manyJobs {
			a.printf("%s  %s, next %s\n", a.bold(displayName(&r.Spec)), scheduleWords(&r.Schedule), nextWord(r, a.now()))
		}
	}
	if !c.Bool("json") {
		a.printf("Added %s", count(added, "recurring task"))
		if known > 0 {
			a.printf("; %s", plural(known, "was there already", "were there already"))
		}
		a.printf(".\n")
		a.importNotes(p)
	}
	if w.offline() {
		a.notef("no server runs; this is saved in %s, and nothing fires until: dts serve", l.dataDir)
	}
	if p.refused > 0 {
		return exitOnly(exitUsage)
	}
	return nil
}

// nextWord says when a recurring task runs next.
func nextWord(r *dts.RecurringTask, now time.Time) string {
	if strings.HasPrefix(r.Cron, "@reboot") {
		return "at the next boot"
	}
	if !r.NextRunAt.IsZero() {
		return relative(r.NextRunAt, now)
	}
	if next, err := nextOf(&r.Schedule, r.Name, r.CreatedAt, now, 1); err == nil && len(next) > 0 {
		return relative(next[0].UTC, now)
	}
	return "never"
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// progress returns what to call for each job: it moves a bar when there are many and someone looks.
func (a *app) progress(n int) func() {
	if n <= manyJobs || !a.terminal {
		return func() {}
	}
	bar := progressbar.NewOptions(n, progressbar.OptionSetWriter(a.err), progressbar.OptionSetDescription("importing"),
		progressbar.OptionShowCount(), progressbar.OptionSetWidth(30), progressbar.OptionClearOnFinish())
	return func() { _ = bar.Add(1) } // a bar that cannot be drawn is no reason to stop
}

// imported returns the recurring tasks that earlier imports added, by idempotency key, and the names taken.
func (w *adder) imported(ctx context.Context) (there inventory, err error) {
	there = inventory{byKey: map[string]*dts.RecurringTask{}, names: map[string]bool{}}
	if w.off != nil {
		return there, nil // the store finds a key that is used again
	}
	for r, err := range w.l.AllRecurringTasks(ctx, dts.RecurringFilter{Limit: 1000}) {
		if err != nil {
			return there, err
		}
		if r.IdempotencyKey != "" {
			there.byKey[r.IdempotencyKey] = r
		}
		if r.Status != dts.Ended {
			there.names[r.Name] = true
		}
	}
	return there, nil
}

// settleUsers refuses what the server could not run: only root can become another user. Nothing has been
// added by then.
func (p *importPlan) settleUsers(w *adder) error {
	uid, known := os.Geteuid(), true
	if w.off == nil {
		uid, known = w.l.owner()
	}
	if !known || uid == 0 {
		return nil
	}
	name := strconv.Itoa(uid)
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	for _, j := range p.jobs {
		if j.user != "" && j.user != name {
			return usagef("%s:%d: runs as %s, but the server runs as %s and cannot become another user; nothing is imported: run dts serve as root, or import the lines of %s alone",
				j.file, j.entry.Line, j.user, name, name)
		}
		if err := j.setUser(""); err != nil {
			return err
		}
	}
	return nil
}

// ownerOf returns the user of a crontab under /var/spool/cron, which is its name.
func ownerOf(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil || !strings.HasPrefix(abs, "/var/spool/cron/") {
		return ""
	}
	return filepath.Base(abs)
}

// zoneOf returns the zone of one line.
func (a *app) zoneOf(name string, otherwise zone) (zone, error) {
	if name == "" {
		return otherwise, nil
	}
	loc, err := cron.LoadLocation(name)
	return zone{name: name, loc: loc, why: "CRON_TZ"}, err
}
