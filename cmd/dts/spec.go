package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"dts"
)

// commandFlags and httpFlags belong to one kind of target only.
var (
	commandFlags = []string{"shell", "dir", "env", "user", "stdin"}
	httpFlags    = []string{"method", "header", "body"}
	backupFlags  = []string{"keep", "keep-days"}
	pingFlags    = []string{"grace", "max-runtime"}
)

// spec reads what to run and how from the flags of `dts add`.
func (a *app) spec(c *cli.Context, remote bool, n *addition) (dts.Spec, error) {
	s := dts.Spec{Name: c.String("name"), Description: c.String("description"), Queue: c.String("queue")}
	argv := c.Args().Slice()
	var config any
	var err error
	if !c.Bool("ping") {
		if err := onlyFor("--ping", c, pingFlags); err != nil {
			return s, err
		}
	}
	switch {
	case c.IsSet("backup"):
		if c.IsSet("url") || c.IsSet("shell") || c.Bool("ping") || len(argv) > 0 {
			return s, usagef("--backup and something else to run are both given; keep one")
		}
		if err := errors.Join(onlyFor("a command", c, commandFlags), onlyFor("--url", c, httpFlags)); err != nil {
			return s, err
		}
		s.TargetType = dts.Backup
		config, err = backupTarget(c, remote)
	case c.Bool("ping"):
		if len(argv) > 0 || c.IsSet("url") {
			return s, usagef("--ping runs nothing, and a command or --url is given, too; keep one")
		}
		if err := onlyFor("what dts runs, and --ping runs nothing", c, slices.Concat(commandFlags, httpFlags)); err != nil {
			return s, err
		}
		s.TargetType = dts.Ping
		config, err = pingTarget(c)
	case c.IsSet("url"):
		if len(argv) > 0 {
			return s, usagef("--url and a command are both given; keep one")
		}
		if err := onlyFor("a command", c, commandFlags); err != nil {
			return s, err
		}
		s.TargetType = dts.HTTPCallback
		config, err = a.httpTarget(c)
	case len(argv) > 0 || c.IsSet("shell"):
		if err := onlyFor("--url", c, httpFlags); err != nil {
			return s, err
		}
		s.TargetType = dts.Command
		config, err = a.commandTarget(c, argv, remote, n)
	default:
		return s, usagef("there is nothing to run: give -- COMMAND, --shell LINE, --url U or --backup DIR; or --ping, for a job that something else runs")
	}
	if err == nil && s.TargetType != dts.Backup {
		err = onlyFor("--backup", c, backupFlags)
	}
	if err != nil {
		return s, err
	}
	if s.TargetConfig, err = targetJSON(config); err != nil {
		return s, err
	}
	if !c.IsSet("name") {
		s.Name = nameOf(&s)
	}
	return s, a.policies(c, &s)
}

// targetJSON writes a target_config as people would, with < and & as they are.
func targetJSON(config any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(config); err != nil {
		return nil, fmt.Errorf("write the target_config: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

func onlyFor(what string, c *cli.Context, flags []string) error {
	for _, f := range flags {
		if c.IsSet(f) {
			return usagef("--%s: is for %s", f, what)
		}
	}
	return nil
}

func pingTarget(c *cli.Context) (t dts.PingTarget, err error) {
	for _, x := range []struct {
		flag string
		to   *float64
	}{{"grace", &t.GraceSeconds}, {"max-runtime", &t.MaxRuntimeSeconds}} {
		if c.IsSet(x.flag) {
			d, err := parseSpan("--"+x.flag, c.String(x.flag), time.Second)
			if err != nil {
				return t, err
			}
			*x.to = d.Seconds()
		}
	}
	return t, nil
}

func (a *app) httpTarget(c *cli.Context) (t dts.HTTPTarget, err error) {
	t = dts.HTTPTarget{URL: c.String("url"), Method: strings.ToUpper(c.String("method"))}
	for _, h := range c.StringSlice("header") {
		name, value, ok := strings.Cut(h, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return t, usagef("--header: %q must be \"NAME: VALUE\"", clip(clean(h), 60))
		}
		if t.Headers == nil {
			t.Headers = map[string]string{}
		}
		t.Headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	t.Body, err = a.text(c, "body")
	return t, err
}

// keepDefault is how many copies `dts add --backup` keeps where nothing else is said: a disk that fills up is no backup.
const keepDefault = 7

// backupTarget reads the flags of a backup.
func backupTarget(c *cli.Context, remote bool) (t dts.BackupTarget, err error) {
	t = dts.BackupTarget{Dir: c.String("backup"), Keep: c.Int("keep"), KeepDays: c.Int("keep-days")}
	for _, f := range backupFlags {
		if c.IsSet(f) && c.Int(f) < 1 {
			return t, usagef("--%s: is %d; use at least 1", f, c.Int(f))
		}
	}
	if recurs(c) && t.Keep == 0 && t.KeepDays == 0 {
		t.Keep = keepDefault
	}
	if remote { // its directories are not known here
		if !filepath.IsAbs(t.Dir) {
			return t, usagef("--backup: %s is relative, and the server given with --server may be another machine; write the whole path", t.Dir)
		}
		return t, nil
	}
	if t.Dir, err = filepath.Abs(t.Dir); err != nil {
		return t, usagef("--backup: %s", err)
	}
	if info, err := os.Stat(t.Dir); err == nil && !info.IsDir() || errors.Is(err, fs.ErrNotExist) {
		return t, usagef("--backup: there is no directory %s; make it first", t.Dir)
	}
	return t, nil
}

// recurs reports whether the flags ask for a recurring task.
func recurs(c *cli.Context) bool { return c.IsSet("cron") || c.IsSet("every") || c.IsSet("rrule") }

func (a *app) commandTarget(c *cli.Context, argv []string, remote bool, n *addition) (t dts.CommandTarget, err error) {
	t = dts.CommandTarget{Argv: argv, Shell: c.String("shell"), Dir: c.String("dir"), User: c.String("user")}
	if len(argv) > 0 && c.IsSet("shell") {
		return t, usagef("--shell and a command are both given; keep one")
	}
	if t.Env, err = pairs(c, "env"); err != nil {
		return t, err
	}
	if t.Stdin, err = a.text(c, "stdin"); err != nil {
		return t, err
	}
	if remote {
		// The server may be another machine, where this directory means nothing.
		if len(argv) > 0 && strings.Contains(argv[0], "/") && !filepath.IsAbs(argv[0]) {
			return t, usagef("%s: is relative, and the server given with --server may be another machine; write the whole path", argv[0])
		}
		if t.Dir != "" && !filepath.IsAbs(t.Dir) {
			return t, usagef("--dir: %s is relative, and the server given with --server may be another machine; write the whole path", t.Dir)
		}
		return t, nil
	}
	here, err := os.Getwd()
	if err != nil {
		return t, failf("find the directory you are in: %s", err)
	}
	if t.Dir == "" {
		t.Dir = here
	} else if t.Dir, err = filepath.Abs(t.Dir); err != nil {
		return t, usagef("--dir: %s", err)
	}
	if info, err := os.Stat(t.Dir); err == nil && !info.IsDir() || errors.Is(err, fs.ErrNotExist) {
		return t, usagef("--dir: there is no directory %s", t.Dir)
	}
	if len(argv) > 0 {
		t.Argv = slices.Clone(argv)
		t.Argv[0], err = program(argv[0], t.Env, n)
	}
	return t, err
}

// program makes the path of a program absolute, since the server stands in another directory, and refuses
// one that cannot be run.
func program(name string, env map[string]string, n *addition) (string, error) {
	if !strings.Contains(name, "/") {
		if _, err := exec.LookPath(name); err != nil && env["PATH"] == "" {
			n.notes = append(n.notes, "there is no program "+name+" in your PATH; it must be in the server's, or give its whole path")
		}
		return name, nil
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return "", usagef("%s: %s", name, err)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", usagef("%s: there is no such file", path)
	case err != nil:
		return path, nil // it may be there for the user that it runs as
	case info.IsDir():
		return "", usagef("%s: is a directory; give a program in it", path)
	case info.Mode()&0o111 == 0:
		return "", usagef("%s: is not executable; make it so with: chmod +x %s", path, words([]string{name}))
	}
	return path, nil
}

// policies reads how to run it.
func (a *app) policies(c *cli.Context, s *dts.Spec) error {
	concurrency(c, s)
	var err error
	if s.Labels, err = pairs(c, "label"); err != nil {
		return err
	}
	if s.Priority, err = choice(c, "priority", map[string]dts.Priority{"high": dts.High, "medium": dts.Medium, "low": dts.Low}); err != nil {
		return err
	}
	if c.Bool("at-most-once") {
		s.Delivery = dts.AtMostOnce
	}
	for _, x := range []struct {
		flag string
		to   *float64
	}{{"timeout", &s.TimeoutSeconds}, {"sla", &s.SLASeconds},
		{"warn-late", &s.WarnLateSeconds}, {"warn-longer", &s.WarnLongerSeconds}, {"warn-shorter", &s.WarnShorterSeconds}} {
		if c.IsSet(x.flag) {
			d, err := parseSpan("--"+x.flag, c.String(x.flag), time.Millisecond)
			if err != nil {
				return err
			}
			*x.to = d.Seconds()
		}
	}
	if s.Retry, err = retry(c, s.TargetType); err != nil {
		return err
	}
	s.Preemptible = c.Bool("preemptible")
	s.Resources, err = resources(c)
	return err
}

// choice reads a flag with a few words as its values; a flag that is not there is the zero value.
func choice[T any](c *cli.Context, flag string, words map[string]T) (T, error) {
	text := c.String(flag)
	v, ok := words[strings.ToLower(text)]
	if c.IsSet(flag) && !ok {
		return v, usagef("--%s: %q is not known; use %s", flag, clip(clean(text), 20), oneOf(words))
	}
	return v, nil
}

// pairs reads a flag K=V that can be repeated.
func pairs(c *cli.Context, flag string) (map[string]string, error) {
	list := c.StringSlice(flag)
	if len(list) == 0 {
		return nil, nil
	}
	m := make(map[string]string, len(list))
	for _, p := range list {
		k, v, ok := strings.Cut(p, "=")
		if !ok || k == "" {
			return nil, usagef("--%s: %q must be K=V", flag, clip(clean(p), 60))
		}
		if _, twice := m[k]; twice {
			return nil, usagef("--%s: %s is given twice", flag, clip(clean(k), 60))
		}
		m[k] = v
	}
	return m, nil
}

// text reads a flag whose value is a text, @FILE, or - for standard input.
func (a *app) text(c *cli.Context, flag string) (string, error) {
	v := c.String(flag)
	if v != "-" && !strings.HasPrefix(v, "@") {
		return v, nil
	}
	in := a.in
	if v != "-" {
		f, err := os.Open(v[1:])
		if err != nil {
			return "", usagef("--%s: %s", flag, err)
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, dts.MaxTargetBytes+1))
	switch {
	case err != nil:
		return "", failf("--%s: %s", flag, err)
	case len(b) > dts.MaxTargetBytes:
		return "", usagef("--%s: is longer than %d bytes", flag, dts.MaxTargetBytes)
	}
	return string(b), nil
}
