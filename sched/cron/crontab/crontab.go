// Package crontab reads crontab files as crontab(5) on Debian describes them.
//
// It promises not to guess: a line that cron would refuse, or that means different things to
// different crons, or that cannot be carried over, becomes a [LineError] that names file and line.
// What it returns has been checked with [cron.Parse]. It reads no other file and asks no system:
// whether a user exists is for the caller to find out.
package crontab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"dts/sched/cron"
)

// Limits. Those for commands and variables are cron's own.
const (
	MaxFile    = 1 << 20 // bytes of a file
	MaxCommand = 998     // bytes of a command with its standard input, as written
	MaxEnv     = 1000    // bytes of a variable's line
	MaxErrors  = 1000    // refused lines, after which Parse stops with an error
)

// Kind says whether entries have a user field.
type Kind int

// The kinds of crontab.
const (
	User   Kind = iota // a user's own: schedule, command
	System             // /etc/crontab and /etc/cron.d: schedule, user, command
)

// String returns "user" or "system".
func (k Kind) String() string {
	if k == System {
		return "system"
	}
	return "user"
}

// Entry is one job.
type Entry struct {
	Line    int    // the line it stands on, from 1
	Expr    string // the five fields with single spaces, or a nickname such as @reboot
	User    string // of a system crontab; "" in a user's
	Command string // what the shell gets: up to the first unescaped %, with \% as %
	Stdin   string // what follows the first unescaped %: further ones are newlines, and the last line is ended, as cron does
	Shell   string // SHELL in force, /bin/sh by default
	// Env holds the other variables in force on this line, TZ among them: it changes what the
	// command sees and not when it runs. SHELL, CRON_TZ and MAILTO are apart; LOGNAME is left
	// out, because crontab(5) says it may not be changed.
	Env      map[string]string
	TimeZone string // CRON_TZ in force; "" is the zone of the machine
	MailTo   string // MAILTO in force; "" when there is none, or when NoMail
	NoMail   bool   // MAILTO is set and empty: send nothing
	Raw      string // the line as written
}

// LineError says why one line was refused.
type LineError struct {
	File string
	Line int    // from 1
	Text string // the line as written, cut to 200 bytes
	Msg  string
}

// Error returns "file:line: message".
func (e *LineError) Error() string {
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
}

// Parse reads a crontab. It returns the entries it can carry over and an error for every line
// that it refuses; entries below a refused variable are refused as well, until the variable is
// set rightly. The last result is for the file as a whole: it cannot be read, is larger than
// MaxFile, or has more than MaxErrors wrong lines.
func Parse(r io.Reader, file string, kind Kind) ([]Entry, []*LineError, error) {
	content, err := io.ReadAll(io.LimitReader(r, MaxFile+1))
	if err != nil {
		return nil, nil, fmt.Errorf("read crontab %s: %w", file, err)
	}
	if len(content) > MaxFile {
		return nil, nil, fmt.Errorf("read crontab %s: it is larger than 1 MiB", file)
	}
	p := parser{kind: kind, env: map[string]string{}, refused: map[string]int{}}
	var entries []Entry
	var bad []*LineError
	number := 0
	for line := range strings.SplitSeq(string(content), "\n") {
		number++
		e, err := p.line(line, number)
		switch {
		case err != nil && len(bad) == MaxErrors:
			return entries, bad, fmt.Errorf("read crontab %s: more than %d lines are wrong; is it a crontab?", file, MaxErrors)
		case err != nil:
			text := strings.ToValidUTF8(line[:min(len(line), 200)], "\uFFFD")
			bad = append(bad, &LineError{File: file, Line: number, Text: text, Msg: err.Error()})
		case e != nil:
			entries = append(entries, *e)
		}
	}
	return entries, bad, nil
}

// parser is what earlier lines mean for later ones.
type parser struct {
	kind    Kind
	env     map[string]string
	refused map[string]int // variables whose last setting was refused -> its line
}

// line reads one line. Both results are nil when there is nothing on it to run.
func (p *parser) line(raw string, number int) (*Entry, error) {
	s := strings.TrimLeft(raw, " \t")
	switch {
	case s == "" || s == "\r" || s[0] == '#':
		return nil, nil
	case !utf8.ValidString(s):
		return nil, errors.New("the line is not valid UTF-8")
	case strings.HasSuffix(s, "\r"):
		return nil, errors.New("the line ends in a carriage return, which cron would hand to the command; save the file with Unix line ends")
	}
	if i := strings.IndexFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }); i >= 0 {
		return nil, fmt.Errorf("the line has a control character (%q)", s[i])
	}
	name, value, isVariable, err := variable(s)
	if isVariable {
		if err == nil {
			err = check(name, value)
		}
		if err != nil {
			if isName(name) {
				p.refused[name] = number
			}
			return nil, err
		}
		delete(p.refused, name)
		p.env[name] = value
		return nil, nil
	}
	return p.entry(s, raw, number)
}

// check refuses values that would change what every entry below means without being understood.
func check(name, value string) error {
	switch name {
	case "CRON_TZ":
		if _, err := cron.LoadLocation(value); err != nil {
			return fmt.Errorf("CRON_TZ: %w", err)
		}
	case "SHELL":
		if !strings.HasPrefix(value, "/") {
			return fmt.Errorf("SHELL %q: must be an absolute path, such as /bin/sh", value)
		}
	case "RANDOM_DELAY":
		return errors.New("RANDOM_DELAY is not carried over; remove it and give the tasks a jitter instead")
	}
	return nil
}

// entry reads a job.
func (p *parser) entry(s, raw string, number int) (*Entry, error) {
	if len(p.refused) > 0 {
		first := slices.MinFunc(slices.Collect(maps.Keys(p.refused)), func(a, b string) int { return p.refused[a] - p.refused[b] })
		return nil, fmt.Errorf("%s was refused on line %d, and this line depends on it", first, p.refused[first])
	}
	expr, rest, err := schedule(s)
	if err != nil {
		return nil, err
	}
	e := &Entry{Line: number, Expr: expr, Raw: raw, Shell: "/bin/sh", Env: maps.Clone(p.env)}
	if p.kind == System {
		e.User, rest = word(rest)
		if !looksLikeUser(e.User) {
			return nil, fmt.Errorf("user field %q: must be a user name (a system crontab has one before the command)", e.User)
		}
	}
	if rest == "" {
		return nil, errors.New("the command is missing")
	}
	if len(rest) > MaxCommand {
		return nil, fmt.Errorf("the command has %d bytes, the limit is %d", len(rest), MaxCommand)
	}
	if e.Command, e.Stdin, err = percent(rest); err != nil {
		return nil, err
	}
	if strings.TrimSpace(e.Command) == "" {
		return nil, errors.New("the command is missing before %")
	}
	if shell, ok := e.Env["SHELL"]; ok {
		e.Shell = shell
	}
	e.TimeZone = e.Env["CRON_TZ"]
	mailTo, set := e.Env["MAILTO"]
	e.MailTo, e.NoMail = mailTo, set && mailTo == ""
	for _, name := range []string{"SHELL", "CRON_TZ", "MAILTO", "LOGNAME"} {
		delete(e.Env, name)
	}
	return e, nil
}

// schedule takes the schedule off the front of an entry and checks it.
func schedule(s string) (expr, rest string, err error) {
	// Some crons read a leading - as "do not log to syslog", which nothing here does.
	s = strings.TrimPrefix(s, "-")
	if strings.HasPrefix(s, "@") {
		expr, rest = word(s)
		switch expr {
		case "@reboot", "@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly":
			return expr, rest, nil
		}
		return "", "", fmt.Errorf("%q is not in crontab(5): it has @reboot @yearly @annually @monthly @weekly @daily @midnight @hourly", expr)
	}
	fields := make([]string, 5)
	rest = s
	for i := range fields {
		if fields[i], rest = word(rest); fields[i] == "" {
			return "", "", fmt.Errorf("the line has %d of the 5 fields minute hour day-of-month month day-of-week, and it is no NAME=value", i)
		}
		if err := standard(fields[i]); err != nil {
			return "", "", err
		}
	}
	expr = strings.Join(fields, " ")
	if _, err := cron.Parse(expr, cron.Options{Location: time.UTC}); err != nil {
		return "", "", err
	}
	return expr, rest, nil
}

// standard refuses what crontab(5) does not have, though cron.Parse does, and a step after a
// single number, on which crons disagree.
func standard(field string) error {
	if strings.ContainsAny(field, "?#()") {
		return fmt.Errorf("field %q: ?, # and H(…) are not in crontab(5)", field)
	}
	letters := func(r rune) bool { return r < 'A' || r > 'Z' && r < 'a' || r > 'z' }
	for _, name := range strings.FieldsFunc(field, letters) {
		if len(name) < 3 {
			return fmt.Errorf("field %q: L, W and H are not in crontab(5)", field)
		}
	}
	for item := range strings.SplitSeq(field, ",") {
		base, step, stepped := strings.Cut(item, "/")
		if stepped && base != "*" && !strings.ContainsAny(base, "-~") {
			return fmt.Errorf("field %q: crons disagree about a step after one number; write %s, or a range as in %s-N/%s", field, base, base, step)
		}
	}
	return nil
}

// percent splits a command at its first unescaped %.
func percent(s string) (command, stdin string, err error) {
	if strings.Contains(s, `\\%`) {
		return "", "", errors.New(`\\% means different things to different crons; put the command into a script`)
	}
	const mark = "\x00" // control characters have been refused, so it is free
	s = strings.ReplaceAll(s, `\%`, mark)
	command, stdin, _ = strings.Cut(s, "%")
	stdin = strings.ReplaceAll(stdin, "%", "\n")
	if stdin != "" && !strings.HasSuffix(stdin, "\n") {
		stdin += "\n"
	}
	return strings.ReplaceAll(command, mark, "%"), strings.ReplaceAll(stdin, mark, "%"), nil
}

// word splits off the first word and the blanks after it.
func word(s string) (first, rest string) {
	if i := strings.IndexAny(s, " \t"); i >= 0 {
		return s[:i], strings.TrimLeft(s[i:], " \t")
	}
	return s, ""
}

// DetectKind tells a system crontab from a user's. /etc/crontab and files in a directory cron.d
// are System, files under /var/spool/cron are User. Elsewhere a file is System when in every
// entry the word after the schedule is root, or looks like a user name, is not a common command,
// and is followed by what looks like a command. A file without entries is User.
func DetectKind(content []byte, path string) Kind {
	path = strings.ReplaceAll(path, `\`, "/")
	switch {
	case path == "/etc/crontab" || strings.Contains("/"+path, "/cron.d/"):
		return System
	case strings.HasPrefix(path, "/var/spool/cron/"):
		return User
	}
	kind := User
	for line := range bytes.SplitSeq(content[:min(len(content), MaxFile)], []byte("\n")) {
		s := strings.Trim(string(line), " \t\r")
		if s == "" || s[0] == '#' {
			continue
		}
		if _, _, isVariable, _ := variable(s); isVariable {
			continue
		}
		_, rest, err := schedule(s)
		if err != nil {
			continue
		}
		user, command := word(rest)
		next, _ := word(command)
		if user != "root" && (!looksLikeUser(user) || isCommand(user) || !startsCommand(next)) || next == "" {
			return User
		}
		kind = System
	}
	return kind
}
