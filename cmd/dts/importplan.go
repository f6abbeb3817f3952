package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"dts"
	"dts/sched/cron/crontab"
	"dts/web/api"
)

// importPlan is what an import would add.
type importPlan struct {
	files   []*crontabFile
	jobs    []*job
	refused int  // lines, in all files
	mail    bool // some line has mail sent
}

// job is one line of a crontab on its way to become a recurring task.
type job struct {
	file    string
	entry   crontab.Entry
	user    string // "" is the server's
	zone    zone
	key     string // without the number of its generation
	name    string // without the number that makes it unique
	request api.RecurringRequest
	there   *dts.RecurringTask // what an earlier import made of the same line
}

// inventory is what the server has.
type inventory struct {
	byKey map[string]*dts.RecurringTask
	names map[string]bool
}

// planImport reads all files. Lines that are refused, by cron's rules or by dts's, are in the files' bad.
func (a *app) planImport(c *cli.Context) (*importPlan, error) {
	otherwise, err := a.zoneFor(c.String("tz"))
	if err != nil {
		return nil, err
	}
	catchUp, err := choice(c, "catch-up", catchUpWords)
	if err != nil {
		return nil, err
	}
	if catchUp == "" {
		catchUp = dts.SkipMissed
	}
	p := &importPlan{}
	copies := map[string]int{}
	for _, path := range c.Args().Slice() {
		f, err := a.readCrontab(c, path)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, f)
		for _, e := range f.entries {
			j := &job{file: path, entry: e, user: e.User}
			if f.kind == crontab.User {
				if j.user = c.String("user"); j.user == "" {
					j.user = ownerOf(path)
				}
			}
			if j.zone, err = a.zoneOf(e.TimeZone, otherwise); err == nil {
				err = j.fill(c.String("name-prefix"), catchUp, copies)
			}
			if err == nil {
				_, err = newRecurring(j.request, a.now())
			}
			if err != nil {
				text, _ := verdict(err)
				f.bad = append(f.bad, &crontab.LineError{File: path, Line: e.Line, Text: clip(e.Raw, 200), Msg: text})
				continue
			}
			p.mail = p.mail || e.MailTo != ""
			p.jobs = append(p.jobs, j)
		}
		p.refused += len(f.bad)
	}
	p.settle(inventory{names: map[string]bool{}})
	return p, nil
}

// requests are the requests of the jobs, without the keys by which an import finds what an earlier one added.
func (p *importPlan) requests() []api.RecurringRequest {
	list := make([]api.RecurringRequest, len(p.jobs))
	for i, j := range p.jobs {
		list[i] = j.request
		list[i].IdempotencyKey = ""
	}
	return list
}

// cronTimeout is the limit of an imported job's run. Cron has none.
const cronTimeout = dts.MaxTimeout

// fill makes the request. copies counts lines that are there more than once.
func (j *job) fill(prefix string, catchUp dts.CatchUpMode, copies map[string]int) error {
	abs, err := filepath.Abs(j.file)
	if err != nil {
		return err
	}
	e := j.entry
	line := fmt.Sprintf("%s\n%s", abs, e.Raw)
	copies[line]++
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%d", line, copies[line]))
	j.key = "crontab:" + hex.EncodeToString(sum[:])
	t := dts.CommandTarget{Shell: e.Command, Env: e.Env, Stdin: e.Stdin, User: j.user}
	if e.Shell != "" && e.Shell != "/bin/sh" {
		t.ShellPath = e.Shell
	}
	config, err := targetJSON(t)
	if err != nil {
		return err
	}
	s := dts.Spec{
		TargetType: dts.Command, TargetConfig: config, Description: "from " + filepath.Base(j.file),
		Retry: dts.Retry{MaxAttempts: 1}, TimeoutSeconds: cronTimeout.Seconds(),
	}
	j.name = prefix + nameOf(&s)
	s.Name = j.name
	j.request = api.RecurringRequest{Spec: s, Cron: api.Expressions(e.Expr), CatchUpMode: catchUp, IdempotencyKey: j.key}
	if zoneMatters(&dts.Schedule{Cron: e.Expr}) {
		j.request.TimeZone = j.zone.name
	}
	return nil
}

// setUser changes whom the job runs as.
func (j *job) setUser(name string) error {
	t, err := j.request.Command()
	if err != nil {
		return err
	}
	j.user, t.User = name, name
	j.request.TargetConfig, err = targetJSON(t)
	return err
}

// settle finds the jobs that are there already, and gives the others names that nothing else has. A line
// whose recurring task was removed gets a new key: whoever imports it again wants it back.
func (p *importPlan) settle(there inventory) {
	for _, j := range p.jobs {
		j.request.IdempotencyKey, j.there = j.key, nil
		for n := 2; ; n++ {
			r := there.byKey[j.request.IdempotencyKey]
			if r == nil {
				break
			}
			if r.Status != dts.Ended {
				j.there = r
				break
			}
			j.request.IdempotencyKey = fmt.Sprintf("%s:%d", j.key, n)
		}
		if j.there != nil {
			continue
		}
		j.request.Name = j.name
		for n := 2; there.names[j.request.Name]; n++ {
			j.request.Name = numbered(j.name, n)
		}
		there.names[j.request.Name] = true
	}
}

// differs says what of a line that was imported before is not the same any more, or "".
func (j *job) differs() string {
	had, err := j.there.Command()
	want, bad := j.request.Command()
	switch {
	case errors.Join(err, bad) != nil:
		return "target"
	case j.there.TimeZone != j.request.TimeZone && (j.there.TimeZone != "" && j.there.TimeZone != "UTC" || j.request.TimeZone != "" && j.request.TimeZone != "UTC"):
		return "time zone"
	case had.User != want.User:
		return "user"
	case had.ShellPath != want.ShellPath:
		return "SHELL"
	case fmt.Sprint(had.Env) != fmt.Sprint(want.Env): // maps print in order
		return "environment"
	}
	return ""
}
