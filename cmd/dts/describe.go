package main

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"dts"
)

// width is how many columns the widest line of a cell takes.
func width(s string) int {
	w := 0
	for line := range strings.SplitSeq(s, "\n") {
		w = max(w, text.StringWidthWithoutEscSequences(line))
	}
	return w
}

// target says in one line what a task runs.
func target(s *dts.Spec) string {
	switch s.TargetType {
	case dts.HTTPCallback:
		if t, err := s.HTTP(); err == nil {
			return clean(cmp.Or(t.Method, "POST") + " " + dts.SafeURL(t.URL))
		}
	case dts.Command:
		if t, err := s.Command(); err == nil {
			if t.Shell != "" {
				return clean(t.Shell)
			}
			return clean(words(t.Argv))
		}
	case dts.WorkflowRun:
		if t, err := s.Workflow(); err == nil {
			return "workflow of " + count(len(t.Steps), "step")
		}
	case dts.Backup:
		if t, err := s.Backup(); err == nil {
			return clean("backup to " + t.Dir)
		}
	case dts.Ping:
		return "nothing: its job, elsewhere, reports to its ping URL"
	}
	return string(s.TargetType)
}

// details says what else there is to a target: one fact a line.
func details(s *dts.Spec) []fact {
	var list []fact
	switch s.TargetType {
	case dts.HTTPCallback:
		t, _ := s.HTTP()
		list = append(list, fact{"Headers", clean(strings.Join(slices.Sorted(maps.Keys(t.Headers)), ", "))})
		if t.Body != "" {
			list = append(list, fact{"Body", size(int64(len(t.Body)))})
		}
	case dts.Command:
		t, _ := s.Command()
		list = append(list, fact{"In", clean(t.Dir)}, fact{"As user", clean(t.User)}, fact{"Shell", clean(t.ShellPath)},
			fact{"Variables", clean(strings.Join(slices.Sorted(maps.Keys(t.Env)), ", "))})
		if t.Stdin != "" {
			list = append(list, fact{"Stdin", size(int64(len(t.Stdin)))})
		}
	case dts.Backup:
		t, _ := s.Backup()
		list = append(list, fact{"Keeps", kept(t)})
	case dts.Ping:
		list = append(list, fact{"Expected", pingRule(s)})
	}
	return list
}

// kept says which copies a backup leaves.
func kept(t dts.BackupTarget) string {
	switch {
	case t.Keep > 0 && t.KeepDays > 0:
		return fmt.Sprintf("the newest %d, none older than %s", t.Keep, count(t.KeepDays, "day"))
	case t.Keep > 0:
		return fmt.Sprintf("the newest %d", t.Keep)
	case t.KeepDays > 0:
		return "those of the last " + count(t.KeepDays, "day")
	}
	return "all"
}

// pingRule says when the job of a PING must report.
func pingRule(s *dts.Spec) string {
	t, err := s.Ping()
	if err != nil {
		return ""
	}
	text := "within " + span(t.Grace()) + " after each instant"
	if t.MaxRuntime() > 0 {
		text += ", or within " + span(t.MaxRuntime()) + " after it has reported its start"
	}
	return text
}

// displayName is what to call a task in a table.
func displayName(s *dts.Spec) string {
	if s.TargetType == dts.Ping {
		return clean(cmp.Or(s.Name, "ping"))
	}
	return clean(cmp.Or(s.Name, clip(target(s), 40)))
}

// nameOf makes a name for what has none: the program, the host and path of a URL, or the first program of
// a shell line that does something.
func nameOf(s *dts.Spec) string {
	switch s.TargetType {
	case dts.Ping:
		return "ping"
	case dts.HTTPCallback:
		if t, err := s.HTTP(); err == nil {
			if u, err := url.Parse(t.URL); err == nil {
				return clip(u.Hostname()+strings.TrimSuffix(u.Path, "/"), 60)
			}
		}
	case dts.Command:
		if t, err := s.Command(); err == nil {
			if len(t.Argv) > 0 {
				return clip(filepath.Base(t.Argv[0]), 60)
			}
			return shellName(t.Shell)
		}
	case dts.Backup:
		return "backup"
	}
	return ""
}

// Words that begin a part of a shell line: wrappers stand before the program that counts, and what begins
// with one of the others is preparation.
var (
	wrappers = map[string]bool{"nice": true, "ionice": true, "exec": true, "chronic": true, "sudo": true, "then": true,
		"if": true, "!": true, "time": true, "nohup": true}
	preparations = map[string]bool{"cd": true, "test": true, "[": true, "[[": true, "sleep": true, "command": true,
		"export": true, "set": true, "umask": true, ".": true, "source": true}
)

// shellName finds the program that a shell line is about, or shortens the line.
func shellName(line string) string {
	parts := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune("&|;\n", r) })
	for _, part := range parts {
		for _, w := range strings.Fields(part) {
			w = strings.Trim(w, `'"(){}`)
			if w == "" || wrappers[w] || strings.ContainsAny(w, "=$<>") || w[0] == '-' {
				continue
			}
			if preparations[w] || strings.Contains(part, "sleep") {
				break
			}
			return clip(filepath.Base(w), 60)
		}
	}
	return clip(strings.Join(strings.Fields(line), " "), 60)
}

// limits says how often and how long a task may run.
func limits(s *dts.Spec, attempts int) string {
	switch s.TargetType {
	case dts.WorkflowRun:
		return "" // its steps have theirs
	case dts.Ping:
		return "" // it is judged once, in no time
	}
	text := count(attempts, "attempt")
	if attempts > 1 {
		switch s.Retry.Backoff {
		case dts.Fixed:
			text += fmt.Sprintf(", %s apart", span(time.Duration(s.Retry.BaseDelayMS)*time.Millisecond))
		case dts.List:
			delays := make([]string, 0, len(s.Retry.DelaysMS))
			for _, ms := range s.Retry.DelaysMS {
				delays = append(delays, span(time.Duration(ms)*time.Millisecond))
			}
			text += ", after " + strings.Join(delays, ", ")
		default:
			text += fmt.Sprintf(", %s apart and then ever longer", span(time.Duration(s.Retry.BaseDelayMS)*time.Millisecond))
		}
	}
	return text + "; each at most " + span(s.Timeout())
}
